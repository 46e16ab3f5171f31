//! `trials/<n>.hlog`: HdrHistogram interval logs, readable by every HdrHistogram tool.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_engine::record::read_cells;
use dyno_engine::record::{Latencies, MeasuredInterval};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Tag of the time from begin to end, if there is a schedule.
const SERVICE: &str = "service";
/// Tag of the time from due to begin, if there is a schedule.
const LATENESS: &str = "lateness";

/// The tag of each kind of transaction: its name, made fit for the format and unique.
pub(crate) fn tags(kinds: &[String]) -> Vec<String> {
    let mut tags = vec![SERVICE.to_owned(), LATENESS.to_owned()];
    for kind in kinds {
        let mut tag: String =
            kind.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
        while tag.is_empty() || tags.contains(&tag) {
            tag.push('_');
        }
        tags.push(tag);
    }
    tags.split_off(2)
}

pub(crate) fn header_text(trial: u32) -> String {
    format!(
        "#Latencies of trial {trial} in nanoseconds: a line per interval of the measured window and kind of transaction (tag).\n\
         #Tags `{SERVICE}` (begin to end) and `{LATENESS}` (due to begin) exist where transactions follow a schedule.\n\
         #Time stamps are seconds since the measured window opened.\n\
         #\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The lines of an interval, one for each tag that it has latencies for.
///
/// # Errors
/// When a histogram can't be serialized.
pub(crate) fn lines(
    interval: &MeasuredInterval,
    tags: &[String],
    serializer: &mut V2DeflateSerializer,
) -> Result<Vec<u8>, String> {
    let frame = &interval.frame;
    let kinds = tags.iter().map(String::as_str).zip(frame.kinds.iter().map(|kind| &kind.latency));
    let service = frame.service.iter().map(|service| (SERVICE, service));
    let lateness = frame.lateness.iter().map(|lateness| (LATENESS, lateness));
    let begins = Duration::from_secs_f64(interval.begins_s.max(0.0));
    let length = Duration::from_secs_f64(interval.length_s.max(0.0));
    let mut text = Vec::new();
    let mut log = IntervalLogWriterBuilder::new()
        .begin_log_with(&mut text, serializer)
        .map_err(|error| error.to_string())?;
    for (tag, latencies) in kinds.chain(service).chain(lateness) {
        log.write_histogram(&latencies.to_histogram(), begins, length, Tag::new(tag))
            .map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// Merged histograms of a log by tag, and how many of its lines are damaged.
pub fn read(text: &str) -> (BTreeMap<String, Latencies>, usize) {
    merge(text, f64::INFINITY)
}

/// Merged histograms by tag, of the intervals that began before `until_s`, and how many lines were left out
/// because they are damaged.
pub(crate) fn merge(text: &str, until_s: f64) -> (BTreeMap<String, Latencies>, usize) {
    let mut merged: BTreeMap<String, Latencies> = BTreeMap::new();
    let mut damaged = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let Some((tag, begins_s, latencies)) = parse_entry(line) else {
            damaged += 1;
            continue;
        };
        if begins_s < until_s {
            merged.entry(tag).or_default().add(&latencies);
        }
    }
    (merged, damaged)
}

fn parse_entry(line: &str) -> Option<(String, f64, Latencies)> {
    let LogEntry::Interval(entry) = IntervalLogIterator::new(line.as_bytes()).next()?.ok()? else {
        return None;
    };
    let bytes = STANDARD.decode(entry.encoded_histogram()).ok()?;
    let latencies = Latencies::from_histogram(&read_cells(&bytes).ok()?);
    let tag = entry.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
    Some((tag, entry.start_timestamp().as_secs_f64(), latencies))
}

/// An interval log outside of a run folder.
pub struct HistogramLog {
    file: File,
    tags: Vec<String>,
    serializer: V2DeflateSerializer,
}

impl HistogramLog {
    /// Makes the file, for a trial with these kinds of transactions.
    pub fn create(path: &Path, kinds: &[String]) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(header_text(1).as_bytes())?;
        Ok(HistogramLog { file, tags: tags(kinds), serializer: V2DeflateSerializer::new() })
    }

    /// Appends the lines of an interval.
    pub fn interval(&mut self, interval: &MeasuredInterval) -> io::Result<()> {
        let text = lines(interval, &self.tags, &mut self.serializer).map_err(io::Error::other)?;
        self.file.write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_engine::record::{Frame, Phase};
    use dyno_facts::HostSample;

    fn measured_interval(index: u32, latencies_ns: &[u64]) -> MeasuredInterval {
        let mut frame = Frame::new(2, true);
        for &latency in latencies_ns {
            frame.kinds[1].latency.record(latency);
            frame.service.as_mut().expect("scheduled").record(latency / 2);
        }
        MeasuredInterval {
            phase: Phase::Measured,
            index,
            begins_s: f64::from(index),
            length_s: 1.0,
            frame,
            host: HostSample::default(),
        }
    }

    #[test]
    fn a_log_outside_of_a_run_can_be_merged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.hlog");
        let mut log = HistogramLog::create(&path, &["one".into(), "two".into()]).expect("a file");
        log.interval(&measured_interval(0, &[1_000, 2_000])).expect("a line");
        log.interval(&measured_interval(1, &[3_000])).expect("a line");
        let text = std::fs::read_to_string(&path).expect("the file");
        let (merged, damaged) = merge(&text, 10.0);
        assert_eq!((merged["two"].count(), damaged), (3, 0));
    }

    #[test]
    fn logs_round_trip_and_merge() {
        let tags = tags(&["new order".to_owned(), "service".to_owned()]);
        assert_eq!(tags, ["new_order", "service_"]);
        let mut serializer = V2DeflateSerializer::new();
        let mut text = header_text(1);
        for (index, latencies) in [&[1_000_000, 2_000_000][..], &[5_000_000_000]].iter().enumerate()
        {
            let lines = lines(&measured_interval(index as u32, latencies), &tags, &mut serializer)
                .expect("lines");
            text += std::str::from_utf8(&lines).expect("UTF-8");
        }
        let (all, damaged) = merge(&text, f64::INFINITY);
        assert_eq!(damaged, 0);
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            ["lateness", "new_order", "service", "service_"]
        );
        assert_eq!(
            (all["service_"].count(), all["service"].count(), all["new_order"].count()),
            (3, 3, 0)
        );
        let max = all["service_"].max();
        assert!(max.abs_diff(5_000_000_000) <= 5_000_000, "{max}");
        let (first, _) = merge(&text, 0.5);
        assert_eq!(first["service_"].count(), 2);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        let mut serializer = V2DeflateSerializer::new();
        let good = lines(
            &measured_interval(0, &[7_000]),
            &tags(&["a".into(), "b".into()]),
            &mut serializer,
        )
        .expect("lines");
        let text =
            String::from_utf8(good).expect("UTF-8") + "Tag=b,1.0,1.0,7.0,HISTFAAA\nnonsense\n";
        let (merged, damaged) = merge(&text, f64::INFINITY);
        assert_eq!((merged["b"].count(), damaged), (1, 2));
    }
}
