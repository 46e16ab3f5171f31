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

fn load(case: &Case) -> TpchLoad {
    let step = |name: &str, seconds, rows| LoadStep { name: name.to_owned(), seconds, rows };
    let mut steps = vec![
        step("create", 0.05, 0),
        step("load", 31.6, 7_501_215),
        step("load/orders", 9.4, 1_500_000),
        step("load/lineitem", 31.2, 6_001_215),
        step("primary-keys", 11.5, 0),
        step("foreign-keys", 9.0, 0),
        step("indexes", 56.5, 0),
        step("analyze", 2.7, 0),
        step("warm-up", 3.3, 0),
    ];
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

fn refreshes(case: &Case, until_s: f64) -> Vec<RefreshFacts> {
    let refresh = |function, pair, began_s| RefreshFacts {
        function,
        pair,
        began_s,
        seconds: 0.8,
        rows: 7_500,
        outcome: QueryOutcome::Answered,
    };
    match case.test {
        "power" => vec![refresh(1, 1, 0.0), refresh(2, 1, until_s)],
        "throughput" => vec![refresh(1, 2, 0.1), refresh(2, 2, 1.0)],
        _ => Vec::new(),
    }
}

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
    let case = |number, target, degree, repeat| Case {
        number,
        experiment: "queries",
        target,
        test: "queries",
        degree,
        repeat,
        streams: 1,
    };
    let spec_case = |number, test, streams| Case {
        experiment: "spec",
        test,
        streams,
        ..case(number, "postgres", 2, 1)
    };
    let cases = [
        case(1, "postgres", 0, 1),
        case(2, "postgres", 2, 1),
        case(3, "maria", 0, 1),
        case(4, "postgres", 2, 2),
        case(5, "postgres", 0, 2),
        case(6, "maria", 0, 2),
        case(7, "postgres", 0, 3),
        case(8, "postgres", 2, 3),
        spec_case(9, "power", 1),
        spec_case(10, "throughput", 2),
    ];
    let targets = ["maria", "postgres"];
    let mut run = run(&targets, cases.iter().map(one).collect());
    run.events.clear();
    run.header = header(&targets);
    run.header.title = "TPC-H on made-up servers".to_owned();
    let experiment = |name: &str, title: &str| ExperimentFacts {
        name: name.to_owned(),
        title: title.to_owned(),
        test: format!("tpch {name}"),
        options: [("scale".to_owned(), "1".to_owned())].into(),
        ..ExperimentFacts::default()
    };
    run.header.experiments =
        vec![experiment("queries", "The 22 queries"), experiment("spec", "Power and throughput")];
    run
}

/// Published seconds at two degrees.
pub(crate) fn published() -> Vec<PublishedTable> {
    let row = |query: usize, degree: u32, seconds: f64| PublishedRow {
        label: format!("Q{query}"),
        number: query,
        conditions: [("scale", "100".to_owned()), ("degree", degree.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        metrics: [("seconds".to_owned(), seconds)].into(),
        targets: Vec::new(),
    };
    let rows = SECONDS.iter().enumerate().flat_map(|(place, seconds)| {
        let gain = 1.0 + (place % 12) as f64;
        [row(place + 1, 16, seconds * 120.0 / gain), row(place + 1, 0, seconds * 120.0)]
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
