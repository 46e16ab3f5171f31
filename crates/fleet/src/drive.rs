//! One trial over the fleet.

use crate::fleet::{Fleet, Member, PATIENCE};
use crate::generator::LEASE;
use crate::nats::{
    CallError, CallResult, Caller, ended_thread, send_question, send_until_answered,
};
use crate::protocol::{Answer, Ask, GeneratorOrder, Question, Report, TargetSecret};
use crate::trial::{Inbox, Part, PartEvent, Trial};
use crate::{FleetError, FleetResult};
use dyno_core::{Nanos, SECOND};
use dyno_engine::{Control, Observer, TrialResult, TrialSpec};
use dyno_facts::{GeneratorMember, Message, say};
use dyno_reactor::monotonic_now;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Interval of questions to a load generator without news.
const POLL: Duration = Duration::from_millis(50);
/// Longest time for which a load generator may be busy with the trial before.
const BUSY: Duration = Duration::from_secs(30);

/// Longest time for which a load generator that was given up may still make load: until its lease is over, which it
/// checks each second, and what it had begun has ended.
const GHOST: Nanos = (LEASE.as_secs() - PATIENCE.as_secs() + 4) * SECOND;

pub struct Task<'a> {
    /// The plan in its stored form, cut down to the trial.
    pub plan: serde_json::Value,
    pub experiment: &'a str,
    /// The target, under the name that has a URL.
    pub target: &'a str,
    pub planned: &'a dyno_facts::PlannedTrial,
    /// The URLs of the target and its nodes, with their passwords; sent only where both ends are encrypted.
    pub secrets: Vec<TargetSecret>,
    /// The whole trial.
    pub spec: &'a TrialSpec,
    pub kinds: usize,
    /// Receives sentences for the user.
    pub tell: &'a dyn Fn(&str),
}

#[derive(Debug)]
pub struct Performance {
    /// The exact sum of what all load generators measured.
    pub result: TrialResult,
    pub members: Vec<GeneratorMember>,
    /// Leftovers of the workload of each of them; lost ones leave nothing.
    pub left: Vec<Vec<u8>>,
    /// Reasons for giving up load generators in the trial, in sentences.
    pub lost: Vec<Message>,
    /// Sentences for the reader.
    pub notes: Vec<Message>,
}

/// Load generators that were lost before anything began.
#[derive(Default)]
pub(crate) struct LostGenerators {
    pub(crate) ids: BTreeSet<String>,
    pub(crate) reasons: Vec<Message>,
}

pub(crate) enum Attempt {
    Driven(Box<Performance>),
    Interrupted,
    Thinned(LostGenerators),
}

impl Fleet {
    /// Has the load generators drive a trial together. When one is lost before the trial begins, the others begin
    /// without it; later losses are in the result. Returns `None` if it was stopped; after an error nothing was
    /// measured.
    pub fn drive(
        &mut self,
        task: &Task<'_>,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> FleetResult<Option<Box<Performance>>> {
        let mut losses = Vec::new();
        loop {
            self.recruit(Duration::from_millis(300), task.tell)?;
            if self.members.is_empty() {
                return Err(FleetError::new(format!(
                    "No load generator is left. {}",
                    Message::sentences(&losses)
                ))
                .with_hint("Start `dyno generator` again; the same command continues the run."));
            }
            match self.attempt_trial(task, control, observer, &losses)? {
                Attempt::Driven(performance) => return Ok(Some(performance)),
                Attempt::Interrupted => return Ok(None),
                Attempt::Thinned(LostGenerators { ids, reasons }) => {
                    self.drop_members(&ids);
                    reasons.iter().for_each(|reason| (task.tell)(&reason.to_string()));
                    losses.extend(reasons);
                }
            }
            if control.is_stopped() {
                return Ok(None);
            }
        }
    }

    fn attempt_trial(
        &mut self,
        task: &Task<'_>,
        control: &Control,
        observer: &mut dyn Observer,
        lost_before: &[Message],
    ) -> FleetResult<Attempt> {
        self.trial += 1;
        let mut gone = LostGenerators::default();
        let parts = self.plan_parts(task, &mut gone)?;
        if gone.ids.is_empty() {
            // Load generators that are ready hold sessions and wait for a start that never comes.
            self.order_parts(task, &parts, &mut gone).inspect_err(|_| self.stop_all(&parts))?;
        }
        if !gone.ids.is_empty() {
            self.stop_all(&parts);
            return Ok(Attempt::Thinned(gone));
        }
        let (reports, _followers) = self.spawn_followers(&parts);
        let mut trial = Trial::new(self, task, parts, lost_before);
        loop {
            match reports.recv_timeout(POLL) {
                Ok((number, event)) => trial.handle_event(number, event, observer)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if trial.is_over() => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ended_thread());
                }
            }
            trial.advance(control, observer);
            if trial.is_over() {
                break;
            }
        }
        let last_loss = trial.last_loss();
        let attempt = trial.finish(control);
        if let Ok(Attempt::Driven(performance)) = &attempt {
            let lost_members = self.members.iter().filter(|member| {
                let mut driven = performance.members.iter();
                let driven = driven.find(|driven| driven.name == member.hello.name);
                driven.is_some_and(|driven| driven.lost.is_some())
            });
            let ids = lost_members.map(|member| member.hello.id.clone()).collect();
            self.drop_members(&ids);
        }
        // Before the data are checked or the next trial begins.
        while last_loss.is_some_and(|lost_at| monotonic_now() < lost_at + GHOST)
            && !control.is_stopped()
        {
            std::thread::sleep(POLL);
        }
        attempt
    }

    fn plan_parts(&self, task: &Task<'_>, gone: &mut LostGenerators) -> FleetResult<Vec<Part>> {
        // With fewer workers than load generators, some have nothing to do.
        let count = (self.members.len() as u32).min(task.spec.workers.max(1));
        let specs = (0..count).filter_map(|number| task.spec.part(number, count));
        let clocks = self.clocks(self.members.iter().take(count as usize))?;
        let mut parts = Vec::new();
        for ((member, spec), clock) in self.members.iter().zip(specs).zip(clocks) {
            match clock {
                Some(clock) => parts.push(Part::new(member.clone(), spec, clock)),
                None => give_up(gone, member, say!(generator_does_not_answer)),
            }
        }
        Ok(parts)
    }

    /// Orders the parts of the trial, all at the same time.
    fn order_parts(
        &self,
        task: &Task<'_>,
        parts: &[Part],
        gone: &mut LostGenerators,
    ) -> FleetResult<()> {
        let orders = parts.iter().enumerate().map(|(number, part)| {
            let member = &part.member;
            let order = self.build_order(task, number as u32, parts.len() as u32, member);
            let question = self.question(Ask::Prepare(Box::new(order)));
            send_order(self.link.caller.clone(), member.subject.clone(), question)
        });
        let orders: Vec<_> = orders.collect();
        let answers = self.link.wait(join_all(orders))?;
        for (part, answer) in parts.iter().zip(answers) {
            let (member, name) = (&part.member, &part.member.hello.name);
            match answer {
                Ok((Answer::Done, _)) => {}
                Ok((Answer::Refused { why }, _)) => return Err(FleetError::new(why)),
                Ok(_) => give_up(gone, member, say!(generator_busy)),
                Err(CallError::Other(reason)) if reason.contains("payload") => {
                    let message =
                        format!("The plan can't be sent to the load generator {name}: {reason}.");
                    return Err(FleetError::new(message)
                        .with_hint("Raise `max_payload` of the NATS server."));
                }
                Err(_) => give_up(gone, member, say!(generator_does_not_answer)),
            }
        }
        Ok(())
    }

    fn build_order(
        &self,
        task: &Task<'_>,
        generator: u32,
        generators: u32,
        member: &Member,
    ) -> GeneratorOrder {
        let may_send = self.is_tls && member.hello.is_tls;
        GeneratorOrder {
            trial: self.trial,
            versions: self.versions.clone(),
            plan: task.plan.clone(),
            experiment: task.experiment.to_owned(),
            target: task.target.to_owned(),
            planned: task.planned.clone(),
            generator,
            generators,
            secrets: if may_send { task.secrets.clone() } else { Vec::new() },
        }
    }

    fn spawn_followers(&self, parts: &[Part]) -> (Receiver<(usize, PartEvent)>, Followers) {
        let (sender, receiver) = channel();
        let followers = parts.iter().enumerate().map(|(number, part)| {
            let (caller, to) = self.route_to(&part.member);
            let (run, trial, sender) = (self.run.clone(), self.trial, sender.clone());
            self.link.spawn(follow(caller, to, (run, trial), number, sender))
        });
        let followers = Followers(followers.collect());
        (receiver, followers)
    }

    fn stop_all(&self, parts: &[Part]) {
        parts.iter().for_each(|part| self.send_stop(&part.member));
    }

    /// Ends a trial; the member's reports show that it was heard.
    pub(crate) fn send_stop(&self, member: &Member) {
        self.send(member, Ask::Stop { trial: self.trial });
    }

    /// Sends a question whose answer does not matter, until it is answered.
    pub(crate) fn send(&self, member: &Member, ask: Ask) {
        let ((caller, to), question) = (self.route_to(member), self.question(ask));
        self.link.spawn(async move {
            let _ = send_until_answered(&caller, to, &question, PATIENCE).await;
        });
    }
}

/// Has a load generator make ready, after the trial before.
async fn send_order(caller: Caller, to: String, question: Question) -> CallResult {
    let deadline = Instant::now() + BUSY;
    loop {
        let answer = send_until_answered(&caller, to.clone(), &question, PATIENCE).await;
        let is_busy = matches!(answer, Ok((Answer::Busy { .. }, _)));
        if !is_busy || Instant::now() >= deadline {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn give_up(gone: &mut LostGenerators, member: &Member, reason: Message) {
    gone.ids.insert(member.hello.id.clone());
    gone.reasons.push(say!(generator_given_up, name = &member.hello.name, why = reason));
}

/// The tasks that ask for reports; they end with the trial.
struct Followers(Vec<AbortHandle>);

impl Drop for Followers {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Asks one load generator for its reports until its part is over or its silence too long.
async fn follow(
    caller: Caller,
    subject: String,
    (run, trial): (String, u64),
    number: usize,
    reports: Sender<(usize, PartEvent)>,
) {
    let mut inbox = Inbox::default();
    let mut heard_at = Instant::now();
    loop {
        let ask_more = Ask::Poll { trial, after: inbox.received() };
        let question = Question { run: run.clone(), ask: ask_more };
        let mut pause = POLL;
        match send_question(&caller, subject.clone(), &question, Duration::from_secs(1)).await {
            Ok((Answer::Flow { offset }, bytes)) => {
                heard_at = Instant::now();
                if !bytes.is_empty() {
                    pause = Duration::ZERO;
                }
                inbox.receive(offset, &bytes);
                loop {
                    let event = match inbox.next::<Report>() {
                        Ok(Some((report, body))) => PartEvent::Report(report, body),
                        Ok(None) => break,
                        Err(error) => PartEvent::Lost(error.message.into()),
                    };
                    let is_last = event.is_last();
                    if reports.send((number, event)).is_err() || is_last {
                        return;
                    }
                }
            }
            Ok(_) => {
                let _ = reports.send((number, PartEvent::Lost(say!(generator_left))));
                return;
            }
            Err(error) => {
                if heard_at.elapsed() >= PATIENCE {
                    let reason = match error {
                        CallError::NoResponder => say!(generator_gone),
                        _ => say!(generator_silent, seconds = PATIENCE.as_secs()),
                    };
                    let _ = reports.send((number, PartEvent::Lost(reason)));
                    return;
                }
                if error == CallError::TimedOut {
                    pause = Duration::ZERO;
                }
            }
        }
        tokio::time::sleep(pause).await;
    }
}
