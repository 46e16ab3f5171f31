//! A database in memory for tests: records every statement, stores what is loaded, answers the few
//! catalog questions that the loader asks, and fails when told to.

use dyno_core::{
    AnswerRow, BulkMethod, BulkReport, Capabilities, DbError, Dialect, Driver, ErrorClass,
    Executed, Param, ParamType, Product, RowSource, Rows, Session, Statement,
};
use dyno_load::LoadObserver;
use dyno_testkit::RecordedRow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// Arrival of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Prepare,
    Execute,
    Query,
}

/// One recorded command; executions carry their parameters in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) command: Command,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct FakeTable {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: BTreeMap<i64, Vec<String>>,
    pub(crate) indexes: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) log: Vec<Recorded>,
    pub(crate) tables: BTreeMap<String, FakeTable>,
    /// Bulk loads that still succeed; `None` is all.
    pub(crate) bulk_loads_left: Option<u32>,
    /// The next bulk loads that end in a deadlock.
    pub(crate) deadlocks: u32,
    pub(crate) bulk_loads: u32,
    /// Changes report no changed row.
    pub(crate) misses: bool,
    pub(crate) prepared_limit: u64,
}

/// Opens sessions to one shared database.
#[derive(Clone)]
pub(crate) struct FakeDriver {
    dialect: Dialect,
    blocks: bool,
    database: Arc<Mutex<Database>>,
}

impl FakeDriver {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let database = Database { prepared_limit: 16_382, ..Database::default() };
        let database = Arc::new(Mutex::new(database));
        FakeDriver { dialect, blocks: dialect == Dialect::Sqlite, database }
    }

    /// A driver whose sessions block.
    pub(crate) fn blocking(self) -> Self {
        FakeDriver { blocks: true, ..self }
    }

    pub(crate) fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap()
    }

    pub(crate) fn session(&self) -> FakeSession {
        FakeSession {
            driver: self.clone(),
            product: Product { name: "Fake".into(), version: "1".into() },
            prepared: Vec::new(),
        }
    }
}

impl Driver for FakeDriver {
    type Session = FakeSession;

    async fn connect(&self, _number: u32) -> Result<FakeSession, DbError> {
        Ok(self.session())
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn blocks(&self) -> bool {
        self.blocks
    }
}

pub(crate) struct FakeSession {
    driver: FakeDriver,
    product: Product,
    prepared: Vec<(String, Vec<ParamType>)>,
}

struct TextRow(Vec<Option<String>>);

impl AnswerRow for TextRow {
    fn columns(&self) -> usize {
        self.0.len()
    }
    fn is_null(&self, column: usize) -> bool {
        self.0[column].is_none()
    }
    fn int(&self, column: usize) -> Option<i64> {
        self.0[column].as_ref()?.parse().ok()
    }
    fn double(&self, column: usize) -> Option<f64> {
        self.0[column].as_ref()?.parse().ok()
    }
    fn bytes(&self, column: usize) -> Option<&[u8]> {
        self.0[column].as_ref().map(String::as_bytes)
    }
    fn string(&self, column: usize) -> Option<String> {
        self.0[column].clone()
    }
}

/// A statement with its parameters put in, as a server's log shows it.
fn with_params(sql: &str, params: &[Param<'_>]) -> String {
    let mut text = String::new();
    let mut params = params.iter();
    let mut letters = sql.chars().peekable();
    while let Some(letter) = letters.next() {
        let numbered = letter == '$' && letters.peek().is_some_and(char::is_ascii_digit);
        if letter != '?' && !numbered {
            text.push(letter);
            continue;
        }
        while numbered && letters.next_if(char::is_ascii_digit).is_some() {}
        match params.next().expect("a parameter for every placeholder") {
            Param::Int(value) => text.push_str(&value.to_string()),
            Param::Text(value) => text.push_str(&format!("'{}'", str::from_utf8(value).unwrap())),
            other => panic!("unexpected parameter {other:?}"),
        }
    }
    assert!(params.next().is_none(), "more parameters than placeholders in {sql}");
    text
}

impl FakeSession {
    /// Executes a text and hands on its rows.
    fn answer<R: Rows>(&mut self, text: &str, rows: &mut R) -> Result<Executed, DbError> {
        let answer = self.driver.database().execute(text)?;
        if let Some(found) = answer {
            let count = found.len() as u64;
            for row in found {
                rows.row(&TextRow(row));
            }
            return Ok(Executed { has_rows: true, rows: count, affected: 0 });
        }
        let change = ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| text.starts_with(verb));
        let hit = change && (!self.driver.database().misses || text.starts_with("INSERT"));
        Ok(Executed { has_rows: false, rows: 0, affected: u64::from(hit) })
    }

    fn record(&self, command: Command, text: String) {
        self.driver.database().log.push(Recorded { command, text });
    }
}

impl Session for FakeSession {
    fn dialect(&self) -> Dialect {
        self.driver.dialect
    }

    fn product(&self) -> &Product {
        &self.product
    }

    /// Has no settings that a load could ask for.
    fn capabilities(&self) -> &'static Capabilities {
        const BARE: Capabilities = Capabilities { server_views: false, ..Capabilities::MYSQL };
        &BARE
    }

    async fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, DbError> {
        self.record(Command::Prepare, sql.to_owned());
        self.prepared.push((sql.to_owned(), params.to_vec()));
        Ok(Statement(self.prepared.len() as u32 - 1))
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        let (sql, types) = self.prepared[statement.0 as usize].clone();
        let given_types: Vec<ParamType> = params
            .iter()
            .map(|param| match param {
                Param::Text(_) => ParamType::Text,
                _ => ParamType::Int,
            })
            .collect();
        assert_eq!(given_types, types, "parameters as declared for {sql}");
        let text = with_params(&sql, params);
        self.record(Command::Execute, text.clone());
        self.answer(&text, rows)
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Executed, DbError> {
        self.record(Command::Query, sql.to_owned());
        self.answer(sql, rows)
    }

    fn queue(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), DbError> {
        panic!("this workload sends one statement at a time")
    }

    async fn flush<R: Rows>(
        &mut self,
        _rows: &mut R,
        _results: &mut Vec<Result<Executed, DbError>>,
    ) -> Result<(), DbError> {
        panic!("this workload sends one statement at a time")
    }

    async fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &mut dyn RowSource,
    ) -> Result<BulkReport, DbError> {
        assert_eq!(columns, ["id", "k", "c", "pad"]);
        let mut recorded = RecordedRow::default();
        while rows.next_row(&mut recorded) {}
        dyno_reactor::yield_now().await;
        let mut database = self.driver.database();
        database.bulk_loads += 1;
        if database.deadlocks > 0 {
            database.deadlocks -= 1;
            return Err(DbError::server(ErrorClass::Deadlock, 1213, *b"40001", "Deadlock found"));
        }
        if database.bulk_loads_left == Some(0) {
            return Err(DbError::lost("the server went away"));
        }
        database.bulk_loads_left = database.bulk_loads_left.map(|left| left - 1);
        let stored = database.tables.get_mut(table).expect("the table exists");
        let count = recorded.0.len() / columns.len();
        for row in recorded.0.chunks(columns.len()) {
            let id = row[0].parse().unwrap();
            let replaced = stored.rows.insert(id, row.to_vec());
            assert!(replaced.is_none(), "row {id} of {table} was loaded twice");
        }
        Ok(BulkReport { rows: count as u64, method: BulkMethod::LoadData, fallback: None })
    }

    async fn close(self) {}
}

type Answer = Vec<Vec<Option<String>>>;

fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> Answer {
    names.into_iter().map(|name| vec![Some(name.clone())]).collect()
}

fn word_after<'a>(sql: &'a str, word: &str) -> &'a str {
    let after = sql.split_once(word).expect("the word").1;
    after.split([' ', '(', ';']).next().unwrap_or_default()
}

impl Database {
    /// Rows for questions, `None` for commands.
    fn execute(&mut self, sql: &str) -> Result<Option<Answer>, DbError> {
        if sql == "SHOW TABLES" {
            return Ok(Some(names(self.tables.keys())));
        }
        if let Some(table) = sql.strip_prefix("SHOW COLUMNS FROM ") {
            return Ok(Some(names(&self.tables[table].columns)));
        }
        if let Some(table) = sql.strip_prefix("SHOW INDEX FROM ") {
            let indexes = self.tables[table].indexes.iter();
            return Ok(Some(indexes.map(|name| vec![None, None, Some(name.clone())]).collect()));
        }
        if sql.starts_with("SHOW") {
            let limit = sql.contains("VARIABLES").then(|| self.prepared_limit.to_string());
            let cells = vec![Some("name".to_owned()), Some(limit.unwrap_or("0".to_owned()))];
            return Ok(Some(vec![cells]));
        }
        if sql.starts_with("CREATE TABLE") {
            let name = word_after(&sql.replace("IF NOT EXISTS ", ""), "TABLE ").to_owned();
            let columns = ["id", "k", "c", "pad"].into_iter();
            let columns = columns.filter(|column| sql.contains(&format!("  {column} ")));
            let columns = columns.map(str::to_owned).collect();
            self.tables.entry(name).or_insert(FakeTable { columns, ..FakeTable::default() });
        } else if sql.starts_with("DROP TABLE") {
            self.tables.remove(word_after(sql, "EXISTS "));
        } else if sql.starts_with("CREATE INDEX") {
            let table = self.tables.get_mut(word_after(sql, "ON ")).expect("the table exists");
            table.indexes.insert(word_after(sql, "INDEX ").to_owned());
        } else if let Some((_, values)) = sql.split_once(" (id, k, c, pad) VALUES (") {
            let id = values.split(',').next().unwrap_or_default().parse().expect("an id");
            return self.insert(word_after(sql, "INTO "), id).map(|()| None);
        } else if sql.starts_with("DELETE") {
            let id = word_after(sql, "id=").parse().expect("an id");
            if let Some(table) = self.tables.get_mut(word_after(sql, "FROM ")) {
                table.rows.remove(&id);
            }
        } else if sql.starts_with("SELECT") {
            return Ok(Some(self.select(sql)));
        }
        Ok(None)
    }

    /// Adds a row; fails if there is one with this id.
    fn insert(&mut self, table: &str, id: i64) -> Result<(), DbError> {
        let Some(table) = self.tables.get_mut(table).filter(|_| id != 0) else { return Ok(()) };
        match table.rows.insert(id, vec![id.to_string()]) {
            None => Ok(()),
            Some(_) => {
                let text = format!("Duplicate entry '{id}' for key 'PRIMARY'");
                Err(DbError::server(ErrorClass::Constraint, 1062, *b"23000", text))
            }
        }
    }

    fn select(&self, sql: &str) -> Answer {
        let from = sql.contains("FROM ").then(|| self.tables.get(word_after(sql, "FROM ")));
        let Some(table) = from.flatten() else {
            return vec![vec![Some("0".to_owned())]];
        };
        if sql.contains("GROUP BY") {
            let divide = if sql.contains("DIV ") { "DIV " } else { "/ " };
            let size: i64 = word_after(sql, divide).trim_end_matches(',').parse().unwrap();
            let mut chunks: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
            for &id in table.rows.keys() {
                chunks.entry((id + size - 1) / size).or_default().push(id);
            }
            let rows = chunks.into_iter().map(|(number, ids)| {
                vec![
                    some_text(number),
                    some_text(ids.len() as i64),
                    some_text(ids[0]),
                    ids.last().and_then(|&id| some_text(id)),
                ]
            });
            return rows.collect();
        }
        let lowest = table.rows.keys().next().and_then(|&id| some_text(id));
        let highest = table.rows.keys().last().and_then(|&id| some_text(id));
        if sql.starts_with("SELECT MAX(id)") {
            return vec![vec![highest]];
        }
        if sql.starts_with("SELECT COUNT(*), MIN(id), MAX(id)") {
            return vec![vec![some_text(table.rows.len() as i64), lowest, highest]];
        }
        if sql.starts_with("SELECT COUNT(*)") {
            return vec![vec![some_text(table.rows.len() as i64)]];
        }
        if let Some((_, list)) = sql.split_once("WHERE id IN (") {
            let ids = list.trim_end_matches(')').split(", ").map(|id| id.parse::<i64>().unwrap());
            let rows = ids.filter_map(|id| table.rows.get(&id));
            return rows.map(|row| row.iter().cloned().map(Some).collect()).collect();
        }
        vec![vec![Some("0".to_owned())]]
    }
}

fn some_text(value: i64) -> Option<String> {
    Some(value.to_string())
}

/// Keeps what a loader says.
#[derive(Default)]
pub(crate) struct LoadLog(Mutex<Vec<String>>);

impl LoadLog {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl LoadObserver for LoadLog {
    fn rows_planned(&self, rows: u64) {
        self.push(format!("planned {rows}"));
    }
    fn creating_table(&self, table: &str) {
        self.push(format!("creating {table}"));
    }
    fn inserting(&self, rows: u64, table: &str) {
        self.push(format!("inserting {rows} into {table}"));
    }
    fn rows_done(&self, rows: u64) {
        self.push(format!("done {rows}"));
    }
    fn creating_index(&self, table: &str) {
        self.push(format!("index on {table}"));
    }
    fn dropping_table(&self, table: &str) {
        self.push(format!("dropping {table}"));
    }
    fn prewarming_table(&self, table: &str) {
        self.push(format!("prewarming {table}"));
    }
    fn note(&self, text: &str) {
        self.push(text.to_owned());
    }
}
