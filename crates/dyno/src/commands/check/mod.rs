//! `dyno check`.

mod host;
mod pgbench;
mod report;
mod target;
mod tpcc;

use crate::Done;
use dyno_core::{AdminDriver, AdminSession};
use dyno_drivers::target::TargetUrl;
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use dyno_runner::watch::asking;
use dyno_runner::{output, signals};
use dyno_tpcc::check::Stage;
use dyno_tpcc::load::{TpccDatabase, existing_tables, loaded};
use dyno_tpcc::settle::books;
use host::HostReport;
use report::Report;
use std::path::{Path, PathBuf};
use target::ShardArguments;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
On TPC-C's tables, all conditions of clause 3.3.2 (C1 to C12) and further ones (X1 to X10) are checked;
violations are listed by key. Where the shards behind an endpoint are known, it is also checked that every
row lies on its shard and that the endpoint finds it there (`shard-placement`). On pgbench's tables, the sums
of the balances and the numbers of rows are checked. Nothing else may write meanwhile. Whole tables are read,
which takes seconds for each warehouse.

With --ledger, every order that a run has recorded as acknowledged must be there with all its lines,
those of unknown outcome (commit sent, never answered) are looked up one by one, and the districts' next
order numbers must have grown by just as much.

With --host, this machine is looked at as a load generator: how the packets of its network interfaces are
spread over its CPUs (rps_cpus, rps_flow_cnt, rps_sock_flow_entries), how many connections and files it
takes, its CPUs' frequency and its clock. Deviations from the white papers are printed as commands;
nothing is changed.

Examples:
  dyno check mysql://root@10.0.0.5/tpcc
  dyno check postgres://bench@db1/tpcc --only C1,C4,X1
  dyno check mysql://root@10.0.0.5/tpcc --ledger orders.ledger       after a crash or a failover
  dyno check mysql://root@10.0.0.5/tpcc --ledger orders.ledger --only ledger
  dyno check mysql://root@proxy:3307/tpcc --driver-side              sharded, no joins over shards
  dyno check cluster:dyno-cluster --only shard-placement             rows on their shards
  dyno check mysql://root@proxy:3307/tpcc --shard mysql://root@db1/tpcc --shard mysql://root@db2/tpcc --shard-rule modulo
  dyno check --host                                                  this machine as a load generator

The password is taken from the URL, from DYNO_PASSWORD_TARGET, from ~/.pgpass or ~/.my.cnf, or asked for.
Exit codes: 0 all holds, 1 it could not be checked, 2 wrong usage, 3 no order is lost, but others have entered
orders, too, 4 something is violated or lost, 130 stopped with Ctrl-C.")]
pub(crate) struct Arguments {
    /// The database, as a URL: mysql://user@host:port/database, postgres://..., sqlite:FILE, or the one
    /// that takes writes in a cluster of `dyno cluster`: cluster:FOLDER.
    #[arg(required_unless_present = "host")]
    target: Option<String>,
    /// Check this machine as a load generator instead: which settings of the white papers are in force, and how to
    /// set the others.
    #[arg(long, conflicts_with_all = ["target", "ledger", "only", "driver_side", "shards"])]
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
    #[command(flatten)]
    shards: ShardArguments,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let Some(target) = &arguments.target else {
        let report = HostReport::read(Path::new("/"));
        output::data(&if arguments.json { report.json()? } else { report.text() });
        return Ok(());
    };
    let wanted = tpcc::CheckRequest::new(arguments)?;
    refuse_missing_file(target)?;
    signals::end_on_interrupt("a check changes nothing", || {})
        .map_err(|error| Failure::new(format!("Ctrl-C can't be listened to: {error}.")))?;
    let stopped = |failure| match signals::has_come() {
        true => Failure::interrupted("The check was stopped."),
        false => failure,
    };
    let reached = target::reached(target, &arguments.shards).map_err(stopped)?;
    let server = format!("{} {}", reached.facts.product, reached.facts.version);
    let report = asking("check", &reached, || check(&reached.database.admin(), &wanted, server));
    let report = report.map_err(stopped)?;
    output::data(&if arguments.json { report.json()? } else { report.text() });
    match report.complaint() {
        None => report.doubt().map_or(Ok(()), |doubt| Err(Failure::with_code(3, doubt))),
        Some(complaint) => Err(Failure::denied(complaint)),
    }
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

enum Contents {
    Tpcc(TpccDatabase, Stage),
    Pgbench,
}

fn check(
    driver: &AdminDriver<'_>,
    wanted: &tpcc::CheckRequest,
    server: String,
) -> Result<Report, Failure> {
    match ask(driver, async |session| contents(session).await)? {
        Contents::Tpcc(loaded, stage) => tpcc::check(driver, wanted, &loaded, stage, server),
        Contents::Pgbench if wanted.is_usual() => pgbench::check(driver, server),
        Contents::Pgbench => Err(Failure::usage(
            "The database holds pgbench's tables: --ledger, --only and --driver-side are for TPC-C.",
        )),
    }
}

async fn contents(session: &mut AdminSession<'_>) -> Result<Contents, Failure> {
    let tables = existing_tables(session).await?;
    if !tables.is_empty() {
        let loaded = loaded(session).await?;
        let books = books(session).await.map_err(|error| Failure::from(&error))?;
        let stage = if books.is_fresh() { Stage::Fresh } else { Stage::Used };
        return Ok(Contents::Tpcc(loaded, stage));
    }
    let tables = dyno_pgbench::init::existing_tables(session).await;
    let tables = tables.map_err(|error| Failure::from(&error))?;
    if !tables.is_empty() {
        return Ok(Contents::Pgbench);
    }
    Err(Failure::new(
        "There is nothing here that dyno can check: neither TPC-C's tables (bmsql_warehouse and \
         others) nor pgbench's (pgbench_accounts and others) exist.",
    )
    .with_hint("Look whether the URL names the right database and a user who may see its tables."))
}
