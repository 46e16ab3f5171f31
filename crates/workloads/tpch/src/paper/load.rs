//! How the data were loaded.

use super::{TpchSection, facts, words};
use crate::facts::{LoadStep, TpchLoad};
use dyno_facts::Message;
use dyno_facts::say;
use dyno_report::Trial;
use dyno_report::blocks::{Blocks, Cell, PaperRows};
use dyno_report::format::{
    self,
    NumberFormat::{Short, Whole},
};

/// Of fewer rows the time is that of beginning and ending.
const ROWS_FOR_A_RATE: u64 = 1000;

/// One load of a target.
#[derive(Clone)]
pub(super) struct LoadTable {
    /// Label of the target.
    pub(super) target: String,
    /// Scale factor.
    pub(super) scale: f64,
    /// RFC 3339, UTC: when it was complete.
    pub(super) finished_at: String,
    /// The steps in order, behind them those of their parts that store rows or take 1 % of the whole.
    pub(super) rows: Vec<LoadRow>,
    /// Of the whole load, seconds; `None` where a step is known by its parts alone, which overlap.
    pub(super) total_s: Option<f64>,
    /// Sum of the steps, seconds.
    pub(super) steps_s: f64,
    /// Rows that were stored.
    pub(super) stored: u64,
    /// Data and indexes, bytes; `None` where the server does not say.
    pub(super) size_bytes: Option<u64>,
    /// How often the load was begun; 0 where the database does not say.
    pub(super) attempts: u32,
    /// Fewest and most pairs of refresh functions that had been applied when a trial began.
    pub(super) refresh_pairs: (u32, u32),
}

/// A step of a load, or the part of a step that concerns one table.
#[derive(Clone)]
pub(super) struct LoadRow {
    /// In words.
    pub(super) name: Message,
    /// True of the part of a step.
    pub(super) is_part: bool,
    pub(super) seconds: f64,
    /// Rows it stored; 0 where it stored none.
    pub(super) rows: u64,
    /// Rows per second; `None` where it stored none or too few to say.
    pub(super) rows_per_s: Option<f64>,
}

/// One table per load, in the order of the trials.
pub(super) fn tables(trials: &[&Trial]) -> Vec<LoadTable> {
    let mut tables: Vec<LoadTable> = Vec::new();
    for trial in trials {
        let Some((facts, load)) = facts(trial).and_then(|f| Some((f, f.load.as_ref()?))) else {
            continue;
        };
        let same = |table: &&mut LoadTable| {
            (&table.target, &table.finished_at, table.scale)
                == (&trial.target, &load.finished_at, facts.scale)
        };
        match tables.iter_mut().find(same) {
            Some(table) => {
                let pairs = &mut table.refresh_pairs;
                *pairs = (pairs.0.min(load.refresh_pairs), pairs.1.max(load.refresh_pairs));
            }
            None => tables.push(table(&trial.target, facts.scale, load)),
        }
    }
    tables
}

/// The name of a step without the table behind it.
pub(super) fn step_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

fn table(target: &str, scale: f64, load: &TpchLoad) -> LoadTable {
    let is_whole = |step: &&LoadStep| !step.name.contains('/');
    let wholes = || load.steps.iter().filter(is_whole);
    let is_orphan = |step: &LoadStep| !wholes().any(|whole| whole.name == step_of(&step.name));
    // Parts say more than their sum; a step without parts says it itself.
    let has_parts = |step: &LoadStep| {
        load.steps.iter().any(|other| other.name.contains('/') && step_of(&other.name) == step.name)
    };
    let stored = load.steps.iter().filter(|step| !has_parts(step)).map(|step| step.rows).sum();
    let mut ordered: Vec<&LoadStep> = Vec::new();
    for step in &load.steps {
        let of_same = |other: &&LoadStep| step_of(&other.name) == step_of(&step.name);
        if ordered.iter().any(of_same) {
            continue;
        }
        // Parts may have ended before the step as a whole was written down.
        ordered.extend(load.steps.iter().filter(of_same).filter(is_whole));
        ordered.extend(load.steps.iter().filter(of_same).filter(|step| !is_whole(step)));
    }
    // Parts that take no time only make the table long.
    const LEAST_SHARE: f64 = 0.01;
    let all_s: f64 = wholes().map(|step| step.seconds).sum();
    ordered.retain(|step| {
        !step.name.contains('/') || step.rows > 0 || step.seconds >= all_s * LEAST_SHARE
    });
    let warmed = wholes().filter(|step| step.name == "warm-up").map(|step| step.seconds);
    let total_s = load.seconds.map_or(all_s, |seconds| seconds + warmed.sum::<f64>());
    let row = |step: &LoadStep| LoadRow {
        name: words::step(&step.name),
        is_part: step.name.contains('/'),
        seconds: step.seconds,
        rows: step.rows,
        rows_per_s: (step.rows >= ROWS_FOR_A_RATE && step.seconds > 0.0)
            .then(|| step.rows as f64 / step.seconds),
    };
    LoadTable {
        target: target.to_owned(),
        scale,
        finished_at: load.finished_at.clone(),
        rows: ordered.into_iter().map(row).collect(),
        total_s: (!load.steps.iter().any(is_orphan)).then_some(total_s),
        steps_s: all_s,
        stored,
        size_bytes: load.size_bytes,
        attempts: load.attempts,
        refresh_pairs: (load.refresh_pairs, load.refresh_pairs),
    }
}

/// A step of a load, or the sum of all.
#[derive(Clone, Copy)]
enum LoadStepRow<'a> {
    One(&'a LoadRow),
    All(&'a LoadTable),
}

pub(super) fn blocks(section: &TpchSection<'_>, blocks: &mut Blocks) {
    let loads = tables(&section.trials);
    if loads.is_empty() {
        blocks.fine(say!(how_and_when_the_data_were));
    }
    for load in &loads {
        blocks.table(load_steps(load));
        blocks.fine(Message::sentences(&load_words(load)));
    }
}

fn load_steps(load: &LoadTable) -> PaperRows<LoadStepRow<'_>> {
    let mut title =
        say!(load_of_at_scale_factor, target = &load.target, scale = format::plain(load.scale));
    if !load.finished_at.is_empty() {
        let time = say!(complete_at_time, time = &load.finished_at);
        title = Message::joined(&[title, time], ", ", "，");
    }
    if let Some(bytes) = load.size_bytes {
        let size = say!(size_with_indexes, size = format::bytes(bytes as f64));
        title = Message::joined(&[title, size], ": ", "：");
    }
    PaperRows::new(title, load.rows.iter().map(LoadStepRow::One).chain([LoadStepRow::All(load)]))
        .text(say!(step), |step| match step {
            LoadStepRow::One(row) => row.name.clone(),
            LoadStepRow::All(_) => say!(all_steps),
        })
        .col(say!(seconds_2), Short, |step| match step {
            LoadStepRow::One(row) => {
                Cell::from(row.seconds).class(if row.is_part { "" } else { "strong" })
            }
            LoadStepRow::All(load) => Cell::from(load.total_s).class("strong"),
        })
        .col(say!(rows), Whole, |step| match step {
            LoadStepRow::One(row) if row.rows == 0 => Cell::blank(),
            LoadStepRow::One(row) => row.rows.into(),
            LoadStepRow::All(load) => load.stored.into(),
        })
        .col(say!(rows_per_s), Whole, |step| match step {
            LoadStepRow::One(row) => row.rows_per_s.map_or_else(Cell::blank, Cell::from),
            LoadStepRow::All(_) => Cell::blank(),
        })
        .each(|step, row| {
            row.class =
                if matches!(step, LoadStepRow::One(own) if own.is_part) { "part" } else { "" };
        })
        .feet(1)
}

fn load_words(load: &LoadTable) -> Vec<Message> {
    let mut words = Vec::new();
    if load.rows.iter().any(|row| row.is_part) {
        words.push(say!(tables_of_a_step_are_worked));
    }
    // What is rounded for the paper is no overlap.
    if let Some(total_s) = load.total_s
        && load.steps_s > total_s * 1.01
    {
        words.push(say!(steps_overlap, seconds = format::short(load.steps_s)));
    }
    if load.attempts > 1 {
        let n = load.attempts.to_string();
        words.push(say!(the_load_was_begun_times_the, n = n));
    }
    words.push(match load.refresh_pairs {
        (_, 0) => say!(no_refresh_function_has_changed_these),
        (least, most) if least == most => {
            say!(pairs_of_refresh_functions_that_had, n = least.to_string())
        }
        (least, most) => say!(
            pairs_of_refresh_functions_that_had_been,
            least = least.to_string(),
            most = most.to_string()
        ),
    });
    words
}
