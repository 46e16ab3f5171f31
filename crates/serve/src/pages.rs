//! The page itself (a shell, a style and scripts without any framework, all inside the binary), the history of runs,
//! two of them side by side, their papers and files, and what happens in a run as server-sent events. A page that is
//! opened late, or connects again, gets everything first.

use crate::follow::{Follower, Update, folder_name, read_stored, run_folder, run_status};
use crate::server::{App, not_found};
use axum::body::{Body, Bytes};
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use dyno_core::{Error, harmless};
use dyno_facts::Bilingual;
use dyno_report::{Lang, Paper};
use dyno_store::{RunData, RunEntry};
use futures_util::stream::{self, Stream, StreamExt};
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Nothing but this server's own scripts and styles; nothing frames the page.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Papers bring their script and style along. They are in a sandbox: what a server's message might smuggle
/// into one could not ask this server for anything.
pub(crate) const PAPER_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; sandbox allow-scripts allow-downloads allow-popups";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page without content: its scripts fill it.
pub(crate) async fn shell() -> Html<&'static str> {
    Html(include_str!("../page/page.html"))
}

pub(crate) async fn page_asset(UrlPath(name): UrlPath<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", include_str!("../page/style.css")),
        "main.js" => (SCRIPT, include_str!("../page/main.js")),
        "charts.js" => (SCRIPT, include_str!("../page/charts.js")),
        "elements.js" => (SCRIPT, include_str!("../page/elements.js")),
        "live.js" => (SCRIPT, include_str!("../page/live.js")),
        "history.js" => (SCRIPT, include_str!("../page/history.js")),
        "words.js" => (SCRIPT, include_str!("../page/words.js")),
        _ => return not_found(),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Bytes of a file that are sent at once.
const PART: usize = 1 << 16;

/// Kinds of files that may be sent, by the end of their names. A database that a run keeps in its folder is not among
/// it.
const KINDS: [(&str, &str); 9] = [
    ("csv", "text/csv; charset=utf-8"),
    ("hlog", "text/plain; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "text/plain; charset=utf-8"),
    ("md", "text/plain; charset=utf-8"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain; charset=utf-8"),
    ("typ", "text/plain; charset=utf-8"),
];

/// `/runs/NAME/FILE`: a file of a run folder.
pub(crate) async fn file(
    State(app): State<Arc<App>>,
    UrlPath((run, name)): UrlPath<(String, String)>,
) -> Response {
    let allowed_file =
        run_folder(&app.runs, &run).and_then(|folder| Some((allowed_path(&folder, &name)?, name)));
    let opened =
        allowed_file.and_then(|((path, kind), name)| Some((File::open(path).ok()?, kind, name)));
    let Some((file, kind, name)) = opened else { return not_found() };
    let mut response = Body::from_stream(stream_file(file)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if name.ends_with(".html") {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAPER_POLICY));
    }
    response
}

/// The path of a file of a run and its media type. What is requested comes from outside: only plain
/// names below the folder are followed, and no link that leads out of it.
fn allowed_path(folder: &Path, name: &str) -> Option<(PathBuf, &'static str)> {
    let is_plain = name.split('/').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    });
    if !is_plain {
        return None;
    }
    let (_, ending) = name.rsplit_once('.')?;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == ending)?;
    // Only papers are pages.
    let is_paper = name.starts_with("paper.");
    if ending == "html" && !is_paper {
        return None;
    }
    let path = folder.join(name).canonicalize().ok()?;
    let is_inside = path.starts_with(folder.canonicalize().ok()?);
    (is_inside && path.is_file()).then_some((path, *kind))
}

/// A file piece by piece: histogram logs can be large.
fn stream_file(file: File) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let mut part = vec![0; PART];
        match file.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some((Ok(Bytes::from(part)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// The lowest there is (nice value).
const LOWEST_PRIORITY: i32 = 19;

/// A run for the page's list.
fn line(entry: &RunEntry) -> Value {
    let (status, why) = match (&entry.header, entry.status()) {
        (_, Some(status)) => run_status(&status),
        (Err(error), None) => ("unreadable", error.to_string().into()),
        (Ok(_), None) => ("unreadable", Bilingual::default()),
    };
    let header = entry.header.as_ref().ok().cloned().unwrap_or_default();
    let targets = header.targets.iter().map(|target| {
        let parts = [&target.name, &target.product, &target.version];
        parts.map(String::as_str).join(" ").trim().to_owned()
    });
    json!({
        "folder": folder_name(&entry.path),
        "title": header.title,
        "suite": header.suite,
        "status": status,
        "why": why,
        "started_at": header.started_at,
        "finished_at": header.finished_at,
        "trials": entry.trials_ended,
        "targets": targets.collect::<Vec<_>>(),
        "papers": paper_files(&entry.path),
    })
}

fn paper_files(run: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut papers: Vec<String> = names.filter(|name| name.starts_with("paper.")).collect();
    papers.sort();
    papers
}

/// `/api/runs`: all runs, the newest first.
pub(crate) async fn runs(State(app): State<Arc<App>>) -> Response {
    let listed = run_blocking(move || dyno_store::list(&app.runs)).await;
    respond(listed, |entries| json_response(&entries.iter().rev().map(line).collect::<Vec<_>>()))
}

/// Answers with a result of [`run_blocking`].
fn respond<T, E: Display>(
    result: Option<Result<T, E>>,
    answer: impl FnOnce(T) -> Response,
) -> Response {
    match result {
        Some(Ok(value)) => answer(value),
        Some(Err(error)) => internal_error(&error),
        None => internal_error(&"The server failed to make this answer."),
    }
}

/// Names of the folders of runs, separated by commas.
#[derive(Debug, Deserialize)]
pub(crate) struct Runs {
    runs: String,
    /// `en` or `zh`.
    #[serde(default)]
    lang: String,
}

impl Runs {
    /// The folders in their order; `None` if one of them is not a run.
    fn folders(&self, app: &App) -> Option<Vec<PathBuf>> {
        self.runs.split(',').map(|name| run_folder(&app.runs, name)).collect()
    }
}

/// `/paper`: the paper of one or several runs as it would be printed now.
pub(crate) async fn paper(State(app): State<Arc<App>>, Query(asked): Query<Runs>) -> Response {
    let Some(folders) = asked.folders(&app) else { return not_found() };
    let lang = if asked.lang == "zh" { Lang::Zh } else { Lang::En };
    let printed = printed(&app, folders, move |paper, links| paper.linked(links).html(lang));
    let policy = [(header::CONTENT_SECURITY_POLICY, PAPER_POLICY)];
    respond(printed.await, |html| (policy, Html(html)).into_response())
}

/// Makes the paper of these runs, and of it what is wanted; `None` when that was given up.
async fn printed<T: Send + 'static>(
    app: &Arc<App>,
    folders: Vec<PathBuf>,
    wanted: impl FnOnce(Paper, Vec<Option<String>>) -> T + Send + 'static,
) -> Option<Result<T, Error>> {
    let _turn = app.press.lock().await;
    run_blocking(move || {
        let runs: Vec<RunData> =
            folders.iter().map(|path| dyno_store::read(path)).collect::<Result<_, Error>>()?;
        let tables: Vec<_> = runs.iter().flat_map(|run| run.header.published()).cloned().collect();
        let links = folders.iter().map(|path| Some(format!("runs/{}/", folder_name(path))));
        Ok(wanted(Paper::new(&runs, &tables), links.collect()))
    })
    .await
}

/// Works in another thread, so that open pages get their updates meanwhile.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let task = tokio::task::spawn_blocking(move || {
        step_aside();
        work()
    });
    task.await.ok()
}

/// Leaves the processors to a trial that is executed by this process or another one: this thread gets what they leave,
/// of the last processor only. It is a courtesy, so it may fail.
fn step_aside() {
    let thread = Some(rustix::thread::gettid());
    let _ = rustix::process::setpriority_process(thread, LOWEST_PRIORITY);
    let Ok(cpus) = rustix::thread::sched_getaffinity(thread) else { return };
    let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|cpu| cpus.is_set(*cpu)) else { return };
    let mut last_cpu = CpuSet::new();
    last_cpu.set(last);
    let _ = rustix::thread::sched_setaffinity(thread, &last_cpu);
}

/// An answer for the page, which shows its texts as they are.
fn json_response(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => {
            let text = harmless(&text).into_owned();
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => internal_error(&error),
    }
}

fn internal_error(error: &dyn Display) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}

/// `/api/compare`: the load levels of all runs, and the verdicts on their differences.
pub(crate) async fn compare(State(app): State<Arc<App>>, Query(asked): Query<Runs>) -> Response {
    let Some(folders) = asked.folders(&app) else { return not_found() };
    let compared = printed(&app, folders, |paper, _| {
        let experiments = paper.experiments.iter().map(|experiment| {
            let points = experiment.points.iter().map(|point| {
                json!({
                    "target": point.target,
                    "workers": point.workers,
                    "rate_per_s": point.rate_per_s,
                    "repeats": point.repeats,
                    "tps": point.tps,
                    "qps": point.qps,
                    "mean_us": point.mean_us,
                    "p95_us": point.p95_us,
                    "p99_us": point.p99_us,
                    "errors": point.errors,
                })
            });
            let points: Vec<Value> = points.collect();
            json!({ "title": experiment.title.to_string(), "points": points })
        });
        let targets = paper.targets.iter().map(|target| (&target.label, target.run));
        json!({
            // Labels of all targets in the paper, in its order, with the number of their run from 1.
            "targets": targets.collect::<Vec<_>>(),
            "verdicts": paper.verdicts.comparisons,
            "gates": paper.verdicts.gates,
            "experiments": experiments.collect::<Vec<_>>(),
        })
    });
    respond(compared.await, |compared| json_response(&compared))
}

/// Interval of looks at the run folder.
const POLL: Duration = Duration::from_millis(500);
/// Something is sent at least this often, so that a page that has gone away is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
pub(crate) struct LiveQuery {
    /// Name of a run; without it the one that is executed.
    run: Option<String>,
}

/// `/live`: what happens in a run, as server-sent events.
pub(crate) async fn live(State(app): State<Arc<App>>, Query(wanted): Query<LiveQuery>) -> Response {
    let Ok(seat) = Arc::clone(&app.seats).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open.").into_response();
    };
    let follower = Follower::new(&app.runs, wanted.run);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events(follower, app.stopped.clone(), seat)).keep_alive(keep_alive).into_response()
}

#[derive(Debug, Deserialize)]
pub(crate) struct WantedTrial {
    run: String,
    trial: u32,
}

/// `/api/trial`: what was stored of a trial while it ran.
pub(crate) async fn trial(
    State(app): State<Arc<App>>,
    Query(wanted): Query<WantedTrial>,
) -> Response {
    match run_folder(&app.runs, &wanted.run) {
        Some(run) => json_response(&read_stored(&run, wanted.trial)),
        None => not_found(),
    }
}

/// Looks at the run again and again until the server ends; holds its seat meanwhile.
fn events(
    follower: Follower,
    stopped: watch::Receiver<bool>,
    seat: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let begin = (follower, stopped, seat, Some(false));
    let polled = stream::unfold(begin, |(mut follower, mut stopped, seat, waits)| async move {
        // It ends when the server stops, also if the sender of that news is gone.
        let is_stopped =
            waits? && tokio::time::timeout(POLL, stopped.wait_for(|stop| *stop)).await.is_ok();
        // Small reads of files that were just written: not worth another thread.
        let mut updates = follower.poll();
        if is_stopped {
            updates.push(Update::Goodbye);
        }
        Some((updates, (follower, stopped, seat, (!is_stopped).then_some(true))))
    });
    polled.flat_map(|updates| {
        let events = updates
            .into_iter()
            .map(|update| Ok(Event::default().event(update.name()).data(update.json())));
        stream::iter(events)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_dyno_wrote_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("trials")).expect("made");
        let files =
            ["run.json", "trials/3.csv", "paper.zh.html", "other.html", "data.db", ".secret.json"];
        for name in files {
            fs::write(run.join(name), "x").expect("written");
        }
        fs::write(folder.path().join("outside.json"), "x").expect("written");
        std::os::unix::fs::symlink(folder.path().join("outside.json"), run.join("link.json"))
            .expect("linked");
        for good in ["run.json", "trials/3.csv", "paper.zh.html"] {
            assert!(allowed_path(&run, good).is_some(), "{good}");
        }
        let bad = [
            "",
            "trials",
            "other.html",
            "data.db",
            ".secret.json",
            "link.json",
            "../outside.json",
            "trials/../../outside.json",
            "trials//3.csv",
            "/etc/passwd.txt",
            "absent.json",
        ];
        for bad in bad {
            assert_eq!(allowed_path(&run, bad), None, "{bad}");
        }
    }

    #[test]
    fn papers_are_made_at_the_lowest_priority_on_one_processor() {
        let thread = std::thread::spawn(|| {
            step_aside();
            let cpus = rustix::thread::sched_getaffinity(None).expect("a set").count();
            (cpus, rustix::process::getpriority_process(Some(rustix::thread::gettid())))
        });
        assert_eq!(thread.join().expect("it ends"), (1, Ok(LOWEST_PRIORITY)));
    }
}
