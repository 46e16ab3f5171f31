//! Command lines of dyno and its peers, and what is read from their reports.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Rows of the table that the clients are told of; the null server has any.
pub(crate) const TABLE_ROWS: u32 = 100_000;

/// Who makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Dyno,
    Sysbench,
    Pgbench,
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) dyno: PathBuf,
    pub(crate) null_server: PathBuf,
    pub(crate) sysbench: Option<PathBuf>,
    pub(crate) pgbench: Option<PathBuf>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    MysqlSocket(PathBuf),
    MysqlTcp(u16),
    /// A folder or a host name, as libpq takes them, and the port.
    Postgres(String, u16),
}

/// One load: what is executed, by how many workers.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) test: &'static str,
    pub(crate) tables: u32,
    pub(crate) workers: u32,
    /// Transactions per second; 0 is a closed loop.
    pub(crate) rate_per_s: u32,
    /// Loops of dyno; 0 leaves its default.
    pub(crate) loops: u32,
}

impl Load {
    pub(crate) fn closed(test: &'static str, workers: u32) -> Self {
        Load { test, tables: 1, workers, rate_per_s: 0, loops: 1 }
    }

    /// Statements of one transaction.
    pub(crate) fn statements(&self) -> u64 {
        if self.test == "oltp_read_write" { 20 } else { 1 }
    }
}

impl Programs {
    /// The program, or why there is none.
    pub(crate) fn find(&self, who: Who) -> Result<&PathBuf, String> {
        match who {
            Who::Dyno => Ok(&self.dyno),
            Who::Sysbench => self.sysbench.as_ref().ok_or("sysbench is not installed".to_owned()),
            Who::Pgbench => self.pgbench.as_ref().ok_or("pgbench is not installed".to_owned()),
        }
    }

    /// The command of `who` for `load` over `seconds`, or for another verb such as `prepare`.
    pub(crate) fn command(
        &self,
        who: Who,
        way: &Way,
        load: &Load,
        verb: &str,
        seconds: u64,
    ) -> Result<Command, String> {
        let mut command = Command::new(self.find(who)?);
        if who == Who::Pgbench {
            let Way::Postgres(host, port) = way else {
                return Err("pgbench speaks the PostgreSQL protocol only".to_owned());
            };
            command.args(["--no-vacuum", "--select-only", "--protocol=prepared", "--jobs=1"]);
            command.arg(format!("--host={host}")).arg(format!("--port={port}"));
            command.arg(format!("--client={}", load.workers)).arg(format!("--time={seconds}"));
            command.args(["--username=sbtest", "sbtest"]);
            return Ok(command);
        }
        if who == Who::Dyno {
            command.arg("sysbench");
            if load.loops > 0 {
                command.arg(format!("--loops={}", load.loops));
            }
        }
        command.arg(load.test).args(way_options(way));
        command.arg(format!("--tables={}", load.tables)).arg(format!("--table-size={TABLE_ROWS}"));
        command.arg(format!("--threads={}", load.workers)).arg(format!("--time={seconds}"));
        if load.rate_per_s > 0 {
            command.arg(format!("--rate={}", load.rate_per_s));
        }
        command.arg(verb);
        Ok(command)
    }
}

fn way_options(way: &Way) -> Vec<OsString> {
    let text = |text: String| OsString::from(text);
    match way {
        Way::MysqlSocket(path) => {
            vec![text(format!("--mysql-socket={}", path.display())), "--mysql-user=root".into()]
        }
        Way::MysqlTcp(port) => vec![
            "--mysql-host=127.0.0.1".into(),
            text(format!("--mysql-port={port}")),
            "--mysql-user=root".into(),
        ],
        Way::Postgres(host, port) => vec![
            "--db-driver=pgsql".into(),
            text(format!("--pgsql-host={host}")),
            text(format!("--pgsql-port={port}")),
        ],
    }
}

/// Statements that a client says it has executed.
pub(crate) fn reported_statements(who: Who, report: &str) -> Result<u64, String> {
    let head = match who {
        Who::Dyno | Who::Sysbench => "total:",
        Who::Pgbench => "number of transactions actually processed:",
    };
    report
        .lines()
        .find_map(|line| line.trim().strip_prefix(head)?.trim().parse().ok())
        .ok_or_else(|| format!("the report has no line `{head}`:\n{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_from_either_report() {
        let sysbench = "SQL statistics:\n    queries performed:\n        read:    140\n        \
                        total:                           200\n    total time:   10.0s\n";
        assert_eq!(reported_statements(Who::Sysbench, sysbench), Ok(200));
        let pgbench = "scaling factor: 1\nnumber of transactions actually processed: 4711\n";
        assert_eq!(reported_statements(Who::Pgbench, pgbench), Ok(4_711));
        assert!(reported_statements(Who::Dyno, "FATAL: no").is_err());
    }

    #[test]
    fn a_load_becomes_the_same_options_for_dyno_and_sysbench() {
        let programs = Programs {
            dyno: "dyno".into(),
            null_server: "null".into(),
            sysbench: Some("sysbench".into()),
            pgbench: None,
        };
        let (way, load) = (Way::MysqlTcp(3306), Load::closed("oltp_point_select", 64));
        let words = |who| {
            let command = programs.command(who, &way, &load, "run", 5).unwrap();
            command.get_args().map(|word| word.to_owned()).collect::<Vec<_>>()
        };
        let (dyno, sysbench) = (words(Who::Dyno), words(Who::Sysbench));
        assert_eq!(dyno[..2], ["sysbench", "--loops=1"]);
        assert_eq!(dyno[2..], sysbench);
        assert!(sysbench.contains(&"--threads=64".into()));
        assert!(programs.command(Who::Pgbench, &way, &load, "run", 5).is_err());
    }
}
