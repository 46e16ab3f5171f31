//! `dyno fleet`: the key of a fleet, and who is in it.

use crate::{CommandResult, env_variable};
use clap::Subcommand;
use dyno_engine::Control;
use dyno_facts::{SecretUrl, text_table};
use dyno_fleet::{
    ClockOffset, FLEET, FleetKey, Generator, GeneratorEvent, NatsOptions, NatsSecret, Present,
    Versions, present,
};
use dyno_runner::failure::Failure;
use dyno_runner::fleet::assist;
use dyno_runner::{Permits, output, signals};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) const HELP: &str = include_str!("../../help/fleet.txt").trim_ascii_end();

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

/// Executes a command of `dyno fleet`.
pub(crate) fn run(command: &FleetCommand) -> CommandResult {
    match command {
        FleetCommand::Key(key) => {
            FleetKey::draw()?.write(&key.file)?;
            let file = key.file.display();
            output::talk(&format!(
                "The key is in {file}. Copy it to all machines of the fleet and give them --fleet-key {file}."
            ));
            Ok(())
        }
        FleetCommand::Ls(arguments) => list_generators(arguments),
    }
}

fn list_generators(arguments: &Ls) -> CommandResult {
    let nats = arguments.nats.options()?.ok_or_else(|| {
        Failure::usage("`dyno fleet ls` needs --nats URL.")
            .with_hint("Give the URL that the load generators have: nats://HOST:4222.")
    })?;
    let fleet = &arguments.nats.fleet;
    let (generators, problems) = present(&nats, fleet, Duration::from_secs(arguments.wait))?;
    problems.iter().for_each(|problem| output::talk(&format!("warning: {problem}")));
    if generators.is_empty() {
        let message =
            format!("No load generator of the fleet `{fleet}` answers at {}.", nats.shown());
        return Err(Failure::new(message).with_hint(
            "`dyno generator` starts one. Those that hang, or have another key, do not answer.",
        ));
    }
    let versions = versions();
    let rows: Vec<Vec<String>> =
        generators.iter().map(|generator| generator_row(generator, &versions)).collect();
    let heads = ["generator", "host", "version", "works for", "load", "clock", "seen"];
    output::data(&text_table(&heads, &rows, |place| place >= 4));
    Ok(())
}

fn generator_row(generator: &Present, own_versions: &Versions) -> Vec<String> {
    let hello = &generator.hello;
    let version = if hello.versions == *own_versions {
        hello.versions.dyno.clone()
    } else {
        format!("{} (unfit)", hello.versions)
    };
    vec![
        hello.name.clone(),
        hello.environment.host.clone(),
        version,
        hello.run.as_ref().map_or("nobody".to_owned(), |run| format!("run {run}")),
        format!("{:.2}", hello.load),
        generator.clock.as_ref().map_or("unknown".to_owned(), clock),
        format!("{} ms ago", generator.answered.as_millis()),
    ]
}

/// The time by which a calendar is ahead of the one here.
fn clock(offset: &ClockOffset) -> String {
    let [ahead_ms, bound_ms] =
        [offset.calendar_ahead as f64, offset.bound as f64].map(|ns| ns / 1e6);
    format!("{ahead_ms:+.1} ms \u{b1} {bound_ms:.1}")
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct NatsArguments {
    /// NATS server through which load generators are reached, such as nats://HOST:4222 or
    /// tls://HOST:4222; separate the servers of a cluster by commas.
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Name of the fleet: load generators and runs of the same name find each other.
    #[arg(long, value_name = "NAME", default_value = FLEET)]
    pub(crate) fleet: String,
    /// File with NATS credentials (JWT and key).
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// File with the certificates that sign the NATS server's (PEM); only encrypted connections are
    /// made then.
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// File with the client certificate (PEM), if the NATS server asks for one.
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    nats_cert: Option<PathBuf>,
    /// File with the key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
    /// File with the fleet's key, as `dyno fleet key` has made it; DYNO_FLEET_KEY may hold the key instead.
    #[arg(long, value_name = "FILE")]
    fleet_key: Option<PathBuf>,
    /// Work without a fleet key: anybody who may publish to the NATS server can then order load and forge results.
    #[arg(long, conflicts_with = "fleet_key")]
    insecure: bool,
}

impl NatsArguments {
    /// `None` without --nats.
    pub(crate) fn options(&self) -> Result<Option<NatsOptions>, Failure> {
        let Some(url) = &self.nats else { return Ok(None) };
        let token = env_variable("DYNO_NATS_TOKEN").map(NatsSecret::Token);
        Ok(Some(NatsOptions {
            url: SecretUrl::new(url),
            secret: token.or_else(|| env_variable("DYNO_NATS_PASSWORD").map(NatsSecret::Password)),
            credentials: self.nats_creds.clone(),
            authority: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
            key: self.key(env_variable("DYNO_FLEET_KEY"))?,
        }))
    }

    /// Returns the fleet's key: from a file, else from the variable's text; an open one with `--insecure`.
    fn key(&self, from_variable: Option<String>) -> Result<FleetKey, Failure> {
        if self.insecure {
            output::talk(
                "warning: --insecure: this fleet has no key. Whoever may publish to dyno.> on that NATS server can have its \
                 machines log in and make load wherever they may, and can make results up.",
            );
            return Ok(FleetKey::OPEN);
        }
        match (&self.fleet_key, from_variable) {
            (Some(file), _) => Ok(FleetKey::read(file)?),
            (None, Some(text)) => Ok(FleetKey::parse(&text)?),
            (None, None) => Err(Failure::usage("A fleet needs a key, which all its members share.")
                .with_hint(
                    "`dyno fleet key FILE` makes one: copy it to all machines and give --fleet-key FILE, or the key in \
                     DYNO_FLEET_KEY. --insecure does without.",
                )),
        }
    }
}

/// Returns the versions of this program, which all members of a fleet must have.
pub(crate) fn versions() -> Versions {
    Versions::this(env!("CARGO_PKG_VERSION"))
}

/// The time for which the end waits until the coordinator has taken the last figures.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/generator.txt").trim_ascii_end())]
pub(crate) struct GeneratorArguments {
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

/// Variables and files in which this process finds passwords that belong to no address.
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

pub(crate) fn run_generator(arguments: &GeneratorArguments) -> CommandResult {
    let nats = arguments.nats.options()?.ok_or_else(|| {
        Failure::usage("`dyno generator` needs --nats URL.")
            .with_hint("Start a server with `nats-server` and give its URL: nats://HOST:4222.")
    })?;
    let permits = Permits::new(&arguments.only_hosts, arguments.allow_scripts)?;
    permits.bind_passwords(&passwords())?;
    // No one is here to type passwords, even if a terminal is open.
    if let Ok(null) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null);
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
                assist(crate::families(), *assignment, &environment, &permits);
                *current.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }
    generator.drain(FAREWELL);
    Ok(())
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
