//! The maximum of this machine's load generator, proven against a server that does nothing:
//! measured by `dyno calibrate`, kept with the user's state, and held against every trial.

use crate::failure::{Failure, Result};
use dyno_core::Dialect;
use dyno_facts::{EffectFacts, Environment};
use dyno_store::write_atomically;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// A measurement and its binary: it says nothing of another binary or machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    pub host: String,
    pub binary_sha256: String,
    pub points: Vec<CalibrationPoint>,
    pub effects: Vec<EffectFacts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CalibrationPoint {
    /// `mysql` or `postgres`.
    pub protocol: String,
    pub workers: u32,
    pub statements_per_s: f64,
    /// CPU of the client alone.
    pub cpu_us_per_statement: f64,
}

impl Calibration {
    /// The one of this machine and binary, if there is one.
    pub fn for_environment(environment: &Environment) -> Option<Self> {
        let text = fs::read(file()?).ok()?;
        let stored: Calibration = serde_json::from_slice(&text).ok()?;
        let is_current = stored.host == environment.host
            && stored.binary_sha256 == environment.binary_sha256
            && !stored.binary_sha256.is_empty();
        is_current.then_some(stored)
    }

    /// The one to be kept: what was measured before by the same binary on the same machine stays.
    pub fn to_be_kept(environment: &Environment) -> Self {
        Calibration::for_environment(environment).unwrap_or_else(|| Calibration {
            host: environment.host.clone(),
            binary_sha256: environment.binary_sha256.clone(),
            ..Calibration::default()
        })
    }

    /// Stores it for later runs of this machine and binary; returns the file.
    pub fn keep(&self) -> Result<PathBuf> {
        let Some(file) = file() else {
            return Err(Failure::new("dyno finds no folder to keep the calibration in.")
                .with_hint("Set XDG_STATE_HOME or HOME to a folder of yours."));
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| {
                Failure::new(format!("dyno can't make the folder {}: {error}.", folder.display()))
            })?;
        }
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Failure::new(format!("The calibration can't be kept: {error}.")))?;
        write_atomically(&file, &text)?;
        Ok(file)
    }

    /// Multiple of `statements_per_s` that the generator can do with this many workers; `None` if nothing is proven.
    /// Fewer workers than the trial's do not do more, so the best of them is a lower bound.
    pub fn headroom(&self, dialect: Dialect, workers: u32, statements_per_s: f64) -> Option<f64> {
        // Embedded databases have no points.
        let points = self
            .points
            .iter()
            .filter(|point| point.protocol == dialect.name() && point.workers <= workers);
        let rates = points.map(|point| point.statements_per_s);
        let best = rates.reduce(f64::max)?;
        (statements_per_s > 0.0).then(|| best / statements_per_s)
    }
}

/// The place for it by the XDG base directory specification.
fn file() -> Option<PathBuf> {
    let [state, home] = ["XDG_STATE_HOME", "HOME"]
        .map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    let state = state.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(home?).join(".local/state")))?;
    Some(state.join("dyno/calibration.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_proven_by_no_more_workers_than_there_are() {
        let points = [
            ("mysql", 1, 10_000.0),
            ("mysql", 8, 60_000.0),
            ("mysql", 64, 90_000.0),
            ("postgres", 1, 20_000.0),
        ];
        let points = points.map(|(protocol, workers, statements_per_s)| CalibrationPoint {
            protocol: protocol.to_owned(),
            workers,
            statements_per_s,
            ..CalibrationPoint::default()
        });
        let calibration = Calibration { points: points.into(), ..Calibration::default() };
        for (dialect, workers, headroom) in [
            (Dialect::Mysql, 63, Some(3.0)),
            (Dialect::Mysql, 64, Some(4.5)),
            (Dialect::Postgres, 500, Some(1.0)),
            (Dialect::Sqlite, 8, None),
        ] {
            assert_eq!(calibration.headroom(dialect, workers, 20_000.0), headroom, "{workers}");
        }
        assert_eq!(calibration.headroom(Dialect::Mysql, 8, 0.0), None);
        assert_eq!(Calibration::default().headroom(Dialect::Mysql, 8, 1.0), None);
    }
}
