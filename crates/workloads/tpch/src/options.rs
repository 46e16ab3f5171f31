//! The options of TPC-H in suites.

use crate::check::KNOWN_SCALES;
use crate::degree::{DegreeRule, rules};
use crate::generate::check_scale;
use crate::load::TpchLoadOptions;
use crate::parameters::ParameterChoice;
use crate::run::{Plans, RunOptions, TpchTest};
use dyno_core::nearest;
use dyno_core::offer::{DataSizing, LargePace, Levels, TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionError, OptionRow, OptionValues, describe, read};
use dyno_load::default_sessions;
use std::mem;

/// TPC-H as suites name it.
pub const OFFER: WorkloadOffer = WorkloadOffer {
    name: "tpch",
    tests: &[
        test("queries", KNOWN_SCALES),
        // Answers are known before the first refresh function only.
        test("power", &[]),
        test("throughput", &[]),
        test("refresh", &[]),
        test("performance", &[]),
    ],
    levels: Levels::Degrees,
    workers_alias: None,
    options: || describe(OPTIONS),
    has_stages: false,
    pace: UsualPace {
        queried: 135_000.0,
        postgres: 2.8,
        large: Some(LARGE),
        ..UsualPace::loading(75_000.0)
    },
};

/// A unit of the scale factor takes about 1.6 GB with its keys, and InnoDB's buffer pool has 128 MB by default. MariaDB
/// needed 1.4 times as long for a pass over data of 1.25 times its pool, and 2.3 times over 2.3 times its pool.
const LARGE: LargePace = LargePace { rows: 480_000, loaded: 45_000.0, queried: 58_000.0 };

/// The lines of orders are the largest table.
const fn test(name: &'static str, known: &'static [f64]) -> TestOffer {
    let size = DataSizing::Fraction { option: "scale", rows_per_unit: 6_000_000, known };
    TestOffer { name, size: Some(size) }
}

const QUERIES: &[&str] = &["queries", "power", "throughput", "performance"];
/// The longest bound of a query: a month.
const TIMEOUT_S_MAX: f64 = 2_592_000.0;
/// Largest seed of qgen's generator.
const SEED_MAX: u64 = 2_147_483_646;

type Row = OptionRow<TpchSettings>;

pub const OPTIONS: &[OptionRow<TpchSettings>] = &[
    Row::new(
        "scale",
        "1",
        OptionValues::Text("a number above 0", |o, value| parse_scale(value).map(|n| (o.run.scale, o.load.scale) = (n, n))),
        "scale factor: 1 is about a gigabyte and 8.7 million rows; fractions are allowed",
    ),
    Row::new(
        "trust_data",
        "false",
        OptionValues::Flag(|o, on| o.run.trusts_data = on),
        "tables that another program has loaded are measured whatever they hold, and the paper says so; without it their \
         rows must be as many as the scale factor asks for",
    )
    .for_tests(QUERIES),
    Row::new(
        "timeout_s",
        "",
        OptionValues::Decimal(0.01, TIMEOUT_S_MAX, |o, seconds| o.run.timeout_s = Some(seconds)),
        "seconds after which a query is canceled; it counts with this time, and every figure that it is in says so",
    )
    .for_tests(QUERIES),
    Row::new(
        "cache",
        "",
        OptionValues::Choice(&CACHES, |o, at| o.cache_state = Some(CACHES[at])),
        "`warm` (so without this option in `queries`): every index and table is read into memory before each trial; \
         `cold`: `cold_command` is executed before each trial; `as-is` (so in the other tests, as the specification \
         asks): neither",
    ),
    Row::new(
        "cold_command",
        "",
        OptionValues::Text("a text", |o, command| {
            o.cold_command = Some(command.to_owned());
            Ok(())
        }),
        "for `cache = \"cold\"`: a command of the shell that empties the caches, such as one that restarts the server; \
         the name of the target is in the variable `DYNO_TARGET`: `cold_command = \"systemctl restart mariadb\"`. The \
         command appears in the run folder and the paper: a password belongs into a file that it reads",
    ),
    Row::new(
        "parameters",
        "default",
        OptionValues::Text("default, seed or a whole number from 1 to 2147483646", |o, value| {
            parse_parameter_choice(value).map(|v| o.values = v)
        }),
        "values in the queries: `default` is qgen's `-d`, `seed` draws new ones for each repeat (the same for all \
         degrees and targets of it), a number is qgen's `-r`",
    )
    .for_tests(QUERIES),
    Row::new(
        "streams",
        "",
        // More streams than any published result has.
        OptionValues::Whole(1, 1_000, |o, n| o.streams = Some(n)),
        "streams of queries; without it the fewest that clause 5.3.4 allows for the scale factor",
    )
    .for_tests(&["throughput", "performance"]),
    Row::new(
        "runs",
        "2",
        OptionValues::Whole(1, 100, |o, n| o.runs = n),
        "runs of a power test and, at once, a throughput test; the run with the lower QphH counts",
    )
    .for_tests(&["performance"]),
    Row::new(
        "refresh",
        "true",
        OptionValues::Flag(|o, on| o.refresh = on),
        "the refresh functions are executed. Answers are only known before the first of them",
    )
    .for_tests(&["power", "throughput"]),
    Row::new(
        "pairs",
        "1",
        // dbgen numbers its refresh sets up to this.
        OptionValues::Whole(1, 4_000, |o, n| o.pairs = n),
        "pairs of refresh functions",
    )
    .for_tests(&["refresh"]),
    Row::new(
        "plans",
        "executed",
        OptionValues::Choice(&["executed", "estimated", "none"], |o, at| {
            o.run.plans = [Plans::Executed, Plans::Estimated, Plans::Off][at];
        }),
        "the plans of all queries are taken in a separate pass, which is not timed, and stored in the run \
         (`trials/<n>.plans/`): `executed` executes each query once more for them where the product can, so that \
         workers and pages are counted, `estimated` does not, `none` takes no plans",
    )
    .for_tests(QUERIES),
    Row::new(
        "degree_rule",
        "",
        OptionValues::Text("the name of a rule", |o, name| parse_rule(name).map(|r| o.run.rule = Some(r))),
        "how the degree is set, by the name of a product; without it as the server says what it is",
    )
    .for_tests(QUERIES),
    Row::new(
        "degree_set",
        "",
        OptionValues::List(|o, sql| o.degree_set.push(sql.to_owned())),
        "your own rule: statements that set the degree, with `{degree}` in them: \
         `degree_set = [\"SET max_parallel_degree = {degree}\"]`",
    )
    .for_tests(QUERIES),
    Row::new(
        "degree_off",
        "",
        OptionValues::List(|o, sql| o.degree_off.push(sql.to_owned())),
        "your own rule: statements for degree 0; without them those of `degree_set` with 0",
    )
    .for_tests(QUERIES),
    Row::new(
        "load_sessions",
        "",
        OptionValues::Whole(1, 10_000, |o, n| o.load.sessions = n),
        "sessions that load at once; without it two for each core, 2 to 16",
    ),
    Row::new(
        "foreign_keys",
        "true",
        OptionValues::Flag(|o, on| o.load.foreign_keys = on),
        "the ten foreign keys, after the rows; not on SQLite",
    ),
    Row::new(
        "indexes",
        "true",
        OptionValues::Flag(|o, on| o.load.indexes = on),
        "the 14 secondary indexes of the white paper, after the keys",
    ),
    Row::new(
        "serial",
        "false",
        OptionValues::Flag(|o, on| o.load.serial = on),
        "each step of the load waits for the one before, as in the white paper; without it PostgreSQL makes keys and \
         indexes of a table while others are still filled",
    ),
];

const CACHES: [&str; 3] = ["warm", "cold", "as-is"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Tables and indexes are read into memory.
    Warm,
    /// This command of the shell empties them.
    Cold(String),
    /// Nothing.
    AsFound,
}

#[derive(Debug)]
pub struct TpchSettings {
    pub load: TpchLoadOptions,
    /// A trial, but for its degree and its parameters.
    pub run: RunOptions,
    pub cache: Cache,
    /// Parameters of the queries; `None` draws new ones for each repeat, from the suite's seed.
    values: Option<ParameterChoice>,
    // What several of these decide together is above.
    streams: Option<u32>,
    runs: u32,
    pairs: u32,
    refresh: bool,
    cache_state: Option<&'static str>,
    cold_command: Option<String>,
    degree_set: Vec<String>,
    degree_off: Vec<String>,
}

impl TpchSettings {
    /// Reads the options of the test `test`.
    pub fn read<'a>(
        test: &str,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, OptionError> {
        let mut settings = TpchSettings::new();
        read(OPTIONS, (OFFER.name, test), given, &mut settings)?;
        settings.finish(test)?;
        Ok(settings)
    }

    fn new() -> Self {
        TpchSettings {
            load: TpchLoadOptions { sessions: default_sessions(), ..TpchLoadOptions::new(1.0) },
            run: RunOptions { scale: 1.0, plans: Plans::Executed, ..RunOptions::default() },
            cache: Cache::AsFound,
            values: Some(ParameterChoice::Default),
            streams: None,
            runs: 2,
            pairs: 1,
            refresh: true,
            cache_state: None,
            cold_command: None,
            degree_set: Vec::new(),
            degree_off: Vec::new(),
        }
    }

    /// The values of the queries of a trial with this seed.
    pub fn parameters(&self, seed: u64) -> ParameterChoice {
        self.values.unwrap_or(ParameterChoice::Seed(1 + seed % SEED_MAX))
    }

    /// Sets the values that several options decide together.
    fn finish(&mut self, test: &str) -> Result<(), OptionError> {
        let refresh = self.refresh;
        let streams = self.streams.unwrap_or_else(|| TpchTest::least_streams(self.run.scale));
        self.run.test = match test {
            "queries" => TpchTest::Queries,
            "power" => TpchTest::Power { refresh },
            "throughput" => TpchTest::Throughput { streams, refresh },
            "refresh" => TpchTest::Refresh { pairs: self.pairs },
            "performance" => TpchTest::Performance { streams, runs: self.runs },
            other => {
                let message = format!("`{other}` isn't a test of tpch.");
                let hint = "Its tests: queries, power, throughput, refresh, performance.";
                return Err(OptionError::experiment(message, hint));
            }
        };
        // The papers warm before they measure; clause 5.3.1.4 forbids it in the tests of the
        // specification.
        let usual = if self.run.test == TpchTest::Queries { "warm" } else { "as-is" };
        self.cache = parse_cache(self.cache_state.unwrap_or(usual), self.cold_command.take())?;
        if self.degree_set.is_empty() && self.degree_off.is_empty() {
            return Ok(());
        }
        if self.run.rule.is_some() {
            let message = "Both `degree_rule` and a rule of the suite's own are given.";
            return Err(OptionError::experiment(message, "Leave out one of them."));
        }
        let custom_rule =
            DegreeRule::own(mem::take(&mut self.degree_set), mem::take(&mut self.degree_off));
        let hint = "Write `degree_set = [\"SET name = {degree}\"]`.";
        self.run.rule = Some(custom_rule.map_err(|wrong| OptionError::experiment(wrong, hint))?);
        Ok(())
    }
}

fn parse_scale(value: &str) -> Result<f64, String> {
    let number: f64 = value.parse().map_err(|_| "a number above 0".to_owned())?;
    check_scale(number).map(|()| number).map_err(|error| {
        let hint = error.hint().unwrap_or_default();
        format!("another scale factor. {error} {hint}").trim_end_matches('.').to_owned()
    })
}

fn parse_parameter_choice(value: &str) -> Result<Option<ParameterChoice>, String> {
    match value {
        "default" => Ok(Some(ParameterChoice::Default)),
        "seed" => Ok(None),
        seed => match seed.parse() {
            Ok(seed) if (1..=SEED_MAX).contains(&seed) => Ok(Some(ParameterChoice::Seed(seed))),
            _ => Err(format!("default, seed or a whole number from 1 to {SEED_MAX}")),
        },
    }
}

fn parse_rule(name: &str) -> Result<DegreeRule, String> {
    let rules = rules();
    let names = rules.iter().map(|rule| rule.name.as_str());
    match rules.iter().find(|rule| rule.name == name) {
        Some(rule) => Ok(rule.clone()),
        None => Err(match nearest(name, names.clone()) {
            Some(near) => format!("the name of a rule; did you mean `{near}`?"),
            None => format!("the name of a rule: {}", names.collect::<Vec<_>>().join(", ")),
        }),
    }
}

fn parse_cache(state: &str, cold_command: Option<String>) -> Result<Cache, OptionError> {
    match (state, cold_command) {
        ("cold", Some(command)) => Ok(Cache::Cold(command)),
        ("cold", None) => Err(OptionError::experiment(
            "`cache` is `cold`, but no command empties the caches.",
            "Add `cold_command`: a command of the shell, such as one that restarts the server.",
        )),
        (other, Some(_)) => Err(OptionError::experiment(
            format!("`cold_command` is given, but `cache` is `{other}`."),
            "Write `cache = \"cold\"`, or leave the command out.",
        )),
        ("warm", None) => Ok(Cache::Warm),
        (_, None) => Ok(Cache::AsFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_takes_what_it_says() {
        dyno_core::options::check_table(OPTIONS, TpchSettings::new);
        let options =
            [("cache", "cold"), ("cold_command", "true"), ("degree_set.1", "SET x = {degree}")];
        let settings = TpchSettings::read("power", options).expect("good options");
        assert_eq!(settings.run.test, TpchTest::Power { refresh: true });
        assert_eq!(settings.cache, Cache::Cold("true".to_owned()));
        assert!(settings.run.rule.is_some());
        let error = TpchSettings::read("queries", [("streams", "2")]).expect_err("no streams");
        assert_eq!(error.hint.as_deref(), Some("It is an option of `throughput`, `performance`."));
    }

    #[test]
    fn a_bound_is_taken_as_it_is_set_or_refused() {
        let settings = TpchSettings::read("power", [("timeout_s", "0.01")]).expect("a bound");
        assert_eq!(settings.run.timeout_s, Some(0.01));
        for bound in ["0.009", "0", "-1", "NaN", "2592001"] {
            let result = TpchSettings::read("power", [("timeout_s", bound)]);
            assert!(result.is_err_and(|error| error.message.contains("0.01")), "{bound}");
        }
    }
}
