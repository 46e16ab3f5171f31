//! The options of an experiment with TPC-H.

use super::super::{flag, refuse_unknown, whole, wrong_value};
use crate::failure::Failure;
use dyno_core::nearest;
use dyno_suite::{Plan, PlannedExperiment, PlannedOption, Trial};
use dyno_tpch::degree::{DegreeRule, rules};
use dyno_tpch::generate::check_scale;
use dyno_tpch::parameters::Choice;
use dyno_tpch::run::{Plans, Test};

/// The names of all options; the lists have more behind a dot.
const NAMES: [&str; 16] = [
    "scale",
    "timeout_s",
    "cache",
    "cold_command",
    "parameters",
    "streams",
    "refresh",
    "pairs",
    "plans",
    "degree_rule",
    "degree_set",
    "degree_off",
    "load_sessions",
    "foreign_keys",
    "indexes",
    "force",
];
/// Options that only some tests have.
const OF_TESTS: [(&str, &[&str]); 9] = [
    ("streams", &["throughput"]),
    ("refresh", &["power", "throughput"]),
    ("pairs", &["refresh"]),
    ("parameters", &["queries", "power", "throughput"]),
    ("timeout_s", &["queries", "power", "throughput"]),
    ("plans", &["queries", "power", "throughput"]),
    ("degree_rule", &["queries", "power", "throughput"]),
    ("degree_set", &["queries", "power", "throughput"]),
    ("degree_off", &["queries", "power", "throughput"]),
];
/// The longest bound of a query: a month.
const TIMEOUT_S_MAX: f64 = 2_592_000.0;
/// More streams than any published result has.
const STREAMS_MAX: u32 = 1_000;
/// dbgen numbers its refresh sets up to this.
const PAIRS_MAX: u32 = 4_000;

/// What is done to the caches before a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// Tables and indexes are read into memory.
    Warm,
    /// This command of the shell empties them.
    Cold(String),
    /// Nothing.
    AsFound,
}

/// Where the values in the queries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Default,
    /// Anew for each repeat, from the suite's seed.
    Drawn,
    Seed(u64),
}

/// Valid options.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) test: Test,
    pub(super) scale: f64,
    pub(super) timeout_s: Option<f64>,
    pub(super) cache: Cache,
    pub(super) plans: Plans,
    /// `None` is what fits the product.
    pub(super) rule: Option<DegreeRule>,
    pub(super) load_sessions: Option<u32>,
    /// `None` is wherever the dialect can have them.
    pub(super) foreign_keys: Option<bool>,
    pub(super) indexes: bool,
    /// Loads what doesn't fit by the estimate.
    pub(super) force: bool,
    values: Values,
}

/// Options as they are written, before those that belong together are put together.
#[derive(Default)]
struct Written {
    streams: Option<u32>,
    pairs: Option<u32>,
    refresh: Option<bool>,
    cache: Option<String>,
    cold_command: Option<String>,
    rule: Option<DegreeRule>,
    set: Vec<String>,
    off: Vec<String>,
}

/// What is wrong with a value: what it takes.
type Wrong = String;

impl Options {
    /// Reads the options of an experiment.
    ///
    /// # Errors
    /// The first wrong one, with its place in the suite file.
    pub(super) fn new(plan: &Plan, experiment: &PlannedExperiment) -> Result<Self, Failure> {
        refuse_unknown(plan, experiment, &NAMES)?;
        let mut options = Options {
            test: Test::Queries,
            scale: 1.0,
            timeout_s: None,
            cache: Cache::AsFound,
            plans: Plans::Executed,
            rule: None,
            load_sessions: None,
            foreign_keys: None,
            indexes: true,
            force: false,
            values: Values::Default,
        };
        let mut written = Written::default();
        for option in &experiment.options {
            let set = options.set(&experiment.test, option, &mut written);
            set.map_err(|wanted| wrong_value(plan, experiment, option, &wanted))?;
        }
        let finished = options.finish(&experiment.test, written);
        finished.map_err(|(message, hint)| {
            plan.experiment_error(&experiment.name, message, Some(hint.to_owned()))
        })?;
        Ok(options)
    }

    /// The values of the queries of a trial.
    pub(super) fn parameters(&self, trial: &Trial) -> Choice {
        match self.values {
            Values::Default => Choice::Default,
            // What qgen's generator can be started with.
            Values::Drawn => Choice::Seed(1 + trial.seed % 2_147_483_646),
            Values::Seed(seed) => Choice::Seed(seed),
        }
    }

    fn set(
        &mut self,
        test: &str,
        option: &PlannedOption,
        written: &mut Written,
    ) -> Result<(), Wrong> {
        let (name, value) = (option.name.as_str(), option.value.as_str());
        let name = name.split('.').next().unwrap_or(name);
        if let Some((_, tests)) = OF_TESTS.iter().find(|(option, _)| *option == name)
            && !tests.contains(&test)
        {
            return Err(format!("no value in the test `{test}`"));
        }
        match name {
            "scale" => self.scale = scale(value)?,
            "timeout_s" => self.timeout_s = Some(timeout(value)?),
            "cache" => written.cache = Some(value.to_owned()),
            "cold_command" => written.cold_command = Some(value.to_owned()),
            "parameters" => self.values = values(value)?,
            "streams" => written.streams = Some(whole(value, STREAMS_MAX)?),
            "pairs" => written.pairs = Some(whole(value, PAIRS_MAX)?),
            "refresh" => written.refresh = Some(flag(value)?),
            "plans" => self.plans = plans(value)?,
            "degree_rule" => written.rule = Some(rule(value)?),
            "degree_set" => written.set.push(value.to_owned()),
            "degree_off" => written.off.push(value.to_owned()),
            "load_sessions" => self.load_sessions = Some(whole(value, 10_000)?),
            "foreign_keys" => self.foreign_keys = Some(flag(value)?),
            "indexes" => self.indexes = flag(value)?,
            "force" => self.force = flag(value)?,
            _ => {}
        }
        Ok(())
    }

    /// What several options decide together: otherwise what is wrong, and the remedy.
    fn finish(&mut self, test: &str, written: Written) -> Result<(), (String, &'static str)> {
        let refresh = written.refresh.unwrap_or(true);
        let least = Test::least_streams(self.scale);
        self.test = match test {
            "queries" => Test::Queries,
            "power" => Test::Power { refresh },
            "throughput" => Test::Throughput { streams: written.streams.unwrap_or(least), refresh },
            "refresh" => Test::Refresh { pairs: written.pairs.unwrap_or(1) },
            other => {
                let tests = "Its tests: queries, power, throughput, refresh.";
                return Err((format!("`{other}` is no test of tpch."), tests));
            }
        };
        // The papers warm before they measure; clause 5.3.1.4 forbids it in the tests of the
        // specification.
        let usual = if self.test == Test::Queries { "warm" } else { "as-is" };
        self.cache = cache(written.cache.as_deref().unwrap_or(usual), written.cold_command)?;
        self.rule = match (written.rule, written.set.is_empty() && written.off.is_empty()) {
            (rule, true) => rule,
            (Some(_), false) => {
                let message = "Both `degree_rule` and a rule of the suite's own are given.";
                return Err((message.to_owned(), "Leave out one of them."));
            }
            (None, false) => {
                let off = match written.off.is_empty() {
                    true => written.set.iter().map(|sql| sql.replace("{degree}", "0")).collect(),
                    false => written.off,
                };
                let hint = "Write `degree_set = [\"SET name = {degree}\"]`.";
                Some(DegreeRule::own(written.set, off).map_err(|wrong| (wrong, hint))?)
            }
        };
        Ok(())
    }
}

fn scale(value: &str) -> Result<f64, Wrong> {
    let number: f64 = value.parse().map_err(|_| "a number above 0".to_owned())?;
    check_scale(number).map(|()| number).map_err(|error| {
        let hint = error.hint();
        format!("another scale factor. {error} {hint}").trim_end_matches('.').to_owned()
    })
}

fn timeout(value: &str) -> Result<f64, Wrong> {
    let seconds = value.parse().ok().filter(|seconds| (0.01..=TIMEOUT_S_MAX).contains(seconds));
    seconds.ok_or_else(|| format!("seconds from 0.01 to {TIMEOUT_S_MAX}"))
}

fn values(value: &str) -> Result<Values, Wrong> {
    match value {
        "default" => Ok(Values::Default),
        "seed" => Ok(Values::Drawn),
        seed => {
            let seed = seed.parse().ok().filter(|seed| (1..=2_147_483_646).contains(seed));
            seed.map(Values::Seed)
                .ok_or_else(|| "default, seed or a whole number from 1 to 2147483646".to_owned())
        }
    }
}

fn plans(value: &str) -> Result<Plans, Wrong> {
    match value {
        "executed" | "on" => Ok(Plans::Executed),
        "estimated" => Ok(Plans::Estimated),
        "none" | "off" => Ok(Plans::Off),
        _ => Err("executed, estimated or none".to_owned()),
    }
}

fn rule(name: &str) -> Result<DegreeRule, Wrong> {
    let rules = rules();
    let names = || rules.iter().map(|rule| rule.name.as_str());
    match rules.iter().find(|rule| rule.name == name) {
        Some(rule) => Ok(rule.clone()),
        None => Err(match nearest(name, names()) {
            Some(near) => format!("the name of a rule; did you mean `{near}`?"),
            None => format!("the name of a rule: {}", names().collect::<Vec<_>>().join(", ")),
        }),
    }
}

fn cache(state: &str, cold_command: Option<String>) -> Result<Cache, (String, &'static str)> {
    let cache = match (state, cold_command) {
        ("warm", None) => Cache::Warm,
        ("as-is", None) => Cache::AsFound,
        ("cold", Some(command)) => Cache::Cold(command),
        ("cold", None) => {
            return Err((
                "`cache` is `cold`, but nothing is said that empties the caches.".to_owned(),
                "Add `cold_command`: a command of the shell, such as one that restarts the server.",
            ));
        }
        ("warm" | "as-is", Some(_)) => {
            return Err((
                format!("`cold_command` is given, but `cache` is `{state}`."),
                "Write `cache = \"cold\"`, or leave the command out.",
            ));
        }
        (other, _) => {
            return Err((format!("`cache` can't be `{other}`."), "It takes warm, cold or as-is."));
        }
    };
    Ok(cache)
}
