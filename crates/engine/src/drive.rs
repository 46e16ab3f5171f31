//! One trial over all loops.

use crate::control::give_back_pages;
use crate::control::{Control, Release, StartGate};
use crate::generator::{GeneratorWatch, run_delay_of_thread};
use crate::merge::{Collected, LoopMessage, collect};
use crate::record::{Frame, FramePlace, FrameSink, MeasuredInterval, Phase, Recorder, Window};
use crate::shared::{Local, Shared, first_worker};
use crate::trial::{TrialEnd, TrialResult, TrialSpec, WorkerStats};
use crate::worker::worker;
use dyno_core::{DbError, Driver, MILLISECOND, Nanos, SECOND, Workload};
use dyno_reactor::{Clock, Io, Loop, SharedTime, Turn, chosen_io, monotonic_now, now};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

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
    /// The sums of all workers, in their order, at the end of the interval that follows ([`TrialSpec::watch_workers`]).
    fn workers(&mut self, _workers: &[WorkerStats]) {}
    /// An interval is complete over all loops.
    fn interval(&mut self, _interval: &MeasuredInterval) {}
    /// A worker has failed after the release, which ends the trial. Called repeatedly until the other workers have
    /// ended.
    fn failed(&mut self, _error: &DbError) {}
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

/// The result of one loop.
struct LoopEnd {
    first: u32,
    stats: Vec<WorkerStats>,
    closes: Nanos,
    /// The time after which nothing began.
    ends: Nanos,
    /// Arrivals in the window that its workers have taken.
    offered: Option<u64>,
    in_flight: u64,
    longest_in_flight: Nanos,
    unfinished: u32,
    retired: u32,
    retired_transactions: u64,
    cpu: Nanos,
    /// Delay of its workers' start after the release.
    late: Nanos,
    /// Time without a CPU since the window opened.
    run_delay: Option<Nanos>,
}

/// Loops (threads) of a trial that does not say how many: one per core, also if the server shares these. A server's
/// thread runs on the core of the loop that wakes it, so with fewer loops few workers leave cores idle: two workers on
/// two cores had half of the throughput. Fewer loops cost less CPU only if each has many workers (`bench/tried.md`).
pub fn default_loops(workers: u32) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    cores.min(workers).max(1)
}

/// Runs a trial until all workers have left. Errors after the connects are in [`TrialResult::ended`].
pub fn drive<W: Workload, D: Driver>(
    workload: &W,
    driver: &D,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    give_back_pages();
    let workers = spec.workers.max(1);
    let loop_count = spec.loops.unwrap_or_else(|| default_loops(workers)).clamp(1, workers);
    let loops = if driver.blocks() { workers } else { loop_count };
    let io =
        if driver.blocks() { Io::Epoll } else { chosen_io().for_tasks(workers.div_ceil(loops)) };
    let clocks = (0..loops).map(|_| Clock::Monotonic(io)).collect();
    drive_on(clocks, &Shared::new(workload, driver, spec, control), observer)
}

/// Runs a trial with a virtual clock, on one loop unless the trial says how many: for tests with a simulated driver.
/// The observer hears everything after the end; only the workload can stop such a trial early.
pub fn drive_simulated<W: Workload, D: Driver>(
    workload: &W,
    driver: &D,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    let loops = spec.loops.unwrap_or(1).clamp(1, spec.workers.max(1)) as usize;
    let time = Arc::new(SharedTime::new(loops));
    let clocks = (0..loops).map(|number| Clock::Shared(Arc::clone(&time), number)).collect();
    drive_on(clocks, &Shared::new(workload, driver, spec, control), observer)
}

/// The loop's core, and its exchange with the collecting thread.
struct LoopPlace {
    number: usize,
    clock: Clock,
    /// The numbers of its workers.
    range: Range<u32>,
    sender: Sender<LoopMessage>,
    /// Empty frames.
    spare: Receiver<Box<Frame>>,
}

/// Runs a trial on a loop for each clock.
fn drive_on<W: Workload, D: Driver>(
    clocks: Vec<Clock>,
    shared: &Shared<'_, W, D>,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    let (workers, loops) = (shared.spec.workers.max(1), clocks.len() as u32);
    let is_real = clocks.iter().all(|clock| matches!(clock, Clock::Monotonic(_)));
    let gate = StartGate::new(clocks.len(), if is_real { monotonic_now() } else { 0 });
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let (mut threads, mut spares) = (Vec::new(), Vec::new());
        for (number, clock) in (0..).zip(clocks) {
            let range =
                first_worker(number, workers, loops)..first_worker(number + 1, workers, loops);
            let (give, spare) = channel();
            // Its receiver is here.
            let _ = give.send(shared.new_frame(is_real));
            spares.push(give);
            let (sender, number) = (sender.clone(), number as usize);
            let place = LoopPlace { number, clock, range, sender, spare };
            let thread = std::thread::Builder::new().name(format!("loop-{number}"));
            let gate = &gate;
            match thread.spawn_scoped(scope, move || run_loop(shared, gate, place)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.control.stop();
                    gate.expect_only(threads.len());
                    return Err(DriveError::System(error));
                }
            }
        }
        drop(sender);
        let mut gather = |watch| collect(&receiver, &spares, shared, watch, observer);
        let collected = is_real.then(|| gather(Some(GeneratorWatch::new(monotonic_now()))));
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let ends = ends.collect::<io::Result<Vec<_>>>().map_err(DriveError::System)?;
        finish(shared, &gate, collected.unwrap_or_else(|| gather(None)), ends)
    })
}

fn run_loop<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    gate: &StartGate,
    place: LoopPlace,
) -> io::Result<LoopEnd> {
    let mut guard = LoopGuard { control: shared.control, gate, is_well: false };
    let end = run_on(shared, gate, place);
    guard.is_well = end.is_ok();
    end
}

/// The other loops wait for no loop that has failed or panicked.
struct LoopGuard<'a> {
    control: &'a Control,
    gate: &'a StartGate,
    is_well: bool,
}

impl Drop for LoopGuard<'_> {
    fn drop(&mut self) {
        if !self.is_well {
            self.control.stop();
            self.gate.arrive();
        }
    }
}

fn run_on<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    gate: &StartGate,
    place: LoopPlace,
) -> io::Result<LoopEnd> {
    let LoopPlace { number, clock, range, sender, spare } = place;
    let (first, count) = (range.start, range.end - range.start);
    let is_real = matches!(clock, Clock::Monotonic(_));
    let (cpu, delay_before, delay_after) = (Cell::new(0), Cell::new(None), Cell::new(None));
    let stats = Rc::new(RefCell::new(vec![WorkerStats::default(); count as usize]));
    let first_frame = shared.new_frame(is_real);
    let recorder = Recorder::new(first_frame, |place: FramePlace, frame: &mut Box<Frame>| {
        if place.is_last {
            delay_after.set(run_delay_of_thread());
        }
        if place.phase == Phase::Measured {
            cpu.set(cpu.get() + frame.cpu_ns);
        } else {
            delay_before.set(run_delay_of_thread());
        }
        // Without a spare the collecting thread has had no CPU for an interval.
        let empty = spare.try_recv().unwrap_or_else(|_| shared.new_frame(is_real));
        let workers = shared.spec.watch_workers.then(|| stats.borrow().clone());
        let frame = std::mem::replace(frame, empty);
        // The receiver outlives all loops.
        let _ = sender.send(LoopMessage::Frame { number, place, frame, workers });
    });
    let local = Local::new(recorder, number, first, Rc::clone(&stats));
    let mut tasks = Loop::new(clock, range.map(|id| worker(shared, &local, id)))?;
    let late = catch_unwind(AssertUnwindSafe(|| -> io::Result<Nanos> {
        let window = agree_on_window(&mut tasks, &local, shared, gate, is_real)?;
        let Some(window) = window else { return Ok(0) };
        let started_at = hold_until_release(&mut tasks, window.released, &|| shared.is_stopped())?;
        if first == 0 {
            let _ = sender.send(LoopMessage::Released(window));
        }
        shared.schedule_arrivals(window, gate.loops());
        delay_before.set(run_delay_of_thread());
        // A trial that was stopped before its start only ends.
        let is_early = started_at < window.released;
        local.release(window, if is_early { started_at } else { shared.spec.ends(window.opens) });
        measure(&mut tasks, &local, shared, &|| shared.is_stopped())?;
        Ok(started_at.saturating_sub(window.released))
    }))
    .unwrap_or_else(|panic| {
        give_up(&*panic, shared, gate, &local);
        Ok(0)
    })?;
    let delays = delay_before.get().zip(delay_after.get());
    let outputs = if gate.release().is_some() { tasks.take_outputs() } else { Vec::new() };
    let unfinished = outputs.iter().filter(|output| output.is_none()).count() as u32;
    drop(tasks);
    let _ = sender.send(LoopMessage::Done);
    Ok(LoopEnd {
        first,
        stats: local.stats.take(),
        closes: local.recorder.borrow().closes(),
        ends: local.ends(),
        offered: shared.spec.is_scheduled().then(|| local.offered.get()),
        in_flight: local.recorder.borrow().in_flight_at_close,
        longest_in_flight: local.recorder.borrow().longest_in_flight,
        unfinished,
        retired: local.retired.get(),
        retired_transactions: local.retired_transactions.get(),
        cpu: cpu.get(),
        late,
        run_delay: delays.map(|(before, after)| after.saturating_sub(before)),
    })
}

/// A worker of this loop has panicked: the trial has failed, and keeps what was measured.
fn give_up<S: FrameSink, W: Workload, D: Driver>(
    panic: &(dyn Any + Send),
    shared: &Shared<'_, W, D>,
    gate: &StartGate,
    local: &Local<S>,
) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let error = DbError::workload("A worker panicked, which is a defect of dyno.").with_hint(
        "report it with the command and the suite; what was measured until then is kept",
    );
    shared.abort(error.with_detail(text.unwrap_or("without a message")));
    // Once more does no harm: a loop that has been there before panics only after all have.
    gate.arrive();
    let at = now();
    local.end(at);
    let closes = if shared.spec.finish_begun { at } else { local.ends() };
    local.recorder.borrow_mut().close(closes);
}

/// Connects the workers of a loop, waits for the other loops and agrees with them on the window.
fn agree_on_window<F: Future, S: FrameSink, W: Workload, D: Driver>(
    tasks: &mut Loop<F>,
    local: &Local<S>,
    shared: &Shared<'_, W, D>,
    gate: &StartGate,
    is_real: bool,
) -> io::Result<Option<Window>> {
    let mut now = 0;
    tasks.run(|tick| {
        now = tick.now;
        let settled = local.ready.get() as usize == tick.live;
        if settled || shared.is_stopped() { Turn::Pause } else { Turn::RunUntil(tick.now + LOOK) }
    })?;
    gate.arrive();
    if is_real {
        gate.wait();
    } else {
        // Loops of a virtual time begin in the order of their numbers.
        tasks.pass_turn();
        while !gate.is_complete() {
            tasks.pass_turn();
        }
    }
    Ok(gate.pass(
        || if is_real { monotonic_now() } else { now },
        shared.spec,
        |now| if shared.is_stopped() { None } else { shared.control.start_at(now) },
    ))
}

/// Holds connected workers until `released`, or until the trial is stopped; returns that time.
fn hold_until_release<F: Future>(
    tasks: &mut Loop<F>,
    released: Nanos,
    is_stopped: &impl Fn() -> bool,
) -> io::Result<Nanos> {
    let mut now = 0;
    tasks.run(|tick| {
        now = tick.now;
        let is_over = tick.now >= released || is_stopped();
        if is_over { Turn::Pause } else { Turn::RunUntil(released.min(tick.now + LOOK)) }
    })?;
    Ok(now)
}

/// Runs the released workers to their end.
fn measure<F: Future, S: FrameSink, W: Workload, D: Driver>(
    tasks: &mut Loop<F>,
    local: &Local<S>,
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
            recorder.handled(tick.answers, tick.woke, tick.now);
            recorder.advance(tick.now);
            // A window that stays open for begun transactions can be closed by hand after its end.
            let is_open = tick.now < local.ends() || !recorder.is_finished();
            stop_now = is_open && stopped();
            if !is_open && patience == Nanos::MAX && shared.control.is_stopped() {
                // The window is closed and keeps what it has; no one waits for answers that may never come.
                patience = tick.now.saturating_add(INTERRUPTED_DRAIN);
            }
            let cut = local.ends().saturating_add(spec.drain).min(patience);
            over = tick.now >= cut;
            if stop_now || over || tick.now >= look_at_all {
                return Turn::Pause;
            }
            if let Some(terminals) = &shared.terminals {
                local.hand_out(terminals, tick.now);
            }
            Turn::RunUntil((tick.now + LOOK).min(recorder.boundary()).min(cut))
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
        let mut recorder = local.recorder.borrow_mut();
        recorder.close(closes);
        recorder.cut(last);
        local.end(closes);
        return Ok(());
    }
}

/// Makes the result of a trial of what its loops have left.
fn finish<W: Workload, D: Driver>(
    shared: &Shared<'_, W, D>,
    gate: &StartGate,
    collected: Collected,
    mut ends: Vec<LoopEnd>,
) -> Result<TrialResult, DriveError> {
    let error = shared.first_error();
    let Some(Release { ready, mut window }) = gate.release() else {
        return Err(error.map_or(DriveError::Interrupted, DriveError::Connect));
    };
    window.closes = ends.iter().map(|end| end.closes).max().unwrap_or(window.opens);
    ends.sort_by_key(|end| end.first);
    let ended_at = ends.iter().map(|end| end.ends).min().unwrap_or(window.opens);
    let untaken = shared.untaken_arrivals(ended_at);
    let offered = ends.iter().map(|end| end.offered).sum::<Option<u64>>();
    let delays: Vec<Nanos> = ends.iter().filter_map(|end| end.run_delay).collect();
    let mut conditions = collected.conditions;
    conditions.run_delay_s =
        (!delays.is_empty()).then(|| delays.iter().sum::<Nanos>() as f64 / 1e9);
    let unfinished = ends.iter().map(|end| end.unfinished).sum();
    // A stop after the end of the window takes nothing from it, unless it cuts transactions off.
    let is_cut = ended_at < shared.spec.ends(window.opens) || unfinished > 0;
    let ended = match error {
        Some(error) => TrialEnd::Aborted(error),
        None if is_cut && shared.control.is_stopped() => TrialEnd::Interrupted,
        None if shared.events_done() => TrialEnd::Events,
        None => TrialEnd::Time,
    };
    let result = TrialResult {
        total: collected.total,
        window,
        connect: ready.saturating_sub(gate.begin),
        late: ends.iter().map(|end| end.late).max().unwrap_or(0),
        ended,
        offered: offered.map(|taken| taken + untaken),
        in_flight: ends.iter().map(|end| end.in_flight).sum(),
        longest_in_flight: ends.iter().map(|end| end.longest_in_flight).max().unwrap_or(0),
        unfinished,
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
    use super::default_loops;

    #[test]
    fn loops_are_as_many_as_cores_or_workers_and_at_least_one() {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        assert_eq!([0, 1].map(default_loops), [1, 1]);
        for workers in 1..=cores {
            assert_eq!(default_loops(workers), workers);
        }
        assert_eq!([cores + 1, 64 * cores].map(default_loops), [cores, cores]);
    }
}
