//! `statements = [...]`: transactions of one's own as plain SQL. Each becomes a script whose parameters are drawn before
//! its first statement.

use crate::script::{function_names, is_function_name};
use dyno_core::nearest;
use dyno_core::options::{OptionError, did_you_mean};
use std::collections::BTreeSet;

/// What scripts know without being told.
const BUILT_IN: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];
/// The words of suites for pgbench's functions.
const FUNCTIONS: [(&str, &str); 4] = [
    ("uniform", "random"),
    ("zipfian", "random_zipfian"),
    ("gaussian", "random_gaussian"),
    ("exponential", "random_exponential"),
];

#[derive(Debug)]
pub(crate) struct Mix {
    /// Weights and texts.
    pub(crate) scripts: Vec<(u32, String)>,
    pub(crate) constants: Vec<(String, String)>,
}

/// A parameter that is drawn, as an expression of pgbench's.
struct Drawn<'a> {
    name: &'a str,
    expression: String,
    /// The parameters that stand in it.
    needs: Vec<&'a str>,
}

impl Mix {
    pub(crate) fn read(
        statements: &[String],
        parameters: &[(String, String)],
    ) -> Result<Mix, OptionError> {
        let (numbers, drawn): (Vec<_>, Vec<_>) =
            parameters.iter().partition(|(_, value)| value.trim().parse::<f64>().is_ok());
        let known: Vec<&str> =
            parameters.iter().map(|(name, _)| name.as_str()).chain(BUILT_IN).collect();
        for (name, _) in parameters {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.is_empty() {
                let message = format!("`{name}` can't be a parameter.");
                let hint = "Names of parameters have letters, digits and `_`.";
                let option = Some(format!("parameters.{name}"));
                let hint = Some(hint.to_owned());
                return Err(OptionError { option, mismatch: None, is_value: false, message, hint });
            }
        }
        let drawn: Vec<Drawn<'_>> = drawn
            .into_iter()
            .map(|(name, value)| {
                Drawn::read(name, value, &known)
                    .map_err(|why| refused(&format!("parameters.{name}"), why))
            })
            .collect::<Result<_, _>>()?;
        let order = ordered(&drawn)?;
        let mut scripts = Vec::new();
        for (number, written) in (1..).zip(statements) {
            let option = format!("statements.{number}");
            let (sql, weight) = weighted(written);
            let sql = sql.trim().trim_end_matches(';');
            if sql.is_empty() {
                return Err(OptionError::value(&option, "There is no statement.".to_owned()));
            }
            let used = names_in(sql);
            if let Some(name) = used.iter().find(|name| !known.contains(name)) {
                return Err(refused(&option, unknown(name, &known)));
            }
            let mut wanted: BTreeSet<&str> = used.into_iter().collect();
            for one in order.iter().rev() {
                if wanted.contains(one.name) {
                    wanted.extend(&one.needs);
                }
            }
            let sets = order.iter().filter(|one| wanted.contains(one.name));
            let sets: String =
                sets.map(|one| format!("\\set {} {}\n", one.name, one.expression)).collect();
            scripts.push((weight, format!("{sets}{sql};\n")));
        }
        if scripts.iter().all(|(weight, _)| *weight == 0) {
            let hint = "Add `statements = [\"SELECT 1\"]`, with a weight above 0 if there is one.";
            return Err(OptionError::experiment("No statement would be executed.", hint));
        }
        let constants = numbers.into_iter().cloned().collect();
        Ok(Mix { scripts, constants })
    }
}

type Refusal = (String, Option<String>);

fn refused(option: &str, (message, hint): Refusal) -> OptionError {
    OptionError { hint, ..OptionError::value(option, message) }
}

fn unknown(name: &str, known: &[&str]) -> Refusal {
    let add = || {
        format!(
            "Add it: `parameters = {{ {name} = \"uniform(1, 1000)\" }}`. Parameters are numbers: write a \
             text in the statement itself."
        )
    };
    let hint = did_you_mean(nearest(name, known.iter().copied()), "").unwrap_or_else(add);
    (format!("`{name}` is no parameter."), Some(hint))
}

fn unknown_function(name: &str) -> Refusal {
    let ours = FUNCTIONS.map(|(ours, _)| ours);
    let all = || format!("There are {}, and the functions of pgbench.", ours.join(", "));
    let known = ours.into_iter().chain(function_names());
    let hint = did_you_mean(nearest(name, known), "").unwrap_or_else(all);
    (format!("`{name}` is no function."), Some(hint))
}

/// `SQL @9`: the weight stands at the end, behind a blank or what may end a statement. Behind an operator or a comma
/// it is a variable of MySQL's: `id=@9`.
fn weighted(written: &str) -> (&str, u32) {
    let is_end = |c: char| {
        c.is_whitespace() || c.is_alphanumeric() || matches!(c, '_' | ')' | '\'' | '"' | '`' | ';')
    };
    let parts = written.trim_end().rsplit_once('@').filter(|(sql, _)| sql.ends_with(is_end));
    let weighted = parts.and_then(|(sql, weight)| Some((sql, weight.parse().ok()?)));
    weighted.unwrap_or((written, 1))
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The parameters in a text of SQL: `:name`, but not in quotes, and no cast `::name`.
fn names_in(sql: &str) -> Vec<&str> {
    let bytes = sql.as_bytes();
    let (mut names, mut quote, mut at) = (Vec::new(), None, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"' | b'`') => quote = Some(byte),
            None if byte == b':' => {
                let colons = bytes[at..].iter().take_while(|&&byte| byte == b':').count();
                let start = at + colons;
                let length = bytes[start..].iter().take_while(|&&byte| is_of_name(byte)).count();
                let is_name = bytes.get(start).is_some_and(|byte| !byte.is_ascii_digit());
                if colons == 1 && length > 0 && is_name {
                    names.push(&sql[start..start + length]);
                }
                at = start + length;
                continue;
            }
            None => {}
        }
        at += 1;
    }
    names
}

impl<'a> Drawn<'a> {
    fn read(name: &'a str, value: &'a str, known: &[&str]) -> Result<Self, Refusal> {
        let (mut expression, mut needs) = (String::new(), Vec::new());
        let mut rest = value;
        while let Some(first) = rest.chars().next() {
            let length = rest.bytes().take_while(|&byte| is_of_name(byte)).count();
            if length == 0 || first.is_ascii_digit() {
                if matches!(first, '\n' | '\r' | '\\') {
                    return Err(("It must be one line.".to_owned(), None));
                }
                let length = length.max(first.len_utf8());
                expression.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            let (word, after) = rest.split_at(length);
            let is_function = after.trim_start().starts_with('(');
            let function = FUNCTIONS.iter().find(|(ours, _)| *ours == word);
            match (is_function, function) {
                (true, Some((_, theirs))) => expression.push_str(theirs),
                (true, None) if is_function_name(word) => expression.push_str(word),
                (true, None) => return Err(unknown_function(word)),
                (false, _) if known.contains(&word) => {
                    let colon = if expression.ends_with(':') { "" } else { ":" };
                    expression.push_str(colon);
                    expression.push_str(word);
                    needs.push(word);
                }
                (false, _) => return Err(unknown(word, known)),
            }
            rest = after;
        }
        Ok(Drawn { name, expression, needs })
    }
}

/// Each after those that it needs.
fn ordered<'a, 'b>(drawn: &'b [Drawn<'a>]) -> Result<Vec<&'b Drawn<'a>>, OptionError> {
    let mut left: Vec<&Drawn<'_>> = drawn.iter().collect();
    let mut order: Vec<&Drawn<'_>> = Vec::new();
    while !left.is_empty() {
        let is_free = |one: &&&Drawn<'_>| !left.iter().any(|other| one.needs.contains(&other.name));
        let Some(&free) = left.iter().find(is_free) else {
            let name = left[0].name;
            let message = format!("`{name}` needs a parameter that needs `{name}`.");
            return Err(OptionError::value(&format!("parameters.{name}"), message));
        };
        order.push(free);
        left.retain(|one| one.name != free.name);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(statements: &[&str], parameters: &[(&str, &str)]) -> Result<Mix, OptionError> {
        let statements: Vec<String> = statements.iter().map(|&text| text.to_owned()).collect();
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let parameters: Vec<(String, String)> = parameters.iter().map(owned).collect();
        Mix::read(&statements, &parameters)
    }

    #[test]
    fn statements_become_scripts_that_draw_what_they_use() {
        let parameters = [
            ("rows", "1000"),
            ("id", "uniform(1, rows)"),
            ("end", "id + 9"),
            ("hot", "zipfian(1, :rows, 1.1)"),
        ];
        let statements = [
            "SELECT c FROM t WHERE id BETWEEN :id AND :end @9",
            "BEGIN; UPDATE t SET n = n + 1 WHERE id = :hot; COMMIT;",
            "SELECT '10:30', ':no'::text, \":no\"",
        ];
        let mix = mix(&statements, &parameters).expect("a mix");
        assert_eq!(mix.constants, [("rows".to_owned(), "1000".to_owned())]);
        assert_eq!(
            mix.scripts,
            [
                (
                    9,
                    "\\set id random(1, :rows)\n\\set end :id + 9\n\
                     SELECT c FROM t WHERE id BETWEEN :id AND :end;\n"
                        .to_owned()
                ),
                (
                    1,
                    "\\set hot random_zipfian(1, :rows, 1.1)\n\
                     BEGIN; UPDATE t SET n = n + 1 WHERE id = :hot; COMMIT;\n"
                        .to_owned()
                ),
                (1, "SELECT '10:30', ':no'::text, \":no\";\n".to_owned()),
            ]
        );
    }

    #[test]
    fn a_weight_needs_no_blank_behind_the_end_of_a_statement() {
        for (written, sql) in [
            ("select v from kv where id = :id@9", "select v from kv where id = :id"),
            ("select f(1)@9 ", "select f(1)"),
            ("select 'a'@9", "select 'a'"),
            ("select a_@9", "select a_"),
            ("select 1;@9", "select 1;"),
            ("select 1\n@9", "select 1\n"),
        ] {
            assert_eq!(weighted(written), (sql, 9), "{written}");
        }
        for written in ["select v where id=@9", "select f(@8,@9)", "select 'a@9'", "select 1@x"] {
            assert_eq!(weighted(written), (written, 1));
        }
    }

    #[test]
    fn mistakes_have_their_place_and_a_remedy() {
        let refused = |statements: &[&str], parameters: &[(&str, &str)]| {
            mix(statements, parameters).expect_err("a refusal")
        };
        let error = refused(&["SELECT :idd"], &[("id", "uniform(1, 9)")]);
        assert_eq!(error.option.as_deref(), Some("statements.1"));
        assert_eq!(error.hint.as_deref(), Some("Did you mean `id`?"));
        let error = refused(&["SELECT :id"], &[("id", "uniform(1, rows)")]);
        assert_eq!(error.message, "`rows` is no parameter.");
        let error = refused(&["SELECT :a"], &[("a", "b + 1"), ("b", "a + 1")]);
        assert_eq!(error.message, "`a` needs a parameter that needs `a`.");
        let error = refused(&["SELECT :id"], &[("id", "unifrom(1, 9)")]);
        assert_eq!(error.option.as_deref(), Some("parameters.id"));
        assert_eq!(error.message, "`unifrom` is no function.");
        assert_eq!(error.hint.as_deref(), Some("Did you mean `uniform`?"));
        let error = refused(&["SELECT :a"], &[("a", "text")]);
        assert_eq!(error.option.as_deref(), Some("parameters.a"));
        assert!(error.hint.is_some_and(|hint| hint.contains("text in the statement itself")));
        let error = refused(&["SELECT 1 @0"], &[]);
        assert_eq!(error.message, "No statement would be executed.");
        let error = refused(&["SELECT 1"], &[("a b", "1")]);
        assert_eq!(error.option.as_deref(), Some("parameters.a b"));
    }
}
