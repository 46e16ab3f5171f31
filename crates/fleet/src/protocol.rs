//! What coordinator and load generators say to each other.
//!
//! The coordinator asks and a load generator answers, each question by core NATS's request and reply. A question may
//! be asked twice (an answer was lost) and then changes nothing more. What a load generator has to say of itself waits
//! in its [`crate::flow`] until it is asked, so an answer is also its sign of life.

use crate::error::{FleetError, FleetResult};
use dyno_core::Nanos;
use dyno_engine::TrialResult;
use dyno_facts::Environment;
use dyno_record::{Interval, Window};
use serde::{Deserialize, Serialize};

pub(crate) const PROTOCOL: u32 = 1;
/// The name of a fleet that has got none.
pub const FLEET: &str = "default";

/// Where the load generators of a fleet hear the call for all of them.
pub(crate) fn call_subject(fleet: &str) -> String {
    format!("dyno.{fleet}.call")
}

/// Where one load generator hears.
pub(crate) fn own_subject(fleet: &str, id: &str) -> String {
    format!("dyno.{fleet}.generator.{id}")
}

/// Looks whether a name can be part of a subject of NATS.
pub fn check_name(what: &str, name: &str) -> FleetResult<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(FleetError::new(format!("`{name}` can't be the name of a {what}."))
        .with_hint("Letters, digits, `-` and `_` make one, at most 64 of them."))
}

/// What must be the same at both ends: a plan has one meaning only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Of these messages.
    pub protocol: u32,
    /// Of what is measured.
    pub schema: u32,
    pub dyno: String,
}

impl Versions {
    /// Those of this program, which is called `dyno` of that version.
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
    /// True where its connection to NATS is refused unless it is encrypted.
    pub is_tls: bool,
    pub environment: Environment,
    /// Its machine's addresses, loopback left out.
    pub addresses: Vec<String>,
}

/// A password of a target, for load generators that can't find it themselves: only sent where both ends are
/// encrypted. Shows itself without the URL.
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
pub struct Order {
    /// Number of the trial among those that the coordinator has ordered.
    pub trial: u64,
    pub versions: Versions,
    /// The plan in its stored form, without steps, and with this experiment and its target only.
    pub plan: serde_json::Value,
    pub experiment: String,
    /// The target, under the name that has a URL.
    pub target: String,
    /// The trial of the plan, with rates and workers of the whole.
    pub planned: dyno_facts::PlannedTrial,
    /// Number of this load generator in the trial, from 0.
    pub generator: u32,
    pub generators: u32,
    pub secrets: Vec<TargetSecret>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    Who,
    /// Work for this run and no other until it leaves, or isn't heard of any more.
    Join {
        run: String,
    },
    Keep {
        run: String,
    },
    Clock {
        run: String,
    },
    Prepare {
        run: String,
        order: Box<Order>,
    },
    Start {
        run: String,
        trial: u64,
        at: Nanos,
    },
    Stop {
        run: String,
        trial: u64,
    },
    Poll {
        run: String,
        trial: u64,
        after: u64,
    },
    Leave {
        run: String,
    },
}

impl Question {
    /// The run that asks; `None` where it doesn't matter.
    pub(crate) fn run(&self) -> Option<&str> {
        match self {
            Question::Who => None,
            Question::Join { run }
            | Question::Keep { run }
            | Question::Clock { run }
            | Question::Prepare { run, .. }
            | Question::Start { run, .. }
            | Question::Stop { run, .. }
            | Question::Poll { run, .. }
            | Question::Leave { run } => Some(run),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To [`Question::Who`].
    Here(Box<Hello>),
    /// Done, or done before.
    Done,
    /// Not done: it works for another run, or for none.
    Busy {
        run: Option<String>,
    },
    /// Not done: why, in a sentence.
    Refused {
        why: String,
    },
    Clock {
        monotonic: Nanos,
        calendar: i64,
    },
    /// To [`Question::Poll`]: what stands at this offset is the body.
    Flow {
        offset: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Connected {
        connected: u32,
        of: u32,
    },
    /// All workers are; it waits for the start.
    Ready,
    Note {
        text: String,
    },
    Released {
        window: Window,
    },
    Interval {
        interval: Box<Interval>,
    },
    /// What the workload keeps itself is the body; comes before the end.
    Left,
    Ended {
        result: Box<TrialResult>,
    },
    /// It could not begin, or was stopped before.
    Failed {
        message: String,
        hint: Option<String>,
        is_interrupted: bool,
    },
}
