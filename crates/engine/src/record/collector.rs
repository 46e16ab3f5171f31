//! Merges the frames of all loops.
//!
//! Measurements as facts of a run folder.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use dyno_core::{ErrorClass, Nanos, Tally};
use dyno_facts::{
    AwaitedArrivals, ErrorSummary, HostSample, KindSummary, LatencySummary, SeriesRow,
    StatementCounts, TrialSummary,
};
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::histogram::empty_histogram;
use super::{ErrorTable, Frame, Latencies, Phase, Window};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredInterval {
    pub phase: Phase,
    /// Number within its phase, from 0.
    pub index: u32,
    /// Seconds from the opening of the measured window to this interval's begin (negative in warm-up).
    pub begins_s: f64,
    pub length_s: f64,
    pub frame: Frame,
    pub host: HostSample,
}

impl MeasuredInterval {
    /// The interval that `frame` covers in a trial whose window is `window`.
    pub fn new(window: &Window, phase: Phase, index: u32, frame: Frame, host: HostSample) -> Self {
        let begins_s = (frame.began as f64 - window.opens as f64) / 1e9;
        MeasuredInterval { phase, index, begins_s, length_s: frame.length_s(), frame, host }
    }
}

/// Holds frames until every loop has handed over the same interval.
#[derive(Debug)]
pub struct Collector {
    loops: usize,
    pending: BTreeMap<(Phase, u32), (usize, Frame)>,
    done: usize,
    total: Frame,
}

impl Collector {
    /// A collector for that many loops, kinds of transactions, and with or without a schedule.
    pub fn new(loops: usize, kinds: usize, scheduled: bool) -> Self {
        Collector { loops, pending: BTreeMap::new(), done: 0, total: Frame::new(kinds, scheduled) }
    }

    pub fn add_frame(&mut self, phase: Phase, index: u32, frame: &Frame) {
        if phase == Phase::Measured {
            self.total.add(frame);
        }
        let entry = self.pending.entry((phase, index)).and_modify(|(count, sum)| {
            *count += 1;
            sum.add(frame);
        });
        entry.or_insert_with(|| (1, frame.clone()));
    }

    /// One loop will hand over no more frames.
    pub fn loop_done(&mut self) {
        self.done += 1;
    }

    pub fn next_complete(&mut self) -> Option<(Phase, u32, Frame)> {
        let entry = self.pending.first_entry()?;
        if entry.get().0 < self.loops && self.done < self.loops {
            return None;
        }
        let ((phase, index), (_, frame)) = entry.remove_entry();
        Some((phase, index, frame))
    }

    /// The sum of all measured intervals.
    pub fn total(&self) -> &Frame {
        &self.total
    }
}

impl From<&Latencies> for LatencySummary {
    fn from(latencies: &Latencies) -> Self {
        summarized(latencies, 0)
    }
}

/// `missing` more, without a latency, are slower than all others.
fn summarized(latencies: &Latencies, missing: u64) -> LatencySummary {
    let count = latencies.count();
    let scale = (count + missing) as f64 / count.max(1) as f64;
    let [p50_us, p90_us, p95_us, p99_us, p999_us] = [50.0, 90.0, 95.0, 99.0, 99.9]
        .map(|percent: f64| latencies.percentile((percent * scale).min(100.0)) as f64 / 1e3);
    LatencySummary {
        count,
        missing,
        min_us: latencies.min() as f64 / 1e3,
        mean_us: latencies.mean() / 1e3,
        p50_us,
        p90_us,
        p95_us,
        p99_us,
        p999_us,
        max_us: latencies.max() as f64 / 1e3,
        sum_us: latencies.sum() as f64 / 1e3,
    }
}

pub fn statement_counts(tally: Tally) -> StatementCounts {
    StatementCounts {
        reads: tally.reads,
        writes: tally.writes,
        others: tally.others,
        rows_read: tally.rows_read,
        rows_written: tally.rows_written,
        empty_reads: tally.empty_reads,
        misses: tally.misses,
    }
}

pub(crate) fn error_summaries(table: &ErrorTable) -> Vec<ErrorSummary> {
    let summaries = table.0.iter().map(|error| ErrorSummary {
        class: error.class.name().to_owned(),
        errno: error.errno,
        sqlstate: error.sqlstate.clone(),
        message: error.message.clone().into(),
        count: error.count,
    });
    summaries.collect()
}

impl From<&MeasuredInterval> for SeriesRow {
    fn from(interval: &MeasuredInterval) -> Self {
        let counts = interval.frame.counts();
        let work = interval.frame.work();
        let latency = LatencySummary::from(&interval.frame.latency());
        let per_s =
            |n: u64| if interval.length_s > 0.0 { n as f64 / interval.length_s } else { 0.0 };
        SeriesRow {
            begins_s: interval.begins_s,
            length_s: interval.length_s,
            phase: match interval.phase {
                Phase::WarmUp => "warm_up".to_owned(),
                Phase::Measured => "measured".to_owned(),
            },
            started: counts.started,
            committed: counts.committed,
            rolled_back: counts.rolled_back,
            failed: counts.failed,
            skipped: counts.skipped,
            retries: counts.retries,
            reconnects: counts.reconnects,
            errors: interval.frame.errors.total(),
            reads: work.reads,
            writes: work.writes,
            others: work.others,
            wasted: interval.frame.wasted().statements(),
            tps: per_s(counts.committed),
            qps: per_s(work.statements()),
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
            max_us: latency.max_us,
            loops_cpu_s: interval.frame.cpu_ns as f64 / 1e9,
            host_cpu_share: interval.host.cpu_share,
            host_steal_share: interval.host.steal_share,
            committed_by_kind: match interval.frame.kinds.as_slice() {
                [_] => Vec::new(),
                kinds => kinds.iter().map(|kind| kind.counts.committed).collect(),
            },
        }
    }
}

/// Fills in what follows from a trial's total frame and the window's length.
pub fn set_totals(summary: &mut TrialSummary, total: &Frame, names: &[String], window: Nanos) {
    let seconds = (window as f64 / 1e9).max(1e-9);
    summary.window_s = window as f64 / 1e9;
    summary.counts = total.counts();
    summary.in_flight = summary.counts.in_flight();
    summary.statements = statement_counts(total.work());
    summary.wasted = statement_counts(total.wasted());
    summary.tps = summary.counts.committed as f64 / seconds;
    summary.qps = summary.statements.total() as f64 / seconds;
    let latency = total.latency();
    // Arrivals of before the window that ended in it represent those that were in flight at its end.
    let missing = summary.offered.map_or(0, |offered| offered.saturating_sub(latency.count()));
    summary.latency = summarized(&latency, missing);
    summary.service = total.service.as_ref().map(LatencySummary::from);
    summary.lateness = total.lateness.as_ref().map(LatencySummary::from);
    summary.generator.loop_queue =
        total.loop_queue.as_ref().filter(|queue| queue.count() > 0).map(LatencySummary::from);
    summary.generator.awaited = total.lateness.as_ref().map(|_| AwaitedArrivals {
        count: total.awaited.arrivals,
        late: total.awaited.late,
        latest_us: total.awaited.latest as f64 / 1e3,
    });
    summary.errors = error_summaries(&total.errors);
    summary.kinds = names
        .iter()
        .zip(&total.kinds)
        .map(|(name, kind)| KindSummary {
            name: name.clone(),
            counts: kind.counts,
            statements: statement_counts(kind.work),
            latency: (&kind.latency).into(),
        })
        .collect();
    let statements = summary.statements.total() + summary.wasted.total();
    summary.generator.loops_cpu_s = total.cpu_ns as f64 / 1e9;
    summary.generator.cpu_us_per_statement =
        if statements == 0 { 0.0 } else { total.cpu_ns as f64 / 1e3 / statements as f64 };
}

/// The first word of deflated cells.
const DEFLATED: u32 = 0x1c84_9314;
/// Many times what the cells of [`Latencies`] take.
const CELLS_BYTES_MAX: u32 = 4 << 20;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tally")]
pub(crate) struct TallyForm {
    #[serde(deserialize_with = "own_count")]
    reads: u64,
    #[serde(deserialize_with = "own_count")]
    writes: u64,
    #[serde(deserialize_with = "own_count")]
    others: u64,
    rows_read: u64,
    rows_written: u64,
    #[serde(deserialize_with = "own_count")]
    empty_reads: u64,
    #[serde(deserialize_with = "own_count")]
    misses: u64,
    #[serde(deserialize_with = "own_count")]
    handled_errors: u64,
    #[serde(deserialize_with = "own_count")]
    reconnects: u64,
    is_open: bool,
}

/// A count of what a load generator has done: few enough that sums of all packets of a run fit.
fn own_count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let count = u64::deserialize(from)?;
    if count < 1 << 53 {
        Ok(count)
    } else {
        Err(D::Error::custom(format!("no load generator has executed {count} statements")))
    }
}

pub(crate) mod error_class {
    use super::*;

    /// Writes the class as its name.
    pub(crate) fn serialize<S: Serializer>(
        class: &ErrorClass,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(class.name())
    }

    /// Reads the name of a class; fails if the class is unknown.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ErrorClass, D::Error> {
        let name = String::deserialize(from)?;
        let class = ErrorClass::ALL.into_iter().find(|class| class.name() == name);
        class.ok_or_else(|| D::Error::custom(format!("there is no class of errors `{name}`")))
    }
}

#[derive(Serialize, Deserialize)]
struct LatenciesForm {
    /// HdrHistogram's own compressed form in base64; empty if nothing was recorded.
    cells: String,
    /// The upper and the lower half of the sum: not all formats have numbers of 128 bits.
    sum: [u64; 2],
    min: Nanos,
    max: Nanos,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        if self.count() > 0 {
            V2DeflateSerializer::new().serialize(&self.to_histogram(), &mut bytes).map_err(
                |error| S::Error::custom(format!("a histogram can't be packed: {error}")),
            )?;
        }
        let (min, max) = self.bounds();
        let sum = [(self.sum() >> 64) as u64, self.sum() as u64];
        let cells = BASE64_STANDARD_NO_PAD.encode(bytes);
        LatenciesForm { cells, sum, min, max }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = LatenciesForm::deserialize(from)?;
        let sum = u128::from(form.sum[0]) << 64 | u128::from(form.sum[1]);
        let histogram = unpack(&form.cells).map_err(D::Error::custom)?;
        Ok(Latencies::from_parts(&histogram, sum, (form.min, form.max)))
    }
}

/// Reads a histogram from Base64; an empty text is an empty histogram.
fn unpack(cells: &str) -> Result<Histogram<u64>, String> {
    if cells.is_empty() {
        return Ok(empty_histogram());
    }
    let bytes = BASE64_STANDARD_NO_PAD.decode(cells).map_err(|error| error.to_string());
    let histogram = bytes.and_then(|bytes| read_cells(&bytes));
    histogram.map_err(|error| format!("a histogram can't be unpacked: {error}"))
}

/// Reads a histogram that hdrhistogram has packed (V2, deflated), into one with the bounds of [`Latencies`]: later
/// additions can't fail.
pub fn read_cells(bytes: &[u8]) -> Result<Histogram<u64>, String> {
    // The reader takes as much memory as the cells claim to need, before it looks at them.
    match claimed_bytes(bytes) {
        Some(claimed) if claimed <= CELLS_BYTES_MAX => {}
        _ => return Err("its length can't be that of a histogram".to_owned()),
    }
    let read: Histogram<u64> =
        Reader::new().deserialize(&mut &*bytes).map_err(|error| error.to_string())?;
    let mut histogram = empty_histogram();
    histogram.add(&read).map_err(|error| error.to_string())?;
    Ok(histogram)
}

fn claimed_bytes(bytes: &[u8]) -> Option<u32> {
    let (cookie, rest) = bytes.split_first_chunk::<4>()?;
    let mut head = [0; 8];
    match u32::from_be_bytes(*cookie) {
        DEFLATED => ZlibDecoder::new(rest.get(4..)?).read_exact(&mut head).ok()?,
        _ => head = *bytes.first_chunk()?,
    }
    let [_, _, _, _, length @ ..] = head;
    Some(u32::from_be_bytes(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Awaited, FramePlace, FrameSink, Recorder, Times};
    use dyno_core::{DbError, ErrorClass, Outcome, SECOND, Tally};
    use dyno_facts::Counts;
    use serde::de::value::{Error, U64Deserializer};
    use std::cell::RefCell;

    const WINDOW: Window =
        Window { released: 0, opens: 2 * SECOND, closes: 5 * SECOND, interval: SECOND };

    /// Records a committed transaction with one read.
    fn committed(recorder: &mut Recorder<impl FrameSink>, began: u64, ended: u64) {
        recorder.advance(began);
        recorder.begin(0, began);
        let times = Times { due: began, began, ended };
        recorder.end(0, Outcome::Committed, times, &Tally { reads: 1, ..Tally::default() });
    }

    #[test]
    fn what_ends_in_the_window_counts_and_the_identity_holds() {
        let frames = RefCell::new(Vec::new());
        let first_frame = Box::new(Frame::new(1, false));
        let mut recorder =
            Recorder::new(first_frame, |place: FramePlace, frame: &mut Box<Frame>| {
                let full = std::mem::replace(frame, Box::new(Frame::new(1, false)));
                frames.borrow_mut().push((place, full));
            });
        recorder.release(WINDOW);
        committed(&mut recorder, 0, SECOND / 2);
        // Begun in warm-up, ended in the window: counts.
        committed(&mut recorder, SECOND, 2 * SECOND + 1);
        committed(&mut recorder, 3 * SECOND, 3 * SECOND + 7);
        recorder.advance(4 * SECOND);
        recorder.begin(0, 4 * SECOND);
        let error = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
        recorder.retry(0, 0, &error, &Tally { writes: 2, ..Tally::default() }, 4 * SECOND + 1);
        recorder.fail(0, &error, &Tally::default(), 4 * SECOND + 2);
        // In flight when the window closes, ended after it: not throughput.
        committed(&mut recorder, 4 * SECOND + 3, 5 * SECOND + 1);
        assert!(recorder.is_finished());
        assert_eq!(recorder.longest_in_flight, SECOND - 2);
        recorder.cut(9 * SECOND);
        assert_eq!(recorder.longest_in_flight, SECOND - 2, "nothing is left to cut");

        let mut collector = Collector::new(1, 1, false);
        let order: Vec<_> =
            frames.borrow().iter().map(|(place, _)| (place.phase, place.index)).collect();
        assert!(
            frames.borrow().iter().enumerate().all(|(at, (place, _))| place.is_last == (at == 4))
        );
        assert_eq!(
            order,
            [
                (Phase::WarmUp, 0),
                (Phase::WarmUp, 1),
                (Phase::Measured, 0),
                (Phase::Measured, 1),
                (Phase::Measured, 2)
            ]
        );
        let frames = frames.take();
        let last = Frame::clone(&frames[4].1);
        let interval =
            MeasuredInterval::new(&WINDOW, Phase::Measured, 2, last, HostSample::default());
        assert_eq!((interval.begins_s, interval.length_s), (2.0, 1.0));
        for (place, frame) in frames {
            collector.add_frame(place.phase, place.index, &frame);
        }
        let total = collector.total();
        let expected = Counts {
            started: 4,
            committed: 2,
            failed: 1,
            retries: 1,
            retried: 1,
            ..Counts::default()
        };
        assert_eq!(total.counts(), expected);
        assert_eq!(recorder.in_flight_at_close, 1);
        assert_eq!(total.counts().started, total.counts().ended() + 1);
        assert_eq!((total.work().reads, total.wasted().writes), (2, 2));
        assert_eq!(total.errors.total(), 2);
    }

    #[test]
    fn answers_that_were_ready_together_are_handled_one_after_the_other() {
        let first_frame = Box::new(Frame::new(1, true).with_loop_queue());
        let mut recorder = Recorder::new(first_frame, |_: FramePlace, _: &mut Box<Frame>| {});
        recorder.handled(3, 0, 300);
        recorder.release(WINDOW);
        recorder.handled(0, 100, 999);
        recorder.handled(4, 1_000, 1_400);
        recorder.awaited(0, 1_000);
        recorder.awaited(Awaited::LATE, 1_000);
        recorder.awaited(Awaited::LATE + 1, 1_000);
        let mut sum = Frame::new(1, true);
        sum.add(&recorder.frame);
        let queue = sum.loop_queue.as_ref().expect("a queue");
        assert_eq!((queue.count(), queue.sum(), queue.max()), (4, 1_000, 400));
        let awaited = Awaited { arrivals: 3, late: 1, latest: Awaited::LATE + 1 };
        assert_eq!(sum.awaited, awaited);
        sum.clear();
        assert_eq!(
            (sum.awaited, sum.loop_queue.map(|all| all.count())),
            (Awaited::default(), Some(0))
        );
    }

    #[test]
    fn intervals_wait_for_the_slowest_loop() {
        let mut collector = Collector::new(2, 1, false);
        collector.add_frame(Phase::Measured, 0, &Frame::new(1, false));
        assert!(collector.next_complete().is_none());
        collector.add_frame(Phase::Measured, 0, &Frame::new(1, false));
        assert!(matches!(collector.next_complete(), Some((Phase::Measured, 0, _))));
        collector.add_frame(Phase::Measured, 1, &Frame::new(1, false));
        collector.loop_done();
        assert!(collector.next_complete().is_none());
        collector.loop_done();
        assert!(collector.next_complete().is_some());
    }

    #[test]
    fn arrivals_without_a_latency_are_slower_than_all_others() {
        let mut total = Frame::new(1, true);
        (1..=990).for_each(|us| total.kinds[0].latency.record(us * 1_000));
        let complete = summarize_offer(&total, Some(980));
        assert_eq!((complete.missing, complete), (0, summarize_offer(&total, None)));
        let missing = summarize_offer(&total, Some(1_000));
        assert_eq!((missing.count, missing.missing), (990, 10));
        // The 500th of 1,000, not the 495th of 990.
        assert!((missing.p50_us - 500.0).abs() < 2.0, "{missing:?}");
        assert!((missing.p95_us - 950.0).abs() < 2.0 && missing.p95_us > complete.p95_us);
        assert!(missing.is_known(0.05) && missing.is_known(0.01) && !missing.is_known(0.001));
        assert!(complete.is_known(0.0));
    }

    /// The latencies of a trial in which this number of arrivals came due.
    fn summarize_offer(total: &Frame, offered: Option<u64>) -> LatencySummary {
        let mut summary = TrialSummary { offered, ..TrialSummary::default() };
        set_totals(&mut summary, total, &[], 1_000_000_000);
        summary.latency
    }

    #[test]
    fn counts_of_a_packet_leave_room_for_their_sums() {
        let [last, first_wrong, max] = [(1 << 53) - 1, 1 << 53, u64::MAX]
            .map(|count| own_count(U64Deserializer::<Error>::new(count)));
        assert_eq!(last, Ok((1 << 53) - 1));
        assert!(first_wrong.is_err() && max.is_err());
    }

    #[test]
    fn cells_that_claim_gigabytes_are_refused_unread() {
        let mut plain = Vec::new();
        hdrhistogram::serialization::V2Serializer::new()
            .serialize(&empty_histogram(), &mut plain)
            .expect("memory");
        assert_eq!(read_cells(&plain).map(|read| read.len()), Ok(0));
        plain[4..8].copy_from_slice(&0xffff_0006_u32.to_be_bytes());
        let mut deflated = Vec::new();
        let mut packer =
            flate2::write::ZlibEncoder::new(&mut deflated, flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, &plain).expect("memory");
        packer.finish().expect("memory");
        let length = (deflated.len() as u32).to_be_bytes();
        let deflated = [&DEFLATED.to_be_bytes()[..], &length, &deflated].concat();
        for cells in [plain, deflated, vec![0x1c]] {
            assert!(read_cells(&cells).is_err_and(|error| error.contains("its length")));
        }
    }
}
