//! `[experiment.fault]`: what is done to a node in the middle of each trial, so that failover and
//! durability are measured.

use crate::problem::{Problem, hint_of_known};
use crate::reader::{Reader, Sheet, Value, short};
use crate::suite::Written;
use serde::{Deserialize, Serialize};
use toml::de::DeValue;

/// Seconds between two lines of the interval series where the suite doesn't say it: the times of a
/// fault are known as well as this.
pub(crate) const INTERVAL_S: f64 = 0.1;
/// How long a transaction may take before its session is given up, unless the suite says otherwise.
const ANSWER_LIMIT_S: f64 = 5.0;
/// The throughput before the fault needs some time to be known.
const BEFORE_LEAST_S: f64 = 1.0;

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Its process is ended at once, by SIGKILL.
    Kill,
    /// It is shut down as its product wants it.
    Stop,
    /// It is shut down and started again at once.
    Restart,
    /// Its process is held: connections stay open and nothing is answered.
    Freeze,
    /// No packet reaches it or leaves it.
    Partition,
    /// What a command of the suite does.
    Command,
}

impl FaultAction {
    /// The names in suite files.
    pub const NAMES: [&str; 6] = ["kill", "stop", "restart", "freeze", "partition", "command"];

    /// The name in suite files.
    pub fn name(self) -> &'static str {
        match self {
            FaultAction::Kill => "kill",
            FaultAction::Stop => "stop",
            FaultAction::Restart => "restart",
            FaultAction::Freeze => "freeze",
            FaultAction::Partition => "partition",
            FaultAction::Command => "command",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "kill" => FaultAction::Kill,
            "stop" => FaultAction::Stop,
            "restart" => FaultAction::Restart,
            "freeze" => FaultAction::Freeze,
            "partition" => FaultAction::Partition,
            "command" => FaultAction::Command,
            _ => return None,
        })
    }
}

/// A fault that is injected into each trial of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What is done.
    pub action: FaultAction,
    /// The node, by its name or its role; the first one of that role.
    pub node: String,
    /// Seconds from the opening of the window.
    pub at_s: f64,
    /// Seconds from the fault until it is ended: the node started, let go on, reached again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heal_after_s: Option<f64>,
    /// The node that is made the primary after the fault: its name, or empty for the first read-only
    /// node. `None` makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote: Option<String>,
    /// A transaction that takes longer is given up, and its session replaced.
    pub answer_limit_s: f64,
    /// A command of the shell that does it, for clusters that dyno has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The command that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heal_command: Option<String>,
    /// The command that makes another node the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote_command: Option<String>,
}

impl Fault {
    /// The same in a plan whose durations are a share of the suite's. How long a client waits for an
    /// answer is no duration of the trial.
    pub(crate) fn shrunk(&self, shrink: f64) -> Fault {
        let part = |seconds: f64| (seconds * shrink * 1_000.0).round() / 1_000.0;
        Fault { at_s: part(self.at_s), heal_after_s: self.heal_after_s.map(part), ..self.clone() }
    }

    /// The commands of the suite that do part of it.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let all = [&self.command, &self.heal_command, &self.promote_command];
        all.into_iter().filter_map(|command| command.as_deref())
    }
}

/// What the rest of an experiment must be like.
pub(crate) struct Surroundings {
    pub(crate) duration_s: Option<f64>,
    pub(crate) is_search: bool,
    /// A trial is a pass over queries.
    pub(crate) is_pass: bool,
}

/// Takes the key `fault` of an experiment.
pub(crate) fn read(
    sheet: &Sheet<'_>,
    experiment: &mut Reader<'_, '_>,
    around: &Surroundings,
) -> Option<Fault> {
    let (span, value) = experiment.take("fault")?;
    let note = |message: &str, hint: &str| {
        sheet.note(&span, Problem::new(message).hint(hint));
    };
    if around.is_pass {
        note(
            "A pass over queries has no moment for a fault.",
            "Faults belong to experiments of sysbench, pgbench and tpcc.",
        );
    } else if around.duration_s.is_none() {
        note(
            "A trial with a fault needs a length: it has no `duration_s`.",
            "Add `duration_s = 60`, so that there is a time before the fault and one after it.",
        );
    }
    if around.is_search {
        note(
            "A search for the highest rate can't have a fault in its trials.",
            "Leave `objective` out.",
        );
    }
    let table = Reader::of_value(sheet, "`fault`", span.clone(), value)?;
    read_table(table, around.duration_s)
}

fn read_table(mut table: Reader<'_, '_>, duration_s: Option<f64>) -> Option<Fault> {
    let action = table
        .required_text("action", "Add `action = \"kill\"`, for example.")
        .and_then(|written| read_action(&table, &written));
    let node = table.text("node");
    let at_s = read_at(&mut table, duration_s);
    let heal = table.take("heal_after_s");
    let heal_after_s = heal.as_ref().and_then(|(_, value)| {
        table.item_number("heal_after_s", value, &(0.0..=86_400.0)).map(|number| number.value)
    });
    let promote = read_promote(&mut table);
    let answer_limit_s = table.number("answer_limit_s", 0.1..=3_600.0);
    let [command, heal_command, promote_command] =
        ["command", "heal_command", "promote_command"].map(|key| table.text(key));
    if let (Some((span, _)), Some(FaultAction::Restart)) = (&heal, action) {
        let hint = "Leave `heal_after_s` out, or write `action = \"stop\"`.";
        let message = "A restart starts the node again at once.";
        table.note(span, Problem::new(message).hint(hint));
    }
    check_commands(&table, action, [&command, &heal_command, &promote_command], &promote);
    if promote.is_some() && node.as_ref().is_some_and(|node| promote.as_ref() == Some(&node.value))
    {
        let message = "The node that takes over is the one that the fault is done to.";
        let hint = "Name another node, or write `promote = true`.";
        table.note(&table.span.clone(), Problem::new(message).hint(hint));
    }
    table.finish(
        &[
            ("at", "at_s"),
            ("time", "at_s"),
            ("heal", "heal_after_s"),
            ("heal_s", "heal_after_s"),
            ("target", "node"),
            ("timeout", "answer_limit_s"),
            ("failover", "promote"),
        ],
        |_, known| known,
    );
    let text = |written: Option<Written<String>>| written.map(|written| written.value);
    Some(Fault {
        action: action?,
        node: text(node).unwrap_or_else(|| "primary".to_owned()),
        at_s: at_s?,
        heal_after_s,
        promote,
        answer_limit_s: answer_limit_s.unwrap_or(ANSWER_LIMIT_S),
        command: text(command),
        heal_command: text(heal_command),
        promote_command: text(promote_command),
    })
}

fn read_action(table: &Reader<'_, '_>, written: &Written<String>) -> Option<FaultAction> {
    let action = FaultAction::parse(&written.value);
    if action.is_none() {
        let message = format!("There is no fault `{}`.", short(&written.value));
        let hint = hint_of_known(&written.value, "Faults", &FaultAction::NAMES);
        table.note(&written.span, Problem::new(message).hint(hint));
    }
    action
}

/// The moment must lie within the window, with time before and after it.
fn read_at(table: &mut Reader<'_, '_>, duration_s: Option<f64>) -> Option<f64> {
    table.require("at_s", "Add `at_s = 20`: seconds from the opening of the window.");
    let (span, value) = table.take("at_s")?;
    let at_s = table.item_number("at_s", value, &(BEFORE_LEAST_S..=2_592_000.0))?.value;
    if duration_s.is_some_and(|duration_s| at_s + BEFORE_LEAST_S > duration_s) {
        let message = format!("The fault at {at_s} s has no second of the window after it.");
        let hint = "Let `duration_s` be longer, so that the time after the fault is measured.";
        table.note(&span, Problem::new(message).hint(hint));
    }
    Some(at_s)
}

/// `promote = true`, or the name of a node.
fn read_promote(table: &mut Reader<'_, '_>) -> Option<String> {
    let (_, value) = table.take("promote")?;
    match value.get_ref() {
        DeValue::Boolean(true) => Some(String::new()),
        DeValue::Boolean(false) => None,
        DeValue::String(name) if !name.trim().is_empty() => Some(name.to_string()),
        _ => table.wrong("promote", "true, false, or the name of a node", value as Value<'_>),
    }
}

/// Commands are for faults of clusters of others.
fn check_commands(
    table: &Reader<'_, '_>,
    action: Option<FaultAction>,
    [command, heal, promote]: [&Option<Written<String>>; 3],
    promoted: &Option<String>,
) {
    match (action, command) {
        (Some(FaultAction::Command), None) => table.missing(
            "command",
            "Add `command = \"...\"`: what the shell executes at the moment of the fault.",
        ),
        (Some(other), Some(command)) if other != FaultAction::Command => {
            let message = format!("The fault `{}` is done by dyno itself.", other.name());
            let hint = "Write `action = \"command\"`, or leave `command` out.";
            table.note(&command.span, Problem::new(message).hint(hint));
        }
        _ => {}
    }
    if let (Some(heal), true) = (heal, action.is_some_and(|it| it != FaultAction::Command)) {
        let message = "`heal_command` ends what a command has done.";
        let hint = "Write `action = \"command\"`, or leave `heal_command` out.";
        table.note(&heal.span, Problem::new(message).hint(hint));
    }
    if let (Some(promote), None) = (promote, promoted) {
        let message = "`promote_command` makes a node the primary, and none is to be.";
        let hint = "Add `promote = true`, or leave `promote_command` out.";
        table.note(&promote.span, Problem::new(message).hint(hint));
    }
}
