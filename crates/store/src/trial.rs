//! Writing one trial while it runs.

use crate::files::{LineFile, make_folder, write_atomically, write_json};
use crate::histograms;
use crate::run::{Run, STAGE};
use crate::{StoreError, series};
use dyno_engine::record::{MeasuredInterval, Phase};
use dyno_facts::say;
use dyno_facts::{
    Event, EventKind, Message, NodeFacts, NodeRow, SCHEMA_VERSION, SeriesRow, TrialStart,
    TrialSummary,
};
use hdrhistogram::serialization::V2DeflateSerializer;
use serde::Serialize;
use std::path::PathBuf;

/// When server facts were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the trial's workers began.
    Before,
    /// After they had ended.
    After,
}

impl Moment {
    pub(crate) fn file(self, trial: u32) -> String {
        match self {
            Moment::Before => format!("{trial}-before.json"),
            Moment::After => format!("{trial}-after.json"),
        }
    }
}

/// Writes a trial. When it is dropped without [`TrialWriter::finish`], the trial counts as
/// interrupted and is summarised from what was written.
pub struct TrialWriter<'run> {
    run: &'run mut Run,
    number: u32,
    start: TrialStart,
    tags: Vec<String>,
    series: LineFile,
    histograms: LineFile,
    /// Made for the first element.
    executed: Option<LineFile>,
    serializer: V2DeflateSerializer,
    /// The longest interval so far: much shorter ones prove nothing.
    longest_s: f64,
    /// Commits and seconds of the intervals, warm-up among them, that were no gaps.
    busy: (u64, f64),
}

/// Of an interval or a whole trial without a commit.
pub fn no_commit() -> Message {
    say!(no_commit)
}

impl<'run> TrialWriter<'run> {
    pub(crate) fn begin(run: &'run mut Run, start: TrialStart) -> Result<Self, StoreError> {
        let number = start.trial;
        let mut series = LineFile::open(file(run, number, "csv"))?;
        series.append(series::header_line().as_bytes())?;
        let mut histograms = LineFile::open(file(run, number, "hlog"))?;
        histograms.append(histograms::header_text(number).as_bytes())?;
        let tags = histograms::tags(&start.kinds);
        write_json(&file(run, number, "partial.json"), &start)?;
        Ok(TrialWriter {
            run,
            number,
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

    /// Number of the trial within the run, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn start(&self) -> &TrialStart {
        &self.start
    }

    /// Stores one interval: histograms, then errors, reconnects and gaps as events, then the line of
    /// the series, which vouches for the rest.
    ///
    /// # Errors
    /// When the folder can't be written; lines written before stay whole.
    pub fn interval(&mut self, interval: &MeasuredInterval) -> Result<(), StoreError> {
        let row = SeriesRow::from(interval);
        if interval.phase == Phase::Measured {
            let lines =
                histograms::lines(interval, &self.tags, &mut self.serializer).map_err(|error| {
                    StoreError::new(format!(
                        "A histogram of trial {} can't be stored: {error}.",
                        self.number
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
    pub fn event(&mut self, event: Event) -> Result<(), StoreError> {
        self.run.event(Event { trial: Some(self.number), ..event })
    }

    /// Stores an element of a list of the family's record, so that it survives the death of this process.
    pub fn executed<T: Serialize>(&mut self, list: &str, element: &T) -> Result<(), StoreError> {
        let mut file = match self.executed.take() {
            Some(file) => file,
            None => LineFile::open(file(self.run, self.number, "executed.jsonl"))?,
        };
        let written = file.append(format!("{}\n", serde_json::json!({ list: element })).as_bytes());
        self.executed = Some(file);
        written
    }

    /// Stores what a stage has measured, exactly, so that it can be added to other stages; of a whole trial nothing.
    pub fn stage(&self, measured: &impl Serialize) -> Result<(), StoreError> {
        match self.start.identity.stage {
            Some(_) => write_json(&file(self.run, self.number, STAGE), measured),
            None => Ok(()),
        }
    }

    /// Stores a plan as the server wrote it; returns its file within the run folder, such as
    /// `trials/3.plans/q09.json`.
    pub fn plan(&self, name: &str, text: &str) -> Result<String, StoreError> {
        let folder = file(self.run, self.number, "plans");
        if !folder.is_dir() {
            make_folder(&folder)?;
        }
        write_atomically(&folder.join(name), text.as_bytes())?;
        Ok(format!("trials/{}.plans/{name}", self.number))
    }

    /// The file for what nodes say while the trial runs. It is written on its own, so another thread
    /// can do that.
    pub fn node_series(&self) -> Result<NodeSeries, StoreError> {
        let mut lines = LineFile::open(file(self.run, self.number, "nodes.csv"))?;
        lines.append(series::node_header_line().as_bytes())?;
        Ok(NodeSeries(lines))
    }

    /// Stores what the target's nodes (by name) say of themselves.
    pub fn server(&mut self, moment: Moment, nodes: &NodeFacts) -> Result<(), StoreError> {
        write_json(&self.run.path().join("server").join(moment.file(self.number)), nodes)
    }

    /// Stores the summary and ends the trial. Number and schema version are filled in.
    ///
    /// # Errors
    /// When the folder can't be written; the trial then counts as interrupted.
    pub fn finish(self, summary: TrialSummary) -> Result<(), StoreError> {
        let summary =
            TrialSummary { schema_version: SCHEMA_VERSION, trial: self.number, ..summary };
        self.run.store_summary(summary)
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
    pub fn append(&mut self, row: &NodeRow) -> Result<(), StoreError> {
        self.0.append(series::node_line(row).as_bytes())
    }
}

fn file(run: &Run, number: u32, extension: &str) -> PathBuf {
    run.path().join("trials").join(format!("{number}.{extension}"))
}
