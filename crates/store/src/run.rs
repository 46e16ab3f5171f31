//! Writing a run.

use crate::StoreError;
use crate::event;
use crate::files::{LineFile, check_owner, is_sealed, make_folder, seal, write_json};
use crate::read::{self, trial_numbers};
use crate::trial::TrialWriter;
use dyno_facts::{
    Event, RunHeader, RunStatus, SCHEMA_VERSION, StageOf, TrialStart, TrialStatus, TrialSummary,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
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
    path: PathBuf,
    header: RunHeader,
    events: LineFile,
    /// By their steps.
    complete: BTreeMap<String, TrialSummary>,
    /// By step and stage: attempts that don't count so far, since the load generator was starved.
    starved: BTreeMap<(String, u32), Vec<TrialSummary>>,
    /// Step and stage of each starved attempt that does not count.
    repeated: Vec<(String, Option<StageOf>)>,
    /// By step: the stages that ended well, by their numbers.
    stages: BTreeMap<String, BTreeMap<u32, TrialSummary>>,
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
        let run = Run {
            path,
            header,
            events,
            complete: BTreeMap::new(),
            starved: BTreeMap::new(),
            repeated: Vec::new(),
            stages: BTreeMap::new(),
            last_trial: 0,
        };
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
        let mut run = Run {
            path: path.to_owned(),
            header: data.header,
            events,
            complete: BTreeMap::new(),
            starved: BTreeMap::new(),
            repeated: Vec::new(),
            stages: BTreeMap::new(),
            last_trial,
        };
        for trial in data.trials {
            match trial.is_partial {
                true => run.store_summary(trial.summary)?,
                false if run.header.set_aside.contains(&trial.summary.trial) => {
                    run.note_repeated(&trial.summary);
                }
                false => run.note_ended(&trial.summary),
            }
        }
        run.header.schema_version = SCHEMA_VERSION;
        run.header.status = RunStatus::Running;
        run.header.finished_at = None;
        run.header.resumed_at.push(now_utc());
        run.save()?;
        Ok(run)
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the newest trial, 0 before the first.
    pub fn last_trial(&self) -> u32 {
        self.last_trial
    }

    /// What `run.json` says.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Changes `run.json`.
    pub fn update(&mut self, change: impl FnOnce(&mut RunHeader)) -> Result<(), StoreError> {
        change(&mut self.header);
        self.save()
    }

    /// Whether a trial of that step has been completed, in this process or before.
    pub fn is_complete(&self, step: &str) -> bool {
        self.complete.contains_key(step)
    }

    /// The complete trial of that step, made in this process or before.
    pub fn complete_trial(&self, step: &str) -> Option<&TrialSummary> {
        self.complete.get(step)
    }

    /// The trials that have been completed, in this process or before, in the order of their steps'
    /// names.
    pub fn complete(&self) -> impl Iterator<Item = &TrialSummary> {
        self.complete.values()
    }

    /// Has the complete trials of these steps and their starved attempts count for nothing; they will be made again.
    pub fn set_aside(&mut self, steps: &BTreeSet<String>) -> Result<(), StoreError> {
        let mut numbers: Vec<u32> =
            steps.iter().filter_map(|step| Some(self.complete.remove(step)?.trial)).collect();
        let own = self.starved.iter().filter(|((step, _), _)| steps.contains(step));
        numbers.extend(own.flat_map(|(_, attempts)| attempts).map(|attempt| attempt.trial));
        self.starved.retain(|(step, _), _| !steps.contains(step));
        self.update(|header| header.set_aside.extend(numbers))
    }

    /// Has a starved attempt count with the status that it has now; the others of its step, or stage, never will.
    pub fn count(&mut self, attempt: &TrialSummary) -> Result<(), StoreError> {
        let all = self.starved.remove(&place(&attempt.step, attempt.stage)).unwrap_or_default();
        let numbers = all.iter().map(|other| other.trial);
        let others: Vec<u32> = numbers.filter(|number| *number != attempt.trial).collect();
        let own = |(step, stage): &(String, _)| *step == attempt.step && *stage == attempt.stage;
        if let Some(at) = self.repeated.iter().position(own) {
            self.repeated.swap_remove(at);
        }
        write_json(&self.path.join("trials").join(format!("{}.json", attempt.trial)), attempt)?;
        self.note_ended(attempt);
        self.update(|header| header.set_aside.extend(others))
    }

    /// What the names of the next trial's files begin with: `trials/<n>`. Files of other extensions
    /// than the run's own may be put beside them.
    pub fn next_stem(&self) -> PathBuf {
        self.path.join("trials").join((self.last_trial + 1).to_string())
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
        self.events.append(&event::line(&event))
    }

    /// True when no trial has begun and no earlier process has worked on it.
    pub fn is_untouched(&self) -> bool {
        self.last_trial == 0 && self.header.resumed_at.is_empty()
    }

    /// Removes the folder of a run that could not even begin.
    pub fn discard(self) -> Result<(), StoreError> {
        fs::remove_dir_all(&self.path).map_err(|error| StoreError::io("remove", &self.path, &error))
    }

    /// Ends the run.
    pub fn finish(mut self, status: RunStatus) -> Result<PathBuf, StoreError> {
        self.header.status = status;
        self.header.finished_at = Some(now_utc());
        self.save()?;
        Ok(self.path)
    }

    fn save(&self) -> Result<(), StoreError> {
        write_json(&self.path.join("run.json"), &self.header)
    }

    /// Stores a summary, which vouches for the trial's other files: they are on the disk before it is.
    pub(crate) fn store_summary(&mut self, mut summary: TrialSummary) -> Result<(), StoreError> {
        let trials = self.path.join("trials");
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
        self.note_ended(&summary);
        Ok(())
    }

    /// The attempts at that step, or at a stage of it, whose load generator was starved, while none counts; in their
    /// order, in this process or before.
    pub fn starved(&self, step: &str, stage: Option<StageOf>) -> &[TrialSummary] {
        self.starved.get(&place(step, stage)).map_or(&[], Vec::as_slice)
    }

    /// Step and stage of each attempt that has been or will be made again for a starved load generator, also of those
    /// whose pair was given up later.
    pub fn repeated(&self) -> &[(String, Option<StageOf>)] {
        &self.repeated
    }

    /// The stages of that step that ended well, in their order, in this process or before.
    pub fn stages(&self, step: &str) -> impl Iterator<Item = &TrialSummary> {
        self.stages.get(step).into_iter().flat_map(BTreeMap::values)
    }

    /// What a stage has measured, as [`TrialWriter::stage`] has stored it.
    ///
    /// # Errors
    /// When its file is gone or is not what its summary says.
    pub fn stage<T: DeserializeOwned>(&self, stage: &TrialSummary) -> Result<T, StoreError> {
        let path = self.path.join("trials").join(format!("{}.{STAGE}", stage.trial));
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

    fn note_ended(&mut self, summary: &TrialSummary) {
        self.note_repeated(summary);
        let place = place(&summary.step, summary.stage);
        if !matches!(summary.status, TrialStatus::Starved | TrialStatus::Interrupted) {
            self.starved.remove(&place);
        }
        match summary.status {
            TrialStatus::Complete => {
                self.complete.insert(summary.step.clone(), summary.clone());
            }
            TrialStatus::Starved => {
                self.starved.entry(place).or_default().push(summary.clone());
            }
            TrialStatus::Stage => {
                let number = summary.stage.unwrap_or_default().number;
                let stages = self.stages.entry(summary.step.clone()).or_default();
                stages.insert(number, summary.clone());
            }
            TrialStatus::Interrupted | TrialStatus::Failed(_) => {}
        }
    }

    fn note_repeated(&mut self, summary: &TrialSummary) {
        if summary.status == TrialStatus::Starved {
            self.repeated.push((summary.step.clone(), summary.stage));
        }
    }
}

fn place(step: &str, stage: Option<StageOf>) -> (String, u32) {
    (step.to_owned(), stage.map_or(0, |stage| stage.number))
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
