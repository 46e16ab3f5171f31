//! Comparisons of two targets: from pairs of trials to verdicts.

use super::*;

/// Every comparison of the paper, with verdicts that are corrected for each other.
pub(super) fn compare_targets(evidence: &Evidence, more_gates: &[String]) -> Vec<PairedComparison> {
    let mut comparisons = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for plan in comparison_plans(evidence, experiment) {
            for pairs in pairs_by_level(evidence, &experiment.name, &plan) {
                comparisons.push(compare_pairs(evidence, (experiment, index), &plan, &pairs));
            }
        }
    }
    set_noise_floors(evidence, &mut comparisons);
    judge(&mut comparisons, |index| gated_metrics(evidence, index, more_gates));
    for (index, comparison) in comparisons.iter_mut().enumerate() {
        comparison.number = index + 1;
        comparison.sentence = words::comparison_sentence(comparison);
    }
    comparisons
}

/// The facts of an experiment in a run: runs of the same suite may compare different targets.
fn experiment_facts<'a>(run: &'a RunFacts, experiment: &Experiment) -> Option<&'a ExperimentFacts> {
    run.header.experiments.iter().find(|facts| facts.name == experiment.name)
}

/// Plans the comparisons: as the suite says; else of the two targets if there are two. For two runs also of the same
/// target of both; if each has one, whatever their names are.
fn comparison_plans<'a>(
    evidence: &'a Evidence,
    experiment: &Experiment,
) -> Vec<ComparisonPlan<'a>> {
    let used_targets = evidence
        .targets
        .iter()
        .filter(|target| experiment.points.iter().any(|point| point.target == target.label));
    let used_targets: Vec<&PaperTarget> = used_targets.collect();
    // Also a target of which every trial failed before it measured anything.
    let tried_targets = evidence.targets.iter().filter(|target| {
        let mut trials = evidence.trials.iter();
        trials.any(|trial| {
            trial.summary.experiment == experiment.name && trial.target == target.label
        })
    });
    let compared_runs = evidence
        .runs
        .iter()
        .filter_map(|run| Some((run, experiment_facts(run, experiment)?.comparison.as_ref()?)));
    let first_facts = compared_runs.clone().next().map(|(_, facts)| facts);
    let mut plans = Vec::new();
    for (run, facts) in compared_runs {
        let targets = tried_targets.clone().filter(|target| target.run == run.number);
        let baseline = targets.clone().find(|target| target.facts.name == facts.baseline);
        let Some(baseline) = baseline else { continue };
        let candidates = facts
            .candidates
            .iter()
            .filter_map(|name| targets.clone().find(|target| target.facts.name == *name));
        plans.extend(candidates.map(|candidate| {
            make_plan(evidence, experiment, [baseline, candidate], Some(facts), true)
        }));
    }
    let have_same_load =
        |a: &PaperTarget, b: &PaperTarget| is_same_load(evidence, experiment, [a.run, b.run]);
    match used_targets.as_slice() {
        [a, b] if !have_same_load(a, b) => {}
        [a, b] if a.run != b.run || first_facts.is_none() => {
            plans.push(make_plan(evidence, experiment, [*a, *b], first_facts, false))
        }
        [_, _] => {}
        targets if evidence.runs.len() == 2 => {
            for a in targets.iter().filter(|target| target.run == 1) {
                let mut later_targets = targets.iter().filter(|target| target.run == 2);
                let namesake = later_targets.find(|b| b.facts.name == a.facts.name);
                let namesake = namesake.filter(|b| have_same_load(a, b));
                plans.extend(
                    namesake.map(|b| make_plan(evidence, experiment, [*a, *b], first_facts, false)),
                );
            }
        }
        _ => {}
    }
    plans
}

/// Plans the comparison of two targets by these facts of the suite, which asks for it if it `is_planned`.
fn make_plan<'a>(
    evidence: &Evidence,
    experiment: &Experiment,
    [baseline, candidate]: [&'a PaperTarget; 2],
    facts: Option<&ComparisonFacts>,
    is_planned: bool,
) -> ComparisonPlan<'a> {
    let runs = evidence.runs.iter();
    let runs = runs.filter(|run| [baseline.run, candidate.run].contains(&run.number));
    let experiments: Vec<_> = runs.filter_map(|run| experiment_facts(run, experiment)).collect();
    let unit = experiments.iter().map(|facts| facts.pairs_per_unit()).max().unwrap_or(1);
    let restart_each = experiments.iter().map(|facts| facts.restart_each).max().unwrap_or(0);
    let reload_each = experiments.iter().map(|facts| facts.reload_each).max().unwrap_or(0);
    let is_same_target = is_same_target(baseline, candidate);
    let is_stated_aa = facts.is_some_and(|facts| facts.is_aa && facts.candidates.len() == 1);
    ComparisonPlan {
        baseline: &baseline.label,
        candidate: &candidate.label,
        is_aa: is_same_target || is_planned && is_stated_aa,
        aa: match restart_each {
            _ if !is_same_target => AaKind::Clone,
            1 => AaKind::Starts,
            _ => AaKind::Trials,
        },
        restart_each,
        reload_each,
        unit,
        is_planned,
        stop: facts.map_or(StopRule::default(), |facts| facts.stop),
        margin: facts.and_then(|facts| facts.equivalence).unwrap_or(DEFAULT_MARGIN),
    }
}

/// Returns true if an experiment was the same load in two runs: under one name a suite may have become another
/// test. What a run does not say of it is taken for the same.
fn is_same_load(evidence: &Evidence, experiment: &Experiment, runs: [usize; 2]) -> bool {
    let [a, b] = runs.map(|run| {
        let run = evidence.runs.iter().find(|facts| facts.number == run)?;
        let facts = experiment_facts(run, experiment)?;
        Some((facts.load(), &facts.options, &facts.scripts))
    });
    a.zip(b).is_none_or(|(a, b)| a == b)
}

/// Returns true for one set of servers in one run, reached in one way: whatever differs is noise.
fn is_same_target(a: &PaperTarget, b: &PaperTarget) -> bool {
    a.run == b.run
        && !a.facts.url.is_empty()
        && (&a.facts.url, &a.facts.nodes, a.facts.route)
            == (&b.facts.url, &b.facts.nodes, b.facts.route)
}

fn compare_pairs(
    evidence: &Evidence,
    (experiment, experiment_index): (&Experiment, usize),
    plan: &ComparisonPlan<'_>,
    pairs: &Pairs<'_>,
) -> PairedComparison {
    let first = pairs.trials.first().map_or(pairs.any, |pair| pair.0);
    let metrics = judged_metrics(&first.summary);
    let rows =
        metrics.iter().filter_map(|metric| judge_metric(evidence, &pairs.trials, *metric, plan));
    let rows: Vec<VerdictRow> = rows.collect();
    let (name, level) = (level_of_trial(&first.summary), level_words(first));
    let levels =
        levels::repetition_levels(evidence, plan, &pairs.trials, &level, metrics.first().copied());
    let sessions = rows.first().and_then(|row| session_rows(evidence, &pairs.trials, row.metric));
    PairedComparison {
        number: 0,
        name: format!("{} {name}: {} / {}", experiment.name, plan.candidate, plan.baseline),
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        experiment_index,
        level,
        baseline: plan.baseline.to_owned(),
        candidate: plan.candidate.to_owned(),
        is_aa: plan.is_aa,
        aa: plan.aa,
        unit_pairs: plan.unit,
        levels,
        order: pairs.order,
        pairs: pairs.trials.iter().map(|(a, b)| [a.label.clone(), b.label.clone()]).collect(),
        pairs_lost: pairs.lost,
        sessions: sessions.unwrap_or_default(),
        stop: plan.stop,
        margin: plan.margin,
        no_pair: if rows.is_empty() { words::no_pair(&pairs.spoilt) } else { Message::default() },
        rows,
        sentence: Message::default(),
        checks: Vec::new(),
        vetoes: Vec::new(),
    }
}

fn judge_metric(
    evidence: &Evidence,
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    plan: &ComparisonPlan<'_>,
) -> Option<VerdictRow> {
    let earlier = earlier(evidence, *pairs.first()?, metric);
    let ratio = paired_ratio(pairs, metric, plan.stop, (plan.unit, &earlier))?;
    let values: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
    let all_values = earlier.iter().flatten().chain(&values);
    let call = ratio.verdict(metric.better(), plan.margin);
    let units_needed = match plan.stop.half_width {
        Some(wanted) if !call.is_undecided() => ratio.pairs_needed(wanted),
        _ => ratio.pairs_to_decide(plan.margin),
    };
    Some(VerdictRow {
        metric,
        name: metric.title(),
        is_less_better: metric.better() == Better::Less,
        baseline: Spread::from_values(all_values.clone().map(|pair| pair.0).collect())?,
        candidate: Spread::from_values(all_values.map(|pair| pair.1).collect())?,
        pairs: if earlier.is_empty() {
            values.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).count()
        } else {
            // Only what has a pair in a unit continues with earlier sessions.
            ratio.pairs
        },
        units: ratio.pairs,
        ratio: ratio.ratio,
        bound: match ratio.bound {
            None => "",
            Some(FigureBound::AtLeast) => "≥",
            Some(FigureBound::AtMost) => "≤",
            Some(FigureBound::Unknown) => "?",
        },
        interval: ratio.interval,
        withstood: worst_case_interval(pairs, metric, plan).filter(|_| ratio.bound.is_none()),
        half_width: ratio.half_width(),
        interval_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| t.interval),
        p: ratio.p,
        p_adjusted: None,
        // A fixed number of pairs is what Student's t presumes.
        p_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| t.p),
        variation_baseline: ratio.variation_baseline,
        variation_candidate: ratio.variation_candidate,
        noise_floor: None,
        pairs_needed: units_needed.map(|units| units * plan.unit as usize),
        is_equivalent: ratio.is_equivalent(plan.margin),
        call,
        words: Message::default(),
    })
}

/// The interval of the ratio whatever the pairs in which dyno was stopped would have shown.
fn worst_case_interval(
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    plan: &ComparisonPlan<'_>,
) -> Option<Bounds> {
    let Judging::Level(alpha) = judging(plan.stop, plan.unit) else { return None };
    let pair_figures =
        |(a, b): &(&Trial, &Trial)| a.summary.paired_figures(&b.summary, metric, plan.unit);
    let stopped_pairs = pairs.iter().filter(|(a, b)| stopped(a).or_else(|| stopped(b)).is_some());
    let stopped_units: BTreeSet<u32> =
        stopped_pairs.flat_map(pair_figures).map(|(unit, _)| unit).collect();
    let mut figures: Vec<_> = pairs.iter().flat_map(pair_figures).collect();
    figures.retain(|(unit, _)| !stopped_units.contains(unit));
    let means = unit_means(&figures);
    let usable = means.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logs: Vec<f64> = usable.map(|(a, b)| (b / a).ln()).collect();
    let log_interval = rank::interval_whatever(&logs, stopped_units.len(), alpha)
        .filter(|_| !stopped_units.is_empty())?;
    Some(Bounds { low: log_interval.low.exp(), high: log_interval.high.exp() })
}

/// Sets the noise floor of each metric: of the same experiment and load level; else of another load level, or of
/// another experiment with the same test (a suite measures the noise in a separate one), which tells more than none.
fn set_noise_floors(evidence: &Evidence, comparisons: &mut [PairedComparison]) {
    let aa_comparisons: Vec<PairedComparison> =
        comparisons.iter().filter(|comparison| comparison.is_aa).cloned().collect();
    for comparison in comparisons {
        let (index, level) = (comparison.experiment_index, &comparison.level);
        for row in &mut comparison.rows {
            let floors = aa_comparisons.iter().filter_map(|aa| {
                let aa_row = aa.rows.iter().find(|aa_row| aa_row.metric == row.metric)?;
                let rank = match (aa.experiment_index == index, aa.level == *level) {
                    (true, is_level) => 2 + u8::from(is_level),
                    (false, is_level) => {
                        let [test, aa_test] = [index, aa.experiment_index].map(|index| {
                            evidence.experiments.get(index).map(|experiment| &experiment.test)
                        });
                        (aa_test == test).then_some(u8::from(is_level))?
                    }
                };
                Some((rank, noise_floor(aa_row.interval?)))
            });
            let nearest = floors.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            row.noise_floor = nearest.map(|(_, share)| share);
        }
    }
}

/// The metrics on whose ratios an experiment has a gate.
fn gated_metrics(
    evidence: &Evidence,
    experiment_index: usize,
    more_gates: &[String],
) -> Vec<Metric> {
    let name = evidence.experiments.get(experiment_index).map(|experiment| &experiment.name);
    let facts = evidence.runs.iter().flat_map(|run| &run.header.experiments);
    let gates = facts.filter(|facts| Some(&facts.name) == name).flat_map(|facts| &facts.gates);
    let gates = gates.filter(|_| more_gates.is_empty()).chain(more_gates);
    let gates = gates.filter_map(|text| text.parse::<Gate>().ok());
    gates.filter(|gate| gate.figure != GateFigure::Value).map(|gate| gate.metric).collect()
}

/// Corrects the p of each metric for the comparisons of its experiment and turns them into verdicts. A metric counts
/// only if the ones before it did (fixed sequence), so that several metrics find no more by chance than one; one that a
/// gate names was chosen beforehand and is independent, so that the gate, which is corrected likewise, says the same. A
/// comparison of a system with itself is independent too.
fn judge(comparisons: &mut [PairedComparison], gated_metrics: impl Fn(usize) -> Vec<Metric>) {
    let families =
        comparisons.iter().map(|comparison| (comparison.experiment_index, comparison.is_aa));
    let mut families: Vec<(usize, bool)> = families.collect();
    families.sort_unstable();
    families.dedup();
    for family in families {
        let members = (0..comparisons.len())
            .filter(|at| (comparisons[*at].experiment_index, comparisons[*at].is_aa) == family);
        let members: Vec<usize> = members.collect();
        let gated = gated_metrics(family.0);
        let row_ps: Vec<Vec<f64>> = comparisons
            .iter()
            .map(|comparison| corrected_for_questions(comparison, &gated))
            .collect();
        let row_count = members.iter().map(|at| comparisons[*at].rows.len()).max().unwrap_or(0);
        for place in 0..row_count {
            // If there are too few pairs nothing is judged, so nothing is corrected for it either.
            let mut judged_members = members.clone();
            judged_members.retain(|at| {
                let row = comparisons[*at].rows.get(place);
                row.is_some_and(|row| row.call != Call::TooFewPairs)
            });
            let p: Vec<f64> = judged_members.iter().map(|&at| row_ps[at][place]).collect();
            for (at, p) in judged_members.into_iter().zip(holm(&p)) {
                let rows = &mut comparisons[at].rows;
                let is_independent =
                    rows[place].metric.is_cost() || gated.contains(&rows[place].metric);
                // Costs are independent questions: other metrics do not depend on them.
                let earlier = rows[..place].iter().filter(|row| !row.metric.is_cost());
                let earlier = earlier.filter_map(|row| row.p_adjusted);
                let adjusted = earlier.filter(|_| !is_independent).fold(p, f64::max);
                rows[place].p_adjusted = Some(adjusted);
                rows[place].call = corrected_call(&rows[place]);
            }
        }
    }
    for comparison in comparisons {
        for row in &mut comparison.rows {
            row.words = words::call_words(row, comparison.margin);
        }
    }
}

/// The p of each row. Concurrent trials ask several questions at once, each cost and latency, and one that is answered
/// decides the comparison: those after the first are corrected for each other.
fn corrected_for_questions(comparison: &PairedComparison, gated: &[Metric]) -> Vec<f64> {
    let mut p: Vec<f64> = comparison.rows.iter().map(|row| row.p).collect();
    if comparison.order != PairOrder::Together {
        return p;
    }
    let latency = comparison.rows.iter().position(|row| !row.metric.is_cost());
    let questions = (1..p.len()).filter(|at| {
        let row = &comparison.rows[*at];
        let is_judged = row.call != Call::TooFewPairs && !gated.contains(&row.metric);
        is_judged && (row.metric.is_cost() || Some(*at) == latency)
    });
    let questions: Vec<usize> = questions.collect();
    let uncorrected: Vec<f64> = questions.iter().map(|&at| p[at]).collect();
    for (at, corrected) in questions.into_iter().zip(holm(&uncorrected)) {
        p[at] = corrected;
    }
    p
}

fn corrected_call(row: &VerdictRow) -> Call {
    let is_proven = row.p_adjusted.is_some_and(|p| p <= ALPHA);
    match (row.call.is_difference() && !is_proven, row.is_equivalent) {
        (false, _) => row.call,
        (true, true) => Call::Equivalent,
        (true, false) => Call::Unproven,
    }
}

/// Two targets of an experiment that are compared.
pub(super) struct ComparisonPlan<'a> {
    pub(super) baseline: &'a str,
    pub(super) candidate: &'a str,
    pub(super) is_aa: bool,
    pub(super) aa: AaKind,
    /// Number of pairs before which servers are restarted; 0 is never.
    pub(super) restart_each: u32,
    /// Number of pairs before which data are restored; 0 is never.
    pub(super) reload_each: u32,
    /// Pairs that count as one.
    pub(super) unit: u32,
    /// The suite asks for it.
    pub(super) is_planned: bool,
    pub(super) stop: StopRule,
    /// Margin of equivalence.
    pub(super) margin: f64,
}

/// The pairs of two targets at one load level.
pub(super) struct Pairs<'a> {
    pub(super) trials: Vec<(&'a Trial, &'a Trial)>,
    /// Any trial of the baseline at this level.
    pub(super) any: &'a Trial,
    /// Trials of both that were made at this level, if no pair counts.
    pub(super) spoilt: Vec<&'a Trial>,
    pub(super) order: PairOrder,
    /// Pairs of which a trial was made, but not both count.
    pub(super) lost: usize,
}

/// The place of a load level, from the smallest to the largest.
pub(super) fn level_size(trial: &Trial) -> f64 {
    match &trial.level {
        Some(level) => level.size,
        None => trial.summary.rate_per_s.unwrap_or(0.0) * 1e6 + f64::from(trial.summary.workers),
    }
}

/// Complete trials of two targets, by load level and repeat. What a sweep has chosen and run again
/// is judged by the second time alone if that has enough pairs; steps of a search are not judged.
/// Pairs of each level. A level at which both targets have ended trials but no pair counts is included without pairs.
pub(super) fn pairs_by_level<'a>(
    evidence: &'a Evidence,
    experiment: &str,
    plan: &ComparisonPlan<'_>,
) -> Vec<Pairs<'a>> {
    let [baseline, candidate] = [plan.baseline, plan.candidate].map(|target| {
        let trials = evidence.trials.iter().filter(|trial| {
            trial.summary.experiment == experiment
                && trial.target == target
                && trial.status != "running"
                && trial.summary.purpose != Purpose::Search
                // An outage decides there, not the speed.
                && trial.summary.fault.is_none()
        });
        trials.collect::<Vec<&'a Trial>>()
    });
    let mut levels = format::grouped(baseline.iter().map(|trial| (trial.load_level(), *trial)));
    levels.sort_by(|a, b| level_size(a.1[0]).total_cmp(&level_size(b.1[0])));
    let levels = levels.into_iter().map(|(level, baseline)| {
        let mut candidate = candidate.clone();
        candidate.retain(|trial| trial.load_level() == level);
        let trials: Vec<&'a Trial> = baseline.iter().chain(&candidate).copied().collect();
        let mut pairs: Vec<(&Trial, &Trial)> = Vec::new();
        for first in baseline.iter().filter(|trial| trial.status == "complete") {
            let partner = candidate.iter().find(|trial| {
                trial.status == "complete"
                    && trial.summary.repeat == first.summary.repeat
                    && trial.summary.purpose == first.summary.purpose
            });
            pairs.extend(partner.map(|second| (*first, *second)));
        }
        let planned_pairs = pairs.iter().filter(|pair| pair.0.summary.purpose == Purpose::Measure);
        // However they ended.
        let planned_trials =
            trials.iter().filter(|trial| trial.summary.purpose == Purpose::Measure);
        let repeats: BTreeSet<u32> = planned_trials.map(|trial| trial.summary.repeat).collect();
        let lost_pairs = repeats.len().saturating_sub(planned_pairs.count());
        let reruns = pairs.iter().filter(|pair| pair.0.summary.purpose == Purpose::Confirm).count();
        // Too few of them would take the verdict away that the planned pairs carry.
        let keeps_reruns = reruns >= LEAST_PAIRS || reruns == pairs.len();
        pairs.retain(|pair| (pair.0.summary.purpose == Purpose::Confirm) == keeps_reruns);
        let order = pair_order(&pairs);
        let is_spoilt = pairs.is_empty() && !candidate.is_empty();
        let spoilt = if is_spoilt { trials } else { Vec::new() };
        Pairs { trials: pairs, any: baseline[0], spoilt, order, lost: lost_pairs }
    });
    let mut levels: Vec<Pairs<'_>> = levels.collect();
    let is_compared = plan.is_planned || levels.iter().any(|level| !level.trials.is_empty());
    levels.retain(|level| !level.trials.is_empty() || (is_compared && !level.spoilt.is_empty()));
    levels
}

/// Interleaved when each pair has ended before the next one began.
fn pair_order(pairs: &[(&Trial, &Trial)]) -> PairOrder {
    if !pairs.is_empty() && pairs.iter().all(|(a, _)| a.summary.is_together) {
        return PairOrder::Together;
    }
    let is_one_run = pairs.iter().all(|(a, b)| a.run == b.run && a.run == pairs[0].0.run);
    let numbers = pairs.iter().map(|(a, b)| (a.summary.trial, b.summary.trial));
    let mut spans: Vec<(u32, u32)> = numbers.map(|(a, b)| (a.min(b), a.max(b))).collect();
    spans.sort_unstable();
    if is_one_run && spans.windows(2).all(|pair| pair[0].1 < pair[1].0) {
        PairOrder::Interleaved
    } else {
        PairOrder::Blocks
    }
}

/// A load level in words.
pub(super) fn level_words(trial: &Trial) -> Message {
    if let Some(level) = &trial.level {
        return level.words.clone();
    }
    let workers = say!(n_workers, n = trial.summary.workers);
    match trial.summary.rate_per_s {
        Some(rate) => say!(at_per_second, workers, rate = format::plain(rate)),
        None => workers,
    }
}

/// The load level of a trial by its name, as sessions keep it.
pub fn level_of_trial(trial: &TrialSummary) -> String {
    if let Some(level) = KnownFamily::from_summary(trial).and_then(|family| family.level(trial)) {
        return level.name;
    }
    let workers = trial.workers;
    match trial.rate_per_s {
        Some(rate) => format!("workers={workers} rate={}", format::plain(rate)),
        None => format!("workers={workers}"),
    }
}

/// Facts for a run that continues this one, of it and of those before it: the oldest first.
///
/// # Errors
/// Says in a sentence why its pairs can't count in another run.
pub fn continued_sessions(run: &RunData) -> Result<Vec<EarlierSession>, String> {
    let paper = Judgment::from_runs(std::slice::from_ref(run), &[], &[], &Naming::default());
    let folder = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut comparisons = Vec::new();
    for comparison in &paper.verdicts.comparisons {
        if comparison.order == PairOrder::Blocks && comparison.pairs.len() > 1 {
            return Err(format!("{folder} did not interleave the trials of {}.", comparison.name));
        }
        let pairs = session_pairs(&paper, comparison);
        comparisons.extend(pairs.map_err(|why| format!("{folder}: {why}"))?);
    }
    let session = make_session(&run.header, &folder, comparisons);
    let session = EarlierSession { looks: server_facts(run), ..session };
    Ok(run.header.continues.iter().cloned().chain([session]).collect())
}

/// Facts of the servers of a run before the first trial of each target: settings and tables, by which a later session
/// sees whether they are still the same.
fn server_facts(run: &RunData) -> BTreeMap<String, NodeFacts> {
    let mut targets = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| !trial.before.is_empty()) {
        targets.entry(trial.summary.target.clone()).or_insert_with(|| {
            let nodes = trial.before.iter().map(|(node, facts)| {
                let (settings, schema) = (facts.settings.clone(), facts.schema.clone());
                (node.clone(), ServerFacts { settings, schema, ..ServerFacts::default() })
            });
            nodes.collect()
        });
    }
    targets
}

/// `None` if no pair counts.
fn session_pairs(
    evidence: &Evidence,
    comparison: &PairedComparison,
) -> Result<Option<SessionPairs>, String> {
    let pairs: Vec<(&Trial, &Trial)> = evidence.pairs(comparison).collect();
    let Some((first, second)) = pairs.first() else { return Ok(None) };
    let mut metrics = BTreeMap::new();
    for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_fact()) {
        let mut trials = pairs.iter().flat_map(|(a, b)| [a, b]);
        if trials.any(|trial| figure_bound(&trial.summary, metric).is_some()) {
            return Err(format!(
                "a figure of {} is only a bound, which no session can add to.",
                comparison.name
            ));
        }
        let values: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
        if !values.is_empty() {
            metrics.insert(metric.name().to_owned(), values);
        }
    }
    Ok(Some(SessionPairs {
        experiment: comparison.experiment.clone(),
        level: level_of_trial(&first.summary),
        baseline: first.summary.target.clone(),
        candidate: second.summary.target.clone(),
        metrics,
    }))
}

fn make_session(
    header: &RunHeader,
    folder: &str,
    comparisons: Vec<SessionPairs>,
) -> EarlierSession {
    let versions = header.targets.iter().map(|target| {
        let text = format!("{} {}", target.product, target.version);
        (target.name.clone(), text.trim().to_owned())
    });
    EarlierSession {
        folder: folder.to_owned(),
        started_at: header.started_at.clone(),
        environment: header.environment.clone(),
        versions: versions.collect(),
        comparisons,
        looks: BTreeMap::new(),
    }
}

/// The pairs of sessions that the run of these two trials continues with.
pub(super) fn earlier(
    evidence: &Evidence,
    pair: (&Trial, &Trial),
    metric: Metric,
) -> Vec<Vec<(f64, f64)>> {
    let sessions = common_run(evidence, pair).map_or(&[][..], |run| &run.header.continues);
    earlier_figures(sessions, pair, metric)
}

fn earlier_figures(
    sessions: &[EarlierSession],
    (a, b): (&Trial, &Trial),
    metric: Metric,
) -> Vec<Vec<(f64, f64)>> {
    let [a, b] = [&a.summary, &b.summary];
    let key = [&a.experiment, &level_of_trial(a), &a.target, &b.target];
    earlier_pairs(sessions, key.map(String::as_str), metric.name())
}

fn common_run<'a>(evidence: &'a Evidence, (a, b): (&Trial, &Trial)) -> Option<&'a RunFacts> {
    let run = evidence.runs.iter().find(|run| run.number == a.run)?;
    (a.run == b.run).then_some(run)
}

/// All sessions of a comparison by its first metric, its own the last; `None` if it is one session alone.
fn session_rows(
    evidence: &Evidence,
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
) -> Option<Vec<SessionRow>> {
    let first = *pairs.first()?;
    let run = common_run(evidence, first).filter(|run| !run.header.continues.is_empty())?;
    let names = [&first.0.summary.target, &first.1.summary.target];
    let earlier = run.header.continues.iter().map(|session| {
        let figures = earlier_figures(std::slice::from_ref(session), first, metric).concat();
        session_row(session, &figures, names)
    });
    let values: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
    let last = session_row(&make_session(&run.header, &run.folder, Vec::new()), &values, names);
    Some(earlier.chain([last]).collect())
}

/// The row of a session with these pairs of figures of the targets of these names.
fn session_row(session: &EarlierSession, pairs: &[(f64, f64)], names: [&String; 2]) -> SessionRow {
    let versions = names.iter().filter_map(|name| session.versions.get(*name).cloned());
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let Environment { host, cpu_model, kernel, dyno_version, .. } = &session.environment;
    SessionRow {
        folder: session.folder.clone(),
        started_at: session.started_at.clone(),
        machine: format!("{host}: {cpu_model}, {kernel}"),
        versions: format::unique(versions.collect()).join(", "),
        dyno: dyno_version.clone(),
        pairs: pairs.len(),
        ratio: mean(&logs).map(f64::exp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::{comparison, row, trial};
    use dyno_facts::TrialSummary;

    #[test]
    fn questions_of_concurrent_trials_are_corrected_for_each_other() {
        let p = [
            (Metric::ServerCpuUs, 0.04),
            (Metric::ServerContextSwitches, 0.5),
            (Metric::MeanMs, 0.03),
            (Metric::P95Ms, 0.01),
        ];
        let rows = p.map(|(metric, p)| VerdictRow { p, ..row(metric) }).to_vec();
        let mut comparison = comparison(rows);
        assert_eq!(corrected_for_questions(&comparison, &[]), p.map(|(_, p)| p));
        comparison.order = PairOrder::Together;
        // Percentiles follow the mean in a fixed sequence.
        assert_eq!(corrected_for_questions(&comparison, &[]), [0.04, 0.5, 0.06, 0.01]);
        let gated = [Metric::ServerContextSwitches];
        assert_eq!(corrected_for_questions(&comparison, &gated), [0.04, 0.5, 0.03, 0.01]);
    }

    fn size_at(rate_per_s: Option<f64>, workers: u32) -> f64 {
        let mut summary = TrialSummary::default();
        (summary.identity.rate_per_s, summary.identity.workers) = (rate_per_s, workers);
        level_size(&trial(summary))
    }

    #[test]
    fn rates_order_levels_before_workers_do() {
        assert!(size_at(None, 8) < size_at(None, 9));
        assert!(size_at(Some(2.0), 1) > size_at(Some(1.0), 1_000));
        assert!(size_at(Some(2.0), 8) < size_at(Some(2.0), 9));
        assert!(size_at(Some(0.5), 1) > size_at(None, 1_000));
    }
}
