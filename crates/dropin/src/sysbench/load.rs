//! The commands `prepare`, `prewarm` and `cleanup`.

use super::console::{Console, Level};
use super::fatal::{self, Place};
use super::options::{DbDriver, Settings};
use dyno_drivers::Database;
use dyno_load::{LoadError, LoadObserver, LoadReport, Unobserved};
use dyno_runner::failure::Exit;
use dyno_runner::lock_tables;
use dyno_runner::progress::LoadProgress;
use dyno_sysbench::{OFFER, SysbenchOptions, cleanup, prepare, prewarm};
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadCommand {
    Prepare,
    Prewarm,
    Cleanup,
}

/// Prints the original's lines, and the progress of what takes long.
struct Lines<'a> {
    console: Mutex<&'a mut Console>,
    progress: LoadProgress,
}

impl Lines<'_> {
    fn say(&self, line: impl Display) {
        self.progress.suspend(|| {
            self.console.lock().unwrap_or_else(PoisonError::into_inner).notice(line);
        });
    }
}

impl LoadObserver for Lines<'_> {
    fn rows_planned(&self, rows: u64) {
        self.progress.rows_planned(rows);
    }

    fn creating_table(&self, table: &str) {
        self.say(format_args!("Creating table '{table}'..."));
    }

    fn inserting(&self, rows: u64, table: &str) {
        self.say(format_args!("Inserting {rows} records into '{table}'"));
    }

    fn rows_done(&self, rows: u64) {
        self.progress.rows_done(rows);
    }

    fn creating_index(&self, table: &str) {
        self.say(format_args!("Creating a secondary index on '{table}'..."));
        self.progress.creating_index(table);
    }

    fn prewarming_table(&self, table: &str) {
        self.say(format_args!("Prewarming table {table}"));
    }

    fn dropping_table(&self, table: &str) {
        self.say(format_args!("Dropping table '{table}'..."));
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }
}

pub(super) fn load(
    database: &Database,
    command: LoadCommand,
    settings: &Settings,
    options: &SysbenchOptions,
    console: &mut Console,
) -> Exit {
    if command == LoadCommand::Prewarm && settings.db_driver == DbDriver::Pgsql {
        let function = Place::Command.function();
        let why = "prewarm is currently MySQL only";
        console.fatal(format_args!("`{function}' function failed: {why}"));
        return Exit::Failed;
    }
    let lock = (command != LoadCommand::Prewarm)
        .then(|| lock_tables(database, OFFER.name, &Unobserved))
        .transpose();
    if let Err(error) = &lock {
        print(console, error, settings);
        return Exit::Failed;
    }
    // The original makes the tables of bulk_insert one after the other.
    let is_parallel = command != LoadCommand::Cleanup && !options.test.is_bulk_insert();
    if settings.threads > 1 && is_parallel {
        console.notice("Initializing worker threads...\n");
    }
    let lines =
        Lines { console: Mutex::new(console), progress: LoadProgress::new(options.test.name()) };
    let threads = settings.threads;
    let admin = database.admin();
    let report = match command {
        LoadCommand::Prepare => {
            prepare(&admin, options, threads, settings.rand_seed, &lines).map(Some)
        }
        LoadCommand::Prewarm => prewarm(&admin, options, threads, &lines).map(|()| None),
        LoadCommand::Cleanup => cleanup(&admin, options, threads, &lines).map(|()| None),
    };
    let Lines { console, progress } = lines;
    let console = console.into_inner().unwrap_or_else(PoisonError::into_inner);
    match report {
        Ok(Some(report)) if console.prints(Level::Notice) => {
            progress.finish(&summary(&report.rows));
            Exit::Done
        }
        Ok(_) => {
            progress.clear();
            Exit::Done
        }
        Err(error) => {
            progress.clear();
            print(console, &error, settings);
            Exit::Failed
        }
    }
}

fn summary(report: &LoadReport) -> String {
    let method = report.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let found = match report.rows_found {
        0 => String::new(),
        rows => format!(", {rows} were there before"),
    };
    format!("{} rows loaded{method}{found}", report.rows_loaded)
}

/// An error of what is done as a load is.
pub(super) fn print(console: &mut Console, error: &LoadError, settings: &Settings) {
    match error {
        LoadError::Session { doing, sql, error, hint, .. } => {
            let error = match sql {
                Some(sql) => error.clone().with_statement(sql.as_str()),
                None => error.clone(),
            };
            if !error.is_connect() && sql.is_none() {
                console.fatal(format_args!("{doing} failed"));
            }
            fatal::print(console, &error, Place::Command, settings.db_driver);
            if let (None, Some(hint)) = (error.hint(), hint) {
                console.hint(hint);
            }
        }
        _ => {
            console.fatal(error);
            if let Some(hint) = error.hint() {
                console.hint(hint);
            }
        }
    }
}
