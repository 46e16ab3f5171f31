//! Threads that ask each node once a second what it does, in their own session. The loops that make
//! the load know nothing of it.

use super::replicas;
use super::{AllSeen, Nodes, watch_usage};
use crate::databases::{ReachedNode, ServerPlace};
use crate::signals::unless_stopped;
use dyno_core::{AdminDriver, AdminSession, Cause, DbError, MILLISECOND, Nanos, SECOND};
use dyno_engine::record::Window;
use dyno_facts::{Event, EventKind, Message, say};
use dyno_observe::{HostSampler, Questions, Sample, ServerWindow, server_restarted};
use dyno_reactor::{Elapsed, block_on, now, sleep_until, timeout};
use dyno_store::NodeSeries;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

const EVERY: Nanos = SECOND;
const PATIENCE: Nanos = 5 * SECOND;
/// Interval at which the thread looks whether the trial is over.
const LOOK: Nanos = 50 * MILLISECOND;

/// Data that the thread of a trial shares with the one that samples.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    window: OnceLock<Window>,
    is_over: AtomicBool,
    events: Mutex<Vec<Event>>,
}

impl Sampling {
    /// All sessions of the trial are connected: sampling begins, and takes none of their places.
    pub(crate) fn released(&self, window: Window) {
        // Only the first call counts.
        let _ = self.window.set(window);
    }

    /// True once all sessions of the trial are connected.
    pub(super) fn is_begun(&self) -> bool {
        self.window.get().is_some()
    }

    /// Waits until the trial begins; `None` when it never does.
    pub(super) fn begun(&self) -> Option<Window> {
        loop {
            match self.window.get() {
                Some(window) => break Some(*window),
                None if self.is_over() => break None,
                None => std::thread::sleep(Duration::from_nanos(LOOK)),
            }
        }
    }

    /// Events on the server since the last call.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn tell(&self, at_s: f64, text: Message) {
        let event = Event { at_s: Some(at_s), ..Event::new(EventKind::Server, text) };
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Does `work` while a thread for each node samples it and another one looks how fresh reads are, and
/// returns what all have found; events are left in `sampling`. Embedded databases have no server to ask,
/// and another session would be in the way of the others.
pub(crate) fn sampled<T>(
    nodes: &Nodes<'_>,
    series: NodeSeries,
    sampling: &Sampling,
    work: impl FnOnce() -> T,
) -> (T, AllSeen) {
    if !nodes.is_sampled {
        return (work(), AllSeen::default());
    }
    let series = Mutex::new(Some(series));
    std::thread::scope(|scope| {
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let sample = |node| {
            if nodes.is_passthrough(node) {
                return None;
            }
            let sampler = Sampler {
                node,
                name: nodes.name(node),
                is_named: nodes.is_several(),
                sampling,
                series: &series,
                host: None,
                questions: Questions::new(node.server.process().is_none()),
                last: None,
                seen: ServerWindow::default(),
                is_silent: false,
                asked_at: 0,
            };
            let run = move || sampler.run(&node.database.admin());
            thread("sampler").spawn_scoped(scope, run).ok()
        };
        let samplers: Vec<_> = nodes.list.iter().map(sample).collect();
        let probe = || thread("freshness").spawn_scoped(scope, || replicas::probe(nodes, sampling));
        let probe = nodes.is_probed().then(probe).and_then(Result::ok);
        let is_local = |node: &ReachedNode| node.server != ServerPlace::Unknown;
        let cpu = || thread("server cpu").spawn_scoped(scope, || watch_usage(nodes, sampling));
        let cpu = nodes.list.iter().any(is_local).then(cpu).and_then(Result::ok);
        // Also when `work` panics: else the scope would wait for ever.
        let over = Over(&sampling.is_over);
        let done = work();
        drop(over);
        let seen = samplers.into_iter().map(|thread| thread?.join().ok());
        let nodes = seen.map(Option::unwrap_or_default).collect();
        let probed = probe.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let used = cpu.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut all = AllSeen { nodes, used, freshness: probed.found };
        all.leave_out(&probed.asked);
        (done, all)
    })
}

/// Says that the trial is over when it is dropped.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Sampler<'a> {
    node: &'a ReachedNode,
    name: &'a str,
    /// Set if events say which node they are about.
    is_named: bool,
    sampling: &'a Sampling,
    /// Samples of all nodes; `None` once they can't be written.
    series: &'a Mutex<Option<NodeSeries>>,
    host: Option<HostSampler>,
    questions: Questions,
    last: Option<Sample>,
    seen: ServerWindow,
    /// Set while the node doesn't answer: that is told once.
    is_silent: bool,
    asked_at: Nanos,
}

impl Sampler<'_> {
    fn run(mut self, driver: &AdminDriver<'_>) -> ServerWindow {
        // Embedded databases have no server to ask.
        let Some(window) = self.sampling.begun().filter(|_| !driver.blocks()) else {
            return self.seen;
        };
        // Without a loop there are no samples.
        let _ = block_on(self.follow(driver, window));
        self.seen.asked = self.questions.asked;
        self.seen
    }

    async fn follow(&mut self, driver: &AdminDriver<'_>, window: Window) {
        self.host = self.node.same_host.then(|| HostSampler::new(now()));
        let mut session = None;
        let mut due = now();
        loop {
            while now() < due && !self.sampling.is_over() {
                sleep_until(due.min(now() + LOOK)).await;
            }
            let is_over = self.sampling.is_over();
            // What a server does after the window is no one's business; but the window has a sample
            // at its end, also where no one knew before when that would be.
            if is_over && self.asked_at >= window.closes {
                break;
            }
            self.asked_at = now();
            let asked = unless_stopped(timeout(now() + PATIENCE, self.ask(driver, &mut session)));
            match asked.await.unwrap_or(Err(Elapsed)) {
                Ok(Ok((sample, refused))) => self.take(&window, sample, refused),
                Ok(Err(error)) => {
                    // A session may be ended for any reason: the node is down if it takes no other one.
                    let is_refused = error.cause() == Cause::Unreachable;
                    if is_refused || error.cause() == Cause::Lost && self.is_silent {
                        self.seen.down.get_or_insert_with(|| error.to_string().into());
                    }
                    self.silent(
                        &window,
                        error.to_string().trim_end_matches('.').into(),
                        &mut session,
                    );
                }
                Err(_) => self.silent(&window, say!(sample_too_slow), &mut session),
            }
            if is_over {
                break;
            }
            due = next(now(), &window);
        }
        if let Some(session) = session {
            // Ending politely may take as long as anything else.
            unless_stopped(timeout(now() + PATIENCE, session.close())).await;
        }
    }

    async fn ask<'d>(
        &mut self,
        driver: &AdminDriver<'d>,
        session: &mut Option<AdminSession<'d>>,
    ) -> Result<(Sample, Vec<Message>), DbError> {
        let session = match session {
            Some(session) => session,
            None => session.insert(driver.connect(0).await?),
        };
        self.questions.sample(session).await
    }

    /// The session is given up; the next sample is asked in another one.
    fn silent<S>(&mut self, window: &Window, why: Message, session: &mut Option<S>) {
        *session = None;
        if !self.is_silent {
            self.tell(at_s(now(), window), say!(server_silent, why));
        }
        self.is_silent = true;
    }

    fn take(&mut self, window: &Window, mut sample: Sample, refused: Vec<Message>) {
        let at = now();
        let at_s = at_s(at, window);
        self.is_silent = false;
        self.seen.not_readable.extend(refused);
        let before = self.last.as_ref();
        for text in before.map(|before| sample.events(before)).unwrap_or_default() {
            self.tell(at_s, text);
        }
        match before {
            Some(before) if sample.was_restarted(before) => {
                self.seen.down.get_or_insert_with(server_restarted);
            }
            Some(before) => sample.stays_started(before),
            None => {}
        }
        let mut row = sample.row(before, at_s, self.name);
        row.cpu_share = self.host.as_mut().map(|host| host.sample(at).cpu_share);
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.as_mut().is_some_and(|series| series.append(&row).is_err()) {
            // The same disk takes the intervals: whoever writes these says what is wrong.
            *series = None;
        }
        drop(series);
        if at >= window.opens && at <= window.closes.saturating_add(EVERY / 2) {
            self.note(&sample);
        }
        self.last = Some(sample);
    }

    fn tell(&self, at_s: f64, text: Message) {
        let text = match self.is_named {
            true => Message::joined(&[self.name.into(), text], ": ", "："),
            false => text,
        };
        self.sampling.tell(at_s, text);
    }

    /// A sample of the window.
    fn note(&mut self, sample: &Sample) {
        let seen = &mut self.seen;
        match &seen.closed {
            None => seen.opened = Some(sample.clone()),
            Some(before) => {
                if let Some(ended) = sample.has_checkpointed(before) {
                    *seen.checkpoints.get_or_insert(0) += u64::from(ended);
                }
            }
        }
        seen.commit_settings.extend(sample.commit_settings.clone());
        for work in &sample.background {
            if !seen.background.contains(work) {
                seen.background.push(work.clone());
            }
        }
        for (replica, &lag_s) in &sample.lag_s {
            seen.lags_s.entry(replica.clone()).or_default().push(lag_s);
        }
        seen.closed = Some(sample.clone());
    }
}

/// When the next sample is due: at whole seconds of the window, and at its end.
fn next(now: Nanos, window: &Window) -> Nanos {
    let whole = match now.checked_sub(window.opens) {
        Some(gone) => window.opens + (gone / EVERY + 1) * EVERY,
        None => window.opens - (window.opens - now - 1) / EVERY * EVERY,
    };
    if now < window.closes { whole.min(window.closes) } else { whole }
}

pub(super) fn at_s(at: Nanos, window: &Window) -> f64 {
    (at as f64 - window.opens as f64) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fall_on_the_borders_of_the_window() {
        let window = Window {
            released: 10 * SECOND,
            opens: 12 * SECOND + 7,
            closes: 14 * SECOND,
            interval: SECOND,
        };
        let mut due = vec![10 * SECOND];
        while due.len() < 6 {
            due.push(next(due[due.len() - 1], &window));
        }
        let wanted = [
            10 * SECOND,
            10 * SECOND + 7,
            11 * SECOND + 7,
            12 * SECOND + 7,
            13 * SECOND + 7,
            14 * SECOND,
        ];
        assert_eq!(due, wanted);
        assert_eq!(next(14 * SECOND, &window), 14 * SECOND + 7, "after the end it goes on");
    }
}
