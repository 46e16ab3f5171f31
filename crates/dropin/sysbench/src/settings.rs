//! The general options, typed. Those of the tests are `dyno_sysbench::Options`.

use super::values::whole;
use dyno_drivers::Secret;
use dyno_drivers::net::TlsMode;
use std::path::PathBuf;

/// When a run whose time is over is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ForcedShutdown {
    /// Transactions in flight may take as long as they want.
    #[default]
    Off,
    /// So many seconds after the end of `--time`.
    Seconds(u64),
    /// So many percent of `--time` after its end.
    Percent(u64),
}

impl ForcedShutdown {
    /// Reads `off`, seconds, or a percentage; empty is a twentieth of the time.
    pub(super) fn parse(value: &str) -> Result<Self, String> {
        let expected = |_| "off, a number of seconds, or a percentage of --time".to_owned();
        match value {
            "off" => Ok(ForcedShutdown::Off),
            "" => Ok(ForcedShutdown::Percent(5)),
            _ => match value.strip_suffix('%') {
                Some(percent) => {
                    whole(percent, 0, 1_000_000).map(ForcedShutdown::Percent).map_err(expected)
                }
                None => {
                    whole(value, 0, 1_000_000_000).map(ForcedShutdown::Seconds).map_err(expected)
                }
            },
        }
    }

    /// Seconds of grace after `time_s`; `None` when nothing is forced.
    pub(super) fn grace_s(self, time_s: u64) -> Option<u64> {
        match self {
            ForcedShutdown::Off => None,
            ForcedShutdown::Seconds(seconds) => Some(seconds),
            ForcedShutdown::Percent(percent) => Some(time_s.saturating_mul(percent) / 100),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DbDriver {
    #[default]
    Mysql,
    Pgsql,
    Sqlite,
}

impl DbDriver {
    pub(super) const NAMES: [(&'static str, DbDriver); 3] =
        [("mysql", DbDriver::Mysql), ("pgsql", DbDriver::Pgsql), ("sqlite", DbDriver::Sqlite)];
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReportFormat {
    /// sysbench's lines.
    #[default]
    Default,
    /// The lines of sysbench's csv reporter.
    Csv,
}

/// TLS as `--mysql-ssl` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MysqlSsl {
    /// 1.0: off.
    #[default]
    Off,
    /// 1.0: on, with the files of the working directory, where there are any.
    WorkingDirectory,
    /// The words of the master branch.
    Mode(TlsMode),
}

impl MysqlSsl {
    pub(super) fn parse(value: &str) -> Result<Self, String> {
        let mode = match value.to_ascii_uppercase().as_str() {
            "DISABLED" => TlsMode::Disable,
            "PREFERRED" => TlsMode::Prefer,
            "REQUIRED" => TlsMode::Require,
            "VERIFY_CA" => TlsMode::VerifyCa,
            "VERIFY_IDENTITY" => TlsMode::VerifyFull,
            _ => {
                let words = "on, off, DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY";
                let on = super::values::switch(value).map_err(|_| words.to_owned())?;
                return Ok(if on { MysqlSsl::WorkingDirectory } else { MysqlSsl::Off });
            }
        };
        Ok(MysqlSsl::Mode(mode))
    }
}

/// Which errors the transaction is tried again after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum IgnoredErrors {
    All,
    /// These codes: numbers of MySQL, SQLSTATEs of PostgreSQL.
    #[default]
    None,
    Codes(Vec<String>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct MysqlSettings {
    pub(super) hosts: Vec<String>,
    pub(super) ports: Vec<u16>,
    pub(super) sockets: Vec<PathBuf>,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) db: String,
    pub(super) ssl: MysqlSsl,
    pub(super) ssl_key: Option<PathBuf>,
    pub(super) ssl_cert: Option<PathBuf>,
    pub(super) ssl_ca: Option<PathBuf>,
    pub(super) dry_run: bool,
    pub(super) compression: bool,
    /// With commas between them.
    pub(super) compression_algorithms: String,
    pub(super) ignore_errors: IgnoredErrors,
    pub(super) allow_cleartext: bool,
    pub(super) server_public_key: String,
    /// The port was given: then `localhost` does not mean the unix socket.
    pub(super) port_given: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PgsqlSettings {
    pub(super) hosts: Vec<String>,
    pub(super) ports: Vec<u16>,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) db: String,
    pub(super) sslmode: TlsMode,
    pub(super) ssl_root_cert: Option<PathBuf>,
    pub(super) allow_cleartext: bool,
    pub(super) ignore_errors: IgnoredErrors,
}

/// All general options. `Settings::default()` of [`super::options`] fills the defaults from the
/// table that help prints; the derived one is blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) threads: u32,
    /// 0 is no limit.
    pub(super) events: u64,
    /// Seconds; 0 is no limit.
    pub(super) time_s: u64,
    pub(super) forced_shutdown: ForcedShutdown,
    /// Transactions per second; 0 is a closed loop.
    pub(super) rate_per_s: u64,
    /// Seconds; 0 is no intermediate reports.
    pub(super) report_interval_s: u64,
    pub(super) report_checkpoints_s: Vec<u64>,
    pub(super) debug: bool,
    pub(super) validate: bool,
    pub(super) help: bool,
    pub(super) version: bool,
    /// 0 is the current time.
    pub(super) rand_seed: u64,
    pub(super) verbosity: u8,
    /// 0 is none.
    pub(super) percentile: u32,
    pub(super) histogram: bool,
    pub(super) db_driver: DbDriver,
    pub(super) mysql: MysqlSettings,
    pub(super) pgsql: PgsqlSettings,
    pub(super) sqlite_db: PathBuf,
    pub(super) percentiles: Vec<f64>,
    /// Where the result goes as JSON; `-` is stdout.
    pub(super) json: Option<PathBuf>,
    pub(super) errors: bool,
    /// The run is one of a suite and leaves a paper.
    pub(super) paper: bool,
    pub(super) warmup_s: u64,
    /// 0 is as many as [`dyno_engine::default_loops`] has.
    pub(super) loops: u32,
    pub(super) thread_init_timeout_s: u64,
    /// Bytes that the Lua state of a worker may use.
    pub(super) lua_memory: u64,
    pub(super) report_format: ReportFormat,
}

impl Settings {
    /// True when stdout is kept free for the result as JSON.
    pub(super) fn json_to_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// True when nothing is sent to any server.
    pub(super) fn is_dry(&self) -> bool {
        self.mysql.dry_run && self.db_driver == DbDriver::Mysql
    }

    /// Rules that concern more than one option.
    ///
    /// # Errors
    /// The sentence after `FATAL: `.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.histogram && self.percentile == 0 {
            return Err("--histogram cannot be used with --percentile=0".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_shutdown_takes_seconds_percent_and_nothing() {
        let grace = |value| ForcedShutdown::parse(value).map(|forced| forced.grace_s(60));
        assert_eq!(grace("off"), Ok(None));
        assert_eq!(grace("7"), Ok(Some(7)));
        assert_eq!(grace("10%"), Ok(Some(6)));
        assert_eq!(grace(""), Ok(Some(3)));
        assert!(grace("abc").is_err() && grace("-1").is_err() && grace("%").is_err());
    }

    #[test]
    fn mysql_ssl_takes_the_words_of_both_versions() {
        assert_eq!(MysqlSsl::parse("on"), Ok(MysqlSsl::WorkingDirectory));
        assert_eq!(MysqlSsl::parse(""), Ok(MysqlSsl::WorkingDirectory));
        assert_eq!(MysqlSsl::parse("off"), Ok(MysqlSsl::Off));
        assert_eq!(MysqlSsl::parse("VERIFY_CA"), Ok(MysqlSsl::Mode(TlsMode::VerifyCa)));
        assert_eq!(MysqlSsl::parse("required"), Ok(MysqlSsl::Mode(TlsMode::Require)));
        assert!(MysqlSsl::parse("maybe").is_err());
    }
}
