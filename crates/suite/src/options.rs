//! Options of an experiment, as they are written.

use crate::problem::{Problem, Span};
use crate::reader::{Reader, Sheet, Value, found, short};
use crate::suite::OptionEntry;
use dyno_core::offer::{TestOffer, WorkloadOffer};
use dyno_core::options::Shape;
use toml::de::DeValue;

pub(crate) fn read_options(table: Reader<'_, '_>, workload: &WorkloadOffer) -> Vec<OptionEntry> {
    let sheet = table.sheet;
    let mut options: Vec<OptionEntry> = Vec::new();
    let mut given: Vec<String> = Vec::new();
    for (key, key_span, value) in table.into_entries() {
        let name = key.replace('-', "_");
        let note = |message: String, hint: &str| {
            sheet.note(&key_span, Problem::new(message).hint(hint));
        };
        let shape = workload.shape_of(&name);
        if let Some(remedy) = instead_of_option(&name).filter(|_| shape.is_none()) {
            note(format!("`{}` can't be an option in a suite.", short(key)), remedy);
            continue;
        }
        if given.contains(&name) {
            let hint = "Dashes and underscores in names of options are equal.";
            note(format!("The option `{}` is given twice.", short(key)), hint);
            continue;
        }
        given.push(name.clone());
        options.extend(entries(sheet, name, key_span, value, shape));
    }
    options
}

/// One option: an entry for each value of a table or a list.
fn entries(
    sheet: &Sheet<'_>,
    name: String,
    key_span: Span,
    value: Value<'_>,
    shape: Option<Shape>,
) -> Vec<OptionEntry> {
    let entry = |name, span, value| option_entry(sheet, OPTION, name, span, value);
    match (value.get_ref(), shape) {
        (DeValue::Table(_), Some(Shape::Table)) => {
            let inner = Reader::of_value(sheet, format!("`{name}`"), key_span, value);
            let inner = inner.into_iter().flat_map(Reader::into_entries);
            inner
                .filter_map(|(key, span, value)| entry(format!("{name}.{key}"), span, value))
                .collect()
        }
        (DeValue::Array(items), Some(Shape::List)) => {
            let items = (1..).zip(items.iter());
            let of = |(number, item): (u32, _)| {
                entry(format!("{name}.{number}"), key_span.clone(), item)
            };
            items.filter_map(of).collect()
        }
        // A list of one needs no brackets.
        (DeValue::String(_), Some(Shape::List)) => {
            entry(format!("{name}.1"), key_span, value).into_iter().collect()
        }
        _ => entry(name, key_span, value).into_iter().collect(),
    }
}

/// The workload and the test of an experiment that says its statements itself.
const OWN_MIX: (&str, &str) = ("pgbench", "statements");

/// Whether an experiment is plain SQL without further words.
pub(crate) fn is_own_mix(table: &Reader<'_, '_>) -> bool {
    table.has("statements") && !table.has("workload")
}

/// The workload and the test of such an experiment.
pub(crate) fn own_mix<'s>(sheet: &Sheet<'s>) -> Option<(&'s WorkloadOffer, &'static TestOffer)> {
    let workload = sheet.offers.iter().find(|workload| workload.name == OWN_MIX.0)?;
    workload.test(OWN_MIX.1).map(|test| (workload, test))
}

/// Whether the workload executes sysbench's Lua scripts.
pub(crate) fn is_lua(workload: Option<&WorkloadOffer>) -> bool {
    workload.is_some_and(|workload| workload.name == "lua")
}

/// `statements`, `parameters`, `commands` and `script` of an experiment, which are options of its workload.
pub(crate) fn read_own_mix(
    table: &mut Reader<'_, '_>,
    workload: Option<&WorkloadOffer>,
) -> Vec<OptionEntry> {
    let mut options = Vec::new();
    for (key, option, hint) in [
        ("statements", "statements", "Leave `workload` and `test` out beside `statements`."),
        ("parameters", "parameters", "They belong to `statements = [...]`."),
        ("commands", "commands", "They are commands of the script of `workload = \"lua\"`."),
        ("script", "scripts", "Scripts of pgbench's are `options = { scripts = \"my.sql\" }`."),
    ] {
        let Some((span, value)) = table.take(key) else { continue };
        let Some(workload) = workload else { continue };
        let shape = workload.shape_of(option);
        if shape.is_none() || (key == "script" && !is_lua(Some(workload))) {
            let message = format!("An experiment of `{}` has no `{key}`.", workload.name);
            table.note(&span, Problem::new(message).hint(hint));
            continue;
        }
        options.extend(entries(table.sheet, option.to_owned(), span, value, shape));
    }
    options
}

const OPTION: &str = "The option";

/// One value as it would stand on a command line; `what` it is, for messages.
pub(crate) fn option_entry(
    sheet: &Sheet<'_>,
    what: &str,
    name: String,
    key_span: Span,
    value: Value<'_>,
) -> Option<OptionEntry> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(digits) if digits.radix() == 10 => digits.to_string(),
        DeValue::Float(digits) => digits.to_string(),
        DeValue::Boolean(flag) => if *flag { "on" } else { "off" }.to_string(),
        other => {
            let message = format!(
                "{what} `{}` must be a text, a decimal number, true or false, but is {}.",
                short(&name),
                found(other)
            );
            sheet.note(&value.span(), Problem::new(message));
            return None;
        }
    };
    Some(OptionEntry { name, value: text, key_span, value_span: value.span() })
}

/// The remedy for what is no option of a workload, because an experiment or a URL states it; by its name
/// with underscores.
pub(crate) fn instead_of_option(name: &str) -> Option<&'static str> {
    Some(match name {
        "workers" | "threads" | "num_threads" | "clients" | "client" | "terminals" => {
            "Write `workers = [...]` in the experiment."
        }
        "time" | "max_time" => "Write `duration_s = ...` in the experiment.",
        "events" | "max_requests" => "Write `events = ...` in the experiment.",
        "rate" | "tx_rate" => "Write `rate = [...]` in the experiment.",
        "report_interval" => "Write `interval_s = ...` in the experiment.",
        "warmup_time" => "Write `warmup_s = ...` in the experiment.",
        "percentile" => "Write `percentiles = [...]` in the experiment.",
        "rand_seed" => "Write `seed = ...` in `[suite]`.",
        "degrees" | "degree" => "Write `degrees = [...]` in the experiment.",
        "test" => "Write `test = ...` in the experiment.",
        "db_driver" => "The scheme of the target's `url` chooses the driver.",
        "report_checkpoints" | "histogram" | "forced_shutdown" | "config_file" | "verbosity" => {
            "A run folder holds every interval and histogram; leave the option out."
        }
        "mysql_ignore_errors" => return None,
        _ if name.starts_with("mysql_") || name.starts_with("pgsql_") => {
            "How a server is reached belongs into the `url` of its `[target.NAME]`."
        }
        _ => return None,
    })
}

/// Words of other tools for keys of an experiment.
pub(crate) const EXPERIMENT_SYNONYMS: &[(&str, &str)] = &[
    ("time", "duration_s"),
    ("seconds", "duration_s"),
    ("connections", "workers"),
    ("threads", "workers"),
    ("clients", "workers"),
    ("terminals", "workers"),
    ("terminal", "workers"),
    ("concurrency", "workers"),
    ("max_requests", "events"),
    ("runs", "repeats"),
    ("trials", "repeats"),
    ("report_interval", "interval_s"),
    ("degree", "degrees"),
    ("parallel", "degrees"),
    ("dop", "degrees"),
];

/// Words of other tools for keys of a target.
pub(crate) const TARGET_SYNONYMS: &[(&str, &str)] = &[
    ("host", "url"),
    ("cpu", "vcpu"),
    ("cores", "vcpu"),
    ("memory", "memory_gib"),
    ("ram", "memory_gib"),
    ("version", "product"),
    ("node_class", "class"),
];
