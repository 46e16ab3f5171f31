//! Metrics of the execution times (clause 5.4). None of it is a TPC result.

use crate::facts::{QueryFacts, QueryOutcome, RefreshFacts, TpchMetrics};
use dyno_facts::say;
use std::collections::BTreeSet;

const QUERIES: usize = 22;

/// Largest ratio of the longest to the shortest time in the power metric: shorter times are raised
/// (clause 5.4.1.4).
const LARGEST_RATIO: f64 = 1000.0;

/// The metrics of one trial; `None` if a query of a stream is missing, failed or was
/// interrupted, or a refresh function did: a metric over fewer would be none. A query that was given
/// up counts with the time at which it was. `streams` are those of a throughput test, with the seconds from its first
/// submission to its last answer.
pub fn metrics(
    scale: f64,
    streams: Option<(u32, f64)>,
    queries: &[QueryFacts],
    refreshes: &[RefreshFacts],
) -> Option<TpchMetrics> {
    let is_whole = queries.len() == QUERIES * streams.map_or(1, |(streams, _)| streams as usize)
        && queries
            .iter()
            .all(|query| matches!(query.outcome, QueryOutcome::Answered | QueryOutcome::TimedOut))
        && refreshes.iter().all(|refresh| refresh.outcome == QueryOutcome::Answered);
    if !is_whole {
        return None;
    }
    let times: Vec<f64> = queries.iter().map(|query| query.seconds).collect();
    let (mean, sum): (f64, f64) = (geometric_mean(&times), times.iter().sum());
    let total_s = streams.map_or(sum, |(_, elapsed_s)| elapsed_s);
    let total = match streams {
        None => say!(total_of_queries, n = QUERIES, seconds = exact(total_s)),
        Some(_) => say!(total_of_streams, seconds = exact(total_s)),
    };
    let given_up = queries.iter().filter(|query| query.outcome == QueryOutcome::TimedOut);
    let penalized: BTreeSet<u8> = given_up.map(|query| query.query).collect();
    let mut metrics = TpchMetrics {
        total_s,
        geometric_mean_s: mean,
        formulas: vec![total, say!(geometric_mean, n = times.len(), seconds = exact(mean))],
        penalized: penalized.into_iter().collect(),
        ..TpchMetrics::default()
    };
    match streams {
        None => add_power(&mut metrics, scale, &times, refreshes),
        Some((streams, elapsed_s)) => {
            let throughput = f64::from(streams) * QUERIES as f64 * 3600.0 * scale / elapsed_s;
            metrics.throughput = Some(throughput);
            metrics.formulas.push(say!(
                throughput,
                streams,
                scale = scale.to_string(),
                seconds = exact(elapsed_s),
                throughput = format!("{throughput:.1}")
            ));
        }
    }
    if !metrics.penalized.is_empty() {
        let list: Vec<String> = metrics.penalized.iter().map(|query| format!("Q{query}")).collect();
        metrics.formulas.push(say!(given_up_counts, queries = list.join(", ")));
    }
    Some(metrics)
}

/// Power exists only with both refresh functions (clause 5.4.1.1).
fn add_power(metrics: &mut TpchMetrics, scale: f64, times: &[f64], refreshes: &[RefreshFacts]) {
    let [first, second] = refreshes else { return };
    if (first.function, second.function) != (1, 2) {
        return;
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    let floor_s = longest / LARGEST_RATIO;
    let raised = times.iter().filter(|time| **time < floor_s).count();
    let mut timings: Vec<f64> = times.iter().map(|time| time.max(floor_s)).collect();
    timings.extend([first.seconds, second.seconds]);
    let mean = geometric_mean(&timings);
    let power = 3600.0 * scale / mean;
    metrics.power = Some(power);
    metrics.formulas.push(say!(
        power,
        scale = scale.to_string(),
        mean_s = exact(mean),
        power = format!("{power:.1}")
    ));
    if raised > 0 {
        metrics.formulas.push(say!(
            short_times_raised,
            n = raised,
            least = format!("{floor_s:.4}")
        ));
    }
}

/// The metrics of the run with the lowest composite (clause 5.4.3: square root of power times throughput, both measured
/// on the same load), from those of power and throughput tests in turn; `None` if a run has no composite.
pub(crate) fn lowest_run(results: &[TpchMetrics]) -> Option<TpchMetrics> {
    let (runs, _) = results.as_chunks::<2>();
    let composites = runs.iter().map(|[first, second]| {
        // Only a bound is known of a query that was given up.
        let power = first.power.filter(|_| first.penalized.is_empty())?;
        Some((power, second.throughput?, (power * second.throughput?).sqrt()))
    });
    let composites = composites.collect::<Option<Vec<(f64, f64, f64)>>>()?;
    let lowest = (0..runs.len()).min_by(|a, b| composites[*a].2.total_cmp(&composites[*b].2))?;
    let mut formulas = Vec::new();
    for (number, (run, (power, throughput, qphh))) in (1_u32..).zip(runs.iter().zip(&composites)) {
        let [power, throughput, qphh] =
            [power, throughput, qphh].map(|figure| format!("{figure:.1}"));
        let composite = say!(qphh, power, throughput, qphh);
        let run_formulas = run.iter().flat_map(|test| test.formulas.clone()).chain([composite]);
        formulas.extend(run_formulas.map(|formula| say!(of_run, run = number, formula)));
    }
    formulas.push(say!(lower_run_counts, run = lowest + 1, runs = runs.len()));
    let penalized: BTreeSet<u8> = results.iter().flat_map(|test| test.penalized.clone()).collect();
    let [power, throughput] = &runs[lowest];
    Some(TpchMetrics {
        geometric_mean_s: power.geometric_mean_s,
        power: power.power,
        qphh: Some(composites[lowest].2),
        formulas,
        penalized: penalized.into_iter().collect(),
        ..throughput.clone()
    })
}

/// A number with the digits that an equation needs to come out.
fn exact(number: f64) -> String {
    let before_point = number.max(f64::MIN_POSITIVE).log10().floor() as i32;
    format!("{number:.*}", (6 - before_point).clamp(1, 12) as usize)
}

/// 0 if a time is 0. Sums logarithms: a product of many times leaves the range of numbers.
fn geometric_mean(times: &[f64]) -> f64 {
    let sum: f64 = times.iter().map(|time| time.ln()).sum();
    (sum / times.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::Message;

    fn new_queries(seconds: impl Fn(u8) -> f64) -> Vec<QueryFacts> {
        (1..=22)
            .map(|query| QueryFacts { query, seconds: seconds(query), ..<_>::default() })
            .collect()
    }

    fn new_pair(seconds: f64) -> Vec<RefreshFacts> {
        [1, 2].map(|function| RefreshFacts { function, seconds, ..<_>::default() }).to_vec()
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn power_is_the_24th_root_and_raises_what_is_too_short() {
        let even = metrics(10.0, None, &new_queries(|_| 2.0), &new_pair(2.0)).unwrap();
        assert_near(even.total_s, 44.0);
        assert_near(even.geometric_mean_s, 2.0);
        assert_near(even.power.unwrap(), 18_000.0);
        assert_eq!(even.throughput, None);

        // One query of 4000 s raises 21 of 1 s to 4 s; refresh functions are not raised.
        let uneven = new_queries(|query| if query == 7 { 4000.0 } else { 1.0 });
        let uneven = metrics(1.0, None, &uneven, &new_pair(1.0)).unwrap();
        let mean = (4000.0 * 4f64.powi(21)).powf(1.0 / 24.0);
        assert_near(uneven.power.unwrap(), 3600.0 / mean);
        assert_near(uneven.geometric_mean_s, 4000f64.powf(1.0 / 22.0));
        assert!(uneven.formulas.iter().any(|line| line.to_string().starts_with("21 times below")));
    }

    #[test]
    fn throughput_counts_the_streams() {
        let mut two_streams = new_queries(|_| 1.0);
        two_streams.extend(new_queries(|_| 3.0));
        let timed = Some((2, 100.0));
        let throughput_test = metrics(1.0, timed, &two_streams, &new_pair(1.0)).unwrap();
        assert_near(throughput_test.throughput.unwrap(), 1584.0);
        assert_near(throughput_test.total_s, 100.0);
        assert_near(throughput_test.geometric_mean_s, 3f64.sqrt());
        assert_eq!(throughput_test.power, None);
        // The numbers in the equation give its figure.
        let timed = Some((2, 0.348_326));
        let short = metrics(0.01, timed, &two_streams, &new_pair(1.0)).unwrap();
        let is_exact = short
            .formulas
            .iter()
            .any(|line: &Message| line.to_string().contains(" 0.01 / 0.348326"));
        assert!(is_exact, "{:?}", short.formulas);
    }

    #[test]
    fn nothing_is_computed_of_fewer_queries_and_penalties_are_named() {
        let full_pass = new_queries(|_| 1.0);
        assert_eq!(metrics(1.0, None, &full_pass[1..], &[]), None);
        let without = metrics(1.0, None, &full_pass, &[]).unwrap();
        assert_eq!((without.power, without.penalized), (None, vec![]));
        for outcome in [QueryOutcome::Failed("no".to_owned()), QueryOutcome::Interrupted] {
            let mut broken = full_pass.clone();
            broken[4].outcome = outcome.clone();
            assert_eq!(metrics(1.0, None, &broken, &[]), None);
            let mut pair = new_pair(1.0);
            pair[1].outcome = outcome;
            assert_eq!(metrics(1.0, None, &full_pass, &pair), None);
        }
        let mut slow = full_pass;
        slow[8].outcome = QueryOutcome::TimedOut;
        slow[8].seconds = 60.0;
        let slow = metrics(1.0, None, &slow, &[]).unwrap();
        assert_eq!(slow.penalized, [9]);
        assert_near(slow.total_s, 81.0);
        assert!(slow.formulas.last().unwrap().to_string().starts_with("Q9 did not end"));
    }

    fn run_metrics(power: f64, throughput: f64) -> [TpchMetrics; 2] {
        let first = TpchMetrics {
            power: Some(power),
            geometric_mean_s: 1.0 / power,
            formulas: vec!["power".into()],
            ..TpchMetrics::default()
        };
        let second =
            TpchMetrics { throughput: Some(throughput), total_s: 9.0, ..TpchMetrics::default() };
        [first, second]
    }

    #[test]
    fn the_run_with_the_lower_composite_counts_whole() {
        // The higher power belongs to the lower run.
        let runs = [run_metrics(4.0, 100.0), run_metrics(25.0, 9.0)].concat();
        let lowest = lowest_run(&runs).expect("both are whole");
        assert_eq!(
            (lowest.power, lowest.throughput, lowest.qphh),
            (Some(25.0), Some(9.0), Some(15.0))
        );
        assert_eq!((lowest.total_s, lowest.geometric_mean_s), (9.0, 0.04));
        let lines: Vec<String> = lowest.formulas.iter().map(ToString::to_string).collect();
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("Run 1: power", "Run 2: power"));
        assert!(lines[4].starts_with("Run 2 of 2 counts"), "{lines:?}");

        let mut given_up = runs.clone();
        given_up[0].penalized = vec![9];
        assert_eq!(lowest_run(&given_up), None, "of its power only a bound is known");
        let mut gap = runs;
        gap[1].throughput = None;
        assert_eq!(lowest_run(&gap), None, "of one run only nothing can be the lower");
        assert_eq!(lowest_run(&[]), None);
    }
}
