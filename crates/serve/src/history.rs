//! The history of runs, two of them side by side, and their papers.

use crate::follow::{folder_name, run_folder, run_status};
use crate::page;
use crate::routes::{App, not_found};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use dyno_core::{Error, harmless};
use dyno_facts::Bilingual;
use dyno_report::{GateRow, Lang, PairedComparison, Paper};
use dyno_store::{RunData, RunEntry};
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The lowest there is (nice value).
const LOWEST_PRIORITY: i32 = 19;

#[derive(Debug, Serialize)]
struct Line {
    folder: String,
    title: String,
    suite: String,
    status: &'static str,
    why: Bilingual,
    started_at: String,
    finished_at: Option<String>,
    trials: usize,
    targets: Vec<String>,
    papers: Vec<String>,
}

impl Line {
    fn new(entry: &RunEntry) -> Self {
        let (status, why) = match (&entry.header, entry.status()) {
            (_, Some(status)) => run_status(&status),
            (Err(error), None) => ("unreadable", error.to_string().into()),
            (Ok(_), None) => ("unreadable", Bilingual::default()),
        };
        let header = entry.header.as_ref().ok().cloned().unwrap_or_default();
        let target = |target: &dyno_facts::TargetFacts| {
            let parts = [&target.name, &target.product, &target.version];
            parts.map(String::as_str).join(" ").trim().to_owned()
        };
        Line {
            folder: folder_name(&entry.path),
            title: header.title,
            suite: header.suite,
            status,
            why,
            started_at: header.started_at,
            finished_at: header.finished_at,
            trials: entry.trials_ended,
            targets: header.targets.iter().map(target).collect(),
            papers: papers(&entry.path),
        }
    }
}

fn papers(run: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut papers: Vec<String> = names.filter(|name| name.starts_with("paper.")).collect();
    papers.sort();
    papers
}

/// `/api/runs`: all runs, the newest first.
pub(crate) async fn runs(State(app): State<Arc<App>>) -> Response {
    let listed = aside(move || dyno_store::list(&app.runs)).await;
    match listed {
        Some(Ok(entries)) => json(&entries.iter().rev().map(Line::new).collect::<Vec<_>>()),
        Some(Err(error)) => broken(&error),
        None => broken(&"The runs can't be listed."),
    }
}

/// Which runs: names of folders, apart by commas.
#[derive(Debug, Deserialize)]
pub(crate) struct Runs {
    runs: String,
    /// `en` or `zh`.
    #[serde(default)]
    lang: String,
}

impl Runs {
    fn folders(&self, app: &App) -> Option<Vec<PathBuf>> {
        self.runs.split(',').map(|name| run_folder(&app.runs, name)).collect()
    }
}

/// `/paper`: the paper of one or several runs as it would be printed now.
pub(crate) async fn paper(State(app): State<Arc<App>>, Query(asked): Query<Runs>) -> Response {
    let Some(folders) = asked.folders(&app) else { return not_found() };
    let lang = if asked.lang == "zh" { Lang::Zh } else { Lang::En };
    let printed = printed(&app, folders, move |paper, links| {
        paper.linked(links).html(lang).map_err(|error| error.to_string())
    });
    match printed.await {
        Some(Ok(html)) => {
            let policy = [(header::CONTENT_SECURITY_POLICY, page::PAPER_POLICY)];
            (policy, Html(html)).into_response()
        }
        Some(Err(error)) => broken(&error),
        None => broken(&"The paper can't be made."),
    }
}

/// Makes the paper of these runs, and of it what is wanted; `None` when that was given up.
async fn printed<T: Send + 'static>(
    app: &Arc<App>,
    folders: Vec<PathBuf>,
    wanted: impl FnOnce(Paper, Vec<Option<String>>) -> Result<T, String> + Send + 'static,
) -> Option<Result<T, String>> {
    let _turn = app.press.lock().await;
    aside(move || {
        let read: Result<Vec<RunData>, Error> =
            folders.iter().map(|path| dyno_store::read(path)).collect();
        let runs = read.map_err(|error| error.to_string())?;
        let tables: Vec<_> = runs.iter().flat_map(|run| run.header.published()).cloned().collect();
        let links = folders.iter().map(|path| Some(format!("runs/{}/", folder_name(path))));
        wanted(Paper::new(&runs, &tables), links.collect())
    })
    .await
}

/// Works in another thread, so that open pages are told the news meanwhile.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let aside = move || {
        step_aside();
        work()
    };
    tokio::task::spawn_blocking(aside).await.ok()
}

/// Leaves the processors to a trial that is executed by this process or another one: this thread gets what they leave,
/// of the last processor only. It is a courtesy, so it may fail.
fn step_aside() {
    let own = Some(rustix::thread::gettid());
    let _ = rustix::process::setpriority_process(own, LOWEST_PRIORITY);
    let Ok(all) = rustix::thread::sched_getaffinity(own) else { return };
    let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|cpu| all.is_set(*cpu)) else { return };
    let mut one = CpuSet::new();
    one.set(last);
    let _ = rustix::thread::sched_setaffinity(own, &one);
}

/// An answer for the page, which shows its texts as they are.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => {
            let text = harmless(&text).into_owned();
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => broken(&error),
    }
}

fn broken(error: &dyn std::fmt::Display) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}

#[derive(Debug, Serialize)]
struct Compared {
    /// Labels of all targets in the paper, in its order, with the number of their run from 1.
    targets: Vec<(String, usize)>,
    /// Which is faster, by load level and metric, as far as the pairs of trials tell.
    verdicts: Vec<PairedComparison>,
    gates: Vec<GateRow>,
    experiments: Vec<ComparedExperiment>,
}

#[derive(Debug, Serialize)]
struct ComparedExperiment {
    title: String,
    points: Vec<serde_json::Value>,
}

fn of_point(point: dyno_report::Point) -> serde_json::Value {
    serde_json::json!({
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
}

/// `/api/compare`: the load levels of all runs, and what can be said of their differences.
pub(crate) async fn compare(State(app): State<Arc<App>>, Query(asked): Query<Runs>) -> Response {
    let Some(folders) = asked.folders(&app) else { return not_found() };
    let compared = printed(&app, folders, |paper, _| {
        let experiment = |experiment: dyno_report::Experiment| ComparedExperiment {
            title: experiment.title.to_string(),
            points: experiment.points.into_iter().map(of_point).collect(),
        };
        let dyno_report::Judgment { evidence, verdicts, .. } = paper.judgment;
        let dyno_report::Evidence { targets, experiments, .. } = evidence;
        Ok(Compared {
            targets: targets.into_iter().map(|target| (target.label, target.run)).collect(),
            verdicts: verdicts.comparisons,
            gates: verdicts.gates,
            experiments: experiments.into_iter().map(experiment).collect(),
        })
    });
    match compared.await {
        Some(Ok(compared)) => json(&compared),
        Some(Err(error)) => broken(&error),
        None => broken(&"The runs can't be compared."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_are_made_at_the_lowest_priority_on_one_processor() {
        let seen = std::thread::spawn(|| {
            step_aside();
            let cpus = rustix::thread::sched_getaffinity(None).expect("a set").count();
            (cpus, rustix::process::getpriority_process(Some(rustix::thread::gettid())))
        });
        assert_eq!(seen.join().expect("it ends"), (1, Ok(LOWEST_PRIORITY)));
    }
}
