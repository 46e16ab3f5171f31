//! Comparisons of two targets: from pairs of trials to verdicts.

use super::*;

/// Every comparison of the paper, with verdicts that are corrected for each other.
pub(super) fn all(evidence: &Evidence, more_gates: &[String]) -> Vec<PairedComparison> {
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for plan in comparison_plans(evidence, experiment) {
            let levels = pairs_by_level(evidence, &experiment.name, &plan);
            let compared = |pairs| comparison(evidence, (experiment, index), &plan, pairs);
            found.extend(levels.iter().map(compared));
        }
    }
    set_noise_floors(evidence, &mut found);
    judge(&mut found, |index| gated(evidence, index, more_gates));
    for (index, comparison) in found.iter_mut().enumerate() {
        comparison.number = index + 1;
        comparison.sentence = words::comparison(comparison);
    }
    found
}

/// The facts of an experiment in a run: runs of the same suite may compare different targets.
fn own_facts<'a>(run: &'a RunFacts, experiment: &Experiment) -> Option<&'a ExperimentFacts> {
    run.header.experiments.iter().find(|facts| facts.name == experiment.name)
}

/// Plans the comparisons: as the suite says; else of the two targets if there are two. For two runs also of the same
/// target of both; if each has one, whatever their names are.
fn comparison_plans<'a>(
    evidence: &'a Evidence,
    experiment: &Experiment,
) -> Vec<ComparisonPlan<'a>> {
    let is_used =
        |target: &&PaperTarget| experiment.points.iter().any(|p| p.target == target.label);
    let used: Vec<&PaperTarget> = evidence.targets.iter().filter(is_used).collect();
    // Also a target of which every trial failed before it measured anything.
    let is_tried = |target: &&PaperTarget| {
        let own = |trial: &Trial| trial.summary.experiment == experiment.name;
        evidence.trials.iter().any(|trial| own(trial) && trial.target == target.label)
    };
    let tried: Vec<&PaperTarget> = evidence.targets.iter().filter(is_tried).collect();
    let compared_runs = || {
        let compared = |run| Some((run, own_facts(run, experiment)?.comparison.as_ref()?));
        evidence.runs.iter().filter_map(compared)
    };
    let first_facts = compared_runs().next().map(|(_, facts)| facts);
    let plan = |baseline: &'a PaperTarget,
                candidate: &'a PaperTarget,
                facts: Option<&ComparisonFacts>,
                is_planned: bool| {
        let runs = evidence.runs.iter();
        let runs = runs.filter(|run| [baseline.run, candidate.run].contains(&run.number));
        let own: Vec<_> = runs.filter_map(|run| own_facts(run, experiment)).collect();
        let unit = own.iter().map(|facts| facts.pairs_per_unit()).max().unwrap_or(1);
        let [restart_each, reload_each] = own.iter().fold([0; 2], |[restart, reload], facts| {
            [restart.max(facts.restart_each), reload.max(facts.reload_each)]
        });
        let is_same_target = is_same(baseline, candidate);
        let is_aa = |facts: &ComparisonFacts| facts.is_aa && facts.candidates.len() == 1;
        ComparisonPlan {
            baseline: &baseline.label,
            candidate: &candidate.label,
            is_aa: is_same_target || is_planned && facts.is_some_and(is_aa),
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
    };
    let mut found = Vec::new();
    for (run, facts) in compared_runs() {
        let find_target = |name: &String| {
            let mut own = tried.iter().copied();
            own.find(|target| target.run == run.number && target.facts.name == *name)
        };
        let Some(baseline) = find_target(&facts.baseline) else { continue };
        let candidates = facts.candidates.iter().filter_map(find_target);
        found.extend(candidates.map(|candidate| plan(baseline, candidate, Some(facts), true)));
    }
    let is_alike =
        |a: &PaperTarget, b: &PaperTarget| is_same_load(evidence, experiment, [a.run, b.run]);
    match used.as_slice() {
        [a, b] if !is_alike(a, b) => {}
        [a, b] if a.run != b.run || first_facts.is_none() => {
            found.push(plan(a, b, first_facts, false))
        }
        [_, _] => {}
        _ if evidence.runs.len() == 2 => {
            let of_run = |run: usize| used.iter().copied().filter(move |target| target.run == run);
            let again = |a: &&PaperTarget| of_run(2).find(|b| b.facts.name == a.facts.name);
            let both = of_run(1).filter_map(|a| Some((a, again(&a)?)));
            let both = both.filter(|(a, b)| is_alike(a, b));
            found.extend(both.map(|(a, b)| plan(a, b, first_facts, false)));
        }
        _ => {}
    }
    found
}

/// Returns true if an experiment was the same load in two runs: under one name a suite may have become another
/// test. What a run does not say of it is taken for the same.
fn is_same_load(evidence: &Evidence, experiment: &Experiment, runs: [usize; 2]) -> bool {
    let load = |run: usize| {
        let run = evidence.runs.iter().find(|facts| facts.number == run)?;
        let facts = own_facts(run, experiment)?;
        Some((facts.load(), &facts.options, &facts.scripts))
    };
    let [a, b] = runs.map(load);
    a.zip(b).is_none_or(|(a, b)| a == b)
}

/// Returns true for one set of servers in one run, reached in one way: whatever differs is noise.
fn is_same(a: &PaperTarget, b: &PaperTarget) -> bool {
    a.run == b.run
        && !a.facts.url.is_empty()
        && (&a.facts.url, &a.facts.nodes, a.facts.route)
            == (&b.facts.url, &b.facts.nodes, b.facts.route)
}

fn comparison(
    evidence: &Evidence,
    (experiment, experiment_index): (&Experiment, usize),
    plan: &ComparisonPlan<'_>,
    pairs: &Pairs<'_>,
) -> PairedComparison {
    let first = pairs.trials.first().map_or(pairs.any, |pair| pair.0);
    let metrics = judged_metrics(&first.summary);
    let row = |metric: &Metric| row(evidence, &pairs.trials, *metric, plan);
    let rows: Vec<VerdictRow> = metrics.iter().filter_map(row).collect();
    let (name, level) = (level_of_trial(&first.summary), level_words(first));
    let levels = levels::of(evidence, plan, &pairs.trials, &level, metrics.first().copied());
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

fn row(
    evidence: &Evidence,
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    plan: &ComparisonPlan<'_>,
) -> Option<VerdictRow> {
    let earlier = earlier(evidence, *pairs.first()?, metric);
    let ratio = ratio_of(pairs, metric, plan.stop, (plan.unit, &earlier))?;
    let whole = |units: usize| units * plan.unit as usize;
    let values: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
    let all: Vec<(f64, f64)> = earlier.iter().flatten().chain(&values).copied().collect();
    let call = ratio.verdict(metric.better(), plan.margin);
    Some(VerdictRow {
        metric,
        name: metric.title(),
        is_less_better: metric.better() == Better::Less,
        baseline: Spread::of(all.iter().map(|pair| pair.0).collect())?,
        candidate: Spread::of(all.iter().map(|pair| pair.1).collect())?,
        pairs: match earlier.is_empty() {
            true => values.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).count(),
            // Only what has a pair in a unit continues with earlier sessions.
            false => ratio.pairs,
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
        withstood: withstood(pairs, metric, plan).filter(|_| ratio.bound.is_none()),
        half_width: ratio.half_width(),
        interval_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| t.interval),
        p: ratio.p,
        p_adjusted: None,
        // A fixed number of pairs is what Student's t presumes.
        p_t: ratio.t.filter(|_| !ratio.is_anytime).map(|t| t.p),
        variation_baseline: ratio.variation_baseline,
        variation_candidate: ratio.variation_candidate,
        noise_floor: None,
        pairs_needed: match plan.stop.half_width {
            Some(wanted) if !call.is_undecided() => ratio.pairs_needed(wanted).map(whole),
            _ => ratio.pairs_to_decide(plan.margin).map(whole),
        },
        is_equivalent: ratio.is_equivalent(plan.margin),
        call,
        words: Message::default(),
    })
}

/// The interval of the ratio whatever the pairs in which dyno was stopped would have shown.
fn withstood(
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
    plan: &ComparisonPlan<'_>,
) -> Option<Bounds> {
    let Judging::Level(alpha) = judging(plan.stop, plan.unit) else { return None };
    let pair_figures =
        |(a, b): &(&Trial, &Trial)| a.summary.paired_figures(&b.summary, metric, plan.unit);
    let is_stopped = |(a, b): &&(&Trial, &Trial)| stopped(a).or_else(|| stopped(b)).is_some();
    let stopped_figures = pairs.iter().filter(is_stopped).flat_map(pair_figures);
    let stopped_units: BTreeSet<u32> = stopped_figures.map(|(unit, _)| unit).collect();
    let mut figures: Vec<_> = pairs.iter().flat_map(pair_figures).collect();
    figures.retain(|(unit, _)| !stopped_units.contains(unit));
    let whole = unit_means(&figures);
    let usable = whole.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logs: Vec<f64> = usable.map(|(a, b)| (b / a).ln()).collect();
    let both = rank::interval_whatever(&logs, stopped_units.len(), alpha)
        .filter(|_| !stopped_units.is_empty())?;
    Some(Bounds { low: both.low.exp(), high: both.high.exp() })
}

/// Sets the noise floor of each metric: of the same experiment and load level; else of another load level, or of
/// another experiment with the same test (a suite measures the noise in one of its own), which tells more than none.
fn set_noise_floors(evidence: &Evidence, found: &mut [PairedComparison]) {
    let test = |index: usize| evidence.experiments.get(index).map(|experiment| &experiment.test);
    let floors: Vec<PairedComparison> = found.iter().filter(|of| of.is_aa).cloned().collect();
    for of in found {
        let (index, level) = (of.experiment_index, &of.level);
        let rank = |aa: &PairedComparison| match (aa.experiment_index == index, aa.level == *level)
        {
            (true, is_level) => Some(if is_level { 3 } else { 2 }),
            (false, is_level) => {
                (test(aa.experiment_index) == test(index)).then_some(u8::from(is_level))
            }
        };
        for row in &mut of.rows {
            let floor = |aa: &PairedComparison| {
                let own = aa.rows.iter().find(|own| own.metric == row.metric)?;
                Some((rank(aa)?, noise_floor(own.interval?)))
            };
            let nearest = floors.iter().filter_map(floor);
            let nearest = nearest.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            row.noise_floor = nearest.map(|(_, share)| share);
        }
    }
}

/// The metrics on whose ratios an experiment has a gate.
fn gated(evidence: &Evidence, experiment_index: usize, more: &[String]) -> Vec<Metric> {
    let name = evidence.experiments.get(experiment_index).map(|experiment| &experiment.name);
    let facts = evidence.runs.iter().flat_map(|run| &run.header.experiments);
    let own = facts.filter(|facts| Some(&facts.name) == name).flat_map(|facts| &facts.gates);
    let own = own.filter(|_| more.is_empty());
    let gates = own.chain(more).filter_map(|text| text.parse::<Gate>().ok());
    gates.filter(|gate| gate.figure != GateFigure::Value).map(|gate| gate.metric).collect()
}

/// Corrects the p of each metric for the comparisons of its experiment and turns them into verdicts. A metric counts
/// only where those before it did (fixed sequence), so that several metrics find no more by chance than one; one that a
/// gate names was chosen beforehand and stands alone, so that the gate, which is corrected likewise, says the same. A
/// comparison of a system with itself stands alone.
fn judge(found: &mut [PairedComparison], gated: impl Fn(usize) -> Vec<Metric>) {
    let families = found.iter().map(|of| (of.experiment_index, of.is_aa));
    let mut families: Vec<(usize, bool)> = families.collect();
    families.sort_unstable();
    families.dedup();
    for family in families {
        let is_own = |at: &usize| (found[*at].experiment_index, found[*at].is_aa) == family;
        let own: Vec<usize> = (0..found.len()).filter(is_own).collect();
        let gated = gated(family.0);
        let p_of_rows: Vec<Vec<f64>> =
            found.iter().map(|of| corrected_for_questions(of, &gated)).collect();
        let most = own.iter().map(|at| found[*at].rows.len()).max().unwrap_or(0);
        for place in 0..most {
            // If there are too few pairs nothing is judged, so nothing is corrected for it either.
            let judged = |at: &&usize| {
                found[**at].rows.get(place).is_some_and(|row| row.call != Call::TooFewPairs)
            };
            let judged: Vec<usize> = own.iter().filter(judged).copied().collect();
            let p: Vec<f64> = judged.iter().map(|&at| p_of_rows[at][place]).collect();
            for (at, p) in judged.into_iter().zip(holm(&p)) {
                let rows = &mut found[at].rows;
                let is_alone = rows[place].metric.is_cost() || gated.contains(&rows[place].metric);
                // Costs are independent questions: other metrics do not depend on them.
                let before = rows[..place].iter().filter(|row| !row.metric.is_cost());
                let before = before.filter_map(|row| row.p_adjusted);
                let before = before.filter(|_| !is_alone).fold(p, f64::max);
                rows[place].p_adjusted = Some(before);
                rows[place].call = corrected(&rows[place]);
            }
        }
    }
    for of in found {
        for row in &mut of.rows {
            row.words = words::call(row, of.margin);
        }
    }
}

/// The p of each row. Concurrent trials ask several questions at once, each cost and latency, and one that is answered
/// decides the comparison: those after the first are corrected for each other.
fn corrected_for_questions(of: &PairedComparison, gated: &[Metric]) -> Vec<f64> {
    let mut p: Vec<f64> = of.rows.iter().map(|row| row.p).collect();
    if of.order != PairOrder::Together {
        return p;
    }
    let latency = of.rows.iter().position(|row| !row.metric.is_cost());
    let is_question = |at: &usize| {
        let row = &of.rows[*at];
        let is_judged = row.call != Call::TooFewPairs && !gated.contains(&row.metric);
        is_judged && (row.metric.is_cost() || Some(*at) == latency)
    };
    let questions: Vec<usize> = (1..p.len()).filter(is_question).collect();
    let uncorrected: Vec<f64> = questions.iter().map(|&at| p[at]).collect();
    for (at, corrected) in questions.into_iter().zip(holm(&uncorrected)) {
        p[at] = corrected;
    }
    p
}

fn corrected(row: &VerdictRow) -> Call {
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
    /// Servers are restarted and data restored before the first of so many pairs; 0 is never.
    pub(super) restart_each: u32,
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
/// is judged by the second time alone where that has pairs enough; steps of a search are judged by nothing.
/// Pairs of each level. A level at which both targets have ended trials but no pair counts is included without pairs.
pub(super) fn pairs_by_level<'a>(
    evidence: &'a Evidence,
    experiment: &str,
    plan: &ComparisonPlan<'_>,
) -> Vec<Pairs<'a>> {
    let own = |target: &str| -> Vec<&'a Trial> {
        let is_own = |trial: &&Trial| {
            trial.summary.experiment == experiment
                && trial.target == target
                && trial.status != "running"
                && trial.summary.purpose != Purpose::Search
                // An outage decides there, not the speed.
                && trial.summary.fault.is_none()
        };
        evidence.trials.iter().filter(is_own).collect()
    };
    let (baseline, candidate) = (own(plan.baseline), own(plan.candidate));
    let mut levels = format::grouped(baseline.iter().map(|trial| (trial.load_level(), *trial)));
    levels.sort_by(|a, b| level_size(a.1[0]).total_cmp(&level_size(b.1[0])));
    let pairs = |(level, own): (LoadLevel<'a>, Vec<&'a Trial>)| {
        let at_level = |trial: &&&'a Trial| trial.load_level() == level;
        let is_whole = |trial: &&&'a Trial| at_level(trial) && trial.status == "complete";
        let mut found: Vec<(&Trial, &Trial)> = Vec::new();
        for first in own.iter().filter(is_whole) {
            let is_partner = |trial: &&&'a Trial| {
                is_whole(trial)
                    && trial.summary.repeat == first.summary.repeat
                    && trial.summary.purpose == first.summary.purpose
            };
            found.extend(candidate.iter().find(is_partner).map(|second| (*first, *second)));
        }
        let is_again = |pair: &(&Trial, &Trial)| pair.0.summary.purpose == Purpose::Confirm;
        let whole = found.iter().filter(|pair| pair.0.summary.purpose == Purpose::Measure).count();
        // However they ended.
        let sides = own.iter().chain(candidate.iter().filter(at_level));
        let planned_trials = sides.filter(|trial| trial.summary.purpose == Purpose::Measure);
        let repeats: BTreeSet<u32> = planned_trials.map(|trial| trial.summary.repeat).collect();
        let lost = repeats.len().saturating_sub(whole);
        let again = found.iter().filter(|pair| is_again(pair)).count();
        // Too few of them would take the verdict away that the planned pairs carry.
        match again >= LEAST_PAIRS || again == found.len() {
            true => found.retain(is_again),
            false => found.retain(|pair| !is_again(pair)),
        }
        let order = order(&found);
        let is_of_both = found.is_empty() && candidate.iter().any(|trial| at_level(&trial));
        let sides = own.iter().chain(candidate.iter().filter(at_level)).filter(|_| is_of_both);
        let spoilt = sides.copied().collect();
        Pairs { trials: found, any: own[0], spoilt, order, lost }
    };
    let mut all: Vec<Pairs<'_>> = levels.into_iter().map(pairs).collect();
    let is_compared = plan.is_planned || all.iter().any(|pairs| !pairs.trials.is_empty());
    all.retain(|of| !of.trials.is_empty() || (is_compared && !of.spoilt.is_empty()));
    all
}

/// Interleaved when each pair has ended before the next one began.
fn order(pairs: &[(&Trial, &Trial)]) -> PairOrder {
    let is_together = |(a, _): &(&Trial, &Trial)| a.summary.is_together;
    if !pairs.is_empty() && pairs.iter().all(is_together) {
        return PairOrder::Together;
    }
    let is_one_run = pairs.iter().all(|(a, b)| a.run == b.run && a.run == pairs[0].0.run);
    let ends = |pair: &(&Trial, &Trial)| {
        let (a, b) = (pair.0.summary.trial, pair.1.summary.trial);
        (a.min(b), a.max(b))
    };
    let mut spans: Vec<(u32, u32)> = pairs.iter().map(ends).collect();
    spans.sort_unstable();
    match is_one_run && spans.windows(2).all(|two| two[0].1 < two[1].0) {
        true => PairOrder::Interleaved,
        false => PairOrder::Blocks,
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
    if let Some(level) = KnownFamily::of(trial).and_then(|family| family.level(trial)) {
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
/// In a sentence, why its pairs can't count in another run.
pub fn sessions_of(run: &RunData) -> Result<Vec<EarlierSession>, String> {
    let paper = Judgment::of(std::slice::from_ref(run), &[], &[], &Naming::default());
    let folder = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut comparisons = Vec::new();
    for of in &paper.verdicts.comparisons {
        if of.order == PairOrder::Blocks && of.pairs.len() > 1 {
            return Err(format!("{folder} did not interleave the trials of {}.", of.name));
        }
        comparisons.extend(pairs_of(&paper, of).map_err(|why| format!("{folder}: {why}"))?);
    }
    let own = EarlierSession { looks: looks(run), ..session(&run.header, &folder, comparisons) };
    Ok(run.header.continues.iter().cloned().chain([own]).collect())
}

/// Facts of the servers of a run before the first trial of each target: settings and tables, by which a later session
/// sees whether they are still the same.
fn looks(run: &RunData) -> BTreeMap<String, NodeFacts> {
    let mut looks = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| !trial.before.is_empty()) {
        let kept = |(node, facts): (&String, &ServerFacts)| {
            let (settings, schema) = (facts.settings.clone(), facts.schema.clone());
            (node.clone(), ServerFacts { settings, schema, ..ServerFacts::default() })
        };
        let own = || trial.before.iter().map(kept).collect();
        looks.entry(trial.summary.target.clone()).or_insert_with(own);
    }
    looks
}

/// `None` if no pair counts.
fn pairs_of(evidence: &Evidence, of: &PairedComparison) -> Result<Option<SessionPairs>, String> {
    let pairs: Vec<(&Trial, &Trial)> = evidence.pairs(of).collect();
    let Some((first, second)) = pairs.first() else { return Ok(None) };
    let mut metrics = BTreeMap::new();
    for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_fact()) {
        let is_bound = |trial: &Trial| bound_of(&trial.summary, metric).is_some();
        if pairs.iter().any(|(a, b)| is_bound(a) || is_bound(b)) {
            return Err(format!(
                "a figure of {} is only a bound, which no session can add to.",
                of.name
            ));
        }
        let values: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
        if !values.is_empty() {
            metrics.insert(metric.name().to_owned(), values);
        }
    }
    Ok(Some(SessionPairs {
        experiment: of.experiment.clone(),
        level: level_of_trial(&first.summary),
        baseline: first.summary.target.clone(),
        candidate: second.summary.target.clone(),
        metrics,
    }))
}

fn session(header: &RunHeader, folder: &str, comparisons: Vec<SessionPairs>) -> EarlierSession {
    let version = |target: &TargetFacts| {
        let text = format!("{} {}", target.product, target.version);
        (target.name.clone(), text.trim().to_owned())
    };
    EarlierSession {
        folder: folder.to_owned(),
        started_at: header.started_at.clone(),
        environment: header.environment.clone(),
        versions: header.targets.iter().map(version).collect(),
        comparisons,
        looks: BTreeMap::new(),
    }
}

/// The pairs of sessions that the run of these two trials continues with.
pub(super) fn earlier(
    evidence: &Evidence,
    both: (&Trial, &Trial),
    metric: Metric,
) -> Vec<Vec<(f64, f64)>> {
    let own = run_of(evidence, both).map_or(&[][..], |run| &run.header.continues);
    earlier_of(own, both, metric)
}

fn earlier_of(
    sessions: &[EarlierSession],
    (a, b): (&Trial, &Trial),
    metric: Metric,
) -> Vec<Vec<(f64, f64)>> {
    let [a, b] = [&a.summary, &b.summary];
    let key = [&a.experiment, &level_of_trial(a), &a.target, &b.target];
    earlier_pairs(sessions, key.map(String::as_str), metric.name())
}

fn run_of<'a>(evidence: &'a Evidence, (a, b): (&Trial, &Trial)) -> Option<&'a RunFacts> {
    let run = evidence.runs.iter().find(|run| run.number == a.run)?;
    (a.run == b.run).then_some(run)
}

/// All sessions of a comparison by its first metric, its own the last; `None` if it is one session alone.
fn session_rows(
    evidence: &Evidence,
    pairs: &[(&Trial, &Trial)],
    metric: Metric,
) -> Option<Vec<SessionRow>> {
    let both = *pairs.first()?;
    let run = run_of(evidence, both).filter(|run| !run.header.continues.is_empty())?;
    let names = [&both.0.summary.target, &both.1.summary.target];
    let row = |session: &EarlierSession, pairs: &[(f64, f64)]| {
        let of_targets = names.iter().filter_map(|name| session.versions.get(*name).cloned());
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let Environment { host, cpu_model, kernel, dyno_version, .. } = &session.environment;
        SessionRow {
            folder: session.folder.clone(),
            started_at: session.started_at.clone(),
            machine: format!("{host}: {cpu_model}, {kernel}"),
            versions: format::unique(of_targets.collect()).join(", "),
            dyno: dyno_version.clone(),
            pairs: pairs.len(),
            ratio: mean(&logs).map(f64::exp),
        }
    };
    let earlier = run.header.continues.iter().map(|session| {
        row(session, &earlier_of(std::slice::from_ref(session), both, metric).concat())
    });
    let own: Vec<_> = pairs.iter().flat_map(|pair| figures(pair, metric)).collect();
    Some(earlier.chain([row(&session(&run.header, &run.folder, Vec::new()), &own)]).collect())
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

    #[test]
    fn rates_order_levels_before_workers_do() {
        let size = |rate_per_s: Option<f64>, workers: u32| {
            let mut summary = TrialSummary::default();
            (summary.identity.rate_per_s, summary.identity.workers) = (rate_per_s, workers);
            level_size(&trial(summary))
        };
        assert!(size(None, 8) < size(None, 9));
        assert!(size(Some(2.0), 1) > size(Some(1.0), 1_000));
        assert!(size(Some(2.0), 8) < size(Some(2.0), 9));
        assert!(size(Some(0.5), 1) > size(None, 1_000));
    }
}
