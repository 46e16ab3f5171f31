//! Bad files and their error messages: `errors/NAME.toml` gives the text `errors/NAME.txt`.
//! `DYNO_BLESS=1 cargo test -p dyno-suite` writes the texts again, to be read in a diff.

mod common;

use common::WORKLOADS;
use std::path::{Path, PathBuf};

use dyno_facts::SecretUrl;
use dyno_suite::{OptionPart, Overrides, Plan, Suite};

fn bad_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of bad files")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_bad_file_is_refused_in_the_recorded_words() {
    let files = bad_files();
    assert!(files.len() >= 15, "only {} bad files", files.len());
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a bad file");
        let error = Suite::parse(&name, &text, WORKLOADS)
            .and_then(|suite| Plan::build(&suite, &Overrides::default()))
            .expect_err(&name);
        let message = format!("{error}\n");
        assert!(!message.contains("geheim"), "{name} shows a password:\n{message}");
        let golden = path.with_extension("txt");
        if std::env::var_os("DYNO_BLESS").is_some() {
            std::fs::write(&golden, &message).expect("writing a golden text");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        let mut lines = message.lines().zip(expected.lines());
        let first = lines.find(|(message, expected)| message != expected);
        assert!(
            message == expected,
            "{name} differs, first in {first:?}; DYNO_BLESS=1 writes it again"
        );
    }
}

#[test]
fn problems_of_keys_are_reported_at_once_and_of_invalid_toml_the_first() {
    let [invalid, with_wrong_keys] = [
        "[suite]\nname = \"bad\nnames = 1\n[[\n",
        "[suite]\nnames = 1\n[[experiment]]\nworker = 4\n",
    ]
    .map(|text| Suite::parse("s.toml", text, WORKLOADS).expect_err("a bad suite").problems);
    assert_eq!(invalid.len(), 1);
    assert!(with_wrong_keys.len() >= 3, "{with_wrong_keys:?}");
}

/// A suite without an error, but for an option that workloads refuse.
fn good() -> Suite {
    let text = "[suite]\nname = \"good\"\n[target.main]\nurl = \"mysql://u:geheim@h/d\"\n\
                [target.other]\n[[experiment]]\nname = \"a\"\nworkload = \"sysbench\"\n\
                test = \"oltp_insert\"\nworkers = 4\nduration_s = 5\n\
                options = { table-size = 1000, tabels = 2 }\n";
    Suite::parse("good.toml", text, WORKLOADS).expect("a good suite")
}

/// The message with which the good suite is refused.
fn refusal(overrides: &Overrides) -> String {
    Plan::build(&good(), overrides).expect_err("a wrong override").to_string()
}

#[test]
fn overrides_are_checked() {
    let url = SecretUrl::new("mysql://u:geheim@h/d");
    assert_eq!(
        refusal(&Overrides { targets: vec![("mian".into(), url.clone())], ..Overrides::default() }),
        "The suite `good` has no target `mian`.\nhint: Did you mean `main`?"
    );
    let twice = vec![("main".into(), url.clone()), ("main".into(), url)];
    assert_eq!(
        refusal(&Overrides { targets: twice, ..Overrides::default() }),
        "`--target main=...` is given twice.\nhint: Give one URL per target, or one for \
         each node: `--target NAME:ROLE=URL`."
    );
    for shrink in [0.0, -1.0, 1.5, f64::NAN] {
        let message = refusal(&Overrides { shrink: Some(shrink), ..Overrides::default() });
        assert!(message.ends_with("hint: Give a number above 0, at most 1."), "{message}");
    }
    let message = refusal(&Overrides { max_workers: Some(0), ..Overrides::default() });
    assert_eq!(message, "`--max-workers 0` leaves no worker.\nhint: Give at least 1.");
}

#[test]
fn a_target_is_given_as_name_and_url() {
    let mut overrides = Overrides::default();
    overrides.add_target("main=mysql://u:geh=eim@h/d").expect("a target");
    let expected = ("main".to_string(), SecretUrl::new("mysql://u:geh=eim@h/d"));
    assert_eq!(overrides.targets, [expected]);
    for bad in ["main", "main=", "=mysql://h/d", "mysql://u:geheim@h/d?x=1"] {
        let error = overrides.add_target(bad).expect_err(bad).to_string();
        assert!(error.contains("does not name a target"), "{error}");
        assert!(!error.contains("geheim"), "{error}");
    }
}

#[test]
fn complaints_of_workloads_and_drivers_get_their_place() {
    let plan = Plan::build(&good(), &Overrides::default()).expect("a plan");
    let hint = Some("Did you mean `tables`?".to_string());
    let error = plan.option_error("a", "tabels", OptionPart::Name, "No such option.", hint);
    assert_eq!(
        error.to_string(),
        "No such option.\n  --> good.toml:12:32\n   |\n\
         12 | options = { table-size = 1000, tabels = 2 }\n   |                                ^^^^^^\n\
         hint: Did you mean `tables`?"
    );
    for (error, expected) in [
        (
            plan.option_error("a", "--table-size", OptionPart::Value, "Too small.", None),
            (12, 26, 4),
        ),
        (plan.experiment_error("a", "No.", None), (9, 8, 13)),
    ] {
        let place = error.problems[0].place.as_ref().expect("a place");
        assert_eq!((place.line, place.column, place.length), expected);
    }
    let error = plan.option_error("a", "range_size", OptionPart::Value, "Too small.", None);
    assert_eq!(error.problems[0].place, None);
}

#[test]
fn an_unknown_suite_is_refused_with_the_nearest_name() {
    let error = Suite::open("quikstart", WORKLOADS).expect_err("no such suite").to_string();
    assert!(error.starts_with("The suite `quikstart` can't be read: "), "{error}");
    assert!(error.ends_with("hint: Did you mean the bundled suite `quickstart`?"), "{error}");
}
