//! The parser bears any text.

use crate::support::{Case, run, silent_driver};
use dyno_pgbench::script::{QueryMode, Script, builtins, find_builtin};
use proptest::prelude::*;

/// Texts made of what scripts are made of.
fn scriptlike() -> impl Strategy<Value = String> {
    let parts = [
        "\\set ",
        "\\if ",
        "\\elif ",
        "\\else",
        "\\endif",
        "\\sleep ",
        "\\gset",
        "\\;",
        "\n",
        "\\\n",
        "x",
        ":x",
        "::",
        "1",
        "9223372036854775808",
        "1.5e3",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "<",
        ">=",
        "random(",
        "hash(",
        "case when ",
        " then ",
        " else ",
        " end",
        " and ",
        " or ",
        " not ",
        " is ",
        "null",
        "'",
        "\"",
        "$a$",
        "--",
        "/*",
        "*/",
        ";",
        "select ",
        "begin",
        "create function ",
        "E'\\",
        " ",
        "\r",
        "é",
        "us",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..40)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_a_script_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for mode in QueryMode::ALL {
            if let Err(error) = Script::parse(&bytes, "file", mode) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn any_parts_of_scripts_can_be_run(text in scriptlike()) {
        // Sleeps would take their time.
        if !text.contains("sleep") {
            run(&silent_driver(), &Case::new(text.as_bytes()));
        }
    }

    #[test]
    fn any_expression_has_a_value_or_an_error(
        parts in proptest::collection::vec(
            proptest::sample::select(vec!["1", "0.5", "null", "true", "+", "-", "*", "/", "%", "<", "#",
                "~", "(", ")", " and ", " or ", " not ", "abs(", "random(1,", " is null"]),
            1..15,
        )
    ) {
        let script = format!("\\set x {}", parts.concat());
        run(&silent_driver(), &Case::new(script.as_bytes()));
    }
}

#[test]
fn deep_expressions_are_refused_and_long_ones_are_not() {
    for deep in ["(", "-", "not ", "abs(", "case when ", "1 + ("] {
        let script = format!("\\set x {}", deep.repeat(100_000));
        let error = Script::parse(script.as_bytes(), "file", QueryMode::Simple).unwrap_err();
        assert!(error.to_string().contains("nested too deeply"), "{deep}");
    }
    let script = format!("\\set x debug(0{})", " + 1".repeat(50_000));
    assert_eq!(
        run(&silent_driver(), &Case::new(script.as_bytes())),
        "debug(script=0,command=1): int 50000\n"
    );
}

#[test]
fn builtins_are_found_by_their_beginnings() {
    assert_eq!(find_builtin("tp").unwrap().name, "tpcb-like");
    assert_eq!(find_builtin("se").unwrap().description, "<builtin: select only>");
    let ambiguous = "ambiguous builtin name: 2 builtin scripts found for prefix \"s\"";
    assert_eq!(find_builtin("s").unwrap_err(), ambiguous);
    assert_eq!(find_builtin("x").unwrap_err(), "no builtin script found for name \"x\"");
    let lengths: Vec<_> = builtins()
        .iter()
        .map(|builtin| builtin.script(QueryMode::Prepared).unwrap().commands.len())
        .collect();
    assert_eq!(lengths, [11, 9, 2]);
}

#[test]
fn errors_know_their_line_and_column() {
    let text = b"select 1;\n\n\\set x 1 1\n";
    let error = Script::parse(text, "file", QueryMode::Simple).unwrap_err();
    assert_eq!((error.line, error.column), (Some(3), Some(10)));
}
