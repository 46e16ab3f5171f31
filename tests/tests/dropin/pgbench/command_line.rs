//! Everything that needs no database.

use super::support::{assert_same, finish, original, ours};
use dyno_testkit::{ProcessOutput, Scratch, skipped};
use std::net::TcpListener;
use std::process::Command;

/// Command lines that end before a connection is made: each must end with the original's exit code
/// and say the same.
const LINES: &[&[&str]] = &[
    &["--foo"],
    &["--foo=1", "-c", "2"],
    &["-c", "abc"],
    &["-c", "0"],
    &["-c", "-1"],
    &["-c", ""],
    &["-c", "5 x"],
    &["-c", "99999999999"],
    &["-c"],
    &["--client"],
    &["--con=3"],
    &["--cl=2x"],
    &["--p", "3"],
    &["--pro=1"],
    &["--pa=1"],
    &["--s"],
    &["--l"],
    &["--f"],
    &["--r=1"],
    &["--t"],
    &["--v"],
    &["-x"],
    &["-nx"],
    &["-n", "-?"],
    &["-c", "1", "-V"],
    &["-c", "1", "--help"],
    &["-j", "0"],
    &["-j", "two"],
    &["-t", "0"],
    &["-T", "x"],
    &["-T", "-5"],
    &["-P", "0"],
    &["-s", "0"],
    &["-i", "-c", "2"],
    &["-i", "-S"],
    &["-i", "-l"],
    &["-i", "-b", "xx"],
    &["-F", "50"],
    &["-F", "5", "-i"],
    &["-F", "101", "-i"],
    &["-q"],
    &["--foreign-keys"],
    &["--unlogged-tables"],
    &["--tablespace=x"],
    &["--partitions=2"],
    &["--partitions=-1"],
    &["-b", "se@x"],
    &["-b", "se@"],
    &["-b", "se@1x"],
    &["-b", "s"],
    &["-b", "xx"],
    &["-b", ""],
    &["-b", "@2"],
    &["-f", "nosuch"],
    &["-f", "nosuch@-1"],
    &["-f", "nosuch@2"],
    &["-f", ""],
    &["-f", "."],
    &["-f", "empty.sql"],
    &["-f", "comment.sql"],
    &["-f", "bad.sql"],
    &["-f", "nosuch", "-c", "0"],
    &["-c", "0", "-f", "nosuch"],
    &["-f", "-"],
    &["-b", "se@99999999999"],
    &["-b", "se@2147483648"],
    &["-b", "se@0"],
    &["-b", "se@0", "-b", "si@0"],
    &["-b", "list"],
    &["-b", "list", "-c", "0"],
    &["-b", "se", "-b", "list"],
    &["--show-script=tp"],
    &["--show-script", "simple-update"],
    &["--show-script=se"],
    &["--show-script=s"],
    &["--show-script="],
    &["-t", "5", "-T", "5"],
    &["-l", "--sampling-rate=2"],
    &["-l", "--sampling-rate=0"],
    &["-l", "--sampling-rate=x"],
    &["--sampling-rate=0.5"],
    &["-i", "-I", "xq"],
    &["-I", ""],
    &["-I", "dtG", "-b", "xx"],
    &["-D", "x"],
    &["-D", "=3"],
    &["-D", "x="],
    &["-D", "1x=3"],
    &["-D", "a-b=3"],
    &["-L", "0"],
    &["-L", "-3"],
    &["-L", "abc"],
    &["-R", "0"],
    &["-R", "-1"],
    &["-M", "foo"],
    &["-M", "Simple"],
    &["--random-seed=abc"],
    &["--random-seed="],
    &["--random-seed=12 "],
    &["--random-seed=12", "-t", "1", "-T", "1"],
    &["--random-seed=-1", "-t", "1", "-T", "1"],
    &["--random-seed=99999999999999999999999", "-t", "1", "-T", "1"],
    &["--max-tries=-1"],
    &["--max-tries=0"],
    &["--max-tries=abc"],
    &["--max-tries=0", "-L", "0.0001"],
    &["--progress-timestamp"],
    &["a", "b", "c"],
    &["a", "-n", "b"],
    &["-i", "a", "b"],
    &["--partition-method=foo"],
    &["-i", "--partition-method=hash"],
    &["-i", "--partition-method=HASH", "--partitions=0"],
    &["-l", "--aggregate-interval=5", "-T", "3"],
    &["-l", "--aggregate-interval=2", "-T", "3"],
    &["-l", "--aggregate-interval=0"],
    &["--aggregate-interval=2"],
    &["-l", "--aggregate-interval=2", "--sampling-rate=.2"],
    &["--log-prefix=x"],
    &["-p", "abc"],
    &["-p", "99999"],
    &["-h", "/nowhere", "x"],
    &["-h", "127.0.0.1", "-p", "PORT", "x"],
    &["-h", "127.0.0.1", "-p", "PORT", "-i", "x"],
    &["-h", "127.0.0.1,127.0.0.1", "-p", "1,2,3", "x"],
    &["-h", "127.0.0.1,127.0.0.1", "-p", "PORT,1", "x"],
    &["host=127.0.0.1 port=PORT dbname=x"],
    &["postgres://127.0.0.1:PORT/x"],
    &["postgres://h:p"],
    &["host=a port"],
    &["--debug", "-c", "x"],
];

/// A port of the loopback address at which no one listens.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port().to_string()
}

fn folder_with_scripts() -> Scratch {
    let folder = Scratch::new();
    for (name, text) in [
        ("empty.sql", ""),
        ("comment.sql", "-- nothing but words\n\n"),
        ("bad.sql", "SELECT 1;\n\\set x 1 +\n"),
    ] {
        std::fs::write(folder.file(name), text).expect("a file");
    }
    folder
}

#[test]
fn every_mistake_is_said_as_the_original_says_it() {
    let folder = folder_with_scripts();
    if original(folder.path(), &[]).is_none() {
        return skipped("every_mistake_is_said_as_the_original_says_it", "pgbench 15 is missing");
    }
    let port = closed_port();
    for line in LINES {
        let line: Vec<String> = line.iter().map(|word| word.replace("PORT", &port)).collect();
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        assert_same(folder.path(), &line, str::to_owned, |_| {});
    }
    assert!(LINES.len() > 60);
}

#[test]
fn every_host_that_was_tried_is_named() {
    let folder = Scratch::new();
    let port = closed_port();
    let name = format!("host=127.0.0.1,127.0.0.1 port={port},1 user=u dbname=x");
    let output = finish(&mut ours(folder.path(), &[&name]));
    assert_eq!(output.code, 1, "{output}");
    for port in [port.as_str(), "1"] {
        let message = format!(
            "connection to server at \"127.0.0.1\", port {port} failed: Connection refused"
        );
        assert!(output.stderr.contains(&message), "{output}");
    }
}

#[test]
fn at_most_128_scripts_are_taken() {
    let folder = Scratch::new();
    let many = vec!["-S"; 129];
    let output = finish(&mut ours(folder.path(), &many));
    assert_eq!(output.code, 1);
    assert_eq!(output.stderr, "pgbench: error: at most 128 SQL scripts are allowed\n");
}

#[test]
fn a_seed_may_come_from_the_environment() {
    let folder = Scratch::new();
    if original(folder.path(), &[]).is_none() {
        return skipped("a_seed_may_come_from_the_environment", "pgbench 15 is missing");
    }
    for (seed, arguments) in [("x", &[][..]), ("4", &["-c"]), ("rand ", &[]), ("", &[])] {
        assert_same(folder.path(), arguments, str::to_owned, |command| {
            command.env("PGBENCH_RANDOM_SEED", seed);
        });
    }
}

#[test]
fn more_clients_than_the_system_allows_are_refused_before_anything_else() {
    let folder = Scratch::new();
    // Above any hard limit that tests run under.
    let output = finish(&mut ours(folder.path(), &["-c", "2147483647"]));
    assert_eq!(output.code, 1, "{output}");
    let start = "pgbench: error: need at least 2147483650 open files, but system limit is ";
    assert!(output.stderr.starts_with(start), "{output}");
    let hint = "pgbench: hint: Reduce number of clients, or use limit/ulimit to increase the system limit.";
    assert!(output.stderr.contains(hint), "{output}");
}

#[test]
fn version_and_help_go_to_stdout_and_end_with_0() {
    let folder = Scratch::new();
    for word in ["--version", "-V"] {
        let output = finish(&mut ours(folder.path(), &[word, "-c", "0"]));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.starts_with("pgbench (PostgreSQL) 15.20 (dyno "), "{output}");
    }
    for word in ["--help", "-?"] {
        let output = finish(&mut ours(folder.path(), &[word]));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains("Better than the original:\n"), "{output}");
    }
}

/// Every option that the original explains is explained by dyno in the same line, but for `-d`.
#[test]
fn the_help_has_every_line_of_the_originals() {
    let folder = Scratch::new();
    let Some(mut theirs) = original(folder.path(), &["--help"]) else {
        return skipped("the_help_has_every_line_of_the_originals", "pgbench 15 is missing");
    };
    let theirs = finish(&mut theirs).stdout;
    let ours = finish(&mut ours(folder.path(), &["--help"])).stdout;
    let options = theirs.lines().filter(|line| line.starts_with("  -") || line.starts_with("    "));
    let missing: Vec<&str> =
        options.filter(|line| !ours.lines().any(|ours| ours == *line)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_binary_is_pgbench_when_it_is_called_so() {
    let folder = Scratch::new();
    let link = folder.file("pgbench");
    std::os::unix::fs::symlink(dyno_testkit::dyno_path(), &link).expect("a link");
    let output = ProcessOutput::capture(Command::new(&link).arg("-c0"));
    assert_eq!(output.stderr, "pgbench: error: -c/--client must be in range 1..2147483647\n");
    assert_eq!(output.code, 1);
}

/// A server that accepts and says nothing holds the program in its log-in, so its process list entry
/// can be read at leisure.
#[test]
fn passwords_are_wiped_from_the_process_list() {
    let folder = Scratch::new();
    for name in [
        "host=127.0.0.1 port=PORT dbname=x password=geheim",
        "postgres://me:geheim@127.0.0.1:PORT/x",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let name = name.replace("PORT", &port.to_string());
        let mut child = ours(folder.path(), &["-S", &name])
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        let connection = listener.accept().expect("a connection");
        let path = format!("/proc/{}/cmdline", child.id());
        let command_line = std::fs::read(path).expect("its process list entry");
        let command_line = String::from_utf8_lossy(&command_line).into_owned();
        // It tries again without TLS, and must not wait for an answer.
        drop((connection, listener));
        let ended = child.wait().expect("it ends");
        assert!(
            command_line.contains("pgbench") && command_line.contains("127.0.0.1"),
            "{command_line}"
        );
        assert!(!command_line.contains("geheim"), "{command_line}");
        assert_eq!(ended.code(), Some(1));
    }
}
