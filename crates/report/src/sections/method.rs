//! Purpose of the measurement, its method, the limits of its claims, and the commands to repeat it.

use super::*;

/// Adds the description of the suite, and what was to be found out.
pub(super) fn purpose(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    blocks.extend(publisher::descriptions(paper, lang));
    blocks.list(Style::Plain, plain_items(&purposes(paper)));
    let reference = say!(further_limits_reference, number = "9");
    blocks.paragraph(link(reference, "#limits"));
}

/// Adds what the claims do not cover.
pub(super) fn limits(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.list(Style::Plain, plain_items(&limit_sentences(paper)));
    plan_notes(paper, blocks);
    if !paper.is_short() {
        effects_table(paper, blocks);
    }
}

/// Purpose first, then the reach of the claims.
fn purposes(paper: &Paper) -> Vec<Message> {
    let comparisons =
        paper.experiments.iter().filter_map(|experiment| experiment.comparison.as_ref());
    let questions = comparisons.map(|facts| {
        let candidates = facts.candidates.iter().map(|name| paper_label(paper, name));
        let candidates: Vec<Message> = candidates.map(Message::from).collect();
        let (candidates, baseline) =
            (Message::list(&candidates), paper_label(paper, &facts.baseline));
        if facts.is_aa {
            say!(question_of_aa)
        } else {
            say!(question_of_comparison, candidates, baseline)
        }
    });
    let mut sentences = format::unique(questions.collect());
    if sentences.is_empty() {
        let labels = paper.targets.iter().map(|target| Message::from(&target.label));
        let labels: Vec<Message> = labels.collect();
        let targets = Message::list(&labels);
        sentences.push(match labels.len() {
            0 => say!(no_target_was_named),
            1 => say!(question_of_one_target, target = targets),
            _ if paper.verdicts.comparisons.is_empty() => {
                say!(question_of_several_targets, targets)
            }
            _ => say!(question_of_compared_targets, targets),
        });
    }
    sentences.push(say!(scope_of_claims));
    sentences.push(say!(meaning_of_marks));
    sentences
}

/// The label in the paper of a target that the suite calls by this name.
fn paper_label<'a>(paper: &'a Paper, name: &'a str) -> &'a str {
    let target = paper.targets.iter().find(|target| target.facts.name == name);
    target.map_or(name, |target| target.label.as_str())
}

/// Adds the rules that all experiments share, each experiment's own, and the commands.
pub(super) fn blocks(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.paragraph(Message::sentences(&general_rules(paper)));
    for experiment in &paper.experiments {
        blocks.heading(3, "", &experiment.title, "");
        blocks.paragraph(Message::sentences(&describe_experiment(paper, experiment)));
        blocks.paragraph(Message::sentences(&describe_comparison(experiment)));
        blocks.paragraph(Message::sentences(&renewals(experiment)));
        if let Some(objective) = &experiment.objective {
            blocks.paragraph(say!(search_objective, objective));
        }
        if !experiment.gates.is_empty() {
            let gates: Vec<Message> = experiment.gates.iter().map(Message::from).collect();
            blocks.paragraph(say!(gates_gates, gates = join_clauses(&gates)));
        }
        if !experiment.options.is_empty() {
            let options = experiment.options.iter();
            let options = options.map(|(name, value)| code(format!("{name}={value}")));
            let mut line: TextLine =
                vec![Span::plain(say!(options_of_the_workload)), Span::plain(" ")];
            line.extend(separated(options, " "));
            blocks.paragraph(line);
        }
        script_blocks(experiment, blocks);
    }
    blocks.heading(3, "", say!(commands_as_they_were_given), "");
    paper.runs.iter().for_each(|run| blocks.code(&run.command));
}

/// The comparisons, and the end of their repetition.
pub(super) fn describe_comparison(experiment: &Experiment) -> Vec<Message> {
    let Some(facts) = &experiment.comparison else { return Vec::new() };
    let mut sentences = vec![
        say!(
            compared_with_baseline_candidates,
            baseline = &facts.baseline,
            candidates = join_names(&facts.candidates)
        ),
        if facts.stop.pairs_least == facts.stop.pairs_most {
            say!(exactly_pairs, n = facts.stop.pairs_most)
        } else {
            say!(
                at_least_and_at_most_pairs,
                least = facts.stop.pairs_least.to_string(),
                most = facts.stop.pairs_most.to_string()
            )
        },
    ];
    sentences.extend(facts.stop.half_width.map(|share| {
        let percent = format::percent(share);
        say!(repetition_ends_by_half_width, percent)
    }));
    sentences.extend(
        facts
            .stop
            .budget_s
            .map(|seconds| say!(repetition_ends_by_budget, seconds = format::whole(seconds))),
    );
    if !facts.data_state.is_empty() {
        let state = match facts.data_state.as_str() {
            "untouched" => say!(data_untouched),
            "reloaded" => say!(data_reloaded),
            "grows" => say!(data_grown),
            command => Message::verbatim(command),
        };
        sentences.push(say!(the_data_before_each_trial, state));
    }
    sentences
}

/// The state that is renewed before pairs, and the unit of pairs then.
pub(super) fn renewals(experiment: &Experiment) -> Vec<Message> {
    let (restart, reload) = (experiment.restart_each, experiment.reload_each);
    let mut sentences = Vec::new();
    sentences.extend(match reload {
        0 => None,
        1 => Some(say!(data_restored_each_pair)),
        n => Some(say!(data_restored_each, n = n.to_string())),
    });
    sentences.extend(match restart {
        0 => None,
        1 => Some(say!(servers_restarted_each_pair)),
        n => Some(say!(servers_restarted_each, n = n.to_string())),
    });
    let unit = restart.max(reload);
    if unit > 1 && experiment.comparison.is_some() {
        sentences.push(say!(pairs_of_a_unit_count_as_one, n = unit.to_string()));
    }
    sentences
}

fn script_blocks(experiment: &Experiment, blocks: &mut Blocks) {
    for script in &experiment.scripts {
        let title = match experiment.scripts.len() {
            1 => say!(script_name, name = &script.name),
            _ => say!(
                script_name_weight_weight,
                name = &script.name,
                weight = script.weight.to_string()
            ),
        };
        let mut inner = Blocks::default();
        if !script.sha256.is_empty() {
            inner.paragraph(say!(script_sha256, sha256 = &script.sha256));
        }
        inner.code(&script.text);
        blocks.details(title, false, inner);
    }
}

/// Arrival of transactions, length, and meaning of latency.
fn describe_experiment(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let trials = trials.as_slice();
    let Some(first) = trials.first() else {
        return vec![say!(no_trial_executed)];
    };
    if let Some(Method::Whole(sentences)) =
        find_family(experiment).and_then(|family| family.method(trials))
    {
        return sentences;
    }
    let summaries = trials.iter().map(|trial| &trial.summary);
    let warm_s = range(summaries.clone().map(|summary| summary.warmup_s).collect(), format::plain);
    let window_s =
        range(summaries.clone().map(|summary| summary.window_s).collect(), format::plain);
    let workers = range(summaries.map(|summary| f64::from(summary.workers)).collect(), whole);
    let workers = if workers == "1" { say!(n_1_worker) } else { say!(n_workers, n = workers) };
    let test = if experiment.test.is_empty() { &first.summary.test } else { &experiment.test };
    let mut sentences = vec![match experiment.duration_s {
        Some(planned_s) => say!(
            warm_up_and_planned_window,
            test,
            workers,
            warm = warm_s,
            window = window_s,
            planned = format::plain(planned_s)
        ),
        None => say!(warm_up_and_window, test, workers, warm = warm_s, window = window_s),
    }];
    sentences.push(say!(seed_seeds, seeds = seeds(trials)));
    sentences.extend(trial_rules(paper, experiment));
    sentences
}

/// When transactions begin and what latency means, in sentences that experiments of one kind share.
pub(super) fn trial_rules(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let mut sentences = vec![say!(outside_the_window)];
    let rates: Vec<f64> = trials.iter().filter_map(|trial| trial.summary.rate_per_s).collect();
    match find_family(experiment).and_then(|family| family.method(&trials)) {
        _ if trials.is_empty() => return Vec::new(),
        Some(Method::Whole(rules)) => return rules,
        Some(Method::Arrival(rules)) => sentences.extend(rules),
        None if rates.is_empty() => {
            sentences.push(say!(closed_loop_arrival));
            sentences.push(say!(service_time_latency));
        }
        None => {
            let rate = range(rates, format::plain);
            sentences.push(say!(open_loop_arrival, rate));
            sentences.push(say!(due_time_latency));
        }
    }
    sentences
}

/// Rules for all experiments: order of the trials, the unit of statistics, percentiles.
pub(super) fn general_rules(paper: &Paper) -> Vec<Message> {
    let mut sentences = Vec::new();
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        sentences.push(say!(counted_transactions));
        sentences.push(say!(statements_of_failed_attempts_are_counted));
        sentences.push(say!(a_retry_belongs_to_its_transaction));
    }
    if paper.trials.iter().any(|trial| trial.summary.data.is_some()) {
        sentences.push(say!(data_size_meaning));
        sentences.push(say!(reads_and_writes_meaning));
    }
    if paper.trials.len() > 1 {
        sentences.push(say!(unit_of_statistics));
    }
    if paper.experiments.iter().any(|experiment| experiment.comparison.is_some()) {
        sentences.push(say!(pairs_in_random_order));
        sentences.extend(estimators(paper));
    }
    sentences
}

/// The judgment of ratios, by the methods that were used.
fn estimators(paper: &Paper) -> Vec<Message> {
    let [by_ranks, anytime] = [false, true].map(|is_anytime| {
        let comparisons = paper.verdicts.comparisons.iter();
        let comparisons = comparisons.filter(|c| c.stop.is_until_decided == is_anytime);
        let pairs: Vec<f64> = comparisons.map(|c| c.least_pairs() as f64).collect();
        (!pairs.is_empty()).then(|| range(pairs, whole))
    });
    let by_ranks = by_ranks.map(|least| say!(ratios_are_by_ranks, least));
    let anytime = anytime.map(|least| say!(ratios_are_judged_anytime, least));
    let mut sentences: Vec<Message> = by_ranks.into_iter().chain(anytime).collect();
    if !sentences.is_empty() {
        sentences.push(say!(p_values_are_corrected));
    }
    sentences
}

/// One value, or the lowest and the highest.
fn range(values: Vec<f64>, show: fn(f64) -> String) -> Message {
    let (low, high) = min_and_max(values).unwrap_or_default();
    low_to_high(show(low), show(high))
}

/// The first few.
fn seeds(trials: &[&Trial]) -> Message {
    const MAX: usize = 6;
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Message> =
        seeds.iter().take(MAX).map(|seed| Message::verbatim(seed.to_string())).collect();
    Message::list(&seeds)
}

/// Limits of the claims.
fn limit_sentences(paper: &Paper) -> Vec<Message> {
    let mut limits = Vec::new();
    let tests: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.test.as_str()).collect();
    if paper.experiments.iter().any(|experiment| experiment.derived_from().is_some()) {
        limits.push(say!(this_is_not_a_tpc_result));
    }
    limits.extend(comparison_limits(paper));
    if has_findings(paper, "few-repeats") {
        limits.push(say!(too_few_repeats_for_verdict));
    }
    let is_sweep = paper.key_rows().iter().any(|row| {
        let points = row.experiment.points.iter();
        let levels = points.filter(|point| point.target == row.point.target);
        levels.count() > 1 && row.point.purpose != Purpose::Confirm
    });
    if is_sweep {
        limits.push(say!(best_level_overstates));
    }
    if has_findings(paper, "same-host") {
        limits.push(say!(shared_machine_limit));
    }
    if paper.experiments.iter().any(|experiment| !experiment.published.is_empty()) {
        limits.push(say!(published_figures_limit));
    }
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        limits.push(say!(percentiles_not_printed));
    }
    limits.push(match tests.len() {
        1 => say!(other_test_may_differ),
        _ => say!(other_tests_may_differ),
    });
    limits
}

fn has_findings(paper: &Paper, id: &str) -> bool {
    paper.checks.iter().any(|check| check.id == id && !check.findings.is_empty())
}

/// Limits of comparisons: other starts of the servers, and other machines; and the source of the noise floor.
fn comparison_limits(paper: &Paper) -> Vec<Message> {
    let compared = paper.experiments.iter().filter(|experiment| experiment.comparison.is_some());
    let (restarted, not_restarted): (Vec<&Experiment>, Vec<&Experiment>) =
        compared.partition(|experiment| experiment.restart_each > 0);
    let mut limits = Vec::new();
    if !not_restarted.is_empty() {
        limits.push(say!(starts_are_not_in_intervals));
    }
    if !restarted.is_empty() {
        limits.push(say!(starts_are_in_intervals));
    }
    for kind in [AaKind::Trials, AaKind::Starts, AaKind::Clone] {
        if paper.verdicts.comparisons.iter().any(|c| c.is_aa && c.aa == kind) {
            limits.push(match kind {
                AaKind::Trials => say!(aa_of_trials),
                AaKind::Starts => say!(aa_of_starts),
                AaKind::Clone => say!(aa_of_clones),
            });
        }
    }
    limits
}

/// Parts that the plans have left out, capped or shrunk, in dyno's own words.
fn plan_notes(paper: &Paper, blocks: &mut Blocks) {
    let plans = paper.runs.iter().filter_map(|run| run.header.plan.as_ref());
    let notes = format::unique(plans.flat_map(|plan| plan.notes.clone()).collect());
    if !notes.is_empty() {
        blocks.paragraph(say!(notes_of_the_plan));
        blocks.list(Style::Plain, notes.iter().map(|note| vec![coded(note)]).collect());
    }
}

/// Known effects that the load generators' machines have found.
fn effects_table(paper: &Paper, blocks: &mut Blocks) {
    let effects = paper.runs.iter().flat_map(|run| &run.header.effects);
    let rows: Vec<&EffectFacts> = format::unique(effects.collect());
    if !rows.is_empty() {
        let table = PaperRows::new(say!(known_effects_and_what_was_found), rows)
            .text(say!(effect_target), |effect| &effect.target)
            .text(say!(effect_share), |effect| {
                if effect.effect > 0.0 {
                    Message::from(format::percent(effect.effect))
                } else {
                    say!(no_effect)
                }
            })
            .text(say!(metric), |effect| match Metric::from_name(&effect.metric) {
                Some(metric) => metric.title(),
                None => Message::verbatim(&effect.metric),
            })
            .text(say!(effect_found), |effect| if effect.is_found { say!(yes) } else { say!(no) })
            .col(say!(pairs), Whole, |effect| effect.pairs)
            .col(say!(ratio_column), Fixed(3), |effect| effect.ratio)
            .col(say!(n_95_percent_interval), Right, |effect| {
                let (low, high) = effect.low.zip(effect.high)?;
                Some(format!("[{low:.3}, {high:.3}]"))
            })
            .text(say!(effect_tested_level), |effect| &effect.at);
        blocks.table(table);
        blocks.fine(say!(known_effects_were_injected));
    }
}

/// Adds the commands and facts with which the runs can be repeated.
pub(super) fn reproduce(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.paragraph(say!(one_command_runs_the_stored_plan));
    let commands =
        paper.runs.iter().map(|run| format!("dyno reproduce {}", shell_word(&run.folder)));
    blocks.code(commands.collect::<Vec<_>>().join("\n"));
    blocks.paragraph(say!(they_were_given_as));
    let commands = paper.runs.iter().map(|run| run.command.as_str());
    blocks.code(commands.collect::<Vec<_>>().join("\n"));
    blocks.table(
        PaperRows::new(say!(what_fixes_the_runs), &paper.runs)
            .look("text")
            .text(say!(run), |run| &run.folder)
            .text(say!(suite), |run| &run.header.suite)
            .text(say!(seed_column), |run| run.header.seed.to_string())
            .text(say!(version_of_dyno), |run| &run.header.environment.dyno_version)
            .text(say!(sha_256_of_the_binary), |run| {
                code(or_unknown(&run.header.environment.binary_sha256))
            })
            .text(say!(hash_of_the_plan), |run| {
                run.header.plan.as_ref().map(|plan| code(&plan.hash))
            }),
    );
    for run in paper.runs.iter().filter(|_| !is_short_multi_run(paper)) {
        let mut inner = Blocks::default();
        inner.code(plan_json(run));
        blocks.details(say!(the_plan_of_run, run = &run.folder), false, inner);
        blocks.bulky();
        let times = run.header.resumed_at.join(", ");
        if !times.is_empty() {
            blocks.fine(say!(the_run_was_taken_up_again, times));
        }
        blocks.fine(say!(every_interval_histogram_event_and_setting, run = &run.folder));
    }
    let variable = "`DYNO_PASSWORD_NAME`";
    blocks.fine(coded(say!(passwords_are_removed, variable)));
}

/// The plan as it is stored, without the list of its steps: they follow from the rest.
fn plan_json(run: &RunFacts) -> String {
    let header = &run.header;
    let plan = header.plan.clone().map(|plan| RunPlan { steps: Vec::new(), ..plan });
    let plan = json!({
        "plan": plan, "seed": header.seed, "targets": header.targets, "experiments": header.experiments,
    });
    serde_json::to_string_pretty(&plan).unwrap_or_default()
}
