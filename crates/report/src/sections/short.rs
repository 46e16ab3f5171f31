//! The edition for readers in a hurry: results chapter by chapter in one table and small charts, the method in a
//! table. The full edition has the rest in its appendix or alongside each experiment.

use super::*;

/// Higher charts are drawn as wide as the page.
const MAX_SMALL_HEIGHT: f64 = 400.0;
/// Charts of a chapter.
const MAX_CHARTS: usize = 6;
/// Rows of a chapter above which only the best load level of each target is shown.
const MAX_ROWS: usize = 40;
/// Tables of a family for each pass.
const MAX_PASS_TABLES: usize = 2;

/// Number of tables for each pass: fewer if the paper has several runs.
fn max_pass_tables(paper: &Paper) -> usize {
    if is_short_multi_run(paper) { 1 } else { MAX_PASS_TABLES }
}

/// Leaves out what a page shows on demand; of headings, the contents name those of sections only.
pub(super) fn shortened(blocks: Vec<Block>) -> Vec<Block> {
    let blocks = blocks.into_iter().filter(|block| !matches!(block, Block::Details { .. }));
    let blocks = blocks.map(|block| match block {
        Block::Heading(mut heading) => {
            heading.is_listed &= heading.level == 2;
            Block::Heading(heading)
        }
        block => block,
    });
    blocks.collect()
}

/// Adds the method: a table of experiments, and the sentences that they share.
pub(super) fn method(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.paragraph(Message::sentences(&method::general_rules(paper)));
    blocks.table(
        PaperRows::new(say!(experiments_and_their_options), &paper.experiments)
            .look("text")
            .text(say!(experiment), |experiment| &experiment.title)
            .text(say!(what_is_executed), |experiment| &experiment.test)
            .text(say!(options_word), |experiment| {
                let options = experiment.options.iter();
                separated(options.map(|(name, value)| code(format!("{name}={value}"))), " ")
            })
            .col(say!(planned_window_s), Whole, |experiment| experiment.duration_s),
    );
    let sentences = paper.experiments.iter().flat_map(|experiment| {
        let mut sentences = method::trial_rules(paper, experiment);
        sentences.extend(method::describe_comparison(experiment));
        sentences.extend(method::renewals(experiment));
        let objective = experiment.objective.as_ref();
        let objective = objective.map(|objective| say!(search_objective, objective));
        sentences.into_iter().chain(objective)
    });
    blocks.paragraph(Message::sentences(&unique(sentences.collect())));
}

/// Adds the results, chapter by chapter, without what only the full edition has.
pub(super) fn results(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    if is_short_multi_run(paper) {
        blocks.fine(say!(notes_are_those_that_forbid));
    }
    for (place, (title, experiments)) in results::chapters(paper).into_iter().enumerate() {
        let number = place + 1;
        blocks.heading(3, &format!("6.{number}"), title, &format!("chapter-{number}"));
        chapter_blocks(paper, &experiments, lang, blocks);
    }
    results::costs(paper, blocks);
    if !paper.faults().is_empty() {
        blocks.heading(3, "", say!(failover_and_durability), "failover");
        let (kept_blocks, figures) =
            first_tables(fault::blocks(paper, lang), max_pass_tables(paper));
        blocks.figures(figures.into_iter().take(1));
        blocks.extend(kept_blocks);
    }
    blocks.fine(say!(full_edition_contents));
}

/// Charts alongside each other, what families disclose, one table of all load levels, and the tables of families.
fn chapter_blocks(
    paper: &Paper,
    experiments: &[(usize, &Experiment)],
    lang: Lang,
    blocks: &mut Blocks,
) {
    let mut charts: Vec<Drawing> = Vec::new();
    let mut disclosed: Vec<Block> = Vec::new();
    let mut tables = Blocks::default();
    // Those of which their family has shown its own tables.
    let mut with_tables: Vec<usize> = Vec::new();
    let has_one_experiment = experiments.len() == 1;
    for (index, experiment) in experiments {
        let figures = match find_family(experiment)
            .and_then(|family| family.section(paper, experiment, lang))
        {
            Some(section) => {
                let max_tables = if experiment.is_pass() { max_pass_tables(paper) } else { 1 };
                let (kept_blocks, figures) = first_tables(section, max_tables);
                let (disclosures, family_tables): (Vec<Block>, Vec<Block>) = kept_blocks
                    .into_iter()
                    .partition(|block| matches!(block, Block::Paragraph { .. }));
                let new_disclosures: Vec<Block> =
                    disclosures.into_iter().filter(|block| !disclosed.contains(block)).collect();
                disclosed.extend(new_disclosures);
                with_tables.push(*index);
                tables.heading(4, "", &experiment.title, &format!("experiment-{}", index + 1));
                tables.extend(family_tables);
                figures
            }
            None => charts::experiment_charts(paper, experiment, lang),
        };
        charts.extend(figures.into_iter().next().map(|chart| {
            if has_one_experiment { chart } else { add_title(chart, experiment, lang) }
        }));
    }
    blocks.extend(disclosed);
    charts.truncate(MAX_CHARTS);
    let is_pair = charts.iter().filter(|chart| is_small(chart)).count() > 1;
    let are_alone = !is_pair && !is_short_multi_run(paper);
    let (small, large): (Vec<Drawing>, Vec<Drawing>) =
        charts.into_iter().partition(|chart| !are_alone && is_small(chart));
    blocks.figures(large);
    let small = small.into_iter();
    let small = small.map(|chart| Drawing { svgs: chart.halves, halves: Vec::new(), ..chart });
    blocks.grid(small.collect());
    let without_tables = experiments
        .iter()
        .filter(|(index, experiment)| !with_tables.contains(index) && !experiment.is_pass());
    blocks.table(levels_table(paper, without_tables.copied()));
    let scalings =
        experiments.iter().map(|(_, experiment)| results::node_scaling_table(experiment));
    scalings.for_each(|table| blocks.table(table));
    blocks.extend(tables);
}

/// Returns true if a chart of half the width is low enough.
fn is_small(chart: &Drawing) -> bool {
    let height: f64 = chart.halves.iter().map(|svg| svg_size(svg).1).sum();
    !chart.halves.is_empty() && height <= MAX_SMALL_HEIGHT
}

/// A chart with the name of what it shows.
fn add_title(chart: Drawing, experiment: &Experiment, lang: Lang) -> Drawing {
    if chart.caption.contains(&experiment.title.render(lang)) {
        return chart;
    }
    let caption = say!(what_of_experiment, experiment = &experiment.title, what = &chart.caption);
    Drawing { caption: caption.render(lang), ..chart }
}

/// The disclosures, the first tables, and the figures.
fn first_tables(blocks: Blocks, max_tables: usize) -> (Vec<Block>, Vec<Drawing>) {
    let mut kept_blocks: Vec<Block> = Vec::new();
    let mut figures = Vec::new();
    let mut n_tables = 0;
    for block in blocks {
        match block {
            Block::Paragraph { style: Style::Disclosure, .. } => kept_blocks.push(block),
            Block::Table(_) if n_tables < max_tables => {
                n_tables += 1;
                kept_blocks.push(block);
            }
            Block::Figures { figures: drawings, .. } => figures.extend(drawings),
            _ => {}
        }
    }
    (kept_blocks, figures)
}

/// The place of an experiment in the paper, itself, and a load level of it.
type LevelRow<'a> = (usize, &'a Experiment, &'a Point);

/// All load levels of these experiments.
fn levels_table<'a>(
    paper: &'a Paper,
    experiments: impl Iterator<Item = (usize, &'a Experiment)>,
) -> PaperTable {
    let rows = experiments.flat_map(|(index, experiment)| {
        experiment.points.iter().map(move |point| (index, experiment, point))
    });
    let mut rows: Vec<LevelRow<'_>> = rows.collect();
    if rows.len() > MAX_ROWS {
        let best = paper.result_rows();
        rows.retain(|(.., point)| best.iter().any(|best| std::ptr::eq(best.point, *point)));
    }
    let mut hot_shares = rows.iter().filter_map(|(.., point)| point.data.as_ref()?.hot_share);
    let has_hot = hot_shares.any(|share| share < 1.0);
    PaperRows::new(say!(load_levels_of_the_experiments), rows)
        .text(say!(experiment), |(_, experiment, _)| &experiment.title)
        .merged(|(index, ..)| index)
        .text(say!(target_column), |(.., point)| target_of(&point.target, point.status))
        .col(say!(workers), Whole, |(.., point)| point.workers)
        .col(say!(offered_per_s), Short, |(.., point)| point.rate_per_s)
        .if_any()
        .strong(say!(transactions_per_s), Short, |(.., point)| spread(point.tps, point.repeats))
        .col(say!(statements_per_s), Short, |(.., point)| spread(point.qps, 1))
        .col(say!(p95_ms), Ms, |(.., point)| point.p95_us.map(|us| spread(us, point.repeats)))
        .col(say!(p99_ms), Ms, |(.., point)| point.p99_us.map(|us| spread(us, point.repeats)))
        .col(say!(errors), Whole, |(.., point)| point.errors)
        .col(say!(data_to_memory), Short, |(.., point)| point.data.as_ref()?.size_to_memory)
        .if_any()
        .when(has_hot, |table| {
            table
                .col(say!(hot_share_percent), Percent, |(.., point)| point.data.as_ref()?.hot_share)
        })
        .text(say!(notes), |(.., point)| notes(paper, &point.checks))
        .anchored(|(index, ..)| index, |(index, ..)| format!("experiment-{}", index + 1))
        .into()
}
