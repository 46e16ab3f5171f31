//! Tests, sizes and options of a workload as constants, for the reader of suites.

use crate::options::{OptionDoc, Shape};

#[derive(Clone, Copy, Debug)]
pub struct WorkloadOffer {
    pub name: &'static str,
    pub tests: &'static [TestOffer],
    pub levels: Levels,
    /// Another name of the key `workers`.
    pub workers_alias: Option<&'static str>,
    /// The options of all tests.
    pub options: fn() -> Vec<OptionDoc>,
    pub pace: UsualPace,
    /// Whether long trials may be cut into stages whose windows add up: not where what a trial has kept itself, or the
    /// rhythm of its users, belongs to one window.
    pub has_stages: bool,
}

/// What the time of a run is guessed by, before anything is known of the server: rows per second on a small one, of
/// the largest table where one number sizes all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualPace {
    pub loaded: f64,
    /// By what is looked at around a trial; infinite where no rows are.
    pub checked: f64,
    /// By a pass over the queries.
    pub queried: f64,
    /// How many times as fast loads and passes are on PostgreSQL.
    pub postgres: f64,
}

impl UsualPace {
    /// Of rows that are loaded and never looked at as a whole.
    pub const fn loading(loaded: f64) -> Self {
        UsualPace { loaded, checked: f64::INFINITY, queried: f64::INFINITY, postgres: 1.0 }
    }

    /// The same on a target of this URL.
    #[must_use]
    pub fn at(self, url: &str) -> Self {
        let times = if url.starts_with("postgres") { self.postgres } else { 1.0 };
        UsualPace { loaded: self.loaded * times, queried: self.queried * times, ..self }
    }
}

/// The difference between the points of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Numbers of workers, each for some time.
    Workers,
    /// Parallel degrees, each for one pass through the queries.
    Degrees,
}

#[derive(Clone, Copy, Debug)]
pub struct TestOffer {
    pub name: &'static str,
    /// `None`: unknown before the run.
    pub size: Option<DataSizing>,
}

/// The options, with underscores, that set the amount of data.
#[derive(Clone, Copy, Debug)]
pub enum DataSizing {
    /// Equal tables: rows of each, and their number.
    Tables { rows: Scale, tables: Scale },
    /// One number for all tables.
    Factor {
        factor: Scale,
        /// Rows of the largest table for each unit.
        rows_per_unit: u64,
        /// Options that count rows of that table: they shrink with it, so that shares stay.
        rows: &'static [&'static str],
        /// Most workers for each unit.
        workers_per_unit: Option<u32>,
    },
    /// One number for all tables, which may be a fraction; 1 by default. `rows_per_unit`: as above.
    Fraction { option: &'static str, rows_per_unit: u64 },
}

#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub option: &'static str,
    pub default: u64,
}

impl WorkloadOffer {
    pub fn test(&self, name: &str) -> Option<&'static TestOffer> {
        self.tests.iter().find(|test| test.name == name)
    }

    pub fn shape_of(&self, option: &str) -> Option<Shape> {
        let options = (self.options)();
        let found = options.iter().find(|known| known.name.replace('-', "_") == option);
        found.map(|known| known.shape)
    }
}
