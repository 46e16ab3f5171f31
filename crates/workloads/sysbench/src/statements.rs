//! The statements of a connection: prepared on the server, or text.

use dyno_core::{
    DbError, Dialect, Discard, Executed, Param, ParamType, Session, Statement, push_int,
};

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

const KINDS: usize = 12;

impl Kind {
    /// True when it is meant to change a row that is there.
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Kind::IndexUpdate | Kind::NonIndexUpdate | Kind::Delete)
    }

    pub(crate) fn has_table(self) -> bool {
        !matches!(self, Kind::Begin | Kind::Commit)
    }

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

/// The texts of all kinds, shared by all workers: `#` stands for the number of the table, `?` for a
/// parameter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    texts: [String; KINDS],
}

impl Templates {
    /// With one text per kind; the others stay empty and must not be used.
    pub(crate) fn new(texts: impl IntoIterator<Item = (Kind, String)>) -> Self {
        let mut templates = Templates::default();
        for (kind, text) in texts {
            templates.texts[kind as usize] = text;
        }
        templates
    }

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

    #[inline]
    fn slot(&self, kind: Kind, table: u32) -> usize {
        kind as usize * self.tables as usize + table as usize - 1
    }

    /// [`Session::give`] for the statement of `kind` on table number `table` (1 for kinds without table).
    #[inline]
    pub(crate) fn give<S: Session>(
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

    /// Executes a statement, or reads the answer to what was given.
    #[inline]
    pub(crate) async fn execute<S: Session>(
        &mut self,
        session: &mut S,
        templates: &Templates,
        kind: Kind,
        table: u32,
        params: &[Param<'_>],
        given: Result<bool, DbError>,
    ) -> Result<Executed, DbError> {
        if let Some(&Some(statement)) = self.prepared.get(self.slot(kind, table)) {
            let done = match given {
                Ok(true) => session.take_given(&mut Discard).await,
                Ok(false) => session.execute(statement, params, &mut Discard).await,
                Err(error) => Err(error),
            };
            return done.map_err(|error| {
                let text = placeholders(templates.text(kind), table, session.dialect());
                error.with_statement(text)
            });
        }
        self.text.clear();
        substitute(&mut self.text, templates.text(kind), table, params);
        let done = session.query(&self.text, &mut Discard).await;
        done.map_err(|error| error.with_statement(self.text.as_str()))
    }
}

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
    let mut rest = template;
    while let Some(at) = rest.bytes().position(|letter| matches!(letter, b'#' | b'?')) {
        sql.push_str(&rest[..at]);
        if rest.as_bytes()[at] == b'#' {
            push_int(sql, i64::from(table));
        } else {
            push_param(sql, params.next().unwrap_or(&Param::Null));
        }
        rest = &rest[at + 1..];
    }
    sql.push_str(rest);
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
