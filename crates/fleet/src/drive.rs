//! One trial over the fleet.

use crate::fleet::{Fleet, Member, PATIENCE};
use crate::generator::LEASE;
use crate::nats::{Answered, Caller, Silence, ask, ended_thread, insist};
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
    pub(crate) why: Vec<Message>,
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
        let mut lost = Vec::new();
        loop {
            self.recruit(Duration::from_millis(300), task.tell)?;
            if self.members.is_empty() {
                return Err(FleetError::new(format!(
                    "No load generator is left. {}",
                    Message::sentences(&lost)
                ))
                .with_hint(
                    "Start `dyno generator` again; the same command goes on with the run.",
                ));
            }
            match self.attempt(task, control, observer, &lost)? {
                Attempt::Driven(performance) => return Ok(Some(performance)),
                Attempt::Interrupted => return Ok(None),
                Attempt::Thinned(LostGenerators { ids, why }) => {
                    self.drop_members(&ids);
                    why.iter().for_each(|why| (task.tell)(&why.to_string()));
                    lost.extend(why);
                }
            }
            if control.is_stopped() {
                return Ok(None);
            }
        }
    }

    fn attempt(
        &mut self,
        task: &Task<'_>,
        control: &Control,
        observer: &mut dyn Observer,
        lost_before: &[Message],
    ) -> FleetResult<Attempt> {
        self.trial += 1;
        let mut gone = LostGenerators::default();
        let parts = self.parts(task, &mut gone)?;
        if gone.ids.is_empty() {
            // Load generators that are ready hold sessions and wait for a start that never comes.
            self.prepare(task, &parts, &mut gone).inspect_err(|_| self.stop_all(&parts))?;
        }
        if !gone.ids.is_empty() {
            self.stop_all(&parts);
            return Ok(Attempt::Thinned(gone));
        }
        let (reports, _followers) = self.follow(&parts);
        let mut trial = Trial::new(self, task, parts, lost_before);
        loop {
            match reports.recv_timeout(POLL) {
                Ok((number, told)) => trial.take(number, told, observer)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if trial.is_over() => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ended_thread());
                }
            }
            trial.look(control, observer);
            if trial.is_over() {
                break;
            }
        }
        let last_loss = trial.last_loss();
        let attempt = trial.finish(control);
        if let Ok(Attempt::Driven(performance)) = &attempt {
            let is_lost = |member: &&Member| {
                let own = performance.members.iter().find(|own| own.name == member.hello.name);
                own.is_some_and(|own| own.lost.is_some())
            };
            let lost_members = self.members.iter().filter(is_lost);
            let ids = lost_members.map(|member| member.hello.id.clone()).collect();
            self.drop_members(&ids);
        }
        // Before the data are checked or the next trial begins.
        while last_loss.is_some_and(|lost| monotonic_now() < lost + GHOST) && !control.is_stopped()
        {
            std::thread::sleep(POLL);
        }
        attempt
    }

    fn parts(&self, task: &Task<'_>, gone: &mut LostGenerators) -> FleetResult<Vec<Part>> {
        // With fewer workers than load generators, some have nothing to do.
        let count = (self.members.len() as u32).min(task.spec.workers.max(1));
        let specs = (0..count).filter_map(|number| task.spec.part(number, count));
        let clocks = self.clocks(self.members.iter().take(count as usize))?;
        let mut parts = Vec::new();
        for ((member, spec), clock) in self.members.iter().zip(specs).zip(clocks) {
            match clock {
                Some(clock) => parts.push(Part::new(member.clone(), spec, clock)),
                None => lose(gone, member, say!(generator_does_not_answer)),
            }
        }
        Ok(parts)
    }

    /// Orders the parts of the trial, all at the same time.
    fn prepare(
        &self,
        task: &Task<'_>,
        parts: &[Part],
        gone: &mut LostGenerators,
    ) -> FleetResult<()> {
        let order = |(number, part): (usize, &Part)| {
            let member = &part.member;
            let order = self.order(task, number as u32, parts.len() as u32, member);
            let question = self.question(Ask::Prepare(Box::new(order)));
            prepare(self.link.caller.clone(), member.subject.clone(), question)
        };
        let orders: Vec<_> = parts.iter().enumerate().map(order).collect();
        let answers = self.link.wait(join_all(orders))?;
        for (part, answer) in parts.iter().zip(answers) {
            let (member, name) = (&part.member, &part.member.hello.name);
            match answer {
                Ok((Answer::Done, _)) => {}
                Ok((Answer::Refused { why }, _)) => return Err(FleetError::new(why)),
                Ok(_) => lose(gone, member, say!(generator_busy)),
                Err(Silence::Other(why)) if why.contains("payload") => {
                    let message =
                        format!("The plan can't be sent to the load generator {name}: {why}.");
                    return Err(FleetError::new(message)
                        .with_hint("Raise `max_payload` of the NATS server."));
                }
                Err(_) => lose(gone, member, say!(generator_does_not_answer)),
            }
        }
        Ok(())
    }

    fn order(
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

    fn follow(&self, parts: &[Part]) -> (Receiver<(usize, PartEvent)>, Followers) {
        let (sender, receiver) = channel();
        let follow = |(number, part): (usize, &Part)| {
            let (caller, to) = self.way_to(&part.member);
            let (run, trial, sender) = (self.run.clone(), self.trial, sender.clone());
            self.link.spawn(follow(caller, to, (run, trial), number, sender))
        };
        let followers = parts.iter().enumerate().map(follow).collect();
        (receiver, Followers(followers))
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
        let ((caller, to), question) = (self.way_to(member), self.question(ask));
        self.link.spawn(async move {
            let _ = insist(&caller, to, &question, PATIENCE).await;
        });
    }
}

/// Has a load generator make ready, after the trial before.
async fn prepare(caller: Caller, to: String, question: Question) -> Answered {
    let until = Instant::now() + BUSY;
    loop {
        let answer = insist(&caller, to.clone(), &question, PATIENCE).await;
        let is_busy = matches!(answer, Ok((Answer::Busy { .. }, _)));
        if !is_busy || Instant::now() >= until {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn lose(gone: &mut LostGenerators, member: &Member, why: Message) {
    gone.ids.insert(member.hello.id.clone());
    gone.why.push(say!(generator_given_up, name = &member.hello.name, why = why));
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
    let mut heard = Instant::now();
    loop {
        let ask_more = Ask::Poll { trial, after: inbox.received() };
        let question = Question { run: run.clone(), ask: ask_more };
        let mut pause = POLL;
        match ask(&caller, subject.clone(), &question, Duration::from_secs(1)).await {
            Ok((Answer::Flow { offset }, bytes)) => {
                heard = Instant::now();
                if !bytes.is_empty() {
                    pause = Duration::ZERO;
                }
                inbox.take(offset, &bytes);
                loop {
                    let told = match inbox.next::<Report>() {
                        Ok(Some((report, body))) => PartEvent::Report(report, body),
                        Ok(None) => break,
                        Err(error) => PartEvent::Lost(error.message.into()),
                    };
                    let is_last = told.is_last();
                    if reports.send((number, told)).is_err() || is_last {
                        return;
                    }
                }
            }
            Ok(_) => {
                let _ = reports.send((number, PartEvent::Lost(say!(generator_left))));
                return;
            }
            Err(silence) => {
                if heard.elapsed() >= PATIENCE {
                    let why = match silence {
                        Silence::Nobody => say!(generator_gone),
                        _ => say!(generator_silent, seconds = PATIENCE.as_secs()),
                    };
                    let _ = reports.send((number, PartEvent::Lost(why)));
                    return;
                }
                if silence == Silence::Late {
                    pause = Duration::ZERO;
                }
            }
        }
        tokio::time::sleep(pause).await;
    }
}
