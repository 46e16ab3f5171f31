//! Scripts of users' own on real servers, beside the original.

use super::support::{command, number};
use dyno_testkit::{MariaDb, Postgres, Ran, Scratch, peer, server_or_skip, skipped};
use std::path::Path;
use std::process::Command;

const INSTALLED: &str = "/usr/share/sysbench";
const RUN: [&str; 6] =
    ["--tables=2", "--table-size=500", "--threads=1", "--events=8", "--time=0", "--rand-seed=7"];

/// A folder with the read-write test of Debian's package as somebody has edited it, or why there is none.
fn edited() -> Result<Scratch, String> {
    let folder = Scratch::new();
    for name in ["oltp_common.lua", "oltp_read_write.lua"] {
        let text = std::fs::read_to_string(Path::new(INSTALLED).join(name))
            .map_err(|_| format!("{name} is not in {INSTALLED}"))?;
        let edited = format!("{text}\nlocal edited = true\n");
        std::fs::write(folder.file(name), edited).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

fn dyno(folder: &Scratch, connection: &[&str], what: &str) -> Ran {
    let ran =
        Ran::of(command(folder.path(), connection).args(RUN).args(["./oltp_read_write.lua", what]));
    assert_eq!(ran.code, 0, "{}", ran.all());
    ran
}

/// Executed statements of the general log, without what the clients ask on their own account.
fn statements(log: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(log).expect("a log")).into_owned();
    text.lines()
        .filter_map(|line| line.split_once("Execute\t"))
        .map(|(_, statement)| statement.to_owned())
        .collect()
}

#[test]
fn an_edited_script_sends_mariadb_what_the_original_sends() {
    let name = "an_edited_script_sends_mariadb_what_the_original_sends";
    let server = server_or_skip!(MariaDb, name);
    let (folder, program) = match (edited(), peer("sysbench")) {
        (Ok(folder), Some(program)) => (folder, program),
        (Err(why), _) => return skipped(name, &why),
        (_, None) => return skipped(name, "sysbench is not installed"),
    };
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connection = [socket.as_str(), "--mysql-user=root"];
    let prepared = dyno(&folder, &connection, "prepare");
    assert!(prepared.stdout.contains("Inserting 500 records into 'sbtest2'"), "{}", prepared.all());
    let logged = |file: &str, run: &dyn Fn()| {
        // The server writes it into the folder of its data.
        let set = format!("SET GLOBAL general_log_file = '{file}'; SET GLOBAL general_log = 1");
        server.sql(&set).expect("a log");
        run();
        server.sql("SET GLOBAL general_log = 0").expect("no log");
        let data = server.sql("SELECT @@datadir").expect("a folder");
        statements(&Path::new(data.trim()).join(file))
    };
    let ours = logged("dyno.log", &|| {
        let ran = dyno(&folder, &connection, "run");
        assert!((number(&ran, "read:") - 8.0 * 14.0).abs() < 0.5, "{}", ran.all());
    });
    // Row for row as it was: the original changes the same rows in the same way.
    dyno(&folder, &connection, "cleanup");
    dyno(&folder, &connection, "prepare");
    let theirs = logged("original.log", &|| {
        let mut original = Command::new(&program);
        original.current_dir(folder.path()).args(connection).args(RUN);
        assert_eq!(Ran::of(original.args(["./oltp_read_write.lua", "run"])).code, 0);
    });
    assert_eq!(ours.len(), 8 * 20, "{ours:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn an_edited_script_runs_on_postgres() {
    let name = "an_edited_script_runs_on_postgres";
    let server = server_or_skip!(Postgres, name);
    let folder = match edited() {
        Ok(folder) => folder,
        Err(why) => return skipped(name, &why),
    };
    let port = format!("--pgsql-port={}", server.port);
    let connection = [
        "--db-driver=pgsql",
        "--pgsql-host=127.0.0.1",
        &port,
        "--pgsql-user=postgres",
        "--pgsql-db=sbtest",
    ];
    dyno(&folder, &connection, "prepare");
    let ran = dyno(&folder, &connection, "run");
    assert!((number(&ran, "write:") - 8.0 * 4.0).abs() < 0.5, "{}", ran.all());
    dyno(&folder, &connection, "cleanup");
}
