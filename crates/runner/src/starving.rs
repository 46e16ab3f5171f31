//! Was the load generator starved? Found from its own conditions alone: a rule that looked at what was measured would
//! choose among results.

use dyno_facts::format::{percent, short};
use dyno_facts::{
    GeneratorConditions, GeneratorMember, HostSample, Message, Metric, PlanStep, StageOf,
    TrialStatus, TrialSummary, say,
};
use dyno_store::Run;
use dyno_suite::Plan;

/// Trials are made again until that has taken this share of the plan's time: its estimate holds on a busy machine too.
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
            || made_again_s(run, plan) > REPEATS_SHARE * plan.estimated_s;
        Starving { is_last, same_host, is_late: false }
    }

    /// For a trial that is not made again.
    pub(crate) fn never_again(self) -> Self {
        Starving { is_last: true, ..self }
    }

    /// Notes what starved the load generator, and that the trial does not count where it is made again.
    pub(crate) fn judge(self, summary: &mut TrialSummary, has_failed: bool) {
        let is_excused = match summary.status {
            TrialStatus::Complete => true,
            TrialStatus::Failed(_) => self.is_late && !has_failed,
            TrialStatus::Interrupted | TrialStatus::Starved | TrialStatus::Stage => false,
        };
        summary.conditions.generator.foreign_cpu_share = foreign_cpu_share(summary, cpus());
        let (share, why) = found(summary, self.same_host).unzip();
        if share.is_some() && is_excused && !self.is_last {
            summary.status = TrialStatus::Starved;
        }
        // Made again or not, its times are wrong.
        if summary.status == TrialStatus::Complete
            && let Some(why) = suspended(&summary.conditions.generator)
        {
            summary.status = TrialStatus::Failed(why);
        }
        let generator = &mut summary.conditions.generator;
        (generator.starved, generator.starved_share) = (why, share);
    }
}

/// The time that attempts which do not count have taken, by the plan's estimates.
fn made_again_s(run: &Run, plan: &Plan) -> f64 {
    let seconds = |trial: &TrialSummary| {
        let step = plan.steps.iter().find(|planned| planned.id == trial.step);
        let stages = trial.stage.map_or(1.0, |stage| f64::from(stage.of));
        step.map_or(0.0, |step| step.estimated_s) / stages
    };
    run.data().repeated().map(seconds).sum()
}

/// The share of the window that a load generator lost by something, and by what.
type Loss = (f64, Message);

/// Causes overlap, so their shares are not added: the largest stands for all.
fn most(losses: impl Iterator<Item = Loss>) -> Option<Loss> {
    let losses = losses.map(|(share, why)| (share.min(1.0), why));
    losses.reduce(|most, next| if next.0 > most.0 { next } else { most })
}

/// The loss that starved the load generator, or one of several, the most.
fn found(summary: &TrialSummary, same_host: bool) -> Option<Loss> {
    let window_s = Some(summary.window_s).filter(|window_s| *window_s > 0.0)?;
    let generator = &summary.generator;
    let members = &summary.conditions.members;
    let loops = f64::from(generator.loops) / members.len().max(1) as f64;
    let waited = |known: &GeneratorConditions| {
        let share = known.run_delay_s? / (window_s * loops.max(1.0));
        let share = Some(share).filter(|share| *share > GeneratorConditions::LOST_TIME)?;
        if !same_host {
            return Some((share, say!(loops_waited_for_cpu, percent = percent(share))));
        }
        let foreign = summary.conditions.generator.foreign_cpu_share?;
        let is_by_others = foreign > 1.0 - GeneratorConditions::BUSY_CPU;
        is_by_others.then(|| {
            let (percent, foreign) = (percent(share), percent(foreign));
            (share, say!(loops_waited_beside_others, percent, foreign))
        })
    };
    let of = |known: &GeneratorConditions, host: &HostSample| {
        most(lost_time(known, host, window_s).into_iter().chain([waited(known)]).flatten())
    };
    if members.is_empty() {
        return of(&summary.conditions.generator, &generator.host);
    }
    most(members.iter().filter_map(|member: &GeneratorMember| {
        let (share, why) = of(&member.conditions, &member.host_load.unwrap_or_default())?;
        Some((share, say!(starved_generator, name = &member.name, why)))
    }))
}

/// Suspension of the clock of the load generator's machine.
fn suspended(known: &GeneratorConditions) -> Option<Message> {
    Some(say!(machine_was_suspended, ms = short(known.suspension_ms()?)))
}

/// Time in which the load generator did not run at all.
fn lost_time(known: &GeneratorConditions, host: &HostSample, window_s: f64) -> [Option<Loss>; 4] {
    let is_lost = |share: &f64| *share > GeneratorConditions::LOST_TIME;
    let stopped = |stopped_s: f64| (1.0, say!(generator_stood_still, seconds = short(stopped_s)));
    let throttled = |share: f64| (share, say!(quota_held_generator_back, percent = percent(share)));
    let stolen = |share: f64| (share, say!(hypervisor_took_cpu, percent = percent(share)));
    [
        // All of its times are wrong, or forbid a verdict: another attempt is better.
        suspended(known).map(|why| (1.0, why)),
        known.stopped_s(window_s).map(stopped),
        known.throttled_share.filter(is_lost).map(throttled),
        Some(host.steal_share).filter(is_lost).map(stolen),
    ]
}

/// The share of this machine's CPUs that others than the load generator and its servers used: what a server takes from
/// the loops next to it is its result. `None` for concurrent trials, where the servers of the other target would be
/// counted.
fn foreign_cpu_share(summary: &TrialSummary, cpus: f64) -> Option<f64> {
    let servers_s = summary.figure(Metric::CpuS)?;
    let own = (summary.generator.loops_cpu_s + servers_s) / (summary.window_s * cpus);
    let has_one_generator = summary.conditions.members.is_empty();
    let is_alone = summary.window_s > 0.0 && has_one_generator && !summary.is_together;
    is_alone.then(|| (summary.generator.host.cpu_share - own).clamp(0.0, 1.0))
}

/// All that the machine has: it may let dyno use fewer of them.
fn cpus() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    stat.lines().filter(is_one).count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::{NodeConditions, TrialIdentity};

    fn trial(change: impl Fn(&mut TrialSummary)) -> TrialSummary {
        let mut summary = TrialIdentity::default().summary(TrialStatus::Complete);
        (summary.window_s, summary.generator.loops) = (20.0, 2);
        change(&mut summary);
        summary
    }

    fn why(same_host: bool, change: impl Fn(&mut TrialSummary)) -> Option<String> {
        let mut trial = trial(change);
        trial.conditions.generator.foreign_cpu_share = foreign_cpu_share(&trial, 4.0);
        found(&trial, same_host).map(|(_, why)| why.to_string())
    }

    #[test]
    fn the_load_generators_own_conditions_tell_that_it_was_starved() {
        let known = |summary: &mut TrialSummary, change: &dyn Fn(&mut GeneratorConditions)| {
            change(&mut summary.conditions.generator);
        };
        let waited = |s: f64| {
            move |summary: &mut TrialSummary| {
                known(summary, &|known| known.run_delay_s = Some(s));
            }
        };
        let stood = |s: f64| {
            move |summary: &mut TrialSummary| {
                known(summary, &|known| known.hiccup_max_us = Some(s * 1e6));
            }
        };
        let stolen = |share: f64| {
            move |summary: &mut TrialSummary| summary.generator.host.steal_share = share
        };
        let slept = |ms: f64| {
            move |summary: &mut TrialSummary| {
                known(summary, &|known| known.suspended_ms = Some(ms));
            }
        };
        for (lets_go, starves, text) in [
            (why(true, slept(0.5)), why(true, slept(20.0)), "suspended for 20"),
            (why(false, waited(1.9)), why(false, waited(2.2)), "5.5% of the window"),
            (why(true, stood(0.9)), why(true, stood(4.0)), "stood still for 4"),
            (why(false, stolen(0.05)), why(false, stolen(0.2)), "took 20%"),
        ] {
            assert_eq!(lets_go, None);
            assert!(starves.as_ref().is_some_and(|why| why.contains(text)), "{starves:?}");
        }
    }

    #[test]
    fn the_largest_share_stands_for_all_causes() {
        let lost = |change: &dyn Fn(&mut TrialSummary)| {
            let (share, why) = found(&trial(change), false).expect("it was starved");
            (format!("{share:.2}"), why.to_string())
        };
        let several = |summary: &mut TrialSummary| {
            summary.conditions.generator.throttled_share = Some(0.15);
            summary.conditions.generator.run_delay_s = Some(4.8);
            summary.generator.host.steal_share = 0.2;
        };
        let stood = |summary: &mut TrialSummary| {
            several(summary);
            summary.conditions.generator.hiccup_max_us = Some(2e6);
        };
        let slept = |summary: &mut TrialSummary| {
            stood(summary);
            summary.conditions.generator.suspended_ms = Some(20.0);
        };
        let of_two = |summary: &mut TrialSummary| {
            let waited = |name: &str, run_delay_s: f64| {
                let mut member =
                    GeneratorMember { name: name.to_owned(), ..GeneratorMember::default() };
                member.conditions.run_delay_s = Some(run_delay_s);
                member
            };
            summary.conditions.members = vec![waited("g1", 6.0), waited("g2", 100.0)];
        };
        for (found, share, why) in [
            (lost(&several), "0.20", "took 20%"),
            (lost(&stood), "1.00", "stood still"),
            (lost(&slept), "1.00", "suspended"),
            (lost(&of_two), "1.00", "g2"),
        ] {
            assert!(found.0 == share && found.1.contains(why), "{found:?}");
        }
    }

    #[test]
    fn one_load_generator_that_stood_still_starves_the_trial_of_all() {
        let of_two = |stood_s: f64| {
            why(false, |summary| {
                let mut frozen =
                    GeneratorMember { name: "b".to_owned(), ..GeneratorMember::default() };
                frozen.conditions.hiccup_max_us = Some(stood_s * 1e6);
                summary.conditions.members = vec![GeneratorMember::default(), frozen];
            })
        };
        assert_eq!(of_two(0.1), None);
        let why = of_two(4.0).expect("it was starved");
        assert!(why.contains('b') && why.contains("stood still for 4"), "{why}");
    }

    #[test]
    fn a_server_that_needs_the_cpu_itself_starves_nobody() {
        let measured = |server_s: Option<f64>, is_together: bool| {
            why(true, |summary| {
                summary.identity.is_together = is_together;
                summary.conditions.generator.run_delay_s = Some(20.0);
                summary.generator.host.cpu_share = 1.0;
                let measures = [(Metric::CpuS, server_s)].into();
                let node = NodeConditions { measures, ..NodeConditions::default() };
                summary.conditions.nodes.insert("db".to_owned(), node);
            })
        };
        let beside = |server_s| measured(server_s, false);
        assert_eq!(beside(Some(70.0)), None);
        assert_eq!(beside(None), None);
        let why = beside(Some(40.0)).expect("others took the CPU");
        assert!(why.contains("waited for a CPU in 50% of the window"), "{why}");
        assert!(why.contains("other programs took 50% of the machine's CPUs"), "{why}");
        // In concurrent trials the servers of the other target are not foreign programs.
        assert_eq!(measured(Some(40.0), true), None);
    }

    #[test]
    fn one_load_generator_of_several_that_starved_spoils_the_trial() {
        let judged = |change: &dyn Fn(&mut GeneratorMember)| {
            let mut summary = trial(|summary| {
                // Four loops each.
                summary.generator.loops = 8;
                let named = |name: &str| GeneratorMember {
                    name: name.to_owned(),
                    ..GeneratorMember::default()
                };
                summary.conditions.members = vec![named("g1"), named("g2")];
                change(&mut summary.conditions.members[1]);
            });
            Starving { is_last: false, same_host: false, is_late: false }
                .judge(&mut summary, false);
            let why = summary.conditions.generator.starved.map(|why| why.to_string());
            (summary.status, why.unwrap_or_default())
        };
        let waited = |s| move |it: &mut GeneratorMember| it.conditions.run_delay_s = Some(s);
        assert_eq!(judged(&|_| {}), (TrialStatus::Complete, String::new()));
        assert_eq!(judged(&waited(3.9)).0, TrialStatus::Complete);
        let stood = |it: &mut GeneratorMember| it.conditions.hiccup_max_us = Some(4e6);
        let stolen = |it: &mut GeneratorMember| {
            it.host_load = Some(HostSample { steal_share: 0.2, ..HostSample::default() });
        };
        for (found, text) in [
            (judged(&waited(4.4)), "waited for a CPU in 5.5%"),
            (judged(&stood), "stood still for 4"),
            (judged(&stolen), "took 20%"),
        ] {
            assert_eq!(found.0, TrialStatus::Starved, "{text}");
            assert!(found.1.contains("g2") && found.1.contains(text), "{}", found.1);
        }
    }

    #[test]
    fn what_it_has_measured_decides_nothing() {
        let judged = |status: TrialStatus, starving: Starving, has_failed: bool| {
            let mut summary = trial(|summary| {
                (summary.status, summary.tps) = (status.clone(), 1e6);
                summary.conditions.generator.hiccup_max_us = Some(4e6);
            });
            starving.judge(&mut summary, has_failed);
            assert!(summary.conditions.generator.starved.is_some());
            summary.status
        };
        let again = Starving { is_last: false, same_host: true, is_late: false };
        let failed = || TrialStatus::Failed("late".into());
        assert_eq!(judged(TrialStatus::Complete, again, false), TrialStatus::Starved);
        assert_eq!(judged(failed(), again, false), failed());
        let late = Starving { is_late: true, ..again };
        assert_eq!(judged(failed(), late, false), TrialStatus::Starved);
        assert_eq!(judged(failed(), late, true), failed());
        assert_eq!(judged(TrialStatus::Interrupted, late, false), TrialStatus::Interrupted);
        let last = Starving { is_last: true, ..again };
        assert_eq!(judged(TrialStatus::Complete, last, false), TrialStatus::Complete);
        let mut slept = trial(|summary| summary.conditions.generator.suspended_ms = Some(20.0));
        last.judge(&mut slept, false);
        assert!(matches!(slept.status, TrialStatus::Failed(_)), "no trial to be counted");
    }
}
