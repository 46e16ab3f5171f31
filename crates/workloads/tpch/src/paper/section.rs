//! The section of an experiment that is TPC-H.

use super::tables::{
    Column, PublishedSeconds, QueryPlans, QueryTimes, Speedup, TpchTable, columns, published,
    tables, verdict,
};
use super::{QUERIES, TpchTrial, charts, executions, failures, tpch_facts, tpch_trials, words};
use crate::facts::{LoadStep, PlanFacts, QueryOutcome, RefreshFacts, TpchFacts, TpchMetrics};
use dyno_facts::{CheckVerdict, Lang, Message, say};
use dyno_report::blocks::{
    Blocks, Cell, CellValue, PaperRows, PaperTable, Span, Style, TextLine, bad, coded, emphasis,
    lines, link, number, strong,
};
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Right, Short, Whole},
    grouped, unique,
};
use dyno_report::sections::{
    CountedOutcome, Judged, bad_if, count_outcomes, ended, notes, outcomes, place, separated,
    settings, target_of,
};
use dyno_report::{Experiment, Paper, Spread, Trial, query_settings};
use std::collections::BTreeSet;

/// An experiment with TPC-H.
pub(super) struct TpchSection<'a> {
    paper: &'a Paper,
    experiment: &'a Experiment,
    trials: Vec<TpchTrial<'a>>,
    /// Per target and test: the 22 queries at every degree.
    tables: Vec<TpchTable<'a>>,
    /// Published times of the same queries.
    published: Vec<PublishedSeconds<'a>>,
}

impl<'a> TpchSection<'a> {
    /// `None` if no trial is TPC-H.
    pub(super) fn new(paper: &'a Paper, experiment: &'a Experiment) -> Option<Self> {
        let trials = tpch_trials(paper, experiment);
        let (tables, published) = (tables(experiment, &trials), published(experiment));
        (!trials.is_empty()).then_some(TpchSection { paper, experiment, trials, tables, published })
    }

    /// The section with its charts.
    pub(super) fn blocks(&self, lang: Lang) -> Blocks {
        let mut blocks = self.disclosure_and_degrees();
        for table in &self.tables {
            add_queries(&self.published, table, &mut blocks);
            blocks.figures(charts::table_charts(self.paper, self.published.first(), table, lang));
            add_plans(self.paper, table, &mut blocks);
        }
        for published in &self.published {
            let (title, source) = (&published.table.title, &published.table.source);
            let mut words = vec![say!(published_title_source_source, title, source)];
            words.push(published.table.method.clone());
            words.extend(published.table.note.clone());
            words.push(say!(computed_speed_ups));
            blocks.fine(Message::sentences(&words));
        }
        self.add_events(&mut blocks);
        add_loads(&self.trials, &mut blocks);
        let targets: BTreeSet<&str> =
            self.trials.iter().map(|(trial, _)| trial.target.as_str()).collect();
        for database in
            self.paper.targets.iter().filter(|database| targets.contains(database.label.as_str()))
        {
            let (target, rows) = (&database.label, query_settings(&database.all_settings));
            let mut inner = Blocks::default();
            inner.table(settings(say!(query_settings_title, target), &rows));
            if !rows.is_empty() {
                let summary = say!(settings_of_that_decide_how_queries, target);
                blocks.details(summary, false, inner);
            }
        }
        add_formulas(&self.trials, &mut blocks);
        let rewrites = sentences(&self.trials, |facts| &facts.rewrites);
        if !rewrites.is_empty() {
            blocks.heading(4, "", say!(query_text_differences), "");
            blocks.list(Style::Plain, rewrites);
        }
        blocks.heading(4, "", say!(specification_deviations), "");
        let mut deviations = sentences(&self.trials, |facts| &facts.deviations);
        deviations.push(vec![coded(say!(the_tests_of_atomicity_consistency_isolation))]);
        deviations.push(vec![coded(say!(times_are_printed_as_they_were))]);
        blocks.list(Style::Plain, deviations);
        blocks
    }

    fn disclosure_and_degrees(&self) -> Blocks {
        let mut blocks = Blocks::default();
        let disclosure = say!(this_is_not_a_tpc_result_data);
        let line = vec![strong(say!(tpc_h_like_label)), Span::plain(" "), Span::plain(disclosure)];
        blocks.styled(Style::Disclosure, line);
        let rows = table_degrees(self.experiment, &self.tables);
        let title = say!(what_was_asked_for_and_reached);
        blocks.table(add_degree_columns(self.paper, PaperRows::new(title, rows), false));
        let degrees = words::degrees_set(&self.tables);
        degrees.iter().for_each(|sentence| blocks.fine(coded(sentence)));
        let wrong = executions(&self.trials).filter_map(|((trial, _), query)| {
            let answer = query.answer.as_ref()?;
            let key = (query.query, trial.target.as_str(), answer);
            (answer.verdict == CheckVerdict::Failed).then_some((key, trial.label.as_str()))
        });
        let mut wrong = grouped(wrong);
        wrong.sort_by_key(|((query, ..), _)| *query);
        blocks.table(
            PaperRows::new(bad(say!(wrong_answers)), &wrong)
                .look("text")
                .text(say!(query), |((query, ..), _)| format!("Q{query}"))
                .text(say!(target_column), |((_, target, _), _)| *target)
                .text(say!(trials), |(_, trials)| unique(trials.clone()).join(", "))
                .text(say!(held_against), |((.., answer), _)| &answer.against)
                .text(say!(rows_that_differ), |((.., answer), _)| lines(&answer.differences)),
        );
        blocks
    }

    /// Failures, refresh functions, caches.
    fn add_events(&self, blocks: &mut Blocks) {
        blocks.table(
            PaperRows::new(say!(queries_without_an_answer), failures(&self.trials))
                .look("text")
                .text(say!(trial_column), |((trial, _), _)| &trial.label)
                .text(say!(target_column), |((trial, _), _)| &trial.target)
                .col(say!(degree_column), Whole, |((_, facts), _)| facts.degree.asked)
                .text(say!(query), |(_, query)| format!("Q{}", query.query))
                .col(say!(stream), Whole, |(_, query)| query.stream)
                .text(say!(what_happened), |(_, query)| {
                    words::failure(&query.outcome, query.seconds)
                }),
        );
        let refreshes = self.trials.iter();
        let refreshes = refreshes
            .flat_map(|trial| trial.1.refreshes.iter().map(move |refresh| (*trial, refresh)));
        let title = say!(refresh_functions_function_1_inserts_orders);
        blocks.table(
            PaperRows::<(TpchTrial<'_>, &RefreshFacts)>::new(title, refreshes)
                .text(say!(trial_column), |((trial, _), _)| &trial.label)
                .text(say!(target_column), |((trial, _), _)| &trial.target)
                .col(say!(degree_column), Whole, |((_, facts), _)| facts.degree.asked)
                .col(say!(pair), Whole, |(_, refresh)| refresh.pair)
                .col(say!(function), Right, |(_, refresh)| format!("RF{}", refresh.function))
                .col(say!(rows), Whole, |(_, refresh)| refresh.rows)
                .strong(say!(seconds_column), Short, |(_, refresh)| refresh.seconds)
                .text(say!(ended), |(_, refresh)| {
                    match words::failure(&refresh.outcome, refresh.seconds) {
                        None => Span::plain(say!(well)),
                        Some(failure) => bad(failure),
                    }
                }),
        );
        let caches = columns(self.experiment, &self.trials).into_iter().filter_map(|column| {
            let measured = column.trials.iter().filter(|(_, facts)| !facts.queries.is_empty());
            let measured: Vec<&Trial> = measured.map(|(trial, _)| *trial).collect();
            let outcomes = count_outcomes(&measured, cache_outcome);
            (!measured.is_empty()).then_some((column, outcomes))
        });
        let caches: Vec<(Column<'_>, Vec<CountedOutcome>)> = caches.collect();
        blocks.table(
            PaperRows::new(say!(cache_contents_title), &caches)
                .look("text")
                .text(say!(target_column), |(column, _)| &column.point.target)
                .col(say!(degree_column), Whole, |(column, _)| column.degree)
                .text(say!(state), |(column, _)| words::proven_cache(&column.trials[0].1.cache))
                .text(say!(evidence_column), |(_, counted)| outcomes(counted, false)),
        );
    }
}

/// The sentences of all trials, each once, with the targets that it holds for unless those are all.
fn sentences(trials: &[TpchTrial<'_>], get: fn(&TpchFacts) -> &Vec<Message>) -> Vec<TextLine> {
    let target_count = unique_targets(trials.iter()).len();
    let sentences = unique(trials.iter().flat_map(|trial| get(trial.1).clone()).collect());
    let lines = sentences.iter().map(|sentence| {
        let with_it = unique_targets(trials.iter().filter(|trial| get(trial.1).contains(sentence)));
        let mut line = TextLine::new();
        if with_it.len() < target_count {
            line.extend([Span::plain(Message::list(&with_it)), Span::plain(say!(text_word))]);
        }
        line.push(coded(sentence));
        line
    });
    lines.collect()
}

/// The targets of trials, each once.
fn unique_targets<'a, 'b: 'a>(trials: impl Iterator<Item = &'a TpchTrial<'b>>) -> Vec<Message> {
    unique(trials.map(|(trial, _)| Message::from(&trial.target)).collect())
}

/// A degree of a table, by its place.
#[derive(Clone, Copy)]
struct TableDegree<'a> {
    experiment: &'a Experiment,
    table: &'a TpchTable<'a>,
    place: usize,
}

impl<'a> TableDegree<'a> {
    /// The trials at this degree.
    fn column(self) -> &'a Column<'a> {
        &self.table.columns[self.place]
    }
}

/// A figure of which less is better; of one that counts a query that was given up only a bound is known.
fn time(column: &Column<'_>, figure: Option<Spread>) -> Cell {
    Cell::from(figure.map(number)).bound(if column.is_penalized() { "≥" } else { "" })
}

/// A figure of which more is better.
fn rate(column: &Column<'_>, figure: fn(&TpchMetrics) -> Option<f64>) -> Cell {
    let bound = if column.is_penalized() { "≤" } else { "" };
    Cell::from(column.figure(figure).map(number)).bound(bound)
}

/// The total, with the queries and the trials that it lacks.
fn total(column: &Column<'_>) -> Cell {
    let (given_up, trial_count) = (column.penalized().len(), column.trials.len());
    let totals = column.facts().filter(|facts| facts.metrics.is_some()).count();
    time(column, column.total_s())
        .with_if(given_up > 0, || vec![bad(say!(with_given_up, n = given_up))])
        .with_if(totals > 0 && totals < trial_count, || {
            vec![bad(say!(n_of_all_trials, n = totals, all = trial_count))]
        })
}

fn answers_span(column: &Column<'_>) -> Span {
    let is_wrong =
        (1..=QUERIES).any(|query| verdict(column.facts(), query) == Some(CheckVerdict::Failed));
    bad_if(is_wrong, words::answers(column.facts()))
}

fn table_degrees<'a>(
    experiment: &'a Experiment,
    tables: &'a [TpchTable<'a>],
) -> impl Iterator<Item = TableDegree<'a>> {
    tables.iter().flat_map(move |table| {
        (0..table.columns.len()).map(move |place| TableDegree { experiment, table, place })
    })
}

/// All experiments with queries, for the summary of a paper.
pub(super) fn summary(paper: &Paper) -> PaperTable {
    let experiments = paper.experiments.iter();
    let tables: Vec<_> = experiments
        .map(|experiment| (experiment, tables(experiment, &tpch_trials(paper, experiment))))
        .collect();
    let rows = tables.iter().flat_map(|(experiment, tables)| table_degrees(experiment, tables));
    let rows = PaperRows::new(say!(tpc_h_like_the_22_queries), rows);
    let rows = rows.text(say!(experiment), |degree| {
        let mut experiments = paper.experiments.iter();
        let place = experiments.position(|experiment| std::ptr::eq(experiment, degree.experiment));
        let number = place.map_or(0, |place| place + 1);
        link(&degree.experiment.title, format!("#experiment-{number}"))
    });
    add_degree_columns(paper, rows, true).into()
}

/// Adds a row for each degree: the workers asked for and reached, and the figures.
fn add_degree_columns<'a>(
    paper: &'a Paper,
    rows: PaperRows<TableDegree<'a>>,
    is_summary: bool,
) -> PaperRows<TableDegree<'a>> {
    rows.text(say!(target_column), |degree| {
        target_of(degree.table.target, degree.column().point.status)
    })
    .text(say!(test), |degree| words::setup(degree.table.setup, degree.table.streams))
    .col(say!(degree_asked), Whole, |degree| degree.column().degree)
    .when(!is_summary, |rows| {
        rows.col(say!(workers_in_plans), Whole, |degree| {
            degree.column().facts().filter_map(|facts| facts.degree.got).max()
        })
        .col(say!(trials), Whole, |degree| degree.column().trials.len())
    })
    .strong(say!(total_s), Short, |degree| total(degree.column()))
    .col(say!(geometric_mean_column), Short, |degree| {
        time(degree.column(), degree.column().geometric_mean_s())
    })
    .col(say!(speed_up_of_the_total), Short, |degree| {
        degree.table.speedup(degree.place, Column::total_s).map(speedup_cell)
    })
    .if_any()
    .col(say!(power_like_size), Fixed(1), |degree| rate(degree.column(), |metrics| metrics.power))
    .if_any()
    .col(say!(throughput_like_size), Fixed(1), |degree| {
        rate(degree.column(), |metrics| metrics.throughput)
    })
    .if_any()
    .col(say!(qphh_like_size), Fixed(1), |degree| rate(degree.column(), |metrics| metrics.qphh))
    .if_any()
    .text(say!(answers), |degree| answers_span(degree.column()))
    .text(say!(notes), move |degree| notes(paper, &degree.column().point.checks))
}

fn speedup_cell(speedup: Speedup) -> Cell {
    number(speedup.factor).bound(speedup.bound)
}

/// A line of the table of queries.
#[derive(Clone, Copy)]
enum TableLine {
    Query(u8),
    Total,
    Mean,
}

fn add_queries(published: &[PublishedSeconds<'_>], table: &TpchTable<'_>, blocks: &mut Blocks) {
    let setup = words::setup(table.setup, table.streams);
    let title = [Message::from(table.target), setup];
    blocks.heading(4, "", Message::joined(&title, ": ", "："), "");
    blocks.table(query_table(published, table));
    if table.columns.iter().any(Column::is_penalized) {
        blocks.fine(match words::bounds(table.facts()) {
            Some(bounds) => say!(and_stand_where_a_query_was, bounds),
            None => say!(and_stand_where_a_query_was_given),
        });
    }
    if table.facts().any(|facts| facts.metrics.is_none()) {
        blocks.fine(say!(missing_query_rule));
    }
}

fn table_caption(table: &TpchTable<'_>) -> Message {
    let is_repeated = table.columns.iter().any(|column| column.trials.len() > 1);
    let title = match (table.streams > 1, is_repeated) {
        (true, _) => say!(query_seconds_of_streams),
        (false, true) => say!(seconds_of_each_query_medians_of_trials),
        (false, false) => say!(query_seconds_of_trial),
    };
    let parameters = words::parameters(table.facts());
    let parameters = parameters.map(|text| say!(parameters_parameters, parameters = text));
    Message::joined(&[title].into_iter().chain(parameters).collect::<Vec<_>>(), "; ", "；")
}

fn query_table(
    published_tables: &[PublishedSeconds<'_>],
    table: &TpchTable<'_>,
) -> PaperRows<TableLine> {
    let rows = (1..=QUERIES).map(TableLine::Query).chain([TableLine::Total, TableLine::Mean]);
    let first = table.columns.first().map_or(0, |column| column.degree);
    let is_stretch = ["throughput", "performance"].contains(&table.setup.test.as_str());
    let rows = PaperRows::new(table_caption(table), rows)
        .look("queries")
        .text(say!(query), |line| match line {
            TableLine::Query(query) => Cell::from(format!("Q{query}")),
            TableLine::Total if is_stretch => Cell::from(say!(length_of_the_test)).over(3),
            TableLine::Total => Cell::from(say!(total)).over(3),
            TableLine::Mean => Cell::from(say!(geometric_mean_of_all)).over(3),
        })
        .col(say!(rows), Whole, |line| {
            query_cell(line, |query| table.rows(query).map(CellValue::Range).into())
        })
        .text(say!(answer), |line| {
            query_cell(line, |query| verdict(table.facts(), query).map(verdict_span).into())
        })
        .group(say!(seconds_column), |rows| {
            table.columns.iter().fold(rows, |rows, column| {
                let title = say!(degree_degree, degree = column.degree.to_string());
                rows.strong(title, Short, move |line| match line {
                    TableLine::Query(query) => query_seconds(column.times(query)),
                    TableLine::Total => time(column, column.total_s()),
                    TableLine::Mean => time(column, column.geometric_mean_s()),
                })
            })
        });
    let rows = rows.group(say!(speed_up), |rows| {
        table.columns.iter().enumerate().skip(1).fold(rows, |rows, (place, column)| {
            rows.col(over(column.degree, first), Short, move |line| {
                let speedup = match line {
                    TableLine::Query(query) => table.query_speedup(place, query),
                    TableLine::Total => table.speedup(place, Column::total_s),
                    TableLine::Mean => table.speedup(place, Column::geometric_mean_s),
                };
                speedup.map(speedup_cell)
            })
        })
    });
    published_tables.iter().fold(rows, add_published).feet(2)
}

/// The cell of a query; a covered one in the lines of all queries.
fn query_cell(line: TableLine, cell: impl Fn(u8) -> Cell) -> Cell {
    match line {
        TableLine::Query(query) => cell(query),
        _ => Cell::covered(),
    }
}

/// `2, times as fast as 0`.
fn over(to: u32, from: u32) -> Message {
    say!(speed_up_column, to = to.to_string(), from = from.to_string())
}

/// Adds the published times of the same queries.
fn add_published(
    rows: PaperRows<TableLine>,
    published: &PublishedSeconds<'_>,
) -> PaperRows<TableLine> {
    let title = match published.scale {
        None => say!(published_column),
        Some(scale) => say!(published_scale_factor, scale = format::plain(scale)),
    };
    rows.group(title, |rows| {
        let rows = published.degrees.iter().fold(rows, |rows, degree| {
            let title = say!(s_degree_degree, degree = degree.to_string());
            rows.col(title, Short, |line| {
                published_cell(line, |query| published.at(query, *degree))
            })
            .class("theirs")
        });
        match published.degrees.as_slice() {
            [from, .., to] => rows
                .col(over(*to, *from), Short, |line| {
                    published_cell(line, |query| published.speedup(query))
                })
                .class("theirs"),
            _ => rows,
        }
    })
}

/// A published figure of a query or of all; none of these has a mean.
fn published_cell(line: TableLine, figure: impl Fn(Option<u8>) -> Option<f64>) -> Cell {
    match line {
        TableLine::Query(query) => Cell::from(figure(Some(query))),
        TableLine::Total => figure(None).into(),
        TableLine::Mean => Cell::blank(),
    }
}

fn verdict_span(verdict: CheckVerdict) -> Span {
    match verdict {
        CheckVerdict::Passed => Span::plain(say!(correct)),
        CheckVerdict::Failed => bad(say!(wrong)),
        CheckVerdict::NotMade => emphasis(say!(not_compared)),
    }
}

fn query_seconds(times: QueryTimes) -> Cell {
    let QueryTimes { seconds, executions, timed_out, failed, interrupted } = times;
    let Some(seconds) = seconds else {
        return match (failed, interrupted) {
            (0, 0) => Cell::missing(),
            (0, _) => say!(interrupted).into(),
            _ => bad(say!(failed)).into(),
        };
    };
    number(seconds)
        .bound(if timed_out > 0 { "≥" } else { "" })
        .with_if(timed_out > 0, || match executions {
            1 => vec![bad(say!(given_up))],
            all => vec![bad(say!(given_up_count, n = timed_out, all))],
        })
        .with_if(failed > 0, || vec![bad(say!(n_failed, n = failed))])
}

fn add_plans(paper: &Paper, table: &TpchTable<'_>, blocks: &mut Blocks) {
    let queries: BTreeSet<u8> = table
        .facts()
        .flat_map(|facts| &facts.queries)
        .filter(|facts| facts.plan.is_some())
        .map(|facts| facts.query)
        .collect();
    if queries.is_empty() {
        blocks.fine(say!(plans_of_were_not_taken, target = table.target));
        return;
    }
    let title = say!(plans_taken_apart_from_the_timed);
    let rows = PaperRows::new(title, queries).text(say!(query), |query: u8| format!("Q{query}"));
    let rows = table.columns.iter().fold(rows, |rows, column| {
        let degree = column.degree.to_string();
        rows.col(say!(workers_degree_degree, degree = &degree), Whole, |query| {
            column.plans(query).workers
        })
        .text(say!(plans_degree_degree, degree = &degree), |query| {
            let plans = column.plans(query);
            Cell::from(plan_links(paper, &plans))
                .with_if(plans.is_changed, || vec![bad(say!(plan_changed))])
        })
    });
    let mut inner = Blocks::default();
    inner.table(rows);
    let setup = words::setup(table.setup, table.streams);
    let mut line = vec![Span::plain(say!(plans_of_target_setup, target = table.target, setup))];
    let changed: BTreeSet<u8> = table.columns.iter().flat_map(Column::changed_plans).collect();
    if !changed.is_empty() {
        line.push(Span::plain(say!(text_word)));
        line.push(bad(say!(changed_between_repeats, queries = words::queries(changed))));
    }
    blocks.details(line, false, inner);
}

fn plan_links(paper: &Paper, plans: &QueryPlans<'_>) -> TextLine {
    let links = plans.links.iter().map(|(trial, plan): &(&Trial, &PlanFacts)| {
        let name = say!(trial_names, names = &trial.label);
        match &paper.runs[trial.run - 1].link {
            Some(to) => link(name, format!("{to}{}", plan.file)),
            None => Span::plain(name),
        }
    });
    separated(links, ", ")
}

/// Returns whether the caches held what they were to hold, and the proof.
fn cache_outcome(trial: &Trial) -> Judged {
    let cache =
        tpch_facts(trial).map(|facts| (facts.cache.verdict, facts.cache.evidence.as_slice()));
    match cache {
        None | Some((None, [])) => {
            (Some(CheckVerdict::NotMade), Some(say!(the_trial_has_no_record_of_what)))
        }
        Some((verdict, [])) => (verdict, None),
        Some((verdict, evidence)) => (verdict, Some(Message::sentences(evidence))),
    }
}

/// Loads of the data: a table per load, in the order of the trials.
fn add_loads(trials: &[TpchTrial<'_>], blocks: &mut Blocks) {
    let loads = grouped(trials.iter().filter_map(|(trial, facts)| {
        let load = facts.load.as_ref()?;
        Some(((trial.target.as_str(), facts.scale, load.finished_at.as_str()), load))
    }));
    if loads.is_empty() {
        blocks.fine(say!(how_and_when_the_data_were));
    }
    for ((target, scale, finished_at), loads) in &loads {
        let load = loads[0];
        let scale = format::plain(*scale);
        let mut title = vec![say!(load_of_at_scale_factor, target = *target, scale)];
        if !finished_at.is_empty() {
            title.push(say!(complete_at_time, time = *finished_at));
        }
        let size = load.size_bytes.map(|bytes| format::bytes(bytes as f64));
        title.extend(size.map(|size| say!(size_with_indexes, size)));
        let steps: Vec<&LoadStep> = load.steps.iter().filter(|step| !step.is_part()).collect();
        let steps_s: f64 = steps.iter().map(|step| step.seconds).sum();
        let warmed = steps.iter().filter(|step| step.name == "warm-up");
        let warmed_s: f64 = warmed.map(|step| step.seconds).sum();
        let total_s = load.seconds.map_or(steps_s, |seconds| seconds + warmed_s);
        let rows = steps.iter().map(|step| step.rows).sum();
        let total_row = LoadStep { name: String::new(), seconds: total_s, rows };
        let title = Message::joined(&title, ", ", "，");
        blocks.table(
            PaperRows::new(title, steps.into_iter().chain([&total_row]))
                .text(say!(step), |step| words::step(&step.name))
                .strong(say!(seconds_column), Short, |step| step.seconds)
                .col(say!(rows), Whole, |step| match step.rows {
                    0 => Cell::blank(),
                    rows => rows.into(),
                })
                .feet(1),
        );
        let mut words = Vec::new();
        // Rounding for the paper does not count as an overlap.
        if steps_s > total_s * 1.01 {
            words.push(say!(steps_overlap, seconds = format::short(steps_s)));
        }
        if load.attempts > 1 {
            words.push(say!(load_restarts, n = load.attempts.to_string()));
        }
        let pairs: BTreeSet<u32> = loads.iter().map(|load| load.refresh_pairs).collect();
        words.push(match pairs.last() {
            Some(0) | None => say!(no_refresh_function_has_changed_these),
            _ => say!(pairs_of_refresh_functions_that_had, n = words::numbers(&pairs)),
        });
        blocks.fine(Message::sentences(&words));
    }
}

fn add_formulas(trials: &[TpchTrial<'_>], blocks: &mut Blocks) {
    let with_formulas = trials.iter().filter_map(|(trial, facts)| {
        let formulas = facts.metrics.as_ref()?.formulas.as_slice();
        (!formulas.is_empty()).then_some((*trial, facts.degree.asked, formulas))
    });
    let rows: Vec<(&Trial, u32, &[Message])> = with_formulas.collect();
    if rows.is_empty() {
        return;
    }
    let mut inner = Blocks::default();
    inner.table(
        PaperRows::new(say!(formulas_with_the_numbers_of_each), rows)
            .look("text")
            .text(say!(trial_column), |(trial, ..)| &trial.label)
            .text(say!(target_column), |(trial, ..)| &trial.target)
            .col(say!(degree_column), Whole, |(_, degree, _)| degree)
            .text(say!(formulas), |(.., formulas)| lines(formulas)),
    );
    blocks.details(say!(how_the_metrics_are_computed), false, inner);
}

/// The trials of TPC-H one by one.
pub(super) fn trials(paper: &Paper) -> PaperRows<TpchTrial<'_>> {
    let rows = paper.trials.iter().filter_map(|trial| Some((trial, tpch_facts(trial)?)));
    PaperRows::new(say!(trials_title), rows)
        .text(say!(trial_column), |(t, _)| &t.label)
        .text(say!(experiment_target), |(t, _)| place(t))
        .text(say!(test), |(_, facts)| &facts.test)
        .col(say!(degree_column), Whole, |(_, facts)| facts.degree.asked)
        .col(say!(repeat), Whole, |(t, _)| t.summary.repeat)
        .col(say!(streams_column), Whole, |(t, _)| t.summary.workers)
        .text(say!(began), |(t, _)| &t.summary.started_at)
        .text(say!(ended), |(t, _)| ended(t.status))
        .col(say!(queries_answered), Whole, |(_, facts)| {
            count_queries(facts, &QueryOutcome::Answered)
        })
        .col(say!(given_up), Whole, |(_, facts)| count_queries(facts, &QueryOutcome::TimedOut))
        .col(say!(correct), Whole, |(_, facts)| {
            let verdicts = facts.queries.iter().filter_map(|query| query.verdict());
            verdicts.filter(|verdict| *verdict == CheckVerdict::Passed).count()
        })
        .strong(say!(total_s), Short, |(_, facts)| {
            facts.metrics.as_ref().map(|known| known.total_s)
        })
        .text(say!(notes), |(t, _)| notes(paper, &t.checks))
        .each(|(t, _), row| row.anchor = format!("trial-{}", t.label))
}

/// Number of queries that ended like this.
fn count_queries(facts: &TpchFacts, outcome: &QueryOutcome) -> usize {
    facts.queries.iter().filter(|query| query.outcome == *outcome).count()
}
