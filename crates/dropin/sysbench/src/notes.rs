//! What dyno adds after the report: work that was wasted, errors by kind, statements that met no
//! row. A block of its own, so that parsers of sysbench's report pass over it.

use dyno_engine::TrialResult;
use std::fmt::Write as _;

pub(super) struct Notes<'a> {
    pub(super) result: &'a TrialResult,
    /// `--errors`: the whole breakdown, also when there was none.
    pub(super) errors: bool,
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
        let mut notes = Vec::new();
        if work.misses > 0 {
            notes.push(format!(
                "{} updates and deletes met no row. They are among the other statements, and \
                 their transactions are counted.",
                work.misses
            ));
        }
        if wasted.statements() > 0 && !self.errors {
            notes.push(format!(
                "{} statements of failed attempts are in no count above; --errors shows them.",
                wasted.statements()
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::{DbError, ErrorClass, Tally};
    use dyno_engine::TrialEnd;
    use dyno_facts::{GeneratorConditions, HostSample};
    use dyno_record::{Frame, Window};

    fn result(total: Frame) -> TrialResult {
        TrialResult {
            late: 0,
            total,
            window: Window { released: 0, opens: 0, closes: 1, interval: 1 },
            connect: 0,
            ended: TrialEnd::Time,
            workers: Vec::new(),
            offered: None,
            in_flight: 2,
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
        assert_eq!(Notes { result: &result, errors: false }.text(), "");
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
        let result = result(total);
        let text = Notes { result: &result, errors: false }.text();
        assert_eq!(
            text,
            "Notes:\n    5 updates and deletes met no row. They are among the other statements, \
             and their transactions are counted.\n    17 statements of failed attempts are in no \
             count above; --errors shows them.\n\n"
        );
        let text = Notes { result: &result, errors: true }.text();
        assert!(text.starts_with(
            "Errors:\n    deadlock        1213 (40001)              2  Deadlock found\n\nWasted work:\n"
        ), "{text}");
        assert!(text.contains("    read statements of failed attempts:  14\n"), "{text}");
        assert!(text.contains("    transactions in flight at the end:   2\n"), "{text}");
        assert!(!text.contains("--errors"), "{text}");
    }
}
