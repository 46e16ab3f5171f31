//! Follows the run that is being executed: what is in its folder, then what is added to it.
//!
//! Run folders are all that is looked at. So it does not matter when somebody begins to follow, whether
//! the run is executed by this process, and whether it is killed.

mod changes;
mod current;
mod progress;
mod run;
mod tail;
mod view;

pub(crate) use current::{Totals, stored};
pub(crate) use progress::Progress;
pub(crate) use run::RunFollower;
pub(crate) use view::{EventView, QueryView, RowView, RunView, TrialView, folder_name, run_status};

use changes::Changes;
use dyno_core::harmless;
use dyno_facts::NodeRow;
use dyno_store::is_growing;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often all runs are looked at while none is executed.
const LOOK: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize)]
pub(crate) struct State {
    /// Names of the numbers of a row.
    columns: &'static [&'static str],
    run: Option<RunView>,
    progress: Progress,
    trials: Vec<TrialView>,
    /// Of the last of them: a row per interval, what its nodes said, the queries that have ended.
    rows: Vec<RowView>,
    nodes: Vec<NodeRow>,
    queries: Vec<QueryView>,
    events: Vec<EventView>,
}

#[derive(Debug)]
pub(crate) enum Update {
    /// Forget everything, this is how it stands.
    State(Box<State>),
    Run(Box<RunView>),
    /// A trial stands otherwise than before.
    Trial(Box<TrialView>),
    /// What follows is about this trial.
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

    pub(crate) fn json(&self) -> String {
        let json = match self {
            Update::State(state) => serde_json::to_string(state),
            Update::Run(run) => serde_json::to_string(run),
            Update::Trial(trial) | Update::Show(trial) => serde_json::to_string(trial),
            Update::Rows(rows) => serde_json::to_string(rows),
            Update::Nodes(nodes) => serde_json::to_string(nodes),
            Update::Queries(queries) => serde_json::to_string(queries),
            Update::Events(events) => serde_json::to_string(events),
            Update::Progress(progress) => serde_json::to_string(progress),
            Update::Goodbye => Ok("null".to_owned()),
        };
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
    run: Option<RunFollower>,
    has_begun: bool,
    /// Whether the folder of runs has got another one, and when all of them were looked at.
    folder: Changes,
    looked: Instant,
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
            looked: Instant::now(),
        }
    }

    /// What is new since the last call; at the first call everything.
    pub(crate) fn poll(&mut self) -> Vec<Update> {
        let other = self.other_run();
        if other.is_none() && self.has_begun {
            return self.run.as_mut().map(RunFollower::poll).unwrap_or_default();
        }
        self.has_begun = true;
        if let Some(path) = other {
            let mut run = RunFollower::new(path);
            // It is all in the state.
            run.poll();
            self.run = Some(run);
        }
        vec![Update::State(Box::new(self.state()))]
    }

    pub(crate) fn run(&self) -> Option<&RunFollower> {
        self.run.as_ref()
    }

    fn state(&self) -> State {
        match &self.run {
            Some(run) => run.state(),
            None => State {
                columns: &view::ROW,
                run: None,
                progress: Progress::default(),
                trials: Vec::new(),
                rows: Vec::new(),
                nodes: Vec::new(),
                queries: Vec::new(),
                events: Vec::new(),
            },
        }
    }

    /// The run to follow from now on, where it isn't the one that is followed.
    fn other_run(&mut self) -> Option<PathBuf> {
        let now = self.run.as_ref().map(RunFollower::path);
        if now.is_some_and(is_growing) {
            return None;
        }
        // A run that was interrupted may be gone on with: the folder of runs doesn't tell that.
        let is_due = self.looked.elapsed() > LOOK;
        if !self.folder.since_last(&self.runs) && !is_due {
            return None;
        }
        self.looked = Instant::now();
        let found = match &self.wanted {
            Some(name) => run_folder(&self.runs, name),
            None => {
                let folders = run_folders(&self.runs);
                folders.iter().rev().find(|path| is_growing(path)).or(folders.last()).cloned()
            }
        };
        found.filter(|path| Some(path.as_path()) != now)
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

#[cfg(test)]
mod tests;
