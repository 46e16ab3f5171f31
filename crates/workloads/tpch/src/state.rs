//! What the database itself remembers of its load: two small tables beside the eight.

use crate::facts::{LoadStep, TpchLoad};
use crate::schema::SchemaTable;
use dyno_core::{AdminSession, AnswerTable, DbError, Dialect, Discard, Session};
use dyno_load::query::{answer, column, pairs};
use dyno_load::{LoadError, while_doing};
use std::collections::{HashMap, HashSet};

/// Rows of name and value.
const FACTS: &str = "dyno_tpch";
/// What is done of an unfinished load, piece by piece; of a finished one its steps.
const STEPS: &str = "dyno_tpch_steps";

pub const OWN_TABLES: [&str; 2] = [STEPS, FACTS];

/// Each after those that have a foreign key to it; our own at the end, so that a drop that is interrupted leaves what
/// says that the rest is dyno's.
pub(crate) fn all_tables() -> Vec<String> {
    let names = SchemaTable::ALL.iter().rev().map(|table| table.name()).chain(OWN_TABLES);
    names.map(str::to_owned).collect()
}

const SCALE: &str = "scale";
const FOREIGN_KEYS: &str = "foreign_keys";
const INDEXES: &str = "indexes";
const ATTEMPTS: &str = "attempts";
const FINISHED_AT: &str = "finished_at";
const SECONDS: &str = "load_seconds";
const SIZE_BYTES: &str = "size_bytes";
const REFRESH_PAIRS: &str = "refresh_pairs";

/// What a complete database says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TpchDatabase {
    pub scale: f64,
    pub foreign_keys: bool,
    /// Whether the 14 secondary indexes were made.
    pub indexes: bool,
    /// Steps, end, size, refresh pairs.
    pub load: TpchLoad,
}

/// What a load is asked to make, as it is kept and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadRequest {
    pub(crate) scale: f64,
    pub(crate) foreign_keys: bool,
    pub(crate) indexes: bool,
}

/// In which state a load finds the database.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoadState {
    Nothing,
    /// A load that has not ended, and how often it was begun.
    Unfinished(LoadRequest, u32),
    Complete(Box<TpchDatabase>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Done {
    /// Such as `load/lineitem.7` or `primary-keys/orders`.
    pub(crate) name: String,
    /// Seconds since 1970.
    pub(crate) began_s: f64,
    pub(crate) seconds: f64,
    pub(crate) rows: u64,
    /// What the columns of its rows add up to, as [`crate::load`] writes it.
    pub(crate) sums: String,
}

/// The tables that statements without a schema name reach.
pub async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    let sql = match session.dialect() {
        Dialect::Mysql => {
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
        }
        Dialect::Postgres => {
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        }
        Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
    };
    column(session, sql).await.map_err(while_doing("listing the tables"))
}

/// The names of keys and indexes that a server whose DDL is no part of transactions already has.
pub(crate) async fn mysql_keys(
    session: &mut AdminSession<'_>,
) -> Result<HashSet<String>, LoadError> {
    let sql = "SELECT CONCAT(table_name, '.', index_name) FROM information_schema.statistics \
               WHERE table_schema = DATABASE() UNION SELECT CONCAT(table_name, '.', \
               constraint_name) FROM information_schema.table_constraints WHERE table_schema = \
               DATABASE() AND constraint_type = 'FOREIGN KEY'";
    column(session, sql).await.map_err(while_doing("listing the keys"))
}

pub(crate) fn create_own_tables(dialect: Dialect) -> [String; 2] {
    let double = match dialect {
        Dialect::Mysql => "double",
        Dialect::Postgres | Dialect::Sqlite => "double precision",
    };
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {FACTS} (t_name varchar(40) not null primary key, t_value \
             varchar(100) not null)"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {STEPS} (s_name varchar(60) not null primary key, s_began \
             {double} not null, s_seconds {double} not null, s_rows bigint not null, s_sums \
             varchar(1000) not null)"
        ),
    ]
}

/// The steps that have ended, in the order in which they began.
pub(crate) async fn read_steps(session: &mut AdminSession<'_>) -> Result<Vec<Done>, LoadError> {
    let sql = format!("SELECT s_name, s_began, s_seconds, s_rows, s_sums FROM {STEPS} ORDER BY 2");
    let mut answer = AnswerTable::of_own_table();
    session.query(&sql, &mut answer).await.map_err(while_doing(format!("reading {STEPS}")))?;
    let piece = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        Some(Done {
            name: cells.next()?,
            began_s: cells.next()?.parse().ok()?,
            seconds: cells.next()?.parse().ok()?,
            rows: cells.next()?.parse().ok()?,
            sums: cells.next()?,
        })
    };
    Ok(answer.rows.into_iter().filter_map(piece).collect())
}

fn number<T: std::str::FromStr>(facts: &HashMap<String, String>, name: &str) -> Option<T> {
    facts.get(name)?.parse().ok()
}

fn wanted(facts: &HashMap<String, String>) -> Option<LoadRequest> {
    Some(LoadRequest {
        scale: number(facts, SCALE)?,
        foreign_keys: number(facts, FOREIGN_KEYS)?,
        indexes: number(facts, INDEXES)?,
    })
}

pub(crate) async fn find(session: &mut AdminSession<'_>) -> Result<LoadState, LoadError> {
    let tables = tables(session).await?;
    let facts = if tables.contains(FACTS) && tables.contains(STEPS) {
        let facts = pairs(session, &format!("SELECT t_name, t_value FROM {FACTS}")).await;
        facts.map_err(while_doing(format!("reading {FACTS}")))?
    } else {
        HashMap::new()
    };
    let Some(wanted) = wanted(&facts) else {
        let foreign = SchemaTable::ALL.into_iter().find(|table| tables.contains(table.name()));
        return match foreign {
            None => Ok(LoadState::Nothing),
            Some(table) => Err(LoadError::data(
                format!(
                    "Table {} exists, but {FACTS} does not say who loaded it and how.",
                    table.name()
                ),
                "use another database, or rename or drop these tables yourself",
            )),
        };
    };
    let Some(finished_at) = facts.get(FINISHED_AT) else {
        return Ok(LoadState::Unfinished(wanted, number(&facts, ATTEMPTS).unwrap_or(1)));
    };
    if let Some(table) = SchemaTable::ALL.into_iter().find(|table| !tables.contains(table.name())) {
        let name = table.name();
        return Err(LoadError::data(
            format!("Table {name} doesn't exist: not all that was loaded is there."),
            "drop what is left (dyno tpch drop), and load again",
        ));
    }
    let steps = read_steps(session).await?.into_iter().map(|done| LoadStep {
        name: done.name,
        seconds: done.seconds,
        rows: done.rows,
    });
    let load = TpchLoad {
        finished_at: finished_at.clone(),
        steps: steps.collect(),
        seconds: number(&facts, SECONDS),
        size_bytes: number(&facts, SIZE_BYTES),
        refresh_pairs: number(&facts, REFRESH_PAIRS).unwrap_or(0),
        attempts: number(&facts, ATTEMPTS).unwrap_or(1),
    };
    let LoadRequest { scale, foreign_keys, indexes } = wanted;
    Ok(LoadState::Complete(Box::new(TpchDatabase { scale, foreign_keys, indexes, load })))
}

/// What the database says of its load; `None` when nothing is loaded.
///
/// # Errors
/// Those of the session; tables of another program, a load that is not finished, missing tables.
pub async fn loaded(session: &mut AdminSession<'_>) -> Result<Option<TpchDatabase>, LoadError> {
    match find(session).await? {
        LoadState::Nothing => Ok(None),
        LoadState::Complete(loaded) => Ok(Some(*loaded)),
        LoadState::Unfinished(LoadRequest { scale, .. }, _) => Err(LoadError::data(
            format!("The load of scale factor {scale} into this database has not been completed."),
            format!("complete it with dyno tpch load --scale {scale}: what is stored is kept"),
        )),
    }
}

/// Remembers that the refresh functions of pair `pair` (from 1) were applied; may be part of the
/// last transaction that applies them.
pub async fn note_refresh_pair(session: &mut AdminSession<'_>, pair: u32) -> Result<(), DbError> {
    set_fact(session, REFRESH_PAIRS, &pair.to_string()).await
}

/// What is noted under a name; `None` where nothing is.
pub(crate) async fn fact(
    session: &mut AdminSession<'_>,
    name: &str,
) -> Result<Option<String>, DbError> {
    let sql = format!("SELECT t_value FROM {FACTS} WHERE t_name = '{name}'");
    Ok(answer(session, &sql).await?.single().map(str::to_owned))
}

/// Notes a value under a name, instead of the one that is there.
pub(crate) async fn set_fact(
    session: &mut AdminSession<'_>,
    name: &str,
    value: &str,
) -> Result<(), DbError> {
    let delete = format!("DELETE FROM {FACTS} WHERE t_name = '{name}'");
    session.query(&delete, &mut Discard).await?;
    let insert = format!("INSERT INTO {FACTS} (t_name, t_value) VALUES ('{name}', '{value}')");
    session.query(&insert, &mut Discard).await.map(drop)
}

async fn set_facts(
    session: &mut AdminSession<'_>,
    values: &[(&str, String)],
) -> Result<(), DbError> {
    for (name, value) in values {
        set_fact(session, name, value).await?;
    }
    Ok(())
}

/// Notes what a load is to make and that it begins for the `attempt`th time.
pub(crate) async fn begin(
    session: &mut AdminSession<'_>,
    wanted: &LoadRequest,
    attempt: u32,
) -> Result<(), DbError> {
    session.query("BEGIN", &mut Discard).await?;
    let values = [
        (SCALE, wanted.scale.to_string()),
        (FOREIGN_KEYS, wanted.foreign_keys.to_string()),
        (INDEXES, wanted.indexes.to_string()),
        (ATTEMPTS, attempt.to_string()),
        (REFRESH_PAIRS, "0".to_owned()),
    ];
    set_facts(session, &values).await?;
    session.query("COMMIT", &mut Discard).await.map(drop)
}

/// Notes that a piece is done: in its own transaction, where it has one.
pub(crate) async fn note(session: &mut AdminSession<'_>, done: &Done) -> Result<(), DbError> {
    let Done { name, began_s, seconds, rows, sums } = done;
    let sql = format!(
        "INSERT INTO {STEPS} (s_name, s_began, s_seconds, s_rows, s_sums) VALUES ('{name}', \
         {began_s}, {seconds}, {rows}, '{sums}')"
    );
    session.query(&sql, &mut Discard).await.map(drop)
}

/// Notes that the load is complete: its pieces give way to its steps.
pub(crate) async fn complete(
    session: &mut AdminSession<'_>,
    load: &TpchLoad,
) -> Result<(), DbError> {
    session.query("BEGIN", &mut Discard).await?;
    session.query(&format!("DELETE FROM {STEPS}"), &mut Discard).await?;
    for (position, step) in load.steps.iter().enumerate() {
        note_step(session, position, step).await?;
    }
    let mut values = vec![(FINISHED_AT, load.finished_at.clone())];
    values.extend(load.seconds.map(|seconds| (SECONDS, seconds.to_string())));
    values.extend(load.size_bytes.map(|bytes| (SIZE_BYTES, bytes.to_string())));
    set_facts(session, &values).await?;
    session.query("COMMIT", &mut Discard).await.map(drop)
}

/// Keeps a step of a complete load at its place in the order.
pub(crate) async fn note_step(
    session: &mut AdminSession<'_>,
    position: usize,
    step: &LoadStep,
) -> Result<(), DbError> {
    let done = Done {
        name: step.name.clone(),
        began_s: position as f64,
        seconds: step.seconds,
        rows: step.rows,
        sums: String::new(),
    };
    note(session, &done).await
}
