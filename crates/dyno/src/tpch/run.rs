//! `dyno tpch run`, `power`, `throughput` and `refresh`: a suite of one experiment, made from the command line.

use super::usable_scale;
use crate::CommandResult;
use crate::commands::run::run_plan;
use crate::commands::runs::RunsFolder;
use dyno_runner::databases::{ReachedDatabase, add_target, reach};
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use dyno_suite::{Overrides, Plan, Suite};
use dyno_tpch::state::scale;
use serde_json::{Value, json};

/// The name of a target that was given none.
const TARGET: &str = "target";

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_run.txt").trim_ascii_end())]
pub(crate) struct RunArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    queries: Queries,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_power.txt").trim_ascii_end())]
pub(crate) struct PowerArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    queries: Queries,
    /// Leave out the refresh functions, and with them the power metric.
    #[arg(long)]
    no_refresh: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_throughput.txt").trim_ascii_end())]
pub(crate) struct ThroughputArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    queries: Queries,
    /// Streams of queries; without it the fewest that clause 5.3.4 allows for the scale factor.
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// A power test first, in the same trial.
    #[arg(long, conflicts_with = "no_refresh")]
    power: bool,
    /// With --power: number of times that both are executed, one after the other; the run with the lower QphH counts.
    #[arg(long, value_name = "N", requires = "power", default_value_t = 1)]
    runs: u32,
    /// Without the refresh functions.
    #[arg(long)]
    no_refresh: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/tpch_refresh.txt").trim_ascii_end())]
pub(crate) struct RefreshArguments {
    #[command(flatten)]
    place: Place,
    /// Pairs of refresh functions.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pairs: u32,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Scale factor of the data; without it that of the tables of the first target.
    #[arg(long, value_name = "S")]
    scale: Option<f64>,
    /// The database; NAME= tells several apart.
    #[arg(long = "target", value_name = "[NAME=]URL", required = true)]
    targets: Vec<String>,
    /// Number of executions of everything.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    #[command(flatten)]
    runs: RunsFolder,
    /// Begin a new run even if there is an interrupted one to continue with.
    #[arg(long)]
    new: bool,
}

#[derive(Debug, clap::Args)]
struct Queries {
    /// Parallel degrees, separated by commas; 0 is off.
    #[arg(long, value_name = "DEGREES", value_delimiter = ',', default_value = "0")]
    degree: Vec<u32>,
    /// Seconds after which a query is canceled; it counts with this time.
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    /// Content of the caches at the beginning: warm, cold or as-is.
    #[arg(long, value_name = "STATE")]
    cache: Option<String>,
    /// With --cache cold: the command of the shell that empties them.
    #[arg(long, value_name = "COMMAND")]
    cold_command: Option<String>,
    /// Values in the queries: default, seed (drawn for each repeat), or a seed of qgen's.
    #[arg(long, value_name = "VALUES", default_value = "default")]
    parameters: String,
    /// Kind of the plans, which are taken in a pass that isn't timed: executed, estimated or none.
    #[arg(long, value_name = "HOW", default_value = "executed")]
    plans: String,
    /// Measure tables that another program has loaded whatever they hold; the paper says so.
    #[arg(long)]
    trust_data: bool,
    /// Rule that sets the degree, by its name; without this option, the one that fits the product.
    #[arg(long, value_name = "NAME")]
    degree_rule: Option<String>,
    /// Your own rule: a statement that sets the degree, {degree} in its place.
    #[arg(long, value_name = "SQL")]
    degree_set: Vec<String>,
    /// Your own rule: a statement for degree 0; without it --degree-set with 0.
    #[arg(long, value_name = "SQL")]
    degree_off: Vec<String>,
}

/// An experiment: its test, what it takes for queries, and further options.
type TpchExperiment<'a> = (&'static str, Option<&'a Queries>, Vec<(&'static str, Value)>);

/// Executes `dyno tpch run`.
pub(super) fn run(arguments: &RunArguments) -> CommandResult {
    let experiment = ("queries", Some(&arguments.queries), Vec::new());
    run_experiment(&arguments.place, "run", "the 22 queries", &experiment)
}

/// Executes `dyno tpch power`.
pub(super) fn power(arguments: &PowerArguments) -> CommandResult {
    let refresh = vec![("refresh", json!(!arguments.no_refresh))];
    let experiment = ("power", Some(&arguments.queries), refresh);
    run_experiment(&arguments.place, "power", "power test", &experiment)
}

/// Executes `dyno tpch throughput`.
pub(super) fn throughput(arguments: &ThroughputArguments) -> CommandResult {
    let (place, queries) = (&arguments.place, Some(&arguments.queries));
    let description =
        if arguments.power { "power and throughput tests" } else { "throughput test" };
    // Without it the fewest for the scale factor.
    let mut options: Vec<_> =
        arguments.streams.map(|n| ("streams", json!(n))).into_iter().collect();
    let test = if arguments.power { "performance" } else { "throughput" };
    options.push(if arguments.power {
        ("runs", json!(arguments.runs))
    } else {
        ("refresh", json!(!arguments.no_refresh))
    });
    let experiment = (test, queries, options);
    run_experiment(place, "throughput", description, &experiment)
}

/// Executes `dyno tpch refresh`.
pub(super) fn refresh(arguments: &RefreshArguments) -> CommandResult {
    let pairs = vec![("pairs", json!(arguments.pairs))];
    run_experiment(&arguments.place, "refresh", "refresh functions", &("refresh", None, pairs))
}

fn run_experiment(
    place: &Place,
    verb: &str,
    description: &str,
    experiment: &TpchExperiment<'_>,
) -> CommandResult {
    let overrides = parse_targets(place)?;
    let scale = match place.scale {
        Some(scale) => scale,
        None => loaded_scale(&overrides)?,
    };
    let text = suite_text((place, scale), &overrides, (verb, description), experiment)?;
    // Without a name: no one has written this text, and no place in it would say anything.
    let suite = Suite::parse("", &text, &crate::offers())?;
    run_plan(&Plan::build(&suite, &overrides)?, &place.runs.dir, place.new)
}

/// The scale factor of the tables of the first target.
fn loaded_scale(overrides: &Overrides) -> Result<f64, Failure> {
    let [(name, url), ..] = &overrides.targets[..] else {
        return Err(Failure::usage("Targets with nodes need --scale."));
    };
    let ReachedDatabase { database, .. } = reach(name, url.expose())?;
    ask(&database.primary_admin(), async |session| scale(session).await)
}

/// The experiment as a suite, on data that are there and stay there.
fn suite_text(
    (place, scale): (&Place, f64),
    overrides: &Overrides,
    (verb, description): (&str, &str),
    (test, queries, test_options): &TpchExperiment<'_>,
) -> Result<String, Failure> {
    let title = format!("TPC-H: {description} at scale factor {}", usable_scale(scale)?);
    // As it was typed.
    let mut options = json!({"scale": scale.to_string()});
    for (name, value) in
        queries.iter().flat_map(|queries| queries.options()).chain(test_options.clone())
    {
        options[name] = value;
    }
    let mut experiment = json!({
        "name": test,
        "workload": "tpch",
        "test": test,
        "repeats": place.repeats,
        "prepare": false,
        "cleanup": false,
        "options": options,
    });
    if let Some(queries) = queries {
        experiment["degrees"] = json!(queries.degree);
    }
    let suite = json!({"name": format!("tpch-{verb}"), "title": title});
    let mut suite = json!({"suite": suite, "experiment": [experiment]});
    for (name, _) in &overrides.targets {
        suite["target"][name] = json!({});
    }
    toml::to_string(&suite).map_err(|error| Failure::new(format!("No suite can be made: {error}.")))
}

impl Queries {
    /// Returns the keys of the experiment that these options set.
    fn options(&self) -> Vec<(&'static str, Value)> {
        let mut options = vec![
            ("parameters", json!(self.parameters)),
            ("trust_data", json!(self.trust_data.then_some(true))),
            ("plans", json!(self.plans)),
            ("cache", json!(self.cache)),
            ("cold_command", json!(self.cold_command)),
            ("degree_rule", json!(self.degree_rule)),
            ("timeout_s", json!(self.timeout.map(|seconds| seconds.to_string()))),
            ("degree_set", json!(self.degree_set)),
            ("degree_off", json!(self.degree_off)),
        ];
        options.retain(|(_, value)| !value.is_null() && *value != json!([]));
        options
    }
}

fn parse_targets(place: &Place) -> Result<Overrides, Failure> {
    let mut overrides = Overrides::default();
    for target in &place.targets {
        let is_named = target.split_once('=').is_some_and(|(name, _)| !name.contains([':', '/']));
        let target = if is_named { target.clone() } else { format!("{TARGET}={target}") };
        add_target(&mut overrides, &target)?;
    }
    let with_nodes = overrides.nodes.iter().map(|(name, _)| name.as_str());
    let with_url = overrides.targets.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = with_url.chain(with_nodes).collect();
    if let Some(name) = names.iter().find(|name| names.iter().filter(|n| n == name).count() > 1) {
        return Err(Failure::usage(format!("Two targets are called `{name}`."))
            .with_hint("Name each: --target pg=postgres://... --target my=mysql://..."));
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::path::PathBuf;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ThroughputArguments,
    }

    #[test]
    fn a_command_line_becomes_a_suite() {
        let line = "throughput --scale 0.1 --power --degree 0,2 --degree-set 'SET' --timeout 60";
        let mut words: Vec<&str> = line.split(' ').filter(|word| *word != "'SET'").collect();
        let set = words.iter().position(|word| *word == "--degree-set").expect("an option");
        words.insert(set + 1, "SET \"x\" = {degree}");
        words.extend(["--target", "pg=postgres://u:geheim@h/d?a=b", "--target", "sqlite:a.db"]);
        let Line { arguments } = Line::parse_from(words);
        let overrides = parse_targets(&arguments.place).expect("targets");
        let power = ("power", Some(&arguments.queries), Vec::new());
        let text = suite_text((&arguments.place, 0.1), &overrides, ("throughput", "tests"), &power);
        let text = text.expect("a scale");
        assert!(!text.contains("geheim"), "{text}");
        let suite = Suite::parse("", &text, &[dyno_tpch::options::OFFER])
            .unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::build(&suite, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["pg", "target"]);
        let experiment = &plan.experiments[0];
        assert_eq!(experiment.degrees, [0, 2]);
        for (name, value) in
            [("degree_set.1", "SET \"x\" = {degree}"), ("timeout_s", "60"), ("scale", "0.1")]
        {
            assert_eq!(experiment.options.get(name).cloned().as_deref(), Some(value));
        }
        assert_eq!(plan.steps.len(), 4, "two degrees on two targets, no load, no removal");
    }

    #[test]
    fn two_targets_without_names_are_refused() {
        let place = Place {
            scale: Some(1.0),
            targets: vec!["sqlite:a.db".to_owned(), "sqlite:b.db".to_owned()],
            repeats: 1,
            runs: RunsFolder { dir: PathBuf::new() },
            new: false,
        };
        let failure = parse_targets(&place).expect_err("two of a name");
        assert_eq!(failure.message, "Two targets are called `target`.");
    }
}
