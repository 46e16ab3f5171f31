//! Pages that a server reads from its files while a query runs.

use dyno_core::{AdminSession, Dialect, Session};
use dyno_load::query::answer;

/// Pages that the whole server has read from its files so far; `None` where it does not say, or not
/// to this user. On PostgreSQL what its page cache lacked: the system may have had it.
pub(super) async fn read_so_far(session: &mut AdminSession<'_>) -> Option<u64> {
    let sql = match session.dialect() {
        Dialect::Mysql => "show global status where variable_name = 'Innodb_pages_read'",
        Dialect::Postgres if session.capabilities().server_views => {
            // Sessions keep their counts for a second unless they are told to hand them over.
            let flush = "select pg_stat_force_next_flush()";
            answer(session, flush).await.ok()?;
            "select datname, blks_read from pg_stat_database where datname = current_database()"
        }
        Dialect::Postgres | Dialect::Sqlite => return None,
    };
    answer(session, sql).await.ok()?.rows.first()?.get(1)?.as_deref()?.parse().ok()
}
