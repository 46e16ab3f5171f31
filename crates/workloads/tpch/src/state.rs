//! The database's own record of its load: two small tables next to the eight.

use crate::facts::TpchLoad;
use crate::schema::SchemaTable;
use dyno_core::{AdminSession, AnswerTable, DbError, Dialect, Discard};
use dyno_load::query::{answer, number};
use dyno_load::{LoadError, LoadObserver, catalog, while_doing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Rows of a name and a value in JSON, as of the next.
const FACTS: &str = "dyno_tpch";
/// The pieces of an unfinished load that are done.
const STEPS: &str = "dyno_tpch_steps";

pub const OWN_TABLES: [&str; 2] = [STEPS, FACTS];

/// Each after those that have a foreign key to it; our own at the end, so that a drop that is interrupted leaves what
/// says that the rest is dyno's.
pub(crate) fn all_tables() -> Vec<String> {
    let names = SchemaTable::ALL.iter().rev().map(|table| table.name()).chain(OWN_TABLES);
    names.map(str::to_owned).collect()
}

const LOAD: &str = "load";
const REFRESH_PAIRS: &str = "refresh_pairs";

/// The record of a database about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TpchDatabase {
    pub scale: f64,
    pub foreign_keys: bool,
    /// Set if the 14 secondary indexes are made.
    pub indexes: bool,
    /// Steps, end, size, refresh pairs; the end is empty until all is loaded.
    pub load: TpchLoad,
}

impl TpchDatabase {
    pub(crate) fn is_complete(&self) -> bool {
        !self.load.finished_at.is_empty()
    }
}

/// A piece of a load that is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompletedPiece {
    /// For example `load/lineitem.7` or `primary-keys/orders`.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) began_s: f64,
    pub(crate) seconds: f64,
    pub(crate) rows: u64,
    /// Sums of the columns of its rows, as [`crate::load`] writes them.
    pub(crate) sums: String,
}

/// The tables that statements without a schema name reach.
pub(crate) async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    catalog::tables(session).await.map_err(while_doing("listing the tables"))
}

/// The pieces that are done, in the order in which they began.
pub(crate) async fn read_steps(
    session: &mut AdminSession<'_>,
) -> Result<Vec<CompletedPiece>, LoadError> {
    let sql = format!("SELECT t_value FROM {STEPS}");
    let mut answer = AnswerTable::for_own_table();
    session.query(&sql, &mut answer).await.map_err(while_doing(format!("reading {STEPS}")))?;
    let texts = answer.rows.into_iter().flatten().flatten();
    let mut pieces: Vec<CompletedPiece> =
        texts.filter_map(|text| serde_json::from_str(&text).ok()).collect();
    pieces.sort_by(|a, b| a.began_s.total_cmp(&b.began_s));
    Ok(pieces)
}

/// The tables of TPC-H in a database.
#[derive(Debug)]
pub(crate) enum TpchTables {
    None,
    /// Loaded by dyno, perhaps in part.
    Own(TpchDatabase),
    /// Loaded by another program; one that there is, and one that there is not.
    Foreign {
        existing: SchemaTable,
        missing: Option<SchemaTable>,
    },
}

impl TpchTables {
    /// Tables loaded by dyno, perhaps in part. Tables of another program are an error.
    pub(crate) fn loaded_by_dyno(self) -> Result<Option<TpchDatabase>, LoadError> {
        match self {
            TpchTables::None => Ok(None),
            TpchTables::Own(loaded) => Ok(Some(loaded)),
            TpchTables::Foreign { existing, .. } => Err(LoadError::data(
                format!(
                    "Table {} exists, but {FACTS} does not say who loaded it and how.",
                    existing.name()
                ),
                "use another database, or rename or drop these tables yourself",
            )),
        }
    }

    /// Tables loaded by dyno. A load that is not finished is an error, as are tables of another program.
    pub(crate) fn complete(self) -> Result<Option<TpchDatabase>, LoadError> {
        match self.loaded_by_dyno()? {
            Some(TpchDatabase { scale, load, .. }) if load.finished_at.is_empty() => {
                Err(LoadError::data(
                    format!(
                        "The load of scale factor {scale} into this database has not been completed."
                    ),
                    format!(
                        "complete it with dyno tpch load --scale {scale}: what is stored is kept"
                    ),
                ))
            }
            loaded => Ok(loaded),
        }
    }

    /// The scale factor, which for tables of another program follows from the suppliers, 10,000 for each unit (clause
    /// 4.2.5.1). `None` if nothing is loaded.
    pub(crate) async fn scale(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<Option<f64>, LoadError> {
        match self {
            TpchTables::None => Ok(None),
            TpchTables::Own(loaded) => Ok(Some(loaded.scale)),
            TpchTables::Foreign { missing: Some(table), .. } => Err(LoadError::data(
                format!("Table {} doesn't exist.", table.name()),
                "all eight tables of TPC-H are needed, with names in small letters",
            )),
            TpchTables::Foreign { missing: None, .. } => {
                let suppliers = number::<u64>(session, "SELECT COUNT(*) FROM supplier").await;
                let suppliers = suppliers.map_err(while_doing("counting the suppliers"))?;
                let per_scale = SchemaTable::Supplier.rows_per_scale();
                Ok(Some(suppliers.unwrap_or(0) as f64 / per_scale))
            }
        }
    }
}

/// Looks what is loaded.
pub(crate) async fn find(session: &mut AdminSession<'_>) -> Result<TpchTables, LoadError> {
    let tables = tables(session).await?;
    let mut database: Option<TpchDatabase> = None;
    if OWN_TABLES.iter().all(|name| tables.contains(*name)) {
        let reading = format!("reading {FACTS}");
        database = fact(session, LOAD).await.map_err(while_doing(reading.as_str()))?;
        if let Some(database) = &mut database {
            let pairs = fact(session, REFRESH_PAIRS).await.map_err(while_doing(reading))?;
            database.load.refresh_pairs = pairs.unwrap_or(0);
        }
    }
    let (existing, missing): (Vec<SchemaTable>, Vec<SchemaTable>) =
        SchemaTable::ALL.into_iter().partition(|table| tables.contains(table.name()));
    match (database, existing.first(), missing.first()) {
        (None, None, _) => Ok(TpchTables::None),
        (None, Some(&existing), missing) => {
            Ok(TpchTables::Foreign { existing, missing: missing.copied() })
        }
        (Some(loaded), _, Some(table)) if loaded.is_complete() => Err(LoadError::data(
            format!("Table {} doesn't exist: not all that was loaded is there.", table.name()),
            "drop what is left (dyno tpch drop), and load again",
        )),
        (Some(loaded), ..) => Ok(TpchTables::Own(loaded)),
    }
}

/// The scale factor of the tables, whoever has loaded them.
///
/// # Errors
/// Errors of the session; tables of TPC-H are missing.
pub async fn scale(session: &mut AdminSession<'_>) -> Result<f64, LoadError> {
    let tables = find(session).await?;
    tables.scale(session).await?.ok_or_else(|| {
        LoadError::data("The database holds no tables of TPC-H.", "load them: dyno tpch load")
    })
}

/// The database's record of its load; `None` when nothing is loaded.
///
/// # Errors
/// Errors of the session; tables of another program, a load that is not finished, missing tables.
pub async fn loaded(session: &mut AdminSession<'_>) -> Result<Option<TpchDatabase>, LoadError> {
    find(session).await?.complete()
}

/// Remembers that the refresh functions of pair `pair` (from 1) were applied; may be part of the
/// last transaction that applies them.
pub async fn note_refresh_pair(session: &mut AdminSession<'_>, pair: u32) -> Result<(), DbError> {
    set_fact(session, REFRESH_PAIRS, &pair).await
}

/// The value noted under a name; `None` if there is none.
pub(crate) async fn fact<T: DeserializeOwned>(
    session: &mut AdminSession<'_>,
    name: &str,
) -> Result<Option<T>, DbError> {
    let sql = format!("SELECT t_value FROM {FACTS} WHERE t_name = '{name}'");
    let rows = answer(session, &sql).await?;
    Ok(rows.single().and_then(|text| serde_json::from_str(text).ok()))
}

/// Notes a value under a name, instead of the one that is there.
pub(crate) async fn set_fact(
    session: &mut AdminSession<'_>,
    name: &str,
    value: &impl Serialize,
) -> Result<(), DbError> {
    let delete = format!("DELETE FROM {FACTS} WHERE t_name = '{name}'");
    session.query(&delete, &mut Discard).await?;
    insert_row(session, FACTS, name, value).await
}

async fn insert_row(
    session: &mut AdminSession<'_>,
    table: &str,
    name: &str,
    value: &impl Serialize,
) -> Result<(), DbError> {
    // No value has a text with quotes or backslashes.
    let value = serde_json::to_string(value).unwrap_or_default();
    let sql = format!("INSERT INTO {table} (t_name, t_value) VALUES ('{name}', '{value}')");
    session.query(&sql, &mut Discard).await.map(drop)
}

/// Begins a transaction that writes.
pub(crate) fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Mysql | Dialect::Postgres => "BEGIN",
    }
}

/// Makes the tables that remember the load.
pub(crate) async fn create_own_tables(
    session: &mut AdminSession<'_>,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    for table in OWN_TABLES {
        let columns = "t_name varchar(60) not null primary key, t_value text not null";
        let sql = format!("CREATE TABLE IF NOT EXISTS {table} ({columns})");
        let created = catalog::create_table(session, table, &sql, observer).await;
        created.map_err(while_doing("noting the begin of the load"))?;
    }
    Ok(())
}

/// Notes what is loaded. Once that is complete, its pieces give way to its steps.
pub(crate) async fn note_load(
    session: &mut AdminSession<'_>,
    database: &TpchDatabase,
) -> Result<(), DbError> {
    session.query("BEGIN", &mut Discard).await?;
    if database.is_complete() {
        session.query(&format!("DELETE FROM {STEPS}"), &mut Discard).await?;
    }
    set_fact(session, LOAD, database).await?;
    session.query("COMMIT", &mut Discard).await.map(drop)
}

/// Notes that a piece is done: in its own transaction, if it has one.
pub(crate) async fn note_piece(
    session: &mut AdminSession<'_>,
    piece: &CompletedPiece,
) -> Result<(), DbError> {
    insert_row(session, STEPS, &piece.name, piece).await
}

/// Bytes of the eight tables and their indexes; of an embedded database the whole file. `None` if the server
/// does not say.
pub(crate) async fn size_bytes(session: &mut AdminSession<'_>) -> Option<u64> {
    if let Some(sql) = session.capabilities().file_bytes {
        return number(session, sql).await.ok().flatten();
    }
    let sql = match session.dialect() {
        Dialect::Sqlite => return None,
        Dialect::Postgres => {
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = current_schema() AND c.relname IN "
        }
        Dialect::Mysql => {
            "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE() AND \
             table_name IN "
        }
    };
    let names = SchemaTable::ALL.map(|table| format!("'{}'", table.name()));
    number(session, &format!("{sql}({})", names.join(", "))).await.ok().flatten()
}
