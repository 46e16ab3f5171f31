//! Words and files that can't be followed.

use super::support::{properties, run_benchmarksql, sqlite};
use dyno_testkit::Scratch;

#[test]
fn every_refusal_names_the_place_and_a_remedy() {
    let folder = sqlite();
    for (words, message) in [
        (&["build", "missing"][..], "The properties file missing can't be read"),
        (&["run", "missing"], "The properties file missing can't be read"),
        (&["build", "props", "warehouses"], "The key warehouses has no value behind it."),
        (&["build", "props", "warehouses", "0"], "command line: warehouses=0 can't be used."),
        (&["run", "props", "terminals", "11"], "terminals=11 can't be used (Invalid number of"),
        (&["run", "props", "runMins", "1"], "runTxnsPerTerminal and runMins both are given."),
        (&["run", "props", "db", "oracle"], "db=oracle names a database that dyno doesn't speak"),
        (&["run", "props", "conn", "jdbc:mysql://h/d"], "conn is a URL of mysql, and db is sqlite"),
        (&["build", "props", "--shard", "hash:0"], "--shard hash:0 has no number of partitions."),
    ] {
        let output = run_benchmarksql(&folder, words);
        assert_eq!(
            (output.code, output.stdout.contains("Measured")),
            (2, false),
            "{words:?} {output:?}"
        );
        assert!(output.stderr.contains(message), "{words:?}: {}", output.stderr);
        assert!(output.stderr.contains("\nhint: "), "{words:?}: {}", output.stderr);
    }
    assert!(!folder.file("tpcc.db").exists(), "nothing was made");
}

#[test]
fn what_is_missing_in_the_database_is_told() {
    let folder = sqlite();
    let output = run_benchmarksql(&folder, &["run", "props"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("nothing is loaded here"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: build the database first"), "{}", output.stderr);
}

#[test]
fn warnings_name_keys_and_never_passwords() {
    let folder = Scratch::new();
    properties(
        &folder,
        "db=mysql\nconn=jdbc:mysql://127.0.0.1:1/d?user=me&password=geheim1&useServerPrepStmts=true\
         \npassword=geheim2\niPassword=geheim3\nterminal=3\nmonkeys=8",
    );
    for words in [&["build", "props"][..], &["run", "props"], &["destroy", "props"]] {
        let output = run_benchmarksql(&folder, words);
        assert_eq!(output.code, 1, "nobody listens there: {output:?}");
        for warning in [
            "warning: props:19: terminal is unknown and ignored; was terminals meant?",
            "warning: props:18: iPassword is unknown and ignored; was password meant?",
            "warning: props:16: JDBC parameters that mean nothing here are ignored: useServerPrepStmts.",
        ] {
            assert!(output.stderr.contains(warning), "{warning}: {}", output.stderr);
        }
        let texts = format!("{}{}", output.stdout, output.stderr);
        assert!(!texts.contains("geheim"), "{texts}");
    }
}

#[test]
fn scripts_of_the_original_are_understood_by_their_names() {
    let folder = sqlite();
    let by_word = run_benchmarksql(&folder, &["runDatabaseDestroy.sh", "props"]);
    assert_eq!(by_word.code, 0, "{by_word:?}");
    let link = folder.file("runDatabaseDestroy.sh");
    std::os::unix::fs::symlink(dyno_testkit::dyno_path(), &link).expect("a link");
    let mut command = std::process::Command::new(&link);
    let by_link = command.arg("props").current_dir(folder.path()).output().expect("it runs");
    assert!(by_link.status.success());
    assert_eq!(String::from_utf8_lossy(&by_link.stderr), by_word.stderr);
    assert!(by_word.stderr.contains("nothing was dropped"), "{}", by_word.stderr);
}
