//! `-i`: the lines that pgbench prints while tables are made.

use super::refusal::Refusal;
use super::settings::Settings;
use dyno_drivers::target::Target;
use dyno_pgbench::init::{InitError, InitObserver, InitReport, Progress, Step, initialize};
use dyno_pgbench::run::server_text;
use dyno_runner::databases::with_driver;
use dyno_runner::output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Rows between two lines without `-q`.
const LINE_ROWS: u64 = 100_000;
/// Seconds between two lines with `-q`.
const QUIET_LINE_S: u64 = 5;

/// Makes the tables.
///
/// # Errors
/// In pgbench's words.
pub(super) fn run(settings: &Settings) -> Result<(), Refusal> {
    let reached = super::connection::reach(settings, "initialization")?;
    let is_canceled = Arc::new(AtomicBool::new(false));
    let lines = Lines {
        quiet: settings.quiet,
        next: Mutex::new(Next::default()),
        is_canceled: Arc::clone(&is_canceled),
    };
    let blocks = reached.database.blocks();
    // One connection stores all rows or none.
    let is_stored = settings.init.resume || settings.init.connections > 1;
    let last_words = failed(&InitError::Canceled { is_stored }, &reached.target);
    let watched = dyno_runner::signals::on_interrupt(move || {
        if blocks {
            // Nothing can be done within such a database meanwhile; its journal undoes what is not
            // committed.
            output::talk(last_words.to_string().trim_end());
            std::process::exit(1);
        }
        is_canceled.store(true, Ordering::Relaxed);
    });
    if let Err(error) = watched {
        output::talk(&format!("pgbench: warning: Ctrl-C will end it without a word: {error}"));
    }
    let done = with_driver!(&reached.database, driver => {
        initialize(driver, &settings.init, &lines)
    });
    let report = done.map_err(|error| failed(&error, &reached.target))?;
    output::talk(&summary(&report));
    Ok(())
}

/// Which line of rows comes next.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    line: u64,
}

/// Prints what happens.
struct Lines {
    quiet: bool,
    next: Mutex<Next>,
    is_canceled: Arc<AtomicBool>,
}

impl InitObserver for Lines {
    fn step_began(&self, step: Step) {
        output::talk(step.announcement());
    }

    fn creating_partitions(&self, partitions: u32) {
        output::talk(&format!("creating {partitions} partitions..."));
    }

    fn rows_done(&self, progress: &Progress) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = match self.quiet {
            true => progress.elapsed.as_secs() / QUIET_LINE_S,
            false => progress.rows_done / LINE_ROWS,
        };
        let is_last = progress.rows_done == progress.rows_total;
        if reached > next.line || is_last {
            next.line = reached;
            output::talk(&rows_line(progress));
        }
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Relaxed)
    }

    fn note(&self, text: &str) {
        output::talk(&format!("pgbench: {text}"));
    }
}

fn rows_line(progress: &Progress) -> String {
    let Progress { rows_done, rows_total, elapsed, remaining } = progress;
    let percent = rows_done * 100 / (*rows_total).max(1);
    format!(
        "{rows_done} of {rows_total} tuples ({percent}%) done (elapsed {:.2} s, remaining {:.2} s)",
        elapsed.as_secs_f64(),
        remaining.as_secs_f64()
    )
}

/// `done in 0.66 s (drop tables 0.00 s, ...).`
fn summary(report: &InitReport) -> String {
    let total: Duration = report.steps.iter().map(|(_, elapsed)| *elapsed).sum();
    let steps: Vec<_> = report
        .steps
        .iter()
        .map(|(step, elapsed)| format!("{} {:.2} s", step.name(), elapsed.as_secs_f64()))
        .collect();
    format!("done in {:.2} s ({}).", total.as_secs_f64(), steps.join(", "))
}

fn failed(error: &InitError, target: &Target) -> Refusal {
    let refusal = match (error, error.db_error()) {
        (InitError::Session { step: None, .. }, Some(error)) => {
            return Refusal::unconnected(error, target.dialect)
                .then("could not create connection for initialization");
        }
        (_, Some(db_error)) => {
            let sql = error.sql().unwrap_or_default();
            let text = server_text(db_error, sql);
            let refusal = Refusal::error(format_args!("query failed: {text}"));
            match error.sql() {
                Some(sql) => refusal.with_detail(format_args!("Query was: {sql}")),
                None => refusal,
            }
        }
        _ => Refusal::error(error),
    };
    // What the server itself advises is among its words.
    match error.hint().filter(|hint| error.db_error().and_then(|error| error.hint()) != Some(hint))
    {
        Some(hint) => refusal.with_hint(hint),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_originals() {
        let progress = Progress {
            rows_done: 100_000,
            rows_total: 200_000,
            elapsed: Duration::from_millis(61),
            remaining: Duration::from_millis(64),
        };
        assert_eq!(
            rows_line(&progress),
            "100000 of 200000 tuples (50%) done (elapsed 0.06 s, remaining 0.06 s)"
        );
        let steps = vec![
            (Step::DropTables, Duration::from_millis(10)),
            (Step::ClientData, Duration::from_millis(540)),
        ];
        let report = InitReport { steps, ..InitReport::default() };
        assert_eq!(
            summary(&report),
            "done in 0.55 s (drop tables 0.01 s, client-side generate 0.54 s)."
        );
    }
}
