//! Writing a run and its trials.

use crate::files::{
    LineFile, check_owner, io_error, is_sealed, make_folder, seal, write_atomically, write_json,
};
use crate::read::{self, RunData, trial_numbers};
use crate::{histograms, series};
use dyno_core::Error;
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_facts::{
    Event, EventKind, Message, NodeFacts, NodeRow, RunHeader, RunStatus, SCHEMA_VERSION, SeriesRow,
    TrialStart, TrialStatus, TrialSummary, say,
};
use hdrhistogram::serialization::V2DeflateSerializer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Ends of the files of a trial that its summary seals.
const SEALED: [&str; 5] = ["csv", "hlog", "nodes.csv", "executed.jsonl", STAGE];
/// The end of the file with what a stage has measured.
const STAGE: &str = "stage.json";

/// A run folder that this process writes; no other process can write to it meanwhile.
#[derive(Debug)]
pub struct Run {
    /// The run as a reader would find it: each trial that has ended, with its series and what servers said.
    data: RunData,
    events: EventLog,
    last_trial: u32,
}

impl Run {
    /// Makes a new folder `<utc>-<suite>`, begun now unless the header says when, inside `dir` (which is created if
    /// missing). Only its owner may read it, since it holds facts of servers, addresses and names of users; a shared
    /// one is for everyone whom the umask permits.
    pub fn create(dir: &Path, mut header: RunHeader, is_shared: bool) -> Result<Run, Error> {
        header.schema_version = SCHEMA_VERSION;
        if header.started_at.is_empty() {
            header.started_at = now_utc();
        }
        fs::create_dir_all(dir).map_err(|error| io_error("make the folder", dir, &error))?;
        check_owner(dir)?;
        let path = new_folder(dir, &header, if is_shared { 0o777 } else { 0o700 })?;
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
        run.save_header()?;
        Ok(run)
    }

    /// Opens an existing run to continue with it. A trial that was cut off is stored as interrupted.
    ///
    /// # Errors
    /// When the folder is not a run, was written by another version of dyno, belongs to another user, is being written
    /// by another process, or can't be written.
    pub fn open(path: &Path) -> Result<Run, Error> {
        // First: refuses what is not a run before anything is written to it.
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
        run.save_header()?;
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

    /// The content of `run.json`.
    pub fn header(&self) -> &RunHeader {
        &self.data.header
    }

    /// The run so far.
    pub fn data(&self) -> &RunData {
        &self.data
    }

    /// Changes `run.json`.
    pub fn update(&mut self, change: impl FnOnce(&mut RunHeader)) -> Result<(), Error> {
        change(&mut self.data.header);
        self.save_header()
    }

    /// Excludes the complete trials of these steps and their starved attempts; they will be repeated.
    pub fn set_aside(&mut self, steps: &BTreeSet<String>) -> Result<(), Error> {
        let mut numbers = Vec::new();
        for step in steps {
            numbers.extend(self.data.complete_trial(step).map(|trial| trial.trial));
        }
        let attempts = self.data.counting().filter(|trial| steps.contains(&trial.step));
        let starved = attempts.filter(|trial| trial.status == TrialStatus::Starved);
        numbers.extend(starved.map(|trial| trial.trial));
        self.update(|header| header.set_aside.extend(numbers))
    }

    /// The number of the trial that begins next. If several are measured at once, the others have the numbers after it.
    pub fn next_trial(&self) -> u32 {
        self.last_trial + 1
    }

    /// The beginning of the names of a trial's files: `trials/<n>`. Files of other extensions than the run's own may be
    /// put alongside them.
    pub fn stem(&self, trial: u32) -> PathBuf {
        self.trials_folder().join(trial.to_string())
    }

    fn trials_folder(&self) -> PathBuf {
        self.data.path.join("trials")
    }

    /// Begins a trial: the one whose number the start has, else the next.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn begin_trial(&mut self, mut start: TrialStart) -> Result<TrialWriter, Error> {
        if start.trial == 0 {
            start.trial = self.next_trial();
        }
        self.last_trial = self.last_trial.max(start.trial);
        start.schema_version = SCHEMA_VERSION;
        if start.began_at.is_empty() {
            start.began_at = now_utc();
        }
        TrialWriter::begin(self, start)
    }

    /// Stores the summary of a trial and ends it. Number and schema version are filled in.
    ///
    /// # Errors
    /// When the folder can't be written; the trial then counts as interrupted.
    pub fn end_trial(&mut self, writer: TrialWriter, summary: TrialSummary) -> Result<(), Error> {
        let trial = writer.start.trial;
        self.data.events.extend(writer.stored_events);
        self.store_summary(TrialSummary { schema_version: SCHEMA_VERSION, trial, ..summary })
    }

    /// Stores an event; the time is filled in if it is empty.
    pub fn event(&mut self, event: Event) -> Result<(), Error> {
        let stored = self.events.append(event)?;
        self.data.events.push(stored);
        Ok(())
    }

    /// Removes the folder of a run that could not even begin.
    pub fn discard(self) -> Result<(), Error> {
        fs::remove_dir_all(&self.data.path)
            .map_err(|error| io_error("remove", &self.data.path, &error))
    }

    /// Ends the run.
    pub fn finish(mut self, status: RunStatus) -> Result<PathBuf, Error> {
        self.data.header.status = status;
        self.data.header.finished_at = Some(now_utc());
        self.save_header()?;
        Ok(self.data.path)
    }

    fn save_header(&self) -> Result<(), Error> {
        write_json(&self.data.path.join("run.json"), &self.data.header)
    }

    /// Stores a summary, which vouches for the trial's other files: they are on the disk before it is.
    fn store_summary(&mut self, mut summary: TrialSummary) -> Result<(), Error> {
        let trials = self.trials_folder();
        for end in SEALED {
            if let Some(seal) = seal(&trials.join(format!("{}.{end}", summary.trial)))? {
                summary.files.insert(end.to_owned(), seal);
            }
        }
        summary.measures = summary.figures();
        self.events.lock_file().sync()?;
        write_json(&trials.join(format!("{}.json", summary.trial)), &summary)?;
        // The summary takes precedence, so a leftover does no harm.
        let _ = fs::remove_file(trials.join(format!("{}.partial.json", summary.trial)));
        self.insert_trial(summary.trial)
    }

    /// Takes a trial that is stored into the run so far.
    fn insert_trial(&mut self, number: u32) -> Result<(), Error> {
        let RunData { path, trials, warnings, .. } = &mut self.data;
        let Some(mut trial) = read::read_trial(path, number, warnings)? else { return Ok(()) };
        trial.join(trials);
        let at = trials.partition_point(|other| other.summary.trial < number);
        match trials.get_mut(at).filter(|known| known.summary.trial == number) {
            Some(known) => *known = trial,
            None => trials.insert(at, trial),
        }
        Ok(())
    }

    /// Measurements of a stage, as [`TrialWriter::stage`] has stored them.
    ///
    /// # Errors
    /// When its file is gone or is not what its summary says.
    pub fn stage<T: DeserializeOwned>(&self, stage: &TrialSummary) -> Result<T, Error> {
        let path = self.trials_folder().join(format!("{}.{STAGE}", stage.trial));
        let is_sealed = stage.files.get(STAGE).is_some_and(|seal| is_sealed(&path, seal));
        let text = fs::read(&path).ok().filter(|_| is_sealed);
        text.and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(|| {
            Error::new(format!("{} is not what was written there.", path.display())).with_hint(
                "The trial that it is a stage of can't be added up: `--new` measures it again.",
            )
        })
    }

    /// Stores a trial that is the sum of its stages; it has no series or histograms itself.
    pub fn store_joined(&mut self, mut joined: TrialSummary) -> Result<(), Error> {
        self.last_trial += 1;
        (joined.schema_version, joined.trial) = (SCHEMA_VERSION, self.last_trial);
        self.store_summary(joined)
    }
}

fn claimed_events(path: &Path) -> Result<EventLog, Error> {
    if let Some(events) = LineFile::open_claimed(path.join("events.jsonl"))? {
        return Ok(EventLog(Arc::new(Mutex::new(events))));
    }
    Err(Error::new(format!("Another dyno is writing to {}.", path.display()))
        .with_hint("Wait until it has ended, or stop it; then give this command again."))
}

fn new_folder(dir: &Path, header: &RunHeader, mode: u32) -> Result<PathBuf, Error> {
    let suite =
        header.suite.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "-");
    let utc = header.started_at.replace(':', "");
    let name = format!("{utc}-{suite}");
    // Two runs may begin in the same second.
    for number in 1..1000 {
        let path = match number {
            1 => dir.join(&name),
            _ => dir.join(format!("{name}-{number}")),
        };
        match DirBuilder::new().mode(mode).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("make the folder", &path, &error)),
        }
    }
    Err(Error::new(format!("{} holds a thousand runs of this second.", dir.display())))
}

/// Now as RFC 3339 in UTC, whole seconds.
pub fn now_utc() -> String {
    let now = OffsetDateTime::now_utc();
    let now = now.replace_nanosecond(0).unwrap_or(now);
    now.format(&Rfc3339).unwrap_or_default()
}

dyno_core::named! {
    /// When server facts were read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Moment {
        /// Before the trial's workers began.
        Before = "before",
        /// After they had ended.
        After = "after",
    }
}

impl Moment {
    pub(crate) fn file_name(self, trial: u32) -> String {
        format!("{trial}-{}.json", self.name())
    }
}

/// `events.jsonl`, to which trials that are measured at once append in turn.
#[derive(Clone, Debug)]
struct EventLog(Arc<Mutex<LineFile>>);

impl EventLog {
    fn lock_file(&self) -> MutexGuard<'_, LineFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event and returns it as it is stored: the time is filled in if it is empty.
    fn append(&self, mut event: Event) -> Result<Event, Error> {
        if event.at.is_empty() {
            event.at = now_utc();
        }
        self.lock_file().append(&event_line(&event))?;
        Ok(event)
    }
}

/// Writes a trial, alongside others if several are measured at once. When it is dropped without
/// [`Run::end_trial`], the trial counts as interrupted and is summarized from what was written.
pub struct TrialWriter {
    /// The run's folder.
    folder: PathBuf,
    events: EventLog,
    stored_events: Vec<Event>,
    start: TrialStart,
    tags: Vec<String>,
    series: LineFile,
    histograms: LineFile,
    /// Made for the first element.
    executed: Option<LineFile>,
    serializer: V2DeflateSerializer,
    /// The longest interval so far: much shorter ones prove nothing.
    longest_s: f64,
    /// Commits and seconds of the intervals, warm-up among them, that were not gaps.
    busy: (u64, f64),
}

/// The sentence on an interval or a whole trial without a commit.
pub fn no_commit() -> Message {
    say!(no_commit)
}

impl TrialWriter {
    /// Makes the files of a trial and stores its start.
    fn begin(run: &Run, start: TrialStart) -> Result<Self, Error> {
        let number = start.trial;
        let mut series = LineFile::open(trial_file(run.path(), number, "csv"))?;
        series.append(series::header_line().as_bytes())?;
        let mut histograms = LineFile::open(trial_file(run.path(), number, "hlog"))?;
        histograms.append(histograms::header_text(number).as_bytes())?;
        let tags = histograms::tags(&start.kinds);
        write_json(&trial_file(run.path(), number, "partial.json"), &start)?;
        Ok(TrialWriter {
            folder: run.path().to_owned(),
            events: run.events.clone(),
            stored_events: Vec::new(),
            start,
            tags,
            series,
            histograms,
            executed: None,
            serializer: V2DeflateSerializer::new(),
            longest_s: 0.0,
            busy: (0, 0.0),
        })
    }

    /// Contents of `trials/<n>.partial.json`.
    pub fn start(&self) -> &TrialStart {
        &self.start
    }

    /// Stores one interval: histograms, then errors, reconnects and gaps as events, then the line of
    /// the series, which vouches for the rest.
    ///
    /// # Errors
    /// When the folder can't be written; lines written before stay whole.
    pub fn interval(&mut self, interval: &MeasuredInterval) -> Result<(), Error> {
        let row = SeriesRow::from(interval);
        if interval.phase == Phase::Measured {
            let lines =
                histograms::lines(interval, &self.tags, &mut self.serializer).map_err(|error| {
                    Error::new(format!(
                        "A histogram of trial {} can't be stored: {error}.",
                        self.start.trial
                    ))
                })?;
            self.histograms.append(&lines)?;
        }
        for error in &interval.frame.errors.0 {
            self.event(Event {
                at_s: Some(interval.begins_s),
                class: error.class.name().to_owned(),
                errno: error.errno,
                sqlstate: error.sqlstate.clone(),
                count: error.count,
                ..Event::new(EventKind::Error, error.message.clone())
            })?;
        }
        if row.reconnects > 0 {
            self.event(Event {
                at_s: Some(interval.begins_s),
                count: row.reconnects,
                ..Event::new(EventKind::Reconnect, say!(sessions_reconnected))
            })?;
        }
        self.longest_s = self.longest_s.max(row.length_s);
        if self.is_gap(&row) && interval.phase == Phase::Measured {
            self.event(Event {
                at_s: Some(interval.begins_s),
                ..Event::new(EventKind::Server, no_commit())
            })?;
        }
        self.series.append(series::line(&row).as_bytes())
    }

    /// An interval without a commit that neither its shortness nor chance explains.
    fn is_gap(&mut self, row: &SeriesRow) -> bool {
        /// Commits to be expected of an interval that chance leaves empty once in a thousand times.
        const EXPECTED: f64 = 7.0;
        let (committed, seconds) = self.busy;
        let expected = committed as f64 / seconds * row.length_s;
        let is_gap = row.committed == 0
            && row.length_s >= self.longest_s / 2.0
            && (committed == 0 || expected >= EXPECTED);
        if !is_gap {
            self.busy = (committed + row.committed, seconds + row.length_s);
        }
        is_gap
    }

    /// Stores an event of this trial. Errors and reconnects that are counted in the intervals
    /// are stored by [`TrialWriter::interval`] already.
    pub fn event(&mut self, event: Event) -> Result<(), Error> {
        let stored = self.events.append(Event { trial: Some(self.start.trial), ..event })?;
        self.stored_events.push(stored);
        Ok(())
    }

    /// Stores an element of a list of the family's record, so that it survives the death of this process.
    pub fn executed<T: Serialize>(&mut self, list: &str, element: &T) -> Result<(), Error> {
        let mut file = match self.executed.take() {
            Some(file) => file,
            None => LineFile::open(self.file_path("executed.jsonl"))?,
        };
        let written = file.append(format!("{}\n", serde_json::json!({ list: element })).as_bytes());
        self.executed = Some(file);
        written
    }

    /// Stores what a stage has measured, exactly, so that it can be added to other stages; of a whole trial nothing.
    pub fn stage(&self, measured: &impl Serialize) -> Result<(), Error> {
        match self.start.identity.stage {
            Some(_) => write_json(&self.file_path(STAGE), measured),
            None => Ok(()),
        }
    }

    /// Stores a plan as the server wrote it; returns its file within the run folder, such as `trials/3.plans/q09.json`.
    pub fn plan(&self, name: &str, text: &str) -> Result<String, Error> {
        let folder = self.file_path("plans");
        if !folder.is_dir() {
            make_folder(&folder)?;
        }
        write_atomically(&folder.join(name), text.as_bytes())?;
        Ok(format!("trials/{}.plans/{name}", self.start.trial))
    }

    /// The file for what nodes say while the trial runs. It is written on its own, so another thread can do that.
    pub fn node_series(&self) -> Result<NodeSeries, Error> {
        let mut lines = LineFile::open(self.file_path("nodes.csv"))?;
        lines.append(series::node_header_line().as_bytes())?;
        Ok(NodeSeries(lines))
    }

    /// Stores what the target's nodes (by name) say of themselves.
    pub fn server(&mut self, moment: Moment, nodes: &NodeFacts) -> Result<(), Error> {
        write_json(&self.folder.join("server").join(moment.file_name(self.start.trial)), nodes)
    }

    fn file_path(&self, extension: &str) -> PathBuf {
        trial_file(&self.folder, self.start.trial, extension)
    }
}

/// Writes `trials/<n>.nodes.csv`.
#[derive(Debug)]
pub struct NodeSeries(LineFile);

impl NodeSeries {
    /// Adds a line.
    ///
    /// # Errors
    /// When the folder can't be written; lines written before stay whole.
    pub fn append(&mut self, row: &NodeRow) -> Result<(), Error> {
        self.0.append(series::node_line(row).as_bytes())
    }
}

pub(crate) fn trial_file(folder: &Path, number: u32, extension: &str) -> PathBuf {
    folder.join("trials").join(format!("{number}.{extension}"))
}

fn event_line(event: &Event) -> Vec<u8> {
    // Strings and finite numbers: serializing them can't fail, and JSON escapes line ends.
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads whole lines; what is not an event is described in the second list.
pub(crate) fn parse_events(text: &str) -> (Vec<Event>, Vec<Message>) {
    let mut events = Vec::new();
    let mut warnings = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(error) => {
                let (number, why) = ((index + 1).to_string(), error.to_string());
                let file = "events.jsonl";
                warnings.push(say!(line_left_out_because, number, file, why));
            }
        }
    }
    (events, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::EventKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_round_trip(text in ".*", class in "[a-z_]*", errno: u32, count: u64, at_s in proptest::option::of(-1e6..1e6_f64)) {
            let event = Event { class, errno, count, at_s, ..Event::new(EventKind::Error, text) };
            let line = String::from_utf8(event_line(&event)).expect("UTF-8");
            prop_assert_eq!(line.matches('\n').count(), 1);
            let (events, warnings) = parse_events(&line);
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(events, vec![event]);
        }

        #[test]
        fn no_line_makes_the_reader_panic(text in "(\\PC|\n)*") {
            let (events, warnings) = parse_events(&text);
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            prop_assert_eq!(events.len() + warnings.len(), lines);
        }
    }

    #[test]
    fn kinds_of_a_newer_dyno_are_kept() {
        let (events, warnings) =
            parse_events("{\"kind\":\"eclipse\",\"text\":\"dark\",\"count\":1}\n");
        assert!(warnings.is_empty());
        assert_eq!((events[0].kind, events[0].count), (EventKind::Other, 1));
    }
}
