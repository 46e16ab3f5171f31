//! Merges the measurements of several load generators, and of the stages of a trial.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use dyno_core::{DbError, Driver, Error, MILLISECOND, Nanos, Workload};
use dyno_facts::{GeneratorConditions, HostSample};
use dyno_observe::HostSampler;
use dyno_reactor::monotonic_now;

use crate::drive::Observer;
use crate::generator::GeneratorWatch;
use crate::record::{Collector, Frame, FramePlace, MeasuredInterval, Phase, Window};
use crate::shared::Shared;
use crate::trial::{TrialEnd, TrialResult, WorkerStats};

impl TrialResult {
    /// Moves all times to a clock that shows `by_ns` more.
    pub fn shift(&mut self, by_ns: i64) {
        self.window.shift(by_ns);
        self.total.shift(by_ns);
    }
}

/// Merges the results of all load generators, with times on one clock ([`TrialResult::shift`]). Counts and histograms
/// are exact sums; facts of a machine are those of the worst one.
pub fn merge(parts: &[TrialResult]) -> Result<TrialResult, Error> {
    folded(parts, add)
}

/// Joins the stages of one trial, one after the other: their windows add up, without the gaps between them. Counts and
/// histograms are exact sums; facts of the machine are those of the worst stage, its load is the mean.
pub fn join(stages: &[TrialResult]) -> Result<TrialResult, Error> {
    folded(stages, append)
}

/// One result of all parts, if they are of the same trial.
fn folded(
    parts: &[TrialResult],
    add: impl Fn(&mut TrialResult, &TrialResult),
) -> Result<TrialResult, Error> {
    let (first, rest) =
        parts.split_first().ok_or_else(|| Error::new("no load generator has given a result"))?;
    let mut sum = first.clone();
    for part in rest {
        if !is_alike(&sum.total, &part.total) || sum.offered.is_some() != part.offered.is_some() {
            return Err(Error::new("the load generators have measured different things"));
        }
        add(&mut sum, part);
    }
    sum.ended = how_ended(parts);
    Ok(sum.balanced())
}

/// Adds a stage that ran after those in `joined`.
fn append(joined: &mut TrialResult, stage: &TrialResult) {
    let (before, length) = (joined.length(), stage.length());
    let total = (before + length).max(1) as f64;
    joined.host = join_hosts(joined.host, stage.host, |one, other| {
        (one * before as f64 + other * length as f64) / total
    });
    add_counts(joined, stage);
    joined.window.closes += length;
    add_each(&mut joined.workers, &stage.workers, |worker, more| {
        worker.transactions += more.transactions;
        worker.busy += more.busy;
        worker.connects += more.connects;
        worker.connecting += more.connecting;
        worker.uncommitted += more.uncommitted;
        worker.scans = worker.scans.or(more.scans);
    });
    add_each(&mut joined.loops_cpu, &stage.loops_cpu, |cpu, more| *cpu += more);
}

/// Adds to each of the same number; a stage on another machine may have had more loops.
fn add_each<T: Copy + Default>(sums: &mut Vec<T>, more: &[T], add: impl Fn(&mut T, T)) {
    sums.resize(sums.len().max(more.len()), T::default());
    sums.iter_mut().zip(more).for_each(|(sum, more)| add(sum, *more));
}

fn is_alike(one: &Frame, other: &Frame) -> bool {
    one.kinds.len() == other.kinds.len() && one.service.is_some() == other.service.is_some()
}

/// Adds a part that ran at the same time as those in `merged`.
fn add(merged: &mut TrialResult, part: &TrialResult) {
    merged.host = worse_host(merged.host, part.host);
    add_counts(merged, part);
    let window = &mut merged.window;
    window.released = window.released.min(part.window.released);
    window.opens = window.opens.min(part.window.opens);
    window.closes = window.closes.max(part.window.closes);
    merged.workers.extend(&part.workers);
    merged.loops_cpu.extend(&part.loops_cpu);
}

/// Adds what adds up both of parts that were measured at the same time and of parts one after the other.
fn add_counts(sum: &mut TrialResult, more: &TrialResult) {
    sum.total.add(&more.total);
    sum.connect = sum.connect.max(more.connect);
    sum.late = sum.late.max(more.late);
    sum.offered = sum.offered.zip(more.offered).map(|(one, other)| one.saturating_add(other));
    sum.in_flight = sum.in_flight.saturating_add(more.in_flight);
    sum.longest_in_flight = sum.longest_in_flight.max(more.longest_in_flight);
    sum.unfinished = sum.unfinished.saturating_add(more.unfinished);
    sum.retired = sum.retired.saturating_add(more.retired);
    sum.retired_transactions = sum.retired_transactions.saturating_add(more.retired_transactions);
    worsen(&mut sum.conditions, &more.conditions);
}

/// The first error counts, then an interruption.
fn how_ended(parts: &[TrialResult]) -> TrialEnd {
    let find =
        |wanted: fn(&TrialEnd) -> bool| parts.iter().map(|part| &part.ended).find(|e| wanted(e));
    find(|ended| matches!(ended, TrialEnd::Aborted(_)))
        .or_else(|| find(|ended| *ended == TrialEnd::Interrupted))
        .or_else(|| find(|ended| *ended == TrialEnd::Events))
        .cloned()
        .unwrap_or(TrialEnd::Time)
}

fn worse_host(one: HostSample, other: HostSample) -> HostSample {
    // A lost load generator leaves no facts of its machine.
    if other == HostSample::default() {
        return one;
    }
    if one == HostSample::default() {
        return other;
    }
    join_hosts(one, other, f64::max)
}

/// Combines two machines: shares and rates by `join`, of the available memory the smaller one.
fn join_hosts(one: HostSample, other: HostSample, join: impl Fn(f64, f64) -> f64) -> HostSample {
    HostSample {
        cpu_share: join(one.cpu_share, other.cpu_share),
        steal_share: join(one.steal_share, other.steal_share),
        iowait_share: join(one.iowait_share, other.iowait_share),
        memory_available_mib: one.memory_available_mib.min(other.memory_available_mib),
        network_received_bytes_per_s: join(
            one.network_received_bytes_per_s,
            other.network_received_bytes_per_s,
        ),
        network_sent_bytes_per_s: join(
            one.network_sent_bytes_per_s,
            other.network_sent_bytes_per_s,
        ),
    }
}

/// Makes of the conditions of two parts those of the worse one.
pub fn worsen(conditions: &mut GeneratorConditions, other: &GeneratorConditions) {
    for (one, other) in [
        (&mut conditions.cpu_pressure_share, other.cpu_pressure_share),
        (&mut conditions.memory_pressure_share, other.memory_pressure_share),
        (&mut conditions.io_pressure_share, other.io_pressure_share),
        (&mut conditions.hiccup_p999_us, other.hiccup_p999_us),
        (&mut conditions.hiccup_max_us, other.hiccup_max_us),
        (&mut conditions.network_share, other.network_share),
        (&mut conditions.retransmitted_share, other.retransmitted_share),
        (&mut conditions.throttled_share, other.throttled_share),
        (&mut conditions.suspended_ms, other.suspended_ms),
    ] {
        *one = one.iter().copied().chain(other).reduce(f64::max);
    }
    let delays = [conditions.run_delay_s, other.run_delay_s];
    conditions.run_delay_s = delays.into_iter().flatten().reduce(|one, other| one + other);
    conditions.swapped_pages = conditions.swapped_pages.max(other.swapped_pages);
    // Known for all or for none.
    conditions.headroom =
        conditions.headroom.zip(other.headroom).map(|(one, other)| one.min(other));
    if let (Some(one), Some(other)) = (&mut conditions.governor, &other.governor) {
        let is_known = one.split(", ").any(|known| known == other);
        if !is_known {
            one.push_str(", ");
            one.push_str(other);
        }
    } else {
        conditions.governor = conditions.governor.take().or_else(|| other.governor.clone());
    }
}

/// Joins the intervals of several load generators while their trial runs. Repeated intervals count once.
#[derive(Debug)]
pub struct Joined {
    window: Window,
    pending: BTreeMap<(Phase, u32), (Frame, HostSample)>,
    taken: BTreeSet<(Phase, u32, u32)>,
    generators: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    is_done: bool,
    total: Frame,
}

impl Joined {
    /// For this number of load generators and kinds of transactions.
    pub fn new(window: Window, generators: u32, kinds: usize, scheduled: bool) -> Self {
        let members =
            (0..generators).map(|_| Member { is_done: false, total: Frame::new(kinds, scheduled) });
        Joined {
            window,
            pending: BTreeMap::new(),
            taken: BTreeSet::new(),
            generators: members.collect(),
        }
    }

    /// Takes an interval with times on the clock of the window. Returns false for a repeated or foreign one, or when
    /// the load generator is done.
    pub fn take(&mut self, generator: u32, interval: &MeasuredInterval) -> bool {
        let Some(member) = self.generators.get_mut(generator as usize) else { return false };
        let place = (interval.phase, interval.index);
        let is_new = !member.is_done
            && is_alike(&member.total, &interval.frame)
            && self.taken.insert((place.0, place.1, generator));
        if !is_new {
            return false;
        }
        if interval.phase == Phase::Measured {
            member.total.add(&interval.frame);
        }
        match self.pending.get_mut(&place) {
            Some((frame, host)) => {
                frame.add(&interval.frame);
                *host = worse_host(*host, interval.host);
            }
            None => {
                self.pending.insert(place, (interval.frame.clone(), interval.host));
            }
        }
        true
    }

    /// Waits no longer for intervals of a load generator.
    pub fn done(&mut self, generator: u32) {
        if let Some(member) = self.generators.get_mut(generator as usize) {
            member.is_done = true;
        }
    }

    /// Gives up a load generator. Returns its measurements so far, to be merged with the results of the others.
    pub fn lose(&mut self, generator: u32, why: DbError) -> Option<TrialResult> {
        self.done(generator);
        let total = self.generators.get(generator as usize)?.total.clone();
        let mut window = self.window;
        window.closes = total.ended.max(window.opens);
        let in_flight = total.counts().in_flight();
        Some(TrialResult {
            offered: total.service.as_ref().map(|_| total.counts().started),
            total,
            window,
            connect: 0,
            late: 0,
            ended: TrialEnd::Aborted(why),
            workers: Vec::new(),
            in_flight,
            longest_in_flight: 0,
            unfinished: 0,
            retired: 0,
            retired_transactions: 0,
            loops_cpu: Vec::new(),
            host: HostSample::default(),
            conditions: GeneratorConditions::default(),
        })
    }

    /// The next interval from all load generators, in order.
    pub fn next_complete(&mut self) -> Option<MeasuredInterval> {
        let entry = self.pending.first_entry()?;
        let (phase, index) = *entry.key();
        let has_all = (0..).zip(&self.generators).all(|(generator, member)| {
            member.is_done || self.taken.contains(&(phase, index, generator))
        });
        if !has_all {
            return None;
        }
        let (frame, host) = entry.remove();
        Some(MeasuredInterval::new(&self.window, phase, index, frame, host))
    }
}

/// The longest wait for a message.
const PATIENCE: Nanos = 100 * MILLISECOND;
/// The longest pause between the frames of two loops.
const PAUSE: Nanos = 2 * MILLISECOND;

pub(crate) enum LoopMessage {
    /// The frame of the loop with this number, with the sums of its workers if they are watched.
    Frame {
        number: usize,
        place: FramePlace,
        frame: Box<Frame>,
        workers: Option<Vec<WorkerStats>>,
    },
    Released(Window),
    Done,
}

pub(crate) struct Collected {
    pub(crate) total: Frame,
    pub(crate) host: HostSample,
    pub(crate) conditions: GeneratorConditions,
}

/// Looks at the machine from the opening of the window to its close.
struct WindowLook {
    watch: Option<GeneratorWatch>,
    sampler: HostSampler,
    seen: Option<(HostSample, GeneratorConditions)>,
}

impl WindowLook {
    fn new(watch: Option<GeneratorWatch>) -> Self {
        WindowLook { watch, sampler: HostSampler::new(monotonic_now()), seen: None }
    }

    /// Begins to count again at the (latest known) opening of the window.
    fn open(&mut self) {
        let now = monotonic_now();
        self.sampler = HostSampler::new(now);
        if let Some(watch) = &mut self.watch {
            watch.open(now);
        }
    }

    /// The window closes, for the first loop at least. What follows is the drain, which may be idle and is none of its.
    fn close(&mut self) {
        let WindowLook { watch, sampler, seen } = self;
        seen.get_or_insert_with(|| {
            let now = monotonic_now();
            let conditions = watch.as_ref().map(|watch| watch.close(now));
            (sampler.sample(now), conditions.unwrap_or_default())
        });
    }
}

/// Sums of the workers of a loop at the ends of its intervals.
type SumsOfLoop = VecDeque<((Phase, u32), Vec<WorkerStats>)>;

/// Passes on those of all workers at the end of an interval, if they are watched.
fn report_workers(sums: &mut [SumsOfLoop], place: (Phase, u32), observer: &mut dyn Observer) {
    let reports = sums.iter_mut().filter_map(|sums| {
        let is_next = sums.front().is_some_and(|(at, _)| *at == place);
        is_next.then(|| sums.pop_front()).flatten().map(|(_, workers)| workers)
    });
    let workers: Vec<WorkerStats> = reports.flatten().collect();
    if !workers.is_empty() {
        observer.workers(&workers);
    }
}

/// Merges the messages of the loops until all are done; full frames go back to their loops empty. Virtual time has no
/// `watch`: it doesn't depend on this machine's load.
pub(crate) fn collect<W: Workload, D: Driver>(
    receiver: &Receiver<LoopMessage>,
    spares: &[Sender<Box<Frame>>],
    shared: &Shared<'_, W, D>,
    watch: Option<GeneratorWatch>,
    observer: &mut dyn Observer,
) -> Collected {
    let workers = shared.spec.workers;
    let kinds = shared.workload.transactions().len();
    let mut collector = Collector::new(spares.len(), kinds, shared.spec.is_scheduled());
    // All loops hand over at the same instant: merging their frames in one go would take a CPU from them.
    let pause = (shared.spec.interval / 8 / spares.len() as u64).min(PAUSE);
    let pause = Duration::from_nanos(if watch.is_some() && spares.len() > 1 { pause } else { 0 });
    let mut window = None;
    let mut sampler = HostSampler::new(monotonic_now());
    let mut look = WindowLook::new(watch);
    let mut sums = vec![VecDeque::new(); spares.len()];
    loop {
        let wait = window.map_or(0, |window: Window| window.closes.saturating_sub(monotonic_now()));
        let wait = if wait == 0 { PATIENCE } else { wait.min(PATIENCE) };
        let message = receiver.recv_timeout(Duration::from_nanos(wait));
        if window.is_some_and(|window| look.watch.is_some() && monotonic_now() >= window.closes) {
            look.close();
        }
        match message {
            Ok(LoopMessage::Frame { number, place, mut frame, workers }) => {
                if place.is_last {
                    look.close();
                }
                collector.add_frame(place.phase, place.index, &frame);
                sums[number].extend(workers.map(|workers| ((place.phase, place.index), workers)));
                frame.clear();
                // A loop that has ended takes none.
                let _ = spares[number].send(frame);
                if !place.is_last && !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            Ok(LoopMessage::Released(released)) => {
                observer.connected(workers, workers);
                observer.released(&released);
                window = Some(released);
                look.open();
            }
            Ok(LoopMessage::Done) => {
                collector.loop_done();
                look.close();
            }
            Err(RecvTimeoutError::Timeout) if window.is_none() => {
                observer.connected(shared.connected.load(Ordering::Relaxed), workers);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let Some(window) = &window else { continue };
        shared.first_error().iter().for_each(|error| observer.failed(error));
        while let Some((phase, index, frame)) = collector.next_complete() {
            if phase == Phase::WarmUp {
                look.open();
            }
            let host = sampler.sample(monotonic_now());
            report_workers(&mut sums, (phase, index), observer);
            observer.interval(&MeasuredInterval::new(window, phase, index, frame, host));
        }
    }
    let (host, conditions) = look.seen.unwrap_or_default();
    Collected { total: collector.total().clone(), host, conditions }
}
