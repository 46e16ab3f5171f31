//! PgBouncer before a PostgreSQL, for a test.

use crate::server::{TestServer, find_program, free_port, hand_over};
use crate::{Postgres, Scratch};
use std::net::TcpStream;
use std::path::Path;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// A running PgBouncer with at most eight sessions of its server, whose users are trusted.
#[derive(Debug)]
pub struct PgBouncer {
    _server: TestServer,
    port: u16,
}

impl PgBouncer {
    /// `mode`: to whom a session of the server belongs: `session`, `transaction` or `statement`. An error means that it
    /// isn't installed; panics when an installed one doesn't start.
    pub fn before(postgres: &Postgres, mode: &str) -> Result<Self, String> {
        let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pgbouncer/usr");
        let (program, libraries) =
            (fetched.join("sbin/pgbouncer"), fetched.join("lib/x86_64-linux-gnu"));
        // What is not installed finds its libraries by the loader.
        let (program, arguments) = match find_program(&["pgbouncer"]) {
            Some(installed) => (installed, Vec::new()),
            None if program.is_file() => {
                let (libraries, program) = (libraries.display(), program.display());
                let words =
                    ["--library-path".to_owned(), libraries.to_string(), program.to_string()];
                (LOADER.to_owned(), Vec::from(words))
            }
            None => return Err("PgBouncer is not installed".to_owned()),
        };
        Ok(Self::launch(&program, arguments, postgres.port, mode)
            .unwrap_or_else(|why| panic!("PgBouncer is installed but doesn't start: {why}")))
    }

    fn launch(
        program: &str,
        mut arguments: Vec<String>,
        server_port: u16,
        mode: &str,
    ) -> Result<Self, String> {
        let (scratch, port) = (Scratch::new(), free_port());
        let (users, settings) = (scratch.file("users"), scratch.file("pgbouncer.ini"));
        let text = format!(
            "[databases]\nsbtest = host=127.0.0.1 port={server_port}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\n\
             default_pool_size = 8\nignore_startup_parameters = extra_float_digits\n",
            users.display()
        );
        let written = std::fs::write(&users, "\"postgres\" \"\"\n")
            .and_then(|()| std::fs::write(&settings, text));
        written.map_err(|error| format!("can't write its settings: {error}"))?;
        hand_over(scratch.path())?;
        arguments.push(settings.display().to_string());
        let mut server = TestServer::new(scratch, program, arguments);
        server.launch(|| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(PgBouncer { _server: server, port })
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/sbtest", self.port)
    }
}
