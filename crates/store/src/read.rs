//! Reading run folders, also while they grow. The summary of a trial that was cut off comes from its series and
//! histograms.

use crate::files::{io_error, is_sealed, read_whole_lines};
use crate::histograms;
use crate::run::{Moment, parse_events, trial_file};
use crate::series::{read_nodes, read_series};
use dyno_core::Error;
use dyno_engine::record::Latencies;
use dyno_facts::{
    Counts, Event, KindSummary, LatencySummary, Message, NodeFacts, NodeRow, RunHeader, RunStatus,
    SCHEMA_VERSION, SeriesRow, StageOf, StatementCounts, TrialStart, TrialStatus, TrialSummary,
    say,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::{fs, io};

#[derive(Clone, Debug, PartialEq)]
pub struct RunData {
    pub path: PathBuf,
    pub header: RunHeader,
    /// Trials by number, those that were cut off included.
    pub trials: Vec<TrialData>,
    /// All events in the order in which they were written.
    pub events: Vec<Event>,
    /// Set if a dyno is writing to it right now.
    pub is_growing: bool,
    /// Damaged or missing parts, in sentences.
    pub warnings: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TrialData {
    /// Its summary; of a trial without one, what its series and histograms add up to.
    pub summary: TrialSummary,
    /// Set if its summary is missing: the trial still runs, or was cut off.
    pub is_partial: bool,
    /// A row per interval, warm-up included.
    pub series: Vec<SeriesRow>,
    /// Samples of the nodes while it ran, in the order of time; empty if they were not sampled.
    pub nodes: Vec<NodeRow>,
    /// Settings and counters before the trial; empty when they were not read.
    pub before: NodeFacts,
    /// Settings and counters after the trial; empty when they were not read.
    pub after: NodeFacts,
    /// One, or one of each stage.
    histograms: Vec<PathBuf>,
}

impl TrialData {
    /// A trial put together by hand, without histograms.
    pub fn new(summary: TrialSummary, series: Vec<SeriesRow>) -> Self {
        TrialData {
            summary,
            is_partial: false,
            series,
            nodes: Vec::new(),
            before: NodeFacts::new(),
            after: NodeFacts::new(),
            histograms: Vec::new(),
        }
    }

    /// The latencies of the whole window in nanoseconds, by kind of transaction; with a schedule also `service` (begin
    /// to end) and `lateness` (due to begin). Read when asked for: logs of long trials are large.
    pub fn histograms(&self) -> Result<BTreeMap<String, Latencies>, Error> {
        let mut merged: BTreeMap<String, Latencies> = BTreeMap::new();
        for file in &self.histograms {
            let text = read_whole_lines(file)?.unwrap_or_default();
            for (kind, latencies) in histograms::read(&text).0 {
                merged.entry(kind).or_default().add(&latencies);
            }
        }
        Ok(merged)
    }

    /// Fills a trial that is the sum of stages: their rows at their places in time, the warm-up of the first, all
    /// histograms, the settings before the first and after the last.
    pub(crate) fn join(&mut self, trials: &[TrialData]) {
        let stages = self.summary.stages.iter().filter_map(|stage| {
            let data = trials.iter().find(|trial| trial.summary.trial == stage.trial)?;
            Some((stage, data))
        });
        let stages: Vec<_> = stages.collect();
        for (stage, data) in &stages {
            let from_s = stage.from_s;
            let is_included =
                |at_s: f64| from_s == 0.0 || (0.0..data.summary.window_s).contains(&at_s);
            let series = data.series.iter().filter(|row| is_included(row.begins_s));
            self.series.extend(
                series.map(|row| SeriesRow { begins_s: row.begins_s + from_s, ..row.clone() }),
            );
            let nodes = data.nodes.iter().filter(|row| is_included(row.at_s));
            self.nodes.extend(nodes.map(|row| NodeRow { at_s: row.at_s + from_s, ..row.clone() }));
            self.histograms.extend(data.histograms.iter().cloned());
            self.after.clone_from(&data.after);
        }
        if let Some((_, first)) = stages.first() {
            self.before.clone_from(&first.before);
        }
    }
}

/// A line of `dyno ls`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// The run's folder.
    pub path: PathBuf,
    /// `run.json`, or why it can't be read.
    pub header: Result<RunHeader, Error>,
    pub trials_ended: usize,
    /// Set if a dyno is writing to it right now.
    pub is_growing: bool,
}

impl RunEntry {
    /// Status of the run: one that says `running` but has no writer was killed.
    pub fn status(&self) -> Option<RunStatus> {
        Some(shown_status(self.header.as_ref().ok()?, self.is_growing))
    }
}

fn shown_status(header: &RunHeader, is_growing: bool) -> RunStatus {
    match &header.status {
        RunStatus::Running if !is_growing => RunStatus::Interrupted,
        status => status.clone(),
    }
}

/// Reads a run.
///
/// # Errors
/// When the folder is not a run, or was written by another version of dyno. Anything less is in [`RunData::warnings`].
pub fn read(path: &Path) -> Result<RunData, Error> {
    let header = header(path)?;
    let is_growing = is_growing(path);
    let text = read_whole_lines(&path.join("events.jsonl"))?.unwrap_or_default();
    let (events, mut warnings) = parse_events(&text);
    let mut trials = Vec::new();
    for number in trial_numbers(path)? {
        match read_trial(path, number, &mut warnings)? {
            Some(mut trial) => {
                trial.join(&trials);
                trials.push(trial);
            }
            None => warnings.push(say!(trial_left_out, number = number.to_string())),
        }
    }
    if !is_growing {
        warnings.extend(missing(path, &header, &trials));
        warnings.extend(trials.iter().flat_map(|trial| changed(path, trial)));
    }
    Ok(RunData { path: path.to_owned(), header, trials, events, is_growing, warnings })
}

/// Files that a run must have written and that are not there: somebody has removed them, or not copied them.
fn missing(path: &Path, header: &RunHeader, trials: &[TrialData]) -> Vec<Message> {
    let mut expected = vec!["events.jsonl".to_owned()];
    let last = trials.iter().map(|trial| trial.summary.trial).max().unwrap_or(0);
    for number in 1..=last {
        let Some(trial) = trials.iter().find(|trial| trial.summary.trial == number) else {
            expected.push(format!("trials/{number}.json"));
            continue;
        };
        let summary = &trial.summary;
        if !summary.stages.is_empty() {
            let stages = summary.stages.iter();
            expected.extend(stages.map(|stage| format!("trials/{}.json", stage.trial)));
            continue;
        }
        // Only a window has intervals.
        if !trial.is_partial && summary.window_s > 0.0 && !summary.kinds.is_empty() {
            expected.extend(["csv", "hlog"].map(|end| format!("trials/{number}.{end}")));
        }
        if !trial.is_partial && !summary.conditions.nodes.is_empty() {
            expected
                .extend(Moment::ALL.map(|moment| format!("server/{}", moment.file_name(number))));
        }
    }
    expected.retain(|file| !path.join(file).exists());
    let mut problems: Vec<Message> = expected.iter().map(|file| say!(file_missing, file)).collect();
    problems.extend(steps_without_trials(header, trials));
    problems
}

/// Files of a trial that are not what its summary says: somebody has changed them, or a disk has lost a part.
fn changed(path: &Path, trial: &TrialData) -> Vec<Message> {
    let seals = trial.summary.files.iter().filter(|_| !trial.is_partial);
    let files = seals.map(|(end, seal)| (format!("trials/{}.{end}", trial.summary.trial), seal));
    let changed = files.filter(|(file, seal)| !is_sealed(&path.join(file), seal));
    changed.map(|(file, _)| say!(file_changed, file)).collect()
}

/// Trials of the plan of a complete run that are not there.
fn steps_without_trials(header: &RunHeader, trials: &[TrialData]) -> Option<Message> {
    let plan = header.plan.as_ref().filter(|_| header.status == RunStatus::Complete)?;
    let steps_done = trials.iter().map(|trial| trial.summary.step.clone()).collect();
    let settled = plan.settled(&steps_done, &header.skipped.keys().cloned().collect());
    let steps = plan
        .steps
        .iter()
        .filter(|step| step.trial().is_some())
        .filter(|step| !settled.contains(&step.id));
    let steps: Vec<Message> = steps.map(|step| Message::from(&step.id)).collect();
    (!steps.is_empty()).then(|| say!(steps_have_no_trials, steps = Message::list(&steps)))
}

/// The runs in `dir`, oldest first; a missing folder holds none.
pub fn list(dir: &Path) -> Result<Vec<RunEntry>, Error> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("read", dir, &error)),
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("run.json").is_file())
        .collect();
    paths.sort();
    let runs = paths.into_iter().map(|path| RunEntry {
        header: header(&path),
        trials_ended: trial_files(&path, "json").map_or(0, |numbers| numbers.len()),
        is_growing: is_growing(&path),
        path,
    });
    Ok(runs.collect())
}

/// Reads `run.json` alone.
pub fn header(path: &Path) -> Result<RunHeader, Error> {
    match versioned(path, "run.json")? {
        Some(header) => header.map_err(|damage| {
            Error::new(damage.to_string()).with_hint(
                "Move its folder away and give the command again: it begins a new run. The files of its trials \
                 stay intact.",
            )
        }),
        None => {
            let message = format!("{} is not a run: it has no run.json.", path.display());
            Err(Error::new(message).with_hint("`dyno ls` lists the runs."))
        }
    }
}

/// The field that all versions of a file share.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema_version: u32,
}

/// Reads JSON with a schema version; `None` if the file doesn't exist. The inner error is
/// damage, which costs only this file.
fn versioned<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
) -> Result<Option<Result<T, Message>>, Error> {
    let file = &folder.join(name);
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", file, &error)),
    };
    let version = match serde_json::from_slice(&text) {
        Ok(Version { schema_version }) => schema_version,
        Err(error) => return Ok(Some(Err(file_damaged(file, &error)))),
    };
    if version != SCHEMA_VERSION {
        let message = format!(
            "{} was written by another version of dyno (schema {version}; this one reads {SCHEMA_VERSION}) and must be measured again.",
            folder.display()
        );
        let hint = "The dyno that wrote it still reads it.";
        return Err(Error::new(message).with_hint(hint));
    }
    Ok(Some(serde_json::from_slice(&text).map_err(|error| file_damaged(file, &error))))
}

/// Numbers of all trials, complete or not, in order.
pub(crate) fn trial_numbers(path: &Path) -> Result<BTreeSet<u32>, Error> {
    let mut numbers = trial_files(path, "json")?;
    numbers.extend(trial_files(path, "partial.json")?);
    Ok(numbers)
}

fn trial_files(path: &Path, extension: &str) -> Result<BTreeSet<u32>, Error> {
    let folder = path.join("trials");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        // A kill right after the folder was made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(io_error("read", &folder, &error)),
    };
    let numbers = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(extension)?.strip_suffix('.')?.parse::<u32>().ok()
    });
    Ok(numbers.collect())
}

/// Reads what is stored of a trial; `None` if neither its summary nor its start is readable.
pub(crate) fn read_trial(
    path: &Path,
    number: u32,
    warnings: &mut Vec<Message>,
) -> Result<Option<TrialData>, Error> {
    let text = read_whole_lines(&trial_file(path, number, "csv"))?.unwrap_or_default();
    let (series, damaged) = read_series(&text);
    warnings.extend(damaged.into_iter().map(|line| line_left_out(format!("{number}.csv"), line)));
    let text = read_whole_lines(&trial_file(path, number, "nodes.csv"))?.unwrap_or_default();
    let (nodes, damaged) = read_nodes(&text);
    warnings
        .extend(damaged.into_iter().map(|line| line_left_out(format!("{number}.nodes.csv"), line)));
    let stored = versioned::<TrialSummary>(path, &format!("trials/{number}.json"))?;
    let stored = stored.and_then(|stored| undamaged(stored, warnings));
    let is_partial = stored.is_none();
    let summary = match stored {
        Some(summary) => summary,
        None => {
            let start = versioned::<TrialStart>(path, &format!("trials/{number}.partial.json"))?;
            let Some(start) = start.and_then(|start| undamaged(start, warnings)) else {
                return Ok(None);
            };
            if start.kinds.is_empty() {
                let text = read_whole_lines(&trial_file(path, number, "executed.jsonl"))?
                    .unwrap_or_default();
                let (summary, damaged) = interrupted_lists(start, &text);
                let name = format!("trials/{number}.executed.jsonl");
                warnings.extend(damaged.into_iter().map(|(line, why)| {
                    let number = line.to_string();
                    say!(line_left_out_because, number, file = &name, why)
                }));
                summary
            } else {
                let text = read_whole_lines(&trial_file(path, number, "hlog"))?.unwrap_or_default();
                summarize_interrupted(start, &series, &text)
            }
        }
    };
    let facts = [Moment::Before, Moment::After].map(|moment| {
        let file = path.join("server").join(moment.file_name(number));
        let text = fs::read(&file).ok()?;
        serde_json::from_slice::<NodeFacts>(&text)
            .inspect_err(|error| warnings.push(file_damaged(&file, error)))
            .ok()
    });
    let [before, after] = facts.map(Option::unwrap_or_default);
    let is_joined = !summary.stages.is_empty();
    let histograms = if is_joined { Vec::new() } else { vec![trial_file(path, number, "hlog")] };
    Ok(Some(TrialData { summary, is_partial, series, nodes, before, after, histograms }))
}

/// The readable part; damage becomes a warning.
fn undamaged<T>(read: Result<T, Message>, warnings: &mut Vec<Message>) -> Option<T> {
    read.map_err(|damage| warnings.push(damage)).ok()
}

fn file_damaged(file: &Path, error: &serde_json::Error) -> Message {
    say!(file_damaged, file = file.display().to_string(), why = error.to_string())
}

/// A file of `trials/`.
fn line_left_out(name: String, line: usize) -> Message {
    say!(line_left_out, number = line.to_string(), file = format!("trials/{name}"))
}

/// Returns true if a dyno is writing to the run in this folder right now.
pub fn is_growing(path: &Path) -> bool {
    let lock = File::open(path.join("events.jsonl")).map(|file| file.try_lock_shared());
    matches!(lock, Ok(Err(TryLockError::WouldBlock)))
}

impl RunData {
    /// Like [`RunEntry::status`].
    pub fn status(&self) -> RunStatus {
        shown_status(&self.header, self.is_growing)
    }

    /// Trials that were not set aside, in their order.
    pub(crate) fn counting(&self) -> impl Iterator<Item = &TrialSummary> {
        let summaries = self.trials.iter().map(|trial| &trial.summary);
        summaries.filter(move |trial| !self.header.set_aside.contains(&trial.trial))
    }

    /// The trials that have been completed and count.
    pub fn complete(&self) -> impl Iterator<Item = &TrialSummary> {
        self.counting().filter(|trial| trial.status == TrialStatus::Complete)
    }

    /// The complete trial of that step.
    pub fn complete_trial(&self, step: &str) -> Option<&TrialSummary> {
        self.complete().filter(|trial| trial.step == step).last()
    }

    /// Returns true if a trial of that step has been completed.
    pub fn is_complete(&self, step: &str) -> bool {
        self.complete().any(|trial| trial.step == step)
    }

    /// The attempts at that step, or at a stage of it, whose load generator was starved, while none counts; in their
    /// order.
    pub fn starved(&self, step: &str, stage: Option<StageOf>) -> Vec<&TrialSummary> {
        let number = stage.unwrap_or_default().number;
        let attempts = self
            .counting()
            .filter(|trial| trial.step == step && trial.stage.unwrap_or_default().number == number);
        let mut starved = Vec::new();
        for trial in attempts {
            match trial.status {
                TrialStatus::Starved => starved.push(trial),
                TrialStatus::Interrupted => {}
                _ => starved.clear(),
            }
        }
        starved
    }

    /// Attempts that were or will be repeated because their load generator was starved, including those whose pair was
    /// given up later.
    pub fn repeated(&self) -> impl Iterator<Item = &TrialSummary> {
        let summaries = self.trials.iter().map(|trial| &trial.summary);
        summaries.filter(|trial| trial.status == TrialStatus::Starved)
    }

    /// The stages of that step that ended well, in their order; of one that was made twice the later.
    pub fn stages(&self, step: &str) -> Vec<&TrialSummary> {
        let mut stages = BTreeMap::new();
        for trial in
            self.counting().filter(|trial| trial.step == step && trial.status == TrialStatus::Stage)
        {
            stages.insert(trial.stage.unwrap_or_default().number, trial);
        }
        stages.into_values().collect()
    }
}

fn summarize_interrupted(
    start: TrialStart,
    series: &[SeriesRow],
    histogram_log: &str,
) -> TrialSummary {
    let rows: Vec<&SeriesRow> = series.iter().filter(|row| row.phase == "measured").collect();
    let window_s: f64 = rows.iter().map(|row| row.length_s).sum();
    // Histograms of an interval are written before its row: what has no row is left out, so that everything is about
    // the same window.
    let until_s = rows.last().map_or(0.0, |row| row.begins_s + row.length_s / 2.0);
    let (by_tag, damaged) = histograms::merge(histogram_log, until_s);
    let tags = histograms::tags(&start.kinds);
    let counts = sum_counts(&rows);
    let statements = StatementCounts {
        reads: rows.iter().map(|row| row.reads).sum(),
        writes: rows.iter().map(|row| row.writes).sum(),
        others: rows.iter().map(|row| row.others).sum(),
        ..StatementCounts::default()
    };
    let wasted_statements: u64 = rows.iter().map(|row| row.wasted).sum();
    let [tps, qps] = [counts.committed, statements.total()]
        .map(|count| if window_s > 0.0 { count as f64 / window_s } else { 0.0 });
    let mut latency = Latencies::new();
    tags.iter().filter_map(|tag| by_tag.get(tag)).for_each(|kind| latency.add(kind));
    let mut notes = vec![say!(trial_cut_off)];
    let kinds =
        kind_summaries(&start.kinds, &tags, &by_tag, &rows, (counts, statements), &mut notes);
    let ended_well = counts.completed();
    if latency.count() != ended_well || damaged > 0 {
        notes.push(say!(histograms_differ, n = latency.count(), ended = ended_well));
    }
    TrialSummary {
        window_s,
        counts,
        in_flight: counts.in_flight(),
        tps,
        qps,
        statements,
        // The series has only the number of wasted statements.
        wasted: StatementCounts { others: wasted_statements, ..StatementCounts::default() },
        latency: (&latency).into(),
        service: by_tag.get("service").map(LatencySummary::from),
        lateness: by_tag.get("lateness").map(LatencySummary::from),
        kinds,
        notes,
        ..start.summary(TrialStatus::Interrupted)
    }
}

/// A trial that no engine drove and that was cut off: `executed_lines` are elements of its family's lists.
/// Returns the numbers of damaged ones, and what is wrong with them.
fn interrupted_lists(
    mut start: TrialStart,
    executed_lines: &str,
) -> (TrialSummary, Vec<(usize, String)>) {
    let lists = &mut start.identity.own;
    let mut damaged = Vec::new();
    for (number, line) in (1..).zip(executed_lines.lines()) {
        let problem = match serde_json::from_str(line) {
            Ok(line) => {
                if lists.as_mut().is_some_and(|lists| lists.append(line)) {
                    continue;
                } else {
                    "it belongs to no list".to_owned()
                }
            }
            Err(error) => error.to_string(),
        };
        damaged.push((number, problem));
    }
    let mut summary = start.summary(TrialStatus::Interrupted);
    summary.notes.push(say!(pass_cut_off));
    (summary, damaged)
}

fn sum_counts(rows: &[&SeriesRow]) -> Counts {
    let mut sum = Counts::default();
    for row in rows {
        sum.add(&Counts {
            started: row.started,
            committed: row.committed,
            rolled_back: row.rolled_back,
            failed: row.failed,
            skipped: row.skipped,
            retries: row.retries,
            reconnects: row.reconnects,
            // The lines of a series don't have it: what is recovered is a lower bound.
            retried: 0,
        });
    }
    sum
}

fn kind_summaries(
    names: &[String],
    tags: &[String],
    by_tag: &BTreeMap<String, Latencies>,
    rows: &[&SeriesRow],
    (counts, statements): (Counts, StatementCounts),
    notes: &mut Vec<Message>,
) -> Vec<KindSummary> {
    if let ([only], [tag]) = (names, tags) {
        let latency = by_tag.get(tag).map(LatencySummary::from).unwrap_or_default();
        return vec![KindSummary { name: only.clone(), counts, statements, latency }];
    }
    notes.push(say!(failures_by_kind_unknown));
    let kinds = names.iter().zip(tags).enumerate().map(|(index, (name, tag))| {
        let latency = by_tag.get(tag).map(LatencySummary::from).unwrap_or_default();
        let committed = rows.iter().filter_map(|row| row.committed_by_kind.get(index)).sum();
        let counts = Counts {
            started: latency.count.max(committed),
            committed,
            rolled_back: latency.count.saturating_sub(committed),
            ..Counts::default()
        };
        KindSummary { name: name.clone(), counts, statements: StatementCounts::default(), latency }
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_header_has_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("run.json"), b"{\"schema_version\"").expect("written");
        let error = header(folder.path()).expect_err("half a file");
        assert!(error.to_string().contains("run.json is damaged: "), "{error}");
        assert!(error.hint.as_ref().expect("a remedy").contains("begins a new run"), "{error:?}");
    }
}
