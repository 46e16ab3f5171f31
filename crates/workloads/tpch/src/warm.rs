//! The warm-up of the PolarDB paper, each of the 22 indexes and tables read as a whole, and whether it
//! worked: some servers ignore the index that is forced (MySQL bugs 31791868 and 35952353).

use crate::facts::CacheFacts;
use crate::schema::{KeyKind, SchemaTable, keys};
use dyno_core::{AdminSession, DbError, Dialect, Discard};
use dyno_facts::{CheckVerdict, say};
use dyno_load::query::{answer, answer_if_any};

/// The share of the pages that has to be in memory after it.
const ENOUGH: f64 = 0.98;
/// The largest buffer pool of MySQL whose pages are counted, in bytes: the server makes a table of
/// them all.
const POOL_BYTES_MAX: f64 = 64e9;

/// Reads all tables and indexes into the server's memory (of SQLite, the operating system's), and
/// looks whether they are there. May take as long as reading the whole database twice.
///
/// # Errors
/// When a table can't be read or the session is lost. What the server does not let this user ask is
/// no error: the evidence says so.
pub async fn warm(session: &mut AdminSession<'_>) -> Result<CacheFacts, DbError> {
    let mut facts = CacheFacts { state: "warm".to_owned(), ..CacheFacts::default() };
    match session.dialect() {
        Dialect::Mysql => warm_mysql(session, &mut facts).await?,
        Dialect::Sqlite => warm_sqlite(session, &mut facts).await?,
        Dialect::Postgres if session.capabilities().server_views => {
            warm_postgres(session, &mut facts).await?;
        }
        Dialect::Postgres => {
            for table in SchemaTable::ALL {
                let columns: Vec<String> =
                    table.columns().iter().map(|(name, _)| format!("max({name})")).collect();
                let sql = format!("SELECT {} FROM {}", columns.join(", "), table.name());
                run_statement(session, &sql).await?;
            }
            facts.evidence.push(say!(columns_read_once));
            facts.evidence.push(say!(cache_unknown));
        }
    }
    Ok(facts)
}

/// Caches to which nothing was done.
pub fn as_found() -> CacheFacts {
    let state = "as found".to_owned();
    CacheFacts { state, evidence: vec![say!(caches_untouched)], ..CacheFacts::default() }
}

/// Caches that `command` has emptied: it ended after `ended_s` seconds, and the server answered again `back_s`
/// seconds after its begin.
pub fn emptied(command: &str, ended_s: f64, back_s: f64) -> CacheFacts {
    let (seconds, back) = (format!("{ended_s:.1}"), format!("{back_s:.1}"));
    let evidence = vec![say!(caches_emptied, command, seconds, back)];
    CacheFacts { state: "cold".to_owned(), evidence, verdict: None }
}

/// A table with one of its indexes: primary keys and the secondary indexes, 22 in all.
fn pairs() -> impl Iterator<Item = (SchemaTable, Option<&'static str>)> {
    let primary = SchemaTable::ALL.into_iter().map(|table| (table, None));
    primary.chain(keys(KeyKind::Index).map(|index| (index.table, Some(index.name))))
}

async fn run_statement(session: &mut AdminSession<'_>, sql: &str) -> Result<(), DbError> {
    session.query(sql, &mut Discard).await.map(drop)
}

/// The first row of an answer as numbers; `None` if the server refuses or answers otherwise.
async fn numbers(session: &mut AdminSession<'_>, sql: &str) -> Result<Option<Vec<f64>>, DbError> {
    let first =
        answer_if_any(session, sql).await?.and_then(|answer| answer.rows.into_iter().next());
    Ok(first.and_then(|row| {
        row.into_iter().map(|cell| cell.and_then(|text| text.parse().ok())).collect()
    }))
}

/// The verdict over pages that are in the server's memory.
fn judge(facts: &mut CacheFacts, cached: f64, pages: f64, is_mysql: bool) {
    let share = if pages > 0.0 { (cached / pages).min(1.0) } else { 1.0 };
    let (percent, pages) = (format!("{:.1}", share * 100.0), pages.to_string());
    facts.evidence.push(if is_mysql {
        say!(share_in_buffer_pool, share = percent, pages)
    } else {
        say!(share_in_shared_buffers, share = percent, pages)
    });
    facts.verdict = Some(if share >= ENOUGH { CheckVerdict::Passed } else { CheckVerdict::Failed });
}

/// The relations of the eight tables: themselves and their indexes.
const RELATIONS: &str = "pg_class c WHERE c.oid IN (SELECT unnest(array[t.oid] || array(SELECT \
                         indexrelid FROM pg_index WHERE indrelid = t.oid)) FROM pg_class t WHERE \
                         t.relnamespace = current_schema()::regnamespace AND t.relname IN \
                         ('region', 'nation', 'supplier', 'part', 'partsupp', 'customer', \
                         'orders', 'lineitem'))";

/// The first row of an answer that needs an extension of PostgreSQL, as numbers, and why that could not be had. One
/// that was not there before is dropped again.
async fn numbers_by(
    session: &mut AdminSession<'_>,
    extension: &str,
    sql: &str,
) -> Result<(Option<Vec<f64>>, Option<DbError>), DbError> {
    let count = format!("SELECT count(*) FROM pg_extension WHERE extname = '{extension}'");
    let existed = numbers(session, &count).await?.as_deref() == Some(&[1.0]);
    let created = if existed {
        Ok(())
    } else {
        run_statement(session, &format!("CREATE EXTENSION {extension}")).await
    };
    if let Err(error) = &created
        && error.is_fatal()
    {
        return Err(error.clone());
    }
    let row = numbers(session, sql).await?;
    if !existed && created.is_ok() {
        run_statement(session, &format!("DROP EXTENSION {extension}")).await?;
    }
    Ok((row, created.err()))
}

async fn warm_postgres(
    session: &mut AdminSession<'_>,
    facts: &mut CacheFacts,
) -> Result<(), DbError> {
    let prewarm = format!("SELECT sum(pg_prewarm(c.oid)), count(*) FROM {RELATIONS}");
    let (read, refused) = numbers_by(session, "pg_prewarm", &prewarm).await?;
    if let Some([pages, relations]) = read.as_deref() {
        let (pages, relations) = (pages.to_string(), relations.to_string());
        facts.evidence.push(say!(pg_prewarm_read, pages, relations));
    } else {
        facts.evidence.push(match refused {
            Some(error) => say!(pg_prewarm_refused, why = error.message()),
            None => say!(no_pg_prewarm),
        });
        postgres_counts(session).await?;
    }
    let pages = format!(
        "SELECT sum(pg_relation_size(c.oid)) / current_setting('block_size')::numeric FROM \
         {RELATIONS}"
    );
    let pages = numbers(session, &pages).await?.and_then(|row| row.first().copied());
    let cached = format!(
        "SELECT count(*) FROM pg_buffercache b WHERE b.relforknumber = 0 AND b.reldatabase = \
         (SELECT oid FROM pg_database WHERE datname = current_database()) AND b.relfilenode IN \
         (SELECT pg_relation_filenode(c.oid) FROM {RELATIONS})"
    );
    let (cached, _) = numbers_by(session, "pg_buffercache", &cached).await?;
    match (pages, cached.and_then(|row| row.first().copied())) {
        (Some(pages), Some(cached)) => judge(facts, cached, pages, false),
        _ => {
            facts.evidence.push(say!(pages_not_counted));
            facts.verdict = Some(CheckVerdict::NotMade);
        }
    }
    let settings = "SELECT setting::numeric * current_setting('block_size')::numeric / 1e6 FROM \
                    pg_settings WHERE name = 'shared_buffers'";
    if let (Some(CheckVerdict::Failed), Some([mb])) =
        (facts.verdict, numbers(session, settings).await?.as_deref())
    {
        facts.evidence.push(say!(shared_buffers_size, mb = format!("{mb:.0}")));
    }
    Ok(())
}

/// Has each index read by a count that no other index answers better, without a hint.
async fn postgres_counts(session: &mut AdminSession<'_>) -> Result<(), DbError> {
    for table in SchemaTable::ALL {
        run_statement(session, &format!("SELECT count(*) FROM {}", table.name())).await?;
    }
    let off = "SET enable_seqscan = off; SET enable_bitmapscan = off";
    run_statement(session, off).await?;
    for index in keys(KeyKind::Index) {
        let not_null: Vec<String> =
            index.columns.iter().map(|name| format!("{name} IS NOT NULL")).collect();
        let (table, condition) = (index.table.name(), not_null.join(" AND "));
        run_statement(session, &format!("SELECT count(*) FROM {table} WHERE {condition}")).await?;
    }
    run_statement(session, "RESET enable_seqscan; RESET enable_bitmapscan").await
}

async fn warm_mysql(session: &mut AdminSession<'_>, facts: &mut CacheFacts) -> Result<(), DbError> {
    let mut indexes_read = 0_u32;
    for (table, index) in pairs() {
        let (name, index) = (table.name(), index.unwrap_or("PRIMARY"));
        let sql = format!("SELECT COUNT(*) FROM {name} FORCE INDEX ({index})");
        match session.query(&sql, &mut Discard).await {
            Ok(_) => indexes_read += 1,
            // The index is missing: the load was to make none.
            Err(error) if error.errno() == 1176 => {}
            Err(error) => return Err(error),
        }
    }
    facts.evidence.push(say!(rows_counted_by_indexes, n = indexes_read));
    facts.verdict = Some(CheckVerdict::NotMade);
    let pool = numbers(session, "SELECT @@innodb_buffer_pool_size").await?;
    if pool.is_none_or(|row| row.first().is_none_or(|bytes| *bytes > POOL_BYTES_MAX)) {
        facts.evidence.push(say!(pages_not_counted));
        return Ok(());
    }
    // Pages of each index in the buffer pool, compared with its leaf pages by the statistics.
    let names = SchemaTable::ALL.map(|table| format!("'{}'", table.name()));
    let sql = format!(
        "SELECT s.table_name, s.index_name, s.stat_value, coalesce(b.pages, 0) FROM \
         mysql.innodb_index_stats s LEFT JOIN (SELECT table_name, index_name, count(*) AS pages \
         FROM information_schema.INNODB_BUFFER_PAGE WHERE page_type = 'INDEX' AND table_name LIKE \
         concat('`', DATABASE(), '`.%') GROUP BY 1, 2) b ON b.table_name = concat('`', \
         s.database_name, '`.`', s.table_name, '`') AND b.index_name = s.index_name WHERE \
         s.database_name = DATABASE() AND s.stat_name = 'n_leaf_pages' AND s.table_name IN ({})",
        names.join(", ")
    );
    let answer = match answer(session, &sql).await {
        Err(error) if !error.is_fatal() => {
            facts.evidence.push(say!(pages_not_countable, why = error.message()));
            return Ok(());
        }
        answered => answered?,
    };
    let (mut cached, mut pages) = (0.0, 0.0);
    for row in answer.rows {
        let [table, index, leaf_pages, cached_pages] =
            [0, 1, 2, 3].map(|place| row.get(place).cloned().flatten().unwrap_or_default());
        let [leaf_pages, cached_pages]: [f64; 2] =
            [leaf_pages, cached_pages].map(|pages| pages.parse().unwrap_or(0.0));
        pages += leaf_pages;
        cached += cached_pages.min(leaf_pages);
        // Statistics are estimates of small indexes.
        if leaf_pages >= 20.0 && cached_pages < leaf_pages * 0.9 {
            let [there, all] = [cached_pages, leaf_pages].map(|pages| pages.to_string());
            let text = say!(index_partly_there, there, index, table, all);
            facts.evidence.push(text);
        }
    }
    judge(facts, cached, pages, true);
    Ok(())
}

/// SQLite keeps little itself: what counts is the operating system's cache of its file.
async fn warm_sqlite(
    session: &mut AdminSession<'_>,
    facts: &mut CacheFacts,
) -> Result<(), DbError> {
    let mut indexes_read = 0_u32;
    for (table, index) in pairs() {
        let Some(index) = index else {
            scan_sqlite(session, table).await?;
            indexes_read += 1;
            continue;
        };
        let sql = format!("SELECT count(*) FROM {} INDEXED BY {index}", table.name());
        match session.query(&sql, &mut Discard).await {
            Err(error) if error.is_fatal() => return Err(error),
            // The index is missing: the load was to make none.
            Err(_) => {}
            Ok(_) => indexes_read += 1,
        }
    }
    facts.evidence.push(say!(file_read, n = indexes_read));
    let before = bytes_read();
    for table in SchemaTable::ALL {
        scan_sqlite(session, table).await?;
    }
    match (before, bytes_read()) {
        (Some(before), Some(after)) => {
            let bytes = after.saturating_sub(before);
            facts.evidence.push(say!(second_read, bytes = bytes.to_string()));
            // Something else of this process may read a little.
            let is_warm = bytes < 1 << 20;
            facts.verdict = Some(if is_warm { CheckVerdict::Passed } else { CheckVerdict::Failed });
        }
        _ => facts.verdict = Some(CheckVerdict::NotMade),
    }
    Ok(())
}

/// The greatest value of the last column takes reading every page of the table.
async fn scan_sqlite(session: &mut AdminSession<'_>, table: SchemaTable) -> Result<(), DbError> {
    let last = table.columns().last().map_or("*", |&(column, _)| column);
    run_statement(session, &format!("SELECT max({last}) FROM {} NOT INDEXED", table.name())).await
}

/// Bytes that the kernel has read from disks for this process.
fn bytes_read() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_reads_22_pairs() {
        assert_eq!(pairs().count(), 22);
    }

    #[test]
    fn the_verdict_needs_nearly_all_pages() {
        for (cached, verdict) in [(979.0, CheckVerdict::Failed), (981.0, CheckVerdict::Passed)] {
            let mut facts = CacheFacts::default();
            judge(&mut facts, cached, 1000.0, true);
            assert_eq!(facts.verdict, Some(verdict));
        }
    }
}
