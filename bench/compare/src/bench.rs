//! Measures one client and compares two of them.

use crate::child::Ended;
use crate::client::{Load, Programs, ServerAddress, Who, reported_statements};
use crate::null::{Counted, Null};
use crate::quiet::Quiet;
use dyno_testkit::Scratch;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Server and client have their own cores, so neither takes time from the other.
pub(crate) const SERVER_CORE: usize = 1;
pub(crate) const CLIENT_CORE: usize = 0;
/// Statements of one connection besides those of its transactions.
const SET_UP: u64 = 8;
const ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) programs: Programs,
    pub(crate) pairs: u32,
    pub(crate) seconds: u64,
    pub(crate) short_seconds: u64,
    pub(crate) scratch: Scratch,
    pub(crate) quiet: Quiet,
    /// Set by a signal.
    pub(crate) is_interrupted: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullAddress {
    MysqlSocket,
    MysqlTcp,
    PostgresSocket,
    PostgresTcp,
}

impl NullAddress {
    pub(crate) fn resolve(self, null: &Null) -> ServerAddress {
        match self {
            NullAddress::MysqlSocket => ServerAddress::MysqlSocket(null.mysql_socket()),
            NullAddress::MysqlTcp => ServerAddress::MysqlTcp(null.mysql_port),
            NullAddress::PostgresSocket => {
                ServerAddress::Postgres(null.folder.display().to_string(), null.postgres_port)
            }
            NullAddress::PostgresTcp => {
                ServerAddress::Postgres("127.0.0.1".to_owned(), null.postgres_port)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) cpu_s: f64,
    pub(crate) statements: f64,
}

/// The difference of a long and a short run: free of start-up, connecting and preparing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steady {
    pub(crate) cpu_us_per_statement: f64,
    pub(crate) statements_per_s: f64,
}

impl Bench {
    /// Rounds of one measurement of each program, in random order, in the order of `programs`. A round begins on a
    /// quiet machine; one in which something else took the CPU is repeated, three times at most.
    pub(crate) fn rounds<T>(
        &self,
        name: &str,
        programs: &[Who],
        measure: impl Fn(Who) -> Result<T, String>,
    ) -> Result<Vec<Vec<T>>, String> {
        let mut rounds = Vec::new();
        let mut repeats = 0;
        while rounds.len() < self.pairs as usize {
            crate::log(&format!("{name}: round {} of {}", rounds.len() + 1, self.pairs));
            self.quiet.wait();
            let mut order: Vec<_> = programs.to_vec();
            order.sort_by_key(|&who| RandomState::new().hash_one(who as u8));
            let mut values = Vec::new();
            for who in order {
                self.go_on()?;
                values.push((who, measure(who)?));
            }
            if !self.quiet.accepts(repeats < ATTEMPTS) {
                repeats += 1;
                continue;
            }
            values.sort_by_key(|(who, _)| programs.iter().position(|one| one == who));
            rounds.push(values.into_iter().map(|(_, value)| value).collect());
        }
        Ok(rounds)
    }

    /// An error when a signal has asked for the end.
    pub(crate) fn go_on(&self) -> Result<(), String> {
        if self.is_interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        Ok(())
    }

    /// Rounds of dyno and a peer.
    pub(crate) fn pairs<T>(
        &self,
        name: &str,
        peer: Who,
        measure: impl Fn(Who) -> Result<T, String>,
    ) -> Result<Vec<Vec<T>>, String> {
        self.rounds(name, &[Who::Dyno, peer], measure)
    }

    /// A long run less a short one.
    pub(crate) fn steady(
        &self,
        once: impl Fn(u64) -> Result<Cost, String>,
    ) -> Result<Steady, String> {
        let length_s = (self.seconds - self.short_seconds) as f64;
        for _ in 0..ATTEMPTS {
            let (short, long) = (once(self.short_seconds)?, once(self.seconds)?);
            if let Some(steady) = difference(short, long, length_s) {
                return Ok(steady);
            }
            crate::log("a long run did or cost no more than a short one: both once more");
        }
        Err("long runs did or cost no more than short ones: the machine is too busy".to_owned())
    }

    pub(crate) fn null(&self, is_empty: bool) -> Result<Null, String> {
        Null::start(&self.programs.null_server, self.scratch.path(), SERVER_CORE, is_empty)
    }

    pub(crate) fn run(&self, mut command: Command, core: Option<usize>) -> Result<Ended, String> {
        crate::child::run(&mut command, core, self.scratch.path())
    }

    /// One run against a real server. The client reports the statements.
    pub(crate) fn on_server(
        &self,
        who: Who,
        address: &ServerAddress,
        load: &Load,
        seconds: u64,
        core: Option<usize>,
    ) -> Result<Cost, String> {
        let ended = self.run(self.programs.command(who, address, load, "run", seconds)?, core)?;
        let statements = reported_statements(load, &ended.output)? as f64;
        Ok(Cost { cpu_s: ended.cpu_s, statements })
    }

    /// One run against a new null server, with the client on the other core. The server counts the statements, and the
    /// client's report must agree.
    pub(crate) fn on_null(
        &self,
        who: Who,
        address: NullAddress,
        load: &Load,
        seconds: u64,
    ) -> Result<(Cost, Ended), String> {
        let null = self.null(false)?;
        let command = self.programs.command(who, &address.resolve(&null), load, "run", seconds)?;
        let ended = self.run(command, Some(CLIENT_CORE))?;
        let counts = null.stop()?;
        check_counts(counts, reported_statements(load, &ended.output)?, load)?;
        Ok((Cost { cpu_s: ended.cpu_s, statements: counts.statements as f64 }, ended))
    }
}

/// The cost of the seconds by which a long run exceeds a short one; `None` when another load held up one of the two.
fn difference(short: Cost, long: Cost, length_s: f64) -> Option<Steady> {
    let (cpu_s, statements) = (long.cpu_s - short.cpu_s, long.statements - short.statements);
    (cpu_s > 0.0 && statements > 0.0).then(|| Steady {
        cpu_us_per_statement: cpu_s * 1e6 / statements,
        statements_per_s: statements / length_s,
    })
}

/// The server may have counted more than the client reports: statements in flight and set-up.
fn check_counts(counts: Counted, reported: u64, load: &Load) -> Result<(), String> {
    let slack = u64::from(load.workers) * (load.statements() + SET_UP) + 2 * SET_UP;
    let extra = counts.statements.checked_sub(reported);
    if extra.is_some_and(|extra| extra <= slack) {
        return Ok(());
    }
    Err(format!(
        "the client reports {reported} statements, but the null server counted {}",
        counts.statements
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_falls_out_of_the_difference() {
        let short = Cost { cpu_s: 0.5, statements: 40_000.0 };
        let long = Cost { cpu_s: 0.9, statements: 140_000.0 };
        let steady = difference(short, long, 4.0).unwrap();
        assert!((steady.cpu_us_per_statement - 4.0).abs() < 1e-9);
        assert!((steady.statements_per_s - 25_000.0).abs() < 1e-9);
        assert_eq!(difference(long, short, 4.0), None);
        assert_eq!(difference(short, Cost { cpu_s: 0.4, ..long }, 4.0), None);
    }

    #[test]
    fn a_report_must_agree_with_the_servers_count() {
        let load = Load::closed("oltp_point_select", 64);
        fn counts(statements: u64) -> Counted {
            Counted { statements, rows: 0 }
        }
        assert!(check_counts(counts(1_000_000), 1_000_000, &load).is_ok());
        assert!(check_counts(counts(1_000_500), 1_000_000, &load).is_ok());
        assert!(check_counts(counts(1_001_000), 1_000_000, &load).is_err());
        assert!(check_counts(counts(999_999), 1_000_000, &load).is_err());
    }
}
