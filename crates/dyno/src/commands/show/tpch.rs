//! What `dyno show` says of TPC-H trials.

use dyno_facts::{QueryOutcome, TpchFacts, TrialSummary, Verdict};
use dyno_report::{DegreeColumn, Paper, QueryCell, QueryRow, Speedup, Spread, TpchTable};
use dyno_runner::table::{grouped, layout, number};
use dyno_store::RunData;

/// The TPC-H trials one by one, then the queries at every degree; nothing where there are none.
pub(super) fn tables(data: &RunData) -> String {
    let trials: Vec<Vec<String>> = data
        .trials
        .iter()
        .filter_map(|trial| Some(row(&trial.summary, trial.summary.tpch.as_ref()?)))
        .collect();
    if trials.is_empty() {
        return String::new();
    }
    let mut text = format!("\nTPC-H-like, not a TPC result:\n{}", layout(&TRIALS, &trials, 4));
    text.push_str(&refreshes(data));
    // Medians and speed-ups are those of the paper.
    let paper = Paper::new(std::slice::from_ref(data), &[]);
    for experiment in &paper.experiments {
        for table in experiment.tpch.iter().flat_map(|section| &section.tables) {
            text.push_str(&format!(
                "\n{} on {}: {}\n",
                experiment.title, table.target, table.described
            ));
            text.push_str(&queries(table));
            table.degrees.iter().for_each(|degree| text.push_str(&remarks(degree)));
        }
    }
    text
}

const TRIALS: [&str; 16] = [
    "trial",
    "experiment",
    "target",
    "test",
    "degree",
    "workers",
    "answered",
    "given up",
    "failed",
    "wrong",
    "total s",
    "geo. mean",
    "power",
    "throughput",
    "QphH",
    "status",
];

fn row(trial: &TrialSummary, facts: &TpchFacts) -> Vec<String> {
    let ended = |is_so: fn(&QueryOutcome) -> bool| {
        facts.queries.iter().filter(|query| is_so(&query.outcome)).count().to_string()
    };
    let is_wrong = |verdict: Option<Verdict>| verdict == Some(Verdict::Failed);
    let wrong = facts.queries.iter().map(|query| query.answer.as_ref().map(|a| a.verdict));
    let metrics = facts.metrics.as_ref();
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    vec![
        trial.trial.to_string(),
        trial.experiment.clone(),
        trial.target.clone(),
        facts.test.clone(),
        facts.degree.asked.to_string(),
        facts.degree.got.map_or_else(|| "-".to_owned(), |got| got.to_string()),
        ended(|outcome| *outcome == QueryOutcome::Answered),
        ended(|outcome| *outcome == QueryOutcome::TimedOut),
        ended(|outcome| matches!(outcome, QueryOutcome::Failed(_))),
        wrong.filter(|verdict| is_wrong(*verdict)).count().to_string(),
        figure(metrics.map(|metrics| metrics.total_s)),
        figure(metrics.map(|metrics| metrics.geometric_mean_s)),
        figure(metrics.and_then(|metrics| metrics.power)),
        figure(metrics.and_then(|metrics| metrics.throughput)),
        figure(metrics.and_then(|metrics| metrics.qphh)),
        super::status(trial).to_owned(),
    ]
}

/// The refresh functions of all trials; nothing where there are none.
fn refreshes(data: &RunData) -> String {
    let mut rows = Vec::new();
    for trial in &data.trials {
        for done in trial.summary.tpch.iter().flat_map(|facts| &facts.refreshes) {
            let outcome = match &done.outcome {
                QueryOutcome::Answered => "done",
                QueryOutcome::TimedOut => "given up",
                QueryOutcome::Failed(_) => "failed",
                QueryOutcome::Interrupted => "interrupted",
            };
            rows.push(vec![
                trial.summary.trial.to_string(),
                format!("RF{}", done.function),
                done.pair.to_string(),
                number(done.seconds),
                grouped(&done.rows.to_string()),
                outcome.to_owned(),
            ]);
        }
    }
    match rows.is_empty() {
        true => String::new(),
        false => {
            let header = ["trial", "function", "pair", "s", "rows", "end"];
            format!("\nRefresh functions:\n{}", layout(&header, &rows, 2))
        }
    }
}

/// The 22 queries at every degree.
fn queries(table: &TpchTable) -> String {
    let is_repeated = table.setup.streams > 1 || table.degrees.iter().any(|d| d.repeats > 1);
    let mut header = vec!["query".to_owned(), "answer".to_owned(), "rows".to_owned()];
    for degree in &table.degrees {
        header.push(format!("s, degree {}", degree.degree));
        if is_repeated {
            header.push("shortest-longest".to_owned());
        }
    }
    for degree in table.degrees.iter().skip(1) {
        header.push(format!("{} over {}", degree.degree, table.degrees[0].degree));
        if is_repeated {
            header.push("lowest-highest".to_owned());
        }
    }
    let mut rows: Vec<Vec<String>> =
        table.queries.iter().map(|query| query_row(query, is_repeated)).collect();
    let sum = if table.setup.test == "throughput" { "length" } else { "total" };
    let figures: [(&str, Sum, Gain); 2] = [
        (sum, |degree| degree.total_s, |degree| degree.total_speedup),
        ("geo. mean", |degree| degree.geometric_mean_s, |degree| degree.mean_speedup),
    ];
    for (name, time, gain) in figures {
        let mut row = vec![name.to_owned(), String::new(), String::new()];
        for degree in &table.degrees {
            let sign = if degree.penalised.is_empty() { "" } else { ">=" };
            push_spread(&mut row, time(degree), sign, is_repeated);
        }
        for degree in table.degrees.iter().skip(1) {
            push_speedup(&mut row, gain(degree), is_repeated);
        }
        rows.push(row);
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    layout(&header, &rows, 2)
}

/// Seconds or a factor: [`number`], with what is left of a short query.
fn fine(value: f64) -> String {
    if (0.0..0.1).contains(&value) { format!("{value:.5}") } else { number(value) }
}

type Sum = fn(&DegreeColumn) -> Option<Spread>;
type Gain = fn(&DegreeColumn) -> Option<Speedup>;

fn query_row(query: &QueryRow, is_repeated: bool) -> Vec<String> {
    let answer = match query.answer {
        Some(Verdict::Passed) => "correct",
        Some(Verdict::Failed) => "WRONG",
        Some(Verdict::NotMade) => "not compared",
        None => "-",
    };
    let whole = |rows: u64| grouped(&rows.to_string());
    let rows = match query.rows {
        None => "-".to_owned(),
        Some((low, high)) if low == high => whole(low),
        Some((low, high)) => format!("{}-{}", whole(low), whole(high)),
    };
    let mut row = vec![format!("Q{}", query.query), answer.to_owned(), rows];
    for cell in &query.cells {
        push_time(&mut row, cell, is_repeated);
    }
    for cell in query.cells.iter().skip(1) {
        push_speedup(&mut row, cell.speedup, is_repeated);
    }
    row
}

fn push_time(row: &mut Vec<String>, cell: &QueryCell, is_repeated: bool) {
    let sign = if cell.timed_out > 0 { ">=" } else { "" };
    push_spread(row, cell.seconds, sign, is_repeated);
    let place = row.len() - if is_repeated { 2 } else { 1 };
    match cell.seconds {
        None if cell.failed > 0 => row[place] = "failed".to_owned(),
        None if cell.interrupted > 0 => row[place] = "interrupted".to_owned(),
        _ => {}
    }
}

fn push_spread(row: &mut Vec<String>, spread: Option<Spread>, sign: &str, is_repeated: bool) {
    let absent = || "-".to_owned();
    row.push(spread.map_or_else(absent, |spread| format!("{sign}{}", fine(spread.median))));
    if is_repeated {
        let range = |spread: Spread| format!("{}-{}", fine(spread.min), fine(spread.max));
        row.push(spread.map_or_else(absent, range));
    }
}

fn push_speedup(row: &mut Vec<String>, speedup: Option<Speedup>, is_repeated: bool) {
    let sign = match speedup.and_then(|speedup| speedup.bound) {
        Some("at least") => ">=",
        Some(_) => "<=",
        None => "",
    };
    let spread = speedup.map(|s| Spread { min: s.min, median: s.median, max: s.max });
    push_spread(row, spread, sign, is_repeated);
}

/// What is to be said of a degree.
fn remarks(degree: &DegreeColumn) -> String {
    let remarks = degree.remarks.iter();
    remarks.map(|remark| format!("degree {}: {remark}\n", degree.degree)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{AnswerFacts, DegreeFacts, QueryFacts, RunHeader, TpchMetrics, TrialIdentity};
    use dyno_store::Run;

    fn facts(degree: u32, seconds: f64) -> TpchFacts {
        let query = |query: u8| QueryFacts {
            query,
            seconds: seconds * f64::from(query),
            rows: 1_000 + u64::from(query),
            outcome: match (query, degree) {
                (7, 2) => QueryOutcome::TimedOut,
                (9, _) => QueryOutcome::Failed("It is gone.".to_owned()),
                _ => QueryOutcome::Answered,
            },
            answer: Some(AnswerFacts {
                verdict: if query == 4 { Verdict::Failed } else { Verdict::Passed },
                against: "the reference".to_owned(),
                differences: Vec::new(),
            }),
            ..QueryFacts::default()
        };
        TpchFacts {
            scale: 0.1,
            test: "queries".to_owned(),
            degree: DegreeFacts {
                asked: degree,
                remark: (degree == 2).then(|| "Asked 2, got 1.".to_owned()),
                ..DegreeFacts::default()
            },
            queries: (1..=22).map(query).collect(),
            metrics: (degree == 0).then(|| TpchMetrics {
                total_s: 12.5,
                geometric_mean_s: 0.5,
                ..TpchMetrics::default()
            }),
            ..TpchFacts::default()
        }
    }

    #[test]
    fn queries_have_times_speed_ups_and_what_became_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Run::create(folder.path(), RunHeader::new("s", Vec::new(), 1)).expect("run");
        for (degree, seconds) in [(0, 2.0), (2, 1.0), (0, 4.0)] {
            let identity = TrialIdentity {
                experiment: "queries".to_owned(),
                target: "main".to_owned(),
                workers: 1,
                tpch: Some(facts(degree, seconds)),
                ..TrialIdentity::default()
            };
            drop(run.begin_trial(identity).expect("begun"));
        }
        let path = run.path().to_owned();
        drop(run);
        let text = tables(&dyno_store::read(&path).expect("read"));
        let words = |begin: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.starts_with(begin)).expect(begin);
            line.split_whitespace().collect()
        };
        assert!(text.contains("queries on main: Q1 to Q22 in order, scale factor 0.1"), "{text}");
        let expected = "Q1 correct 1,001 3.000 2.000-4.000 1.000 1.000-1.000 3.000 2.000-4.000";
        assert_eq!(words("Q1 ").join(" "), expected, "{text}");
        assert_eq!(words("Q4 ")[1], "WRONG", "{text}");
        let expected = "Q7 correct 1,007 21.0 14.0-28.0 >=7.000 7.000-7.000 <=3.000 2.000-4.000";
        assert_eq!(words("Q7 ").join(" "), expected, "{text}");
        assert_eq!(words("Q9 ").join(" "), "Q9 - - failed - failed - - -", "{text}");
        assert_eq!(words("total ").join(" "), "total 12.5 12.5-12.5 - - - -", "{text}");
        assert!(text.contains("\ndegree 2: Asked 2, got 1.\n"), "{text}");
    }
}
