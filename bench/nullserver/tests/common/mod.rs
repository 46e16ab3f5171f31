//! Hand-made clients that can also break the rules.
#![expect(dead_code, reason = "each test file uses its own part")]

use dyno_nullserver::{Config, Handle, start};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server on free ports.
pub(crate) fn server(config: Config) -> Handle {
    start(Config { mysql_port: Some(0), postgres_port: Some(0), ..config }).expect("start")
}

/// Longer than any answer takes; a server that hangs fails its test.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(port: Option<u16>) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port.expect("a port"))).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    stream.set_nodelay(true).expect("nodelay");
    stream
}

pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
pub(crate) const LOCAL_FILES: u32 = 1 << 7;
pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
/// MariaDB's bit 36 in the upper word.
pub(crate) const CACHE_METADATA: u32 = 1 << 4;

/// A MySQL client.
pub(crate) struct Mysql {
    pub(crate) stream: TcpStream,
    /// Sequence number of the last packet received.
    pub(crate) sequence: u8,
}

impl Mysql {
    /// Reads the greeting only.
    pub(crate) fn greeted(handle: &Handle) -> Self {
        let mut client = Mysql { stream: connect(handle.config.mysql_port), sequence: 0 };
        let greeting = client.packet();
        assert_eq!((greeting[0], client.sequence), (10, 0));
        client
    }

    /// Logs in with the usual capabilities, `more` of the lower word and `upper` ones.
    pub(crate) fn login(handle: &Handle, more: u32, upper: u32) -> Self {
        let mut client = Self::greeted(handle);
        client.send(1, &Self::response(0x0008_8200 | more, upper, b""));
        assert_eq!(client.packet()[0], 0);
        client
    }

    pub(crate) fn response(lower: u32, upper: u32, proof: &[u8]) -> Vec<u8> {
        let mut response = lower.to_le_bytes().to_vec();
        response.extend_from_slice(&[0, 0, 0, 1, 45]);
        response.extend_from_slice(&[0; 19]);
        response.extend_from_slice(&upper.to_le_bytes());
        response.extend_from_slice(b"tester\0");
        response.push(proof.len() as u8);
        response.extend_from_slice(proof);
        response.extend_from_slice(b"mysql_native_password\0");
        response
    }

    pub(crate) fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = sequence;
        self.stream.write_all(&[&packet, payload].concat()).expect("send");
    }

    pub(crate) fn command(&mut self, command: u8, body: &[u8]) {
        self.send(0, &[&[command], body].concat());
    }

    /// Prepares; gives the id and the numbers of columns and parameters.
    pub(crate) fn prepare(&mut self, sql: &str) -> (u32, u16, u16) {
        self.command(0x16, sql.as_bytes());
        let ok = self.packet();
        assert_eq!(ok[0], 0, "{}", String::from_utf8_lossy(&ok));
        let id = u32::from_le_bytes([ok[1], ok[2], ok[3], ok[4]]);
        let (columns, params) =
            (u16::from_le_bytes([ok[5], ok[6]]), u16::from_le_bytes([ok[7], ok[8]]));
        // Logged in without DEPRECATE_EOF, each list ends with an EOF packet.
        for count in [params, columns] {
            if count > 0 {
                (0..=count).for_each(|_| drop(self.packet()));
            }
        }
        (id, columns, params)
    }

    pub(crate) fn packet(&mut self) -> Vec<u8> {
        self.try_packet().expect("a packet")
    }

    pub(crate) fn try_packet(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).ok()?;
        self.sequence = header[3];
        let mut payload =
            vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// The error text of a refused request, after which the connection must end.
    pub(crate) fn refusal(&mut self) -> String {
        let error = self.packet();
        assert_eq!(error[0], 0xff, "expected an error: {error:?}");
        assert_eq!(self.try_packet(), None, "the connection goes on after a violation");
        String::from_utf8_lossy(&error[9..]).into_owned()
    }
}

/// COM_STMT_EXECUTE's body for BIGINT parameters that are sent with their types.
pub(crate) fn execute_bigints(id: u32, values: &[i64]) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !values.is_empty() {
        body.resize(body.len() + values.len().div_ceil(8), 0);
        body.push(1);
        values.iter().for_each(|_| body.extend_from_slice(&[8, 0]));
        values.iter().for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
    }
    body
}

/// A PostgreSQL client.
pub(crate) struct Postgres {
    pub(crate) stream: TcpStream,
}

impl Postgres {
    pub(crate) fn connected(handle: &Handle) -> Self {
        Postgres { stream: connect(handle.config.postgres_port) }
    }

    pub(crate) fn startup(&mut self) {
        self.raw(&framed(&[0, 3, 0, 0], b"user\0tester\0database\0db\0\0"));
    }

    pub(crate) fn login(handle: &Handle) -> Self {
        let mut client = Self::connected(handle);
        client.startup();
        let kinds = client.until_ready();
        assert!(kinds.starts_with("RS") && kinds.ends_with("KZ"), "{kinds}");
        client
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("send");
    }

    pub(crate) fn send(&mut self, kind: u8, body: &[u8]) {
        self.raw(&message(kind, body));
    }

    pub(crate) fn message(&mut self) -> (u8, Vec<u8>) {
        self.try_message().expect("a message")
    }

    pub(crate) fn try_message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let [kind, a, b, c, d] = header;
        let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((kind, body))
    }

    /// The types of all messages up to ReadyForQuery.
    pub(crate) fn until_ready(&mut self) -> String {
        let mut kinds = String::new();
        while !kinds.ends_with('Z') {
            kinds.push(char::from(self.message().0));
        }
        kinds
    }

    /// The error text of a refused request, after which the connection must end.
    pub(crate) fn refusal(&mut self) -> String {
        loop {
            let (kind, body) = self.message();
            if kind == b'E' {
                assert_eq!(self.try_message(), None, "the connection goes on after a violation");
                return String::from_utf8_lossy(&body).replace('\0', " ");
            }
        }
    }
}

fn framed(head: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (4 + head.len() + body.len()) as u32;
    [&length.to_be_bytes(), head, body].concat()
}

pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], framed(&[], body).as_slice()].concat()
}

/// Parse of an unnamed or named statement without parameter types.
pub(crate) fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Bind with text parameters; `results` is the format of all result columns.
pub(crate) fn bind(name: &str, values: &[&str], results: u8) -> Vec<u8> {
    let mut body = format!("\0{name}\0\0\0").into_bytes();
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&[0, 1, 0, results]);
    message(b'B', &body)
}

pub(crate) const DESCRIBE: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];
pub(crate) const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
pub(crate) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
