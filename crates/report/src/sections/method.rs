//! Purpose of the measurement, its method, the limits of its claims, and the commands to repeat it.

use super::*;

pub(super) fn purpose(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    blocks.extend(publisher::descriptions(paper, lang));
    blocks.list(Style::Plain, plain_items(&purposes(paper)));
    let more = say!(what_else_limits_the_claims_stands, number = "9");
    blocks.paragraph(link(more, "#limits"));
}

pub(super) fn limits(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.list(Style::Plain, plain_items(&limit_sentences(paper)));
    of_plans(paper, blocks);
    if !paper.is_short() {
        known_effects(paper, blocks);
    }
}

/// Purpose first, then the reach of the claims.
fn purposes(paper: &Paper) -> Vec<Message> {
    let list =
        |labels: &[String]| Message::list(&labels.iter().map(Message::from).collect::<Vec<_>>());
    // What the suite calls a target is not always what the paper calls it.
    let label = |name: &String| {
        let own = paper.targets.iter().find(|target| target.facts.name == *name);
        own.map_or_else(|| name.clone(), |target| target.label.clone())
    };
    let sentence = |facts: &ComparisonFacts| {
        let candidates: Vec<String> = facts.candidates.iter().map(label).collect();
        let (candidates, baseline) = (list(&candidates), label(&facts.baseline));
        match facts.is_aa {
            true => say!(the_same_system_was_measured_as),
            false => say!(the_question_is_whether_is_faster, candidates, baseline),
        }
    };
    let compared = paper.experiments.iter().filter_map(|own| own.comparison.as_ref());
    let mut sentences = format::unique(compared.map(sentence).collect());
    if sentences.is_empty() {
        let labels: Vec<String> = paper.targets.iter().map(|own| own.label.clone()).collect();
        sentences.push(match labels.len() {
            0 => say!(no_target_was_named),
            1 => say!(the_question_is_what_does_under, target = list(&labels)),
            _ if paper.verdicts.comparisons.is_empty() => {
                say!(the_question_is_what_do_under, targets = list(&labels))
            }
            _ => say!(the_question_is_what_do_under_these, targets = list(&labels)),
        });
    }
    sentences.push(say!(a_claim_holds_for_the_versions));
    sentences.push(say!(what_a_check_marks_with_e));
    sentences
}

pub(super) fn blocks(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.paragraph(Message::sentences(&of_all(paper)));
    for experiment in &paper.experiments {
        blocks.heading(3, "", &experiment.title, "");
        blocks.paragraph(Message::sentences(&of_experiment(paper, experiment)));
        blocks.paragraph(Message::sentences(&comparison(experiment)));
        blocks.paragraph(Message::sentences(&renewals(experiment)));
        if let Some(objective) = &experiment.objective {
            blocks.paragraph(say!(objective_of_the_search_for_the, objective));
        }
        if !experiment.gates.is_empty() {
            let gates: Vec<Message> = experiment.gates.iter().map(Message::from).collect();
            blocks.paragraph(say!(gates_gates, gates = clauses(&gates)));
        }
        if !experiment.options.is_empty() {
            let options = experiment.options.iter();
            let options = options.map(|(name, value)| code(format!("{name}={value}")));
            let mut line: TextLine =
                vec![Span::plain(say!(options_of_the_workload)), Span::plain(" ")];
            line.extend(separated(options, " "));
            blocks.paragraph(line);
        }
        scripts(experiment, blocks);
    }
    blocks.heading(3, "", say!(commands_as_they_were_given), "");
    paper.runs.iter().for_each(|run| blocks.code(&run.command));
}

/// The comparisons, and the end of their repetition.
pub(super) fn comparison(experiment: &Experiment) -> Vec<Message> {
    let Some(facts) = &experiment.comparison else { return Vec::new() };
    let mut sentences = vec![
        say!(
            compared_with_baseline_candidates,
            baseline = &facts.baseline,
            candidates = names(&facts.candidates)
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
        say!(repetition_ends_when_the_95_percent, percent)
    }));
    sentences.extend(
        facts
            .stop
            .budget_s
            .map(|seconds| say!(it_also_ends_after_s, seconds = format::whole(seconds))),
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

fn scripts(experiment: &Experiment, blocks: &mut Blocks) {
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
fn of_experiment(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let trials = trials.as_slice();
    let Some(first) = trials.first() else {
        return vec![say!(no_trial_of_this_experiment_has)];
    };
    if let Some(Method::Whole(own)) = family_of(experiment).and_then(|family| family.method(trials))
    {
        return own;
    }
    let all = |value: fn(&Trial) -> f64| trials.iter().map(|trial| value(trial)).collect();
    let warm_s = range(all(|trial| trial.summary.warmup_s), format::plain);
    let window_s = range(all(|trial| trial.summary.window_s), format::plain);
    let workers = range(all(|trial| f64::from(trial.summary.workers)), whole);
    let workers = match workers == "1" {
        true => say!(n_1_worker),
        false => say!(n_workers, n = workers),
    };
    let test = if experiment.test.is_empty() { &first.summary.test } else { &experiment.test };
    let mut sentences = vec![match experiment.duration_s {
        Some(planned_s) => say!(
            with_s_of_warm_up_then,
            test,
            workers,
            warm = warm_s,
            window = window_s,
            planned = format::plain(planned_s)
        ),
        None => say!(with_s_of_warm_up_then_a, test, workers, warm = warm_s, window = window_s),
    }];
    sentences.push(say!(seed_seeds, seeds = seeds(trials)));
    sentences.extend(of_every_trial(paper, experiment));
    sentences
}

/// When transactions begin and what latency means, in sentences that experiments of one kind share.
pub(super) fn of_every_trial(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let trials: Vec<&Trial> = paper.trials_in(experiment).collect();
    let mut sentences = vec![say!(connecting_preparing_and_warm_up_lie)];
    let rates: Vec<f64> = trials.iter().filter_map(|trial| trial.summary.rate_per_s).collect();
    match family_of(experiment).and_then(|family| family.method(&trials)) {
        _ if trials.is_empty() => return Vec::new(),
        Some(Method::Whole(own)) => return own,
        Some(Method::Arrival(own)) => sentences.extend(own),
        None if rates.is_empty() => {
            sentences.push(say!(closed_loop_a_worker_begins_its));
            sentences.push(say!(latency_is_service_time_from_the));
        }
        None => {
            let rate = range(rates, format::plain);
            sentences.push(say!(open_loop_transactions_fall_due_at, rate));
            sentences.push(say!(latency_is_counted_from_the_due));
        }
    }
    sentences
}

/// Rules for all experiments: order of the trials, the unit of statistics, percentiles.
pub(super) fn of_all(paper: &Paper) -> Vec<Message> {
    let mut sentences = Vec::new();
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        sentences.push(say!(counted_are_transactions_whose_commit_was));
        sentences.push(say!(statements_of_failed_attempts_are_counted));
        sentences.push(say!(a_retry_belongs_to_its_transaction));
    }
    if paper.trials.iter().any(|trial| trial.summary.data.is_some()) {
        sentences.push(say!(the_size_of_the_data_is));
        sentences.push(say!(reads_and_writes_are_select_insert));
    }
    if paper.trials.len() > 1 {
        sentences.push(say!(the_unit_of_all_statistics_is));
    }
    if paper.experiments.iter().any(|experiment| experiment.comparison.is_some()) {
        sentences.push(say!(trials_of_what_is_compared_run));
        sentences.extend(estimators(paper));
    }
    sentences
}

/// The judgment of ratios, by the methods that were used.
fn estimators(paper: &Paper) -> Vec<Message> {
    let least_pairs = |is_anytime: bool| {
        let own = paper.verdicts.comparisons.iter();
        let own = own.filter(|of| of.stop.is_until_decided == is_anytime);
        let least: Vec<f64> = own.map(|of| of.least_pairs() as f64).collect();
        (!least.is_empty()).then(|| range(least, whole))
    };
    let by_ranks = least_pairs(false).map(|least| say!(ratios_are_by_ranks, least));
    let anytime = least_pairs(true).map(|least| say!(ratios_are_judged_anytime, least));
    let mut sentences: Vec<Message> = by_ranks.into_iter().chain(anytime).collect();
    if !sentences.is_empty() {
        sentences.push(say!(p_values_are_corrected));
    }
    sentences
}

/// One value, or the lowest and the highest.
fn range(values: Vec<f64>, text: fn(f64) -> String) -> Message {
    let (low, high) = extremes(values).unwrap_or_default();
    low_to_high(text(low), text(high))
}

/// The first few.
fn seeds(trials: &[&Trial]) -> Message {
    const MOST: usize = 6;
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<Message> =
        seeds.iter().take(MOST).map(|seed| Message::verbatim(seed.to_string())).collect();
    Message::list(&seeds)
}

/// Limits of the claims.
fn limit_sentences(paper: &Paper) -> Vec<Message> {
    let mut limits = Vec::new();
    let has_found =
        |id: &str| paper.checks.iter().any(|check| check.id == id && !check.findings.is_empty());
    let tests: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.test.as_str()).collect();
    if paper.experiments.iter().any(|own| own.derived_from().is_some()) {
        limits.push(say!(this_is_not_a_tpc_result));
    }
    limits.extend(of_comparisons(paper));
    if has_found("few-repeats") {
        limits.push(say!(points_were_repeated_too_seldom_for));
    }
    let is_sweep = paper.key_rows().iter().any(|row| {
        let own = row.experiment.points.iter().filter(|point| point.target == row.point.target);
        own.count() > 1 && row.point.purpose != Purpose::Confirm
    });
    if is_sweep {
        limits.push(say!(the_best_of_several_load_levels));
    }
    if has_found("same-host") {
        limits.push(say!(load_generator_and_server_shared_a));
    }
    if paper.experiments.iter().any(|experiment| !experiment.published.is_empty()) {
        limits.push(say!(published_figures_come_from_other_machines));
    }
    let has_transactions = paper.trials.iter().any(|trial| !trial.summary.is_pass());
    if has_transactions || paper.trials.is_empty() {
        limits.push(say!(percentiles_with_fewer_than_10_samples));
    }
    limits.push(match tests.len() {
        1 => say!(a_test_of_another_workload_data),
        _ => say!(a_test_of_another_workload_data_size),
    });
    limits
}

/// Limits of comparisons: other starts of the servers, and other machines; and the source of the noise floor.
fn of_comparisons(paper: &Paper) -> Vec<Message> {
    let compared = || paper.experiments.iter().filter(|own| own.comparison.is_some());
    let mut limits = Vec::new();
    if compared().any(|own| own.restart_each == 0) {
        limits.push(say!(starts_are_not_in_intervals));
    }
    if compared().any(|own| own.restart_each > 0) {
        limits.push(say!(starts_are_in_intervals));
    }
    for kind in [AaKind::Trials, AaKind::Starts, AaKind::Clone] {
        if paper.verdicts.comparisons.iter().any(|of| of.is_aa && of.aa == kind) {
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
fn of_plans(paper: &Paper, blocks: &mut Blocks) {
    let plans = paper.runs.iter().filter_map(|run| run.header.plan.as_ref());
    let notes = format::unique(plans.flat_map(|plan| plan.notes.clone()).collect());
    if !notes.is_empty() {
        blocks.paragraph(say!(notes_of_the_plan));
        blocks.list(Style::Plain, notes.iter().map(|note| vec![coded(note)]).collect());
    }
}

/// Known effects that the load generators' machines have found.
fn known_effects(paper: &Paper, blocks: &mut Blocks) {
    let all = paper.runs.iter().flat_map(|run| &run.header.effects);
    let rows: Vec<&EffectFacts> = format::unique(all.collect());
    let interval = |of: &EffectFacts| {
        let (low, high) = of.low.zip(of.high)?;
        Some(format!("[{low:.3}, {high:.3}]"))
    };
    if !rows.is_empty() {
        let table = PaperRows::new(say!(known_effects_and_what_was_found), rows)
            .text(say!(effect_on), |of| &of.target)
            .text(say!(effect_share), |of| match of.effect > 0.0 {
                true => Message::from(format::percent(of.effect)),
                false => say!(no_effect),
            })
            .text(say!(metric), |of| match Metric::of_name(&of.metric) {
                Some(metric) => metric.title(),
                None => Message::verbatim(&of.metric),
            })
            .text(say!(effect_found), |of| if of.is_found { say!(yes) } else { say!(no) })
            .col(say!(pairs), Whole, |of| of.pairs)
            .col(say!(ratio_2), Fixed(3), |of| of.ratio)
            .col(say!(n_95_percent_interval), Right, interval)
            .text(say!(effect_tried_at), |of| &of.at);
        blocks.table(table);
        blocks.fine(say!(known_effects_were_injected));
    }
}

pub(super) fn reproduce(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    let how = say!(one_command_runs_the_stored_plan);
    blocks.paragraph(how);
    let lines =
        |of: &dyn Fn(&RunFacts) -> String| paper.runs.iter().map(of).collect::<Vec<_>>().join("\n");
    blocks.code(lines(&|run| format!("dyno reproduce {}", shell_word(&run.folder))));
    blocks.paragraph(say!(they_were_given_as));
    blocks.code(lines(&|run| run.command.clone()));
    blocks.table(
        PaperRows::new(say!(what_fixes_the_runs), &paper.runs)
            .look("text")
            .text(say!(run), |run| &run.folder)
            .text(say!(suite), |run| &run.header.suite)
            .text(say!(seed_2), |run| run.header.seed.to_string())
            .text(say!(version_of_dyno), |run| &run.header.environment.dyno_version)
            .text(say!(sha_256_of_the_binary), |run| {
                code(known(&run.header.environment.binary_sha256))
            })
            .text(say!(hash_of_the_plan), |run| {
                run.header.plan.as_ref().map(|plan| code(&plan.hash))
            }),
    );
    for run in paper.runs.iter().filter(|_| !is_of_several(paper)) {
        let mut inner = Blocks::default();
        inner.code(plan(run));
        blocks.details(say!(the_plan_of_run, run = &run.folder), false, inner);
        blocks.bulky();
        let times = run.header.resumed_at.join(", ");
        if !times.is_empty() {
            blocks.fine(say!(the_run_was_taken_up_again, times));
        }
        blocks.fine(say!(every_interval_histogram_event_and_setting, run = &run.folder));
    }
    let variable = "`DYNO_PASSWORD_NAME`";
    blocks.fine(coded(say!(passwords_are_removed_give_them_in, variable)));
}

/// The plan as it is stored, without the list of its steps: they follow from the rest.
fn plan(run: &RunFacts) -> String {
    let header = &run.header;
    let plan = header.plan.clone().map(|plan| RunPlan { steps: Vec::new(), ..plan });
    let plan = json!({
        "plan": plan, "seed": header.seed, "targets": header.targets, "experiments": header.experiments,
    });
    serde_json::to_string_pretty(&plan).unwrap_or_default()
}
