//! `dyno suites`.

use crate::terminal::human_time;
use crate::{Done, offers};
use dyno_facts::format::{grouped, whole};
use dyno_facts::text_table;
use dyno_facts::{ExperimentFacts, SecretUrl};
use dyno_runner::failure::Failure;
use dyno_runner::output;
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
