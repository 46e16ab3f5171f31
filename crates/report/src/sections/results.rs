//! The results: chapters, experiments, trials, what disturbed them.

use super::*;

/// Adds the results: chapters with their experiments, capacity, costs, faults, and disturbances.
pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    let mut numbers = (1..).map(|number| format!("6.{number}"));
    for (place, (title, experiments)) in chapters(paper).into_iter().enumerate() {
        blocks.heading(
            3,
            &numbers.next().unwrap_or_default(),
            title,
            &format!("chapter-{}", place + 1),
        );
        blocks.figures(charts::totals(paper, &experiments, lang));
        for (index, experiment) in experiments {
            blocks.heading(4, "", &experiment.title, &format!("experiment-{}", index + 1));
            experiment_blocks(paper, experiment, lang, blocks);
        }
    }
    if !paper.result_rows().is_empty() {
        blocks.heading(3, &numbers.next().unwrap_or_default(), say!(capacity), "capacity");
        blocks.table(capacity(paper));
        blocks.fine(say!(vcpu_note));
    }
    costs(paper, blocks);
    if !paper.faults().is_empty() {
        blocks.heading(
            3,
            &numbers.next().unwrap_or_default(),
            say!(failover_and_durability),
            "failover",
        );
        blocks.extend(fault::blocks(paper, lang));
    }
    let title = say!(scaling_steadiness_errors_and_gaps);
    blocks.heading(3, &numbers.next().unwrap_or_default(), title, "disturbances");
    disturbance_blocks(paper, blocks);
}

/// The chapters that have experiments, each with their places in the paper; what belongs to no family comes last.
pub(super) fn chapters(paper: &Paper) -> Vec<(Message, Vec<(usize, &Experiment)>)> {
    let titles = families().map(|family| (Some(family), family.title()));
    let titles = titles.chain([(None, say!(other_workloads))]);
    let chapters = titles.map(|(family, title)| {
        let experiments = paper.experiments.iter().enumerate();
        let experiments = experiments.filter(|(_, experiment)| find_family(experiment) == family);
        (title, experiments.collect::<Vec<_>>())
    });
    chapters.filter(|(_, experiments)| !experiments.is_empty()).collect()
}

/// The virtual CPUs of a node, as stated; of all read-only nodes if the load is spread over these.
fn vcpu(paper: &Paper, row: KeyRow<'_>) -> Option<f64> {
    let target = paper.target(&row.point.target)?;
    let readers = target.facts.nodes.iter().filter(|node| node.role == Role::ReadOnly).count();
    // Nothing of the load is done by other nodes, and all of it by these.
    let nodes = if target.facts.route == Route::Spread { readers.max(1) } else { 1 };
    target.facts.vcpu.map(|vcpu| vcpu * nodes as f64).filter(|vcpu| *vcpu > 0.0)
}

/// One row per experiment and target with figures of throughput.
fn capacity(paper: &Paper) -> PaperRows<KeyRow<'_>> {
    PaperRows::new(say!(the_most_that_each_target_did), paper.result_rows())
        .text(say!(experiment), |row| {
            link(&row.experiment.title, format!("#experiment-{}", row.index + 1))
        })
        .text(say!(target_column), |row| &row.point.target)
        .text(say!(load), |row| row.point.load_words())
        .strong(say!(throughput), Short, |row| spread(row.point.throughput(), row.point.repeats))
        .text(say!(unit), |row| match row.point.main {
            Some((metric, _)) => metric.title(),
            None => say!(transactions_s),
        })
        .col(say!(vcpu), Plain, |row| vcpu(paper, row))
        .col(say!(per_vcpu), Short, |row| {
            vcpu(paper, row).map(|vcpu| row.point.throughput().median / vcpu)
        })
        .text(say!(objective), |row| row.experiment.objective.as_ref())
        .text(say!(measured_again_column), |row| yes_or_no(row.point.purpose == Purpose::Confirm))
        .text(say!(notes), |row| notes(paper, &row.point.checks))
}

/// Costs of the work, if targets have a price.
pub(super) fn costs(paper: &Paper, blocks: &mut Blocks) {
    let rows = paper.costs();
    let table = PaperRows::new(say!(cost_title), &rows)
        .text(say!(experiment), |row| &row.experiment.title)
        .text(say!(target_column), |row| &row.target.label)
        .col(say!(price_of_an_hour), Right, |row| {
            format!("{} {}", format::plain(row.price.per_hour), row.price.currency)
        })
        .text(say!(cost), |row| &row.quantity)
        .strong(say!(amount), Right, |row| {
            format!("{} {}", format::short(row.amount), row.price.currency)
        });
    blocks.table(table);
    if !rows.is_empty() {
        blocks.fine(say!(prices_are_stated_in_the_suite));
    }
}

fn experiment_blocks(paper: &Paper, experiment: &Experiment, lang: Lang, blocks: &mut Blocks) {
    blocks.extend(publisher::markdown_blocks(&experiment.description.render(lang)));
    let skipped = skipped_steps(paper, experiment);
    if !skipped.is_empty() {
        let sentences: Vec<Message> = [say!(left_out)].into_iter().chain(skipped).collect();
        blocks.fine(Message::sentences(&sentences));
    }
    match find_family(experiment).and_then(|family| family.section(paper, experiment, lang)) {
        Some(section) => blocks.extend(section),
        None => blocks.figures(charts::experiment_charts(paper, experiment, lang)),
    }
    transaction_blocks(paper, experiment, blocks);
    if experiment.points.is_empty() {
        blocks.paragraph(say!(no_figures_measured));
    }
    blocks.figures(nodes::figures(paper, experiment, lang));
    nodes::blocks(paper, experiment, blocks);
    nodes::fleet_blocks(paper, experiment, blocks);
}

/// The steps that were skipped and why, each of the repeats only once.
fn skipped_steps(paper: &Paper, experiment: &Experiment) -> Vec<Message> {
    let skipped = paper.runs.iter().flat_map(|run| &run.header.skipped);
    let steps = skipped.filter_map(|(id, reason)| {
        let step = id.strip_prefix(&experiment.name)?.strip_prefix('/')?;
        let step = step.split("/repeat=").next().unwrap_or(step).replace('/', ", ");
        Some(say!(what_why, what = step, why = reason))
    });
    unique(steps.collect())
}

fn transaction_blocks(paper: &Paper, experiment: &Experiment, blocks: &mut Blocks) {
    let points = &experiment.points;
    if points.is_empty() || experiment.is_pass() {
        return;
    }
    blocks.table(levels_table(paper, experiment));
    blocks.table(node_scaling_table(experiment));
    let with_data: Vec<&Point> = points.iter().filter(|point| point.data.is_some()).collect();
    if !with_data.is_empty() {
        blocks.table(data_table(with_data));
        // How keys are drawn, each way once.
        let data = paper.trials_in(experiment).filter_map(|trial| trial.summary.data.as_ref());
        let access = data.map(|data| data.access.clone()).filter(|text| !text.is_empty());
        blocks.fine(Message::sentences(&unique(access.collect())));
    }
    blocks.table(statements_table(&statements(paper.trials_in(experiment))));
    if points.iter().any(|point| point.p999_us.is_none()) {
        let reason = say!(percentile_not_printed);
        blocks.fine(vec![Span::plain("– "), Span::plain(reason)]);
    }
}

fn levels_table<'a>(paper: &'a Paper, experiment: &'a Experiment) -> PaperRows<&'a Point> {
    let test = if experiment.test.is_empty() { &experiment.name } else { &experiment.test };
    let title = if experiment.points.iter().any(|point| point.repeats > 1) {
        say!(load_levels_with_repeats, test)
    } else {
        say!(test_load_levels, test)
    };
    let latency = match (experiment.is_open_loop, experiment.has_terminals()) {
        (true, _) => say!(latency_from_the_due_time_ms),
        (false, true) => say!(response_time_of_all_kinds_ms),
        (false, false) => say!(service_time_ms),
    };
    PaperRows::new(title, &experiment.points)
        .text(say!(target_column), |p| {
            let purpose = match p.purpose {
                Purpose::Confirm => say!(measured_again),
                Purpose::Search => say!(step_of_the_search),
                Purpose::Measure => Message::default(),
            };
            Cell::from(target_of(&p.target, p.status)).with(purpose)
        })
        .col(say!(workers), Whole, |p| p.workers)
        .col(say!(offered_per_s), Short, |p| p.rate_per_s)
        .if_any()
        .group(say!(per_second), |table| {
            let table = table.strong(say!(transactions), Short, |p| spread(p.tps, p.repeats));
            table.col(say!(statements), Short, |p| spread(p.qps, 1))
        })
        .group(latency, |table| {
            table
                .col(say!(mean), Ms, |p| p.mean_us.map(|us| spread(us, 1)))
                .col("p50", Ms, |p| p.p50_us.map(|us| spread(us, 1)))
                .col("p95", Ms, |p| p.p95_us.map(|us| spread(us, p.repeats)))
                .col("p99", Ms, |p| p.p99_us.map(|us| spread(us, p.repeats)))
                .col("p99.9", Ms, |p| p.p999_us.map(|us| spread(us, 1)))
                .col(say!(max), Ms, |p| p.max_us)
        })
        .col(say!(errors), Whole, |p| p.errors)
        .col(say!(retries), Whole, |p| p.retries)
        .col(say!(reconnects), Whole, |p| p.reconnects)
        .col(say!(generator_cpu_s_per_statement), Short, |p| spread(p.cpu_us_per_statement, 1))
        .metrics(Metric::costs(), |p, metric| {
            p.costs.get(&metric).map(|cost| spread(*cost, p.repeats))
        })
        .text(say!(notes), |p| notes(paper, &p.checks))
}

/// The gain by more read-only nodes.
pub(super) fn node_scaling_table(experiment: &Experiment) -> PaperRows<&NodeScaling> {
    PaperRows::new(say!(read_only_node_scaling), &experiment.node_scaling)
        .text(say!(target_column), |row| &row.target)
        .col(say!(read_only_nodes_column), Whole, |row| {
            Cell::from(row.nodes).with_if(row.is_stated, || vec![Span::plain(say!(stated))])
        })
        .col(say!(workers), Whole, |row| row.workers)
        .strong(say!(statements_per_s), Short, |row| row.qps.median)
        .col(say!(for_each_node), Short, |row| row.qps_per_node)
        .col(say!(speed_up), Short, |row| row.speedup)
        .col(say!(efficiency_percent), Percent, |row| row.efficiency)
}

fn data_table(points: Vec<&Point>) -> PaperRows<&Point> {
    let title = say!(data_title);
    PaperRows::new(title, points)
        .text(say!(target_column), |p| &p.target)
        .col(say!(workers), Whole, |p| p.workers)
        .col(say!(rows), Whole, |p| Some(p.data.as_ref()?.facts.rows))
        .col(say!(hot_rows), Whole, |p| p.data.as_ref()?.facts.hot_rows)
        .strong(say!(hot_share_percent), Percent, |p| p.data.as_ref()?.hot_share)
        .col(say!(size_of_the_data), Bytes, |p| p.data.as_ref()?.facts.size_bytes)
        .col(say!(memory_for_data), Bytes, |p| p.data.as_ref()?.facts.memory_bytes)
        .text(say!(its_setting), |p| Some(code(&p.data.as_ref()?.facts.memory_setting)))
        .strong(say!(data_to_memory), Short, |p| p.data.as_ref()?.size_to_memory)
        .col(say!(reads_and_writes_per_s), Short, |p| spread(p.data_qps, p.repeats))
}

fn statements_table<'a>(rows: &'a [StatementRow<'a>]) -> PaperRows<&'a StatementRow<'a>> {
    let first_script = rows.first().map(|row| &row.2.script);
    let has_one_script = rows.iter().all(|row| Some(&row.2.script) == first_script);
    let title = match first_script.filter(|_| has_one_script) {
        Some(script) => say!(statement_by_statement, script),
        None => say!(statement_by_statement_title),
    };
    PaperRows::new(title, rows)
        .text(say!(target_column), |row| row.0)
        .col(say!(workers), Whole, |row| row.1)
        .when(!has_one_script, |table| table.text(say!(script), |row| &row.2.script))
        .text(say!(statement_column), |row| -> TextLine {
            vec![code(row.2.text.split_whitespace().collect::<Vec<_>>().join(" "))]
        })
        .class("sql")
        .col(say!(executions), Whole, |row| row.2.count)
        .strong(say!(mean_ms), Ms, |row| row.2.mean_us)
        .col(say!(min_ms), Ms, |row| row.2.min_us)
        .col(say!(max_ms), Ms, |row| row.2.max_us)
        .col(say!(failures), Whole, |row| row.2.failures)
        .col(say!(retries), Whole, |row| row.2.retries)
}

pub(super) fn trial_blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    if paper.trials.is_empty() {
        blocks.paragraph(summary::no_trial(paper));
        return;
    }
    families().filter_map(|family| family.trials(paper)).for_each(|table| blocks.table(table));
    let transaction_trials = transaction_trials(paper);
    if !transaction_trials.is_empty() {
        blocks.table(accounting_table(paper, transaction_trials));
        blocks.fine(say!(wasted_statements_meaning));
    }
    for trial in &paper.trials {
        if let TrialStatus::Failed(reason) = &trial.summary.status {
            blocks.paragraph(say!(trial_trial_notes, trial = &trial.label, notes = reason));
        }
    }
    blocks.table(set_aside_table(paper));
    blocks.table(stages_table(paper));
    blocks.table(data_checks(paper));
    let (figures, n_not_drawn) = charts::trial_charts(paper, lang);
    if !figures.is_empty() {
        blocks.heading(4, "", say!(over_time), "");
        blocks.fine(shades(say!(warm_up)));
        if n_not_drawn > 0 {
            let (n, file) = (n_not_drawn.to_string(), "`trials/`");
            blocks.fine(coded(say!(trials_not_drawn, n, file)));
        }
        blocks.grid(figures);
    }
    for trial in paper.trials.iter().filter(|trial| !trial.summary.notes.is_empty()) {
        let notes = Message::sentences(&trial.summary.notes);
        blocks.fine(say!(trial_trial_notes, trial = &trial.label, notes));
    }
}

/// Trials that count for nothing, in gray.
fn set_aside_table(paper: &Paper) -> PaperRows<&Trial> {
    ended_trials(say!(trials_made_again), &paper.set_aside)
        .look("text")
        .text(say!(why_again), |t| why_set_aside(&t.summary))
        .each(|t, row| {
            row.anchor = format!("trial-{}", t.label);
            row.class = "gray";
        })
}

/// The parts of long trials, with the seams between them.
fn stages_table(paper: &Paper) -> PaperRows<&Trial> {
    ended_trials(say!(stages_of_trials), &paper.stages)
        .text(say!(stage), |stage| {
            let stage = stage.summary.stage.unwrap_or_default();
            say!(stage_number, number = stage.number.to_string(), of = stage.of.to_string())
        })
        .col(say!(window_from_s), Tenth, |stage| Some(find_seam(paper, stage)?.from_s))
        .col(say!(gap_before_s), Tenth, |stage| find_seam(paper, stage)?.gap_s)
        .col(say!(window_s), Tenth, |stage| stage.summary.window_s)
        .col(say!(committed_column), Whole, |stage| stage.summary.counts.committed)
        .text(say!(notes), |stage| match &stage.summary.status {
            TrialStatus::Failed(failure) => Some(failure.clone()),
            _ => None,
        })
        .each(|stage, row| {
            row.anchor = format!("trial-{}", stage.label);
            row.class = if stage.status == "stage" { "" } else { "gray" };
        })
}

/// The place of a stage within its trial, and the gap before it.
fn find_seam<'a>(paper: &'a Paper, stage: &Trial) -> Option<&'a StageFacts> {
    let trials = paper.trials.iter().filter(|trial| trial.run == stage.run);
    let mut seams = trials.flat_map(|trial| &trial.summary.stages);
    seams.find(|seam| seam.trial == stage.summary.trial)
}

/// Trials of transactions: queries, which are none, have their own table.
pub(super) fn transaction_trials(paper: &Paper) -> Vec<&Trial> {
    paper.trials.iter().filter(|trial| !trial.summary.is_pass()).collect()
}

/// The meaning of the shades of charts over time.
pub fn shades(warm: Message) -> TextLine {
    let mut line = vec![Span::plain(say!(time_zero_note))];
    let shades = [
        ("warm", warm),
        ("error", say!(intervals_with_errors_or_reconnects)),
        ("gap", say!(no_commit)),
    ];
    for (name, meaning) in shades {
        line.extend([Span::plain(" "), Span::new("", Look::Swatch(name)), Span::plain(" ")]);
        line.push(Span::plain(meaning));
    }
    line
}

/// The experiment and the target of a trial.
pub fn place(trial: &Trial) -> String {
    format!("{}, {}", trial.summary.experiment, trial.target)
}

/// A table of trials that begins with which they are, and how they ended.
fn ended_trials<'a>(
    title: Message,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> PaperRows<&'a Trial> {
    PaperRows::new(title, trials)
        .text(say!(trial_column), |t| &t.label)
        .text(say!(experiment_target), place)
        .col(say!(workers), Whole, |t| t.summary.workers)
        .col(say!(repeat), Whole, |t| t.summary.repeat)
        .col(say!(began), Right, |t| t.summary.started_at.get(11..19).unwrap_or_default())
        .class("keep")
        .text(say!(ended), |t| ended(t.status))
}

fn accounting_table<'a>(paper: &'a Paper, trials: Vec<&'a Trial>) -> PaperRows<&'a Trial> {
    let title = say!(accounting_title);
    ended_trials(title, trials)
        .col(say!(started), Whole, |t| t.summary.counts.started)
        .col(say!(committed_column), Whole, |t| t.summary.counts.committed)
        .col(say!(rolled_back_column), Whole, |t| t.summary.counts.rolled_back)
        .col(say!(failed_column), Whole, |t| t.summary.counts.failed)
        .col(say!(skipped), Whole, |t| t.summary.counts.skipped)
        .col(say!(in_flight), Whole, |t| t.summary.in_flight)
        .text(say!(adds_up), |t| {
            if t.adds_up { Span::plain(say!(yes)) } else { bad(say!(no_capitals)) }
        })
        .col(say!(wasted_statements), Whole, |t| t.summary.wasted.total())
        .text(say!(notes), |t| notes(paper, &t.checks))
        .each(|t, row| row.anchor = format!("trial-{}", t.label))
}

fn data_checks(paper: &Paper) -> PaperRows<(&Trial, &DataCheck)> {
    let rows =
        paper.trials.iter().flat_map(|t| t.summary.checks.iter().map(move |check| (t, check)));
    PaperRows::new(say!(data_checks_title), rows)
        .look("text")
        .text(say!(trial_column), |(trial, _)| &trial.label)
        .text(say!(experiment_target), |(trial, _)| place(trial))
        .text(say!(check_column), |(_, check)| check.name.clone())
        .text(say!(verdict), |(_, check)| verdict_of(check.verdict))
        .text(say!(evidence_column), |(_, check)| check.evidence.clone())
}

fn disturbance_blocks(paper: &Paper, blocks: &mut Blocks) {
    blocks.table(scaling_table(paper));
    let unsteady: Vec<&SteadyRow> =
        paper.verdicts.steady.iter().filter(|row| row.is_steady == Some(false)).collect();
    let is_judged = paper.verdicts.steady.iter().any(|row| row.warm_up.is_some());
    if unsteady.is_empty() && is_judged {
        blocks.paragraph(say!(steady_windows_note));
    }
    blocks.table(unsteady_table(unsteady));
    error_blocks(paper, blocks);
    let gaps = paper.trials.iter().flat_map(|t| t.gaps.iter().map(move |gap| (t, gap)));
    let gaps: Vec<(&Trial, &Gap)> = gaps.collect();
    if gaps.is_empty() && !transaction_trials(paper).is_empty() {
        blocks.paragraph(say!(no_gaps));
    }
    blocks.table(gaps_table(gaps));
    paper.runs.iter().for_each(|run| event_blocks(run, blocks));
    for run in paper.runs.iter().filter(|run| !run.warnings.is_empty()) {
        blocks.fine(say!(
            damaged_or_missing_files,
            run = &run.folder,
            what = Message::sentences(&run.warnings)
        ));
    }
}

fn scaling_table(paper: &Paper) -> PaperRows<&Scaling> {
    let title = say!(throughput_against_concurrency);
    PaperRows::new(title, &paper.verdicts.scaling)
        .text(say!(experiment), |row| &row.title)
        .text(say!(target_column), |row| &row.target)
        .col(say!(workers), Right, |row| {
            let [min, max] = row.workers.map(format::whole);
            format!("{min}{}{max}", format::DASH)
        })
        .text(say!(peak), |row| &row.words)
}

fn unsteady_table(rows: Vec<&SteadyRow>) -> PaperRows<&SteadyRow> {
    PaperRows::new(say!(unsteady_trials), rows)
        .text(say!(trial_column), |row| &row.trial)
        .text(say!(target_column), |row| Cell::from(&row.target).with(&row.experiment))
        .col(say!(median_per_s), Short, |row| row.median_per_s)
        .text(say!(warm_up_column), |row| {
            row.warm_up.map(|warm_up| {
                if warm_up.is_over { Span::plain(say!(over)) } else { strong(say!(not_over)) }
            })
        })
        .col(say!(last_third_by_first_percent), Percent, |row| Some(row.warm_up?.drift))
        .col(say!(slope_over_the_window_percent), Percent, |row| Some(row.warm_up?.slope))
        .text(say!(changes_of_the_level), |row| {
            lines(row.changes.iter().map(|change| {
                say!(
                    level_change,
                    at = format::plain(change.at_s),
                    before = format::short(change.before_per_s),
                    after = format::short(change.after_per_s)
                )
            }))
        })
        .text(say!(seconds_below_half_of_the_median), stall_lines)
}

fn stall_lines(row: &SteadyRow) -> TextLine {
    const MAX: usize = 6;
    let stalls = row.stalls.iter().take(MAX).map(|(stall, events)| {
        let words = say!(
            to_s_lowest,
            from = format::plain(stall.from_s),
            to = format::plain(stall.to_s),
            lowest = format::short(stall.lowest_per_s)
        );
        let events = join_clauses(events);
        if events.is_empty() { words } else { say!(what_why, what = words, why = events) }
    });
    let n_hidden = row.stalls.len().saturating_sub(MAX);
    let hidden = (n_hidden > 0).then(|| say!(and_n_more, n = n_hidden.to_string()));
    lines(stalls.chain(hidden))
}

fn error_blocks(paper: &Paper, blocks: &mut Blocks) {
    let trials = paper.experiments.iter().enumerate().flat_map(|(index, experiment)| {
        paper.trials_in(experiment).map(move |trial| (index, experiment, trial))
    });
    let errors = trials.flat_map(|(index, experiment, trial)| {
        trial.summary.errors.iter().map(move |error| {
            let kind = (&error.class, error.errno, &error.sqlstate);
            ((index, &trial.target, kind), (experiment, error, trial))
        })
    });
    // Errors of one kind in an experiment on a target share a row.
    let groups = grouped(errors);
    if groups.is_empty() {
        let has_failures = paper.experiments.iter().any(|experiment| {
            find_family(experiment).is_some_and(|family| family.has_failures(paper, experiment))
        });
        blocks.paragraph(if has_failures { say!(failed_queries_note) } else { say!(no_errors) });
    }
    let rows = groups.iter().map(|(_, errors)| errors);
    let table = PaperRows::new(say!(errors_of_attempts_and_connects), rows)
        .look("text")
        .text(say!(experiment), |errors| &errors[0].0.title)
        .text(say!(target_column), |errors| &errors[0].2.target)
        .text(say!(error_class), |errors| {
            let error = errors[0].1;
            if error.is_own_conflict() {
                Span::plain(say!(own_conflict))
            } else {
                code(&error.class)
            }
        })
        .col(say!(number), Right, |errors| {
            Some(errors[0].1.errno).filter(|errno| *errno > 0).map(|errno| errno.to_string())
        })
        .text("SQLSTATE", |errors| {
            let error = errors[0].1;
            if error.is_own_conflict() { Span::plain(format::DASH) } else { code(&error.sqlstate) }
        })
        .col(say!(count), Whole, |errors| {
            errors.iter().map(|(_, error, _)| error.count).sum::<u64>()
        })
        .text(say!(first_message), |errors| errors[0].1.message.clone())
        .text(say!(in_trials), |errors| {
            errors.iter().map(|(.., trial)| trial.label.as_str()).collect::<Vec<_>>().join(", ")
        });
    blocks.table(table);
}

fn gaps_table<'a>(rows: Vec<(&'a Trial, &'a Gap)>) -> PaperRows<(&'a Trial, &'a Gap)> {
    PaperRows::new(say!(gaps_title), rows)
        .text(say!(trial_column), |(trial, _)| &trial.label)
        .text(say!(target_column), |(trial, _)| &trial.target)
        .col(say!(from_s), Short, |(_, gap)| gap.from_s)
        .col(say!(to_s), Short, |(_, gap)| gap.to_s)
        .col(say!(length_s), Short, |(_, gap)| gap.to_s - gap.from_s)
        .col(say!(errors_meanwhile), Whole, |(_, gap)| gap.errors)
        .col(say!(reconnects), Whole, |(_, gap)| gap.reconnects)
}

fn event_blocks(run: &RunFacts, blocks: &mut Blocks) {
    const MAX: usize = 100;
    let title = say!(events_of_run, run = &run.folder);
    blocks.table(
        PaperRows::new(title, run.events.iter().take(MAX))
            .look("text")
            .text(say!(time), |event| &event.at)
            .text(say!(trial_column), |event| {
                let trial = event.trial.map(|trial| trial.to_string()).unwrap_or_default();
                match event.at_s {
                    Some(at_s) => format!("{trial}, {} s", format::short(at_s)),
                    None => trial,
                }
            })
            .text(say!(kind), |event| match event.kind {
                EventKind::Server => say!(server),
                EventKind::Note => say!(note),
                other => Message::from(format!("{other:?}").to_lowercase()),
            })
            .text(say!(what_column), |event| event.text.clone()),
    );
    let n_hidden = run.events.len().saturating_sub(MAX);
    if n_hidden > 0 {
        let (n, file) = (n_hidden.to_string(), "`events.jsonl`");
        blocks.fine(coded(say!(more_in_file, n, file)));
    }
}
