//! State and statistics of one client, with its variables.

use super::PgBench;
use super::options::{Talk, Talker};
use super::send::Captured;
use super::statistics::ScriptStatistics;
use crate::check::{Journal, RowFate};
use crate::random::PgRng;
use crate::script::{Action, Reference, Scope, ScriptValue, malformed, parse_value, shown_text};
use dyno_core::{
    DbError, EndedTransaction, ErrorClass, Executed, Nanos, Outcome, Param, Statement,
    TransactionId, text_to_bytes,
};
use dyno_reactor::now;
use std::sync::PoisonError;

/// A client of a run: the worker of this workload.
pub struct Client {
    /// From 0.
    pub id: u32,
    pub(super) thread: u32,
    pub(super) variables: Variables,
    pub(super) rng: PgRng,
    /// The random stream as it was when the transaction began.
    pub(super) remembered: PgRng,
    pub(super) began: Nanos,
    pub(super) stack: Vec<ScriptValue>,
    /// The statement that is sent, with its variables put in.
    pub(super) text: Vec<u8>,
    /// Memory for the parameters of a statement.
    pub(super) params: Vec<Param<'static>>,
    /// Prepared statements of its session, by the numbers of their commands.
    pub(super) prepared: Vec<Option<Statement>>,
    /// The error of something that the last script left open, which ends the client after a transaction that counts.
    pub(super) left_open: Option<DbError>,
    /// Values that statements with `\gset` or `\aset` captured, by their numbers.
    pub(super) captured: Vec<Option<Box<Captured>>>,
    pub(super) results: Vec<Result<Executed, DbError>>,
    pub(super) in_pipeline: bool,
    /// Times of the commands of the transaction that is not over yet.
    pub(super) pending: Vec<(u32, Nanos)>,
    /// The command that ended the last attempt.
    pub(super) failed_command: Option<usize>,
    pub(super) statistics: Vec<ScriptStatistics>,
}

impl Client {
    pub(super) fn new(run: &PgBench, id: u32) -> Self {
        let options = &run.options;
        let mut variables = Variables::new(run.names.names.len());
        let startup = &run.startup;
        variables.set(startup.scale, ScriptValue::Int(options.scale));
        variables.set(startup.client_id, ScriptValue::Int(i64::from(id)));
        variables.set(startup.random_seed, ScriptValue::Int(options.seed as i64));
        if let Some(seed) = run.seeds.default_seed {
            variables.set(startup.default_seed, ScriptValue::Int(seed));
        }
        for (&number, (_, text)) in startup.defines.iter().zip(&options.defines) {
            variables.set_text(number, &text_to_bytes(text));
        }
        let commands = options.scripts.iter().flat_map(|(script, _)| &script.commands);
        let captured = commands.map(|command| {
            let Action::Sql(statement) = &command.action else { return None };
            statement.store.as_ref().map(|_| Box::default())
        });
        // A run that is given more workers than clients continues with its own streams.
        let rng = run.seeds.clients.get(id as usize).copied();
        let rng = rng.unwrap_or_else(|| PgRng::new(options.seed ^ u64::from(id)));
        Client {
            id,
            thread: run.client_thread(id.saturating_sub(options.part.clients_before)),
            variables,
            rng,
            remembered: rng,
            began: 0,
            stack: Vec::new(),
            text: Vec::new(),
            params: Vec::new(),
            prepared: vec![None; run.statements],
            left_open: None,
            captured: captured.collect(),
            results: Vec::new(),
            in_pipeline: false,
            pending: Vec::new(),
            failed_command: None,
            statistics: options
                .scripts
                .iter()
                .map(|(script, _)| ScriptStatistics::new(script.commands.len()))
                .collect(),
        }
    }

    #[inline]
    pub(super) fn set_random(&mut self, variable: u32, first: i64, last: i64) {
        let value = self.rng.random(first, last);
        self.variables.set(variable, ScriptValue::Int(value));
    }
}

/// Keeps what a transaction has written into the history, measured or not: the table has it all.
#[inline]
fn record_history_row(journal: &Journal, client: &Client, ended: &EndedTransaction) {
    let fate = match ended.outcome {
        Outcome::Committed => RowFate::Acknowledged,
        Outcome::Failed(ErrorClass::ConnectionLost) => RowFate::Unknown,
        _ => return,
    };
    let Some(variables) = journal.variables(ended.transaction) else { return };
    // A transaction that failed before it drew its numbers has written nothing.
    let values = variables.map(|number| match client.variables.known_value(number) {
        Some(ScriptValue::Int(value)) => Some(value),
        _ => str::from_utf8(client.variables.known_text(number)?).ok()?.trim().parse().ok(),
    });
    if let [Some(tid), Some(bid), Some(aid), Some(delta)] = values {
        journal.record(client.id, fate, [tid, bid, aid, delta]);
    }
}

impl PgBench {
    pub(super) fn print_error(&self, text: &str) {
        (self.talk)(Talk::Error(text));
    }

    /// An attempt begins: the first one remembers the random numbers that all others draw again.
    #[inline]
    pub(super) fn begin_attempt(&self, client: &mut Client, script: TransactionId, attempt: u32) {
        client.in_pipeline = false;
        if self.options.debug && attempt == 0 {
            self.trace_script(client, script);
        }
        if attempt == 0 {
            client.remembered = client.rng;
            client.failed_command = None;
            if self.options.verbose_errors.is_some() {
                client.began = now();
            }
            return;
        }
        client.rng = client.remembered;
        if let Some(command) = client.failed_command.take() {
            client.statistics[script].commands[command].retries += 1;
        }
        self.tell_of_try(client, "repeats the transaction after the error", attempt);
    }

    /// Logs and counts an ended transaction.
    #[inline]
    pub(super) fn count(&self, client: &mut Client, ended: &EndedTransaction) {
        if let Some(log) = self.options.logs.get(client.thread as usize) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.ended(client.id, ended.transaction, ended);
        }
        if let Outcome::Failed(_) = ended.outcome {
            self.tell_of_try(client, "ends the failed transaction", ended.attempts);
        }
        if let Some(journal) = &self.journal {
            record_history_row(journal, client, ended);
        }
        let statistics = &mut client.statistics[ended.transaction];
        if ended.is_measured {
            statistics.add(ended);
            for &(command, latency) in &client.pending {
                statistics.commands[command as usize].latency.add(latency);
            }
            if let (Outcome::Failed(_), Some(command)) = (ended.outcome, client.failed_command) {
                statistics.commands[command].failures += 1;
            }
        }
        client.pending.clear();
    }

    fn tell_of_try(&self, client: &Client, what: &str, tries: u32) {
        let Some(verbose) = self.options.verbose_errors else { return };
        let mut text = format!("client {} {what} (try {tries}", client.id);
        if verbose.max_tries > 0 {
            text.push_str(&format!("/{}", verbose.max_tries));
        }
        if let Some(limit) = verbose.latency_limit {
            let share = 100.0 * (now() - client.began) as f64 / limit as f64;
            text.push_str(&format!(", {share:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        (self.talk)(Talk::Info(&text));
    }
}

pub(super) struct ClientScope<'a> {
    pub(super) variables: &'a mut Variables,
    pub(super) rng: &'a mut PgRng,
    pub(super) names: &'a [String],
    pub(super) talk: &'a Talker,
    /// Script from 0 and command from 1, as `debug()` counts them.
    pub(super) place: (usize, usize),
}

impl Scope for ClientScope<'_> {
    #[inline]
    fn load(&mut self, variable: u32, stack: &mut Vec<ScriptValue>) -> Result<(), String> {
        match self.variables.known_value(variable) {
            Some(value) => stack.push(value),
            None => stack.push(self.variables.value(variable, &self.names[variable as usize])?),
        }
        Ok(())
    }

    #[inline]
    fn rng(&mut self) -> &mut PgRng {
        self.rng
    }

    fn debug(&mut self, value: ScriptValue) {
        let (script, command) = self.place;
        let text = format!("debug(script={script},command={command}): {}", value.described());
        (self.talk)(Talk::Debug(&text));
    }
}

/// A variable: a value, a text, or one made from the other when it was requested.
#[derive(Clone, Debug, Default)]
struct Variable {
    value: Option<ScriptValue>,
    /// Bytes in any encoding.
    text: Vec<u8>,
    has_text: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    pub(super) fn new(count: usize) -> Self {
        Variables(vec![Variable::default(); count])
    }

    /// Gives a variable a value.
    #[inline]
    pub(super) fn set(&mut self, number: u32, value: ScriptValue) {
        let variable = &mut self.0[number as usize];
        variable.value = Some(value);
        variable.has_text = false;
    }

    pub(super) fn set_text(&mut self, number: u32, text: &[u8]) {
        let variable = &mut self.0[number as usize];
        variable.value = None;
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.has_text = true;
    }

    /// The value in an expression. `name` is for messages.
    ///
    /// # Errors
    /// pgbench's message; empty if it has none.
    #[inline]
    pub(super) fn value(&mut self, number: u32, name: &str) -> Result<ScriptValue, String> {
        match self.0[number as usize].value {
            Some(value) => Ok(value),
            None => self.value_of_text(number, name),
        }
    }

    #[cold]
    fn value_of_text(&mut self, number: u32, name: &str) -> Result<ScriptValue, String> {
        let variable = &mut self.0[number as usize];
        if !variable.has_text {
            return Err(format!("undefined variable \"{name}\""));
        }
        let value = match str::from_utf8(&variable.text) {
            Ok(text) => parse_value(text, name)?,
            Err(_) => return Err(malformed(name, &shown_text(&variable.text))),
        };
        variable.value = Some(value);
        Ok(value)
    }

    /// The text that replaces the variable in SQL; `None` when it is undefined.
    #[inline]
    pub(super) fn text(&mut self, number: u32) -> Option<&[u8]> {
        let variable = &mut self.0[number as usize];
        if !variable.has_text {
            let value = variable.value?;
            let mut bytes = std::mem::take(&mut variable.text);
            bytes.clear();
            // Nothing is in it but memory to be used again.
            let mut text = String::from_utf8(bytes).unwrap_or_default();
            value.push_text(&mut text);
            variable.text = text.into_bytes();
            variable.has_text = true;
        }
        Some(&variable.text)
    }

    /// An integer is sent without a text.
    #[inline]
    pub(super) fn make_text_unless_int(&mut self, number: u32) {
        if !matches!(self.0[number as usize].value, Some(ScriptValue::Int(_))) {
            self.text(number);
        }
    }

    /// The parameters of most statements: integers that have no text. False where others are among them.
    #[inline]
    pub(super) fn bind_ints(&self, references: &[Reference], params: &mut [Param<'_>]) -> bool {
        for (reference, param) in references.iter().zip(params) {
            match &self.0[reference.variable as usize] {
                Variable { value: Some(ScriptValue::Int(value)), has_text: false, .. } => {
                    *param = Param::Int(*value);
                }
                _ => return false,
            }
        }
        true
    }

    /// The variable as a parameter: its text, if there is one and `prefers_text`, else its value; NULL when undefined.
    #[inline]
    pub(super) fn param(&self, number: u32, prefers_text: bool) -> Param<'_> {
        let variable = &self.0[number as usize];
        if variable.has_text && (prefers_text || variable.value.is_none()) {
            return Param::Text(&variable.text);
        }
        match variable.value {
            Some(ScriptValue::Int(value)) => Param::Int(value),
            Some(ScriptValue::Double(value)) => Param::Double(value),
            Some(ScriptValue::Bool(value)) => Param::Int(value.into()),
            Some(ScriptValue::Null) | None => Param::Null,
        }
    }

    /// The text, if it has been requested since the last assignment or was given.
    #[inline]
    pub(super) fn known_text(&self, number: u32) -> Option<&[u8]> {
        let variable = &self.0[number as usize];
        variable.has_text.then_some(variable.text.as_slice())
    }

    /// The value, if there is one without looking into a text.
    #[inline]
    pub(super) fn known_value(&self, number: u32) -> Option<ScriptValue> {
        self.0[number as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_are_made_from_each_other() {
        let mut variables = Variables::new(2);
        assert_eq!(variables.text(0), None);
        assert_eq!(variables.value(0, "x"), Err("undefined variable \"x\"".to_owned()));
        variables.set(0, ScriptValue::Double(0.5));
        assert_eq!(variables.text(0), Some(&b"0.5"[..]));
        variables.set(0, ScriptValue::Int(7));
        assert_eq!(variables.known_text(0), None);
        assert_eq!(variables.text(0), Some(&b"7"[..]));
        variables.set_text(0, b"on");
        assert_eq!(variables.known_value(0), None);
        assert_eq!(variables.value(0, "x"), Ok(ScriptValue::Bool(true)));
        assert_eq!(variables.text(0), Some(&b"on"[..]));
        variables.set_text(1, b"");
        assert_eq!(variables.value(1, "y"), Err(String::new()));
        variables.set_text(1, b"\xe9z");
        let message = "malformed variable \"y\" value: \"?z\"";
        assert_eq!(variables.value(1, "y"), Err(message.to_owned()));
    }
}
