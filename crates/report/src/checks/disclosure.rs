//! H: disclosure.

use super::{Case, Find, Rule};
use crate::format;
use crate::model::{Finding, Group, Level, RunFacts, Spot, Target};
use crate::say;
use crate::text::Text;
use dyno_store::{RunData, RunStatus};
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "secrets",
        group: Group::H,
        level: Level::E,
        rule: "No password stands in the run folder.",
        meaning: "Whoever reads the run or its paper can log in.",
        advice: "Change that password now, remove the folder, and report it: dyno should have removed it.",
        find: Find::Case(|case| each_run(case, secrets)),
    },
    Rule {
        id: "full-size",
        group: Group::H,
        level: Level::W,
        rule: "A suite runs in full size.",
        meaning: "Data and durations are smaller than those of the suite: a rehearsal, whose figures can't be compared with published ones.",
        advice: "Leave out --shrink for figures that count.",
        find: Find::Paper(|paper| paper.runs.iter().filter_map(shrunk).collect()),
    },
    Rule {
        id: "damaged-folder",
        group: Group::H,
        level: Level::W,
        rule: "Nothing in the run folder is damaged or missing.",
        meaning: "Some of what was measured could not be read.",
        advice: "Copy the run folder again from where it was measured, or repeat the trial.",
        find: Find::Paper(|paper| {
            let of_run = |run: &RunFacts| -> Vec<Finding> {
                let place = Spot::run(&run.folder);
                let finding = |value| Finding { place: place.clone(), value };
                run.warnings.iter().cloned().map(finding).collect()
            };
            paper.runs.iter().flat_map(of_run).collect()
        }),
    },
    Rule {
        id: "captured",
        group: Group::H,
        level: Level::I,
        rule: "Everything that a reader needs to repeat the run is on record: host, kernel, CPU, memory, disk, program, seed, command, begin and end, server version, all settings, tables.",
        meaning: "Whoever repeats this run has to guess the rest.",
        advice: "Give dyno's account the right to read settings and tables, or state the facts in the suite (stated).",
        find: Find::Case(captured),
    },
    Rule {
        id: "replay",
        group: Group::H,
        level: Level::I,
        rule: "One command repeats the run: its plan and its command line are in the folder.",
        meaning: "The run can be repeated by hand only.",
        advice: "Use dyno run with a suite for figures that others should repeat.",
        find: Find::Case(|case| each_run(case, replay)),
    },
    Rule {
        id: "stated",
        group: Group::H,
        level: Level::I,
        rule: "All facts are read from the servers.",
        meaning: "These facts stand here as the suite states them; nobody has checked them.",
        advice: "Where a server lets dyno read a fact, leave the statement out.",
        find: Find::Case(|case| each_target(case, stated)),
    },
    Rule {
        id: "not-readable",
        group: Group::H,
        level: Level::I,
        rule: "The server lets dyno read its settings and counters.",
        meaning: "What could not be read is not known; checks that need it were not made.",
        advice: "Give dyno's account the right to read them (PROCESS, pg_monitor), or state them in the suite.",
        find: Find::Target(|target| {
            (!target.not_readable.is_empty())
                .then(|| Text::joined(&target.not_readable, "; ", "；"))
        }),
    },
];

fn each_run(case: &Case<'_>, find: fn(&RunData) -> Option<Text>) -> Vec<Finding> {
    let runs = case.paper.runs.iter().zip(case.runs);
    let finding = |(facts, run): (&RunFacts, &RunData)| {
        Some(Finding { place: Spot::run(&facts.folder), value: find(run)? })
    };
    runs.filter_map(finding).collect()
}

fn each_target(case: &Case<'_>, find: fn(&Case<'_>, &Target) -> Option<Text>) -> Vec<Finding> {
    let is_measured =
        |target: &&Target| case.paper.trials.iter().any(|trial| trial.target == target.label);
    let measured = case.paper.targets.iter().filter(is_measured);
    let finding = |target: &Target| {
        Some(Finding { place: Spot::target(&target.label), value: find(case, target)? })
    };
    measured.filter_map(finding).collect()
}

/// The share of the suite's size that was executed, where that is less than the whole.
fn shrunk(run: &RunFacts) -> Option<Finding> {
    let share = run.header.plan.get("shrink")?.as_f64().filter(|share| *share < 1.0)?;
    let value = say!("shrunk to {share} of its data and durations", share = share.to_string());
    Some(Finding { place: Spot::run(&run.folder), value })
}

/// What is not on record, of runs and of targets that were measured.
fn captured(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = each_run(case, |run| missing(of_run(run)));
    findings.extend(each_target(case, |case, target| missing(of_target(case, target))));
    findings
}

/// Names of facts, and whether they are known: `8 of 10; not: kernel and seed`.
fn missing(fields: Vec<(Text, bool)>) -> Option<Text> {
    let (all, known) = (fields.len(), fields.iter().filter(|(_, is_known)| *is_known).count());
    let unknown = fields.into_iter().filter(|(_, is_known)| !is_known).map(|(name, _)| name);
    let unknown: Vec<Text> = unknown.collect();
    (!unknown.is_empty()).then(|| {
        say!(
            "{known} of {all} facts; missing: {unknown}",
            known = known.to_string(),
            all = all.to_string(),
            unknown = Text::list(&unknown)
        )
    })
}

fn of_run(run: &RunData) -> Vec<(Text, bool)> {
    let header = &run.header;
    let machine = &header.environment;
    let is_over = header.status != RunStatus::Running && !run.is_growing;
    let mut fields = vec![
        (say!("host name"), !machine.host.is_empty()),
        (say!("kernel version"), !machine.kernel.is_empty()),
        (say!("CPU model"), !machine.cpu_model.is_empty() && machine.cores > 0),
        (say!("memory"), machine.memory_mib > 0.0),
        (say!("disk"), machine.machine.disk.is_some()),
        (say!("program"), !machine.binary_sha256.is_empty() && !machine.dyno_version.is_empty()),
        (say!("command"), !header.command_line.is_empty()),
        (say!("seed"), header.seed != 0),
        (say!("begin"), !header.started_at.is_empty()),
    ];
    if is_over {
        fields.push((say!("end"), header.finished_at.is_some()));
    }
    fields
}

fn of_target(case: &Case<'_>, target: &Target) -> Vec<(Text, bool)> {
    let own = || case.paper.trials.iter().filter(|trial| trial.target == target.label);
    let nodes = || own().flat_map(super::case::nodes);
    let mut fields = vec![
        (say!("server version"), target.product.contains(' ')),
        (say!("settings"), !target.all_settings.is_empty()),
    ];
    // Older runs and drop-in front ends have no conditions; what was never asked for isn't missing.
    if nodes().next().is_some() {
        fields.push((say!("tables"), nodes().any(|(_, node)| node.schema_checksum.is_some())));
    }
    fields
}

fn replay(run: &RunData) -> Option<Text> {
    let has_plan = run.header.plan.as_object().is_some_and(|plan| !plan.is_empty());
    match (has_plan, run.header.command_line.is_empty()) {
        (true, false) => None,
        (true, true) => Some(say!("no command line")),
        (false, _) => Some(say!("no plan")),
    }
}

/// What the suite states of a target.
fn stated(case: &Case<'_>, target: &Target) -> Option<Text> {
    let facts = case.facts(target)?;
    let vcpu = facts.vcpu.map(|vcpu| ("vcpu".to_owned(), format::plain(vcpu)));
    let memory = facts.memory_gib.map(|memory| ("memory_gib".to_owned(), format::plain(memory)));
    let durability = facts.durability.clone().map(|words| ("durability".to_owned(), words));
    let others = facts.stated.iter().map(|(name, value)| (name.clone(), value.clone()));
    let all = vcpu.into_iter().chain(memory).chain(durability).chain(others);
    let all: Vec<Text> = all.map(|(name, value)| Text::same(format!("{name} = {value}"))).collect();
    (!all.is_empty()).then(|| Text::joined(&all, ", ", "、"))
}

/// Where a password stands, without it.
fn secrets(run: &RunData) -> Option<Text> {
    let header = &run.header;
    let targets = || header.targets.iter();
    let of_nodes = targets().flat_map(|target| &target.nodes).map(|node| &node.url);
    let mut urls = targets().flat_map(|target| &target.urls).chain(of_nodes);
    let is_in_settings = run
        .trials
        .iter()
        .flat_map(|trial| trial.before.values())
        .any(|node| node.settings.values().any(|value| has_secret(value)));
    let places = [
        (say!("URL of a target"), urls.any(|url| has_secret(url))),
        (say!("command"), header.command_line.iter().any(|word| has_secret(word))),
        (say!("plan"), any_text(&header.plan, has_secret)),
        (say!("settings"), is_in_settings),
    ];
    let found = places.into_iter().filter(|(_, is_found)| *is_found).map(|(name, _)| name);
    let found: Vec<Text> = found.collect();
    (!found.is_empty()).then(|| Text::list(&found))
}

fn any_text(value: &Value, is_found: fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_found(text),
        Value::Array(values) => values.iter().any(|value| any_text(value, is_found)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, is_found)),
        _ => false,
    }
}

/// True of `scheme://user:secret@host` and `password=secret`; asterisks are what a removed one leaves.
fn has_secret(text: &str) -> bool {
    let is_secret = |word: &str| !word.is_empty() && !word.chars().all(|c| c == '*');
    let in_url = text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, word)| is_secret(word))
    });
    let lower = text.to_lowercase();
    let in_option = ["password", "passwd", "pwd"].into_iter().any(|name| {
        lower.match_indices(name).any(|(at, name)| {
            let rest = lower[at + name.len()..].trim_start().strip_prefix('=').unwrap_or_default();
            let rest = rest.trim_start().trim_start_matches(['"', '\'']);
            is_secret(rest.split([' ', '&', '"', '\'', ',', '\n']).next().unwrap_or_default())
        })
    });
    // A command that restores data or empties caches: `mysql -uroot -psecret`.
    let is_of_mysql = ["mysql", "mariadb"].iter().any(|name| lower.contains(name));
    let in_command = is_of_mysql
        && text.split_whitespace().any(|word| word.strip_prefix("-p").is_some_and(is_secret));
    in_url || in_option || in_command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_seen_wherever_they_stand() {
        for text in [
            "mysql://root:geheim@db/test",
            "--mysql-password=x",
            "host=a password=b",
            "password = \"x\"",
            "mysql -uroot -pgeheim test < dump.sql",
            "MYSQL_PWD=geheim mariadb test < dump.sql",
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in [
            "mysql://root@db:3306/test",
            "mysql://root:***@db/test",
            "--mysql-password=***",
            "password_encryption",
            "sqlite:/tmp/a.db",
            "mysql -uroot -p test < dump.sql",
            "pg_restore -p5432 -d test dump",
            "password = ************",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }
}
