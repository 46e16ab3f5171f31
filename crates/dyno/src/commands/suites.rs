//! `dyno suites`, and what a run will do, before it begins: steps, sizes, seconds, tables that are made and
//! dropped.

use crate::terminal::human_time;
use crate::{Done, families, offers};
use dyno_facts::format::{grouped, whole};
use dyno_facts::{
    ExperimentFacts, PlanStep, PlannedTrial, Purpose, SecretUrl, StepAction, text_table,
};
use dyno_runner::failure::Failure;
use dyno_runner::{check_options, family, output};
use dyno_suite::{Overrides, Plan, Suite, SuiteTarget, bundled};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno suites                              what can be run without writing a suite
  dyno suites polardb-mysql-oltp           its targets and experiments
  dyno suites rds-mysql-5.6 --toml > my-suite.toml

Times are estimates: windows and warm-ups as the suite states them, loads at the pace of a small server.
Rows of pgbench, TPC-C and TPC-H are those of the largest table. `dyno help suite` explains every key of a suite.")]
pub(crate) struct Arguments {
    /// A suite, to see its targets and experiments.
    suite: Option<String>,
    /// Share of the full size for which a second duration is printed.
    #[arg(long, value_name = "F", default_value_t = 0.01)]
    shrink: f64,
    /// Print the file of the suite.
    #[arg(long, requires = "suite")]
    toml: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let Some(name) = &arguments.suite else {
        for bundle in bundled() {
            let suite = Suite::open(bundle.name, &offers())?;
            output::data(&overview(&suite, arguments.shrink)?);
        }
        return Ok(());
    };
    if arguments.toml {
        let bundle = bundled().iter().find(|bundle| bundle.name == name).ok_or_else(|| {
            Failure::usage(format!("`{name}` is no bundled suite."))
                .with_hint("`dyno suites` lists them.")
        })?;
        output::data(bundle.text);
        return Ok(());
    }
    let suite = Suite::open(name, &offers())?;
    output::data(&overview(&suite, arguments.shrink)?);
    if !suite.facts.description.is_empty() {
        output::data(&format!("\n{}\n", suite.facts.description));
    }
    output::data(&format!("\n{}", targets(&suite)?));
    output::data(&format!("\n{}", experiments(&suite)?));
    Ok(())
}

/// A plan of the suite on these of its targets, as if all of them had an address.
fn plan(suite: &Suite, shrink: f64, targets: &[&str]) -> Result<Plan, Failure> {
    let url = |name: &&str| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/suites")));
    let overrides = Overrides {
        targets: targets.iter().map(url).collect(),
        shrink: Some(shrink),
        ..Overrides::default()
    };
    Ok(Plan::build(suite, &overrides)?)
}

struct Need {
    target: String,
    experiments: usize,
    rows: u64,
    sessions: u32,
    seconds: f64,
}

impl Need {
    fn of(suite: &Suite, shrink: f64, target: &str) -> Result<Option<Need>, Failure> {
        let plan = plan(suite, shrink, &[target])?;
        let own = || plan.experiments.iter().filter(|e| e.targets.iter().any(|t| t == target));
        if own().next().is_none() {
            return Ok(None);
        }
        let steps = plan.steps.iter().filter(|step| step.target == target);
        Ok(Some(Need {
            target: target.to_owned(),
            experiments: own().count(),
            rows: own().map(rows).max().unwrap_or(0),
            sessions: own().flat_map(|e| &e.workers).max().copied().unwrap_or(1),
            seconds: steps.map(|step| step.estimated_s).sum(),
        }))
    }
}

fn rows(experiment: &ExperimentFacts) -> u64 {
    experiment.data.map_or(0, |size| size.tables.saturating_mul(size.rows_per_table))
}

/// Its targets; of a suite that takes any, one.
fn names(suite: &Suite) -> Vec<&str> {
    match suite.targets.is_empty() {
        true => vec!["any"],
        false => suite.targets.iter().map(|target| target.name.value.as_str()).collect(),
    }
}

fn needs(suite: &Suite, shrink: f64) -> Result<Vec<Need>, Failure> {
    let needs = names(suite).into_iter().map(|name| Need::of(suite, shrink, name));
    Ok(needs.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// `low` where both are equal, else `low to high`.
fn range<T: PartialEq>(low: T, high: T, text: impl Fn(T) -> String) -> String {
    match low == high {
        true => text(low),
        false => format!("{} to {}", text(low), text(high)),
    }
}

fn overview(suite: &Suite, shrink: f64) -> Result<String, Failure> {
    let mut text = format!("{}: {}\n", suite.facts.name, suite.facts.title);
    let mut line = |head: &str, body: String| text.push_str(&format!("    {head:<10}  {body}\n"));
    if let Some(paper) = &suite.facts.paper {
        line("paper", paper.clone());
    }
    let full = needs(suite, 1.0)?;
    let has_url = |target: &SuiteTarget| target.nodes.iter().any(|node| node.url.is_some());
    let has_url = !suite.targets.is_empty() && suite.targets.iter().all(has_url);
    let sessions = full.iter().map(|need| need.sessions).max().unwrap_or(0);
    let what = match (has_url, full.len()) {
        (true, _) => "no server".to_owned(),
        (false, 1) => "a server".to_owned(),
        (false, count) => format!("a server, as one or more of {count} targets"),
    };
    let sessions = (sessions > 1).then(|| format!("; up to {sessions} sessions"));
    line("needs", what + &sessions.unwrap_or_default());
    line("full size", sizes(&full));
    let shrunk = sizes(&needs(suite, shrink)?);
    line("shrunk", format!("{shrunk}, with --shrink {shrink}"));
    Ok(text)
}

/// Rows and time of one target, from the least to the most.
fn sizes(needs: &[Need]) -> String {
    let least = |value: fn(&Need) -> f64| needs.iter().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&Need) -> f64| needs.iter().map(value).fold(0.0, f64::max);
    let rows: fn(&Need) -> f64 = |need| need.rows as f64;
    let seconds: fn(&Need) -> f64 = |need| need.seconds;
    format!(
        "{} rows, about {} a target",
        range(least(rows), most(rows), whole),
        range(human_time(least(seconds)), human_time(most(seconds)), |time| time)
    )
}

fn targets(suite: &Suite) -> Result<String, Failure> {
    let mut rows = Vec::new();
    for need in needs(suite, 1.0)? {
        let title = suite.target(&need.target).map(|target| target.facts.title.clone());
        rows.push(vec![
            need.target.clone(),
            title.unwrap_or_default(),
            need.experiments.to_string(),
            grouped(need.rows),
            human_time(need.seconds),
        ]);
    }
    Ok(text_table(&["target", "title", "experiments", "rows", "time"], &rows, |place| place >= 2))
}

fn experiments(suite: &Suite) -> Result<String, Failure> {
    let plan = plan(suite, 1.0, &names(suite))?;
    let mut lines = Vec::new();
    for experiment in &plan.experiments {
        let levels = match experiment.degrees.is_empty() {
            true => experiment.workers.iter().map(u32::to_string).collect::<Vec<_>>(),
            false => experiment.degrees.iter().map(|degree| format!("degree {degree}")).collect(),
        };
        let own = plan.steps.iter().filter(|step| step.experiment == experiment.name);
        let seconds: f64 = own.map(|step| step.estimated_s).sum();
        lines.push(vec![
            experiment.name.clone(),
            format!("{} {}", experiment.workload, experiment.test),
            levels.join(" "),
            experiment.targets.len().to_string(),
            grouped(rows(experiment)),
            human_time(seconds),
        ]);
    }
    Ok(text_table(&["experiment", "test", "workers", "targets", "rows", "time"], &lines, |place| {
        place >= 3
    }))
}

/// Of a plan without steps: a time of zero would be no answer.
pub(crate) const NOTHING_LEFT: &str = "nothing is left to run";

/// A plan looks the same where nobody answers.
const NOT_ASKED: &str = "No server was asked: the run itself finds whether each can be reached, lets the account in and \
                         has the room.";
const MADE_AGAIN: &str =
    "Trials that other programs disturb are made again, for up to a quarter of the time above.";

/// `dyno run --plan`. Of a budget that is too small it prints the smallest plan and fails as the run would.
pub(crate) fn show_plan(suite: &Suite, overrides: &Overrides) -> Done {
    let (mut plan, refused) = match Plan::build(suite, overrides) {
        Ok(plan) => (plan, None),
        Err(error) => match Plan::smallest(suite, overrides) {
            Some(plan) => (plan, Some(error)),
            None => return Err(error.into()),
        },
    };
    check_options(families(), &mut plan)?;
    output::data(&text(&plan)?);
    refused.map_or(Ok(()), |error| Err(error.into()))
}

/// All of it, as `dyno run --plan` prints it.
///
/// # Errors
/// An option of an experiment is wrong.
pub(crate) fn text(plan: &Plan) -> Result<String, Failure> {
    let length = match plan.steps.is_empty() {
        true => NOTHING_LEFT.to_owned(),
        false => format!("about {}", human_time(plan.estimated_s)),
    };
    let mut text = format!("{}: {length}\n", plan.suite.title);
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(&format!("\n{}\n{}\n{NOT_ASKED}\n", steps(plan), tables(plan)?));
    if plan.experiments.iter().any(|planned| planned.retry_starved > 0) {
        text.push_str(&format!("{MADE_AGAIN}\n"));
    }
    Ok(text)
}

/// A step; or all repeats of a load level whose number the run decides.
struct StepRow<'a> {
    level: Option<OpenLevel<'a>>,
    first: usize,
    last: usize,
    /// Each with its seconds.
    steps: Vec<(&'a PlanStep, f64)>,
}

/// Its experiment, workers, degree and rate.
type OpenLevel<'a> = (&'a str, u32, Option<u32>, Option<u64>);

fn open_level<'a>(plan: &Plan, step: &'a PlanStep) -> Option<OpenLevel<'a>> {
    let StepAction::Trial(trial) = &step.action else { return None };
    let planned = plan.experiment(&step.experiment)?;
    let is_open = planned.has_open_repeats() && trial.purpose == Purpose::Measure;
    let rate = trial.rate.map(f64::to_bits);
    is_open.then_some((step.experiment.as_str(), trial.workers, trial.degree, rate))
}

fn steps(plan: &Plan) -> String {
    let mut rows: Vec<StepRow<'_>> = Vec::new();
    for (number, step) in (1..).zip(&plan.steps) {
        let level = open_level(plan, step);
        let seconds = (step, step.estimated_s);
        match rows.iter_mut().find(|row| level.is_some() && row.level == level) {
            Some(row) => {
                row.last = number;
                row.steps.push(seconds);
            }
            None => {
                rows.push(StepRow { level, first: number, last: number, steps: vec![seconds] });
            }
        }
    }
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.cells(plan)).collect();
    let columns = ["Step", "Experiment", "Target", "What", "Seconds"];
    text_table(&columns, &rows, |place| place == 0 || place == 4)
}

impl StepRow<'_> {
    fn cells(&self, plan: &Plan) -> Vec<String> {
        let step = self.steps[0].0;
        let planned = plan.experiment(&step.experiment);
        let mut targets: Vec<&str> = Vec::new();
        for (step, _) in &self.steps {
            if !targets.contains(&step.target.as_str()) {
                targets.push(&step.target);
            }
        }
        let seconds = dyno_suite::estimate(&plan.experiments, &self.steps, |_| 0.0);
        vec![
            match self.first == self.last {
                true => self.first.to_string(),
                false => format!("{}–{}", self.first, self.last),
            },
            step.experiment.clone(),
            targets.join(", "),
            planned.map_or(String::new(), |planned| what(plan, planned, step)),
            // Those of a search that may not be needed.
            if seconds > 0.0 { format!("{seconds:.0}") } else { "–".to_owned() },
        ]
    }
}

fn what(plan: &Plan, planned: &ExperimentFacts, step: &PlanStep) -> String {
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
        StepAction::Trial(trial) => of_trial(planned, trial),
        StepAction::Cleanup => match family::experiment(families(), plan, planned) {
            Ok(family) if !family.keeps_existing() => "call the script's `cleanup`".to_owned(),
            _ => "drop the tables that this run has made".to_owned(),
        },
    }
}

fn of_trial(planned: &ExperimentFacts, trial: &PlannedTrial) -> String {
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
        Purpose::Measure => text.push_str(&repeats(planned, trial.repeat)),
        Purpose::Search => text.push_str(", search"),
        Purpose::Confirm => text.push_str(", confirmation"),
    }
    text
}

/// The number of this repeat, or what ends them all.
fn repeats(planned: &ExperimentFacts, repeat: u32) -> String {
    if !planned.has_open_repeats() {
        return format!(", repeat {repeat}");
    }
    let stop = planned.comparison.as_ref().map(|comparison| comparison.stop);
    match (stop, planned.time_bound()) {
        (None, bound) => {
            let (_, seconds) = bound.unwrap_or_default();
            format!(", repeated for {seconds} s")
        }
        (Some(stop), Some((least, seconds))) if !stop.may_end_sooner() => {
            format!(", pairs for {seconds} s, {least} at least")
        }
        (Some(stop), _) => format!(", up to {} pairs", stop.pairs_most),
    }
}

/// Tables of each target, in the order of their experiments.
fn tables(plan: &Plan) -> Result<String, Failure> {
    let mut text = String::new();
    for target in plan.targets.iter().filter(|target| target.owner() == target.name) {
        let mut made: Vec<String> = Vec::new();
        let mut dropped: Vec<String> = Vec::new();
        let mut scripts: Vec<String> = Vec::new();
        for step in plan.steps.iter().filter(|step| step.target == target.name) {
            let list = match &step.action {
                StepAction::Prepare => &mut made,
                StepAction::Cleanup => &mut dropped,
                StepAction::Trial(_) => continue,
            };
            let Some(planned) = plan.experiment(&step.experiment) else { continue };
            let family = family::experiment(families(), plan, planned)?;
            if !family.keeps_existing() {
                if !scripts.contains(&planned.name) {
                    scripts.push(planned.name.clone());
                }
                continue;
            }
            for table in family.tables() {
                if !list.contains(&table) {
                    list.push(table);
                }
            }
        }
        let kept: Vec<&String> = made.iter().filter(|table| !dropped.contains(table)).collect();
        let names = |tables: &[String]| match tables {
            [] => "none".to_owned(),
            tables => tables.join(", "),
        };
        text.push_str(&format!("{} ({}):", target.name, target.url.redacted()));
        if scripts.is_empty() || !made.is_empty() {
            text.push_str(&format!(
                " creates where missing: {}.\n  {} Tables that are there already have to hold the \
                 same data, and are kept.",
                names(&made),
                fate(made.len(), &kept)
            ));
        }
        text.push('\n');
        if !scripts.is_empty() {
            text.push_str(&format!(
                "  Scripts of your own ({}) create, change and drop what they like, also what was \
                 there before. What they leave stays, unless `cleanup = true` calls their `cleanup`.\n",
                scripts.join(", ")
            ));
        }
    }
    Ok(text)
}

/// What becomes of so many tables that are created, of which some are kept.
fn fate(made: usize, kept: &[&String]) -> String {
    match kept {
        _ if made == 0 => "Drops nothing at the end.".to_owned(),
        [] => "Drops at the end what it has created.".to_owned(),
        all if all.len() == made => {
            "Drops nothing at the end: what it has created is kept.".to_owned()
        }
        some => {
            let names: Vec<&str> = some.iter().map(|table| table.as_str()).collect();
            format!("Drops at the end what it has created, but keeps {}.", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::SecretUrl;

    fn table(pairs: &str) -> String {
        let text = format!(
            "[suite]\nname = 's'\n[target.old]\nurl = 'mysql://u@h/a'\n\
             [target.new]\nurl = 'mysql://u@h/b'\n[[experiment]]\nname = 'e'\n\
             workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = [1, 8]\nwarmup_s = 0\n\
             duration_s = 10\ncleanup = false\n\
             compare = {{ baseline = 'old', candidates = 'new', {pairs} }}\n"
        );
        let suite = Suite::parse("s.toml", &text, &[dyno_sysbench::OFFER]).expect("a suite");
        steps(&Plan::build(&suite, &Overrides::default()).expect("a plan"))
    }

    #[test]
    fn pairs_that_are_made_as_needed_are_one_row_for_each_level() {
        let open = table("until_decided = true, budget = '5m'");
        assert_eq!(open.lines().filter(|line| line.contains(" e ")).count(), 4, "{open}");
        for level in ["1 worker, 10 s, up to 200 pairs", "8 workers, 10 s, up to 200 pairs"] {
            let row = open.lines().find(|line| line.contains(level)).unwrap_or_default();
            assert!(row.contains("–") && row.ends_with(" 300"), "{open}");
            assert!(row.contains("old, new") || row.contains("new, old"), "{open}");
        }
        let closed = table("pairs = 6");
        assert_eq!(closed.matches("worker").count(), 2 * 2 * 6, "{closed}");
        assert!(closed.contains("8 workers, 10 s, repeat 6") && !closed.contains("up to"));
    }

    #[test]
    fn what_is_kept_is_not_said_to_be_dropped() {
        let [one, two] = ["one", "two"].map(str::to_owned);
        assert_eq!(fate(2, &[]), "Drops at the end what it has created.");
        assert_eq!(fate(2, &[&one]), "Drops at the end what it has created, but keeps one.");
        let kept = "Drops nothing at the end: what it has created is kept.";
        assert_eq!(fate(2, &[&one, &two]), kept);
        assert_eq!(fate(0, &[]), "Drops nothing at the end.");
    }

    #[test]
    fn a_plan_without_steps_has_no_time() {
        let suite = "[suite]\nname = 's'\ntitle = 'T'\n[target.old]\nurl = 'mysql://u@h/a'\n\
                     [target.new]\n[[experiment]]\nname = 'e'\nworkload = 'sysbench'\n\
                     test = 'oltp_read_only'\ntargets = 'new'\n\
                     workers = [1]\nduration_s = 10\n";
        let suite = Suite::parse("s.toml", suite, &[dyno_sysbench::OFFER]).expect("a suite");
        let plan = Plan::build(&suite, &Overrides::default()).expect("a plan");
        let text = text(&plan).unwrap_or_else(|failure| panic!("{}", failure.message));
        assert!(text.starts_with("T: nothing is left to run\n"), "{text}");
        assert!(text.contains("\nNo server was asked: "), "{text}");
    }

    #[test]
    fn passes_within_a_budget_have_a_time_instead_of_a_number() {
        let row = |targets: &[&str]| {
            let url =
                |name: &&str| ((*name).to_owned(), SecretUrl::new(format!("mysql://{name}/d")));
            let overrides = Overrides {
                targets: targets.iter().map(url).collect(),
                budget_s: Some(120.0),
                ..Overrides::default()
            };
            let suite = Suite::open("tpch", &[dyno_tpch::options::OFFER]).expect("a suite");
            let text = steps(&Plan::build(&suite, &overrides).expect("a plan"));
            let mut rows = text.lines().filter(|line| line.contains("queries at degree 0"));
            let row = rows.next().map(str::to_owned).unwrap_or_default();
            assert!(rows.next().is_none(), "one row for all of them: {text}");
            row
        };
        let alone = row(&["m"]);
        assert!(alone.contains("queries at degree 0, repeated for 10"), "{alone}");
        let pairs = row(&["a", "b"]);
        assert!(pairs.contains("queries at degree 0, pairs for 9"), "{pairs}");
        assert!(pairs.contains(" s, 6 at least"), "{pairs}");
    }
}
