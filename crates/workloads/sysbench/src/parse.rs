//! From the words of a command line to [`SysbenchOptions`].

use crate::distribution::KeyDistribution;
use crate::options::{EngineTransactions, SysbenchOptions, SysbenchTest};
use crate::table::{OptionSpec, options_of};
use dyno_core::nearest;
use std::fmt;
use std::str::FromStr;

/// An option's name with `-` written as `_`.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// An option's name as command lines mostly have it, and messages about them: with `-` in place of `_`.
pub fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SysbenchOptionError {
    Unknown {
        name: String,
        value: String,
        /// A known name that may have been meant.
        nearest: Option<String>,
    },
    Value {
        /// The name as the help prints it.
        name: String,
        value: String,
        /// What the option takes, such as `a whole number from 1 to 100`.
        expected: String,
    },
    /// Options that exclude each other, in a full sentence.
    Conflict(String),
}

impl SysbenchOptionError {
    /// A remedy, for a line of its own after `hint:`.
    pub fn hint(&self) -> Option<String> {
        match self {
            SysbenchOptionError::Unknown { nearest: Some(name), .. } => {
                Some(format!("did you mean --{}?", dashed(name)))
            }
            SysbenchOptionError::Unknown { nearest: None, .. } => {
                Some("the command `help` lists the options of a test".to_owned())
            }
            SysbenchOptionError::Value { .. } | SysbenchOptionError::Conflict(_) => None,
        }
    }
}

impl fmt::Display for SysbenchOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysbenchOptionError::Unknown { name, value, .. } if value.is_empty() => {
                write!(f, "invalid option: --{name}")
            }
            SysbenchOptionError::Unknown { name, value, .. } => {
                write!(f, "invalid option: --{name}={value}")
            }
            SysbenchOptionError::Value { name, value, expected } => {
                let name = dashed(name);
                write!(f, "invalid option: --{name}={value}: the value must be {expected}")
            }
            SysbenchOptionError::Conflict(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SysbenchOptionError {}

/// Names that were never options of the 0.5 scripts although many public scripts and papers use
/// them, and what their authors most likely meant.
const OFTEN_MEANT: &[(&str, &str)] = &[
    ("oltp_table_count", "oltp-tables-count"),
    ("oltp_num_tables", "oltp-tables-count"),
    ("oltp_tables_size", "oltp-table-size"),
    ("oltp_tablesize", "oltp-table-size"),
    ("oltp_inserts", "oltp-delete-inserts"),
    ("oltp_test_mode", "oltp-read-only"),
    ("oltp_nontrx_mode", "oltp-skip-trx"),
    ("oltp_dist_type", "rand-type"),
    ("oltp_dist_pct", "rand-spec-pct"),
    ("oltp_dist_res", "rand-spec-res"),
    ("oltp_dist_iter", "rand-spec-iter"),
    ("mysql_table_type", "mysql-table-engine"),
    ("mysql_storage_engine", "mysql-table-engine"),
    ("init_rng", "rand-init"),
];

impl SysbenchOptions {
    /// Reads the options of `test` from (name, value) pairs as they stood on the command line,
    /// without the leading dashes. `-` and `_` are the same letter in names; a later pair replaces
    /// an earlier one; a switch without value is given the value `on`; an empty value leaves the
    /// default. Names that the test passes over go to [`SysbenchOptions::warnings`].
    pub fn from_pairs(
        test: SysbenchTest,
        pairs: &[(String, String)],
    ) -> Result<SysbenchOptions, SysbenchOptionError> {
        let mut options = SysbenchOptions::new(test);
        for (name, value) in pairs {
            options.set(name, value)?;
        }
        options.finish()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SysbenchOptionError> {
        let wanted = canonical(name);
        let Some(spec) = options_of(self.test).find(|spec| canonical(spec.name) == wanted) else {
            return self.unknown(name, value);
        };
        if value.is_empty() && !spec.takes_empty() {
            return Ok(());
        }
        (spec.set)(self, value).map_err(|expected| SysbenchOptionError::Value {
            name: spec.name.to_owned(),
            value: value.to_owned(),
            expected,
        })?;
        self.warn_of_dead_values(spec, value);
        Ok(())
    }

    fn unknown(&mut self, name: &str, value: &str) -> Result<(), SysbenchOptionError> {
        let meant = self.meant(name);
        if !self.test.accepts_unknown_options() {
            let nearest = meant.map(str::to_owned);
            return Err(SysbenchOptionError::Unknown {
                name: name.to_owned(),
                value: value.to_owned(),
                nearest,
            });
        }
        let advice = match meant {
            Some(meant) => format!("; did you mean --{}?", dashed(meant)),
            None => ".".to_owned(),
        };
        let test = self.test.name();
        self.warnings.push(format!(
            "The option --{name} has no effect: {test} knows no option of this name, and the \
             original passes over it silently{advice}"
        ));
        Ok(())
    }

    fn meant(&self, name: &str) -> Option<&'static str> {
        let wanted = canonical(name);
        let legacy = OFTEN_MEANT.iter().find(|(used, _)| *used == wanted).map(|&(_, meant)| meant);
        let known = options_of(self.test).map(|spec| spec.name);
        legacy.filter(|_| self.test.is_legacy()).or_else(|| nearest(name, known))
    }

    /// The original compares switches of 0.5 with the exact words `on` and `off`; what else is
    /// given leaves the default, which surprises everyone who wrote `=1`.
    fn warn_of_dead_values(&mut self, spec: &OptionSpec, value: &str) {
        if spec.is_exact_switch() && value != "on" && value != "off" {
            self.warnings.push(format!(
                "The value of --{}={value} has no effect: the script compares it with exactly `on` \
                 and `off`, so the default `{}` stays.",
                spec.name, spec.default
            ));
        }
        if spec.name == "oltp-secondary" && ["off", "false", "0"].contains(&value) {
            self.warnings.push(format!(
                "The option --oltp-secondary={value} switches the secondary index ON: the script \
                 takes any value for yes; leave the option out to have a primary key."
            ));
        }
        if spec.name == "pgsql_variant" {
            self.warnings.push(format!(
                "The option --pgsql_variant={value} has no effect, as in sysbench 1.0.20."
            ));
        }
    }

    fn finish(self) -> Result<SysbenchOptions, SysbenchOptionError> {
        if self.read_only && self.write_only {
            return Err(SysbenchOptionError::Conflict(
                "--oltp-read-only and --oltp-write-only exclude each other".to_owned(),
            ));
        }
        Ok(self)
    }
}

/// A whole number in a range; `1e6` and `10000.0` are whole numbers, too, as sysbench's own parser
/// reads them.
pub(crate) fn whole(value: &str, low: u32, high: u32) -> Result<u32, String> {
    let expected = || format!("a whole number from {low} to {high}");
    let number = f64::from_str(value).map_err(|_| expected())?;
    let fits = number.fract() == 0.0 && (f64::from(low)..=f64::from(high)).contains(&number);
    if fits { Ok(number as u32) } else { Err(expected()) }
}

/// A number for which `accept` holds; `expected` says so in words.
pub(crate) fn number(
    value: &str,
    accept: impl Fn(f64) -> bool,
    expected: &str,
) -> Result<f64, String> {
    f64::from_str(value)
        .ok()
        .filter(|number| number.is_finite() && accept(*number))
        .ok_or_else(|| expected.to_owned())
}

/// A switch as sysbench 1.0 reads it.
pub(crate) fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

/// A switch as the scripts of 0.5 read it: everything but the word that changes it leaves it.
pub(crate) fn exact_switch(value: &str, default: bool) -> bool {
    match value {
        "on" => true,
        "off" => false,
        _ => default,
    }
}

pub(crate) fn word<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == value).map(|&(_, meaning)| meaning).ok_or_else(|| {
        let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("one of {}", all.join(", "))
    })
}

pub(crate) fn distribution(value: &str) -> Result<KeyDistribution, String> {
    let words = KeyDistribution::ALL.map(|distribution| (distribution.name(), distribution));
    word(value, &words)
}

pub(crate) fn engine_transactions(value: &str) -> Result<EngineTransactions, String> {
    let words = [
        ("auto", EngineTransactions::Auto),
        ("yes", EngineTransactions::Yes),
        ("no", EngineTransactions::No),
    ];
    word(value, &words)
}
