//! From words to settings, in the order in which pgbench looks at them: what is wrong first is said,
//! scripts are loaded when their option is met.

mod options;

use super::getopt::{ArgumentWords, NextWords};
use super::numbers::{leading_double, leading_int, option_int, scanned_u64};
use super::refusal::Refusal;
use super::scripts::{self, Source};
use super::settings::Settings;
use dyno_pgbench::init::{InitStep, PartitionMethod};
use dyno_pgbench::script::{Builtin, QueryMode};
use options::{Mode, OPTIONS};

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
    let mut given = ArgumentWords::new(&OPTIONS, words);
    while let Some(next) = given.next() {
        match next.map_err(Refusal::words)? {
            NextWords::Operand(operand) => operands.push(operand),
            NextWords::Option(option, value) => {
                option.apply(&mut reader, &value)?;
                reader.only_run |= option.mode == Mode::Run;
                reader.only_initialize |= option.mode == Mode::Initialize;
            }
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
    fn builtin(&mut self, value: &str) -> Result<(), Stop> {
        if value == "list" {
            return Err(Stop::List);
        }
        let (script, weight) = scripts::split_weight(value)?;
        Ok(self.host.load(Source::Builtin(scripts::find(script)?), weight)?)
    }

    fn file(&mut self, value: &str) -> Result<(), Stop> {
        let (script, weight) = scripts::split_weight(value)?;
        Ok(self.host.load(Source::File(script.to_owned()), weight)?)
    }

    fn random_seed(&mut self, value: &str) -> Result<(), Stop> {
        let seed = random_seed(value, self.host);
        self.settings.seed = seed.map_err(|refusal| {
            refusal.then("error while setting random seed from --random-seed option")
        })?;
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

fn init_steps(value: &str) -> Result<Vec<InitStep>, Refusal> {
    InitStep::parse_all(value).map_err(|error| {
        let refusal = Refusal::error(&error);
        match error.detail() {
            Some(detail) => refusal.with_detail(detail),
            None => refusal,
        }
    })
}

fn partition_method(value: &str) -> Result<PartitionMethod, String> {
    let named = |method: &PartitionMethod| value.eq_ignore_ascii_case(method.name());
    PartitionMethod::ALL.into_iter().find(named).ok_or_else(|| {
        format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\"")
    })
}

fn protocol(value: &str) -> Result<QueryMode, Refusal> {
    let mode = QueryMode::ALL.into_iter().find(|mode| mode.name() == value);
    mode.ok_or_else(|| Refusal::error(format_args!("invalid query mode (-M): \"{value}\"")))
}

fn sampling_rate(value: &str) -> Result<f64, Refusal> {
    let rate = leading_double(value);
    let is_share = rate > 0.0 && rate <= 1.0;
    let refused = || Refusal::error(format_args!("invalid sampling rate: \"{value}\""));
    is_share.then_some(rate).ok_or_else(refused)
}

fn max_tries(value: &str) -> Result<u32, Refusal> {
    u32::try_from(leading_int(value))
        .map_err(|_| Refusal::error(format_args!("invalid number of maximum tries: \"{value}\"")))
}

fn above_0(value: &str, what: &str) -> Result<f64, Refusal> {
    let number = leading_double(value);
    let refused = || Refusal::error(format_args!("invalid {what}: \"{value}\""));
    (number > 0.0 && number.is_finite()).then_some(number).ok_or_else(refused)
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

fn percentiles(value: &str) -> Result<Vec<f64>, Refusal> {
    let refused = |takes: String| {
        Refusal::error(format_args!(
            "invalid value \"{value}\" for option --percentiles: it takes {takes}"
        ))
    };
    let percentiles = dyno_runner::percentiles::percentiles(value).map_err(refused)?;
    match percentiles.is_empty() {
        true => Err(refused("at least one number, such as 99".to_owned())),
        false => Ok(percentiles),
    }
}

#[cfg(test)]
mod tests;
