//! `dyno-floor`: prepared point selects, or another statement, over many connections, and nothing else: no protocol but
//! the answer's last bytes, no statistics but one clock read and one addition an answer. What it costs is what the
//! kernel asks of any client that waits for all its connections in one thread.

mod connection;
mod epoll;
mod ring;
mod starts;

use clap::{Parser, ValueEnum};
use connection::{Connection, Server, Statement};
use starts::Starts;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A bare loop of prepared point selects: the floor under the client CPU of any single-threaded client. Tables are
/// those of `pgbench -i` (PostgreSQL) or of sysbench's `oltp_point_select` (MySQL protocol) in a database `sbtest`.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Folder of a PostgreSQL socket, or an address; needs --port.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["mysql_socket", "mysql_host"])]
    postgres: Option<String>,
    /// Socket of a server that speaks the MySQL protocol.
    #[arg(long, value_name = "FILE")]
    mysql_socket: Option<PathBuf>,
    /// Address of a server that speaks the MySQL protocol; needs --port.
    #[arg(long, value_name = "HOST", conflicts_with = "mysql_socket")]
    mysql_host: Option<String>,
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
    /// Seconds.
    #[arg(long, default_value_t = 5)]
    time: u64,
    #[arg(long, value_enum, default_value_t = Io::Uring)]
    io: Io,
    #[arg(long, default_value = "sbtest")]
    database: String,
    /// A statement instead of the point select: one integer as its parameter, one short row as its answer.
    #[arg(long, value_name = "SQL")]
    statement: Option<String>,
    /// Statements that are sent at once; the next ones follow when all are answered.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    flight: u16,
    /// Sends this many requests a second, at random times, and prints how late they were.
    #[arg(long, value_name = "PER_S", conflicts_with = "io", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    starts: Option<u32>,
    /// Largest key that is requested.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    rows: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Io {
    Uring,
    Epoll,
}

/// The clock of a run, and what has been answered in it.
struct Run {
    end: Instant,
    answers: u64,
    waited_ns: u128,
}

impl Run {
    /// Counts the answers of a request; false when time is over.
    #[inline]
    fn count_answers(&mut self, connection: &mut Connection) -> bool {
        let now = Instant::now();
        self.answers += connection.flight() as u64;
        self.waited_ns += (now - connection.sent).as_nanos() * connection.flight() as u128;
        connection.renew(now);
        now < self.end
    }
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(report) if io::stdout().write_all(report.as_bytes()).is_ok() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            // Without stderr the text has no reader.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> io::Result<String> {
    let server = match (&options.postgres, &options.mysql_socket, &options.mysql_host) {
        (Some(host), ..) if host.starts_with('/') => {
            Server::PostgresSocket(format!("{host}/.s.PGSQL.{}", options.port).into())
        }
        (Some(host), ..) => Server::PostgresTcp(host.clone(), options.port),
        (_, Some(socket), _) => Server::MysqlSocket(socket.clone()),
        (.., Some(host)) => Server::MysqlTcp(host.clone(), options.port),
        _ => {
            return Err(io::Error::other(
                "name a server: --postgres, --mysql-socket or --mysql-host",
            ));
        }
    };
    let statement = Statement {
        database: &options.database,
        sql: options.statement.as_deref().unwrap_or(server.point_select()),
        rows: options.rows,
        flight: usize::from(options.flight),
    };
    let connect = |number| Connection::open(&server, u32::from(number), statement);
    let mut connections: Vec<_> = (0..options.clients).map(connect).collect::<Result<_, _>>()?;
    let length = Duration::from_secs(options.time);
    if let Some(rate_per_s) = options.starts {
        return lateness(ring::run_open(&mut connections, Starts::new(rate_per_s, length))?);
    }
    let end = Instant::now() + length;
    let mut run = Run { end, answers: 0, waited_ns: 0 };
    match options.io {
        Io::Uring => ring::run(&mut connections, &mut run)?,
        Io::Epoll => epoll::run(&mut connections, &mut run)?,
    }
    let mean_us = run.waited_ns as f64 / 1e3 / (run.answers.max(1)) as f64;
    // The lines that readers of sysbench's and pgbench's reports look for.
    Ok(format!(
        "number of transactions actually processed: {0}\ntotal: {0}\nlatency average = {mean_us:.1} us\n",
        run.answers
    ))
}

fn lateness(sorted_ns: Vec<u64>) -> io::Result<String> {
    let last = sorted_ns.len().checked_sub(1);
    let last = last.ok_or_else(|| io::Error::other("no request was due: give it more time"))?;
    let percentile_us = |share: f64| sorted_ns[(last as f64 * share) as usize] as f64 / 1e3;
    let (p50, p99, p999) = (percentile_us(0.5), percentile_us(0.99), percentile_us(0.999));
    Ok(format!("{{\"p50_us\": {p50:.2}, \"p99_us\": {p99:.2}, \"p999_us\": {p999:.2}}}\n"))
}
