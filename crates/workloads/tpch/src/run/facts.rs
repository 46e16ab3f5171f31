//! What a trial says of itself.

use super::Before;
use super::options::{RunOptions, TpchTest};
use crate::degree::{Applied, DegreeRule};
use crate::facts::{DegreeFacts, QueryOutcome, TpchFacts, TpchLoad};
use crate::metrics::{Timed, metrics};
use crate::parameters::ParameterChoice;
use crate::queries::{Q15, Rewrite, rewrites};
use dyno_core::Dialect;
use dyno_facts::{Message, say};

/// Scale factors that the specification knows (clause 4.1.3.1).
const SCALES: [f64; 10] = [1.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5];

/// What is known before a trial begins, also of one that is killed.
pub(crate) fn known_facts(options: &RunOptions, dialect: Dialect, load: TpchLoad) -> TpchFacts {
    TpchFacts {
        scale: options.scale,
        test: options.test.name().to_owned(),
        parameters: options.parameters.message(),
        degree: DegreeFacts { asked: options.degree, ..DegreeFacts::default() },
        cache: options.cache.clone(),
        timeout_s: options.timeout_s,
        load: Some(load),
        rewrites: rewrites(dialect, Q15::Cte).iter().map(Rewrite::message).collect(),
        ..TpchFacts::default()
    }
}

/// Names the data that the queries see: pairs of refresh functions applied, and what of the next one
/// is. `None` while they change.
pub(super) fn data_state(options: &RunOptions, before: &Before) -> Option<String> {
    let at = before.position;
    match options.test {
        TpchTest::Throughput { refresh: true, .. } | TpchTest::Refresh { .. } => None,
        // The queries come between the two functions of a pair.
        TpchTest::Power { refresh: true } => Some(format!("{}.1", at.pair - 1)),
        _ if at.is_whole() => Some((at.pair - 1).to_string()),
        _ if at.orders == 0 => Some(format!("{}.1", at.pair - 1)),
        _ => Some(format!("{}.{}.{}", at.pair - 1, at.function, at.orders)),
    }
}

/// In what the trial departs from the specification.
pub(super) fn deviations(options: &RunOptions, before: &Before) -> Vec<Message> {
    let mut said = Vec::new();
    let mut add = |message| said.push(message);
    if !SCALES.contains(&options.scale) {
        add(say!(scale_not_specified, scale = options.scale.to_string()));
    }
    match options.test {
        TpchTest::Queries => add(say!(queries_in_one_session)),
        TpchTest::Power { refresh: false } => add(say!(power_without_refresh)),
        TpchTest::Throughput { streams, refresh } => {
            if !refresh {
                add(say!(throughput_without_refresh));
            }
            let least = TpchTest::least_streams(options.scale);
            if streams < least {
                add(say!(too_few_streams, streams = streams, least = least));
            }
        }
        _ => {}
    }
    let is_test = matches!(options.test, TpchTest::Power { .. } | TpchTest::Throughput { .. });
    if is_test && options.parameters == ParameterChoice::Default {
        add(say!(validation_parameters));
    }
    if options.cache.state == "warm" {
        add(say!(caches_warmed));
    }
    if options.degree > 0 && before.rule.as_ref().is_some_and(DegreeRule::is_parallel) {
        add(say!(degree_per_session));
    }
    let pairs = before.position.pair - 1;
    if !before.position.is_whole() || pairs > 0 {
        add(match before.position.is_whole() {
            true => say!(refreshed, pairs = pairs),
            false => say!(refreshed_in_part, pairs = pairs),
        });
    }
    said
}

/// What the executions add up to.
pub(super) fn end(facts: &mut TpchFacts, options: &RunOptions) {
    let timed = match options.test {
        TpchTest::Queries | TpchTest::Power { .. } => Timed::Single,
        TpchTest::Throughput { streams, .. } => {
            Timed::Streams { streams, elapsed_s: elapsed_s(facts) }
        }
        // The parts of a performance test have theirs.
        TpchTest::Refresh { .. } | TpchTest::Performance { .. } => return,
    };
    facts.metrics = metrics(options.scale, timed, &facts.queries, &facts.refreshes);
}

/// From the first submission to the last answer (5.3.7.2).
fn elapsed_s(facts: &TpchFacts) -> f64 {
    let queries = facts.queries.iter().map(|query| {
        let seconds = if query.outcome == QueryOutcome::TimedOut {
            query.seconds.max(query.ended_s - query.began_s)
        } else {
            query.seconds
        };
        (query.began_s, seconds)
    });
    let refreshes = facts.refreshes.iter().map(|refresh| (refresh.began_s, refresh.seconds));
    let spans = queries.chain(refreshes);
    let (began, ended) = spans.fold((f64::INFINITY, 0.0), |(began, ended), (at, seconds)| {
        (f64::min(began, at), f64::max(ended, at + seconds))
    });
    ended - began
}

/// Which degree was asked for, and which there was.
pub(super) fn degree(facts: &mut TpchFacts, rule: Option<&DegreeRule>, applied: &Applied) {
    let workers = facts.queries.iter().filter_map(|query| query.plan.as_ref()?.workers);
    let got = workers.max();
    let degree = &mut facts.degree;
    degree.got = got;
    degree.rule =
        rule.filter(|rule| rule.is_parallel()).map(|rule| rule.name.clone()).unwrap_or_default();
    degree.statements = applied.statements.clone();
    let remark = remark(degree.asked, got, rule);
    let parts: Vec<Message> = remark.into_iter().chain(applied.remarks.iter().cloned()).collect();
    degree.remark = (!parts.is_empty()).then(|| Message::sentences(&parts));
}

fn remark(asked: u32, got: Option<u32>, rule: Option<&DegreeRule>) -> Option<Message> {
    match (rule, got) {
        (None, _) if asked > 0 => Some(say!(no_degree_rule)),
        (Some(rule), _) if asked > 0 && !rule.is_parallel() => Some(rule.none.clone()),
        (_, Some(0)) if asked > 0 => Some(say!(degree_without_effect, asked = asked)),
        (_, Some(got)) if asked > 0 && got < asked => {
            Some(say!(fewer_workers_than_asked, asked = asked, got = got))
        }
        (rule, Some(got)) if asked == 0 && got > rule.map_or(0, DegreeRule::workers_when_off) => {
            Some(say!(parallel_although_off, got = got))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::degree::named;

    #[test]
    fn a_degree_without_effect_is_remarked() {
        let postgres = named("postgres").unwrap();
        let mariadb = named("mariadb").unwrap();
        let said = |asked, got, rule| remark(asked, got, rule).unwrap_or_default().to_string();
        assert_eq!(
            said(16, Some(2), Some(&postgres)),
            "Parallel workers asked for: 16; got: at most 2."
        );
        assert!(said(2, Some(0), Some(&postgres)).ends_with("no effect."));
        assert_eq!(said(2, Some(2), Some(&postgres)), "");
        assert_eq!(said(0, Some(0), Some(&postgres)), "");
        assert!(said(0, Some(1), Some(&postgres)).starts_with("Parallel execution was to be off"));
        let tidb = named("tidb").unwrap();
        assert_eq!(said(0, Some(1), Some(&tidb)), "", "1 is how it is switched off");
        assert!(said(0, Some(2), Some(&tidb)).starts_with("Parallel execution was to be off"));
        assert_eq!(said(16, None, Some(&mariadb)), mariadb.none.to_string());
        assert_eq!(said(0, None, Some(&mariadb)), "");
        assert!(said(4, None, None).starts_with("No rule"));
    }

    #[test]
    fn the_span_of_a_throughput_test_has_its_refresh_stream() {
        let query =
            |began_s, seconds| crate::facts::QueryFacts { began_s, seconds, ..<_>::default() };
        let refresh = crate::facts::RefreshFacts { began_s: 0.5, seconds: 9.0, ..<_>::default() };
        let facts = TpchFacts {
            queries: vec![query(1.0, 2.0), query(3.0, 4.0)],
            refreshes: vec![refresh],
            ..TpchFacts::default()
        };
        assert!((elapsed_s(&facts) - 9.0).abs() < 1e-12);
        let mut late = query(5.0, 2.0);
        late.outcome = QueryOutcome::TimedOut;
        late.ended_s = 12.0;
        let facts = TpchFacts { queries: vec![query(1.0, 2.0), late], ..TpchFacts::default() };
        assert!((elapsed_s(&facts) - 11.0).abs() < 1e-12, "until the server had stopped it");
    }
}
