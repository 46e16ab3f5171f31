//! A made-up run of TPC-H: two targets in order at two degrees, one of which answers wrongly, gives
//! up and fails, and a power and a throughput test.

use super::{Shape, catalog_message, failed_check, header, run, trial};
use dyno_facts::{
    CheckVerdict, Counts, DataCheck, ExperimentFacts, FamilyFacts, Message, PublishedRow,
    PublishedTable, TrialStatus,
};
use dyno_store::{RunData, TrialData};
use dyno_tpch::facts::{
    AnswerFacts, CacheFacts, DegreeFacts, LoadStep, PlanFacts, QueryFacts, QueryOutcome,
    RefreshFacts, TpchFacts, TpchLoad, TpchMetrics,
};

/// Seconds of the queries at degree 0, about those of PostgreSQL at scale factor 1.
const SECONDS: [f64; 22] = [
    9.1, 0.42, 1.9, 0.61, 1.2, 0.83, 1.1, 0.92, 4.6, 1.4, 0.31, 1.3, 3.4, 0.88, 0.9, 0.75, 2.6,
    5.2, 0.24, 1.7, 3.1, 0.29,
];
const POWER_ORDER: [u8; 22] =
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12];
const BOUND_S: f64 = 60.0;

struct Case {
    number: u32,
    experiment: &'static str,
    target: &'static str,
    test: &'static str,
    degree: u32,
    repeat: u32,
    streams: u32,
}

/// Seconds of a query in a trial.
fn seconds(case: &Case, query: u8) -> f64 {
    let place = usize::from(query) - 1;
    let gain = match case.degree {
        0 => 1.0,
        degree => 1.0 + (0.9 - 0.07 * f64::from(query % 14)) * f64::from(degree - 1),
    };
    let slow = if case.target == "maria" { 2.4 } else { 1.0 };
    let noise = super::noise(u64::from(case.number) * 97 + u64::from(query));
    SECONDS[place] / gain * slow * noise * f64::from(case.streams)
}

/// The comparison of a query's answer with the expected one.
fn answer(case: &Case, query: u8) -> AnswerFacts {
    let is_wrong = case.target == "maria" && query == 11;
    let against = catalog_message("tpch.reference_at_scale", &[("scale", "1")]);
    match (is_wrong, query) {
        (true, _) => AnswerFacts {
            verdict: CheckVerdict::Failed,
            against,
            differences: vec![
                Message::both(
                    "Row 3: value is 14772953.61 instead of 14772953.59 (a sum may be off by 100.00).",
                    "第 3 行：value 为 14772953.61，而非 14772953.59（总和允许相差 100.00）。",
                ),
                catalog_message("tpch.more_differences", &[("n", "1,047")]),
            ],
        },
        _ => AnswerFacts { verdict: CheckVerdict::Passed, against, differences: Vec::new() },
    }
}

/// The record of a query that began then.
fn query(case: &Case, query: u8, stream: u32, began_s: f64) -> QueryFacts {
    let is_slow = case.target == "maria" && matches!(query, 18 | 21);
    let is_broken = case.target == "maria" && case.number == 6 && query == 17;
    let outcome = match (is_broken, is_slow) {
        (true, _) => QueryOutcome::Failed("Out of memory (SQLSTATE HY000, 1038).".to_owned()),
        (false, true) => QueryOutcome::TimedOut,
        (false, false) => QueryOutcome::Answered,
    };
    let is_answered = outcome == QueryOutcome::Answered;
    // The optimizer changes its mind about Q5 in the last repeat.
    let shape = match (query, case.repeat, case.degree) {
        (5, 3, 2) => "hash-9".to_owned(),
        (16 | 22, _, _) => format!("q{query}-serial"),
        (_, _, degree) => format!("q{query}-{}", if degree == 0 { "serial" } else { "gather" }),
    };
    let is_serial = matches!(query, 16 | 22);
    QueryFacts {
        query,
        stream,
        parameters: vec!["90".to_owned()],
        began_s,
        seconds: if is_slow { BOUND_S } else { seconds(case, query) },
        ended_s: began_s + if is_slow { BOUND_S } else { seconds(case, query) },
        rows: if is_answered { u64::from(query) * 7 } else { 0 },
        outcome,
        answer: is_answered.then(|| answer(case, query)),
        plan: (case.target == "postgres").then(|| PlanFacts {
            file: format!("plans/{}-q{query:02}.json", case.number),
            shape,
            workers: Some(if is_serial { 0 } else { case.degree }),
        }),
    }
}

/// The metrics of a trial's times.
fn metrics(facts: &TpchFacts) -> Option<TpchMetrics> {
    let times: Vec<f64> = facts
        .queries
        .iter()
        .filter(|query| !matches!(query.outcome, QueryOutcome::Failed(_)))
        .map(|query| query.seconds)
        .collect();
    if times.len() < facts.queries.len() {
        return None;
    }
    let mean = (times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64).exp();
    let total_s = match facts.test.as_str() {
        "throughput" => {
            facts.queries.iter().map(|query| query.began_s + query.seconds).fold(0.0, f64::max)
        }
        _ => times.iter().sum(),
    };
    let given_up = facts.queries.iter().filter(|query| query.outcome == QueryOutcome::TimedOut);
    Some(TpchMetrics {
        total_s,
        geometric_mean_s: mean,
        power: (facts.test == "power").then_some(3600.0 / mean),
        throughput: (facts.test == "throughput").then_some(2.0 * 22.0 * 3600.0 / total_s),
        qphh: None,
        formulas: vec![
            catalog_message(
                "tpch.total_of_queries",
                &[("n", "22"), ("seconds", &format!("{total_s:.2}"))],
            ),
            catalog_message(
                "tpch.geometric_mean",
                &[("n", "22"), ("seconds", &format!("{mean:.3}"))],
            ),
        ],
        penalized: given_up.map(|query| query.query).collect(),
    })
}

/// The load of the data on the target of a trial.
fn load(case: &Case) -> TpchLoad {
    let steps = [
        ("create", 0.05, 0),
        ("load", 31.6, 7_501_215),
        ("load/orders", 9.4, 1_500_000),
        ("load/lineitem", 31.2, 6_001_215),
        ("primary-keys", 11.5, 0),
        ("foreign-keys", 9.0, 0),
        ("indexes", 56.5, 0),
        ("analyze", 2.7, 0),
        ("warm-up", 3.3, 0),
    ];
    let steps =
        steps.map(|(name, seconds, rows)| LoadStep { name: name.to_owned(), seconds, rows });
    let mut steps = Vec::from(steps);
    if case.target == "maria" {
        steps.retain(|step| step.name != "foreign-keys");
    }
    TpchLoad {
        finished_at: "2026-11-21T20:58:01Z".to_owned(),
        steps,
        seconds: (case.target == "postgres").then_some(104.9),
        size_bytes: Some(2_254_857_830),
        refresh_pairs: if case.test == "throughput" { 1 } else { 0 },
        attempts: 1,
    }
}

/// The refresh functions of a trial whose queries end at `until_s`.
fn refreshes(case: &Case, until_s: f64) -> Vec<RefreshFacts> {
    let executed = match case.test {
        "power" => vec![(1, 1, 0.0), (2, 1, until_s)],
        "throughput" => vec![(1, 2, 0.1), (2, 2, 1.0)],
        _ => Vec::new(),
    };
    let facts = executed.into_iter().map(|(function, pair, began_s)| RefreshFacts {
        function,
        pair,
        began_s,
        seconds: 0.8,
        rows: 7_500,
        outcome: QueryOutcome::Answered,
    });
    facts.collect()
}

/// The record of a trial.
fn facts(case: &Case) -> TpchFacts {
    let is_parallel = case.target == "postgres";
    let order: Vec<u8> =
        if case.test == "queries" { (1..=22).collect() } else { POWER_ORDER.to_vec() };
    let mut queries = Vec::new();
    let mut end_s: f64 = 0.8;
    for stream in 0..case.streams {
        let mut at = 0.8;
        for number in &order {
            let facts = query(case, *number, stream, at);
            at += facts.seconds;
            queries.push(facts);
        }
        end_s = end_s.max(at);
    }
    let setting = format!("SET max_parallel_workers_per_gather = {}", case.degree);
    let evidence =
        catalog_message("tpch.pg_prewarm_read", &[("pages", "24310"), ("relations", "23")]);
    let mut facts = TpchFacts {
        scale: 1.0,
        test: case.test.to_owned(),
        parameters: catalog_message("tpch.validation_defaults", &[]),
        degree: DegreeFacts {
            asked: case.degree,
            rule: if is_parallel { "postgres" } else { "" }.to_owned(),
            statements: if is_parallel { vec![setting] } else { Vec::new() },
            got: is_parallel.then_some(case.degree),
            remark: (!is_parallel).then(|| {
                Message::both(
                    "MariaDB executes each query in one thread: it has no parallel query.",
                    "MariaDB 用一个线程执行每个查询：没有并行查询。",
                )
            }),
        },
        cache: CacheFacts {
            state: "warm".to_owned(),
            evidence: if is_parallel { vec![evidence] } else { Vec::new() },
            verdict: is_parallel.then_some(CheckVerdict::Passed),
        },
        timeout_s: Some(BOUND_S),
        refreshes: refreshes(case, end_s),
        queries,
        metrics: None,
        load: Some(load(case)),
        rewrites: vec![if is_parallel {
            catalog_message("tpch.variant_15a", &[("queries", "Q15")])
        } else {
            catalog_message("tpch.no_column_list", &[("queries", "Q13")])
        }],
        deviations: vec![catalog_message("tpch.caches_warmed", &[])],
    };
    facts.metrics = metrics(&facts);
    facts
}

/// A trial with its record.
fn one(case: &Case) -> TrialData {
    let shape = Shape {
        experiment: case.experiment,
        target: case.target,
        workers: case.streams,
        repeat: case.repeat,
        rate_per_s: None,
        speed: 1.0,
        seconds: 60,
        away_at: None,
    };
    let mut data = trial(case.number, &shape);
    data.series.clear();
    let facts = facts(case);
    let is_wrong = facts
        .queries
        .iter()
        .filter_map(|query| query.answer.as_ref())
        .any(|answer| answer.verdict == CheckVerdict::Failed);
    let summary = &mut data.summary;
    summary.test = format!("tpch {}", case.test);
    summary.window_s = facts.metrics.as_ref().map_or(60.0, |metrics| metrics.total_s);
    let executed = facts.queries.len() as u64;
    summary.counts = Counts { started: executed, committed: executed, ..Counts::default() };
    summary.in_flight = 0;
    summary.kinds.clear();
    let right = if is_wrong { "21" } else { "22" };
    let evidence = catalog_message("tpch.answers_right", &[("right", right), ("compared", "22")]);
    if is_wrong {
        summary.status = TrialStatus::Failed(failed_check("answers", &evidence));
    }
    summary.checks = vec![DataCheck {
        name: "answers".to_owned(),
        verdict: if is_wrong { CheckVerdict::Failed } else { CheckVerdict::Passed },
        evidence,
    }];
    summary.own = Some(FamilyFacts::new(&facts));
    let settings = [
        ("max_parallel_workers_per_gather", "2"),
        ("work_mem", "65536"),
        ("shared_buffers", "1048576"),
    ];
    for facts in data.before.values_mut() {
        facts.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    data
}

/// Three repeats at each degree on one target, two at the only degree of the other, then the tests
/// of the specification.
pub(crate) fn tpch() -> RunData {
    let queries = [
        (1, "postgres", 0, 1),
        (2, "postgres", 2, 1),
        (3, "maria", 0, 1),
        (4, "postgres", 2, 2),
        (5, "postgres", 0, 2),
        (6, "maria", 0, 2),
        (7, "postgres", 0, 3),
        (8, "postgres", 2, 3),
    ];
    let queries = queries.map(|(number, target, degree, repeat)| Case {
        number,
        experiment: "queries",
        target,
        test: "queries",
        degree,
        repeat,
        streams: 1,
    });
    let specified = [(9, "power", 1), (10, "throughput", 2)].map(|(number, test, streams)| Case {
        number,
        experiment: "spec",
        target: "postgres",
        test,
        degree: 2,
        repeat: 1,
        streams,
    });
    let targets = ["maria", "postgres"];
    let trials = queries.iter().chain(&specified).map(one);
    let mut run = run(&targets, trials.collect());
    run.events.clear();
    run.header = header(&targets);
    run.header.title = "TPC-H on made-up servers".to_owned();
    let experiments = [("queries", "The 22 queries"), ("spec", "Power and throughput")];
    let experiments = experiments.map(|(name, title)| ExperimentFacts {
        name: name.to_owned(),
        title: title.to_owned(),
        test: format!("tpch {name}"),
        options: [("scale".to_owned(), "1".to_owned())].into(),
        ..ExperimentFacts::default()
    });
    run.header.experiments = experiments.into();
    run
}

/// Published seconds at two degrees.
pub(crate) fn published() -> Vec<PublishedTable> {
    let rows = (1..).zip(SECONDS).flat_map(|(query, seconds)| {
        let gain = 1.0 + ((query - 1) % 12) as f64;
        let published = [("16", seconds * 120.0 / gain), ("0", seconds * 120.0)];
        published.map(|(degree, seconds)| PublishedRow {
            label: format!("Q{query}"),
            number: query,
            conditions: [("scale", "100"), ("degree", degree)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            metrics: [("seconds".to_owned(), seconds)].into(),
            targets: Vec::new(),
        })
    });
    vec![PublishedTable {
        experiment: "queries".to_owned(),
        title: "A vendor's queries".into(),
        source: "A vendor's white paper".into(),
        method: "qgen -d.".into(),
        note: None,
        rows: rows.collect(),
    }]
}
