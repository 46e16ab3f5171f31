//! Every example of options and scripts in the manual page of pgbench 15: both programs run it on
//! the same server and must say the same, times and counts left out.

use super::shape::shape;
use super::support::{assert_same, original};
use dyno_testkit::{Postgres, ProcessOutput, Scratch, server_or_skip, skipped};
use std::path::Path;

/// Names and values of environment variables.
type Variables = &'static [(&'static str, &'static str)];

/// One run: command line, and variables of the environment.
struct Example {
    about: &'static str,
    arguments: &'static [&'static str],
    environment: Variables,
}

const fn example(about: &'static str, arguments: &'static [&'static str]) -> Example {
    Example { about, arguments, environment: &[] }
}

/// The scripts that the page shows.
const SCRIPTS: &[(&str, &str)] = &[
    // "The full definition of the built-in TPC-B-like transaction".
    (
        "tpcb.sql",
        "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\
         \\set tid random(1, 10 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
         UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
         UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, \
         CURRENT_TIMESTAMP);\nEND;\n",
    ),
    // \gset and \aset.
    (
        "gset.sql",
        "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\n\
         -- update pgbench_accounts and put the new balance into a variable\n\
         UPDATE pgbench_accounts\n  SET abalance = abalance + :delta\n  WHERE aid = :aid\n  \
         RETURNING abalance - abalance AS none \\gset\n\
         -- compound of two queries\nSELECT 1 \\;\nSELECT 2 AS two, 3 AS three \\gset p_\n\
         -- compound of two queries, all stored\nSELECT 4 AS four \\; SELECT 5 AS five \\aset\n\
         \\set seen debug(:none)\n\\set seen debug(:p_two + :p_three)\n\\set seen debug(:four * :five)\n",
    ),
    // \if and the operators of its condition.
    (
        "if.sql",
        "\\set x random(1, 10)\n\\if :x > 5\nSELECT 'big', :x;\n\\elif :x = 5\nSELECT 'five';\n\
         \\else\nSELECT 'small';\n\\endif\n",
    ),
    // \set.
    (
        "set.sql",
        "\\set ntellers debug(10 * :scale)\n\
         \\set aid debug((1021 * random(1, 100000 * :scale)) % (100000 * :scale) + 1)\n\
         \\set x 0\n\\set y 7\n\
         \\set divx CASE WHEN :x <> 0 THEN :y/:x ELSE NULL END\n\\set shown debug(:divx IS NULL)\n",
    ),
    ("sleep.sql", "\\sleep 10 ms\n\\set pause 500\n\\sleep :pause us\nSELECT 1;\n"),
    (
        "shell.sql",
        "\\set name 5\n\\shell test :name = 5\n\
         \\setshell answer expr :name + 37\n\\set shown debug(:answer)\n\
         \\shell test ::name = ':name'\nSELECT :answer;\n",
    ),
    // Operators, each with the page's operands.
    (
        "operators.sql",
        "\\set v debug(5 > 3 OR FALSE)\n\\set v debug(TRUE AND FALSE)\n\\set v debug(NOT FALSE)\n\
         \\set v debug(1 IS NULL)\n\\set v debug(1 ISNULL)\n\\set v debug(1 NOTNULL)\n\
         \\set v debug(5 = 4)\n\\set v debug(5 <> 4)\n\\set v debug(5 != 5)\n\\set v debug(5 < 4)\n\
         \\set v debug(5 <= 4)\n\\set v debug(5 > 4)\n\\set v debug(5 >= 4)\n\\set v debug(1 | 2)\n\
         \\set v debug(1 # 3)\n\\set v debug(1 & 3)\n\\set v debug(~ 1)\n\\set v debug(1 << 2)\n\
         \\set v debug(8 >> 2)\n\\set v debug(5 + 4)\n\\set v debug(3 - 2.0)\n\\set v debug(5 * 4)\n\
         \\set v debug(5 / 3)\n\\set v debug(3 % 2)\n\\set v debug(- 2.0)\nSELECT 1;\n",
    ),
    // Functions, each with the page's arguments.
    (
        "functions.sql",
        "\\set v debug(abs(-17))\n\\set v debug(5432.1)\n\\set v debug(double(5432))\n\
         \\set v debug(exp(1.0))\n\\set v debug(greatest(5, 4, 3, 2))\n\\set v debug(hash(10, 5432))\n\
         \\set v debug(hash_fnv1a(10, 5432))\n\\set v debug(hash_murmur2(10, 5432))\n\
         \\set v debug(int(5.4 + 3.8))\n\\set v debug(least(5, 4, 3, 2.1))\n\
         \\set v debug(ln(2.718281828459045))\n\\set v debug(mod(54, 32))\n\
         \\set v debug(permute(0, 4))\n\\set v debug(pi())\n\\set v debug(pow(2.0, 10))\n\
         \\set v debug(power(2.0, 10))\n\\set v debug(random(1, 5))\n\
         \\set v debug(random_exponential(1, 10, 3.0))\n\\set v debug(random_gaussian(1, 10, 2.5))\n\
         \\set v debug(random_zipfian(1, 10, 1.5))\n\\set v debug(sqrt(2.0))\nSELECT 1;\n",
    ),
    // Hashes and permutations of skewed values.
    (
        "hash.sql",
        "\\set r random_zipfian(0, 100000000, 1.07)\n\\set k debug(abs(hash(:r)) % 1000000)\n\
         \\set k debug(abs(hash(:r, :default_seed + 123)) % 1000000)\n\
         \\set size 1000000\n\\set r random_zipfian(1, :size, 1.07)\n\
         \\set k debug(1 + permute(:r, :size))\n\\set s debug(:client_id + :scale + :random_seed)\n",
    ),
    ("pipeline.sql", "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\nSELECT 3;\n"),
    // Serialization and deadlock errors.
    (
        "conflict.sql",
        "\\set delta random(-5000, 5000)\nBEGIN;\n\
         SELECT count(*) FROM pgbench_tellers;\n\
         UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;\n\\sleep 2 ms\nEND;\n",
    ),
    ("names.sql", "SELECT :'it is ''no'' variable', ':here';\nSELECT '{\"a\":1}'::text;\n"),
    ("error.sql", "\\set r random(1, 5)\nSELECT 1/(:r - 3);\n"),
    ("expression.sql", "\\set r 1/0\nSELECT 1;\n"),
    ("undefined.sql", "\\set r :nowhere + 1\n"),
    ("two_rows.sql", "SELECT generate_series(1, 2) AS n \\gset\n"),
    ("open_block.sql", "BEGIN;\nSELECT 1;\n"),
    ("copy.sql", "COPY pgbench_branches TO STDOUT;\n"),
    ("copy_chain.sql", "SELECT 1 \\; COPY pgbench_branches TO STDOUT;\n"),
    ("copy_comment.sql", "/* load */ COPY pgbench_branches FROM STDIN;\n"),
    ("copy_file.sql", "COPY (SELECT 'stdout') TO '/dev/null';\n"),
];

// Serializable has a second kind of failure (of dependencies among reads), which comes by chance.
const ERRORS: Variables = &[("PGOPTIONS", r"-c default_transaction_isolation=repeatable\ read")];

#[rustfmt::skip]
const EXAMPLES: &[Example] = &[
    example("the first example of the page", &["-c", "10", "-t", "10"]),
    example("what it prints of transactions per client", &["-c", "10", "-j", "2", "-t", "20", "sbtest"]),
    example("default run", &[]),
    example("built-in by prefix", &["-b", "si", "-t", "5"]),
    example("the two short names", &["-N", "-S", "-t", "5", "--random-seed=3"]),
    example("weights", &["-b", "tpcb-like@3", "-b", "select-only@1", "-c", "2", "-t", "20"]),
    example("files and weights", &["-f", "tpcb.sql@2", "-f", "if.sql@1", "-s", "1", "-t", "10", "--random-seed=3"]),
    example("a weight of zero", &["-f", "if.sql@0", "-S", "-t", "5"]),
    example("reconnecting", &["-C", "-S", "-c", "2", "-t", "3"]),
    example("variables", &["--random-seed=3", "-D", "x=3", "-D", "scale=1", "-f", "set.sql", "-t", "2"]),
    example("extended", &["-M", "extended", "-c", "2", "-t", "5"]),
    example("prepared", &["-M", "prepared", "-c", "2", "-j", "2", "-t", "5"]),
    example("no vacuum", &["-n", "-S"]),
    example("vacuum of all", &["-v", "-S"]),
    example("progress", &["-n", "-P", "1", "-T", "2", "-c", "2"]),
    example("progress with time stamps", &["-n", "-P", "1", "--progress-timestamp", "-T", "2", "-S"]),
    example("rate", &["-n", "-R", "200", "-T", "2", "-c", "4", "-P", "1"]),
    example("rate and limit", &["-n", "-R", "200", "-L", "50", "-T", "2", "-c", "4", "-P", "1", "-b", "se", "-b", "si"]),
    example("limit alone", &["-n", "-L", "50", "-t", "20", "-S"]),
    example("scale with a built-in", &["-n", "-s", "7", "-S"]),
    example("a long option and its value apart", &["--select-only", "--client", "2", "--transactions=3"]),
    example("seed", &["-n", "--random-seed=4711", "-S", "-t", "2"]),
    example("per statement", &["-r", "-c", "2", "-t", "10"]),
    example("per statement and script", &["-r", "-S", "-N", "-c", "2", "-t", "10"]),
    example("failures in detail", &["-n", "--failures-detailed", "-S"]),
    example("tries", &["-n", "--max-tries=3", "--failures-detailed", "-r", "-S"]),
    example("unlimited tries", &["-n", "--max-tries=0", "-T", "1", "-S"]),
    Example { about: "serialization failures", arguments: &["-n", "-f", "conflict.sql", "-c", "4", "-T", "1", "-r", "--failures-detailed"], environment: ERRORS },
    Example { about: "serialization failures tried again", arguments: &["-n", "-f", "conflict.sql", "-c", "4", "-T", "2", "--max-tries=10", "-P", "1"], environment: ERRORS },
    Example { about: "serialization failures told", arguments: &["-n", "-f", "conflict.sql", "-c", "4", "-T", "1", "--max-tries=2", "--verbose-errors", "-L", "1000"], environment: ERRORS },
    example("script: gset and aset", &["-n", "-f", "gset.sql", "-t", "3"]),
    example("script: if", &["-n", "-f", "if.sql", "-t", "10", "-r"]),
    example("script: set", &["-n", "--random-seed=7", "-f", "set.sql", "-t", "3"]),
    example("script: sleep", &["-n", "-f", "sleep.sql", "-t", "3", "-r"]),
    example("script: shell", &["-n", "-f", "shell.sql", "-t", "2"]),
    example("script: operators", &["-n", "-f", "operators.sql", "-t", "1"]),
    example("script: functions", &["-n", "--random-seed=11", "-f", "functions.sql", "-t", "20"]),
    example("script: hashes", &["-n", "--random-seed=11", "-f", "hash.sql", "-t", "20"]),
    example("script: pipeline", &["-n", "-f", "pipeline.sql", "-M", "extended", "-t", "3", "-r"]),
    example("script: pipeline, prepared", &["-n", "-f", "pipeline.sql", "-M", "prepared", "-t", "3"]),
    example("script: pipeline in simple mode", &["-n", "-f", "pipeline.sql", "-t", "3"]),
    example("script: what looks like a variable", &["-n", "-f", "names.sql", "-t", "3"]),
    example("error of a statement", &["-n", "--random-seed=5", "-f", "error.sql", "-t", "1000"]),
    example("error of an expression", &["-n", "-f", "expression.sql"]),
    example("undefined variable", &["-n", "-f", "undefined.sql"]),
    example("two rows for gset", &["-n", "-f", "two_rows.sql"]),
    example("COPY", &["-n", "-f", "copy.sql"]),
    example("COPY after another statement", &["-n", "-f", "copy_chain.sql"]),
    example("COPY after a comment", &["-n", "-f", "copy_comment.sql"]),
    example("COPY to a file of the server", &["-n", "-f", "copy_file.sql", "-t", "3"]),
];

fn folder_with_scripts() -> Scratch {
    let folder = Scratch::new();
    for (name, text) in SCRIPTS {
        std::fs::write(folder.file(name), text).expect("a file");
    }
    folder
}

fn run_both(
    server: &Postgres,
    folder: &Path,
    example: &Example,
) -> Option<(ProcessOutput, ProcessOutput)> {
    assert_same(folder, example.arguments, shape, |command| {
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", server.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "sbtest")
            .envs(example.environment.iter().copied());
    })
}

fn initialized(server: &Postgres, folder: &Path) {
    let example = example("initialization", &["-i", "-s", "1", "-q", "-I", "dtGvp"]);
    run_both(server, folder, &example).expect("the original is there");
}

#[test]
fn every_example_of_the_manual_page_behaves_the_same() {
    const TEST: &str = "every_example_of_the_manual_page_behaves_the_same";
    let folder = folder_with_scripts();
    if original(folder.path(), &[]).is_none() {
        return skipped(TEST, "pgbench 15 is missing");
    }
    let server = server_or_skip!(Postgres, TEST);
    initialized(&server, folder.path());
    run_all(&server, folder.path(), EXAMPLES);
}

/// Runs all, then fails if any differed.
fn run_all(server: &Postgres, folder: &Path, examples: &[Example]) {
    let mut different = Vec::new();
    for example in examples {
        let output = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_both(server, folder, example)
        }));
        if output.is_err() {
            different.push(example.about);
        }
    }
    assert!(different.is_empty(), "these differ, see above: {different:#?}");
}

/// Initializations, each on what the one before has left.
#[rustfmt::skip]
const INITIALIZATIONS: &[Example] = &[
    example("default", &["-i"]),
    example("the same again", &["-i", "sbtest"]),
    example("scale, quiet", &["-i", "-s", "2", "-q"]),
    example("steps with blanks and repeats", &["-i", "-I", "d t  g v p v"]),
    example("rows made by the server", &["-i", "-I", "dtGvp"]),
    example("no vacuum", &["-i", "-n"]),
    example("foreign keys", &["-i", "--foreign-keys"]),
    example("fillfactor", &["-i", "-F", "90", "--unlogged-tables"]),
    example("ranges", &["-i", "--partitions=3"]),
    example("hashes", &["-i", "--partitions=2", "--partition-method=hash", "-I", "dtgvpf"]),
    example("a run on partitions", &["-S", "-t", "2"]),
    example("tablespace", &["-i", "--tablespace=pg_default", "--index-tablespace=pg_default"]),
    example("no such tablespace", &["-i", "--tablespace=nowhere"]),
    example("drop only", &["-i", "-I", "d"]),
    example("keys without tables", &["-i", "-I", "p"]),
    example("vacuum without tables", &["-i", "-I", "v"]),
    example("foreign keys without tables", &["-i", "-I", "f"]),
    example("rows without tables", &["-i", "-I", "g"]),
    example("no such database", &["-i", "nowhere"]),
    example("a built-in script without tables", &["-S"]),
    example("a script without tables", &["-f", "set.sql", "-v", "--random-seed=1"]),
    example("no such user", &["-U", "nobody", "-S"]),
    example("a run in no such database", &["nowhere"]),
    Example { about: "a login that is refused with a detail", arguments: &["-S"], environment: &[("PGDATESTYLE", "bogus")] },
];

#[test]
fn initializations_say_what_the_original_says() {
    const TEST: &str = "initializations_say_what_the_original_says";
    let folder = folder_with_scripts();
    if original(folder.path(), &[]).is_none() {
        return skipped(TEST, "pgbench 15 is missing");
    }
    let server = server_or_skip!(Postgres, TEST);
    run_all(&server, folder.path(), INITIALIZATIONS);
}

/// The original counts the transaction that was left open as processed; dyno doesn't, because no one has
/// committed it. What both say of it is the same.
#[test]
fn a_block_left_open_aborts_its_client() {
    const TEST: &str = "a_block_left_open_aborts_its_client";
    let folder = folder_with_scripts();
    let server = server_or_skip!(Postgres, TEST);
    let name = format!("host=127.0.0.1 port={} user=postgres dbname=sbtest", server.port);
    let arguments = ["-n", "-f", "open_block.sql", &name];
    if original(folder.path(), &[]).is_none() {
        return skipped(TEST, "pgbench 15 is missing");
    }
    let only_errors = |text: &str| {
        if text.contains("pgbench: error: ") { shape(text) } else { String::new() }
    };
    let output = assert_same(folder.path(), &arguments, only_errors, |_| {});
    assert_eq!(output.map(|(ours, _)| ours.code), Some(2));
}

/// Shapes of the lines of all log files with this prefix, without repeats, and the number of files.
fn logs(folder: &Path, prefix: &str) -> (Vec<String>, Vec<usize>) {
    let (mut shapes, mut counts) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.starts_with(prefix) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a log");
        counts.push(text.lines().count());
        shapes.extend(text.lines().map(shape));
        std::fs::remove_file(&path).expect("a log that can be removed");
    }
    shapes.sort();
    shapes.dedup();
    counts.sort_unstable();
    (shapes, counts)
}

#[test]
fn logs_have_the_originals_lines() {
    const TEST: &str = "logs_have_the_originals_lines";
    let folder = folder_with_scripts();
    if original(folder.path(), &[]).is_none() {
        return skipped(TEST, "pgbench 15 is missing");
    }
    let server = server_or_skip!(Postgres, TEST);
    initialized(&server, folder.path());
    #[rustfmt::skip]
    let lines: &[(&[&str], Variables, bool)] = &[
        // Per transaction: as many lines as transactions, a file per thread.
        (&["-n", "-l", "-c", "3", "-j", "2", "-t", "10", "-S", "-N"], &[], true),
        (&["-n", "-l", "--log-prefix=mine", "-R", "500", "-t", "10", "-S"], &[], true),
        (&["-n", "-l", "--max-tries=2", "-t", "10", "-S"], &[], true),
        (&["-n", "-l", "-S", "-t", "200", "--sampling-rate=0.25", "--random-seed=5"], &[], true),
        (&["-n", "-l", "-f", "conflict.sql", "-c", "4", "-T", "1"], ERRORS, false),
        (&["-n", "-l", "-f", "conflict.sql", "-c", "4", "-T", "1", "--failures-detailed", "--max-tries=2"], ERRORS, false),
        // Per interval: how many are complete depends on the second's fraction at which a run begins.
        (&["-n", "-l", "--aggregate-interval=1", "-T", "2", "-c", "2", "-S"], &[], false),
        (&["-n", "-l", "--aggregate-interval=1", "-T", "2", "-c", "4", "-R", "500", "-L", "10", "--failures-detailed", "--max-tries=10"], &[], false),
    ];
    for &(arguments, environment, same_counts) in lines {
        let prefix =
            if arguments.contains(&"--log-prefix=mine") { "mine." } else { "pgbench_log." };
        let run = |ours: bool| {
            let mut command = if ours {
                super::support::ours(folder.path(), arguments)
            } else {
                original(folder.path(), arguments).expect("the original")
            };
            command
                .env("PGHOST", "127.0.0.1")
                .env("PGPORT", server.port.to_string())
                .env("PGUSER", "postgres")
                .env("PGDATABASE", "sbtest")
                .envs(environment.iter().copied());
            let output = super::support::finish(&mut command);
            assert_eq!(output.code, 0, "{arguments:?}: {output}");
            logs(folder.path(), prefix)
        };
        let (ours, theirs) = (run(true), run(false));
        assert!(!theirs.0.is_empty(), "{arguments:?}");
        assert_eq!(ours.0, theirs.0, "{arguments:?}");
        assert_eq!(ours.1.len(), theirs.1.len(), "files of {arguments:?}");
        if same_counts {
            assert_eq!(ours.1, theirs.1, "lines of {arguments:?}");
        }
    }
}
