//! A MariaDB for a test.

use crate::fetched::Fetched;
use crate::prepared::prepared;
use crate::server::{TestServer, find_program, free_port, hand_over, set_up, unprivileged};
use crate::{Scratch, binary};
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A running MariaDB with user `root` (no password) and an empty database `sbtest`.
#[derive(Debug)]
pub struct MariaDb {
    /// The process; [`MariaDb::kill`] and [`MariaDb::restart`] drive it.
    pub server: TestServer,
    pub port: u16,
    pub socket: PathBuf,
}

impl MariaDb {
    /// Starts a small server; commits survive the death of the server, not of the machine. An error means that MariaDB
    /// isn't installed; panics when an installed one doesn't start.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&["--innodb-flush-log-at-trx-commit=2", "--max-connections=1200"])
    }

    /// Starts a server with further options.
    pub fn start_with(options: &[&str]) -> Result<Self, String> {
        let daemon = find_program(&["mariadbd"]).ok_or("mariadbd is not installed")?;
        let installer = find_program(&["mariadb-install-db", "/usr/bin/mariadb-install-db"])
            .ok_or("mariadb-install-db is not installed")?;
        Ok(Self::launch(&daemon, &installer, options)
            .unwrap_or_else(|why| panic!("MariaDB is installed but doesn't start: {why}")))
    }

    /// Starts a small server of a later version, which `tests/fetch-servers mariadb` has unpacked; an error says that
    /// it has not.
    pub fn start_fetched() -> Result<Self, String> {
        Self::start_fetched_with(&[])
    }

    /// Starts a fetched server with further options.
    pub fn start_fetched_with(options: &[&str]) -> Result<Self, String> {
        let fetched = Fetched::find("mariadb")?;
        Ok(Self::launch_fetched(&fetched, options)
            .unwrap_or_else(|why| panic!("MariaDB is there but doesn't start: {why}")))
    }

    fn launch(daemon: &str, installer: &str, options: &[&str]) -> Result<Self, String> {
        let arguments = vec!["--no-defaults".to_owned()];
        let scratch = prepared(daemon, include_str!("mariadb.rs"), |scratch| {
            // A server that starts removes files like temporary tables, also those of others in the same folder.
            set_up(
                unprivileged(installer)
                    .arg("--no-defaults")
                    .arg("--auth-root-authentication-method=normal")
                    .arg("--skip-test-db")
                    .arg(format!("--tmpdir={}", scratch.path().display()))
                    .arg(format!("--datadir={}", scratch.file("data").display())),
            )?;
            Self::with_sbtest(scratch, daemon, arguments.clone())
        })?;
        Self::on_data(scratch, daemon, arguments, options)
    }

    /// The installer is a script that looks for programs of this machine: what it does is done here.
    fn launch_fetched(fetched: &Fetched, options: &[&str]) -> Result<Self, String> {
        let (loader, mut arguments) = fetched.program("usr/sbin/mariadbd", "usr/lib")?;
        let shared_file = |name: &str| fetched.file(&format!("usr/share/{name}"));
        arguments.extend([
            "--no-defaults".to_owned(),
            format!("--basedir={}", fetched.file("usr")),
            format!("--lc-messages-dir={}", shared_file("mariadb")),
            format!("--character-sets-dir={}", shared_file("mariadb/charsets")),
        ]);
        let daemon = fetched.file("usr/sbin/mariadbd");
        let scratch = prepared(&daemon, include_str!("mariadb.rs"), |scratch| {
            let data = scratch.file("data");
            std::fs::create_dir(&data).map_err(|error| error.to_string())?;
            hand_over(&data)?;
            // A statement a line: the server's own parser of this script wants it so.
            let mut sql =
                "create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n".to_owned();
            for name in ["system_tables", "performance_tables", "system_tables_data"] {
                let file = shared_file(&format!("mariadb/mariadb_{name}.sql"));
                sql +=
                    &std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
            }
            let script = scratch.file("bootstrap.sql");
            std::fs::write(&script, sql).map_err(|error| error.to_string())?;
            let script = std::fs::File::open(&script).map_err(|error| error.to_string())?;
            set_up(
                unprivileged(&loader)
                    .args(&arguments)
                    .arg("--bootstrap")
                    .arg(format!("--datadir={}", data.display()))
                    .arg(format!("--tmpdir={}", scratch.path().display()))
                    .stdin(script),
            )?;
            Self::with_sbtest(scratch, &loader, arguments.clone())
        })?;
        Self::on_data(scratch, &loader, arguments, options)
    }

    /// A server that has had this folder, and has made the database `sbtest` there.
    fn with_sbtest(
        scratch: Scratch,
        program: &str,
        arguments: Vec<String>,
    ) -> Result<Self, String> {
        let mut mariadb = Self::on_data(scratch, program, arguments, &[])?;
        mariadb.sql("CREATE DATABASE sbtest")?;
        mariadb.server.shut_down(Signal::TERM)?;
        Ok(mariadb)
    }

    /// Starts a server on the folder `data` of `scratch`; `arguments` come first, `options` last.
    fn on_data(
        scratch: Scratch,
        program: &str,
        mut arguments: Vec<String>,
        options: &[&str],
    ) -> Result<Self, String> {
        let (port, socket) = (free_port(), scratch.file("s"));
        arguments.extend([
            format!("--datadir={}", scratch.file("data").display()),
            format!("--socket={}", socket.display()),
            format!("--port={port}"),
            format!("--pid-file={}", scratch.file("pid").display()),
            format!("--tmpdir={}", scratch.path().display()),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--innodb-log-file-size=48M".to_owned(),
            "--innodb-buffer-pool-size=128M".to_owned(),
        ]);
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let mut mariadb =
            MariaDb { server: TestServer::new(scratch, program, arguments), port, socket };
        mariadb.restart()?;
        Ok(mariadb)
    }

    /// Starts the process on its data again.
    pub fn restart(&mut self) -> Result<(), String> {
        let socket = self.socket.clone();
        // A client is a program: none is started for each look.
        let ready = || UnixStream::connect(&socket).is_ok() && client(&socket, "SELECT 1").is_ok();
        self.server.launch(ready)
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Runs statements as root with the server's own client; returns its output, with tabs between columns.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        client(&self.socket, sql)
    }

    /// A URL of dyno for the TCP port and database `sbtest`.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/sbtest", self.port)
    }

    /// A URL of dyno for the unix socket and database `sbtest`.
    pub fn socket_url(&self) -> String {
        format!("mysql://root@localhost/sbtest?socket={}", self.socket.display())
    }
}

fn client(socket: &std::path::Path, sql: &str) -> Result<String, String> {
    let program = find_program(&["mariadb"]).ok_or("the program mariadb is not installed")?;
    binary::run_for_stdout(
        std::process::Command::new(program)
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"])
            .arg(format!("--socket={}", socket.display()))
            .args(["--execute", sql]),
    )
}
