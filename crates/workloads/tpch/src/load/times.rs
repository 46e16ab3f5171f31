//! From pieces to steps: how long a step lasted, and how long a table in it.

use super::steps::TpchStep;
use crate::facts::LoadStep;
use crate::schema::SchemaTable;
use crate::state::Done;
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the step that makes the database itself.
pub(crate) const CREATE_DATABASE: &str = "create-database";

/// Seconds since 1970.
pub(crate) fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64())
}

/// Seconds in which at least one of the pieces was being done. What an interruption has lost, and
/// the time until the load went on, are not among them.
pub(super) fn seconds<'a>(pieces: impl IntoIterator<Item = &'a Done>) -> f64 {
    let mut spans: Vec<(f64, f64)> =
        pieces.into_iter().map(|done| (done.began_s, done.began_s + done.seconds)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut covered = 0.0;
    let mut until = f64::NEG_INFINITY;
    for (from, to) in spans {
        covered += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    covered
}

/// The steps in their order, each followed by its tables.
pub(crate) fn steps(done: &[Done]) -> Vec<LoadStep> {
    let mut steps = Vec::new();
    let mut add = |name: String, is_part: &dyn Fn(&Done) -> bool| {
        let pieces: Vec<&Done> = done.iter().filter(|done| is_part(done)).collect();
        if !pieces.is_empty() {
            let rows = pieces.iter().map(|done| done.rows).sum();
            steps.push(LoadStep { name, seconds: seconds(pieces), rows });
        }
    };
    add(CREATE_DATABASE.to_owned(), &|done| done.name == CREATE_DATABASE);
    for step in TpchStep::ALL {
        let prefix = format!("{}/", step.name());
        add(step.name().to_owned(), &|done| done.name.starts_with(&prefix));
        for table in SchemaTable::ALL {
            let whole = format!("{prefix}{}", table.name());
            let parts = format!("{whole}.");
            let is_part = |done: &Done| done.name == whole || done.name.starts_with(&parts);
            add(whole.clone(), &is_part);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &str, began_s: f64, seconds: f64, rows: u64) -> Done {
        Done { name: name.to_owned(), began_s, seconds, rows, sums: String::new() }
    }

    #[test]
    fn a_step_lasts_while_one_of_its_pieces_does() {
        let pieces = [
            done("create/part", 90.0, 1.0, 0),
            done("load/part.1", 100.0, 4.0, 10),
            done("load/partsupp.1", 102.0, 1.0, 7),
            done("load/part.2", 103.0, 3.0, 10),
            // After an interruption.
            done("load/part.3", 500.0, 2.0, 5),
        ];
        let found = steps(&pieces);
        let step = |name: &str, seconds, rows| LoadStep { name: name.to_owned(), seconds, rows };
        assert_eq!(
            found,
            [
                step("create", 1.0, 0),
                step("create/part", 1.0, 0),
                step("load", 8.0, 32),
                step("load/part", 8.0, 25),
                step("load/partsupp", 1.0, 7),
            ]
        );
    }
}
