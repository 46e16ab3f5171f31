//! The page `bench/RESULTS.md`.

use crate::bench::Bench;
use crate::comparisons::{Comparison, Section};
use crate::machine;
use crate::table::{self, Line};
use std::fmt::Write as _;
use std::process::Command;

const METHOD: &str = include_str!("../../method.md");
const TRIED: &str = include_str!("../../tried.md");

pub(crate) struct Page {
    load_before: String,
    lines: Vec<(Section, Line)>,
    claims: Vec<String>,
    failed: Vec<String>,
}

impl Page {
    pub(crate) fn new(bench: &Bench) -> Self {
        // Building dyno was the load until now.
        bench.quiet.wait();
        let load_before = machine::load_average();
        Page { load_before, lines: Vec::new(), claims: Vec::new(), failed: Vec::new() }
    }

    pub(crate) fn add(&mut self, comparison: &Comparison, lines: Vec<Line>) {
        if let Some(claim) = comparison.claim
            && let [cpu, rate] = lines.as_slice()
        {
            let (cpu, rate, peer) = (cpu.ratio(), rate.ratio(), comparison.peer);
            self.claims.push(format!(
                "- {claim}: {cpu} x {peer}'s client CPU a query, {rate} x its throughput"
            ));
        }
        self.lines.extend(lines.into_iter().map(|line| (comparison.section, line)));
    }

    pub(crate) fn fail(&mut self, comparison: Comparison) {
        self.lines.push((comparison.section, Line::note(&comparison.name, "failed".to_owned())));
        self.failed.push(comparison.name);
    }

    pub(crate) fn failed(&self) -> Result<(), String> {
        if self.failed.is_empty() {
            Ok(())
        } else {
            Err(format!("failed: {}", self.failed.join(", ")))
        }
    }

    pub(crate) fn text(&self, bench: &Bench) -> String {
        let mut text =
            "# dyno beside sysbench, pgbench, go-tpc, psql and tpchgen-cli\n\n".to_owned();
        if !self.claims.is_empty() {
            let _ = writeln!(text, "{}\n", self.claims.join("\n"));
        }
        let _ = writeln!(text, "## The machine and the runs\n\n{}", machine::description());
        let _ = writeln!(text, "- {}", today());
        let Bench { pairs, seconds, short_seconds, quiet, .. } = bench;
        let _ = writeln!(text, "- {pairs} rounds of runs of {seconds} s less {short_seconds} s");
        let (before, after) = (&self.load_before, machine::load_average());
        let _ = writeln!(text, "- load average before: {before}; after: {after}");
        let _ = writeln!(text, "- {}", quiet.description());
        for (section, title) in Section::ALL {
            let lines: Vec<_> = self
                .lines
                .iter()
                .filter(|(of, _)| *of == section)
                .map(|(_, line)| line.to_string())
                .collect();
            if !lines.is_empty() {
                let _ = writeln!(text, "\n## {title}\n\n{}\n{}", table::HEAD, lines.join("\n"));
            }
        }
        let _ = write!(text, "\n{METHOD}\n{TRIED}");
        text
    }
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    date.map_or("date unknown".to_owned(), |said| {
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    })
}
