//! `-i`: the lines that pgbench prints while tables are made.

use super::Refusal;
use super::options::Settings;
use dyno_core::{Cause, DbError};
use dyno_drivers::target::TargetUrl;
use dyno_load::{LoadError, LoadErrorKind, LoadObserver};
use dyno_pgbench::init::{InitReport, canceled, initialize};
use dyno_pgbench::options::OFFER;
use dyno_pgbench::run::server_text;
use dyno_runner::failure::Exit;
use dyno_runner::{lock_tables, output, signals};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows between two lines without `-q`.
const LINE_ROWS: u64 = 100_000;
/// Seconds between two lines with `-q`.
const QUIET_LINE_S: u64 = 5;

/// Executes `pgbench -i`.
pub(super) fn run(settings: &Settings) -> Result<Exit, Refusal> {
    let opened = super::setup::reach(settings, "initialization")?;
    let is_canceled = Arc::new(AtomicBool::new(false));
    let lines = Lines {
        quiet: settings.quiet,
        total: settings.init.accounts() as u64,
        rows: Mutex::new(Rows::with_found(0)),
        is_canceled: Arc::clone(&is_canceled),
    };
    let blocks = opened.database.blocks();
    // One connection stores all rows or none.
    let is_stored = settings.init.resume || settings.init.connections > 1;
    let last_words = unended_load(&canceled(is_stored), &opened.target);
    let watched = signals::on_interrupt(move || {
        if blocks {
            // Nothing can be done within such a database meanwhile; its journal undoes what is not
            // committed.
            output::talk_lines(last_words.to_string().trim_end());
            std::process::exit(i32::from(signals::exit_code()));
        }
        is_canceled.store(true, Ordering::Relaxed);
    });
    if let Err(error) = watched {
        output::talk(&format!("pgbench: warning: Ctrl-C will end it without a word: {error}"));
    }
    let report = lock_tables(&opened.database, OFFER.name, &lines)
        .and_then(|_lock| initialize(&opened.database.admin(), &settings.init, &lines));
    match report {
        Ok(report) => {
            output::talk_lines(&summary(&report));
            Ok(Exit::Done)
        }
        Err(error) => {
            let refusal = unended_load(&error, &opened.target);
            if error.kind != LoadErrorKind::Canceled {
                return Err(refusal);
            }
            output::talk_unended(&refusal.to_string());
            Ok(Exit::Interrupted)
        }
    }
}

struct Rows {
    begun: Instant,
    /// Rows of an earlier load: they say nothing about the speed of this one.
    found: u64,
    loaded: u64,
    /// The number of the line that was printed last.
    line: u64,
}

impl Rows {
    fn with_found(found: u64) -> Self {
        Rows { begun: Instant::now(), found, loaded: 0, line: 0 }
    }

    /// Returns the original's line of progress after this time.
    fn line(&self, total: u64, elapsed: Duration) -> String {
        let stored = self.found + self.loaded;
        let remaining = remaining(elapsed, self.loaded, total.saturating_sub(stored));
        format!(
            "{stored} of {total} tuples ({}%) done (elapsed {:.2} s, remaining {:.2} s)",
            stored * 100 / total.max(1),
            elapsed.as_secs_f64(),
            remaining.as_secs_f64()
        )
    }
}

/// At the speed so far.
fn remaining(elapsed: Duration, loaded: u64, missing: u64) -> Duration {
    if loaded == 0 {
        return Duration::ZERO;
    }
    let seconds = elapsed.as_secs_f64() * missing as f64 / loaded as f64;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

struct Lines {
    quiet: bool,
    /// Accounts when all are there.
    total: u64,
    rows: Mutex<Rows>,
    is_canceled: Arc<AtomicBool>,
}

impl LoadObserver for Lines {
    fn line(&self, text: &str) {
        output::talk_lines(text);
    }

    fn rows_planned(&self, rows: u64) {
        let stored = self.total.saturating_sub(rows);
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = Rows::with_found(stored);
    }

    fn rows_done(&self, count: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.loaded += count;
        let (elapsed, stored) = (rows.begun.elapsed(), rows.found + rows.loaded);
        let line = if self.quiet { elapsed.as_secs() / QUIET_LINE_S } else { stored / LINE_ROWS };
        if line > rows.line || stored == self.total {
            rows.line = line;
            output::talk_lines(&rows.line(self.total, elapsed));
        }
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Relaxed)
    }

    fn note(&self, text: &str) {
        output::talk_lines(&format!("pgbench: {text}"));
    }
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

fn unended_load(error: &LoadError, target: &TargetUrl) -> Refusal {
    let refusal = match &error.error {
        Some(error) if error.is_connect() => {
            return Refusal::unconnected(error, target.dialect)
                .with("error", "could not create connection for initialization");
        }
        Some(db_error) => {
            let text = server_text(db_error, error.sql.as_deref().unwrap_or_default());
            // The server has answered COPY with something that no COPY is answered with.
            let is_no_copy = db_error.cause() == Cause::Protocol
                && error.sql.as_ref().is_some_and(|sql| sql.starts_with("copy "));
            if is_no_copy {
                Refusal::error(format_args!("unexpected copy in result: {text}"))
            } else {
                let query = error.sql.as_ref().map(|sql| format!("Query was: {sql}"));
                Refusal::error(format_args!("query failed: {text}")).with_any("detail", query)
            }
        }
        None => Refusal::error(error),
    };
    // What the server itself advises is among its words.
    let server = error.error.as_ref().filter(|error| error.is_from_server());
    let by_server = server.and_then(DbError::hint);
    refusal.with_any("hint", error.hint().filter(|hint| by_server != Some(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_pgbench::init::InitStep;

    #[test]
    fn the_rest_is_estimated_from_this_loads_own_speed() {
        let second = Duration::from_secs(1);
        assert_eq!(remaining(2 * second, 200, 800), 8 * second);
        assert_eq!(remaining(2 * second, 200, 0), Duration::ZERO);
        assert_eq!(remaining(2 * second, 0, 800), Duration::ZERO);
        assert_eq!(remaining(Duration::MAX, 1, u64::MAX), Duration::MAX);
    }

    #[test]
    fn lines_are_the_originals() {
        let rows = Rows { loaded: 50_000, ..Rows::with_found(50_000) };
        assert_eq!(
            rows.line(200_000, Duration::from_millis(61)),
            "100000 of 200000 tuples (50%) done (elapsed 0.06 s, remaining 0.12 s)"
        );
        let steps = vec![
            (InitStep::DropTables, Duration::from_millis(10)),
            (InitStep::ClientData, Duration::from_millis(540)),
        ];
        let report = InitReport { steps, ..InitReport::default() };
        assert_eq!(
            summary(&report),
            "done in 0.55 s (drop tables 0.01 s, client-side generate 0.54 s)."
        );
    }
}
