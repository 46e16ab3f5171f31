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
    /// Set if long trials may be cut into stages whose windows add up. Unset if something that a trial has kept, or the
    /// rhythm of its users, belongs to one window.
    pub has_stages: bool,
}

/// Rates by which the time of a run is estimated before anything is known of the server: rows per second on a small
/// one, of the largest table if one number sizes all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualPace {
    pub loaded: f64,
    /// Rate of the checks around a trial; infinite if they read no rows.
    pub checked: f64,
    /// Rate of a pass over the queries.
    pub queried: f64,
    /// Speed of loads and passes on PostgreSQL, as a multiple.
    pub postgres: f64,
    /// The rates on MySQL and MariaDB if their memory does not hold the rows.
    pub large: Option<LargePace>,
}

/// The pace of data that the usual memory of a server does not hold: the slower the more there are, down to this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargePace {
    /// The most rows that are held.
    pub rows: u64,
    pub loaded: f64,
    pub queried: f64,
}

impl UsualPace {
    /// The pace of rows that are loaded and never looked at as a whole.
    pub const fn loading(loaded: f64) -> Self {
        let (checked, queried) = (f64::INFINITY, f64::INFINITY);
        UsualPace { loaded, checked, queried, postgres: 1.0, large: None }
    }

    /// The estimate for this many rows on a target of this URL.
    #[must_use]
    pub fn at(self, url: &str, rows: u64) -> Self {
        match self.large {
            Some(large)
                if rows > large.rows
                    && ["mysql", "mariadb"].iter().any(|own| url.starts_with(*own)) =>
            {
                let times = rows as f64 / large.rows as f64;
                let loaded = (self.loaded / times).max(large.loaded);
                UsualPace { loaded, queried: (self.queried / times).max(large.queried), ..self }
            }
            _ => {
                let times = if url.starts_with("postgres") { self.postgres } else { 1.0 };
                UsualPace { loaded: self.loaded * times, queried: self.queried * times, ..self }
            }
        }
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
    Fraction {
        option: &'static str,
        rows_per_unit: u64,
        /// The numbers at which the right answers are known; a budget chooses among them if there are any.
        known: &'static [f64],
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub option: &'static str,
    pub default: u64,
}

impl WorkloadOffer {
    /// An offer with the usual defaults: levels are numbers of workers, and long trials have stages.
    pub const fn new(
        name: &'static str,
        tests: &'static [TestOffer],
        options: fn() -> Vec<OptionDoc>,
    ) -> Self {
        let (levels, pace) = (Levels::Workers, UsualPace::loading(100_000.0));
        WorkloadOffer { name, tests, levels, workers_alias: None, options, pace, has_stages: true }
    }

    /// The test with this name.
    pub fn test(&self, name: &str) -> Option<&'static TestOffer> {
        self.tests.iter().find(|test| test.name == name)
    }

    pub fn option_shape(&self, option: &str) -> Option<Shape> {
        let options = (self.options)();
        let row = options.iter().find(|known| known.name.replace('-', "_") == option);
        row.map(|known| known.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_memory_of_mysql_does_not_hold_takes_longer() {
        let large = LargePace { rows: 100, loaded: 2.0, queried: 3.0 };
        let pace = UsualPace {
            queried: 20.0,
            postgres: 2.0,
            large: Some(large),
            ..UsualPace::loading(10.0)
        };
        for (url, rows, expected) in [
            ("mysql://h/d", 100, (10.0, 20.0)),
            ("mysql://h/d", 200, (5.0, 10.0)),
            ("mariadb://h/d", 1_000, (2.0, 3.0)),
            ("postgres://h/d", 1_000, (20.0, 40.0)),
            ("sqlite:d", 1_000, (10.0, 20.0)),
        ] {
            let pace = pace.at(url, rows);
            assert_eq!((pace.loaded, pace.queried), expected, "{url}");
        }
    }
}
