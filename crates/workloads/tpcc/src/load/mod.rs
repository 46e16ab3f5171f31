//! Creates and fills the tables, in parallel, and goes on where an interrupted load ended.
//!
//! Rows are stored in chunks of about 30,000, each wholly or not at all, and what a chunk holds
//! depends only on the seed. The database itself keeps the list of chunks that were begun and done:
//! a chunk that was begun and not noted as done is removed and loaded again.
//!
//! Where the shards behind an endpoint are known, and the rule by which rows lie on them, the tables
//! are created through the endpoint and each shard is filled directly; it keeps a list of its own.
//! The end of the load proves that the endpoint finds every row where it lies.
//!
//! - `chunks`, `rows`: what is loaded at once, and its rows. `csv`: the same rows as files.
//! - `direct`: where rows go. `state`: what the database says.
//! - `verify`: whether all is there. `proof`: whether it lies on its shards.

mod chunks;
mod csv;
mod direct;
mod proof;
mod rows;
mod state;
mod verify;

pub(crate) use chunks::LOAD_NEEDS;
pub use csv::{CsvFile, write_csv};
pub use dyno_load::{LoadError, LoadReport};
pub use proof::{ShardProof, prove};
pub use state::{TpccDatabase, existing_tables, foreign_keys, loaded};
pub use verify::cardinalities;

use crate::random::Constants;
use crate::schema::{
    HISTORY_SEQUENCE, KeyTime, LOAD_STATE, LateKey, Schema, Shard, TpccTable, table_names,
};
use crate::text::Timestamp;
use chunks::Chunk;
pub(crate) use direct::mapped_shards;
use direct::{LoadId, LoadPlace, configs_on_shards, forget_all, places};
use dyno_core::{
    AdminDriver, AdminSession, DbError, Dialect, Discard, Driver, Rng, RowSource, Session, counted,
};
use dyno_load::query::{answer, drop_tables, execute};
use dyno_load::settings::wants_keys_first;
use dyno_load::{LoadObserver, LoadSessions, StoredRows, bulk_load, doing, retrying, while_doing};
use proof::prove_of;
use rows::{ChunkRows, Common};
use state::DatabaseState;
use std::collections::HashMap;

const RESUME: &str =
    "build again with the same options: what is stored is kept, the rest is loaded";

/// Points in time are in UTC: in another zone of MySQL's session some do not exist.
pub(crate) const UTC: &str = "SET SESSION time_zone = '+00:00'";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpccLoadOptions {
    /// Warehouses, 1 to [`crate::WAREHOUSES_MAX`].
    pub warehouses: u32,
    /// Sessions at once; SQLite has one.
    pub sessions: u32,
    /// What makes the rows: the same seed and the same point in time give the same database.
    pub seed: u64,
    /// The point in time that all rows of the load have.
    pub loaded_at: Timestamp,
    /// When keys are made; `None` is what suits the dialect.
    pub keys: Option<KeyTime>,
    pub foreign_keys: bool,
    /// What a distributed database is told.
    pub shard: Option<Shard>,
}

impl TpccLoadOptions {
    /// As many warehouses by four sessions, as BenchmarkSQL has them; no foreign keys.
    pub fn new(warehouses: u32) -> Self {
        TpccLoadOptions {
            warehouses,
            sessions: 4,
            seed: 1,
            loaded_at: Timestamp::now(),
            keys: None,
            foreign_keys: false,
            shard: None,
        }
    }
}

/// Creates and fills the tables. A database that an interrupted load has left is completed; a
/// complete one is left alone. Must not be called within an event loop.
pub fn load(
    driver: &AdminDriver<'_>,
    options: &TpccLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<LoadReport, LoadError> {
    let dialect = driver.dialect();
    check_options(options, dialect)?;
    let loader = LoadSessions::new(driver, observer, options.sessions).needing(&LOAD_NEEDS);
    let schema = schema_of(&loader, options, dialect, observer)?;
    let shards = mapped_shards(driver).map_or(0, |(map, _)| map.shards());
    let copies = configs_on_shards(driver, observer)?;
    let begin = async |session: &mut AdminSession<'_>| {
        begin(session, options, &schema, shards, copies.clone(), observer).await
    };
    let Some((loaded_at, progress)) = loader.one(begin)? else {
        observer.note(&format!("already loaded: {}", counted(options.warehouses, "warehouse")));
        return Ok(LoadReport { was_complete: true, ..LoadReport::default() });
    };
    if let Some(note) = describe_placement(driver) {
        observer.note(&note);
    }
    let constants = Constants::for_load(&mut Rng::new(options.seed, "tpcc constants", 0));
    let common = Common { seed: options.seed, dialect, loaded_at, constants };
    let id = LoadId { seed: options.seed, loaded_at };
    let places = places(driver, id, options.warehouses, &progress, observer)
        .map_err(|error| error.with_resume_hint(RESUME))?;
    let missing = places.iter().flat_map(|place| &place.missing);
    observer.rows_planned(missing.map(|missing| missing.rows).sum());
    let rows_found = places.iter().map(|place| place.rows_found).sum();
    let load = Load { common, schema: &schema, stored: StoredRows::new(observer), observer };
    load.fill_proven(&loader, &places, driver, options)
        .and_then(|()| load.finish(&loader, driver, options))
        .and_then(|()| forget_all(driver, observer))
        .map_err(|error| error.with_resume_hint(RESUME))?;
    Ok(load.stored.report(rows_found))
}

fn schema_of(
    loader: &LoadSessions<'_>,
    options: &TpccLoadOptions,
    dialect: Dialect,
    observer: &dyn LoadObserver,
) -> Result<Schema, LoadError> {
    let mut schema = Schema {
        dialect,
        keys: options.keys.unwrap_or(KeyTime::usual(dialect)),
        foreign_keys: options.foreign_keys,
        shard: options.shard.clone(),
    };
    let keys_first = loader.one(async |session: &mut AdminSession<'_>| {
        wants_keys_first(session).await.map_err(while_doing("setting up"))
    })?;
    if keys_first && schema.keys == KeyTime::AfterLoad {
        schema.keys = KeyTime::PrimaryBeforeLoad;
    }
    if dialect == Dialect::Postgres
        && schema.shard.is_none()
        && loader
            .one(async |session: &mut AdminSession<'_>| state::is_coordinator(session).await)?
    {
        schema.shard = Some(Shard::of_coordinator());
        if std::mem::take(&mut schema.foreign_keys) {
            observer.note("Foreign keys are left out: there are none between tables on shards");
        }
    }
    Ok(schema)
}

/// Where the rows go, as far as that needs a word.
fn describe_placement(driver: &AdminDriver<'_>) -> Option<String> {
    Some(match driver.shards()?.map {
        Some(map) => format!(
            "rows go directly into {}, by the rule `{}`",
            counted(map.shards() as u64, "shard"),
            map.rule()
        ),
        None => "rows go through the endpoint: the target has no `shard_rule` that says how they lie on its \
                 shards"
            .to_owned(),
    })
}

pub fn check_options(options: &TpccLoadOptions, dialect: Dialect) -> Result<(), LoadError> {
    if !(1..=crate::WAREHOUSES_MAX).contains(&options.warehouses) {
        return Err(LoadError::option(format!(
            "The number of warehouses must be between 1 and {}, not {}.",
            crate::WAREHOUSES_MAX,
            options.warehouses
        )));
    }
    if dialect == Dialect::Sqlite && (options.foreign_keys || options.shard.is_some()) {
        let text = "SQLite can't add foreign keys to tables, and has no shards.";
        return Err(LoadError::option(text));
    }
    Ok(())
}

/// Removes what a load has made, also a part of it. Returns the names of the tables that were there.
/// Must not be called within an event loop.
pub fn destroy(
    driver: &AdminDriver<'_>,
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    let all: Vec<String> = table_names().map(str::to_owned).collect();
    destroy_of(driver, &all, observer)
}

/// The same for some of the tables, in the order of [`table_names`].
pub(crate) fn destroy_of(
    driver: &AdminDriver<'_>,
    names: &[String],
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    forget_all(driver, observer)?;
    LoadSessions::new(driver, observer, 1).one(async |session: &mut AdminSession<'_>| {
        let existing = state::tables(session).await?;
        let is_there = |name: &&String| existing.contains(name.as_str());
        let there: Vec<String> = names.iter().filter(is_there).cloned().collect();
        drop_tables(session, &there, observer).await?;
        let has_history = names.iter().any(|name| name == TpccTable::History.name());
        if has_history && driver.dialect() == Dialect::Postgres {
            let sql = format!("DROP SEQUENCE IF EXISTS {HISTORY_SEQUENCE}");
            execute(session, format!("executing {sql}"), &sql).await?;
        }
        Ok(there)
    })
}

/// Creates what is missing. Returns the point in time of the rows and what has been done before;
/// `None` when the database is complete.
async fn begin(
    session: &mut AdminSession<'_>,
    options: &TpccLoadOptions,
    schema: &Schema,
    shards: usize,
    copies: HashMap<String, String>,
    observer: &dyn LoadObserver,
) -> Result<Option<(Timestamp, HashMap<String, bool>)>, LoadError> {
    let found = state::inspect(session, options, shards, copies).await?;
    let existing = state::tables(session).await?;
    if found == DatabaseState::Complete {
        return Ok(None);
    }
    for (name, sql) in schema.create_own_tables() {
        if !existing.contains(name) {
            execute(session, format!("creating table {name}"), &sql).await?;
        }
    }
    let loaded_at = match found {
        DatabaseState::Unfinished(at) => {
            observer.note("Going on with an unfinished load");
            at
        }
        DatabaseState::Nothing | DatabaseState::Complete => options.loaded_at,
    };
    let noting = while_doing("noting the begin of the load");
    state::begin(session, options, loaded_at, shards).await.map_err(noting)?;
    let progress = state::progress(session, LOAD_STATE).await?;
    for table in TpccTable::ALL {
        create_table(session, schema, table, &progress, observer).await?;
    }
    if schema.keys == KeyTime::BeforeLoad {
        make_keys(session, schema.late_keys(), observer).await?;
    }
    Ok(Some((loaded_at, progress)))
}

/// A table counts as made once that is noted: what follows CREATE TABLE on a distributed database
/// may be missing otherwise. No row is stored before.
async fn create_table(
    session: &mut AdminSession<'_>,
    schema: &Schema,
    table: TpccTable,
    progress: &HashMap<String, bool>,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let name = table.name();
    if progress.get(name) == Some(&true) {
        return Ok(());
    }
    let doing = format!("creating table {name}");
    observer.creating_table(name);
    if progress.contains_key(name) {
        execute(session, &*doing, &format!("DROP TABLE IF EXISTS {name}")).await?;
    } else {
        state::note_begun(session, LOAD_STATE, name).await.map_err(while_doing(&*doing))?;
    }
    for sql in schema.create_table(table) {
        let created = session.query(&sql, &mut Discard).await;
        created.map_err(|error| while_doing(&*doing)(suspect_shard(schema, error)))?;
    }
    state::note_done(session, LOAD_STATE, name).await.map_err(while_doing(&*doing))
}

/// A server that isn't distributed understands no shard clause.
fn suspect_shard(schema: &Schema, error: DbError) -> DbError {
    if schema.shard.is_none() || error.is_fatal() || error.hint().is_some() {
        return error;
    }
    error.with_hint(
        "The shard clauses are part of this statement: give those of this database, or none (in a \
         bundled suite, name the database as the target that has none).",
    )
}

async fn make_keys(
    session: &mut AdminSession<'_>,
    keys: Vec<LateKey>,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let existing = state::keys(session).await?;
    for key in keys.into_iter().filter(|key| !existing.contains(&key.name)) {
        make_key(session, &key, observer).await?;
    }
    Ok(())
}

async fn make_key(
    session: &mut AdminSession<'_>,
    key: &LateKey,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    observer.creating_index(key.table.name());
    let doing = format!("creating key {} of table {}", key.name, key.table.name());
    execute(session, doing, &key.sql).await
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    chunk: Chunk,
    rows: u64,
    /// Rows of it may be there.
    was_begun: bool,
}

/// Those of the chunks that are not stored, and the number of rows that are.
fn missing_of(
    seed: u64,
    chunks: Vec<Chunk>,
    progress: &HashMap<String, bool>,
) -> (Vec<Missing>, u64) {
    let mut rows_found = 0;
    let mut missing = Vec::new();
    for chunk in chunks {
        let rows = rows::row_count(seed, &chunk);
        match progress.get(&chunk.name()) {
            Some(true) => rows_found += rows,
            begun => missing.push(Missing { chunk, rows, was_begun: begun.is_some() }),
        }
    }
    (missing, rows_found)
}

/// A load whose tables exist; shared by the sessions.
struct Load<'a> {
    common: Common,
    schema: &'a Schema,
    stored: StoredRows<'a>,
    observer: &'a dyn LoadObserver,
}

impl Load<'_> {
    /// Stores those of the missing chunks that are wanted now.
    fn fill(
        &self,
        loader: &LoadSessions<'_>,
        places: &[LoadPlace<'_>],
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> Result<(), LoadError> {
        let set_up = async |_: &mut AdminSession<'_>| Ok(());
        let pieces: Vec<Vec<_>> = places
            .iter()
            .map(|place| {
                let wanted = place.missing.iter().filter(|missing| is_wanted(&missing.chunk));
                wanted.map(|missing| (place, missing)).collect()
            })
            .collect();
        let drivers = places.iter().map(|place| &place.driver);
        let at: Vec<_> =
            drivers.zip(&pieces).map(|(driver, pieces)| (driver, &pieces[..])).collect();
        loader.each_at(&at, set_up, async |session: &mut AdminSession<'_>, (), (place, missing)| {
            self.chunk(session, place, missing).await
        })
    }

    /// Stores all that is missing; on shards first the few rows by which their rule is proven.
    fn fill_proven(
        &self,
        loader: &LoadSessions<'_>,
        places: &[LoadPlace<'_>],
        driver: &AdminDriver<'_>,
        options: &TpccLoadOptions,
    ) -> Result<(), LoadError> {
        if mapped_shards(driver).is_none() {
            return self.fill(loader, places, |_| true);
        }
        self.fill(loader, places, Chunk::is_head)?;
        self.prove_rule(driver, options)?;
        self.fill(loader, places, |chunk| !chunk.is_head())
    }

    /// Refuses a rule that is not the endpoint's while a few rows of each warehouse are there, and not after the others.
    fn prove_rule(
        &self,
        driver: &AdminDriver<'_>,
        options: &TpccLoadOptions,
    ) -> Result<(), LoadError> {
        let TpccLoadOptions { warehouses, sessions, .. } = *options;
        match prove_of(driver, &chunks::HEADS, warehouses, sessions, self.observer)? {
            Some(proof) if !proof.problems.is_empty() => Err(LoadError::data(
                proof.message().to_string(),
                "give the target the `shard_rule` of its endpoint, or none: rows go through the endpoint then; \
                 destroy what this load has made, and build again",
            )),
            _ => Ok(()),
        }
    }

    async fn chunk(
        &self,
        session: &mut AdminSession<'_>,
        place: &LoadPlace<'_>,
        missing: &Missing,
    ) -> Result<(), LoadError> {
        let Missing { chunk, rows, was_begun } = missing;
        let name = chunk.name();
        let doing = place.named(format!("loading the rows {name}"));
        if *was_begun {
            execute(session, &*doing, &chunk.delete()).await?;
        } else {
            let noted = state::note_begun(session, place.state, &name).await;
            noted.map_err(while_doing(&*doing))?;
        }
        let table = chunk.table.name();
        let mut source = ChunkRows::new(self.common, *chunk);
        let report = retrying(session, async |session| {
            source.restart();
            bulk_load(session, &doing, table, &chunk.table.columns(), &mut source).await
        })
        .await?;
        if report.rows != *rows {
            return Err(LoadError::data(
                format!("{table} took {} of {rows} rows of a load.", report.rows),
                "look for triggers and rules on the table",
            ));
        }
        state::note_done(session, place.state, &name).await.map_err(while_doing(&*doing))?;
        self.stored.add(report);
        Ok(())
    }

    /// What follows the rows: keys and indexes, several at once, then the rest.
    fn finish(
        &self,
        loader: &LoadSessions<'_>,
        driver: &AdminDriver<'_>,
        options: &TpccLoadOptions,
    ) -> Result<(), LoadError> {
        let existing =
            loader.one(async |session: &mut AdminSession<'_>| state::keys(session).await)?;
        let mut missing = self.schema.late_keys();
        missing.retain(|key| !existing.contains(&key.name));
        loader.each(
            &missing,
            async |_: &mut AdminSession<'_>| Ok(()),
            async |session: &mut AdminSession<'_>, (), key| {
                make_key(session, key, self.observer).await
            },
        )?;
        loader.one(async |session: &mut AdminSession<'_>| self.rest(session).await)?;
        self.verify(loader, driver, options)?;
        let warehouses = options.warehouses;
        loader.one(async |session: &mut AdminSession<'_>| self.complete(session, warehouses).await)
    }

    async fn rest(&self, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
        make_keys(session, self.schema.foreign_keys(), self.observer).await?;
        for sql in self.schema.number_history() {
            execute(session, "numbering the history", &sql).await?;
        }
        for sql in self.schema.analyze() {
            doing(format!("executing {sql}"));
            let done = answer(session, &sql).await;
            done.map_err(while_doing(format!("executing {sql}")))?;
        }
        Ok(())
    }

    /// Counts the rows, on shards by the proof that they lie where they should.
    fn verify(
        &self,
        loader: &LoadSessions<'_>,
        driver: &AdminDriver<'_>,
        options: &TpccLoadOptions,
    ) -> Result<(), LoadError> {
        let warehouses = options.warehouses;
        let proof = prove(driver, warehouses, options.sessions, self.observer)?;
        let problems = match &proof {
            Some(proof) if !proof.problems.is_empty() => {
                vec![proof.message().to_string().trim_end_matches('.').to_owned()]
            }
            Some(proof) => proof.cardinalities(warehouses),
            None => loader.one(async |session: &mut AdminSession<'_>| {
                doing("counting the rows");
                let counted = cardinalities(session, warehouses).await;
                counted.map_err(while_doing("counting the rows"))
            })?,
        };
        if !problems.is_empty() {
            let hint = "destroy the database and build it again";
            return Err(LoadError::data(format!("{}.", problems.join("; ")), hint));
        }
        if let Some(proof) = proof {
            self.observer.note(&proof.message().to_string());
        }
        Ok(())
    }

    async fn complete(
        &self,
        session: &mut AdminSession<'_>,
        warehouses: u32,
    ) -> Result<(), LoadError> {
        let noting = while_doing("noting the end of the load");
        state::complete(session, warehouses, &self.common.constants).await.map_err(noting)
    }
}
