//! How large a loaded database is.

use dyno_core::{AdminSession, Dialect, Session};
use dyno_load::query::number;

fn names() -> String {
    let names = crate::schema::SchemaTable::ALL.map(|table| format!("'{}'", table.name()));
    names.join(", ")
}

/// Bytes of the eight tables and their indexes; of an embedded database the whole file. `None` where the server
/// does not say.
pub(crate) async fn size_bytes(session: &mut AdminSession<'_>) -> Option<u64> {
    if let Some(sql) = session.capabilities().file_bytes {
        return number(session, sql).await.ok().flatten();
    }
    let sql = match session.dialect() {
        Dialect::Sqlite => return None,
        Dialect::Postgres => format!(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid \
             = c.relnamespace WHERE n.nspname = current_schema() AND c.relname IN ({})",
            names()
        ),
        Dialect::Mysql => format!(
            "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema \
             = DATABASE() AND table_name IN ({})",
            names()
        ),
    };
    number(session, &sql).await.ok().flatten()
}
