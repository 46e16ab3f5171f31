//! The table of options: those of pgbench 15, of later versions, and dyno's own.

use super::getopt::OptionWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Builtin,
    Client,
    Connect,
    Dbname,
    Debug,
    Define,
    File,
    Fillfactor,
    Host,
    Initialize,
    InitSteps,
    Jobs,
    Log,
    LatencyLimit,
    NoVacuum,
    Port,
    Progress,
    Protocol,
    Quiet,
    ReportPerCommand,
    Rate,
    Scale,
    SelectOnly,
    SkipSomeUpdates,
    Time,
    Transactions,
    Username,
    VacuumAll,
    UnloggedTables,
    Tablespace,
    IndexTablespace,
    SamplingRate,
    AggregateInterval,
    ProgressTimestamp,
    LogPrefix,
    ForeignKeys,
    RandomSeed,
    ShowScript,
    Partitions,
    PartitionMethod,
    FailuresDetailed,
    MaxTries,
    VerboseErrors,
    ExitOnAbort,
    ContinueOnError,
    Target,
    Warmup,
    CheckBalances,
    Percentiles,
    Json,
    Hdr,
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Only with `-i`.
    Initialize,
    /// Never with `-i`.
    Run,
    Any,
}

impl Name {
    pub(super) fn mode(self) -> Mode {
        match self {
            Name::Fillfactor
            | Name::InitSteps
            | Name::Quiet
            | Name::UnloggedTables
            | Name::Tablespace
            | Name::IndexTablespace
            | Name::ForeignKeys
            | Name::Partitions
            | Name::PartitionMethod
            | Name::Resume => Mode::Initialize,
            Name::Initialize
            | Name::Host
            | Name::Port
            | Name::Username
            | Name::Dbname
            | Name::Target
            | Name::Debug
            | Name::NoVacuum
            | Name::Scale
            | Name::ShowScript
            // pgbench has no use for threads here; dyno loads with as many connections.
            | Name::Jobs => Mode::Any,
            _ => Mode::Run,
        }
    }
}

const fn plain(id: Name, long: &'static str, short: char) -> OptionWord<Name> {
    OptionWord { id, long, short: Some(short), takes_value: false, is_newer: false }
}

const fn with_value(id: Name, long: &'static str, short: char) -> OptionWord<Name> {
    OptionWord { id, long, short: Some(short), takes_value: true, is_newer: false }
}

const fn long_plain(id: Name, long: &'static str) -> OptionWord<Name> {
    OptionWord { id, long, short: None, takes_value: false, is_newer: false }
}

const fn long_with_value(id: Name, long: &'static str) -> OptionWord<Name> {
    OptionWord { id, long, short: None, takes_value: true, is_newer: false }
}

const fn newer(word: OptionWord<Name>) -> OptionWord<Name> {
    OptionWord { is_newer: true, ..word }
}

/// All options, those of pgbench 15 in its order: complaints list them so.
#[rustfmt::skip]
pub(super) static OPTIONS: [OptionWord<Name>; 52] = [
    with_value(Name::Builtin, "builtin", 'b'),
    with_value(Name::Client, "client", 'c'),
    plain(Name::Connect, "connect", 'C'),
    // Until version 15 the short form was -d, which names the database since.
    long_plain(Name::Debug, "debug"),
    with_value(Name::Define, "define", 'D'),
    with_value(Name::File, "file", 'f'),
    with_value(Name::Fillfactor, "fillfactor", 'F'),
    with_value(Name::Host, "host", 'h'),
    plain(Name::Initialize, "initialize", 'i'),
    with_value(Name::InitSteps, "init-steps", 'I'),
    with_value(Name::Jobs, "jobs", 'j'),
    plain(Name::Log, "log", 'l'),
    with_value(Name::LatencyLimit, "latency-limit", 'L'),
    plain(Name::NoVacuum, "no-vacuum", 'n'),
    with_value(Name::Port, "port", 'p'),
    with_value(Name::Progress, "progress", 'P'),
    with_value(Name::Protocol, "protocol", 'M'),
    plain(Name::Quiet, "quiet", 'q'),
    plain(Name::ReportPerCommand, "report-per-command", 'r'),
    with_value(Name::Rate, "rate", 'R'),
    with_value(Name::Scale, "scale", 's'),
    plain(Name::SelectOnly, "select-only", 'S'),
    plain(Name::SkipSomeUpdates, "skip-some-updates", 'N'),
    with_value(Name::Time, "time", 'T'),
    with_value(Name::Transactions, "transactions", 't'),
    with_value(Name::Username, "username", 'U'),
    plain(Name::VacuumAll, "vacuum-all", 'v'),
    long_plain(Name::UnloggedTables, "unlogged-tables"),
    long_with_value(Name::Tablespace, "tablespace"),
    long_with_value(Name::IndexTablespace, "index-tablespace"),
    long_with_value(Name::SamplingRate, "sampling-rate"),
    long_with_value(Name::AggregateInterval, "aggregate-interval"),
    long_plain(Name::ProgressTimestamp, "progress-timestamp"),
    long_with_value(Name::LogPrefix, "log-prefix"),
    long_plain(Name::ForeignKeys, "foreign-keys"),
    long_with_value(Name::RandomSeed, "random-seed"),
    long_with_value(Name::ShowScript, "show-script"),
    long_with_value(Name::Partitions, "partitions"),
    long_with_value(Name::PartitionMethod, "partition-method"),
    long_plain(Name::FailuresDetailed, "failures-detailed"),
    long_with_value(Name::MaxTries, "max-tries"),
    long_plain(Name::VerboseErrors, "verbose-errors"),
    newer(with_value(Name::Dbname, "dbname", 'd')),
    newer(long_plain(Name::ExitOnAbort, "exit-on-abort")),
    newer(long_plain(Name::ContinueOnError, "continue-on-error")),
    newer(long_with_value(Name::Target, "target")),
    newer(long_with_value(Name::Warmup, "warmup")),
    newer(long_plain(Name::CheckBalances, "check-balances")),
    newer(long_with_value(Name::Percentiles, "percentiles")),
    newer(long_with_value(Name::Json, "json")),
    newer(long_with_value(Name::Hdr, "hdr")),
    newer(long_plain(Name::Resume, "resume")),
];
