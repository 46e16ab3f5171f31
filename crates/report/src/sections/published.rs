//! Results against published figures.

use super::{clauses, note_spans};
use crate::blocks::{Blocks, Cell, PaperRows, Span, link, spread};
use crate::charts::classes;
use crate::evidence::comparison::{condition_name, published_metric};
use crate::evidence::{BesidePublished, PerVcpu, Published};
use crate::evidence::{Comparison, ComparisonRow};
use crate::evidence::{KeyRow, Paper};
use crate::families::family_of;
use crate::format::{
    self,
    NumberFormat::{Percent, Right, Short, Whole},
};
use crate::text::{Lang, Message};
use dyno_facts::{PublishedRow, say};

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("8", say!(against_published_figures), "published");
    // The short edition has them once: the rows of a table that several experiments stand beside have them, too.
    let is_short = paper.is_short();
    if !(paper.beside.is_empty() || is_short && !paper.comparisons.is_empty()) {
        blocks.table(beside(paper));
        blocks.fine(say!(vcpu_of_a_target_are_those));
    }
    for comparison in &paper.comparisons {
        blocks.figures(classes::of_comparison(paper, comparison, lang));
        blocks.table(compared(paper, comparison));
        let mut words = vec![comparison.counts.clone()];
        words.push(say!(the_conditions_are_those_of_the));
        words.push(say!(published_method, method = &comparison.method));
        words.extend(comparison.note.clone());
        words.retain(|text| !text.is_empty());
        blocks.fine(Message::sentences(&words));
    }
    let is_compared =
        |table: &Published| paper.comparisons.iter().any(|own| own.title == table.table.title);
    for (index, experiment) in paper.experiments.iter().enumerate() {
        for table in &experiment.published {
            let is_whole = table.table.rows.iter().all(|row| !row.targets.is_empty());
            let is_told =
                family_of(experiment).is_some_and(|family| family.shows(experiment, &table.table));
            if is_told {
                let experiment = say!(section_of_experiment, experiment = &experiment.title);
                let said = say!(
                    published_beside_results,
                    title = &table.table.title,
                    source = &table.table.source,
                    place = experiment
                );
                blocks.paragraph(link(said, format!("#experiment-{}", index + 1)));
            } else if !(is_compared(table) && is_whole) {
                rows_of(paper, table, Some(index), &mut blocks);
            }
        }
    }
    if !is_short {
        paper.other_published.iter().for_each(|table| rows_of(paper, table, None, &mut blocks));
    }
    let has_tables = paper.experiments.iter().any(|experiment| !experiment.published.is_empty());
    if paper.other_published.is_empty() && !has_tables {
        blocks.paragraph(say!(the_suite_names_no_published_figures));
    }
    blocks
}

fn beside(paper: &Paper) -> PaperRows<&BesidePublished> {
    let is_counted = paper.beside.iter().any(|row| row.per_vcpu.is_some());
    let vcpu = |row: &BesidePublished, of: fn(PerVcpu) -> (f64, f64)| {
        row.per_vcpu.map(|per| {
            let (figure, vcpu) = of(per);
            Cell::from(figure).with(format!("{} vCPU", format::plain(vcpu)))
        })
    };
    let title = say!(each_result_beside_the_published_row);
    PaperRows::new(title, &paper.beside)
        .look("text")
        .text(say!(experiment), |row| &row.experiment)
        .text(say!(target_2), |row| &row.target)
        .text(say!(published_row), |row| {
            Cell::from(&row.row).with_if(!row.is_named, || vec![Span::plain(say!(the_nearest_one))])
        })
        .text(say!(metric), |row| &row.metric)
        .col(say!(measured), Short, |row| {
            spread(row.measured, row.repeats).with(note_spans(paper, &row.checks))
        })
        .class("strong")
        .col(say!(published), Short, |row| row.published)
        .class("theirs")
        .col(say!(ratio), Short, |row| ratio_cell(paper, Some(row.ratio), &row.checks))
        .when(is_counted, |table| {
            table.group(say!(per_vcpu_2), |table| {
                table
                    .col(say!(measured), Short, |row| {
                        vcpu(row, |per| (per.measured, per.vcpu_here))
                    })
                    .class("strong")
                    .col(say!(published), Short, |row| {
                        vcpu(row, |per| (per.published, per.vcpu_there))
                    })
                    .class("theirs")
                    .col(say!(ratio), Short, |row| {
                        ratio_cell(paper, row.per_vcpu.map(|per| per.ratio), &row.checks)
                    })
            })
        })
        .text(say!(conditions_that_differ), |row| clauses(&row.differences))
}

/// A ratio to a published figure; of a figure that a check forbids there is none.
fn ratio_cell(paper: &Paper, ratio: Option<f64>, checks: &[usize]) -> Cell {
    let forbidding: Vec<usize> = paper.forbidding(checks).map(|check| check.number).collect();
    match forbidding.is_empty() {
        true => ratio.into(),
        false => super::notes(paper, &forbidding),
    }
}

fn compared<'a>(paper: &'a Paper, comparison: &'a Comparison) -> PaperRows<&'a ComparisonRow> {
    let title = say!(
        measured_beside_published_source,
        title = &comparison.title,
        source = &comparison.source
    );
    let rows = &comparison.rows;
    let table = PaperRows::new(title, rows)
        .text(say!(published_row), |row| Cell::from(&row.label).with(&row.description));
    let conditions = comparison.conditions.iter().enumerate();
    let table = conditions.fold(table, |table, (place, name)| {
        table.col(condition_name(name), Right, |row| &row.conditions[place])
    });
    let table = table
        .text(say!(measured_in_its_place), |row| Cell::from(&row.target).with(&row.setup))
        .col(&comparison.load, Whole, |row| row.workers)
        .when(rows.iter().any(|row| row.hot_share.is_some()), |table| {
            table.col(say!(hot_share_percent), Percent, |row| row.hot_share)
        })
        .when(rows.iter().any(|row| row.size_to_memory.is_some()), |table| {
            table.col(say!(data_to_memory), Short, |row| row.size_to_memory)
        });
    comparison.columns.iter().enumerate().fold(table, |table, (place, name)| {
        table.group(name, |table| {
            table
                .col(say!(measured), Short, |row| {
                    let pair = &row.pairs[place];
                    pair.measured.map(|measured| {
                        spread(measured, pair.repeats).with(note_spans(paper, &pair.checks))
                    })
                })
                .class("strong")
                .col(say!(published), Whole, |row| row.pairs[place].published)
                .class("grey")
                .col(say!(ratio), Short, |row| {
                    let pair = &row.pairs[place];
                    ratio_cell(paper, pair.ratio, &pair.checks)
                })
        })
    })
}

/// A published row, or a result of this paper above them.
#[derive(Clone, Copy)]
enum Source<'a> {
    Ours(KeyRow<'a>),
    Theirs(&'a PublishedRow),
}

/// What is known of a target under the name of a published condition.
fn stated(paper: &Paper, row: KeyRow<'_>, name: &str) -> Cell {
    let Some(target) = paper.targets.iter().find(|target| target.label == row.point.target) else {
        return Cell::blank();
    };
    let facts = &target.facts;
    let known = match name {
        "vcpu" | "compute_vcpu" => facts.vcpu,
        "memory_gib" | "compute_memory_gib" => facts.memory_gib,
        "duration_s" => row.experiment.shortest_window_s,
        _ => None,
    };
    known.map_or_else(Cell::blank, Cell::from)
}

fn rows_of(paper: &Paper, shown: &Published, index: Option<usize>, blocks: &mut Blocks) {
    let table = &shown.table;
    let title = say!(published_figures_source, title = &table.title, source = &table.source);
    let ours = paper.key_rows().into_iter().filter(|row| Some(row.index) == index);
    let rows = ours.map(Source::Ours).chain(table.rows.iter().map(Source::Theirs));
    let rows = PaperRows::new(title, rows).look("published").text(say!(row), |row| match row {
        Source::Ours(row) => say!(this_paper_target, target = &row.point.target),
        Source::Theirs(row) => Message::from(&row.label),
    });
    let rows = shown.conditions.iter().fold(rows, |rows, name| {
        let cell = |row| match row {
            Source::Ours(row) if *name == shown.load_level => Cell::from(row.point.load()),
            Source::Ours(row) => {
                let scale = row.point.scale().filter(|scale| scale.name == name);
                scale.map_or_else(|| stated(paper, row, name), |scale| scale.value.into())
            }
            Source::Theirs(row) => row.conditions.get(name).cloned().unwrap_or_default().into(),
        };
        rows.col(condition_name(name), Whole, cell).class("wrap")
    });
    let rows = shown.metrics.iter().fold(rows, |rows, name| {
        let cell = |row| match row {
            Source::Ours(row) => {
                let found = row.point.metric(name).map(|found| found.median);
                let found = found.map_or_else(Cell::blank, Cell::from).class("strong");
                found.with(note_spans(paper, &row.point.checks))
            }
            Source::Theirs(row) => Cell::from(row.metrics.get(name).copied()),
        };
        rows.col(published_metric(name), Short, cell).class("wrap")
    });
    let rows = rows.text(say!(counterpart_of), |row| match row {
        Source::Ours(_) => String::new(),
        Source::Theirs(row) => row.targets.join(", "),
    });
    blocks.table(rows.each(|row, made| {
        made.class = if matches!(row, Source::Theirs(_)) { "theirs" } else { "" };
    }));
    let note = table.note.clone();
    let words: Vec<Message> = [table.method.clone()].into_iter().chain(note).collect();
    blocks.fine(Message::sentences(&words));
}
