//! TPC-C alongside go-tpc on real servers, which share the machine's cores with the client.
//!
//! Both use TCP, as go-tpc knows nothing else. A transaction of dyno has more statements: BenchmarkSQL's, where go-tpc
//! asks for several items at once.

use crate::bench::{Bench, CLIENT_CORE, Cost, NullAddress, Steady};
use crate::client::{ServerAddress, Who};
use crate::comparisons::{Lines, Loading, loading_lines};
use crate::server::Server;
use crate::table::{Bar, Line};
use std::cell::Cell;
use std::process::Command;

/// Enough to spread go-tpc's connections, few enough for several pairs.
const WAREHOUSES: u32 = 2;
const SESSIONS: u32 = 4;
const TERMINALS: u32 = 16;
/// Answers of the bare loop that count as a transaction: its round trips, on average.
const FLOOR_ANSWERS: f64 = 19.4;
/// Rows of stock that a statement of the bare loop adds up.
const FLOOR_ROWS: u32 = 120;
/// Warehouses of the many terminals, ten each, and the sessions that they share.
const HOMES: u32 = 10_000;
const MANY_SESSIONS: u32 = 1_000;
/// Length of a run of the many terminals, except in a quick one.
const TERMINALS_SECONDS: u64 = 60;
/// MiB that a client may take at that many terminals.
const MEMORY_MIB: f64 = 30.0;

impl Server {
    /// The database of one side, empty.
    fn renew(&self, who: Who) -> Result<(), String> {
        let name = database_name(who);
        match self {
            Server::Postgres(server) => {
                server.sql(&format!("DROP DATABASE IF EXISTS {name}"))?;
                server.sql(&format!("CREATE DATABASE {name}"))?;
                // The pages of the other shall not cost this one.
                server.sql("CHECKPOINT").map(drop)
            }
            Server::MariaDb(server) => {
                let sql = format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}");
                server.sql(&sql).map(drop)
            }
        }
    }

    /// A program of one side with the address of its database. `verb` has dyno's arguments, `options` go-tpc's.
    fn command(
        &self,
        bench: &Bench,
        who: Who,
        verb: &str,
        options: &str,
    ) -> Result<Command, String> {
        let name = database_name(who);
        let (port, url, driver) = match self {
            Server::Postgres(server) => {
                let driver = "--driver=postgres --user=postgres --conn-params=sslmode=disable";
                (server.port, "postgres://postgres", driver)
            }
            Server::MariaDb(server) => (server.port, "mysql://root", "--driver=mysql --user=root"),
        };
        if who == Who::Dyno {
            let mut command = Command::new(&bench.programs.dyno_tpcc);
            command.arg(format!("{url}@127.0.0.1:{port}/{name}")).args(verb.split(' '));
            return Ok(command);
        }
        let mut command = Command::new(bench.programs.find(who)?);
        command.arg("tpcc").args(options.split(' ')).args(["--host=127.0.0.1", "--db", name]);
        command.arg(format!("--warehouses={WAREHOUSES}")).args(driver.split(' '));
        command.arg(format!("--port={port}"));
        Ok(command)
    }

    fn load(&self, bench: &Bench, who: Who) -> Result<Command, String> {
        let verb = format!("load {WAREHOUSES} {SESSIONS}");
        self.command(bench, who, &verb, &format!("prepare --no-check --threads={SESSIONS}"))
    }

    fn run(&self, bench: &Bench, who: Who, seconds: u64) -> Result<Command, String> {
        let verb = format!("run {WAREHOUSES} {TERMINALS} {seconds}");
        let options = format!("run --threads={TERMINALS} --time={seconds}s");
        self.command(bench, who, &verb, &options)
    }

    /// The bare loop over as many connections, with a statement that reads dyno's tables.
    fn floor(&self, bench: &Bench, seconds: u64) -> Command {
        let mut command = Command::new(&bench.programs.floor);
        let (server, port, key) = match self {
            Server::Postgres(server) => ("--postgres", server.port, "$1"),
            Server::MariaDb(server) => ("--mysql-host", server.port, "?"),
        };
        let sql = format!(
            "SELECT sum(q) FROM (SELECT s_quantity AS q FROM bmsql_stock WHERE s_w_id = 1 AND s_i_id >= {key} \
             ORDER BY s_i_id LIMIT {FLOOR_ROWS}) AS summed"
        );
        command.arg(format!("{server}=127.0.0.1")).arg(format!("--port={port}"));
        command.arg(format!("--database={}", database_name(Who::Dyno)));
        command.args(["--statement", &sql, "--rows=99000"]);
        command.arg(format!("--clients={TERMINALS}")).arg(format!("--time={seconds}"));
        command
    }

    /// PostgreSQL reads a district's table as a whole while it is a page, and continues so with what prepared
    /// statements have planned when it has fifty: until the first vacuum after some updates, which comes in a minute or
    /// is made here.
    fn vacuum(&self, who: Who) -> Result<(), String> {
        let Server::Postgres(server) = self else { return Ok(()) };
        server.in_database(database_name(who), "VACUUM ANALYZE").map(drop)
    }

    fn rows(&self, who: Who) -> Result<u32, String> {
        let (database, prefix) = (database_name(who), if who == Who::Dyno { "bmsql_" } else { "" });
        let order = if who == Who::Dyno { "oorder" } else { "orders" };
        let tables = "warehouse district customer history new_order order_line item stock";
        let mut rows = 0;
        for table in tables.split(' ').chain([order]) {
            let answer = match self {
                Server::Postgres(server) => {
                    server.in_database(database, &format!("SELECT count(*) FROM {prefix}{table}"))
                }
                Server::MariaDb(server) => {
                    server.sql(&format!("SELECT count(*) FROM {database}.{prefix}{table}"))
                }
            }?;
            let count = answer.trim().parse::<u32>();
            rows += count.map_err(|_| format!("{table} has {answer} rows"))?;
        }
        Ok(rows)
    }
}

fn database_name(who: Who) -> &'static str {
    if who == Who::Dyno { "dyno_tpcc" } else { "go_tpcc" }
}

/// The fewest rows of a load: the lines of an order vary.
fn min_rows() -> u32 {
    100_000 + WAREHOUSES * 490_000
}

/// The whole build: tables, rows, keys, indexes.
pub(crate) fn build(bench: &Bench, name: &str, database: &str, bar: f64) -> Lines {
    let server = or_skip!(name, Server::start(database));
    let rounds = bench.pairs(name, Who::GoTpc, |who| {
        server.renew(who)?;
        let ended = bench.run(server.load(bench, who)?, None)?;
        let rows = server.rows(who)?;
        if rows < min_rows() {
            return Err(format!("{who} left {rows} rows"));
        }
        Ok(Loading::new(rows, &ended))
    })?;
    let label = format!("{name}: {WAREHOUSES} warehouses, {SESSIONS} connections, beside go-tpc");
    Ok(loading_lines(&label, &rounds, Bar::RatioAtLeast(bar), Bar::Value(1.0)))
}

/// A run of the usual mix without pauses. `bar`: the most that dyno may cost alongside go-tpc.
pub(crate) fn run(bench: &Bench, name: &str, database: &str, bar: f64) -> Lines {
    let server = or_skip!(name, Server::start(database));
    for who in [Who::Dyno, Who::GoTpc] {
        server.renew(who)?;
        bench.run(server.load(bench, who)?, None)?;
        bench.run(server.run(bench, who, bench.short_seconds)?, None)?;
        server.vacuum(who)?;
    }
    let rounds = bench.rounds(name, &[Who::Dyno, Who::GoTpc, Who::Floor], |who| {
        let peak_kib = Cell::new(0);
        let steady = bench.steady(|seconds| {
            let command = match who {
                Who::Floor => server.floor(bench, seconds),
                _ => server.run(bench, who, seconds)?,
            };
            let ended = bench.run(command, None)?;
            peak_kib.set(peak_kib.get().max(ended.peak_kib));
            let transactions = transactions(who, &ended.output)?;
            Ok(Cost { cpu_s: ended.cpu_s, statements: transactions })
        })?;
        Ok((steady, peak_kib.get() as f64 / 1024.0))
    })?;
    let label = |text: &str| format!("{name}: {TERMINALS} terminals, beside go-tpc, {text}");
    let cpu = |(steady, _): &(Steady, f64)| steady.cpu_us_per_statement;
    let rate = |(steady, _): &(Steady, f64)| steady.statements_per_s;
    Ok(vec![
        Line::from_rounds(label("client CPU us/transaction"), &rounds, cpu, Bar::Ratio(bar)),
        Line::from_rounds(label("transactions/s"), &rounds, rate, Bar::None),
        Line::from_rounds(
            label("resident memory, MiB"),
            &rounds,
            |&(_, mib)| mib,
            Bar::Value(MEMORY_MIB),
        ),
    ])
}

/// Very many terminals with keying and think times on the null server.
pub(crate) fn terminals(bench: &Bench, name: &str, address: NullAddress) -> Lines {
    let (mut memory, mut cores, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let seconds = bench.seconds.max(if bench.pairs > 1 { TERMINALS_SECONDS } else { 0 });
    for round in 1..=bench.pairs {
        crate::log(&format!("{name}: round {round} of {}", bench.pairs));
        bench.go_on()?;
        let null = bench.null(false)?;
        let mut command = Command::new(&bench.programs.dyno_terminals);
        command.arg(match address.resolve(&null) {
            ServerAddress::MysqlSocket(path) => {
                format!("mysql://t@localhost/db?socket={}", path.display())
            }
            ServerAddress::MysqlTcp(port) => format!("mysql://t@127.0.0.1:{port}/db"),
            ServerAddress::Postgres(folder, port) => {
                format!("postgres://t@:{port}/db?host={folder}")
            }
        });
        command.args([HOMES, MANY_SESSIONS].map(|number| number.to_string()));
        command.arg(seconds.to_string());
        let ended = bench.run(command, Some(CLIENT_CORE))?;
        null.stop()?;
        if !ended.output.contains("failed 0,") {
            return Err(format!("terminals failed:\n{}", ended.output));
        }
        memory.push(ended.peak_kib as f64 * 1_024.0 / 1e6);
        // With connecting and preparing.
        cores.push(ended.cpu_s / seconds as f64);
        late.push(late_p99_ms(&ended.output)?);
    }
    let label = |text: &str| {
        format!(
            "{name}: {} terminals over {MANY_SESSIONS} sessions, {seconds} s, {text}",
            10 * HOMES
        )
    };
    Ok(vec![
        Line::from_values(label("resident memory, MB"), &memory, Bar::Value(300.0)),
        Line::from_values(label("cores busy"), &cores, Bar::Value(1.0)),
        Line::from_values(label("lateness of starts, p99, ms"), &late, Bar::Value(5.0)),
    ])
}

fn late_p99_ms(output: &str) -> Result<f64, String> {
    let line = output.lines().find(|line| line.starts_with("late by "));
    let number = line.and_then(|line| line.split_once("p99 ")?.1.split_once(',')?.0.parse().ok());
    number.ok_or_else(|| format!("the terminals do not say how late they were:\n{output}"))
}

/// Transactions in a report, without failed ones but those that go-tpc's end cut off; of the bare loop its answers,
/// divided by those of a transaction.
fn transactions(who: Who, output: &str) -> Result<f64, String> {
    let mut sum = 0;
    for line in output.lines() {
        let count = match who {
            Who::Dyno => line.strip_prefix("transactions "),
            Who::Floor => line.strip_prefix("total: "),
            _ => line
                .strip_prefix("[Summary] ")
                .filter(|line| !line.split(' ').next().is_some_and(|kind| kind.ends_with("_ERR")))
                .and_then(|line| Some(line.split_once("Count: ")?.1.split_once(',')?.0)),
        };
        if let Some(count) = count {
            sum +=
                count.parse::<u64>().map_err(|_| format!("no number of transactions: {line}"))?;
        }
        if who == Who::Dyno && line.starts_with("failed ") && line != "failed 0" {
            return Err(format!("transactions of dyno {line}"));
        }
    }
    match who {
        _ if sum == 0 => Err(format!("{who} reports no transactions:\n{output}")),
        Who::Floor => Ok(sum as f64 / FLOOR_ANSWERS),
        _ => Ok(sum as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_read_from_both_reports() {
        let dyno = "transactions 1620\nfailed 0\ncpu_us_per_transaction 509.3\n";
        assert_eq!(transactions(Who::Dyno, dyno), Ok(1620.0));
        assert!(transactions(Who::Dyno, "transactions 7\nfailed 2\n").is_err());
        let go_tpc = "Finished\n\
                      [Summary] DELIVERY - Takes(s): 7.8, Count: 111, TPM: 853.8, Sum(ms): 9.1\n\
                      [Summary] NEW_ORDER - Takes(s): 7.9, Count: 1135, TPM: 8598.9\n\
                      [Summary] NEW_ORDER_ERR - Takes(s): 7.9, Count: 5, TPM: 8598.9\n\
                      tpmC: 8598.6, tpmTotal: 19456.4, efficiency: 33431.8%\n";
        assert_eq!(transactions(Who::GoTpc, go_tpc), Ok(1246.0));
        assert!(transactions(Who::GoTpc, "Finished\n").is_err());
        let floor = "number of transactions actually processed: 388\ntotal: 388\n";
        assert_eq!(transactions(Who::Floor, floor), Ok(20.0));
    }

    #[test]
    fn lateness_is_read_from_its_line() {
        let output = "late by p50 0.042, p90 0.5, p99 1.250, p99.9 4.000, max 9.000 ms\n";
        assert_eq!(late_p99_ms(output), Ok(1.25));
        assert!(late_p99_ms("late by not measured\n").is_err());
    }
}
