//! `dyno calibrate`.

use crate::Done;
use dyno_core::{Dialect, Driver, Nanos};
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, TrialEnd, TrialSpec, drive};
use dyno_facts::format::short;
use dyno_facts::text_table;
use dyno_nullserver::{Config, Handle, start};
use dyno_runner::calibration::{Calibration, CalibrationPoint};
use dyno_runner::databases::{Database, with_driver};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::{output, signals};
use dyno_sysbench::{Sysbench, SysbenchOptions, SysbenchTest};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno calibrate
  dyno calibrate --workers 1,16,256 --seconds 5

The load generator runs point selects against a server in the same process that answers at once with
canned rows, over TCP. What it reaches is less than it could against a server on another machine,
because both share the CPUs: a lower bound. It is kept in $XDG_STATE_HOME/dyno/calibration.json
(~/.local/state without that) for this binary and machine. Every later trial is held against it: below
three times the rate of the trial, the load generator may have been the limit.")]
pub(crate) struct Arguments {
    /// Numbers of workers, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: Vec<u32>,
    /// Seconds for each point.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3_600.0).contains(seconds));
    seconds.ok_or_else(|| "it takes seconds from 0.1 to 3600".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let control = Arc::new(Control::new());
    let stopped = Arc::clone(&control);
    signals::end_on_interrupt("nothing of the calibration is kept", move || stopped.stop())
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    let environment = dyno_observe::environment();
    let mut points = Vec::new();
    for dialect in [Dialect::Mysql, Dialect::Postgres] {
        for &workers in &arguments.workers {
            let server = null_server()?;
            points.push(point(&server, dialect, workers, arguments.seconds, &control)?);
        }
    }
    output::data(&table(&points));
    let calibration =
        Calibration { host: environment.host, binary_sha256: environment.binary_sha256, points };
    let file = calibration.keep()?;
    output::talk(&format!("written: {}", file.display()));
    Ok(())
}

fn null_server() -> Result<Handle, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let config =
        Config { mysql_port: Some(0), postgres_port: Some(0), threads: cores, ..Config::default() };
    start(config).map_err(|error| Failure::new(format!("The null server can't begin: {error}.")))
}

fn point(
    server: &Handle,
    dialect: Dialect,
    workers: u32,
    seconds: f64,
    control: &Control,
) -> Result<CalibrationPoint, Failure> {
    let (protocol, port) = match dialect {
        Dialect::Postgres => ("postgres", server.config.postgres_port),
        Dialect::Mysql | Dialect::Sqlite => ("mysql", server.config.mysql_port),
    };
    let plural = if workers == 1 { "" } else { "s" };
    output::talk(&format!("{protocol}, {workers} worker{plural}, {seconds} s"));
    let port = port.ok_or_else(|| Failure::new("The null server has no port."))?;
    let target: TargetUrl = format!("{protocol}://calibrate@127.0.0.1:{port}/null")
        .parse()
        .map_err(|error| Failure::new(sentence(&format!("The null server: {error}"))))?;
    let database = Database::open(&target).map_err(|error| Failure::from(&error))?;
    with_driver!(&database, driver => measured(driver, protocol, workers, seconds, control))
}

fn measured<D: Driver>(
    driver: &D,
    protocol: &str,
    workers: u32,
    seconds: f64,
    control: &Control,
) -> Result<CalibrationPoint, Failure> {
    let nanos = |seconds: f64| (seconds * 1e9) as Nanos;
    // The one table that the null server shows.
    let options = SysbenchOptions::from_pairs(SysbenchTest::PointSelect, &[])
        .map_err(|error| Failure::new(sentence(&error.to_string())))?;
    let workload = Sysbench::new(options, driver.dialect());
    let spec = TrialSpec {
        warmup: nanos(seconds / 4.0),
        duration: Some(nanos(seconds)),
        ..TrialSpec::closed(workers)
    };
    let result = drive(&workload, driver, &spec, control, &mut ())?;
    match &result.ended {
        TrialEnd::Time | TrialEnd::Events => {}
        TrialEnd::Interrupted => {
            return Err(Failure::new("The calibration was interrupted; nothing was kept."));
        }
        TrialEnd::Aborted(error) => return Err(Failure::from(error)),
        miscounted @ TrialEnd::Miscounted { .. } => {
            return Err(Failure::new(miscounted.failure().unwrap_or_default()));
        }
    }
    let statements = result.total.work().statements() as f64;
    let length_s = result.length() as f64 / 1e9;
    Ok(CalibrationPoint {
        protocol: protocol.to_owned(),
        workers,
        statements_per_s: statements / length_s.max(1e-9),
        cpu_us_per_statement: result.total.cpu_ns as f64 / 1e3 / statements.max(1.0),
    })
}

fn table(points: &[CalibrationPoint]) -> String {
    let row = |point: &CalibrationPoint| {
        vec![
            point.protocol.clone(),
            point.workers.to_string(),
            short(point.statements_per_s),
            short(point.cpu_us_per_statement),
        ]
    };
    let rows: Vec<Vec<String>> = points.iter().map(row).collect();
    text_table(&["protocol", "workers", "statements/s", "CPU us/statement"], &rows, |place| {
        place >= 1
    })
}
