//! Resources that load generators and servers used; trials, histograms, glossary.

use super::*;

/// Adds the appendix, which a page shows on demand.
pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    blocks.details(say!(appendix_contents), false, appendix_blocks(paper, lang));
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
    let title = say!(distributions_title);
    let rows = PaperRows::new(title, &paper.distributions)
        .text(say!(experiment), |d| &paper.experiments[d.experiment_index].title)
        .text(say!(target_column), |d| &d.target)
        .text(say!(transaction_column), |d| match d.kind.as_str() {
            "" => say!(all_word),
            kind => kind.into(),
        })
        .col(say!(workers), Whole, |d| d.workers)
        .col(say!(count), Whole, |d| d.count)
        .col(say!(min), Ms, |d| quantile_us(d, 0.0));
    let shares = SHARES.into_iter();
    let rows =
        shares.fold(rows, |rows, (share, name)| rows.col(name, Ms, |d| quantile_us(d, share)));
    rows.col(say!(max), Ms, |d| quantile_us(d, 1.0))
}

/// Returns the longest of a share of the latencies; `None` if too few are longer.
fn quantile_us(distribution: &LatencyDistribution, share: f64) -> Option<f64> {
    let mut quantiles = distribution.quantiles.iter();
    quantiles.find(|(quantile, _)| *quantile == share).map(|(_, us)| *us)
}

/// The words that these experiments need, with their meanings.
fn terms(paper: &Paper) -> Vec<(Message, Message)> {
    let mut terms = vec![
        (say!(target), say!(target_meaning)),
        (say!(load_generator), say!(load_generator_meaning)),
        (say!(statement), say!(statement_meaning)),
        (say!(load_level), say!(load_level_meaning)),
        (say!(trial), say!(trial_meaning)),
        (say!(window), say!(window_meaning)),
        (say!(n_95_percent_interval), say!(interval_meaning)),
        (say!(check), say!(check_meaning)),
    ];
    if paper.experiments.iter().any(|experiment| !experiment.is_pass()) {
        terms.extend([
            (say!(worker), say!(worker_meaning)),
            (say!(transaction), say!(transaction_meaning)),
            (say!(closed_loop), say!(closed_loop_meaning)),
            (say!(open_loop), say!(open_loop_meaning)),
            (say!(n_95th_percentile_p95), say!(p95_meaning)),
        ]);
    }
    if nodes::has_clusters(paper) {
        terms.extend([
            (say!(primary), say!(primary_meaning)),
            (say!(read_only_node), say!(read_only_node_meaning)),
            (say!(endpoint), say!(endpoint_meaning)),
            (say!(replica_lag), say!(replica_lag_meaning)),
        ]);
    }
    let used = families().filter(|family| {
        paper.experiments.iter().any(|experiment| find_family(experiment) == Some(*family))
    });
    terms.extend(used.flat_map(|family| family.glossary()));
    terms
}

/// Adds what the load generators and the servers used in each trial.
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
        blocks.paragraph(say!(servers_not_sampled));
    }
    blocks.table(servers_table(&node_spans));
    paper.targets.iter().for_each(|target| counters_table(paper, target, blocks));
}

fn generator_table(trials: Vec<&Trial>) -> PaperRows<&Trial> {
    PaperRows::new(say!(load_generators_title), trials)
        .text(say!(trial_column), |t| &t.label)
        .col(say!(window_s), Short, |t| t.summary.window_s)
        .col(say!(connecting_s), Short, |t| t.summary.connect_s)
        .col(say!(loops), Whole, |t| t.summary.generator.loops)
        .col(say!(cpu_of_loops_s), Short, |t| t.summary.generator.loops_cpu_s)
        .col(say!(busiest_loop_percent), Percent, |t| t.summary.generator.busiest_loop_share)
        .col(say!(machine_busy_percent_column), Percent, |t| t.summary.generator.host.cpu_share)
        .col(say!(stolen_percent), Percent, |t| t.summary.generator.host.steal_share)
        .col(say!(s_per_statement), Short, |t| t.summary.generator.cpu_us_per_statement)
        .col(say!(memory_mib), Short, |t| t.summary.generator.resident_mib)
        .col(say!(transactions_per_worker), Short, |t| t.summary.generator.worker_transactions_mean)
        .col(say!(their_standard_deviation), Short, |t| {
            t.summary.generator.worker_transactions_stddev
        })
}

fn disturbances_table(trials: Vec<&Trial>) -> PaperRows<(&Trial, &GeneratorConditions)> {
    let rows = trials.into_iter().map(|trial| (trial, &trial.summary.conditions.generator));
    PaperRows::new(say!(what_disturbed_the_load_generator), rows)
        .text(say!(trial_column), |(trial, _)| &trial.label)
        .col(say!(waiting_for_cpu_percent), Percent, |(_, found)| found.cpu_pressure_share)
        .col(say!(waiting_for_memory_percent), Percent, |(_, found)| found.memory_pressure_share)
        .col(say!(waiting_for_disk_percent), Percent, |(_, found)| found.io_pressure_share)
        .col(say!(run_queue_delay_s), Short, |(_, found)| found.run_delay_s)
        .col(say!(hiccups_p99_9_ms), Ms, |(_, found)| found.hiccup_p999_us)
        .col(say!(largest_hiccup_ms), Ms, |(_, found)| found.hiccup_max_us)
        .col(say!(network_percent), Percent, |(_, found)| found.network_share)
        .col(say!(sent_again_percent), Percent, |(_, found)| found.retransmitted_share)
        .col(say!(pages_swapped), Whole, |(_, found)| found.swapped_pages)
        .col(say!(throttled_percent), Percent, |(_, found)| found.throttled_share)
        .text(say!(governor), |(_, found)| found.governor.as_ref())
        .col(say!(proven_head_room), Right, |(_, found)| {
            found.headroom.map(|times| format!("{}×", format::short(times)))
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

    /// Mean and maximum of a value of the rows.
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
    let title = say!(servers_title);
    PaperRows::new(title, rows)
        .text(say!(trial_column), |span| &span.trial.label)
        .text(say!(target_node), |span| format!("{}, {}", span.trial.target, span.node))
        .col(say!(samples), Whole, |span| {
            span.rows.iter().filter(|row| span.is_inside(row)).count()
        })
        .col(say!(machine_busy_percent_column), Percent, |span| {
            span.level(Percent, |row| row.cpu_share)
        })
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
    let title = say!(counter_growth, target = &target.label);
    let rows = PaperRows::new(title, trials).text(say!(trial_column), |t| &t.label);
    blocks.table(first.counters.iter().fold(rows, |rows, column| {
        let rows = rows.col(&column.name, Whole, |trial| {
            let mut counters = trial.counters.iter();
            counters.find(|counter| counter.name == column.name).map(|counter| counter.growth)
        });
        rows.class("wrap")
    }));
}
