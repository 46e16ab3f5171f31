//! Resources that load generators and servers used; trials, histograms, glossary.

use super::*;

pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    blocks.details(say!(what_the_appendix_has), false, inside(paper, lang));
}

fn inside(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.heading(3, "A", say!(every_trial), "trials");
    results::trial_blocks(paper, lang, &mut blocks);
    if !paper.distributions.is_empty() {
        blocks.heading(3, "B", say!(histograms), "histograms");
        blocks.table(distributions(paper));
    }
    blocks.heading(3, "C", say!(glossary), "glossary");
    blocks.extend([Block::Terms { terms: terms(paper) }]);
    blocks
}

fn distributions(paper: &Paper) -> PaperRows<&LatencyDistribution> {
    let at = |d: &LatencyDistribution, share: f64| {
        d.quantiles.iter().find(|(own, _)| *own == share).map(|(_, us)| *us)
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
    let is_there = |family: &&'static dyn FamilyPaper| {
        experiments().any(|own| family_of(own) == Some(*family))
    };
    terms.extend(families().filter(is_there).flat_map(|family| family.glossary()));
    terms
}

pub(super) fn resources(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    let of_transactions = results::of_transactions(paper);
    if !of_transactions.is_empty() {
        blocks.table(generator(of_transactions));
        let is_known = |trial: &&Trial| trial.summary.conditions.generator.hiccup_p999_us.is_some();
        blocks.table(disturbances(paper.trials.iter().filter(is_known).collect()));
    }
    let asked = asked(paper);
    if asked.is_empty() && !paper.trials.is_empty() {
        blocks.paragraph(say!(the_servers_were_not_asked_while));
    }
    blocks.table(servers(&asked));
    paper.targets.iter().for_each(|target| counters(paper, target, blocks));
}

fn generator(trials: Vec<&Trial>) -> PaperRows<&Trial> {
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

fn disturbances(trials: Vec<&Trial>) -> PaperRows<&Trial> {
    let rows = trials.into_iter();
    let of = |t: &'_ Trial| t.summary.conditions.generator.clone();
    PaperRows::new(say!(what_disturbed_the_load_generator), rows)
        .text(say!(trial_2), |t| &t.label)
        .col(say!(waiting_for_cpu_percent), Percent, |t| of(t).cpu_pressure_share)
        .col(say!(waiting_for_memory_percent), Percent, |t| of(t).memory_pressure_share)
        .col(say!(waiting_for_disk_percent), Percent, |t| of(t).io_pressure_share)
        .col(say!(run_queue_delay_s), Short, |t| of(t).run_delay_s)
        .col(say!(hiccups_p99_9_ms), Ms, |t| of(t).hiccup_p999_us)
        .col(say!(largest_hiccup_ms), Ms, |t| of(t).hiccup_max_us)
        .col(say!(network_percent), Percent, |t| of(t).network_share)
        .col(say!(sent_again_percent), Percent, |t| of(t).retransmitted_share)
        .col(say!(pages_swapped), Whole, |t| of(t).swapped_pages)
        .col(say!(throttled_percent), Percent, |t| of(t).throttled_share)
        .text(say!(governor), |t| of(t).governor)
        .col(say!(proven_head_room), Right, |t| {
            of(t).headroom.map(|times| format!("{}×", format::short(times)))
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
    fn level(&self, format: NumberFormat, of: fn(&NodeRow) -> Option<f64>) -> Option<Cell> {
        let inside = self.rows.iter().filter(|row| self.is_inside(row));
        mean_and_most(inside.filter_map(|row| of(row)), format)
    }

    /// Mean and maximum of counters per second; these are growth since the row before.
    fn rate(&self, format: NumberFormat, of: fn(&NodeRow) -> Option<f64>) -> Option<Cell> {
        let pairs = self.rows.windows(2).filter(|pair| self.is_inside(pair[1]));
        let rates = pairs.filter_map(|pair| {
            let length_s = pair[1].at_s - pair[0].at_s;
            (length_s > 0.0).then(|| of(pair[1])).flatten().map(|growth| growth / length_s)
        });
        mean_and_most(rates, format)
    }
}

fn mean_and_most(values: impl Iterator<Item = f64>, format: NumberFormat) -> Option<Cell> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let most = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Cell::from(mean).with(format.show(most)))
}

fn asked(paper: &Paper) -> Vec<NodeSpan<'_>> {
    let mut all = Vec::new();
    for trial in &paper.trials {
        for node in unique(trial.nodes.iter().map(|row| row.node.as_str()).collect()) {
            let rows = trial.nodes.iter().filter(|row| row.node == node).collect();
            all.push(NodeSpan { trial, node, rows });
        }
    }
    all
}

fn servers<'a>(rows: &'a [NodeSpan<'a>]) -> PaperRows<&'a NodeSpan<'a>> {
    let title = say!(the_servers_during_each_measured_window_mean);
    PaperRows::new(title, rows)
        .text(say!(trial_2), |one| &one.trial.label)
        .text(say!(target_node), |one| format!("{}, {}", one.trial.target, one.node))
        .col(say!(samples), Whole, |one| one.rows.iter().filter(|row| one.is_inside(row)).count())
        .col(say!(machine_busy_percent_2), Percent, |one| one.level(Percent, |row| row.cpu_share))
        .col(say!(sessions_at_work), Short, |one| one.level(Short, |row| row.active_sessions))
        .col(say!(sessions_waiting_for_locks), Short, |one| {
            one.level(Short, |row| row.waiting_sessions)
        })
        .col(say!(pages_read_per_s), Short, |one| one.rate(Short, |row| row.pages_read))
        .col(say!(pages_written_per_s), Short, |one| one.rate(Short, |row| row.pages_written))
        .col(say!(log_per_s), Bytes, |one| one.rate(Bytes, |row| row.log_bytes))
        .col(say!(dirty_memory_percent), Percent, |one| one.level(Percent, |row| row.dirty_share))
        .col(say!(replica_lag_s), Short, |one| one.level(Short, |row| row.lag_s))
}

fn counters(paper: &Paper, target: &PaperTarget, blocks: &mut Blocks) {
    let is_own = |trial: &&Trial| trial.target == target.label && !trial.counters.is_empty();
    let trials: Vec<&Trial> = paper.trials.iter().filter(is_own).collect();
    let Some(first) = trials.first().copied() else { return };
    let title = say!(growth_of_the_servers_counters_on, target = &target.label);
    let rows = PaperRows::new(title, trials).text(say!(trial_2), |t| &t.label);
    blocks.table(first.counters.iter().fold(rows, |rows, wanted| {
        let growth = |trial: &Trial| {
            let same = trial.counters.iter().find(|counter| counter.name == wanted.name);
            same.map(|counter| counter.growth)
        };
        rows.col(&wanted.name, Whole, growth).class("wrap")
    }));
}
