//! Variation that starts of servers and loads of data add to that of pairs, and the cheapest numbers of them.

use super::*;

/// Levels of the pairs of a comparison by the metric that decides; `None` if nothing is renewed.
pub(super) fn of(
    evidence: &Evidence,
    plan: &ComparisonPlan<'_>,
    pairs: &[(&Trial, &Trial)],
    level: &Message,
    metric: Option<Metric>,
) -> Option<RepetitionLevels> {
    let (mut each, unit) = ([plan.restart_each, plan.reload_each].to_vec(), plan.unit as usize);
    each.retain(|each| *each > 0);
    each.sort_unstable();
    each.dedup();
    let pair_s = |(a, b): &(&Trial, &Trial)| trial_s(a) + trial_s(b);
    let mut levels = vec![RepetitionLevel {
        name: say!(level_of_pairs),
        deviation: None,
        seconds: mean(&pairs.iter().map(pair_s).collect::<Vec<f64>>())?,
    }];
    let mut within: Vec<usize> = Vec::new();
    for &each in &each {
        let is = [plan.restart_each == each, plan.reload_each == each];
        let seconds = renewal_s(evidence, plan, pairs, is, each);
        let name = match is {
            [true, true] => say!(level_of_starts_and_loads),
            [true, false] => say!(level_of_starts),
            [false, _] => say!(level_of_loads),
        };
        // With one pair each, both are one level.
        if each == 1 {
            levels[0].seconds += seconds;
            levels[0].name = say!(level_of_pairs_with, level = name);
            continue;
        }
        within.push(each as usize / within.iter().product::<usize>());
        levels.push(RepetitionLevel { name, deviation: None, seconds });
    }
    let metric = metric.filter(|_| !each.is_empty())?;
    let logs = whole_units(pairs, metric, unit);
    let found = components(&logs, &within).filter(|_| !within.is_empty());
    let half_width = plan.stop.half_width.unwrap_or(plan.margin / 2.0);
    let seconds: Vec<f64> = levels.iter().map(|level| level.seconds).collect();
    for (level, deviation) in levels.iter_mut().zip(found.iter().flatten()) {
        level.deviation = Some(*deviation);
    }
    let as_made = found.as_ref().and_then(|own| needed(own, &seconds, &within, half_width));
    let best = found.as_ref().and_then(|own| cheapest(own, &seconds, half_width));
    let mut told = RepetitionLevels {
        units: logs.len() / unit,
        levels,
        half_width,
        as_made,
        cheapest: best,
        words: Message::default(),
    };
    told.words = words(plan, level, &told);
    Some(told)
}

/// Connecting, warm-up and window.
fn trial_s(trial: &Trial) -> f64 {
    trial.summary.connect_s + trial.summary.warmup_s + trial.summary.window_s
}

/// Logarithms of the ratios, in order, of units of which no pair is missing.
fn whole_units(pairs: &[(&Trial, &Trial)], metric: Metric, unit: usize) -> Vec<f64> {
    let log = |pair: &(&Trial, &Trial)| {
        let (a, b) = figures(pair, metric).next()?;
        let (log, unit) = ((b / a).ln(), unit_of(pair, unit as u32));
        log.is_finite().then_some((unit, pair.0.summary.repeat, log))
    };
    let mut logs: Vec<(u32, u32, f64)> = pairs.iter().filter_map(log).collect();
    logs.sort_by_key(|(unit, repeat, _)| (*unit, *repeat));
    let units = logs.chunk_by(|a, b| a.0 == b.0).filter(|own| own.len() == unit);
    units.flatten().map(|(_, _, log)| *log).collect()
}

/// Seconds of a restart or a reload (or both) of both targets, as measured; if load levels share one, its share.
fn renewal_s(
    evidence: &Evidence,
    plan: &ComparisonPlan<'_>,
    pairs: &[(&Trial, &Trial)],
    [restarts, reloads]: [bool; 2],
    each: u32,
) -> f64 {
    let Some((first, _)) = pairs.first() else { return 0.0 };
    let of_target = |label: &str| evidence.targets.iter().find(|target| target.label == label);
    let mut owners: Vec<(usize, &str)> = [plan.baseline, plan.candidate]
        .into_iter()
        .filter_map(|label| of_target(label).map(|target| (target.run, target.facts.owner())))
        .collect();
    // A target that is compared with itself has a start for each trial only where each pair has one.
    if each > 1 {
        owners.dedup();
    }
    let place = format!("{}/", first.summary.experiment);
    let took = |(run, owner): &(usize, &str), what: Renewed| {
        let run = evidence.runs.iter().find(|facts| facts.number == *run)?;
        let is_own = |of: &&RenewalFacts| {
            of.renewed == what && of.target == *owner && of.step.starts_with(&place)
        };
        let own = run.header.renewals.iter().filter(is_own);
        mean(&own.map(|of| of.took_s).collect::<Vec<f64>>())
    };
    let wanted = [(restarts, Renewed::Server), (reloads, Renewed::Data)];
    let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
    let all_s: f64 =
        wanted.flat_map(|(_, what)| owners.iter().filter_map(move |of| took(of, what))).sum();
    let own = evidence.experiments.iter().find(|own| own.name == first.summary.experiment);
    let points =
        own.map_or(1, |own| own.points.iter().filter(|p| p.target == plan.baseline).count());
    if each == 1 { all_s } else { all_s / points.max(1) as f64 }
}

fn words(plan: &ComparisonPlan<'_>, level: &Message, told: &RepetitionLevels) -> Message {
    let place = Message::verbatim(format!("{} / {}", plan.candidate, plan.baseline));
    let place = say!(levels_by_level, place, level);
    let listed = |of: &dyn Fn(&RepetitionLevel) -> Option<Message>| {
        Message::list(&told.levels.iter().filter_map(of).collect::<Vec<_>>())
    };
    let costs = listed(&|level| {
        let s = format::short(level.seconds);
        Some(say!(level_takes, level = &level.name, s))
    });
    let costs = say!(levels_take, levels = costs);
    let (Some(as_made), Some(best)) = (&told.as_made, &told.cheapest) else {
        let why = match told.levels.len() {
            1 => say!(levels_are_one, place),
            _ => say!(levels_are_unknown, place),
        };
        return Message::sentences(&[why, costs]);
    };
    let deviations = listed(&|level| {
        let percent = format::percent(level.deviation?);
        Some(say!(level_varies, level = &level.name, percent))
    });
    let varies = say!(
        levels_vary,
        place,
        levels = deviations,
        n = told.units.to_string(),
        outer = told.levels.last().map(|level| level.name.clone()).unwrap_or_default()
    );
    let half_width = format::percent(told.half_width);
    let needs = say!(
        numbers_and_cheapest,
        half_width,
        numbers = numbers(told, as_made),
        s = format::whole(as_made.total_s),
        cheapest = numbers(told, best),
        least_s = format::whole(best.total_s)
    );
    Message::sentences(&[varies, costs, needs])
}

/// Number of repetitions of each level, from the outermost to pairs.
fn numbers(told: &RepetitionLevels, of: &LevelNumbers) -> Message {
    let counts = of.within.iter().copied().chain([of.units]);
    let both: Vec<(&RepetitionLevel, usize)> = told.levels.iter().zip(counts).collect();
    let count = |(place, (level, n)): (usize, &(&RepetitionLevel, usize))| match place {
        0 => say!(level_count, level = &level.name, n = n.to_string()),
        _ => say!(level_count_in_each, level = &level.name, n = n.to_string()),
    };
    Message::joined(&both.iter().rev().enumerate().map(count).collect::<Vec<_>>(), ", ", "，")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::TrialSummary;

    /// A trial of so many transactions per second, in the pair with this number.
    fn at(tps: f64, repeat: u32) -> Trial {
        let mut summary =
            TrialSummary { tps, window_s: 10.0, connect_s: 1.0, ..TrialSummary::default() };
        summary.counts.committed = (tps * 10.0) as u64;
        (summary.identity.repeat, summary.identity.warmup_s) = (repeat, 4.0);
        trial(summary)
    }

    #[test]
    fn a_trial_takes_what_it_connects_warms_up_and_measures() {
        assert_eq!(trial_s(&at(1.0, 1)), 15.0);
    }

    #[test]
    fn units_of_which_a_pair_is_missing_are_left_out() {
        let trials: Vec<[Trial; 2]> = [5, 1, 2, 4, 6, 3, 7]
            .map(|repeat| [at(100.0, repeat), at(100.0 * f64::from(repeat).exp(), repeat)])
            .to_vec();
        let pairs: Vec<(&Trial, &Trial)> = trials.iter().map(|[a, b]| (a, b)).collect();
        let logs = |unit| -> Vec<f64> {
            let logs = whole_units(&pairs, Metric::Tps, unit);
            logs.iter().map(|log| (log * 1e6).round() / 1e6).collect()
        };
        assert_eq!(logs(1), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(logs(3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let fewer = [pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]];
        let logs = whole_units(&fewer, Metric::Tps, 3);
        assert_eq!(logs.len(), 3, "of the first unit the third pair is missing");
    }
}
