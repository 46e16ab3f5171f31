//! The end of a run on a terminal: the answer, a table with a row per measured question, what could change the
//! answer, and where the rest is.

use super::*;
use dyno_facts::format::{shorten, text_table};
use dyno_judge::findings::verdict::wrap_sentence;

/// Lines that a table has at least.
const MIN_TABLE_LINES: usize = 6;
/// Caveats in words, if there is room for them.
const MAX_CAVEATS: usize = 4;
/// Sentences of the answer.
const MAX_SENTENCES: usize = 6;
/// Width of a title in the table of results, if it has a column of errors.
const TITLE_COLUMNS: usize = 34;
/// Width of that column.
const ERROR_COLUMNS: usize = 8;
/// Width of a target's name in the table of results.
const TARGET_COLUMNS: usize = 12;

impl Paper {
    /// Returns the end of a run for a terminal, the answer in the first lines. Its table is cut so that there are
    /// about `max_lines`.
    pub fn ending(&self, lang: Lang, max_lines: usize) -> String {
        let is_compared = !self.verdicts.comparisons.is_empty();
        let results = measured_results(self);
        let has_rows = !is_compared && results.len() > 1;
        let mut sentences: Vec<Message> = cover::rehearsal(self).into_iter().collect();
        if is_compared {
            let (head, parts) = cover::answer(self);
            sentences.extend(Some(head).filter(|head| !head.is_empty()));
            sentences.extend(parts.into_iter().take(MAX_SENTENCES));
        } else if has_rows {
            // What has a row is not repeated as a sentence.
            sentences.extend(summary::results_without_rows(self).into_iter().take(MAX_SENTENCES));
        } else {
            sentences.extend(summary::first_results(self).0);
        }
        let mut lines = wrap_messages(&sentences, lang);
        let table_lines = if is_compared || has_rows { MIN_TABLE_LINES } else { 0 };
        let mut endings = (1..=MAX_CAVEATS).rev().map(|caveats| self.lines_below(caveats, lang));
        let below = endings
            .find(|below| lines.len() + table_lines + below.len() + 2 <= max_lines)
            .unwrap_or_else(|| self.lines_below(1, lang));
        let room = max_lines.saturating_sub(lines.len() + below.len() + 2).max(MIN_TABLE_LINES);
        let table = if is_compared {
            self.compared_lines(lang, room)
        } else if has_rows {
            result_lines(&results, room, lang)
        } else {
            Vec::new()
        };
        push_paragraph(&mut lines, table);
        push_paragraph(&mut lines, below);
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// Lines below the table: trials that did not end well, gates, and findings that could change the answer.
    fn lines_below(&self, max_caveats: usize, lang: Lang) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        push_paragraph(
            &mut lines,
            wrap_messages(summary::unsuccessful_trials(self).as_slice(), lang),
        );
        let gates = self.verdicts.gates_text(lang);
        push_paragraph(&mut lines, gates.lines().flat_map(wrap_sentence).collect());
        push_paragraph(&mut lines, wrap_messages(&self.objections(max_caveats), lang));
        lines
    }

    /// Returns the number of checks and of their findings, for the last line of a run.
    pub fn checks_sentence(&self) -> Message {
        let [_, caveats, notes] = self.check_counts().map(|count| count.to_string());
        say!(checks_in_short, n = self.checks.len().to_string(), caveats, notes)
    }
}

fn wrap_messages(messages: &[Message], lang: Lang) -> Vec<String> {
    messages.iter().flat_map(|message| wrap_sentence(&message.line(lang))).collect()
}

/// Appends lines after an empty one, if there are any.
fn push_paragraph(lines: &mut Vec<String>, paragraph: Vec<String>) {
    if !paragraph.is_empty() && !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(paragraph);
}

/// The load levels of a sweep, or each experiment and target at its best level, by title.
fn measured_results(paper: &Paper) -> Vec<(Message, &Point)> {
    let levels = summary::sweep_points(paper);
    if levels.is_empty() {
        let rows = paper.result_rows().into_iter();
        rows.map(|row| (row.experiment.title.clone(), row.point)).collect()
    } else {
        levels.into_iter().map(|point| (paper.experiments[0].title.clone(), point)).collect()
    }
}

/// A row for each result in at most `room` lines.
fn result_lines(results: &[(Message, &Point)], room: usize, lang: Lang) -> Vec<String> {
    let has_targets = results.iter().any(|(_, point)| point.target != results[0].1.target);
    // Titles, and the number of rows that are left out.
    let max_rows = if results.len() < room { results.len() } else { room - 2 };
    let has_errors = results.iter().any(|(_, point)| point.errors > 0);
    let columns = if has_errors { TITLE_COLUMNS } else { TITLE_COLUMNS + ERROR_COLUMNS };
    let columns = if has_targets { columns - TARGET_COLUMNS } else { columns };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (title, point) in results.iter().take(max_rows) {
        let (figure, unit) = match point.main {
            Some((metric, figure)) => (figure.median, metric.title()),
            None => (point.tps.median, say!(transactions_per_s_in_short)),
        };
        let mut row = vec![shorten(&title.line(lang), columns)];
        row.extend(has_targets.then(|| shorten(&point.target, TARGET_COLUMNS)));
        row.extend([format::whole(point.load()), format::short(figure), unit.line(lang)]);
        row.push(point.p95_us.map_or(String::new(), |us| format::ms(us.median)));
        row.extend(has_errors.then(|| match point.errors {
            0 => String::new(),
            errors => format::whole(errors as f64),
        }));
        rows.push(row);
    }
    let mut titles = vec![String::new()];
    titles.extend(has_targets.then(String::new));
    titles.extend([say!(workers), say!(result)].map(|title| title.line(lang)));
    titles.extend([String::new(), say!(p95_ms).line(lang)]);
    titles.extend(has_errors.then(|| say!(errors).line(lang)));
    let first_figure = 1 + usize::from(has_targets);
    let unit_column = first_figure + 2;
    let table =
        text_table(&titles, &rows, |column| column >= first_figure && column != unit_column);
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    if results.len() > max_rows {
        lines.push(say!(more_rows_by_show, n = results.len() - max_rows).line(lang));
    }
    lines
}
