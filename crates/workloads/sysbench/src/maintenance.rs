//! `cleanup` and `prewarm`.

use crate::load::{PrepareReport, prepare};
use crate::options::SysbenchOptions;
use crate::schema;
use dyno_core::{AdminDriver, AdminSession, Dialect, Driver, Session};
use dyno_load::query::{column, drop_tables, execute};
use dyno_load::{LoadError, LoadObserver, LoadSessions, while_doing};

/// Drops the tables of `options`, where they exist. Must not be called within an event loop.
pub fn cleanup(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let names = options.table_names(threads);
    LoadSessions::new(driver, observer, 1)
        .one(async |session: &mut AdminSession<'_>| drop_tables(session, &names, observer).await)
}

/// Reads the tables of `options` and their indexes into the server's memory and refreshes the
/// optimizer's statistics, several tables at once. Must not be called within an event loop.
pub fn prewarm(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let names = options.table_names(threads);
    let set_up = async |session: &mut AdminSession<'_>| {
        if session.dialect() == Dialect::Mysql {
            // The copies of the tables that the statements below make are to stay in memory.
            quoted(session, "SET tmp_table_size=2*1024*1024*1024").await?;
            quoted(session, "SET max_heap_table_size=2*1024*1024*1024").await?;
        }
        Ok(session.dialect() == Dialect::Postgres && has_pg_prewarm(session).await?)
    };
    let loader = LoadSessions::new(driver, observer, threads);
    loader.each(&names, set_up, async |session: &mut AdminSession<'_>, &has_extension, name| {
        observer.prewarming_table(name);
        for sql in statements(options, session.dialect(), has_extension, name) {
            quoted(session, &sql).await?;
        }
        Ok(())
    })
}

/// As [`prepare`]. Has PostgreSQL make the optimizer's statistics of what was loaded, which it else does by itself while
/// trials are under way. Must not be called within an event loop.
pub fn prepare_with_statistics(
    driver: &AdminDriver<'_>,
    options: &SysbenchOptions,
    threads: u32,
    seed: u64,
    observer: &dyn LoadObserver,
) -> Result<PrepareReport, LoadError> {
    let report = prepare(driver, options, threads, seed, observer)?;
    let keeps_some = driver.dialect() == Dialect::Postgres && driver.capabilities().server_views;
    if keeps_some && report.tables_complete < report.tables {
        let names = options.table_names(threads);
        let set_up = async |_: &mut AdminSession<'_>| Ok(());
        let loader = LoadSessions::new(driver, observer, threads);
        loader.each(&names, set_up, async |session: &mut AdminSession<'_>, (), name| {
            quoted(session, &format!("ANALYZE {name}")).await
        })?;
    }
    Ok(report)
}

async fn quoted(session: &mut AdminSession<'_>, sql: &str) -> Result<(), LoadError> {
    execute(session, format!("`{sql}`"), sql).await.map_err(|error| error.with_sql(sql))
}

async fn has_pg_prewarm(session: &mut AdminSession<'_>) -> Result<bool, LoadError> {
    let sql = "SELECT extname FROM pg_extension WHERE extname = 'pg_prewarm'";
    let found: Vec<_> =
        column(session, sql).await.map_err(while_doing("listing the extensions"))?;
    Ok(!found.is_empty())
}

fn statements(
    options: &SysbenchOptions,
    dialect: Dialect,
    extension: bool,
    table: &str,
) -> Vec<String> {
    let rows = options.table_size;
    let by_index =
        format!("SELECT COUNT(*) FROM (SELECT * FROM {table} WHERE k LIKE '%0%' LIMIT {rows}) t");
    let own_index = if options.secondary { "xid" } else { "PRIMARY" };
    match dialect {
        Dialect::Mysql => vec![
            format!("ANALYZE TABLE {table}"),
            format!(
                "SELECT AVG(id) FROM (SELECT * FROM {table} FORCE KEY ({own_index}) LIMIT {rows}) t"
            ),
            by_index,
        ],
        Dialect::Postgres if extension => {
            let mut statements =
                vec![format!("ANALYZE {table}"), format!("SELECT pg_prewarm('{table}')")];
            let own = (!options.secondary).then(|| format!("{table}_pkey"));
            let made = schema::indexes(options, dialect, table).into_iter().map(|index| index.name);
            let indexes = own.into_iter().chain(made);
            statements.extend(indexes.map(|name| format!("SELECT pg_prewarm('{name}')")));
            statements
        }
        Dialect::Postgres => vec![
            format!("ANALYZE {table}"),
            format!("SELECT COUNT(*), SUM(LENGTH(c)) FROM {table}"),
            // Through the indexes: a plain count would read the table a second time.
            format!(
                "SET enable_seqscan=off; SELECT COUNT(id) FROM (SELECT id FROM {table} ORDER BY id) t; \
                     SELECT COUNT(k) FROM (SELECT k FROM {table} ORDER BY k) t; RESET enable_seqscan"
            ),
        ],
        Dialect::Sqlite => vec![
            format!("ANALYZE {table}"),
            format!("SELECT AVG(id), SUM(LENGTH(c)) FROM {table}"),
            format!("SELECT COUNT(k) FROM (SELECT k FROM {table} ORDER BY k) t"),
        ],
    }
}
