//! The page `bench/RESULTS.md`: what was measured now and, of an older page, what was not.

use crate::bench::Bench;
use crate::comparisons::{self, Comparison, Section};
use crate::machine;
use crate::table::{self, Line};
use std::fmt::Write as _;
use std::process::Command;

const METHOD: &str = include_str!("../../method.md");
const TRIED: &str = include_str!("../../tried.md");
/// Introduction to the tables.
const LEGEND: &str = "\
Figures are medians of rounds (smallest..largest). `peer` is the program that the first column names after `beside`, and
dyno / peer the median of the rounds' ratios. The bare loop does the same work with next to no code of its own: its
figure, and dyno's as a multiple of it. A bar is a goal: for dyno's own figure, or for its ratio to the peer or to the
bare loop. Some bars were changed after first measurements: easier are those of null-postgres-unix (from 0.7 to 0.78) and
of TPC-C (from 0.4 to 0.42 and 0.48), stricter those of open-loop, null-postgres-tcp, memory-postgres and tpch-load. The
last column tells the run, listed above, of a row.";
const RUN: &str = "- run ";
const CLAIMS_BEGIN: &str = "<!-- claims of bench/RESULTS.md -->\n";
const CLAIMS_END: &str = "<!-- end of claims -->";

/// A row of a table as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// Name of its comparison.
    name: String,
    text: String,
}

impl Row {
    fn read(text: &str) -> Option<Self> {
        let (first, _) = text.strip_prefix("| ")?.split_once(" |")?;
        let name = first.split(':').next()?;
        Some(Row { name: name.to_owned(), text: text.to_owned() })
    }

    fn cell(&self, place: usize) -> &str {
        self.text.split('|').nth(place + 1).unwrap_or_default().trim()
    }

    /// The median of its ratios of dyno and the peer and their range, as printed.
    fn ratio(&self) -> &str {
        self.cell(3)
    }

    fn run(&self) -> &str {
        self.text.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim()
    }
}

/// Returns true if a page has rows of this comparison.
pub(crate) fn has_figures(page: &str, name: &str) -> bool {
    page.lines().filter_map(Row::read).any(|row| row.name == name)
}

pub(crate) struct Page {
    date: String,
    load_before: String,
    rows: Vec<Row>,
    /// Lines about runs before this one.
    runs: Vec<String>,
}

impl Page {
    /// `old`: the page whose other rows stay.
    pub(crate) fn new(bench: &Bench, old: &str) -> Result<Self, String> {
        let machine = machine::hardware();
        if !old.is_empty() && !old.contains(&machine) {
            return Err(format!(
                "the page is of another machine than this one ({machine}): measure into a new file"
            ));
        }
        // Building dyno was the load until now.
        bench.quiet.wait();
        let runs = old.lines().filter(|line| line.starts_with(RUN)).map(str::to_owned).collect();
        let rows = old.lines().filter_map(Row::read).collect();
        Ok(Page { date: today(), load_before: machine::load_average(), rows, runs })
    }

    /// An older figure stays where there is none now.
    pub(crate) fn add(&mut self, name: &str, lines: &[Line]) {
        let is_figure = !lines.iter().all(Line::is_note);
        if !is_figure && self.rows.iter().any(|row| row.name == name) {
            return;
        }
        self.rows.retain(|row| row.name != name);
        let rows = lines.iter().map(|line| format!("{line} {} |", self.date));
        self.rows.extend(rows.map(|text| Row { name: name.to_owned(), text }));
    }

    /// The claims that README may make about the comparisons that were measured.
    pub(crate) fn claims(&self) -> String {
        let claims = comparisons::all().into_iter().filter_map(|one| {
            let [cpu, rate] = self.rows(&one)[..] else { return None };
            let (claim, peer, name) = (one.claim?, one.peer, &one.name);
            let (cpu, rate) = (cpu.ratio(), rate.ratio());
            Some(format!(
                "- {claim}: {cpu} x {peer}'s client CPU a query, {rate} x its throughput (`{name}`)\n"
            ))
        });
        claims.collect()
    }

    fn rows(&self, comparison: &Comparison) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.name == comparison.name).collect()
    }

    pub(crate) fn text(&self, bench: &Bench) -> String {
        let mut text =
            "# dyno beside sysbench, pgbench, go-tpc, psql and tpchgen-cli\n\n".to_owned();
        let claims = self.claims();
        if !claims.is_empty() {
            let _ = writeln!(text, "{claims}");
        }
        let _ = writeln!(text, "## The machine and the runs\n\n{}", machine::description());
        for run in self.runs.iter().filter(|run| self.is_shown(run)) {
            let _ = writeln!(text, "{run}");
        }
        let _ = writeln!(text, "{}\n\n{LEGEND}", self.this_run(bench));
        let comparisons = comparisons::all();
        for (section, title) in Section::ALL {
            let section_comparisons = comparisons.iter().filter(|one| one.section == section);
            let rows: Vec<_> = section_comparisons
                .flat_map(|one| self.rows(one))
                .map(|row| row.text.as_str())
                .collect();
            if !rows.is_empty() {
                let _ = writeln!(text, "\n## {title}\n\n{}\n{}", table::HEAD, rows.join("\n"));
            }
        }
        let _ = write!(text, "\n{METHOD}\n{TRIED}");
        text
    }

    fn is_shown(&self, run: &str) -> bool {
        self.rows.iter().any(|row| {
            run.strip_prefix(RUN).and_then(|rest| rest.strip_prefix(row.run())).is_some()
        })
    }

    fn this_run(&self, bench: &Bench) -> String {
        let Bench { pairs, seconds, short_seconds, quiet, .. } = bench;
        let built = if bench.programs.are_older { " (or older: built before)" } else { "" };
        let (before, after) = (&self.load_before, machine::load_average());
        format!(
            "{RUN}{}: dyno of commit {}{built}; {pairs} rounds, each of {seconds} s less {short_seconds} s; load \
             average before {before}, after {after}; {}",
            self.date,
            machine::commit(),
            quiet.description()
        )
    }
}

/// A document with these claims between its marks.
pub(crate) fn with_claims(document: &str, claims: &str) -> Result<String, String> {
    let (before, after) = document
        .split_once(CLAIMS_BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(CLAIMS_END)?.1)))
        .ok_or_else(|| format!("the document lacks the marks {CLAIMS_BEGIN}and {CLAIMS_END}"))?;
    Ok(format!("{before}{CLAIMS_BEGIN}{claims}{CLAIMS_END}{after}"))
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"]).output();
    date.map_or("date unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Bar;

    const OLD: &str = "\
- run 2026-01-01 10:00: dyno of commit a
- run 2026-01-02 10:00: dyno of commit b

| what is measured | dyno | peer | dyno / peer | bare loop | bar | met | run |
|---|---|---|---|---|---|---|---|
| shared-postgres-unix-64: x, client CPU | 3 | 6 | 0.50 (0.4..0.6) |  |  |  | 2026-01-01 10:00 |
| shared-postgres-unix-64: x, queries/s | 9 | 6 | 1.50 (1.4..1.6) |  |  |  | 2026-01-01 10:00 |
| open-loop: late | 3 |  |  |  |  |  | 2026-01-02 10:00 |
";

    fn page() -> Page {
        let runs = OLD.lines().filter(|line| line.starts_with(RUN)).map(str::to_owned).collect();
        let rows = OLD.lines().filter_map(Row::read).collect();
        Page { date: "2026-01-03 10:00".to_owned(), load_before: String::new(), rows, runs }
    }

    #[test]
    fn what_is_not_measured_now_stays_with_its_run() {
        let mut page = page();
        page.add(
            "open-loop",
            &[Line::from_values("open-loop: late".to_owned(), &[4.0], Bar::None)],
        );
        let rows: Vec<_> = page.rows.iter().map(|row| (row.name.as_str(), row.run())).collect();
        let old = ("shared-postgres-unix-64", "2026-01-01 10:00");
        assert_eq!(rows[1..], [old, old, ("open-loop", "2026-01-03 10:00")]);
        assert_eq!(page.runs.iter().filter(|run| page.is_shown(run)).count(), 1);
    }

    #[test]
    fn a_skipped_comparison_costs_no_figure() {
        let mut page = page();
        fn skipped(name: &str) -> [Line; 1] {
            [Line::new_note(name, "skipped: sysbench is not installed".to_owned())]
        }
        page.add("open-loop", &skipped("open-loop"));
        assert!(page.rows.iter().any(|row| row.text.contains("| open-loop: late | 3 |")));
        page.add("init-null", &skipped("init-null"));
        assert!(page.rows.last().unwrap().text.starts_with("| init-null | skipped: "));
        assert!(has_figures(OLD, "open-loop") && !has_figures(OLD, "init-null"));
    }

    #[test]
    fn claims_name_the_comparison_that_checks_them_and_are_put_between_marks() {
        let claims = page().claims();
        let claim = "0.50 (0.4..0.6) x pgbench's client CPU a query, 1.50 (1.4..1.6) x its throughput (`shared-postgres-unix-64`)\n";
        assert!(claims.ends_with(claim) && claims.lines().count() == 1, "{claims}");
        let document = format!("a\n{CLAIMS_BEGIN}- old\n{CLAIMS_END}\nb\n");
        let new = with_claims(&document, "- new\n");
        assert_eq!(new, Ok(format!("a\n{CLAIMS_BEGIN}- new\n{CLAIMS_END}\nb\n")));
        assert!(with_claims("a", "- new\n").is_err());
    }
}
