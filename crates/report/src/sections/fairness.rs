//! What makes the comparison of the targets fair or unfair: what a commit is worth on each of them, in
//! which settings they differ, how the data relate to memory.

use super::environment::is_of_several;
use super::{clauses, names, separated};
use crate::blocks::{
    Blocks, Cell, CellValue, Look, PaperRows, PaperTable, Span, Style, TableRow, code, lines,
    strong,
};
use crate::evidence::settings;
use crate::evidence::{
    BEYOND_MEMORY, Check, Experiment, IN_MEMORY, Level, Paper, PaperTarget, Point, SettingRow,
    Trial,
};
use crate::format::NumberFormat::{Bytes, Fixed, Ms, Short};
use crate::format::unique;
use crate::text::{Lang, Message, first_sentence};
use dyno_facts::{CommitWait, NodeConditions, ReplicaFacts, say};
use dyno_judge::KnownFamily;
use std::collections::BTreeSet;

/// Of more experiments the short edition has the size of the data beside the results only.
const MOST_SIZES: usize = 8;

pub(super) fn blocks(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("4", say!(fairness), "fairness");
    blocks.heading(3, "4.1", say!(what_a_commit_is_worth), "");
    match is_of_several(paper) {
        true => blocks.table(told_once(commits(paper).into())),
        false => blocks.table(commits(paper)),
    }
    let with_settings = || paper.targets.iter().filter(|target| !target.settings.is_empty());
    for target in with_settings() {
        let mut inner = Blocks::default();
        let title = say!(settings_of_target, target = &target.label);
        inner.table(of_settings(title, &target.settings));
        let summary = say!(settings_of_that_decide_what_a, target = &target.label);
        blocks.details(summary, with_settings().count() == 1, inner);
    }
    for target in paper.targets.iter().filter(|target| !target.not_readable.is_empty()) {
        let what = clauses(&target.not_readable);
        blocks.fine(say!(not_readable_on, target = &target.label, what = what));
    }
    blocks.heading(3, "4.2", say!(settings_that_differ), "");
    let comparable = comparable(paper);
    comparable.iter().for_each(|targets| differences(targets, &mut blocks));
    if comparable.is_empty() {
        blocks.paragraph(say!(no_two_targets_of_the_same));
    }
    let sized = sized(paper);
    // In the short edition it stands beside each result where it would take too much room here.
    if !(paper.is_short() && sized.len() > MOST_SIZES) {
        blocks.heading(3, "4.3", say!(data_to_memory), "");
        if sized.is_empty() {
            blocks.paragraph(say!(no_workload_told_the_size_of));
        }
        blocks.table(memory(paper, sized));
    }
    checks(paper, &mut blocks);
    blocks
}

fn of_commits(target: &PaperTarget) -> impl Iterator<Item = &SettingRow> {
    target.settings.iter().filter(|row| settings::is_of_commits(&row.name))
}

fn commits<'a>(paper: &'a Paper) -> PaperRows<&'a PaperTarget> {
    let is_weak = |target: &PaperTarget| of_commits(target).any(|row| row.is_weak);
    let own = |target: &'a PaperTarget| paper.nodes_of(&target.label);
    let copy = |copy: &ReplicaFacts| {
        say!(name_mode_state, name = &copy.name, mode = &copy.mode, state = &copy.state)
    };
    PaperRows::new(say!(durability_copies_and_isolation_of_each), &paper.targets)
        .look("text")
        .text(say!(target_2), |target| &target.label)
        .text(say!(an_acknowledged_commit), |target| {
            let on_disk = match (of_commits(target).next(), is_weak(target)) {
                (None, _) => Span::plain(say!(not_read)),
                (Some(_), true) => Span::of(say!(may_be_lost_or_torn), Look::Caveat),
                (Some(_), false) => Span::plain(say!(on_disk)),
            };
            let shown = of_commits(target).filter(|row| !is_weak(target) || row.is_weak);
            let shown = shown.map(|row| code(format!("{}={}", row.name, row.value)));
            let stated =
                target.facts.durability.as_ref().map(|what| say!(stated_what, what = what));
            Cell::from(on_disk).with(separated(shown, " ")).with(stated.unwrap_or_default())
        })
        .text(say!(copies_that_acknowledge_it), |target| {
            let copies = own(target).next().map_or(&[][..], |node| &node.replicas);
            let copies: Vec<Message> = copies.iter().map(copy).collect();
            let waits_for = own(target).find_map(|node| node.acknowledged_by.as_ref());
            let waits_for = waits_for.map(CommitWait::words);
            let copies = if is_of_several(paper) { Vec::new() } else { copies };
            Cell::from(waits_for.cloned()).with(clauses(&copies))
        })
        .text(say!(isolation_2), |target| {
            let joins = own(target).any(NodeConditions::joins_foreign_shards);
            let on_shards = if target.passes_no_isolation_on() {
                Some(say!(isolation_not_passed_on))
            } else {
                joins.then(|| say!(repeatable_read_on_shards))
            };
            Cell::from(isolation(paper, target)).with(on_shards.unwrap_or_default())
        })
        .text(say!(connection_2), |target| own(target).find_map(|node| node.transport.as_ref()))
        .when(!is_of_several(paper), |table| {
            let round_trip = |node: &NodeConditions| node.round_trip_us;
            table.col(say!(round_trip_ms_2), Ms, |target| own(target).find_map(round_trip))
        })
        .each(|target, made| made.class = if is_weak(target) { "weak" } else { "" })
}

/// One row for all targets of which a table says the same.
fn told_once(mut table: PaperTable) -> PaperTable {
    let mut kept: Vec<TableRow> = Vec::new();
    for row in std::mem::take(&mut table.rows) {
        let Some(at) = kept.iter().position(|known| known.cells[1..] == row.cells[1..]) else {
            kept.push(row);
            continue;
        };
        if let (CellValue::Text(names), CellValue::Text(own)) =
            (&mut kept[at].cells[0].value, &row.cells[0].value)
        {
            names.push(Span::plain(Message::both(", ", "、")));
            names.extend(own.iter().cloned());
        }
    }
    PaperTable { rows: kept, ..table }
}

/// The isolation level of a target's sessions: as they have asked for it, where that counts, or as the servers give it.
fn isolation(paper: &Paper, target: &PaperTarget) -> Option<Message> {
    let own = paper.nodes_of(&target.label).find_map(|node| node.isolation.as_ref());
    let own = own.or_else(|| settings::isolation(target));
    let trials = || paper.trials.iter().filter(|trial| trial.target == target.label);
    let asks = |trial: &Trial| KnownFamily::of(&trial.summary)?.isolation(&trial.summary);
    let asked = trials().find_map(asks);
    let same = |level: &str| level.replace('-', " ").to_lowercase();
    match (asked, own) {
        (Some(asked), Some(own)) if same(&asked) != same(own) => {
            let asking = trials().filter(|trial| asks(trial).is_some());
            let asking: BTreeSet<&str> =
                asking.map(|trial| trial.summary.experiment.as_str()).collect();
            if trials().all(|trial| asking.contains(trial.summary.experiment.as_str())) {
                return Some(say!(isolation_asked_for, asked = asked, own = own));
            }
            let is_asking = |of: &&Experiment| asking.contains(of.name.as_str());
            let titles = paper
                .experiments
                .iter()
                .filter(is_asking)
                .map(|of| say!(quoted_title, title = &of.title));
            let experiments = Message::list(&titles.collect::<Vec<_>>());
            Some(say!(isolation_asked_for_by, asked = asked, experiments = experiments, own = own))
        }
        (asked, own) => own.cloned().or(asked).map(Message::verbatim),
    }
}

/// Settings with what they decide.
pub fn of_settings(caption: Message, rows: &[SettingRow]) -> PaperRows<&SettingRow> {
    PaperRows::new(caption, rows)
        .look("text")
        .text(say!(setting), |row| code(&row.name))
        .text(say!(value_word), |row| code(&row.value))
        .text(say!(meaning), |row| {
            let mut line = vec![Span::plain(&row.meaning)];
            if row.is_weak {
                line.push(Span::plain(" – "));
                line.push(strong(say!(a_commit_may_be_lost_or)));
            }
            line
        })
        .each(|row, made| made.class = if row.is_weak { "weak" } else { "" })
}

/// Targets whose servers call themselves the same: settings of different products have nothing to do with
/// each other.
fn comparable(paper: &Paper) -> Vec<Vec<&PaperTarget>> {
    fn product(target: &PaperTarget) -> &str {
        target.product.split(' ').next().unwrap_or_default()
    }
    let known = || paper.targets.iter().filter(|target| !target.all_settings.is_empty());
    let products = unique(known().map(product).collect());
    let own = |name: &str| known().filter(|target| product(target) == name).collect();
    let groups = products.into_iter().map(own);
    groups.filter(|own: &Vec<&PaperTarget>| own.len() > 1).collect()
}

fn differences(targets: &[&PaperTarget], blocks: &mut Blocks) {
    let is_same = |name: &&String| {
        targets
            .windows(2)
            .all(|two| two[0].all_settings.get(*name) == two[1].all_settings.get(*name))
    };
    let all: BTreeSet<&String> =
        targets.iter().flat_map(|target| target.all_settings.keys()).collect();
    let (same, differ): (Vec<&String>, Vec<&String>) = all.into_iter().partition(is_same);
    let (left_out, mut shown): (Vec<&String>, Vec<&String>) =
        differ.into_iter().partition(|name| settings::names_a_place(name));
    shown.sort_by_key(|name| settings::meaning(name).is_none());
    let labels: Vec<&String> = targets.iter().map(|target| &target.label).collect();
    let title = say!(settings_that_differ_between, targets = names(&labels));
    let rows = PaperRows::new(title, shown).look("text").text(say!(setting), code);
    let rows = targets.iter().fold(rows, |rows, target| {
        rows.text(&target.label, |name| target.all_settings.get(name).map(code))
    });
    blocks.table(rows.text(say!(meaning), |name| settings::meaning(name).unwrap_or_default()));
    blocks.fine(say!(
        settings_of_are_the_same_that,
        same = same.len().to_string(),
        targets = names(&labels),
        n = left_out.len().to_string()
    ));
}

/// The first load level of each target that tells the size of its data.
fn sized(paper: &Paper) -> Vec<(&Experiment, &Point)> {
    let mut rows: Vec<(&Experiment, &Point)> = Vec::new();
    for experiment in &paper.experiments {
        for point in experiment.points.iter().filter(|point| point.data.is_some()) {
            let same = |(other, known): &(&Experiment, &Point)| {
                other.title == experiment.title && known.target == point.target
            };
            if !rows.iter().any(same) {
                rows.push((experiment, point));
            }
        }
    }
    rows
}

fn memory<'a>(
    paper: &'a Paper,
    rows: Vec<(&'a Experiment, &'a Point)>,
) -> PaperRows<(&'a Experiment, &'a Point)> {
    let lowest_hit = |(experiment, point): (&Experiment, &Point)| {
        let own = paper.trials.iter().filter(|trial| {
            trial.summary.experiment == experiment.name && trial.target == point.target
        });
        let nodes = own.flat_map(|trial| trial.summary.conditions.nodes.values());
        nodes.filter_map(|node| node.hit_share).reduce(f64::min)
    };
    PaperRows::new(say!(size_of_the_data_against_the), rows)
        .text(say!(experiment), |(experiment, _)| &experiment.title)
        .text(say!(target_2), |(_, point)| &point.target)
        .col(say!(size_of_the_data), Bytes, |(_, point)| point.data.as_ref()?.facts.size_bytes)
        .col(say!(memory_for_data), Bytes, |(_, point)| point.data.as_ref()?.facts.memory_bytes)
        .col(say!(data_to_memory), Short, |(_, point)| point.data.as_ref()?.size_to_memory)
        .class("strong")
        .text(say!(where_the_data_fit), |(_, point)| {
            Some(match point.data.as_ref()?.size_to_memory? {
                ratio if ratio <= IN_MEMORY => say!(in_memory),
                ratio if ratio <= BEYOND_MEMORY => say!(at_the_edge),
                _ => say!(larger_than_the_buffers),
            })
        })
        .col(say!(lowest_hit_ratio_percent), Fixed(2), |row| {
            lowest_hit(row).map(|share| share * 100.0)
        })
}
fn checks(paper: &Paper, blocks: &mut Blocks) {
    blocks.heading(3, "4.4", say!(checks), "checks");
    let (found, silent): (Vec<&Check>, Vec<&Check>) =
        paper.checks.iter().partition(|check| !check.findings.is_empty());
    if !found.is_empty() {
        let mut line = vec![Span::plain(say!(what_a_careful_reader_should_know))];
        let levels = [
            (Level::E, say!(not_usable_for_a_claim)),
            (Level::W, say!(a_caveat)),
            (Level::I, say!(disclosed)),
        ];
        for (level, meaning) in levels {
            line.push(Span::plain(" "));
            line.push(Span::of(format!("{level:?}"), Look::Note(level)));
            line.extend([Span::plain(" "), Span::plain(meaning)]);
        }
        blocks.paragraph(line);
    }
    let disclosed = found.iter().filter(|check| check.level == Level::I).count();
    let is_shown = |check: &&Check| !paper.is_short() || check.level < Level::I;
    let most = match (paper.is_short(), paper.runs.len()) {
        (false, _) => MOST_LINES,
        (true, 1) => MOST_LINES_SHORT,
        // Runs that are put together repeat their findings.
        _ => 1,
    };
    let shown = found.into_iter().filter(is_shown).collect();
    blocks.table(findings(shown, most, is_of_several(paper)));
    if paper.is_short() && disclosed > 0 {
        blocks.fine(say!(further_checks_disclose, n = disclosed));
    }
    if !silent.is_empty() {
        let mut inner = Blocks::default();
        let item =
            |check: &&Check| vec![Span::plain(&check.rule), Span::plain(" "), code(check.id)];
        inner.list(Style::Fine, silent.iter().map(item).collect());
        let n = silent.len().to_string();
        let summary = say!(checks_found_nothing_or_had_nothing, n = n);
        blocks.details(summary, false, inner);
    }
}

/// So many lines of what a check has found.
const MOST_LINES: usize = 8;
const MOST_LINES_SHORT: usize = 3;

/// Briefly without what is expected and what to do about it.
fn findings(found: Vec<&Check>, most: usize, is_brief: bool) -> PaperRows<&Check> {
    PaperRows::new(say!(checks_that_found_something), found)
        .look("text")
        .text(say!(no), |check| {
            let number = format!("{:?}{}", check.level, check.number);
            Cell::from(Span::of(number, Look::Note(check.level)))
                .with(code(check.id))
                .with_if(check.is_accepted, || vec![Span::plain(say!(accepted))])
        })
        .when(!is_brief, |table| table.text(say!(expected), |check| &check.rule))
        .text(say!(found), move |check| {
            let more = check.lines.len().saturating_sub(most);
            let more = (more > 0).then(|| say!(and_more_lines, n = more.to_string()));
            lines(check.lines.iter().take(most).cloned().chain(more))
        })
        .when(is_brief, |table| table.text(say!(meaning), |check| first_sentence(&check.meaning)))
        .when(!is_brief, |table| {
            table.text(say!(meaning_and_advice), |check| {
                Cell::from(&check.meaning).with(&check.advice)
            })
        })
        .each(|check, row| row.anchor = format!("check-{}", check.number))
}
