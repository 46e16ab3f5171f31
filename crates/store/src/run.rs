//! Writing a run.

use crate::StoreError;
use crate::event;
use crate::files::{LineFile, check_owner, is_sealed, make_folder, seal, write_json};
use crate::read::{self, RunData, trial_numbers};
use crate::trial::TrialWriter;
use dyno_facts::{
    Event, RunHeader, RunStatus, SCHEMA_VERSION, TrialStart, TrialStatus, TrialSummary,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Ends of the files of a trial that its summary seals.
const SEALED: [&str; 5] = ["csv", "hlog", "nodes.csv", "executed.jsonl", STAGE];
/// The end of the file with what a stage has measured.
pub(crate) const STAGE: &str = "stage.json";
/// Who may read a new run folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderAccess {
    /// Its owner: what servers say of themselves, addresses and names of users are in it.
    Owner,
    /// All whom the umask lets in.
    All,
}

impl FolderAccess {
    fn mode(self) -> u32 {
        match self {
            FolderAccess::Owner => 0o700,
            FolderAccess::All => 0o777,
        }
    }
}

/// A run folder that this process writes; no other process can write to it meanwhile.
#[derive(Debug)]
pub struct Run {
    /// As a reader would find it: each trial that has ended, with its series and what servers said.
    data: RunData,
    events: LineFile,
    last_trial: u32,
}

impl Run {
    /// As [`Run::create_for`], for its owner.
    pub fn create(dir: &Path, header: RunHeader) -> Result<Run, StoreError> {
        Self::create_for(FolderAccess::Owner, dir, header)
    }

    /// Makes a new folder `<utc>-<suite>`, begun now unless the header says when, inside `dir` (which is made too, where it is missing).
    pub fn create_for(
        access: FolderAccess,
        dir: &Path,
        mut header: RunHeader,
    ) -> Result<Run, StoreError> {
        header.schema_version = SCHEMA_VERSION;
        if header.started_at.is_empty() {
            header.started_at = now_utc();
        }
        fs::create_dir_all(dir).map_err(|error| StoreError::io("make the folder", dir, &error))?;
        check_owner(dir)?;
        let path = new_folder(access, dir, &header)?;
        for part in ["trials", "server"] {
            make_folder(&path.join(part))?;
        }
        let events = claimed_events(&path)?;
        let data = RunData {
            path,
            header,
            trials: Vec::new(),
            events: Vec::new(),
            is_growing: true,
            warnings: Vec::new(),
        };
        let run = Run { data, events, last_trial: 0 };
        run.save()?;
        Ok(run)
    }

    /// Opens an existing run to go on with it. A trial that was cut off is stored as interrupted.
    ///
    /// # Errors
    /// When the folder is no run, was written by another version of dyno, belongs to another user, is being written by
    /// another process, or can't be written.
    pub fn open(path: &Path) -> Result<Run, StoreError> {
        // First: refuses what is no run before anything is written to it.
        read::header(path)?;
        check_owner(path)?;
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            check_owner(dir)?;
        }
        let events = claimed_events(path)?;
        let data = read::read(path)?;
        let last_trial = trial_numbers(path)?.last().copied().unwrap_or(0);
        let (cut_off, trials): (Vec<_>, Vec<_>) =
            data.trials.into_iter().partition(|trial| trial.is_partial);
        let mut run = Run { data: RunData { trials, ..data }, events, last_trial };
        for trial in cut_off {
            run.store_summary(trial.summary)?;
        }
        run.data.header.schema_version = SCHEMA_VERSION;
        run.data.header.status = RunStatus::Running;
        run.data.header.finished_at = None;
        run.data.header.resumed_at.push(now_utc());
        run.save()?;
        Ok(run)
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.data.path
    }

    /// The number of the newest trial, 0 before the first.
    pub fn last_trial(&self) -> u32 {
        self.last_trial
    }

    /// What `run.json` says.
    pub fn header(&self) -> &RunHeader {
        &self.data.header
    }

    /// The run so far.
    pub fn data(&self) -> &RunData {
        &self.data
    }

    /// Changes `run.json`.
    pub fn update(&mut self, change: impl FnOnce(&mut RunHeader)) -> Result<(), StoreError> {
        change(&mut self.data.header);
        self.save()
    }

    /// Has the complete trials of these steps and their starved attempts count for nothing; they will be made again.
    pub fn set_aside(&mut self, steps: &BTreeSet<String>) -> Result<(), StoreError> {
        let mut numbers = Vec::new();
        for step in steps {
            numbers.extend(self.data.complete_trial(step).map(|trial| trial.trial));
        }
        let is_own = |trial: &&TrialSummary| steps.contains(&trial.step);
        let own = self.data.counting().filter(is_own);
        let starved = own.filter(|trial| trial.status == TrialStatus::Starved);
        numbers.extend(starved.map(|trial| trial.trial));
        self.update(|header| header.set_aside.extend(numbers))
    }

    /// Has a starved attempt count with the status that it has now; the others of its step, or stage, never will.
    pub fn count(&mut self, attempt: &TrialSummary) -> Result<(), StoreError> {
        let all = self.data.starved(&attempt.step, attempt.stage);
        let numbers = all.iter().map(|other| other.trial);
        let others: Vec<u32> = numbers.filter(|number| *number != attempt.trial).collect();
        write_json(&self.trials().join(format!("{}.json", attempt.trial)), attempt)?;
        self.keep(attempt.trial)?;
        self.update(|header| header.set_aside.extend(others))
    }

    /// What the names of the next trial's files begin with: `trials/<n>`. Files of other extensions
    /// than the run's own may be put beside them.
    pub fn next_stem(&self) -> PathBuf {
        self.trials().join((self.last_trial + 1).to_string())
    }

    fn trials(&self) -> PathBuf {
        self.data.path.join("trials")
    }

    /// Begins the next trial.
    pub fn begin_trial(&mut self, mut start: TrialStart) -> Result<TrialWriter<'_>, StoreError> {
        self.last_trial += 1;
        (start.schema_version, start.trial) = (SCHEMA_VERSION, self.last_trial);
        if start.began_at.is_empty() {
            start.began_at = now_utc();
        }
        TrialWriter::begin(self, start)
    }

    /// Stores an event; the time is filled in where it is empty.
    pub fn event(&mut self, mut event: Event) -> Result<(), StoreError> {
        if event.at.is_empty() {
            event.at = now_utc();
        }
        self.events.append(&event::line(&event))?;
        self.data.events.push(event);
        Ok(())
    }

    /// True when no trial has begun and no earlier process has worked on it.
    pub fn is_untouched(&self) -> bool {
        self.last_trial == 0 && self.data.header.resumed_at.is_empty()
    }

    /// Removes the folder of a run that could not even begin.
    pub fn discard(self) -> Result<(), StoreError> {
        fs::remove_dir_all(&self.data.path)
            .map_err(|error| StoreError::io("remove", &self.data.path, &error))
    }

    /// Ends the run.
    pub fn finish(mut self, status: RunStatus) -> Result<PathBuf, StoreError> {
        self.data.header.status = status;
        self.data.header.finished_at = Some(now_utc());
        self.save()?;
        Ok(self.data.path)
    }

    fn save(&self) -> Result<(), StoreError> {
        write_json(&self.data.path.join("run.json"), &self.data.header)
    }

    /// Stores a summary, which vouches for the trial's other files: they are on the disk before it is.
    pub(crate) fn store_summary(&mut self, mut summary: TrialSummary) -> Result<(), StoreError> {
        let trials = self.trials();
        for end in SEALED {
            if let Some(seal) = seal(&trials.join(format!("{}.{end}", summary.trial)))? {
                summary.files.insert(end.to_owned(), seal);
            }
        }
        summary.measures = summary.figures();
        self.events.sync()?;
        write_json(&trials.join(format!("{}.json", summary.trial)), &summary)?;
        // The summary takes precedence, so a leftover does no harm.
        let _ = fs::remove_file(trials.join(format!("{}.partial.json", summary.trial)));
        self.keep(summary.trial)
    }

    /// Takes a trial that is stored into the run so far.
    fn keep(&mut self, number: u32) -> Result<(), StoreError> {
        let RunData { path, trials, events, warnings, .. } = &mut self.data;
        let Some(mut trial) = read::trial(path, number, events, warnings)? else { return Ok(()) };
        trial.join(trials);
        let at = trials.partition_point(|other| other.summary.trial < number);
        match trials.get_mut(at).filter(|known| known.summary.trial == number) {
            Some(known) => *known = trial,
            None => trials.insert(at, trial),
        }
        Ok(())
    }

    /// What a stage has measured, as [`TrialWriter::stage`] has stored it.
    ///
    /// # Errors
    /// When its file is gone or is not what its summary says.
    pub fn stage<T: DeserializeOwned>(&self, stage: &TrialSummary) -> Result<T, StoreError> {
        let path = self.trials().join(format!("{}.{STAGE}", stage.trial));
        let is_sealed = stage.files.get(STAGE).is_some_and(|seal| is_sealed(&path, seal));
        let read = || fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        read().filter(|_| is_sealed).ok_or_else(|| {
            StoreError::new(format!("{} is not what was written there.", path.display())).hint_is(
                "The trial that it is a stage of can't be added up: `--new` measures it again.",
            )
        })
    }

    /// Stores a trial that is the sum of its stages, and has no files of its own.
    pub fn store_joined(&mut self, mut joined: TrialSummary) -> Result<(), StoreError> {
        self.last_trial += 1;
        (joined.schema_version, joined.trial) = (SCHEMA_VERSION, self.last_trial);
        self.store_summary(joined)
    }
}

fn claimed_events(path: &Path) -> Result<LineFile, StoreError> {
    if let Some(events) = LineFile::open_claimed(path.join("events.jsonl"))? {
        return Ok(events);
    }
    Err(StoreError::new(format!("Another dyno is writing to {}.", path.display()))
        .hint_is("Wait until it has ended, or stop it; then give this command again."))
}

fn new_folder(access: FolderAccess, dir: &Path, header: &RunHeader) -> Result<PathBuf, StoreError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let suite: String = header.suite.chars().map(plain).collect();
    let utc = header.started_at.replace(':', "");
    let name = format!("{utc}-{suite}");
    // Two runs may begin in the same second.
    for number in 1..1000 {
        let path = match number {
            1 => dir.join(&name),
            _ => dir.join(format!("{name}-{number}")),
        };
        match DirBuilder::new().mode(access.mode()).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("make the folder", &path, &error)),
        }
    }
    Err(StoreError::new(format!("{} holds a thousand runs of this second.", dir.display())))
}

/// Now as RFC 3339 in UTC, whole seconds.
pub fn now_utc() -> String {
    let now = OffsetDateTime::now_utc();
    let now = now.replace_nanosecond(0).unwrap_or(now);
    now.format(&Rfc3339).unwrap_or_default()
}
