//! Results against published figures.

use super::*;

/// Adds section 8: each result next to its published row, whole tables, and published figures of others.
pub(super) fn blocks(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    let (results, comparisons) = (paper.beside(), paper.comparisons());
    // The short edition has them once: a table that is compared with several experiments has these results, too.
    let is_short = paper.is_short();
    if !(results.is_empty() || is_short && !comparisons.is_empty()) {
        blocks.table(results_table(paper, &results));
        blocks.fine(say!(vcpu_of_target_note));
    }
    for comparison in &comparisons {
        let table = &comparison.published.table;
        blocks.figures(charts::comparison_charts(paper, comparison, lang));
        blocks.table(comparison_table(paper, comparison));
        let mut sentences = vec![comparison.counts.clone()];
        sentences.push(say!(published_conditions_note));
        sentences.push(say!(published_method, method = &table.method));
        sentences.extend(table.note.clone());
        sentences.retain(|text| !text.is_empty());
        blocks.fine(Message::sentences(&sentences));
    }
    for (index, experiment) in paper.experiments.iter().enumerate() {
        for table in &experiment.published {
            let has_all_counterparts = table.table.rows.iter().all(|row| !row.targets.is_empty());
            let is_compared = comparisons
                .iter()
                .any(|comparison| comparison.published.table.title == table.table.title);
            let is_shown = find_family(experiment)
                .is_some_and(|family| family.shows(experiment, &table.table));
            if is_shown {
                let place = say!(section_of_experiment, experiment = &experiment.title);
                let (title, source) = (&table.table.title, &table.table.source);
                let text = say!(published_beside_results, title, source, place);
                blocks.paragraph(link(text, format!("#experiment-{}", index + 1)));
            } else if !(is_compared && has_all_counterparts) {
                published_rows(paper, table, Some(index), blocks);
            }
        }
    }
    if !is_short {
        paper.other_published.iter().for_each(|table| published_rows(paper, table, None, blocks));
    }
    let has_tables = paper.experiments.iter().any(|experiment| !experiment.published.is_empty());
    if paper.other_published.is_empty() && !has_tables {
        blocks.paragraph(say!(the_suite_names_no_published_figures));
    }
}

fn measured_cell(paper: &Paper, pair: &Pair<'_>) -> Option<Cell> {
    let cell = spread(pair.measured()?, pair.repeats());
    Some(cell.with(note_spans(paper, pair.checks())))
}

/// A ratio to a published figure; of a figure that a check forbids there is none.
fn ratio_cell(paper: &Paper, ratio: Option<f64>, pair: &Pair<'_>) -> Cell {
    let forbidding = paper.forbidding_numbers(pair.checks());
    if forbidding.is_empty() { ratio.into() } else { notes(paper, &forbidding) }
}

fn results_table<'a>(
    paper: &'a Paper,
    rows: &'a [BesidePublished<'a>],
) -> PaperRows<&'a BesidePublished<'a>> {
    PaperRows::new(say!(results_next_to_published), rows)
        .look("text")
        .text(say!(experiment), |row| &row.experiment.title)
        .text(say!(target_column), |row| &row.target.label)
        .text(say!(published_row), |row| {
            let cell = Cell::from(&row.pair.row.label);
            cell.with_if(!row.is_named, || vec![Span::plain(say!(the_nearest_one))])
        })
        .text(say!(metric), |row| published_metric(row.pair.metric))
        .strong(say!(measured), Short, |row| measured_cell(paper, &row.pair))
        .col(say!(published), Short, |row| row.pair.published())
        .class("theirs")
        .col(say!(ratio), Short, |row| ratio_cell(paper, row.pair.ratio(), &row.pair))
        .when(rows.iter().any(|row| row.vcpu.is_some()), |table| {
            table.group(say!(per_vcpu_column), |table| {
                table
                    .strong(say!(measured), Short, |row| per_vcpu_cell(row, 0))
                    .col(say!(published), Short, |row| per_vcpu_cell(row, 1))
                    .class("theirs")
                    .col(say!(ratio), Short, |row| {
                        let ratio = per_vcpu(row).map(|[measured, published]| measured / published);
                        ratio_cell(paper, ratio, &row.pair)
                    })
            })
        })
        .text(say!(conditions_that_differ), |row| join_clauses(&row.differences))
}

/// The measured and the published figure by the virtual CPUs of each, if these are known.
fn per_vcpu(row: &BesidePublished<'_>) -> Option<[f64; 2]> {
    let [measured_vcpu, published_vcpu] = row.vcpu?;
    let (measured, published) = (row.pair.measured()?.median, row.pair.published()?);
    Some([measured / measured_vcpu, published / published_vcpu])
}

fn per_vcpu_cell(row: &BesidePublished<'_>, place: usize) -> Option<Cell> {
    let vcpu = format!("{} vCPU", format::plain(row.vcpu?[place]));
    Some(Cell::from(per_vcpu(row)?[place]).with(vcpu))
}

fn comparison_table<'a>(
    paper: &'a Paper,
    comparison: &'a Comparison<'a>,
) -> PaperRows<&'a ComparisonRow<'a>> {
    let published = &comparison.published.table;
    let (title, source) = (&published.title, &published.source);
    let title = say!(measured_beside_published_source, title, source);
    let table = PaperRows::new(title, &comparison.rows)
        .text(say!(published_row), |row| Cell::from(&row.first.row.label).with(&row.description));
    let conditions = comparison.conditions.iter().enumerate();
    let table = conditions.fold(table, |table, (place, name)| {
        table.col(condition_name(name), Right, |row| &row.conditions[place])
    });
    let table = table
        .text(say!(measured_in_its_place), |row| {
            let level = row.first.point.and_then(|point| point.level.as_ref());
            Cell::from(row.target).with(level.map(|level| level.setup.clone()).unwrap_or_default())
        })
        .col(&comparison.load, Whole, |row| row.first.point.map_or(0.0, Point::load))
        .col(say!(hot_share_percent), Percent, |row| row.first.point?.data.as_ref()?.hot_share)
        .if_any()
        .col(say!(data_to_memory), Short, |row| row.first.point?.data.as_ref()?.size_to_memory)
        .if_any();
    comparison.columns.iter().enumerate().fold(table, |table, (place, name)| {
        table.group(name, |table| {
            table
                .strong(say!(measured), Short, |row| measured_cell(paper, &row.pairs[place]?))
                .col(say!(published), Whole, |row| row.pairs[place]?.published())
                .class("gray")
                .col(say!(ratio), Short, |row| {
                    let pair = row.pairs[place]?;
                    Some(ratio_cell(paper, pair.ratio(), &pair))
                })
        })
    })
}

/// A published row, or a result of this paper above them.
#[derive(Clone, Copy)]
enum Source<'a> {
    Measured(KeyRow<'a>),
    Published(&'a PublishedRow),
}

/// The value of a target for the name of a published condition.
fn condition_cell(paper: &Paper, row: KeyRow<'_>, name: &str) -> Cell {
    let Some(target) = paper.target(&row.point.target) else { return Cell::blank() };
    let facts = &target.facts;
    let value = match name {
        "vcpu" | "compute_vcpu" => facts.vcpu,
        "memory_gib" | "compute_memory_gib" => facts.memory_gib,
        "duration_s" => row.experiment.shortest_window_s,
        _ => None,
    };
    value.map_or_else(Cell::blank, Cell::from)
}

fn published_rows(paper: &Paper, published: &Published, index: Option<usize>, blocks: &mut Blocks) {
    let table = &published.table;
    let title = say!(published_figures_source, title = &table.title, source = &table.source);
    let measured = paper.key_rows().into_iter().filter(|row| Some(row.index) == index);
    let rows = measured.map(Source::Measured).chain(table.rows.iter().map(Source::Published));
    let rows = PaperRows::new(title, rows).look("published").text(say!(row), |row| match row {
        Source::Measured(row) => say!(this_paper_target, target = &row.point.target),
        Source::Published(row) => Message::from(&row.label),
    });
    let rows = published.conditions.iter().fold(rows, |rows, name| {
        let rows = rows.col(condition_name(name), Whole, |row| match row {
            Source::Measured(row) if *name == published.load_level => Cell::from(row.point.load()),
            Source::Measured(row) => {
                let scale = row.point.scale().filter(|scale| scale.name == name);
                scale.map_or_else(|| condition_cell(paper, row, name), |scale| scale.value.into())
            }
            Source::Published(row) => row.conditions.get(name).cloned().unwrap_or_default().into(),
        });
        rows.class("wrap")
    });
    let rows = published.metrics.iter().fold(rows, |rows, name| {
        let rows = rows.col(published_metric(name), Short, |row| match row {
            Source::Measured(row) => {
                let median = row.point.metric(name).map(|spread| spread.median);
                let cell = median.map_or_else(Cell::blank, Cell::from).class("strong");
                cell.with(note_spans(paper, &row.point.checks))
            }
            Source::Published(row) => Cell::from(row.metrics.get(name).copied()),
        });
        rows.class("wrap")
    });
    let rows = rows.text(say!(counterpart_column), |row| match row {
        Source::Measured(_) => String::new(),
        Source::Published(row) => row.targets.join(", "),
    });
    blocks.table(rows.each(|row, table_row| {
        table_row.class = if matches!(row, Source::Published(_)) { "theirs" } else { "" };
    }));
    let words = [table.method.clone()].into_iter().chain(table.note.clone());
    blocks.fine(Message::sentences(&words.collect::<Vec<_>>()));
}
