//! Words of errors.

use crate::recorder::Recorder;
use crate::support::{LoadLog, steps};
use dyno_core::Dialect;
use dyno_core::Driver;
use dyno_load::LoadErrorKind;
use dyno_pgbench::init::{InitOptions, InitStep, initialize};

#[test]
fn steps_are_parsed_with_pgbenchs_words() {
    assert_eq!(
        InitStep::parse_all("d G d").unwrap(),
        [InitStep::DropTables, InitStep::ServerData, InitStep::DropTables]
    );
    for step in InitStep::ALL {
        assert_eq!(InitStep::parse_all(&step.letter().to_string()).unwrap(), [step]);
    }
    let error = InitStep::parse_all("dtx").unwrap_err();
    assert_eq!(error.0, "unrecognized initialization step \"x\"");
    assert_eq!(error.1, Some("Allowed step characters are: \"dtgGvpf\"."));
    let error = InitStep::parse_all("").unwrap_err();
    assert_eq!(error.0, "no initialization steps specified");
    assert_eq!(error.1, None);
}

#[test]
fn flags_change_the_steps() {
    for (options, expected) in [
        (InitOptions::default(), "dtgvp"),
        (InitOptions { vacuum: false, ..steps("vdvtv") }, "dt"),
        (InitOptions { foreign_keys: true, ..steps("dtgp") }, "dtgpf"),
        (InitOptions { foreign_keys: true, ..steps("fdt") }, "fdt"),
        (InitOptions { resume: true, ..InitOptions::default() }, "tgvp"),
    ] {
        let letters = options.effective_steps().into_iter().map(InitStep::letter);
        assert_eq!(letters.collect::<String>(), expected);
    }
}

#[test]
fn options_out_of_range_are_refused_before_anything_is_sent() {
    let cases = [
        InitOptions { scale: 0, ..InitOptions::default() },
        InitOptions { scale: 214_748_365, ..InitOptions::default() },
        InitOptions { fillfactor: 9, ..InitOptions::default() },
        InitOptions { fillfactor: 101, ..InitOptions::default() },
        InitOptions { connections: 0, ..InitOptions::default() },
    ];
    let recorder = Recorder::new("15.20");
    for options in cases {
        let error = initialize(&recorder.admin(), &options, &LoadLog::default()).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::Option, "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(*recorder.log.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn mysql_refuses_what_it_has_not() {
    let storage = InitOptions { fillfactor: 50, ..InitOptions::default() };
    let error = storage.check(Dialect::Mysql).unwrap_err();
    assert!(error.to_string().contains("--fillfactor"), "{error}");
    let partitioned = InitOptions { partitions: 2, ..steps("dtgpf") };
    let error = partitioned.check(Dialect::Mysql).unwrap_err();
    assert!(error.to_string().contains("--partitions"), "{error}");
    partitioned.check(Dialect::Postgres).unwrap();
}
