//! The coordinator's view of a running trial.

use std::collections::{BTreeSet, VecDeque};

use dyno_core::{Context as _, DbError, MILLISECOND, Nanos, SECOND};
use dyno_engine::record::{MeasuredInterval, Window};
use dyno_engine::{Control, Joined, Observer, TrialEnd, TrialResult, TrialSpec, merge};
use dyno_facts::{GeneratorMember, LatencySummary, Message, say};
use dyno_reactor::monotonic_now;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::ClockOffset;
use crate::drive::{Attempt, LostGenerators, Performance, Task};
use crate::fleet::{Fleet, Member};
use crate::protocol::{Ask, Report, pack, unpack};
use crate::{FleetError, FleetResult};

/// Time between the agreement and the start, alongside some round trips.
const LEAD: Nanos = 300 * MILLISECOND;
/// Time limit of a load generator for checking the data, alongside connecting.
const LOOKING: Nanos = 300 * SECOND;
/// Longest silence that the trial does not explain.
const SILENCE: Nanos = 30 * SECOND;

#[derive(Debug)]
pub(crate) enum PartEvent {
    Report(Report, Vec<u8>),
    /// Given up: the reason, in a sentence without its name.
    Lost(Message),
}

impl PartEvent {
    pub(crate) fn is_last(&self) -> bool {
        matches!(
            self,
            PartEvent::Lost(_) | PartEvent::Report(Report::Ended { .. } | Report::Failed { .. }, _)
        )
    }
}

#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) member: Member,
    spec: TrialSpec,
    clock: ClockOffset,
    connected: u32,
    is_ready: bool,
    window: Option<Window>,
    left: Vec<u8>,
    heard_at: Nanos,
    end: Option<End>,
}

/// `Stopped`: before the start; `is_own`: by its own user, as no one here had asked for it.
#[derive(Debug)]
enum End {
    Ended(Box<TrialResult>),
    Failed { message: String, hint: Option<String> },
    Stopped { is_own: bool },
    Lost(Message),
}

impl Part {
    pub(crate) fn new(member: Member, spec: TrialSpec, clock: ClockOffset) -> Self {
        Part {
            member,
            spec,
            clock,
            connected: 0,
            is_ready: false,
            window: None,
            left: Vec::new(),
            heard_at: monotonic_now(),
            end: None,
        }
    }

    fn name(&self) -> &str {
        &self.member.hello.name
    }

    fn reply_timeout(&self) -> Nanos {
        let spec = &self.spec;
        match self.window {
            None => spec.connect_limit + LOOKING,
            // One interval may be as long as the whole trial, and nothing is reported while it drains.
            Some(_) => 3 * spec.interval + spec.warmup + spec.drain + SILENCE,
        }
    }

    /// The reason why its load generator is lost.
    fn loss(&self) -> Option<&Message> {
        match &self.end {
            Some(End::Lost(reason)) => Some(reason),
            _ => None,
        }
    }
}

pub(crate) struct Trial<'a> {
    fleet: &'a Fleet,
    task: &'a Task<'a>,
    parts: Vec<Part>,
    /// The agreed start on the clock here, and the intervals since.
    started: Option<(Nanos, Joined)>,
    is_announced: bool,
    is_stopping: bool,
    notes: Vec<Message>,
    losses: Vec<Message>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(
        fleet: &'a Fleet,
        task: &'a Task<'a>,
        parts: Vec<Part>,
        lost_before: &[Message],
    ) -> Self {
        Trial {
            fleet,
            task,
            parts,
            started: None,
            is_announced: false,
            is_stopping: false,
            notes: lost_before.to_vec(),
            losses: Vec::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.end.is_some())
    }

    /// The time of the last loss of a load generator that may still make load.
    pub(crate) fn last_loss(&self) -> Option<Nanos> {
        self.started.as_ref()?;
        self.parts.iter().filter(|part| part.loss().is_some()).map(|part| part.heard_at).max()
    }

    /// Takes news of load generator `number`.
    pub(crate) fn handle_event(
        &mut self,
        number: usize,
        event: PartEvent,
        observer: &mut dyn Observer,
    ) -> FleetResult<()> {
        let Some(part) = self.parts.get_mut(number).filter(|part| part.end.is_none()) else {
            return Ok(());
        };
        part.heard_at = monotonic_now();
        let (report, body) = match event {
            PartEvent::Report(report, body) => (report, body),
            PartEvent::Lost(reason) => {
                self.give_up(number, reason);
                return Ok(());
            }
        };
        match report {
            Report::Connected { connected, .. } => {
                part.connected = connected;
                let connected = self.parts.iter().map(|part| part.connected).sum();
                observer.connected(connected, self.task.spec.workers);
            }
            Report::Ready => part.is_ready = true,
            Report::Released { window } => {
                part.window = Some(window);
                self.announce_release(observer);
            }
            Report::Interval { interval } => self.add_interval(number, *interval),
            Report::Left => part.left = body,
            Report::Ended { result } => self.end_part(number, result),
            Report::Failed { message, hint, is_interrupted } => {
                part.end = Some(if is_interrupted {
                    End::Stopped { is_own: !self.is_stopping }
                } else {
                    End::Failed { message, hint }
                });
                if is_interrupted && !self.is_stopping {
                    self.losses.push(say!(generator_stopped_before_trial, name = part.name()));
                }
                // It is over before it began: for the others too.
                self.stop_parts();
            }
        }
        Ok(())
    }

    fn announce_release(&mut self, observer: &mut dyn Observer) {
        let Some((at, _)) = self.started.as_ref().filter(|_| !self.is_announced) else { return };
        let window = planned_window(self.task.spec, *at);
        self.is_announced = true;
        observer.connected(self.task.spec.workers, self.task.spec.workers);
        observer.released(&window);
    }

    fn add_interval(&mut self, number: usize, mut interval: MeasuredInterval) {
        let Some((_, joined)) = &mut self.started else { return };
        interval.frame.shift(self.parts[number].clock.back());
        joined.take(number as u32, &interval);
    }

    fn end_part(&mut self, number: usize, mut result: Box<TrialResult>) {
        let part = &mut self.parts[number];
        result.shift(part.clock.back());
        // An error that no policy survives ends the trial of all load generators.
        let ends_all = matches!(result.ended, TrialEnd::Aborted(_));
        if result.ended == TrialEnd::Interrupted && !self.is_stopping {
            self.losses.push(say!(generator_stopped, name = part.name()));
        }
        part.end = Some(End::Ended(result));
        if let Some((_, joined)) = &mut self.started {
            joined.done(number as u32);
        }
        if ends_all {
            self.stop_parts();
        }
    }

    fn give_up(&mut self, number: usize, reason: Message) {
        let part = &mut self.parts[number];
        let name = part.name().to_owned();
        part.heard_at = monotonic_now();
        part.end = Some(End::Lost(reason.clone()));
        // One that only hangs finds this when it continues, and makes no more load alongside the others.
        self.fleet.send_stop(&part.member);
        match &mut self.started {
            Some((_, joined)) => {
                joined.done(number as u32);
                let loss = say!(generator_lost, name = name, why = reason);
                (self.task.tell)(&loss.to_string());
                self.losses.push(loss);
            }
            None => {
                self.losses.push(say!(generator_lost_before_trial, name = name, why = reason));
                self.stop_parts();
            }
        }
    }

    /// Does what is due: the start, a requested stop, the end of patience; shows complete intervals.
    pub(crate) fn advance(&mut self, control: &Control, observer: &mut dyn Observer) {
        if control.is_stopped() {
            self.stop_parts();
        }
        let now = monotonic_now();
        for number in 0..self.parts.len() {
            let part = &self.parts[number];
            if part.end.is_none() && now.saturating_sub(part.heard_at) > part.reply_timeout() {
                let seconds = part.reply_timeout() / SECOND;
                self.give_up(number, say!(generator_reports_nothing, seconds = seconds));
            }
        }
        if self.started.is_none()
            && !self.is_stopping
            && self.parts.iter().all(|part| part.is_ready)
        {
            self.start_parts();
        }
        while let Some(interval) =
            self.started.as_mut().and_then(|(_, joined)| joined.next_complete())
        {
            self.announce_release(observer);
            observer.interval(&interval);
        }
        self.fleet.events.try_iter().for_each(|note| (self.task.tell)(note));
    }

    fn start_parts(&mut self) {
        // Clocks drift apart while the parts are made ready, which may take minutes.
        for part in &mut self.parts {
            // One after the other: fewer questions at a time make each answer more exact. A silent one is lost soon,
            // before the start.
            let read = self.fleet.clocks(std::iter::once(&part.member)).unwrap_or_default();
            let Some(clock) = read.into_iter().flatten().next() else { return };
            part.clock = clock;
        }
        let trip = self.parts.iter().map(|part| 2 * part.clock.bound).max().unwrap_or(0);
        let at = monotonic_now() + LEAD + 20 * trip;
        let spec = self.task.spec;
        let parts = self.parts.len() as u32;
        let is_scheduled = spec.rate_per_s.is_some() || spec.terminals.is_some();
        let joined = Joined::new(planned_window(spec, at), parts, self.task.kinds, is_scheduled);
        self.started = Some((at, joined));
        for part in &self.parts {
            let start = Ask::Start { trial: self.fleet.trial, at: part.clock.there(at) };
            self.fleet.send(&part.member, start);
        }
    }

    fn stop_parts(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.parts.iter().for_each(|part| self.fleet.send_stop(&part.member));
        }
    }

    /// Merges the results of all parts, those of lost load generators up to their loss.
    ///
    /// # Errors
    /// When a part could not begin, or the results can't be merged.
    pub(crate) fn finish(mut self, control: &Control) -> FleetResult<Attempt> {
        let failed = self.parts.iter().find_map(|part| match &part.end {
            Some(End::Failed { message, hint }) => Some((part, message, hint)),
            _ => None,
        });
        if let Some((part, message, hint)) = failed {
            let message = format!("load generator {}: {message}", part.name());
            return Err(FleetError { hint: hint.clone(), ..FleetError::new(message) });
        }
        // When its own user stops one between the agreement and the start, no start was announced yet: the others
        // may begin again.
        let mut parts = self.parts.iter();
        let is_left = !self.is_announced
            && parts.any(|part| matches!(part.end, Some(End::Stopped { is_own: true })));
        let Some((at, mut joined)) = self.started.take().filter(|_| !is_left) else {
            return Ok(self.not_started(control));
        };
        let mut results = Vec::new();
        for (number, part) in (0..).zip(&self.parts) {
            match &part.end {
                Some(End::Ended(result)) => results.push((**result).clone()),
                Some(End::Lost(reason)) => {
                    results.extend(joined.lose(number, DbError::lost(reason.to_string())));
                }
                // Stopped between the agreement and the start.
                _ => return Ok(Attempt::Interrupted),
            }
        }
        let result = merge(&results).context("The results can't be merged")?;
        let members = self.member_facts(at, &results, &result);
        if self.parts.len() < self.fleet.members.len() {
            let (n, total) = (self.parts.len(), self.fleet.members.len());
            self.notes.push(say!(generators_idle, n = n, all = total));
        }
        if self.fleet.members.len() < self.fleet.wanted {
            let (n, total) = (self.fleet.members.len(), self.fleet.wanted);
            self.notes.push(say!(generators_missing, n = n, all = total));
        }
        Ok(Attempt::Driven(Box::new(Performance {
            result,
            members,
            left: self
                .parts
                .iter_mut()
                .filter(|part| part.loss().is_none())
                .map(|part| std::mem::take(&mut part.left))
                .collect(),
            lost: self.losses,
            notes: self.notes,
        })))
    }

    fn not_started(self, control: &Control) -> Attempt {
        let ids: BTreeSet<String> = self
            .parts
            .iter()
            .filter(|part| matches!(part.end, Some(End::Lost(_) | End::Stopped { is_own: true })))
            .map(|part| part.member.hello.id.clone())
            .collect();
        if control.is_stopped() || ids.is_empty() {
            return Attempt::Interrupted;
        }
        Attempt::Thinned(LostGenerators { ids, reasons: self.losses })
    }

    fn member_facts(
        &self,
        at: Nanos,
        results: &[TrialResult],
        merged: &TrialResult,
    ) -> Vec<GeneratorMember> {
        let first = self.parts.first().map_or(0, |part| part.clock.calendar_ahead);
        let opened = merged.window.opens as f64;
        let members = self.parts.iter().zip(results).map(|(part, result)| {
            let is_lost = part.loss().is_some();
            let hello = &part.member.hello;
            let late_ms = part.window.map(|window| {
                let late_ns = window.released as f64 - part.clock.there(at) as f64;
                (late_ns + result.late as f64) / 1e6
            });
            GeneratorMember {
                name: hello.name.clone(),
                host: hello.environment.host.clone(),
                workers: part.spec.workers,
                nodes: Vec::new(),
                statements: dyno_engine::record::statement_counts(result.total.work()).total(),
                latency: Some(LatencySummary::from(&result.total.latency())),
                late_ms,
                clock_bound_ms: Some(part.clock.bound as f64 / 1e6),
                cpu_s: (!is_lost).then(|| result.loops_cpu.iter().sum::<Nanos>() as f64 / 1e9),
                host_load: (!is_lost).then_some(result.host),
                conditions: result.conditions.clone(),
                lost: part.loss().cloned(),
                committed: result.total.counts().committed,
                from_s: (result.window.opens as f64 - opened) / 1e9,
                to_s: (result.window.closes as f64 - opened) / 1e9,
                clock_skew_ms: Some((part.clock.calendar_ahead - first) as f64 / 1e6),
            }
        });
        members.collect()
    }
}

/// The planned window of a trial that starts at `at`.
fn planned_window(spec: &TrialSpec, at: Nanos) -> Window {
    let opens = at + spec.warmup;
    let closes = match spec.duration.filter(|_| !spec.finish_begun) {
        Some(duration) => opens.saturating_add(duration),
        None => Nanos::MAX,
    };
    Window { released: at, opens, closes, interval: spec.interval }
}

/// The longest report: what a workload keeps of a long trial, such as the orders of TPC-C.
const REPORT_MAX: usize = 256 << 20;

/// Keeps reports until they were received.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Bytes that were received and forgotten.
    forgotten: u64,
    bytes: VecDeque<u8>,
}

impl Outbox {
    /// Appends a report, with the length of its packet in front.
    pub(crate) fn push<T: Serialize>(&mut self, head: &T, body: &[u8]) {
        let packet = pack(head, body);
        self.bytes.extend((packet.len() as u32).to_le_bytes());
        self.bytes.extend(packet);
    }

    /// At most `max_bytes` bytes from `offset` on; those before it were received.
    pub(crate) fn after(&mut self, offset: u64, max_bytes: usize) -> Vec<u8> {
        let received = offset.saturating_sub(self.forgotten).min(self.bytes.len() as u64);
        self.bytes.drain(..received as usize);
        self.forgotten += received;
        self.bytes.iter().take(max_bytes).copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The offset of the first byte that is still kept.
    pub(crate) fn offset(&self) -> u64 {
        self.forgotten
    }
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    received: u64,
    bytes: Vec<u8>,
}

impl Inbox {
    /// Bytes received so far: the offset to ask for next.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Takes those of `bytes`, which begin at `offset`, that are new. A late or repeated answer has none.
    pub(crate) fn receive(&mut self, offset: u64, bytes: &[u8]) {
        let Some(known) = self.received.checked_sub(offset) else { return };
        let Some(new) = bytes.get(known as usize..) else { return };
        self.received += new.len() as u64;
        self.bytes.extend_from_slice(new);
    }

    /// Takes the first report out; `None` if its end is still missing.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> FleetResult<Option<(T, Vec<u8>)>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > REPORT_MAX {
            return Err(FleetError::new(format!("A report claims to have {length} bytes.")));
        }
        let Some(packet) = rest.get(..length) else { return Ok(None) };
        let (head, body) = unpack(packet)?;
        let body = body.to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some((head, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain_reports(inbox: &mut Inbox) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| inbox.next::<u32>().expect("reports are whole")).collect()
    }

    #[test]
    fn lost_and_repeated_answers_change_nothing() {
        let mut outbox = Outbox::default();
        let mut inbox = Inbox::default();
        let reports: Vec<(u32, Vec<u8>)> =
            (0..40_u32).map(|number| (number, vec![number as u8; number as usize * 7])).collect();
        let mut received = Vec::new();
        let mut old = (0, Vec::new());
        for (round, (head, body)) in reports.iter().enumerate() {
            outbox.push(head, body);
            let offset = inbox.received();
            let bytes = outbox.after(offset, 100);
            assert_eq!(outbox.offset(), offset);
            match round % 4 {
                // The answer is lost.
                0 => {}
                // It comes, and an old one after it.
                1 => {
                    inbox.receive(offset, &bytes);
                    inbox.receive(old.0, &old.1);
                }
                // It comes twice.
                2 => {
                    inbox.receive(offset, &bytes);
                    inbox.receive(offset, &bytes);
                }
                _ => inbox.receive(offset, &bytes),
            }
            old = (offset, bytes);
            received.extend(drain_reports(&mut inbox));
        }
        loop {
            let offset = inbox.received();
            let bytes = outbox.after(offset, 100);
            if bytes.is_empty() {
                break;
            }
            inbox.receive(offset, &bytes);
            received.extend(drain_reports(&mut inbox));
        }
        assert_eq!(received, reports);
    }

    #[test]
    fn no_report_claims_gigabytes() {
        let mut inbox = Inbox::default();
        inbox.receive(0, &u32::MAX.to_le_bytes());
        assert!(inbox.next::<u32>().is_err());
    }

    #[test]
    fn bytes_from_beyond_a_hole_are_not_taken() {
        let mut inbox = Inbox::default();
        inbox.receive(5, b"abc");
        assert_eq!(inbox.received(), 0);
        assert_eq!(inbox.next::<u32>().expect("nothing is wrong"), None);
    }
}
