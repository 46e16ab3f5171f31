//! What a run says at its end: the original's closing lines, and what dyno has to add.

use super::clock::WallClock;
use super::console::{Console, per_minute, session_time};
use crate::table::{layout, number};
use dyno_core::MILLISECOND;
use dyno_engine::{TrialResult, TrialSpec};
use dyno_measure::KindFrame;
use dyno_tpcc::Tpcc;
use dyno_tpcc::profile::Kind;

/// A trial that is over.
pub(super) struct Measured<'a> {
    pub(super) workload: &'a Tpcc,
    pub(super) spec: &'a TrialSpec,
    pub(super) result: &'a TrialResult,
}

/// The closing lines, byte for byte; what they count is acknowledged commits.
pub(super) fn closing(console: &Console<'_>, clock: &WallClock, result: &TrialResult) {
    let committed = |frame: &KindFrame| frame.counts.committed;
    let orders = result.total.kinds.get(Kind::NewOrder.index()).map_or(0, committed);
    // The terminal's part of a Delivery is its count: kinds beyond the five are parts of these.
    let total: u64 = result.total.kinds.iter().take(Kind::ALL.len()).map(committed).sum();
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
pub(super) fn details(measured: &Measured<'_>) -> String {
    let Measured { workload, spec, result } = measured;
    let options = workload.options();
    let isolation = workload.isolation().name().unwrap_or("the server's own");
    let mut text = format!(
        "profile {}, flight {}, isolation {isolation}, {} warehouses, {} terminals, {} s\n",
        options.profile.name,
        options.flight.name(),
        options.warehouses,
        spec.workers,
        number(result.length() as f64 / 1e9),
    );
    text.push_str(&kinds(workload, result));
    let counts = result.total.counts();
    let unknown = workload.acknowledged().orders.unknown;
    text.push_str(&format!(
        "{} retries, {} reconnects, {} in flight at the end, {unknown} New-Orders of unknown \
         outcome\n",
        counts.retries, counts.reconnects, result.in_flight
    ));
    for error in &result.total.errors.0 {
        let (count, class, message) = (error.count, error.class.name(), &error.message);
        text.push_str(&format!("{count} x {class} {}: {message}\n", error.sqlstate));
    }
    if let Some(lateness) = &result.total.lateness {
        let p99_ms = lateness.percentile(99.0) as f64 / 1e6;
        text.push_str(&format!("transactions began at most {p99_ms:.1} ms late (99 %)\n"));
    }
    text.push_str("This is TPC-C-like: not comparable with published TPC results.");
    text
}

fn kinds(workload: &Tpcc, result: &TrialResult) -> String {
    let limits_s = workload.options().profile.limits_s;
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
    let row = |(kind, frame): (Kind, &KindFrame)| {
        let ms = |percent| frame.latency.percentile(percent) as f64 / 1e6;
        let limit_ms = limits_s[kind.index()] * 1e3;
        let verdict = match frame.latency.count() {
            0 => "-",
            _ if ms(90.0) <= limit_ms => "kept",
            _ => "exceeded",
        };
        vec![
            kind.name().to_owned(),
            frame.counts.committed.to_string(),
            frame.counts.rolled_back.to_string(),
            frame.counts.failed.to_string(),
            number(ms(50.0)),
            number(ms(90.0)),
            number(ms(99.0)),
            number(frame.latency.max() as f64 / 1e6),
            number(limit_ms),
            verdict.to_owned(),
        ]
    };
    let rows: Vec<_> = Kind::ALL.into_iter().zip(&result.total.kinds).map(row).collect();
    layout(&header, &rows, 1)
}
