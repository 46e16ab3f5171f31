//! Creates and fills the tables, in parallel, and goes on where an interrupted load ended.
//!
//! Rows are stored in chunks of about 30,000, each wholly or not at all, and what a chunk holds
//! depends only on the seed. A chunk whose rows are not there, or not all of them, is missing: it is removed and loaded
//! again. One count of all rows says what an interrupted load lacks, and in the end that nothing lacks.
//!
//! Where the shards behind an endpoint are known, and the rule by which rows lie on them, the tables
//! are created through the endpoint and each shard is filled directly. The end of the load proves that the endpoint
//! finds every row where it lies.
//!
//! - `rows`: chunks and their rows. `csv`: the same rows as files.
//! - `survey`: what is stored, and whether it lies on its shards. `config`: what the database says of its load.

mod config;
mod csv;
mod rows;
mod survey;

pub use config::{TpccDatabase, existing_tables, foreign_keys, loaded};
pub use csv::{CsvFile, write_csv};
pub use dyno_load::{LoadError, LoadReport};
pub(crate) use rows::LOAD_NEEDS;
pub use survey::{ShardProof, prove};

use crate::schema::{
    CONFIG, CREATE_CONFIG, HISTORY_SEQUENCE, KeyTime, LateKey, Schema, Shard, TpccTable,
    table_names,
};
use crate::text::Timestamp;
use config::DatabaseState;
use dyno_core::{
    AdminDriver, AdminSession, DbError, Dialect, Discard, Driver, RowSource, Session, ShardMap,
    ShardNode, Shards, counted,
};
use dyno_load::catalog;
use dyno_load::query::{answer, drop_tables, execute};
use dyno_load::settings::wants_keys_first;
use dyno_load::{LoadObserver, LoadSessions, StoredRows, bulk_load, doing, retrying, while_doing};
use rows::{Chunk, ChunkRows, HEADS, RowParameters, item_chunks, warehouse_chunks};
use std::collections::HashMap;
use survey::Survey;

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
    let copies = config::configs_on_shards(driver, observer)?;
    let begin = async |session: &mut AdminSession<'_>| {
        begin(session, options, &schema, (shards, copies), observer).await
    };
    let Some((loaded_at, is_resumed)) = loader.one(begin)? else {
        observer.note(&format!("already loaded: {}", counted(options.warehouses, "warehouse")));
        return Ok(LoadReport { was_complete: true, ..LoadReport::default() });
    };
    if let Some(note) = describe_placement(driver) {
        observer.note(&note);
    }
    let load = Load {
        loader,
        driver,
        options,
        parameters: RowParameters::new(options.seed, dialect, loaded_at),
        schema: &schema,
        stored: StoredRows::new(observer),
        observer,
    };
    let rows_found =
        load.fill_and_finish(is_resumed).map_err(|error| error.with_resume_hint(RESUME))?;
    Ok(load.stored.report(rows_found))
}

/// The shards behind a driver and how warehouses lie on them, where both are known: then each can be reached directly.
pub(crate) fn mapped_shards<'d>(
    driver: &AdminDriver<'d>,
) -> Option<(ShardMap, Vec<ShardNode<AdminDriver<'d>>>)> {
    let Shards { nodes, map } = driver.shards()?;
    Some((map?, nodes))
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
            .one(async |session: &mut AdminSession<'_>| config::is_coordinator(session).await)?
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

/// Removes some of the tables, in the order of [`table_names`], as [`destroy`] does.
pub(crate) fn destroy_of(
    driver: &AdminDriver<'_>,
    names: &[String],
    observer: &dyn LoadObserver,
) -> Result<Vec<String>, LoadError> {
    LoadSessions::new(driver, observer, 1).one(async |session: &mut AdminSession<'_>| {
        let existing = config::tables(session).await?;
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

/// Creates what is missing. Returns the point in time of the rows, and whether an earlier load may have stored some;
/// `None` if the database is complete.
async fn begin(
    session: &mut AdminSession<'_>,
    options: &TpccLoadOptions,
    schema: &Schema,
    (shards, copies): (usize, HashMap<String, String>),
    observer: &dyn LoadObserver,
) -> Result<Option<(Timestamp, bool)>, LoadError> {
    let state = config::inspect(session, options, shards, copies).await?;
    let (loaded_at, has_tables) = match state {
        DatabaseState::Complete => return Ok(None),
        DatabaseState::Nothing => (options.loaded_at, false),
        DatabaseState::Unfinished { loaded_at, has_tables } => {
            observer.note("Going on with an unfinished load");
            (loaded_at, has_tables)
        }
    };
    if !config::tables(session).await?.contains(CONFIG) {
        execute(session, format!("creating table {CONFIG}"), CREATE_CONFIG).await?;
        catalog::mark(session, CONFIG, observer).await?;
    }
    let noting = || while_doing("noting the begin of the load");
    config::begin(session, options, loaded_at, shards).await.map_err(noting())?;
    if !has_tables {
        for table in TpccTable::ALL {
            if state != DatabaseState::Nothing {
                // It may be there without what follows CREATE TABLE.
                let sql = format!("DROP TABLE IF EXISTS {}", table.name());
                execute(session, format!("executing {sql}"), &sql).await?;
            }
            create_table(session, schema, table, observer).await?;
        }
    }
    // Again also when they were there: a shard that died may have missed it.
    config::note_tables(session).await.map_err(noting())?;
    if schema.keys == KeyTime::BeforeLoad {
        make_keys(session, schema.late_keys(), observer).await?;
    }
    Ok(Some((loaded_at, has_tables)))
}

async fn create_table(
    session: &mut AdminSession<'_>,
    schema: &Schema,
    table: TpccTable,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let name = table.name();
    let doing = format!("creating table {name}");
    observer.creating_table(name);
    for sql in schema.create_table(table) {
        let created = session.query(&sql, &mut Discard).await;
        created.map_err(|error| while_doing(&*doing)(suspect_shard(schema, error)))?;
    }
    catalog::mark(session, name, observer).await
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
    let existing = config::keys(session).await?;
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

/// A server that takes a part of the rows.
struct LoadPlace<'d> {
    driver: AdminDriver<'d>,
    /// Number and name of the shard; `None` for the address of the target.
    shard: Option<(usize, String)>,
    /// All chunks that belong there.
    chunks: Vec<Chunk>,
}

impl LoadPlace<'_> {
    /// The chunks that lack rows, and the number of rows that are there; all chunks without a survey.
    fn missing(&self, seed: u64, survey: Option<&Survey>) -> (Vec<Missing>, u64) {
        let shard = self.shard.as_ref().map(|(number, _)| *number);
        let (mut missing, mut rows_found) = (Vec::new(), 0);
        for &chunk in &self.chunks {
            let rows = chunk.rows(seed);
            let stored = survey.map_or(0, |survey| survey.stored(&chunk, shard));
            match stored == rows {
                true => rows_found += rows,
                false => missing.push(Missing { chunk, rows, stored }),
            }
        }
        (missing, rows_found)
    }

    /// With the shard, where it is one: `loading the rows bmsql_stock.1.1 on shard n2`.
    fn describe(&self, doing: String) -> String {
        match &self.shard {
            Some((_, shard)) => format!("{doing} on shard {shard}"),
            None => doing,
        }
    }
}

/// A chunk that has other rows than it should.
#[derive(Clone, Copy, Debug)]
struct Missing {
    chunk: Chunk,
    rows: u64,
    stored: u64,
}

/// Says which rows lack or are too many; `None` if none.
fn describe_missing(missing: &[Missing]) -> Option<String> {
    let Missing { chunk, rows, stored } = missing.first()?;
    let others = match missing.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more chunks differ"),
    };
    let (table, name) = (chunk.table.name(), chunk.name());
    Some(format!("{table} has {stored} rows of the chunk {name} instead of {rows}{others}."))
}

/// A load whose tables exist; shared by the sessions.
struct Load<'a> {
    loader: LoadSessions<'a>,
    driver: &'a AdminDriver<'a>,
    options: &'a TpccLoadOptions,
    parameters: RowParameters,
    schema: &'a Schema,
    stored: StoredRows<'a>,
    observer: &'a dyn LoadObserver,
}

impl<'a> Load<'a> {
    /// Stores all that is missing, and does what follows the rows. Returns the number of rows that were there.
    fn fill_and_finish(&self, is_resumed: bool) -> Result<u64, LoadError> {
        let places = self.places()?;
        let survey = is_resumed.then(|| self.survey(&TpccTable::ALL)).transpose()?;
        let (missing, found): (Vec<Vec<Missing>>, Vec<u64>) =
            places.iter().map(|place| place.missing(self.options.seed, survey.as_ref())).unzip();
        self.observer.rows_planned(missing.iter().flatten().map(|missing| missing.rows).sum());
        if mapped_shards(self.driver).is_some() {
            // The few rows by which the rule of the shards is proven.
            let is_head = |chunk: &Chunk| HEADS.contains(&chunk.table);
            self.fill(&places, &missing, is_head)?;
            self.prove_rule()?;
            self.fill(&places, &missing, |chunk| !is_head(chunk))?;
        } else {
            self.fill(&places, &missing, |_| true)?;
        }
        self.finish(&places)?;
        Ok(found.into_iter().sum())
    }

    fn survey(&self, tables: &[TpccTable]) -> Result<Survey, LoadError> {
        let TpccLoadOptions { warehouses, sessions, .. } = *self.options;
        Survey::take(self.driver, tables, (warehouses, sessions), self.observer)
    }

    /// The address of the target, and the shards that are loaded directly.
    ///
    /// # Errors
    /// Errors of sessions to shards; the endpoint has made other tables there.
    fn places(&self) -> Result<Vec<LoadPlace<'a>>, LoadError> {
        let warehouses = 1..=self.options.warehouses;
        let Some((map, nodes)) = mapped_shards(self.driver) else {
            let chunks = [item_chunks(), warehouse_chunks(warehouses)].concat();
            return Ok(vec![LoadPlace { driver: *self.driver, shard: None, chunks }]);
        };
        let mut places = Vec::new();
        let mut have_items = false;
        for (number, ShardNode { name, driver }) in nodes.into_iter().enumerate() {
            let loader = LoadSessions::new(&driver, self.observer, 1);
            let has_items = loader.one(async |session: &mut AdminSession<'_>| {
                has_items_on_shard(session, &name).await
            })?;
            have_items |= has_items;
            let own = warehouses.clone().filter(|&warehouse| map.shard_of(warehouse) == number);
            let mut chunks = warehouse_chunks(own);
            if has_items {
                chunks.splice(..0, item_chunks());
            }
            places.push(LoadPlace { driver, shard: Some((number, name)), chunks });
        }
        // A catalogue that no shard has is the endpoint's own.
        let chunks = if have_items { Vec::new() } else { item_chunks() };
        places.insert(0, LoadPlace { driver: *self.driver, shard: None, chunks });
        Ok(places)
    }

    /// Stores those of the missing chunks that are wanted now.
    fn fill(
        &self,
        places: &[LoadPlace<'_>],
        missing: &[Vec<Missing>],
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> Result<(), LoadError> {
        let set_up = async |_: &mut AdminSession<'_>| Ok(());
        let pieces: Vec<Vec<_>> = places
            .iter()
            .zip(missing)
            .map(|(place, missing)| {
                let chunks = missing.iter().filter(|missing| is_wanted(&missing.chunk));
                chunks.map(|missing| (place, missing)).collect()
            })
            .collect();
        let drivers = places.iter().map(|place| &place.driver);
        let at: Vec<_> =
            drivers.zip(&pieces).map(|(driver, pieces)| (driver, &pieces[..])).collect();
        self.loader.each_at(
            &at,
            set_up,
            async |session: &mut AdminSession<'_>, (), (place, missing)| {
                self.store(session, place, missing).await
            },
        )
    }

    /// Refuses a rule that is not the endpoint's while a few rows of each warehouse are there, and not after the others.
    fn prove_rule(&self) -> Result<(), LoadError> {
        match self.survey(&HEADS)?.proof() {
            Some(proof) if !proof.problems.is_empty() => Err(LoadError::data(
                proof.message().to_string(),
                "give the target the `shard_rule` of its endpoint, or none: rows go through the endpoint then; \
                 destroy what this load has made, and build again",
            )),
            _ => Ok(()),
        }
    }

    /// Stores a chunk, instead of what is there of it.
    async fn store(
        &self,
        session: &mut AdminSession<'_>,
        place: &LoadPlace<'_>,
        missing: &Missing,
    ) -> Result<(), LoadError> {
        let Missing { chunk, rows, stored } = missing;
        let doing = place.describe(format!("loading the rows {}", chunk.name()));
        if *stored > 0 {
            execute(session, &*doing, &chunk.delete()).await?;
        }
        let table = chunk.table.name();
        let mut source = ChunkRows::new(self.parameters, *chunk);
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
        self.stored.add(report);
        Ok(())
    }

    /// What follows the rows: keys and indexes, several at once, then the rest.
    fn finish(&self, places: &[LoadPlace<'_>]) -> Result<(), LoadError> {
        let existing =
            self.loader.one(async |session: &mut AdminSession<'_>| config::keys(session).await)?;
        let mut missing = self.schema.late_keys();
        missing.retain(|key| !existing.contains(&key.name));
        self.loader.each(
            &missing,
            async |_: &mut AdminSession<'_>| Ok(()),
            async |session: &mut AdminSession<'_>, (), key| {
                make_key(session, key, self.observer).await
            },
        )?;
        self.loader
            .one(async |session: &mut AdminSession<'_>| self.complete_tables(session).await)?;
        self.verify(places)?;
        self.loader.one(async |session: &mut AdminSession<'_>| {
            let (warehouses, constants) = (self.options.warehouses, &self.parameters.constants);
            let noting = while_doing("noting the end of the load");
            config::complete(session, warehouses, constants).await.map_err(noting)
        })
    }

    /// Foreign keys, the numbers of the history, statistics.
    async fn complete_tables(&self, session: &mut AdminSession<'_>) -> Result<(), LoadError> {
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

    /// Counts the rows, and proves on shards that they lie where they should.
    fn verify(&self, places: &[LoadPlace<'_>]) -> Result<(), LoadError> {
        let survey = self.survey(&TpccTable::ALL)?;
        let proof = survey.proof();
        let missing =
            places.iter().flat_map(|place| place.missing(self.options.seed, Some(&survey)).0);
        let problem = match &proof {
            Some(proof) if !proof.problems.is_empty() => Some(proof.message().to_string()),
            _ => describe_missing(&missing.collect::<Vec<_>>()),
        };
        if let Some(problem) = problem {
            return Err(LoadError::data(problem, "destroy the database and build it again"));
        }
        if let Some(proof) = proof {
            self.observer.note(&proof.message().to_string());
        }
        Ok(())
    }
}

/// True if the items belong on this shard, too.
///
/// # Errors
/// The endpoint has made the tables elsewhere.
async fn has_items_on_shard(
    session: &mut AdminSession<'_>,
    shard: &str,
) -> Result<bool, LoadError> {
    let tables = config::tables(session).await?;
    let by_warehouse = |table: &&TpccTable| table.warehouse_column().is_some();
    let missing = TpccTable::ALL.iter().filter(by_warehouse).find(|it| !tables.contains(it.name()));
    if let Some(table) = missing {
        let problem = format!(
            "The shard {shard} has no table {}: the endpoint has created it under another name or elsewhere.",
            table.name()
        );
        let hint = "leave the shards or their `shard_rule` out of the target: the endpoint spreads the rows then";
        return Err(LoadError::data(problem, hint));
    }
    Ok(tables.contains(TpccTable::Item.name()))
}
