//! `dyno-nullserver`: runs the null server until SIGTERM or SIGINT, then prints what it counted.

use clap::{Parser, ValueEnum};
use dyno_nullserver::{Config, PostgresAuth, start};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// A server that answers the MySQL and the PostgreSQL protocol with canned rows and checks every
/// request, so that only a client's own cost shows. Binds 127.0.0.1 only. Prints one JSON line of
/// counters to stdout when it is stopped by SIGTERM or SIGINT; exits with 1 if there were protocol
/// violations.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// TCP port of the MySQL protocol; 0 takes a free one.
    #[arg(long, value_name = "PORT")]
    mysql_port: Option<u16>,
    /// Unix socket of the MySQL protocol.
    #[arg(long, value_name = "FILE")]
    mysql_socket: Option<PathBuf>,
    /// TCP port of the PostgreSQL protocol; 0 takes a free one.
    #[arg(long, value_name = "PORT")]
    postgres_port: Option<u16>,
    /// Folder of PostgreSQL's Unix socket, .s.PGSQL.PORT.
    #[arg(long, value_name = "FOLDER")]
    postgres_socket_dir: Option<PathBuf>,
    /// Loops, each with a thread of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// A password every user must have; without it any user with any password is let in. Visible in
    /// the process list: for tests only.
    #[arg(long)]
    password: Option<String>,
    /// How PostgreSQL clients prove the password.
    #[arg(long, value_enum, default_value_t = Auth::Md5)]
    postgres_auth: Auth,
    /// The catalog shows no table, as clients that are about to make some expect it; else it shows
    /// sbtest1.
    #[arg(long)]
    empty: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Auth {
    Md5,
    Cleartext,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to be told if stderr is gone.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> io::Result<ExitCode> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let handle = start(Config {
        mysql_port: options.mysql_port,
        mysql_socket: options.mysql_socket,
        postgres_port: options.postgres_port,
        postgres_socket_dir: options.postgres_socket_dir,
        threads: options.threads.into(),
        password: options.password,
        postgres_auth: match options.postgres_auth {
            Auth::Md5 => PostgresAuth::Md5,
            Auth::Cleartext => PostgresAuth::Cleartext,
        },
        is_empty: options.empty,
    })?;
    let mut stderr = io::stderr();
    for (protocol, port) in [("mysql", handle.mysql_port()), ("postgres", handle.postgres_port())] {
        if let Some(port) = port {
            writeln!(stderr, "{protocol} listens on 127.0.0.1:{port}")?;
        }
    }
    let sockets = [("mysql", handle.mysql_socket()), ("postgres", handle.postgres_socket_dir())];
    for (protocol, path) in sockets {
        if let Some(path) = path {
            writeln!(stderr, "{protocol} listens on {}", path.display())?;
        }
    }
    writeln!(stderr, "ready")?;
    signals.forever().next();
    let report = handle.stop()?;
    for violation in &report.violations {
        writeln!(stderr, "violation: {violation}")?;
    }
    writeln!(io::stdout(), "{}", report.counters)?;
    Ok(if report.counters.violations() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
