//! Scripts run by this crate and by the original, and what both say.

use dyno_core::{Dialect, Driver, Outcome, Rng, Session, Tally, Workload};
use dyno_drivers::TargetUrl;
use dyno_drivers::postgres::PostgresDriver;
use dyno_pgbench::run::{PgBench, PgbenchOptions, Talk};
use dyno_pgbench::script::{QueryMode, Script};
use dyno_reactor::block_on;
use dyno_testkit::sim::{Service, SimDriver, SimulatedAnswers as SimScript};
use dyno_testkit::{Postgres, Scratch, peer};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// The name of the script's file in messages.
pub(crate) const FILE: &str = "script.sql";

/// A case to run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) script: Vec<u8>,
    pub(crate) mode: QueryMode,
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) transactions: u32,
    pub(crate) seed: u64,
    pub(crate) scale: i64,
}

impl Case {
    pub(crate) fn new(script: &[u8]) -> Self {
        Case {
            script: script.to_vec(),
            mode: QueryMode::Simple,
            defines: Vec::new(),
            transactions: 1,
            seed: 1,
            scale: 1,
        }
    }
}

/// Messages for `talk`, as pgbench prints them.
#[derive(Clone, Default)]
pub(crate) struct Messages(Arc<Mutex<String>>);

impl Messages {
    /// A function that keeps what a run prints.
    pub(crate) fn talker(&self) -> dyno_pgbench::run::Talker {
        let buffer = Arc::clone(&self.0);
        Box::new(move |talk| {
            let (before, text) = match talk {
                Talk::Error(text) => ("pgbench: error: ", text),
                Talk::Info(text) => ("pgbench: ", text),
                Talk::Debug(text) => ("", text),
            };
            buffer.lock().unwrap().push_str(&format!("{before}{text}\n"));
        })
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A database that answers nothing of interest, at once.
pub(crate) fn silent_driver() -> SimDriver {
    let service = Service::Constant(0);
    SimDriver::new(SimScript { service, dialect: Dialect::Postgres, ..SimScript::default() })
}

/// Runs the transactions of client 0; returns the messages.
pub(crate) fn run<D: Driver>(driver: &D, case: &Case) -> String {
    let script = match Script::parse(&case.script, FILE, case.mode) {
        Ok(script) => script,
        Err(error) => return format!("pgbench: error: {error}\n"),
    };
    let messages = Messages::default();
    let options = PgbenchOptions {
        defines: case.defines.clone(),
        scale: case.scale,
        ..PgbenchOptions::new(vec![(script, 1)], case.mode, case.seed)
    };
    let workload = match PgBench::new(options, driver.dialect(), messages.talker()) {
        Ok(workload) => workload,
        Err(error) => return format!("pgbench: error: {error}\n"),
    };
    block_on(async {
        let mut session = driver.connect(0).await.unwrap();
        let rng = Rng::new(1, "worker", 0);
        let mut client = workload.open(&mut session, 0, 1, rng).await.unwrap();
        for _ in 0..case.transactions {
            let mut tally = Tally::default();
            let result = workload.run(&mut client, &mut session, 0, 0, &mut tally).await;
            match result {
                Ok(outcome) => assert_eq!(outcome, Outcome::Committed),
                Err(_) => break,
            }
        }
        workload.retire(client, None);
        session.close().await;
    })
    .unwrap();
    messages.text()
}

/// The installed pgbench and a server for it.
pub(crate) struct Original {
    pub(crate) server: Postgres,
    pgbench: String,
    folder: Scratch,
}

impl Original {
    /// `None`, having said why, if there is none.
    pub(crate) fn start(test: &str, options: &[&str]) -> Option<Original> {
        let Some(pgbench) = peer("pgbench") else {
            dyno_testkit::skipped(test, "pgbench is not installed");
            return None;
        };
        let server = match Postgres::start_with(options) {
            Ok(server) => server,
            Err(why) => {
                dyno_testkit::skipped(test, &why);
                return None;
            }
        };
        let original = Original { server, pgbench, folder: Scratch::new() };
        let version = original.command().arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        if !version.starts_with("pgbench (PostgreSQL) 15.") {
            dyno_testkit::skipped(
                test,
                &format!("the golden files are those of 15, not {version}"),
            );
            return None;
        }
        let output = original.command().args(["-i", "-q", "sbtest"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(original)
    }

    /// The command of the original, with its environment.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.pgbench);
        command
            .current_dir(self.folder.path())
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.server.port.to_string())
            .env("PGUSER", "postgres")
            .env_remove("PGBENCH_RANDOM_SEED");
        command
    }

    pub(crate) fn driver(&self) -> PostgresDriver {
        let target: TargetUrl = self.server.url().parse().unwrap();
        PostgresDriver::new(&target).unwrap()
    }

    /// pgbench's output for several scripts of the same text, with their weights.
    pub(crate) fn run_files(
        &self,
        files: &[(&str, u32)],
        text: &str,
        transactions: u32,
        seed: u64,
    ) -> String {
        let mut command = self.command();
        command.args(["-n", "-t", &transactions.to_string(), &format!("--random-seed={seed}")]);
        for (name, weight) in files {
            std::fs::write(self.folder.file(name), text).unwrap();
            command.arg("-f").arg(format!("{name}@{weight}"));
        }
        normalized_errors(&mut command)
    }

    /// pgbench's output for a case, without lines on the run as a whole.
    pub(crate) fn run(&self, case: &Case) -> String {
        std::fs::write(self.folder.file(FILE), &case.script).unwrap();
        let mut command = self.command();
        command
            .args(["-n", "-f", FILE, "-M", case.mode.name()])
            .args(["-t", &case.transactions.to_string(), "-s", &case.scale.to_string()])
            .arg(format!("--random-seed={}", case.seed));
        for (name, value) in &case.defines {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        normalized_errors(&mut command)
    }
}

fn normalized_errors(command: &mut Command) -> String {
    let output = command.arg("sbtest").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let run_messages = ["pgbench: setting random seed to", "pgbench: error: Run was aborted;"];
    errors
        .lines()
        .filter(|line| !run_messages.iter().any(|start| line.starts_with(start)))
        .map(|line| format!("{line}\n"))
        .collect()
}
