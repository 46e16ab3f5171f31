//! G: arithmetic. Figures that can't all be right together.

use super::{Find, Rule, percent};
use crate::model::{Group, Level, Trial};
use crate::say;
use crate::text::Text;
use crate::{format, tpcc};

/// By how much workers times time may differ from the sum of latencies, as a share.
const LITTLE: f64 = 0.05;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "adds-up",
        group: Group::G,
        level: Level::E,
        rule: "Transactions started equal those committed, rolled back, failed, skipped and in flight.",
        meaning: "The trial's counts contradict each other; this is a defect of dyno.",
        advice: "Report it together with the run folder; use none of the trial's figures.",
        find: Find::Trial(|trial| {
            let counts = trial.summary.counts;
            let ended = format::whole((counts.ended() + trial.summary.in_flight) as f64);
            let started = format::whole(counts.started as f64);
            (!trial.adds_up).then(|| {
                say!("{started} started, {ended} accounted for", started = started, ended = ended)
            })
        }),
    },
    Rule {
        id: "littles-law",
        group: Group::G,
        level: Level::W,
        rule: "Without a schedule workers are inside transactions at least 95 % of the window (Little's law).",
        meaning: "The rest of the time went elsewhere: into the load generator, or into failed attempts and reconnects.",
        advice: "Look at errors and at the load generator's CPU.",
        find: Find::Trial(idle_workers),
    },
];

fn idle_workers(trial: &Trial) -> Option<Text> {
    let inside = inside(trial)?;
    (inside.share + inside.blur < 1.0 - LITTLE)
        .then(|| say!("{share} inside transactions", share = percent(inside.share)))
}

/// Which share of their time workers spent inside transactions, by the sum of latencies.
struct Inside {
    share: f64,
    /// What is in flight at either end of the window blurs the share by about one transaction per
    /// worker.
    blur: f64,
}

/// `None` where workers may have nothing to do.
fn inside(trial: &Trial) -> Option<Inside> {
    let summary = &trial.summary;
    let is_scheduled =
        summary.rate_per_s.is_some() || tpcc::is_paced(trial) || summary.tpch.is_some();
    if is_scheduled || summary.window_s <= 0.0 || summary.latency.count == 0 {
        return None;
    }
    let workers_s = summary.window_s * f64::from(summary.workers.max(1));
    Some(Inside {
        share: summary.latency.sum_us / 1e6 / workers_s,
        blur: summary.latency.mean_us / 1e6 / summary.window_s,
    })
}
