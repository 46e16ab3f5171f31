//! The table of options: those of pgbench 15, of later versions, and dyno's own.

use super::Refusal;
use super::command_line::{
    Reader, Stop, above_0, init_steps, max_tries, option_int, partition_method, percentiles,
    protocol, sampling_rate, variable,
};
use OptionValues::{Flag, Text, Whole};
use dyno_core::options::{OptionRow, OptionValues};
use dyno_pgbench::init::InitOptions;
use dyno_pgbench::script::QueryMode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::PathBuf;

/// When an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Only with `-i`.
    Initialize,
    /// Never with `-i`.
    Run,
    Any,
}

#[derive(Debug)]
pub(super) struct PgbenchOption {
    pub(super) row: OptionRow<Reader, Stop>,
    pub(super) mode: Mode,
    pub(super) takes_value: bool,
    /// Not in pgbench 15: never makes an abbreviation ambiguous that 15 understands.
    pub(super) is_newer: bool,
    /// The long name of the option that the letter means if no value follows it.
    pub(super) alone: Option<&'static str>,
}

impl PgbenchOption {
    const fn new(mode: Mode, name: &'static str, kind: OptionValues<Reader, Stop>) -> Self {
        let takes_value = !matches!(kind, Flag(_));
        let row = OptionRow::new(name, "", kind, "");
        PgbenchOption { row, mode, takes_value, is_newer: false, alone: None }
    }

    /// Adds the letter of the short option.
    const fn short(mut self, letter: char) -> Self {
        self.row.letter = Some(letter);
        self
    }

    const fn without_value(mut self) -> Self {
        self.takes_value = false;
        self
    }

    /// Marks the option as one that pgbench 15 doesn't have.
    const fn newer(mut self) -> Self {
        self.is_newer = true;
        self
    }

    /// Adds the option that the letter means if no value follows it.
    const fn alone(mut self, name: &'static str) -> Self {
        self.alone = Some(name);
        self
    }

    /// Whole numbers are read and refused as the C program does it.
    pub(super) fn apply(&self, reader: &mut Reader, value: &str) -> Result<(), Stop> {
        match self.row.kind {
            Flag(set) => set(reader, true),
            Whole(low, high, set) => {
                let long = format!("--{}", self.row.name);
                let name =
                    self.row.letter.map(|letter| format!("-{letter}/{long}")).unwrap_or(long);
                let number = option_int(value, &name, low as i32, high as i32)?;
                set(reader, number.unsigned_abs());
            }
            _ => self.row.set(reader, None, value)?,
        }
        Ok(())
    }
}

/// Returns an option of runs.
const fn run(name: &'static str, kind: OptionValues<Reader, Stop>) -> PgbenchOption {
    PgbenchOption::new(Mode::Run, name, kind)
}

/// Returns an option of the initialization.
const fn init(name: &'static str, kind: OptionValues<Reader, Stop>) -> PgbenchOption {
    PgbenchOption::new(Mode::Initialize, name, kind)
}

/// Returns an option of both modes.
const fn any(name: &'static str, kind: OptionValues<Reader, Stop>) -> PgbenchOption {
    PgbenchOption::new(Mode::Any, name, kind)
}

/// Returns the kind of options that take any text.
const fn text(set: fn(&mut Reader, &str) -> Result<(), Stop>) -> OptionValues<Reader, Stop> {
    Text("a text", set)
}

const INT_MAX: u32 = i32::MAX as u32;

/// All options, those of pgbench 15 in its order: complaints list them so.
#[rustfmt::skip]
pub(super) static OPTIONS: &[PgbenchOption] = &[
    run("builtin", text(|r, v| r.builtin(v))).short('b'),
    run("client", text(|r, v| {
        r.settings.clients = option_int(v, "-c/--client", 1, i32::MAX)?.unsigned_abs();
        Ok(allow_open_files(r.settings.clients)?)
    })).short('c'),
    run("connect", Flag(|r, on| r.settings.connect_each = on)).short('C'),
    // Until version 15 the short form was -d, which names the database since: alone it is still this.
    any("debug", Flag(|r, on| r.settings.debug = on)),
    run("define", text(|r, v| { r.settings.variables.push(variable(v)?); Ok(()) })).short('D'),
    run("file", text(|r, v| r.file(v))).short('f'),
    init("fillfactor", Whole(10, 100, |r, n| r.settings.init.fillfactor = n as u8)).short('F'),
    any("host", text(|r, v| { r.settings.connection.host = Some(v.to_owned()); Ok(()) })).short('h'),
    any("initialize", Flag(|r, on| r.settings.initialize = on)).short('i'),
    init("init-steps", text(|r, v| { r.settings.init.steps = init_steps(v)?; Ok(()) })).short('I'),
    // pgbench has no use for threads with -i; dyno loads with as many connections.
    any("jobs", Whole(1, INT_MAX, |r, n| r.settings.threads = n)).short('j'),
    run("log", Flag(|r, on| r.settings.log.wanted = on)).short('l'),
    run("latency-limit", text(|r, v| {
        r.settings.late_limit_us = (above_0(v, "latency limit")? * 1000.0) as u64;
        Ok(())
    })).short('L'),
    any("no-vacuum", Flag(|r, _| r.settings.vacuum = false)).short('n'),
    any("port", text(|r, v| { r.settings.connection.port = Some(v.to_owned()); Ok(()) })).short('p'),
    run("progress", Whole(1, INT_MAX, |r, n| r.settings.progress_s = Some(n))).short('P'),
    run("protocol", text(|r, v| { r.settings.mode = protocol(v)?; Ok(()) })).short('M'),
    init("quiet", Flag(|r, on| r.settings.quiet = on)).short('q'),
    run("report-per-command", Flag(|r, on| r.settings.report_per_command = on)).short('r'),
    run("rate", text(|r, v| { r.settings.rate_per_s = Some(above_0(v, "rate limit")?); Ok(()) })).short('R'),
    any("scale", Whole(1, INT_MAX, |r, n| r.settings.scale = Some(n))).short('s'),
    run("select-only", text(|r, _| r.builtin("select-only"))).short('S').without_value(),
    run("skip-some-updates", text(|r, _| r.builtin("simple-update"))).short('N').without_value(),
    run("time", Whole(1, INT_MAX, |r, n| r.settings.seconds = Some(n))).short('T'),
    run("transactions", Whole(1, INT_MAX, |r, n| r.settings.transactions = Some(n))).short('t'),
    any("username", text(|r, v| { r.settings.connection.user = Some(v.to_owned()); Ok(()) })).short('U'),
    run("vacuum-all", Flag(|r, on| r.settings.vacuum_accounts = on)).short('v'),
    init("unlogged-tables", Flag(|r, on| r.settings.init.unlogged = on)),
    init("tablespace", text(|r, v| { r.settings.init.tablespace = Some(v.to_owned()); Ok(()) })),
    init("index-tablespace", text(|r, v| { r.settings.init.index_tablespace = Some(v.to_owned()); Ok(()) })),
    run("sampling-rate", text(|r, v| { r.settings.log.sampling_rate = Some(sampling_rate(v)?); Ok(()) })),
    run("aggregate-interval", Whole(1, INT_MAX, |r, n| r.settings.log.aggregate_s = Some(n))),
    run("progress-timestamp", Flag(|r, on| r.settings.progress_timestamp = on)),
    run("log-prefix", text(|r, v| { r.settings.log.prefix = Some(v.to_owned()); Ok(()) })),
    init("foreign-keys", Flag(|r, on| r.settings.init.foreign_keys = on)),
    run("random-seed", text(|r, v| r.random_seed(v))),
    any("show-script", text(|_, v| Err(Stop::Show(crate::pgbench::scripts::find(v)?)))),
    init("partitions", Whole(0, INT_MAX, |r, n| r.settings.init.partitions = n)),
    init("partition-method", text(|r, v| {
        r.settings.init.partition_method = partition_method(v)?;
        r.settings.partition_method_given = true;
        Ok(())
    })),
    run("failures-detailed", Flag(|r, on| r.settings.failures_detailed = on)),
    run("max-tries", text(|r, v| { r.settings.max_tries = max_tries(v)?; Ok(()) })),
    run("verbose-errors", Flag(|r, on| r.settings.verbose_errors = on)),
    any("dbname", text(|r, v| { r.settings.connection.dbname = Some(v.to_owned()); Ok(()) }))
        .short('d').newer().alone("debug"),
    run("exit-on-abort", Flag(|r, on| r.settings.exit_on_abort = on)).newer(),
    run("continue-on-error", Flag(|r, on| r.settings.continue_on_error = on)).newer(),
    any("target", text(|r, v| { r.settings.connection.target = Some(v.to_owned()); Ok(()) })).newer(),
    run("warmup", Whole(0, INT_MAX, |r, n| r.settings.warmup_s = n)).newer(),
    run("check-balances", Flag(|r, on| r.settings.check_balances = on)).newer(),
    run("percentiles", text(|r, v| { r.settings.percentiles = percentiles(v)?; Ok(()) })).newer(),
    run("json", text(|r, v| { r.settings.json = Some(v.into()); Ok(()) })).newer(),
    run("paper", Flag(|r, on| r.settings.paper = on)).newer(),
    run("hdr", text(|r, v| { r.settings.hdr = Some(v.into()); Ok(()) })).newer(),
    init("resume", Flag(|r, on| r.settings.init.resume = on)).newer(),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) host: Option<String>,
    pub(super) port: Option<String>,
    pub(super) user: Option<String>,
    /// The operand, or what `-d` names: a database, a connection string or a URI.
    pub(super) dbname: Option<String>,
    /// `--target`: a URL, which names everything else as well.
    pub(super) target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Transactions(u32),
    Seconds(u32),
}

/// The options of `-l`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LogSettings {
    pub(super) wanted: bool,
    pub(super) prefix: Option<String>,
    /// Above 0 and up to 1.
    pub(super) sampling_rate: Option<f64>,
    pub(super) aggregate_s: Option<u32>,
    /// The place of this run among those of a list of clients, from 1.
    pub(super) level: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    /// `-i`.
    pub(super) initialize: bool,
    pub(super) init: InitOptions,
    pub(super) partition_method_given: bool,
    pub(super) quiet: bool,
    pub(super) connection: Connection,
    pub(super) clients: u32,
    /// `-j`, not more than the clients once the command line is complete.
    pub(super) threads: u32,
    pub(super) transactions: Option<u32>,
    pub(super) seconds: Option<u32>,
    pub(super) mode: QueryMode,
    pub(super) connect_each: bool,
    /// `-D`, in order; a later one replaces an earlier one of the same name.
    pub(super) variables: Vec<(String, String)>,
    pub(super) scale: Option<u32>,
    /// `-n` makes it false.
    pub(super) vacuum: bool,
    pub(super) vacuum_accounts: bool,
    pub(super) log: LogSettings,
    /// `-L` in microseconds; 0 is none.
    pub(super) late_limit_us: u64,
    pub(super) rate_per_s: Option<f64>,
    pub(super) progress_s: Option<u32>,
    pub(super) progress_timestamp: bool,
    pub(super) report_per_command: bool,
    pub(super) failures_detailed: bool,
    pub(super) verbose_errors: bool,
    /// 0 is not a limit.
    pub(super) max_tries: u32,
    pub(super) exit_on_abort: bool,
    pub(super) continue_on_error: bool,
    pub(super) seed: u64,
    pub(super) debug: bool,
    pub(super) warmup_s: u32,
    pub(super) check_balances: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) json: Option<PathBuf>,
    /// The run is one of a suite and leaves a paper.
    pub(super) paper: bool,
    pub(super) hdr: Option<PathBuf>,
}

impl Settings {
    /// pgbench's defaults, with the seed of this run.
    pub(super) fn new(seed: u64) -> Self {
        Settings { clients: 1, threads: 1, vacuum: true, max_tries: 1, seed, ..Settings::default() }
    }

    /// Returns the length of a run: 10 transactions per client unless one is given.
    pub(super) fn length(&self) -> Length {
        match (self.transactions, self.seconds) {
            (_, Some(seconds)) => Length::Seconds(seconds),
            (transactions, None) => Length::Transactions(transactions.unwrap_or(10)),
        }
    }

    /// `--json=-`: standard output is for the result, what pgbench prints there goes to standard error.
    pub(super) fn json_to_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// `-L` together with `-R`: late slots are skipped.
    pub(super) fn skips(&self) -> bool {
        self.rate_per_s.is_some() && self.late_limit_us > 0
    }

    /// `-P`, `-R` or `-L`: the report has the deviation of the latency.
    pub(super) fn has_deviation(&self) -> bool {
        self.rate_per_s.is_some() || self.progress_s.is_some() || self.late_limit_us > 0
    }

    /// The value of a variable that `-D` defines.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Files that are open alongside the clients' connections: the three standard streams, as pgbench counts.
const OTHERS: u64 = 3;

/// Raises the limit of open files so far that `clients` can connect, as pgbench does since 18.
///
/// # Errors
/// When the system's hard limit is lower.
fn allow_open_files(clients: u32) -> Result<(), Refusal> {
    let needed = u64::from(clients) + OTHERS;
    // Each client may be alone on its loop, which has an event queue and a log.
    let comfortable = needed * 3 + 64;
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|&soft| soft < comfortable) else { return Ok(()) };
    let raised = limit.maximum.map_or(comfortable, |hard| hard.min(comfortable)).max(soft);
    let raised_limit = Rlimit { current: Some(raised), maximum: limit.maximum };
    let allowed = setrlimit(Resource::Nofile, raised_limit).map_or(soft, |()| raised);
    if allowed >= needed {
        return Ok(());
    }
    Err(Refusal::error(format_args!(
        "need at least {needed} open files, but system limit is {allowed}"
    ))
    .with("hint", "Reduce number of clients, or use limit/ulimit to increase the system limit."))
}
