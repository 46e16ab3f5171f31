//! What a run will do, before it begins: steps, sizes, seconds, and tables that are made and dropped.

use crate::families;
use crate::terminal::human_time;
use dyno_facts::format::grouped;
use dyno_facts::{ExperimentFacts, PlanStep, PlannedTrial, Purpose, StepAction, text_table};
use dyno_runner::failure::Failure;
use dyno_runner::family;
use dyno_suite::Plan;

/// All of it, as `dyno run --plan` prints it.
///
/// # Errors
/// An option of an experiment is wrong.
pub(crate) fn text(plan: &Plan) -> Result<String, Failure> {
    let mut text = format!("{}: about {}\n", plan.suite.title, human_time(plan.estimated_s));
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(&format!("\n{}\n{}", steps(plan), tables(plan)?));
    Ok(text)
}

/// A step; or all pairs of a load level, of which a comparison makes as many as it needs.
struct StepRow<'a> {
    level: Option<PairedLevel<'a>>,
    first: usize,
    last: usize,
    /// Each with its seconds.
    steps: Vec<(&'a PlanStep, f64)>,
}

/// Its experiment, workers, degree and rate, and the most pairs.
type PairedLevel<'a> = (&'a str, u32, Option<u32>, Option<u64>, u32);

fn paired_level<'a>(plan: &Plan, step: &'a PlanStep) -> Option<PairedLevel<'a>> {
    let StepAction::Trial(trial) = &step.action else { return None };
    let stop = plan.experiment(&step.experiment)?.comparison.as_ref()?.stop;
    let is_open = stop.pairs_least < stop.pairs_most && trial.purpose == Purpose::Measure;
    let rate = trial.rate.map(f64::to_bits);
    is_open.then_some((
        step.experiment.as_str(),
        trial.workers,
        trial.degree,
        rate,
        stop.pairs_most,
    ))
}

fn steps(plan: &Plan) -> String {
    let mut rows: Vec<StepRow<'_>> = Vec::new();
    for (number, step) in (1..).zip(&plan.steps) {
        let level = paired_level(plan, step);
        let seconds = (step, step.estimated_s);
        match rows.iter_mut().find(|row| level.is_some() && row.level == level) {
            Some(row) => {
                row.last = number;
                row.steps.push(seconds);
            }
            None => {
                rows.push(StepRow { level, first: number, last: number, steps: vec![seconds] });
            }
        }
    }
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.cells(plan)).collect();
    let columns = ["Step", "Experiment", "Target", "What", "Seconds"];
    text_table(&columns, &rows, |place| place == 0 || place == 4)
}

impl StepRow<'_> {
    fn cells(&self, plan: &Plan) -> Vec<String> {
        let step = self.steps[0].0;
        let planned = plan.experiment(&step.experiment);
        let mut targets: Vec<&str> = Vec::new();
        for (step, _) in &self.steps {
            if !targets.contains(&step.target.as_str()) {
                targets.push(&step.target);
            }
        }
        let seconds = dyno_suite::estimate(&plan.experiments, &self.steps, |_| 0.0);
        let most = self.level.map(|(.., most)| most);
        vec![
            match self.first == self.last {
                true => self.first.to_string(),
                false => format!("{}–{}", self.first, self.last),
            },
            step.experiment.clone(),
            targets.join(", "),
            planned.map_or(String::new(), |planned| what(planned, step, most)),
            // Those of a search that may not be needed.
            if seconds > 0.0 { format!("{seconds:.0}") } else { "–".to_owned() },
        ]
    }
}

/// `most` pairs are made of what is repeated until it is known.
fn what(planned: &ExperimentFacts, step: &PlanStep, most: Option<u32>) -> String {
    match &step.action {
        StepAction::Prepare => match planned.data {
            Some(data) if data.tables > 1 => format!(
                "load {} tables of {} rows",
                grouped(data.tables),
                grouped(data.rows_per_table)
            ),
            Some(data) => {
                format!("load, {} rows in the largest table", grouped(data.rows_per_table))
            }
            None => "load".to_owned(),
        },
        StepAction::Trial(trial) => of_trial(trial, most),
        StepAction::Cleanup => "drop the tables that this run has made".to_owned(),
    }
}

fn of_trial(trial: &PlannedTrial, most: Option<u32>) -> String {
    let mut text = match trial.degree {
        Some(degree) => format!("queries at degree {degree}"),
        None if trial.workers == 1 => "1 worker".to_owned(),
        None => format!("{} workers", trial.workers),
    };
    if let Some(rate) = trial.rate {
        text.push_str(&format!(" at {rate} tx/s"));
    }
    if let Some(seconds) = trial.duration_s {
        text.push_str(&format!(", {seconds} s"));
    }
    if let Some(events) = trial.events {
        text.push_str(&format!(", {} transactions", grouped(events)));
    }
    if trial.warmup_s > 0.0 {
        text.push_str(&format!(" after {} s of warm-up", trial.warmup_s));
    }
    match (trial.purpose, most) {
        (Purpose::Measure, Some(most)) => text.push_str(&format!(", up to {most} pairs")),
        (Purpose::Measure, None) => text.push_str(&format!(", repeat {}", trial.repeat)),
        (Purpose::Search, _) => text.push_str(", search"),
        (Purpose::Confirm, _) => text.push_str(", confirmation"),
    }
    text
}

/// Tables of each target, in the order of their experiments.
fn tables(plan: &Plan) -> Result<String, Failure> {
    let mut text = String::new();
    for target in plan.targets.iter().filter(|target| target.owner() == target.name) {
        let mut made: Vec<String> = Vec::new();
        let mut dropped: Vec<String> = Vec::new();
        for step in plan.steps.iter().filter(|step| step.target == target.name) {
            let list = match &step.action {
                StepAction::Prepare => &mut made,
                StepAction::Cleanup => &mut dropped,
                StepAction::Trial(_) => continue,
            };
            let Some(planned) = plan.experiment(&step.experiment) else { continue };
            for table in family::experiment(families(), plan, planned)?.tables() {
                if !list.contains(&table) {
                    list.push(table);
                }
            }
        }
        let kept: Vec<&String> = made.iter().filter(|table| !dropped.contains(table)).collect();
        let names = |tables: &[String]| match tables {
            [] => "none".to_owned(),
            tables => tables.join(", "),
        };
        text.push_str(&format!(
            "{} ({}): creates where missing: {}.\n",
            target.name,
            target.url.redacted(),
            names(&made)
        ));
        text.push_str(&match kept.is_empty() {
            true => "  Drops at the end what it has created.".to_owned(),
            false => format!("  Drops what it has created, but keeps {} of them.", kept.len()),
        });
        text.push_str(" Tables that are there already are measured as they are, and kept.\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_suite::{Overrides, Suite};

    fn table(pairs: &str) -> String {
        let text = format!(
            "[suite]\nname = 's'\n[target.old]\nurl = 'mysql://u@h/a'\n\
             [target.new]\nurl = 'mysql://u@h/b'\n[[experiment]]\nname = 'e'\n\
             workload = 'sysbench'\ntest = 'oltp_read_only'\nworkers = [1, 8]\nwarmup_s = 0\n\
             duration_s = 10\ncleanup = false\n\
             compare = {{ baseline = 'old', candidates = 'new', {pairs} }}\n"
        );
        let suite = Suite::parse("s.toml", &text, &[dyno_sysbench::OFFER]).expect("a suite");
        steps(&Plan::build(&suite, &Overrides::default()).expect("a plan"))
    }

    #[test]
    fn pairs_that_are_made_as_needed_are_one_row_for_each_level() {
        let open = table("until_decided = true, budget = '5m'");
        assert_eq!(open.lines().filter(|line| line.contains(" e ")).count(), 4, "{open}");
        for level in ["1 worker, 10 s, up to 200 pairs", "8 workers, 10 s, up to 200 pairs"] {
            let row = open.lines().find(|line| line.contains(level)).unwrap_or_default();
            assert!(row.contains("–") && row.ends_with(" 300"), "{open}");
            assert!(row.contains("old, new") || row.contains("new, old"), "{open}");
        }
        let closed = table("pairs = 6");
        assert_eq!(closed.matches("worker").count(), 2 * 2 * 6, "{closed}");
        assert!(closed.contains("8 workers, 10 s, repeat 6") && !closed.contains("up to"));
    }
}
