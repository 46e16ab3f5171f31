//! The statements of a connection: prepared on the server, or text.

use dyno_core::{
    DbError, Dialect, Discard, Executed, Outcome, Param, ParamType, Rng, Session, Statement, Tally,
    WorkerId, push_int,
};

use crate::distribution::Sampler;
use crate::options::{SysbenchOptions, SysbenchTest};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    Commit,
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    /// The insert that follows a delete.
    Insert,
    /// The insert of the insert tests, which is never prepared.
    NewRow,
}

const KINDS: usize = Kind::NewRow as usize + 1;

impl Kind {
    /// Returns true if it is meant to change a row that is there.
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Kind::IndexUpdate | Kind::NonIndexUpdate | Kind::Delete)
    }

    pub(crate) fn has_table(self) -> bool {
        !matches!(self, Kind::Begin | Kind::Commit)
    }

    /// Types of the statement's parameters.
    fn params(self) -> &'static [ParamType] {
        match self {
            Kind::Begin | Kind::Commit => &[],
            Kind::PointSelect | Kind::IndexUpdate | Kind::Delete => &[ParamType::Int],
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                &[ParamType::Int, ParamType::Int]
            }
            Kind::NonIndexUpdate => &[ParamType::Text, ParamType::Int],
            Kind::Insert | Kind::NewRow => {
                &[ParamType::Int, ParamType::Int, ParamType::Text, ParamType::Text]
            }
        }
    }
}

/// The texts of all kinds, shared by all workers: `#` represents the number of the table, `?` for a
/// parameter.
#[derive(Clone, Debug)]
pub(crate) struct Templates {
    texts: [String; KINDS],
}

impl Templates {
    /// With one text per kind: the compiler counts them.
    pub(crate) fn new(texts: [(Kind, String); KINDS]) -> Self {
        let mut templates = Templates { texts: Default::default() };
        for (kind, text) in texts {
            templates.texts[kind as usize] = text;
        }
        templates
    }

    /// Text of the statements of this kind.
    pub(crate) fn text(&self, kind: Kind) -> &str {
        &self.texts[kind as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Statements {
    tables: u32,
    prepared: Vec<Option<Statement>>,
    text: String,
}

/// Longer than any statement of a transaction, so that the buffer never grows.
const TEXT_CAPACITY: usize = 1_024;

impl Statements {
    /// Prepares `kinds` for every table, kind by kind, in the order given.
    pub(crate) async fn open<S: Session>(
        session: &mut S,
        templates: &Templates,
        kinds: &[Kind],
        tables: u32,
    ) -> Result<Self, DbError> {
        let mut statements =
            Statements { tables, prepared: Vec::new(), text: String::with_capacity(TEXT_CAPACITY) };
        if !kinds.is_empty() {
            statements.prepared = vec![None; KINDS * tables as usize];
        }
        for &kind in kinds {
            let copies = if kind.has_table() { tables } else { 1 };
            for table in 1..=copies {
                let sql = placeholders(templates.text(kind), table, session.dialect());
                let slot = statements.slot(kind, table);
                let prepared = session
                    .prepare(&sql, kind.params())
                    .await
                    .map_err(|error| error.with_statement(sql.as_str()))?;
                statements.prepared[slot] = Some(prepared);
            }
        }
        Ok(statements)
    }

    /// Place of the statement for a table, from 1.
    #[inline]
    fn slot(&self, kind: Kind, table: u32) -> usize {
        kind as usize * self.tables as usize + table as usize - 1
    }

    /// [`Session::give`] for the statement of `kind` on table number `table` (1 for kinds without table).
    #[inline]
    pub(crate) fn submit<S: Session>(
        &self,
        session: &mut S,
        kind: Kind,
        table: u32,
        params: &[Param<'_>],
    ) -> Result<bool, DbError> {
        match self.prepared.get(self.slot(kind, table)) {
            Some(&Some(statement)) => session.give(statement, params),
            _ => Ok(false),
        }
    }

    /// Executes a statement, or reads the answer to what was submitted.
    #[inline]
    pub(crate) async fn execute<S: Session>(
        &mut self,
        session: &mut S,
        templates: &Templates,
        kind: Kind,
        table: u32,
        params: &[Param<'_>],
        submitted: Result<bool, DbError>,
    ) -> Result<Executed, DbError> {
        if let Some(&Some(statement)) = self.prepared.get(self.slot(kind, table)) {
            let result = match submitted {
                Ok(true) => session.receive_submitted(&mut Discard).await,
                Ok(false) => session.execute(statement, params, &mut Discard).await,
                Err(error) => Err(error),
            };
            return result.map_err(|error| {
                let text = placeholders(templates.text(kind), table, session.dialect());
                error.with_statement(text)
            });
        }
        self.text.clear();
        substitute(&mut self.text, templates.text(kind), table, params);
        let result = session.query(&self.text, &mut Discard).await;
        result.map_err(|error| error.with_statement(self.text.as_str()))
    }
}

/// The statement for a table, with the dialect's placeholders.
pub(crate) fn placeholders(template: &str, table: u32, dialect: Dialect) -> String {
    let mut sql = String::with_capacity(template.len() + 16);
    let mut number = 0;
    for letter in template.chars() {
        match letter {
            '#' => push_int(&mut sql, i64::from(table)),
            '?' => {
                number += 1;
                dialect.push_placeholder(&mut sql, number);
            }
            other => sql.push(other),
        }
    }
    sql
}

/// Appends a template with its parameters put in: integers in decimal, text in quotes. The text
/// parameters of this workload are digits and dashes, so nothing has to be escaped.
#[inline]
pub(crate) fn substitute(sql: &mut String, template: &str, table: u32, params: &[Param<'_>]) {
    let mut params = params.iter();
    let mut remaining = template;
    while let Some(at) = remaining.bytes().position(|letter| matches!(letter, b'#' | b'?')) {
        sql.push_str(&remaining[..at]);
        if remaining.as_bytes()[at] == b'#' {
            push_int(sql, i64::from(table));
        } else {
            push_param(sql, params.next().unwrap_or(&Param::Null));
        }
        remaining = &remaining[at + 1..];
    }
    sql.push_str(remaining);
}

#[inline]
fn push_param(sql: &mut String, param: &Param<'_>) {
    match *param {
        Param::Int(value) => push_int(sql, value),
        Param::Text(text) => {
            sql.push('\'');
            sql.push_str(std::str::from_utf8(text).unwrap_or_default());
            sql.push('\'');
        }
        Param::Null | Param::Double(_) => sql.push_str("NULL"),
    }
}

#[derive(Debug)]
pub(crate) struct RandomKeys {
    template: String,
    draws: u32,
    /// Parameters per draw: 1 for points, 2 for ranges.
    per_draw: usize,
    delta: i64,
    prepared: bool,
}

#[derive(Debug)]
pub(crate) struct RandomKeysWorker {
    rng: Rng,
    keys: Sampler,
    statement: Option<Statement>,
    params: Vec<Param<'static>>,
    text: String,
}

/// Letters that a drawn number takes in text mode, at most, with the comma.
const NUMBER_LENGTH: usize = 12;

impl RandomKeys {
    pub(crate) fn new(options: &SysbenchOptions) -> Self {
        let ranges = matches!(
            options.test,
            SysbenchTest::SelectRandomRanges | SysbenchTest::V05SelectRandomRanges
        );
        let table = if options.test.is_legacy() { "sbtest" } else { "sbtest1" };
        let draws = if ranges { options.number_of_ranges } else { options.random_points };
        let template = if ranges {
            let parts = vec!["k BETWEEN ? AND ?"; draws as usize];
            format!("SELECT count(k) FROM {table} WHERE {}", parts.join(" OR "))
        } else {
            let parts = vec!["?"; draws as usize];
            format!("SELECT id, k, c, pad FROM {table} WHERE k IN ({})", parts.join(", "))
        };
        RandomKeys {
            template,
            draws,
            per_draw: if ranges { 2 } else { 1 },
            delta: i64::from(options.delta),
            prepared: options.prepared,
        }
    }

    /// Prepares the statement of a worker and its share of the keys.
    pub(crate) async fn open<S: Session>(
        &self,
        session: &mut S,
        options: &SysbenchOptions,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> Result<RandomKeysWorker, DbError> {
        // The share is a fraction whose bounds lose their decimals only at the draw.
        let share = f64::from(options.table_size) / f64::from(workers.max(1));
        let low = (share * f64::from(id)) as u32;
        let high = (share * f64::from(id.saturating_add(1))) as u32;
        let params = self.draws as usize * self.per_draw;
        let mut worker = RandomKeysWorker {
            rng,
            keys: Sampler::new(&options.random, options.test.era(), low, high),
            statement: None,
            params: Vec::with_capacity(params),
            text: String::new(),
        };
        self.reopen(&mut worker, session).await?;
        if worker.statement.is_none() {
            worker.text.reserve(self.template.len() + params * NUMBER_LENGTH);
        }
        Ok(worker)
    }

    /// Prepares the statement of a worker again, on a new session.
    pub(crate) async fn reopen<S: Session>(
        &self,
        worker: &mut RandomKeysWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        if self.prepared {
            let sql = self.sql(session.dialect());
            let types = vec![ParamType::Int; self.draws as usize * self.per_draw];
            worker.statement = Some(session.prepare(&sql, &types).await?);
        }
        Ok(())
    }

    /// The statement with the dialect's placeholders.
    fn sql(&self, dialect: Dialect) -> String {
        placeholders(&self.template, 1, dialect)
    }

    /// Executes a transaction with newly drawn keys.
    pub(crate) async fn run<S: Session>(
        &self,
        worker: &mut RandomKeysWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        worker.params.clear();
        for _ in 0..self.draws {
            let key = worker.keys.sample(&mut worker.rng);
            worker.params.push(Param::Int(key));
            if self.per_draw == 2 {
                worker.params.push(Param::Int(key + self.delta));
            }
        }
        let executed = match worker.statement {
            Some(statement) => {
                session.execute_short(statement, &worker.params, &mut Discard).await?
            }
            None => {
                worker.text.clear();
                substitute(&mut worker.text, &self.template, 1, &worker.params);
                session.query(&worker.text, &mut Discard).await?
            }
        };
        tally.count(executed);
        Ok(Outcome::Committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_into_the_text() {
        let mut sql = String::new();
        let params = [Param::Int(-12), Param::Text(b"123-4")];
        substitute(&mut sql, "INSERT INTO sbtest# VALUES (?, ?) -- end", 17, &params);
        assert_eq!(sql, "INSERT INTO sbtest17 VALUES (-12, '123-4') -- end");
    }

    #[test]
    fn placeholders_are_the_dialects_own() {
        let template = "UPDATE sbtest# SET c=? WHERE id=?";
        assert_eq!(placeholders(template, 2, Dialect::Mysql), "UPDATE sbtest2 SET c=? WHERE id=?");
        assert_eq!(
            placeholders(template, 2, Dialect::Postgres),
            "UPDATE sbtest2 SET c=$1 WHERE id=$2"
        );
    }

    #[test]
    fn integers_of_all_sizes_are_written() {
        for value in [0, 7, 10, -1, i64::MAX, i64::MIN] {
            let mut sql = String::new();
            push_int(&mut sql, value);
            assert_eq!(sql, value.to_string());
        }
    }
}
