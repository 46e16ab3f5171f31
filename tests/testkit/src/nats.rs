//! A NATS server for a test.

use crate::server::{TestServer, find_program, free_port};
use std::net::TcpStream;
use std::path::Path;

#[derive(Debug)]
pub struct Nats {
    server: TestServer,
    address: String,
    pub port: u16,
}

impl Nats {
    /// Starts a server on loopback. An error means that NATS isn't installed; panics when an installed one doesn't
    /// start.
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
        let server = TestServer::own(&program, arguments);
        let mut nats = Nats { server, address: address.to_owned(), port };
        nats.launch();
        Ok(nats)
    }

    pub fn launch(&mut self) {
        let address = format!("{}:{}", self.address, self.port);
        let launched = self.server.launch(|| TcpStream::connect(&address).is_ok());
        launched.unwrap_or_else(|why| panic!("{why}"));
    }

    /// kill -9. Returns when the process is gone.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// `login`: `user:password@` or nothing.
    pub fn url(&self, login: &str) -> String {
        format!("nats://{login}{}:{}", self.address, self.port)
    }
}
