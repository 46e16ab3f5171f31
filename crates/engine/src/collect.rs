//! Takes the frames of all loops, on the caller's thread.

use crate::drive::Observer;
use crate::generator::GeneratorWatch;
use crate::record::{Collector, Frame, FramePlace, MeasuredInterval, Phase, Window};
use crate::shared::Shared;
use crate::trial::WorkerStats;
use dyno_core::{Driver, MILLISECOND, Nanos, Workload};
use dyno_facts::{GeneratorConditions, HostSample};
use dyno_observe::HostSampler;
use dyno_reactor::monotonic_now;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The longest wait for a message.
const PATIENCE: Nanos = 100 * MILLISECOND;
/// The longest pause between the frames of two loops.
const PAUSE: Nanos = 2 * MILLISECOND;

pub(crate) enum LoopMessage {
    /// Of the loop with this number, with the sums of its workers where they are watched.
    Frame {
        number: usize,
        of: FramePlace,
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

    /// Begins to count anew at the (latest known) opening of the window.
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

/// Passes on those of all workers at the end of an interval, where they are watched.
fn tell_workers(sums: &mut [SumsOfLoop], place: (Phase, u32), observer: &mut dyn Observer) {
    let of_loop = |sums: &mut SumsOfLoop| {
        let is_next = sums.front().is_some_and(|(at, _)| *at == place);
        is_next.then(|| sums.pop_front()).flatten().map(|(_, workers)| workers)
    };
    let workers: Vec<WorkerStats> = sums.iter_mut().filter_map(of_loop).flatten().collect();
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
        let is_closed = |window: Window| look.watch.is_some() && monotonic_now() >= window.closes;
        if window.is_some_and(is_closed) {
            look.close();
        }
        match message {
            Ok(LoopMessage::Frame { number, of, mut frame, workers }) => {
                if of.is_last {
                    look.close();
                }
                collector.take(of.phase, of.index, &frame);
                sums[number].extend(workers.map(|workers| ((of.phase, of.index), workers)));
                frame.clear();
                // A loop that has ended takes none.
                let _ = spares[number].send(frame);
                if !of.is_last && !pause.is_zero() {
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
            tell_workers(&mut sums, (phase, index), observer);
            observer.interval(&MeasuredInterval::new(window, phase, index, frame, host));
        }
    }
    let (host, conditions) = look.seen.unwrap_or_default();
    Collected { total: collector.total().clone(), host, conditions }
}
