//! From words to settings, in the order in which pgbench looks at them: what is wrong first is said,
//! scripts are loaded when their option is met.

use super::getopt::{Given, Words};
use super::numbers::{leading_double, leading_int, option_int, scanned_u64};
use super::open_files;
use super::options::{Mode, Name, OPTIONS};
use super::refusal::Refusal;
use super::scripts::{self, Source};
use super::settings::Settings;
use dyno_pgbench::init::{PartitionMethod, Step};
use dyno_pgbench::script::{Builtin, QueryMode};

/// What pgbench does while it reads its options.
pub(super) trait Host {
    /// Says a line, before what follows it is looked at.
    fn say(&mut self, line: &str);

    fn load(&mut self, source: Source, weight: u32) -> Result<(), Refusal>;

    /// All options are read: scripts are sent in this mode.
    fn complete(&mut self, mode: QueryMode) -> Result<(), Refusal>;

    /// Scripts loaded so far, and the sum of their weights.
    fn scripts(&self) -> (usize, u64);
}

/// What ends the program while options are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Refused(Refusal),
    /// `-b list`.
    List,
    /// `--show-script`.
    Show(&'static Builtin),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Refusal::error(message)
    }
}

/// Reads the words after the program's name. `seed_variable` is `PGBENCH_RANDOM_SEED`.
pub(super) fn read(
    words: &[String],
    seed_variable: Option<&str>,
    host: &mut dyn Host,
) -> Result<Settings, Stop> {
    let seed = match seed_variable {
        None => time_as_seed(),
        Some(text) => random_seed(text, host).map_err(|refusal| {
            refusal.then(
                "error while setting random seed from PGBENCH_RANDOM_SEED environment variable",
            )
        })?,
    };
    let mut reader =
        Reader { settings: Settings::new(seed), only_run: false, only_initialize: false, host };
    let mut operands = Vec::new();
    let mut given = Words::new(&OPTIONS, words);
    while let Some(next) = given.next() {
        match next.map_err(Refusal::words)? {
            Given::Operand(operand) => operands.push(operand),
            Given::Option(name, value) => reader.take(name, &value)?,
        }
    }
    reader.complete(operands)
}

fn time_as_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_micros() as u64)
}

fn random_seed(text: &str, host: &mut dyn Host) -> Result<u64, Refusal> {
    let seed = match text {
        "time" => time_as_seed(),
        "rand" => {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
                .map_err(|_| Refusal::error("could not generate random seed"))?;
            u64::from_ne_bytes(bytes)
        }
        number => scanned_u64(number).ok_or_else(|| {
            Refusal::error(format_args!("unrecognized random seed option \"{number}\""))
                .with_detail("Expecting an unsigned integer, \"time\" or \"rand\".")
        })?,
    };
    host.say(&format!("pgbench: setting random seed to {seed}"));
    Ok(seed)
}

/// A whole number that is at least `min`, as the options call it.
fn at_least(text: &str, name: &str, min: i32) -> Result<u32, Refusal> {
    let number = option_int(text, name, min, i32::MAX)?;
    Ok(number.unsigned_abs())
}

struct Reader<'h> {
    settings: Settings,
    /// An option was given that only runs take.
    only_run: bool,
    /// An option was given that only initializations take.
    only_initialize: bool,
    host: &'h mut dyn Host,
}

impl Reader<'_> {
    fn take(&mut self, name: Name, value: &str) -> Result<(), Stop> {
        match name {
            Name::Builtin if value == "list" => return Err(Stop::List),
            Name::ShowScript => return Err(Stop::Show(scripts::find(value)?)),
            Name::Builtin | Name::File | Name::SelectOnly | Name::SkipSomeUpdates => {
                self.take_script(name, value)?;
            }
            _ => match name.mode() {
                Mode::Initialize => self.take_of_initialization(name, value)?,
                Mode::Any => self.take_of_both(name, value)?,
                Mode::Run => {
                    self.take_of_log(name, value)?;
                    self.take_of_run(name, value)?;
                }
            },
        }
        // pgbench 15 has no -i with -j, so that pair is free for an initialization in parallel.
        self.only_run |= name.mode() == Mode::Run;
        self.only_initialize |= name.mode() == Mode::Initialize;
        Ok(())
    }

    fn take_script(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let (source, weight) = match name {
            Name::SelectOnly => (Source::Builtin(scripts::find("select-only")?), 1),
            Name::SkipSomeUpdates => (Source::Builtin(scripts::find("simple-update")?), 1),
            Name::Builtin => {
                let (script, weight) = scripts::split_weight(value)?;
                (Source::Builtin(scripts::find(script)?), weight)
            }
            _ => {
                let (script, weight) = scripts::split_weight(value)?;
                (Source::File(script.to_owned()), weight)
            }
        };
        self.host.load(source, weight)
    }

    fn take_of_both(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let settings = &mut self.settings;
        let connection = &mut settings.connection;
        let text = Some(value.to_owned());
        match name {
            Name::Initialize => settings.initialize = true,
            Name::Host => connection.host = text,
            Name::Port => connection.port = text,
            Name::Username => connection.user = text,
            Name::Dbname => connection.dbname = text,
            Name::Target => connection.target = text,
            Name::Debug => settings.debug = true,
            Name::NoVacuum => settings.vacuum = false,
            Name::Scale => settings.scale = Some(at_least(value, "-s/--scale", 1)?),
            Name::Jobs => settings.threads = at_least(value, "-j/--jobs", 1)?,
            _ => {}
        }
        Ok(())
    }

    fn take_of_initialization(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let Settings { init, quiet, partition_method_given, .. } = &mut self.settings;
        match name {
            Name::Fillfactor => {
                let percent = option_int(value, "-F/--fillfactor", 10, 100)?;
                init.fillfactor = percent.unsigned_abs() as u8;
            }
            Name::InitSteps => {
                init.steps = Step::parse_all(value).map_err(|error| {
                    let refusal = Refusal::error(&error);
                    match error.detail() {
                        Some(detail) => refusal.with_detail(detail),
                        None => refusal,
                    }
                })?;
            }
            Name::Quiet => *quiet = true,
            Name::UnloggedTables => init.unlogged = true,
            Name::Tablespace => init.tablespace = Some(value.to_owned()),
            Name::IndexTablespace => init.index_tablespace = Some(value.to_owned()),
            Name::ForeignKeys => init.foreign_keys = true,
            Name::Partitions => init.partitions = at_least(value, "--partitions", 0)?,
            Name::PartitionMethod => {
                let methods = [PartitionMethod::Range, PartitionMethod::Hash];
                let named = |method: &PartitionMethod| value.eq_ignore_ascii_case(method.name());
                init.partition_method = methods.into_iter().find(named).ok_or_else(|| {
                    format!(
                        "invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\""
                    )
                })?;
                *partition_method_given = true;
            }
            Name::Resume => init.resume = true,
            _ => {}
        }
        Ok(())
    }

    fn take_of_log(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let settings = &mut self.settings;
        match name {
            Name::Log => settings.log.wanted = true,
            Name::LogPrefix => settings.log.prefix = Some(value.to_owned()),
            Name::SamplingRate => {
                let rate = leading_double(value);
                if rate <= 0.0 || rate > 1.0 {
                    return Err(Refusal::error(format_args!("invalid sampling rate: \"{value}\"")));
                }
                settings.log.sampling_rate = Some(rate);
            }
            Name::AggregateInterval => {
                settings.log.aggregate_s = Some(at_least(value, "--aggregate-interval", 1)?);
            }
            Name::Progress => settings.progress_s = Some(at_least(value, "-P/--progress", 1)?),
            Name::ProgressTimestamp => settings.progress_timestamp = true,
            Name::ReportPerCommand => settings.report_per_command = true,
            Name::FailuresDetailed => settings.failures_detailed = true,
            Name::VerboseErrors => settings.verbose_errors = true,
            Name::Json => settings.json = Some(value.into()),
            Name::Hdr => settings.hdr = Some(value.into()),
            Name::Percentiles => {
                settings.percentiles = percentiles(value)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_of_run(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let settings = &mut self.settings;
        let above_0 = |what: &str| match leading_double(value) {
            number if number > 0.0 => Ok(number),
            _ => Err(Refusal::error(format_args!("invalid {what}: \"{value}\""))),
        };
        match name {
            Name::Client => {
                settings.clients = at_least(value, "-c/--clients", 1)?;
                open_files::allow(settings.clients)?;
            }
            Name::Connect => settings.connect_each = true,
            Name::Define => settings.variables.push(variable(value)?),
            Name::LatencyLimit => {
                settings.late_limit_us = (above_0("latency limit")? * 1000.0) as u64;
            }
            Name::Rate => settings.rate_per_s = Some(above_0("rate limit")?),
            Name::Protocol => {
                let named = |mode: &QueryMode| mode.name() == value;
                settings.mode = QueryMode::ALL
                    .into_iter()
                    .find(named)
                    .ok_or_else(|| format!("invalid query mode (-M): \"{value}\""))?;
            }
            Name::Time => settings.seconds = Some(at_least(value, "-T/--time", 1)?),
            Name::Transactions => {
                settings.transactions = Some(at_least(value, "-t/--transactions", 1)?);
            }
            Name::VacuumAll => settings.vacuum_accounts = true,
            Name::RandomSeed => {
                settings.seed = random_seed(value, self.host).map_err(|refusal| {
                    refusal.then("error while setting random seed from --random-seed option")
                })?;
            }
            Name::MaxTries => {
                settings.max_tries = u32::try_from(leading_int(value))
                    .map_err(|_| format!("invalid number of maximum tries: \"{value}\""))?;
            }
            Name::ExitOnAbort => settings.exit_on_abort = true,
            Name::ContinueOnError => settings.continue_on_error = true,
            Name::CheckBalances => settings.check_balances = true,
            Name::Warmup => settings.warmup_s = at_least(value, "--warmup", 0)?,
            _ => {}
        }
        Ok(())
    }

    /// What pgbench looks at when all options are read.
    fn complete(mut self, operands: Vec<String>) -> Result<Settings, Stop> {
        if self.host.scripts().0 == 0 && !self.settings.initialize {
            self.host.load(Source::Builtin(scripts::find("tpcb-like")?), 1)?;
        }
        self.host.complete(self.settings.mode)?;
        if self.host.scripts().1 == 0 && !self.settings.initialize {
            return Err(Refusal::error("total script weight must not be zero").into());
        }
        let mut operands = operands.into_iter();
        let settings = &mut self.settings;
        if let Some(operand) = operands.next() {
            settings.connection.dbname = Some(operand);
        }
        if let Some(extra) = operands.next() {
            let message = format!("too many command-line arguments (first is \"{extra}\")");
            return Err(Refusal::error(message).with_advice().into());
        }
        if settings.initialize {
            self.check_initialization()?;
        } else {
            if self.only_initialize {
                let message = "some of the specified options cannot be used in benchmarking mode";
                return Err(Refusal::error(message).into());
            }
            settings.threads = settings.threads.min(settings.clients);
            check_run(settings)?;
        }
        check_target(&mut self.settings)?;
        Ok(self.settings)
    }

    fn check_initialization(&mut self) -> Result<(), Refusal> {
        if self.only_run || self.host.scripts().0 > 0 {
            return Err(Refusal::error(
                "some of the specified options cannot be used in initialization (-i) mode",
            ));
        }
        let settings = &mut self.settings;
        if settings.init.partitions == 0 && settings.partition_method_given {
            return Err(Refusal::error(
                "--partition-method requires greater than zero --partitions",
            ));
        }
        settings.init.scale = settings.scale.unwrap_or(1);
        settings.init.vacuum = settings.vacuum;
        settings.init.connections = settings.threads;
        Ok(())
    }
}

/// `NAME=VALUE` of `-D`.
fn variable(definition: &str) -> Result<(String, String), Refusal> {
    let (name, value) = definition
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("invalid variable definition: \"{definition}\""))?;
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_name =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_name {
        return Err(Refusal::error(format_args!("option: invalid variable name: \"{name}\"")));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Options that don't go together, in pgbench's order.
fn check_run(settings: &Settings) -> Result<(), Refusal> {
    let Settings { log, seconds, .. } = settings;
    let (seconds, aggregate) = (seconds.unwrap_or(0), log.aggregate_s.unwrap_or(0));
    let wrong = if settings.transactions.is_some() && seconds > 0 {
        "specify either a number of transactions (-t) or a duration (-T), not both"
    } else if log.sampling_rate.is_some() && !log.wanted {
        "log sampling (--sampling-rate) is allowed only when logging transactions (-l)"
    } else if log.sampling_rate.is_some() && aggregate > 0 {
        "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at \
         the same time"
    } else if aggregate > 0 && !log.wanted {
        "log aggregation is allowed only when actually logging transactions"
    } else if log.prefix.is_some() && !log.wanted {
        "log file prefix (--log-prefix) is allowed only when logging transactions (-l)"
    } else if seconds > 0 && aggregate > seconds {
        return Err(Refusal::error(format_args!(
            "number of seconds for aggregation ({aggregate}) must not be higher than test duration \
             ({seconds})"
        )));
    } else if seconds > 0 && aggregate > 0 && !seconds.is_multiple_of(aggregate) {
        return Err(Refusal::error(format_args!(
            "duration ({seconds}) must be a multiple of aggregation interval ({aggregate})"
        )));
    } else if settings.progress_timestamp && settings.progress_s.is_none() {
        "--progress-timestamp is allowed only under --progress"
    } else if settings.max_tries == 0 && settings.late_limit_us == 0 && seconds == 0 {
        "an unlimited number of transaction tries can only be used with --latency-limit or a \
         duration (-T)"
    } else {
        return Ok(());
    };
    Err(Refusal::error(wrong))
}

/// A URL names the whole database: nothing else may.
fn check_target(settings: &mut Settings) -> Result<(), Refusal> {
    let connection = &mut settings.connection;
    let is_url = |name: &String| {
        ["mysql://", "mariadb://", "sqlite:"].iter().any(|scheme| name.starts_with(scheme))
    };
    if connection.target.is_none() {
        connection.target = connection.dbname.take_if(|name| is_url(name));
    }
    if connection.target.is_none() {
        return Ok(());
    }
    let others = [
        ("-h/--host", &connection.host),
        ("-p/--port", &connection.port),
        ("-U/--username", &connection.user),
        ("a database name", &connection.dbname),
    ];
    match others.into_iter().find(|(_, given)| given.is_some()) {
        None => Ok(()),
        Some((other, _)) => Err(Refusal::error(format_args!(
            "a target's URL names host, port, user and database: {other} can't be given with it"
        ))),
    }
}

fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let refused =
        |takes| format!("invalid value \"{value}\" for option --percentiles: it takes {takes}");
    let percentiles = dyno_runner::percentiles::percentiles(value).map_err(refused)?;
    match percentiles.is_empty() {
        true => Err(refused("at least one number, such as 99".to_owned())),
        false => Ok(percentiles),
    }
}

#[cfg(test)]
mod tests;
