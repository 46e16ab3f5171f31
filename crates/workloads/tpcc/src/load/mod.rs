//! Creates and fills the tables, in parallel, and continues where an interrupted load ended.
//!
//! Rows are stored in chunks of about 30,000, each wholly or not at all, and what a chunk holds
//! depends only on the seed. A chunk whose rows are not there, or not all of them, is missing: it is removed and loaded
//! again. One count of all rows says what an interrupted load lacks, and in the end that nothing lacks.
//!
//! Direct loads of shards: if the shards behind an endpoint are known, and the rule by which rows lie on them, the
//! tables are created through the endpoint and each shard is filled directly. The end of the load proves that the
//! endpoint finds every row on its shard.
//!
//! - `rows`: chunks and their rows.
//! - `survey`: what is stored, and whether it lies on its shards.

mod rows;
mod survey;

pub use dyno_load::{LoadError, LoadReport};
pub(crate) use rows::LOAD_NEEDS;
pub use survey::{ShardProof, prove};

use crate::schema::{
    self, CONFIG, CREATE_CONFIG, KeyTime, LateKey, Schema, Shard, TpccTable, primary_key_name,
    table_names,
};
use crate::values::{Constants, Timestamp};
use dyno_core::{
    AdminDriver, AdminSession, DbError, Dialect, Discard, ShardMap, ShardNode, Shards, counted,
};
use dyno_load::catalog;
use dyno_load::query::{answer, column, drop_tables, execute, pairs};
use dyno_load::settings::wants_keys_first;
use dyno_load::{LoadObserver, LoadSessions, StoredRows, doing, store, while_doing};
use rows::{Chunk, ChunkRows, HEADS, RowParameters, item_chunks, warehouse_chunks};
use std::collections::{HashMap, HashSet};
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
    /// Seed of the rows: the same seed and the same point in time give the same database.
    pub seed: u64,
    /// The point in time that all rows of the load have.
    pub loaded_at: Timestamp,
    /// When keys are made; `None` is what suits the dialect.
    pub keys: Option<KeyTime>,
    pub foreign_keys: bool,
    /// Placement of rows in a distributed database.
    pub shard: Option<Shard>,
}

impl TpccLoadOptions {
    /// A load of `warehouses` by four sessions, as BenchmarkSQL has them; no foreign keys.
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
    let schema = effective_schema(&loader, options, dialect, observer)?;
    let shards = mapped_shards(driver).map_or(0, |(map, _)| map.shards());
    let copies = configs_on_shards(driver, observer)?;
    let outcome = loader.one(async |session: &mut AdminSession<'_>| {
        begin(session, options, &schema, (shards, copies), observer).await
    });
    let Some((loaded_at, is_resumed)) = outcome? else {
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

fn effective_schema(
    loader: &LoadSessions<'_>,
    options: &TpccLoadOptions,
    dialect: Dialect,
    observer: &dyn LoadObserver,
) -> Result<Schema, LoadError> {
    let TpccLoadOptions { foreign_keys, shard, .. } = options.clone();
    let keys = options.keys.unwrap_or(KeyTime::usual(dialect));
    let mut schema = Schema { dialect, keys, foreign_keys, shard };
    let (keys_first, is_coordinator) = loader.one(async |session| {
        let keys_first = wants_keys_first(session).await.map_err(while_doing("setting up"))?;
        Ok((keys_first, is_coordinator(session).await?))
    })?;
    if keys_first && schema.keys == KeyTime::AfterLoad {
        schema.keys = KeyTime::PrimaryBeforeLoad;
    }
    if is_coordinator && schema.shard.is_none() {
        schema.shard = Some(schema::coordinator_clauses());
        if std::mem::take(&mut schema.foreign_keys) {
            observer.note("Foreign keys are left out: there are none between tables on shards");
        }
    }
    Ok(schema)
}

/// Says if rows go directly into the shards, and by which rule, or through the endpoint; `None` without known shards.
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
    LoadSessions::new(driver, observer, 1).one(async |session| {
        let existing = existing_tables(session).await?;
        drop_tables(session, &existing, observer).await?;
        Ok(existing)
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
    let tables = tables(session).await?;
    // Where a copy of the configuration is unfinished, all are.
    let mut config = copies;
    config.extend(read_config(session, &tables).await?);
    let begun_at = begun_at(&config, options, shards)?;
    if begun_at.is_some() {
        observer.note("Continuing an unfinished load");
    } else if is_complete(session, &config, options, &tables).await? {
        return Ok(None);
    }
    let (has_tables, loaded_at) =
        (config.contains_key(TABLES_MADE), begun_at.unwrap_or(options.loaded_at));
    if !tables.contains(CONFIG) {
        let created = catalog::create_table(session, CONFIG, CREATE_CONFIG, observer).await;
        created.map_err(while_doing(format!("creating table {CONFIG}")))?;
    }
    // Again also when they were there: a shard that died may have missed it, and has no copy of it then.
    let TpccLoadOptions { warehouses, seed, .. } = options;
    let building = format!("{warehouses} {seed} {} {shards}", loaded_at.0);
    let noting = "noting the begin of the load";
    put(session, &[(BUILDING, building)]).await.map_err(while_doing(noting))?;
    // Left by an end that was interrupted.
    remove_facts(session, &FACTS).await.map_err(while_doing(noting))?;
    if !has_tables {
        for table in TpccTable::ALL {
            if begun_at.is_some() {
                // It may be there without what follows CREATE TABLE.
                let sql = format!("DROP TABLE IF EXISTS {}", table.name());
                execute(session, format!("executing {sql}"), &sql).await?;
            }
            create_table(session, schema, table, observer).await?;
        }
    }
    put(session, &[(TABLES_MADE, "made".to_owned())]).await.map_err(while_doing(noting))?;
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
        let created = if sql.starts_with(&format!("CREATE TABLE {name} ")) {
            catalog::create_table(session, name, &sql, observer).await
        } else {
            session.query(&sql, &mut Discard).await.map(drop)
        };
        created.map_err(|mut error| {
            // A server that isn't distributed understands no shard clause.
            if schema.shard.is_some() && !error.is_fatal() && error.hint().is_none() {
                error = error.with_hint(SHARD_HINT);
            }
            while_doing(&*doing)(error)
        })?;
    }
    Ok(())
}

const SHARD_HINT: &str = "The shard clauses are part of this statement: give those of this database, or none (in a \
                          bundled suite, name the database as the target that has none).";

async fn make_keys(
    session: &mut AdminSession<'_>,
    keys: Vec<LateKey>,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let existing = existing_keys(session).await?;
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
    observer.creating_index(key.table);
    let doing = format!("creating key {} of table {}", key.name, key.table);
    execute(session, doing, &key.sql).await
}

/// A server that takes a part of the rows.
struct LoadPlace<'d> {
    driver: AdminDriver<'d>,
    /// Number and name of the shard; `None` for the address of the target.
    shard: Option<(usize, String)>,
    chunks: Vec<Chunk>,
}

impl LoadPlace<'_> {
    /// Its chunks that lack rows, and the number of rows that are there; all chunks without a survey.
    fn missing(&self, seed: u64, survey: Option<&Survey>) -> (Vec<Missing<'_>>, u64) {
        let (number, shard) = self.shard.as_ref().map(|(number, name)| (*number, &**name)).unzip();
        let chunks = self.chunks.iter().map(|&chunk| {
            let stored = survey.map_or(0, |survey| survey.stored(&chunk, number));
            Missing { chunk, shard, rows: chunk.rows(seed), stored }
        });
        let (complete, missing): (Vec<Missing<'_>>, Vec<Missing<'_>>) =
            chunks.partition(|chunk| chunk.stored == chunk.rows);
        (missing, complete.iter().map(|chunk| chunk.rows).sum())
    }
}

/// A chunk that has other rows than it should.
#[derive(Clone, Copy, Debug)]
struct Missing<'a> {
    chunk: Chunk,
    /// The name of its shard; `None` at the address of the target.
    shard: Option<&'a str>,
    rows: u64,
    stored: u64,
}

/// Says which rows lack or are too many; `None` if none.
fn describe_missing(missing: &[Missing<'_>]) -> Option<String> {
    let Missing { chunk, rows, stored, .. } = missing.first()?;
    let suffix = match missing.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more chunks differ"),
    };
    let (table, name) = (chunk.table.name(), chunk.name());
    Some(format!("{table} has {stored} rows of the chunk {name} instead of {rows}{suffix}."))
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
        let survey = is_resumed.then(|| self.survey_tables(&TpccTable::ALL)).transpose()?;
        let (missing, stored_rows): (Vec<Vec<Missing<'_>>>, Vec<u64>) =
            places.iter().map(|place| place.missing(self.options.seed, survey.as_ref())).unzip();
        self.observer.rows_planned(missing.iter().flatten().map(|missing| missing.rows).sum());
        self.fill_tables(&places, &missing, |chunk| HEADS.contains(&chunk.table))?;
        if mapped_shards(self.driver).is_some() {
            self.prove_rule()?;
        }
        self.fill_tables(&places, &missing, |chunk| !HEADS.contains(&chunk.table))?;
        self.finish(&places)?;
        Ok(stored_rows.into_iter().sum())
    }

    fn survey_tables(&self, tables: &[TpccTable]) -> Result<Survey, LoadError> {
        let TpccLoadOptions { warehouses, sessions, .. } = *self.options;
        Survey::read(self.driver, tables, (warehouses, sessions), self.observer)
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
            let has_items = loader.one(async |session| has_items_on_shard(session, &name).await)?;
            have_items |= has_items;
            let shard_warehouses =
                warehouses.clone().filter(|&warehouse| map.shard_of(warehouse) == number);
            let mut chunks = warehouse_chunks(shard_warehouses);
            if has_items {
                chunks.splice(..0, item_chunks());
            }
            places.push(LoadPlace { driver, shard: Some((number, name)), chunks });
        }
        // A catalog that no shard has is the endpoint's own.
        let chunks = if have_items { Vec::new() } else { item_chunks() };
        places.insert(0, LoadPlace { driver: *self.driver, shard: None, chunks });
        Ok(places)
    }

    fn fill_tables(
        &self,
        places: &[LoadPlace<'_>],
        missing: &[Vec<Missing<'_>>],
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> Result<(), LoadError> {
        let pieces = missing.iter().map(|missing| {
            missing.iter().copied().filter(|missing| is_wanted(&missing.chunk)).collect()
        });
        let pieces: Vec<Vec<Missing<'_>>> = pieces.collect();
        let at = places.iter().zip(&pieces).map(|(place, pieces)| (&place.driver, &pieces[..]));
        self.loader.each_at(
            &at.collect::<Vec<_>>(),
            async |_| Ok(()),
            async |session, (), missing| self.store(session, missing).await,
        )
    }

    /// Refuses a rule that is not the endpoint's while a few rows of each warehouse are there, and not after the
    /// others.
    fn prove_rule(&self) -> Result<(), LoadError> {
        match self.survey_tables(&HEADS)?.proof() {
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
        missing: &Missing<'_>,
    ) -> Result<(), LoadError> {
        let Missing { chunk, shard, rows, stored } = missing;
        let shard = shard.map(|shard| format!(" on shard {shard}"));
        let doing = format!("loading the rows {}{}", chunk.name(), shard.unwrap_or_default());
        if *stored > 0 {
            execute(session, &*doing, &chunk.delete()).await?;
        }
        let table = (chunk.table.name(), &chunk.table.columns()[..]);
        let mut source = ChunkRows::new(self.parameters, *chunk);
        self.stored.add(store(session, &doing, table, &mut source, *rows).await?);
        Ok(())
    }

    /// Finishes the tables: keys and indexes, several at once, then the rest.
    fn finish(&self, places: &[LoadPlace<'_>]) -> Result<(), LoadError> {
        let existing = self.loader.one(async |session| existing_keys(session).await)?;
        let mut missing = self.schema.late_keys();
        missing.retain(|key| !existing.contains(&key.name));
        self.loader
            .each(&missing, async |session, key| make_key(session, key, self.observer).await)?;
        self.loader.one(async |session| self.complete_tables(session).await)?;
        self.verify(places)?;
        self.loader.one(async |session| {
            let (warehouses, constants) = (self.options.warehouses, &self.parameters.constants);
            let noting = while_doing("noting the end of the load");
            note_end(session, warehouses, constants).await.map_err(noting)
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
            let result = answer(session, &sql).await;
            result.map_err(while_doing(format!("executing {sql}")))?;
        }
        Ok(())
    }

    /// Counts the rows, and proves that they lie on the right shards.
    fn verify(&self, places: &[LoadPlace<'_>]) -> Result<(), LoadError> {
        let survey = self.survey_tables(&TpccTable::ALL)?;
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
    let tables = tables(session).await?;
    let mut by_warehouse = TpccTable::ALL.iter().filter(|t| t.warehouse_column().is_some());
    let missing = by_warehouse.find(|table| !tables.contains(table.name()));
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

/// Key of the configuration while a load is under way: warehouses, seed, the point in time of the rows, and the number
/// of shards that they go to directly.
const BUILDING: &str = "dyno.load";
/// Set once all tables exist: what follows CREATE TABLE on a distributed database may be missing before. No row is
/// stored earlier.
const TABLES_MADE: &str = "dyno.tables";

/// Facts that a complete database has about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccDatabase {
    pub warehouses: u32,
    /// NURand's constant of C_LAST that the load used; a run has to keep a distance from it
    /// (clause 2.1.6.1).
    pub c_last: u64,
}

/// The tables that statements without a schema name can reach.
pub(super) async fn tables(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    catalog::tables(session).await.map_err(while_doing("listing the tables"))
}

/// Checks that all tables of the workload exist. What is not listed is requested: a proxy may list the shards of a
/// table under other names.
async fn check_tables(
    session: &mut AdminSession<'_>,
    listed: &HashSet<String>,
) -> Result<(), LoadError> {
    let names = TpccTable::ALL.map(TpccTable::name);
    for name in names.into_iter().filter(|name| !listed.contains(*name)) {
        let sql = format!("SELECT 1 FROM {name} WHERE 1 = 0");
        match session.query(&sql, &mut Discard).await {
            Ok(_) => {}
            Err(error) if error.is_fatal() => return Err(while_doing("listing the tables")(error)),
            Err(_) => {
                return Err(LoadError::data(
                    format!("Table {name} doesn't exist: not all that was loaded is there."),
                    "destroy what is left, and build the database again",
                ));
            }
        }
    }
    Ok(())
}

/// The tables of [`crate::schema::table_names`] that exist.
pub async fn existing_tables(session: &mut AdminSession<'_>) -> Result<Vec<String>, LoadError> {
    let existing = tables(session).await?;
    Ok(table_names().map(str::to_owned).filter(|name| existing.contains(name)).collect())
}

/// The keys and indexes that exist, by the names that [`crate::schema`] gives them.
async fn existing_keys(session: &mut AdminSession<'_>) -> Result<HashSet<String>, LoadError> {
    let keys = match session.dialect() {
        Dialect::Mysql => mysql_keys(session).await,
        Dialect::Postgres => column(session, POSTGRES_KEYS).await,
        Dialect::Sqlite => {
            column(session, "SELECT name FROM sqlite_master WHERE type = 'index'").await
        }
    };
    keys.map_err(while_doing("listing the keys"))
}

const POSTGRES_KEYS: &str = "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE relkind IN ('i', 'I') AND nspname = ANY (current_schemas(false)) UNION SELECT conname FROM \
    pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE nspname = ANY \
    (current_schemas(false))";

async fn mysql_keys(session: &mut AdminSession<'_>) -> Result<HashSet<String>, DbError> {
    let mut names = HashSet::new();
    for table in TpccTable::ALL {
        let name = table.name();
        for index in catalog::mysql_indexes(session, name).await? {
            names.insert(if index == "PRIMARY" { primary_key_name(table) } else { index });
        }
        names.extend(catalog::mysql_foreign_keys(session, name).await?);
    }
    Ok(names)
}

/// Number of the foreign keys of [`crate::schema`] that exist.
pub async fn foreign_keys(session: &mut AdminSession<'_>) -> Result<usize, LoadError> {
    let keys = existing_keys(session).await?;
    Ok(schema::foreign_keys().filter(|[name, ..]| keys.contains(*name)).count())
}

/// Returns true if the server is a coordinator of `dyno cluster`, which spreads tables by its own functions.
async fn is_coordinator(session: &mut AdminSession<'_>) -> Result<bool, LoadError> {
    if session.dialect() != Dialect::Postgres {
        return Ok(false);
    }
    let sql = "SELECT 1 WHERE to_regprocedure('dyno_shards.distribute(text,text)') IS NOT NULL";
    let answer = answer(session, sql).await.map_err(while_doing("looking for shards"))?;
    Ok(!answer.rows.is_empty())
}

fn other_data(problem: String) -> LoadError {
    let hint = "destroy the database first, or use another one; to use it as it is, run with the \
                warehouses it has";
    LoadError::data(problem, hint)
}

/// The configuration; empty if there is none.
async fn read_config(
    session: &mut AdminSession<'_>,
    tables: &HashSet<String>,
) -> Result<HashMap<String, String>, LoadError> {
    if !tables.contains(CONFIG) {
        return Ok(HashMap::new());
    }
    let config = pairs(session, &format!("SELECT cfg_name, cfg_value FROM {CONFIG}")).await;
    config.map_err(while_doing(format!("reading {CONFIG}")))
}

/// The copies of the configuration on shards, merged: the endpoint reads any one of them, and a shard that
/// died has perhaps missed what the others were given.
fn configs_on_shards(
    driver: &AdminDriver<'_>,
    observer: &dyn LoadObserver,
) -> Result<HashMap<String, String>, LoadError> {
    let mut together = HashMap::new();
    for node in mapped_shards(driver).map_or(Vec::new(), |(_, nodes)| nodes) {
        together.extend(LoadSessions::new(&node.driver, observer, 1).one(async |session| {
            let tables = tables(session).await?;
            read_config(session, &tables).await
        })?);
    }
    Ok(together)
}

/// The point in time of an unfinished load; `None` if there is none.
///
/// # Errors
/// The load was begun with other options.
fn begun_at(
    config: &HashMap<String, String>,
    options: &TpccLoadOptions,
    shards: usize,
) -> Result<Option<Timestamp>, LoadError> {
    let Some(begun) = config.get(BUILDING) else { return Ok(None) };
    let mut numbers = begun.split(' ').map(|word| word.parse().unwrap_or(0));
    let [warehouses, seed, at_ms, begun] = [(); 4].map(|()| numbers.next().unwrap_or(0_u64));
    let (requested, requested_seed) = (options.warehouses, options.seed);
    if (warehouses, seed) != (u64::from(requested), requested_seed) {
        return Err(other_data(format!(
            "An unfinished load of {} with seed {seed} is there, and {requested} with seed {requested_seed} was asked for.",
            counted(warehouses, "warehouse")
        )));
    }
    if begun != shards as u64 {
        let [begun, requested] = [begun, shards as u64].map(|shards| match shards {
            0 => "through the address of the target".to_owned(),
            shards => format!("directly into {}", counted(shards, "shard")),
        });
        return Err(LoadError::data(
            format!("An unfinished load went {begun}, and this one would go {requested}."),
            "give the target the same nodes and the same `shard_rule` as before, or destroy the database first",
        ));
    }
    Ok(Some(Timestamp(at_ms as i64)))
}

/// Returns true if everything is loaded as it was requested, false if nothing is there.
///
/// # Errors
/// Something else is there.
async fn is_complete(
    session: &mut AdminSession<'_>,
    config: &HashMap<String, String>,
    options: &TpccLoadOptions,
    tables: &HashSet<String>,
) -> Result<bool, LoadError> {
    let Some(warehouses) = config.get("warehouses") else {
        let mut names = TpccTable::ALL.map(TpccTable::name).into_iter();
        return match names.find(|name| tables.contains(*name)) {
            None => Ok(false),
            Some(table) => Err(other_data(format!(
                "Table {table} exists, but {CONFIG} does not say who loaded it and how."
            ))),
        };
    };
    // Tables are dropped one by one, the configuration last.
    check_tables(session, tables).await?;
    let asked_number = options.warehouses;
    if *warehouses == asked_number.to_string() {
        return Ok(true);
    }
    let has = counted(warehouses.parse::<u32>().unwrap_or(0), "warehouse");
    Err(other_data(format!("The tables hold {has}, and {asked_number} were asked for.")))
}

/// Inserts or replaces rows of the configuration.
async fn put(session: &mut AdminSession<'_>, rows: &[(&str, String)]) -> Result<(), DbError> {
    let replacing = match session.dialect() {
        Dialect::Mysql => "ON DUPLICATE KEY UPDATE cfg_value = VALUES(cfg_value)",
        _ => "ON CONFLICT (cfg_name) DO UPDATE SET cfg_value = excluded.cfg_value",
    };
    let rows: Vec<_> = rows.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    let rows = rows.join(", ");
    let sql = format!("INSERT INTO {CONFIG} (cfg_name, cfg_value) VALUES {rows} {replacing}");
    session.query(&sql, &mut Discard).await.map(drop)
}

async fn remove_facts(session: &mut AdminSession<'_>, names: &[&str]) -> Result<(), DbError> {
    let names = names.join("', '");
    let sql = format!("DELETE FROM {CONFIG} WHERE cfg_name IN ('{names}')");
    session.query(&sql, &mut Discard).await.map(drop)
}

/// Facts that BenchmarkSQL's runs read.
const FACTS: [&str; 4] = ["warehouses", "nURandCLast", "nURandCC_ID", "nURandCI_ID"];

/// Notes that the load is complete: what BenchmarkSQL's runs read is there, what the loader needed
/// is gone.
async fn note_end(
    session: &mut AdminSession<'_>,
    warehouses: u32,
    constants: &Constants,
) -> Result<(), DbError> {
    let Constants { c_last, c_id, i_id } = *constants;
    let values = [u64::from(warehouses), c_last, c_id, i_id].map(|value| value.to_string());
    let facts: Vec<(&str, String)> = FACTS.into_iter().zip(values).collect();
    put(session, &facts).await?;
    // Until then another build resumes here.
    remove_facts(session, &[TABLES_MADE, BUILDING]).await
}

/// The database's facts about its load.
///
/// # Errors
/// The database isn't completely loaded: no tables, an unfinished load, another program's tables.
pub async fn loaded(session: &mut AdminSession<'_>) -> Result<TpccDatabase, LoadError> {
    let tables = tables(session).await?;
    let config = read_config(session, &tables).await?;
    if config.is_empty() {
        let problem = format!("Table {CONFIG} is not there or empty: nothing is loaded here.");
        return Err(LoadError::data(problem, BUILD_FIRST));
    }
    if config.contains_key(BUILDING) {
        let problem = "The load of this database has not been completed.";
        let hint = "build it again with the same options: what is stored is kept";
        return Err(LoadError::data(problem, hint));
    }
    check_tables(session, &tables).await?;
    let warehouses = config_number(&config, "warehouses")? as u32;
    Ok(TpccDatabase { warehouses, c_last: config_number(&config, "nURandCLast")? })
}

const BUILD_FIRST: &str = "build the database first";

fn config_number(config: &HashMap<String, String>, name: &str) -> Result<u64, LoadError> {
    config.get(name).and_then(|value| value.parse().ok()).ok_or_else(|| {
        LoadError::data(format!("{CONFIG} has no row {name} with a number."), BUILD_FIRST)
    })
}
