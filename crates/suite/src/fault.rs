//! `[experiment.fault]`: what is done to a node in the middle of each trial, so that failover and
//! durability are measured.

use crate::problem::{Problem, hint_of_known};
use crate::reader::{Reader, Sheet, Value, short};
use crate::suite::{SuiteExperiment, WithSpan};
use dyno_facts::{ExperimentFacts, FaultAction, FaultPlan, SecretCommand};
use toml::de::DeValue;

/// Seconds between two lines of the interval series where the suite doesn't say it: the times of a
/// fault are known as well as this.
pub(crate) const INTERVAL_S: f64 = 0.1;
/// How long a transaction may take before its session is given up, unless the suite says otherwise.
const ANSWER_LIMIT_S: f64 = 5.0;
/// The throughput before the fault needs some time to be known.
const BEFORE_LEAST_S: f64 = 1.0;

/// Takes the key `fault` of an experiment; `facts` are what the rest of it says.
pub(crate) fn read(
    sheet: &Sheet<'_>,
    experiment: &mut Reader<'_, '_>,
    facts: &ExperimentFacts,
) -> Option<FaultPlan> {
    let (span, value) = experiment.take("fault")?;
    let note = |message: &str, hint: &str| {
        sheet.note(&span, Problem::new(message).hint(hint));
    };
    if !facts.degrees.is_empty() {
        note(
            "A pass over queries has no moment for a fault.",
            "Faults belong to experiments whose trials have a length.",
        );
    } else if facts.duration_s.is_none() {
        note(
            "A trial with a fault needs a length: it has no `duration_s`.",
            "Add `duration_s = 60`, so that there is a time before the fault and one after it.",
        );
    }
    if facts.search.is_some() {
        note(
            "A search for the highest rate can't have a fault in its trials.",
            "Leave `objective` out.",
        );
    }
    let table = Reader::of_value(sheet, "`fault`", span.clone(), value)?;
    read_table(table, facts.duration_s)
}

fn read_table(mut table: Reader<'_, '_>, duration_s: Option<f64>) -> Option<FaultPlan> {
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
    let allow_lost = read_allow_lost(&mut table);
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
    let text = |written: Option<WithSpan<String>>| written.map(|written| written.value);
    let shell = |written| text(written).map(SecretCommand::from);
    Some(FaultPlan {
        action: action?,
        node: text(node).unwrap_or_else(|| "primary".to_owned()),
        at_s: at_s?,
        heal_after_s,
        promote,
        answer_limit_s: answer_limit_s.unwrap_or(ANSWER_LIMIT_S),
        command: shell(command),
        heal_command: shell(heal_command),
        promote_command: shell(promote_command),
        allow_lost: allow_lost.unwrap_or_default(),
    })
}

/// `allow_lost = true`, or the targets of which a loss is expected.
fn read_allow_lost(table: &mut Reader<'_, '_>) -> Option<Vec<String>> {
    let (_, value) = table.take("allow_lost")?;
    let name = |item: &Value<'_>| match item.get_ref() {
        DeValue::String(name) => Some(name.to_string()),
        _ => None,
    };
    let names = match value.get_ref() {
        DeValue::Boolean(true) => Some(vec!["*".to_owned()]),
        DeValue::Boolean(false) => Some(Vec::new()),
        DeValue::Array(items) => items.iter().map(|item| name(&item)).collect(),
        _ => name(&value).map(|name| vec![name]),
    };
    names.or_else(|| table.wrong("allow_lost", "true, false, or names of targets", value))
}

fn read_action(table: &Reader<'_, '_>, written: &WithSpan<String>) -> Option<FaultAction> {
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

/// Targets of which a loss is expected must exist.
pub(crate) fn check_allowed(sheet: &Sheet<'_>, experiment: &SuiteExperiment, known: &[&str]) {
    for target in experiment.facts.fault.iter().flat_map(|fault| &fault.allow_lost) {
        if target != "*" && !known.is_empty() && !known.contains(&target.as_str()) {
            let message = format!("`allow_lost` names `{}`, which is no target.", short(target));
            let hint = hint_of_known(target, "Targets of this file", known);
            sheet.note(&experiment.name.span, Problem::new(message).hint(hint));
        }
    }
}

/// Commands are for faults of clusters of others.
fn check_commands(
    table: &Reader<'_, '_>,
    action: Option<FaultAction>,
    [command, heal, promote]: [&Option<WithSpan<String>>; 3],
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
