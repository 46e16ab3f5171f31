//! `--check-balances`: whether accounts, tellers, branches and history changed alike.

use super::options::Settings;
use super::refusal::Refusal;
use dyno_core::DbError;
use dyno_drivers::Database;
use dyno_pgbench::check::{Balances, Ledger, balances};
use dyno_pgbench::run::server_text;
use dyno_pgbench::script::Script;
use dyno_runner::databases::{in_session, run};
use dyno_runner::output;

/// The sums before a run, and which of them the scripts must change alike.
pub(super) struct Books {
    ledger: Ledger,
    before: Balances,
}

impl Books {
    /// Reads the sums, if the settings ask for the check.
    ///
    /// # Errors
    /// When the scripts leave nothing to check, or the tables can't be read.
    pub(super) fn open(
        database: &Database,
        settings: &Settings,
        scripts: &[(Script, u32)],
    ) -> Result<Option<Books>, Refusal> {
        if !settings.check_balances {
            return Ok(None);
        }
        let texts: Vec<String> = scripts.iter().map(|(script, _)| text(script)).collect();
        let ledger = Ledger::of(texts.iter().map(String::as_str));
        if ledger.is_empty() {
            let what = "--check-balances finds nothing to check in these scripts";
            return Err(Refusal::error(what).with_hint(
                "Scripts that only read leave all balances as they are: leave the option out.",
            ));
        }
        let before = read(database).map_err(|error| failed(&error))?;
        Ok(Some(Books { ledger, before }))
    }

    /// Reads the sums again and says on standard error what came of them.
    ///
    /// # Errors
    /// When they don't agree, or can't be read any more.
    pub(super) fn close(&self, database: &Database) -> Result<(), Refusal> {
        let after = read(database).map_err(|error| failed(&error))?;
        let Some(verdict) = after.change_since(&self.before).verdict(&self.ledger) else {
            return Ok(());
        };
        if !verdict.is_balanced {
            let refusal =
                Refusal::error(format_args!("The balances don't agree. {}", verdict.evidence));
            return Err(refusal.with_hint(
                "Make sure that nothing else writes to the tables, and that nothing truncates the \
                 history meanwhile; else the server lost or invented changes.",
            ));
        }
        output::talk_lines(&format!("pgbench: balances agree: {}", verdict.evidence));
        Ok(())
    }
}

/// The script as it was read, but for what doesn't matter here.
fn text(script: &Script) -> String {
    let line = |command: &dyno_pgbench::script::ScriptCommand| match command.is_sql() {
        true => format!("{};\n", command.text()),
        false => format!("{}\n", command.text()),
    };
    script.commands().iter().map(line).collect()
}

fn read(database: &Database) -> Result<Balances, DbError> {
    run(in_session(&database.admin(), async |session| balances(session).await))
}

fn failed(error: &DbError) -> Refusal {
    Refusal::error(format_args!("could not read the balances: {}", server_text(error, "")))
}
