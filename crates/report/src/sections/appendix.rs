//! Settings, schema, trials, histograms, glossary.

use super::{names, separated, trials};
use crate::blocks::{Block, Blocks, PaperRows, Span, TextLine, code};
use crate::charts;
use crate::evidence::{LatencyDistribution, Paper, PaperTarget, Trial};
use crate::format::{
    self,
    NumberFormat::{Ms, Whole},
};
use crate::text::Lang;
use dyno_facts::{NodeConditions, say};
use std::collections::BTreeSet;

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("", say!(appendix), "appendix");
    blocks.details(say!(what_the_appendix_has), false, inside(paper, lang));
    blocks
}

fn inside(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    let groups = by_product(paper);
    if !groups.is_empty() {
        blocks.heading(3, "A", say!(variables), "settings");
    }
    for targets in &groups {
        let labels: Vec<&String> = targets.iter().map(|target| &target.label).collect();
        let (differing, same) = settings(targets);
        let n = (differing.len() + same.len()).to_string();
        let summary = match targets.len() {
            1 => say!(target_n_settings, target = labels[0], n = n),
            _ => say!(
                targets_n_settings,
                targets = names(&labels),
                n = n,
                differing = differing.len().to_string()
            ),
        };
        let mut inner = Blocks::default();
        inner.table(differing_settings(targets, differing));
        inner.fine(same_settings(targets, &same));
        blocks.details(summary, false, inner);
        blocks.bulky();
    }
    let described = described(paper);
    if !described.is_empty() {
        blocks.heading(3, "B", say!(schema), "schema");
        blocks.table(schema(described));
    }
    blocks.heading(3, "C", say!(every_trial), "trials");
    blocks.extend(trials::blocks(paper, lang));
    if !paper.distributions.is_empty() {
        blocks.heading(3, "D", say!(histograms), "histograms");
        blocks.figures(charts::distributions::figures(paper, lang));
        blocks.table(distributions(paper));
    }
    blocks.heading(3, "E", say!(glossary), "glossary");
    blocks.extend([Block::Terms { terms: super::glossary::terms(paper) }]);
    blocks
}

/// Targets whose servers call themselves the same, with all their settings.
fn by_product(paper: &Paper) -> Vec<Vec<&PaperTarget>> {
    let mut groups: Vec<Vec<&PaperTarget>> = Vec::new();
    let product = |target: &PaperTarget| target.product.split(' ').next().map(str::to_owned);
    for target in paper.targets.iter().filter(|target| !target.all_settings.is_empty()) {
        match groups.iter_mut().find(|group| product(group[0]) == product(target)) {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}

/// The names of the settings that differ, and of those that are the same on all of these targets.
fn settings<'a>(targets: &[&'a PaperTarget]) -> (Vec<&'a String>, Vec<&'a String>) {
    let all: BTreeSet<&String> =
        targets.iter().flat_map(|target| target.all_settings.keys()).collect();
    let is_same = |two: &[&PaperTarget], name: &str| {
        two[0].all_settings.get(name) == two[1].all_settings.get(name)
    };
    all.into_iter().partition(|name| !targets.windows(2).all(|two| is_same(two, name)))
}

/// A column for each target.
fn differing_settings<'a>(
    targets: &[&'a PaperTarget],
    names_of_all: Vec<&'a String>,
) -> PaperRows<&'a String> {
    let labels: Vec<&String> = targets.iter().map(|target| &target.label).collect();
    let title = say!(settings_that_differ_between, targets = names(&labels));
    let rows = PaperRows::new(title, names_of_all).look("text").text(say!(setting), |name| name);
    targets
        .iter()
        .fold(rows, |rows, target| rows.text(&target.label, |name| target.all_settings.get(name)))
}

/// One after another: as a table of some thousand rows they would be an eighth of a PDF.
fn same_settings(targets: &[&PaperTarget], names_of_all: &[&String]) -> TextLine {
    let mut line = TextLine::new();
    if targets.len() > 1 && !names_of_all.is_empty() {
        line.push(Span::plain(say!(the_same_on_all)));
    }
    for (place, name) in names_of_all.iter().enumerate() {
        let before = match (line.is_empty(), place) {
            (true, _) => "",
            (_, 0) => " ",
            _ => "; ",
        };
        let value = targets[0].all_settings.get(*name).map_or("", String::as_str);
        // Without a face of their own: a change of face for each name is a twentieth of a PDF.
        line.push(Span::plain(format!("{before}{name} = {value}")));
    }
    line
}

/// Tables of a node before the first trial of an experiment on a target.
type Described<'a> = (&'a Trial, &'a str, &'a NodeConditions);

fn described(paper: &Paper) -> Vec<Described<'_>> {
    let mut all: Vec<Described<'_>> = Vec::new();
    for target in &paper.targets {
        for trial in paper.trials.iter().filter(|trial| trial.target == target.label) {
            let is_told = |(known, ..): &Described<'_>| {
                let key =
                    |trial: &'_ Trial| (trial.target.clone(), trial.summary.experiment.clone());
                key(known) == key(trial)
            };
            if !all.iter().any(is_told) {
                let nodes = trial.summary.conditions.nodes.iter();
                let nodes = nodes.map(|(name, node)| (trial, name.as_str(), node));
                all.extend(nodes.filter(|(.., node)| {
                    node.schema_checksum.is_some() || !node.table_rows.is_empty()
                }));
            }
        }
    }
    all
}

fn schema(rows: Vec<Described<'_>>) -> PaperRows<Described<'_>> {
    const MOST: usize = 12;
    let counts = |(.., node): Described<'_>| -> TextLine {
        let one = |(name, rows): (&String, &u64)| -> TextLine {
            vec![code(name), Span::plain(format!(" {}", format::whole(*rows as f64)))]
        };
        let mut line = TextLine::new();
        for counted in node.table_rows.iter().take(MOST).map(one) {
            let between = if line.is_empty() { "" } else { "; " };
            line.push(Span::plain(between));
            line.extend(counted);
        }
        let more = node.table_rows.len().saturating_sub(MOST);
        if more > 0 {
            let more = say!(and_n_more, n = more.to_string());
            line.extend(separated([Span::plain(";"), Span::plain(more)], " "));
        }
        line
    };
    PaperRows::new(say!(tables_before_the_first_trial_as), rows)
        .look("text")
        .text(say!(experiment), |(trial, ..)| &trial.summary.experiment)
        .text(say!(target_node), |(trial, name, _)| format!("{}, {name}", trial.target))
        .text(say!(checksum_of_tables_and_indexes), |(.., node)| {
            node.schema_checksum.as_ref().map(code)
        })
        .col(say!(tables_2), Whole, |(.., node)| node.table_rows.len())
        .text(say!(rows), counts)
}

fn distributions(paper: &Paper) -> PaperRows<&LatencyDistribution> {
    const SHARES: [(f64, &str); 6] = [
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.95, "95 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
    ];
    let at = |d: &LatencyDistribution, share: f64| {
        d.quantiles.iter().find(|quantile| quantile.share == share).map(|quantile| quantile.us)
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
