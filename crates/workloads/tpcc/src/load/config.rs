//! The configuration of a database: who loads or has loaded it, and how; and what exists in it.

use super::{TpccLoadOptions, mapped_shards};
use crate::random::Constants;
use crate::schema::{CONFIG, FOREIGN_KEYS, TpccTable, primary_key_name, table_names};
use crate::text::Timestamp;
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, Discard, Session, counted};
use dyno_load::query::{answer, column, pairs};
use dyno_load::{LoadError, LoadObserver, LoadSessions, catalog, while_doing};
use std::collections::{HashMap, HashSet};

/// Keys of the configuration while a load is under way.
const BUILDING: &str = "dyno.warehouses";
const BUILDING_SEED: &str = "dyno.seed";
const BUILDING_AT: &str = "dyno.loadedAt";
/// Number of shards that the rows go to directly.
const BUILDING_AT_SHARDS: &str = "dyno.shards";
/// Set once all tables exist: what follows CREATE TABLE on a distributed database may be missing before. No row is
/// stored earlier.
const TABLES_MADE: &str = "dyno.tables";

/// What a complete database says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccDatabase {
    pub warehouses: u32,
    /// NURand's constant of C_LAST that the load used; a run has to keep a distance from it
    /// (clause 2.1.6.1).
    pub c_last: u64,
}

/// In which state a build finds the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseState {
    Nothing,
    /// A load that has not ended; its rows have this point in time.
    Unfinished {
        loaded_at: Timestamp,
        has_tables: bool,
    },
    Complete,
}

/// The tables that statements without a schema name can reach.
pub(crate) async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    catalog::tables(session).await.map_err(while_doing("listing the tables"))
}

/// The first table of the workload that doesn't exist. What is not listed is asked for: a proxy may
/// list the shards of a table under other names.
async fn missing_table(
    session: &mut AdminSession<'_>,
    listed: &HashSet<String>,
) -> Result<Option<&'static str>, LoadError> {
    for name in
        TpccTable::ALL.map(TpccTable::name).into_iter().filter(|name| !listed.contains(*name))
    {
        let sql = format!("SELECT 1 FROM {name} WHERE 1 = 0");
        match session.query(&sql, &mut Discard).await {
            Ok(_) => {}
            Err(error) if error.is_fatal() => return Err(while_doing("listing the tables")(error)),
            Err(_) => return Ok(Some(name)),
        }
    }
    Ok(None)
}

/// Those of [`crate::schema::table_names`] that exist.
pub async fn existing_tables(session: &mut AdminSession<'_>) -> Result<Vec<String>, LoadError> {
    let existing = tables(session).await?;
    Ok(table_names().map(str::to_owned).filter(|name| existing.contains(name)).collect())
}

/// The keys and indexes that exist, by the names that [`crate::schema`] gives them.
pub(crate) async fn keys(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    let found = match session.dialect() {
        Dialect::Mysql => mysql_keys(session).await,
        Dialect::Postgres => column(session, POSTGRES_KEYS).await,
        Dialect::Sqlite => {
            column(session, "SELECT name FROM sqlite_master WHERE type = 'index'").await
        }
    };
    found.map_err(while_doing("listing the keys"))
}

const POSTGRES_KEYS: &str = "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE relkind IN ('i', 'I') AND nspname = ANY (current_schemas(false)) UNION SELECT conname FROM \
    pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE nspname = ANY \
    (current_schemas(false))";

async fn mysql_keys(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let mut found = HashSet::new();
    for table in TpccTable::ALL {
        let name = table.name();
        for index in catalog::mysql_indexes(session, name).await? {
            found.insert(if index == "PRIMARY" { primary_key_name(table) } else { index });
        }
        found.extend(catalog::mysql_foreign_keys(session, name).await?);
    }
    Ok(found)
}

/// How many of the foreign keys of [`crate::schema`] exist.
pub async fn foreign_keys(session: &mut AdminSession<'_>) -> Result<usize, LoadError> {
    let keys = keys(session).await?;
    Ok(FOREIGN_KEYS.iter().filter(|key| keys.contains(key.0)).count())
}

/// Whether the server is a coordinator of `dyno cluster`, which spreads tables by functions of its own.
pub(crate) async fn is_coordinator(session: &mut AdminSession<'_>) -> Result<bool, LoadError> {
    let sql = "SELECT 1 WHERE to_regprocedure('dyno_shards.distribute(text,text)') IS NOT NULL";
    let found = answer(session, sql).await.map_err(while_doing("looking for shards"))?;
    Ok(!found.rows.is_empty())
}

async fn config(session: &mut AdminSession<'_>) -> Result<HashMap<String, String>, DbError> {
    pairs(session, &format!("SELECT cfg_name, cfg_value FROM {CONFIG}")).await
}

fn other_data(problem: String) -> LoadError {
    let hint = "destroy the database first, or use another one; to use it as it is, run with the \
                warehouses it has";
    LoadError::data(problem, hint)
}

fn incomplete(table: &str) -> LoadError {
    let problem = format!("Table {table} doesn't exist: not all that was loaded is there.");
    LoadError::data(problem, "destroy what is left, and build the database again")
}

/// The configuration, as far as there is one.
async fn config_found(
    session: &mut AdminSession<'_>,
) -> Result<HashMap<String, String>, LoadError> {
    if !tables(session).await?.contains(CONFIG) {
        return Ok(HashMap::new());
    }
    config(session).await.map_err(while_doing(format!("reading {CONFIG}")))
}

/// The copies of the configuration on shards, merged: the endpoint reads any one of them, and a shard that
/// died has perhaps missed what the others were given.
pub(super) fn configs_on_shards(
    driver: &AdminDriver<'_>,
    observer: &dyn LoadObserver,
) -> Result<HashMap<String, String>, LoadError> {
    let mut together = HashMap::new();
    for node in mapped_shards(driver).map_or(Vec::new(), |(_, nodes)| nodes) {
        let loader = LoadSessions::new(&node.driver, observer, 1);
        let read = async |session: &mut AdminSession<'_>| config_found(session).await;
        together.extend(loader.one(read)?);
    }
    Ok(together)
}

/// Looks what is there, and whether it fits what was asked for. `copies` is what the copies of the configuration on
/// shards say: where one of them is unfinished, all are.
pub(crate) async fn inspect(
    session: &mut AdminSession<'_>,
    options: &TpccLoadOptions,
    shards: usize,
    copies: HashMap<String, String>,
) -> Result<DatabaseState, LoadError> {
    let tables = tables(session).await?;
    let foreign =
        TpccTable::ALL.iter().map(|table| table.name()).find(|name| tables.contains(*name));
    let mut config = copies;
    config.extend(config_found(session).await?);
    if let Some(warehouses) = config.get(BUILDING) {
        let asked = [options.warehouses.to_string(), options.seed.to_string()];
        let seed = config.get(BUILDING_SEED).map(String::as_str).unwrap_or_default();
        if *warehouses != asked[0] || seed != asked[1] {
            return Err(other_data(format!(
                "An unfinished load of {} with seed {seed} is there, and {} with seed {} was asked for.",
                counted(warehouses.parse::<u32>().unwrap_or(0), "warehouse"),
                asked[0],
                asked[1]
            )));
        }
        let begun = config.get(BUILDING_AT_SHARDS).and_then(|text| text.parse().ok()).unwrap_or(0);
        if begun != shards {
            let way = |shards: usize| match shards {
                0 => "through the address of the target".to_owned(),
                shards => format!("directly into {}", counted(shards as u64, "shard")),
            };
            let problem = format!(
                "An unfinished load went {}, and this one would go {}.",
                way(begun),
                way(shards)
            );
            let hint = "give the target the same nodes and the same `shard_rule` as before, or destroy the \
                        database first";
            return Err(LoadError::data(problem, hint));
        }
        let at = config.get(BUILDING_AT).and_then(|ms| ms.parse().ok());
        let loaded_at = at.map_or(options.loaded_at, Timestamp);
        let has_tables = config.contains_key(TABLES_MADE);
        return Ok(DatabaseState::Unfinished { loaded_at, has_tables });
    }
    if let Some(warehouses) = config.get("warehouses") {
        // Tables are dropped one by one, the configuration last.
        if let Some(name) = missing_table(session, &tables).await? {
            return Err(incomplete(name));
        }
        if *warehouses == options.warehouses.to_string() {
            return Ok(DatabaseState::Complete);
        }
        return Err(other_data(format!(
            "The tables hold {}, and {} were asked for.",
            counted(warehouses.parse::<u32>().unwrap_or(0), "warehouse"),
            options.warehouses
        )));
    }
    match foreign {
        None => Ok(DatabaseState::Nothing),
        Some(table) => Err(other_data(format!(
            "Table {table} exists, but {CONFIG} does not say who loaded it and how."
        ))),
    }
}

/// Notes that a load is under way. Repeatable: a shard that died may have missed it, and has no copy of it then.
pub(crate) async fn begin(
    session: &mut AdminSession<'_>,
    options: &TpccLoadOptions,
    loaded_at: Timestamp,
    shards: usize,
) -> Result<(), DbError> {
    let rows = [
        (BUILDING, options.warehouses.to_string()),
        (BUILDING_SEED, options.seed.to_string()),
        (BUILDING_AT, loaded_at.0.to_string()),
        (BUILDING_AT_SHARDS, shards.to_string()),
    ];
    put(session, &rows).await?;
    // Left by an end that was interrupted.
    remove(session, &FACTS).await
}

/// Notes that all tables exist.
pub(crate) async fn note_tables(session: &mut AdminSession<'_>) -> Result<(), DbError> {
    put(session, &[(TABLES_MADE, "made".to_owned())]).await
}

/// Inserts or replaces rows of the configuration.
async fn put(session: &mut AdminSession<'_>, rows: &[(&str, String)]) -> Result<(), DbError> {
    let replacing = match session.dialect() {
        Dialect::Mysql => "ON DUPLICATE KEY UPDATE cfg_value = VALUES(cfg_value)",
        Dialect::Postgres | Dialect::Sqlite => {
            "ON CONFLICT (cfg_name) DO UPDATE SET cfg_value = excluded.cfg_value"
        }
    };
    let rows: Vec<String> =
        rows.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    let rows = rows.join(", ");
    let sql = format!("INSERT INTO {CONFIG} (cfg_name, cfg_value) VALUES {rows} {replacing}");
    session.query(&sql, &mut Discard).await.map(drop)
}

async fn remove(session: &mut AdminSession<'_>, names: &[&str]) -> Result<(), DbError> {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let sql = format!("DELETE FROM {CONFIG} WHERE cfg_name IN ({})", names.join(", "));
    session.query(&sql, &mut Discard).await.map(drop)
}

/// What BenchmarkSQL's runs read.
const FACTS: [&str; 4] = ["warehouses", "nURandCLast", "nURandCC_ID", "nURandCI_ID"];

/// What a complete database says of itself, by name.
pub(crate) fn config_rows(warehouses: u32, constants: &Constants) -> [(&'static str, u64); 4] {
    let [count, c_last, c_id, i_id] = FACTS;
    [
        (count, u64::from(warehouses)),
        (c_last, constants.c_last),
        (c_id, constants.c_id),
        (i_id, constants.i_id),
    ]
}

/// Notes that the load is complete: what BenchmarkSQL's runs read is there, what the loader needed
/// is gone.
pub(crate) async fn complete(
    session: &mut AdminSession<'_>,
    warehouses: u32,
    constants: &Constants,
) -> Result<(), DbError> {
    let facts = config_rows(warehouses, constants);
    put(session, &facts.map(|(name, value)| (name, value.to_string()))).await?;
    // Until then another build resumes here.
    let names = [BUILDING_SEED, BUILDING_AT, BUILDING_AT_SHARDS, TABLES_MADE, BUILDING];
    remove(session, &names).await
}

/// What the database says about its load.
///
/// # Errors
/// When there is no complete load: no tables, an unfinished load, another program's tables.
pub async fn loaded(session: &mut AdminSession<'_>) -> Result<TpccDatabase, LoadError> {
    let build = |problem: String| LoadError::data(problem, "build the database first");
    let tables = tables(session).await?;
    if !tables.contains(CONFIG) {
        return Err(build(format!("Table {CONFIG} doesn't exist: nothing is loaded here.")));
    }
    let config = config(session).await.map_err(while_doing(format!("reading {CONFIG}")))?;
    if config.contains_key(BUILDING) {
        let problem = "The load of this database has not been completed.";
        let hint = "build it again with the same options: what is stored is kept";
        return Err(LoadError::data(problem, hint));
    }
    if let Some(name) = missing_table(session, &tables).await? {
        return Err(incomplete(name));
    }
    let number = |name: &str| {
        let missing = || build(format!("{CONFIG} has no row {name} with a number."));
        config.get(name).and_then(|value| value.parse().ok()).ok_or_else(missing)
    };
    Ok(TpccDatabase { warehouses: number("warehouses")? as u32, c_last: number("nURandCLast")? })
}
