//! The connections of one Lua state, and the answers to its requests.

use std::rc::Rc;

use dyno_core::{
    Cause, DbError, DbResult, Dialect, Driver, Executed, Param, ParamType, Session, SqlRules,
    Statement, Tally,
};
use dyno_engine::ErrorPolicy;
use dyno_reactor::{now, sleep_until};
use dyno_sysbench::mysql_error;

use crate::machine::{LuaAnswer, LuaMachine, LuaStep};
use crate::prepared::{BoundValues, ResultSet, ScriptStatement, ScriptStatements};
use crate::raw::LuaShared;
use crate::sql;
use crate::worker::LuaCommon;
use crate::workload::ScriptCounters;

/// Owner of a connection's session.
enum Slot<S> {
    /// The engine: the session that it opened for this worker.
    Engine,
    Own(S),
    /// No one, until it is used again.
    Parked,
    Closed,
}

/// Up to this number of parameters need no separate memory.
const FEW_PARAMS: usize = 8;

pub(crate) struct Connections<'a, D: Driver> {
    driver: &'a D,
    /// The worker's.
    number: u32,
    pub(crate) policy: &'a ErrorPolicy,
    /// The engine's session is the first connection.
    lends: bool,
    /// False with `--db-ps-mode=disable`: values then become part of the text.
    prepares: bool,
    slots: Vec<Slot<D::Session>>,
    statements: ScriptStatements,
    counters: Rc<ScriptCounters>,
    shared: Rc<LuaShared>,
    /// Some slots are parked.
    has_parked: bool,
    /// A session ended within a transaction.
    left_open: bool,
    /// Connections that were lost and not opened again.
    lost: Vec<usize>,
    /// Reason why the last connection was not opened.
    pub(crate) unopened: Option<DbError>,
    /// The last error that a request had.
    pub(crate) failure: Option<DbError>,
}

/// Does something with the session of a slot.
macro_rules! with_session {
    ($self:ident, $engine:ident, $number:expr, $session:ident => $body:expr) => {
        match ($self.slots.get_mut($number), $engine) {
            (Some(Slot::Own($session)), _) => $body,
            (Some(Slot::Engine), Some($session)) => $body,
            _ => Err(closed_connection()),
        }
    };
}

/// Rules of quotations for the session of a slot.
macro_rules! literal_rules {
    ($self:ident, $engine:expr, $number:expr) => {{
        let lent = $engine;
        with_session!($self, lent, $number, session => Ok(SqlRules {
            dialect: $self.driver.dialect(),
            has_backslash_escapes: session.has_backslash_escapes(),
        }))
    }};
}

#[cold]
fn closed_connection() -> DbError {
    DbError::workload("the connection is closed")
}

impl<'a, D: Driver> Connections<'a, D> {
    pub(crate) fn new(common: &LuaCommon<'a, D>, number: u32, machine: &LuaMachine) -> Self {
        Connections {
            driver: common.driver,
            number,
            policy: common.policy,
            lends: common.lends,
            prepares: common.settings.prepares,
            slots: Vec::new(),
            statements: ScriptStatements::default(),
            counters: Rc::clone(&machine.counters),
            shared: Rc::clone(&machine.shared),
            has_parked: false,
            left_open: false,
            lost: Vec::new(),
            unopened: None,
            failure: None,
        }
    }

    /// Answers a request of the script. `engine` is the session that the engine lends, if there is one.
    pub(crate) async fn answer<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        request: LuaStep,
        tally: &mut Tally,
    ) -> LuaAnswer {
        if self.has_parked
            && let Err(error) = self.open_parked().await
        {
            return self.answer_error(error);
        }
        let (connection, statement) = match &request {
            LuaStep::Query(number) | LuaStep::Prepare(number, _) => (Some(*number), None),
            LuaStep::Execute(number) | LuaStep::Bind(number, _) => (None, Some(*number)),
            _ => (None, None),
        };
        let answered = match request {
            LuaStep::Query(number) => {
                let sql = self.shared.sql.take();
                let answered = self.query(engine, number, &sql, tally).await;
                self.shared.give_back(sql);
                answered
            }
            LuaStep::Execute(number) => {
                let values = self.shared.values.take();
                let answered = self.execute(engine, number, &values, tally).await;
                *self.shared.values.borrow_mut() = values;
                answered
            }
            LuaStep::Connect => self.connect(engine).await,
            LuaStep::Disconnect(number) => self.disconnect(engine, number).await,
            LuaStep::Reconnect(number) => {
                let reopened = self.reconnect(number).await;
                reopened.inspect(|_| self.counters.count_reconnect())
            }
            LuaStep::Prepare(number, sql) => self.prepare(engine, number, &sql.as_bytes()).await,
            LuaStep::Bind(number, types) => self.bind(engine, number, types).await,
            LuaStep::Close(number) => self.close_statement(engine, number).await,
            LuaStep::SleepUs(microseconds) => {
                sleep_until(now().saturating_add((microseconds * 1e3) as u64)).await;
                Ok(LuaAnswer::Nothing)
            }
            LuaStep::Done(_)
            | LuaStep::Last
            | LuaStep::Restart { .. }
            | LuaStep::Failed(_)
            | LuaStep::Stopped
            | LuaStep::Ignored => Ok(LuaAnswer::Nothing),
        };
        answered.unwrap_or_else(|error| {
            if error.is_fatal() {
                let known_statement = statement.and_then(|number| self.statements.get(number).ok());
                self.lost.extend(connection.or(known_statement.map(|known| known.connection)));
            }
            self.answer_error(error)
        })
    }

    /// The answer to a request that failed, by the codes of the original's client libraries.
    #[cold]
    pub(crate) fn answer_error(&mut self, error: DbError) -> LuaAnswer {
        let is_ignored = error.cause() != Cause::Workload
            && self.policy.retry.contains(&error)
            && (!error.is_fatal() || self.policy.reconnect);
        let (errno, sqlstate, message) = match self.driver.dialect() {
            Dialect::Mysql => mysql_error(&error),
            Dialect::Postgres | Dialect::Sqlite => {
                (error.errno(), error.sqlstate(), error.message().into())
            }
        };
        let sqlstate = sqlstate.to_owned();
        // What can't be reached is named.
        let names = error.is_connect() && !error.is_from_server();
        let message = if names { error.to_string() } else { message.into_owned() };
        self.failure = Some(error);
        LuaAnswer::Error { errno, sqlstate, message, is_ignored }
    }

    /// Opens a connection of the script; the first may be the engine's.
    async fn connect<S: Session>(&mut self, engine: Option<&mut S>) -> DbResult<LuaAnswer> {
        let is_lent = self.slots.iter().any(|slot| matches!(slot, Slot::Engine));
        let slot = match engine {
            Some(_) if self.lends && !is_lent => Slot::Engine,
            _ => match self.driver.connect(self.number).await {
                Ok(session) => Slot::Own(session),
                Err(error) => {
                    self.unopened = Some(error.clone());
                    return Err(error);
                }
            },
        };
        let free = self.slots.iter().position(|slot| matches!(slot, Slot::Closed));
        let number = free.unwrap_or(self.slots.len());
        match free {
            Some(number) => self.slots[number] = slot,
            None => self.slots.push(slot),
        }
        Ok(LuaAnswer::Number(number))
    }

    /// The engine's session stays open, for the next connection of the script.
    async fn disconnect<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        number: usize,
    ) -> DbResult<LuaAnswer> {
        let slot = self.slots.get_mut(number).ok_or_else(closed_connection)?;
        let slot = std::mem::replace(slot, Slot::Closed);
        let prepared = self.statements.forget(number);
        self.lost.retain(|lost| *lost != number);
        match (slot, engine) {
            (Slot::Own(session), _) => {
                self.left_open |= session.is_in_transaction();
                session.close().await;
            }
            (Slot::Engine, Some(session)) => {
                if session.is_in_transaction() {
                    self.left_open = true;
                    session.rollback().await?;
                }
                for statement in prepared {
                    session.forget(statement).await?;
                }
            }
            _ => {}
        }
        Ok(LuaAnswer::Nothing)
    }

    /// Replaces a session by one of this state's own.
    async fn reconnect(&mut self, number: usize) -> DbResult<LuaAnswer> {
        let session = self.driver.reconnect(self.number, 0).await?;
        let slot = self.slots.get_mut(number).ok_or_else(closed_connection)?;
        if let Slot::Own(old) = std::mem::replace(slot, Slot::Own(session)) {
            old.close().await;
        }
        self.statements.forget(number);
        self.lost.retain(|lost| *lost != number);
        Ok(LuaAnswer::Nothing)
    }

    /// The engine has replaced its session.
    pub(crate) fn engine_reconnected(&mut self) {
        let lent = self.slots.iter().position(|slot| matches!(slot, Slot::Engine));
        if let Some(number) = lent {
            self.statements.forget(number);
        }
    }

    /// Brings the state's own sessions out of what a failed event has left, as the engine does with its own.
    pub(crate) async fn recover(&mut self, rolls_back: bool) -> DbResult<()> {
        for number in 0..self.slots.len() {
            let Slot::Own(session) = &mut self.slots[number] else { continue };
            let is_lost = self.lost.contains(&number);
            let is_open = rolls_back && session.is_in_transaction();
            if is_lost || is_open && session.rollback().await.is_err() {
                self.reconnect(number).await?;
            }
        }
        Ok(())
    }

    /// Closes the state's own sessions until they are used again: a session belongs to one loop.
    pub(crate) async fn park(&mut self) {
        for number in 0..self.slots.len() {
            match std::mem::replace(&mut self.slots[number], Slot::Parked) {
                Slot::Own(session) => {
                    session.close().await;
                    self.has_parked = true;
                    self.statements.forget(number);
                }
                before => self.slots[number] = before,
            }
        }
    }

    async fn open_parked(&mut self) -> DbResult<()> {
        for slot in &mut self.slots {
            if matches!(slot, Slot::Parked) {
                *slot = Slot::Own(self.driver.connect(self.number).await?);
            }
        }
        self.has_parked = false;
        self.lost.clear();
        Ok(())
    }

    /// Closes all, and returns true if a session ended within a transaction.
    pub(crate) async fn close(&mut self) -> bool {
        self.left_open |= self.is_in_transaction();
        for slot in self.slots.drain(..) {
            if let Slot::Own(session) = slot {
                session.close().await;
            }
        }
        self.left_open
    }

    /// Returns true if a session that the script has opened is within a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| matches!(slot, Slot::Own(session) if session.is_in_transaction()))
    }

    /// Executes a text; its rows wait for the script.
    async fn query<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        number: usize,
        sql: &[u8],
        tally: &mut Tally,
    ) -> DbResult<LuaAnswer> {
        let mut rows = self.shared.results.take_buffers(number);
        let executed = with_session!(self, engine, number, session => {
            session.query_bytes(sql, &mut rows).await
        });
        let executed = executed.map_err(|error| count_failure(&self.counters, error, sql))?;
        Ok(self.finish_statement(number, executed, sql, rows, tally))
    }

    /// Prepares a statement of the script; returns its number.
    async fn prepare<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        connection: usize,
        sql: &[u8],
    ) -> DbResult<LuaAnswer> {
        let dialect = self.driver.dialect();
        let rules = literal_rules!(self, engine.as_deref_mut(), connection)?;
        let (sql, placeholders) = sql::with_placeholders(sql, rules, self.prepares);
        if let Some(number) = self.statements.reopen(connection, &sql) {
            return Ok(LuaAnswer::Number(number));
        }
        let number = self.statements.add(ScriptStatement::new(connection, sql, placeholders));
        // PostgreSQL needs the types of parameters first, which are bound later.
        if self.prepares
            && (dialect != Dialect::Postgres || placeholders == 0)
            && let Err(error) = self.ensure_prepared(engine, number).await
        {
            self.statements.close(number);
            return Err(error);
        }
        Ok(LuaAnswer::Number(number))
    }

    /// Closes a statement; one that can't be closed on the server ends with its session.
    async fn close_statement<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        number: usize,
    ) -> DbResult<LuaAnswer> {
        if let Some((connection, server)) = self.statements.close(number) {
            let _ = with_session!(self, engine, connection, session => {
                session.forget(server).await
            });
        }
        Ok(LuaAnswer::Nothing)
    }

    /// Sets the types of a statement's parameters.
    async fn bind<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        number: usize,
        types: Vec<ParamType>,
    ) -> DbResult<LuaAnswer> {
        let dialect = self.driver.dialect();
        let statement = self.statements.get_mut(number)?;
        check_bound(types.len(), statement.placeholders)?;
        // What PostgreSQL has prepared keeps its types.
        let types_changed = dialect == Dialect::Postgres && statement.types != types;
        let old = if types_changed { statement.server.take() } else { None };
        let connection = statement.connection;
        statement.types = types;
        if let Some(old) = old {
            let lent = engine.as_deref_mut();
            with_session!(self, lent, connection, session => session.forget(old).await)?;
        }
        if dialect == Dialect::Postgres && self.prepares {
            self.ensure_prepared(engine, number).await?;
        }
        Ok(LuaAnswer::Nothing)
    }

    /// The server's statement, prepared now if it is not yet.
    async fn ensure_prepared<S: Session>(
        &mut self,
        engine: Option<&mut S>,
        number: usize,
    ) -> DbResult<Statement> {
        let statement = self.statements.get_mut(number)?;
        if let Some(server) = statement.server {
            return Ok(server);
        }
        let (sql, types) = (statement.sql.as_slice(), statement.types.as_slice());
        let server = with_session!(self, engine, statement.connection, session => {
            session.prepare_bytes(sql, types, None).await
        });
        let server = server.map_err(|error| error.with_statement(String::from_utf8_lossy(sql)))?;
        statement.server = Some(server);
        Ok(server)
    }

    /// With `--db-ps-mode=disable` the values are part of the text.
    async fn execute<S: Session>(
        &mut self,
        mut engine: Option<&mut S>,
        number: usize,
        values: &BoundValues,
        tally: &mut Tally,
    ) -> DbResult<LuaAnswer> {
        let mut statement = self.statements.get(number)?;
        let connection = statement.connection;
        check_bound(values.len(), statement.placeholders)
            .map_err(|error| count_failure(&self.counters, error, &statement.sql))?;
        if !self.prepares {
            let rules = literal_rules!(self, engine.as_deref_mut(), connection)?;
            let mut text = self.shared.sql.take();
            text.clear();
            sql::substitute(&mut text, &statement.sql, values.literals(&statement.types), rules);
            let answered = self.query(engine, connection, &text, tally).await;
            self.shared.give_back(text);
            return answered;
        }
        let server = match statement.server {
            Some(server) => server,
            None => {
                let server = self.ensure_prepared(engine.as_deref_mut(), number).await?;
                statement = self.statements.get(number)?;
                server
            }
        };
        let mut inline = [Param::Null; FEW_PARAMS];
        let heap: Vec<Param<'_>>;
        let bound = values.params(&statement.types);
        let params = if values.len() <= FEW_PARAMS {
            inline.iter_mut().zip(bound).for_each(|(place, param)| *place = param);
            &inline[..values.len()]
        } else {
            heap = bound.collect();
            heap.as_slice()
        };
        let mut rows = self.shared.results.take_buffers(connection);
        let executed = with_session!(self, engine, connection, session => {
            session.execute_short(server, params, &mut rows).await
        });
        let executed =
            executed.map_err(|error| count_failure(&self.counters, error, &statement.sql))?;
        Ok(self.finish_statement(connection, executed, &statement.sql, rows, tally))
    }

    fn finish_statement(
        &self,
        connection: usize,
        executed: Executed,
        sql: &[u8],
        rows: ResultSet,
        tally: &mut Tally,
    ) -> LuaAnswer {
        tally.count_text(executed, sql);
        self.counters.count_statement(executed);
        self.shared.results.store(connection, rows);
        LuaAnswer::Done { has_rows: executed.has_rows }
    }
}

fn check_bound(bound: usize, placeholders: usize) -> DbResult<()> {
    if bound == placeholders {
        return Ok(());
    }
    Err(DbError::workload(format!(
        "{bound} parameters were bound to a statement with {placeholders} placeholders"
    )))
}

/// The error of a statement. The original counts it even if the script catches it.
#[cold]
fn count_failure(counters: &ScriptCounters, error: DbError, sql: &[u8]) -> DbError {
    counters.count_error();
    error.with_statement(String::from_utf8_lossy(sql))
}
