//! What a database must allow, found out before anything is made.

use dyno_core::{AdminDriver, AdminSession, AnswerTable, DbError, Dialect, Session};
use dyno_facts::StepAction;
use dyno_facts::format::bytes;
use dyno_load::query::{answer, answer_if_any, is_pooled};
use dyno_runner::databases::Database;
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::ask;
use dyno_suite::Plan;
use rustix::fs::statvfs;
use std::time::SystemTime;

/// Sessions beside those of the workers: for looking at the server, loading and checking.
const SESSIONS_BESIDE: u32 = 6;
/// Statements that a session prepares: TPC-C's, or those of sysbench on ten tables.
const STATEMENTS_EACH: u64 = 120;
/// Bytes on disk for a row of the largest table: the other tables, indexes and logs are in it.
const BYTES_PER_ROW: f64 = 700.0;

pub(super) struct BenchNeed {
    pub(super) sessions: u32,
    statements: u64,
    pub(super) disk_bytes: f64,
}

impl BenchNeed {
    pub(super) fn of(plan: &Plan) -> BenchNeed {
        let trials = plan.steps.iter().filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some(trial.workers),
            StepAction::Prepare | StepAction::Cleanup => None,
        });
        let workers = trials.max().unwrap_or(1);
        let sizes = plan.experiments.iter().filter_map(|planned| planned.data);
        let rows = sizes.map(|size| size.tables as f64 * size.rows_per_table as f64);
        BenchNeed {
            sessions: workers + SESSIONS_BESIDE,
            statements: u64::from(workers) * STATEMENTS_EACH,
            // One experiment's tables are dropped before those of the next are made.
            disk_bytes: rows.fold(0.0, f64::max) * BYTES_PER_ROW,
        }
    }
}

/// What the server says of itself; `None` where it does not.
#[derive(Debug, Default, PartialEq)]
struct Limits {
    /// Sessions that may still be opened.
    sessions_free: Option<i64>,
    statements_free: Option<i64>,
    is_read_only: bool,
    /// Why no table can be made, in a sentence.
    no_tables: Option<String>,
    data_folder: Option<String>,
    /// A pooler gives the server's sessions to other clients between transactions.
    is_pooled: bool,
}

/// What is missing on a target, in sentences.
pub(super) fn missing(
    name: &str,
    database: &Database,
    same_host: bool,
    need: &BenchNeed,
) -> Result<Vec<String>, Failure> {
    let limits = limits(&database.primary_admin())?;
    let folder = limits.data_folder.as_ref().filter(|_| same_host);
    let disk = folder.and_then(|folder| statvfs(folder.as_str()).ok());
    let free_bytes = disk.map(|disk| disk.f_bavail as f64 * disk.f_frsize as f64);
    Ok(sentences(name, &limits, free_bytes, need))
}

fn sentences(
    name: &str,
    limits: &Limits,
    free_bytes: Option<f64>,
    need: &BenchNeed,
) -> Vec<String> {
    let mut missing = Vec::new();
    if let Some(free) = limits.sessions_free.filter(|free| *free < i64::from(need.sessions)) {
        missing.push(format!(
            "{name} takes {} more sessions, {} are needed (max_connections, or the user's own limit).",
            free.max(0),
            need.sessions
        ));
    }
    if let Some(free) = limits.statements_free.filter(|free| *free < need.statements as i64) {
        missing.push(format!(
            "{name} takes {} more prepared statements, {} are needed (max_prepared_stmt_count).",
            free.max(0),
            need.statements
        ));
    }
    if limits.is_read_only {
        missing.push(format!("{name} is read-only."));
    }
    if limits.is_pooled {
        missing.push(format!(
            "{name} is a pooler that gives the sessions of its server to other clients between transactions \
             (PgBouncer's pool_mode = transaction or statement): settings and prepared statements of a session get \
             lost. Name the server itself, or a pool by sessions."
        ));
    }
    missing.extend(limits.no_tables.as_ref().map(|why| format!("{name}: {why}")));
    if let Some(free) = free_bytes.filter(|free| *free < need.disk_bytes) {
        let (free, wanted) = (bytes(free), bytes(need.disk_bytes));
        missing.push(format!("{name} has {free} of disk left, {wanted} are needed."));
    }
    missing
}

fn limits(driver: &AdminDriver<'_>) -> Result<Limits, Failure> {
    ask(driver, async |session| {
        let limits = match session.dialect() {
            Dialect::Mysql => mysql_limits(session).await,
            Dialect::Postgres => match is_pooled(driver, session).await {
                // What it says of itself would come through the pool.
                Ok(true) => Ok(Limits { is_pooled: true, ..Limits::default() }),
                Ok(false) => postgres_limits(session).await,
                Err(error) => Err(error),
            },
            Dialect::Sqlite => Ok(Limits::default()),
        };
        limits.map_err(|error| Failure::from(&error))
    })
}

/// The first row as integers; what is no integer is `None`.
fn numbers(answer: Option<&AnswerTable>) -> Vec<Option<i64>> {
    let row = answer.and_then(|answer| answer.rows.first());
    let cell = |cell: &Option<String>| cell.as_ref().and_then(|text| text.parse().ok());
    row.map_or(Vec::new(), |row| row.iter().map(cell).collect())
}

async fn mysql_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let settings = "SELECT @@max_connections, @@max_user_connections, @@max_prepared_stmt_count, \
                    @@read_only, DATABASE() IS NULL";
    let asked = answer_if_any(session, settings).await?;
    let asked = numbers(asked.as_ref());
    let [connections, of_user, statements, read_only, homeless] =
        [0, 1, 2, 3, 4].map(|at| asked.get(at).copied().flatten());
    let status = |name: &str| format!("SHOW GLOBAL STATUS LIKE '{name}'");
    let mut used = Vec::new();
    for name in ["Threads_connected", "Prepared_stmt_count"] {
        let answer = answer_if_any(session, &status(name)).await?;
        let value = answer.and_then(|answer| answer.rows.first()?.get(1)?.clone()?.parse().ok());
        used.push(value.unwrap_or(0_i64));
    }
    // This session is one of them. 0 is no limit of a user's own.
    let of_user = of_user.filter(|limit| *limit > 0).map(|limit| limit - 1);
    let free = connections.map(|most| most - used[0]);
    let folder = answer_if_any(session, "SELECT @@datadir").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(of_user).min(),
        statements_free: statements.map(|most| most - used[1]),
        is_read_only: read_only == Some(1),
        no_tables: (homeless == Some(1)).then(|| "the URL names no database.".to_owned()),
        data_folder: folder.and_then(|answer| answer.rows.first()?.first()?.clone()),
        is_pooled: false,
    })
}

async fn postgres_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let limits = "SELECT current_setting('max_connections')::int \
                  - current_setting('superuser_reserved_connections')::int \
                  - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
                  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), \
                  (SELECT datconnlimit FROM pg_database WHERE datname = current_database()), \
                  pg_is_in_recovery()::int, (current_schema() IS NULL)::int, \
                  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::int";
    let asked = answer_if_any(session, limits).await?;
    let asked = numbers(asked.as_ref());
    let [free, of_role, of_database, recovery, homeless, creates] =
        [0, 1, 2, 3, 4, 5].map(|at| asked.get(at).copied().flatten());
    // -1 is no limit.
    let own = [of_role, of_database].into_iter().flatten().filter(|limit| *limit >= 0);
    let no_tables = match (homeless, creates) {
        (Some(1), _) => Some("no schema of search_path exists for this user."),
        (_, Some(0)) => {
            Some("the user may create no tables in its schema (GRANT CREATE ON SCHEMA).")
        }
        _ => None,
    };
    let folder = answer_if_any(session, "SHOW data_directory").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(own).min(),
        statements_free: None,
        is_read_only: recovery == Some(1),
        no_tables: no_tables.map(str::to_owned),
        data_folder: folder.and_then(|answer| answer.rows.first()?.first()?.clone()),
        is_pooled: false,
    })
}

/// A name that no table has: neither an application's nor that of another `dyno bench`.
pub(super) fn trial_table() -> String {
    let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("dyno_trial_{}_{:x}", std::process::id(), moment.as_nanos())
}

/// Makes, fills, reads and drops a small table, with a prepared statement.
///
/// # Errors
/// The user lacks a right, or something between dyno and the server takes no prepared statements.
pub(super) fn try_rights(name: &str, database: &Database, table: &str) -> Result<(), Failure> {
    ask(&database.primary_admin(), async |session| {
        try_rights_in_session(session, name, table).await
    })
}

async fn try_rights_in_session(
    session: &mut AdminSession<'_>,
    name: &str,
    table: &str,
) -> Result<(), Failure> {
    let create = format!("CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, n INT)");
    let created = answer(session, &create).await;
    created.map_err(|error| refused(name, "CREATE TABLE", &error))?;
    let used = use_table(session, table).await;
    let used = used.map_err(|(doing, error)| refused(name, doing, &error));
    let drop = format!("DROP TABLE {table}");
    match answer(session, &drop).await {
        Ok(_) => used,
        Err(error) => {
            let failure = used.err().unwrap_or_else(|| refused(name, "DROP TABLE", &error));
            let message = format!("{} The table {table} is left there.", failure.message);
            let hint = failure.hint.unwrap_or_default();
            Err(Failure::new(message).with_hint(format!("`{drop}` removes what is left. {hint}")))
        }
    }
}

async fn use_table(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<(), (&'static str, DbError)> {
    let select = format!("SELECT n FROM {table} WHERE id = 1");
    for (doing, sql) in [
        ("CREATE INDEX", &format!("CREATE INDEX {table}_n ON {table} (n)")),
        ("INSERT", &format!("INSERT INTO {table} VALUES (1, 1)")),
        ("UPDATE", &format!("UPDATE {table} SET n = 2 WHERE id = 1")),
        ("SELECT", &select),
    ] {
        answer(session, sql).await.map_err(|error| (doing, error))?;
    }
    let prepared = session.prepare(&select, &[]).await;
    prepared.map_err(|error| ("a prepared statement", error))?;
    let delete = answer(session, &format!("DELETE FROM {table}")).await;
    delete.map(|_| ()).map_err(|error| ("DELETE", error))
}

fn refused(name: &str, doing: &str, error: &DbError) -> Failure {
    let message = format!("{name}: {doing} was refused: {}", sentence(&error.to_string()));
    Failure::new(message).with_hint(remedy(error.errno(), error.sqlstate()))
}

/// What helps, by the class of the error.
fn remedy(errno: u32, sqlstate: &str) -> &'static str {
    match (errno, sqlstate) {
        (1050, _) | (_, "42P07") => "Give the command again: it tries another name.",
        (1044 | 1142 | 1227, _) | (_, "42501") => "Grant it to the user, or name another database.",
        (1290 | 1792 | 1836, _) | (_, "25006") => {
            "Name a database that takes changes: it, or the session of this user, is read-only."
        }
        _ => "Put that right, or name another database.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: BenchNeed = BenchNeed { sessions: 22, statements: 1_920, disk_bytes: 2e9 };

    #[test]
    fn what_is_there_is_not_missed() {
        let enough =
            Limits { sessions_free: Some(22), statements_free: Some(1_920), ..Limits::default() };
        assert!(sentences("a", &enough, Some(2e9), &NEED).is_empty());
        assert!(sentences("a", &Limits::default(), None, &NEED).is_empty(), "unknown");
    }

    #[test]
    fn the_table_that_tries_the_rights_is_nobodys_and_hints_fit_the_error() {
        let table = trial_table();
        assert!(format!("{table}_n").len() <= 63, "{table}");
        assert_ne!(trial_table(), table);
        let grant = "Grant it to the user, or name another database.";
        for (errno, sqlstate, said) in [
            (1142, "42000", grant),
            (1044, "42000", grant),
            (0, "42501", grant),
            (1050, "42S01", "another name"),
            (0, "42P07", "another name"),
            (1290, "HY000", "read-only"),
            (1792, "25006", "read-only"),
            (0, "25006", "read-only"),
            (1064, "42000", "Put that right"),
        ] {
            assert!(remedy(errno, sqlstate).contains(said), "{errno} {sqlstate}");
        }
    }

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let limits = Limits {
            sessions_free: Some(-3),
            statements_free: Some(100),
            is_read_only: true,
            no_tables: Some("the URL names no database.".to_owned()),
            data_folder: None,
            is_pooled: true,
        };
        let said = sentences("a", &limits, Some(1e9), &NEED).join("\n");
        for part in [
            "takes 0 more sessions, 22 are needed",
            "takes 100 more prepared statements, 1920 are needed",
            "a is read-only.",
            "a is a pooler that gives the sessions of its server to other clients",
            "a: the URL names no database.",
            "of disk left",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
