//! `dyno pgbench`: the drop-in front end for pgbench 15.
//!
//! Words become [`options::Settings`] and scripts, these become an initialization or a trial; what
//! the trial says is printed in pgbench's shape. `dyno pgbench --help` says where dyno does better
//! than the original.

use command_line::Stop;
use dyno_core::{DbError, Dialect, ErrorOrigin, text_from_bytes};
use dyno_drivers::postgres::libpq_connection_failure;
use dyno_runner::failure::Exit;
use dyno_runner::front_end::{RunLevels, SweepLevel, parse_levels, sweep_words};
use dyno_runner::output::{self, Streams};
use dyno_runner::process_list;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

mod command_line;
mod follow;
mod initialize;
mod options;
mod report;
mod run;
mod scripts;
mod setup;

/// What runs are told that look for a version of pgbench.
const VERSION: &str = concat!("15.20 (dyno ", env!("CARGO_PKG_VERSION"), ")");

/// Does what pgbench would do with these arguments (without the program's name). `--paper` has `run_levels` make it.
pub fn run(
    arguments: Vec<OsString>,
    streams: &'static dyn Streams,
    run_levels: RunLevels,
) -> ExitCode {
    output::install(streams);
    let hidden = process_list::hide_values(&[]);
    let words: Vec<String> =
        arguments.iter().map(|argument| text_from_bytes(argument.as_bytes())).collect();
    if let (Err(error), true) = (hidden, words.iter().any(|word| has_secret(word))) {
        output::talk_lines(&format!(
            "pgbench: warning: the password can be seen in the process list: {error}"
        ));
    }
    let exit = match scripts::paper_of_words(&words) {
        Ok(Some(levels)) => return run_levels(&levels),
        Ok(None) => main_of(&words),
        Err(refusal) => Err(refusal),
    };
    exit.unwrap_or_else(refuse).into()
}

fn refuse(refusal: Refusal) -> Exit {
    output::talk_unended(&refusal.to_string());
    Exit::Failed
}

/// True when a word may hold a password: a URI, or a connection string with the keyword.
fn has_secret(word: &str) -> bool {
    word.contains("://") || word.contains("password")
}

fn main_of(words: &[String]) -> Result<Exit, Refusal> {
    let Some(levels) = sweep_of(words) else { return main_of_one(words, None, &mut None) };
    if words.iter().any(|word| word.starts_with("--hdr")) {
        let message =
            "the file of --hdr holds one run: a list of clients would write it anew for each";
        return Err(Refusal::error(message));
    }
    let mut level = 0;
    let run = |own: &[String], measured: &mut Option<SweepLevel>| {
        level += 1;
        main_of_one(own, Some(level), measured).unwrap_or_else(refuse)
    };
    let with = |clients| levels.words(words, clients);
    Ok(sweep_words("clients", words, &levels.clients, with, run, |message| {
        refuse(Refusal::from(message));
    }))
}

/// A list of clients.
struct Levels {
    /// The place of its word, and what precedes the list there.
    at: usize,
    before: &'static str,
    clients: Vec<u32>,
}

impl Levels {
    /// The words with one number instead of the list.
    fn words(&self, words: &[String], clients: u32) -> Vec<String> {
        let mut own = words.to_vec();
        own[self.at] = format!("{}{clients}", self.before);
        own
    }
}

fn sweep_of(words: &[String]) -> Option<Levels> {
    let of_word = |at: usize| {
        let word = &words[at];
        let is_value = at > 0 && matches!(words[at - 1].as_str(), "-c" | "--client");
        let option = ["--client=", "-c"].into_iter().find(|option| word.starts_with(option));
        let before = option.or(is_value.then_some(""))?;
        Some(Levels { at, before, clients: parse_levels(&word[before.len()..])? })
    };
    (0..words.len()).rev().find_map(of_word)
}

/// A command line with one number of clients: of a list, that at place `level`. A run leaves what it has `measured`.
fn main_of_one(
    words: &[String],
    level: Option<usize>,
    measured: &mut Option<SweepLevel>,
) -> Result<Exit, Refusal> {
    // As in pgbench, these words count in the first place only.
    match words.first().map(String::as_str) {
        Some("--help" | "-?") => {
            output::data(HELP);
            return Ok(Exit::Done);
        }
        Some("--version" | "-V") => {
            output::data(&format!("pgbench (PostgreSQL) {VERSION}\n"));
            return Ok(Exit::Done);
        }
        _ => {}
    }
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let (mut settings, loader) = match command_line::read(words, seed.as_deref()) {
        Ok(read) => read,
        Err(Stop::Refused(refusal)) => return Err(refusal),
        Err(Stop::List) => {
            output::talk_lines(scripts::list().strip_suffix('\n').unwrap_or_default());
            return Ok(Exit::Done);
        }
        Err(Stop::Show(builtin)) => {
            let dyno_pgbench::script::Builtin { name, description, text } = builtin;
            output::talk_lines(&format!("-- {name}: {description}\n{text}"));
            return Ok(Exit::Done);
        }
    };
    if settings.initialize {
        return initialize::run(&settings);
    }
    settings.log.level = level;
    let (exit, done) = self::run::run(&settings, loader, words)?;
    *measured = Some(done);
    Ok(exit)
}

/// The lines for standard error, as pgbench writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl Refusal {
    /// `pgbench: error: ...`
    pub(super) fn error(message: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: error: {message}\n"))
    }

    /// The refusal of a connection, in the words of libpq if the server is PostgreSQL.
    pub(super) fn unconnected(error: &DbError, dialect: Dialect) -> Self {
        if dialect == Dialect::Postgres
            && let Some(mut words) = libpq_connection_failure(error)
        {
            if let Some(detail) = error.detail().filter(|_| error.is_from_server()) {
                words.push_str(&format!("\nDETAIL:  {detail}"));
            }
            let refusal = Refusal::error(words);
            // The last of several hosts may have failed for a reason of dyno's own.
            return refusal.hinted(error.hint().filter(|_| error.origin() == ErrorOrigin::Dyno));
        }
        Refusal::error(error).hinted(error.hint())
    }

    /// A complaint about the words themselves, with the advice that follows it.
    pub(super) fn words(complaint: impl fmt::Display) -> Self {
        Refusal(format!("pgbench: {complaint}\n")).with_advice()
    }

    /// Adds where all options are explained.
    pub(super) fn with_advice(self) -> Self {
        self.with("hint", "Try \"pgbench --help\" for more information.")
    }

    /// Adds a line of this kind: `detail`, `hint`, or a further `error`.
    pub(super) fn with(mut self, kind: &str, text: impl fmt::Display) -> Self {
        self.0.push_str(&format!("pgbench: {kind}: {text}\n"));
        self
    }

    /// Adds the hint, if there is one.
    pub(super) fn hinted(self, hint: Option<impl fmt::Display>) -> Self {
        match hint {
            Some(hint) => self.with("hint", hint),
            None => self,
        }
    }

    pub(super) fn with_text(mut self, text: &str) -> Self {
        self.0.push_str(text);
        self
    }
}

/// All lines, each with its line end.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The options, as pgbench lays them out, and the differences.
const HELP: &str = "\
pgbench is a benchmarking tool for PostgreSQL.
This is dyno's own: that of version 15, with what later versions added.

Usage:
  pgbench [OPTION]... [DBNAME]
  dyno pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         invokes initialization mode
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run selected initialization steps
  -F, --fillfactor=NUM     set fill factor
  -j, --jobs=NUM           load accounts over NUM connections at the same time (default: 1)
  -n, --no-vacuum          do not run VACUUM during initialization
  -q, --quiet              quiet logging (one message each 5 seconds)
  -s, --scale=NUM          scaling factor
  --foreign-keys           create foreign key constraints between tables
  --index-tablespace=TABLESPACE
                           create indexes in the specified tablespace
  --partition-method=(range|hash)
                           partition pgbench_accounts with this method (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts (default: 0)
  --resume                 keep what an interrupted load has stored and load what is missing
  --tablespace=TABLESPACE  create tables in the specified tablespace
  --unlogged-tables        create tables as unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add builtin script NAME weighted at W (default: 1)
                           (use \"-b list\" to list available scripts)
  -f, --file=FILENAME[@W]  add script FILENAME weighted at W (default: 1)
  -N, --skip-some-updates  skip updates of pgbench_tellers and pgbench_branches
                           (same as \"-b simple-update\")
  -S, --select-only        perform SELECT-only transactions
                           (same as \"-b select-only\")

Benchmarking options:
  -c, --client=NUM         number of concurrent database clients (default: 1)
  -C, --connect            establish new connection for each transaction
  -D, --define=VARNAME=VALUE
                           define variable for use by custom script
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write transaction times to log file
  -L, --latency-limit=NUM  count transactions lasting more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  -n, --no-vacuum          do not run VACUUM before tests
  -P, --progress=NUM       show thread progress report every NUM seconds
  -r, --report-per-command report latencies, failures, and retries per command
  -R, --rate=NUM           target rate in transactions per second
  -s, --scale=NUM          report this scale factor in output
  -t, --transactions=NUM   number of transactions each client runs (default: 10)
  -T, --time=NUM           duration of benchmark test in seconds
  -v, --vacuum-all         vacuum all four standard tables before tests
  --aggregate-interval=NUM aggregate data over NUM seconds
  --continue-on-error      count a transaction with an SQL error as failed and go on
  --exit-on-abort          exit when any client is aborted
  --failures-detailed      report the failures grouped by basic types
  --log-prefix=PREFIX      prefix for transaction time log file
                           (default: \"pgbench_log\")
  --max-tries=NUM          max number of tries to run transaction (default: 1)
  --progress-timestamp     use Unix epoch timestamps for progress
  --random-seed=SEED       set random seed (\"time\", \"rand\", integer)
  --sampling-rate=NUM      fraction of transactions to log (e.g., 0.01 for 1%)
  --show-script=NAME       show builtin script code, then exit
  --verbose-errors         print messages of all errors

Common options:
  -d, --debug              print debugging output
  -d, --dbname=DBNAME      database name to connect to (-d without a name is --debug)
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user
  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

Options of dyno (off by default, so that reports look as ever):
  --target=URL             any database: mysql://USER@HOST/DB, sqlite:FILE, postgres://...;
                           such a URL may also stand in the place of DBNAME
  -c LIST                  several numbers, such as 1,2,4: a run of each, and a table at the end; -l then
                           writes PREFIX.PID.level1 in the first run, .level2 in the second, ...
  --percentiles=LIST       add a line per percentile of the latency, such as 50,95,99.9; without
                           connecting, also with -C, as in --json and in the table of -c LIST
  --json=FILE              write the result as JSON (\"-\" is standard output)
  --paper                  run each number of -c as `dyno run` does, checks and looks at the server
                           included, and write a paper of them into a folder below dyno-runs; needs -T
  --hdr=FILE               write latencies as an HdrHistogram interval log
  --warmup=NUM             run NUM seconds before measuring
  --check-balances         after the run, check that accounts, tellers, branches and history
                           changed alike (reads all accounts before and after)
  load_balance_hosts=rotate
                           in a connection string: client N connects to host N modulo their number
                           (else each client takes the first host that answers, as in libpq)

Better than the original:
  Connecting and preparing are outside of the measured time, -T included; clients connect at the
  same time, not one after the other. With -C connecting is inside, as ever.
  A client that stops after an error makes the run fail visibly: standard error states how many
  clients stopped and how many of the transactions asked for were executed (exit code 2).
  A run in which nothing was executed is an error (exit code 1), and so is one with
  --continue-on-error in which no transaction succeeded because of errors that are no conflicts.
  The latency average is measured, not computed from the time of the run; with -C, and where
  transactions failed, it is computed as ever (unless -P, -R or -L): connecting and failures are in it.
  Statistics of -r and of several scripts are exact under any -j.
  Nothing that one client does stalls another: not \\shell, not a slow connect, not the first
  PREPARE.
  A script of -f that uses :scale without -s on larger tables gets a warning: all its clients
  would use the first part of the data only.
  The limit of open files is raised as far as the system allows.
  Passwords in URIs and connection strings are wiped from the process list.
  While `dyno run` or another -i works on the tables, -i does not begin, and a run gets a warning.
  -i fails where the server stored fewer rows than were sent.
  The same scripts and -i work on MySQL-protocol servers and on SQLite.

Kept as it is: with -R each of the -j threads draws arrivals of its own at its share of the rate,
which wait for the clients of that thread only. The latency so depends on -j; with -j 1, and in
dyno run, all clients take from one queue.

Exit codes: 0 fine, 1 wrong option or script, no connection, or nothing executed or successful, 2 at
least one client stopped before the others, 130 stopped with Ctrl-C, 143 stopped by SIGTERM (the
report of what was done until then is printed).
";

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Address;

    #[test]
    fn a_list_of_clients_is_a_sweep() {
        let sweep = |words: &[&str]| {
            let levels = sweep_of(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
            levels.map(|levels| (levels.at, levels.clients))
        };
        let levels = |at, clients: &[u32]| Some((at, clients.to_vec()));
        assert_eq!(sweep(&["-T", "5", "-c", "1,2,4"]), levels(3, &[1, 2, 4]));
        assert_eq!(sweep(&["-c1,8", "-T", "5"]), levels(0, &[1, 8]));
        assert_eq!(sweep(&["--client=2,3"]), levels(0, &[2, 3]));
        assert_eq!(sweep(&["-c", "8", "-D", "1,2"]), None);
        assert_eq!(sweep(&["-c", "1,0"]), None, "it is refused before the first run");
    }

    #[test]
    fn a_login_that_the_server_refuses_has_its_detail() {
        let at = Address::Tcp { host: "db".to_owned(), port: 1 };
        let error = DbError::login(0, *b"22023", "bad DateStyle").with_detail("No such word.");
        assert_eq!(
            Refusal::unconnected(&error.at(&at), Dialect::Postgres).to_string(),
            "pgbench: error: connection to server at \"db\", port 1 failed: FATAL:  bad DateStyle\n\
             DETAIL:  No such word.\n"
        );
    }
}
