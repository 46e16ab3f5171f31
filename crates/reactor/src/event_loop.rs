//! The loop: ready tasks, due times, epoll.

use crate::ring::Ring;
use crate::stream::ready_or_pending;
use crate::stream::{Io, chosen_io};
use crate::timers::{Clock, monotonic_now};
use dyno_core::Nanos;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Events taken from the kernel at once.
const BATCH: usize = 128;

/// Receives of one source in a row that have left more to take; then other tasks, due times and signals have their
/// turn.
const FULL_RECEIVES: u32 = 16;

/// The state of this thread's loop, for waiting futures.
pub(crate) struct State {
    clock: Clock,
    virtual_now: Nanos,
    /// `None` with a virtual clock.
    epoll: Option<OwnedFd>,
    /// The ring that the streams of this loop use instead of `epoll`.
    ring: Option<Ring>,
    /// The return of the last wait, and the sources that were ready then.
    woke: Nanos,
    answers: u32,
    current: u32,
    ready: ReadyTasks,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    sources: Vec<Registered>,
    free_sources: Vec<u32>,
    /// Sources that have had [`FULL_RECEIVES`] and are readable again in the next round.
    paused: Vec<u32>,
}

/// The tasks that run in the next round.
pub(crate) struct ReadyTasks {
    list: Vec<u32>,
    /// Marks of the tasks in it.
    marks: Vec<bool>,
}

impl ReadyTasks {
    /// A set for this number of tasks, without any.
    pub(crate) fn new(tasks: usize) -> Self {
        ReadyTasks { list: Vec::with_capacity(tasks), marks: vec![false; tasks] }
    }

    /// Marks a task to be polled; marked twice, it is polled once.
    #[inline]
    pub(crate) fn wake(&mut self, task: u32) {
        if let Some(mark) = self.marks.get_mut(task as usize)
            && !std::mem::replace(mark, true)
        {
            self.list.push(task);
        }
    }

    fn take_all(&mut self, other: &mut ReadyTasks) {
        for task in other.list.drain(..) {
            other.marks[task as usize] = false;
            self.wake(task);
        }
    }
}

#[derive(Clone, Copy)]
struct Registered {
    waiter: u32,
    full_receives: u32,
    flags: epoll::EventFlags,
    generation: u32,
    watches_out: bool,
}

/// The events of all sources. Without OUT: a unix socket reports that edge whenever the peer has read, which would wake
/// the loop once more per query.
const INTEREST: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

impl Registered {
    fn event_data(&self, key: u32) -> epoll::EventData {
        epoll::EventData::new_u64(u64::from(self.generation) << 32 | u64::from(key))
    }
}

thread_local! {
    /// A [`Loop`] that ends takes it out: without a destructor, each access is spared the question whether it has run.
    static STATE: RefCell<ManuallyDrop<Option<State>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
    /// The loop of this thread has a virtual clock. Apart from the state, as the clock is read for each answer.
    static IS_VIRTUAL: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(crate) fn with_state<R>(f: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(|state| {
        f(state.as_mut().expect("a dyno future must be polled by a Loop of the same thread"))
    })
}

#[inline]
pub(crate) fn current_time() -> Nanos {
    if IS_VIRTUAL.get() { with_state(|state| state.virtual_now) } else { monotonic_now() }
}

impl State {
    fn new(clock: Clock, tasks: usize) -> io::Result<Self> {
        let (epoll, ring) = match &clock {
            Clock::Monotonic(Io::Epoll) => (Some(create_epoll()?), None),
            Clock::Monotonic(Io::Uring) => (Some(create_epoll()?), Some(Ring::new(tasks)?)),
            Clock::Virtual => (None, None),
            Clock::Shared(time, number) => {
                time.enter(*number);
                (None, None)
            }
        };
        Ok(State {
            clock,
            virtual_now: 0,
            epoll,
            ring,
            woke: 0,
            answers: 0,
            current: 0,
            ready: ReadyTasks::new(tasks),
            timers: BinaryHeap::with_capacity(tasks * 2 + 16),
            sources: Vec::with_capacity(tasks),
            free_sources: Vec::with_capacity(tasks),
            paused: Vec::with_capacity(tasks),
        })
    }

    /// Marks a task to be polled in this turn.
    #[inline]
    pub(crate) fn wake(&mut self, task: u32) {
        self.ready.wake(task);
    }

    /// The ring, and the task that runs now.
    #[inline]
    pub(crate) fn ring(&mut self) -> Option<(&mut Ring, u32)> {
        let current = self.current;
        self.ring.as_mut().map(|ring| (ring, current))
    }

    pub(crate) fn wake_current(&mut self) {
        self.wake(self.current);
    }

    /// Wakes the current task at this time.
    pub(crate) fn arm(&mut self, due: Nanos) {
        self.timers.push(Reverse((due, self.current)));
    }

    /// Watches a descriptor; returns its key. Fails on a virtual clock.
    pub(crate) fn register(&mut self, fd: BorrowedFd<'_>) -> io::Result<u32> {
        let epoll = self.epoll.as_ref().ok_or_else(|| {
            io::Error::other("a loop with a virtual clock has no file descriptors")
        })?;
        let key = self.free_sources.pop().unwrap_or_else(|| {
            self.sources.push(Registered {
                waiter: 0,
                full_receives: 0,
                flags: epoll::EventFlags::empty(),
                generation: 0,
                watches_out: false,
            });
            (self.sources.len() - 1) as u32
        });
        let entry = &mut self.sources[key as usize];
        entry.waiter = self.current;
        entry.flags = epoll::EventFlags::OUT;
        entry.watches_out = false;
        let added = epoll::add(epoll, fd, entry.event_data(key), INTEREST);
        if let Err(error) = added {
            self.free_sources.push(key);
            return Err(error.into());
        }
        Ok(key)
    }

    /// Stops watching a descriptor and frees its key.
    pub(crate) fn deregister(&mut self, key: u32, fd: BorrowedFd<'_>) {
        if let Some(epoll) = &self.epoll {
            // The descriptor is about to be closed, which removes it anyway.
            let _ = epoll::delete(epoll, fd);
        }
        // Events of the old owner may be in the batch still: the new generation marks them.
        let entry = &mut self.sources[key as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free_sources.push(key);
    }

    #[inline]
    pub(crate) fn poll_flag(&mut self, key: u32, wanted: epoll::EventFlags) -> Poll<()> {
        let current = self.current;
        let entry = &mut self.sources[key as usize];
        entry.waiter = current;
        ready_or_pending(entry.flags.intersects(wanted))
    }

    #[inline]
    pub(crate) fn clear_readable(&mut self, key: u32) {
        let entry = &mut self.sources[key as usize];
        entry.flags.remove(epoll::EventFlags::IN);
        entry.full_receives = 0;
    }

    /// A receive has filled all that was offered: a peer that sends faster than its task takes must not keep the loop.
    pub(crate) fn filled(&mut self, key: u32) {
        let entry = &mut self.sources[key as usize];
        entry.full_receives += 1;
        if entry.full_receives >= FULL_RECEIVES {
            entry.full_receives = 0;
            entry.flags.remove(epoll::EventFlags::IN);
            self.paused.push(key);
        }
    }

    /// No edge tells of bytes that were there before.
    fn resume_paused(&mut self) {
        while let Some(key) = self.paused.pop() {
            let entry = &mut self.sources[key as usize];
            entry.flags |= epoll::EventFlags::IN;
            let waiter = entry.waiter;
            self.wake(waiter);
        }
    }

    /// Also watches the source for OUT from now on.
    #[cold]
    pub(crate) fn clear_writable(&mut self, key: u32, fd: BorrowedFd<'_>) {
        let entry = &mut self.sources[key as usize];
        if let Some(epoll) = &self.epoll
            && !entry.watches_out
        {
            let interest = INTEREST | epoll::EventFlags::OUT;
            if epoll::modify(epoll, fd, entry.event_data(key), interest).is_err() {
                // The owner then asks the socket repeatedly, which is slow but right.
                return;
            }
            entry.watches_out = true;
        }
        entry.flags.remove(epoll::EventFlags::OUT);
    }

    /// Moves due timers to the ready tasks.
    fn fire_timers(&mut self, now: Nanos) {
        while let Some(&Reverse((due, task))) = self.timers.peek() {
            if due > now {
                break;
            }
            self.timers.pop();
            self.wake(task);
        }
    }

    fn next_due(&self, limit: Nanos) -> Nanos {
        self.timers.peek().map_or(limit, |&Reverse((due, _))| due.min(limit))
    }

    fn wait_epoll(
        &mut self,
        timeout: Option<Nanos>,
        buffer: &mut [MaybeUninit<epoll::Event>; BATCH],
    ) -> io::Result<()> {
        let Some(epoll) = &self.epoll else { return Ok(()) };
        let waited = epoll::wait(epoll, &mut buffer[..], timeout.map(timespec).as_ref());
        self.woke = monotonic_now();
        match waited {
            Ok((events, _)) => {
                self.answers += events.len() as u32;
                self.take_events(events);
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(wait_error(error)),
        }
    }

    fn take_events(&mut self, events: &[epoll::Event]) {
        for event in events {
            let data = event.data.u64();
            let (key, generation) = (data as u32, (data >> 32) as u32);
            let entry = &mut self.sources[key as usize];
            if entry.generation != generation {
                continue;
            }
            let mut flags = event.flags;
            let broken = epoll::EventFlags::HUP | epoll::EventFlags::ERR | epoll::EventFlags::RDHUP;
            if flags.intersects(broken) {
                flags |= epoll::EventFlags::IN | epoll::EventFlags::OUT;
            }
            entry.flags |= flags;
            let waiter = entry.waiter;
            self.wake(waiter);
        }
    }
}

/// A decision of the loop's owner after each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Continue until this time at the latest.
    RunUntil(Nanos),
    /// Return to the owner; the tasks stay.
    Pause,
}

/// The state of a loop after each round.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    pub now: Nanos,
    /// Unfinished tasks.
    pub live: usize,
    /// The return of the wait before this round; only with a real clock.
    pub woke: Nanos,
    /// Sources that were ready then, whose tasks this round has run one after the other.
    pub answers: u32,
}

/// An event loop and its tasks; one per thread.
pub struct Loop<F: Future> {
    tasks: Vec<Task<F>>,
    live: usize,
    polling: Vec<u32>,
}

enum Task<F: Future> {
    Running(Pin<Box<F>>),
    Done(F::Output),
    Gone,
}

impl<F: Future> Loop<F> {
    /// Makes the loop of this thread, or panics when it has one. All tasks are polled in the first round.
    pub fn new(clock: Clock, tasks: impl IntoIterator<Item = F>) -> io::Result<Self> {
        let tasks: Vec<_> =
            tasks.into_iter().map(|future| Task::Running(Box::pin(future))).collect();
        let mut state = State::new(clock, tasks.len())?;
        for task in 0..tasks.len() {
            state.wake(task as u32);
        }
        STATE.with_borrow_mut(|slot| {
            assert!(slot.is_none(), "this thread already has a Loop");
            IS_VIRTUAL.set(state.epoll.is_none());
            **slot = Some(state);
        });
        let live = tasks.len();
        Ok(Loop { polling: Vec::with_capacity(live), tasks, live })
    }

    /// Makes every task run in the next round.
    pub fn wake_all(&mut self) {
        with_state(|state| {
            for task in 0..self.tasks.len() {
                state.wake(task as u32);
            }
        });
    }

    /// Runs rounds of ready tasks until `owner` returns [`Turn::Pause`] or all tasks are done.
    pub fn run(&mut self, mut owner: impl FnMut(Tick) -> Turn) -> io::Result<()> {
        let mut buffer = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        while self.live > 0 {
            self.poll_ready();
            let time = current_time();
            let (woke, answers) =
                with_state(|state| (state.woke, std::mem::take(&mut state.answers)));
            let limit = match owner(Tick { now: time, live: self.live, woke, answers }) {
                Turn::Pause => return Ok(()),
                Turn::RunUntil(limit) => limit,
            };
            if self.live > 0 {
                wait(time, limit, &mut buffer)?;
            }
        }
        Ok(())
    }

    /// Lets the other loops of a [`Clock::Shared`] run that are due now.
    pub fn pass_turn(&mut self) {
        with_state(|state| {
            if let Clock::Shared(time, number) = &state.clock {
                time.wait(*number, state.virtual_now);
            }
        });
    }

    /// Runs all tasks to their ends; returns their outputs in order.
    pub fn finish(mut self) -> io::Result<Vec<F::Output>> {
        self.run(|_| Turn::RunUntil(Nanos::MAX))?;
        Ok(self.take_outputs().into_iter().flatten().collect())
    }

    /// The outputs of finished tasks, in order; `None` for the others, which are dropped.
    pub fn take_outputs(&mut self) -> Vec<Option<F::Output>> {
        self.tasks
            .iter_mut()
            .map(|task| match std::mem::replace(task, Task::Gone) {
                Task::Done(output) => Some(output),
                Task::Running(_) | Task::Gone => None,
            })
            .collect()
    }

    fn poll_ready(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        with_state(|state| std::mem::swap(&mut state.ready.list, &mut self.polling));
        for index in 0..self.polling.len() {
            let number = self.polling[index];
            with_state(|state| {
                state.current = number;
                state.ready.marks[number as usize] = false;
            });
            let task = &mut self.tasks[number as usize];
            if let Task::Running(future) = task
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                *task = Task::Done(output);
                self.live -= 1;
            }
        }
        self.polling.clear();
    }
}

impl<F: Future> Drop for Loop<F> {
    fn drop(&mut self) {
        // Tasks own sources, which deregister themselves from the state: they go first.
        self.tasks.clear();
        let state = STATE.with_borrow_mut(|state| state.take());
        IS_VIRTUAL.set(false);
        if let Some(State { clock: Clock::Shared(time, _), .. }) = state {
            time.leave();
        }
    }
}

/// Sleeps until an event, a due time or `limit`, and marks the tasks concerned ready.
fn wait(
    now: Nanos,
    limit: Nanos,
    buffer: &mut [MaybeUninit<epoll::Event>; BATCH],
) -> io::Result<()> {
    with_state(|state| {
        state.fire_timers(now);
        state.resume_paused();
        let due = if state.ready.list.is_empty() { state.next_due(limit) } else { now };
        let Some(epoll) = &state.epoll else {
            assert!(due < Nanos::MAX, "every task of a virtual loop waits for ever");
            state.virtual_now = due.max(now);
            if let Clock::Shared(time, number) = &state.clock {
                time.wait(*number, state.virtual_now);
            }
            state.fire_timers(due);
            return Ok(());
        };
        let timeout = (due < Nanos::MAX).then(|| due.saturating_sub(now));
        match &mut state.ring {
            None => state.wait_epoll(timeout, buffer)?,
            Some(ring) => {
                let waited = ring.wait(timeout, epoll.as_fd(), &mut state.ready)?;
                (state.woke, state.answers) = (waited.woke, waited.answers);
                if waited.epoll_is_ready {
                    state.wait_epoll(Some(0), buffer)?;
                }
            }
        }
        state.fire_timers(state.woke);
        Ok(())
    })
}

#[cold]
fn wait_error(error: rustix::io::Errno) -> io::Error {
    io::Error::other(format!("epoll_pwait2 does not wait for events: {error}"))
}

fn create_epoll() -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut buffer = [MaybeUninit::<epoll::Event>::uninit(); 1];
    epoll::wait(&epoll, &mut buffer[..], Some(&timespec(0))).map_err(|error| match error {
        rustix::io::Errno::NOSYS => {
            io::Error::other("this kernel has no epoll_pwait2; dyno needs Linux 5.11 or newer")
        }
        other => other.into(),
    })?;
    Ok(epoll)
}

/// The duration in the form of the kernel.
fn timespec(span: Nanos) -> Timespec {
    Timespec { tv_sec: (span / 1_000_000_000) as i64, tv_nsec: (span % 1_000_000_000) as i64 }
}

/// A task of set-up work. Its type is erased, so that the loop of all such work is compiled once.
type ColdTask<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs one future to its end on its own loop.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let mut outputs = run_all([future])?;
    Ok(outputs.remove(0))
}

/// Runs `future` to its end within a task of this thread's loop, for a task that can't return to it; `None` if it has
/// no end before `limit`. The loop's other tasks wait meanwhile, and so does its owner.
pub fn block_in_task<F: Future>(future: F, limit: Nanos) -> io::Result<Option<F::Output>> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let mut buffer = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
    // Other tasks that become ready stay ready until the loop continues. In its list they would end each wait at once.
    let mut ready = with_state(|state| {
        let tasks = state.ready.marks.len();
        std::mem::replace(&mut state.ready, ReadyTasks::new(tasks))
    });
    let outcome = loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            break Ok(Some(output));
        }
        let time = current_time();
        if time >= limit {
            break Ok(None);
        }
        if let Err(error) = wait(time, limit, &mut buffer) {
            break Err(error);
        }
        with_state(|state| ready.take_all(&mut state.ready));
    };
    with_state(|state| {
        ready.take_all(&mut state.ready);
        state.ready = ready;
    });
    outcome
}

/// Runs futures concurrently on one loop; returns their outputs in order. For set-up work.
pub fn run_all<F: Future>(futures: impl IntoIterator<Item = F>) -> io::Result<Vec<F::Output>> {
    let futures: Vec<F> = futures.into_iter().collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let tasks = futures.into_iter().zip(&mut outputs).map(|(future, output)| {
        Box::pin(async move { *output = Some(future.await) }) as ColdTask<'_>
    });
    run_cold(tasks.collect())?;
    Ok(outputs.into_iter().flatten().collect())
}

fn run_cold(tasks: Vec<ColdTask<'_>>) -> io::Result<()> {
    Loop::new(Clock::Monotonic(chosen_io().io), tasks)?.finish().map(drop)
}

/// Runs the tasks `0..tasks` concurrently on `loops` threads with a loop each; returns their outputs in order. For
/// set-up work.
pub fn run_spread<T: Send>(
    tasks: u32,
    loops: u32,
    task: impl AsyncFn(u32) -> T + Sync,
) -> io::Result<Vec<T>> {
    let loops = loops.clamp(1, tasks.max(1));
    let task = &task;
    let finished = thread::scope(|scope| {
        let threads: Vec<_> = (0..loops)
            .map(|first| {
                let numbers = (first..tasks).step_by(loops as usize);
                thread::Builder::new()
                    .spawn_scoped(scope, move || run_all(numbers.map(|number| task(number))))
            })
            .collect::<io::Result<_>>()?;
        let outputs = threads.into_iter().map(|thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        outputs.collect::<io::Result<Vec<Vec<T>>>>()
    })?;
    let mut finished: Vec<_> = finished.into_iter().map(Vec::into_iter).collect();
    let in_order = (0..tasks as usize).filter_map(|number| {
        let loop_index = number % finished.len();
        finished[loop_index].next()
    });
    Ok(in_order.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_wait_is_an_error_and_leaves_the_thread_usable() {
        let broken = async {
            with_state(|state| {
                let no_epoll = std::fs::File::open("/dev/null").expect("a file");
                drop(state.epoll.replace(no_epoll.into()));
            });
            crate::timers::sleep_until(Nanos::MAX).await;
        };
        let alone = Loop::new(Clock::Monotonic(Io::Epoll), [broken]).expect("a loop");
        let error = alone.finish().unwrap_err().to_string();
        assert!(error.starts_with("epoll_pwait2 does not wait for events: "), "{error}");
        assert_eq!(block_on(async { 7 }).expect("another loop"), 7);
    }

    #[test]
    fn tasks_are_spread_over_threads_and_their_outputs_are_in_order() {
        for (tasks, loops, threads) in [(0, 3, 0), (1, 0, 1), (7, 3, 3), (3, 7, 3)] {
            let outputs = run_spread(tasks, loops, async |number| {
                crate::timers::yield_now().await;
                (number, thread::current().id())
            });
            let (numbers, ids): (Vec<_>, std::collections::HashSet<_>) =
                outputs.unwrap().into_iter().unzip();
            assert_eq!(numbers, (0..tasks).collect::<Vec<_>>());
            assert_eq!(ids.len(), threads);
        }
    }
}
