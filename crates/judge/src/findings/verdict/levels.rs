//! Variation that starts of servers and loads of data add to that of pairs, and the cheapest numbers of them.

use super::*;

/// Levels of the pairs of a comparison by the metric that decides; `None` if nothing is renewed.
pub(super) fn repetition_levels(
    evidence: &Evidence,
    plan: &ComparisonPlan<'_>,
    pairs: &[(&Trial, &Trial)],
    level: &Message,
    metric: Option<Metric>,
) -> Option<RepetitionLevels> {
    // Numbers of pairs after which something is renewed.
    let mut spans = vec![plan.restart_each, plan.reload_each];
    spans.retain(|span| *span > 0);
    spans.sort_unstable();
    spans.dedup();
    let unit = plan.unit as usize;
    let mut levels = vec![RepetitionLevel {
        name: say!(level_of_pairs),
        deviation: None,
        seconds: mean(&pairs.iter().map(|(a, b)| trial_s(a) + trial_s(b)).collect::<Vec<f64>>())?,
    }];
    let mut within: Vec<usize> = Vec::new();
    for &span in &spans {
        let renews = [plan.restart_each == span, plan.reload_each == span];
        let seconds = renewal_s(evidence, plan, pairs, renews, span);
        let name = match renews {
            [true, true] => say!(level_of_starts_and_loads),
            [true, false] => say!(level_of_starts),
            [false, _] => say!(level_of_loads),
        };
        // With one pair each, both are one level.
        if span == 1 {
            levels[0].seconds += seconds;
            levels[0].name = say!(level_of_pairs_renewed, level = name);
            continue;
        }
        within.push(span as usize / within.iter().product::<usize>());
        levels.push(RepetitionLevel { name, deviation: None, seconds });
    }
    let metric = metric.filter(|_| !spans.is_empty())?;
    let logs = whole_units(pairs, metric, unit);
    let deviations = components(&logs, &within).filter(|_| !within.is_empty());
    let half_width = plan.stop.half_width.unwrap_or(plan.margin / 2.0);
    let seconds: Vec<f64> = levels.iter().map(|level| level.seconds).collect();
    for (level, deviation) in levels.iter_mut().zip(deviations.iter().flatten()) {
        level.deviation = Some(*deviation);
    }
    let deviations = deviations.as_deref();
    let as_made = deviations.and_then(|found| needed(found, &seconds, &within, half_width));
    let best = deviations.and_then(|found| cheapest(found, &seconds, half_width));
    let mut repetition = RepetitionLevels {
        units: logs.len() / unit,
        levels,
        half_width,
        as_made,
        cheapest: best,
        words: Message::default(),
    };
    repetition.words = describe_levels(plan, level, &repetition);
    Some(repetition)
}

/// Connecting, warm-up and window.
fn trial_s(trial: &Trial) -> f64 {
    trial.summary.connect_s + trial.summary.warmup_s + trial.summary.window_s
}

/// Logarithms of the ratios, in order, of units of which no pair is missing.
fn whole_units(pairs: &[(&Trial, &Trial)], metric: Metric, unit: usize) -> Vec<f64> {
    let logs = pairs.iter().filter_map(|pair| {
        let (a, b) = figures(pair, metric).next()?;
        let (log, unit) = ((b / a).ln(), unit_number(pair, unit as u32));
        log.is_finite().then_some((unit, pair.0.summary.repeat, log))
    });
    let mut logs: Vec<(u32, u32, f64)> = logs.collect();
    logs.sort_by_key(|(unit, repeat, _)| (*unit, *repeat));
    let units = logs.chunk_by(|a, b| a.0 == b.0).filter(|pairs| pairs.len() == unit);
    units.flatten().map(|(_, _, log)| *log).collect()
}

/// Seconds of a restart or a reload (or both) of both targets, as measured; if load levels share one, its share.
fn renewal_s(
    evidence: &Evidence,
    plan: &ComparisonPlan<'_>,
    pairs: &[(&Trial, &Trial)],
    [restarts, reloads]: [bool; 2],
    span: u32,
) -> f64 {
    let Some((first, _)) = pairs.first() else { return 0.0 };
    let mut owners: Vec<(usize, &str)> = [plan.baseline, plan.candidate]
        .into_iter()
        .filter_map(|label| evidence.targets.iter().find(|target| target.label == label))
        .map(|target| (target.run, target.facts.owner()))
        .collect();
    // A target that is compared with itself has a start for each trial only if each pair has one.
    if span > 1 {
        owners.dedup();
    }
    let experiment = &first.summary.experiment;
    let kinds = [(restarts, Renewed::Server), (reloads, Renewed::Data)];
    let kinds = kinds.into_iter().filter(|(is_renewed, _)| *is_renewed);
    let renewals_s = kinds.flat_map(|(_, kind)| {
        let owners = owners.iter();
        owners.filter_map(move |owner| mean_renewal_s(evidence, experiment, *owner, kind))
    });
    let total_s: f64 = renewals_s.sum();
    let mut experiments = evidence.experiments.iter();
    let experiment = experiments.find(|facts| facts.name == *experiment);
    let points = experiment.map_or(1, |experiment| {
        experiment.points.iter().filter(|point| point.target == plan.baseline).count()
    });
    if span == 1 { total_s } else { total_s / points.max(1) as f64 }
}

/// Mean seconds of the renewals of a kind that an experiment made for the owner of a target in a run.
fn mean_renewal_s(
    evidence: &Evidence,
    experiment: &str,
    (run, owner): (usize, &str),
    renewed: Renewed,
) -> Option<f64> {
    let run = evidence.runs.iter().find(|facts| facts.number == run)?;
    let place = format!("{experiment}/");
    let renewals = run.header.renewals.iter().filter(|renewal| {
        renewal.renewed == renewed && renewal.target == owner && renewal.step.starts_with(&place)
    });
    mean(&renewals.map(|renewal| renewal.took_s).collect::<Vec<f64>>())
}

fn describe_levels(
    plan: &ComparisonPlan<'_>,
    level: &Message,
    repetition: &RepetitionLevels,
) -> Message {
    let place = Message::verbatim(format!("{} / {}", plan.candidate, plan.baseline));
    let place = say!(levels_by_level, place, level);
    let costs = repetition.levels.iter().map(|level| {
        let s = format::short(level.seconds);
        say!(level_takes, level = &level.name, s)
    });
    let costs = say!(levels_take, levels = Message::list(&costs.collect::<Vec<_>>()));
    let (Some(as_made), Some(best)) = (&repetition.as_made, &repetition.cheapest) else {
        let reason = match repetition.levels.len() {
            1 => say!(levels_are_one, place),
            _ => say!(levels_are_unknown, place),
        };
        return Message::sentences(&[reason, costs]);
    };
    let deviations = repetition.levels.iter().filter_map(|level| {
        let percent = format::percent(level.deviation?);
        Some(say!(level_varies, level = &level.name, percent))
    });
    let varies = say!(
        levels_vary,
        place,
        levels = Message::list(&deviations.collect::<Vec<_>>()),
        n = repetition.units.to_string(),
        outer = repetition.levels.last().map(|level| level.name.clone()).unwrap_or_default()
    );
    let half_width = format::percent(repetition.half_width);
    let needs = say!(
        numbers_and_cheapest,
        half_width,
        numbers = describe_numbers(repetition, as_made),
        s = format::whole(as_made.total_s),
        cheapest = describe_numbers(repetition, best),
        least_s = format::whole(best.total_s)
    );
    Message::sentences(&[varies, costs, needs])
}

/// Number of repetitions of each level, from the outermost to pairs.
fn describe_numbers(repetition: &RepetitionLevels, numbers: &LevelNumbers) -> Message {
    let counts = numbers.within.iter().copied().chain([numbers.units]);
    let counts: Vec<(&RepetitionLevel, usize)> = repetition.levels.iter().zip(counts).collect();
    let texts = counts.iter().rev().enumerate().map(|(place, (level, n))| match place {
        0 => say!(level_count, level = &level.name, n = n.to_string()),
        _ => say!(level_count_in_each, level = &level.name, n = n.to_string()),
    });
    Message::joined(&texts.collect::<Vec<_>>(), ", ", "，")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::TrialSummary;

    /// A trial of `tps` transactions per second, in the pair with this number.
    fn make_trial(tps: f64, repeat: u32) -> Trial {
        let mut summary =
            TrialSummary { tps, window_s: 10.0, connect_s: 1.0, ..TrialSummary::default() };
        summary.counts.committed = (tps * 10.0) as u64;
        (summary.identity.repeat, summary.identity.warmup_s) = (repeat, 4.0);
        trial(summary)
    }

    #[test]
    fn a_trial_takes_what_it_connects_warms_up_and_measures() {
        assert_eq!(trial_s(&make_trial(1.0, 1)), 15.0);
    }

    #[test]
    fn units_of_which_a_pair_is_missing_are_left_out() {
        let trials: Vec<[Trial; 2]> = [5, 1, 2, 4, 6, 3, 7]
            .map(|repeat| {
                [make_trial(100.0, repeat), make_trial(100.0 * f64::from(repeat).exp(), repeat)]
            })
            .to_vec();
        let pairs: Vec<(&Trial, &Trial)> = trials.iter().map(|[a, b]| (a, b)).collect();
        for (unit, count) in [(1, 7), (3, 6)] {
            let logs = whole_units(&pairs, Metric::Tps, unit);
            let logs: Vec<f64> = logs.iter().map(|log| (log * 1e6).round() / 1e6).collect();
            assert_eq!(logs, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][..count]);
        }
        let fewer = [pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]];
        let logs = whole_units(&fewer, Metric::Tps, 3);
        assert_eq!(logs.len(), 3, "of the first unit the third pair is missing");
    }
}
