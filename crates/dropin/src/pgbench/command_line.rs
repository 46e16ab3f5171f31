//! Words as the C library's `getopt_long` takes them: bundled short options, abbreviated long ones, values glued or
//! apart, operands anywhere. The order is pgbench's, which reports the first error and loads scripts in the order
//! of the words.

use super::Refusal;
use super::options::{Mode, OPTIONS, PgbenchOption, Settings};
use super::scripts::{self, Loader, Source};
use dyno_core::nearest;
use dyno_pgbench::init::{InitStep, PartitionMethod};
use dyno_pgbench::script::{Builtin, QueryMode};
use dyno_runner::output;

/// The reason to end the program during parsing.
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

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Refusal::error(message).into()
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Refusal::error(message)
    }
}

/// Reads the words after the program's name, and the scripts that they name. `seed_variable` is `PGBENCH_RANDOM_SEED`.
pub(super) fn read(
    words: &[String],
    seed_variable: Option<&str>,
) -> Result<(Settings, Loader), Stop> {
    let seed = match seed_variable {
        None => crate::time_as_seed(),
        Some(text) => random_seed(text, "PGBENCH_RANDOM_SEED environment variable")?,
    };
    let mut reader = Reader { settings: Settings::new(seed), loader: Loader::default() };
    let (mut modes, mut operands) = (Vec::new(), Vec::new());
    let mut arguments = ArgumentWords::new(words);
    while let Some(next) = arguments.next() {
        match next.map_err(Refusal::words)? {
            NextWords::Operand(operand) => operands.push(operand),
            NextWords::Option(option, value) => {
                option.apply(&mut reader, &value)?;
                modes.push(option.mode);
            }
        }
    }
    reader.complete(operands, &modes)
}

/// The seed that `origin` names.
fn random_seed(text: &str, origin: &str) -> Result<u64, Refusal> {
    let seed = match text {
        "time" => Ok(crate::time_as_seed()),
        "rand" => {
            let mut bytes = [0; 8];
            let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
            filled
                .map(|_| u64::from_ne_bytes(bytes))
                .map_err(|_| Refusal::error("could not generate random seed"))
        }
        number => scanned_u64(number).ok_or_else(|| {
            Refusal::error(format_args!("unrecognized random seed option \"{number}\""))
                .with("detail", "Expecting an unsigned integer, \"time\" or \"rand\".")
        }),
    };
    let seed = seed.map_err(|refusal| {
        refusal.with("error", format_args!("error while setting random seed from {origin}"))
    })?;
    output::talk_lines(&format!("pgbench: setting random seed to {seed}"));
    Ok(seed)
}

/// The values that options set.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) settings: Settings,
    loader: Loader,
}

impl Reader {
    /// Takes `-b`: a built-in script with its weight, or `list`.
    pub(super) fn builtin(&mut self, value: &str) -> Result<(), Stop> {
        if value == "list" {
            return Err(Stop::List);
        }
        let (script, weight) = scripts::split_weight(value)?;
        Ok(self.loader.load(&Source::Builtin(scripts::find(script)?), weight)?)
    }

    /// Takes `-f`: the file of a script with its weight.
    pub(super) fn file(&mut self, value: &str) -> Result<(), Stop> {
        let (script, weight) = scripts::split_weight(value)?;
        Ok(self.loader.load(&Source::File(script.to_owned()), weight)?)
    }

    pub(super) fn random_seed(&mut self, value: &str) -> Result<(), Stop> {
        self.settings.seed = random_seed(value, "--random-seed option")?;
        Ok(())
    }

    /// Completes and checks the settings after all options are read, as pgbench does.
    fn complete(
        mut self,
        operands: Vec<String>,
        modes: &[Mode],
    ) -> Result<(Settings, Loader), Stop> {
        let settings = &mut self.settings;
        if self.loader.len() == 0 && !settings.initialize {
            self.loader.load(&Source::Builtin(scripts::find("tpcb-like")?), 1)?;
        }
        self.loader.complete(settings.mode)?;
        if self.loader.total_weight() == 0 && !settings.initialize {
            return Err(Refusal::error("total script weight must not be zero").into());
        }
        let mut operands = operands.into_iter();
        if settings.connection.dbname.is_none() {
            settings.connection.dbname = operands.next();
        }
        if let Some(extra) = operands.next() {
            let message = format!("too many command-line arguments (first is \"{extra}\")");
            return Err(Refusal::error(message).with_advice().into());
        }
        if settings.initialize {
            let has_run_options = modes.contains(&Mode::Run) || self.loader.len() > 0;
            check_initialization(settings, has_run_options)?;
        } else {
            if modes.contains(&Mode::Initialize) {
                let message = "some of the specified options cannot be used in benchmarking mode";
                return Err(Refusal::error(message).into());
            }
            settings.threads = settings.threads.min(settings.clients);
            check_run(settings)?;
        }
        check_target(settings)?;
        Ok((self.settings, self.loader))
    }
}

fn check_initialization(settings: &mut Settings, has_others: bool) -> Result<(), Refusal> {
    if has_others {
        return Err(Refusal::error(
            "some of the specified options cannot be used in initialization (-i) mode",
        ));
    }
    if settings.init.partitions == 0 && settings.partition_method_given {
        return Err(Refusal::error("--partition-method requires greater than zero --partitions"));
    }
    settings.init.scale = settings.scale.unwrap_or(1);
    settings.init.vacuum = settings.vacuum;
    settings.init.connections = settings.threads;
    Ok(())
}

pub(super) fn init_steps(value: &str) -> Result<Vec<InitStep>, Refusal> {
    InitStep::parse_all(value)
        .map_err(|(message, detail)| Refusal::error(message).with_any("detail", detail))
}

pub(super) fn partition_method(value: &str) -> Result<PartitionMethod, String> {
    let mut methods = PartitionMethod::ALL.into_iter();
    methods.find(|method| value.eq_ignore_ascii_case(method.name())).ok_or_else(|| {
        format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\"")
    })
}

/// Reads the value of `-M`.
pub(super) fn protocol(value: &str) -> Result<QueryMode, Refusal> {
    let mode = QueryMode::ALL.into_iter().find(|mode| mode.name() == value);
    mode.ok_or_else(|| Refusal::error(format_args!("invalid query mode (-M): \"{value}\"")))
}

pub(super) fn sampling_rate(value: &str) -> Result<f64, Refusal> {
    let rate = leading_double(value);
    if rate > 0.0 && rate <= 1.0 {
        return Ok(rate);
    }
    Err(Refusal::error(format_args!("invalid sampling rate: \"{value}\"")))
}

pub(super) fn max_tries(value: &str) -> Result<u32, Refusal> {
    u32::try_from(leading_int(value))
        .map_err(|_| Refusal::error(format_args!("invalid number of maximum tries: \"{value}\"")))
}

pub(super) fn above_0(value: &str, what: &str) -> Result<f64, Refusal> {
    let number = leading_double(value);
    if number > 0.0 && number.is_finite() {
        return Ok(number);
    }
    Err(Refusal::error(format_args!("invalid {what}: \"{value}\"")))
}

/// `NAME=VALUE` of `-D`.
pub(super) fn variable(definition: &str) -> Result<(String, String), Refusal> {
    let (name, value) = definition
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("invalid variable definition: \"{definition}\""))?;
    let is_name =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_name {
        return Err(Refusal::error(format_args!("option: invalid variable name: \"{name}\"")));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Returns true if the name of a variable may begin with `c`.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
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
    if let Some(refusal) = connection.dbname.as_deref().and_then(misspelt_url) {
        return Err(refusal);
    }
    if connection.target.is_none() {
        connection.target = connection.dbname.take_if(|name| {
            ["mysql://", "mariadb://", "sqlite:"].iter().any(|scheme| name.starts_with(scheme))
        });
    }
    if connection.target.is_none() {
        return Ok(());
    }
    let connection_parts = [
        ("-h/--host", &connection.host),
        ("-p/--port", &connection.port),
        ("-U/--username", &connection.user),
        ("a database name", &connection.dbname),
    ];
    match connection_parts.into_iter().find(|(_, given)| given.is_some()) {
        None => Ok(()),
        Some((part, _)) => Err(Refusal::error(format_args!(
            "a target's URL names host, port, user and database: {part} can't be given with it"
        ))),
    }
}

/// A URL that would be sent as a database's name, with its password: it is not shown either.
fn misspelt_url(name: &str) -> Option<Refusal> {
    const SCHEMES: [&str; 5] = ["mysql", "mariadb", "sqlite", "postgres", "postgresql"];
    let (scheme, rest) = name.split_once(':')?;
    let near = nearest(scheme, SCHEMES);
    let is_right = match near {
        Some("sqlite") => scheme == "sqlite",
        _ => SCHEMES.contains(&scheme) && rest.starts_with("//"),
    };
    if is_right || !(rest.starts_with("//") || near.is_some()) || scheme.contains([' ', '=']) {
        return None;
    }
    let meant = near.unwrap_or("mysql, mariadb, sqlite or postgres");
    let form = if meant == "sqlite" { "sqlite:FILE" } else { "SCHEME://USER@HOST/DATABASE" };
    Some(Refusal::error(format_args!(
        "\"{scheme}:\" begins no URL that is known: write {form}, with the scheme {meant}"
    )))
}

/// Reads the list of `--percentiles`; it must not be empty.
pub(super) fn percentiles(value: &str) -> Result<Vec<f64>, Refusal> {
    let takes = match dyno_runner::front_end::percentiles(value) {
        Ok(percentiles) if !percentiles.is_empty() => return Ok(percentiles),
        Ok(_) => "at least one number, such as 99".to_owned(),
        Err(takes) => takes,
    };
    Err(Refusal::error(format_args!(
        "invalid value \"{value}\" for option --percentiles: it takes {takes}"
    )))
}

#[derive(Debug)]
pub(super) enum NextWords {
    /// An option; the text is empty when it takes no value.
    Option(&'static PgbenchOption, String),
    Operand(String),
}

/// Goes through the words one by one, so that what an option does can happen before the next one is
/// looked at.
pub(super) struct ArgumentWords<'a> {
    words: std::slice::Iter<'a, String>,
    /// Unread rest of a word of bundled short options.
    bundle: std::str::Chars<'a>,
    only_operands: bool,
}

impl<'a> ArgumentWords<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        ArgumentWords { words: words.iter(), bundle: "".chars(), only_operands: false }
    }

    /// The next option or operand; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<NextWords, String>> {
        if let Some(letter) = self.bundle.next() {
            return Some(self.short(letter));
        }
        let word = self.words.next()?;
        if self.only_operands || word == "-" || !word.starts_with('-') {
            return Some(Ok(NextWords::Operand(word.clone())));
        }
        if word == "--" {
            self.only_operands = true;
            return self.next();
        }
        if let Some(body) = word.strip_prefix("--") {
            return Some(self.long(body));
        }
        self.bundle = word[1..].chars();
        self.next()
    }

    /// Returns the short option, with the rest of its word or the next word as the value.
    fn short(&mut self, letter: char) -> Result<NextWords, String> {
        let Some(option) = OPTIONS.iter().find(|option| option.row.letter == Some(letter)) else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        if !option.takes_value {
            return Ok(NextWords::Option(option, String::new()));
        }
        if let Some(long) = option.alone
            && self.bundle.as_str().is_empty()
            && self.words.as_slice().first().is_none_or(|word| word.starts_with('-'))
        {
            return self.long(long);
        }
        let glued = std::mem::replace(&mut self.bundle, "".chars()).as_str();
        let value =
            if glued.is_empty() { self.words.next().map(String::as_str) } else { Some(glued) };
        match value {
            Some(value) => Ok(NextWords::Option(option, value.to_owned())),
            None => Err(format!("option requires an argument -- '{letter}'")),
        }
    }

    /// Returns the long option in a word without its dashes, with the value that it needs.
    fn long(&mut self, body: &str) -> Result<NextWords, String> {
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let option = self.find(name, body)?;
        let value = match (option.takes_value, value) {
            (false, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", option.row.name));
            }
            (false, None) => "",
            (true, Some(value)) => value,
            (true, None) => match self.words.next() {
                Some(value) => value,
                None => return Err(format!("option '--{}' requires an argument", option.row.name)),
            },
        };
        Ok(NextWords::Option(option, value.to_owned()))
    }

    /// Returns the option with this name, or the only one that begins with it; `body` is for the error.
    fn find(&self, name: &str, body: &str) -> Result<&'static PgbenchOption, String> {
        if let Some(exact) = OPTIONS.iter().find(|option| option.row.name == name) {
            return Ok(exact);
        }
        for newer in [false, true] {
            let fitting: Vec<_> = OPTIONS
                .iter()
                .filter(|option| option.is_newer == newer && option.row.name.starts_with(name))
                .collect();
            match fitting.as_slice() {
                [] => {}
                [only] => return Ok(only),
                several => {
                    let names: Vec<_> =
                        several.iter().map(|option| format!(" '--{}'", option.row.name)).collect();
                    let names = names.concat();
                    return Err(format!("option '--{body}' is ambiguous; possibilities:{names}"));
                }
            }
        }
        Err(format!("unrecognized option '--{body}'"))
    }
}

/// The number at the beginning of a text, as `strtod` finds it; 0 if there is none.
pub(super) fn leading_double(text: &str) -> f64 {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let mut end = skip_digits(bytes, skip_sign(bytes, 0));
    if bytes.get(end) == Some(&b'.') {
        end = skip_digits(bytes, end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let exponent = skip_sign(bytes, end + 1);
        let exponent_end = skip_digits(bytes, exponent);
        if exponent_end > exponent {
            end = exponent_end;
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

/// Returns the end of the digits that begin at `at`; `at` if there are none.
fn skip_digits(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the place after a sign at `at`; `at` if there is none.
fn skip_sign(text: &[u8], at: usize) -> usize {
    if matches!(text.get(at), Some(b'+' | b'-')) { at + 1 } else { at }
}

/// The integer at the beginning of a text, as `atoi` finds it; 0 if there is none.
pub(super) fn leading_int(text: &str) -> i32 {
    let (value, _) = long(text);
    // What doesn't fit is cut, as the C library's conversion from long does.
    value.unwrap_or(i64::MAX) as i32
}

/// Parses the beginning of a text as `strtol` does: the number (`None` when it is out of range)
/// and the rest.
pub(super) fn long(text: &str) -> (Option<i64>, &str) {
    let body = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let sign = usize::from(body.starts_with(['+', '-']));
    let digits = body[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (Some(0), text);
    }
    let (number, rest) = body.split_at(sign + digits);
    (number.parse().ok(), rest)
}

/// An unsigned number of 64 bits as `scanf` takes it: signs and overflow included.
pub(super) fn scanned_u64(text: &str) -> Option<u64> {
    let body = text.trim_start();
    let (is_negative, digits) = match body.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match digits.parse::<u64>() {
        Ok(number) if is_negative => number.wrapping_neg(),
        Ok(number) => number,
        Err(_) => u64::MAX,
    })
}

/// The whole number an option takes. `name` is as pgbench calls it in its complaints.
pub(super) fn option_int(text: &str, name: &str, min: i32, max: i32) -> Result<i32, String> {
    let (value, rest) = long(text);
    if !rest.trim_ascii_start().is_empty() {
        return Err(format!("invalid value \"{text}\" for option {name}"));
    }
    value
        .and_then(|value| i32::try_from(value).ok())
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| format!("{name} must be in range {min}..{max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::options::Length;

    fn read_line(line: &[&str]) -> Result<(Settings, Loader), Stop> {
        let words: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        read(&words, None)
    }

    fn good(line: &[&str]) -> Settings {
        let read = read_line(line).unwrap_or_else(|stop| panic!("{line:?}: {stop:?}"));
        read.0
    }

    fn refusal(line: &[&str]) -> String {
        match read_line(line) {
            Err(Stop::Refused(refusal)) => refusal.to_string(),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_pgbenchs() {
        let (settings, loader) = read_line(&[]).expect("an empty command line is a run");
        assert_eq!(settings, Settings { seed: settings.seed, ..Settings::new(0) });
        assert_eq!(settings.length(), Length::Transactions(10));
        assert_eq!(loader.to_suite().expect("a suite").test, "tpcb-like");
    }

    /// Every option of a run, in all spellings.
    const ALL_OF_A_RUN: &str = "\
        -Mprepared -c 8 -j3 -T60 -C -P 5 -r -R 1.5e3 -L20.5 -l -Dx=1 --define=x=a=b \
        -nv -s 7 --log-prefix=p --sampling-rate=.5 --failures-detailed --max-tries=0 \
        --verbose-errors --progress-timestamp --random-seed=9 --exit-on-abort \
        --continue-on-error --debug -h a,b -p1 -U me -d second \
        --percentiles=50,99 --json=j --hdr h --warmup=3 --check-balances";

    #[test]
    fn every_option_of_a_run_is_taken() {
        let settings = good(&ALL_OF_A_RUN.split_whitespace().collect::<Vec<_>>());
        let expected = Settings {
            mode: QueryMode::Prepared,
            clients: 8,
            threads: 3,
            seconds: Some(60),
            connect_each: true,
            progress_s: Some(5),
            report_per_command: true,
            rate_per_s: Some(1500.0),
            late_limit_us: 20_500,
            variables: [("x", "1"), ("x", "a=b")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .to_vec(),
            vacuum: false,
            vacuum_accounts: true,
            scale: Some(7),
            failures_detailed: true,
            max_tries: 0,
            verbose_errors: true,
            progress_timestamp: true,
            exit_on_abort: true,
            continue_on_error: true,
            debug: true,
            percentiles: vec![50.0, 99.0],
            json: Some("j".into()),
            hdr: Some("h".into()),
            warmup_s: 3,
            check_balances: true,
            connection: crate::pgbench::options::Connection {
                host: Some("a,b".to_owned()),
                port: Some("1".to_owned()),
                user: Some("me".to_owned()),
                dbname: Some("second".to_owned()),
                target: None,
            },
            log: crate::pgbench::options::LogSettings {
                wanted: true,
                prefix: Some("p".to_owned()),
                sampling_rate: Some(0.5),
                ..crate::pgbench::options::LogSettings::default()
            },
            ..Settings::new(9)
        };
        assert_eq!(settings, expected);
        assert_eq!((settings.variable("x"), settings.variable("y")), (Some("a=b"), None));
    }

    #[test]
    fn every_option_of_an_initialization_is_taken() {
        let settings = good(&[
            "-iqn",
            "-s20",
            "-F",
            "90",
            "-I",
            "dt gp",
            "--foreign-keys",
            "--partitions=4",
            "--partition-method=HASH",
            "--tablespace=a",
            "--index-tablespace=b",
            "--unlogged-tables",
            "-j",
            "2",
            "--resume",
            "bench",
        ]);
        let init = dyno_pgbench::init::InitOptions {
            steps: InitStep::parse_all("dtgp").expect("letters"),
            scale: 20,
            fillfactor: 90,
            vacuum: false,
            foreign_keys: true,
            partitions: 4,
            partition_method: PartitionMethod::Hash,
            tablespace: Some("a".to_owned()),
            index_tablespace: Some("b".to_owned()),
            unlogged: true,
            connections: 2,
            resume: true,
        };
        assert_eq!(settings.init, init);
        assert!(settings.initialize && settings.quiet);
    }

    #[test]
    fn scripts_have_weights_and_keep_their_order() {
        let file = std::env::temp_dir().join(format!("dyno-script-{}@b", std::process::id()));
        std::fs::write(&file, "SELECT 1;").expect("a temporary file");
        let weighted = format!("{}@3", file.display());
        let (_, loader) = read_line(&["-f", &weighted, "-S", "-btpcb@0", "-N"]).expect("scripts");
        std::fs::remove_file(&file).expect("the temporary file");
        let name = file.file_name().expect("a name").to_string_lossy();
        let expected =
            [&format!("1/{name}@3"), "2/select-only@1", "3/tpcb-like@0", "4/simple-update@1"];
        assert_eq!(loader.to_suite().expect("a suite").named, expected);
    }

    #[test]
    fn seeds_come_from_the_option_or_the_environment() {
        assert_eq!(good(&["--random-seed=-1"]).seed, u64::MAX);
        assert_eq!(read(&[], Some("5")).expect("a seed").0.seed, 5);
        assert!(matches!(read(&[], Some("x")), Err(Stop::Refused(_))));
        assert_ne!(good(&["--random-seed=rand"]).seed, good(&["--random-seed=rand"]).seed);
    }

    #[test]
    fn urls_name_the_whole_database() {
        assert_eq!(good(&["sqlite:x.db"]).connection.target.as_deref(), Some("sqlite:x.db"));
        let target = good(&["-i", "--target", "mysql://h/x"]).connection.target;
        assert_eq!(target.as_deref(), Some("mysql://h/x"));
        // libpq reads these by itself.
        let dbname = good(&["postgres://h/x"]).connection.dbname;
        assert_eq!(dbname.as_deref(), Some("postgres://h/x"));
        for (name, scheme) in [
            ("mysqll://u:geheim@h/b?sslmode=disable", "mysql"),
            ("postgress://u:geheim@h/b", "postgres"),
            ("mysql:/u:geheim@h/b", "mysql"),
            ("other://u:geheim@h/b", "mariadb"),
        ] {
            let message = refusal(&[name]);
            assert!(
                message.contains(&format!(" {scheme}")) && !message.contains("geheim"),
                "{message}"
            );
        }
        for name in ["a:b", "sqlite:/tmp/x", "mariadb://h/x", "host=a password=x://y"] {
            good(&[name]);
        }
        assert!(
            refusal(&["--target=mysql://h/x", "db"]).contains("a database name can't be given")
        );
        // As in version 18.
        let two_names = refusal(&["-d", "a", "b"]);
        assert!(
            two_names.contains("too many command-line arguments (first is \"b\")"),
            "{two_names}"
        );
        assert!(refusal(&["-h", "a", "mysql://h/x"]).contains("-h/--host can't be given"));
    }

    #[test]
    fn what_comes_first_is_said_first() {
        assert_eq!(
            refusal(&["-c", "0", "-j", "x"]),
            "pgbench: error: -c/--client must be in range 1..2147483647\n"
        );
        assert!(matches!(read_line(&["-b", "list", "-c", "0"]), Err(Stop::List)));
        let stop = read_line(&["--show-script=se", "-c0"]).expect_err("a script to show");
        assert_eq!(stop, Stop::Show(scripts::find("select-only").expect("it")));
    }

    #[test]
    fn extras_are_checked() {
        for empty in ["--percentiles=", "--percentiles=,"] {
            assert!(refusal(&[empty]).contains("it takes at least one number"), "{empty}");
        }
        assert_eq!(
            refusal(&["--percentiles=0"]),
            "pgbench: error: invalid value \"0\" for option --percentiles: it takes a list of numbers \
             above 0 and up to 100, with commas, such as 50,95,99.9\n"
        );
        assert!(refusal(&["-i", "--json=x"]).contains("initialization (-i) mode"));
        assert!(refusal(&["--resume"]).contains("benchmarking mode"));
        assert_eq!(good(&["-c2", "-j9"]).threads, 2);
        for endless in ["inf", "nan", "1e999"] {
            let expected = format!("pgbench: error: invalid rate limit: \"{endless}\"\n");
            assert_eq!(refusal(&["-R", endless]), expected);
            assert!(refusal(&["-L", endless]).contains("invalid latency limit"), "{endless}");
        }
    }

    /// Names of options with their values, and operands.
    fn tokens(line: &[&str]) -> Result<Vec<(&'static str, String)>, String> {
        let line: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let mut words = ArgumentWords::new(&line);
        let mut tokens = Vec::new();
        while let Some(next) = words.next() {
            tokens.push(match next? {
                NextWords::Option(option, value) => (option.row.name, value),
                NextWords::Operand(word) => ("", word),
            });
        }
        Ok(tokens)
    }

    fn option(name: &'static str, value: &str) -> (&'static str, String) {
        (name, value.to_owned())
    }

    #[test]
    fn values_may_be_glued_or_apart_and_operands_anywhere() {
        assert_eq!(
            tokens(&["db", "-nCc8", "-c", "9", "--client=", "--client", "-1", "-", "--", "-n"]),
            Ok(vec![
                option("", "db"),
                option("no-vacuum", ""),
                option("connect", ""),
                option("client", "8"),
                option("client", "9"),
                option("client", ""),
                option("client", "-1"),
                option("", "-"),
                option("", "-n"),
            ])
        );
    }

    #[test]
    fn abbreviations_mean_what_they_meant_before_newer_options_came() {
        assert_eq!(tokens(&["--j=1", "--js=x", "--no"]), {
            Ok(vec![option("jobs", "1"), option("json", "x"), option("no-vacuum", "")])
        });
        assert_eq!(
            tokens(&["--c=3"]),
            Err("option '--c=3' is ambiguous; possibilities: '--client' '--connect'".to_owned())
        );
    }

    #[test]
    fn complaints_are_the_c_librarys() {
        for (line, complaint) in [
            (&["--foo=1"][..], "unrecognized option '--foo=1'"),
            (&["-nx"], "invalid option -- 'x'"),
            (&["-c"], "option requires an argument -- 'c'"),
            (&["--cl"], "option '--client' requires an argument"),
            (&["--conn=3"], "option '--connect' doesn't allow an argument"),
        ] {
            assert_eq!(tokens(line), Err(complaint.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn doubles_end_where_strtod_ends() {
        for (text, value) in [
            ("12.5ms", 12.5),
            (" +.5", 0.5),
            ("-1e3x", -1000.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("7.", 7.0),
            ("", 0.0),
            (".", 0.0),
            ("abc", 0.0),
        ] {
            assert!((leading_double(text) - value).abs() < f64::EPSILON, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_checked_as_pgbench_checks_them() {
        const NAME: &str = "-F/--fillfactor";
        for (text, number) in [(" 50 ", 50), ("+10", 10)] {
            assert_eq!(option_int(text, NAME, 10, 100), Ok(number));
        }
        let range = Err("-F/--fillfactor must be in range 10..100".to_owned());
        for text in ["9", "101", "", " ", "99999999999999999999", "-50"] {
            assert_eq!(option_int(text, NAME, 10, 100), range, "{text:?}");
        }
        for text in ["x", "5x", "1 2", "-", "0x10"] {
            let invalid = format!("invalid value \"{text}\" for option -F/--fillfactor");
            assert_eq!(option_int(text, NAME, 10, 100), Err(invalid));
        }
    }

    #[test]
    fn seeds_are_read_as_scanf_reads_them() {
        assert_eq!(scanned_u64(" 12"), Some(12));
        assert_eq!(scanned_u64("-1"), Some(u64::MAX));
        assert_eq!(scanned_u64("99999999999999999999999"), Some(u64::MAX));
        for text in ["", "x", "1x", "1 ", "--1"] {
            assert_eq!(scanned_u64(text), None, "{text:?}");
        }
        assert_eq!((leading_int("12abc"), leading_int("-3"), leading_int("x")), (12, -3, 0));
    }
}
