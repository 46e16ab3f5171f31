//! The performance test: runs of a power test and, at once, a throughput test. The run with the lower composite counts
//! (chapter 5).

use super::options::{PlanFile, Plans, RunOptions, TpchTest, TrialWatch};
use crate::facts::{QueryFacts, RefreshFacts, TpchFacts, TpchMetrics};
use dyno_core::{AdminDriver, Nanos, SECOND};
use dyno_facts::say;
use dyno_load::LoadError;
use dyno_reactor::monotonic_now;
use std::cell::Cell;

/// Executes the parts one after the other, until one has no metrics or `stop` says true.
pub(super) fn run(
    driver: &AdminDriver<'_>,
    options: &RunOptions,
    [streams, runs]: [u32; 2],
    watch: &dyn TrialWatch,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<TpchFacts, LoadError> {
    let power = TpchTest::Power { refresh: true };
    let throughput = TpchTest::Throughput { streams, refresh: true };
    let tests = [power, throughput].into_iter().cycle().take(2 * runs as usize);
    let (mut whole, mut all): (Option<TpchFacts>, _) = (None, Vec::new());
    let part = TestPart { watch, began: Cell::new(None), offset_s: Cell::new(0.0) };
    for (number, test) in (1..).zip(tests) {
        if number > 1 && stop() {
            break;
        }
        // Between two parts nothing may happen, a pass for plans least of all.
        let plans = if number == 2 * runs { options.plans } else { Plans::Off };
        let facts =
            super::run(driver, &RunOptions { test, plans, ..options.clone() }, &part, stop)?;
        let metrics = facts.metrics.clone();
        append(&mut whole, facts, part.offset_s.get());
        let Some(metrics) = metrics else { break };
        all.push(metrics);
    }
    let mut whole = whole.unwrap_or_default();
    whole.test = options.test.name().to_owned();
    whole.metrics = lower(&all).filter(|_| all.len() == 2 * runs as usize);
    Ok(whole)
}

/// Adds what a part has executed, with times from the begin of the first one.
fn append(whole: &mut Option<TpchFacts>, mut part: TpchFacts, offset_s: f64) {
    part.queries.iter_mut().for_each(|query| later_query(query, offset_s));
    part.refreshes.iter_mut().for_each(|refresh| refresh.began_s += offset_s);
    let Some(whole) = whole else { return *whole = Some(part) };
    whole.queries.append(&mut part.queries);
    whole.refreshes.append(&mut part.refreshes);
    // What the refresh functions of earlier parts have done is no departure.
    whole.degree = part.degree;
}

fn later_query(query: &mut QueryFacts, offset_s: f64) {
    query.began_s += offset_s;
    query.ended_s += offset_s;
}

/// The metrics of the run with the lowest composite, from those of power and throughput tests in turn; `None` where a
/// run has no composite.
fn lower(all: &[TpchMetrics]) -> Option<TpchMetrics> {
    let (runs, _) = all.as_chunks::<2>();
    let composites: Option<Vec<f64>> = runs.iter().map(|[_, second]| second.qphh).collect();
    let composites = composites?;
    let least = (0..runs.len()).min_by(|a, b| composites[*a].total_cmp(&composites[*b]))?;
    let [power, throughput] = &runs[least];
    let of_run = |(run, both): (u32, &[TpchMetrics; 2])| {
        let formulas: Vec<_> = both.iter().flat_map(|one| one.formulas.clone()).collect();
        formulas.into_iter().map(move |formula| say!(of_run, run = run, formula = formula))
    };
    let mut formulas: Vec<_> = (1..).zip(runs).flat_map(of_run).collect();
    formulas.push(say!(lower_run_counts, run = least + 1, runs = runs.len()));
    let mut penalised: Vec<u8> = all.iter().flat_map(|one| one.penalised.clone()).collect();
    penalised.sort_unstable();
    penalised.dedup();
    Some(TpchMetrics {
        geometric_mean_s: power.geometric_mean_s,
        power: power.power,
        formulas,
        penalised,
        ..throughput.clone()
    })
}

/// Tells what a part does as a part of the whole.
struct TestPart<'a> {
    watch: &'a dyn TrialWatch,
    /// When the first part began.
    began: Cell<Option<Nanos>>,
    /// How much later this part began, seconds.
    offset_s: Cell<f64>,
}

impl TrialWatch for TestPart<'_> {
    fn started(&self) {
        let now = monotonic_now();
        match self.began.get() {
            Some(began) => self.offset_s.set((now - began) as f64 / SECOND as f64),
            None => {
                self.began.set(Some(now));
                self.watch.started();
            }
        }
    }

    fn sent(&self, stream: u32, query: u8) {
        self.watch.sent(stream, query);
    }

    fn query(&self, facts: &QueryFacts) {
        let mut facts = facts.clone();
        later_query(&mut facts, self.offset_s.get());
        self.watch.query(&facts);
    }

    fn refresh(&self, facts: &RefreshFacts) {
        let began_s = facts.began_s + self.offset_s.get();
        self.watch.refresh(&RefreshFacts { began_s, ..facts.clone() });
    }

    fn plan(&self, plan: PlanFile<'_>) -> String {
        self.watch.plan(plan)
    }

    fn note(&self, text: &str) {
        self.watch.note(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(power: f64, throughput: f64) -> [TpchMetrics; 2] {
        let first = TpchMetrics {
            power: Some(power),
            geometric_mean_s: 1.0 / power,
            formulas: vec!["power".into()],
            ..TpchMetrics::default()
        };
        let second = TpchMetrics {
            throughput: Some(throughput),
            qphh: Some(crate::metrics::qphh(power, throughput)),
            total_s: 9.0,
            ..TpchMetrics::default()
        };
        [first, second]
    }

    #[test]
    fn the_run_with_the_lower_composite_counts_whole() {
        // The higher power belongs to the lower run.
        let all = [run_of(4.0, 100.0), run_of(25.0, 9.0)].concat();
        let found = lower(&all).expect("both are whole");
        assert_eq!(
            (found.power, found.throughput, found.qphh),
            (Some(25.0), Some(9.0), Some(15.0))
        );
        assert_eq!((found.total_s, found.geometric_mean_s), (9.0, 0.04));
        let told: Vec<String> = found.formulas.iter().map(ToString::to_string).collect();
        assert_eq!(told[..2], ["Run 1: power", "Run 2: power"]);
        assert!(told[2].starts_with("Run 2 of 2 counts"), "{told:?}");

        let mut gap = all;
        gap[1].qphh = None;
        assert_eq!(lower(&gap), None, "of one run only nothing can be the lower");
        assert_eq!(lower(&[]), None);
    }
}
