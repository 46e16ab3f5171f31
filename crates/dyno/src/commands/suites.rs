//! `dyno suites`, and what a run will do, before it begins: steps, sizes, seconds, tables that are made and
//! dropped.

use crate::terminal::human_time;
use crate::{CommandResult, families, offers};
use dyno_core::counted;
use dyno_facts::format::{grouped, whole};
use dyno_facts::{
    ExperimentFacts, PlanStep, PlannedTrial, Purpose, SecretUrl, StepAction, text_table,
};
use dyno_runner::failure::Failure;
use dyno_runner::{check_options, family, output};
use dyno_suite::{Overrides, Plan, Suite, bundled};
use std::collections::BTreeSet;

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/suites.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// A suite, to see its targets and experiments.
    suite: Option<String>,
    /// Print the file of the suite.
    #[arg(long, requires = "suite")]
    toml: bool,
}

/// Executes `dyno suites`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let Some(name) = &arguments.suite else {
        for bundle in bundled() {
            let suite = Suite::open(bundle.name, &offers())?;
            output::data(&describe_suite(&suite)?);
        }
        return Ok(());
    };
    if arguments.toml {
        let bundle = bundled().iter().find(|bundle| bundle.name == name).ok_or_else(|| {
            Failure::usage(format!("`{name}` isn't a bundled suite."))
                .with_hint("`dyno suites` lists them.")
        })?;
        output::data(bundle.text);
        return Ok(());
    }
    let suite = Suite::open(name, &offers())?;
    let mut text = describe_suite(&suite)?;
    if !suite.facts.description.is_empty() {
        text.push_str(&format!("\n{}\n", suite.facts.description));
    }
    let targets: Vec<_> = suite
        .targets
        .iter()
        .map(|target| vec![target.name.value.clone(), target.facts.title.clone()])
        .collect();
    text.push_str(&format!("\n{}", text_table(&["target", "title"], &targets, |_| false)));
    text.push_str(&format!("\n{}", experiments_table(&suite)?));
    output::data(&text);
    Ok(())
}

/// A plan of the suite on these of its targets, as if all of them had an address.
fn build_plan(suite: &Suite, targets: &[&str]) -> Result<Plan, Failure> {
    let targets = targets
        .iter()
        .map(|name| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/suites"))));
    let overrides = Overrides { targets: targets.collect(), ..Overrides::default() };
    Ok(Plan::build(suite, &overrides)?)
}

fn count_rows(experiment: &ExperimentFacts) -> u64 {
    experiment.data.map_or(0, |size| size.tables.saturating_mul(size.rows_per_table))
}

/// The names of its targets; one for a suite that takes any.
fn target_names(suite: &Suite) -> Vec<&str> {
    if suite.targets.is_empty() {
        return vec!["any"];
    }
    suite.targets.iter().map(|target| target.name.value.as_str()).collect()
}

fn describe_suite(suite: &Suite) -> Result<String, Failure> {
    // The most that one of the targets needs.
    let (mut max_rows, mut sessions, mut seconds) = (0, 1, 0.0_f64);
    for target in target_names(suite) {
        let plan = build_plan(suite, &[target])?;
        let steps = plan.steps.iter().filter(|step| step.target == target);
        seconds = seconds.max(steps.map(|step| step.estimated_s).sum());
        for experiment in plan.experiments.iter().filter(|e| e.targets.iter().any(|t| t == target))
        {
            max_rows = max_rows.max(count_rows(experiment));
            sessions = experiment.workers.iter().copied().fold(sessions, u32::max);
        }
    }
    let mut targets = suite.targets.iter();
    let have_urls = targets.all(|target| target.nodes.iter().any(|node| node.url.is_some()));
    let servers = match suite.targets.len() {
        1.. if have_urls => "no server".to_owned(),
        0 | 1 => "a server".to_owned(),
        count => format!("a server, as one or more of {count} targets"),
    };
    let paper = suite.facts.paper.iter().map(|paper| format!("    paper  {paper}\n"));
    Ok(format!(
        "{}: {}\n{}    needs  {servers}; up to {}, {} rows and {} a target\n",
        suite.facts.name,
        suite.facts.title,
        paper.collect::<String>(),
        counted(sessions, "session"),
        whole(max_rows as f64),
        human_time(seconds)
    ))
}

fn experiments_table(suite: &Suite) -> Result<String, Failure> {
    let plan = build_plan(suite, &target_names(suite))?;
    let mut lines = Vec::new();
    for experiment in &plan.experiments {
        let levels = if experiment.degrees.is_empty() {
            experiment.workers.iter().map(u32::to_string).collect::<Vec<_>>()
        } else {
            experiment.degrees.iter().map(|degree| format!("degree {degree}")).collect()
        };
        let steps = plan.steps.iter().filter(|step| step.experiment == experiment.name);
        let seconds: f64 = steps.map(|step| step.estimated_s).sum();
        lines.push(vec![
            experiment.name.clone(),
            format!("{} {}", experiment.workload, experiment.test),
            levels.join(" "),
            experiment.targets.len().to_string(),
            grouped(count_rows(experiment)),
            human_time(seconds),
        ]);
    }
    Ok(text_table(&["experiment", "test", "workers", "targets", "rows", "time"], &lines, |place| {
        place >= 3
    }))
}

/// Printed for a plan without steps instead of a time of zero.
pub(crate) const NOTHING_LEFT: &str = "nothing is left to run";

/// `dyno run --plan`. For a budget that is too small it prints the smallest plan and fails as the run would.
pub(crate) fn show_plan(suite: &Suite, overrides: &Overrides) -> CommandResult {
    let (mut plan, refusal) = match Plan::build(suite, overrides) {
        Ok(plan) => (plan, None),
        Err(error) => match Plan::smallest(suite, overrides) {
            Some(plan) => (plan, Some(error)),
            None => return Err(error.into()),
        },
    };
    check_options(families(), &mut plan)?;
    output::data(&plan_text(&plan)?);
    refusal.map_or(Ok(()), |error| Err(error.into()))
}

/// All of it, as `dyno run --plan` prints it.
fn plan_text(plan: &Plan) -> Result<String, Failure> {
    let length = if plan.steps.is_empty() {
        NOTHING_LEFT.to_owned()
    } else {
        format!("about {}", human_time(plan.estimated_s))
    };
    let mut text = format!("{}: {length}\n", plan.suite.title);
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(&format!(
        "\n{}\n{}\nNo server was contacted: the run itself finds whether each can be reached, lets the account in and \
         has the room.\n",
        steps_table(plan),
        describe_tables(plan)?
    ));
    if plan.experiments.iter().any(|planned| planned.retry_starved > 0) {
        text.push_str(
            "Trials that other programs disturb are repeated, for up to a quarter of the time above.\n",
        );
    }
    Ok(text)
}

/// Experiment, workers, degree and rate of a step.
type OpenLevel<'a> = (&'a str, u32, Option<u32>, Option<u64>);

/// Steps with their places in the plan.
type NumberedSteps<'a> = Vec<(usize, &'a PlanStep)>;

fn open_level<'a>(plan: &Plan, step: &'a PlanStep) -> Option<OpenLevel<'a>> {
    let StepAction::Trial(trial) = &step.action else { return None };
    let experiment = plan.experiment(&step.experiment)?;
    let is_open = experiment.has_open_repeats() && trial.purpose == Purpose::Measure;
    let rate = trial.rate.map(f64::to_bits);
    is_open.then_some((step.experiment.as_str(), trial.workers, trial.degree, rate))
}

/// A row for each step; for all repeats of a load level if the run decides their number.
fn steps_table(plan: &Plan) -> String {
    let mut rows: Vec<(Option<OpenLevel<'_>>, NumberedSteps<'_>)> = Vec::new();
    for (number, step) in (1..).zip(&plan.steps) {
        let level = open_level(plan, step);
        match rows.iter_mut().find(|(other, _)| level.is_some() && *other == level) {
            Some((_, steps)) => steps.push((number, step)),
            None => rows.push((level, vec![(number, step)])),
        }
    }
    let rows = rows.iter().map(|(_, steps)| {
        let ((first, step), (last, _)) = (steps[0], steps[steps.len() - 1]);
        let experiment = plan.experiment(&step.experiment);
        let timed: Vec<_> = steps.iter().map(|(_, step)| (*step, step.estimated_s)).collect();
        let seconds = dyno_suite::estimate(&plan.experiments, &timed, |_| 0.0);
        vec![
            if first == last { first.to_string() } else { format!("{first}–{last}") },
            step.experiment.clone(),
            join_distinct(steps.iter().map(|(_, step)| step.target.clone()).collect()),
            experiment.map_or(String::new(), |experiment| describe_step(plan, experiment, step)),
            // Those of a search that may not be needed.
            if seconds > 0.0 { format!("{seconds:.0}") } else { "–".to_owned() },
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = ["Step", "Experiment", "Target", "What", "Seconds"];
    text_table(&columns, &rows, |place| place == 0 || place == 4)
}

fn describe_step(plan: &Plan, planned: &ExperimentFacts, step: &PlanStep) -> String {
    match &step.action {
        StepAction::Prepare => match planned.data {
            Some(data) if data.tables > 1 => format!(
                "load {} tables of {} rows",
                grouped(data.tables),
                grouped(data.rows_per_table)
            ),
            Some(data) => {
                format!("load, {} rows in the largest table", grouped(data.rows_per_table))
            }
            None => "load".to_owned(),
        },
        StepAction::Trial(trial) => describe_trial(planned, trial),
        StepAction::Cleanup => match family::experiment(families(), plan, planned) {
            Ok(family) if !family.keeps_existing() => "call the script's `cleanup`".to_owned(),
            _ => "drop the tables that this run has made".to_owned(),
        },
    }
}

/// Returns workers or degree, rate, length, warm-up and repeat or purpose of a trial in a line; its target is left out.
fn describe_trial(planned: &ExperimentFacts, trial: &PlannedTrial) -> String {
    let mut text = match trial.degree {
        Some(degree) => format!("queries at degree {degree}"),
        None if trial.workers == 1 => "1 worker".to_owned(),
        None => format!("{} workers", trial.workers),
    };
    if let Some(rate) = trial.rate {
        text.push_str(&format!(" at {rate} tx/s"));
    }
    if let Some(seconds) = trial.duration_s {
        text.push_str(&format!(", {seconds} s"));
    }
    if let Some(events) = trial.events {
        text.push_str(&format!(", {} transactions", grouped(events)));
    }
    if trial.warmup_s > 0.0 {
        text.push_str(&format!(" after {} s of warm-up", trial.warmup_s));
    }
    match trial.purpose {
        Purpose::Measure => text.push_str(&describe_repeats(planned, trial.repeat)),
        Purpose::Search => text.push_str(", search"),
        Purpose::Confirm => text.push_str(", confirmation"),
    }
    text
}

/// The number of this repeat, or what ends them all.
fn describe_repeats(planned: &ExperimentFacts, repeat: u32) -> String {
    if !planned.has_open_repeats() {
        return format!(", repeat {repeat}");
    }
    let stop = planned.comparison.as_ref().map(|comparison| comparison.stop);
    match (stop, planned.time_bound()) {
        (None, bound) => {
            let (_, seconds) = bound.unwrap_or_default();
            format!(", repeated for {seconds} s")
        }
        (Some(stop), Some((min_pairs, seconds))) if !stop.may_end_sooner() => {
            format!(", pairs for {seconds} s, {min_pairs} at least")
        }
        (Some(stop), _) => format!(", up to {} pairs", stop.pairs_most),
    }
}

/// Tables of each target, in the order of their experiments.
fn describe_tables(plan: &Plan) -> Result<String, Failure> {
    let mut text = String::new();
    for target in plan.targets.iter().filter(|target| target.owner() == target.name) {
        let (mut made, mut dropped, mut scripts) = (Vec::new(), Vec::new(), Vec::new());
        for step in plan.steps.iter().filter(|step| step.target == target.name) {
            let list = match &step.action {
                StepAction::Prepare => &mut made,
                StepAction::Cleanup => &mut dropped,
                StepAction::Trial(_) => continue,
            };
            let Some(planned) = plan.experiment(&step.experiment) else { continue };
            let family = family::experiment(families(), plan, planned)?;
            if family.keeps_existing() {
                list.extend(family.tables());
            } else {
                scripts.push(planned.name.clone());
            }
        }
        let remaining = made.iter().filter(|table| !dropped.contains(table)).cloned().collect();
        text.push_str(&format!(
            "{} ({}): creates where missing: {}.\n  Drops at the end what it has created; keeps: {}. \
             Tables that are there already have to hold the same data, and are kept.\n",
            target.name,
            target.url.redacted(),
            join_distinct(made),
            join_distinct(remaining)
        ));
        if !scripts.is_empty() {
            text.push_str(&format!(
                "  Your own scripts ({}) create, change and drop what they like, also what was \
                 there before. What they leave stays, unless `cleanup = true` calls their `cleanup`.\n",
                join_distinct(scripts)
            ));
        }
    }
    Ok(text)
}

/// Each name once, in the order of the first ones.
fn join_distinct(names: Vec<String>) -> String {
    let mut distinct = BTreeSet::new();
    let names: Vec<_> = names.into_iter().filter(|name| distinct.insert(name.clone())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::SecretUrl;

    fn render_steps(pairs: &str) -> String {
        let text = format!(
            "[suite]\nname = 's'\n[target.old]\nurl = 'mysql://u@h/a'\n\
             [target.new]\nurl = 'mysql://u@h/b'\n[[experiment]]\nname = 'e'\n\
             workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = [1, 8]\nwarmup_s = 0\n\
             duration_s = 10\ncleanup = false\n\
             compare = {{ baseline = 'old', candidates = 'new', {pairs} }}\n"
        );
        let suite = Suite::parse("s.toml", &text, &[dyno_sysbench::OFFER]).expect("a suite");
        steps_table(&Plan::build(&suite, &Overrides::default()).expect("a plan"))
    }

    #[test]
    fn pairs_that_are_made_as_needed_are_one_row_for_each_level() {
        let open = render_steps("until_decided = true, budget = '5m'");
        assert_eq!(open.lines().filter(|line| line.contains(" e ")).count(), 4, "{open}");
        for level in ["1 worker, 10 s, up to 200 pairs", "8 workers, 10 s, up to 200 pairs"] {
            let row = open.lines().find(|line| line.contains(level)).unwrap_or_default();
            assert!(row.contains("–") && row.ends_with(" 300"), "{open}");
            assert!(row.contains("old, new") || row.contains("new, old"), "{open}");
        }
        let closed = render_steps("pairs = 6");
        assert_eq!(closed.matches("worker").count(), 2 * 2 * 6, "{closed}");
        assert!(closed.contains("8 workers, 10 s, repeat 6") && !closed.contains("up to"));
    }

    #[test]
    fn a_plan_without_steps_has_no_time() {
        let suite = "[suite]\nname = 's'\ntitle = 'T'\n[target.old]\nurl = 'mysql://u@h/a'\n\
                     [target.new]\n[[experiment]]\nname = 'e'\nworkload = 'sysbench'\n\
                     test = 'oltp_read_only'\ntargets = 'new'\n\
                     workers = [1]\nduration_s = 10\n";
        let suite = Suite::parse("s.toml", suite, &[dyno_sysbench::OFFER]).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        let text = plan_text(&plan).unwrap_or_else(|failure| panic!("{}", failure.message));
        assert!(text.starts_with("T: nothing is left to run\n"), "{text}");
        assert!(text.contains("\nNo server was contacted: "), "{text}");
    }

    /// The row of the passes within a budget on these targets.
    fn queries_row(targets: &[&str]) -> String {
        let targets = targets
            .iter()
            .map(|name| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/d"))));
        let (targets, budget_s) = (targets.collect(), Some(120.0));
        let overrides = Overrides { targets, budget_s, ..Overrides::default() };
        let suite = Suite::open("tpch", &[dyno_tpch::options::OFFER]).expect("a suite");
        let text = steps_table(&Plan::build(&suite, &overrides).expect("a plan"));
        let mut rows = text.lines().filter(|line| line.contains("queries at degree 0"));
        let row = rows.next().map(str::to_owned).unwrap_or_default();
        assert!(rows.next().is_none(), "one row for all of them: {text}");
        row
    }

    #[test]
    fn passes_within_a_budget_have_a_time_instead_of_a_number() {
        let alone = queries_row(&["m"]);
        assert!(alone.contains("queries at degree 0, repeated for 10"), "{alone}");
        let pairs = queries_row(&["a", "b"]);
        assert!(pairs.contains("queries at degree 0, pairs for 9"), "{pairs}");
        assert!(pairs.contains(" s, 6 at least"), "{pairs}");
    }
}
