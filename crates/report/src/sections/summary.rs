//! The whole in a paragraph and a table; targets held against each other, and gates; what a terminal shows at the end
//! of a run.

use super::cover::{why_forbidden, with_objections};
use super::*;
use dyno_judge::findings::verdict::{aa, bounds};

pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    let found = paper.checks.iter().filter(|check| !check.findings.is_empty()).count();
    let made = paper.checks.len().to_string();
    let mut sentences = sentences(paper);
    sentences.push(match found {
        0 => say!(none_of_checks_found_anything_to, made),
        _ => say!(of_checks_found_something_to_remark, found = found.to_string(), made),
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
    families().filter_map(|family| family.summary(paper)).for_each(|own| blocks.table(own));
}

/// The best point of each experiment and target.
pub(super) fn best(paper: &Paper) -> PaperRows<KeyRow<'_>> {
    let title = say!(the_load_level_with_the_most);
    let rows = paper.result_rows();
    let own = format::unique(rows.iter().filter_map(|row| Some(row.point.main?.0)).collect());
    let of = |point: &Point, metric: Metric| {
        let (_, figure) = point.main.filter(|(own, _)| *own == metric)?;
        Some(spread(figure, point.repeats))
    };
    let table = PaperRows::new(title, rows)
        .text(say!(experiment), |row| {
            let to = format!("#experiment-{}", row.index + 1);
            let again = row.point.purpose == Purpose::Confirm;
            Cell::from(link(&row.experiment.title, to))
                .with_if(again, || vec![Span::plain(say!(measured_again))])
        })
        .text(say!(target_2), |row| &row.point.target);
    own.into_iter()
        .fold(table, |table, metric| {
            table.strong(metric.title(), Short, |row| of(row.point, metric))
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

/// So many sentences of what was reached are told; the others stand in the tables.
const MOST_REACHED: usize = 3;

/// The measured trials, those that did not end well, and the results.
fn sentences(paper: &Paper) -> Vec<Message> {
    if paper.trials.is_empty() {
        return vec![no_trial(paper)];
    }
    let mut sentences = vec![extent(paper)];
    sentences.extend(not_ended_well(paper));
    sentences.extend(paper.verdicts.sentence());
    let (reached, has_more) = first_reached(paper);
    sentences.extend(reached);
    sentences.extend(has_more.then(|| match paper.is_short() {
        true => say!(section_6_has_the_others),
        false => say!(the_table_has_the_others),
    }));
    sentences.extend(paper.experiments.iter().flat_map(node_scaling_sentences));
    sentences
}

/// The reason for an empty paper: a run may have failed before its first trial.
pub(super) fn no_trial(paper: &Paper) -> Message {
    let why = paper.runs.iter().find_map(|run| match &run.header.status {
        RunStatus::Failed(why) => Some(why),
        _ => None,
    });
    match why {
        Some(why) => say!(no_trial_was_executed, why),
        None => say!(no_trial_has_been_executed_yet),
    }
}

/// A sentence for each experiment and target, with what forbids its figures.
pub(super) fn reached(paper: &Paper) -> Vec<Message> {
    let own = reached_and_checked(paper).into_iter();
    own.map(|(said, numbers)| with_objections(paper, said, &numbers)).collect()
}

/// The first sentences of what was reached, and whether there are more. What forbids all of them is said once, behind.
pub(super) fn first_reached(paper: &Paper) -> (Vec<Message>, bool) {
    let all = reached_and_checked(paper);
    let forbidding = |numbers: &[usize]| paper.forbidding_numbers(numbers);
    let first = &all[..all.len().min(MOST_REACHED)];
    let shared = first.first().map(|(_, numbers)| forbidding(numbers)).unwrap_or_default();
    let is_shared = first.iter().all(|(_, numbers)| forbidding(numbers) == shared);
    let sentence = |(said, numbers): &(Message, Vec<usize>)| match is_shared {
        true => said.clone(),
        false => with_objections(paper, said.clone(), numbers),
    };
    let mut sentences: Vec<Message> = first.iter().map(sentence).collect();
    if is_shared && !shared.is_empty() {
        sentences.push(say!(not_usable_because, why = why_forbidden(paper, &shared)));
    }
    (sentences, all.len() > first.len())
}

/// A sentence for each experiment and target, and the numbers of the checks that found something there.
fn reached_and_checked(paper: &Paper) -> Vec<(Message, Vec<usize>)> {
    let of_families = paper.experiments.iter().filter_map(|own| {
        let sentences = family_of(own)?.reached(paper, own);
        let numbers: Vec<usize> =
            own.points.iter().flat_map(|point| point.checks.iter().copied()).collect();
        Some(sentences.into_iter().map(move |said| (said, numbers.clone())))
    });
    let faults = paper.faults();
    let of_faults = faults.iter().map(|fault| (fault.sentence(), Vec::new()));
    let rows = paper.result_rows().into_iter();
    let of_transactions = rows.map(|row| (best_sentence(paper, row), row.point.checks.clone()));
    let reached: Vec<_> = of_faults.chain(of_transactions).chain(of_families.flatten()).collect();
    let is_failed = paper.trials.iter().all(|trial| trial.status == "failed");
    match reached.is_empty() && is_failed {
        true => vec![(say!(no_valid_result), Vec::new())],
        false => reached,
    }
}

fn extent(paper: &Paper) -> Message {
    let describe = |target: &PaperTarget| match target.product.as_str() {
        "" => Message::from(&target.label),
        product => {
            let product = cover::shown_product(product);
            say!(target_product, target = &target.label, product)
        }
    };
    let is_measured =
        |target: &&PaperTarget| paper.trials.iter().any(|trial| trial.target == target.label);
    let targets: Vec<Message> = paper.targets.iter().filter(is_measured).map(describe).collect();
    let points = match paper.experiments.iter().any(Experiment::is_pass) {
        true => {
            let points = paper.experiments.iter().map(|experiment| experiment.points.len());
            say!(n_points, n = points.sum::<usize>())
        }
        false => {
            let levels = paper.experiments.iter().enumerate().flat_map(|(place, experiment)| {
                experiment
                    .points
                    .iter()
                    .map(move |point| (place, point.workers, point.rate_per_s.map(f64::to_bits)))
            });
            say!(n_load_levels, n = levels.collect::<BTreeSet<_>>().len())
        }
    };
    say!(
        dyno_measured_at_on,
        trials = say!(n_complete_trials, n = ended(paper, "complete")),
        points,
        targets = Message::list(&targets)
    )
}

fn ended(paper: &Paper, status: &str) -> u64 {
    paper.trials.iter().filter(|trial| trial.status == status).count() as u64
}

fn not_ended_well(paper: &Paper) -> Option<Message> {
    let cut = ended(paper, "interrupted") + ended(paper, "running");
    let failed = ended(paper, "failed");
    let again = paper.set_aside.len() as u64;
    let others: Vec<Message> = [
        (cut, say!(trials_were_cut_off, n = cut)),
        (failed, say!(n_trials_failed, n = failed)),
        (again, say!(n_trials_made_again, n = again)),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(_, words)| words)
    .collect();
    (!others.is_empty()).then(|| say!(beside_these_others, others = Message::list(&others)))
}

fn best_sentence(paper: &Paper, row: KeyRow<'_>) -> Message {
    let own = family_of(row.experiment);
    if let Some(own) = own.and_then(|family| family.best(paper, row.experiment, row.point)) {
        return own;
    }
    let (experiment, point) = (&row.experiment.title, row.point);
    let workers = say!(n_workers, n = point.workers);
    let (tps, qps) = (format::short(point.tps.median), format::short(point.qps.median));
    match point.p95_us {
        Some(p95) => say!(
            reached_transactions_s_statements_s_with,
            experiment,
            target = &point.target,
            tps,
            qps,
            workers,
            p95 = format::ms(p95.median)
        ),
        None => say!(
            reached_transactions_s_statements_s_with_2,
            experiment,
            target = &point.target,
            tps,
            qps,
            workers
        ),
    }
}

pub(super) fn verdict_blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    if !paper.verdicts.comparisons.is_empty() {
        if !paper.is_short() {
            blocks.figures(charts::forests(paper, lang));
        }
        blocks.table(verdicts(paper));
        blocks.fine(Message::sentences(&methods(paper)));
        blocks.table(sessions(paper));
        let levels = paper.verdicts.comparisons.iter().filter_map(|of| of.levels.as_ref());
        levels.for_each(|levels| blocks.paragraph(levels.words.clone()));
    }
    blocks.table(gates(paper));
}

/// Returns whether there are comparisons of a number of pairs that was not ended by a verdict, and whether there are
/// others.
fn judgings(paper: &Paper) -> [bool; 2] {
    [false, true].map(|is_anytime| {
        paper.verdicts.comparisons.iter().any(|of| of.stop.is_until_decided == is_anytime)
    })
}

/// The tests that the p of the rows comes from.
fn tests(paper: &Paper) -> Message {
    match judgings(paper) {
        [true, true] => say!(p_wilcoxon_t_or_e_process),
        [false, true] => say!(p_e_process),
        _ => say!(p_wilcoxon_t),
    }
}

/// The judgment of figures, by the methods that were used.
fn methods(paper: &Paper) -> Vec<Message> {
    let [is_fixed, is_anytime] = judgings(paper);
    let ended = paper.verdicts.comparisons.iter().find(|of| of.stop.half_width.is_some());
    let level = ended.map(|of| match of.judging() {
        Judging::Level(alpha) => alpha,
        Judging::Anytime => ALPHA,
    });
    let of_pairs = [
        is_fixed.then(|| say!(ratios_are_pseudo_medians)),
        level.map(|alpha| say!(half_width_has_ended_pairs, level = format::plain(alpha))),
        is_anytime.then(|| say!(ratios_are_by_e_process)),
    ];
    let all = [say!(figures_are_medians)].into_iter().chain(of_pairs.into_iter().flatten());
    all.chain([say!(figures_are_medians_of_the_pairs)]).collect()
}

/// A row of a comparison; one without a pair that counts has a row without figures.
type ComparedRow<'a> = (&'a PairedComparison, Option<&'a VerdictRow>);

/// All metrics of each comparison; the short edition has the one that decides.
fn verdicts(paper: &Paper) -> PaperRows<ComparedRow<'_>> {
    let most = if paper.is_short() { 1 } else { usize::MAX };
    let rows = paper.verdicts.comparisons.iter().flat_map(|of| {
        let count = of.rows.len().clamp(1, most);
        (0..count).map(move |place| (of, of.rows.get(place)))
    });
    let number = |(of, _): ComparedRow<'_>| of.number;
    PaperRows::new(say!(verdicts_candidate_by_baseline_from_pairs), rows)
        .text(say!(experiment_load_level), |(of, _)| {
            let is_blocks = of.order == PairOrder::Blocks;
            Cell::from(&of.title)
                .with(&of.level)
                .with_if(is_blocks, || vec![Span::plain(say!(not_interleaved))])
        })
        .merged(number)
        .text(say!(candidate), |(of, _)| {
            Cell::from(&of.candidate)
                .with(&of.baseline)
                .with_if(of.is_aa, || vec![Span::plain(aa(of))])
        })
        .merged(number)
        .below(say!(baseline_2))
        .text(say!(metric), |(_, row)| row.map(|row| &row.name))
        .class("inner")
        .col(say!(candidate), Short, |(_, row)| Some(row?.candidate.median))
        .col(say!(baseline), Short, |(_, row)| Some(row?.baseline.median))
        .strong(say!(ratio_2), Ratio, |(_, row)| row.map(ratio))
        .below(say!(n_95_percent_interval))
        .text(say!(verdict), |(of, row)| {
            let Some(row) = row else { return Cell::from(&of.no_pair).class("bad") };
            Cell::from(&row.words).class(match row.call {
                Call::Slower => "bad",
                Call::Faster | Call::Equivalent => "",
                _ => "gray",
            })
        })
        .col(say!(pairs), Whole, |(_, row)| {
            let pairs = row.map_or(0, |row| row.pairs);
            let needed = row.and_then(|row| row.pairs_needed).filter(|needed| *needed > pairs);
            let needed = needed.map(|more| format::whole(more as f64));
            Cell::from(pairs).with(needed.unwrap_or_default())
        })
        .below(say!(needed))
        .col(say!(deviation_percent), Right, |(_, row)| deviations(row?))
        .below(say!(candidate_baseline))
        .col(tests(paper), Right, |(_, row)| row.map(chances))
        .below(say!(corrected_holm))
        .col(say!(noise_floor_percent), Percent, |(_, row)| row?.noise_floor)
        .text(say!(notes), |(of, _)| notes(paper, &of.checks))
        .merged(number)
        .anchored(number, |(of, _)| format!("comparison-{}", of.number))
}

fn ratio(row: &VerdictRow) -> Cell {
    let cell = Cell::from(row.ratio).bound(row.bound);
    row.interval.into_iter().fold(cell, |cell, both| match row.bound {
        "" => cell.with(ends(both, Ratio)),
        _ => cell.with(bounds(both)),
    })
}

fn chances(row: &VerdictRow) -> Cell {
    let both = [row.p].into_iter().chain(row.p_t);
    let cell = Cell::from(both.map(chance).collect::<Vec<_>>().join(", "));
    row.p_adjusted.into_iter().fold(cell, |cell, p| cell.with(chance(p)))
}

/// Deviations of candidate and baseline, percent.
fn deviations(row: &VerdictRow) -> Option<String> {
    let baseline = row.variation_baseline.map_or(format::DASH.to_owned(), format::percent);
    row.variation_candidate.map(|candidate| format!("{}, {baseline}", format::percent(candidate)))
}

fn chance(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { NumberFormat::Fixed(3).show(p) }
}

pub(super) fn ends(both: Bounds, format: NumberFormat) -> String {
    format!("{}{}{}", format.show(both.low), format::DASH, format.show(both.high))
}

/// Sessions of each comparison that continued over several runs; differences from the last one stand out.
fn sessions(paper: &Paper) -> PaperRows<(&PairedComparison, &SessionRow, &SessionRow)> {
    let rows = paper.verdicts.comparisons.iter().flat_map(|of| {
        let last = of.sessions.last();
        of.sessions.iter().zip(last.into_iter().cycle()).map(move |(own, last)| (of, own, last))
    });
    let fact =
        |own: &String, last: &String| Cell::from(own).class(if own == last { "" } else { "bad" });
    PaperRows::new(say!(sessions_of_comparisons), rows)
        .text(say!(experiment_load_level), |(of, ..)| Cell::from(&of.title).with(&of.level))
        .text(say!(session_began), |(_, own, _)| {
            Cell::from(&own.started_at).with(code(&own.folder))
        })
        .text(say!(load_generator), |(_, own, last)| fact(&own.machine, &last.machine))
        .text(say!(server_versions), |(_, own, last)| fact(&own.versions, &last.versions))
        .text("dyno", |(_, own, last)| fact(&own.dyno, &last.dyno))
        .col(say!(pairs), Whole, |(_, own, _)| own.pairs)
        .col(say!(ratio_2), Ratio, |(_, own, _)| own.ratio)
}

fn gates(paper: &Paper) -> PaperRows<&GateRow> {
    let format = |gate: &GateRow| if gate.is_ratio { Ratio } else { Short };
    PaperRows::new(say!(gates), &paper.verdicts.gates)
        .text(say!(gate), |gate| code(&gate.gate))
        .text(say!(experiment_load_level), |gate| Cell::from(&gate.title).with(&gate.level))
        .text(say!(target_2), |gate| (!gate.target.is_empty()).then_some(&gate.target))
        .col(say!(found), Right, |gate| {
            let cell = Cell::from(gate.value.map(|value| format(gate).show(value)));
            let interval = gate.interval.filter(|_| gate.value.is_some());
            interval.into_iter().fold(cell, |cell, both| cell.with(ends(both, format(gate))))
        })
        .below(say!(n_95_percent_interval))
        .text(say!(result), |gate| {
            let result = match gate.result {
                GateResult::Pass => Span::plain(say!(passed)),
                GateResult::Broken => bad(say!(broken)),
                GateResult::Inconclusive => emphasis(say!(inconclusive_2)),
            };
            Cell::from(result).with(&gate.why)
        })
}

impl Paper {
    /// Its results in short, for a terminal: what was checked in a line each, in full only what is wrong.
    pub fn brief(&self, lang: Lang) -> String {
        let mut blocks = Blocks::default();
        if self.trials.is_empty() {
            blocks.paragraph(no_trial(self));
            return terminal(&blocks.0, lang);
        }
        rehearsal(self).into_iter().for_each(|banner| blocks.paragraph(banner));
        for family in families().map(Some).chain([None]) {
            blocks.table(best_of_family(self, family));
            let is_there = self.experiments.iter().any(|it| family_of(it) == family);
            let own = family.filter(|_| is_there).and_then(|family| family.summary(self));
            blocks.extend(own.map(Block::Table));
        }
        if let Some(levels) = each_level(self) {
            blocks.table(levels);
        }
        if let Some(others) = not_ended_well(self) {
            blocks.paragraph(Message::sentences(&[extent(self), others]));
        }
        let lines = [of_data(self), vec![accounting_line(self)], of_errors(self)];
        lines.into_iter().flatten().for_each(|line| blocks.paragraph(line));
        terminal(&blocks.0, lang)
    }
}

/// The best point of each experiment of a family.
fn best_of_family<'a>(
    paper: &'a Paper,
    family: Option<&'static dyn FamilyPaper>,
) -> PaperRows<KeyRow<'a>> {
    let own = |row: &KeyRow<'_>| family_of(row.experiment) == family;
    let rows: Vec<KeyRow<'_>> = paper.result_rows().into_iter().filter(own).collect();
    let metrics = format::unique(rows.iter().filter_map(|row| Some(row.point.main?.0)).collect());
    let has_targets = rows.iter().any(|row| row.point.target != rows[0].point.target);
    let title = family.map_or_else(|| say!(other_workloads), |family| family.title());
    let most_levels = rows.iter().map(|row| levels(*row)).max().unwrap_or(0);
    let rows = PaperRows::new(title, rows)
        .text(say!(experiment), |row| &row.experiment.title)
        .when(has_targets, |table| table.text(say!(target_2), |row| &row.point.target))
        .metrics(metrics, |row, metric| {
            let figure = row.point.main.filter(|(own, _)| *own == metric);
            figure.map(|(_, figure)| spread(figure, row.point.repeats))
        });
    let errors = if most_levels > 1 { say!(errors_at_this_level) } else { say!(errors) };
    let loads =
        rows.col(say!(workers), Whole, |row| row.point.load()).when(most_levels > 1, |table| {
            table.text(say!(level_shown), |row| say!(best_of_levels, n = levels(row)))
        });
    figures(loads, errors, paper, |row| row.point)
}

/// The figures of each point.
fn figures<'a, R: Copy>(
    table: PaperRows<R>,
    errors: Message,
    paper: &Paper,
    point: impl Fn(R) -> &'a Point,
) -> PaperRows<R> {
    table
        .col(say!(transactions_per_s), Short, |row| spread(point(row).tps, point(row).repeats))
        .col(say!(statements_per_s), Short, |row| spread(point(row).qps, 1))
        .col(say!(p95_ms), Ms, |row| point(row).p95_us.map(|us| spread(us, 1)))
        .col(errors, Whole, |row| point(row).errors)
        .text(say!(not_usable), |row| notes(paper, &paper.forbidding_numbers(&point(row).checks)))
}

/// Number of load levels of its experiment on a target, of which a row is the best; one for a search, which has no
/// levels.
fn levels(row: KeyRow<'_>) -> usize {
    let experiment = row.experiment;
    let is_level =
        |point: &&Point| point.target == row.point.target && point.purpose != Purpose::Confirm;
    let own = experiment.points.iter().filter(is_level);
    if experiment.objective.is_some() { 1 } else { own.count() }
}

/// Each load level, if these are all that was measured: one experiment on one target.
fn each_level(paper: &Paper) -> Option<PaperRows<&Point>> {
    let [only] = &paper.experiments[..] else { return None };
    let is_result = |point: &&Point| point.purpose == Purpose::Measure && point.status != "failed";
    let points: Vec<&Point> = only.points.iter().filter(is_result).collect();
    let first = *points.first()?;
    let is_sweep = points.len() > 1 && points.iter().all(|point| point.target == first.target);
    if !is_sweep || only.objective.is_some() || only.is_pass() {
        return None;
    }
    let title = say!(test_load_levels, test = &only.title);
    let loads = PaperRows::new(title, points).text(say!(load), Point::load_words);
    Some(figures(loads, say!(errors), paper, |point| point))
}

/// A line for each check of the data: how often it passed; in full what did not.
fn of_data(paper: &Paper) -> Vec<Vec<Span>> {
    let all = || {
        paper.trials.iter().flat_map(|trial| trial.summary.checks.iter().map(move |c| (trial, c)))
    };
    let count = |(name, verdicts): (&String, Vec<CheckVerdict>)| {
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let (good, bad) = (count(CheckVerdict::Passed), count(CheckVerdict::Failed));
        let (made, open) = ((good + bad).to_string(), count(CheckVerdict::NotMade).to_string());
        match open.as_str() {
            "0" => say!(check_passed_n_of, name, n = good, all = made),
            _ => say!(check_passed_n_of_not_made, name, n = good, all = made, open),
        }
    };
    let checks = grouped(all().map(|(_, check)| (&check.name, check.verdict))).into_iter();
    let counts: Vec<Message> = checks.map(count).collect();
    let mut lines = Vec::new();
    if !counts.is_empty() {
        lines.push(vec![Span::plain(say!(checks_of_the_data, counts = clauses(&counts)))]);
    }
    let failed = all().filter(|(_, check)| check.verdict == CheckVerdict::Failed);
    lines.extend(failed.map(|(trial, check)| {
        let place = Message::verbatim(results::place(trial));
        let failure = say!(check_failed_in, name = &check.name, place, why = &check.evidence);
        vec![Span::of(failure, Look::Bad)]
    }));
    lines
}

/// Reports whether started = committed + rolled back + failed + skipped + in flight in every trial.
fn accounting_line(paper: &Paper) -> Vec<Span> {
    let counted = |trial: &&Trial| trial.summary.counts.started > 0;
    let wrong: Vec<Message> = paper
        .trials
        .iter()
        .filter(counted)
        .filter(|trial| !trial.adds_up)
        .map(|trial| Message::verbatim(&trial.label))
        .collect();
    match (wrong.is_empty(), paper.trials.iter().filter(counted).count()) {
        (_, 0) => Vec::new(),
        (true, n) => vec![Span::plain(say!(accounting_adds_up, n))],
        (false, _) => {
            vec![Span::of(say!(accounting_is_wrong, trials = Message::list(&wrong)), Look::Bad)]
        }
    }
}

fn of_errors(paper: &Paper) -> Vec<Vec<Span>> {
    let of = |experiment: &Experiment| experiment.points.iter().map(|p| p.errors).sum::<u64>();
    let wrong = paper.experiments.iter().filter(|own| of(own) > 0);
    let line = |own: &Experiment| {
        vec![Span::of(say!(errors_in, n = of(own), experiment = &own.title), Look::Bad)]
    };
    wrong.map(line).collect()
}
