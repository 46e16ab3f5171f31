//! A: the load generator.

use super::case::{each_generator, each_member, generator};
use super::{Find, Rule, parts, percent};
use crate::build::start_spread_ms;
use crate::model::{Group, Level, Place, Trial};
use crate::say;
use crate::text::{self, Text};
use crate::{format, points};
use dyno_measure::{GeneratorConditions, GeneratorMember, LatencySummary, Purpose};

/// CPU of a machine of its own, and of both together on a shared one; a queue grows without bounds
/// near 100 %, and at 80 % an M/M/1 queue is four times as long as its service (catalogue of checks).
const CPU_CAVEAT: f64 = 0.80;
const CPU_UNUSABLE: f64 = 0.95;
/// Of one loop, which can't use a second CPU.
const LOOP_CPU: f64 = 0.90;
/// Share of the window in which loops that could run waited for a CPU: as much is in the latency.
const RUN_DELAY: f64 = 0.05;
/// How late a thread may wake, 99.9th percentile, absolutely and by the reported latency's.
const HICCUP_US: f64 = 1000.0;
const HICCUP_OF_LATENCY: f64 = 0.10;
/// Of the link's speed; above it bursts wait in queues.
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
    Rule {
        id: "rate-missed",
        group: Group::A,
        level: Level::E,
        rule: "With a schedule at least 99 % of the offered transactions are executed within the window.",
        meaning: "The offered rate was not reached, so latency grows with the length of the window.",
        advice: "Offer a lower rate, or let an objective find the highest rate that is held.",
        find: Find::Trial(rate_missed),
    },
    Rule {
        id: "generator-cpu-95",
        group: Group::A,
        level: Level::E,
        rule: "A load generator with a machine of its own leaves at least 5 % of its CPU idle.",
        meaning: "The load generator itself may be the limit: throughput is a lower bound and latency an upper bound of what the server can do.",
        advice: "Use a larger machine for the load generator, or several of them.",
        find: Find::Trial(|trial| {
            each_host_cpu(trial, |share| (share > CPU_UNUSABLE).then(|| percent(share)))
        }),
    },
    Rule {
        id: "generator-cpu",
        group: Group::A,
        level: Level::W,
        rule: "A load generator with a machine of its own leaves at least 20 % of its CPU idle.",
        meaning: "The load generator may have added to the latency.",
        advice: "Use a larger machine for the load generator, or stop what else runs on it.",
        find: Find::Trial(|trial| {
            let is_found = |share| share > CPU_CAVEAT && share <= CPU_UNUSABLE;
            each_host_cpu(trial, |share| is_found(share).then(|| percent(share)))
        }),
    },
    Rule {
        id: "shared-cpu",
        group: Group::A,
        level: Level::W,
        rule: "A machine that load generator and server share is at most 95 % busy.",
        meaning: "CPU was the limit of both together: what the load generator used, the server missed.",
        advice: "Run the load generator on a machine of its own.",
        find: Find::Trial(|trial| {
            let share = trial.summary.generator.host.cpu_share;
            // Queries of TPC-H are meant to take all CPUs, and their client takes next to nothing.
            let is_found = trial.place != Place::Elsewhere && trial.summary.tpch.is_none();
            (is_found && share > CPU_UNUSABLE).then(|| percent(share))
        }),
    },
    Rule {
        id: "generator-loop",
        group: Group::A,
        level: Level::W,
        rule: "No loop of the load generator is more than 90 % busy.",
        meaning: "One thread of the load generator was at its limit; use more loops.",
        advice: "Give the load generator more loops (--loops), at most one per CPU.",
        find: Find::Trial(|trial| {
            busiest_loop(trial).filter(|share| *share > LOOP_CPU).map(percent)
        }),
    },
    Rule {
        id: "run-delay",
        group: Group::A,
        level: Level::W,
        rule: "The load generator's loops wait for a CPU for at most 5 % of the window.",
        meaning: "What the loops waited for is in the latency of every transaction that was under way.",
        advice: "Keep other programs off the load generator's machine, or use fewer loops than it has CPUs.",
        find: Find::Trial(run_delay),
    },
    Rule {
        id: "hiccups",
        group: Group::A,
        level: Level::W,
        rule: "The load generator's own hiccups (99.9th percentile) are at most 1 ms and at most 10 % of the reported 99.9th percentile.",
        meaning: "The machine of the load generator stopped now and then: the highest percentiles are its own, not the server's.",
        advice: "Use a machine without noisy neighbours and power saving; trust no percentile above the 99th.",
        find: Find::Trial(hiccups),
    },
    Rule {
        id: "network",
        group: Group::A,
        level: Level::W,
        rule: "The load generator's busiest network interface uses at most 70 % of its link.",
        meaning: "The network may be the limit, not the server.",
        advice: "Use a faster link or several load generators, or select fewer bytes.",
        find: Find::Trial(|trial| {
            each_generator(trial, |known| {
                known.network_share.filter(|share| *share > NETWORK).map(percent)
            })
        }),
    },
    Rule {
        id: "retransmits",
        group: Group::A,
        level: Level::W,
        rule: "At most 0.1 % of the TCP segments are sent again.",
        meaning: "The network lost packets; each loss shows as 200 ms and more of latency.",
        advice: "Look for a saturated link, a full queue or a broken cable between load generator and server.",
        find: Find::Trial(|trial| {
            each_generator(trial, |known| {
                known.retransmitted_share.filter(|share| *share > RETRANSMITTED).map(percent)
            })
        }),
    },
    Rule {
        id: "headroom",
        group: Group::A,
        level: Level::W,
        rule: "Against a null server this load generator reaches at least 3 times the measured rate.",
        meaning: "A noticeable part of the latency and of the limit may be the load generator's.",
        advice: "Use more loops, a larger machine or several load generators.",
        find: Find::Trial(|trial| {
            each_generator(trial, |known| {
                let headroom = known.headroom.filter(|times| *times < HEADROOM)?;
                Some(say!("{times} times the measured rate", times = format::plain(headroom)))
            })
        }),
    },
    Rule {
        id: "headroom-unproven",
        group: Group::A,
        level: Level::I,
        rule: "The load generator has proven its head-room against a null server.",
        meaning: "That the load generator was not the limit follows from its CPU only.",
        advice: "Run dyno calibrate once on this machine; later runs then carry the proof.",
        find: Find::Trial(|trial| {
            let is_asked = trial.place != Place::Embedded && trial.summary.tpch.is_none();
            each_generator(trial, |known| {
                let is_unproven = is_asked && known.headroom.is_none();
                is_unproven.then(|| say!("no calibration for this protocol"))
            })
        }),
    },
    Rule {
        id: "clock-skew",
        group: Group::A,
        level: Level::W,
        rule: "The clocks of several load generators differ by at most 10 ms.",
        meaning: "What their machines and the servers write down cannot be laid side by side; the windows themselves open by measured offsets and are not touched.",
        advice: "Synchronise the machines' clocks (chrony, PTP) before the run.",
        find: Find::Trial(|trial| {
            let members = trial.summary.conditions.members.iter();
            let skews = members.filter_map(|member| member.clock_skew_ms).map(f64::abs);
            let largest = skews.reduce(f64::max).filter(|skew| *skew > CLOCK_SKEW_MS)?;
            Some(Text::same(format!("{} ms", format::plain(largest))))
        }),
    },
    Rule {
        id: "start-apart",
        group: Group::A,
        level: Level::W,
        rule: "Several load generators start within 5 ms of each other, as far as their clocks are known.",
        meaning: "At the begin and at the end of the window only some of them made load.",
        advice: "Use machines near each other and without other work; a network with short round trips lets the clocks be known better.",
        find: Find::Trial(start_apart),
    },
    Rule {
        id: "generator-lost",
        group: Group::A,
        level: Level::E,
        rule: "No load generator is lost in a trial.",
        meaning: "From then on a part of the load was missing, and what it did after its last report is not counted; the trial is no measurement.",
        advice: "Find out why it died or answered no more (memory, network, somebody who stopped it); repeat the trial.",
        find: Find::Trial(|trial| {
            let lost = |member: &GeneratorMember| {
                let why = member.lost.as_deref()?;
                Some(say!("{node}: {value}", node = &member.name, value = text::stored(why)))
            };
            parts(trial.summary.conditions.members.iter().filter_map(lost).collect())
        }),
    },
    Rule {
        id: "same-host",
        group: Group::A,
        level: Level::I,
        rule: "Load generator and server have a machine each.",
        meaning: "Both compete for the same CPUs, and there is no network between them; a server of its own may be faster, a network makes it slower.",
        advice: "For figures that others should compare with, run the load generator on another machine of the same zone.",
        find: Find::Target(|target| {
            target.same_host.then(|| say!("shares the load generator's machine"))
        }),
    },
];

fn rate_missed(trial: &Trial) -> Option<Text> {
    let offered = trial.summary.offered? as f64;
    let done = trial.summary.counts.ended() as f64;
    // What is in flight at the end is at most one transaction per worker, and not missed.
    let allowed = (0.01 * offered).max(f64::from(trial.summary.workers));
    // A search offers more than is held to find out what is.
    let is_judged = trial.status != "interrupted" && trial.summary.purpose != Purpose::Search;
    let is_missed = is_judged && offered - done > allowed;
    let share = format!("{:.2} %", 100.0 * done / offered);
    is_missed.then(|| say!("{share} of the offered transactions", share = share))
}

/// What `find` says of the busy share of the load generators' machines, where no server is on them.
fn each_host_cpu(trial: &Trial, find: impl Fn(f64) -> Option<Text>) -> Option<Text> {
    if trial.place != Place::Elsewhere {
        return None;
    }
    let of_member = |member: &GeneratorMember| find(member.host_load?.cpu_share);
    each_member(trial, of_member, || find(trial.summary.generator.host.cpu_share))
}

/// How well the clocks are known counts against the load generators: what is not proven is not so.
fn start_apart(trial: &Trial) -> Option<Text> {
    let apart_ms = start_spread_ms(trial)?;
    let members = trial.summary.conditions.members.iter();
    let bound_ms = members.filter_map(|member| member.clock_bound_ms).reduce(f64::max);
    let bound_ms = bound_ms.unwrap_or_default();
    (apart_ms + bound_ms > START_APART_MS).then(|| {
        say!(
            "{apart} ms, by clocks known to ± {bound} ms",
            apart = format::plain(apart_ms),
            bound = format::plain(bound_ms)
        )
    })
}

/// The busy share of the busiest loop. An embedded database works inside the loops, which are
/// meant to be busy then.
fn busiest_loop(trial: &Trial) -> Option<f64> {
    (trial.place != Place::Embedded).then_some(trial.summary.generator.busiest_loop_share)
}

/// A loop that waits for a CPU delays all its transactions; where the loops' own waiting isn't known,
/// that of any task on a machine without a server.
fn run_delay(trial: &Trial) -> Option<Text> {
    if trial.place == Place::Embedded || trial.summary.window_s <= 0.0 {
        return None;
    }
    let known = generator(trial)?;
    let of_machine = known.cpu_pressure_share.filter(|_| trial.place == Place::Elsewhere);
    run_delay_share(trial).or(of_machine).filter(|share| *share > RUN_DELAY).map(percent)
}

/// The share of the window that a loop waited for a CPU, on average.
pub(super) fn run_delay_share(trial: &Trial) -> Option<f64> {
    let loops_s = trial.summary.window_s * f64::from(trial.summary.generator.loops.max(1));
    generator(trial)?.run_delay_s.filter(|_| loops_s > 0.0).map(|delay_s| delay_s / loops_s)
}

fn hiccups(trial: &Trial) -> Option<Text> {
    each_member(
        trial,
        |member| hiccups_of(&member.conditions, member.latency.as_ref()?),
        || hiccups_of(generator(trial)?, &trial.summary.latency),
    )
}

fn hiccups_of(known: &GeneratorConditions, latency: &LatencySummary) -> Option<Text> {
    let hiccup_us = known.hiccup_p999_us?;
    let is_printed = latency.count as f64 * 0.001 >= points::SAMPLES_BEYOND;
    let p999_us = Some(latency.p999_us).filter(|_| is_printed);
    let is_large = p999_us.is_some_and(|p999_us| hiccup_us > HICCUP_OF_LATENCY * p999_us);
    if hiccup_us <= HICCUP_US && !is_large {
        return None;
    }
    let hiccup = format::ms(hiccup_us);
    Some(match p999_us {
        Some(p999_us) => say!(
            "{hiccup} ms; reported {latency} ms",
            hiccup = hiccup,
            latency = format::ms(p999_us)
        ),
        None => Text::same(format!("{hiccup} ms")),
    })
}
