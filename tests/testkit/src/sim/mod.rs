//! A simulated database for tests of the engine and of workloads, with scripted times and errors, on any clock. With a
//! virtual clock and one loop, the same script and seed give the same run, to the nanosecond.

mod session;

#[cfg(test)]
mod tests;

pub use session::SimSession;

use dyno_core::{DbError, DbResult, Dialect, Driver, ErrorClass, MILLISECOND, Nanos, Rng};
use dyno_reactor::{now, sleep_until};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Copy, Debug)]
pub enum Service {
    Constant(Nanos),
    /// Both included, evenly.
    Uniform(Nanos, Nanos),
    Exponential(Nanos),
    /// By the SQL text, with the session's own random stream.
    Function(fn(&str, &mut Rng) -> Nanos),
}

impl Service {
    fn sample(self, sql: &str, rng: &mut Rng) -> Nanos {
        match self {
            Service::Constant(time) => time,
            Service::Uniform(low, high) => rng.uniform(low, high),
            Service::Exponential(mean) => rng.exponential(mean as f64) as Nanos,
            Service::Function(function) => function(sql, rng),
        }
    }
}

/// Statements are counted from 0 over all sessions of the driver; times are those of the loop's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The statement of this number ends with an error of this class.
    ErrorAt { statement: u64, class: ErrorClass },
    /// Each statement whose number plus 1 is a multiple of `period`, at least 1, ends with an error of this class.
    ErrorEvery { period: u64, class: ErrorClass },
    /// Loses the session of this connection number, or all sessions, if open at this time. A statement in flight fails
    /// then, an idle session fails with its next statement.
    LostAt { at: Nanos, session: Option<u32> },
    /// Refuses connects in this span, without its end.
    RefuseConnects { from: Nanos, until: Nanos },
    /// The server stands still: work from `from` on continues at `until`.
    Stall { from: Nanos, until: Nanos },
}

#[derive(Clone, Debug)]
pub struct SimulatedAnswers {
    pub service: Service,
    pub connect_time: Nanos,
    pub faults: Vec<Fault>,
    pub seed: u64,
    /// Rows of each SELECT: one column, with 1, 2, 3 ...
    pub rows: u64,
    pub dialect: Dialect,
    pub keep_log: bool,
    /// Counts of a session of MySQL: rows that it has read by scans, and statements.
    pub scans: [u64; 2],
}

impl Default for SimulatedAnswers {
    /// Statements of 1 ms, instant connects, one row per SELECT, no faults, no log.
    fn default() -> Self {
        SimulatedAnswers {
            service: Service::Constant(MILLISECOND),
            connect_time: 0,
            faults: Vec::new(),
            seed: 0,
            rows: 1,
            dialect: Dialect::Mysql,
            keep_log: false,
            scans: [0; 2],
        }
    }
}

impl SimulatedAnswers {
    fn stalls(&self) -> Vec<(Nanos, Nanos)> {
        let spans = self.faults.iter().filter_map(|fault| match *fault {
            Fault::Stall { from, until } if until > from => Some((from, until)),
            _ => None,
        });
        let mut stalls: Vec<_> = spans.collect();
        stalls.sort_unstable();
        stalls
    }

    fn planned_error(&self, number: u64) -> Option<ErrorClass> {
        self.faults.iter().find_map(|fault| match *fault {
            Fault::ErrorAt { statement, class } if statement == number => Some(class),
            Fault::ErrorEvery { period, class } if (number + 1).is_multiple_of(period.max(1)) => {
                Some(class)
            }
            _ => None,
        })
    }

    /// The time at which a session that was opened at `opened` is lost.
    fn lost_at(&self, session: u32, opened: Nanos) -> Option<Nanos> {
        let times = self.faults.iter().filter_map(|fault| match *fault {
            Fault::LostAt { at, session: only } if only.is_none_or(|only| only == session) => {
                Some(at)
            }
            _ => None,
        });
        times.filter(|&at| at > opened).min()
    }

    fn refuses_connect(&self, at: Nanos) -> bool {
        self.faults.iter().any(|fault| match *fault {
            Fault::RefuseConnects { from, until } => (from..until).contains(&at),
            _ => false,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedStatement {
    pub session: u32,
    pub began: Nanos,
    pub ended: Nanos,
    pub sql: String,
    pub params: Vec<String>,
    pub error: Option<ErrorClass>,
}

#[derive(Debug)]
pub struct SimDriver(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    script: SimulatedAnswers,
    stalls: Vec<(Nanos, Nanos)>,
    statements: AtomicU64,
    connects: AtomicU64,
    log: Mutex<Vec<SimulatedStatement>>,
}

impl Shared {
    /// The end of work of `time` that starts at `began`: stalls add their length.
    fn finish_time(&self, began: Nanos, time: Nanos) -> Nanos {
        let (mut at, mut remaining) = (began, time);
        for &(from, until) in &self.stalls {
            if until <= at {
                continue;
            }
            let worked = from.saturating_sub(at);
            if worked > 0 && remaining <= worked {
                break;
            }
            remaining -= worked;
            at = until;
        }
        at + remaining
    }
}

impl SimDriver {
    pub fn new(script: SimulatedAnswers) -> Self {
        SimDriver(Arc::new(Shared {
            stalls: script.stalls(),
            script,
            statements: AtomicU64::new(0),
            connects: AtomicU64::new(0),
            log: Mutex::default(),
        }))
    }

    pub fn statements(&self) -> u64 {
        self.0.statements.load(Ordering::Relaxed)
    }

    pub fn connects(&self) -> u64 {
        self.0.connects.load(Ordering::Relaxed)
    }

    /// Statements so far in the order of their answers; empty unless the script keeps a log.
    pub fn log(&self) -> Vec<SimulatedStatement> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Driver for SimDriver {
    type Session = SimSession;

    async fn connect(&self, number: u32) -> DbResult<SimSession> {
        self.0.connects.fetch_add(1, Ordering::Relaxed);
        let began = now();
        let script = &self.0.script;
        sleep_until(self.0.finish_time(began, script.connect_time)).await;
        if script.refuses_connect(began) {
            return Err(DbError::unreachable("The simulated server refuses connections."));
        }
        Ok(SimSession::new(Arc::clone(&self.0), number))
    }

    fn dialect(&self) -> Dialect {
        self.0.script.dialect
    }
}
