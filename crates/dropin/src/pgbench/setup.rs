//! From the connection options to a database that has answered once, whose tables are looked at and vacuumed.
//! `--check-balances`: whether accounts, tellers, branches and history changed alike.

use super::Refusal;
use super::options::{Connection, Settings};
use dyno_core::{AdminDriver, AdminSession, DbError, Nanos, Product, SECOND};
use dyno_drivers::target::{
    LibpqOptions, TargetError, TargetUrl, UNLIMITED_CONNECT_S, find_password, system_user,
};
use dyno_load::StallTimeouts;
use dyno_pgbench::check::{Balances, Ledger, balances};
use dyno_pgbench::init::{is_missing_table, table_info, vacuum_accounts, vacuum_before_run};
use dyno_pgbench::options::OFFER;
use dyno_pgbench::run::server_text;
use dyno_pgbench::script::Script;
use dyno_reactor::{monotonic_now, timeout};
use dyno_runner::databases::{self, Database, in_session, run};
use dyno_runner::{lock_holder, output, shared_warning};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) scale: i64,
    /// Method and number.
    pub(super) partitions: Option<(&'static str, u32)>,
}

/// Looks at the tables and vacuums them as far as the settings ask for it.
pub(super) fn set_up(
    opened: &OpenedDatabase,
    settings: &Settings,
    has_builtin: bool,
) -> Result<Tables, Refusal> {
    let admin = opened.database.admin();
    let tables = set_up_in_session(&admin, opened, settings, has_builtin);
    dyno_reactor::block_on(tables).unwrap_or_else(|error| Err(Refusal::error(error)))
}

async fn set_up_in_session(
    driver: &AdminDriver<'_>,
    opened: &OpenedDatabase,
    settings: &Settings,
    has_builtin: bool,
) -> Result<Tables, Refusal> {
    let connected = driver.connect(0).await;
    let mut session = connected.map_err(|error| {
        let refusal = Refusal::unconnected(&error, opened.target.dialect);
        refusal.with("error", "could not create connection for setup")
    })?;
    let scale = settings.scale.map_or(1, i64::from);
    let mut tables = Tables { scale, partitions: None };
    if has_builtin {
        let holder = lock_holder(&mut session, OFFER.name).await;
        if let Some(who) = holder.map_err(|error| no_tables(Some(&error), opened))? {
            output::talk(&format!("pgbench: warning: {}", shared_warning(&who)));
        }
        let info = table_info(&mut session).await;
        let info = info.map_err(|error| no_tables(Some(&error), opened))?;
        let info = info.ok_or_else(|| no_tables(None, opened))?;
        let partitions = info.partition_method.map(|method| (method.name(), info.partitions));
        tables = Tables { scale: info.scale, partitions };
        if settings.scale.is_some() {
            output::talk_lines(&format!(
                "pgbench: warning: scale option ignored, using count from pgbench_branches table \
                 ({})",
                info.scale
            ));
        }
    }
    if settings.vacuum {
        vacuum_tables(&mut session, settings.vacuum_accounts).await;
    }
    session.close().await;
    Ok(tables)
}

/// The refusal of a run whose tables can't be counted (`error`) or lack the accounts.
fn no_tables(error: Option<&DbError>, opened: &OpenedDatabase) -> Refusal {
    let refusal = match error {
        Some(error) => Refusal::error(format_args!(
            "could not count number of branches: {}",
            server_text(error, "select count(*) from pgbench_branches")
        )),
        None => Refusal::error("no pgbench_accounts table found in \"search_path\""),
    };
    let database = opened.target.database.as_deref().unwrap_or_default();
    let hint = error.is_none_or(is_missing_table).then(|| {
        format!(
            "Perhaps you need to do initialization (\"pgbench -i\") in database \"{database}\"."
        )
    });
    refusal.with_any("hint", hint)
}

async fn vacuum_tables(session: &mut AdminSession<'_>, with_accounts: bool) {
    output::talk_unended("starting vacuum...");
    print_vacuum_end(&vacuum_before_run(session).await);
    if with_accounts {
        output::talk_unended("starting vacuum pgbench_accounts...");
        print_vacuum_end(&vacuum_accounts(session).await);
    }
}

fn print_vacuum_end(errors: &[DbError]) {
    for error in errors {
        output::talk_lines(&format!(
            "pgbench: error: {}\npgbench: detail: (ignoring this error and continuing anyway)",
            server_text(error, "")
        ));
    }
    output::talk_lines("end.");
}

/// A database that has answered.
pub(super) struct OpenedDatabase {
    pub(super) target: TargetUrl,
    pub(super) database: Database,
    pub(super) product: Product,
}

/// Connects once, to learn who answers and whether a password is needed. `purpose` is what pgbench
/// names as that of its first connection: `setup` or `initialization`.
pub(super) fn reach(settings: &Settings, purpose: &str) -> Result<OpenedDatabase, Refusal> {
    let unconnected = format!("could not create connection for {purpose}");
    let mut target = connection_target(&settings.connection).map_err(|error| {
        let refusal = Refusal::error(&error).with_any("hint", error.hint.as_deref());
        refusal.with("error", &unconnected)
    })?;
    let login = find_password(&target, None);
    if let Some(warning) = &login.warning {
        output::talk_lines(&format!("pgbench: warning: {warning}"));
    }
    login.complete(&mut target);
    let first = open_database(&target);
    let opened = match first {
        Err(error) if databases::may_ask(&error, &target) => {
            let password = databases::ask("Password: ");
            target.password =
                Some(password.map_err(|failure| Refusal::error(failure.message.to_string()))?);
            open_database(&target)
        }
        other => other,
    };
    let (database, product) = opened.map_err(|error| {
        Refusal::unconnected(&error, target.dialect).with("error", &unconnected)
    })?;
    Ok(OpenedDatabase { target, database, product })
}

fn connection_target(connection: &Connection) -> Result<TargetUrl, TargetError> {
    if let Some(url) = &connection.target {
        return url.parse();
    }
    let options = LibpqOptions {
        host: connection.host.as_deref(),
        port: connection.port.as_deref(),
        user: connection.user.as_deref(),
        fallback_application_name: Some("pgbench"),
    };
    let dbname = connection.dbname.clone();
    let dbname =
        dbname.or_else(|| default_database(&|name| std::env::var(name).ok(), system_user()));
    TargetUrl::from_libpq(dbname.as_deref(), &options)
}

/// The database that pgbench gives libpq if none is named: so neither a service nor -U decides.
fn default_database(
    variable: &dyn Fn(&str) -> Option<String>,
    system_user: Option<String>,
) -> Option<String> {
    let mut names = ["PGDATABASE", "PGUSER"].into_iter();
    let value = names.find_map(|name| variable(name).filter(|value| !value.is_empty()));
    value.or(system_user)
}

fn open_database(target: &TargetUrl) -> Result<(Database, Product), DbError> {
    let database = Database::open(target)?;
    // libpq would wait for ever for a server that takes the connection and says nothing.
    let patience = StallTimeouts::default().gives_up_after;
    let due = match target.connect_timeout_s() {
        UNLIMITED_CONNECT_S => monotonic_now() + patience,
        _ => Nanos::MAX,
    };
    let product = databases::run(async {
        let admin = database.admin();
        let question = databases::in_session(&admin, async |session| Ok(session.product().clone()));
        timeout(due, question).await.unwrap_or_else(|_| {
            let (hosts, seconds) = (&target.hosts, patience / SECOND);
            let message = format!("The server at {hosts} did not answer within {seconds} s.");
            Err(DbError::unreachable(message).with_hint(
                "check host and port; connect_timeout or PGCONNECT_TIMEOUT set another limit",
            ))
        })
    })?;
    Ok((database, product))
}

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
        let ledger = Ledger::from_scripts(scripts.iter().map(|(script, _)| script));
        if ledger.is_empty() {
            let problem = "--check-balances finds nothing to check in these scripts";
            return Err(Refusal::error(problem).with(
                "hint",
                "Scripts that only read leave all balances as they are: leave the option out.",
            ));
        }
        let before = read_balances(database).map_err(|error| balances_error(&error))?;
        Ok(Some(Books { ledger, before }))
    }

    /// Reads the sums again and says on standard error what came of them.
    ///
    /// # Errors
    /// When they don't agree, or can't be read any more.
    pub(super) fn close(&self, database: &Database) -> Result<(), Refusal> {
        let after = read_balances(database).map_err(|error| balances_error(&error))?;
        let Some(verdict) = after.change_since(&self.before).verdict(&self.ledger) else {
            return Ok(());
        };
        if !verdict.is_balanced {
            let refusal =
                Refusal::error(format_args!("The balances don't agree. {}", verdict.evidence));
            return Err(refusal.with(
                "hint",
                "Make sure that nothing else writes to the tables, and that nothing truncates the \
                 history meanwhile; else the server lost or invented changes.",
            ));
        }
        output::talk_lines(&format!("pgbench: balances agree: {}", verdict.evidence));
        Ok(())
    }
}

fn read_balances(database: &Database) -> Result<Balances, DbError> {
    run(in_session(&database.admin(), async |session| balances(session).await))
}

fn balances_error(error: &DbError) -> Refusal {
    Refusal::error(format_args!("could not read the balances: {}", server_text(error, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_database_is_that_of_a_variable_or_of_a_users_name() {
        let cases: [(&[(&str, &str)], &str); 3] = [
            (&[("PGSERVICE", "my")], "me"),
            (&[("PGDATABASE", ""), ("PGUSER", "you")], "you"),
            (&[("PGDATABASE", "db"), ("PGUSER", "you")], "db"),
        ];
        for (variables, expected) in cases {
            let database = default_database(
                &|key| {
                    let entry = variables.iter().find(|(name, _)| *name == key);
                    entry.map(|(_, value)| (*value).to_owned())
                },
                Some("me".to_owned()),
            );
            assert_eq!(database.as_deref(), Some(expected));
        }
    }
}
