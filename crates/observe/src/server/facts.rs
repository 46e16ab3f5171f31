//! Settings and counters as a server states them, before and after a trial.

use super::ask::Asker;
use super::postgres;
use dyno_core::{AdminSession, DbResult, Dialect, Nanos, Session};
use dyno_facts::{LogInFacts, ServerFacts};
use std::collections::BTreeMap;

const SQLITE_PRAGMAS: [&str; 12] = [
    "journal_mode",
    "synchronous",
    "page_size",
    "page_count",
    "freelist_count",
    "cache_size",
    "mmap_size",
    "temp_store",
    "locking_mode",
    "auto_vacuum",
    "wal_autocheckpoint",
    "busy_timeout",
];

/// Reads settings and counters. What the account may not see is listed, not fatal; an answer that does not end `within`
/// this time is.
pub async fn read_facts(session: &mut AdminSession<'_>, within: Nanos) -> DbResult<ServerFacts> {
    let mut asker = Asker::new(session).within(within);
    let mut facts = ask_facts(&mut asker).await?;
    facts.not_readable = asker.end().0;
    Ok(facts)
}

/// The same without what could not be read: the asker knows that.
pub(super) async fn ask_facts(asker: &mut Asker<'_, '_>) -> DbResult<ServerFacts> {
    let product = asker.session().product().clone();
    let (dialect, capabilities) = (asker.session().dialect(), asker.session().capabilities());
    let mut facts =
        ServerFacts { product: product.name, version: product.version, ..ServerFacts::default() };
    facts.log_in = asker.session().proof().map(|proof| LogInFacts {
        tls: proof.tls.map(|tls| tls.version.to_owned()),
        is_verified: proof.tls.is_some_and(|tls| tls.is_verified),
        method: proof.method.to_owned(),
    });
    if let Some(settings) = capabilities.settings {
        facts.settings = pairs(asker, "settings", settings).await?;
    }
    match dialect {
        Dialect::Mysql => {
            facts.counters = pairs(asker, "counters", "SHOW GLOBAL STATUS").await?;
        }
        Dialect::Postgres if !capabilities.server_views => {}
        Dialect::Postgres => {
            for sql in postgres::statistics(postgres::version(&facts)) {
                facts.counters.extend(pairs(asker, "counters", sql).await?);
            }
        }
        Dialect::Sqlite => {
            for pragma in SQLITE_PRAGMAS {
                let value = asker.text(pragma, &format!("PRAGMA {pragma}")).await?;
                facts.settings.extend(value.map(|value| (pragma.to_owned(), value)));
            }
        }
    }
    facts.settings.retain(|name, _| !is_secret(name));
    Ok(facts)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passphrase", "primary_conninfo", "secret"].iter().any(|word| name.contains(word))
        && !name.contains("password_encryption")
}

async fn pairs(
    asker: &mut Asker<'_, '_>,
    what: &str,
    sql: &str,
) -> DbResult<BTreeMap<String, String>> {
    let pair = |row: Vec<Option<String>>| {
        let mut columns = row.into_iter();
        let name = columns.next()??;
        Some((name, columns.next().flatten().unwrap_or_default()))
    };
    Ok(asker.rows(what, sql).await?.into_iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        assert!(is_secret("ssl_passphrase_command"));
        assert!(is_secret("primary_conninfo"));
        assert!(is_secret("report_password"));
        assert!(!is_secret("password_encryption"));
        assert!(!is_secret("innodb_buffer_pool_size"));
    }
}
