//! Messages between coordinator and load generators.
//!
//! The coordinator asks and a load generator answers, by core NATS's request and reply. A question may be sent twice
//! (an answer was lost) and then changes nothing more. Reports of a load generator wait in its [`crate::flow`] until
//! they are requested, so an answer is also its sign of life.
//!
//! The form of all messages: a head in JSON, and bytes that JSON would only swell.

use crate::clock::calendar_now;
use crate::nats::nonce;
use crate::{FleetError, FleetResult};
use dyno_core::{Nanos, SECOND};
use dyno_engine::TrialResult;
use dyno_engine::record::{MeasuredInterval, Window};
use dyno_facts::Environment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) const PROTOCOL: u32 = 4;
/// The name of a fleet without a name.
pub const FLEET: &str = "default";

/// The subject of calls for all load generators of a fleet.
pub(crate) fn call_subject(fleet: &str) -> String {
    format!("dyno.{fleet}.call")
}

pub(crate) fn own_subject(fleet: &str, id: &str) -> String {
    format!("dyno.{fleet}.generator.{id}")
}

/// Checks that a name can be part of a subject of NATS.
pub fn check_name(what: &str, name: &str) -> FleetResult<()> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !name.is_empty() && name.len() <= 64 && is_plain {
        return Ok(());
    }
    Err(FleetError::new(format!("`{name}` can't be the name of a {what}."))
        .with_hint("Use 1 to 64 letters, digits, `-` and `_`."))
}

/// The data that must be equal at both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    pub protocol: u32,
    pub schema: u32,
    pub dyno: String,
}

impl Versions {
    /// The versions of this program, which is dyno `dyno`.
    pub fn this(dyno: &str) -> Self {
        Versions { protocol: PROTOCOL, schema: dyno_facts::SCHEMA_VERSION, dyno: dyno.to_owned() }
    }
}

impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Versions { protocol, schema, dyno } = self;
        write!(f, "dyno {dyno} (messages {protocol}, schema {schema})")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub name: String,
    /// Unique for its process.
    pub id: String,
    pub versions: Versions,
    pub run: Option<String>,
    /// Set if an unencrypted connection to NATS is refused.
    pub is_tls: bool,
    pub environment: Environment,
    /// The only addresses that its user allows (`--only-hosts`); empty if nothing is named. It checks that itself with
    /// each order: here it spares a run a load that leads to nothing.
    pub only_hosts: Vec<String>,
    /// Processes that want a processor there, on average over a minute.
    pub load: f32,
}

/// A password of a target, for load generators that can't find it themselves: sent only where both ends are encrypted.
/// Debug hides the URL.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSecret {
    pub target: String,
    /// The node, where the target has several.
    pub node: Option<String>,
    pub url: String,
}

impl std::fmt::Debug for TargetSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetSecret").field("target", &self.target).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GeneratorOrder {
    /// Number among the coordinator's trials.
    pub trial: u64,
    pub versions: Versions,
    /// The plan in its stored form, without steps, with this experiment and its target only.
    pub plan: serde_json::Value,
    pub experiment: String,
    /// The target, under the name that has a URL.
    pub target: String,
    /// The planned trial, with rates and workers of the whole.
    pub planned: dyno_facts::PlannedTrial,
    /// Number of this load generator in the trial, from 0.
    pub generator: u32,
    pub generators: u32,
    pub secrets: Vec<TargetSecret>,
}

/// Most of what an order may ask for: beyond it is a mistake, or somebody who wants to break a machine.
const WORKERS_MAX: u32 = 1_000_000;
const GENERATORS_MAX: u32 = 1_000;
const RATE_MAX: f64 = 1e9;
const SECONDS_MAX: f64 = 30.0 * 86_400.0;
const SECRETS_MAX: usize = 1_000;

impl GeneratorOrder {
    /// The first value out of range, in a sentence.
    pub(crate) fn out_of_range(&self) -> Option<String> {
        let trial = &self.planned;
        let times = 0.0..=SECONDS_MAX;
        let limits = [
            (!(1..=WORKERS_MAX).contains(&trial.workers), "workers"),
            (!(1..=GENERATORS_MAX).contains(&self.generators), "load generators"),
            (self.generator >= self.generators, "its number"),
            (trial.rate.is_some_and(|rate| !(0.0..=RATE_MAX).contains(&rate)), "the rate"),
            (!times.contains(&trial.warmup_s), "the warm-up"),
            (!trial.duration_s.is_none_or(|seconds| times.contains(&seconds)), "the duration"),
            (!times.contains(&trial.interval_s), "the interval"),
            (self.secrets.len() > SECRETS_MAX, "passwords"),
        ];
        let (_, name) = limits.into_iter().find(|(is_excess, _)| *is_excess)?;
        Some(format!("The order is out of all bounds: {name}."))
    }
}

/// A question of a run; that of [`Ask::Who`] is empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) run: String,
    pub(crate) ask: Ask,
}

/// Longest age of a question, and largest difference of the clocks of two machines.
pub(crate) const QUESTION_LASTS: Nanos = 60 * SECOND;

/// A question as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SentQuestion {
    pub(crate) question: Question,
    /// Used once.
    pub(crate) nonce: String,
    /// Nanoseconds since 1970: no one answers it after that.
    pub(crate) until: i64,
}

impl SentQuestion {
    pub(crate) fn new(question: &Question) -> FleetResult<Self> {
        let deadline = calendar_now().saturating_add(QUESTION_LASTS as i64);
        Ok(SentQuestion { question: question.clone(), nonce: nonce()?, until: deadline })
    }
}

/// `Join`: work for this run and no other until it leaves, or its lease is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    Who,
    Join,
    Keep,
    Clock,
    Prepare(Box<GeneratorOrder>),
    Start { trial: u64, at: Nanos },
    Stop { trial: u64 },
    Poll { trial: u64, after: u64 },
    Leave,
}

/// `Done`: now or before. `Busy`: it works for another run, or for none. `Flow`: the body has the
/// bytes from this offset on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Here(Box<Hello>),
    Done,
    Busy { run: Option<String> },
    Refused { why: String },
    Clock { monotonic: Nanos, calendar: i64 },
    Flow { offset: u64 },
}

/// `Ready`: all workers are, and wait for the start. `Left`: the body is what the workload keeps itself; before
/// `Ended`. `Failed`: the trial could not begin, or was stopped before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Connected { connected: u32, of: u32 },
    Ready,
    Released { window: Window },
    Interval { interval: Box<MeasuredInterval> },
    Left,
    Ended { result: Box<TrialResult> },
    Failed { message: String, hint: Option<String>, is_interrupted: bool },
}

/// A message as bytes: the length of the head, the head as JSON, the body.
pub(crate) fn pack<T: Serialize>(head: &T, body: &[u8]) -> Vec<u8> {
    // All heads are plain structs with string keys: nothing of them can fail.
    let head = serde_json::to_vec(head).expect("heads have a form in JSON");
    let mut packet = Vec::with_capacity(4 + head.len() + body.len());
    packet.extend_from_slice(&(head.len() as u32).to_le_bytes());
    packet.extend_from_slice(&head);
    packet.extend_from_slice(body);
    packet
}

/// The head and the body of a message that [`pack`] has made.
pub(crate) fn unpack<T: DeserializeOwned>(packet: &[u8]) -> FleetResult<(T, &[u8])> {
    let parts = packet
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
    let Some((head, body)) = parts else {
        return Err(FleetError::new("A message can't be understood: it is cut off."));
    };
    let head = serde_json::from_slice(head)
        .map_err(|error| FleetError::new(format!("A message can't be understood: {error}.")))?;
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let packet = pack(&("a", 7), b"\0\xff");
        let (head, body): ((String, u32), &[u8]) = unpack(&packet).expect("it is whole");
        assert_eq!((head, body), (("a".to_owned(), 7), &b"\0\xff"[..]));
    }

    #[test]
    fn cut_or_strange_packets_are_refused() {
        let packet = pack(&("a", 7), b"");
        for cut in 0..packet.len() {
            assert!(unpack::<(String, u32)>(&packet[..cut]).is_err(), "{cut}");
        }
        assert!(unpack::<u32>(&packet).is_err());
        assert!(unpack::<u32>(&[0xff; 8]).is_err());
    }
}
