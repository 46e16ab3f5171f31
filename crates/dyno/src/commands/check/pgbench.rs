//! pgbench: what holds whatever its own scripts have done.

use super::report::{Line, Report, Verdict};
use dyno_core::{AdminDriver, AdminSession, AnswerTable, DbError, Session};
use dyno_facts::format::grouped;
use dyno_pgbench::check::{Balances, balances};
use dyno_pgbench::init::ACCOUNTS_PER_BRANCH;
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use std::time::Instant;

/// Tellers of a branch, as pgbench initializes them.
const TELLERS_PER_BRANCH: i64 = 10;

type Rows = [i64; 3];

pub(super) fn check(driver: &AdminDriver<'_>, server: String) -> Result<Report, Failure> {
    let begin = Instant::now();
    let (sums, rows) = ask(driver, async |session| look(session).await)?;
    let time_s = begin.elapsed().as_secs_f64();
    Ok(Report {
        workload: "pgbench",
        title: format!("pgbench, scale {}, on {server}", rows[0]),
        facts: facts(&sums),
        ledger: None,
        lines: lines(&sums, rows, time_s),
    })
}

async fn look(session: &mut AdminSession<'_>) -> Result<(Balances, Rows), DbError> {
    let sums = balances(session).await?;
    let mut rows = [0; 3];
    for (count, table) in
        rows.iter_mut().zip(["pgbench_branches", "pgbench_tellers", "pgbench_accounts"])
    {
        let mut answer = AnswerTable::default();
        session.query(&format!("SELECT count(*) FROM {table}"), &mut answer).await?;
        *count = answer.single().and_then(|count| count.parse().ok()).unwrap_or(-1);
    }
    Ok((sums, rows))
}

fn lines(sums: &Balances, rows: Rows, time_s: f64) -> Vec<Line> {
    let [branches, tellers, accounts] = rows;
    let tellers_wanted = branches * TELLERS_PER_BRANCH;
    let accounts_wanted = branches * i64::from(ACCOUNTS_PER_BRANCH);
    let balances = Line {
        verdict: Verdict::of(sums.tellers == sums.branches),
        keys: vec![format!("tellers {}, branches {}", sums.tellers, sums.branches)],
        time_s,
        ..Line::new("balances", "Tellers and branches have the same sum of balances.")
    };
    let rows = Line {
        verdict: Verdict::of((tellers, accounts) == (tellers_wanted, accounts_wanted)),
        keys: vec![format!("branches {branches}, tellers {tellers}, accounts {accounts}")],
        ..Line::new("rows", "Each branch has 10 tellers and 100,000 accounts.")
    };
    let judged = |line: Line| match line.verdict {
        Verdict::Violated => Line { violations: 1, ..line },
        _ => Line { keys: Vec::new(), ..line },
    };
    [balances, rows].map(judged).to_vec()
}

/// Which sums must be alike depends on the scripts that have run, and only they know.
fn facts(sums: &Balances) -> Vec<String> {
    vec![
        format!(
            "Sums: accounts {}, tellers {}, branches {}, history {} in {} rows.",
            grouped(sums.accounts),
            grouped(sums.tellers),
            grouped(sums.branches),
            grouped(sums.history),
            grouped(sums.history_rows)
        ),
        "Accounts and history change with them in the script tpcb-like, without them in \
         simple-update, and each run of pgbench empties the history: `dyno pgbench --check-balances` \
         compares all four over a run."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_sums_and_missing_rows_are_violations() {
        let sums = Balances { tellers: 5, branches: 5, accounts: 7, ..Balances::default() };
        let verdicts = |sums: &Balances, rows| {
            let lines = lines(sums, rows, 0.0);
            lines.iter().map(|line| line.verdict).collect::<Vec<_>>()
        };
        use Verdict::{Holds, Violated};
        assert_eq!(verdicts(&sums, [2, 20, 200_000]), [Holds, Holds]);
        assert_eq!(verdicts(&sums, [2, 20, 199_999]), [Holds, Violated]);
        let unequal = Balances { branches: 6, ..sums };
        assert_eq!(verdicts(&unequal, [2, 20, 200_000]), [Violated, Holds]);
        let line = &lines(&unequal, [2, 20, 200_000], 0.0)[0];
        assert_eq!((line.violations, line.keys[0].as_str()), (1, "tellers 5, branches 6"));
    }
}
