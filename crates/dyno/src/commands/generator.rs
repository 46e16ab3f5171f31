//! `dyno generator`.

use crate::Done;
use crate::fleet::{NatsArguments, versions};
use dyno_engine::Control;
use dyno_fleet::{Generator, GeneratorEvent};
use dyno_runner::failure::Failure;
use dyno_runner::{Permits, assist};
use dyno_runner::{output, signals};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the end waits for the coordinator to take what was measured last.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno fleet key fleet.key                  once; copy it to all machines
  dyno generator --nats nats://10.0.0.1:4222 --fleet-key fleet.key      on each machine that makes load
  dyno run my-suite.toml --nats nats://10.0.0.1:4222 --fleet-key fleet.key --generators 3     on the one that coordinates
  dyno generator --nats tls://nats.example:4222 --nats-ca ca.pem --nats-creds dyno.creds --fleet-key fleet.key
  dyno generator --nats nats://10.0.0.1:4222 --fleet-key fleet.key --only-hosts 10.0.0.9:3306     loads only that server

It waits for runs, drives its part of each trial and waits again, until Ctrl-C. It answers only those who have the
fleet's key. It finds passwords of targets itself: DYNO_PASSWORD_NAME, ~/.pgpass, ~/.my.cnf; as soon as it has some
that belong to no address, --only-hosts must say to which HOST:PORT they may go. A run sends passwords only where both
of them are connected to NATS by TLS, each for its own address.

It takes only plans of its own version of dyno. It executes no command of a plan, and no Lua script unless
--allow-scripts is given. It writes only to a temporary folder of its own, and of this machine's files a run can name
only the certificates of a target's URL. DYNO_NATS_PASSWORD and DYNO_NATS_TOKEN hold the credentials that the URL of
NATS lacks; DYNO_FLEET_KEY holds the key where --fleet-key is not given.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Name in the paper; the host's name unless given.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Drive only databases at these addresses, separated by commas: HOST, HOST:PORT, the path of a socket, or
    /// cluster:FOLDER for a cluster of `dyno cluster` on this machine, whose password is read from that
    /// folder. Trials on other databases are refused. Without this option a run may name any host, but no
    /// socket.
    #[arg(long, value_name = "HOST[:PORT],...", value_delimiter = ',')]
    only_hosts: Vec<String>,
    /// Execute Lua scripts of runs (`workload = "lua"`), which may do on this machine whatever its user may.
    /// Without this option their trials are refused.
    #[arg(long)]
    allow_scripts: bool,
}

/// Where this process finds passwords that belong to no address.
fn passwords() -> Vec<String> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let is_password = name.starts_with("DYNO_PASSWORD")
            || ["PGPASSWORD", "MYSQL_PWD"].contains(&name.as_str());
        (is_password && !value.is_empty()).then_some(name)
    });
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let file = home.join(".my.cnf");
    let has_file = std::fs::read_to_string(&file).is_ok_and(|text| text.contains("password"));
    variables.chain(has_file.then(|| file.display().to_string())).collect()
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let nats = arguments.nats.options()?.ok_or_else(|| {
        Failure::usage("`dyno generator` needs --nats URL.")
            .with_hint("Start a server with `nats-server` and give its URL: nats://HOST:4222.")
    })?;
    let permits = Permits::new(&arguments.only_hosts)?.allow_scripts(arguments.allow_scripts);
    permits.bind_passwords(&passwords())?;
    // Nobody sits here to be asked for passwords, also where a terminal is open.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(nothing);
    }
    let current: Arc<Mutex<Option<Arc<Control>>>> = Arc::default();
    let stopped = Arc::clone(&current);
    signals::on_interrupt(move || {
        output::talk("Stopping. Once more ends at once.");
        if let Some(control) = &*stopped.lock().unwrap_or_else(PoisonError::into_inner) {
            control.stop();
        }
    })
    .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    assist::remove_stale_folders();
    let fleet = &arguments.nats.fleet;
    let name = arguments.name.as_deref();
    let generator = Generator::open(&nats, fleet, name, versions(), permits.named())?;
    output::talk(&format!(
        "load generator {} of the fleet {fleet} at {}: waiting for work. Ctrl-C ends it.",
        generator.name(),
        nats.shown()
    ));
    let environment = dyno_observe::environment();
    while let Some(event) = generator.next(&signals::has_come) {
        match event {
            GeneratorEvent::Note(text) => output::talk(&text),
            GeneratorEvent::Work(assignment) => {
                let control = assignment.reporter.control();
                *current.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Arc::clone(&control));
                if signals::has_come() {
                    control.stop();
                }
                assist::run(crate::families(), *assignment, &environment, &permits);
                *current.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }
    generator.drain(FAREWELL);
    Ok(())
}
