//! Facts that servers report: settings and counters, their state before and after a trial, and
//! what they do while it runs.
//!
//! Every question may be refused: accounts differ in what they may see, and managed services differ
//! from the products that they are made of. What can't be read is listed and stays unknown.

mod follow;
mod mysql;
mod postgres;
mod sqlite;
mod state;

use std::collections::BTreeMap;
use std::time::Instant;

use dyno_core::{
    AdminSession, AnswerRow, AnswerTable, ColumnNames, DbResult, Dialect, Discard, Nanos, Rows,
};
use dyno_facts::{Message, ServerFacts, say};
use dyno_reactor::{now, timeout};

use state::ask_facts;

pub use follow::{
    LogPosition, Sample, follows, has_reached, position, server_restarted, standstill,
};
pub use postgres::LOCK_CLASS;
pub use state::{NodeState, ServerWindow, commits_grown, node_conditions, read_facts, was_alone};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLook {
    pub facts: ServerFacts,
    pub state: NodeState,
}

/// Looks at a node. `tables` are those of the workload, as the server names them; without any, all of
/// the database count.
pub async fn look(session: &mut AdminSession<'_>, tables: &[String]) -> DbResult<NodeLook> {
    let mut asker = Asker::new(session);
    let mut facts = ask_facts(&mut asker).await?;
    let tables = Tables(tables);
    let mut state = match asker.session.dialect() {
        Dialect::Mysql => mysql::state(&mut asker, &facts, &tables).await?,
        Dialect::Postgres if asker.session.capabilities().server_views => {
            postgres::state(&mut asker, &facts, &tables).await?
        }
        Dialect::Postgres => sqlite::silent_state(),
        Dialect::Sqlite => sqlite::state(&mut asker, &facts, &tables).await?,
    };
    facts.not_readable = asker.not_readable;
    state.asked = asker.asked;
    facts.schema = std::mem::take(&mut state.schema);
    Ok(NodeLook { facts, state })
}

/// Looks at an endpoint: only at the connection to it, since its counters are those of the nodes behind it.
pub async fn glance(session: &mut AdminSession<'_>) -> DbResult<NodeLook> {
    let mut asker = Asker::new(session);
    let product = asker.session.product().clone();
    let mut state =
        NodeState { round_trip_us: round_trip_us(&mut asker).await?, ..NodeState::default() };
    if asker.session.dialect() == Dialect::Postgres {
        state.foreign_servers = postgres::foreign_servers(&mut asker).await?;
    }
    let facts = ServerFacts {
        product: product.name,
        version: product.version,
        not_readable: asker.not_readable,
        ..ServerFacts::default()
    };
    Ok(NodeLook { facts, state })
}

/// Asks a node again and again what it does. Made once per session.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// For each question whether it was refused: it is not asked again.
    refused: Vec<Message>,
    postgres_version: u32,
    is_mysql_replica: Option<bool>,
    asks_for_cpu: bool,
    pub asked: Asked,
}

impl Questions {
    /// With `asks_for_cpu` also about the CPU time of statements.
    pub fn new(asks_for_cpu: bool) -> Self {
        Questions { asks_for_cpu, ..Questions::default() }
    }

    /// Asks for a sample. What was refused is reported once, in the second list.
    pub async fn sample(
        &mut self,
        session: &mut AdminSession<'_>,
    ) -> DbResult<(Sample, Vec<Message>)> {
        let mut asker = Asker::leaving_out(session, &self.refused);
        let sample = match asker.session.dialect() {
            Dialect::Mysql => mysql::sample(&mut asker, &mut self.is_mysql_replica).await,
            Dialect::Postgres => postgres::sample(&mut asker, &mut self.postgres_version).await,
            Dialect::Sqlite => Ok(Sample::default()),
        };
        let readable = asker.not_readable.len();
        let sample = match sample {
            Ok(sample) if self.asks_for_cpu => {
                let cpu_s = statement_cpu_s(&mut asker).await;
                cpu_s.map(|statement_cpu_s| Sample { statement_cpu_s, ..sample })
            }
            sample => sample,
        };
        let Asker { mut not_readable, refused, asked, .. } = asker;
        // Few servers count it, so a refusal is not reported.
        not_readable.truncate(readable);
        self.refused.extend(refused);
        // The server has counted the statements before the connection was lost.
        self.asked += asked;
        Ok((sample?, not_readable))
    }
}

/// Asks for the CPU time of all statements so far; `None` if the server does not count it, or is not configured to.
async fn statement_cpu_s(asker: &mut Asker<'_, '_>) -> DbResult<Option<f64>> {
    let sql = match asker.session.dialect() {
        Dialect::Mysql if asker.session.product().name == "MariaDB" => {
            "SELECT SUM(CPU_TIME) FROM information_schema.USER_STATISTICS"
        }
        Dialect::Mysql => {
            "SELECT SUM(SUM_CPU_TIME) / 1e12 FROM performance_schema.events_statements_summary_global_by_event_name"
        }
        Dialect::Postgres => "SELECT sum(exec_user_time + exec_system_time) FROM pg_stat_kcache",
        Dialect::Sqlite => return Ok(None),
    };
    let cpu_s = asker.number(say!(asked_cpu_of_statements), sql).await?;
    Ok(cpu_s.filter(|used_s| *used_s > 0.0))
}

struct Tables<'a>(&'a [String]);

impl Tables<'_> {
    /// Returns true if a table is one of them. Servers differ in what they make of capitals.
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|table| table.eq_ignore_ascii_case(name))
    }
}

/// Median of the round trips of the smallest statement.
async fn round_trip_us(asker: &mut Asker<'_, '_>) -> DbResult<Option<f64>> {
    /// The first ones make the path warm; the median of the rest is not moved by a few bad ones.
    const TRIPS: usize = 31;
    let mut trips = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let started = Instant::now();
        match asker.session.query("SELECT 1", &mut Discard).await {
            Ok(_) => trips.push(started.elapsed().as_secs_f64() * 1e6),
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => return Ok(None),
        }
    }
    asker.asked += Asked { all: TRIPS as u64, reads: TRIPS as u64, writes: 0 };
    trips.sort_unstable_by(f64::total_cmp);
    Ok(Some(trips[TRIPS / 2]))
}

type Answer = Vec<Vec<Option<String>>>;

struct Asker<'a, 's> {
    session: &'a mut AdminSession<'s>,
    /// Refused questions with the reasons.
    not_readable: Vec<Message>,
    /// Questions to leave out, and those that were refused.
    left_out: Vec<Message>,
    refused: Vec<Message>,
    /// All statements sent, with those of [`round_trip_us`].
    asked: Asked,
    /// Time before the first question, on the clock of samples.
    began_s: f64,
    /// Time limit of each answer.
    within: Option<Nanos>,
}

/// Statements that were sent, for servers that count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub all: u64,
    /// The ones among these that a server counts among its SELECTs.
    pub reads: u64,
    /// The ones among these that it counts among what writes rows.
    pub writes: u64,
}

impl Asked {
    /// One statement, by its first word.
    pub fn one(sql: &str) -> Self {
        let is_write = ["INSERT", "UPDATE", "DELETE"].iter().any(|word| sql.starts_with(word));
        let reads = u64::from(sql.starts_with("SELECT"));
        Asked { all: 1, reads, writes: u64::from(is_write) }
    }
}

impl std::ops::AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.all += other.all;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

#[derive(Default)]
struct NamedRows<'a> {
    names: Vec<String>,
    table: AnswerTable,
    /// Rows that begin with the name of another table are not kept: a database may have any number of these.
    tables: Option<&'a Tables<'a>>,
}

impl Rows for NamedRows<'_> {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        self.names = (0..columns.count()).map(|column| columns.name(column).to_owned()).collect();
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        let name = self.tables.and_then(|_| std::str::from_utf8(row.bytes(0)?).ok());
        if self.tables.zip(name).is_none_or(|(tables, name)| tables.has(name)) {
            self.table.row(row);
        }
    }

    fn overflow(&self) -> Option<usize> {
        self.table.overflow()
    }
}

impl<'a, 's> Asker<'a, 's> {
    fn new(session: &'a mut AdminSession<'s>) -> Self {
        Asker::leaving_out(session, &[])
    }

    /// Without questions (by what they are about) that are not worth asking.
    fn leaving_out(session: &'a mut AdminSession<'s>, questions: &[Message]) -> Self {
        Asker {
            session,
            not_readable: Vec::new(),
            left_out: questions.to_vec(),
            refused: Vec::new(),
            asked: Asked::default(),
            began_s: mysql::clock_s(),
            within: None,
        }
    }

    /// All rows; none when the server refuses, which is noted with `what` it was about.
    async fn rows(&mut self, what: impl Into<Message>, sql: &str) -> DbResult<Answer> {
        Ok(self.query_named(what, sql, None).await?.table.rows)
    }

    /// The rows of an answer, without those that begin with the name of a table which is none of these.
    async fn rows_for(
        &mut self,
        tables: &Tables<'_>,
        what: impl Into<Message>,
        sql: &str,
    ) -> DbResult<Answer> {
        Ok(self.query_named(what, sql, Some(tables)).await?.table.rows)
    }

    /// The first value of the answer; `None` if it is NULL or refused.
    async fn text(&mut self, what: impl Into<Message>, sql: &str) -> DbResult<Option<String>> {
        let rows = self.rows(what, sql).await?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// The first value of the answer, if it is a number.
    async fn number(&mut self, what: impl Into<Message>, sql: &str) -> DbResult<Option<f64>> {
        Ok(self.text(what, sql).await?.and_then(|text| text.parse().ok()))
    }

    /// The answer as a whole number, rounded down.
    async fn count(&mut self, what: impl Into<Message>, sql: &str) -> DbResult<Option<u64>> {
        Ok(self.number(what, sql).await?.map(|number| number as u64))
    }

    /// The mean lengths of the first rows of tables, bytes, by statements that are requested: a name and one in each
    /// row.
    async fn row_bytes(
        &mut self,
        tables: &Tables<'_>,
        statements: &str,
    ) -> DbResult<BTreeMap<String, f64>> {
        let queries = self.rows_for(tables, say!(asked_row_lengths), statements).await?;
        let sql = queries.iter().map(|row| cell(row, 1)).collect::<Vec<_>>().join(" UNION ALL ");
        // Without a list of tables the load may use any of the database.
        if tables.0.is_empty() || sql.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = self.rows(say!(asked_row_lengths), &sql).await?;
        let lengths = rows
            .iter()
            .filter_map(|row| Some((cell(row, 0).to_owned(), cell(row, 1).parse().ok()?)));
        Ok(lengths.collect())
    }

    /// The first row by the names of its columns, without what is NULL.
    async fn record(
        &mut self,
        what: impl Into<Message>,
        sql: &str,
    ) -> DbResult<BTreeMap<String, String>> {
        let answer = self.query_named(what, sql, None).await?;
        let first = answer.table.rows.into_iter().next().unwrap_or_default();
        Ok(answer
            .names
            .into_iter()
            .zip(first)
            .filter_map(|(name, value)| Some((name, value?)))
            .collect())
    }

    async fn query_named<'t>(
        &mut self,
        topic: impl Into<Message>,
        sql: &str,
        tables: Option<&'t Tables<'t>>,
    ) -> DbResult<NamedRows<'t>> {
        let mut rows = NamedRows { tables, ..NamedRows::default() };
        let topic = topic.into();
        if self.left_out.contains(&topic) {
            return Ok(rows);
        }
        self.asked += Asked::one(sql);
        let answer = self.session.query(sql, &mut rows);
        let answered = match self.within {
            Some(within) => {
                let answered = timeout(now().saturating_add(within), answer).await;
                match answered {
                    Ok(answered) => answered,
                    Err(_) => Err(self.session.unanswered(sql, within).await),
                }
            }
            None => answer.await,
        };
        match answered {
            Ok(_) => Ok(rows),
            Err(error) if error.is_fatal() => Err(error),
            Err(error) => {
                let words = [topic.clone(), error.to_string().into()];
                self.not_readable.push(Message::joined(&words, ": ", "："));
                self.refused.push(topic);
                Ok(NamedRows::default())
            }
        }
    }
}

/// The text of a column, empty for NULL and for columns that are not there.
fn cell(row: &[Option<String>], column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

/// A setting of a server, as it says it.
fn setting<'f>(facts: &'f ServerFacts, name: &str) -> Option<&'f str> {
    facts.settings.get(name).map(String::as_str)
}

/// The name of a column, from a row that begins with its table and itself, and how the rest of the row defines it.
fn column(row: &[Option<String>]) -> (String, String) {
    let definition: Vec<&str> = row.iter().skip(2).flatten().map(String::as_str).collect();
    (format!("{}.{}", cell(row, 0), cell(row, 1)), definition.join(" "))
}

/// `trigger a.b` and when it fires, with the beginning of a hash of what it does, and its state.
fn trigger(row: &[Option<String>], state: &str) -> (String, String) {
    let name = format!("trigger {}.{}", cell(row, 0), cell(row, 1));
    (name, format!("{}, body {}{state}", cell(row, 2), cell(row, 3)))
}

/// The definition of a row that begins with its table (NULL if it belongs to none), its name and its definition.
fn property(row: &[Option<String>]) -> (String, String) {
    (cell(row, 1).to_owned(), cell(row, 2).to_owned())
}

/// A checksum of rows (FNV-1a, 64 bits): equal for equal rows in the same order. It tells
/// differences apart, but can be forged.
fn checksum<'a>(rows: impl Iterator<Item = &'a Vec<Option<String>>>) -> Option<String> {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut is_empty = true;
    for row in rows {
        is_empty = false;
        for column in 0..row.len() {
            // A byte that no text holds ends each value.
            for byte in cell(row, column).bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    (!is_empty).then(|| format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_of_texts(rows: &[&[&str]]) -> Option<String> {
        let rows = rows.iter().map(|row| row.iter().map(|&text| Some(text.to_owned())).collect());
        checksum(rows.collect::<Answer>().iter())
    }

    #[test]
    fn a_checksum_tells_values_and_their_borders_apart() {
        assert_eq!(checksum_of_texts(&[]), None);
        let sum = checksum_of_texts(&[&["a", "b"]]);
        assert_eq!(sum, checksum_of_texts(&[&["a", "b"]]));
        assert_ne!(sum, checksum_of_texts(&[&["ab", ""]]));
        assert_ne!(checksum_of_texts(&[&["a"], &["b"]]), checksum_of_texts(&[&["b"], &["a"]]));
    }
}
