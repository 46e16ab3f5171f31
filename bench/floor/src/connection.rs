//! A connection that is logged in and has its statement prepared; from then on the same bytes with another key.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

pub(crate) enum Server {
    PostgresSocket(PathBuf),
    PostgresTcp(String, u16),
    MysqlSocket(PathBuf),
    MysqlTcp(String, u16),
}

impl Server {
    pub(crate) fn point_select(&self) -> &'static str {
        match self {
            Server::PostgresSocket(_) | Server::PostgresTcp(..) => {
                "SELECT abalance FROM pgbench_accounts WHERE aid = $1"
            }
            Server::MysqlSocket(_) | Server::MysqlTcp(..) => "SELECT c FROM sbtest1 WHERE id=?",
        }
    }
}

/// The workload that all connections execute, with keys from 1 to `rows`.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) database: &'a str,
    pub(crate) sql: &'a str,
    pub(crate) rows: u32,
    /// So many are sent at once.
    pub(crate) flight: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Postgres,
    Mysql,
}

pub(crate) struct Connection {
    fd: OwnedFd,
    protocol: Protocol,
    request: Vec<u8>,
    /// Starts of the keys: 7 digits in PostgreSQL, 4 bytes in MySQL.
    keys_at: Vec<usize>,
    /// Answers of MySQL that are still to come of those that were requested at once.
    answers_left: usize,
    /// Bytes of the end of an answer that the last bytes were.
    end_bytes: usize,
    rows: u32,
    random: u32,
    pub(crate) sent: Instant,
}

impl Connection {
    pub(crate) fn open(server: &Server, number: u32, statement: Statement<'_>) -> io::Result<Self> {
        let connect_tcp = |host: &str, port: u16| {
            let stream = TcpStream::connect((host, port))?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        let (protocol, Prepared { fd, request, last, key_at }) = match server {
            Server::PostgresSocket(path) => {
                (Protocol::Postgres, postgres(UnixStream::connect(path)?, statement)?)
            }
            Server::PostgresTcp(host, port) => {
                (Protocol::Postgres, postgres(connect_tcp(host, *port)?, statement)?)
            }
            Server::MysqlSocket(path) => {
                (Protocol::Mysql, mysql(UnixStream::connect(path)?, statement)?)
            }
            Server::MysqlTcp(host, port) => {
                (Protocol::Mysql, mysql(connect_tcp(host, *port)?, statement)?)
            }
        };
        rustix::io::ioctl_fionbio(&fd, true)?;
        let Statement { rows, flight, .. } = statement;
        let keys_at = (0..flight).map(|at| at * request.len() + key_at).collect();
        let request = [request.repeat(flight), last].concat();
        let random = number.wrapping_mul(0x9e37_79b9) ^ std::process::id();
        let mut connection = Connection {
            fd,
            protocol,
            request,
            keys_at,
            answers_left: flight,
            end_bytes: 0,
            rows,
            random,
            sent: Instant::now(),
        };
        connection.renew(Instant::now());
        Ok(connection)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn request(&self) -> &[u8] {
        &self.request
    }

    /// The next request, sent `now`.
    #[inline]
    pub(crate) fn renew(&mut self, now: Instant) {
        for &at in &self.keys_at {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut key = ((u64::from(self.random) * u64::from(self.rows)) >> 32) as u32 + 1;
            let place = &mut self.request[at..];
            match self.protocol {
                Protocol::Postgres => {
                    for digit in place[..7].iter_mut().rev() {
                        *digit = b'0' + (key % 10) as u8;
                        key /= 10;
                    }
                }
                Protocol::Mysql => place[..4].copy_from_slice(&key.to_le_bytes()),
            }
        }
        self.answers_left = self.keys_at.len();
        self.sent = now;
    }

    /// Statements of a request.
    pub(crate) fn flight(&self) -> usize {
        self.keys_at.len()
    }

    /// Returns true if these bytes end the answers of a request. One request is in flight at a time.
    #[inline]
    pub(crate) fn is_complete(&mut self, bytes: &[u8]) -> bool {
        match (self.protocol, bytes) {
            (Protocol::Postgres, [.., b'Z', 0, 0, 0, 5, _]) => true,
            (Protocol::Postgres, _) => false,
            (Protocol::Mysql, _) if self.keys_at.len() > 1 => self.ends_all(bytes),
            (Protocol::Mysql, [.., 5, 0, 0, 5, 0xfe, _, _, _, _]) => true,
            (Protocol::Mysql, _) => false,
        }
    }

    /// Looks for [`MYSQL_END`], which may lie in two pieces.
    fn ends_all(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            self.end_bytes = match self.end_bytes {
                known if byte == MYSQL_END[known] => known + 1,
                // The fourth byte is like the first.
                4 if byte == 0 => 2,
                _ => usize::from(byte == MYSQL_END[0]),
            };
            if self.end_bytes == MYSQL_END.len() {
                self.end_bytes = 0;
                self.answers_left = self.answers_left.saturating_sub(1);
            }
        }
        self.answers_left == 0
    }
}

/// The second end-of-rows packet of an answer with one row: number 5 after count, column, end of columns and row.
const MYSQL_END: [u8; 5] = [5, 0, 0, 5, 0xfe];

struct Prepared {
    fd: OwnedFd,
    /// One execution.
    request: Vec<u8>,
    /// The text after the last one.
    last: Vec<u8>,
    key_at: usize,
}

fn refusal(answer: &[u8]) -> io::Error {
    io::Error::other(format!("the server refuses: {}", String::from_utf8_lossy(answer)))
}

fn postgres<S: Read + Write + Into<OwnedFd>>(
    mut stream: S,
    Statement { database, sql, .. }: Statement<'_>,
) -> io::Result<Prepared> {
    let start = format!("user\0postgres\0database\0{database}\0\0");
    let body = [&196_608_u32.to_be_bytes()[..], start.as_bytes()].concat();
    stream.write_all(&[&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat())?;
    until_ready(&mut stream)?;
    let parse = message(b'P', format!("s\0{sql}\0\0\0").as_bytes());
    stream.write_all(&[parse, message(b'S', b"")].concat())?;
    until_ready(&mut stream)?;
    let head = b"\0s\0\0\0\0\x01\0\0\0\x07";
    let bind = message(b'B', &[&head[..], b"0000001", b"\0\0"].concat());
    let request = [bind, message(b'E', b"\0\0\0\0\0")].concat();
    let last = message(b'S', b"");
    Ok(Prepared { fd: stream.into(), request, last, key_at: 5 + head.len() })
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn until_ready(stream: &mut impl Read) -> io::Result<()> {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; len.saturating_sub(4) as usize];
        stream.read_exact(&mut body)?;
        match head[0] {
            b'Z' => return Ok(()),
            b'E' => return Err(refusal(&body)),
            b'R' if body != [0; 4] => return Err(refusal(b"a log-in without a password")),
            _ => {}
        }
    }
}

/// PROTOCOL_41, CONNECT_WITH_DB, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, LONG_PASSWORD.
const CAPABILITIES: u32 = 0x200 | 8 | 0x2000 | 0x8000 | 0x8_0000 | 1;
const EXECUTE: u8 = 0x17;
const PREPARE: u8 = 0x16;

fn mysql<S: Read + Write + Into<OwnedFd>>(
    mut stream: S,
    Statement { database, sql, .. }: Statement<'_>,
) -> io::Result<Prepared> {
    packet(&mut stream)?;
    let mut login = [CAPABILITIES.to_le_bytes(), (1_u32 << 24).to_le_bytes()].concat();
    login.push(45);
    login.extend([0; 23]);
    login.extend(format!("root\0\0{database}\0mysql_native_password\0").bytes());
    send(&mut stream, 1, &login)?;
    let (number, mut answer) = packet(&mut stream)?;
    if answer.first() == Some(&0xfe) {
        send(&mut stream, number + 1, b"")?;
        answer = packet(&mut stream)?.1;
    }
    if answer.first() != Some(&0) {
        return Err(refusal(&answer));
    }
    send(&mut stream, 0, &[&[PREPARE], sql.as_bytes()].concat())?;
    let (_, answer) = packet(&mut stream)?;
    let [0, id @ .., _, _, _, _, _] = answer.as_slice() else { return Err(refusal(&answer)) };
    let (id, counts) = id.split_at_checked(4).ok_or_else(|| refusal(&answer))?;
    let count_at = |at: usize| u16::from(counts.get(at).copied().unwrap_or(0));
    let lists = [count_at(0), count_at(2)];
    for packets in lists.into_iter().filter(|&count| count > 0) {
        // Definitions and their end.
        for _ in 0..=packets {
            packet(&mut stream)?;
        }
    }
    let mut request = vec![0, 0, 0, 0, EXECUTE];
    request.extend(id);
    // No cursor; one iteration; nothing is NULL; types follow: a 32-bit integer.
    request.extend([0, 1, 0, 0, 0, 0, 1, 3, 0]);
    let key_at = request.len();
    request.extend([0; 4]);
    request[0] = (request.len() - 4) as u8;
    Ok(Prepared { fd: stream.into(), request, last: Vec::new(), key_at })
}

fn packet(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    if body.first() == Some(&0xff) { Err(refusal(&body)) } else { Ok((head[3], body)) }
}

fn send(stream: &mut impl Write, number: u8, body: &[u8]) -> io::Result<()> {
    let len = (body.len() as u32).to_le_bytes();
    stream.write_all(&[&[len[0], len[1], len[2], number][..], body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_its_last_packet_only() {
        let (own, _other) = UnixStream::pair().unwrap();
        let mut connection = Connection {
            fd: own.into(),
            protocol: Protocol::Mysql,
            request: vec![0; 4],
            keys_at: vec![0],
            answers_left: 1,
            end_bytes: 0,
            rows: 100,
            random: 1,
            sent: Instant::now(),
        };
        assert!(!connection.is_complete(b"\x05\0\0\x03\xfe\0\0\x02\0"), "the end of the columns");
        assert!(connection.is_complete(b"row\x05\0\0\x05\xfe\0\0\x02\0"));
        connection.renew(Instant::now());
        let key = u32::from_le_bytes(connection.request()[..4].try_into().unwrap());
        assert!((1..=100).contains(&key));
        connection.keys_at = vec![0, 0];
        connection.renew(Instant::now());
        assert!(!connection.is_complete(b"row\x05\0\0\x05\xfe\0\0\x02\0"), "one of two");
        assert!(!connection.is_complete(b"\x05\0\0\x05\0\0"), "no end, and a part of one");
        assert!(connection.is_complete(b"\x05\xfe\0\0\x02\0"), "an end in two pieces");
        connection.protocol = Protocol::Postgres;
        assert!(connection.is_complete(b"C\0\0\0\rSELECT 1\0Z\0\0\0\x05I"));
        assert!(!connection.is_complete(b"C\0\0\0\rSELECT 1\0"));
    }
}
