//! The coordinator's side: the load generators of a run.

use crate::NatsOptions;
use crate::clock::{ClockOffset, Round, calendar_now};
use crate::nats::{
    CallAnswers, Caller, Link, discover_generators, send_question, send_to_all, send_until_answered,
};
use crate::protocol::{
    Answer, Ask, Hello, Question, Versions, call_subject, check_name, own_subject,
};
use crate::{FleetError, FleetResult};
use dyno_facts::FleetMember;
use dyno_reactor::monotonic_now;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which a run waits for its load generators by default.
pub const WAIT: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(200);
/// Interval of keep-alive messages to members.
const KEEP: Duration = Duration::from_secs(2);
/// Questions about a clock.
const ROUNDS: usize = 24;
/// Longest silence of a load generator before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct FleetOptions {
    pub nats: NatsOptions,
    /// The fleet's name: only its load generators are called.
    pub fleet: String,
    pub generators: u32,
    pub versions: Versions,
    /// Time limit of waiting for them.
    pub wait: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) hello: Hello,
    pub(crate) subject: String,
}

/// Load generators that work for a run until it is over.
pub struct Fleet {
    pub(crate) link: Link,
    pub(crate) run: String,
    pub(crate) versions: Versions,
    pub(crate) members: Vec<Member>,
    pub(crate) is_tls: bool,
    /// Number of the last trial that was ordered.
    pub(crate) trial: u64,
    fleet: String,
    pub(crate) wanted: usize,
    /// All load generators that have worked for the run, lost ones too.
    pub known: Vec<FleetMember>,
    /// The subjects of the members, for the task that keeps them.
    kept_subjects: Arc<Mutex<Vec<String>>>,
    /// Ids of load generators that were lost, and why others were left out: the user hears of each once.
    refused: BTreeSet<String>,
    /// Reasons for leaving out generators that answered the last call.
    unfit: Vec<String>,
    /// News of the connection to NATS, in sentences.
    pub(crate) events: Receiver<&'static str>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("run", &self.run)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Connects and waits until enough load generators work for the run; `None` when `stopped` says so before. `tell`
    /// gets sentences for the user.
    pub fn gather(
        options: &FleetOptions,
        tell: &dyn Fn(&str),
        stopped: &dyn Fn() -> bool,
    ) -> FleetResult<Option<Fleet>> {
        check_name("fleet", &options.fleet)?;
        let (sender, events) = channel();
        let link = Link::open(&options.nats, sender)?;
        let mut fleet = Fleet {
            run: link.caller.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned(),
            link,
            versions: options.versions.clone(),
            members: Vec::new(),
            is_tls: options.nats.is_tls(),
            trial: 0,
            fleet: options.fleet.clone(),
            wanted: options.generators.max(1) as usize,
            known: Vec::new(),
            kept_subjects: Arc::default(),
            refused: BTreeSet::new(),
            unfit: Vec::new(),
            events,
        };
        fleet.spawn_keep_alive();
        let began_at = Instant::now();
        let mut reported = None;
        while !stopped() {
            fleet.recruit(CALL, tell)?;
            let count = fleet.members.len();
            if count >= fleet.wanted {
                return Ok(Some(fleet));
            }
            if began_at.elapsed() >= options.wait {
                return Err(fleet.too_few(options));
            }
            // NATS answers at once when no one listens.
            std::thread::sleep(PAUSE);
            if reported.replace(count) != Some(count) {
                tell(&format!(
                    "{count} of {} load generators are there; waiting for more, up to {} s (--wait).",
                    fleet.wanted,
                    options.wait.as_secs()
                ));
            }
        }
        Ok(None)
    }

    fn too_few(&self, options: &FleetOptions) -> FleetError {
        let (found, wanted) = (self.members.len(), self.wanted);
        let mut message = format!(
            "Only {found} of {wanted} load generators of the fleet `{}` came within {} s.",
            self.fleet,
            options.wait.as_secs()
        );
        for reason in &self.unfit {
            message.push(' ');
            message.push_str(reason);
        }
        let begin = if self.unfit.is_empty() { "Start" } else { "Free those, or start" };
        FleetError::new(message).with_hint(format!(
            "{begin} more: `dyno generator --nats {}`, one on each machine, with the same --fleet-key as here; --wait \
             waits longer.",
            options.nats.shown()
        ))
    }

    /// The names of the members, in the order in which trials are shared out.
    pub fn names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.hello.name.clone()).collect()
    }

    /// Their introductions, in the order in which trials are shared out.
    pub fn hellos(&self) -> impl Iterator<Item = &Hello> {
        self.members.iter().map(|member| &member.hello)
    }

    /// Calls for load generators until there are enough.
    pub(crate) fn recruit(&mut self, time: Duration, tell: &dyn Fn(&str)) -> FleetResult<()> {
        if self.members.len() >= self.wanted {
            return Ok(());
        }
        let (caller, call) = (self.link.caller.clone(), call_subject(&self.fleet));
        let called =
            self.link.wait(async move { discover_generators(&caller, call, time).await })??;
        let CallAnswers { mut found, refused } = called;
        // Those without a name are known by what they say.
        refused
            .into_iter()
            .filter(|reason| self.refused.insert(reason.clone()))
            .for_each(|reason| tell(&reason));
        found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        self.unfit.clear();
        for (hello, _) in found {
            if self.members.len() >= self.wanted {
                break;
            }
            let is_member = self.members.iter().any(|member| member.hello.name == hello.name);
            if is_member || self.refused.contains(&hello.id) {
                continue;
            }
            // Who is busy with a run that has ended is free a little later.
            if let Some(reason) = self.unfit(&hello) {
                if self.refused.insert(reason.clone()) {
                    tell(&reason);
                }
                self.unfit.push(reason);
                continue;
            }
            self.add_member(hello);
        }
        *self.lock_subjects() = self.member_subjects();
        Ok(())
    }

    /// The reason why a load generator can't be a member, in a sentence.
    fn unfit(&self, hello: &Hello) -> Option<String> {
        let name = &hello.name;
        if hello.versions != self.versions {
            return Some(format!(
                "The load generator {name} is left out: it is {}, and this is {}.",
                hello.versions, self.versions
            ));
        }
        let run = hello.run.as_ref().filter(|run| **run != self.run)?;
        Some(format!("The load generator {name} is busy with the run {run}."))
    }

    fn add_member(&mut self, hello: Hello) {
        let subject = own_subject(&self.fleet, &hello.id);
        let question = self.question(Ask::Join);
        let (caller, to) = (self.link.caller.clone(), subject.clone());
        let joined = self.link.wait(async move {
            send_until_answered(&caller, to, &question, Duration::from_secs(3)).await
        });
        // Another run was faster, or it has just left.
        if !matches!(joined, Ok(Ok((Answer::Done, _)))) {
            return;
        }
        let member =
            FleetMember { name: hello.name.clone(), environment: hello.environment.clone() };
        if !self.known.contains(&member) {
            self.known.push(member);
        }
        self.members.push(Member { hello, subject });
    }

    /// Tells the members all the time that the run continues, also during long preparations.
    fn spawn_keep_alive(&self) {
        let (caller, kept_subjects) = (self.link.caller.clone(), Arc::clone(&self.kept_subjects));
        let question = self.question(Ask::Keep);
        self.link.spawn(async move {
            loop {
                tokio::time::sleep(KEEP).await;
                let subjects = kept_subjects.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // The trial notices silent members.
                let _ = send_to_all(&caller, subjects, &question, KEEP).await;
            }
        });
    }

    pub(crate) fn drop_members(&mut self, ids: &BTreeSet<String>) {
        for member in self.members.iter().filter(|member| ids.contains(&member.hello.id)) {
            let ((caller, to), question) = (self.route_to(member), self.question(Ask::Leave));
            self.link.spawn(async move {
                let _ = send_question(&caller, to, &question, Duration::from_secs(1)).await;
            });
        }
        self.members.retain(|member| !ids.contains(&member.hello.id));
        // A lost process doesn't come back: it may still be at the old trial.
        self.refused.extend(ids.iter().cloned());
        self.lock_subjects()
            .retain(|subject| self.members.iter().any(|member| member.subject == *subject));
    }

    /// A question of this run.
    pub(crate) fn question(&self, ask: Ask) -> Question {
        Question { run: self.run.clone(), ask }
    }

    pub(crate) fn route_to(&self, member: &Member) -> (Caller, String) {
        (self.link.caller.clone(), member.subject.clone())
    }

    fn lock_subjects(&self) -> MutexGuard<'_, Vec<String>> {
        self.kept_subjects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn member_subjects(&self) -> Vec<String> {
        self.members.iter().map(|member| member.subject.clone()).collect()
    }

    /// Reads the clocks of members at the same time; `None` for members that don't answer.
    pub(crate) fn clocks<'a>(
        &self,
        members: impl Iterator<Item = &'a Member>,
    ) -> FleetResult<Vec<Option<ClockOffset>>> {
        let reads = members.map(|member| {
            let (caller, to) = self.route_to(member);
            let question = self.question(Ask::Clock);
            async move { ClockOffset::from_rounds(&rounds(&caller, to, &question).await) }
        });
        let reads: Vec<_> = reads.collect();
        self.link.wait(join_all(reads))
    }
}

/// Reads a clock several times, up to the first missing answer.
async fn rounds(caller: &Caller, to: String, question: &Question) -> Vec<Round> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let asked_at = monotonic_now();
        let answer = send_until_answered(caller, to.clone(), question, PATIENCE).await;
        let answered_at = monotonic_now();
        let calendar_here = calendar_now();
        let Ok((Answer::Clock { monotonic: there, calendar: calendar_there }, _)) = answer else {
            break;
        };
        rounds.push(Round { asked_at, there, calendar_there, answered_at, calendar_here });
    }
    rounds
}

/// A load generator that has answered a call.
#[derive(Clone, Debug)]
pub struct Present {
    pub hello: Hello,
    /// Time until its answer.
    pub answered: Duration,
    pub clock: Option<ClockOffset>,
}

/// The load generators of a fleet that answer within `time`, by name, and why others do not work.
pub fn present(
    nats: &NatsOptions,
    fleet: &str,
    time: Duration,
) -> FleetResult<(Vec<Present>, Vec<String>)> {
    check_name("fleet", fleet)?;
    let link = Link::open(nats, channel().0)?;
    let (caller, fleet) = (link.caller.clone(), fleet.to_owned());
    link.wait(async move {
        let CallAnswers { mut found, refused } =
            discover_generators(&caller, call_subject(&fleet), time).await?;
        found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let mut present = Vec::new();
        for (hello, answered) in found {
            let question = Question { run: String::new(), ask: Ask::Clock };
            let rounds = rounds(&caller, own_subject(&fleet, &hello.id), &question).await;
            present.push(Present { clock: ClockOffset::from_rounds(&rounds), hello, answered });
        }
        Ok((present, refused))
    })?
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let question = self.question(Ask::Leave);
        let (caller, subjects) = (self.link.caller.clone(), self.member_subjects());
        let _ = self.link.wait(async move {
            // A member that doesn't hear it is free when its lease is over.
            let _ = send_to_all(&caller, subjects, &question, Duration::from_secs(1)).await;
        });
    }
}
