//! The whole in a paragraph and a table; targets held against each other, and gates; what a terminal shows at the end
//! of a run.

use super::cover::{why_forbidden, with_objections};
use super::*;
use dyno_judge::findings::verdict::{aa, bounds};

/// Adds the answer in a paragraph, verdicts, and the best results.
pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    let n_checks = paper.checks.len().to_string();
    let n_found = paper.checks.iter().filter(|check| !check.findings.is_empty()).count();
    let mut sentences = sentences(paper);
    sentences.push(match n_found {
        0 => say!(no_check_found_anything, made = n_checks),
        n => say!(checks_found_something, found = n.to_string(), made = n_checks),
    });
    let lead = vec![
        Span::plain(Message::sentences(&sentences)),
        Span::plain(" "),
        link(say!(all_checks), "#checks"),
    ];
    blocks.styled(Style::Lead, lead);
    verdict_blocks(paper, lang, blocks);
    // The short edition has one table of results, in section 6.
    if paper.is_short() {
        return;
    }
    blocks.table(best(paper));
    families().filter_map(|family| family.summary(paper)).for_each(|table| blocks.table(table));
}

/// The best point of each experiment and target.
pub(super) fn best(paper: &Paper) -> PaperRows<KeyRow<'_>> {
    let title = say!(best_levels_title);
    let rows = paper.result_rows();
    let metrics = format::unique(rows.iter().filter_map(|row| Some(row.point.main?.0)).collect());
    let table = PaperRows::new(title, rows)
        .text(say!(experiment), |row| {
            let to = format!("#experiment-{}", row.index + 1);
            let is_repeated = row.point.purpose == Purpose::Confirm;
            Cell::from(link(&row.experiment.title, to))
                .with_if(is_repeated, || vec![Span::plain(say!(measured_again))])
        })
        .text(say!(target_column), |row| &row.point.target);
    metrics
        .into_iter()
        .fold(table, |table, metric| {
            table.strong(metric.title(), Short, |row| {
                let (_, figure) = row.point.main.filter(|(main, _)| *main == metric)?;
                Some(spread(figure, row.point.repeats))
            })
        })
        .col(say!(workers), Whole, |row| row.point.workers)
        .strong(say!(transactions_per_s), Short, |row| spread(row.point.tps, row.point.repeats))
        .col(say!(statements_per_s), Short, |row| spread(row.point.qps, 1))
        .col(say!(mean_ms), Ms, |row| row.point.mean_us.map(|us| spread(us, 1)))
        .col(say!(p95_ms), Ms, |row| row.point.p95_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(p99_ms), Ms, |row| row.point.p99_us.map(|us| spread(us, row.point.repeats)))
        .col(say!(errors), Whole, |row| row.point.errors)
        .text(say!(notes), |row| notes(paper, &row.point.checks))
}

/// Sentences of results; the tables have the others.
const MAX_RESULTS: usize = 3;

/// The measured trials, those that did not end well, and the results.
fn sentences(paper: &Paper) -> Vec<Message> {
    if paper.trials.is_empty() {
        return vec![no_trial(paper)];
    }
    let mut sentences = vec![describe_extent(paper)];
    sentences.extend(unsuccessful_trials(paper));
    sentences.extend(paper.verdicts.sentence());
    let (results, has_more) = first_results(paper);
    sentences.extend(results);
    sentences.extend(has_more.then(|| {
        if paper.is_short() {
            say!(section_6_has_the_others)
        } else {
            say!(the_table_has_the_others)
        }
    }));
    sentences.extend(paper.experiments.iter().flat_map(node_scaling_sentences));
    sentences
}

/// The reason for an empty paper: a run may have failed before its first trial.
pub(super) fn no_trial(paper: &Paper) -> Message {
    let reason = paper.runs.iter().find_map(|run| match &run.header.status {
        RunStatus::Failed(reason) => Some(reason),
        _ => None,
    });
    match reason {
        Some(reason) => say!(no_trial_was_executed, why = reason),
        None => say!(no_trial_has_been_executed_yet),
    }
}

/// The first sentences of what was reached, and whether there are more. What forbids all of them comes last.
pub(super) fn first_results(paper: &Paper) -> (Vec<Message>, bool) {
    let results = results_with_checks(paper);
    let first = &results[..results.len().min(MAX_RESULTS)];
    let shared = first.first().map(|(_, numbers)| paper.forbidding_numbers(numbers));
    let shared = shared.unwrap_or_default();
    let is_shared = first.iter().all(|(_, numbers)| paper.forbidding_numbers(numbers) == shared);
    let sentences = first.iter().map(|(sentence, numbers)| {
        if is_shared { sentence.clone() } else { with_objections(paper, sentence.clone(), numbers) }
    });
    let mut sentences: Vec<Message> = sentences.collect();
    if is_shared && !shared.is_empty() {
        sentences.push(say!(not_usable_because, why = why_forbidden(paper, &shared)));
    }
    (sentences, results.len() > first.len())
}

/// Results that no table of best levels has: sentences on faults and of families.
pub(super) fn results_without_rows(paper: &Paper) -> Vec<Message> {
    let family_results = paper
        .experiments
        .iter()
        .filter_map(|experiment| Some(find_family(experiment)?.reached(paper, experiment)));
    let fault_results = paper.faults().into_iter().map(|fault| fault.sentence());
    fault_results.chain(family_results.flatten()).collect()
}

/// A sentence for each experiment and target, and the numbers of the checks that found something there.
fn results_with_checks(paper: &Paper) -> Vec<(Message, Vec<usize>)> {
    let family_results = paper.experiments.iter().filter_map(|experiment| {
        let sentences = find_family(experiment)?.reached(paper, experiment);
        let points = experiment.points.iter();
        let numbers: Vec<usize> = points.flat_map(|point| point.checks.iter().copied()).collect();
        Some(sentences.into_iter().map(move |sentence| (sentence, numbers.clone())))
    });
    let faults = paper.faults();
    let fault_results = faults.iter().map(|fault| (fault.sentence(), Vec::new()));
    let rows = paper.result_rows().into_iter();
    let best_results = rows.map(|row| (best_sentence(paper, row), row.point.checks.clone()));
    let results: Vec<_> =
        fault_results.chain(best_results).chain(family_results.flatten()).collect();
    let is_failed = paper.trials.iter().all(|trial| trial.status == "failed");
    if results.is_empty() && is_failed {
        vec![(say!(no_valid_result), Vec::new())]
    } else {
        results
    }
}

fn describe_extent(paper: &Paper) -> Message {
    let measured = paper
        .targets
        .iter()
        .filter(|target| paper.trials.iter().any(|trial| trial.target == target.label));
    let targets = measured.map(|target| match target.product.as_str() {
        "" => Message::from(&target.label),
        product => {
            let product = cover::shown_product(product);
            say!(target_product, target = &target.label, product)
        }
    });
    let targets: Vec<Message> = targets.collect();
    let points = if paper.experiments.iter().any(Experiment::is_pass) {
        let points = paper.experiments.iter().map(|experiment| experiment.points.len());
        say!(n_points, n = points.sum::<usize>())
    } else {
        let levels = paper.experiments.iter().enumerate().flat_map(|(place, experiment)| {
            experiment
                .points
                .iter()
                .map(move |point| (place, point.workers, point.rate_per_s.map(f64::to_bits)))
        });
        say!(n_load_levels, n = levels.collect::<BTreeSet<_>>().len())
    };
    say!(
        extent_of_measurement,
        trials = say!(n_complete_trials, n = count_trials(paper, "complete")),
        points,
        targets = Message::list(&targets)
    )
}

fn count_trials(paper: &Paper, status: &str) -> u64 {
    paper.trials.iter().filter(|trial| trial.status == status).count() as u64
}

pub(super) fn unsuccessful_trials(paper: &Paper) -> Option<Message> {
    let cut_off = count_trials(paper, "interrupted") + count_trials(paper, "running");
    let failed = count_trials(paper, "failed");
    let set_aside = paper.set_aside.len() as u64;
    let counts: Vec<Message> = [
        (cut_off, say!(trials_were_cut_off, n = cut_off)),
        (failed, say!(n_trials_failed, n = failed)),
        (set_aside, say!(n_trials_made_again, n = set_aside)),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(_, words)| words)
    .collect();
    (!counts.is_empty()).then(|| say!(beside_these_others, others = Message::list(&counts)))
}

/// The rate that a search has found, and how often it was held; `None` if its experiment searches nothing.
fn search_sentence(paper: &Paper, row: KeyRow<'_>) -> Option<Message> {
    let objective = row.experiment.objective.as_ref()?;
    let parsed: Objective = objective.parse().ok()?;
    let tests = row.point.trials.iter().filter_map(|label| {
        let test = paper.trial(label)?.summary.tested_rate(&parsed)?;
        Some(test.is_held)
    });
    let tests: Vec<bool> = tests.collect();
    let held_trials = tests.iter().filter(|is_held| **is_held).count() as u64;
    let chance = proportion_interval(held_trials, tests.len() as u64)?;
    let [low, high] = [chance.low, chance.high].map(|share| format::whole(100.0 * share));
    Some(say!(
        rate_held_with_objective,
        experiment = &row.experiment.title,
        target = &row.point.target,
        rate = format::short(row.point.rate_per_s?),
        objective,
        held = held_trials.to_string(),
        n = tests.len(),
        low,
        high
    ))
}

fn best_sentence(paper: &Paper, row: KeyRow<'_>) -> Message {
    if let Some(text) = search_sentence(paper, row) {
        return text;
    }
    let family = find_family(row.experiment);
    if let Some(text) = family.and_then(|family| family.best(paper, row.experiment, row.point)) {
        return text;
    }
    let (experiment, point) = (&row.experiment.title, row.point);
    let workers = say!(n_workers, n = point.workers);
    let (tps, qps) = (format::short(point.tps.median), format::short(point.qps.median));
    match point.p95_us {
        Some(p95) => say!(
            best_throughput_with_latency,
            experiment,
            target = &point.target,
            tps,
            qps,
            workers,
            p95 = format::ms(p95.median)
        ),
        None => say!(best_throughput, experiment, target = &point.target, tps, qps, workers),
    }
}

pub(super) fn verdict_blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    if !paper.verdicts.comparisons.is_empty() {
        if !paper.is_short() {
            blocks.figures(charts::forests(paper, lang));
        }
        blocks.table(verdicts(paper));
        blocks.fine(Message::sentences(&describe_methods(paper)));
        blocks.table(sessions(paper));
        let levels =
            paper.verdicts.comparisons.iter().filter_map(|comparison| comparison.levels.as_ref());
        levels.for_each(|levels| blocks.paragraph(levels.words.clone()));
    }
    blocks.table(gates_table(paper));
}

/// Returns whether there are comparisons of a number of pairs that was not ended by a verdict, and whether there are
/// others.
fn stop_rules(paper: &Paper) -> [bool; 2] {
    [false, true].map(|is_anytime| {
        paper
            .verdicts
            .comparisons
            .iter()
            .any(|comparison| comparison.stop.is_until_decided == is_anytime)
    })
}

/// The tests that the p of the rows comes from.
fn p_value_title(paper: &Paper) -> Message {
    match stop_rules(paper) {
        [true, true] => say!(p_wilcoxon_t_or_e_process),
        [false, true] => say!(p_e_process),
        _ => say!(p_wilcoxon_t),
    }
}

/// The judgment of figures, by the methods that were used.
fn describe_methods(paper: &Paper) -> Vec<Message> {
    let [is_fixed, is_anytime] = stop_rules(paper);
    let mut comparisons = paper.verdicts.comparisons.iter();
    let by_half_width = comparisons.find(|comparison| comparison.stop.half_width.is_some());
    let level = by_half_width.map(|comparison| match comparison.judging() {
        Judging::Level(alpha) => alpha,
        Judging::Anytime => ALPHA,
    });
    let mut sentences = vec![say!(figures_are_medians)];
    sentences.extend(is_fixed.then(|| say!(ratios_are_pseudo_medians)));
    sentences
        .extend(level.map(|alpha| say!(half_width_has_ended_pairs, level = format::plain(alpha))));
    sentences.extend(is_anytime.then(|| say!(ratios_are_by_e_process)));
    sentences.push(say!(figures_are_medians_of_the_pairs));
    sentences
}

/// A row of a comparison; one without a pair that counts has a row without figures.
type ComparedRow<'a> = (&'a PairedComparison, Option<&'a VerdictRow>);

/// All metrics of each comparison; the short edition has the one that decides.
fn verdicts(paper: &Paper) -> PaperRows<ComparedRow<'_>> {
    let max_rows = if paper.is_short() { 1 } else { usize::MAX };
    let rows = paper.verdicts.comparisons.iter().flat_map(|comparison| {
        let count = comparison.rows.len().clamp(1, max_rows);
        (0..count).map(move |place| (comparison, comparison.rows.get(place)))
    });
    PaperRows::new(say!(verdicts_title), rows)
        .text(say!(experiment_load_level), |(comparison, _)| {
            let is_blocks = comparison.order == PairOrder::Blocks;
            Cell::from(&comparison.title)
                .with(&comparison.level)
                .with_if(is_blocks, || vec![Span::plain(say!(not_interleaved))])
        })
        .merged(|(comparison, _)| comparison.number)
        .text(say!(candidate), |(comparison, _)| {
            Cell::from(&comparison.candidate)
                .with(&comparison.baseline)
                .with_if(comparison.is_aa, || vec![Span::plain(aa(comparison))])
        })
        .merged(|(comparison, _)| comparison.number)
        .below(say!(baseline_below))
        .text(say!(metric), |(_, row)| row.map(|row| &row.name))
        .class("inner")
        .col(say!(candidate), Short, |(_, row)| Some(row?.candidate.median))
        .col(say!(baseline), Short, |(_, row)| Some(row?.baseline.median))
        .strong(say!(ratio_column), Ratio, |(_, row)| row.map(ratio_cell))
        .below(say!(n_95_percent_interval))
        .text(say!(verdict), |(comparison, row)| {
            let Some(row) = row else { return Cell::from(&comparison.no_pair).class("bad") };
            Cell::from(&row.words).class(match row.call {
                Call::Slower => "bad",
                Call::Faster | Call::Equivalent => "",
                _ => "gray",
            })
        })
        .col(say!(pairs), Whole, |(_, row)| {
            let pairs = row.map_or(0, |row| row.pairs);
            let needed = row.and_then(|row| row.pairs_needed).filter(|needed| *needed > pairs);
            let needed = needed.map(|pairs| format::whole(pairs as f64));
            Cell::from(pairs).with(needed.unwrap_or_default())
        })
        .below(say!(needed))
        .col(say!(deviation_percent), Right, |(_, row)| deviations(row?))
        .below(say!(candidate_baseline))
        .col(p_value_title(paper), Right, |(_, row)| row.map(p_values))
        .below(say!(corrected_holm))
        .col(say!(noise_floor_percent), Percent, |(_, row)| row?.noise_floor)
        .text(say!(notes), |(comparison, _)| notes(paper, &comparison.checks))
        .merged(|(comparison, _)| comparison.number)
        .anchored(
            |(comparison, _)| comparison.number,
            |(comparison, _)| format!("comparison-{}", comparison.number),
        )
}

fn ratio_cell(row: &VerdictRow) -> Cell {
    let cell = Cell::from(row.ratio).bound(row.bound);
    row.interval.into_iter().fold(cell, |cell, interval| match row.bound {
        "" => cell.with(show_interval(interval, Ratio)),
        _ => cell.with(bounds(interval)),
    })
}

fn p_values(row: &VerdictRow) -> Cell {
    let values = [row.p].into_iter().chain(row.p_t);
    let cell = Cell::from(values.map(show_p_value).collect::<Vec<_>>().join(", "));
    row.p_adjusted.into_iter().fold(cell, |cell, p| cell.with(show_p_value(p)))
}

/// Deviations of candidate and baseline, percent.
fn deviations(row: &VerdictRow) -> Option<String> {
    let baseline = row.variation_baseline.map_or(format::DASH.to_owned(), format::percent);
    row.variation_candidate.map(|candidate| format!("{}, {baseline}", format::percent(candidate)))
}

fn show_p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { NumberFormat::Fixed(3).show(p) }
}

pub(super) fn show_interval(interval: Bounds, format: NumberFormat) -> String {
    format!("{}{}{}", format.show(interval.low), format::DASH, format.show(interval.high))
}

/// Sessions of each comparison that continued over several runs; differences from the last one are marked.
fn sessions(paper: &Paper) -> PaperRows<(&PairedComparison, &SessionRow, &SessionRow)> {
    let rows = paper.verdicts.comparisons.iter().flat_map(|comparison| {
        let last = comparison.sessions.last();
        comparison
            .sessions
            .iter()
            .zip(last.into_iter().cycle())
            .map(move |(session, last)| (comparison, session, last))
    });
    PaperRows::new(say!(sessions_of_comparisons), rows)
        .text(say!(experiment_load_level), |(comparison, ..)| {
            Cell::from(&comparison.title).with(&comparison.level)
        })
        .text(say!(session_began), |(_, session, _)| {
            Cell::from(&session.started_at).with(code(&session.folder))
        })
        .text(say!(load_generator), |(_, session, last)| {
            session_fact(&session.machine, &last.machine)
        })
        .text(say!(server_versions), |(_, session, last)| {
            session_fact(&session.versions, &last.versions)
        })
        .text("dyno", |(_, session, last)| session_fact(&session.dyno, &last.dyno))
        .col(say!(pairs), Whole, |(_, session, _)| session.pairs)
        .col(say!(ratio_column), Ratio, |(_, session, _)| session.ratio)
}

fn session_fact(fact: &str, last: &str) -> Cell {
    Cell::from(fact).class(if fact == last { "" } else { "bad" })
}

fn gates_table(paper: &Paper) -> PaperRows<&GateRow> {
    PaperRows::new(say!(gates), &paper.verdicts.gates)
        .text(say!(gate), |gate| code(&gate.gate))
        .text(say!(experiment_load_level), |gate| Cell::from(&gate.title).with(&gate.level))
        .text(say!(target_column), |gate| (!gate.target.is_empty()).then_some(&gate.target))
        .col(say!(found), Right, |gate| {
            let format = if gate.is_ratio { Ratio } else { Short };
            let cell = Cell::from(gate.value.map(|value| format.show(value)));
            let interval = gate.interval.filter(|_| gate.value.is_some());
            interval
                .into_iter()
                .fold(cell, |cell, interval| cell.with(show_interval(interval, format)))
        })
        .below(say!(n_95_percent_interval))
        .text(say!(result), |gate| {
            let result = match gate.result {
                GateResult::Pass => Span::plain(say!(passed)),
                GateResult::Broken => bad(say!(broken)),
                GateResult::Inconclusive => emphasis(say!(inconclusive_gate)),
            };
            Cell::from(result).with(&gate.why)
        })
}

/// Each load level, if these are all that was measured: one experiment on one target.
pub(super) fn sweep_points(paper: &Paper) -> Vec<&Point> {
    let [only] = &paper.experiments[..] else { return Vec::new() };
    let points = only.points.iter().filter(|point| point.purpose == Purpose::Measure);
    let points: Vec<&Point> = points.filter(|point| point.status != "failed").collect();
    let is_sweep = points.len() > 1 && points.iter().all(|point| point.target == points[0].target);
    if is_sweep && only.objective.is_none() && !only.is_pass() { points } else { Vec::new() }
}
