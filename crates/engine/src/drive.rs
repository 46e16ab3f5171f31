//! One trial over all loops.

use crate::arrival::Schedule;
use crate::control::Control;
use crate::share::{first_of, share_before};
use crate::shared::{Local, Shared};
use crate::terminals::Terminals;
use crate::trial::{TrialEnd, TrialResult, TrialSpec, WorkerStats};
use crate::worker::worker;
use dyno_core::{DbError, Driver, MILLISECOND, Nanos, Rng, SECOND, Workload};
use dyno_facts::{GeneratorConditions, HostSample};
use dyno_observe::{GeneratorWatch, HostSampler, run_delay_of_thread};
use dyno_reactor::{Clock, Loop, Turn, monotonic_now};
use dyno_record::{Collector, Frame, MeasuredInterval, Phase, Recorder, Window};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Time between two checks for a stop.
const LOOK: Nanos = 100 * MILLISECOND;

/// Shorter drain after a request to stop: Ctrl-C shall not wait for a script that sleeps.
const INTERRUPTED_DRAIN: Nanos = 2 * SECOND;

/// Follows a trial on the caller's thread.
pub trait Observer {
    /// `connected` of `of` workers are connected and prepared.
    fn connected(&mut self, _connected: u32, _of: u32) {}
    /// All workers start now.
    fn released(&mut self, _window: &Window) {}
    /// An interval is complete over all loops.
    fn interval(&mut self, _interval: &MeasuredInterval) {}
}

/// Observes nothing.
impl Observer for () {}

#[derive(Debug)]
pub enum DriveError {
    /// A worker could not connect or prepare.
    Connect(DbError),
    /// Stopped before all workers were connected.
    Interrupted,
    /// The operating system refused a service, such as threads or descriptors.
    System(io::Error),
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveError::Connect(error) => write!(f, "{error}"),
            DriveError::Interrupted => f.write_str("stopped before all workers were connected"),
            DriveError::System(error) => {
                write!(f, "the system refused what a trial needs: {error}")
            }
        }
    }
}

impl std::error::Error for DriveError {}

enum Message {
    Frame(Phase, u32, Box<Frame>),
    Released(Window),
    Done,
}

/// The result of one loop.
struct LoopEnd {
    first: u32,
    stats: Vec<WorkerStats>,
    closes: Nanos,
    offered: Option<u64>,
    in_flight: u64,
    unfinished: u32,
    retired: u32,
    retired_transactions: u64,
    cpu: Nanos,
    /// Delay of its workers' start after the release.
    late: Nanos,
    /// Time without a CPU since the window opened.
    run_delay: Option<Nanos>,
}

/// Runs a trial until all workers have left. Errors after the connects are in [`TrialResult::ended`].
pub fn drive<W: Workload, D: Driver>(
    workload: &W,
    driver: &D,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    let shared = Shared::new(workload, driver, spec, control);
    let ranges = split(spec, driver.blocks());
    let loops = ranges.len();
    let gate = Gate::new(loops, monotonic_now());
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, range) in ranges.into_iter().enumerate() {
            let (shared, gate, sender) = (&shared, &gate, sender.clone());
            let thread = std::thread::Builder::new()
                .name(format!("loop-{number}"))
                .spawn_scoped(scope, move || run_loop(shared, gate, range, &sender));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    control.stop();
                    gate.expect_only(threads.len());
                    return Err(DriveError::System(error));
                }
            }
        }
        drop(sender);
        let watch = GeneratorWatch::new(monotonic_now());
        let collected = collect(&receiver, &shared, loops, Some(watch), observer);
        let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(repanic));
        let ends = ends.collect::<io::Result<Vec<_>>>().map_err(DriveError::System)?;
        finish(&shared, &gate, collected, ends)
    })
}

fn repanic<T>(panic: Box<dyn std::any::Any + Send>) -> T {
    std::panic::resume_unwind(panic)
}

/// Runs a trial on one loop with a virtual clock: for tests with a simulated driver. The observer hears everything
/// after the end; only the workload can stop such a trial early.
pub fn drive_simulated<W: Workload, D: Driver>(
    workload: &W,
    driver: &D,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    let shared = Shared::new(workload, driver, spec, control);
    let gate = Gate::new(1, 0);
    let (sender, receiver) = channel();
    let end = run_on(Clock::Virtual, &shared, &gate, 0..spec.workers, &sender)
        .map_err(DriveError::System)?;
    drop(sender);
    // Virtual time doesn't depend on this machine's load.
    let collected = collect(&receiver, &shared, 1, None, observer);
    finish(&shared, &gate, collected, vec![end])
}

/// The meeting of loops between connecting and running.
struct Gate {
    /// Loops that have arrived, and all loops.
    meeting: Mutex<(usize, usize)>,
    complete: Condvar,
    /// Set by the first loop after the meeting; `None` when the trial can't begin.
    release: OnceLock<Option<Release>>,
    begin: Nanos,
}

/// The start of the workers.
#[derive(Clone, Copy)]
struct Release {
    /// The time at which all could start.
    ready: Nanos,
    window: Window,
}

impl Gate {
    fn new(loops: usize, begin: Nanos) -> Self {
        Gate {
            meeting: Mutex::new((0, loops)),
            complete: Condvar::new(),
            release: OnceLock::new(),
            begin,
        }
    }

    /// Expects `loops` loops only.
    fn expect_only(&self, loops: usize) {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner).1 = loops;
        self.complete.notify_all();
    }

    fn arrive(&self) {
        let mut meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.0 += 1;
        self.complete.notify_all();
        drop(
            self.complete
                .wait_while(meeting, |(arrived, expected)| *arrived < *expected)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Waits for all loops, then agrees on the window at `now`.
    fn pass(
        &self,
        now: impl Fn() -> Nanos,
        spec: &TrialSpec,
        start: impl Fn(Nanos) -> Option<Nanos>,
    ) -> Option<Window> {
        self.arrive();
        let release = self.release.get_or_init(|| {
            let ready = now();
            let released = start(ready)?;
            let opens = released + spec.warmup;
            let closes = if spec.finish_begun { Nanos::MAX } else { ends(spec, opens) };
            Some(Release {
                ready,
                window: Window { released, opens, closes, interval: spec.interval },
            })
        });
        release.map(|release| release.window)
    }
}

/// The time after which nothing begins in a window that opens at `opens`.
fn ends(spec: &TrialSpec, opens: Nanos) -> Nanos {
    spec.duration.map_or(Nanos::MAX, |duration| opens.saturating_add(duration))
}

/// The workers of each loop.
fn split(spec: &TrialSpec, blocks: bool) -> Vec<Range<u32>> {
    let workers = spec.workers.max(1);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let loops = if blocks { workers } else { spec.loops.unwrap_or(cores).clamp(1, workers) };
    let first = |n: u32| first_of(n, workers, loops);
    (0..loops).map(|n| first(n)..first(n + 1)).collect()
}

fn run_loop<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    gate: &Gate,
    range: Range<u32>,
    sender: &Sender<Message>,
) -> io::Result<LoopEnd> {
    let end = run_on(Clock::Monotonic, shared, gate, range, sender);
    if end.is_err() {
        shared.control.stop();
        gate.arrive();
    }
    end
}

fn run_on<W: Workload, D: Driver>(
    clock: Clock,
    shared: &Shared<'_, W, D>,
    gate: &Gate,
    range: Range<u32>,
    sender: &Sender<Message>,
) -> io::Result<LoopEnd> {
    let spec = shared.spec;
    let (first, count) = (range.start, range.end - range.start);
    let cpu = std::cell::Cell::new(0);
    let delay_before = std::cell::Cell::new(None);
    let sink = |phase, index, frame: &Frame| {
        if phase == Phase::Measured {
            cpu.set(cpu.get() + frame.cpu_ns);
        } else {
            delay_before.set(run_delay_of_thread());
        }
        // The receiver outlives all loops.
        let _ = sender.send(Message::Frame(phase, index, Box::new(frame.clone())));
    };
    let recorder = Recorder::new(shared.workload.transactions().len(), spec.is_scheduled(), sink);
    let local = Local::new(recorder, first, count);
    // Before the meeting, as a hundred thousand of them take time.
    local.terminals.replace(seat(shared, first, count));
    let mut tasks = Loop::new(clock, range.map(|id| worker(shared, &local, id)))?;
    let stopped = || shared.is_stopped();
    let mut now = 0;
    tasks.run(|tick| {
        now = tick.now;
        let settled = local.ready.get() as usize == tick.live;
        if settled || stopped() { Turn::Pause } else { Turn::RunUntil(tick.now + LOOK) }
    })?;
    let start = |now| if stopped() { None } else { shared.control.start_at(now) };
    let time = || if clock == Clock::Virtual { now } else { monotonic_now() };
    let window = gate.pass(time, spec, start);
    let mut late = 0;
    if let Some(window) = window {
        let begun = hold(&mut tasks, window.released, &stopped)?;
        late = begun.saturating_sub(window.released);
        if first == 0 {
            let _ = sender.send(Message::Released(window));
        }
        local.schedule.replace(schedule(spec, window, first, count));
        if let Some(terminals) = local.terminals.borrow_mut().as_mut() {
            terminals.start(window.released, window.opens);
        }
        delay_before.set(run_delay_of_thread());
        // A trial that was stopped before its start only ends.
        let is_early = begun < window.released;
        local.release(window, if is_early { begun } else { ends(spec, window.opens) });
        measure(&mut tasks, &local, shared, &stopped)?;
    }
    let run_delay =
        run_delay_of_thread().and_then(|delay| Some(delay.saturating_sub(delay_before.get()?)));
    let unfinished = match window {
        Some(_) => tasks.take_outputs().iter().filter(|output| output.is_none()).count() as u32,
        None => 0,
    };
    drop(tasks);
    let closes = local.recorder.borrow().closes();
    let _ = sender.send(Message::Done);
    Ok(LoopEnd {
        first,
        stats: local.stats.take(),
        closes,
        offered: offered(&local),
        in_flight: local.recorder.borrow().in_flight_at_close(),
        unfinished,
        retired: local.retired.get(),
        retired_transactions: local.retired_transactions.get(),
        cpu: cpu.get(),
        late,
        run_delay,
    })
}

/// Arrivals of a loop in the window; `None` without due times.
fn offered<S: FnMut(Phase, u32, &Frame), T>(local: &Local<S, T>) -> Option<u64> {
    let ends = local.ends();
    match local.terminals.take() {
        Some(terminals) => Some(terminals.offered(ends)),
        None => {
            let schedule = local.schedule.take()?;
            Some(schedule.offered(ends, local.untaken.get()))
        }
    }
}

/// Holds connected workers until `released`, or until the trial is stopped; returns that time.
fn hold<F: Future>(
    tasks: &mut Loop<F>,
    released: Nanos,
    stopped: &impl Fn() -> bool,
) -> io::Result<Nanos> {
    let mut now = 0;
    tasks.run(|tick| {
        now = tick.now;
        let is_over = tick.now >= released || stopped();
        if is_over { Turn::Pause } else { Turn::RunUntil(released.min(tick.now + LOOK)) }
    })?;
    Ok(now)
}

/// The arrivals of the loop whose `count` workers begin with number `first`.
fn schedule(spec: &TrialSpec, window: Window, first: u32, count: u32) -> Option<Schedule> {
    let rate = spec.rate_per_s.filter(|_| spec.terminals.is_none())?;
    let workers = f64::from(spec.workers.max(1));
    let share = rate * f64::from(count) / workers;
    let (released, opens) = (window.released, window.opens);
    let number = spec.share.workers_before + first;
    if spec.even_rate {
        let lead = f64::from(number) / f64::from(spec.all_workers().max(1));
        return Some(Schedule::even(lead, share, released, opens));
    }
    let rng = Rng::new(spec.seed, "arrival", u64::from(number));
    Some(Schedule::new(rng, share, released, opens))
}

/// The terminals of the loop whose `count` workers begin with number `first`, in proportion to its workers.
fn seat<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    first: u32,
    count: u32,
) -> Option<Terminals<W::Terminal>> {
    let spec = shared.spec;
    let all = u64::from(spec.terminals?);
    let before =
        |worker| spec.share.terminals_before + share_before(all, worker, spec.workers) as u32;
    let numbers = before(first)..before(first + count);
    let mut terminals = Terminals::new(numbers.len(), count);
    for number in numbers {
        let rng = Rng::new(spec.seed, "terminal", u64::from(number));
        match shared.workload.seat(number, rng) {
            Some((terminal, plan)) => terminals.add(terminal, plan),
            None => {
                shared.abort(DbError::workload("This workload has no terminals with pauses."));
                return None;
            }
        }
    }
    Some(terminals)
}

/// Runs the released workers to their end.
fn measure<F: Future, S: FnMut(Phase, u32, &Frame), W: Workload, D: Driver>(
    tasks: &mut Loop<F>,
    local: &Local<S, W::Terminal>,
    shared: &Shared<'_, W, D>,
    stopped: &impl Fn() -> bool,
) -> io::Result<()> {
    let spec = shared.spec;
    let mut last = 0;
    let mut patience = Nanos::MAX;
    loop {
        tasks.wake_all();
        let mut live = 0;
        let mut stop_now = false;
        let mut over = false;
        // Waiting workers check their time limits only when they are woken.
        let mut look_at_all = Nanos::MAX;
        tasks.run(|tick| {
            if spec.answer_limit.is_some() && look_at_all == Nanos::MAX {
                look_at_all = tick.now.saturating_add(LOOK);
            }
            (last, live) = (tick.now, tick.live);
            let mut recorder = local.recorder.borrow_mut();
            recorder.advance(tick.now);
            // A window that stays open for begun transactions can be closed by hand after its end.
            let is_open = tick.now < local.ends() || !recorder.is_finished();
            stop_now = is_open && stopped();
            if !is_open && patience == Nanos::MAX && shared.control.is_stopped() {
                // The window is closed and keeps what it has; nobody waits for answers that may never come.
                patience = tick.now.saturating_add(INTERRUPTED_DRAIN);
            }
            let cut = local.ends().saturating_add(spec.drain).min(patience);
            over = tick.now >= cut;
            if stop_now || over || tick.now >= look_at_all {
                return Turn::Pause;
            }
            let job = local.hand_out(tick.now);
            Turn::RunUntil((tick.now + LOOK).min(recorder.boundary()).min(cut).min(job))
        })?;
        if live > 0 && !stop_now && !over && last >= look_at_all {
            continue;
        }
        let closes = if spec.finish_begun { last } else { last.min(local.ends()) };
        if live > 0 && stop_now && !over {
            patience = last.saturating_add(INTERRUPTED_DRAIN);
            local.end(last);
            local.recorder.borrow_mut().close(closes);
            continue;
        }
        // All workers have left, or the drain is over.
        local.recorder.borrow_mut().close(closes);
        local.end(closes);
        return Ok(());
    }
}

struct Collected {
    total: Frame,
    host: HostSample,
    conditions: GeneratorConditions,
}

/// Merges the messages of the loops until all are done.
fn collect<W: Workload, D: Driver>(
    receiver: &Receiver<Message>,
    shared: &Shared<'_, W, D>,
    loops: usize,
    mut watch: Option<GeneratorWatch>,
    observer: &mut dyn Observer,
) -> Collected {
    let workers = shared.spec.workers;
    let kinds = shared.workload.transactions().len();
    let mut collector = Collector::new(loops, kinds, shared.spec.is_scheduled());
    let mut window = None;
    let mut sampler = HostSampler::new(monotonic_now());
    let mut window_sampler = HostSampler::new(monotonic_now());
    let mut over = None;
    loop {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(Message::Frame(phase, index, frame)) => collector.take(phase, index, *frame),
            Ok(Message::Released(released)) => {
                observer.connected(workers, workers);
                observer.released(&released);
                window = Some(released);
                window_sampler = HostSampler::new(monotonic_now());
                open(&mut watch);
            }
            Ok(Message::Done) => {
                collector.loop_done();
                // Taken once, while the load still runs: later samples are outside the window.
                over.get_or_insert_with(|| {
                    let now = monotonic_now();
                    let conditions = watch.as_ref().map(|watch| watch.close(now));
                    (window_sampler.sample(now), conditions.unwrap_or_default())
                });
            }
            Err(RecvTimeoutError::Timeout) if window.is_none() => {
                observer.connected(shared.connected.load(Ordering::Relaxed), workers);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let Some(window) = &window else { continue };
        while let Some((phase, index, frame)) = collector.next_complete() {
            if phase == Phase::WarmUp {
                window_sampler = HostSampler::new(monotonic_now());
                open(&mut watch);
            }
            let host = sampler.sample(monotonic_now());
            observer.interval(&MeasuredInterval::new(window, phase, index, frame, host));
        }
    }
    let (host, conditions) = over.unwrap_or_default();
    Collected { total: collector.total().clone(), host, conditions }
}

/// Begins to count anew at the (latest known) opening of the window.
fn open(watch: &mut Option<GeneratorWatch>) {
    if let Some(watch) = watch {
        watch.open(monotonic_now());
    }
}

fn finish<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    gate: &Gate,
    collected: Collected,
    mut ends: Vec<LoopEnd>,
) -> Result<TrialResult, DriveError> {
    let error = shared.take_error();
    let Some(Release { ready, mut window }) = gate.release.get().copied().flatten() else {
        return Err(error.map_or(DriveError::Interrupted, DriveError::Connect));
    };
    window.closes = ends.iter().map(|end| end.closes).max().unwrap_or(window.opens);
    ends.sort_by_key(|end| end.first);
    let delays: Vec<Nanos> = ends.iter().filter_map(|end| end.run_delay).collect();
    let mut conditions = collected.conditions;
    conditions.run_delay_s =
        (!delays.is_empty()).then(|| delays.iter().sum::<Nanos>() as f64 / 1e9);
    let ended = match error {
        Some(error) => TrialEnd::Aborted(error),
        None if shared.control.is_stopped() => TrialEnd::Interrupted,
        None if shared.events_done() => TrialEnd::Events,
        None => TrialEnd::Time,
    };
    let result = TrialResult {
        total: collected.total,
        window,
        connect: ready.saturating_sub(gate.begin),
        late: ends.iter().map(|end| end.late).max().unwrap_or(0),
        ended,
        offered: ends.iter().map(|end| end.offered).sum(),
        in_flight: ends.iter().map(|end| end.in_flight).sum(),
        unfinished: ends.iter().map(|end| end.unfinished).sum(),
        retired: ends.iter().map(|end| end.retired).sum(),
        retired_transactions: ends.iter().map(|end| end.retired_transactions).sum(),
        loops_cpu: ends.iter().map(|end| end.cpu).collect(),
        workers: ends.into_iter().flat_map(|end| end.stats).collect(),
        host: collected.host,
        conditions,
    };
    Ok(result.balanced())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Due times of all arrivals of the first second, over all loops.
    fn arrivals(spec: &TrialSpec, loops: u32) -> Vec<Nanos> {
        let window =
            Window { released: SECOND, opens: SECOND, closes: 2 * SECOND, interval: SECOND };
        let spec = TrialSpec { loops: Some(loops), ..spec.clone() };
        let mut all = Vec::new();
        for range in split(&spec, false) {
            let mut of_loop =
                schedule(&spec, window, range.start, range.end - range.start).unwrap();
            all.extend(
                std::iter::repeat_with(|| of_loop.take()).take_while(|&due| due < 2 * SECOND),
            );
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn arrivals_of_several_generators_are_those_of_as_many_loops() {
        for even_rate in [false, true] {
            let rate_per_s = Some(1_000.0);
            let whole = TrialSpec { rate_per_s, even_rate, ..TrialSpec::closed(10) };
            let alone = arrivals(&whole, 3);
            let parts = (0..3).filter_map(|generator| whole.part(generator, 3));
            let mut together: Vec<Nanos> = parts.flat_map(|part| arrivals(&part, 1)).collect();
            together.sort_unstable();
            // Rates are products of fractions: the last bit of a gap may differ.
            assert_eq!(together.len(), alone.len());
            let apart = |(one, other): (&Nanos, &Nanos)| one.abs_diff(*other);
            assert!(together.iter().zip(&alone).map(apart).max().is_some_and(|most| most <= 1));
            assert!(even_rate != (alone.len() != 1_000), "{}", alone.len());
        }
    }
}
