//! The summary of a trial that was cut off, from its series, histograms and events.

use crate::histograms;
use dyno_engine::record::Latencies;
use dyno_facts::say;
use dyno_facts::{
    Counts, ErrorSummary, Event, EventKind, GeneratorSummary, HostSample, KindSummary,
    LatencySummary, Message, SeriesRow, StatementCounts, TrialStart, TrialStatus, TrialSummary,
};
use std::collections::BTreeMap;

pub(crate) fn interrupted<'a>(
    start: TrialStart,
    series: &[SeriesRow],
    histogram_log: &str,
    events: impl Iterator<Item = &'a Event>,
) -> TrialSummary {
    let rows: Vec<&SeriesRow> = series.iter().filter(|row| row.phase == "measured").collect();
    let window_s: f64 = rows.iter().map(|row| row.length_s).sum();
    // Histograms and events of an interval are written before its row: what has no row is left
    // out, so that everything is about the same window.
    let until_s = rows.last().map_or(0.0, |row| row.begins_s + row.length_s / 2.0);
    let (by_tag, damaged) = histograms::merge(histogram_log, until_s);
    let tags = histograms::tags(&start.kinds);
    let counts = counts(&rows);
    let statements = StatementCounts {
        reads: rows.iter().map(|row| row.reads).sum(),
        writes: rows.iter().map(|row| row.writes).sum(),
        others: rows.iter().map(|row| row.others).sum(),
        ..StatementCounts::default()
    };
    let wasted_statements: u64 = rows.iter().map(|row| row.wasted).sum();
    let per_s = |count: u64| if window_s > 0.0 { count as f64 / window_s } else { 0.0 };
    let mut latency = Latencies::new();
    tags.iter().filter_map(|tag| by_tag.get(tag)).for_each(|kind| latency.add(kind));
    let mut notes = vec![say!(trial_cut_off)];
    let kinds = kinds(&start.kinds, &tags, &by_tag, &rows, (counts, statements), &mut notes);
    let ended_well = counts.committed + counts.rolled_back;
    if latency.count() != ended_well || damaged > 0 {
        notes.push(say!(histograms_differ, n = latency.count(), ended = ended_well));
    }
    let summary_of = |tag: &str| by_tag.get(tag).map(LatencySummary::from);
    let errors = errors(
        events.filter(|event| event.at_s.is_some_and(|at_s| (0.0..until_s).contains(&at_s))),
    );
    let generator = generator(&rows, start.loops, statements.total() + wasted_statements);
    TrialSummary {
        window_s,
        counts,
        in_flight: counts.in_flight(),
        tps: per_s(counts.committed),
        qps: per_s(statements.total()),
        statements,
        // Of wasted statements the series tells only the number.
        wasted: StatementCounts { others: wasted_statements, ..StatementCounts::default() },
        latency: (&latency).into(),
        service: summary_of("service"),
        lateness: summary_of("lateness"),
        kinds,
        errors,
        generator,
        notes,
        ..start.summary(TrialStatus::Interrupted)
    }
}

/// A trial that no engine drove and that was cut off: `executed_lines` are elements of its family's lists.
/// Returns the numbers of damaged ones, and what is wrong with them.
pub(crate) fn interrupted_lists(
    mut start: TrialStart,
    executed_lines: &str,
) -> (TrialSummary, Vec<(usize, String)>) {
    let own = &mut start.identity.own;
    let mut damaged = Vec::new();
    for (number, line) in (1..).zip(executed_lines.lines()) {
        let why = match serde_json::from_str(line) {
            Ok(line) => match own.as_mut().is_some_and(|own| own.append(line)) {
                true => continue,
                false => "it belongs to no list".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        damaged.push((number, why));
    }
    let mut summary = start.summary(TrialStatus::Interrupted);
    summary.notes.push(say!(pass_cut_off));
    (summary, damaged)
}

fn counts(rows: &[&SeriesRow]) -> Counts {
    let mut sum = Counts::default();
    for row in rows {
        sum.add(&Counts {
            started: row.started,
            committed: row.committed,
            rolled_back: row.rolled_back,
            failed: row.failed,
            skipped: row.skipped,
            retries: row.retries,
            reconnects: row.reconnects,
            // The lines of a series don't have it: what is recovered is a lower bound.
            retried: 0,
        });
    }
    sum
}

fn kinds(
    names: &[String],
    tags: &[String],
    by_tag: &BTreeMap<String, Latencies>,
    rows: &[&SeriesRow],
    (counts, statements): (Counts, StatementCounts),
    notes: &mut Vec<Message>,
) -> Vec<KindSummary> {
    if let ([only], [tag]) = (names, tags) {
        let latency = by_tag.get(tag).map(LatencySummary::from).unwrap_or_default();
        return vec![KindSummary { name: only.clone(), counts, statements, latency }];
    }
    let is_told = rows.iter().all(|row| row.committed_by_kind.len() == names.len());
    notes.push(match is_told {
        true => say!(failures_by_kind_unknown),
        false => say!(outcomes_by_kind_unknown),
    });
    let kind = |(index, (name, tag)): (usize, (&String, &String))| {
        let latency = by_tag.get(tag).map(LatencySummary::from).unwrap_or_default();
        let committed = match is_told {
            true => rows.iter().map(|row| row.committed_by_kind[index]).sum(),
            false => latency.count,
        };
        let counts = Counts {
            started: latency.count.max(committed),
            committed,
            rolled_back: latency.count.saturating_sub(committed),
            ..Counts::default()
        };
        KindSummary { name: name.clone(), counts, statements: StatementCounts::default(), latency }
    };
    names.iter().zip(tags).enumerate().map(kind).collect()
}

fn errors<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<ErrorSummary> {
    let mut errors: Vec<ErrorSummary> = Vec::new();
    for event in events.filter(|event| event.kind == EventKind::Error) {
        let same = |known: &&mut ErrorSummary| {
            known.class == event.class
                && known.errno == event.errno
                && known.sqlstate == event.sqlstate
        };
        match errors.iter_mut().find(same) {
            Some(known) => known.count += event.count,
            None => errors.push(ErrorSummary {
                class: event.class.clone(),
                errno: event.errno,
                sqlstate: event.sqlstate.clone(),
                message: event.text.clone(),
                count: event.count,
            }),
        }
    }
    errors
}

fn generator(rows: &[&SeriesRow], loops: u32, statements: u64) -> GeneratorSummary {
    let window_s: f64 = rows.iter().map(|row| row.length_s).sum();
    let average = |value: fn(&SeriesRow) -> f64| {
        let sum: f64 = rows.iter().map(|row| value(row) * row.length_s).sum();
        if window_s > 0.0 { sum / window_s } else { 0.0 }
    };
    let loops_cpu_s: f64 = rows.iter().map(|row| row.loops_cpu_s).sum();
    GeneratorSummary {
        loops,
        loops_cpu_s,
        cpu_us_per_statement: if statements == 0 {
            0.0
        } else {
            loops_cpu_s * 1e6 / statements as f64
        },
        host: HostSample {
            cpu_share: average(|row| row.host_cpu_share),
            steal_share: average(|row| row.host_steal_share),
            ..HostSample::default()
        },
        ..GeneratorSummary::default()
    }
}
