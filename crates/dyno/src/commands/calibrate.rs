//! `dyno calibrate`: known effects on their way from the load to a verdict, which of them are found and after how
//! many pairs.
//!
//! Pairs of trials with and without an effect are made in balanced order, a pair of each effect in turn, so that
//! what happens to the machine meets all alike. One of them has no effect: what is found there is noise. The
//! verdicts are those of `dyno run --until-decided`, which stay valid although they are looked at after every pair.
//! The load reads one row of a table of dyno's own; its statement has a part of known cost, which the server
//! computes.

use super::run::parse_share;
use crate::CommandResult;
use crate::terminal::human_time;
use dyno_core::{
    AdminDriver, DbError, Dialect, Discard, Nanos, Outcome, Param, ParamType, Rng, Session,
    Statement, Tally, TransactionId, TransactionKind, WorkerId, Workload, counted,
};
use dyno_drivers::target::TargetUrl;
use dyno_engine::{Control, DriveError, TrialEnd, TrialResult, TrialSpec};
use dyno_facts::format::{percent, short};
use dyno_facts::statistics::Metric;
use dyno_facts::statistics::order::balanced;
use dyno_facts::statistics::ratio::{DEFAULT_MARGIN, Judging, PairedRatio, RatioVerdict};
use dyno_facts::{EffectFacts, text_table};
use dyno_nullserver::{Config, Handle, start};
use dyno_runner::calibration::{Calibration, CalibrationPoint};
use dyno_runner::databases::{self, Database, in_session, reach};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{DriveOn, drive_on};
use dyno_runner::{output, signals};
use dyno_store::now_utc;
use dyno_sysbench::{DRIVE_ON, Sysbench, SysbenchOptions, SysbenchTest};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Digests of a statement that tell what one costs: about a millisecond.
const DIGESTS: u64 = 2_000;

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/calibrate.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// Numbers of workers, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: Vec<u32>,
    /// Seconds for each point.
    #[arg(long, default_value_t = 3.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Known effects, such as 1%,2%,5%: shares that are taken from the throughput.
    #[arg(long, value_delimiter = ',', value_name = "SHARES", value_parser = parse_share)]
    effects: Vec<f64>,
    /// With --effects: the database that has them; the null server unless given.
    #[arg(long, value_name = "URL", requires = "effects")]
    target: Option<String>,
    /// With --effects: begin no further pair of trials after this time, such as 90s or 10m.
    #[arg(long, value_name = "TIME", requires = "effects", default_value = "4m", value_parser = parse_budget)]
    budget: f64,
}

fn parse_budget(text: &str) -> Result<f64, &'static str> {
    let seconds = dyno_suite::seconds(text).filter(|seconds| (1.0..=86_400.0).contains(seconds));
    seconds.ok_or("it takes a length of time such as 90s, 30m or 2h, from 1s to 1d")
}

fn parse_seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3_600.0).contains(seconds));
    seconds.ok_or("it takes seconds from 0.1 to 3600")
}

/// Executes `dyno calibrate`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let control = Arc::new(Control::new());
    let stopped = Arc::clone(&control);
    signals::end_on_interrupt("nothing of the calibration is kept", move || stopped.stop())
        .map_err(|error| Failure::new(format!("Signals can't be handled: {error}.")))?;
    let mut calibration = Calibration::to_be_kept(&dyno_observe::environment());
    if arguments.effects.is_empty() {
        let mut points = Vec::new();
        for dialect in [Dialect::Mysql, Dialect::Postgres] {
            for &workers in &arguments.workers {
                let server = null_server()?;
                points.push(measure_point(&server, dialect, workers, arguments.seconds, &control)?);
            }
        }
        output::data(&points_table(&points));
        calibration.points = points;
    } else {
        calibration.effects = measure_effects(arguments, &control)?;
        output::data(&effects_table(&calibration.effects));
        warn_of_noise(&calibration.effects);
    }
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

fn measure_point(
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
    output::talk(&format!("{protocol}, {}, {seconds} s", counted(workers, "worker")));
    let database = null_database(protocol, port)?;
    let workload = point_select(database.dialect())?;
    let spec =
        TrialSpec { warmup: nanos_from_seconds(seconds / 4.0), ..TrialSpec::closed(workers) };
    let result = drive_trial((&workload, DRIVE_ON), &database, spec, seconds, control)?;
    let statements = result.total.work().statements() as f64;
    let length_s = result.length() as f64 / 1e9;
    Ok(CalibrationPoint {
        protocol: protocol.to_owned(),
        workers,
        statements_per_s: statements / length_s.max(1e-9),
        cpu_us_per_statement: result.total.cpu_ns as f64 / 1e3 / statements.max(1.0),
    })
}

fn null_database(protocol: &str, port: Option<u16>) -> Result<Database, Failure> {
    let port = port.ok_or_else(|| Failure::new("The null server has no port."))?;
    let target: TargetUrl = format!("{protocol}://calibrate@127.0.0.1:{port}/null")
        .parse()
        .map_err(|error| Failure::new(sentence(&format!("The null server: {error}"))))?;
    Ok(Database::open(&target)?)
}

fn nanos_from_seconds(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// The one table that the null server shows.
fn point_select(dialect: Dialect) -> Result<Sysbench, Failure> {
    let options = SysbenchOptions::from_pairs(SysbenchTest::PointSelect, &[])
        .map_err(|error| Failure::new(error.message))?;
    Ok(Sysbench::new(options, dialect))
}

fn drive_trial<W: Workload>(
    (workload, drive): (&W, DriveOn<W>),
    database: &Database,
    spec: TrialSpec,
    seconds: f64,
    control: &Control,
) -> Result<TrialResult, Failure> {
    let spec = TrialSpec { duration: Some(nanos_from_seconds(seconds)), ..spec };
    let result = match drive(database, workload, &spec, control, &mut ()) {
        // Before its workers were connected.
        Err(DriveError::Interrupted) => return Err(interruption_failure()),
        result => result?,
    };
    match &result.ended {
        TrialEnd::Time | TrialEnd::Events => Ok(result),
        TrialEnd::Interrupted => Err(interruption_failure()),
        TrialEnd::Aborted(error) => Err(Failure::from(error.clone())),
        end => Err(Failure::new(end.failure().unwrap_or_default())),
    }
}

fn interruption_failure() -> Failure {
    Failure::interrupted("The calibration was interrupted; nothing was kept.")
}

/// Transactions of one worker: one after the other, so that what one costs more is missing in the throughput.
fn measure_rate<W: Workload>(
    workload: (&W, DriveOn<W>),
    database: &Database,
    seconds: f64,
    control: &Control,
) -> Result<(f64, u64), Failure> {
    let result = drive_trial(workload, database, TrialSpec::closed(1), seconds, control)?;
    let counts = result.total.counts();
    if counts.failed > 0 || counts.committed == 0 {
        return Err(Failure::new("The statement that known effects are injected into has failed."));
    }
    let length_s = result.length() as f64 / 1e9;
    Ok((counts.committed as f64 / length_s.max(1e-9), counts.committed))
}

fn measure_effects(arguments: &Arguments, control: &Control) -> Result<Vec<EffectFacts>, Failure> {
    let place = if arguments.target.is_some() { "the target" } else { "the null server" };
    let shares: Vec<String> = arguments.effects.iter().map(|share| percent(*share)).collect();
    output::talk(&format!(
        "Known effects of {}, and none, on {place}: at most about {}, in trials of {} s",
        shares.join(", "),
        human_time(arguments.budget),
        short(trial_s(shares.len(), arguments.budget))
    ));
    let (target, mut effects) = match &arguments.target {
        Some(url) => measure_on_target(url, arguments, control)?,
        None => ("null server".to_owned(), measure_on_null_server(arguments, control)?),
    };
    let at = now_utc();
    effects.iter_mut().for_each(|facts| (facts.target, facts.at) = (target.clone(), at.clone()));
    Ok(effects)
}

fn measure_on_null_server(
    arguments: &Arguments,
    control: &Control,
) -> Result<Vec<EffectFacts>, Failure> {
    let server = null_server()?;
    let database = null_database("mysql", server.config.mysql_port)?;
    let workload = point_select(database.dialect())?;
    let start = Instant::now();
    let elapsed_s = || start.elapsed().as_secs_f64();
    let measure = &mut |cost, seconds| {
        server.set_delay(Duration::from_nanos(cost));
        let (tps, _) = measure_rate((&workload, DRIVE_ON), &database, seconds, control)?;
        // It shares its process with the load generator.
        Ok(Measured { tps, cpu_us: None })
    };
    find_effects(&arguments.effects, Some(1e-9), (arguments.budget, &elapsed_s), measure)
}

fn measure_on_target(
    url: &str,
    arguments: &Arguments,
    control: &Control,
) -> Result<(String, Vec<EffectFacts>), Failure> {
    let target = reach("target", url)?;
    let process = target.process();
    let (database, dialect) = (&target.database, target.database.dialect());
    if dialect == Dialect::Sqlite {
        return Err(Failure::usage(
            "Embedded databases compute no digests: no known effect can be injected.",
        ));
    }
    let admin = database.admin();
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id}, {})", id * 7)).collect();
    // A table that a killed calibration has left is replaced.
    let drop = format!("DROP TABLE IF EXISTS {TABLE}");
    let create = format!("CREATE TABLE {TABLE} (id INT PRIMARY KEY, v INT NOT NULL)");
    let insert = format!("INSERT INTO {TABLE} (id, v) VALUES {}", rows.join(", "));
    execute_all(&admin, &[&drop, &create, &insert])?;
    let start = Instant::now();
    let elapsed_s = || start.elapsed().as_secs_f64();
    let measure = &mut |digests, seconds| {
        let workload = Probe::new(dialect, digests);
        let before = process.as_ref().and_then(|process| process.usage());
        let (tps, committed) = measure_rate((&workload, drive_on), database, seconds, control)?;
        let after = process.as_ref().and_then(|process| process.usage());
        let used_s = before.zip(after).and_then(|(before, after)| after.used_s(&before));
        Ok(Measured { tps, cpu_us: used_s.map(|used_s| used_s * 1e6 / committed as f64) })
    };
    let effects = find_effects(&arguments.effects, None, (arguments.budget, &elapsed_s), measure);
    if let Err(error) = execute_all(&admin, &[&drop]) {
        output::talk(&format!("warning: the table {TABLE} is left: {error}"));
    }
    Ok((target.facts.product, effects?))
}

fn points_table(points: &[CalibrationPoint]) -> String {
    let rows = points.iter().map(|point| {
        vec![
            point.protocol.clone(),
            point.workers.to_string(),
            short(point.statements_per_s),
            short(point.cpu_us_per_statement),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    text_table(&["protocol", "workers", "statements/s", "CPU us/statement"], &rows, |place| {
        place >= 1
    })
}

/// Pairs of each effect that the time is meant for.
const PAIRS: usize = 15;
/// Length of a trial, seconds. Shorter ones measure the connecting, longer ones give fewer pairs. The CPU time of a
/// server is counted in hundredths of a second: it needs the longer ones.
const TRIAL_S: std::ops::RangeInclusive<f64> = 0.1..=10.0;

/// A trial's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    tps: f64,
    /// CPU time of all processes of the server for a transaction; `None` if unknown.
    cpu_us: Option<f64>,
}

impl Measured {
    /// Returns the throughput, or the server's CPU time per statement in microseconds.
    fn figure(self, metric: Metric) -> Option<f64> {
        if metric == Metric::Tps { Some(self.tps) } else { self.cpu_us }
    }
}

/// Measures with this cost of each transaction for this number of seconds.
type MeasureTrial<'a> = dyn FnMut(u64, f64) -> Result<Measured, Failure> + 'a;

/// An effect and what came of it.
struct Arm {
    /// The share that it takes of the throughput; 0 is none.
    effect: f64,
    cost: u64,
    pairs: Vec<[Measured; 2]>,
    findings: Vec<EffectFacts>,
}

/// The length of a trial that gives each effect, and none, enough pairs within a time.
fn trial_s(effects: usize, budget_s: f64) -> f64 {
    let trials = 2 * PAIRS * (effects + 1);
    (budget_s / trials as f64).clamp(*TRIAL_S.start(), *TRIAL_S.end())
}

/// The length of a unit of cost: of more of them where the noise of a short trial hides some. 0 if it hides all.
fn measured_unit_s(
    plain_s: f64,
    trial_s: f64,
    measure: &mut MeasureTrial<'_>,
) -> Result<f64, Failure> {
    for digests in [DIGESTS, 8 * DIGESTS, 64 * DIGESTS] {
        let unit_s = (1.0 / measure(digests, trial_s)?.tps - plain_s) / digests as f64;
        if unit_s > 0.0 && unit_s.is_finite() {
            return Ok(unit_s);
        }
    }
    Ok(0.0)
}

/// Measures which of `effects` are found. `unit_s` is the length of a unit of cost; if it is unknown, a trial with
/// [`DIGESTS`] of them measures it. Begins no pair that would end after the budget.
fn find_effects(
    effects: &[f64],
    unit_s: Option<f64>,
    (budget_s, elapsed_s): (f64, &dyn Fn() -> f64),
    measure: &mut MeasureTrial<'_>,
) -> Result<Vec<EffectFacts>, Failure> {
    let trial_s = trial_s(effects.len(), budget_s);
    // The first trial meets what nothing has used before.
    measure(0, trial_s)?;
    let plain_s = 1.0 / measure(0, trial_s)?.tps;
    let unit_s = match unit_s {
        Some(seconds) => seconds,
        None => measured_unit_s(plain_s, trial_s, measure)?,
    };
    if !(unit_s > 0.0 && plain_s.is_finite()) {
        return Err(Failure::new("What a known effect costs can't be measured here.")
            .with_hint("Give it more time with --budget, or a machine with fewer neighbors."));
    }
    // No effect comes first: it is measured as long as anything else is.
    let effects = [0.0].iter().chain(effects);
    let mut arms: Vec<Arm> = effects.map(|effect| Arm::new(*effect, plain_s, unit_s)).collect();
    while let Some(number) = next_arm(&arms) {
        let arm = &mut arms[number];
        if elapsed_s() + 2.0 * trial_s > budget_s && !arm.pairs.is_empty() {
            break;
        }
        let mut pair = [None; 2];
        for side in balanced(2, PAIRS, arm.pairs.len(), 1 + number as u64) {
            pair[side] = Some(measure(arm.cost * side as u64, trial_s)?);
        }
        let [Some(without), Some(with)] = pair else { break };
        arm.pairs.push([without, with]);
        arm.judge(trial_s);
    }
    Ok(arms.into_iter().flat_map(|arm| arm.findings).collect())
}

/// The effect that has the fewest pairs of those that are not found yet; none when all others are.
fn next_arm(arms: &[Arm]) -> Option<usize> {
    let (plain_arm, effect_arms) = arms.split_first()?;
    let max_pairs = effect_arms.iter().map(|arm| arm.pairs.len()).max().unwrap_or(0);
    if !effect_arms.iter().any(Arm::is_open) && plain_arm.pairs.len() >= PAIRS.min(max_pairs) {
        return None;
    }
    let open_arms = (0..arms.len()).filter(|&number| number == 0 || arms[number].is_open());
    open_arms.min_by_key(|&number| arms[number].pairs.len())
}

impl Arm {
    fn new(effect: f64, plain_s: f64, unit_s: f64) -> Self {
        // A transaction that takes 1 / (1 - effect) as long.
        let units = plain_s * effect / (1.0 - effect) / unit_s;
        let cost = if effect > 0.0 { units.round().max(1.0) as u64 } else { 0 };
        let longer_s = cost as f64 * unit_s;
        let effect = longer_s / (plain_s + longer_s);
        Arm { effect, cost, pairs: Vec::new(), findings: Vec::new() }
    }

    fn is_open(&self) -> bool {
        self.findings.iter().any(|finding| !finding.is_found) || self.pairs.is_empty()
    }

    /// Judges its pairs by each metric; an effect that was found stays found.
    fn judge(&mut self, trial_s: f64) {
        for metric in [Metric::Tps, Metric::ServerCpuUs] {
            if self
                .findings
                .iter()
                .any(|finding| finding.metric == metric.name() && finding.is_found)
            {
                continue;
            }
            let figures = self.pairs.iter().map(|pair| pair.map(|trial| trial.figure(metric)));
            let pairs: Vec<(f64, f64)> = figures.filter_map(|[a, b]| a.zip(b)).collect();
            let Some(ratio) = PairedRatio::from_pairs(&pairs, Judging::Anytime) else { continue };
            let verdict = ratio.verdict(metric.better(), DEFAULT_MARGIN);
            let finding = EffectFacts {
                effect: self.effect,
                metric: metric.name().to_owned(),
                is_found: is_found(self.effect, verdict),
                pairs: ratio.pairs,
                ratio: ratio.ratio,
                low: ratio.interval.map(|interval| interval.low),
                high: ratio.interval.map(|interval| interval.high),
                trial_s,
                ..EffectFacts::default()
            };
            match self.findings.iter_mut().find(|earlier| earlier.metric == finding.metric) {
                Some(earlier) => *earlier = finding,
                None => self.findings.push(finding),
            }
        }
    }
}

/// An effect is a delay: what noise makes faster is not found. If there is none, either way is a false alarm.
fn is_found(effect: f64, verdict: RatioVerdict) -> bool {
    verdict == RatioVerdict::Slower || (effect == 0.0 && verdict == RatioVerdict::Faster)
}

fn effects_table(effects: &[EffectFacts]) -> String {
    let rows = effects.iter().map(|facts| {
        let interval = match (facts.low, facts.high) {
            (Some(low), Some(high)) => format!("[{low:.3}, {high:.3}]"),
            _ => "-".to_owned(),
        };
        vec![
            if facts.effect > 0.0 { percent(facts.effect) } else { "none".to_owned() },
            facts.metric.clone(),
            if facts.is_found { "yes" } else { "no" }.to_owned(),
            facts.pairs.to_string(),
            format!("{:.3}", facts.ratio),
            interval,
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let titles = ["effect", "metric", "found", "pairs", "ratio", "95% interval"];
    text_table(&titles, &rows, |place| place >= 3)
}

/// Warns of noise that was taken for an effect.
fn warn_of_noise(effects: &[EffectFacts]) {
    for facts in effects.iter().filter(|facts| facts.effect == 0.0 && facts.is_found) {
        output::talk(&format!(
            "warning: {} differs by {} although nothing differs: this machine was not quiet, or chance was at work (5%)",
            facts.metric,
            percent((facts.ratio - 1.0).abs())
        ));
    }
}

/// The table, made before the first trial and dropped after the last one.
const TABLE: &str = "dyno_calibrate";
const ROWS: i64 = 100;

struct Probe {
    kinds: [TransactionKind; 1],
    sql: String,
}

impl Probe {
    /// With this number of digests in each statement.
    fn new(dialect: Dialect, digests: u64) -> Self {
        let sql = match dialect {
            Dialect::Postgres => format!(
                "SELECT v, (SELECT count(md5(n::text)) FROM generate_series(1, {digests}) n) FROM {TABLE} \
                 WHERE id = $1"
            ),
            _ => format!("SELECT v, BENCHMARK({digests}, SHA2(v, 256)) FROM {TABLE} WHERE id = ?"),
        };
        Probe { kinds: [TransactionKind { name: "read".to_owned(), weight: 1 }], sql }
    }
}

fn execute_all(driver: &AdminDriver<'_>, statements: &[&str]) -> Result<(), DbError> {
    databases::run(in_session(driver, async |session| {
        for sql in statements {
            session.query(sql, &mut Discard).await?;
        }
        Ok(())
    }))
}

impl Workload for Probe {
    type Worker = (Statement, Rng);
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(
        &self,
        session: &mut S,
        _id: WorkerId,
        _workers: u32,
        rng: Rng,
    ) -> Result<Self::Worker, DbError> {
        Ok((session.prepare(&self.sql, &[ParamType::Int]).await?, rng))
    }

    async fn reopen<S: Session>(
        &self,
        worker: &mut Self::Worker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.0 = session.prepare(&self.sql, &[ParamType::Int]).await?;
        Ok(())
    }

    async fn run<S: Session>(
        &self,
        (statement, rng): &mut Self::Worker,
        session: &mut S,
        _transaction: TransactionId,
        _attempt: u32,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let id = Param::Int(rng.uniform(1, ROWS as u64) as i64);
        tally.count(session.execute_short(*statement, &[id], &mut Discard).await?);
        Ok(Outcome::Committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Rng;
    use std::cell::{Cell, RefCell};

    /// A server whose transactions take a millisecond and 10 us for each unit of cost, with this noise.
    fn simulate(
        effects: &[f64],
        budget_s: f64,
        noise: f64,
        unit_s: Option<f64>,
    ) -> Vec<EffectFacts> {
        let (clock, rng) = (Cell::new(0.0), RefCell::new(Rng::new(5, "effects", 0)));
        find_effects(effects, unit_s, (budget_s, &|| clock.get()), &mut |cost, seconds| {
            clock.set(clock.get() + seconds);
            let mut rng = rng.borrow_mut();
            let [time_spread, cpu_spread] =
                [(); 2].map(|()| 1.0 + noise * (rng.unit() + rng.unit() + rng.unit() - 1.5));
            let longer = 1e-3 + 1e-5 * cost as f64;
            Ok(Measured {
                tps: time_spread / longer,
                cpu_us: Some(longer * 3e5 * (1.0 + (cpu_spread - 1.0) / 10.0)),
            })
        })
        .expect("a table")
    }

    #[test]
    fn known_effects_are_found_and_none_where_there_is_none() {
        for unit_s in [Some(1e-5), None] {
            let effects = simulate(&[0.02, 0.05], 240.0, 0.01, unit_s);
            assert_eq!(effects.len(), 6, "three arms of two metrics");
            for facts in &effects {
                assert_eq!(facts.is_found, facts.effect > 0.0, "{facts:?}");
                assert!(facts.pairs >= 3 && facts.pairs <= 60, "{facts:?}");
            }
            assert!((effects[2].effect - 0.02).abs() < 0.002, "{effects:?}");
            assert!((effects[2].ratio - 0.98).abs() < 0.01, "{effects:?}");
        }
    }

    #[test]
    fn what_noise_hides_is_not_found_and_the_time_is_kept() {
        let effects = simulate(&[0.01], 20.0, 0.5, Some(1e-5));
        let tps: Vec<_> = effects.iter().filter(|facts| facts.metric == "tps").collect();
        assert!(tps.iter().all(|facts| !facts.is_found), "{tps:?}");
        // 20 s of trials of a third of a second each, three of which come before.
        assert!(
            (0.3..0.35).contains(&tps[0].trial_s) && tps[0].pairs + tps[1].pairs <= 30,
            "{tps:?}"
        );
        let table = effects_table(&effects);
        assert!(table.contains("none") && table.contains("server_cpu_us"), "{table}");
    }

    #[test]
    fn a_delay_is_not_found_as_faster() {
        for (effect, verdict, expected) in [
            (0.02, RatioVerdict::Slower, true),
            (0.02, RatioVerdict::Faster, false),
            (0.02, RatioVerdict::Undecided, false),
            (0.0, RatioVerdict::Slower, true),
            (0.0, RatioVerdict::Faster, true),
        ] {
            assert_eq!(is_found(effect, verdict), expected, "{effect} {verdict:?}");
        }
    }

    #[test]
    fn a_cost_that_takes_no_time_is_an_error() {
        let failure = find_effects(&[0.01], None, (1.0, &|| 0.0), &mut |_, _| {
            Ok(Measured { tps: 100.0, cpu_us: None })
        });
        let failure = failure.expect_err("no time");
        assert!(failure.message.to_string().contains("can't be measured"), "{failure:?}");
    }
}
