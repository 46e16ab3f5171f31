//! Resources that load generators and servers used; trials, histograms, glossary.

use super::*;

pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    blocks.details(say!(what_the_appendix_has), false, appendix_blocks(paper, lang));
}

fn appendix_blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.heading(3, "A", say!(every_trial), "trials");
    results::trial_blocks(paper, lang, &mut blocks);
    if !paper.distributions.is_empty() {
        blocks.heading(3, "B", say!(histograms), "histograms");
        blocks.table(distributions_table(paper));
    }
    blocks.heading(3, "C", say!(glossary), "glossary");
    blocks.extend([Block::Terms { terms: terms(paper) }]);
    blocks
}

fn distributions_table(paper: &Paper) -> PaperRows<&LatencyDistribution> {
    let at = |d: &LatencyDistribution, share: f64| {
        d.quantiles.iter().find(|(quantile, _)| *quantile == share).map(|(_, us)| *us)
    };
    let title = say!(latency_in_ms_that_a_share);
    let rows = PaperRows::new(title, &paper.distributions)
        .text(say!(experiment), |d| &paper.experiments[d.experiment_index].title)
        .text(say!(target_2), |d| &d.target)
        .text(say!(transaction_2), |d| match d.kind.as_str() {
            "" => say!(all_word),
            kind => kind.into(),
        })
        .col(say!(workers), Whole, |d| d.workers)
        .col(say!(count), Whole, |d| d.count)
        .col(say!(min), Ms, |d| at(d, 0.0));
    let shares = SHARES.into_iter();
    let rows = shares.fold(rows, |rows, (share, name)| rows.col(name, Ms, |d| at(d, share)));
    rows.col(say!(max), Ms, |d| at(d, 1.0))
}

/// The words that these experiments need, with their meanings.
fn terms(paper: &Paper) -> Vec<(Message, Message)> {
    let mut terms = vec![
        (say!(target), say!(a_database_system_under_test_with)),
        (say!(load_generator), say!(the_machine_that_makes_the_load)),
        (say!(statement), say!(one_sql_command_of_a_transaction)),
        (say!(load_level), say!(a_workload_on_a_target_with)),
        (say!(trial), say!(one_timed_execution_of_a_load)),
        (say!(window), say!(the_time_in_which_is_counted)),
        (say!(n_95_percent_interval), say!(a_range_made_so_that_it)),
        (say!(check), say!(a_computed_verdict_on_fairness_or)),
    ];
    let experiments = || paper.experiments.iter();
    if experiments().any(|experiment| !experiment.is_pass()) {
        terms.extend([
            (say!(worker), say!(a_virtual_client_with_a_session)),
            (say!(transaction), say!(the_unit_of_a_workload_that)),
            (say!(closed_loop), say!(a_worker_begins_its_next_transaction)),
            (say!(open_loop), say!(transactions_fall_due_on_a_schedule)),
            (say!(n_95th_percentile_p95), say!(the_latency_that_95_percent_of)),
        ]);
    }
    if nodes::has_clusters(paper) {
        terms.extend([
            (say!(primary), say!(the_node_of_a_target_that)),
            (say!(read_only_node), say!(a_node_that_copies_from_the)),
            (say!(endpoint), say!(a_proxy_that_spreads_what_it)),
            (say!(replica_lag), say!(how_far_a_copy_is_behind)),
        ]);
    }
    let used = families()
        .filter(|family| experiments().any(|experiment| find_family(experiment) == Some(*family)));
    terms.extend(used.flat_map(|family| family.glossary()));
    terms
}

pub(super) fn resources(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    let trials = results::transaction_trials(paper);
    if !trials.is_empty() {
        blocks.table(generator_table(trials));
        let mut trials: Vec<&Trial> = paper.trials.iter().collect();
        trials.retain(|trial| trial.summary.conditions.generator.hiccup_p999_us.is_some());
        blocks.table(disturbances_table(trials));
    }
    let node_spans = node_spans(paper);
    if node_spans.is_empty() && !paper.trials.is_empty() {
        blocks.paragraph(say!(the_servers_were_not_asked_while));
    }
    blocks.table(servers_table(&node_spans));
    paper.targets.iter().for_each(|target| counters_table(paper, target, blocks));
}

fn generator_table(trials: Vec<&Trial>) -> PaperRows<&Trial> {
    PaperRows::new(say!(the_load_generator_during_each_measured), trials)
        .text(say!(trial_2), |t| &t.label)
        .col(say!(window_s), Short, |t| t.summary.window_s)
        .col(say!(connecting_s), Short, |t| t.summary.connect_s)
        .col(say!(loops), Whole, |t| t.summary.generator.loops)
        .col(say!(cpu_of_loops_s), Short, |t| t.summary.generator.loops_cpu_s)
        .col(say!(busiest_loop_percent), Percent, |t| t.summary.generator.busiest_loop_share)
        .col(say!(machine_busy_percent_2), Percent, |t| t.summary.generator.host.cpu_share)
        .col(say!(stolen_percent), Percent, |t| t.summary.generator.host.steal_share)
        .col(say!(s_per_statement), Short, |t| t.summary.generator.cpu_us_per_statement)
        .col(say!(memory_mib), Short, |t| t.summary.generator.resident_mib)
        .col(say!(transactions_per_worker), Short, |t| t.summary.generator.worker_transactions_mean)
        .col(say!(their_standard_deviation), Short, |t| {
            t.summary.generator.worker_transactions_stddev
        })
}

fn disturbances_table(trials: Vec<&Trial>) -> PaperRows<&Trial> {
    let rows = trials.into_iter();
    let conditions = |t: &'_ Trial| t.summary.conditions.generator.clone();
    PaperRows::new(say!(what_disturbed_the_load_generator), rows)
        .text(say!(trial_2), |t| &t.label)
        .col(say!(waiting_for_cpu_percent), Percent, |t| conditions(t).cpu_pressure_share)
        .col(say!(waiting_for_memory_percent), Percent, |t| conditions(t).memory_pressure_share)
        .col(say!(waiting_for_disk_percent), Percent, |t| conditions(t).io_pressure_share)
        .col(say!(run_queue_delay_s), Short, |t| conditions(t).run_delay_s)
        .col(say!(hiccups_p99_9_ms), Ms, |t| conditions(t).hiccup_p999_us)
        .col(say!(largest_hiccup_ms), Ms, |t| conditions(t).hiccup_max_us)
        .col(say!(network_percent), Percent, |t| conditions(t).network_share)
        .col(say!(sent_again_percent), Percent, |t| conditions(t).retransmitted_share)
        .col(say!(pages_swapped), Whole, |t| conditions(t).swapped_pages)
        .col(say!(throttled_percent), Percent, |t| conditions(t).throttled_share)
        .text(say!(governor), |t| conditions(t).governor)
        .col(say!(proven_head_room), Right, |t| {
            conditions(t).headroom.map(|times| format!("{}×", format::short(times)))
        })
}

/// The samples of a node in a trial, from the first to the last one.
struct NodeSpan<'a> {
    trial: &'a Trial,
    node: &'a str,
    rows: Vec<&'a NodeRow>,
}

impl NodeSpan<'_> {
    fn is_inside(&self, row: &NodeRow) -> bool {
        row.at_s >= 0.0 && row.at_s <= self.trial.summary.window_s + 0.5
    }

    /// Mean and maximum of what stands in the rows.
    fn level(&self, format: NumberFormat, get: fn(&NodeRow) -> Option<f64>) -> Option<Cell> {
        let inside = self.rows.iter().filter(|row| self.is_inside(row));
        mean_and_max(inside.filter_map(|row| get(row)), format)
    }

    /// Mean and maximum of counters per second; these are growth since the row before.
    fn rate(&self, format: NumberFormat, get: fn(&NodeRow) -> Option<f64>) -> Option<Cell> {
        let pairs = self.rows.windows(2).filter(|pair| self.is_inside(pair[1]));
        let rates = pairs.filter_map(|pair| {
            let length_s = pair[1].at_s - pair[0].at_s;
            (length_s > 0.0).then(|| get(pair[1])).flatten().map(|growth| growth / length_s)
        });
        mean_and_max(rates, format)
    }
}

fn mean_and_max(values: impl Iterator<Item = f64>, format: NumberFormat) -> Option<Cell> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let max = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Cell::from(mean).with(format.show(max)))
}

fn node_spans(paper: &Paper) -> Vec<NodeSpan<'_>> {
    let mut spans = Vec::new();
    for trial in &paper.trials {
        for node in unique(trial.nodes.iter().map(|row| row.node.as_str()).collect()) {
            let rows = trial.nodes.iter().filter(|row| row.node == node).collect();
            spans.push(NodeSpan { trial, node, rows });
        }
    }
    spans
}

fn servers_table<'a>(rows: &'a [NodeSpan<'a>]) -> PaperRows<&'a NodeSpan<'a>> {
    let title = say!(the_servers_during_each_measured_window_mean);
    PaperRows::new(title, rows)
        .text(say!(trial_2), |span| &span.trial.label)
        .text(say!(target_node), |span| format!("{}, {}", span.trial.target, span.node))
        .col(say!(samples), Whole, |span| {
            span.rows.iter().filter(|row| span.is_inside(row)).count()
        })
        .col(say!(machine_busy_percent_2), Percent, |span| span.level(Percent, |row| row.cpu_share))
        .col(say!(sessions_at_work), Short, |span| span.level(Short, |row| row.active_sessions))
        .col(say!(sessions_waiting_for_locks), Short, |span| {
            span.level(Short, |row| row.waiting_sessions)
        })
        .col(say!(pages_read_per_s), Short, |span| span.rate(Short, |row| row.pages_read))
        .col(say!(pages_written_per_s), Short, |span| span.rate(Short, |row| row.pages_written))
        .col(say!(log_per_s), Bytes, |span| span.rate(Bytes, |row| row.log_bytes))
        .col(say!(dirty_memory_percent), Percent, |span| span.level(Percent, |row| row.dirty_share))
        .col(say!(replica_lag_s), Short, |span| span.level(Short, |row| row.lag_s))
}

fn counters_table(paper: &Paper, target: &PaperTarget, blocks: &mut Blocks) {
    let trials = paper.trials.iter().filter(|trial| trial.target == target.label);
    let trials: Vec<&Trial> = trials.filter(|trial| !trial.counters.is_empty()).collect();
    let Some(first) = trials.first().copied() else { return };
    let title = say!(growth_of_the_servers_counters_on, target = &target.label);
    let rows = PaperRows::new(title, trials).text(say!(trial_2), |t| &t.label);
    blocks.table(first.counters.iter().fold(rows, |rows, column| {
        let growth = |trial: &Trial| {
            let mut counters = trial.counters.iter();
            counters.find(|counter| counter.name == column.name).map(|counter| counter.growth)
        };
        rows.col(&column.name, Whole, growth).class("wrap")
    }));
}
