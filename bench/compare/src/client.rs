//! Command lines of dyno and its peers, and readers of their reports.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

/// Rows of a table; the null server has any number.
pub(crate) const TABLE_ROWS: u32 = 100_000;

/// Scale of pgbench's tables under load: the one that the bars were set with.
const PGBENCH_SCALE: u32 = 10;

/// Scale of pgbench's tables where making them is measured.
pub(crate) const INIT_SCALE: u32 = 50;

const GO_TPC_MISSING: &str = "go-tpc is not installed: in an empty folder, `go mod init peers && \
                              go get github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12 && go build \
                              github.com/pingcap/go-tpc/cmd/go-tpc`, and put the program into a \
                              folder of PATH";

const TPCHGEN_CLI_MISSING: &str =
    "tpchgen-cli is not installed: `pip install tpchgen-cli`, in a folder of PATH";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Dyno,
    Sysbench,
    Pgbench,
    GoTpc,
    TpchgenCli,
    /// The bare loop on io_uring: no peer, but the least that a client of one thread can cost.
    Floor,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Dyno => "dyno",
            Who::Sysbench => "sysbench",
            Who::Pgbench => "pgbench",
            Who::GoTpc => "go-tpc",
            Who::TpchgenCli => "tpchgen-cli",
            Who::Floor => "the bare loop",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) dyno: PathBuf,
    pub(crate) null_server: PathBuf,
    pub(crate) floor: PathBuf,
    pub(crate) sysbench: Option<PathBuf>,
    pub(crate) pgbench: Option<PathBuf>,
    pub(crate) go_tpc: Option<PathBuf>,
    pub(crate) tpchgen_cli: Option<PathBuf>,
    /// dyno's TPC-C without a front end: loads and runs.
    pub(crate) dyno_tpcc: PathBuf,
    /// dyno's TPC-C terminals with think times over fewer sessions.
    pub(crate) dyno_terminals: PathBuf,
    /// dyno's TPC-H without a front end: loads, and prints psql's commands that do the same.
    pub(crate) dyno_tpch: PathBuf,
    /// Built before, so perhaps from older sources.
    pub(crate) are_older: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum ServerAddress {
    MysqlSocket(PathBuf),
    MysqlTcp(u16),
    /// A folder or a host name, as in libpq, and the port.
    Postgres(String, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Sysbench(&'static str),
    Pgbench { script: &'static str, protocol: &'static str },
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Sysbench(test) => f.write_str(test),
            Test::Pgbench { script, protocol } => write!(f, "{script}, {protocol}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) test: Test,
    pub(crate) tables: u32,
    pub(crate) workers: u32,
    /// Transactions per second; 0 is a closed loop.
    pub(crate) rate_per_s: u32,
    /// Loops of dyno, jobs of pgbench; 0 is the default.
    pub(crate) loops: u32,
    /// Scale factor of pgbench's tables.
    pub(crate) scale: u32,
}

impl Load {
    pub(crate) fn closed(test: &'static str, workers: u32) -> Self {
        let test = Test::Sysbench(test);
        Load { test, tables: 1, workers, rate_per_s: 0, loops: 1, scale: 0 }
    }

    /// With as many loops as dyno has by default.
    pub(crate) fn by_default(self) -> Self {
        Load { loops: 0, ..self }
    }

    pub(crate) fn pgbench(script: &'static str, protocol: &'static str, workers: u32) -> Self {
        let test = Test::Pgbench { script, protocol };
        Load { test, tables: 0, workers, rate_per_s: 0, loops: 1, scale: PGBENCH_SCALE }
    }

    /// With a job of pgbench, and a loop of dyno, for each client.
    pub(crate) fn with_jobs(self) -> Self {
        Load { loops: self.workers, ..self }
    }

    pub(crate) fn at_scale(self, scale: u32) -> Self {
        Load { scale, ..self }
    }

    pub(crate) fn database(&self) -> &'static str {
        match self.test {
            Test::Sysbench(_) => "mariadb",
            Test::Pgbench { .. } => "postgres",
        }
    }

    pub(crate) fn peer(&self) -> Who {
        match self.test {
            Test::Sysbench(_) => Who::Sysbench,
            Test::Pgbench { .. } => Who::Pgbench,
        }
    }

    /// The programs of a measurement: dyno, its peer, and the bare loop if it knows the load.
    pub(crate) fn programs(&self) -> Vec<Who> {
        let mut programs = vec![Who::Dyno, self.peer()];
        let is_known = match self.test {
            Test::Sysbench(test) => test == "oltp_point_select",
            Test::Pgbench { script, protocol } => (script, protocol) == ("select-only", "prepared"),
        };
        programs.extend((is_known && self.loops == 1).then_some(Who::Floor));
        programs
    }

    pub(crate) fn statements(&self) -> u64 {
        match self.test {
            Test::Sysbench("oltp_read_write") => 20,
            Test::Sysbench("oltp_read_only") => 16,
            Test::Pgbench { script: "tpcb-like", .. } => 7,
            Test::Pgbench { script: "simple-update", .. } => 5,
            _ => 1,
        }
    }
}

impl Programs {
    pub(crate) fn find(&self, who: Who) -> Result<&PathBuf, String> {
        let (program, missing) = match who {
            Who::Dyno => return Ok(&self.dyno),
            Who::Floor => return Ok(&self.floor),
            Who::Sysbench => (&self.sysbench, "sysbench is not installed"),
            Who::Pgbench => (&self.pgbench, "pgbench is not installed"),
            Who::GoTpc => (&self.go_tpc, GO_TPC_MISSING),
            Who::TpchgenCli => (&self.tpchgen_cli, TPCHGEN_CLI_MISSING),
        };
        program.as_ref().ok_or_else(|| missing.to_owned())
    }

    /// The command for `load` over `seconds`, or for another verb such as `prepare`.
    pub(crate) fn command(
        &self,
        who: Who,
        address: &ServerAddress,
        load: &Load,
        verb: &str,
        seconds: u64,
    ) -> Result<Command, String> {
        if who == Who::Floor {
            return Ok(self.floor(address, load, seconds));
        }
        let test = match load.test {
            Test::Pgbench { script, protocol } => {
                let mut command = self.pgbench(who, address)?;
                command.arg("--no-vacuum").arg(format!("--builtin={script}"));
                command.arg(format!("--protocol={protocol}")).arg(format!("--jobs={}", load.loops));
                command.arg(format!("--client={}", load.workers)).arg(format!("--time={seconds}"));
                return Ok(command);
            }
            Test::Sysbench(test) => test,
        };
        let mut command = Command::new(self.find(who)?);
        if who == Who::Dyno {
            command.arg("sysbench");
            if load.loops > 0 {
                command.arg(format!("--loops={}", load.loops));
            }
        }
        command.arg(test).args(address_options(address));
        command.arg(format!("--tables={}", load.tables)).arg(format!("--table-size={TABLE_ROWS}"));
        command.arg(format!("--threads={}", load.workers)).arg(format!("--time={seconds}"));
        if load.rate_per_s > 0 {
            command.arg(format!("--rate={}", load.rate_per_s));
        }
        command.arg(verb);
        Ok(command)
    }

    pub(crate) fn floor(&self, address: &ServerAddress, load: &Load, seconds: u64) -> Command {
        let mut command = Command::new(&self.floor);
        let (server, rows) = match address {
            ServerAddress::MysqlSocket(path) => {
                (format!("--mysql-socket={}", path.display()), TABLE_ROWS)
            }
            ServerAddress::MysqlTcp(port) => {
                (format!("--mysql-host=127.0.0.1\n--port={port}"), TABLE_ROWS)
            }
            ServerAddress::Postgres(host, port) => {
                (format!("--postgres={host}\n--port={port}"), load.scale * 100_000)
            }
        };
        command.args(server.lines()).arg(format!("--rows={rows}"));
        command.arg(format!("--clients={}", load.workers)).arg(format!("--time={seconds}"));
        command
    }

    /// The command that makes pgbench's tables at `scale`. dyno makes them over `connections`, by the option that
    /// pgbench has for runs only.
    pub(crate) fn initialize(
        &self,
        who: Who,
        address: &ServerAddress,
        scale: u32,
        connections: u32,
    ) -> Result<Command, String> {
        let mut command = self.pgbench(who, address)?;
        // Tables and rows; vacuum and keys cost the server only.
        command.args(["--initialize", "--init-steps=dtg", "--quiet"]);
        command.arg(format!("--scale={scale}"));
        if who == Who::Dyno {
            command.arg(format!("--jobs={connections}"));
        }
        Ok(command)
    }

    /// pgbench, or dyno in its place, with the address of the server.
    fn pgbench(&self, who: Who, address: &ServerAddress) -> Result<Command, String> {
        let ServerAddress::Postgres(host, port) = address else {
            return Err("pgbench speaks the PostgreSQL protocol only".to_owned());
        };
        let mut command = Command::new(self.find(who)?);
        if who == Who::Dyno {
            command.arg("pgbench");
        }
        command.env("PGDATABASE", "sbtest").env("PGUSER", "postgres");
        command.arg(format!("--host={host}")).arg(format!("--port={port}"));
        Ok(command)
    }
}

fn address_options(address: &ServerAddress) -> Vec<OsString> {
    let options = match address {
        ServerAddress::MysqlSocket(path) => {
            format!("--mysql-socket={}\n--mysql-user=root", path.display())
        }
        ServerAddress::MysqlTcp(port) => {
            format!("--mysql-host=127.0.0.1\n--mysql-port={port}\n--mysql-user=root")
        }
        ServerAddress::Postgres(host, port) => {
            format!("--db-driver=pgsql\n--pgsql-host={host}\n--pgsql-port={port}")
        }
    };
    options.lines().map(OsString::from).collect()
}

/// Executed statements in a client's report.
pub(crate) fn reported_statements(load: &Load, report: &str) -> Result<u64, String> {
    let (head, each) = match load.test {
        Test::Sysbench(_) => ("total:", 1),
        Test::Pgbench { .. } => ("number of transactions actually processed:", load.statements()),
    };
    report
        .lines()
        .find_map(|line| line.trim().strip_prefix(head)?.trim().parse::<u64>().ok())
        .map(|count| count * each)
        .ok_or_else(|| format!("the report has no line `{head}`:\n{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Programs {
        Programs {
            dyno: "dyno".into(),
            null_server: "null".into(),
            floor: "floor".into(),
            sysbench: Some("sysbench".into()),
            pgbench: Some("pgbench".into()),
            dyno_tpcc: "cost".into(),
            dyno_terminals: "terminals".into(),
            dyno_tpch: "tpch_load".into(),
            go_tpc: Some("go-tpc".into()),
            tpchgen_cli: None,
            are_older: false,
        }
    }

    fn words(command: &Command) -> Vec<OsString> {
        command.get_args().map(|word| word.to_owned()).collect()
    }

    #[test]
    fn the_bare_loop_stands_beside_one_loop() {
        let load = Load::closed("oltp_point_select", 64);
        assert_eq!(load.programs(), [Who::Dyno, Who::Sysbench, Who::Floor]);
        assert_eq!(load.by_default().programs(), [Who::Dyno, Who::Sysbench]);
    }

    #[test]
    fn statements_are_read_from_either_report() {
        let sysbench = "SQL statistics:\n    queries performed:\n        read:    140\n        \
                        total:                           200\n    total time:   10.0s\n";
        let point = Load::closed("oltp_point_select", 1);
        assert_eq!(reported_statements(&point, sysbench), Ok(200));
        let pgbench = "scaling factor: 1\nnumber of transactions actually processed: 4711\n";
        let (select, mixed) = ("select-only", "tpcb-like");
        let count_statements =
            |script| reported_statements(&Load::pgbench(script, "simple", 1), pgbench);
        assert_eq!((count_statements(select), count_statements(mixed)), (Ok(4_711), Ok(32_977)));
        assert!(reported_statements(&point, "FATAL: no").is_err());
    }

    #[test]
    fn a_load_becomes_the_same_options_for_dyno_and_sysbench() {
        let (address, load) =
            (ServerAddress::MysqlTcp(3306), Load::closed("oltp_point_select", 64));
        let command_words =
            |who| words(&programs().command(who, &address, &load, "run", 5).unwrap());
        let (dyno, sysbench) = (command_words(Who::Dyno), command_words(Who::Sysbench));
        assert_eq!(dyno[..2], ["sysbench", "--loops=1"]);
        assert_eq!(dyno[2..], sysbench);
        assert!(sysbench.contains(&"--threads=64".into()));
    }

    #[test]
    fn a_script_becomes_the_same_options_for_dyno_and_pgbench() {
        let address = ServerAddress::Postgres("/folder".to_owned(), 5432);
        let load = Load::pgbench("tpcb-like", "extended", 64);
        let command_words =
            |who| words(&programs().command(who, &address, &load, "run", 5).unwrap());
        let (dyno, pgbench) = (command_words(Who::Dyno), command_words(Who::Pgbench));
        assert_eq!(dyno[0], "pgbench");
        assert_eq!(dyno[1..], pgbench);
        assert!(pgbench.contains(&"--builtin=tpcb-like".into()));
        assert!(
            programs().command(Who::Pgbench, &ServerAddress::MysqlTcp(1), &load, "run", 5).is_err()
        );
    }

    #[test]
    fn only_dyno_is_told_of_connections_that_load() {
        let address = ServerAddress::Postgres("/folder".to_owned(), 5432);
        let command_words = |who| words(&programs().initialize(who, &address, 50, 2).unwrap());
        let (mut dyno, pgbench) = (command_words(Who::Dyno), command_words(Who::Pgbench));
        assert_eq!(dyno.pop(), Some("--jobs=2".into()));
        assert_eq!(dyno[1..], pgbench);
    }
}
