//! The section of an experiment that is TPC-H.

use super::tables::{Column, PublishedSeconds, QueryPlans, QueryTimes, Speedup, TpchTable};
use super::{QUERIES, TpchSection, charts, executions, facts, failures, words};
use crate::facts::{
    AnswerFacts, LoadStep, PlanFacts, QueryOutcome, RefreshFacts, TpchFacts, TpchLoad, TpchMetrics,
};
use crate::metrics::reported_s;
use dyno_facts::{CheckVerdict, Lang, Message, say};
use dyno_report::blocks::{
    Blocks, Cell, CellValue, PaperRows, Span, Style, TextLine, bad, coded, emphasis, lines, link,
    number, spread, strong,
};
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Right, Short, Whole},
    unique,
};
use dyno_report::sections::{
    CountedOutcome, Judged, bad_if, count_outcomes, ended, notes, outcomes, place, settings,
    target_of,
};
use dyno_report::{Experiment, Paper, PaperTarget, Spread, Trial, settings_of_queries};

/// The section with its charts.
pub(super) fn blocks(
    paper: &Paper,
    experiment: &Experiment,
    section: &TpchSection<'_>,
    lang: Lang,
) -> Blocks {
    let mut blocks = head(paper, experiment, section);
    for table in &section.tables {
        queries(section, table, &mut blocks);
        blocks.figures(charts::of_table(paper, section, table, lang));
        plans(paper, table, &mut blocks);
    }
    for own in &section.published {
        let (title, source) = (&own.table.title, &own.table.source);
        let mut words = vec![say!(published_title_source_source, title = title, source = source)];
        words.push(own.table.method.clone());
        words.extend(own.table.note.clone());
        words.push(say!(the_speed_ups_shown_here_are));
        blocks.fine(Message::sentences(&words));
    }
    events(experiment, section, &mut blocks);
    loads(section, &mut blocks);
    let is_own =
        |target: &&PaperTarget| section.trials.iter().any(|own| own.target == target.label);
    for own in paper.targets.iter().filter(is_own) {
        let rows = settings_of_queries(&own.all_settings);
        if rows.is_empty() {
            continue;
        }
        let mut inner = Blocks::default();
        let target = &own.label;
        let title = say!(settings_of_for_queries_before_the, target = target);
        inner.table(settings(title, &rows));
        let summary = say!(settings_of_that_decide_how_queries, target = target);
        blocks.details(summary, false, inner);
    }
    formulas(section, &mut blocks);
    let rewrites = sentences(&section.trials, |facts| &facts.rewrites);
    if !rewrites.is_empty() {
        blocks.heading(4, "", say!(where_the_queries_texts_differ_from), "");
        blocks.list(Style::Plain, rewrites);
    }
    blocks.heading(4, "", say!(where_these_trials_depart_from_the), "");
    let mut deviations = sentences(&section.trials, |facts| &facts.deviations);
    let in_every_run =
        [say!(the_tests_of_atomicity_consistency_isolation), say!(times_are_printed_as_they_were)];
    deviations.extend(in_every_run.iter().map(|sentence| vec![coded(sentence)]));
    blocks.list(Style::Plain, deviations);
    blocks
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment, section: &TpchSection) -> Blocks {
    let mut blocks = head(paper, experiment, section);
    section.tables.iter().for_each(|table| queries(section, table, &mut blocks));
    events(experiment, section, &mut blocks);
    blocks
}

/// The sentences of all trials, each once, with the targets that it holds for where those are not all.
fn sentences(trials: &[&Trial], get: fn(&TpchFacts) -> &Vec<Message>) -> Vec<TextLine> {
    let from_trial = |trial: &&Trial| facts(trial).map(get).cloned().unwrap_or_default();
    let targets = |with: Option<&Message>| {
        let with = trials.iter().filter(|own| with.is_none_or(|one| from_trial(own).contains(one)));
        unique(with.map(|trial| Message::from(&trial.target)).collect())
    };
    let all = targets(None).len();
    let line = |sentence: &Message| {
        let with_it = targets(Some(sentence));
        let mut line = TextLine::new();
        if with_it.len() < all {
            line.extend([Span::plain(Message::list(&with_it)), Span::plain(say!(text_word))]);
        }
        line.push(coded(sentence));
        line
    };
    unique(trials.iter().flat_map(from_trial).collect()).iter().map(line).collect()
}

/// A degree of a table, by its place.
#[derive(Clone, Copy)]
pub(super) struct TableDegree<'a> {
    table: &'a TpchTable<'a>,
    place: usize,
}

impl<'a> TableDegree<'a> {
    fn column(self) -> &'a Column<'a> {
        &self.table.columns[self.place]
    }

    fn setup(self) -> Message {
        words::setup(self.table.setup, self.table.streams)
    }

    fn answers(self) -> Span {
        let count = self.column().answers();
        bad_if(!count.wrong.is_empty(), words::answers(&count))
    }
}

fn degrees<'a>(tables: &'a [TpchTable<'a>]) -> impl Iterator<Item = TableDegree<'a>> {
    let of_table = |table: &'a TpchTable<'a>| {
        (0..table.columns.len()).map(move |place| TableDegree { table, place })
    };
    tables.iter().flat_map(of_table)
}

/// All experiments with queries, for the summary of a paper.
pub(super) fn summary<'a>(
    paper: &'a Paper,
    tables: &'a [Vec<TpchTable<'a>>],
) -> PaperRows<(usize, &'a Experiment, TableDegree<'a>)> {
    let of = |index, experiment| move |own| (index, experiment, own);
    let experiments = paper.experiments.iter().zip(tables).enumerate();
    let all = experiments
        .flat_map(|(index, (experiment, tables))| degrees(tables).map(of(index, experiment)));
    let whole = |figure: Option<Spread>, column: &Column<'_>| {
        figure.map(|figure| spread(figure, column.metrics().count()).bound(bound(column)))
    };
    let title = say!(tpc_h_like_the_22_queries);
    PaperRows::new(title, all)
        .text(say!(experiment), |(index, experiment, _)| {
            link(&experiment.title, format!("#experiment-{}", index + 1))
        })
        .text(say!(target_test), |(.., own)| Cell::from(own.table.target).with(own.setup()))
        .col(say!(degree_2), Whole, |(.., own)| own.column().degree)
        .col(say!(total_s), Short, |(.., own)| whole(own.column().total_s(), own.column()))
        .class("strong")
        .col(say!(geometric_mean_s_2), Short, |(.., own)| {
            whole(own.column().geometric_mean_s(), own.column())
        })
        .col(say!(speed_up_of_the_total), Short, |(.., own)| {
            own.table.total_speedup(own.place).map(factor)
        })
        .text(say!(answers), |(.., own)| own.answers())
        .text(say!(notes), |(_, experiment, own)| {
            notes(paper, &experiment.points[own.column().point].checks)
        })
}

/// The sign before a time that is only known to be at least that.
fn bound(column: &Column<'_>) -> &'static str {
    if column.is_penalised() { "≥" } else { "" }
}

fn head(paper: &Paper, experiment: &Experiment, section: &TpchSection) -> Blocks {
    let mut blocks = Blocks::default();
    let disclosure = say!(this_is_not_a_tpc_result_data);
    let line = vec![strong(say!(tpc_h_like_2)), Span::plain(" "), Span::plain(disclosure)];
    blocks.styled(Style::Disclosure, line);
    blocks.table(reached(paper, experiment, section));
    let degrees = words::degrees_set(&section.tables);
    degrees.iter().for_each(|sentence| blocks.fine(coded(sentence)));
    blocks.table(
        PaperRows::new(bad(say!(wrong_answers)), &wrong_answers(&section.trials))
            .look("text")
            .text(say!(query), |row: &WrongAnswer<'_>| format!("Q{}", row.query))
            .text(say!(target_2), |row| row.target)
            .text(say!(trials), |row| row.trials.join(", "))
            .text(say!(held_against), |row| &row.answer.against)
            .text(say!(rows_that_differ), |row| lines(&row.answer.differences)),
    );
    blocks
}

/// An answer that differs from the one that it was held against.
struct WrongAnswer<'a> {
    query: u8,
    target: &'a str,
    /// Labels of the trials in which it differs so.
    trials: Vec<&'a str>,
    answer: &'a AnswerFacts,
}

/// The wrong answers; those that differ alike in several trials are one.
fn wrong_answers<'a>(trials: &[&'a Trial]) -> Vec<WrongAnswer<'a>> {
    let mut rows: Vec<WrongAnswer<'a>> = Vec::new();
    for (trial, _, facts) in executions(trials) {
        let wrong = facts.answer.as_ref().filter(|own| own.verdict == CheckVerdict::Failed);
        let Some(answer) = wrong else { continue };
        let (label, target, query) = (trial.label.as_str(), trial.target.as_str(), facts.query);
        let known = rows
            .iter_mut()
            .find(|row| (row.target, row.query, row.answer) == (target, query, answer));
        match known {
            Some(known) if known.trials.contains(&label) => {}
            Some(known) => known.trials.push(label),
            None => rows.push(WrongAnswer { query, target, trials: vec![label], answer }),
        }
    }
    rows.sort_by_key(|row| row.query);
    rows
}

fn reached<'a>(
    paper: &'a Paper,
    experiment: &'a Experiment,
    section: &'a TpchSection<'_>,
) -> PaperRows<TableDegree<'a>> {
    let has = |of: fn(&TpchMetrics) -> Option<f64>| {
        degrees(&section.tables).any(|own| own.column().figure(of).is_some())
    };
    let title = say!(what_was_asked_for_and_reached);
    let point = |own: TableDegree<'a>| &experiment.points[own.column().point];
    PaperRows::new(title, degrees(&section.tables))
        .text(say!(target_2), move |own| target_of(own.table.target, point(own).status))
        .text(say!(test), |own| own.setup())
        .col(say!(degree_asked), Whole, |own| own.column().degree)
        .col(say!(workers_in_plans), Whole, |own| own.column().got())
        .col(say!(trials), Whole, |own| own.column().trials.len())
        .col(say!(total_s), Short, |own| total(own.column()))
        .class("strong")
        .col(say!(geometric_mean_s_2), Short, |own| {
            Cell::from(own.column().geometric_mean_s().map(number)).bound(bound(own.column()))
        })
        .when(has(|metrics| metrics.power), |table| {
            table.col(say!(power_like_size), Fixed(1), |own| rate(own, |metrics| metrics.power))
        })
        .when(has(|metrics| metrics.throughput), |table| {
            table.col(say!(throughput_like_size), Fixed(1), |own| {
                rate(own, |metrics| metrics.throughput)
            })
        })
        .when(has(|metrics| metrics.qphh), |table| {
            table.col(say!(qphh_like_size), Fixed(1), |own| rate(own, |metrics| metrics.qphh))
        })
        .text(say!(answers), |own| own.answers())
        .text(say!(notes), move |own| notes(paper, &point(own).checks))
}

/// The total of a column, with the queries and the trials that it lacks.
fn total(column: &Column<'_>) -> Cell {
    let (penalised, totals) = (column.penalised().len(), column.metrics().count());
    Cell::from(column.total_s().map(number))
        .bound(bound(column))
        .with_if(penalised > 0, || vec![bad(say!(with_given_up, n = penalised.to_string()))])
        .with_if(totals > 0 && totals < column.trials.len(), || {
            let (n, all) = (totals.to_string(), column.trials.len().to_string());
            vec![bad(say!(n_of_all_trials, n = n, all = all))]
        })
}

/// A figure of which more is better.
fn rate(own: TableDegree<'_>, of: fn(&TpchMetrics) -> Option<f64>) -> Cell {
    let column = own.column();
    Cell::from(column.figure(of).map(number)).bound(if column.is_penalised() { "≤" } else { "" })
}

fn factor(speedup: Speedup) -> Cell {
    let all = Spread { min: speedup.min, median: speedup.median, max: speedup.max };
    spread(all, if speedup.is_spread { 2 } else { 1 }).bound(speedup.bound)
}

/// A line of the table of queries.
#[derive(Clone, Copy)]
enum TableLine {
    Query(u8),
    Total,
    Mean,
}

fn queries(section: &TpchSection<'_>, table: &TpchTable<'_>, blocks: &mut Blocks) {
    let setup = words::setup(table.setup, table.streams);
    let title = [Message::from(table.target), setup];
    blocks.heading(4, "", Message::joined(&title, ": ", "："), "");
    blocks.table(of_queries(section, table));
    if table.columns.iter().any(Column::is_penalised) {
        let bounds: Vec<String> = table.timeouts_s().iter().map(|s| format::plain(*s)).collect();
        blocks.fine(match bounds.is_empty() {
            false => say!(and_stand_where_a_query_was, bounds = bounds.join(" / ")),
            true => say!(and_stand_where_a_query_was_given),
        });
    }
    if table.facts().any(|facts| facts.metrics.is_none()) {
        blocks.fine(say!(where_a_query_is_missing_or));
    }
    if is_reported(table) {
        blocks.fine(say!(times_are_reported_to_a_tenth));
    }
}

fn caption(table: &TpchTable<'_>) -> Message {
    let title = match () {
        () if table.streams > 1 => say!(seconds_of_each_query_medians_of),
        () if table.columns.iter().any(|column| column.trials.len() > 1) => {
            say!(seconds_of_each_query_medians_of_trials)
        }
        () => say!(seconds_of_each_query_2),
    };
    match table.parameters() {
        None => title,
        Some(known) => {
            let known = say!(parameters_parameters, parameters = known);
            Message::joined(&[title, known], "; ", "；")
        }
    }
}

fn of_queries<'a>(section: &'a TpchSection<'_>, table: &'a TpchTable<'_>) -> PaperRows<TableLine> {
    let rows = (1..=QUERIES).map(TableLine::Query).chain([TableLine::Total, TableLine::Mean]);
    let first = table.columns.first().map_or(0, |column| column.degree);
    let covered = |line, cell: &dyn Fn(u8) -> Cell| match line {
        TableLine::Query(query) => cell(query),
        _ => Cell::covered(),
    };
    let rows = PaperRows::new(caption(table), rows)
        .look("queries")
        .text(say!(query), |line| match line {
            TableLine::Query(query) => Cell::from(format!("Q{query}")),
            TableLine::Total
                if ["throughput", "performance"].contains(&table.setup.test.as_str()) =>
            {
                Cell::from(say!(length_of_the_test)).over(3)
            }
            TableLine::Total => Cell::from(say!(total)).over(3),
            TableLine::Mean => Cell::from(say!(geometric_mean_of_all)).over(3),
        })
        .col(say!(rows), Whole, |line| {
            covered(line, &|query| {
                let rows = table.rows(query);
                rows.map(|(least, most)| CellValue::Range([least as f64, most as f64])).into()
            })
        })
        .text(say!(answer), |line| covered(line, &|query| answer(table.answer(query))))
        .group(say!(seconds_2), |rows| {
            table.columns.iter().fold(rows, |rows, column| {
                let title = say!(degree_degree, degree = column.degree.to_string());
                let format = if is_reported(table) { Fixed(decimals(column)) } else { Short };
                rows.col(title, format, move |line| seconds(line, column, table)).class("strong")
            })
        });
    let rows = rows.group(say!(speed_up), |rows| {
        table.columns.iter().enumerate().skip(1).fold(rows, |rows, (place, column)| {
            rows.col(over(column.degree, first), Short, move |line| {
                let speedup = match line {
                    TableLine::Query(query) => table.query_speedup(place, query),
                    TableLine::Total => table.total_speedup(place),
                    TableLine::Mean => table.speedup(place, Column::geometric_mean_s),
                };
                speedup.map(factor)
            })
        })
    });
    section.published.iter().fold(rows, published).feet(2)
}

/// `2, times as fast as 0`.
fn over(to: u32, from: u32) -> Message {
    say!(to_over_from, to = to.to_string(), from = from.to_string())
}

/// The published times of the same queries beside one's own.
fn published(rows: PaperRows<TableLine>, own: &PublishedSeconds<'_>) -> PaperRows<TableLine> {
    let title = match own.scale {
        None => say!(published_2),
        Some(scale) => say!(published_scale_factor, scale = format::plain(scale)),
    };
    let cell = |line, figure: &dyn Fn(Option<u8>) -> Option<f64>| match line {
        TableLine::Query(query) => Cell::from(figure(Some(query))),
        TableLine::Total => figure(None).into(),
        TableLine::Mean => Cell::blank(),
    };
    rows.group(title, |rows| {
        let rows = own.degrees.iter().enumerate().fold(rows, |rows, (place, degree)| {
            let title = say!(s_degree_degree, degree = degree.to_string());
            rows.col(title, Short, |line| cell(line, &|query| own.at(query, place))).class("theirs")
        });
        match own.degrees.as_slice() {
            [from, .., to] => rows
                .col(over(*to, *from), Short, |line| cell(line, &|query| own.speedup(query)))
                .class("theirs"),
            _ => rows,
        }
    })
}

fn answer(verdict: Option<CheckVerdict>) -> Cell {
    verdict
        .map(|verdict| match verdict {
            CheckVerdict::Passed => Span::plain(say!(correct)),
            CheckVerdict::Failed => bad(say!(wrong)),
            CheckVerdict::NotMade => emphasis(say!(not_compared)),
        })
        .into()
}

/// Whether times are reported as the specification has it: of its own tests.
fn is_reported(table: &TpchTable<'_>) -> bool {
    table.setup.test != "queries"
}

/// Digits after the point of times that are reported: one, or as many as the bound has at which a query was given up.
fn decimals(column: &Column<'_>) -> u8 {
    let bounds = column.facts().filter_map(|facts| facts.timeout_s);
    let digits = bounds
        .filter(|_| column.is_penalised())
        .map(|bound| bound.to_string().split_once('.').map_or(1, |(_, digits)| digits.len()));
    digits.max().unwrap_or(1).min(9) as u8
}

/// Times as they are shown. What is only known to be at least so long is rounded down: more is not proven.
fn times_cell(times: Spread, is_bound: bool, column: &Column<'_>, table: &TpchTable<'_>) -> Cell {
    let factor = 10_f64.powi(decimals(column).into());
    let rounded = |seconds: f64| match (is_reported(table), is_bound) {
        (false, _) => seconds,
        (true, false) => reported_s(seconds),
        // Binary fractions lie a little below what was set.
        (true, true) => (seconds * factor + 1e-6).floor() / factor,
    };
    let (min, median, max) = (rounded(times.min), rounded(times.median), rounded(times.max));
    number(Spread { min, median, max }).bound(if is_bound { "≥" } else { "" })
}

fn seconds(line: TableLine, column: &Column<'_>, table: &TpchTable<'_>) -> Cell {
    let total = |figure: Option<Spread>| {
        Cell::from(figure.map(|figure| times_cell(figure, column.is_penalised(), column, table)))
    };
    match line {
        TableLine::Query(query) => query_seconds(query, column, table),
        TableLine::Total => total(column.total_s()),
        TableLine::Mean => total(column.geometric_mean_s()),
    }
}

fn query_seconds(query: u8, column: &Column<'_>, table: &TpchTable<'_>) -> Cell {
    let QueryTimes { seconds, executions, timed_out, failed, interrupted } = column.times(query);
    let Some(times) = seconds else {
        return match (failed, interrupted) {
            (0, 0) => Cell::missing(),
            (0, _) => say!(interrupted).into(),
            _ => bad(say!(failed)).into(),
        };
    };
    let given_up = || match executions {
        1 => vec![bad(say!(given_up))],
        all => vec![bad(say!(given_up_of, n = timed_out.to_string(), all = all.to_string()))],
    };
    times_cell(times, timed_out > 0, column, table)
        .with_if(timed_out > 0, given_up)
        .with_if(failed > 0, || vec![bad(say!(n_failed, n = failed.to_string()))])
}

fn plans(paper: &Paper, table: &TpchTable<'_>, blocks: &mut Blocks) {
    let planned = table.planned();
    if planned.is_empty() {
        blocks.fine(say!(plans_of_were_not_taken, target = table.target));
        return;
    }
    let title = say!(plans_taken_apart_from_the_timed);
    let rows = PaperRows::new(title, planned).text(say!(query), |query: u8| format!("Q{query}"));
    let rows = table.columns.iter().enumerate().fold(rows, |rows, (place, column)| {
        let degree = column.degree.to_string();
        rows.col(say!(workers_degree_degree, degree = &degree), Whole, |query| {
            column.plans(query).workers
        })
        .text(say!(plans_degree_degree, degree = &degree), |query| {
            let plans = column.plans(query);
            let differs = place > 0 && table.differs_from_first(place, query);
            Cell::from(plan_links(paper, &plans))
                .with_if(plans.is_changed, || vec![bad(say!(changed_between_repeats_2))])
                .with_if(differs, || {
                    let first = table.columns[0].degree.to_string();
                    vec![Span::plain(say!(other_than_at_degree, degree = first))]
                })
        })
    });
    let mut inner = Blocks::default();
    inner.table(rows);
    let setup = words::setup(table.setup, table.streams);
    let mut line =
        vec![Span::plain(say!(plans_of_target_setup, target = table.target, setup = setup))];
    let mut changed: Vec<u8> = table.columns.iter().flat_map(Column::changed_plans).collect();
    if !changed.is_empty() {
        changed.sort_unstable();
        changed.dedup();
        line.push(Span::plain(say!(text_word)));
        line.push(bad(say!(changed_between_repeats, queries = words::queries(&changed))));
    }
    blocks.details(line, false, inner);
}

fn plan_links(paper: &Paper, plans: &QueryPlans<'_>) -> TextLine {
    let one = |(trial, plan): &(&Trial, &PlanFacts)| {
        let name = say!(trial_names, names = &trial.label);
        match &paper.runs[trial.run - 1].link {
            Some(to) => link(name, format!("{to}{}", plan.file)),
            None => Span::plain(name),
        }
    };
    dyno_report::sections::separated(plans.links.iter().map(one), ", ")
}

/// Failures, refresh functions, caches.
fn events(experiment: &Experiment, section: &TpchSection<'_>, blocks: &mut Blocks) {
    blocks.table(
        PaperRows::new(say!(queries_without_an_answer), failures(&section.trials))
            .look("text")
            .text(say!(trial_2), |(trial, ..)| &trial.label)
            .text(say!(target_2), |(trial, ..)| &trial.target)
            .col(say!(degree_2), Whole, |(_, facts, _)| facts.degree.asked)
            .text(say!(query), |(.., own)| format!("Q{}", own.query))
            .col(say!(stream), Whole, |(.., own)| own.stream)
            .text(say!(what_happened), |(.., own)| words::failure(&own.outcome, own.seconds)),
    );
    let with_facts = || section.trials.iter().filter_map(|trial| Some((*trial, facts(trial)?)));
    let refreshes = with_facts()
        .flat_map(|(trial, facts)| facts.refreshes.iter().map(move |own| (trial, facts, own)));
    let title = say!(refresh_functions_function_1_inserts_orders);
    blocks.table(
        PaperRows::<(&Trial, &TpchFacts, &RefreshFacts)>::new(title, refreshes)
            .text(say!(trial_2), |(trial, ..)| &trial.label)
            .text(say!(target_2), |(trial, ..)| &trial.target)
            .col(say!(degree_2), Whole, |(_, facts, _)| facts.degree.asked)
            .col(say!(pair), Whole, |(.., own)| own.pair)
            .col(say!(function), Right, |(.., own)| format!("RF{}", own.function))
            .col(say!(rows), Whole, |(.., own)| own.rows)
            .col(say!(seconds_2), Short, |(.., own)| own.seconds)
            .class("strong")
            .text(say!(ended), |(.., own)| match words::failure(&own.outcome, own.seconds) {
                None => Span::plain(say!(well)),
                Some(failure) => bad(failure),
            }),
    );
    let caches: Vec<(&str, &TpchFacts, Vec<CountedOutcome>)> = experiment
        .points
        .iter()
        .filter_map(|point| {
            let own =
                section.trials.iter().copied().filter(|own| point.trials.contains(&own.label));
            let first = own.clone().find_map(facts)?;
            let measured: Vec<&Trial> =
                own.filter(|own| facts(own).is_some_and(|own| !own.queries.is_empty())).collect();
            let outcomes = count_outcomes(&measured, cache_outcome);
            (!measured.is_empty()).then_some((point.target.as_str(), first, outcomes))
        })
        .collect();
    blocks.table(
        PaperRows::new(say!(what_the_caches_held_when_the), &caches)
            .look("text")
            .text(say!(target_2), |row| row.0)
            .col(say!(degree_2), Whole, |row| row.1.degree.asked)
            .text(say!(state), |row| words::proven_cache(&row.1.cache))
            .text(say!(what_proves_it), |row| outcomes(&row.2, false)),
    );
}

/// Whether the caches held what they were to hold, and what proves it.
fn cache_outcome(trial: &Trial) -> Judged {
    let cache = facts(trial).map(|facts| (facts.cache.verdict, facts.cache.evidence.as_slice()));
    match cache {
        None | Some((None, [])) => {
            (Some(CheckVerdict::NotMade), Some(say!(the_trial_has_no_record_of_what)))
        }
        Some((verdict, [])) => (verdict, None),
        Some((verdict, evidence)) => (verdict, Some(Message::sentences(evidence))),
    }
}

/// Below this row count, beginning and ending dominate the time.
const MIN_ROWS_FOR_A_RATE: u64 = 1000;
/// Parts of a step that store nothing and take less of the whole only make the table long.
const MIN_PART_SHARE: f64 = 0.01;

/// One load of a target.
struct Load<'a> {
    target: &'a str,
    scale: f64,
    load: &'a TpchLoad,
    /// Fewest and most pairs of refresh functions that had been applied when a trial began.
    refresh_pairs: (u32, u32),
}

impl<'a> Load<'a> {
    fn whole_steps(&self) -> impl Iterator<Item = &'a LoadStep> {
        self.load.steps.iter().filter(|step| !step.is_part())
    }

    fn shown_steps(&self) -> impl Iterator<Item = &'a LoadStep> {
        let min_s = self.steps_s() * MIN_PART_SHARE;
        let is_shown = move |step: &&LoadStep| step.rows > 0 || step.seconds >= min_s;
        self.load.steps.iter().filter(move |step| !step.is_part() || is_shown(step))
    }

    /// Sum of the steps, seconds.
    fn steps_s(&self) -> f64 {
        self.whole_steps().map(|step| step.seconds).sum()
    }

    /// Seconds of the whole load, which may be fewer.
    fn total_s(&self) -> f64 {
        let warmed = self.whole_steps().filter(|step| step.name == "warm-up");
        let warmed_s: f64 = warmed.map(|step| step.seconds).sum();
        self.load.seconds.map_or(self.steps_s(), |seconds| seconds + warmed_s)
    }
}

/// How the data were loaded: a table per load, in the order of the trials.
fn loads(section: &TpchSection<'_>, blocks: &mut Blocks) {
    let mut loads: Vec<Load<'_>> = Vec::new();
    for trial in &section.trials {
        let Some(facts) = facts(trial) else { continue };
        let Some(load) = &facts.load else { continue };
        let (target, scale, pairs) = (trial.target.as_str(), facts.scale, load.refresh_pairs);
        let is_same = |known: &&mut Load<'_>| {
            (known.target, &known.load.finished_at, known.scale)
                == (target, &load.finished_at, scale)
        };
        match loads.iter_mut().find(is_same) {
            Some(Load { refresh_pairs: (min, max), .. }) => {
                (*min, *max) = (pairs.min(*min), pairs.max(*max));
            }
            None => loads.push(Load { target, scale, load, refresh_pairs: (pairs, pairs) }),
        }
    }
    if loads.is_empty() {
        blocks.fine(say!(how_and_when_the_data_were));
    }
    for load in &loads {
        blocks.table(load_steps(load));
        blocks.fine(Message::sentences(&load_words(load)));
    }
}

/// A row for each step, and one for all.
fn load_steps<'a>(load: &Load<'a>) -> PaperRows<Option<&'a LoadStep>> {
    let Load { target, scale, load: TpchLoad { finished_at, size_bytes, .. }, .. } = load;
    let mut title = say!(load_of_at_scale_factor, target = *target, scale = format::plain(*scale));
    if !finished_at.is_empty() {
        title = Message::joined(&[title, say!(complete_at_time, time = finished_at)], ", ", "，");
    }
    if let Some(bytes) = size_bytes {
        let size = say!(size_with_indexes, size = format::bytes(*bytes as f64));
        title = Message::joined(&[title, size], ": ", "：");
    }
    let strong = |step: Option<&LoadStep>| !step.is_some_and(LoadStep::is_part);
    PaperRows::new(title, load.shown_steps().map(Some).chain([None]))
        .text(say!(step), |step| match step {
            Some(step) => words::step(&step.name),
            None => say!(all_steps),
        })
        .col(say!(seconds_2), Short, |step| {
            let seconds = step.map_or_else(|| load.total_s(), |step| step.seconds);
            Cell::from(seconds).class(if strong(step) { "strong" } else { "" })
        })
        .col(say!(rows), Whole, |step| match step {
            Some(LoadStep { rows: 0, .. }) => Cell::blank(),
            Some(step) => step.rows.into(),
            None => load.whole_steps().map(|step| step.rows).sum::<u64>().into(),
        })
        .col(say!(rows_per_s), Whole, |step| match step {
            Some(step) if step.rows >= MIN_ROWS_FOR_A_RATE && step.seconds > 0.0 => {
                Cell::from(step.rows as f64 / step.seconds)
            }
            _ => Cell::blank(),
        })
        .each(|step, row| row.class = if strong(step) { "" } else { "part" })
        .feet(1)
}

fn load_words(load: &Load<'_>) -> Vec<Message> {
    let mut words = Vec::new();
    if load.shown_steps().any(LoadStep::is_part) {
        words.push(say!(tables_of_a_step_are_worked));
    }
    // What is rounded for the paper is no overlap.
    if load.steps_s() > load.total_s() * 1.01 {
        words.push(say!(steps_overlap, seconds = format::short(load.steps_s())));
    }
    if load.load.attempts > 1 {
        words.push(say!(the_load_was_begun_times_the, n = load.load.attempts.to_string()));
    }
    words.push(match load.refresh_pairs {
        (_, 0) => say!(no_refresh_function_has_changed_these),
        (min, max) if min == max => say!(pairs_of_refresh_functions_that_had, n = min.to_string()),
        (min, max) => say!(
            pairs_of_refresh_functions_that_had_been,
            least = min.to_string(),
            most = max.to_string()
        ),
    });
    words
}

fn formulas(section: &TpchSection<'_>, blocks: &mut Blocks) {
    let with_formulas = section.trials.iter().filter_map(|trial| {
        let facts = facts(trial)?;
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
            .text(say!(trial_2), |(trial, ..)| &trial.label)
            .text(say!(target_2), |(trial, ..)| &trial.target)
            .col(say!(degree_2), Whole, |(_, degree, _)| degree)
            .text(say!(formulas), |(.., own)| lines(own)),
    );
    blocks.details(say!(how_the_metrics_are_computed), false, inner);
}

/// The trials of TPC-H one by one.
pub(super) fn trials(paper: &Paper) -> PaperRows<(&Trial, &TpchFacts)> {
    let outcome = |facts: &TpchFacts, wanted: &QueryOutcome| {
        facts.queries.iter().filter(|query| query.outcome == *wanted).count()
    };
    let correct = |facts: &TpchFacts| {
        let verdicts = facts.queries.iter().filter_map(|query| query.answer.as_ref());
        verdicts.filter(|answer| answer.verdict == CheckVerdict::Passed).count()
    };
    let own = paper.trials.iter().filter_map(|trial| Some((trial, facts(trial)?)));
    PaperRows::new(say!(trials_of_tpc_h_in_the), own)
        .text(say!(trial_2), |(t, _)| &t.label)
        .text(say!(experiment_target), |(t, _)| place(t))
        .text(say!(test), |(_, facts)| &facts.test)
        .col(say!(degree_2), Whole, |(_, facts)| facts.degree.asked)
        .col(say!(repeat), Whole, |(t, _)| t.summary.repeat)
        .col(say!(streams_2), Whole, |(t, _)| t.summary.workers)
        .text(say!(began), |(t, _)| &t.summary.started_at)
        .text(say!(ended), |(t, _)| ended(t.status))
        .col(say!(queries_answered), Whole, |(_, own)| outcome(own, &QueryOutcome::Answered))
        .col(say!(given_up), Whole, |(_, own)| outcome(own, &QueryOutcome::TimedOut))
        .col(say!(correct), Whole, |(_, facts)| correct(facts))
        .col(say!(total_s), Short, |(_, own)| own.metrics.as_ref().map(|known| known.total_s))
        .class("strong")
        .text(say!(notes), |(t, _)| notes(paper, &t.checks))
        .each(|(t, _), row| row.anchor = format!("trial-{}", t.label))
}
