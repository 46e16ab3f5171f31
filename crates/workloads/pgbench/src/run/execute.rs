//! One attempt at a transaction: command after command. Shell commands run alongside everything else that the thread
//! does.

use super::PgBench;
use super::client::Variables;
use super::client::{Client, ClientScope};
use super::options::Talk;
use super::trace::server_text;
use crate::script::{
    Action, Amount, Program, QueryMode, ScriptCommand, ScriptValue, Statement, Word, is_true,
    leading_int, shown_text,
};
use dyno_core::{
    Cause, DbError, Discard, ErrorClass, Outcome, Session, Tally, TransactionId, text_to_bytes,
};
use dyno_reactor::{Output, now, sleep_until, yield_now};
use std::ffi::OsStr;
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) script: TransactionId,
    /// Number of the command within the script.
    pub(super) at: usize,
    /// Number of the command over all scripts.
    pub(super) number: usize,
    pub(super) command: &'a ScriptCommand,
}

/// Reason why a command can't be completed.
pub(super) enum Failure {
    /// The server, or the way to it; the number of the query within the command.
    Session(DbError, u32),
    /// The command; the message after client, command and script.
    Command(&'static str),
    /// `\gset` or `\aset` within a pipeline.
    Store(&'static str),
    /// The client; the whole message.
    Client(String),
}

/// State that one command passes to the next ones.
#[derive(Default)]
struct Flow {
    /// The command comes after a condition that did not hold, so that an `\elif` is evaluated.
    is_looking: bool,
    /// Something was waited for.
    has_waited: bool,
}

impl PgBench {
    /// Executes a script once, up to its end or first error.
    #[inline]
    pub(super) async fn attempt<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        transaction: TransactionId,
        attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        self.begin_attempt(client, transaction, attempt);
        let commands = &self.options.scripts[transaction].0.commands;
        let first = self.first_statements[transaction];
        let mut flow = Flow::default();
        let mut at = 0;
        while let Some(command) = commands.get(at) {
            let place = Place { script: transaction, at, number: first + at, command };
            if self.options.debug {
                self.trace_command(client, place);
            }
            let began = if self.options.statement_latencies { now() } else { 0 };
            let next = match &command.action {
                Action::Sql(statement) if statement.is_plain() && !client.in_pipeline => {
                    (flow.is_looking, flow.has_waited) = (false, true);
                    let answer = match self.submit(client, session, place, statement) {
                        Ok(true) => match poll_fn(|_| session.poll_submitted(&mut Discard)).await {
                            Ok(Some(executed)) => Ok(executed),
                            Ok(None) => session.receive_submitted(&mut Discard).await,
                            Err(error) => Err(error),
                        },
                        Ok(false) => {
                            self.send(client, session, place, statement, &mut Discard).await
                        }
                        Err(error) => Err(error),
                    };
                    answer.map_err(|error| Failure::Session(error, 0)).map(|executed| {
                        tally.count_text(executed, &statement.text);
                        at + 1
                    })
                }
                &Action::Draw { variable, first, last } => {
                    flow.is_looking = false;
                    client.set_random(variable, first, last);
                    Ok(at + 1)
                }
                _ => match self.at_once(client, place, &mut flow) {
                    Some(next) => next,
                    None => self.run_command(client, session, place, &mut flow, tally).await,
                },
            };
            match next {
                Ok(position) => at = position,
                Err(failure) => return Err(self.fail(client, session, place, failure)),
            }
            if self.options.statement_latencies {
                client.pending.push((place.at as u32, now() - began));
            }
        }
        if session.has_notice_lines() {
            self.tell_notices(session);
        }
        self.end_script(client, session)?;
        if !flow.has_waited {
            // A script that asks no server must not keep the others of its thread from working.
            yield_now().await;
        }
        Ok(Outcome::Committed)
    }

    /// Executes a command that waits for nothing; the number of the one to continue with. `None` for
    /// the others.
    #[inline]
    fn at_once(
        &self,
        client: &mut Client,
        place: Place<'_>,
        flow: &mut Flow,
    ) -> Option<Result<usize, Failure>> {
        let next = place.at + 1;
        let is_looking = std::mem::take(&mut flow.is_looking);
        Some(match &place.command.action {
            Action::Set { variable, program } => {
                self.set(client, place, *variable, program).map(|()| next)
            }
            Action::Elif { end, .. } if !is_looking => Ok(*end as usize),
            Action::If { program, otherwise } | Action::Elif { program, otherwise, .. } => {
                self.evaluate(client, place, program).map(|value| {
                    flow.is_looking = !is_true(value);
                    if flow.is_looking { *otherwise as usize } else { next }
                })
            }
            Action::Else { end } => Ok(*end as usize),
            Action::Endif => Ok(next),
            _ => return None,
        })
    }

    async fn run_command<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        flow: &mut Flow,
        tally: &mut Tally,
    ) -> Result<usize, Failure> {
        flow.has_waited |= !client.in_pipeline;
        match &place.command.action {
            Action::Sql(statement) => {
                self.unusual_statement(client, session, place, statement, tally).await?;
            }
            Action::Sleep { amount, unit_us } => {
                self.sleep(client, place, amount, *unit_us).await?;
            }
            // A process costs more than an allocation, and its state would make each transaction's larger.
            Action::Shell(words) => Box::pin(self.shell(client, place, words, None)).await?,
            Action::SetShell { variable, words } => {
                Box::pin(self.shell(client, place, words, Some(*variable))).await?;
            }
            Action::StartPipeline => self.start_pipeline(client, session, place).await?,
            Action::SyncPipeline => self.sync_pipeline(client, session)?,
            Action::EndPipeline => {
                flow.has_waited = true;
                self.end_pipeline(client, session, tally).await?;
            }
            Action::Set { .. }
            | Action::Draw { .. }
            | Action::If { .. }
            | Action::Elif { .. }
            | Action::Else { .. }
            | Action::Endif => {}
        }
        Ok(place.at + 1)
    }

    /// Shows what the server said alongside its answers.
    #[cold]
    fn tell_notices<S: Session>(&self, session: &mut S) {
        for line in session.take_notice_lines() {
            (self.talk)(Talk::Debug(&line));
        }
    }

    /// Nothing may be left open at the end of a script. With an open transaction it still counts, as in the original.
    #[inline]
    fn end_script<S: Session>(&self, client: &mut Client, session: &S) -> Result<(), DbError> {
        if client.in_pipeline {
            return Err(self.abort_error(client, "end of script reached with pipeline open"));
        }
        if session.is_in_transaction() {
            let open = "end of script reached without completing the last transaction";
            client.left_open = Some(self.abort_error(client, open));
        }
        Ok(())
    }

    #[cold]
    fn abort_error(&self, client: &Client, why: &str) -> DbError {
        let text = format!("client {} aborted: {why}", client.id);
        self.print_error(&text);
        DbError::workload(text)
    }

    /// Computes an expression with the client's variables.
    #[inline]
    fn evaluate(
        &self,
        client: &mut Client,
        place: Place<'_>,
        program: &Program,
    ) -> Result<ScriptValue, Failure> {
        let mut scope = ClientScope {
            variables: &mut client.variables,
            rng: &mut client.rng,
            names: &self.names.names,
            talk: &self.talk,
            place: (place.script, place.at + 1),
        };
        program.evaluate(&mut client.stack, &mut scope).map_err(|why| {
            if !why.is_empty() {
                self.print_error(&why);
            }
            Failure::Command("evaluation of meta-command failed")
        })
    }

    /// Executes `\set`.
    #[inline]
    fn set(
        &self,
        client: &mut Client,
        place: Place<'_>,
        variable: u32,
        program: &Program,
    ) -> Result<(), Failure> {
        let value = self.evaluate(client, place, program)?;
        if self.invalid_names[variable as usize] {
            self.say_invalid_name(place, variable);
            return Err(Failure::Command("assignment of meta-command failed"));
        }
        client.variables.set(variable, value);
        Ok(())
    }

    /// A name that can't be one is noticed when it is assigned to.
    #[cold]
    fn say_invalid_name(&self, place: Place<'_>, variable: u32) {
        let (command, name) = (&place.command.name, &self.names.names[variable as usize]);
        self.print_error(&format!("{command}: invalid variable name: \"{name}\""));
    }

    /// Says why a command can't be executed.
    #[cold]
    fn not_executed(&self, why: &str) -> Failure {
        self.print_error(why);
        Failure::Command("execution of meta-command failed")
    }

    /// Executes `\sleep`.
    async fn sleep(
        &self,
        client: &mut Client,
        place: Place<'_>,
        amount: &Amount,
        unit_us: i64,
    ) -> Result<(), Failure> {
        let units = match *amount {
            Amount::Units(units) => units,
            Amount::Variable(variable) => {
                let (command, name) = (&place.command.name, &self.names.names[variable as usize]);
                let Some(text) = client.variables.text(variable) else {
                    let message = format!("{command}: undefined variable \"{name}\"");
                    return Err(self.not_executed(&message));
                };
                let text = shown_text(text);
                let units = leading_int(&text);
                if units == 0 && !text.starts_with(|letter: char| letter.is_ascii_digit()) {
                    let message =
                        format!("{command}: invalid sleep time \"{text}\" for variable \"{name}\"");
                    return Err(self.not_executed(&message));
                }
                units
            }
        };
        let ns = units.saturating_mul(unit_us).saturating_mul(1_000);
        match u64::try_from(ns) {
            Ok(ns @ 1..) => sleep_until(now().saturating_add(ns)).await,
            _ => yield_now().await,
        }
        Ok(())
    }

    /// Executes `\shell` or `\setshell`.
    async fn shell(
        &self,
        client: &mut Client,
        place: Place<'_>,
        words: &[Word],
        variable: Option<u32>,
    ) -> Result<(), Failure> {
        let names = &self.names.names;
        let (name, text) = shell_command(words, &mut client.variables, names)
            .map_err(|why| self.not_executed(&why))?;
        let output = if variable.is_some() { Output::Kept } else { Output::Inherited };
        let (variable, output) =
            match (variable, dyno_reactor::shell(OsStr::from_bytes(&text), output).await) {
                (None, Ok(end)) if end.status.success() => return Ok(()),
                (Some(variable), Ok(end)) => (variable, end.output),
                _ => {
                    let problem = format!("{name}: could not launch shell command");
                    return Err(self.not_executed(&problem));
                }
            };
        let Some(line) = output.split_inclusive(|byte| *byte == b'\n').next() else {
            let problem = format!("{name}: could not read result of shell command");
            return Err(self.not_executed(&problem));
        };
        let line = String::from_utf8_lossy(&line[..line.len().min(LONGEST_ANSWER)]);
        let Some(value) = whole_int(&line) else {
            let problem = format!("{name}: shell command must return an integer (not \"{line}\")");
            return Err(self.not_executed(&problem));
        };
        client.variables.set(variable, ScriptValue::Int(value));
        if self.invalid_names[variable as usize] {
            self.say_invalid_name(place, variable);
            return Err(Failure::Command("execution of meta-command failed"));
        }
        Ok(())
    }

    async fn start_pipeline<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        if self.options.mode == QueryMode::Simple {
            return Err(Failure::Command(
                "cannot use pipeline mode with the simple query protocol",
            ));
        }
        if client.in_pipeline {
            return Err(Failure::Command("already in pipeline mode"));
        }
        if self.options.mode == QueryMode::Prepared {
            self.prepare_pipeline(client, session, place).await?;
        }
        client.in_pipeline = true;
        Ok(())
    }

    fn sync_pipeline<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
    ) -> Result<(), Failure> {
        if !client.in_pipeline {
            return Err(Failure::Command("not in pipeline mode"));
        }
        session.queue_sync().map_err(|error| Failure::Session(error, 0))
    }

    async fn end_pipeline<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if !client.in_pipeline {
            return Err(Failure::Command("not in pipeline mode"));
        }
        client.in_pipeline = false;
        self.flush(client, session, tally).await.map_err(|error| Failure::Session(error, 0))
    }

    /// Says what pgbench says, unless it is the engine's to decide what follows.
    #[cold]
    fn fail<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        place: Place<'_>,
        failure: Failure,
    ) -> DbError {
        self.tell_notices(session);
        client.failed_command = Some(place.at);
        let Place { script, at, command, .. } = place;
        let id = client.id;
        let text = match failure {
            Failure::Session(error, query) => {
                let statement = self.sent_text(client, command);
                let text = server_text(&error, &statement);
                if self.is_survived(&error) {
                    if self.options.verbose_errors.is_some() {
                        let text = format!(
                            "client {id} got an error in command {at} (SQL) of script {script}; {text}"
                        );
                        (self.talk)(Talk::Info(&text));
                    }
                    // A conflict has no fault to be found in its statement, and may be frequent.
                    return if is_conflict(&error) {
                        error
                    } else {
                        error.with_statement(statement)
                    };
                }
                if error.cause() == Cause::ClientCopy {
                    self.print_error("COPY is not supported in pgbench, aborting");
                } else if error.is_fatal() && !error.is_from_server() {
                    // The server left without a word.
                    self.print_error(&text);
                    self.print_error(&format!(
                        "client {id} aborted in command {at} (SQL) of script {script}; perhaps the \
                         backend died while processing"
                    ));
                } else {
                    self.print_error(&format!(
                        "client {id} script {script} aborted in command {at} query {query}: {text}"
                    ));
                }
                return error.with_statement(statement);
            }
            Failure::Command(why) => {
                let name = &command.name;
                format!("client {id} aborted in command {at} ({name}) of script {script}; {why}")
            }
            Failure::Store(name) => format!(
                "client {id} aborted in command {at} ({name}) of script {script}; \
                 \\{name} is not allowed in pipeline mode"
            ),
            Failure::Client(text) => text,
        };
        self.print_error(&text);
        DbError::workload(text)
    }

    /// Returns true for errors after which the client continues: with a retry, or with the next transaction.
    fn is_survived(&self, error: &DbError) -> bool {
        is_conflict(error)
            || (self.options.reconnects && error.is_fatal())
            || (self.options.continue_on_error
                && error.cause() == Cause::Server
                && !error.is_fatal())
    }

    /// The text that the server's positions refer to.
    fn sent_text(&self, client: &Client, command: &ScriptCommand) -> String {
        match &command.action {
            Action::Sql(Statement { text, references, .. }) => {
                let is_substituted =
                    self.options.mode == QueryMode::Simple && !references.is_empty();
                shown_text(if is_substituted { &client.text } else { text })
            }
            _ => String::new(),
        }
    }
}

fn is_conflict(error: &DbError) -> bool {
    matches!(error.class(), ErrorClass::Serialization | ErrorClass::Deadlock)
}

/// Longest command, bytes.
const LONGEST: usize = 254;
/// Bytes of an answer that are looked at.
const LONGEST_ANSWER: usize = 63;

/// The name of a shell command, for messages, and its text with variables put in.
fn shell_command(
    words: &[Word],
    variables: &mut Variables,
    names: &[String],
) -> Result<(String, Vec<u8>), String> {
    let name = match words.first() {
        Some(Word::Text(text)) => text.clone(),
        Some(Word::Variable(variable)) => format!(":{}", names[*variable as usize]),
        None => String::new(),
    };
    let mut text = Vec::new();
    for (number, word) in words.iter().enumerate() {
        if number > 0 {
            text.push(b' ');
        }
        match word {
            Word::Text(word) => text.extend(text_to_bytes(word)),
            Word::Variable(variable) => match variables.text(*variable) {
                Some(value) => text.extend_from_slice(value),
                None => {
                    let variable = &names[*variable as usize];
                    return Err(format!("{name}: undefined variable \":{variable}\""));
                }
            },
        }
        if text.len() > LONGEST {
            return Err(format!("{name}: shell command is too long"));
        }
    }
    Ok((name, text))
}

/// The number in a line with nothing but blanks around it. As in the original only its lower half counts.
fn whole_int(line: &str) -> Option<i64> {
    let number = line.trim_ascii_start();
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
    let suffix = unsigned.trim_start_matches(|letter: char| letter.is_ascii_digit());
    suffix.trim_ascii().is_empty().then(|| i64::from(leading_int(line) as i32))
}
