//! `dyno fleet`: the key of a fleet, and who is in it.

use crate::Done;
use crate::fleet::{NatsArguments, versions};
use clap::Subcommand;
use dyno_facts::text_table;
use dyno_fleet::{ClockOffset, FleetKey, Present, Versions, present};
use dyno_runner::failure::Failure;
use dyno_runner::output;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Examples:
  dyno fleet key fleet.key                                        make the key; copy it to all machines
  dyno fleet ls --nats nats://10.0.0.1:4222 --fleet-key fleet.key     who makes load there

Anybody who has the key may order load and report results; dyno answers nobody else.";

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Make a new key in a file that only its owner can read.
    Key(KeyFile),
    /// List the load generators: version, work, load of the machine, offset of its clock, answer. Exits with 1 if there
    /// are none.
    Ls(Ls),
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyFile {
    /// The file; it must not exist yet.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ls {
    #[command(flatten)]
    nats: NatsArguments,
    /// Seconds to wait for answers.
    #[arg(long, value_name = "S", default_value_t = 2)]
    wait: u64,
}

pub(crate) fn run(command: &FleetCommand) -> Done {
    match command {
        FleetCommand::Key(key) => {
            FleetKey::draw()?.write(&key.file)?;
            let file = key.file.display();
            output::talk(&format!(
                "The key is in {file}. Copy it to all machines of the fleet and give them --fleet-key {file}."
            ));
            Ok(())
        }
        FleetCommand::Ls(arguments) => list(arguments),
    }
}

fn list(arguments: &Ls) -> Done {
    let nats = arguments.nats.options()?.ok_or_else(|| {
        Failure::usage("`dyno fleet ls` needs --nats URL.")
            .with_hint("Give the URL that the load generators have: nats://HOST:4222.")
    })?;
    let fleet = &arguments.nats.fleet;
    let (found, refused) = present(&nats, fleet, Duration::from_secs(arguments.wait))?;
    refused.iter().for_each(|why| output::talk(&format!("warning: {why}")));
    if found.is_empty() {
        let message =
            format!("No load generator of the fleet `{fleet}` answers at {}.", nats.shown());
        return Err(Failure::new(message).with_hint(
            "`dyno generator` starts one. Those that hang, or have another key, do not answer.",
        ));
    }
    let own = versions();
    let rows: Vec<Vec<String>> = found.iter().map(|one| row(one, &own)).collect();
    let heads = ["generator", "host", "version", "works for", "load", "clock", "seen"];
    output::data(&text_table(&heads, &rows, |place| place >= 4));
    Ok(())
}

fn row(present: &Present, own: &Versions) -> Vec<String> {
    let hello = &present.hello;
    let version = match hello.versions == *own {
        true => hello.versions.dyno.clone(),
        false => format!("{} (unfit)", hello.versions),
    };
    vec![
        hello.name.clone(),
        hello.environment.host.clone(),
        version,
        hello.run.as_ref().map_or("nobody".to_owned(), |run| format!("run {run}")),
        format!("{:.2}", hello.load),
        present.clock.as_ref().map_or("unknown".to_owned(), clock),
        format!("{} ms ago", present.answered.as_millis()),
    ]
}

/// How far a calendar is ahead of the one here.
fn clock(offset: &ClockOffset) -> String {
    let [ahead_ms, bound_ms] =
        [offset.calendar_ahead as f64, offset.bound as f64].map(|ns| ns / 1e6);
    format!("{ahead_ms:+.1} ms \u{b1} {bound_ms:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_behind_has_a_minus() {
        let offset =
            ClockOffset { calendar_ahead: -2_340_000, bound: 160_000, ..ClockOffset::default() };
        assert_eq!(clock(&offset), "-2.3 ms \u{b1} 0.2");
    }
}
