//! The table of options: those of pgbench 15, of later versions, and dyno's own.

use super::{
    Reader, Stop, above_0, at_least, init_steps, max_tries, partition_method, percentiles,
    protocol, sampling_rate, variable,
};
use crate::getopt::OptionWord;
use crate::numbers::option_int;
use crate::open_files;
use crate::refusal::Refusal;
use crate::settings::Settings;

/// When an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Only with `-i`.
    Initialize,
    /// Never with `-i`.
    Run,
    Any,
}

use Mode::{Any, Initialize, Run};

/// What an option sets.
#[derive(Clone, Copy)]
pub(super) enum Set {
    Flag(fn(&mut Settings)),
    Text(fn(&mut Settings, String)),
    /// A whole number: how pgbench names the option, and the least value.
    AtLeast(&'static str, i32, fn(&mut Settings, u32)),
    Value(fn(&mut Settings, &str) -> Result<(), Refusal>),
    /// What needs more than the settings.
    Act(fn(&mut Reader<'_>, &str) -> Result<(), Stop>),
}

use Set::{Act, AtLeast, Flag, Text, Value};

#[derive(Clone, Copy)]
pub(super) struct Meaning {
    pub(super) mode: Mode,
    set: Set,
}

impl Meaning {
    pub(super) fn apply(self, reader: &mut Reader<'_>, value: &str) -> Result<(), Stop> {
        let settings = &mut reader.settings;
        match self.set {
            Flag(set) => set(settings),
            Text(set) => set(settings, value.to_owned()),
            AtLeast(name, least, set) => set(settings, at_least(value, name, least)?),
            Value(set) => set(settings, value)?,
            Act(act) => act(reader, value)?,
        }
        Ok(())
    }
}

const fn long(mode: Mode, long: &'static str, set: Set) -> OptionWord<Meaning> {
    let takes_value = !matches!(set, Flag(_));
    OptionWord {
        id: Meaning { mode, set },
        long,
        short: None,
        takes_value,
        is_newer: false,
        alone: None,
    }
}

const fn short(mode: Mode, name: &'static str, short: char, set: Set) -> OptionWord<Meaning> {
    OptionWord { short: Some(short), ..long(mode, name, set) }
}

const fn without_value(word: OptionWord<Meaning>) -> OptionWord<Meaning> {
    OptionWord { takes_value: false, ..word }
}

const fn alone(long: &'static str, word: OptionWord<Meaning>) -> OptionWord<Meaning> {
    OptionWord { alone: Some(long), ..word }
}

const fn newer(word: OptionWord<Meaning>) -> OptionWord<Meaning> {
    OptionWord { is_newer: true, ..word }
}

/// All options, those of pgbench 15 in its order: complaints list them so.
#[rustfmt::skip]
pub(super) static OPTIONS: [OptionWord<Meaning>; 53] = [
    short(Run, "builtin", 'b', Act(|r, v| r.builtin(v))),
    short(Run, "client", 'c', Value(|s, v| {
        s.clients = at_least(v, "-c/--client", 1)?;
        open_files::allow(s.clients)
    })),
    short(Run, "connect", 'C', Flag(|s| s.connect_each = true)),
    // Until version 15 the short form was -d, which names the database since: alone it is still this.
    long(Any, "debug", Flag(|s| s.debug = true)),
    short(Run, "define", 'D', Value(|s, v| variable(v).map(|one| s.variables.push(one)))),
    short(Run, "file", 'f', Act(|r, v| r.file(v))),
    short(Initialize, "fillfactor", 'F', Value(|s, v| {
        s.init.fillfactor = option_int(v, "-F/--fillfactor", 10, 100)?.unsigned_abs() as u8;
        Ok(())
    })),
    short(Any, "host", 'h', Text(|s, v| s.connection.host = Some(v))),
    short(Any, "initialize", 'i', Flag(|s| s.initialize = true)),
    short(Initialize, "init-steps", 'I', Value(|s, v| init_steps(v).map(|steps| s.init.steps = steps))),
    // pgbench has no use for threads with -i; dyno loads with as many connections.
    short(Any, "jobs", 'j', AtLeast("-j/--jobs", 1, |s, n| s.threads = n)),
    short(Run, "log", 'l', Flag(|s| s.log.wanted = true)),
    short(Run, "latency-limit", 'L', Value(|s, v| {
        s.late_limit_us = (above_0(v, "latency limit")? * 1000.0) as u64;
        Ok(())
    })),
    short(Any, "no-vacuum", 'n', Flag(|s| s.vacuum = false)),
    short(Any, "port", 'p', Text(|s, v| s.connection.port = Some(v))),
    short(Run, "progress", 'P', AtLeast("-P/--progress", 1, |s, n| s.progress_s = Some(n))),
    short(Run, "protocol", 'M', Value(|s, v| protocol(v).map(|mode| s.mode = mode))),
    short(Initialize, "quiet", 'q', Flag(|s| s.quiet = true)),
    short(Run, "report-per-command", 'r', Flag(|s| s.report_per_command = true)),
    short(Run, "rate", 'R', Value(|s, v| above_0(v, "rate limit").map(|rate| s.rate_per_s = Some(rate)))),
    short(Any, "scale", 's', AtLeast("-s/--scale", 1, |s, n| s.scale = Some(n))),
    without_value(short(Run, "select-only", 'S', Act(|r, _| r.builtin("select-only")))),
    without_value(short(Run, "skip-some-updates", 'N', Act(|r, _| r.builtin("simple-update")))),
    short(Run, "time", 'T', AtLeast("-T/--time", 1, |s, n| s.seconds = Some(n))),
    short(Run, "transactions", 't', AtLeast("-t/--transactions", 1, |s, n| s.transactions = Some(n))),
    short(Any, "username", 'U', Text(|s, v| s.connection.user = Some(v))),
    short(Run, "vacuum-all", 'v', Flag(|s| s.vacuum_accounts = true)),
    long(Initialize, "unlogged-tables", Flag(|s| s.init.unlogged = true)),
    long(Initialize, "tablespace", Text(|s, v| s.init.tablespace = Some(v))),
    long(Initialize, "index-tablespace", Text(|s, v| s.init.index_tablespace = Some(v))),
    long(Run, "sampling-rate", Value(|s, v| sampling_rate(v).map(|rate| s.log.sampling_rate = Some(rate)))),
    long(Run, "aggregate-interval", AtLeast("--aggregate-interval", 1, |s, n| s.log.aggregate_s = Some(n))),
    long(Run, "progress-timestamp", Flag(|s| s.progress_timestamp = true)),
    long(Run, "log-prefix", Text(|s, v| s.log.prefix = Some(v))),
    long(Initialize, "foreign-keys", Flag(|s| s.init.foreign_keys = true)),
    long(Run, "random-seed", Act(|r, v| r.random_seed(v))),
    long(Any, "show-script", Act(|_, v| Err(Stop::Show(crate::scripts::find(v)?)))),
    long(Initialize, "partitions", AtLeast("--partitions", 0, |s, n| s.init.partitions = n)),
    long(Initialize, "partition-method", Value(|s, v| {
        s.init.partition_method = partition_method(v)?;
        s.partition_method_given = true;
        Ok(())
    })),
    long(Run, "failures-detailed", Flag(|s| s.failures_detailed = true)),
    long(Run, "max-tries", Value(|s, v| max_tries(v).map(|tries| s.max_tries = tries))),
    long(Run, "verbose-errors", Flag(|s| s.verbose_errors = true)),
    newer(alone("debug", short(Any, "dbname", 'd', Text(|s, v| s.connection.dbname = Some(v))))),
    newer(long(Run, "exit-on-abort", Flag(|s| s.exit_on_abort = true))),
    newer(long(Run, "continue-on-error", Flag(|s| s.continue_on_error = true))),
    newer(long(Any, "target", Text(|s, v| s.connection.target = Some(v)))),
    newer(long(Run, "warmup", AtLeast("--warmup", 0, |s, n| s.warmup_s = n))),
    newer(long(Run, "check-balances", Flag(|s| s.check_balances = true))),
    newer(long(Run, "percentiles", Value(|s, v| percentiles(v).map(|list| s.percentiles = list)))),
    newer(long(Run, "json", Text(|s, v| s.json = Some(v.into())))),
    newer(long(Run, "paper", Flag(|s| s.paper = true))),
    newer(long(Run, "hdr", Text(|s, v| s.hdr = Some(v.into())))),
    newer(long(Initialize, "resume", Flag(|s| s.init.resume = true))),
];
