//! `dyno check`: the database and the shards behind it; of pgbench what holds whatever its own scripts have done,
//! of TPC-C the conditions and the ledger.

use crate::CommandResult;
use dyno_core::{
    AdminDriver, AdminSession, AnswerTable, DbError, counted, is_shardingsphere, nearest,
};
use dyno_drivers::target::TargetUrl;
use dyno_facts::DataCheck;
use dyno_facts::format::grouped;
use dyno_load::default_sessions;
use dyno_pgbench::check::{Balances, Book, balances};
use dyno_pgbench::init::ACCOUNTS_PER_BRANCH;
use dyno_runner::databases::reach;
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use dyno_runner::progress::ProgressBar;
use dyno_runner::watch::{AskedNodes, asking};
use dyno_runner::{output, signals};
use dyno_tpcc::check::{CONDITIONS, Condition, Stage};
use dyno_tpcc::ledger::{Recorded, read};
use dyno_tpcc::load::{TpccDatabase, existing_tables, loaded, prove};
use dyno_tpcc::settle::{books, settle};
use host::HostReport;
use report::{LedgerReport, Line, Report};
use std::path::{Path, PathBuf};
use std::time::Instant;

mod host;
mod report;

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/check.txt").trim_ascii_end())]
pub(crate) struct Arguments {
    /// The database, as a URL: mysql://user@host:port/database, postgres://..., sqlite:FILE, or the one
    /// that takes writes in a cluster of `dyno cluster`: cluster:FOLDER.
    #[arg(required_unless_present = "host")]
    target: Option<String>,
    /// Check this machine as a load generator instead: which settings of the white papers are in force, and how to
    /// set the others.
    #[arg(long, conflicts_with_all = ["target", "ledger", "only", "driver_side"])]
    host: bool,
    /// Compare with the orders that runs with `--ledger` have recorded in this file.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Check only these: conditions by their names, `ledger` and `shard-placement`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Compare rows of different warehouses in dyno instead of joining them in the database. This
    /// happens by itself where the database refuses such a join.
    #[arg(long)]
    driver_side: bool,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Executes `dyno check`.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let Some(target) = &arguments.target else {
        let report = HostReport::read(Path::new("/"));
        output::data(&if arguments.json { crate::pretty(&report)? } else { report.text() });
        return Ok(());
    };
    let request = CheckRequest::new(arguments)?;
    refuse_missing_file(target)?;
    signals::end_on_interrupt("a check changes nothing", || {})
        .map_err(|error| Failure::new(format!("Ctrl-C can't be listened to: {error}.")))?;
    let reached_database = reach("target", target).map_err(or_interruption)?;
    let server = format!("{} {}", reached_database.facts.product, reached_database.facts.version);
    let report = asking("check", &reached_database, || {
        check_database(&reached_database.database.admin(), &request, server)
    });
    let report = report.map_err(or_interruption)?;
    output::data(&if arguments.json { report.json()? } else { report.text() });
    match report.complaint() {
        None => report.doubt().map_or(Ok(()), |doubt| Err(Failure::with_code(3, doubt))),
        Some(complaint) => Err(Failure::denied(complaint)),
    }
}

fn or_interruption(failure: Failure) -> Failure {
    if signals::has_come() { Failure::interrupted("The check was stopped.") } else { failure }
}

/// An embedded database makes a file that is not there, and a check has nothing to find in it.
fn refuse_missing_file(url: &str) -> Result<(), Failure> {
    // A URL that can't be read is refused by who reads it next.
    let target = url.parse::<TargetUrl>().ok().filter(TargetUrl::is_embedded);
    match target.and_then(|target| target.database) {
        Some(file) if !Path::new(&file).exists() => {
            Err(Failure::new(format!("There is no file {file} that could be checked.")))
        }
        _ => Ok(()),
    }
}

fn check_database(
    driver: &AdminDriver<'_>,
    request: &CheckRequest,
    server: String,
) -> Result<Report, Failure> {
    match ask(driver, async |session| read_tpcc_state(session).await)? {
        Some((loaded, stage)) => check_tpcc(driver, request, &loaded, stage, server),
        None if request.is_usual() => check_pgbench(driver, server),
        None => Err(Failure::usage(
            "The database holds pgbench's tables: --ledger, --only and --driver-side are for TPC-C.",
        )),
    }
}

/// The state of TPC-C's tables; `None` if there are pgbench's tables instead.
async fn read_tpcc_state(
    session: &mut AdminSession<'_>,
) -> Result<Option<(TpccDatabase, Stage)>, Failure> {
    if !existing_tables(session).await?.is_empty() {
        let loaded = loaded(session).await?;
        let is_fresh = books(session).await?.is_fresh();
        return Ok(Some((loaded, if is_fresh { Stage::Fresh } else { Stage::Used })));
    }
    if !dyno_pgbench::init::existing_tables(session).await?.is_empty() {
        return Ok(None);
    }
    Err(Failure::new(
        "There is nothing here that dyno can check: neither TPC-C's tables (bmsql_warehouse and \
         others) nor pgbench's (pgbench_accounts and others) exist.",
    )
    .with_hint("Look whether the URL names the right database and a user who may see its tables."))
}

/// Tellers of a branch, as pgbench initializes them.
const TELLERS_PER_BRANCH: i64 = 10;

type Rows = [i64; 3];

fn check_pgbench(driver: &AdminDriver<'_>, server: String) -> Result<Report, Failure> {
    let begin = Instant::now();
    let (sums, rows) = ask(driver, async |session| query_sums_and_rows(session).await)?;
    let time_s = begin.elapsed().as_secs_f64();
    Ok(Report {
        workload: "pgbench",
        title: format!("pgbench, scale {}, on {server}", rows[0]),
        facts: pgbench_facts(&sums),
        ledger: None,
        lines: pgbench_lines(&sums, rows, time_s),
    })
}

async fn query_sums_and_rows(session: &mut AdminSession<'_>) -> Result<(Balances, Rows), DbError> {
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

fn pgbench_lines(sums: &Balances, [branches, tellers, accounts]: Rows, time_s: f64) -> Vec<Line> {
    let [teller_sum, branch_sum] = [Book::Tellers, Book::Branches].map(|book| sums.sum(book));
    let expected = [TELLERS_PER_BRANCH, i64::from(ACCOUNTS_PER_BRANCH)].map(|each| branches * each);
    let balances = "Tellers and branches have the same sum of balances.";
    let rows = "Each branch has 10 tellers and 100,000 accounts.";
    let counts = format!("branches {branches}, tellers {tellers}, accounts {accounts}");
    let sums = format!("tellers {teller_sum}, branches {branch_sum}");
    let lines = [
        ("balances", balances, teller_sum == branch_sum, sums, time_s),
        ("rows", rows, [tellers, accounts] == expected, counts, 0.0),
    ];
    let lines = lines.map(|(id, rule, holds, figures, time_s)| Line {
        holds: Some(holds),
        violations: u64::from(!holds),
        keys: if holds { Vec::new() } else { vec![figures] },
        time_s,
        ..Line::new(id, rule)
    });
    lines.into()
}

/// The sums, unjudged: only the scripts that have run know which of them must be alike.
fn pgbench_facts(sums: &Balances) -> Vec<String> {
    vec![
        format!(
            "Sums: accounts {}, tellers {}, branches {}, history {} in {} rows.",
            grouped(sums.sum(Book::Accounts)),
            grouped(sums.sum(Book::Tellers)),
            grouped(sums.sum(Book::Branches)),
            grouped(sums.sum(Book::History)),
            grouped(sums.history_rows)
        ),
        "Accounts and history change with them in the script tpcb-like, without them in \
         simple-update, and each run of pgbench empties the history: `dyno pgbench --check-balances` \
         compares all four over a run."
            .to_owned(),
    ]
}

struct CheckRequest {
    /// All of them unless some were named.
    conditions: Vec<&'static Condition>,
    are_named: bool,
    /// Rows of different warehouses are compared in dyno.
    is_apart: bool,
    ledger: Option<Recorded>,
    /// Check also that rows lie on their shards.
    shards: bool,
}

impl CheckRequest {
    /// Reads the ledger, before anybody waits for a database.
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let ledger = arguments.ledger.as_deref().map(read).transpose()?;
        if ledger.as_ref().is_some_and(|recorded| recorded.runs == 0) {
            return Err(Failure::new(
                "No run has begun to write into the ledger: there is nothing to check.",
            ));
        }
        if let (Some(recorded), Some(target)) = (&ledger, &arguments.target) {
            refuse_other_database(recorded, target)?;
        }
        let mut conditions = Vec::new();
        let mut shards = arguments.only.is_empty();
        for name in &arguments.only {
            if name.eq_ignore_ascii_case(DataCheck::SHARD_PLACEMENT) {
                shards = true;
            } else if !name.eq_ignore_ascii_case(DataCheck::LEDGER) {
                conditions.push(find_condition(name)?);
            } else if ledger.is_none() {
                let problem = "`--only ledger` needs a ledger.";
                return Err(Failure::usage(problem).with_hint("Name it with --ledger FILE."));
            }
        }
        let are_named = !arguments.only.is_empty();
        Ok(CheckRequest {
            conditions: if are_named { conditions } else { CONDITIONS.iter().collect() },
            are_named,
            is_apart: arguments.driver_side,
            ledger,
            shards,
        })
    }

    /// Returns true if nothing was requested that only TPC-C has.
    fn is_usual(&self) -> bool {
        !self.are_named && !self.is_apart && self.ledger.is_none()
    }
}

fn parse_target(url: &str) -> Option<TargetUrl> {
    url.trim_start_matches("jdbc:").parse().ok()
}

/// The host may be another one after a failover, the database's name and product may not.
fn refuse_other_database(recorded: &Recorded, target: &str) -> Result<(), Failure> {
    let (Some(recorded_url), Some(url)) = (parse_target(&recorded.target), parse_target(target))
    else {
        return Ok(());
    };
    let is_same_database = recorded_url.dialect == url.dialect
        && (url.is_embedded()
            || recorded_url.database.is_none()
            || recorded_url.database == url.database);
    if is_same_database {
        return Ok(());
    }
    Err(Failure::new(format!(
        "The ledger {} was written on another database: {}.",
        recorded.path().display(),
        recorded.target
    ))
    .with_hint("Name that one, or the ledger of a run on this one."))
}

fn find_condition(name: &str) -> Result<&'static Condition, Failure> {
    let condition = CONDITIONS.iter().find(|condition| condition.id.eq_ignore_ascii_case(name));
    condition.ok_or_else(|| {
        let ids = CONDITIONS.iter().map(|condition| condition.id);
        let failure = Failure::usage(format!("There is no condition `{name}`."));
        let near = nearest(&name.to_uppercase(), ids.clone());
        let list = ids
            .chain([DataCheck::LEDGER, DataCheck::SHARD_PLACEMENT])
            .collect::<Vec<_>>()
            .join(", ");
        failure.with_hint(match near {
            Some(near) => format!("Did you mean `{near}`? There are {list}."),
            None => format!("There are {list}."),
        })
    })
}

fn check_tpcc(
    driver: &AdminDriver<'_>,
    request: &CheckRequest,
    loaded: &TpccDatabase,
    stage: Stage,
    server: String,
) -> Result<Report, Failure> {
    let ledger = request.ledger.as_ref().map(|recorded| {
        recorded.is_of(loaded)?;
        check_ledger(driver, recorded)
    });
    let ledger = ledger.transpose()?;
    let mut lines = check_conditions(driver, request, stage)?;
    if request.shards {
        lines.extend(check_shards(driver, loaded.warehouses, request.are_named)?);
    }
    let was_checked = lines.iter().any(|line| line.holds.is_some());
    if !was_checked && ledger.is_none() {
        return Err(Failure::new(
            "Nothing was checked: C11 is for a database as it was loaded, and transactions have run on \
             this one.",
        )
        .with_hint("Check C11b, which holds at any time."));
    }
    let skipped_lines = lines.iter().filter(|line| line.holds.is_none());
    let facts = skipped_lines.map(|line| {
        format!(
            "{} is for a database as it was loaded: transactions have run on this one.",
            line.id
        )
    });
    let is_unproven = request.shards && is_shardingsphere(&server) && driver.shards().is_none();
    let unproven = "The shards behind this endpoint are not known: shard-placement is not checked.";
    let facts = facts.chain(is_unproven.then(|| unproven.to_owned()));
    let state = match stage {
        Stage::Fresh => "as loaded",
        Stage::Used => "used since its load",
    };
    let warehouses = counted(loaded.warehouses, "warehouse");
    Ok(Report {
        workload: "tpcc",
        title: format!("TPC-C, {warehouses}, {state}, on {server}"),
        facts: facts.collect(),
        ledger,
        lines,
    })
}

fn check_conditions(
    driver: &AdminDriver<'_>,
    request: &CheckRequest,
    stage: Stage,
) -> Result<Vec<Line>, Failure> {
    let progress = ProgressBar::new("checking", request.conditions.len() as u64, "conditions");
    let mut lines = Vec::new();
    for (done, condition) in request.conditions.iter().enumerate() {
        progress.at(done as u64, request.conditions.len() as u64, condition.id);
        let mut line = Line::new(condition.id, condition.rule().to_string());
        if condition.applies(stage) {
            let begin = Instant::now();
            let verdict = condition.examine(driver, request.is_apart);
            let verdict = verdict.map_err(|error| Failure::from(error).at(condition.id))?;
            line.holds = Some(verdict.holds());
            line.violations = verdict.violations;
            line.is_driver_side = verdict.is_apart;
            line.keys = verdict.keys;
            line.time_s = begin.elapsed().as_secs_f64();
        }
        lines.push(line);
    }
    progress.clear();
    Ok(lines)
}

/// Checks that every row lies on its shard; `None` if there are no shards.
///
/// # Errors
/// The shards can't be queried, or the check was requested by name and they are not known.
fn check_shards(
    driver: &AdminDriver<'_>,
    warehouses: u32,
    is_named: bool,
) -> Result<Option<Line>, Failure> {
    let begin = Instant::now();
    let proof = prove(driver, warehouses, default_sessions(), &AskedNodes)?;
    let Some(proof) = proof else {
        let failure = Failure::usage(
            "No shards are known of this database, or not how rows lie on them.",
        )
        .with_hint(
            "A cluster of dyno is named as cluster:FOLDER; a suite can name the shards of others.",
        );
        return if is_named { Err(failure) } else { Ok(None) };
    };
    Ok(Some(Line {
        holds: Some(proof.problems.is_empty()),
        violations: proof.found as u64,
        keys: proof.problems.iter().map(ToString::to_string).collect(),
        time_s: begin.elapsed().as_secs_f64(),
        ..Line::new(
            DataCheck::SHARD_PLACEMENT,
            "Every row lies on its shard, and the endpoint finds it there.",
        )
    }))
}

fn check_ledger(driver: &AdminDriver<'_>, recorded: &Recorded) -> Result<LedgerReport, Failure> {
    let total = recorded.acknowledged();
    let progress = ProgressBar::new("ledger", total, "orders");
    let begin = Instant::now();
    let settled = ask(driver, async |session| {
        settle(session, recorded, |done| progress.at(done, total, "")).await
    });
    progress.clear();
    if !recorded.is_ended {
        output::talk("note: The last run with this ledger was killed, or it is still running.");
    }
    let settlement = settled.map_err(|failure| failure.at("The ledger"))?;
    Ok(LedgerReport {
        path: recorded.path().display().to_string(),
        recorded_target: recorded.target.clone(),
        runs: recorded.runs,
        is_ended: recorded.is_ended,
        torn: recorded.torn,
        refused: recorded.refused,
        settlement,
        time_s: begin.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(sums: &Balances, rows: Rows) -> Vec<bool> {
        pgbench_lines(sums, rows, 0.0).iter().map(|line| line.holds == Some(true)).collect()
    }

    #[test]
    fn unequal_sums_and_missing_rows_are_violations() {
        let sums = Balances { sums: [7, 5, 5, 0], ..Balances::default() };
        assert_eq!(verdicts(&sums, [2, 20, 200_000]), [true, true]);
        assert_eq!(verdicts(&sums, [2, 20, 199_999]), [true, false]);
        let unequal = Balances { sums: [7, 5, 6, 0], ..sums };
        assert_eq!(verdicts(&unequal, [2, 20, 200_000]), [false, true]);
        let line = &pgbench_lines(&unequal, [2, 20, 200_000], 0.0)[0];
        assert_eq!((line.violations, line.keys[0].as_str()), (1, "tellers 5, branches 6"));
    }
}
