//! `dyno-nullserver`: runs the null server until SIGTERM or SIGINT, then prints what it counted.

use clap::Parser;
use dyno_nullserver::{Config, start};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Config::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Without stderr the error has no reader.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config) -> io::Result<ExitCode> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let handle = start(config)?;
    let config = &handle.config;
    let mut stderr = io::stderr();
    for (protocol, port) in [("mysql", config.mysql_port), ("postgres", config.postgres_port)] {
        if let Some(port) = port {
            writeln!(stderr, "{protocol} listens on 127.0.0.1:{port}")?;
        }
    }
    let sockets = [("mysql", &config.mysql_socket), ("postgres", &config.postgres_socket_dir)];
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
