//! What pgbench prints of every step with `--debug`.

use super::PgBench;
use super::client::Client;
use super::execute::Place;
use super::options::Talk;
use super::send::substitute;
use crate::script::{Action, QueryMode, ScriptCommand, shown_text};
use dyno_core::TransactionId;

impl PgBench {
    fn trace(&self, client: &Client, what: &str) {
        (self.talk)(Talk::Info(&format!("client {} {what}", client.id())));
    }

    #[cold]
    pub(super) fn trace_script(&self, client: &Client, script: TransactionId) {
        let name = self.options().scripts[script].0.description();
        self.trace(client, &format!("executing script \"{name}\""));
    }

    /// Prints a command before it is executed.
    #[cold]
    pub(super) fn trace_command(&self, client: &mut Client, place: Place<'_>) {
        let Action::Sql(statement) = &place.command.action else {
            self.trace(client, &format!("executing {}", meta_words(place.command)));
            if matches!(place.command.action, Action::EndPipeline) {
                self.trace(client, "receiving");
            }
            return;
        };
        let text = match self.options().mode {
            QueryMode::Simple => {
                let Client { variables, text, .. } = client;
                substitute(statement, variables, text);
                shown_text(&client.text)
            }
            QueryMode::Extended => shown_text(&statement.text),
            QueryMode::Prepared => {
                if client.prepared[place.number].is_none() {
                    self.trace_preparation(client, place.number);
                }
                self.prepared_name(place.number)
            }
        };
        self.trace(client, &format!("sending {text}"));
        if !client.in_pipeline {
            self.trace(client, "receiving");
        }
    }

    #[cold]
    pub(super) fn trace_preparation(&self, client: &Client, number: usize) {
        self.trace(client, &format!("preparing {}", self.prepared_name(number)));
    }

    /// The original's name of the prepared statement of this command: they are numbered over all scripts.
    pub(super) fn prepared_name(&self, number: usize) -> String {
        let commands = self.options().scripts.iter().flat_map(|(script, _)| script.commands());
        let before = commands.take(number).filter(|command| command.is_sql()).count();
        format!("P_{before}")
    }
}

/// A meta command without its expression.
fn meta_words(command: &ScriptCommand) -> String {
    let words = command.first_line().split_ascii_whitespace();
    let count = match &command.action {
        Action::Set { .. } | Action::Draw { .. } => 2,
        Action::If { .. } | Action::Elif { .. } => 1,
        _ => usize::MAX,
    };
    words.take(count).collect::<Vec<_>>().join(" ")
}
