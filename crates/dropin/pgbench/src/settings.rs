//! What the options ask for.

use dyno_pgbench::init::InitOptions;
use dyno_pgbench::script::QueryMode;
use std::path::PathBuf;

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

/// What `-l` writes.
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
    /// 0 is no limit.
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
