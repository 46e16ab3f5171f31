//! A: the load generator.

use super::*;

/// CPU of the generator's machine, and of generator and server together on a shared one.
const CPU_UNUSABLE: f64 = 0.95;
/// Share of one loop, which can't use a second CPU.
const LOOP_CPU: f64 = 0.90;
/// Lateness of a thread, 99.9th percentile, absolutely and by the reported latency's.
const HICCUP_US: f64 = 1000.0;
const HICCUP_OF_LATENCY: f64 = 0.10;
/// Share of arrivals that began late although a worker was free; then the 99th percentile is the load generator's.
const IDLE_LATE: f64 = 0.01;
/// Share of the 99th percentile that may be spent in dyno's own queue.
const LOOP_QUEUE: f64 = 0.10;
/// Share of the link's speed; above it bursts wait in queues.
const NETWORK: f64 = 0.70;
/// TCP segments sent again; a retransmission costs at least 200 ms (RFC 6298 and Linux's minimum).
const RETRANSMITTED: f64 = 0.001;
/// Rate against the null server by that of the trial.
const HEADROOM: f64 = 3.0;
/// Between the first and the last of several load generators: less than the shortest interval of a series
/// by a wide margin.
const START_APART_MS: f64 = 5.0;
/// Between the clocks of several load generators.
const CLOCK_SKEW_MS: f64 = 10.0;

pub(super) const RULES: &[Rule] = &[
    Rule::trial(Group::A, Level::E, checks::rate_missed, rate_missed),
    Rule::trial(Group::A, Level::E, checks::generator_cpu_95, |trial| {
        each_host_cpu(trial, |share| above(Some(share), CPU_UNUSABLE))
    }),
    Rule::trial(Group::A, Level::W, checks::generator_cpu, |trial| {
        each_host_cpu(trial, |share| {
            above(Some(share).filter(|share| *share <= CPU_UNUSABLE), GeneratorConditions::BUSY_CPU)
        })
    }),
    Rule::trial(Group::A, Level::W, checks::shared_cpu, |trial| {
        let share = trial.summary.generator.host.cpu_share;
        // The statements of a pass are meant to take all CPUs, and their client takes next to nothing.
        let is_found = trial.place != TargetPlace::Elsewhere && !trial.summary.is_pass();
        above(Some(share).filter(|_| is_found), CPU_UNUSABLE)
    }),
    Rule::trial(Group::A, Level::W, checks::generator_loop, |trial| {
        // An embedded database works inside the loops, which are meant to be busy then.
        let busiest = Some(trial.summary.generator.busiest_loop_share);
        above(busiest.filter(|_| trial.place != TargetPlace::Embedded), LOOP_CPU)
    }),
    Rule::trial(Group::A, Level::W, checks::run_delay, run_delay),
    Rule::trial(Group::A, Level::W, checks::generator_starved, |trial| {
        trial.summary.conditions.generator.starved.clone()
    }),
    Rule::trial_of_case(Group::A, Level::E, checks::generator_stopped, |case, trial| {
        stopped(trial).filter(|_| !verdicts_hold_without(case, trial))
    }),
    Rule::evidence(Group::A, Level::I, checks::made_again, |evidence| {
        let findings = evidence.set_aside.iter().map(|trial| {
            Finding::new(SpotKind::Trial.at(&trial.label), why_set_aside(&trial.summary))
        });
        findings.collect()
    }),
    Rule::trial(Group::A, Level::W, checks::hiccups, find_hiccups),
    Rule::trial(Group::A, Level::E, checks::suspended, |trial| {
        each_generator(trial, |conditions| {
            let suspended_ms = conditions.suspension_ms()?;
            Some(Message::verbatim(format!("{} ms", format::plain(suspended_ms))))
        })
    }),
    Rule::trial(Group::A, Level::W, checks::open_loop_idle, open_loop_idle),
    Rule::trial(Group::A, Level::W, checks::loop_queue, loop_queue),
    Rule::trial(Group::A, Level::W, checks::network, |trial| {
        each_generator(trial, |conditions| above(conditions.network_share, NETWORK))
    }),
    Rule::trial_of_case(Group::A, Level::W, checks::retransmits, |case, trial| {
        // What a machine sends to itself goes over no network. With an embedded database or a unix socket nothing is
        // on the network but the traffic of others.
        let transports = nodes_of(trial).filter_map(|(_, node)| node.transport.as_ref());
        let mut transports = transports.peekable();
        let is_same_host = case.target_facts(trial).is_some_and(is_on_same_host);
        let is_local = is_same_host
            || transports.peek().is_some()
                && transports.all(|transport| transport.starts_with("unix socket"));
        let is_remote = trial.place != TargetPlace::Embedded && !is_local;
        each_generator(trial, |conditions| {
            above(conditions.retransmitted_share.filter(|_| is_remote), RETRANSMITTED)
        })
    }),
    Rule::trial(Group::A, Level::W, checks::headroom, |trial| {
        each_generator(trial, |conditions| {
            let headroom = conditions.headroom.filter(|times| *times < HEADROOM)?;
            Some(say!(times_the_measured_rate, times = format::plain(headroom)))
        })
    }),
    Rule::trial(Group::A, Level::I, checks::headroom_unproven, |trial| {
        let is_applicable = trial.place != TargetPlace::Embedded && !trial.summary.is_pass();
        each_generator(trial, |conditions| {
            let is_unproven = is_applicable && conditions.headroom.is_none();
            is_unproven.then(|| say!(no_calibration_for_this_protocol))
        })
    }),
    Rule::trial(Group::A, Level::W, checks::clock_skew, |trial| {
        let members = trial.summary.conditions.members.iter();
        let skews = members.filter_map(|member| member.clock_skew_ms).map(f64::abs);
        let largest = skews.reduce(f64::max).filter(|skew| *skew > CLOCK_SKEW_MS)?;
        Some(Message::verbatim(format!("{} ms", format::plain(largest))))
    }),
    Rule::trial(Group::A, Level::W, checks::start_apart, start_apart),
    Rule::trial(Group::A, Level::E, checks::generator_lost, |trial| {
        let members = trial.summary.conditions.members.iter();
        parts(members.filter_map(|member| {
            let reason = member.lost.as_ref()?;
            Some(say!(node_value, node = &member.name, value = reason))
        }))
    }),
    Rule::target(Group::A, Level::I, checks::same_host, |target| {
        target.facts.same_host.then(|| say!(shares_the_load_generators_machine))
    }),
];

/// A shard behind an endpoint is not a matter of the load generator's network.
fn is_on_same_host(target: &TargetFacts) -> bool {
    let mut driven = target.nodes.iter().filter(|node| node.role != Role::Shard);
    target.same_host && driven.all(|node| node.same_host)
}

/// Returns how long dyno itself was stopped in a trial, if that is too long. Transactions that were under way have
/// taken as long: a clock that was late alone has met a busy CPU.
pub(crate) fn stopped(trial: &Trial) -> Option<Message> {
    let latency = &trial.summary.latency;
    each_generator(trial, |conditions| {
        let stopped_s = conditions.stopped_s(trial.summary.window_s)?;
        let stopped_s =
            Some(stopped_s).filter(|s| latency.count == 0 || s * 0.9e6 < latency.max_us)?;
        Some(say!(dyno_was_stopped, seconds = format::short(stopped_s)))
    })
}

/// Returns true if a trial counts in comparisons alone, whose verdicts and gates hold whatever it would have shown.
fn verdicts_hold_without(case: &Case<'_>, trial: &Trial) -> bool {
    let comparisons = case.verdicts.comparisons.iter();
    let mut comparisons = comparisons
        .filter(|comparison| comparison.pairs.iter().flatten().any(|label| *label == trial.label))
        .peekable();
    comparisons.peek().is_some()
        && !comparisons.any(|comparison| {
            veto::explains_any(VetoReach::Pairs, comparison, case.verdicts, false)
        })
}

fn rate_missed(trial: &Trial) -> Option<Message> {
    let offered = trial.summary.offered? as f64;
    let ended = trial.summary.counts.ended() as f64;
    // What is in flight at the end is at most one transaction per worker, and not missed.
    let allowed = (0.01 * offered).max(f64::from(trial.summary.workers));
    // A search offers more than is held to find out what is. In concurrent trials a queue shows in the latency, which
    // is compared, and the cost of a transaction does not depend on the rate that was held.
    let is_rate_open = trial.summary.purpose == Purpose::Search || trial.summary.is_together;
    let is_judged = trial.status != "interrupted" && !is_rate_open;
    let is_missed = is_judged && offered - ended > allowed;
    let share = format!("{:.2}%", 100.0 * ended / offered);
    is_missed.then(|| say!(of_the_offered_transactions, share))
}

/// Findings about the busy share of the load generators' machines, if no server is on them.
fn each_host_cpu(trial: &Trial, find: impl Fn(f64) -> Option<Message>) -> Option<Message> {
    if trial.place != TargetPlace::Elsewhere {
        return None;
    }
    let host = &trial.summary.generator.host;
    each_member(trial, |member| find(member.host_load?.cpu_share), || find(host.cpu_share))
}

/// Clock uncertainty counts against the load generators: assumes the worst case.
fn start_apart(trial: &Trial) -> Option<Message> {
    let apart_ms = start_spread_ms(trial)?;
    let members = trial.summary.conditions.members.iter();
    let bound_ms = members.filter_map(|member| member.clock_bound_ms).reduce(f64::max);
    let bound_ms = bound_ms.unwrap_or_default();
    let (apart, bound) = (format::plain(apart_ms), format::plain(bound_ms));
    (apart_ms + bound_ms > START_APART_MS).then(|| say!(ms_by_clocks_known_to_ms, apart, bound))
}

/// A loop that waits for a CPU delays all its transactions; where the loops' own waiting isn't known,
/// that of any task on a machine without a server.
fn run_delay(trial: &Trial) -> Option<Message> {
    if trial.place == TargetPlace::Embedded || trial.summary.window_s <= 0.0 {
        return None;
    }
    let is_elsewhere = trial.place == TargetPlace::Elsewhere;
    let machine_share = generator(trial)?.cpu_pressure_share.filter(|_| is_elsewhere);
    above(run_delay_share(trial).or(machine_share), GeneratorConditions::LOST_TIME)
}

/// The share of the window that a loop waited for a CPU, on average.
pub(super) fn run_delay_share(trial: &Trial) -> Option<f64> {
    let loops_s = trial.summary.window_s * f64::from(trial.summary.generator.loops.max(1));
    generator(trial)?.run_delay_s.filter(|_| loops_s > 0.0).map(|delay_s| delay_s / loops_s)
}

fn open_loop_idle(trial: &Trial) -> Option<Message> {
    let awaited = trial.summary.generator.awaited?;
    let arrivals = trial.summary.latency.count.max(awaited.count).max(1);
    let share = awaited.late as f64 / arrivals as f64;
    let latest = format::ms(awaited.latest_us);
    (share > IDLE_LATE).then(|| say!(arrivals_late_while_idle, share = percent(share), latest))
}

/// Waiting of answers for dyno itself, compared with the latency: a transaction with several answers waits for each,
/// but all of these waits are long together by chance only.
fn loop_queue(trial: &Trial) -> Option<Message> {
    let summary = &trial.summary;
    let queue = summary.generator.loop_queue?;
    let transactions = summary.latency.count.max(1);
    let answers = (queue.count as f64 / transactions as f64).max(1.0);
    let spread_us = (queue.p99_us - queue.mean_us).max(0.0);
    let own_us = answers * queue.mean_us + answers.sqrt() * spread_us;
    let p99_us = summary.latency.p99_us;
    (p99_us > 0.0 && own_us > LOOP_QUEUE * p99_us)
        .then(|| say!(ms_of_p99_are_own, own = format::ms(own_us), p99 = format::ms(p99_us)))
}

fn find_hiccups(trial: &Trial) -> Option<Message> {
    each_member(
        trial,
        |member| describe_hiccups(&member.conditions, member.latency.as_ref()?),
        || describe_hiccups(generator(trial)?, &trial.summary.latency),
    )
}

fn describe_hiccups(conditions: &GeneratorConditions, latency: &LatencySummary) -> Option<Message> {
    let hiccup_us = conditions.hiccup_p999_us?;
    let is_printed = latency.count as f64 * 0.001 >= SAMPLES_BEYOND;
    let p999_us = Some(latency.p999_us).filter(|_| is_printed);
    let is_large = p999_us.is_some_and(|p999_us| hiccup_us > HICCUP_OF_LATENCY * p999_us);
    if hiccup_us <= HICCUP_US && !is_large {
        return None;
    }
    let hiccup = format::ms(hiccup_us);
    Some(match p999_us {
        Some(p999_us) => say!(ms_reported_ms, hiccup, latency = format::ms(p999_us)),
        None => Message::verbatim(format!("{hiccup} ms")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::{AwaitedArrivals, Counts, TrialSummary};

    fn is_missed(workers: u32, offered: u64, committed: u64, status: &'static str) -> bool {
        let counts = Counts { started: committed, committed, ..Counts::default() };
        let mut summary =
            TrialSummary { counts, offered: Some(offered), ..TrialSummary::default() };
        summary.identity.workers = workers;
        rate_missed(&Trial { status, ..trial(summary) }).is_some()
    }

    #[test]
    fn a_rate_is_missed_by_more_than_a_worker_each_and_one_percent() {
        assert!(!is_missed(1, 1_000, 990, "complete") && is_missed(1, 1_000, 989, "complete"));
        assert!(!is_missed(20, 1_000, 980, "complete") && is_missed(20, 1_000, 979, "complete"));
        assert!(!is_missed(1, 1_000, 500, "interrupted"));
        let counts = Counts { started: 500, committed: 500, ..Counts::default() };
        let mut summary = TrialSummary { counts, offered: Some(1_000), ..TrialSummary::default() };
        summary.identity.is_together = true;
        assert_eq!(rate_missed(&Trial { status: "complete", ..trial(summary) }), None);
    }

    fn is_late(count: u64, awaited: u64, late: u64) -> bool {
        let mut summary = TrialSummary::default();
        summary.latency.count = count;
        summary.generator.awaited =
            Some(AwaitedArrivals { count: awaited, late, ..AwaitedArrivals::default() });
        open_loop_idle(&trial(summary)).is_some()
    }

    #[test]
    fn arrivals_are_late_by_their_share() {
        assert!(!is_late(1_000, 500, 10) && is_late(1_000, 500, 11));
        assert!(!is_late(0, 500, 5) && is_late(0, 500, 6));
        assert!(!is_late(0, 0, 0));
    }

    fn make_latency(count: u64, mean_us: f64, p99_us: f64) -> LatencySummary {
        LatencySummary { count, mean_us, p99_us, ..LatencySummary::default() }
    }

    fn has_loop_queue(queue: LatencySummary, transactions: u64, p99_us: f64) -> bool {
        let latency = make_latency(transactions, 0.0, p99_us);
        let mut summary = TrialSummary { latency, ..TrialSummary::default() };
        summary.generator.loop_queue = Some(queue);
        loop_queue(&trial(summary)).is_some()
    }

    #[test]
    fn waits_of_answers_add_up_within_a_transaction() {
        // One answer each: 10 us and a spread of 90.
        assert!(has_loop_queue(make_latency(100, 10.0, 100.0), 100, 999.0));
        assert!(!has_loop_queue(make_latency(100, 10.0, 100.0), 100, 1_000.0));
        // Four answers: 4 * 10 and 2 * 90.
        assert!(has_loop_queue(make_latency(400, 10.0, 100.0), 100, 2_199.0));
        assert!(!has_loop_queue(make_latency(400, 10.0, 100.0), 100, 2_200.0));
        // Fewer answers than transactions are one each at least.
        assert!(!has_loop_queue(make_latency(50, 10.0, 100.0), 100, 1_000.0));
        assert!(!has_loop_queue(make_latency(100, 10.0, 100.0), 100, 0.0));
    }

    fn has_hiccups(hiccup_us: f64, count: u64, p999_us: f64) -> bool {
        let conditions = GeneratorConditions {
            hiccup_p999_us: Some(hiccup_us),
            ..GeneratorConditions::default()
        };
        let latency = LatencySummary { count, p999_us, ..LatencySummary::default() };
        describe_hiccups(&conditions, &latency).is_some()
    }

    #[test]
    fn hiccups_count_by_themselves_and_by_the_latency() {
        assert!(!has_hiccups(1_000.0, 0, 0.0) && has_hiccups(1_001.0, 0, 0.0));
        assert!(!has_hiccups(100.0, 10_000, 1_000.0) && has_hiccups(101.0, 10_000, 1_000.0));
        assert!(!has_hiccups(101.0, 9_999, 1_000.0), "too few for a percentile");
    }

    fn delay_share(window_s: f64, loops: u32, delay_s: Option<f64>) -> Option<f64> {
        let mut summary = TrialSummary { window_s, ..TrialSummary::default() };
        summary.generator.loops = loops;
        summary.conditions.generator.run_delay_s = delay_s;
        run_delay_share(&trial(summary))
    }

    #[test]
    fn loops_wait_for_a_cpu_on_average() {
        assert_eq!(delay_share(10.0, 4, Some(2.0)), Some(0.05));
        assert_eq!(delay_share(10.0, 0, Some(2.0)), Some(0.2));
        assert_eq!((delay_share(0.0, 4, Some(2.0)), delay_share(10.0, 4, None)), (None, None));
    }

    fn is_apart(late_ms: &[f64], clock_bound_ms: Option<f64>) -> bool {
        let mut summary = TrialSummary::default();
        let members = late_ms.iter().map(|late_ms| GeneratorMember {
            late_ms: Some(*late_ms),
            clock_bound_ms,
            ..GeneratorMember::default()
        });
        summary.conditions.members = members.collect();
        start_apart(&trial(summary)).is_some()
    }

    #[test]
    fn starts_are_as_near_as_clocks_are_known() {
        assert!(!is_apart(&[1.0, 5.0, 2.0], Some(1.0)) && is_apart(&[1.0, 5.0, 2.0], Some(1.5)));
        assert!(!is_apart(&[0.0, 5.0], None) && is_apart(&[0.0, 5.5], None));
        assert!(!is_apart(&[9.0], Some(9.0)), "one alone");
    }
}
