//! Statements on their way to the server, and what `\gset` and `\aset` take from the answers.

use super::PgBench;
use super::client::Client;
use super::client::Variables;
use super::execute::{Failure, Place};
use super::trace::server_text;
use crate::script::{Action, Names, QueryMode, Statement, Store, is_variable_name, shown_text};
use dyno_core::{
    AnswerRow, ColumnNames, DbError, Dialect, Discard, ErrorClass, Executed, Param, ParamType,
    Rows, Session, Statement as Prepared, Tally,
};
use std::io::Write;

impl PgBench {
    /// Prepares what comes up to the end of the pipeline: within it, no answer can be awaited.
    pub(super) async fn prepare_pipeline<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        let commands = &self.options.scripts[place.script].0.commands[place.at..];
        for (offset, command) in commands.iter().enumerate() {
            match &command.action {
                Action::EndPipeline => break,
                Action::Sql(statement) if client.prepared[place.number + offset].is_none() => {
                    let number = place.number + offset;
                    if self.options.debug {
                        self.trace_preparation(client, number);
                    }
                    let prepared = Box::pin(prepare(self, session, statement, number)).await;
                    let prepared = prepared.map_err(|error| Failure::Session(error, 0))?;
                    client.prepared[number] = Some(prepared);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Statements of a pipeline, whose answers matter, or that have several.
    pub(super) async fn unusual_statement<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        statement: &Statement,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if client.in_pipeline {
            return self.queue(client, session, place, statement);
        }
        let Some(store) = &statement.store else {
            let mut results = CountResults::default();
            let executed = self.send(client, session, place, statement, &mut results).await;
            let executed = executed.map_err(|error| Failure::Session(error, results.0))?;
            tally.count_text(executed, &statement.text);
            return Ok(());
        };
        let mut captured = client.captured[place.number].take().unwrap_or_default();
        captured.clear();
        let mut capture = Capture { store, names: &self.names, captured: &mut captured };
        let outcome = self.send(client, session, place, statement, &mut capture).await;
        let result = match outcome {
            Ok(executed) => {
                tally.count(executed);
                self.check_captured(client.id, place, store, &captured)
            }
            // The original looks at each answer as it comes: what it can't store is met first.
            Err(_) if captured.invalid().is_some() && !store.is_gset => {
                self.check_captured(client.id, place, store, &captured)
            }
            Err(error) => Err(Failure::Session(error, captured.results)),
        };
        if result.is_ok() {
            captured.assign(&mut client.variables);
        }
        client.captured[place.number] = Some(captured);
        result
    }

    /// `\gset` wants one row, and columns must have names that variables can have.
    fn check_captured(
        &self,
        client: u32,
        place: Place<'_>,
        store: &Store,
        captured: &Captured,
    ) -> Result<(), Failure> {
        let (rows, query) = (captured.rows, captured.results.saturating_sub(1));
        let place = format_args!("client {client} script {} command {}", place.script, place.at);
        if store.is_gset && rows != 1 {
            let text = format!("{place} query {query}: expected one row, got {rows}");
            return Err(Failure::Client(text));
        }
        let Some((query, name)) = captured.invalid() else { return Ok(()) };
        self.print_error(&format!("{}: invalid variable name: \"{name}\"", store.command()));
        let text = format!("{place} query {query}: error storing into variable {name}");
        Err(Failure::Client(text))
    }

    /// [`Session::give`] for a statement whose answer is only counted.
    #[inline]
    pub(super) fn submit<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        statement: &Statement,
    ) -> Result<bool, DbError> {
        let Client { variables, params: memory, prepared, .. } = client;
        let (QueryMode::Prepared, Some(prepared)) = (self.options.mode, prepared[place.number])
        else {
            return Ok(false);
        };
        let bound = Bound::new(self.dialect, statement, variables, memory);
        let is_submitted = session.give(prepared, bound.params());
        bound.give_back(memory);
        is_submitted
    }

    /// Sends a statement and awaits its answer.
    #[inline]
    pub(super) async fn send<S: Session, R: Rows>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        statement: &Statement,
        rows: &mut R,
    ) -> Result<Executed, DbError> {
        let Client { variables, text, params: memory, prepared: slots, .. } = client;
        match self.options.mode {
            QueryMode::Simple if statement.references.is_empty() => {
                session.query_bytes(&statement.text, rows).await
            }
            QueryMode::Simple => {
                substitute(statement, variables, text);
                session.query_bytes(text, rows).await
            }
            QueryMode::Extended => {
                let bound = Bound::new(self.dialect, statement, variables, memory);
                let result = session.execute_once(&statement.text, bound.params(), rows).await;
                bound.give_back(memory);
                result
            }
            QueryMode::Prepared => {
                let slot = &mut slots[place.number];
                let prepared = match slot {
                    Some(prepared) => *prepared,
                    None => {
                        let prepared = prepare(self, session, statement, place.number);
                        *slot.insert(Box::pin(prepared).await?)
                    }
                };
                let bound = Bound::new(self.dialect, statement, variables, memory);
                let result = session.execute(prepared, bound.params(), rows).await;
                bound.give_back(memory);
                result
            }
        }
    }

    /// Adds a statement to the pipeline.
    fn queue<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        statement: &Statement,
    ) -> Result<(), Failure> {
        if let Some(store) = &statement.store {
            return Err(Failure::Store(store.command()));
        }
        let Client { variables, params: memory, prepared: slots, .. } = client;
        let bound = Bound::new(self.dialect, statement, variables, memory);
        let queued = match slots[place.number] {
            Some(prepared) => session.queue(prepared, bound.params()),
            None => session.queue_once(&statement.text, bound.params()),
        };
        bound.give_back(memory);
        queued.map_err(|error| Failure::Session(error, 0))
    }

    /// Sends the pipeline and awaits all answers; the first error among them.
    pub(super) async fn flush<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), DbError> {
        client.results.clear();
        session.flush(&mut Discard, &mut client.results).await?;
        for result in client.results.drain(..) {
            tally.count(result?);
        }
        Ok(())
    }
}

/// Prepares a statement when it is first used, under the original's name if its behavior is wanted: then the reason of
/// a failure is only reported, and the statement is missing when it is executed.
#[cold]
async fn prepare<S: Session>(
    run: &PgBench,
    session: &mut S,
    statement: &Statement,
    number: usize,
) -> Result<Prepared, DbError> {
    let types = vec![ParamType::Inferred; statement.references.len()];
    let executes_unprepared = !run.options.fails_at_preparation && run.dialect == Dialect::Postgres;
    let name = executes_unprepared.then(|| run.prepared_name(number));
    let prepared = session.prepare_bytes(&statement.text, &types, name.as_deref()).await;
    match (prepared, name) {
        (Err(error), Some(name)) if error.is_from_server() && !error.is_fatal() => {
            run.print_error(&server_text(&error, &shown_text(&statement.text)));
            let missing = format!("prepared statement \"{name}\" does not exist");
            Err(DbError::server(ErrorClass::Other, 0, *b"26000", missing))
        }
        (prepared, _) => prepared,
    }
}

/// Puts the values of variables into the text; undefined ones stay as they are.
#[inline]
pub(super) fn substitute(statement: &Statement, variables: &mut Variables, out: &mut Vec<u8>) {
    out.clear();
    let mut copied_until = 0;
    for reference in &statement.references {
        if let Some(value) = variables.text(reference.variable) {
            out.extend_from_slice(&statement.text[copied_until..reference.start]);
            out.extend_from_slice(value);
            copied_until = reference.end;
        }
    }
    out.extend_from_slice(&statement.text[copied_until..]);
}

/// The values of a statement's variables: few of them, as in most statements, lie on the stack.
struct Bound<'a> {
    few: [Param<'a>; FEW],
    /// All of them if they are more.
    many: Vec<Param<'a>>,
    count: usize,
}

const FEW: usize = 4;

impl<'a> Bound<'a> {
    /// `memory` is that of an earlier list.
    #[inline]
    fn new(
        dialect: Dialect,
        statement: &Statement,
        variables: &'a mut Variables,
        memory: &mut Vec<Param<'static>>,
    ) -> Self {
        let references = &statement.references;
        let count = references.len();
        let mut bound = Bound { few: [Param::Null; FEW], many: Vec::new(), count };
        if count <= FEW && variables.bind_ints(references, &mut bound.few) {
            return bound;
        }
        let is_postgres = dialect == Dialect::Postgres;
        if is_postgres {
            for reference in references {
                variables.make_text_unless_int(reference.variable);
            }
        }
        let variables = &*variables;
        let mut params = references.iter().map(|one| variables.param(one.variable, is_postgres));
        if count > FEW {
            bound.many = emptied(std::mem::take(memory));
            bound.many.extend(params);
        } else {
            bound.few.fill_with(|| params.next().unwrap_or(Param::Null));
        }
        bound
    }

    /// The values in the order of the placeholders.
    #[inline]
    fn params(&self) -> &[Param<'a>] {
        if self.count <= FEW { &self.few[..self.count] } else { &self.many }
    }

    #[inline]
    fn give_back(self, memory: &mut Vec<Param<'static>>) {
        if self.count > FEW {
            *memory = emptied(self.many);
        }
    }
}

/// An empty list in the memory of this one.
fn emptied<'b>(mut params: Vec<Param<'_>>) -> Vec<Param<'b>> {
    params.clear();
    // Nothing is left to be converted: the standard library collects in place.
    params.into_iter().map(|_| Param::Null).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Variable(u32),
    /// A variable that no script mentions.
    Unused,
    /// Its name can't be one of a variable.
    Invalid,
}

/// The memory of one storing statement of one client: what was stored, and for which columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Captured {
    /// The names of the columns, one after the other, and what becomes of them.
    names: String,
    columns: Vec<(usize, Target)>,
    /// Buffer in which the name of a variable is put together.
    name: String,
    /// Variables and the ends of their values in `text`.
    values: Vec<(u32, usize)>,
    text: Vec<u8>,
    /// Values of results that are complete, and the end of their text.
    kept: (usize, usize),
    /// Rows of the last result that is complete.
    rows: u64,
    results: u32,
    /// The first column that can't be stored: number of its result and its name.
    invalid: Option<(u32, String)>,
}

impl Captured {
    /// Begins again, for the next execution.
    pub(super) fn clear(&mut self) {
        self.kept = (0, 0);
        self.forget_row();
        (self.rows, self.results) = (0, 0);
        self.invalid = None;
    }

    fn forget_row(&mut self) {
        self.values.truncate(self.kept.0);
        self.text.truncate(self.kept.1);
    }

    /// The number of the result with the first column that can't be stored, and its name.
    pub(super) fn invalid(&self) -> Option<(u32, &str)> {
        self.invalid.as_ref().map(|(result, name)| (*result, name.as_str()))
    }

    /// Gives the values of the last row to the variables.
    pub(super) fn assign(&self, variables: &mut Variables) {
        let mut start = 0;
        for &(variable, end) in &self.values {
            variables.set_text(variable, &self.text[start..end]);
            start = end;
        }
    }
}

pub(super) struct Capture<'a> {
    pub(super) store: &'a Store,
    pub(super) names: &'a Names,
    pub(super) captured: &'a mut Captured,
}

impl Capture<'_> {
    fn has_changed<C: ColumnNames>(&self, columns: &C) -> bool {
        let captured = &self.captured;
        if captured.columns.len() != columns.count() {
            return true;
        }
        let mut start = 0;
        captured.columns.iter().enumerate().any(|(number, &(end, _))| {
            let name = &captured.names[start..end];
            start = end;
            name != columns.name(number)
        })
    }

    fn resolve_target(&mut self, column: &str) -> Target {
        let name = &mut self.captured.name;
        name.clear();
        name.push_str(&self.store.prefix);
        name.push_str(column);
        match self.names.find(name) {
            _ if !is_variable_name(name) => Target::Invalid,
            Some(number) => Target::Variable(number),
            None => Target::Unused,
        }
    }
}

impl Rows for Capture<'_> {
    const DESCRIBED: bool = true;

    fn columns<C: ColumnNames>(&mut self, columns: &C) {
        if self.store.is_gset {
            // Only the last result counts; what is wrong with the columns of others doesn't matter.
            self.captured.kept = (0, 0);
            self.captured.invalid = None;
        }
        self.captured.forget_row();
        if !self.has_changed(columns) {
            return;
        }
        self.captured.names.clear();
        self.captured.columns.clear();
        for number in 0..columns.count() {
            let name = columns.name(number);
            let target = self.resolve_target(name);
            self.captured.names.push_str(name);
            let end = self.captured.names.len();
            self.captured.columns.push((end, target));
        }
    }

    fn row<R: AnswerRow>(&mut self, row: &R) {
        let captured = &mut *self.captured;
        captured.forget_row();
        for column in 0..captured.columns.len().min(row.columns()) {
            match captured.columns[column].1 {
                Target::Unused => {}
                Target::Variable(variable) => {
                    push_cell(row, column, &mut captured.text);
                    captured.values.push((variable, captured.text.len()));
                }
                Target::Invalid => {
                    let start = column.checked_sub(1).map_or(0, |last| captured.columns[last].0);
                    let name = &captured.names[start..captured.columns[column].0];
                    let name = format!("{}{name}", self.store.prefix);
                    captured.invalid.get_or_insert((captured.results, name));
                }
            }
        }
    }

    fn finish_statement(&mut self, executed: Executed) {
        let captured = &mut *self.captured;
        captured.rows = executed.rows;
        captured.results += 1;
        captured.kept = (captured.values.len(), captured.text.len());
    }
}

/// Appends the text of a column; nothing for NULL.
fn push_cell<R: AnswerRow>(row: &R, column: usize, text: &mut Vec<u8>) {
    if row.is_null(column) {
        return;
    }
    if let Some(bytes) = row.bytes(column) {
        text.extend_from_slice(bytes);
    } else if let Some(value) = row.int(column) {
        let _ = write!(text, "{value}");
    } else if let Some(value) = row.string(column) {
        text.extend_from_slice(value.as_bytes());
    }
}

#[derive(Debug, Default)]
pub(super) struct CountResults(pub(super) u32);

impl Rows for CountResults {
    const WANTED: bool = false;
    const DESCRIBED: bool = true;

    fn row<R: AnswerRow>(&mut self, _row: &R) {}

    fn finish_statement(&mut self, _executed: Executed) {
        self.0 += 1;
    }
}
