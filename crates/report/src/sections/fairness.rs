//! What makes the comparison of the targets fair or unfair.

use super::{clauses, names, separated};
use crate::blocks::{Blocks, Cell, Look, Rows, Span, Style, code, lines, strong};
use crate::evidence::{Check, Level, Paper, SettingRow};
use crate::evidence::{CommitRow, Difference, DifferenceTable, MemoryRow};
use crate::format::Format::{Bytes, Fixed, Ms, Short};
use crate::text::{Lang, Message};
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("4", say!(fairness), "fairness");
    blocks.heading(3, "4.1", say!(what_a_commit_is_worth), "");
    blocks.table(commits(&paper.fairness.commits));
    let with_settings = || paper.targets.iter().filter(|target| !target.settings.is_empty());
    for target in with_settings() {
        let mut inner = Blocks::default();
        let title = say!(settings_of_target, target = &target.label);
        inner.table(settings(title, &target.settings));
        let summary = say!(settings_of_that_decide_what_a, target = &target.label);
        blocks.details(summary, with_settings().count() == 1, inner);
    }
    for target in paper.targets.iter().filter(|target| !target.not_readable.is_empty()) {
        let what = clauses(&target.not_readable);
        blocks.fine(say!(not_readable_on, target = &target.label, what = what));
    }
    blocks.heading(3, "4.2", say!(settings_that_differ), "");
    for table in &paper.fairness.differences {
        blocks.table(differences(table));
        blocks.fine(say!(
            settings_of_are_the_same_that,
            same = table.same.to_string(),
            targets = names(&table.targets),
            n = table.left_out.to_string()
        ));
    }
    if paper.fairness.differences.is_empty() {
        blocks.paragraph(say!(no_two_targets_of_the_same));
    }
    blocks.heading(3, "4.3", say!(data_to_memory), "");
    match paper.fairness.memory.is_empty() {
        true => blocks.paragraph(say!(no_workload_told_the_size_of)),
        false => blocks.table(memory(&paper.fairness.memory)),
    }
    checks(paper, &mut blocks);
    blocks
}

fn commits(rows: &[CommitRow]) -> Rows<&CommitRow> {
    Rows::new(say!(durability_copies_and_isolation_of_each), rows)
        .look("text")
        .text(say!(target_2), |row| &row.target)
        .text(say!(an_acknowledged_commit), |row| {
            let on_disk = match (&row.on_disk, row.is_weak) {
                (None, _) => Span::plain(say!(not_read)),
                (Some(words), true) => Span::of(words, Look::Caveat),
                (Some(words), false) => Span::plain(words),
            };
            let stated = row.stated.as_ref().map(|what| say!(stated_what, what = what));
            Cell::from(on_disk)
                .with(separated(row.settings.iter().map(code), " "))
                .with(stated.unwrap_or_default())
        })
        .text(say!(copies_that_acknowledge_it), |row| {
            Cell::from(row.acknowledged_by.clone()).with(clauses(&row.copies))
        })
        .text(say!(isolation_2), |row| row.isolation.as_ref())
        .text(say!(connection_2), |row| row.transport.as_ref())
        .col(say!(round_trip_ms_2), Ms, |row| row.round_trip_us)
        .each(|row, made| made.class = if row.is_weak { "weak" } else { "" })
}

/// Settings with what they decide.
pub(crate) fn settings(caption: Message, rows: &[SettingRow]) -> Rows<&SettingRow> {
    Rows::new(caption, rows)
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

fn differences(table: &DifferenceTable) -> Rows<&Difference> {
    let title = say!(settings_that_differ_between, targets = names(&table.targets));
    let rows = Rows::new(title, &table.rows).look("text");
    let rows = rows.text(say!(setting), |row| code(&row.name));
    let targets = table.targets.iter().enumerate();
    let rows = targets.fold(rows, |rows, (place, target)| {
        rows.text(target, |row| row.values[place].as_ref().map(code))
    });
    rows.text(say!(meaning), |row| row.meaning.clone().unwrap_or_default())
}

fn memory(rows: &[MemoryRow]) -> Rows<&MemoryRow> {
    Rows::new(say!(size_of_the_data_against_the), rows)
        .text(say!(experiment), |row| &row.experiment)
        .text(say!(target_2), |row| &row.target)
        .col(say!(size_of_the_data), Bytes, |row| row.size_bytes)
        .col(say!(memory_for_data), Bytes, |row| row.memory_bytes)
        .col(say!(data_to_memory), Short, |row| row.size_to_memory)
        .class("strong")
        .text(say!(where_the_data_fit), |row| row.class.clone())
        .col(say!(lowest_hit_ratio_percent), Fixed(2), |row| {
            row.hit_share.map(|share| share * 100.0)
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
    blocks.table(findings(found));
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

fn findings(found: Vec<&Check>) -> Rows<&Check> {
    const MOST_LINES: usize = 8;
    Rows::new(say!(checks_that_found_something), found)
        .look("text")
        .text(say!(no), |check| {
            let number = format!("{:?}{}", check.level, check.number);
            Cell::from(Span::of(number, Look::Note(check.level)))
                .with(code(check.id))
                .with_if(check.is_accepted, || vec![Span::plain(say!(accepted))])
        })
        .text(say!(expected), |check| &check.rule)
        .text(say!(found), |check| {
            let more = check.lines.len().saturating_sub(MOST_LINES);
            let more = (more > 0).then(|| say!(and_more_lines, n = more.to_string()));
            lines(check.lines.iter().take(MOST_LINES).cloned().chain(more))
        })
        .text(say!(meaning_and_advice), |check| Cell::from(&check.meaning).with(&check.advice))
        .each(|check, row| row.anchor = format!("check-{}", check.number))
}
