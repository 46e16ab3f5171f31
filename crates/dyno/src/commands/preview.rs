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

fn steps(plan: &Plan) -> String {
    let row = |(number, step): (usize, &PlanStep)| {
        let planned = plan.experiment(&step.experiment);
        vec![
            number.to_string(),
            step.experiment.clone(),
            step.target.clone(),
            planned.map_or(String::new(), |planned| what(planned, step)),
            // Those of a search that may not be needed.
            if step.estimated_s > 0.0 {
                format!("{:.0}", step.estimated_s)
            } else {
                "–".to_owned()
            },
        ]
    };
    let rows: Vec<Vec<String>> = (1..).zip(&plan.steps).map(row).collect();
    let columns = ["Step", "Experiment", "Target", "What", "Seconds"];
    text_table(&columns, &rows, |place| place == 0 || place == 4)
}

fn what(planned: &ExperimentFacts, step: &PlanStep) -> String {
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
        StepAction::Trial(trial) => of_trial(trial),
        StepAction::Cleanup => "drop the tables that this run has made".to_owned(),
    }
}

fn of_trial(trial: &PlannedTrial) -> String {
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
    match trial.purpose {
        Purpose::Measure => text.push_str(&format!(", repeat {}", trial.repeat)),
        Purpose::Search => text.push_str(", search"),
        Purpose::Confirm => text.push_str(", confirmation"),
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
