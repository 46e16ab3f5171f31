//! The section of an experiment that is TPC-H.

use super::evidence::{self, CacheRow, Told, WrongAnswer};
use super::tables::{Column, PublishedSeconds, QueryPlans, QueryTimes, Speedup, TpchTable};
use super::{QUERIES, TpchSection, words};
use super::{charts, load};
use crate::facts::{PlanFacts, QueryOutcome, TpchMetrics};
use crate::metrics::reported_s;
use dyno_facts::{CheckVerdict, Lang, Message, say};
use dyno_report::blocks::{
    Blocks, Cell, CellValue, PaperRows, Span, Style, TextLine, bad, coded, emphasis,
};
use dyno_report::blocks::{lines, link, number, spread, strong};
use dyno_report::format::{
    self,
    NumberFormat::{Fixed, Right, Short, Whole},
};
use dyno_report::sections::{bad_if, ended, notes, outcomes, place, settings, target_of};
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
        plans(paper, section, table, &mut blocks);
    }
    for own in &section.published {
        let (title, source) = (&own.title, &own.source);
        let mut words = vec![say!(published_title_source_source, title = title, source = source)];
        words.push(own.method.clone());
        words.extend(own.note.clone());
        words.push(say!(the_speed_ups_shown_here_are));
        blocks.fine(Message::sentences(&words));
    }
    events(experiment, section, &mut blocks);
    load::blocks(section, &mut blocks);
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
    let rewrites = evidence::told(&section.trials, |facts| &facts.rewrites);
    if !rewrites.is_empty() {
        let title = say!(where_the_queries_texts_differ_from);
        blocks.heading(4, "", title, "");
        blocks.list(Style::Plain, rewrites.iter().map(told).collect());
    }
    blocks.heading(4, "", say!(where_these_trials_depart_from_the), "");
    let mut deviations = evidence::told(&section.trials, |facts| &facts.deviations);
    deviations.extend(words::never().map(Told::of_all));
    blocks.list(Style::Plain, deviations.iter().map(told).collect());
    blocks
}

/// What a terminal shows of it.
pub(super) fn terminal(paper: &Paper, experiment: &Experiment, section: &TpchSection) -> Blocks {
    let mut blocks = head(paper, experiment, section);
    section.tables.iter().for_each(|table| queries(section, table, &mut blocks));
    events(experiment, section, &mut blocks);
    blocks
}

fn told(one: &Told) -> TextLine {
    let mut line = TextLine::new();
    if let Some(targets) = &one.targets {
        line.extend([Span::plain(targets), Span::plain(say!(text_word))]);
    }
    line.push(coded(&one.sentence));
    line
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
        words::setup(&self.table.setup)
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
    let disclosure =
        [strong(say!(tpc_h_like_2)), Span::plain(" "), Span::plain(words::disclosure())];
    blocks.styled(Style::Disclosure, disclosure.to_vec());
    blocks.table(reached(paper, experiment, section));
    let degrees = words::degrees_set(&section.tables);
    degrees.iter().for_each(|sentence| blocks.fine(coded(sentence)));
    blocks.table(
        PaperRows::new(bad(say!(wrong_answers)), &evidence::wrong(&section.trials))
            .look("text")
            .text(say!(query), |row: &WrongAnswer<'_>| format!("Q{}", row.query))
            .text(say!(target_2), |row| row.target)
            .text(say!(trials), |row| row.trials.join(", "))
            .text(say!(held_against), |row| &row.answer.against)
            .text(say!(rows_that_differ), |row| lines(&row.answer.differences)),
    );
    blocks
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
    let bound = match speedup.bound {
        Some("at least") => "≥",
        Some(_) => "≤",
        None => "",
    };
    spread(all, if speedup.is_spread { 2 } else { 1 }).bound(bound)
}

/// A line of the table of queries.
#[derive(Clone, Copy)]
enum TableLine {
    Query(u8),
    Total,
    Mean,
}

fn queries(section: &TpchSection<'_>, table: &TpchTable<'_>, blocks: &mut Blocks) {
    let title = [Message::from(table.target), words::setup(&table.setup)];
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
        () if table.setup.streams > 1 => say!(seconds_of_each_query_medians_of),
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
                let format = if is_reported(table) { Fixed(1) } else { Short };
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
fn published(rows: PaperRows<TableLine>, own: &PublishedSeconds) -> PaperRows<TableLine> {
    let title = match own.scale {
        None => say!(published_2),
        Some(scale) => {
            say!(published_scale_factor, scale = format::plain(scale))
        }
    };
    rows.group(title, |rows| {
        let rows = own.degrees.iter().enumerate().fold(rows, |rows, (place, degree)| {
            let title = say!(s_degree_degree, degree = degree.to_string());
            let cell = |row| match row {
                TableLine::Query(query) => Cell::from(own.seconds[usize::from(query) - 1][place]),
                TableLine::Total => own.totals[place].into(),
                TableLine::Mean => Cell::blank(),
            };
            rows.col(title, Short, cell).class("theirs")
        });
        let ends = own.degrees.first().zip(own.degrees.last()).filter(|(a, b)| a != b);
        rows.when(ends.is_some(), |rows| {
            let (from, to) = ends.map_or((0, 0), |(from, to)| (*from, *to));
            rows.col(over(to, from), Short, |row| match row {
                TableLine::Query(query) => Cell::from(own.speedups[usize::from(query) - 1]),
                TableLine::Total => own.total_speedup.into(),
                TableLine::Mean => Cell::blank(),
            })
            .class("theirs")
        })
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

fn seconds(line: TableLine, column: &Column<'_>, table: &TpchTable<'_>) -> Cell {
    let shown = |times: Spread| match is_reported(table) {
        true => Spread {
            min: reported_s(times.min),
            median: reported_s(times.median),
            max: reported_s(times.max),
        },
        false => times,
    };
    let total = |figure: Option<Spread>| Cell::from(figure.map(shown).map(number));
    match line {
        TableLine::Query(query) => query_seconds(&column.times(query), shown),
        TableLine::Total => total(column.total_s()).bound(bound(column)),
        TableLine::Mean => total(column.geometric_mean_s()).bound(bound(column)),
    }
}

fn query_seconds(cell: &QueryTimes, shown: impl Fn(Spread) -> Spread) -> Cell {
    let Some(times) = cell.seconds.map(shown) else {
        return match (cell.failed, cell.interrupted) {
            (0, 0) => Cell::missing(),
            (0, _) => say!(interrupted).into(),
            _ => bad(say!(failed)).into(),
        };
    };
    let given_up = || match cell.executions {
        1 => vec![bad(say!(given_up))],
        all => {
            let (n, all) = (cell.timed_out.to_string(), all.to_string());
            vec![bad(say!(given_up_of, n = n, all = all))]
        }
    };
    number(times)
        .bound(if cell.timed_out > 0 { "≥" } else { "" })
        .with_if(cell.timed_out > 0, given_up)
        .with_if(cell.failed > 0, || vec![bad(say!(n_failed, n = cell.failed.to_string()))])
}

fn plans(paper: &Paper, section: &TpchSection<'_>, table: &TpchTable<'_>, blocks: &mut Blocks) {
    let planned = table.planned();
    if planned.is_empty() {
        blocks.fine(say!(plans_of_were_not_taken, target = table.target));
        return;
    }
    let executions = section.tables.iter().flat_map(TpchTable::facts).flat_map(|own| &own.queries);
    let has_pages = { executions }.any(|own| own.plan.is_some() && own.pages_read.is_some());
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
        .when(has_pages, |rows| {
            rows.col(say!(pages_read_at_most), Whole, |query| column.plans(query).pages_read)
        })
    });
    let mut inner = Blocks::default();
    inner.table(rows);
    let setup = words::setup(&table.setup);
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
    let caches = evidence::caches(&section.trials, &experiment.points);
    blocks.table(
        PaperRows::new(say!(queries_without_an_answer), evidence::failures(&section.trials))
            .look("text")
            .text(say!(trial_2), |(trial, ..)| &trial.label)
            .text(say!(target_2), |(trial, ..)| &trial.target)
            .col(say!(degree_2), Whole, |(_, facts, _)| facts.degree.asked)
            .text(say!(query), |(.., own)| format!("Q{}", own.query))
            .col(say!(stream), Whole, |(.., own)| own.stream)
            .text(say!(what_happened), |(.., own)| words::failure(&own.outcome, own.seconds)),
    );
    let title = say!(refresh_functions_function_1_inserts_orders);
    blocks.table(
        PaperRows::new(title, evidence::refreshes(&section.trials))
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
    blocks.table(
        PaperRows::new(say!(what_the_caches_held_when_the), &caches)
            .look("text")
            .text(say!(target_2), |row: &CacheRow| &row.target)
            .col(say!(degree_2), Whole, |row| row.degree)
            .text(say!(state), |row| &row.state)
            .text(say!(what_proves_it), |row| outcomes(&row.outcomes, false)),
    );
}

fn formulas(section: &TpchSection<'_>, blocks: &mut Blocks) {
    let rows = evidence::formulas(&section.trials);
    if rows.is_empty() {
        return;
    }
    let mut inner = Blocks::default();
    inner.table(
        PaperRows::new(say!(formulas_with_the_numbers_of_each), rows)
            .look("text")
            .text(say!(trial_2), |(trial, ..)| &trial.label)
            .text(say!(target_2), |(trial, ..)| &trial.target)
            .col(say!(degree_2), Whole, |(_, facts, _)| facts.degree.asked)
            .text(say!(formulas), |(.., own)| lines(own)),
    );
    blocks.details(say!(how_the_metrics_are_computed), false, inner);
}

/// The trials of TPC-H one by one.
pub(super) fn trials(paper: &Paper) -> PaperRows<&Trial> {
    let facts = |t: &'_ Trial| super::facts(t).cloned().unwrap_or_default();
    let outcome = |t: &Trial, wanted: &QueryOutcome| {
        facts(t).queries.iter().filter(|query| query.outcome == *wanted).count()
    };
    let correct = |t: &Trial| {
        let verdicts = facts(t).queries.into_iter().filter_map(|query| query.answer);
        verdicts.filter(|answer| answer.verdict == CheckVerdict::Passed).count()
    };
    let own = paper.trials.iter().filter(|trial| super::facts(trial).is_some());
    PaperRows::new(say!(trials_of_tpc_h_in_the), own)
        .text(say!(trial_2), |t| &t.label)
        .text(say!(experiment_target), place)
        .text(say!(test), |t| facts(t).test)
        .col(say!(degree_2), Whole, |t| facts(t).degree.asked)
        .col(say!(repeat), Whole, |t| t.summary.repeat)
        .col(say!(streams_2), Whole, |t| t.summary.workers)
        .text(say!(began), |t| &t.summary.started_at)
        .text(say!(ended), |t| ended(t.status))
        .col(say!(queries_answered), Whole, |t| outcome(t, &QueryOutcome::Answered))
        .col(say!(given_up), Whole, |t| outcome(t, &QueryOutcome::TimedOut))
        .col(say!(correct), Whole, correct)
        .col(say!(total_s), Short, |t| facts(t).metrics.map(|metrics| metrics.total_s))
        .class("strong")
        .text(say!(notes), |t| notes(paper, &t.checks))
        .each(|t, row| row.anchor = format!("trial-{}", t.label))
}
