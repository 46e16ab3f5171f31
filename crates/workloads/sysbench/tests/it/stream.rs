//! Characteristics of a stream of statements, whoever sent it: which templates are prepared, which
//! statements make a transaction, and how their parameters are distributed.

use crate::support::{Command, Recorded};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Cells of a histogram.
pub(crate) const CELLS: usize = 100;

/// Consecutive statements of a transaction with the same template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) count: usize,
    /// Most tables that these statements use in one transaction.
    pub(crate) tables: usize,
    pub(crate) command: Command,
    pub(crate) template: String,
}

/// The numbers at one place of one template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) place: usize,
    pub(crate) template: String,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// Over 0..=limit in equal cells.
    pub(crate) cells: Vec<u64>,
}

/// The summary of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Templates in the order of their first preparation, with the number of preparations.
    pub(crate) prepared: Vec<(usize, String)>,
    pub(crate) steps: Vec<Step>,
    /// Most tables that one transaction uses.
    pub(crate) tables: usize,
    pub(crate) places: Vec<Place>,
    /// Facts that hold for every statement, such as the width of ranges.
    pub(crate) relations: Vec<String>,
    /// Bytes of the longest statement.
    pub(crate) longest: usize,
}

/// A statement taken apart.
struct Parsed {
    command: Command,
    template: String,
    table: String,
    numbers: Vec<i64>,
}

/// Replaces table numbers by `#`, numbers by `N`, texts by the name of their format.
fn parse(recorded: &Recorded) -> Parsed {
    let text = recorded.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters: Vec<char> = text.chars().collect();
    let (mut template, mut table, mut numbers) = (String::new(), String::new(), Vec::new());
    let mut at = 0;
    while at < letters.len() {
        let remaining = &letters[at..];
        let before = if at == 0 { ' ' } else { letters[at - 1] };
        let digits =
            |from: usize| remaining[from..].iter().take_while(|l| l.is_ascii_digit()).count();
        let sign = usize::from(remaining[0] == '-');
        if remaining[0] == '\'' {
            let length = remaining[1..].iter().take_while(|l| **l != '\'').count();
            template.push_str(&format_name(&remaining[1..=length].iter().collect::<String>()));
            at += length + 2;
        } else if template.ends_with("sbtest") && digits(0) > 0 {
            table = remaining[..digits(0)].iter().collect();
            template.push('#');
            at += digits(0);
        } else if digits(sign) > 0 && !before.is_alphanumeric() && !"+_$".contains(before) {
            let length = sign + digits(sign);
            numbers.push(remaining[..length].iter().collect::<String>().parse().unwrap());
            template.push('N');
            at += length;
        } else {
            template.push(remaining[0]);
            at += 1;
        }
    }
    // A packet of many rows is one row, repeated.
    if let Some(rows) = template.find(",(N,N)") {
        template.truncate(rows);
        template.push_str(",...");
        numbers = vec![numbers[0], numbers[numbers.len() - 1]];
    }
    Parsed { command: recorded.command, template, table, numbers }
}

fn format_name(text: &str) -> String {
    let groups: Vec<&str> = text.split('-').collect();
    let are_digits =
        groups.iter().all(|group| group.len() == 11 && group.bytes().all(|b| b.is_ascii_digit()));
    match groups.len() {
        10 if are_digits => "'C'".to_owned(),
        5 if are_digits => "'PAD'".to_owned(),
        _ => format!("'{text}'"),
    }
}

impl Summary {
    /// Summarizes the commands of one connection that made as many transactions, whose numbers lie
    /// in `0..=limit` as a rule.
    pub(crate) fn from_log(log: &[Recorded], transactions: usize, limit: i64) -> Summary {
        let mut summary = Summary::default();
        for entry in log.iter().filter(|entry| entry.command == Command::Prepare) {
            let parsed = parse(entry);
            match summary.prepared.iter_mut().find(|(_, known)| *known == parsed.template) {
                Some((count, _)) => *count += 1,
                None => summary.prepared.push((1, parsed.template)),
            }
        }
        let run: Vec<&Recorded> =
            log.iter().filter(|entry| entry.command != Command::Prepare).collect();
        summary.longest = run.iter().map(|entry| entry.text.len()).max().unwrap_or(0);
        let parsed: Vec<Parsed> = run.into_iter().map(parse).collect();
        // Where a transaction is a row, statements are fewer than transactions.
        let length = (parsed.len() / transactions).max(1);
        assert!(
            parsed.len().is_multiple_of(transactions) || parsed.len() < transactions,
            "{} statements do not make {transactions} equal transactions",
            parsed.len()
        );
        for transaction in parsed.chunks(length) {
            summary.add_transaction(transaction);
        }
        summary.add_numbers(&parsed, limit);
        summary.add_relations(&parsed);
        summary
    }

    fn add_transaction(&mut self, statements: &[Parsed]) {
        let mut steps: Vec<Step> = Vec::new();
        for run in statements.chunk_by(|a, b| a.template == b.template && a.command == b.command) {
            steps.push(Step {
                count: run.len(),
                tables: distinct_tables(run),
                command: run[0].command,
                template: run[0].template.clone(),
            });
        }
        self.tables = self.tables.max(distinct_tables(statements));
        if self.steps.is_empty() {
            self.steps = steps;
            return;
        }
        assert_eq!(self.steps.len(), steps.len(), "transactions differ: {steps:?}");
        for (kept, step) in self.steps.iter_mut().zip(steps) {
            kept.tables = kept.tables.max(step.tables);
            let expected = Step { tables: kept.tables, ..step };
            assert_eq!(*kept, expected, "transactions differ");
        }
    }

    fn add_numbers(&mut self, parsed: &[Parsed], limit: i64) {
        let mut places: BTreeMap<(&str, usize), Vec<i64>> = BTreeMap::new();
        for statement in parsed {
            for (place, &number) in statement.numbers.iter().enumerate() {
                places.entry((&statement.template, place)).or_default().push(number);
            }
        }
        for ((template, place), numbers) in places {
            let mut cells = vec![0; CELLS];
            for number in &numbers {
                let cell = number.clamp(&0, &limit) * CELLS as i64 / (limit + 1);
                cells[cell as usize] += 1;
            }
            self.places.push(Place {
                place: place + 1,
                template: template.to_owned(),
                min: *numbers.iter().min().unwrap(),
                max: *numbers.iter().max().unwrap(),
                cells,
            });
        }
    }

    fn add_relations(&mut self, parsed: &[Parsed]) {
        let mut widths: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        let ranges = parsed.iter().filter(|statement| statement.template.contains(" AND "));
        for statement in ranges {
            let bounds = statement.numbers.chunks(2).map(|pair| pair[1] - pair[0]);
            widths.entry(&statement.template).or_default().extend(bounds);
        }
        for (template, widths) in widths {
            assert!(widths.iter().all(|width| *width == widths[0]), "{template}");
            self.relations.push(format!("the bounds are {} apart: {template}", widths[0]));
        }
        let pairs = parsed.windows(2).filter(|pair| {
            pair[0].template.starts_with("DELETE") && pair[1].template.starts_with("INSERT")
        });
        let are_same_rows: Vec<bool> = pairs
            .map(|pair| pair[0].numbers[0] == pair[1].numbers[0] && pair[0].table == pair[1].table)
            .collect();
        if !are_same_rows.is_empty() && !are_same_rows.contains(&false) {
            self.relations.push("every INSERT takes id and table of the DELETE before".to_owned());
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for (count, template) in &self.prepared {
            writeln!(text, "prepared: {count} x {template}").unwrap();
        }
        for Step { count, tables, command, template } in &self.steps {
            writeln!(text, "step: {count} x on {tables} table(s) by {command:?}: {template}")
                .unwrap();
        }
        writeln!(text, "tables per transaction: {}", self.tables).unwrap();
        writeln!(text, "longest statement: {} bytes", self.longest).unwrap();
        for relation in &self.relations {
            writeln!(text, "relation: {relation}").unwrap();
        }
        for Place { place, template, min, max, cells } in &self.places {
            let cells: Vec<String> = cells.iter().map(u64::to_string).collect();
            let cells = cells.join(" ");
            writeln!(text, "numbers: {min}..{max} at {place} of {template}").unwrap();
            writeln!(text, "cells: {cells}").unwrap();
        }
        text
    }

    /// Reads what `to_text` wrote; other lines are passed over.
    pub(crate) fn from_text(text: &str) -> Summary {
        let mut summary = Summary::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(": ") else { continue };
            match key {
                "prepared" => {
                    let (count, template) = value.split_once(" x ").unwrap();
                    summary.prepared.push((count.parse().unwrap(), template.to_owned()));
                }
                "step" => summary.steps.push(step_from(value)),
                "tables per transaction" => summary.tables = value.parse().unwrap(),
                "longest statement" => {
                    summary.longest = value.trim_end_matches(" bytes").parse().unwrap();
                }
                "relation" => summary.relations.push(value.to_owned()),
                "numbers" => summary.places.push(place_from(value)),
                "cells" => {
                    let cells = value.split(' ').map(|cell| cell.parse().unwrap()).collect();
                    summary.places.last_mut().expect("numbers before cells").cells = cells;
                }
                _ => {}
            }
        }
        summary
    }
}

fn distinct_tables(statements: &[Parsed]) -> usize {
    let mut tables: Vec<&str> = statements.iter().map(|s| s.table.as_str()).collect();
    tables.retain(|table| !table.is_empty());
    tables.sort_unstable();
    tables.dedup();
    tables.len()
}

fn step_from(value: &str) -> Step {
    let (count, rest) = value.split_once(" x on ").unwrap();
    let (tables, rest) = rest.split_once(" table(s) by ").unwrap();
    let (command, template) = rest.split_once(": ").unwrap();
    Step {
        count: count.parse().unwrap(),
        tables: tables.parse().unwrap(),
        command: if command == "Query" { Command::Query } else { Command::Execute },
        template: template.to_owned(),
    }
}

fn place_from(value: &str) -> Place {
    let (range, rest) = value.split_once(" at ").unwrap();
    let (min, max) = range.split_once("..").unwrap();
    let (place, template) = rest.split_once(" of ").unwrap();
    Place {
        place: place.parse().unwrap(),
        template: template.to_owned(),
        min: min.parse().unwrap(),
        max: max.parse().unwrap(),
        cells: Vec::new(),
    }
}

/// Chi-square of two samples of perhaps different size, and its degrees of freedom.
pub(crate) fn chi_square(a: &[u64], b: &[u64]) -> (f64, usize) {
    let (total_a, total_b) = (a.iter().sum::<u64>() as f64, b.iter().sum::<u64>() as f64);
    let (weight_a, weight_b) = ((total_b / total_a).sqrt(), (total_a / total_b).sqrt());
    // Cells with few counts are joined with the next one: the test is an approximation for many.
    let (mut chi, mut cells, mut sum_a, mut sum_b) = (0.0, 0, 0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        sum_a += a as f64;
        sum_b += b as f64;
        if sum_a + sum_b >= 20.0 {
            chi += (weight_a * sum_a - weight_b * sum_b).powi(2) / (sum_a + sum_b);
            cells += 1;
            (sum_a, sum_b) = (0.0, 0.0);
        }
    }
    (chi, cells)
}
