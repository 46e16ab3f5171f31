//! The checks that every paper makes, whatever its workload.

use super::{Find, Rule};
use crate::format;
use crate::model::{Experiment, Finding, Group, Level, Paper, Place, Spot, Target, Trial};
use crate::text::Text;
use crate::{tpcc, tpch};
use dyno_measure::Verdict;

/// Fewer repeats than this can't carry a verdict (four pairs: the smallest p is 0.029).
const REPEATS_FOR_A_VERDICT: usize = 4;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "adds-up",
        group: Group::G,
        level: Level::E,
        rule: "Transactions started equal those committed, rolled back, failed, skipped and in flight.",
        meaning: "The trial's counts contradict each other; this is a defect of dyno.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let counts = trial.summary.counts;
            let ended = format::whole((counts.ended() + trial.summary.in_flight) as f64);
            (!trial.adds_up).then(|| {
                format!("{} started, {ended} accounted for", format::whole(counts.started as f64))
            })
        }),
    },
    Rule {
        id: "trial-failed",
        group: Group::F,
        level: Level::E,
        rule: "Every trial ends as planned.",
        meaning: "A failed trial is not usable for a claim; its figures are shown only where no other trial of the point exists.",
        advice: "",
        find: Find::EnglishTrial(|trial| match &trial.summary.status {
            dyno_measure::TrialStatus::Failed(why) => Some(why.clone()),
            _ => None,
        }),
    },
    Rule {
        id: "data",
        group: Group::F,
        level: Level::E,
        rule: "Wherever a workload can check its data after a trial, they are as they must be.",
        meaning: "Work was lost, invented or done twice, or somebody else changed the data: the trial's figures count what did not happen.",
        advice: "",
        find: Find::EnglishTrial(|trial| data_check(trial, Verdict::Failed)),
    },
    Rule {
        id: "data-not-checked",
        group: Group::F,
        level: Level::W,
        rule: "Every check of the data can be made.",
        meaning: "Nobody knows whether the work that was counted was done.",
        advice: "",
        find: Find::EnglishTrial(|trial| data_check(trial, Verdict::NotMade)),
    },
    Rule {
        id: "rate-missed",
        group: Group::A,
        level: Level::E,
        rule: "With a schedule at least 99 % of the offered transactions are executed within the window.",
        meaning: "The offered rate was not reached, so latency grows with the length of the window.",
        advice: "",
        find: Find::EnglishTrial(rate_missed),
    },
    Rule {
        id: "generator-cpu-95",
        group: Group::A,
        level: Level::E,
        rule: "A load generator with a machine of its own leaves at least 5 % of its CPU idle.",
        meaning: "The load generator itself may be the limit: throughput is a lower bound and latency an upper bound of what the server can do.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            host_cpu(trial).filter(|share| *share > 0.95).map(percent)
        }),
    },
    Rule {
        id: "generator-cpu",
        group: Group::A,
        level: Level::W,
        rule: "A load generator with a machine of its own leaves at least 20 % of its CPU idle.",
        meaning: "The load generator may have added to the latency.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            host_cpu(trial).filter(|share| *share > 0.8 && *share <= 0.95).map(percent)
        }),
    },
    Rule {
        id: "shared-cpu",
        group: Group::A,
        level: Level::W,
        rule: "A machine that load generator and server share is at most 95 % busy.",
        meaning: "CPU was the limit of both together: what the load generator used, the server missed.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let share = trial.summary.generator.host.cpu_share;
            // Queries of TPC-H are meant to take all CPUs, and their client takes next to nothing.
            let is_found = trial.place != Place::Elsewhere && trial.summary.tpch.is_none();
            (is_found && share > 0.95).then(|| percent(share))
        }),
    },
    Rule {
        id: "generator-loop",
        group: Group::A,
        level: Level::W,
        rule: "No loop of the load generator is more than 90 % busy.",
        meaning: "One thread of the load generator was at its limit; use more loops.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            busiest_loop(trial).filter(|share| *share > 0.9).map(percent)
        }),
    },
    Rule {
        id: "steal",
        group: Group::E,
        level: Level::W,
        rule: "The hypervisor takes at most 1 % of the load generator's CPU for others.",
        meaning: "Other virtual machines disturbed the measurement.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            Some(trial.summary.generator.host.steal_share)
                .filter(|share| *share > 0.01)
                .map(percent)
        }),
    },
    Rule {
        id: "errors-1",
        group: Group::F,
        level: Level::E,
        rule: "Attempts that failed (transactions given up, and retries) are at most 1 % of the transactions.",
        meaning: "So many errors change what is measured.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            error_share(trial).filter(|share| *share > 0.01).map(percent)
        }),
    },
    Rule {
        id: "errors",
        group: Group::F,
        level: Level::W,
        rule: "Attempts that failed (transactions given up, and retries) are at most 0.1 % of the transactions.",
        meaning: "Failed attempts cost the server work that is in no throughput figure.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            error_share(trial).filter(|share| *share > 0.001 && *share <= 0.01).map(percent)
        }),
    },
    Rule {
        id: "gaps",
        group: Group::B,
        level: Level::W,
        rule: "Every interval of a window has a commit.",
        meaning: "The server stood still or was away. Without a schedule the percentiles hide most of it: requests that were not sent have no latency.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
            (seconds > 0.0).then(|| format!("{} s without a commit", format::plain(seconds)))
        }),
    },
    Rule {
        id: "reconnects",
        group: Group::F,
        level: Level::W,
        rule: "No session is lost.",
        meaning: "Sessions were connected again during the window; the time that took is in the window.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let reconnects = trial.summary.counts.reconnects;
            (reconnects > 0).then(|| format::count_of(reconnects, "reconnect", "reconnects"))
        }),
    },
    Rule {
        id: "littles-law",
        group: Group::G,
        level: Level::W,
        rule: "Without a schedule workers are inside transactions at least 95 % of the window (Little's law).",
        meaning: "The rest of the time went elsewhere: into the load generator, or into failed attempts and reconnects.",
        advice: "",
        find: Find::EnglishTrial(idle_workers),
    },
    Rule {
        id: "cut-off",
        group: Group::B,
        level: Level::W,
        rule: "Every trial lasts as long as planned.",
        meaning: "The trial was stopped early; its figures cover a shorter window.",
        advice: "",
        find: Find::EnglishTrial(|trial| {
            let window = || match &trial.summary.tpch {
                Some(facts) => format!(
                    "{} executed",
                    format::count_of(facts.queries.len() as u64, "query", "queries")
                ),
                None => format!("{} s measured", format::plain(trial.summary.window_s)),
            };
            matches!(trial.status, "interrupted" | "running").then(window)
        }),
    },
    Rule {
        id: "full-size",
        group: Group::H,
        level: Level::W,
        rule: "A suite runs in full size.",
        meaning: "Data and durations are smaller than those of the suite: a rehearsal, whose figures can't be compared with published ones.",
        advice: "",
        find: Find::Paper(|paper| paper.runs.iter().filter_map(shrunk).collect()),
    },
    Rule {
        id: "settings-differ",
        group: Group::D,
        level: Level::W,
        rule: "Targets of the same product have the same version and settings.",
        meaning: "A difference between these targets may come from their settings.",
        advice: "",
        find: Find::Paper(settings_differ),
    },
    Rule {
        id: "weak-durability",
        group: Group::D,
        level: Level::I,
        rule: "A commit survives a power loss.",
        meaning: "With these settings a committed transaction may be lost or torn; compare only with targets that promise the same.",
        advice: "",
        find: Find::EnglishTarget(|target| {
            let weak = target.settings.iter().filter(|setting| setting.is_weak);
            let weak: Vec<String> =
                weak.map(|setting| format!("{} = {}", setting.name, setting.value)).collect();
            (!weak.is_empty()).then(|| weak.join(", "))
        }),
    },
    Rule {
        id: "same-host",
        group: Group::A,
        level: Level::I,
        rule: "Load generator and server have a machine each.",
        meaning: "Both compete for the same CPUs, and there is no network between them; a server of its own may be faster, a network makes it slower.",
        advice: "",
        find: Find::EnglishTarget(|target| {
            target.same_host.then(|| "shares the load generator's machine".to_owned())
        }),
    },
    Rule {
        id: "few-repeats",
        group: Group::C,
        level: Level::I,
        rule: "Every point is measured at least 4 times.",
        meaning: "Differences between points may be chance; no verdict on which is faster is given.",
        advice: "",
        find: Find::EnglishExperiment(|experiment| {
            let fewest = experiment.points.iter().map(|point| point.repeats).min()?;
            (fewest < REPEATS_FOR_A_VERDICT)
                .then(|| format::count_of(fewest as u64, "trial per point", "trials per point"))
        }),
    },
    Rule {
        id: "short-window",
        group: Group::B,
        level: Level::I,
        rule: "A window lasts at least 60 s.",
        meaning: "Checkpoints and other slow cycles of a server may not show in it.",
        advice: "",
        find: Find::EnglishExperiment(|experiment| {
            // The 22 queries take the time that they take.
            let windows = experiment.shortest_window_s.filter(|_| experiment.tpch.is_none())?;
            (windows < 60.0).then(|| format!("{} s", format::plain(windows)))
        }),
    },
    Rule {
        id: "lighter-workload",
        group: Group::F,
        level: Level::I,
        rule: "The workload keeps its full transaction: no option takes statements or the transaction away.",
        meaning: "Figures are not comparable with those of the full transaction.",
        advice: "",
        find: Find::EnglishExperiment(lighter_workload),
    },
    Rule {
        id: "damaged-folder",
        group: Group::H,
        level: Level::W,
        rule: "Nothing in the run folder is damaged or missing.",
        meaning: "Some of what was measured could not be read.",
        advice: "",
        find: Find::Paper(|paper| {
            let of_run = |run: &crate::RunFacts| {
                let place = Spot::run(&run.folder);
                run.warnings
                    .iter()
                    .map(move |value| Finding { place: place.clone(), value: value.into() })
                    .collect::<Vec<_>>()
            };
            paper.runs.iter().flat_map(of_run).collect()
        }),
    },
];

/// The share of the suite's size that was executed, where that is less than the whole.
fn shrunk(run: &crate::RunFacts) -> Option<Finding> {
    let share = run.header.plan.get("shrink")?.as_f64().filter(|share| *share < 1.0)?;
    let value = format!("shrunk to {share} of its data and durations");
    Some(Finding { place: Spot::run(&run.folder), value: value.into() })
}

/// The evidence of a trial's checks that ended like that.
fn data_check(trial: &Trial, verdict: Verdict) -> Option<String> {
    // Answers of TPC-H have rules of their own.
    let is_told = |name: &str| trial.summary.tpch.is_some() && name == tpch::ANSWERS;
    let found = trial.summary.checks.iter();
    let found = found.filter(|check| check.verdict == verdict && !is_told(&check.name));
    let found: Vec<String> =
        found.map(|check| format!("{}: {}", check.name, check.evidence)).collect();
    (!found.is_empty()).then(|| found.join(" "))
}

fn percent(share: f64) -> String {
    format!("{} %", format::percent(share))
}

/// The busy share of the load generator's machine, where no server is on it.
fn host_cpu(trial: &Trial) -> Option<f64> {
    (trial.place == Place::Elsewhere).then_some(trial.summary.generator.host.cpu_share)
}

/// The busy share of the busiest loop. An embedded database works inside the loops, which are
/// meant to be busy then.
fn busiest_loop(trial: &Trial) -> Option<f64> {
    (trial.place != Place::Embedded).then_some(trial.summary.generator.busiest_loop_share)
}

fn error_share(trial: &Trial) -> Option<f64> {
    // What TPC-H gives up has rules of its own: one of 22 queries is no share of many.
    let counts = trial.summary.tpch.is_none().then_some(trial.summary.counts)?;
    (counts.started > 0).then(|| (counts.failed + counts.retries) as f64 / counts.started as f64)
}

fn rate_missed(trial: &Trial) -> Option<String> {
    let offered = trial.summary.offered? as f64;
    let done = trial.summary.counts.ended() as f64;
    // What is in flight at the end is at most one transaction per worker, and not missed.
    let allowed = (0.01 * offered).max(f64::from(trial.summary.workers));
    let is_missed = offered - done > allowed && trial.status != "interrupted";
    is_missed.then(|| format!("{:.2} % of the offered transactions", 100.0 * done / offered))
}

fn idle_workers(trial: &Trial) -> Option<String> {
    let summary = &trial.summary;
    let is_scheduled =
        summary.rate_per_s.is_some() || tpcc::is_paced(trial) || summary.tpch.is_some();
    if is_scheduled || summary.window_s <= 0.0 || summary.latency.count == 0 {
        return None;
    }
    let inside =
        summary.latency.sum_us / 1e6 / (summary.window_s * f64::from(summary.workers.max(1)));
    // What is in flight at either end of the window blurs the figure by about one transaction
    // per worker.
    let blur = summary.latency.mean_us / 1e6 / summary.window_s;
    (inside + blur < 0.95).then(|| format!("{} inside transactions", percent(inside)))
}

fn lighter_workload(experiment: &Experiment) -> Option<String> {
    const LIGHTER: [(&str, &[&str]); 7] = [
        ("range_selects", &["off", "0", "false"]),
        ("skip_trx", &["on", "1", "true"]),
        ("point_selects", &["0"]),
        ("oltp_simple_ranges", &["0"]),
        ("oltp_point_selects", &["0"]),
        ("oltp_skip_trx", &["on", "1", "true"]),
        ("delete_inserts", &["0"]),
    ];
    let is_lighter = |name: &str, value: &str| {
        let name = name.replace('-', "_");
        LIGHTER.iter().any(|(known, values)| *known == name && values.contains(&value))
    };
    let found = experiment.options.iter().filter(|(name, value)| is_lighter(name, value));
    let found: Vec<String> = found.map(|(name, value)| format!("{name}={value}")).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn settings_differ(paper: &Paper) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, target) in paper.targets.iter().enumerate() {
        let product =
            |target: &Target| target.product.split(' ').next().unwrap_or_default().to_owned();
        let earlier = &paper.targets[..index];
        let Some(first) = earlier.iter().find(|first| product(first) == product(target)) else {
            continue;
        };
        let mut differences = Vec::new();
        if first.product != target.product {
            differences.push(format!("{} against {}", first.product, target.product));
        }
        for setting in &target.settings {
            let other = first.settings.iter().find(|other| other.name == setting.name);
            if let Some(other) = other.filter(|other| other.value != setting.value) {
                differences
                    .push(format!("{} is {} against {}", setting.name, other.value, setting.value));
            }
        }
        if !differences.is_empty() {
            let place = Spot::targets(&[&first.label, &target.label]);
            findings.push(Finding { place, value: differences.join("; ").into() });
        }
    }
    findings
}
