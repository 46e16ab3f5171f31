//! Loading TPC-H alongside psql's `\copy` of existing files, in as many sessions, with the same statements for tables,
//! keys, indexes and statistics. psql does them step by step; dyno makes keys and indexes of a table while others are
//! still filled.
//!
//! dyno makes its rows while it sends them, and verifies the stored ones at the end. The seconds of the latter don't
//! count, as psql verifies nothing.

use crate::bench::Bench;
use crate::client::Who;
use crate::comparisons::{Lines, Loading, loading_lines};
use crate::server::SETTINGS;
use crate::table::{Bar, Line};
use dyno_testkit::{Postgres, peer};
use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sessions of either side, and parts of the large tables' files.
const SESSIONS: u32 = 4;
/// The steps in their order; the rows come after the tables.
const STEPS: [&str; 5] = ["create", "primary-keys", "foreign-keys", "indexes", "analyze"];
const MEMORY_MB: f64 = 600.0;

fn database_name(who: Who) -> &'static str {
    if who == Who::Dyno { "dyno_tpch" } else { "psql_tpch" }
}

pub(crate) fn load(bench: &Bench, name: &str, scale: &str) -> Lines {
    let server = or_skip!(name, Postgres::start_with(&SETTINGS));
    let psql = or_skip!(name, peer("psql").ok_or("psql is not installed"));
    let folder = bench.scratch.path().join("tpch");
    let script = script(bench, &server, Path::new(&psql), &folder, scale)?;
    let memory_mb = RefCell::new(Vec::new());
    let rounds = bench.pairs(name, Who::Pgbench, |who| {
        let database = database_name(who);
        for other in [Who::Dyno, Who::Pgbench] {
            server.sql(&format!("DROP DATABASE IF EXISTS {}", database_name(other)))?;
        }
        server.sql(&format!("CREATE DATABASE {database}"))?;
        // The pages of the other shall not cost this one.
        server.sql("CHECKPOINT")?;
        let mut command = Command::new(&bench.programs.dyno_tpch);
        if who == Who::Dyno {
            let url = format!("postgres://postgres@127.0.0.1:{}/{database}", server.port);
            command.args(["load", &url, scale, &SESSIONS.to_string()]);
        } else {
            command = Command::new("sh");
            command.arg(&script);
        }
        let mut ended = bench.run(command, None)?;
        if who == Who::Dyno {
            ended.wall_s -= verify_s(&ended.output)?;
            memory_mb.borrow_mut().push(ended.peak_kib as f64 * 1_024.0 / 1e6);
        }
        Ok(Loading::new(rows(&server, database)?, &ended))
    })?;
    let label = format!("{name}: scale factor {scale}, {SESSIONS} sessions, beside psql's \\copy");
    let mut lines = loading_lines(&label, &rounds, Bar::RatioAtLeast(1.1), Bar::Value(2.0));
    let memory = format!("{name}: resident memory, MB");
    lines.push(Line::from_values(memory, &memory_mb.into_inner(), Bar::Value(MEMORY_MB)));
    Ok(lines)
}

fn verify_s(output: &str) -> Result<f64, String> {
    let line = output.lines().find_map(|line| line.strip_prefix("verify_s "));
    let seconds = line.and_then(|text| text.parse().ok());
    seconds.ok_or_else(|| format!("the load does not say how long it verified:\n{output}"))
}

fn rows(server: &Postgres, database: &str) -> Result<u32, String> {
    let tables =
        ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"];
    let counts = tables.map(|table| format!("(SELECT count(*) FROM {table})"));
    let answer = server.in_database(database, &format!("SELECT {}", counts.join(" + ")))?;
    answer.trim().parse().map_err(|_| format!("{database} has {answer} rows"))
}

/// A script that loads with psql, and its files. A free session takes the next statement of a step.
fn script(
    bench: &Bench,
    server: &Postgres,
    psql: &Path,
    folder: &Path,
    scale: &str,
) -> Result<PathBuf, String> {
    let run_tool = |words: &[&str]| {
        let mut command = Command::new(&bench.programs.dyno_tpch);
        command.args(words);
        bench.run(command, None).map(|ended| ended.output)
    };
    let files = run_tool(&["files", &folder.display().to_string(), scale, &SESSIONS.to_string()])?;
    let mut text = format!(
        "set -e\nstep() {{ xargs -d '\\n' -P {SESSIONS} -I{{}} {} -qX -v ON_ERROR_STOP=1 -h \
         127.0.0.1 -p {} -U postgres -d {} -c {{}} < \"$1\"; }}\n",
        psql.display(),
        server.port,
        database_name(Who::Pgbench)
    );
    let mut add_step = |step: &str, statements: &str| {
        let path = folder.join(format!("{step}.sql"));
        let _ = writeln!(text, "step {}", path.display());
        std::fs::write(&path, statements).map_err(|error| format!("{path:?}: {error}"))
    };
    for step in STEPS {
        add_step(step, &run_tool(&["statements", step])?)?;
        if step == "create" {
            add_step("copy", &copies(&files))?;
        }
    }
    let path = folder.join("load.sh");
    std::fs::write(&path, text).map_err(|error| format!("{path:?}: {error}"))?;
    Ok(path)
}

/// A `\copy` for each file, the largest tables first.
fn copies(files: &str) -> String {
    let mut lines: Vec<String> = files
        .lines()
        .filter_map(|path| {
            let table = Path::new(path).file_name()?.to_str()?.split('.').next()?;
            Some(format!("\\copy {table} from '{path}' with (format csv, header)\n"))
        })
        .collect();
    lines.sort_by_key(|line| !line.contains("/lineitem.") && !line.contains("/orders."));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_copied_into_its_table() {
        let files = "/x/nation.csv\n/x/lineitem.csv.1\n/x/orders.csv.2\n";
        assert_eq!(
            copies(files),
            "\\copy lineitem from '/x/lineitem.csv.1' with (format csv, header)\n\\copy orders from \
             '/x/orders.csv.2' with (format csv, header)\n\\copy nation from '/x/nation.csv' with \
             (format csv, header)\n"
        );
    }

    #[test]
    fn the_seconds_of_the_verification_are_read() {
        assert_eq!(verify_s("rows 7\nverify_s 1.25\n"), Ok(1.25));
        assert!(verify_s("rows 7\n").is_err());
    }
}
