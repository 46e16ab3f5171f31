//! Whether each row of the history that was acknowledged is there: a run may keep what its transactions
//! wrote, and after a failover that is held against the table as a multiset.

use crate::check::inserted_variable;
use dyno_core::{AdminSession, AnswerRow, DbError, Rows, Session};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The columns that tell rows apart: the time of the server is not known to the client.
const COLUMNS: [&str; 4] = ["tid", "bid", "aid", "delta"];

type Written = [i64; 4];

/// Variables of a script that hold what it writes into the history, in the order of the columns.
pub(crate) type Variables = [String; 4];

/// The variables whose values one transaction of the script writes into the history; `None` where it
/// writes none, or what it writes doesn't follow from the text.
pub(crate) fn variables(script: &str) -> Option<Variables> {
    let [tid, bid, aid, delta] = COLUMNS.map(|column| inserted_variable(script, column));
    Some([tid?, bid?, aid?, delta?])
}

/// What the transactions of one client wrote.
#[derive(Debug, Default)]
struct ClientHistory {
    acknowledged: Vec<Written>,
    unknown: Vec<Written>,
}

/// What the transactions of a run wrote, by client: whatever was acknowledged, and what may be there.
#[derive(Debug)]
pub struct Journal {
    /// Of each script: numbers of the variables.
    variables: Vec<Option<[u32; 4]>>,
    clients: Vec<Mutex<ClientHistory>>,
}

/// How a transaction ended, as far as its row is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFate {
    Acknowledged,
    /// Its answer never came.
    Unknown,
}

impl Journal {
    pub(crate) fn new(variables: Vec<Option<[u32; 4]>>, clients: u32) -> Self {
        Journal { variables, clients: (0..clients).map(|_| Mutex::default()).collect() }
    }

    #[inline]
    pub(crate) fn variables(&self, script: usize) -> Option<[u32; 4]> {
        self.variables.get(script).copied().flatten()
    }

    /// Notes what a transaction wrote. Clients don't share what they note: no lock is waited for.
    #[inline]
    pub(crate) fn note(&self, client: u32, fate: RowFate, written: Written) {
        let Some(kept) = self.clients.get(client as usize) else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        match fate {
            RowFate::Acknowledged => kept.acknowledged.push(written),
            RowFate::Unknown => kept.unknown.push(written),
        }
    }

    /// True when at least one script writes rows that can be followed.
    pub fn is_useful(&self) -> bool {
        self.variables.iter().any(Option::is_some)
    }

    /// Looks for what was acknowledged in what the table has gained.
    pub fn settle(&self, before: &History, after: &History) -> Settled {
        let mut gained = after.0.clone();
        for (row, count) in &before.0 {
            if let Some(left) = gained.get_mut(row) {
                *left = left.saturating_sub(*count);
            }
        }
        let mut take = |row: &Written| match gained.get_mut(row) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        let mut settled = Settled::default();
        let clients: Vec<_> = self
            .clients
            .iter()
            .map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for row in clients.iter().flat_map(|kept| &kept.acknowledged) {
            settled.acknowledged += 1;
            settled.lost += u64::from(!take(row));
        }
        // Whoever was acknowledged comes first: a row that both may have written is theirs.
        for row in clients.iter().flat_map(|kept| &kept.unknown) {
            settled.unknown += 1;
            settled.committed += u64::from(take(row));
        }
        settled
    }
}

/// The rows of the history with how often each is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(HashMap<Written, u32>);

impl Rows for History {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        let cell = |column| if column < row.columns() { row.int(column) } else { None };
        // What can't be read equals nothing that a transaction wrote.
        let written = [0, 1, 2, 3].map(|column| cell(column).unwrap_or(i64::MIN));
        *self.0.entry(written).or_default() += 1;
    }
}

/// Reads the history. Nobody may write meanwhile.
pub async fn history(session: &mut AdminSession<'_>) -> Result<History, DbError> {
    let mut history = History::default();
    let sql = format!("SELECT {} FROM pgbench_history", COLUMNS.join(", "));
    session.query(&sql, &mut history).await?;
    Ok(history)
}

/// What came of the rows that a run wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    pub acknowledged: u64,
    pub lost: u64,
    /// Transactions whose connection was lost before their COMMIT was answered, or sent.
    pub unknown: u64,
    pub committed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::find_builtin;

    fn table(rows: &[Written]) -> History {
        let mut history = History::default();
        for row in rows {
            *history.0.entry(*row).or_default() += 1;
        }
        history
    }

    #[test]
    fn the_scripts_that_write_say_what() {
        let names = |name| variables(find_builtin(name).expect("a script").text);
        let all = Some(["tid", "bid", "aid", "delta"].map(str::to_owned));
        assert_eq!(names("tpcb-like"), all);
        assert_eq!(names("simple-update"), all);
        assert_eq!(names("select-only"), None);
        let literal = "INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 2, :a, :d);";
        assert_eq!(variables(literal), None);
        let twice = "INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (:t, :b, :a, :d);";
        assert_eq!(variables(&format!("{twice}\n{twice}")), None, "one row each is followed");
    }

    #[test]
    fn rows_are_a_multiset_and_those_from_before_count_for_nobody() {
        let [a, b, c] = [[1, 1, 1, 5], [1, 1, 2, 5], [2, 1, 3, -5]];
        let journal = Journal::new(vec![Some([0, 1, 2, 3])], 2);
        for (client, fate, row) in [
            (0, RowFate::Acknowledged, a),
            (1, RowFate::Acknowledged, a),
            (0, RowFate::Acknowledged, b),
            (1, RowFate::Unknown, c),
            (1, RowFate::Unknown, b),
        ] {
            journal.note(client, fate, row);
        }
        let all = Settled { acknowledged: 3, lost: 0, unknown: 2, committed: 1 };
        let before = table(&[a, c]);
        assert_eq!(journal.settle(&before, &table(&[a, c, a, a, b, c])), all);
        // One of the two equal rows is missing, and the one of unknown outcome did not happen.
        let lost = Settled { lost: 1, committed: 0, ..all };
        assert_eq!(journal.settle(&before, &table(&[a, c, a, b])), lost);
        assert_eq!(journal.settle(&before, &before).lost, 3);
    }
}
