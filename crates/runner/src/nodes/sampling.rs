//! Threads that ask each node once a second what it does, in their own session. The loops that make
//! the load know nothing of it.

use super::replicas;
use super::{NodeObservations, Nodes, watch_usage};
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
    pub(super) fn wait_for_window(&self) -> Option<Window> {
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

    /// Ends all sampling: the trial is over.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn add_event(&self, at_s: f64, text: Message) {
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
pub(crate) fn sample_during<T>(
    nodes: &Nodes<'_>,
    series: NodeSeries,
    sampling: &Sampling,
    work: impl FnOnce() -> T,
) -> (T, NodeObservations) {
    if !nodes.is_sampled {
        return (work(), NodeObservations::default());
    }
    let series = Mutex::new(Some(series));
    std::thread::scope(|scope| {
        let samplers = nodes.list.iter().map(|node| {
            if nodes.is_passthrough(node) {
                return None;
            }
            let sampler = Sampler {
                node,
                name: nodes.name(node),
                is_named: nodes.has_several_nodes(),
                sampling,
                series: &series,
                host: None,
                questions: Questions::new(node.server.process().is_none()),
                last: None,
                observation: ServerWindow::default(),
                is_silent: false,
                asked_at: 0,
            };
            let thread = new_thread("sampler");
            thread.spawn_scoped(scope, move || sampler.sample_node(&node.database.admin())).ok()
        });
        let samplers: Vec<_> = samplers.collect();
        let probe = nodes.is_probed().then(|| {
            let thread = new_thread("freshness");
            thread.spawn_scoped(scope, move || replicas::probe_freshness(nodes, sampling))
        });
        let probe = probe.and_then(Result::ok);
        let is_local = nodes.list.iter().any(|node| node.server != ServerPlace::Unknown);
        let watcher = is_local.then(|| {
            let thread = new_thread("server cpu");
            thread.spawn_scoped(scope, move || watch_usage(nodes, sampling))
        });
        let watcher = watcher.and_then(Result::ok);
        // Also when `work` panics: else the scope would wait for ever.
        let over = EndOnDrop(&sampling.is_over);
        let result = work();
        drop(over);
        let windows = samplers.into_iter().map(|thread| thread?.join().ok());
        let nodes = windows.map(Option::unwrap_or_default).collect();
        let probed = probe.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let usages = watcher.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut observations = NodeObservations { nodes, usages, freshness: probed.freshness };
        observations.leave_out(&probed.statements);
        (result, observations)
    })
}

fn new_thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// Says that the trial is over when it is dropped.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
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
    observation: ServerWindow,
    /// Set while the node doesn't answer: that is reported once.
    is_silent: bool,
    asked_at: Nanos,
}

impl Sampler<'_> {
    fn sample_node(mut self, driver: &AdminDriver<'_>) -> ServerWindow {
        // Embedded databases have no server to ask.
        let Some(window) = self.sampling.wait_for_window().filter(|_| !driver.blocks()) else {
            return self.observation;
        };
        // Without an event loop, samples are missing.
        let _ = block_on(self.sample_repeatedly(driver, window));
        self.observation.asked = self.questions.asked;
        self.observation
    }

    async fn sample_repeatedly(&mut self, driver: &AdminDriver<'_>, window: Window) {
        self.host = self.node.same_host.then(|| HostSampler::new(now()));
        let mut session = None;
        let mut due = now();
        loop {
            while now() < due && !self.sampling.is_over() {
                sleep_until(due.min(now() + LOOK)).await;
            }
            let is_over = self.sampling.is_over();
            // What a server does after the window doesn't matter; but the window has a sample
            // at its end, even if that moment was unknown before.
            if is_over && self.asked_at >= window.closes {
                break;
            }
            self.asked_at = now();
            let question =
                unless_stopped(timeout(now() + PATIENCE, self.take_sample(driver, &mut session)));
            match question.await.unwrap_or(Err(Elapsed)) {
                Ok(Ok((sample, unreadable))) => self.record_sample(&window, sample, unreadable),
                Ok(Err(error)) => {
                    // A session may be ended for any reason: the node is down if it takes no other one.
                    let is_refused = error.cause() == Cause::Unreachable;
                    if is_refused || error.cause() == Cause::Lost && self.is_silent {
                        self.observation.down.get_or_insert_with(|| error.to_string().into());
                    }
                    self.note_silence(
                        &window,
                        error.to_string().trim_end_matches('.').into(),
                        &mut session,
                    );
                }
                Err(_) => self.note_silence(&window, say!(sample_too_slow), &mut session),
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

    async fn take_sample<'d>(
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

    /// Gives the session up; the next sample is taken in another one.
    fn note_silence<S>(&mut self, window: &Window, reason: Message, session: &mut Option<S>) {
        *session = None;
        if !self.is_silent {
            self.add_event(window_seconds(now(), window), say!(server_silent, why = reason));
        }
        self.is_silent = true;
    }

    fn record_sample(&mut self, window: &Window, mut sample: Sample, unreadable: Vec<Message>) {
        let at = now();
        let at_s = window_seconds(at, window);
        self.is_silent = false;
        self.observation.not_readable.extend(unreadable);
        let before = self.last.as_ref();
        for text in before.map(|before| sample.events(before)).unwrap_or_default() {
            self.add_event(at_s, text);
        }
        match before {
            Some(before) if sample.was_restarted(before) => {
                self.observation.down.get_or_insert_with(server_restarted);
            }
            Some(before) => sample.stays_started(before),
            None => {}
        }
        let mut row = sample.row(before, at_s, self.name);
        row.cpu_share = self.host.as_mut().map(|host| host.sample(at).cpu_share);
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.as_mut().is_some_and(|series| series.append(&row).is_err()) {
            // The same disk takes the intervals: a failure to write these is reported by their writer.
            *series = None;
        }
        drop(series);
        if at >= window.opens && at <= window.closes.saturating_add(EVERY / 2) {
            self.add_to_window(&sample);
        }
        self.last = Some(sample);
    }

    fn add_event(&self, at_s: f64, text: Message) {
        let text = if self.is_named {
            Message::joined(&[self.name.into(), text], ": ", "：")
        } else {
            text
        };
        self.sampling.add_event(at_s, text);
    }

    /// A sample of the window.
    fn add_to_window(&mut self, sample: &Sample) {
        let observation = &mut self.observation;
        match &observation.closed {
            None => observation.opened = Some(sample.clone()),
            Some(before) => {
                if let Some(ended) = sample.has_checkpointed(before) {
                    *observation.checkpoints.get_or_insert(0) += u64::from(ended);
                }
            }
        }
        observation.commit_settings.extend(sample.commit_settings.clone());
        for work in &sample.background {
            if !observation.background.contains(work) {
                observation.background.push(work.clone());
            }
        }
        for (replica, &lag_s) in &sample.lag_s {
            observation.lags_s.entry(replica.clone()).or_default().push(lag_s);
        }
        observation.closed = Some(sample.clone());
    }
}

/// When the next sample is due: at whole seconds of the window, and at its end.
fn next(now: Nanos, window: &Window) -> Nanos {
    let next_second = match now.checked_sub(window.opens) {
        Some(gone) => window.opens + (gone / EVERY + 1) * EVERY,
        None => window.opens - (window.opens - now - 1) / EVERY * EVERY,
    };
    if now < window.closes { next_second.min(window.closes) } else { next_second }
}

pub(super) fn window_seconds(at: Nanos, window: &Window) -> f64 {
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
        let expected = [
            10 * SECOND,
            10 * SECOND + 7,
            11 * SECOND + 7,
            12 * SECOND + 7,
            13 * SECOND + 7,
            14 * SECOND,
        ];
        assert_eq!(due, expected);
        assert_eq!(next(14 * SECOND, &window), 14 * SECOND + 7, "after the end it continues");
    }
}
