//! The facts of a workload that suites are read with: names, sizes and options, as constants.

use crate::options::{OptionDoc, Shape};

/// A workload as suites name it.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadOffer {
    /// The name, such as `sysbench`.
    pub name: &'static str,
    pub tests: &'static [TestOffer],
    /// What its points differ in.
    pub levels: Levels,
    /// Another word for the key `workers`.
    pub workers_alias: Option<&'static str>,
    /// Its options, of all tests.
    pub options: fn() -> Vec<OptionDoc>,
}

/// What the points of an experiment differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Numbers of workers, which are driven for some time.
    Workers,
    /// Parallel degrees, at which queries are passed through once.
    Degrees,
}

/// A test of a workload, and the options that say how much data it has.
#[derive(Clone, Copy, Debug)]
pub struct TestOffer {
    /// The name, such as `oltp_read_only`.
    pub name: &'static str,
    /// `None`: the size is not known before the run.
    pub size: Option<DataSizing>,
}

/// The options, with underscores, that say how much data there is.
#[derive(Clone, Copy, Debug)]
pub enum DataSizing {
    /// Equal tables.
    Tables {
        /// Rows of each table.
        rows: Scale,
        /// Number of tables.
        tables: Scale,
    },
    /// One number for all tables.
    Factor {
        /// That number.
        factor: Scale,
        /// Rows of the largest table for each unit of it.
        rows_per_unit: u64,
        /// Options that count rows of that table: they shrink with it, so that shares stay.
        rows: &'static [&'static str],
        /// Most workers for each unit of it; `None` is no bound.
        workers_per_unit: Option<u32>,
    },
    /// One number for all tables, which may be a fraction.
    Fraction {
        /// The option; 1 when it is not given.
        option: &'static str,
        /// Rows of the largest table for each unit of it.
        rows_per_unit: u64,
    },
}

/// An option that scales data.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The name of the option.
    pub option: &'static str,
    /// The value when the option is not given.
    pub default: u64,
}

impl WorkloadOffer {
    /// The test of this name.
    pub fn test(&self, name: &str) -> Option<&'static TestOffer> {
        self.tests.iter().find(|test| test.name == name)
    }

    /// How an option is written; `None` if there is none of this name.
    pub fn shape_of(&self, option: &str) -> Option<Shape> {
        let options = (self.options)();
        let found = options.iter().find(|known| known.name.replace('-', "_") == option);
        found.map(|known| known.shape)
    }
}
