//! `dyno calibrate`.

mod effects;
mod probe;

use crate::Done;
use crate::terminal::human_time;
use dyno_core::{Dialect, Nanos, Workload};
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, DriveError, TrialEnd, TrialResult, TrialSpec};
use dyno_facts::EffectFacts;
use dyno_facts::format::{percent, short};
use dyno_facts::text_table;
use dyno_nullserver::{Config, Handle, start};
use dyno_runner::calibration::{Calibration, CalibrationPoint};
use dyno_runner::databases::{Database, reach};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{DriveOn, drive_on};
use dyno_runner::{output, signals};
use dyno_store::now_utc;
use dyno_sysbench::{DRIVE_ON, Sysbench, SysbenchOptions, SysbenchTest};
use effects::{CostUnit, EffectSession, Measured};
use probe::Probe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Digests of a statement that tell what one costs: about a millisecond.
const DIGESTS: u64 = 2_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno calibrate
  dyno calibrate --workers 1,16,256 --seconds 5
  dyno calibrate --effects 1%,2%,5%
  dyno calibrate --effects 2%,5% --target mysql://root@db:3306/test --budget 10m

The load generator runs point selects against a server in the same process that answers at once with
canned rows, over TCP. Both share the CPUs, so the result is a lower bound of what it reaches
against a server on another machine. The result is kept in $XDG_STATE_HOME/dyno/calibration.json
(~/.local/state without that) for this binary and machine. Every later trial is compared with it:
where it is less than three times the rate of the trial, the load generator may have been the limit.

With --effects, known effects pass through the whole chain from load to verdict instead: pairs of trials with and
without each effect in balanced order, judged as `dyno run --until-decided` judges. The table says which
are found on this machine, today, after how many pairs, by throughput and by the server's CPU time for a
transaction, and what is found where there is none. The table is kept in the same file, and papers of
later runs list it among their limits. The null server delays each answer. A target computes digests in each
statement, on a table of dyno's own, which is dropped at the end and after Ctrl-C.")]
pub(crate) struct Arguments {
    /// Numbers of workers, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: Vec<u32>,
    /// Seconds for each point.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Known effects, such as 1%,2%,5%: shares that are taken from the throughput.
    #[arg(long, value_delimiter = ',', value_name = "SHARES", value_parser = share)]
    effects: Vec<f64>,
    /// With --effects: the database that has them; the null server unless given.
    #[arg(long, value_name = "URL", requires = "effects")]
    target: Option<String>,
    /// With --effects: begin no further pair of trials after this time, such as 90s or 10m.
    #[arg(long, value_name = "TIME", requires = "effects", default_value = "4m", value_parser = budget)]
    budget: f64,
}

fn share(text: &str) -> Result<f64, String> {
    dyno_suite::share(text)
        .ok_or_else(|| "it takes a share such as 2%, from 0.01% to 50%".to_owned())
}

fn budget(text: &str) -> Result<f64, String> {
    let seconds = dyno_suite::seconds(text).filter(|seconds| (1.0..=86_400.0).contains(seconds));
    seconds
        .ok_or_else(|| "it takes a length of time such as 90s, 30m or 2h, from 1s to 1d".to_owned())
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
    let mut calibration = Calibration::to_be_kept(&dyno_observe::environment());
    if !arguments.effects.is_empty() {
        calibration.effects = known_effects(arguments, &control)?;
        output::data(&effects::table(&calibration.effects));
        effects::say(&calibration.effects);
        return keep(&calibration);
    }
    let mut points = Vec::new();
    for dialect in [Dialect::Mysql, Dialect::Postgres] {
        for &workers in &arguments.workers {
            let server = null_server()?;
            points.push(point(&server, dialect, workers, arguments.seconds, &control)?);
        }
    }
    output::data(&table(&points));
    calibration.points = points;
    keep(&calibration)
}

fn keep(calibration: &Calibration) -> Done {
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
    let database = null_database(protocol, port)?;
    measured(&database, protocol, workers, seconds, control)
}

fn null_database(protocol: &str, port: Option<u16>) -> Result<Database, Failure> {
    let port = port.ok_or_else(|| Failure::new("The null server has no port."))?;
    let target: TargetUrl = format!("{protocol}://calibrate@127.0.0.1:{port}/null")
        .parse()
        .map_err(|error| Failure::new(sentence(&format!("The null server: {error}"))))?;
    Database::open(&target).map_err(|error| Failure::from(&error))
}

fn measured(
    database: &Database,
    protocol: &str,
    workers: u32,
    seconds: f64,
    control: &Control,
) -> Result<CalibrationPoint, Failure> {
    let workload = point_select(database.dialect())?;
    let warmup = nanos(seconds / 4.0);
    let spec = TrialSpec { warmup, ..TrialSpec::closed(workers) };
    let result = driven((&workload, DRIVE_ON), database, spec, seconds, control)?;
    let statements = result.total.work().statements() as f64;
    let length_s = result.length() as f64 / 1e9;
    Ok(CalibrationPoint {
        protocol: protocol.to_owned(),
        workers,
        statements_per_s: statements / length_s.max(1e-9),
        cpu_us_per_statement: result.total.cpu_ns as f64 / 1e3 / statements.max(1.0),
    })
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// The one table that the null server shows.
fn point_select(dialect: Dialect) -> Result<Sysbench, Failure> {
    let options = SysbenchOptions::from_pairs(SysbenchTest::PointSelect, &[])
        .map_err(|error| Failure::new(error.message))?;
    Ok(Sysbench::new(options, dialect))
}

fn driven<W: Workload>(
    (workload, drive): (&W, DriveOn<W>),
    database: &Database,
    spec: TrialSpec,
    seconds: f64,
    control: &Control,
) -> Result<TrialResult, Failure> {
    let spec = TrialSpec { duration: Some(nanos(seconds)), ..spec };
    let interrupted = || Failure::interrupted("The calibration was interrupted; nothing was kept.");
    let result = match drive(database, workload, &spec, control, &mut ()) {
        // Before its workers were connected.
        Err(DriveError::Interrupted) => return Err(interrupted()),
        driven => driven?,
    };
    match &result.ended {
        TrialEnd::Time | TrialEnd::Events => Ok(result),
        TrialEnd::Interrupted => Err(interrupted()),
        TrialEnd::Aborted(error) => Err(Failure::from(error)),
        wrong => Err(Failure::new(wrong.failure().unwrap_or_default())),
    }
}

/// Transactions of one worker: one after the other, so that what one costs more is missing in the throughput.
fn rate<W: Workload>(
    workload: (&W, DriveOn<W>),
    database: &Database,
    seconds: f64,
    control: &Control,
) -> Result<(f64, u64), Failure> {
    let result = driven(workload, database, TrialSpec::closed(1), seconds, control)?;
    let counts = result.total.counts();
    if counts.failed > 0 || counts.committed == 0 {
        return Err(Failure::new("The statement that known effects are injected into has failed."));
    }
    let length_s = result.length() as f64 / 1e9;
    Ok((counts.committed as f64 / length_s.max(1e-9), counts.committed))
}

fn known_effects(arguments: &Arguments, control: &Control) -> Result<Vec<EffectFacts>, Failure> {
    let place = if arguments.target.is_some() { "the target" } else { "the null server" };
    let shares: Vec<String> = arguments.effects.iter().map(|share| percent(*share)).collect();
    output::talk(&format!(
        "Known effects of {}, and none, on {place}: at most about {}, in trials of {} s",
        shares.join(", "),
        human_time(arguments.budget),
        short(effects::trial_s(shares.len(), arguments.budget))
    ));
    let (target, mut found) = match &arguments.target {
        Some(url) => on_target(url, arguments, control)?,
        None => ("null server".to_owned(), on_null_server(arguments, control)?),
    };
    let at = now_utc();
    found.iter_mut().for_each(|of| (of.target, of.at) = (target.clone(), at.clone()));
    Ok(found)
}

fn on_null_server(arguments: &Arguments, control: &Control) -> Result<Vec<EffectFacts>, Failure> {
    let server = null_server()?;
    let database = null_database("mysql", server.config.mysql_port)?;
    let workload = point_select(database.dialect())?;
    session(arguments, CostUnit::Seconds(1e-9), &mut |cost, seconds| {
        server.set_delay(Duration::from_nanos(cost));
        let (tps, _) = rate((&workload, DRIVE_ON), &database, seconds, control)?;
        // It shares its process with the load generator.
        Ok(Measured { tps, cpu_us: None })
    })
}

fn on_target(
    url: &str,
    arguments: &Arguments,
    control: &Control,
) -> Result<(String, Vec<EffectFacts>), Failure> {
    let reached = reach("target", url)?;
    let process = reached.process();
    let (database, dialect) = (&reached.database, reached.database.dialect());
    if Probe::new(dialect, 0).is_none() {
        return Err(Failure::usage(
            "Embedded databases compute no digests: no known effect can be injected.",
        ));
    }
    let admin = database.admin();
    probe::make(&admin).map_err(|error| Failure::from(&error))?;
    let effects =
        session(arguments, CostUnit::Unknown { probe: DIGESTS }, &mut |digests, seconds| {
            let workload = Probe::new(dialect, digests)
                .ok_or_else(|| Failure::new("The server computes no digests."))?;
            let before = process.as_ref().and_then(|process| process.usage());
            let (tps, committed) = rate((&workload, drive_on), database, seconds, control)?;
            let after = process.as_ref().and_then(|process| process.usage());
            let used_s = before.zip(after).and_then(|(before, after)| after.used_s(&before));
            Ok(Measured { tps, cpu_us: used_s.map(|used_s| used_s * 1e6 / committed as f64) })
        });
    if let Err(error) = probe::remove(&admin) {
        let table = probe::TABLE;
        output::talk(&format!("warning: the table {table} is left: {error}"));
    }
    Ok((reached.facts.product, effects?))
}

fn session(
    arguments: &Arguments,
    unit: CostUnit,
    measure: &mut effects::MeasureTrial<'_>,
) -> Result<Vec<EffectFacts>, Failure> {
    let begun = Instant::now();
    let elapsed_s = || begun.elapsed().as_secs_f64();
    EffectSession { budget_s: arguments.budget, elapsed_s: &elapsed_s, measure }
        .run(&arguments.effects, unit)
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
