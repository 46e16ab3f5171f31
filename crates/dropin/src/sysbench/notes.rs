//! What dyno adds after the report: work that was wasted, errors by kind, statements that met no
//! row. A block of its own, so that parsers of sysbench's report pass over it.

use dyno_core::ErrorClass;
use dyno_engine::record::ErrorCount;
use dyno_engine::{TrialEnd, TrialResult};
use dyno_facts::SeriesRow;
use std::fmt::Write as _;

/// An interval is at least so long, with room for rounding.
const INTERVAL_S: f64 = 1.0 - 1e-6;

pub(super) struct Notes<'a> {
    pub(super) result: &'a TrialResult,
    /// `--errors`: the whole breakdown, also when there was none.
    pub(super) errors: bool,
    /// What [`outage`] and the script have to say.
    pub(super) said: &'a [String],
}

/// That lost connections could not be opened again, and since when nothing was executed: no count of the report has it.
pub(super) fn outage(result: &TrialResult, intervals: &[SeriesRow]) -> Option<String> {
    // Nothing answers, or a PostgreSQL that starts or stops.
    let is_refused = |error: &&ErrorCount| {
        error.class == ErrorClass::ConnectionLost
            && matches!(error.sqlstate.as_str(), "08001" | "57P03")
    };
    let refused = || result.total.errors.0.iter().filter(is_refused);
    let reason = refused().next_back()?.message.trim_end_matches('.');
    let attempts: u64 = refused().map(|error| error.count).sum();
    let mut note = format!(
        "Failed attempts to open lost connections again: {attempts}, which are in no count above. \
         The last reason: {reason}."
    );
    let has_executed = |row: &&SeriesRow| row.begins_s >= 0.0 && row.committed > 0;
    let executed = intervals.iter().filter(has_executed);
    let until_s = executed.map(|row| row.begins_s + row.length_s).fold(0.0, f64::max);
    let total_s = result.length() as f64 / 1e9;
    if result.total.counts().committed == 0 {
        note.push_str(" No transaction was committed.");
    } else if total_s - until_s > INTERVAL_S {
        let _ = write!(
            note,
            " No transaction has ended after the first {until_s:.1} of {total_s:.1} seconds."
        );
    }
    Some(note)
}

impl Notes<'_> {
    /// The block; empty when there is nothing to say.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        if self.errors {
            out.push_str(&self.breakdown());
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out.push_str("Notes:\n");
            for note in notes {
                // Writing to a String can't fail.
                let _ = writeln!(out, "    {note}");
            }
            out.push('\n');
        }
        out
    }

    fn breakdown(&self) -> String {
        let total = &self.result.total;
        let (counts, wasted) = (total.counts(), total.wasted());
        let mut out = String::from("Errors:\n");
        for error in &total.errors.0 {
            let code = match error.errno {
                0 => error.sqlstate.clone(),
                errno => format!("{errno} ({})", error.sqlstate),
            };
            let _ = writeln!(
                out,
                "    {:<15} {code:<16} {:>10}  {}",
                error.class.name(),
                error.count,
                error.message
            );
        }
        if total.errors.0.is_empty() {
            out.push_str("    none\n");
        }
        out.push_str("\nWasted work:\n");
        for (label, count) in [
            ("attempts tried again:", counts.retries),
            ("failed transactions:", counts.failed),
            ("transactions in flight at the end:", self.result.in_flight),
            ("read statements of failed attempts:", wasted.reads),
            ("write statements of failed attempts:", wasted.writes),
            ("other statements of failed attempts:", wasted.others),
        ] {
            let _ = writeln!(out, "    {label:<37}{count}");
        }
        out.push('\n');
        out
    }

    fn notes(&self) -> Vec<String> {
        let total = &self.result.total;
        let (work, wasted) = (total.work(), total.wasted());
        let mut notes = self.said.to_vec();
        notes.extend(self.result.scan_note());
        if work.misses > 0 {
            let (misses, them) = match work.misses {
                1 => ("1 update or delete".to_owned(), "It is"),
                n => (format!("{n} updates and deletes"), "They are"),
            };
            notes.push(format!(
                "{misses} met no row. {them} among the other statements, in transactions that count."
            ));
        }
        let is_whole = !matches!(self.result.ended, TrialEnd::Aborted(_));
        if is_whole && self.result.in_flight > 0 {
            let in_flight = match self.result.in_flight {
                1 => "1 transaction was in flight at the end and is".to_owned(),
                n => format!("{n} transactions were in flight at the end and are"),
            };
            let longest_s = self.result.longest_in_flight as f64 / 1e9;
            notes.push(format!(
                "{in_flight} in no figure above. The longest latency was at least {longest_s:.2} s."
            ));
        }
        if wasted.statements() > 0 && !self.errors {
            let (statements, them) = match wasted.statements() {
                1 => ("1 statement of a failed attempt is".to_owned(), "it"),
                n => (format!("{n} statements of failed attempts are"), "them"),
            };
            notes.push(format!("{statements} in no count above; --errors shows {them}."));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::{DbError, ErrorClass, Tally};
    use dyno_engine::record::{Frame, Window};
    use dyno_facts::{GeneratorConditions, HostSample};

    fn result(total: Frame) -> TrialResult {
        TrialResult {
            late: 0,
            total,
            window: Window { released: 0, opens: 0, closes: 1, interval: 1 },
            connect: 0,
            ended: TrialEnd::Time,
            workers: Vec::new(),
            offered: None,
            in_flight: 0,
            longest_in_flight: 0,
            unfinished: 0,
            retired: 0,
            retired_transactions: 0,
            loops_cpu: Vec::new(),
            host: HostSample::default(),
            conditions: GeneratorConditions::default(),
        }
    }

    #[test]
    fn a_run_without_surprises_has_no_block() {
        let result = result(Frame::new(1, false));
        assert_eq!(Notes { result: &result, errors: false, said: &[] }.text(), "");
    }

    #[test]
    fn the_notes_name_what_a_stopped_run_left_in_flight() {
        let text = |in_flight| {
            let longest_in_flight = 8_028_000_000;
            let total = Frame::new(1, false);
            let result = TrialResult { in_flight, longest_in_flight, ..result(total) };
            Notes { result: &result, errors: false, said: &[] }.text()
        };
        assert_eq!(text(0), "");
        let one = "    1 transaction was in flight at the end and is in no figure above.";
        assert!(text(1).contains(one), "{}", text(1));
        let two = "    2 transactions were in flight at the end and are in no figure above. The \
                   longest latency was at least 8.03 s.\n";
        assert!(text(2).contains(two), "{}", text(2));
    }

    #[test]
    fn wasted_work_and_misses_are_said() {
        let mut total = Frame::new(1, false);
        total.kinds[0].wasted = Tally { reads: 14, writes: 3, ..Tally::default() };
        total.kinds[0].work = Tally { misses: 5, others: 5, ..Tally::default() };
        total.kinds[0].counts.retries = 2;
        let deadlock = DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found");
        total.errors.count(&deadlock);
        total.errors.count(&deadlock);
        let mut result = result(total);
        let text = Notes { result: &result, errors: false, said: &[] }.text();
        assert_eq!(
            text,
            "Notes:\n    5 updates and deletes met no row. They are among the other statements, \
             in transactions that count.\n    17 statements of failed attempts are in no \
             count above; --errors shows them.\n\n"
        );
        result.total.kinds[0].wasted = Tally { reads: 1, ..Tally::default() };
        let text = Notes { result: &result, errors: false, said: &[] }.text();
        assert!(
            text.contains(
                "    1 statement of a failed attempt is in no count above; --errors shows it.\n"
            ),
            "{text}"
        );
        result.total.kinds[0].wasted = Tally { reads: 14, writes: 3, ..Tally::default() };
        result.in_flight = 2;
        let text = Notes { result: &result, errors: true, said: &[] }.text();
        assert!(text.starts_with(
            "Errors:\n    deadlock        1213 (40001)              2  Deadlock found\n\nWasted work:\n"
        ), "{text}");
        assert!(text.contains("    read statements of failed attempts:  14\n"), "{text}");
        assert!(text.contains("    transactions in flight at the end:   2\n"), "{text}");
        assert!(!text.contains("--errors"), "{text}");
    }

    #[test]
    fn a_server_that_stays_away_is_said_with_since_when() {
        let row = |begins_s: f64, committed| SeriesRow {
            begins_s,
            length_s: 1.0,
            committed,
            ..SeriesRow::default()
        };
        let mut total = Frame::new(1, false);
        total.kinds[0].counts.committed = 9;
        total.errors.count(&DbError::lost("gone"));
        let mut away = result(total);
        away.window.closes = 4_000_000_000;
        let rows = [row(0.0, 4), row(1.0, 5), row(2.0, 0), row(3.0, 0)];
        assert_eq!(outage(&away, &rows), None);
        for _ in 0..3 {
            away.total.errors.count(&DbError::unreachable("Connection refused."));
        }
        let attempts = "Failed attempts to open lost connections again: 3, which are in no count \
                        above. The last reason: Connection refused.";
        let since =
            format!("{attempts} No transaction has ended after the first 2.0 of 4.0 seconds.");
        assert_eq!(outage(&away, &rows), Some(since.clone()));
        let notes = Notes { result: &away, errors: false, said: std::slice::from_ref(&since) };
        assert_eq!(notes.text(), format!("Notes:\n    {since}\n\n"));
        let back = [row(0.0, 4), row(1.0, 0), row(2.0, 0), row(3.0, 5)];
        assert_eq!(outage(&away, &back).as_deref(), Some(attempts));
        away.total.kinds[0].counts.committed = 0;
        let nothing = format!("{attempts} No transaction was committed.");
        assert_eq!(outage(&away, &[]), Some(nothing));
    }
}
