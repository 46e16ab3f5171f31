//! Checks: what a careful reader would ask of the numbers, computed.

use crate::format;
use crate::model::{Check, Experiment, Finding, Level, Paper, Place, Target, Trial};
use crate::{tpcc, tpch};
use dyno_measure::Verdict;

/// Fewer repeats than this can't carry a verdict (four pairs: the smallest p is 0.029).
const REPEATS_FOR_A_VERDICT: usize = 4;

pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) level: Level,
    pub(crate) rule: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) find: Find,
}

pub(crate) enum Find {
    /// One value per trial.
    Trial(fn(&Trial) -> Option<String>),
    Target(fn(&Target) -> Option<String>),
    Experiment(fn(&Experiment) -> Option<String>),
    Paper(fn(&Paper) -> Vec<Finding>),
}

const RULES: &[Rule] = &[
    Rule {
        id: "adds-up",
        level: Level::E,
        rule: "Transactions started equal those committed, rolled back, failed, skipped and in flight.",
        meaning: "The trial's counts contradict each other; this is a defect of dyno.",
        find: Find::Trial(|trial| {
            let counts = trial.summary.counts;
            let ended = format::whole((counts.ended() + trial.summary.in_flight) as f64);
            (!trial.adds_up).then(|| {
                format!("{} started, {ended} accounted for", format::whole(counts.started as f64))
            })
        }),
    },
    Rule {
        id: "trial-failed",
        level: Level::E,
        rule: "Every trial ends as planned.",
        meaning: "A failed trial is not usable for a claim; its figures are shown only where no other trial of the point exists.",
        find: Find::Trial(|trial| match &trial.summary.status {
            dyno_measure::TrialStatus::Failed(why) => Some(why.clone()),
            _ => None,
        }),
    },
    Rule {
        id: "data",
        level: Level::E,
        rule: "Wherever a workload can check its data after a trial, they are as they must be.",
        meaning: "Work was lost, invented or done twice, or somebody else changed the data: the trial's figures count what did not happen.",
        find: Find::Trial(|trial| data_check(trial, Verdict::Failed)),
    },
    Rule {
        id: "data-not-checked",
        level: Level::W,
        rule: "Every check of the data can be made.",
        meaning: "Nobody knows whether the work that was counted was done.",
        find: Find::Trial(|trial| data_check(trial, Verdict::NotMade)),
    },
    Rule {
        id: "rate-missed",
        level: Level::E,
        rule: "With a schedule at least 99 % of the offered transactions are executed within the window.",
        meaning: "The offered rate was not reached, so latency grows with the length of the window.",
        find: Find::Trial(rate_missed),
    },
    Rule {
        id: "generator-cpu-95",
        level: Level::E,
        rule: "A load generator with a machine of its own leaves at least 5 % of its CPU idle.",
        meaning: "The load generator itself may be the limit: throughput is a lower bound and latency an upper bound of what the server can do.",
        find: Find::Trial(|trial| host_cpu(trial).filter(|share| *share > 0.95).map(percent)),
    },
    Rule {
        id: "generator-cpu",
        level: Level::W,
        rule: "A load generator with a machine of its own leaves at least 20 % of its CPU idle.",
        meaning: "The load generator may have added to the latency.",
        find: Find::Trial(|trial| {
            host_cpu(trial).filter(|share| *share > 0.8 && *share <= 0.95).map(percent)
        }),
    },
    Rule {
        id: "shared-cpu",
        level: Level::W,
        rule: "A machine that load generator and server share is at most 95 % busy.",
        meaning: "CPU was the limit of both together: what the load generator used, the server missed.",
        find: Find::Trial(|trial| {
            let share = trial.summary.generator.host.cpu_share;
            // Queries of TPC-H are meant to take all CPUs, and their client takes next to nothing.
            let is_found = trial.place != Place::Elsewhere && trial.summary.tpch.is_none();
            (is_found && share > 0.95).then(|| percent(share))
        }),
    },
    Rule {
        id: "generator-loop",
        level: Level::W,
        rule: "No loop of the load generator is more than 90 % busy.",
        meaning: "One thread of the load generator was at its limit; use more loops.",
        find: Find::Trial(|trial| busiest_loop(trial).filter(|share| *share > 0.9).map(percent)),
    },
    Rule {
        id: "steal",
        level: Level::W,
        rule: "The hypervisor takes at most 1 % of the load generator's CPU for others.",
        meaning: "Other virtual machines disturbed the measurement.",
        find: Find::Trial(|trial| {
            Some(trial.summary.generator.host.steal_share)
                .filter(|share| *share > 0.01)
                .map(percent)
        }),
    },
    Rule {
        id: "errors-1",
        level: Level::E,
        rule: "Attempts that failed (transactions given up, and retries) are at most 1 % of the transactions.",
        meaning: "So many errors change what is measured.",
        find: Find::Trial(|trial| error_share(trial).filter(|share| *share > 0.01).map(percent)),
    },
    Rule {
        id: "errors",
        level: Level::W,
        rule: "Attempts that failed (transactions given up, and retries) are at most 0.1 % of the transactions.",
        meaning: "Failed attempts cost the server work that is in no throughput figure.",
        find: Find::Trial(|trial| {
            error_share(trial).filter(|share| *share > 0.001 && *share <= 0.01).map(percent)
        }),
    },
    Rule {
        id: "gaps",
        level: Level::W,
        rule: "Every interval of a window has a commit.",
        meaning: "The server stood still or was away. Without a schedule the percentiles hide most of it: requests that were not sent have no latency.",
        find: Find::Trial(|trial| {
            let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
            (seconds > 0.0).then(|| format!("{} s without a commit", format::plain(seconds)))
        }),
    },
    Rule {
        id: "reconnects",
        level: Level::W,
        rule: "No session is lost.",
        meaning: "Sessions were connected again during the window; the time that took is in the window.",
        find: Find::Trial(|trial| {
            let reconnects = trial.summary.counts.reconnects;
            (reconnects > 0).then(|| format::count_of(reconnects, "reconnect", "reconnects"))
        }),
    },
    Rule {
        id: "littles-law",
        level: Level::W,
        rule: "Without a schedule workers are inside transactions at least 95 % of the window (Little's law).",
        meaning: "The rest of the time went elsewhere: into the load generator, or into failed attempts and reconnects.",
        find: Find::Trial(idle_workers),
    },
    Rule {
        id: "cut-off",
        level: Level::W,
        rule: "Every trial lasts as long as planned.",
        meaning: "The trial was stopped early; its figures cover a shorter window.",
        find: Find::Trial(|trial| {
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
        level: Level::W,
        rule: "A suite runs in full size.",
        meaning: "Data and durations are smaller than those of the suite: a rehearsal, whose figures can't be compared with published ones.",
        find: Find::Paper(|paper| paper.runs.iter().filter_map(shrunk).collect()),
    },
    Rule {
        id: "settings-differ",
        level: Level::W,
        rule: "Targets of the same product have the same version and settings.",
        meaning: "A difference between these targets may come from their settings.",
        find: Find::Paper(settings_differ),
    },
    Rule {
        id: "weak-durability",
        level: Level::I,
        rule: "A commit survives a power loss.",
        meaning: "With these settings a committed transaction may be lost or torn; compare only with targets that promise the same.",
        find: Find::Target(|target| {
            let weak = target.settings.iter().filter(|setting| setting.is_weak);
            let weak: Vec<String> =
                weak.map(|setting| format!("{} = {}", setting.name, setting.value)).collect();
            (!weak.is_empty()).then(|| weak.join(", "))
        }),
    },
    Rule {
        id: "same-host",
        level: Level::I,
        rule: "Load generator and server have a machine each.",
        meaning: "Both compete for the same CPUs, and there is no network between them; a server of its own may be faster, a network makes it slower.",
        find: Find::Target(|target| {
            target.same_host.then(|| "shares the load generator's machine".to_owned())
        }),
    },
    Rule {
        id: "few-repeats",
        level: Level::I,
        rule: "Every point is measured at least 4 times.",
        meaning: "Differences between points may be chance; no verdict on which is faster is given.",
        find: Find::Experiment(|experiment| {
            let fewest = experiment.points.iter().map(|point| point.repeats).min()?;
            (fewest < REPEATS_FOR_A_VERDICT)
                .then(|| format::count_of(fewest as u64, "trial per point", "trials per point"))
        }),
    },
    Rule {
        id: "short-window",
        level: Level::I,
        rule: "A window lasts at least 60 s.",
        meaning: "Checkpoints and other slow cycles of a server may not show in it.",
        find: Find::Experiment(|experiment| {
            // The 22 queries take the time that they take.
            let windows = experiment.shortest_window_s.filter(|_| experiment.tpch.is_none())?;
            (windows < 60.0).then(|| format!("{} s", format::plain(windows)))
        }),
    },
    Rule {
        id: "lighter-workload",
        level: Level::I,
        rule: "The workload keeps its full transaction: no option takes statements or the transaction away.",
        meaning: "Figures are not comparable with those of the full transaction.",
        find: Find::Experiment(lighter_workload),
    },
    Rule {
        id: "damaged-folder",
        level: Level::W,
        rule: "Nothing in the run folder is damaged or missing.",
        meaning: "Some of what was measured could not be read.",
        find: Find::Paper(|paper| {
            let of_run = |run: &crate::RunFacts| {
                let place = format!("run {}", run.folder);
                run.warnings
                    .iter()
                    .map(move |value| Finding { place: place.clone(), value: value.clone() })
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
    Some(Finding { place: format!("run {}", run.folder), value })
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
            let place = format!("targets {} and {}", first.label, target.label);
            findings.push(Finding { place, value: differences.join("; ") });
        }
    }
    findings
}

/// Makes all checks and leaves their numbers at the trials and points that they concern. Checks
/// that found something come first, the gravest first.
pub(crate) fn make(paper: &mut Paper) {
    let is_tpcc = paper.experiments.iter().any(|experiment| experiment.tpcc.is_some());
    let is_tpch = paper.experiments.iter().any(|experiment| experiment.tpch.is_some());
    let of_tpcc = if is_tpcc { tpcc::RULES } else { &[] };
    let of_tpch = if is_tpch { tpch::RULES } else { &[] };
    let rules = RULES.iter().chain(of_tpcc).chain(of_tpch);
    let mut checks: Vec<Check> = rules.map(|rule| check(rule, paper)).collect();
    checks.sort_by_key(|check| (check.findings.is_empty(), check.level));
    for (index, check) in checks.iter_mut().enumerate() {
        check.number = index + 1;
    }
    for trial in &mut paper.trials {
        let place = trial_place(trial);
        let found = checks
            .iter()
            .filter(|check| check.findings.iter().any(|finding| finding.place == place));
        trial.checks = found.map(|check| check.number).collect();
    }
    for point in paper.experiments.iter_mut().flat_map(|experiment| &mut experiment.points) {
        let own = paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
        let mut numbers: Vec<usize> = own.flat_map(|trial| trial.checks.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        point.checks = numbers;
    }
    paper.checks = checks;
}

fn trial_place(trial: &Trial) -> String {
    format!("trial {}", trial.label)
}

fn check(rule: &Rule, paper: &Paper) -> Check {
    let finding =
        |place: String, value: Option<String>| value.map(|value| Finding { place, value });
    let findings = match rule.find {
        Find::Trial(find) => paper
            .trials
            .iter()
            .filter_map(|trial| finding(trial_place(trial), find(trial)))
            .collect(),
        Find::Target(find) => paper
            .targets
            .iter()
            .filter_map(|target| finding(format!("target {}", target.label), find(target)))
            .collect(),
        Find::Experiment(find) => paper
            .experiments
            .iter()
            .filter(|experiment| !experiment.points.is_empty())
            .filter_map(|experiment| {
                finding(format!("experiment {}", experiment.name), find(experiment))
            })
            .collect(),
        Find::Paper(find) => find(paper),
    };
    Check {
        number: 0,
        id: rule.id,
        level: rule.level,
        rule: rule.rule,
        meaning: rule.meaning,
        lines: lines(&findings),
        findings,
    }
}

/// Places with the same value in one line: `trials 1, 4 and 5: 97 %`.
fn lines(findings: &[Finding]) -> Vec<String> {
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for finding in findings {
        let (kind, name) = finding.place.split_once(' ').unwrap_or(("", &finding.place));
        let same =
            |group: &&mut (&str, &str, Vec<String>)| (group.0, group.1) == (kind, &finding.value);
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(name.to_owned()),
            None => groups.push((kind, &finding.value, vec![name.to_owned()])),
        }
    }
    let line = |(kind, value, names): (&str, &str, Vec<String>)| {
        let plural = if names.len() == 1 { "" } else { "s" };
        format!("{kind}{plural} {}: {value}", format::list_of(&names))
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_the_same_value_share_a_line() {
        let finding =
            |place: &str, value: &str| Finding { place: place.into(), value: value.into() };
        let findings =
            [finding("trial 1", "97 %"), finding("trial 2", "96 %"), finding("trial 4", "97 %")];
        assert_eq!(lines(&findings), ["trials 1 and 4: 97 %", "trial 2: 96 %"]);
    }
}
