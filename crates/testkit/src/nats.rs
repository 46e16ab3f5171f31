//! A NATS server of one's own.

use crate::Scratch;
use crate::server::{find_program, free_port};
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running NATS server, ended with its life.
#[derive(Debug)]
pub struct Nats {
    child: Option<Child>,
    program: String,
    arguments: Vec<String>,
    address: String,
    scratch: Scratch,
    pub port: u16,
}

impl Nats {
    /// Starts a server on loopback.
    /// An error where NATS isn't installed; panics where it is and doesn't start.
    pub fn start() -> Result<Self, String> {
        Self::start_with("127.0.0.1", &[])
    }

    /// Starts a server on an address of this machine, with further options.
    pub fn start_with(address: &str, options: &[&str]) -> Result<Self, String> {
        let fetched =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats/usr/sbin/nats-server");
        let candidates = ["nats-server", &fetched.display().to_string()];
        let program = find_program(&candidates).ok_or("nats-server is not installed")?;
        let port = free_port();
        let mut arguments =
            vec!["--addr".to_owned(), address.to_owned(), "--port".to_owned(), port.to_string()];
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let scratch = Scratch::new();
        let address = address.to_owned();
        let mut nats = Nats { child: None, program, arguments, address, scratch, port };
        nats.launch();
        Ok(nats)
    }

    pub fn launch(&mut self) {
        let log = File::options().create(true).append(true).open(self.log_file());
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the log can be written"))
            .spawn()
            .expect("nats-server can be run");
        self.child = Some(child);
        let address = format!("{}:{}", self.address, self.port);
        crate::wait_until("the NATS server", || {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "nats-server ended: {}", self.log());
            TcpStream::connect(&address).is_ok()
        });
    }

    /// kill -9. Returns when the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its URL, with a login where one is given: `user:password@` or nothing.
    pub fn url(&self, login: &str) -> String {
        format!("nats://{login}{}:{}", self.address, self.port)
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.file("nats.log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
