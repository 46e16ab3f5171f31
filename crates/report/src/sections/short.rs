//! The edition for readers in a hurry: results chapter by chapter in one table and small charts, the method in a
//! table. What only the full edition has stands in its appendix or alongside each experiment there.

use super::*;

/// Higher charts are drawn as wide as the page.
const HIGHEST_SMALL: f64 = 400.0;
/// So many charts stand in a chapter.
const MOST_CHARTS: usize = 6;
/// Rows of a chapter above which only the best load level of each target is shown.
const MOST_ROWS: usize = 40;
/// So many tables of what a family says of a pass.
const MOST_OF_PASS: usize = 2;

/// So many of them, of several runs.
fn most_of_pass(paper: &Paper) -> usize {
    if is_of_several(paper) { 1 } else { MOST_OF_PASS }
}

/// Without what a page shows on demand; of headings, the contents name those of sections only.
pub(super) fn shortened(blocks: Vec<Block>) -> Vec<Block> {
    let kept = blocks.into_iter().filter(|block| !matches!(block, Block::Details { .. }));
    let plain = |block| match block {
        Block::Heading(mut heading) => {
            heading.is_listed &= heading.level == 2;
            Block::Heading(heading)
        }
        block => block,
    };
    kept.map(plain).collect()
}

pub(super) fn method(paper: &Paper, _: Lang, blocks: &mut Blocks) {
    blocks.paragraph(Message::sentences(&method::of_all(paper)));
    blocks.table(
        PaperRows::new(say!(experiments_and_their_options), &paper.experiments)
            .look("text")
            .text(say!(experiment), |own| &own.title)
            .text(say!(what_is_executed), |own| &own.test)
            .text(say!(options_word), |own| {
                let options = own.options.iter();
                separated(options.map(|(name, value)| code(format!("{name}={value}"))), " ")
            })
            .col(say!(planned_window_s), Whole, |own| own.duration_s),
    );
    let of_each = |own: &Experiment| {
        let mut sentences = method::of_every_trial(paper, own);
        sentences.extend(method::comparison(own));
        sentences.extend(method::renewals(own));
        let objective = own.objective.as_ref();
        let objective = objective.map(|it| say!(objective_of_the_search_for_the, objective = it));
        sentences.into_iter().chain(objective)
    };
    let sentences = unique(paper.experiments.iter().flat_map(of_each).collect());
    blocks.paragraph(Message::sentences(&sentences));
}

pub(super) fn results(paper: &Paper, lang: Lang, blocks: &mut Blocks) {
    if is_of_several(paper) {
        blocks.fine(say!(notes_are_those_that_forbid));
    }
    for (place, (title, experiments)) in results::chapters(paper).into_iter().enumerate() {
        let number = place + 1;
        blocks.heading(3, &format!("6.{number}"), title, &format!("chapter-{number}"));
        chapter(paper, &experiments, lang, blocks);
    }
    results::costs(paper, blocks);
    if !paper.faults().is_empty() {
        blocks.heading(3, "", say!(failover_and_durability), "failover");
        let (own, figures) = essence(fault::blocks(paper, lang), most_of_pass(paper));
        blocks.figures(figures.into_iter().take(1));
        blocks.extend(own);
    }
    blocks.fine(say!(the_full_edition_has));
}

/// Charts alongside each other, what families disclose, one table of all load levels, and the tables of families.
fn chapter(paper: &Paper, experiments: &[(usize, &Experiment)], lang: Lang, blocks: &mut Blocks) {
    let mut charts: Vec<Drawing> = Vec::new();
    let mut disclosed: Vec<Block> = Vec::new();
    let mut tables = Blocks::default();
    // Those of which their family has shown its own tables.
    let mut shown: Vec<usize> = Vec::new();
    let is_alone = experiments.len() == 1;
    for (index, own) in experiments {
        let made = match family_of(own).and_then(|family| family.section(paper, own, lang)) {
            Some(section) => {
                let most = if own.is_pass() { most_of_pass(paper) } else { 1 };
                let (kept, figures) = essence(section, most);
                let (said, kept): (Vec<Block>, Vec<Block>) =
                    kept.into_iter().partition(|block| matches!(block, Block::Paragraph { .. }));
                disclosed.extend(
                    said.into_iter().filter(|block| !disclosed.contains(block)).collect::<Vec<_>>(),
                );
                shown.push(*index);
                tables.heading(4, "", &own.title, &format!("experiment-{}", index + 1));
                tables.extend(kept);
                figures
            }
            None => charts::of_experiment(paper, own, lang),
        };
        let named = |chart| if is_alone { chart } else { named(chart, own, lang) };
        charts.extend(made.into_iter().next().map(named));
    }
    blocks.extend(disclosed);
    charts.truncate(MOST_CHARTS);
    let is_small = |chart: &Drawing| {
        let high: f64 = chart.halves.iter().map(|svg| size_of(svg).1).sum();
        !chart.halves.is_empty() && high <= HIGHEST_SMALL
    };
    let is_pair = charts.iter().filter(|chart| is_small(chart)).count() > 1;
    let are_alone = !is_pair && !is_of_several(paper);
    let (small, large): (Vec<Drawing>, Vec<Drawing>) =
        charts.into_iter().partition(|chart| !are_alone && is_small(chart));
    blocks.figures(large);
    let shrunk = |chart: Drawing| Drawing { svgs: chart.halves, halves: Vec::new(), ..chart };
    blocks.grid(small.into_iter().map(shrunk).collect());
    let others = experiments.iter().filter(|(index, own)| !shown.contains(index) && !own.is_pass());
    blocks.table(levels(paper, others.copied()));
    let scalings = experiments.iter().map(|(_, own)| results::scaling_of(own));
    scalings.for_each(|table| blocks.table(table));
    blocks.extend(tables);
}

/// A chart with the name of what it shows.
fn named(chart: Drawing, own: &Experiment, lang: Lang) -> Drawing {
    if chart.caption.contains(&own.title.render(lang)) {
        return chart;
    }
    let caption = say!(what_of_experiment, experiment = &own.title, what = &chart.caption);
    Drawing { caption: caption.render(lang), ..chart }
}

/// The disclosures, the first tables, and the figures.
fn essence(blocks: Blocks, most: usize) -> (Vec<Block>, Vec<Drawing>) {
    let mut kept: Vec<Block> = Vec::new();
    let mut figures = Vec::new();
    let mut tables = 0;
    for block in blocks {
        match block {
            Block::Paragraph { style: Style::Disclosure, .. } => kept.push(block),
            Block::Table(_) if tables < most => {
                tables += 1;
                kept.push(block);
            }
            Block::Figures { figures: own, .. } => figures.extend(own),
            _ => {}
        }
    }
    (kept, figures)
}

/// The place of an experiment in the paper, itself, and a load level of it.
type LevelOf<'a> = (usize, &'a Experiment, &'a Point);

/// All load levels of these experiments.
fn levels<'a>(
    paper: &'a Paper,
    experiments: impl Iterator<Item = (usize, &'a Experiment)>,
) -> PaperTable {
    let all = experiments.flat_map(|(index, experiment)| {
        experiment.points.iter().map(move |point| (index, experiment, point))
    });
    let mut rows: Vec<LevelOf<'_>> = all.collect();
    if rows.len() > MOST_ROWS {
        let best = paper.result_rows();
        rows.retain(|(.., point)| best.iter().any(|best| std::ptr::eq(best.point, *point)));
    }
    let ratio = |(.., point): LevelOf<'_>| point.data.as_ref().and_then(|data| data.size_to_memory);
    let hot = |(.., point): LevelOf<'_>| point.data.as_ref().and_then(|data| data.hot_share);
    let has_hot = rows.iter().any(|row| hot(*row).is_some_and(|share| share < 1.0));
    PaperRows::new(say!(load_levels_of_the_experiments), rows)
        .text(say!(experiment), |(_, experiment, _)| &experiment.title)
        .merged(|(index, ..)| index)
        .text(say!(target_2), |(.., point)| target_of(&point.target, point.status))
        .col(say!(workers), Whole, |(.., point)| point.workers)
        .col(say!(offered_per_s), Short, |(.., point)| point.rate_per_s)
        .if_any()
        .strong(say!(transactions_per_s), Short, |(.., point)| spread(point.tps, point.repeats))
        .col(say!(statements_per_s), Short, |(.., point)| spread(point.qps, 1))
        .col(say!(p95_ms), Ms, |(.., point)| point.p95_us.map(|us| spread(us, point.repeats)))
        .col(say!(p99_ms), Ms, |(.., point)| point.p99_us.map(|us| spread(us, point.repeats)))
        .col(say!(errors), Whole, |(.., point)| point.errors)
        .col(say!(data_to_memory), Short, ratio)
        .if_any()
        .when(has_hot, |table| table.col(say!(hot_share_percent), Percent, hot))
        .text(say!(notes), |(.., point)| notes(paper, &point.checks))
        .anchored(|(index, ..)| index, |(index, ..)| format!("experiment-{}", index + 1))
        .into()
}
