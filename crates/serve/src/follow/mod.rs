//! Follows the run that is being executed: what is in its folder, then what is added to it.
//!
//! Only run folders are read. So it does not matter when a page is opened, which process executes the run, and
//! whether it is killed.

mod progress;
mod run;
mod view;

pub(crate) use progress::Progress;
pub(crate) use run::{RunFollower, read_stored};
pub(crate) use view::{EventView, QueryView, RowView, RunView, TrialView, folder_name, run_status};

use dyno_core::harmless;
use dyno_facts::{
    Bilingual, Event, EventKind, ExperimentFacts, Measures, NodeRow, PlanStep, Purpose, RunHeader,
    RunStatus, SeriesRow, StepAction, TrialIdentity, TrialStart, TrialStatus, TrialSummary,
};
use dyno_report::completed;
use dyno_store::{is_growing, read_header, read_nodes, read_series};
use dyno_suite::Plan;
use progress::RunFacts;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Interval of looks at all runs while none is executed.
const LOOK: Duration = Duration::from_secs(3);

#[derive(Debug, Default, Serialize)]
pub(crate) struct State {
    /// Names of the numbers of a row.
    columns: Vec<&'static str>,
    run: Option<RunView>,
    progress: Progress,
    trials: Vec<TrialView>,
    /// Rows of the last of them: a row per interval, samples of its nodes, the queries that have ended.
    rows: Vec<RowView>,
    nodes: Vec<NodeRow>,
    queries: Vec<QueryView>,
    events: Vec<EventView>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Update {
    /// The whole state: the page forgets what it had.
    State(Box<State>),
    Run(Box<RunView>),
    /// The state of a trial has changed.
    Trial(Box<TrialView>),
    /// The following updates are about this trial.
    Show(Box<TrialView>),
    Rows(Vec<RowView>),
    Nodes(Vec<NodeRow>),
    Queries(Vec<QueryView>),
    Events(Vec<EventView>),
    Progress(Progress),
    /// The server ends; the page keeps what it has.
    Goodbye,
}

impl Update {
    /// The name of the server-sent event.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Update::State(_) => "state",
            Update::Run(_) => "run",
            Update::Trial(_) => "trial",
            Update::Show(_) => "show",
            Update::Rows(_) => "rows",
            Update::Nodes(_) => "nodes",
            Update::Queries(_) => "queries",
            Update::Events(_) => "happened",
            Update::Progress(_) => "progress",
            Update::Goodbye => "goodbye",
        }
    }

    /// The data of the server-sent event, in one line.
    pub(crate) fn json(&self) -> String {
        let json = serde_json::to_string(self);
        // Texts, numbers and lists of them can always be written as JSON.
        harmless(&json.unwrap_or_default()).into_owned()
    }
}

/// Follows one run, or whichever is executed.
#[derive(Debug)]
pub(crate) struct Follower {
    runs: PathBuf,
    /// Name of the one run to follow.
    wanted: Option<String>,
    pub(crate) run: Option<RunFollower>,
    has_begun: bool,
    /// Changes of the folder of runs: another run, and when all of them were last read.
    folder: Changes,
    last_look: Instant,
}

impl Follower {
    /// Follows the run of that name in `runs`; without a name the one that is executed, after its
    /// end the next one, and when there is none the last one.
    pub(crate) fn new(runs: &Path, wanted: Option<String>) -> Self {
        Follower {
            runs: runs.to_owned(),
            wanted,
            run: None,
            has_begun: false,
            folder: Changes::default(),
            last_look: Instant::now(),
        }
    }

    /// Updates since the last call; at the first call everything.
    pub(crate) fn poll(&mut self) -> Vec<Update> {
        let next_run = self.next_run();
        if next_run.is_none() && self.has_begun {
            return self.run.as_mut().map(RunFollower::poll).unwrap_or_default();
        }
        self.has_begun = true;
        if let Some(path) = next_run {
            let mut run = RunFollower::new(path);
            // It is all in the state.
            run.poll();
            self.run = Some(run);
        }
        vec![Update::State(Box::new(self.state()))]
    }

    /// Everything about the followed run, or just the columns if none is followed.
    fn state(&self) -> State {
        match &self.run {
            Some(run) => run.state(),
            None => State { columns: view::columns(), ..State::default() },
        }
    }

    /// The run to follow from now on, if it isn't the one that is followed.
    fn next_run(&mut self) -> Option<PathBuf> {
        let followed = self.run.as_ref().map(|run| run.path.as_path());
        if followed.is_some_and(is_growing) {
            return None;
        }
        // An interrupted run may be resumed, which doesn't change the folder of runs.
        let is_due = self.last_look.elapsed() > LOOK;
        if !self.folder.since_last(&self.runs) && !is_due {
            return None;
        }
        self.last_look = Instant::now();
        let candidate = match &self.wanted {
            Some(name) => run_folder(&self.runs, name),
            None => {
                let folders = run_folders(&self.runs);
                folders.iter().rev().find(|path| is_growing(path)).or(folders.last()).cloned()
            }
        };
        candidate.filter(|path| Some(path.as_path()) != followed)
    }
}

/// The folders of all runs, oldest first.
fn run_folders(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("run.json").is_file())
        .collect();
    paths.sort();
    paths
}

/// The folder of the run of that name, which comes from outside: it must be a single name.
pub(crate) fn run_folder(runs: &Path, name: &str) -> Option<PathBuf> {
    let is_single = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let path = runs.join(name);
    (is_single && path.join("run.json").is_file()).then_some(path)
}

/// A file that was changed less than this ago may change again without another time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// Tells whether a file or folder was touched, without reading it.
#[derive(Debug, Default)]
struct Changes {
    seen: Option<SystemTime>,
}

impl Changes {
    /// Returns true if it may have changed since the last call.
    fn since_last(&mut self, path: &Path) -> bool {
        let Ok(modified) = fs::metadata(path).and_then(|metadata| metadata.modified()) else {
            return false;
        };
        let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED);
        let is_new = self.seen != Some(modified);
        // Remember a time stamp only if later changes can't have the same one.
        self.seen = is_settled.then_some(modified);
        is_new
    }
}

#[derive(Debug)]
struct Tail {
    path: PathBuf,
    read: u64,
    /// The first line, for a file whose first line names its columns.
    columns: Option<String>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Tail { path, read: 0, columns: None }
    }

    /// The whole lines that were added since the last call; empty if there are none or no file.
    fn lines(&mut self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut text)
        });
        // What can't be read now is read at the next call.
        let lines = match (read, text.iter().rposition(|&byte| byte == b'\n')) {
            (Ok(_), Some(end)) => &text[..=end],
            _ => return String::new(),
        };
        self.read += lines.len() as u64;
        String::from_utf8_lossy(lines).into_owned()
    }

    /// The added lines of a file with columns, below the line that names these.
    fn table(&mut self) -> Option<String> {
        let mut text = self.lines();
        if self.columns.is_none() {
            let end = text.find('\n')? + 1;
            self.columns = Some(text.drain(..end).collect());
        }
        let columns = self.columns.as_deref()?;
        (!text.is_empty()).then(|| format!("{columns}{text}"))
    }
}

#[cfg(test)]
mod tests;
