//! A load generator: waits for orders and answers questions about them.
//!
//! Only ever answers. Reports of its trial wait in an outbox until the coordinator asks for them; when it has not
//! asked for [`LEASE`], the trial is stopped and the load generator is free again.

use crate::NatsOptions;
use crate::clock::calendar_now;
use crate::nats::{Caller, Link, SealContext, discover_generators};
use crate::protocol::{
    Answer, Ask, GeneratorOrder, Hello, QUESTION_LASTS, Question, Report, SentQuestion, Versions,
    call_subject, check_name, own_subject, pack, unpack,
};
use crate::trial::Outbox;
use crate::{FleetError, FleetResult};
use async_nats::{Message, Subscriber};
use dyno_core::Nanos;
use dyno_engine::record::{MeasuredInterval, Window};
use dyno_engine::{Control, Observer, TrialResult};
use dyno_reactor::monotonic_now;
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without a word from the coordinator after which it is gone. Longer than the coordinator's patience, which
/// otherwise would count on a load generator that has left.
pub const LEASE: Duration = Duration::from_secs(20);
/// Time limit for the answer of a load generator with the same name.
const SAME_NAME: Duration = Duration::from_millis(500);
/// Questions that are remembered: more of them than any run asks.
const ASKED_MAX: usize = 1 << 20;
/// Part of a message of NATS that the head of an answer may take.
const HEAD: usize = 1024;

/// Work or news for the owner of the load generator.
#[derive(Debug)]
pub enum GeneratorEvent {
    Work(Box<Assignment>),
    Note(String),
}

pub struct Generator {
    link: Link,
    shared: Arc<SharedState>,
    hello: Hello,
    events: Receiver<GeneratorEvent>,
}

/// Shared by the thread of NATS and the trial.
#[derive(Debug)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
    events: Sender<GeneratorEvent>,
}

#[derive(Debug, Default)]
struct State {
    /// The run that it works for, and when that was heard last.
    run: Option<(String, Instant)>,
    job: Option<Job>,
    /// The trial that is still being executed, also when its run has gone.
    busy_with: Option<u64>,
    /// Questions that still have time: when that ends, and their numbers.
    open_nonces: BTreeSet<(i64, String)>,
}

#[derive(Debug)]
struct Job {
    trial: u64,
    outbox: Outbox,
    control: Arc<Control>,
    start: Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Open,
    At(Nanos),
    Never,
}

impl Generator {
    /// Connects and begins to listen. Without a `name` it takes the host's, with a number if that is taken.
    /// `only_hosts`: where alone it goes, for coordinators to know.
    pub fn open(
        nats: &NatsOptions,
        fleet: &str,
        name: Option<&str>,
        versions: Versions,
        only_hosts: Vec<String>,
    ) -> FleetResult<Generator> {
        check_name("fleet", fleet)?;
        if let Some(name) = name {
            check_name("load generator", name)?;
        }
        let (sender, notices) = channel();
        let link = Link::open(nats, sender)?;
        let environment = dyno_observe::environment();
        let name = free_name(&link, fleet, name, &environment.host)?;
        let hello = Hello {
            name,
            id: link.caller.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned(),
            versions,
            run: None,
            is_tls: nats.is_tls(),
            environment,
            only_hosts,
            load: load(),
        };
        let (sender, events) = channel();
        let state = Mutex::new(State::default());
        let shared = Arc::new(SharedState { state, changed: Condvar::new(), events: sender });
        let generator = Generator { link, shared, hello, events };
        generator.start_listening(fleet, notices)?;
        Ok(generator)
    }

    pub fn name(&self) -> &str {
        &self.hello.name
    }

    /// Waits for the next event; `None` once `stopped` returns true, looked at every 200 ms.
    pub fn next(&self, stopped: &dyn Fn() -> bool) -> Option<GeneratorEvent> {
        while !stopped() {
            match self.events.recv_timeout(Duration::from_millis(200)) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Waits until the coordinator has taken all reports, for `time` at most.
    pub fn drain(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut state = self.shared.lock();
        while state.job.as_ref().is_some_and(|job| !job.outbox.is_empty()) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start_listening(&self, fleet: &str, notices: Receiver<&'static str>) -> FleetResult<()> {
        let client = self.link.caller.client.clone();
        let subjects = [call_subject(fleet), own_subject(fleet, &self.hello.id)];
        let subscribed = self.link.wait(async move {
            let [call, personal] = subjects;
            let subscriptions = [client.subscribe(call).await, client.subscribe(personal).await];
            // The server knows both before this load generator answers a call.
            let _ = client.flush().await;
            subscriptions.into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        let subscribed = subscribed.map_err(|error| {
            FleetError::new(format!("NATS refuses a subscription: {error}."))
                .with_hint("The user needs the right to publish and subscribe dyno.> and _INBOX.>.")
        })?;
        for subscriber in subscribed {
            let (shared, hello) = (Arc::clone(&self.shared), self.hello.clone());
            self.link.spawn(answer_all(self.link.caller.clone(), subscriber, shared, hello));
        }
        let shared = Arc::clone(&self.shared);
        self.link.spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                shared.expire(Instant::now());
                notices.try_iter().for_each(|sentence| shared.send_note(sentence.to_owned()));
            }
        });
        Ok(())
    }
}

/// The name that was requested, or a free one.
fn free_name(link: &Link, fleet: &str, requested: Option<&str>, host: &str) -> FleetResult<String> {
    let caller = link.caller.clone();
    let call = call_subject(fleet);
    let called =
        link.wait(async move { discover_generators(&caller, call, SAME_NAME).await })??;
    let used_names: Vec<String> = called.found.into_iter().map(|(hello, _)| hello.name).collect();
    if let Some(name) = requested {
        if used_names.iter().any(|used| used == name) {
            let message = format!("The fleet `{fleet}` has a load generator `{name}` already.");
            return Err(FleetError::new(message).with_hint("Give it another --name."));
        }
        return Ok(name.to_owned());
    }
    let plain = host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let plain: String = plain.take(50).collect();
    let plain = if plain.is_empty() { "generator".to_owned() } else { plain };
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let mut names = std::iter::once(plain.clone()).chain(numbered);
    Ok(names.find(|name| !used_names.contains(name)).unwrap_or(plain))
}

async fn answer_all(
    caller: Caller,
    mut questions: Subscriber,
    shared: Arc<SharedState>,
    hello: Hello,
) {
    let Caller { client, key } = caller;
    let mut is_reported = false;
    while let Some(Message { subject, payload, reply, .. }) = questions.next().await {
        let Some(reply) = reply else { continue };
        let Some((stamp, packet)) = key.open(SealContext::QuestionTo(&subject), &payload) else {
            // No answer: whoever has no key learns nothing.
            if !std::mem::replace(&mut is_reported, true) {
                shared.send_note(
                    "Somebody asks without this fleet's key and is not answered.".to_owned(),
                );
            }
            continue;
        };
        let max_body = client.max_payload().saturating_sub(HEAD).clamp(HEAD, 512 << 10);
        let (answer, body) = match unpack::<SentQuestion>(packet) {
            Ok((sent, _)) => match shared.check_fresh(sent, &hello.name, calendar_now()) {
                Ok(question) => shared.answer(question, &hello, max_body),
                Err(why) => (Answer::Refused { why }, Vec::new()),
            },
            Err(error) => (Answer::Refused { why: error.message }, Vec::new()),
        };
        let (_, answer) = key.seal(SealContext::AnswerTo(&stamp), &pack(&answer, &body));
        // The coordinator asks again for a lost answer.
        let _ = client.publish(reply, answer.into()).await;
    }
}

/// The first number of /proc/loadavg.
fn load() -> f32 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_note(&self, text: String) {
        let _ = self.events.send(GeneratorEvent::Note(text));
    }

    /// The question, unless it comes late or for the second time.
    fn check_fresh(&self, sent: SentQuestion, name: &str, now: i64) -> Result<Question, String> {
        let SentQuestion { question, nonce, until } = sent;
        let mut state = self.lock();
        while state.open_nonces.first().is_some_and(|(until, _)| *until < now) {
            state.open_nonces.pop_first();
        }
        if until < now || until > now.saturating_add(2 * QUESTION_LASTS as i64) {
            return Err(format!(
                "The clock of the load generator {name} differs from the coordinator's by more than a minute, so it \
                 can't tell new questions from old ones."
            ));
        }
        if state.open_nonces.len() < ASKED_MAX && state.open_nonces.insert((until, nonce)) {
            return Ok(question);
        }
        Err(format!("The load generator {name} has had this question before."))
    }

    /// Answers a question; the bytes are the body of the answer, at most `max_body`.
    fn answer(
        self: &Arc<Self>,
        question: Question,
        hello: &Hello,
        max_body: usize,
    ) -> (Answer, Vec<u8>) {
        let (mut state, mut body) = (self.lock(), Vec::new());
        let current_run = state.run.as_ref().map(|(run, _)| run.clone());
        let answer = match (&mut state.run, &question.ask) {
            (_, Ask::Who) => {
                Answer::Here(Box::new(Hello { run: current_run, load: load(), ..hello.clone() }))
            }
            (_, Ask::Clock) => {
                Answer::Clock { monotonic: monotonic_now(), calendar: calendar_now() }
            }
            (Some((run, heard)), _) if *run == question.run => {
                *heard = Instant::now();
                let answer = self.answer_own(&mut state, question.ask, hello, max_body, &mut body);
                drop(state);
                self.changed.notify_all();
                answer
            }
            (None, Ask::Join) => {
                self.send_note(format!("Working for the run {}.", question.run));
                state.run = Some((question.run, Instant::now()));
                Answer::Done
            }
            // Leaving twice is not an error: the first answer may have been lost.
            (None, Ask::Leave) => Answer::Done,
            _ => Answer::Busy { run: current_run },
        };
        (answer, body)
    }

    /// Answers the run that it works for; `body` gets at most `max_body` bytes alongside the answer.
    fn answer_own(
        self: &Arc<Self>,
        state: &mut State,
        ask: Ask,
        hello: &Hello,
        max_body: usize,
        body: &mut Vec<u8>,
    ) -> Answer {
        match ask {
            Ask::Prepare(order) => return self.start_job(state, *order, hello),
            Ask::Poll { trial, after } => {
                let Some(job) = current_job(state, trial) else { return unknown_trial(trial) };
                *body = job.outbox.after(after, max_body);
                return Answer::Flow { offset: job.outbox.offset() };
            }
            Ask::Start { trial, at } => {
                let Some(job) = current_job(state, trial) else { return unknown_trial(trial) };
                if job.start == Start::Open {
                    job.start = Start::At(at);
                }
            }
            Ask::Stop { trial } => {
                if let Some(job) = current_job(state, trial) {
                    job.stop();
                }
            }
            Ask::Leave => self.leave_run(state, "The run has ended; waiting for the next one."),
            Ask::Who | Ask::Clock | Ask::Join | Ask::Keep => {}
        }
        Answer::Done
    }

    fn start_job(
        self: &Arc<Self>,
        state: &mut State,
        order: GeneratorOrder,
        hello: &Hello,
    ) -> Answer {
        if order.versions != hello.versions {
            let reason = format!(
                "The load generator {} is {}, and the coordinator is {}.",
                hello.name, hello.versions, order.versions
            );
            return Answer::Refused { why: reason };
        }
        if let Some(why) = order.out_of_range() {
            return Answer::Refused { why };
        }
        if state.job.as_ref().is_some_and(|job| job.trial == order.trial) {
            return Answer::Done;
        }
        if state.busy_with.is_some() {
            let run = state.run.as_ref().map(|(run, _)| run.clone());
            return Answer::Busy { run };
        }
        let trial = order.trial;
        let (waiting, at_start) = (Arc::clone(self), trial);
        let control =
            Arc::new(Control::starting(Box::new(move |now| waiting.wait_for_start(at_start, now))));
        state.job = Some(Job {
            trial,
            outbox: Outbox::default(),
            control: Arc::clone(&control),
            start: Start::Open,
        });
        state.busy_with = Some(trial);
        let reporter = Reporter { shared: Arc::clone(self), trial, control, connected: 0 };
        let work = Box::new(Assignment { order, reporter });
        match self.events.send(GeneratorEvent::Work(work)) {
            Ok(()) => Answer::Done,
            Err(_) => Answer::Refused { why: "The load generator is ending.".to_owned() },
        }
    }

    /// Reports that all is ready and waits until the coordinator names the moment.
    fn wait_for_start(&self, trial: u64, now: Nanos) -> Option<Nanos> {
        let mut state = self.lock();
        current_job(&mut state, trial)?.outbox.push(&Report::Ready, b"");
        loop {
            let job = current_job(&mut state, trial)?;
            match job.start {
                // Stopped by its own user: each question of the coordinator wakes it to look.
                _ if job.control.is_stopped() => return None,
                Start::Open => {}
                Start::At(at) => return Some(at.max(now)),
                Start::Never => return None,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn push_report(&self, trial: u64, report: &Report, body: &[u8]) {
        // Reports of a run that is gone are dropped.
        if let Some(job) = current_job(&mut self.lock(), trial) {
            job.outbox.push(report, body);
        }
    }

    /// Leaves a run after [`LEASE`] without a word from it.
    fn expire(&self, now: Instant) {
        let mut state = self.lock();
        let heard_at = state.run.as_ref().map(|(_, heard_at)| *heard_at);
        if heard_at.is_some_and(|heard_at| now.saturating_duration_since(heard_at) > LEASE) {
            self.leave_run(
                &mut state,
                "Nothing was heard of the run for 20 s: it is given up. Waiting for the next one.",
            );
            drop(state);
            self.changed.notify_all();
        }
    }

    fn leave_run(&self, state: &mut State, reason: &str) {
        if let Some(mut job) = state.job.take() {
            job.stop();
        }
        state.run = None;
        self.send_note(reason.to_owned());
    }
}

impl Job {
    fn stop(&mut self) {
        self.start = Start::Never;
        self.control.stop();
    }
}

fn current_job(state: &mut State, trial: u64) -> Option<&mut Job> {
    state.job.as_mut().filter(|job| job.trial == trial)
}

fn unknown_trial(trial: u64) -> Answer {
    Answer::Refused { why: format!("The load generator knows no trial {trial} any more.") }
}

#[derive(Debug)]
pub struct Assignment {
    pub order: GeneratorOrder,
    pub reporter: Reporter,
}

/// Reports to the coordinator; observes the engine.
#[derive(Debug)]
pub struct Reporter {
    shared: Arc<SharedState>,
    trial: u64,
    control: Arc<Control>,
    connected: u32,
}

impl Reporter {
    /// Starts the trial at the agreed moment; stops it when the coordinator stops it or is gone.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Reports the result, and before it what the workload keeps itself.
    pub fn ended(self, result: TrialResult, left: &[u8]) {
        self.shared.push_report(self.trial, &Report::Left, left);
        self.shared.push_report(self.trial, &Report::Ended { result: Box::new(result) }, b"");
    }

    /// Reports in sentences why the trial could not begin. `is_interrupted`: because it was stopped.
    pub fn failed(self, message: &str, hint: Option<&str>, is_interrupted: bool) {
        let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
        let report = Report::Failed { message, hint, is_interrupted };
        self.shared.push_report(self.trial, &report, b"");
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.busy_with == Some(self.trial) {
            state.busy_with = None;
        }
    }
}

impl Observer for Reporter {
    fn connected(&mut self, connected: u32, total: u32) {
        if connected != self.connected {
            self.connected = connected;
            self.shared.push_report(self.trial, &Report::Connected { connected, of: total }, b"");
        }
    }

    fn released(&mut self, window: &Window) {
        self.shared.push_report(self.trial, &Report::Released { window: *window }, b"");
    }

    fn interval(&mut self, interval: &MeasuredInterval) {
        let interval = Box::new(interval.clone());
        self.shared.push_report(self.trial, &Report::Interval { interval }, b"");
    }
}

#[cfg(test)]
mod tests;
