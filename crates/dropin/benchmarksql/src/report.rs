//! What a run says at its end: the original's closing lines, and what dyno has to add.

use super::clock::WallClock;
use super::console::{Console, per_minute, session_time};
use super::verdict::Worth;
use dyno_core::{MILLISECOND, in_one_line};
use dyno_engine::TrialResult;
use dyno_engine::record::Frame;
use dyno_facts::format::short;
use dyno_facts::text_table;
use dyno_facts::{DataCheck, KindSummary, Lang, TrialSummary};
use dyno_tpcc::facts::{TpccFacts, TpccKind};
use dyno_tpcc::profile::TpccTransaction;

/// Committed transactions. The terminal's part of a Delivery is its count: kinds beyond the five are
/// parts of these.
pub(super) fn committed(frame: &Frame) -> u64 {
    frame.kinds.iter().take(TpccTransaction::ALL.len()).map(|kind| kind.counts.committed).sum()
}

/// The closing lines, byte for byte. tpmC counts the New-Orders that are rolled back for an unused item, as the original
/// does; what the others count is acknowledged commits.
pub(super) fn closing(console: &Console<'_>, clock: &WallClock, result: &TrialResult) {
    let orders = result
        .total
        .kinds
        .get(TpccTransaction::NewOrder.index())
        .map_or(0, |kind| kind.counts.committed + kind.counts.rolled_back);
    let total = committed(&result.total);
    let elapsed_ms = result.length() / MILLISECOND;
    let begin = session_time(clock.at(result.window.opens));
    let end = session_time(clock.at(result.window.closes));
    console.line("");
    console.line("");
    console.line(&format!("Measured tpmC (NewOrders) = {}", per_minute(orders, elapsed_ms)));
    console.line(&format!("Measured tpmTOTAL = {}", per_minute(total, elapsed_ms)));
    console.line(&format!("Session Start     = {begin}"));
    console.line(&format!("Session End       = {end}"));
    console.line(&format!("Transaction Count = {total}"));
}

/// How it was run, and what came of each kind of transaction.
pub(super) fn details(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let isolation = facts.isolation.as_deref().unwrap_or("the server's own");
    let mut text = format!(
        "profile {}, flight {}, isolation {isolation}, {} {}, {} terminals over {} sessions, {} s\n",
        facts.profile,
        facts.flight,
        facts.warehouses,
        if facts.warehouses == 1 { "warehouse" } else { "warehouses" },
        facts.terminals,
        facts.sessions,
        short(summary.window_s),
    );
    text.push_str(&kinds(summary, facts));
    let counts = &summary.counts;
    text.push_str(&format!(
        "{} retries, {} reconnects, {} in flight at the end; New-Orders of unknown outcome: {}\n",
        counts.retries, counts.reconnects, summary.in_flight, facts.orders_unknown
    ));
    if let Some(limit) = facts.tpmc_limit {
        let share = 100.0 * facts.tpmc / limit;
        text.push_str(&format!(
            "tpmC is {share:.1} % of the {} that keying and think times allow\n",
            short(limit)
        ));
    }
    for error in &summary.errors {
        let (count, class, message) = (error.count, &error.class, error.message.line(Lang::En));
        text.push_str(&format!("{count} x {class} {}: {message}\n", error.sqlstate));
    }
    if let Some(lateness) = &summary.lateness {
        let p99_ms = lateness.p99_us / 1e3;
        text.push_str(&format!("99 % of the transactions began at most {p99_ms:.1} ms late\n"));
    }
    for note in &summary.notes {
        text.push_str(&format!("{}\n", note.line(Lang::En)));
    }
    text.push_str("This is TPC-C-like: not comparable with published TPC results.");
    text
}

/// How the checks ended, and why the run can't be used, if so.
pub(super) fn checks(summary: &TrialSummary, worth: &Worth) -> String {
    let check = |check: &DataCheck| {
        let evidence = check.evidence.line(Lang::En);
        format!("check {}: {}: {evidence}", check.name, check.verdict.name())
    };
    let problem = |problem: &String| format!("error: {}", in_one_line(problem));
    let lines = summary.checks.iter().map(check).chain(worth.problems.iter().map(problem));
    lines.collect::<Vec<_>>().join("\n")
}

fn kinds(summary: &TrialSummary, facts: &TpccFacts) -> String {
    let header = [
        "transaction",
        "committed",
        "rolled back",
        "failed",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "limit p90 ms",
        "",
    ];
    let row = |(kind, held): (&KindSummary, &TpccKind)| {
        let limit_us = held.limit_p90_s * 1e6;
        let verdict = match kind.latency.count {
            0 => "-",
            _ if kind.latency.p90_us <= limit_us => "kept",
            _ => "exceeded",
        };
        let counts = [kind.counts.committed, kind.counts.rolled_back, kind.counts.failed];
        let latency = &kind.latency;
        let times_us = [latency.p50_us, latency.p90_us, latency.p99_us, latency.max_us, limit_us];
        let mut row = vec![kind.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.extend(times_us.map(|us| short(us / 1e3)));
        row.push(verdict.to_owned());
        row
    };
    let rows: Vec<_> = summary.kinds.iter().zip(&facts.kinds).map(row).collect();
    text_table(&header, &rows, |place| place >= 1)
}
