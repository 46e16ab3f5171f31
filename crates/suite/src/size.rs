//! A smaller plan: `--shrink F`, and `--budget 10m`, the size at which it takes about that long. `suites/README.md`
//! states these rules for users.

use crate::plan::{Overrides, Plan};
use crate::reader::{Problem, SuiteError};
use crate::suite::{Suite, SuiteExperiment};
use dyno_core::offer::{DataSizing, Scale};
use dyno_facts::format::plain;
use dyno_facts::{DataSize, ExperimentFacts, FaultPlan, Message, Purpose, say};
use std::collections::BTreeMap;

type Options = BTreeMap<String, String>;

/// A table is not shrunk below this many rows: ranges of 100 rows must still fit.
const ROWS_MIN: u64 = 1_000;
/// A factor that may be a fraction is shrunk to a multiple of this: of most smaller ones TPC-H can't make
/// tables that fit together.
const FRACTION_STEP: f64 = 0.01;
/// A window is not shrunk below this: it must hold some transactions.
const SECONDS_MIN: f64 = 1.0;
/// A counted window is not shrunk below this.
const EVENTS_MIN: u64 = 100;

/// A length of time, shrunk to whole milliseconds; not below one second unless it was.
pub(crate) fn seconds(seconds: f64, shrink: f64) -> f64 {
    whole_milliseconds(seconds * shrink).max(SECONDS_MIN).min(seconds)
}

fn whole_milliseconds(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}

/// Shrinks the times of a fault. A client's time limit of answers is not a duration of the trial.
pub(crate) fn fault(fault: &FaultPlan, shrink: f64) -> FaultPlan {
    let heal_after_s = fault.heal_after_s.map(|seconds| whole_milliseconds(seconds * shrink));
    FaultPlan { at_s: whole_milliseconds(fault.at_s * shrink), heal_after_s, ..fault.clone() }
}

/// A count of transactions, shrunk; not below 100 unless it was.
pub(crate) fn events(events: u64, shrink: f64) -> u64 {
    ((events as f64 * shrink).round() as u64).max(EVENTS_MIN).min(events)
}

/// Returns true if the suite loads the data of an experiment, for it or for another one of the same data. What it finds
/// stays it is, whatever the budget.
pub(crate) fn is_loaded(suite: &Suite, experiment: &SuiteExperiment) -> bool {
    let key = data_key(experiment);
    let mut loading = suite.experiments.iter().filter(|other| other.facts.prepare);
    loading.any(|other| data_key(other) == key)
}

/// Workload and size: experiments that share data have them in common.
fn data_key(experiment: &SuiteExperiment) -> (&str, Option<DataSize>) {
    let facts = &experiment.facts;
    let sizing = experiment.sizing.as_ref();
    (facts.workload.as_str(), sizing.and_then(|sizing| data_size(sizing, &facts.options)))
}

/// The size of the data as the options state it; `None` if the test has no size.
/// Values that are not numbers are left to the workload, which refuses them.
pub(crate) fn data_size(sizing: &DataSizing, options: &Options) -> Option<DataSize> {
    match sizing {
        DataSizing::Tables { rows, tables } => Some(DataSize {
            tables: option_value(options, tables)?,
            rows_per_table: option_value(options, rows)?,
        }),
        DataSizing::Factor { factor, rows_per_unit, .. } => Some(DataSize {
            tables: 1,
            rows_per_table: option_value(options, factor)?.checked_mul(*rows_per_unit)?,
        }),
        DataSizing::Fraction { option, rows_per_unit, .. } => Some(DataSize {
            tables: 1,
            rows_per_table: (fraction(options, option)? * *rows_per_unit as f64).round() as u64,
        }),
    }
}

fn option_value(options: &Options, scale: &Scale) -> Option<u64> {
    options.get(scale.option).map_or(Some(scale.default), |value| parse_whole(value))
}

/// sysbench takes `1e6` for a whole number, too.
fn parse_whole(value: &str) -> Option<u64> {
    let number: f64 = value.parse().ok()?;
    (number.fract() == 0.0 && (0.0..=1e15).contains(&number)).then_some(number as u64)
}

/// Shrinks the data to the share `shrink` of all rows and rewrites the options that say so. For a budget, what may be a
/// fraction becomes a number at which the right answers are known.
pub(crate) fn data(sizing: &DataSizing, options: &mut Options, shrink: f64, has_budget: bool) {
    match sizing {
        DataSizing::Tables { rows, tables } => shrink_tables(rows, tables, options, shrink),
        DataSizing::Factor { factor, rows, .. } => shrink_factor(factor, rows, options, shrink),
        DataSizing::Fraction { option, known, .. } if has_budget && !known.is_empty() => {
            shrink_to_known(option, known, options, shrink);
        }
        DataSizing::Fraction { option, .. } => shrink_fraction(option, options, shrink),
    }
}

/// The most workers that data of this size can have, if there is such a bound.
pub(crate) fn workers_max(sizing: &DataSizing, options: &Options) -> Option<u32> {
    let DataSizing::Factor { factor, workers_per_unit, .. } = sizing else { return None };
    let max_workers =
        option_value(options, factor)?.saturating_mul(u64::from((*workers_per_unit)?));
    Some(u32::try_from(max_workers).unwrap_or(u32::MAX).max(1))
}

pub(crate) fn cap_workers(wanted: &[u32], cap: Option<u32>) -> Vec<u32> {
    let mut workers: Vec<u32> = Vec::new();
    for capped in wanted.iter().map(|number| (*number).min(cap.unwrap_or(u32::MAX))) {
        if !workers.contains(&capped) {
            workers.push(capped);
        }
    }
    workers
}

/// First the rows of each table, down to 1,000, then the number of tables, down to one.
fn shrink_tables(rows: &Scale, tables: &Scale, options: &mut Options, shrink: f64) {
    let sizes = option_value(options, rows).zip(option_value(options, tables));
    let Some((rows_per_table, count)) = sizes else { return };
    let total_rows = count as f64 * rows_per_table as f64 * shrink;
    let floor = ROWS_MIN.min(rows_per_table);
    let fewer_rows = ((rows_per_table as f64 * shrink).round() as u64).max(floor);
    let fewer_tables = (total_rows / fewer_rows as f64).round() as u64;
    set_option(options, rows, fewer_rows);
    set_option(options, tables, fewer_tables.clamp(1, count.max(1)));
}

/// The factor, down to one; what counts rows shrinks as much as the factor really does.
fn shrink_factor(factor: &Scale, rows: &[&str], options: &mut Options, shrink: f64) {
    let Some(full) = option_value(options, factor).filter(|&full| full > 0) else { return };
    let shrunk = ((full as f64 * shrink).round() as u64).max(1);
    set_option(options, factor, shrunk);
    for (_, value) in options.iter_mut().filter(|(name, _)| rows.contains(&name.as_str())) {
        if let Some(count) = parse_whole(value) {
            let fewer = (count as f64 * (shrunk as f64 / full as f64)).round() as u64;
            *value = fewer.max(count.min(1)).to_string();
        }
    }
}

/// To whole hundredths, down to one.
fn shrink_fraction(name: &str, options: &mut Options, shrink: f64) {
    let Some(full) = fraction(options, name) else { return };
    let hundredths = (full * shrink / FRACTION_STEP).round().max(1.0);
    options.insert(name.to_owned(), (hundredths / 100.0).min(full).to_string());
}

/// To the largest that is not a larger, else to the smallest.
fn shrink_to_known(name: &str, known: &[f64], options: &mut Options, shrink: f64) {
    const ROUNDED: f64 = 1.0 + 1e-9;
    let Some(full) = fraction(options, name) else { return };
    let fitting = known.iter().copied().filter(|size| *size <= full * shrink * ROUNDED);
    let smallest = known.iter().copied().fold(full, f64::min);
    options.insert(name.to_owned(), fitting.fold(smallest, f64::max).to_string());
}

/// A number above 0; 1 when the option is not given.
fn fraction(options: &Options, name: &str) -> Option<f64> {
    let Some(text) = options.get(name) else { return Some(1.0) };
    text.parse().ok().filter(|number| (0.0..=1e9).contains(number) && *number > 0.0)
}

fn set_option(options: &mut Options, scale: &Scale, value: u64) {
    if options.contains_key(scale.option) || value != scale.default {
        options.insert(scale.option.to_owned(), value.to_string());
    }
}

/// No suite is smaller at a smaller share: everything is at its least.
const SHARE_LEAST: f64 = 1e-6;
/// Halvings of the span between a share that fits and one that does not.
const HALVINGS: u32 = 24;
/// Passes that are planned where time ends them: it does so before, unless they are faster than any that are known.
const PASSES_MOST: u32 = 200;

/// Seconds for the passes over queries of experiments, by their names.
pub(crate) type PassTimes = BTreeMap<String, f64>;

/// The largest plan whose estimate stays within the budget.
pub(crate) fn fit(suite: &Suite, overrides: &Overrides, budget_s: f64) -> Result<Plan, SuiteError> {
    if overrides.shrink.is_some() {
        let hint = "Leave one of them out: both say how large the run is.";
        return Err(Problem::new("`--budget` and `--shrink` can't be given together.")
            .hint(hint)
            .into());
    }
    let no_times = PassTimes::new();
    let full = build_share(suite, overrides, 1.0, &no_times)?;
    if full.estimated_s <= budget_s {
        return Ok(full);
    }
    let mut best = build_share(suite, overrides, SHARE_LEAST, &no_times)?;
    let with_answers = suite.experiments.iter().all(has_answers);
    if best.estimated_s > budget_s && !with_answers {
        let message = format!(
            "The run takes about {:.0} s at its smallest, more than the budget of {budget_s} s.",
            best.estimated_s.ceil()
        );
        let min_budget = least_budget(best.estimated_s);
        let hint = format!(
            "Give it `--budget {min_budget}` at least, fewer pairs or less to measure; `--plan` prints what each step takes."
        );
        return Err(Problem::new(message).hint(hint).into());
    }
    let (mut low, mut high) = (SHARE_LEAST, 1.0);
    for _ in 0..HALVINGS {
        let middle = three_digits((low * high).sqrt());
        if middle <= low || middle >= high {
            break;
        }
        let plan = build_share(suite, overrides, middle, &no_times)?;
        if plan.estimated_s <= budget_s {
            (low, best) = (middle, plan);
        } else {
            high = middle;
        }
    }
    let share = if with_answers { share_of_rows(&best, &full) } else { low };
    let times = pass_times(suite, &best, budget_s);
    let mut timed = build_share(suite, overrides, share, &times)?;
    // Fewer passes than the suite has may fit if those do not.
    if best.estimated_s > budget_s && timed.estimated_s > budget_s {
        timed.facts.notes.push(say!(smallest_with_answers));
    }
    Ok(timed)
}

/// The smallest plan, where a budget asks for one; it may take longer than the budget.
pub(crate) fn smallest(suite: &Suite, overrides: &Overrides) -> Option<Plan> {
    overrides.budget_s?;
    build_share(suite, overrides, SHARE_LEAST, &PassTimes::new()).ok()
}

/// The plan at a share of its full size.
fn build_share(
    suite: &Suite,
    overrides: &Overrides,
    share: f64,
    passes: &PassTimes,
) -> Result<Plan, SuiteError> {
    Plan::build_at_size(suite, &Overrides { shrink: Some(share), ..overrides.clone() }, passes)
}

/// A budget of at least `seconds`, as it is typed.
pub fn least_budget(seconds: f64) -> String {
    if seconds > 300.0 {
        format!("{:.0}m", (seconds / 60.0).ceil())
    } else {
        format!("{:.0}s", seconds.ceil())
    }
}

/// Durations of passes over queries, which are not known before the run: they get what the rest of the plan leaves of
/// the budget, each experiment as much of it as it is guessed to need.
fn pass_times(suite: &Suite, plan: &Plan, budget_s: f64) -> PassTimes {
    let mut guessed_s = PassTimes::new();
    for step in &plan.steps {
        let is_measured = step.trial().is_some_and(|trial| trial.purpose == Purpose::Measure);
        if is_measured && lasts_as_long_as_left(suite, plan, &step.experiment) {
            *guessed_s.entry(step.experiment.clone()).or_default() += step.estimated_s;
        }
    }
    let total_s: f64 = guessed_s.values().sum();
    let left_s = (budget_s - (plan.estimated_s - total_s)).max(0.0);
    // Short numbers, and in sum never more than there is.
    let times = guessed_s
        .into_iter()
        .map(|(name, own_s)| (name, (left_s * own_s / total_s * 10.0).floor() / 10.0));
    times.collect()
}

/// Returns true if the passes of an experiment may fill the time that is left of the budget: their number is fixed, and
/// nothing else bounds their time.
fn lasts_as_long_as_left(suite: &Suite, plan: &Plan, name: &str) -> bool {
    let mut written = suite.experiments.iter();
    written.any(|written| written.name.value == name && has_answers(written))
        && plan
            .experiment(name)
            .is_none_or(|planned| !planned.has_open_repeats() && planned.time_bound().is_none())
}

/// Plans passes until their time is over, unless the user or what is found says how many pairs there are. Without any
/// time the fewest are planned.
pub(crate) fn repeat(experiment: &SuiteExperiment, planned: &mut ExperimentFacts, seconds: f64) {
    let whole_units = PASSES_MOST - PASSES_MOST % planned.pairs_per_unit();
    let max_passes = whole_units.max(planned.repeats);
    let written = experiment.compare.as_ref().and_then(|compare| compare.stop.pairs);
    let has_time = seconds > 0.0;
    if let Some(comparison) = &mut planned.comparison {
        let stop = &mut comparison.stop;
        let is_open = stop.budget_s.is_some() || stop.pairs_least < stop.pairs_most;
        if written.is_some() || is_open || !has_time {
            return;
        }
        (stop.pairs_most, stop.budget_s) = (max_passes, Some(seconds));
    } else if !has_time {
        planned.repeats = 1;
        return;
    } else {
        planned.repeats_s = Some(seconds);
    }
    planned.repeats = max_passes;
}

/// Returns true if the data have sizes at which the right answers are known.
fn has_answers(experiment: &SuiteExperiment) -> bool {
    matches!(experiment.sizing, Some(DataSizing::Fraction { known, .. }) if !known.is_empty())
}

/// The effective share, if few sizes can be had.
fn share_of_rows(plan: &Plan, full: &Plan) -> f64 {
    let [rows, full_rows] = [plan, full].map(|plan| {
        let sizes = plan.experiments.iter().filter_map(|experiment| experiment.data);
        sizes.map(|size| size.rows_per_table).max().unwrap_or(1).max(1) as f64
    });
    rows / full_rows
}

/// A share that people can read and type.
fn three_digits(share: f64) -> f64 {
    format!("{share:.2e}").parse().unwrap_or(share)
}

/// A note on the size of a run, if that is not the suite's.
pub(crate) fn size_notes(
    suite: &Suite,
    overrides: &Overrides,
    experiments: &[ExperimentFacts],
) -> Vec<Message> {
    let Some(share) = overrides.shrink.filter(|share| *share < 1.0) else { return Vec::new() };
    let is_published = suite.facts.paper.is_some();
    match overrides.budget_s {
        Some(_) if !is_published && suite.experiments.iter().all(has_answers) => {
            let notes = experiments.iter().map(|planned| {
                let scale = planned.options.get("scale").cloned().unwrap_or_default();
                let name = &planned.name;
                match planned.time_bound() {
                    Some((_, seconds)) => {
                        say!(sized_with_passes, name, scale, seconds = seconds.to_string())
                    }
                    None => say!(sized_with_answers, name, scale, n = planned.repeats),
                }
            });
            notes.collect()
        }
        Some(_) if !is_published => {
            vec![say!(sized_for_the_budget, times = plain(1.0 / share))]
        }
        _ => vec![say!(shrunk_size, share = share.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option_map<const N: usize>(options: [(&str, &str); N]) -> Options {
        options.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    const fn table_sizing(rows: &'static str, tables: &'static str) -> DataSizing {
        DataSizing::Tables {
            rows: Scale { option: rows, default: 10_000 },
            tables: Scale { option: tables, default: 1 },
        }
    }

    const TABLES: DataSizing = table_sizing("table_size", "tables");
    const OLD_TABLES: DataSizing = table_sizing("oltp_table_size", "oltp_tables_count");
    const HOT_RANGE: DataSizing = DataSizing::Factor {
        factor: Scale { option: "scale", default: 1 },
        rows_per_unit: 100_000,
        rows: &["define.range"],
        workers_per_unit: None,
    };
    const TEN_WORKERS: DataSizing = DataSizing::Factor {
        factor: Scale { option: "warehouses", default: 1 },
        rows_per_unit: 300_000,
        rows: &[],
        workers_per_unit: Some(10),
    };
    const FRACTION: DataSizing = DataSizing::Fraction {
        option: "scale",
        rows_per_unit: 6_000_000,
        known: &[0.01, 0.1, 1.0],
    };

    fn shrink_rows(sizing: &DataSizing, tables: u64, rows: u64, shrink: f64) -> (u64, u64) {
        let DataSizing::Tables { rows: row_names, tables: table_names } = sizing else {
            panic!("a test with tables")
        };
        let (count, size) = (tables.to_string(), rows.to_string());
        let mut options = option_map([(table_names.option, &count), (row_names.option, &size)]);
        data(sizing, &mut options, shrink, false);
        let size = data_size(sizing, &options).expect("a size");
        (size.tables, size.rows_per_table)
    }

    #[test]
    fn rows_first_then_tables() {
        assert_eq!(shrink_rows(&OLD_TABLES, 64, 10_000_000, 1.0), (64, 10_000_000));
        assert_eq!(shrink_rows(&OLD_TABLES, 64, 10_000_000, 0.01), (64, 100_000));
        assert_eq!(shrink_rows(&OLD_TABLES, 64, 10_000_000, 0.000_05), (32, 1_000));
        assert_eq!(shrink_rows(&TABLES, 250, 25_000, 0.1), (250, 2_500));
        assert_eq!(shrink_rows(&TABLES, 250, 25_000, 0.001), (6, 1_000));
        assert_eq!(shrink_rows(&TABLES, 4, 100, 0.5), (2, 100));
        assert_eq!(shrink_rows(&TABLES, 1, 0, 0.5), (1, 0));
    }

    fn shrink_hot_rows(scale: &str, range: &str, shrink: f64) -> (u64, String) {
        let mut options =
            option_map([("scale", scale), ("define.range", range), ("define.other", "7")]);
        data(&HOT_RANGE, &mut options, shrink, false);
        assert_eq!(options["define.other"], "7");
        let rows = data_size(&HOT_RANGE, &options).expect("a size").rows_per_table;
        (rows, options["define.range"].clone())
    }

    #[test]
    fn the_share_of_hot_rows_stays() {
        assert_eq!(shrink_hot_rows("1000", "50000000", 0.01), (1_000_000, "500000".to_string()));
        assert_eq!(shrink_hot_rows("10000", "100000000", 0.000_01), (100_000, "10000".to_string()));
        assert_eq!(shrink_hot_rows("1000", "half", 0.01), (1_000_000, "half".to_string()));
        let mut options = option_map([("scale", "many")]);
        data(&HOT_RANGE, &mut options, 0.5, false);
        assert_eq!(options, option_map([("scale", "many")]));
    }

    #[test]
    fn a_warehouse_has_ten_terminals() {
        let mut options = option_map([("warehouses", "1000")]);
        assert_eq!(workers_max(&TEN_WORKERS, &options), Some(10_000));
        data(&TEN_WORKERS, &mut options, 0.002, false);
        assert_eq!(data_size(&TEN_WORKERS, &options).expect("a size").rows_per_table, 600_000);
        assert_eq!(workers_max(&TEN_WORKERS, &options), Some(20));
        data(&TEN_WORKERS, &mut options, 0.000_1, false);
        assert_eq!(workers_max(&TEN_WORKERS, &options), Some(10));
        assert_eq!(workers_max(&HOT_RANGE, &Options::new()), None);
    }

    fn shrink_scale(scale: &str, shrink: f64, has_budget: bool) -> (String, Option<u64>) {
        let mut options = option_map([("scale", scale)]);
        data(&FRACTION, &mut options, shrink, has_budget);
        (options["scale"].clone(), data_size(&FRACTION, &options).map(|size| size.rows_per_table))
    }

    #[test]
    fn a_scale_factor_may_be_a_fraction() {
        assert_eq!(shrink_scale("100", 0.0001, false), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrink_scale("100", 0.01, false), ("1".to_string(), Some(6_000_000)));
        assert_eq!(shrink_scale("0.1", 0.1, false), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrink_scale("1", 0.123, false), ("0.12".to_string(), Some(720_000)));
        assert_eq!(shrink_scale("1", 0.000_1, false), ("0.01".to_string(), Some(60_000)));
        assert_eq!(shrink_scale("0.0005", 0.5, false), ("0.0005".to_string(), Some(3_000)));
        assert_eq!(shrink_scale("tiny", 0.5, false), ("tiny".to_string(), None));
        assert_eq!(shrink_scale("0", 0.5, false), ("0".to_string(), None));
        let mut options = Options::new();
        data(&FRACTION, &mut options, 0.5, false);
        assert_eq!(options, option_map([("scale", "0.5")]));
    }

    #[test]
    fn a_budget_takes_scale_factors_with_answers() {
        assert_eq!(shrink_scale("10", 0.5, true).0, "1");
        assert_eq!(shrink_scale("10", 0.037, true).0, "0.1");
        assert_eq!(shrink_scale("3", 0.1 / 3.0, true).0, "0.1", "nothing is lost by rounding");
        assert_eq!(shrink_scale("10", 1e-6, true).0, "0.01", "the smallest");
        assert_eq!(shrink_scale("0.005", 0.5, true).0, "0.005", "never more than in full size");
        assert_eq!(shrink_scale("tiny", 0.5, true).0, "tiny");
        let mut tables = option_map([("table_size", "10000")]);
        data(&TABLES, &mut tables, 0.5, true);
        assert_eq!(tables, option_map([("table_size", "5000")]));
    }

    #[test]
    fn lengths_have_a_floor_but_never_grow() {
        assert_eq!(seconds(600.0, 0.1), 60.0);
        assert_eq!(seconds(600.0, 0.001), 1.0);
        assert_eq!(seconds(0.5, 0.001), 0.5);
        assert_eq!(seconds(0.0, 0.5), 0.0);
        assert_eq!(events(1_000_000, 0.01), 10_000);
        assert_eq!(events(1_000, 0.01), 100);
        assert_eq!(events(7, 0.01), 7);
    }

    #[test]
    fn defaults_are_shrunk_too() {
        let mut options = Options::new();
        data(&TABLES, &mut options, 0.2, false);
        assert_eq!(options, option_map([("table_size", "2000")]));
        let mut options = option_map([("table_size", "1e6")]);
        data(&TABLES, &mut options, 0.5, false);
        assert_eq!(options, option_map([("table_size", "500000")]));
        let mut options = option_map([("table_size", "many")]);
        data(&TABLES, &mut options, 0.5, false);
        assert_eq!(options, option_map([("table_size", "many")]));
    }

    #[test]
    fn shares_are_short() {
        assert_eq!(three_digits(0.083_749_21), 0.083_7);
        assert_eq!(three_digits(1.0), 1.0);
    }
}
