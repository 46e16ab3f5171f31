//! Was the load generator starved? Found from its own conditions alone: a rule that looked at what was measured would
//! choose among results.

use dyno_facts::format::{percent, short};
use dyno_facts::{
    GeneratorConditions, GeneratorMember, HostSample, Message, Metric, PlanStep, StageOf,
    TrialStatus, TrialSummary, say,
};
use dyno_store::Run;
use dyno_suite::Plan;

/// Trials are repeated until that has taken this share of the plan's time: its estimate holds on a busy machine too.
/// The last one may exceed it.
const REPEATS_SHARE: f64 = 0.25;

/// The rule by which a trial is judged that may have been starved.
#[derive(Clone, Copy)]
pub(crate) struct Starving {
    /// Set if it is not repeated: it counts, however starved it was.
    pub(crate) is_last: bool,
    /// A server of its target is on the load generator's machine, or inside its process.
    pub(crate) same_host: bool,
    /// Has failed because its rate was missed, which a load generator that stood still can't help.
    pub(crate) is_late: bool,
}

impl Starving {
    /// For the next attempt at a step, or at a stage of it.
    pub(crate) fn next(
        run: &Run,
        plan: &Plan,
        step: &PlanStep,
        stage: Option<StageOf>,
        same_host: bool,
    ) -> Self {
        let experiment = plan.experiment(&step.experiment);
        let retries = experiment.map_or(0, |experiment| experiment.retry_starved as usize);
        let is_last = run.data().starved(&step.id, stage).len() >= retries
            || repeated_s(run, plan) > REPEATS_SHARE * plan.estimated_s;
        Starving { is_last, same_host, is_late: false }
    }

    /// For a trial that is not repeated.
    pub(crate) fn never_again(self) -> Self {
        Starving { is_last: true, ..self }
    }

    /// Notes what starved the load generator, and that the trial does not count if it is repeated.
    pub(crate) fn judge(self, summary: &mut TrialSummary, has_failed: bool) {
        let is_excused = match summary.status {
            TrialStatus::Complete => true,
            TrialStatus::Failed(_) => self.is_late && !has_failed,
            TrialStatus::Interrupted | TrialStatus::Starved | TrialStatus::Stage => false,
        };
        summary.conditions.generator.foreign_cpu_share = foreign_cpu_share(summary, cpus());
        let (share, reason) = largest_loss(summary, self.same_host).unzip();
        if share.is_some() && is_excused && !self.is_last {
            summary.status = TrialStatus::Starved;
        }
        // Repeated or not, its times are wrong.
        if summary.status == TrialStatus::Complete
            && let Some(reason) = suspended(&summary.conditions.generator)
        {
            summary.status = TrialStatus::Failed(reason);
        }
        let generator = &mut summary.conditions.generator;
        (generator.starved, generator.starved_share) = (reason, share);
    }
}

/// The time that attempts which do not count have taken, by the plan's estimates.
fn repeated_s(run: &Run, plan: &Plan) -> f64 {
    let seconds = run.data().repeated().map(|trial| {
        let step = plan.steps.iter().find(|planned| planned.id == trial.step);
        let stages = trial.stage.map_or(1.0, |stage| f64::from(stage.of));
        step.map_or(0.0, |step| step.estimated_s) / stages
    });
    seconds.sum()
}

/// The share of the window that a load generator lost by something, and by what.
type Loss = (f64, Message);

/// Causes overlap, so their shares are not added: the largest counts for all.
fn largest(losses: impl Iterator<Item = Loss>) -> Option<Loss> {
    let losses = losses.map(|(share, reason)| (share.min(1.0), reason));
    losses.reduce(|largest, next| if next.0 > largest.0 { next } else { largest })
}

/// The loss that starved the load generator, or one of several, the most.
fn largest_loss(summary: &TrialSummary, same_host: bool) -> Option<Loss> {
    let window_s = Some(summary.window_s).filter(|window_s| *window_s > 0.0)?;
    let generator = &summary.generator;
    let members: &[GeneratorMember] = &summary.conditions.members;
    let loops = f64::from(generator.loops) / members.len().max(1) as f64;
    let loops_s = window_s * loops.max(1.0);
    let foreign_share = summary.conditions.generator.foreign_cpu_share;
    let single = (None, &summary.conditions.generator, generator.host);
    let generators: Vec<(Option<&str>, &GeneratorConditions, HostSample)> = if members.is_empty() {
        vec![single]
    } else {
        let members = members.iter().map(|member| {
            let host = member.host_load.unwrap_or_default();
            (Some(member.name.as_str()), &member.conditions, host)
        });
        members.collect()
    };
    largest(generators.into_iter().filter_map(|(name, known, host)| {
        let cpu_wait = cpu_wait(known, loops_s, same_host, foreign_share);
        let losses = lost_time(known, &host, window_s).into_iter().chain([cpu_wait]);
        let (share, reason) = largest(losses.flatten())?;
        Some(match name {
            Some(name) => (share, say!(starved_generator, name, why = reason)),
            None => (share, reason),
        })
    }))
}

/// The share of `loops_s`, the time of all its loops, for which they waited for a CPU; on the server's machine only if
/// other programs used `foreign_share` of the CPUs.
fn cpu_wait(
    known: &GeneratorConditions,
    loops_s: f64,
    same_host: bool,
    foreign_share: Option<f64>,
) -> Option<Loss> {
    let share = known.run_delay_s? / loops_s;
    let share = Some(share).filter(|share| *share > GeneratorConditions::LOST_TIME)?;
    if !same_host {
        return Some((share, say!(loops_waited_for_cpu, percent = percent(share))));
    }
    let foreign = foreign_share?;
    let is_by_others = foreign > 1.0 - GeneratorConditions::BUSY_CPU;
    is_by_others.then(|| {
        let (percent, foreign) = (percent(share), percent(foreign));
        (share, say!(loops_waited_beside_others, percent, foreign))
    })
}

/// Suspension of the clock of the load generator's machine.
fn suspended(known: &GeneratorConditions) -> Option<Message> {
    Some(say!(machine_was_suspended, ms = short(known.suspension_ms()?)))
}

/// Time in which the load generator did not run at all.
fn lost_time(known: &GeneratorConditions, host: &HostSample, window_s: f64) -> [Option<Loss>; 4] {
    let stopped_s = known.stopped_s(window_s);
    let [throttled_share, stolen_share] = [known.throttled_share, Some(host.steal_share)]
        .map(|share| share.filter(|share| *share > GeneratorConditions::LOST_TIME));
    [
        // All of its times are wrong, or forbid a verdict: another attempt is better.
        suspended(known).map(|reason| (1.0, reason)),
        stopped_s.map(|s| (1.0, say!(generator_stood_still, seconds = short(s)))),
        throttled_share
            .map(|share| (share, say!(quota_held_generator_back, percent = percent(share)))),
        stolen_share.map(|share| (share, say!(hypervisor_took_cpu, percent = percent(share)))),
    ]
}

/// The share of this machine's CPUs that others than the load generator and its servers used: what a server takes from
/// the loops next to it is its result. `None` for concurrent trials, where the servers of the other target would be
/// counted.
fn foreign_cpu_share(summary: &TrialSummary, cpus: f64) -> Option<f64> {
    let servers_s = summary.figure(Metric::CpuS)?;
    let own_share = (summary.generator.loops_cpu_s + servers_s) / (summary.window_s * cpus);
    let has_one_generator = summary.conditions.members.is_empty();
    let is_attributable = summary.window_s > 0.0 && has_one_generator && !summary.is_together;
    is_attributable.then(|| (summary.generator.host.cpu_share - own_share).clamp(0.0, 1.0))
}

/// All that the machine has: it may let dyno use fewer of them.
fn cpus() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpus = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    cpus.count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{NodeConditions, TrialIdentity};

    fn new_trial(change: impl Fn(&mut TrialSummary)) -> TrialSummary {
        let mut summary = TrialIdentity::default().summary(TrialStatus::Complete);
        (summary.window_s, summary.generator.loops) = (20.0, 2);
        change(&mut summary);
        summary
    }

    fn loss_text(same_host: bool, change: impl Fn(&mut TrialSummary)) -> Option<String> {
        let mut trial = new_trial(change);
        trial.conditions.generator.foreign_cpu_share = foreign_cpu_share(&trial, 4.0);
        largest_loss(&trial, same_host).map(|(_, reason)| reason.to_string())
    }

    #[test]
    fn the_load_generators_own_conditions_tell_that_it_was_starved() {
        type Change = fn(&mut TrialSummary, f64);
        let cases: [(bool, Change, [f64; 2], &str); 4] = [
            (
                true,
                |summary, ms| summary.conditions.generator.suspended_ms = Some(ms),
                [0.5, 20.0],
                "suspended for 20",
            ),
            (
                false,
                |summary, s| summary.conditions.generator.run_delay_s = Some(s),
                [1.9, 2.2],
                "5.5% of the window",
            ),
            (
                true,
                |summary, s| summary.conditions.generator.hiccup_max_us = Some(s * 1e6),
                [0.9, 4.0],
                "stood still for 4",
            ),
            (
                false,
                |summary, share| summary.generator.host.steal_share = share,
                [0.05, 0.2],
                "took 20%",
            ),
        ];
        for (same_host, change, values, text) in cases {
            let [lets_go, starves] =
                values.map(|value| loss_text(same_host, |summary| change(summary, value)));
            assert_eq!(lets_go, None);
            assert!(starves.as_ref().is_some_and(|reason| reason.contains(text)), "{starves:?}");
        }
    }

    #[test]
    fn the_largest_share_stands_for_all_causes() {
        type Change = fn(&mut TrialSummary);
        let changes: [(Change, &str, &str); 4] = [
            (
                |summary| {
                    summary.conditions.generator.throttled_share = Some(0.15);
                    summary.conditions.generator.run_delay_s = Some(4.8);
                    summary.generator.host.steal_share = 0.2;
                },
                "0.20",
                "took 20%",
            ),
            (
                |summary| summary.conditions.generator.hiccup_max_us = Some(2e6),
                "1.00",
                "stood still",
            ),
            (|summary| summary.conditions.generator.suspended_ms = Some(20.0), "1.00", "suspended"),
            (
                |summary| {
                    let members = [("g1", 6.0), ("g2", 100.0)].map(|(name, run_delay_s)| {
                        let mut member =
                            GeneratorMember { name: name.to_owned(), ..GeneratorMember::default() };
                        member.conditions.run_delay_s = Some(run_delay_s);
                        member
                    });
                    *summary = new_trial(|_| {});
                    summary.conditions.members = members.into();
                },
                "1.00",
                "g2",
            ),
        ];
        // Each but the last adds to the causes before it.
        let mut summary = new_trial(|_| {});
        for (change, expected_share, text) in changes {
            change(&mut summary);
            let (share, reason) = largest_loss(&summary, false).expect("it was starved");
            assert_eq!(format!("{share:.2}"), expected_share, "{reason}");
            assert!(reason.to_string().contains(text), "{reason}");
        }
    }

    #[test]
    fn one_load_generator_that_stood_still_starves_the_trial_of_all() {
        fn starve_second(stood_s: f64) -> Option<String> {
            loss_text(false, |summary| {
                let mut frozen =
                    GeneratorMember { name: "b".to_owned(), ..GeneratorMember::default() };
                frozen.conditions.hiccup_max_us = Some(stood_s * 1e6);
                summary.conditions.members = vec![GeneratorMember::default(), frozen];
            })
        }
        assert_eq!(starve_second(0.1), None);
        let reason = starve_second(4.0).expect("it was starved");
        assert!(reason.contains('b') && reason.contains("stood still for 4"), "{reason}");
    }

    #[test]
    fn a_server_that_needs_the_cpu_itself_starves_no_one() {
        fn loss_next_to_server(server_s: Option<f64>, is_together: bool) -> Option<String> {
            loss_text(true, |summary| {
                summary.identity.is_together = is_together;
                summary.conditions.generator.run_delay_s = Some(20.0);
                summary.generator.host.cpu_share = 1.0;
                let measures = [(Metric::CpuS, server_s)].into();
                let node = NodeConditions { measures, ..NodeConditions::default() };
                summary.conditions.nodes.insert("db".to_owned(), node);
            })
        }
        assert_eq!(loss_next_to_server(Some(70.0), false), None);
        assert_eq!(loss_next_to_server(None, false), None);
        let reason = loss_next_to_server(Some(40.0), false).expect("others took the CPU");
        assert!(reason.contains("waited for a CPU in 50% of the window"), "{reason}");
        assert!(reason.contains("other programs took 50% of the machine's CPUs"), "{reason}");
        // In concurrent trials the servers of the other target are not foreign programs.
        assert_eq!(loss_next_to_server(Some(40.0), true), None);
    }

    #[test]
    fn one_load_generator_of_several_that_starved_spoils_the_trial() {
        fn judge_member(change: &dyn Fn(&mut GeneratorMember)) -> (TrialStatus, String) {
            let mut summary = new_trial(|summary| {
                // Four loops each.
                summary.generator.loops = 8;
                let members = ["g1", "g2"].map(|name| GeneratorMember {
                    name: name.to_owned(),
                    ..GeneratorMember::default()
                });
                summary.conditions.members = members.into();
                change(&mut summary.conditions.members[1]);
            });
            Starving { is_last: false, same_host: false, is_late: false }
                .judge(&mut summary, false);
            let reason = summary.conditions.generator.starved.map(|reason| reason.to_string());
            (summary.status, reason.unwrap_or_default())
        }
        let wait_for_cpu =
            |s| move |member: &mut GeneratorMember| member.conditions.run_delay_s = Some(s);
        assert_eq!(judge_member(&|_| {}), (TrialStatus::Complete, String::new()));
        assert_eq!(judge_member(&wait_for_cpu(3.9)).0, TrialStatus::Complete);
        let stand_still =
            |member: &mut GeneratorMember| member.conditions.hiccup_max_us = Some(4e6);
        let host = HostSample { steal_share: 0.2, ..HostSample::default() };
        for (outcome, text) in [
            (judge_member(&wait_for_cpu(4.4)), "waited for a CPU in 5.5%"),
            (judge_member(&stand_still), "stood still for 4"),
            (
                judge_member(&|member: &mut GeneratorMember| member.host_load = Some(host)),
                "took 20%",
            ),
        ] {
            assert_eq!(outcome.0, TrialStatus::Starved, "{text}");
            assert!(outcome.1.contains("g2") && outcome.1.contains(text), "{}", outcome.1);
        }
    }

    #[test]
    fn what_it_has_measured_decides_nothing() {
        fn judge_trial(status: TrialStatus, starving: Starving, has_failed: bool) -> TrialStatus {
            let mut summary = new_trial(|summary| {
                (summary.status, summary.tps) = (status.clone(), 1e6);
                summary.conditions.generator.hiccup_max_us = Some(4e6);
            });
            starving.judge(&mut summary, has_failed);
            assert!(summary.conditions.generator.starved.is_some());
            summary.status
        }
        let again = Starving { is_last: false, same_host: true, is_late: false };
        let failed = TrialStatus::Failed("late".into());
        assert_eq!(judge_trial(TrialStatus::Complete, again, false), TrialStatus::Starved);
        assert_eq!(judge_trial(failed.clone(), again, false), failed);
        let late = Starving { is_late: true, ..again };
        assert_eq!(judge_trial(failed.clone(), late, false), TrialStatus::Starved);
        assert_eq!(judge_trial(failed.clone(), late, true), failed);
        assert_eq!(judge_trial(TrialStatus::Interrupted, late, false), TrialStatus::Interrupted);
        let last = Starving { is_last: true, ..again };
        assert_eq!(judge_trial(TrialStatus::Complete, last, false), TrialStatus::Complete);
        let mut slept = new_trial(|summary| summary.conditions.generator.suspended_ms = Some(20.0));
        last.judge(&mut slept, false);
        assert!(matches!(slept.status, TrialStatus::Failed(_)), "no trial to be counted");
    }
}
