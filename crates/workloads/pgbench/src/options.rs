//! The options of pgbench in suites: `statements = [...]` are transactions of one's own as plain SQL, each a script
//! whose parameters are drawn before its first statement; how much of the accounts is hot is what a load does to
//! their table.

use crate::init::SCALE_MAX;
use crate::script::{
    Action, Function, Op, QueryMode, Script, ScriptCommand, ScriptValue, find_builtin,
    function_names, is_function_name,
};
use dyno_core::nearest;
use dyno_core::offer::{DataSizing, Scale, TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionError, OptionRow, OptionValues, describe, did_you_mean, read};
use dyno_facts::{Message, say};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub const OFFER: WorkloadOffer = WorkloadOffer {
    pace: UsualPace { checked: 1_000_000.0, ..UsualPace::loading(150_000.0) },
    ..WorkloadOffer::new("pgbench", TESTS, || describe(OPTIONS))
};

const TESTS: &[TestOffer] =
    &[test("tpcb-like"), test("simple-update"), test("select-only"), test("script"), MIX];

/// Plain SQL on tables of the user's own.
pub const STATEMENTS: &str = "statements";
const MIX: TestOffer = TestOffer { name: STATEMENTS, size: None };

/// Returns a built-in script, of which a unit of `scale` is 100,000 accounts; the option `define.range` counts
/// accounts, too, and shrinks with them.
const fn test(name: &'static str) -> TestOffer {
    let size = DataSizing::Factor {
        factor: Scale { option: "scale", default: 1 },
        rows_per_unit: 100_000,
        rows: &["define.range"],
        workers_per_unit: None,
    };
    TestOffer { name, size: Some(size) }
}

type Row = OptionRow<PgbenchSettings>;

pub const OPTIONS: &[OptionRow<PgbenchSettings>] = &[
    Row::new(
        "scripts",
        "",
        OptionValues::List(|o, file| o.files.push(file.to_owned())),
        "for `test = \"script\"`: files in the folder of the suite, or below it; what follows the last `@` is the \
         weight, 1 if there is none. The texts are stored with the run",
    ),
    Row::new(
        "statements",
        "",
        OptionValues::List(|o, sql| o.statements.push(sql.to_owned())),
        "transactions of one's own, also as a key of the experiment, see below: SQL with `:NAME` for parameters, \
         several statements with `;` between them; `@9` at the end, with or without a blank before it, is the \
         weight, 1 if there is none",
    )
    .for_tests(&[STATEMENTS]),
    Row::new(
        "parameters",
        "",
        OptionValues::Table(&[], |o, name, value| {
            o.parameters.push((name.to_owned(), value.to_owned()));
            Ok(())
        }),
        "the parameters of `statements`: numbers, or what is drawn again for each transaction with `uniform(1, rows)`, \
         `zipfian(1, rows, 1.1)`, `gaussian(1, rows, 5)`, `exponential(1, rows, 5)` and pgbench's other functions: \
         `parameters = { rows = 100000, id = \"uniform(1, rows)\" }`",
    )
    .for_tests(&[STATEMENTS]),
    Row::new(
        "scale",
        "1",
        OptionValues::Whole(1, SCALE_MAX, |o, n| o.scale = n),
        "100,000 accounts, 10 tellers and 1 branch for each; also `:scale` in scripts",
    ),
    Row::new(
        "define",
        "",
        OptionValues::Table(&[], |o, name, value| {
            o.defines.push((name.to_owned(), value.to_owned()));
            Ok(())
        }),
        "variables of the scripts: `define = { range = 50000000 }`",
    ),
    Row::new(
        "mode",
        "simple",
        OptionValues::Choice(&["simple", "extended", "prepared"], |o, at| {
            o.mode = QueryMode::ALL[at]
        }),
        "how statements are sent, as pgbench's `-M`",
    ),
    Row::new(
        "jobs",
        "",
        OptionValues::Whole(1, 10_000, |o, n| o.jobs = Some(n)),
        "loops (system threads) that drive the workers; one per core by default",
    ),
    Row::new(
        "vacuum",
        "none",
        OptionValues::Choice(&["none", "some", "all"], |o, at| {
            o.vacuum = Vacuum::ALL[at]
        }),
        "before each trial: `none` is pgbench's `-n`, `some` is what it does without (branches and tellers are \
         vacuumed, the history is emptied), `all` is `-v` (accounts too)",
    ),
    Row::new(
        "check",
        "true",
        OptionValues::Flag(|o, on| o.check = on),
        "after each trial that writes: check the balances, see below",
    ),
];

dyno_core::named! {
    /// Maintenance of the tables before each trial.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Vacuum {
        /// Nothing: pgbench's `-n`.
        #[default]
        None = "none",
        /// Branches and tellers are vacuumed, the history is emptied: what pgbench does unasked.
        Some = "some",
        /// Accounts too: pgbench's `-v`.
        All = "all",
    }
}

#[derive(Default)]
pub struct PgbenchSettings {
    pub scripts: Vec<(Script, u32)>,
    pub mode: QueryMode,
    pub scale: u32,
    pub defines: Vec<(String, String)>,
    /// Loops; `None` is one per core.
    pub jobs: Option<u32>,
    /// Maintenance of the tables before each trial.
    pub vacuum: Vacuum,
    /// The balances are checked after each trial that writes.
    pub check: bool,
    files: Vec<String>,
    statements: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl PgbenchSettings {
    /// Reads the options of a test. `scripts` has the name, the weight and the text of each file that they name.
    pub fn read<'a>(
        test: &str,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
        scripts: impl IntoIterator<Item = (&'a str, u32, &'a str)>,
    ) -> Result<Self, OptionError> {
        let mut settings = PgbenchSettings::new();
        read(OPTIONS, (OFFER.name, test), given, &mut settings)?;
        let mode = settings.mode;
        if test == STATEMENTS {
            settings.take_statements()?;
            return Ok(settings);
        }
        if settings.files.is_empty() {
            // Prefixes are for command lines; a suite names the test in full.
            let builtin = find_builtin(test).ok().filter(|builtin| builtin.name == test);
            let script = match builtin {
                Some(builtin) => builtin.script(mode).map_err(|error| error.to_string()),
                None => Err(format!("`{test}` isn't a test of pgbench.")),
            };
            let script = script.map_err(|message| OptionError::experiment(message, None))?;
            settings.scripts.push((script, 1));
        }
        for (number, (name, weight, text)) in (1..).zip(scripts) {
            settings.add(&format!("scripts.{number}"), name, weight, text)?;
        }
        Ok(settings)
    }

    fn take_statements(&mut self) -> Result<(), OptionError> {
        let mix = Mix::read(&self.statements, &self.parameters)?;
        for (number, (weight, text)) in (1..).zip(mix.scripts) {
            let name = format!("statement {number}");
            self.add(&format!("statements.{number}"), &name, weight, &text)?;
        }
        self.defines.extend(mix.constants);
        Ok(())
    }

    /// Adds a script that an option names.
    fn add(
        &mut self,
        option: &str,
        name: &str,
        weight: u32,
        text: &str,
    ) -> Result<(), OptionError> {
        let script = Script::parse(text.as_bytes(), name, self.mode);
        let script = script.map_err(|error| OptionError::value(option, error.to_string()))?;
        self.scripts.push((script, weight));
        Ok(())
    }

    fn new() -> Self {
        PgbenchSettings { scale: 1, check: true, ..PgbenchSettings::default() }
    }

    /// The scripts that run.
    pub fn running(&self) -> impl Iterator<Item = &Script> {
        self.scripts.iter().filter(|(_, weight)| *weight > 0).map(|(script, _)| script)
    }

    /// The texts of all commands of scripts that run.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.running().flat_map(|script| &script.commands).map(ScriptCommand::text)
    }

    /// The value of a variable that is an integer before the scripts run.
    pub fn variable(&self, name: &str) -> Option<i64> {
        let defined = self.defines.iter().find(|(other, _)| other == name);
        match defined {
            Some((_, value)) => value.parse().ok(),
            None => (name == "scale").then(|| i64::from(self.scale)),
        }
    }
}

/// Variables that scripts know without a definition.
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
    /// The parameters that it contains.
    needs: Vec<&'a str>,
}

impl Mix {
    /// Reads statements and their parameters; fails with the name of a wrong one.
    pub(crate) fn read(
        statements: &[String],
        parameters: &[(String, String)],
    ) -> Result<Mix, OptionError> {
        let (numbers, formulas): (Vec<_>, Vec<_>) =
            parameters.iter().partition(|(_, value)| value.trim().parse::<f64>().is_ok());
        let known_names: Vec<&str> =
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
        let expressions: Vec<Drawn<'_>> = formulas
            .into_iter()
            .map(|(name, value)| {
                Drawn::read(name, value, &known_names)
                    .map_err(|refusal| refusal_error(&format!("parameters.{name}"), refusal))
            })
            .collect::<Result<_, _>>()?;
        let order = ordered(&expressions)?;
        let mut scripts = Vec::new();
        for (number, written) in (1..).zip(statements) {
            let option = format!("statements.{number}");
            let (sql, weight) = weighted(written);
            let sql = sql.trim().trim_end_matches(';');
            if sql.is_empty() {
                return Err(OptionError::value(&option, "There is no statement.".to_owned()));
            }
            let script = Script::parse(sql.as_bytes(), &option, QueryMode::Simple);
            let script = script.map_err(|error| OptionError::value(&option, error.to_string()))?;
            let used: Vec<&str> = script.parameters().collect();
            if let Some(name) = used.iter().find(|name| !known_names.contains(name)) {
                return Err(refusal_error(&option, unknown_parameter(name, &known_names)));
            }
            let mut needed: BTreeSet<&str> = used.into_iter().collect();
            for parameter in order.iter().rev() {
                if needed.contains(parameter.name) {
                    needed.extend(&parameter.needs);
                }
            }
            let sets = order.iter().filter(|parameter| needed.contains(parameter.name));
            let sets: String = sets
                .map(|parameter| format!("\\set {} {}\n", parameter.name, parameter.expression))
                .collect();
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

fn refusal_error(option: &str, (message, hint): Refusal) -> OptionError {
    OptionError { hint, ..OptionError::value(option, message) }
}

fn unknown_parameter(name: &str, known: &[&str]) -> Refusal {
    let hint = did_you_mean(nearest(name, known.iter().copied()), "").unwrap_or_else(|| {
        format!(
            "Add it: `parameters = {{ {name} = \"uniform(1, 1000)\" }}`. Parameters are numbers: write a \
             text in the statement itself."
        )
    });
    (format!("`{name}` isn't a parameter."), Some(hint))
}

fn unknown_function(name: &str) -> Refusal {
    let ours = FUNCTIONS.map(|(ours, _)| ours);
    let names = ours.into_iter().chain(function_names());
    let hint = did_you_mean(nearest(name, names), "")
        .unwrap_or_else(|| format!("There are {}, and the functions of pgbench.", ours.join(", ")));
    (format!("`{name}` isn't a function."), Some(hint))
}

/// `SQL @9`: the weight is at the end, behind a blank or what may end a statement. Behind an operator or a comma
/// it is a variable of MySQL's: `id=@9`.
fn weighted(written: &str) -> (&str, u32) {
    let parts = written.trim_end().rsplit_once('@').filter(|(sql, _)| {
        sql.ends_with(|c: char| {
            c.is_whitespace()
                || c.is_alphanumeric()
                || matches!(c, '_' | ')' | '\'' | '"' | '`' | ';')
        })
    });
    let weighted = parts.and_then(|(sql, weight)| Some((sql, weight.parse().ok()?)));
    weighted.unwrap_or((written, 1))
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Drawn<'a> {
    /// Reads the formula of a parameter, which may use the `known` ones.
    fn read(name: &'a str, value: &'a str, known: &[&str]) -> Result<Self, Refusal> {
        let (mut expression, mut needs) = (String::new(), Vec::new());
        let mut remaining = value;
        while let Some(first) = remaining.chars().next() {
            let length = remaining.bytes().take_while(|&byte| is_name_byte(byte)).count();
            if length == 0 || first.is_ascii_digit() {
                if matches!(first, '\n' | '\r' | '\\') {
                    return Err(("It must be one line.".to_owned(), None));
                }
                let length = length.max(first.len_utf8());
                expression.push_str(&remaining[..length]);
                remaining = &remaining[length..];
                continue;
            }
            let (word, after) = remaining.split_at(length);
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
                (false, _) => return Err(unknown_parameter(word, known)),
            }
            remaining = after;
        }
        Ok(Drawn { name, expression, needs })
    }
}

/// Each after those that it needs.
fn ordered<'a, 'b>(drawn: &'b [Drawn<'a>]) -> Result<Vec<&'b Drawn<'a>>, OptionError> {
    let mut unordered: Vec<&Drawn<'_>> = drawn.iter().collect();
    let mut order: Vec<&Drawn<'_>> = Vec::new();
    while !unordered.is_empty() {
        let is_free =
            |one: &&&Drawn<'_>| !unordered.iter().any(|other| one.needs.contains(&other.name));
        let Some(&free) = unordered.iter().find(is_free) else {
            let name = unordered[0].name;
            let message = format!("`{name}` needs a parameter that needs `{name}`.");
            return Err(OptionError::value(&format!("parameters.{name}"), message));
        };
        order.push(free);
        unordered.retain(|one| one.name != free.name);
    }
    Ok(order)
}

/// Distribution of accounts in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The highest account that can be drawn, counted from the lowest: rows of the hot range.
    pub hot_rows: u64,
    /// The meaning of the distribution, in a sentence.
    pub meaning: Message,
}

impl Access {
    /// Reads how a script draws `:aid`, as far as that can be known. `value` returns variables that are defined before
    /// the script runs.
    pub fn from_script(script: &Script, value: impl Fn(&str) -> Option<i64>) -> Option<Access> {
        let names = &script.variables;
        let program = script.commands.iter().find_map(|command| match &command.action {
            Action::Set { variable, program } if names[*variable as usize] == "aid" => {
                Some(program)
            }
            _ => None,
        });
        let mut program = program?.clone();
        program.fold(|variable| value(&names[variable as usize]));
        let (low, high, meaning) = match program.ops[..] {
            [Op::RandomBetween(low, high)] => (low, high, say!(accounts_uniform)),
            [
                Op::Push(ScriptValue::Int(low)),
                Op::Push(ScriptValue::Int(high)),
                parameter,
                Op::Call(function, 3),
            ] => (low, high, describe_distribution(function, parameter)?),
            _ => return None,
        };
        let hot_rows = u64::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
        Some(Access { hot_rows, meaning })
    }
}

fn describe_distribution(function: Function, parameter: Op) -> Option<Message> {
    let parameter = match parameter {
        Op::Push(ScriptValue::Int(value)) => value as f64,
        Op::Push(ScriptValue::Double(value)) => value,
        _ => f64::NAN,
    };
    Some(match function {
        // Within one and two standard deviations of the middle; below a parameter of 3 the cut
        // tails change the shares.
        Function::RandomGaussian if parameter >= 3.0 => {
            let (one, two) = (format_percent(1.0 / parameter), format_percent(2.0 / parameter));
            say!(accounts_gaussian, p = parameter.to_string(), one, two)
        }
        Function::RandomGaussian => say!(accounts_in_the_middle),
        Function::RandomExponential => {
            say!(accounts_at_the_beginning, function = "random_exponential")
        }
        Function::RandomZipfian => say!(accounts_at_the_beginning, function = "random_zipfian"),
        _ => return None,
    })
}

fn format_percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_takes_what_it_says() {
        dyno_core::options::check_table(OPTIONS, PgbenchSettings::new);
        let modes = OPTIONS.iter().find_map(|row| match row.kind {
            OptionValues::Choice(words, _) if row.name == "mode" => Some(words),
            _ => None,
        });
        assert_eq!(modes, Some(&QueryMode::ALL.map(QueryMode::name)[..]));
        let options = [("define.range", "10"), ("scale", "2")];
        let settings = PgbenchSettings::read("select-only", options, []).expect("good options");
        assert_eq!((settings.variable("range"), settings.variable("scale")), (Some(10), Some(2)));
    }

    fn mix(statements: &[&str], parameters: &[(&str, &str)]) -> Result<Mix, OptionError> {
        let statements: Vec<String> = statements.iter().map(|&text| text.to_owned()).collect();
        let parameters: Vec<(String, String)> =
            parameters.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
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
        let error = refuse_mix(&["SELECT :idd"], &[("id", "uniform(1, 9)")]);
        assert_eq!(error.option.as_deref(), Some("statements.1"));
        assert_eq!(error.hint.as_deref(), Some("Did you mean `id`?"));
        let error = refuse_mix(&["SELECT :id"], &[("id", "uniform(1, rows)")]);
        assert_eq!(error.message, "`rows` isn't a parameter.");
        let error = refuse_mix(&["SELECT :a"], &[("a", "b + 1"), ("b", "a + 1")]);
        assert_eq!(error.message, "`a` needs a parameter that needs `a`.");
        let error = refuse_mix(&["SELECT :id"], &[("id", "unifrom(1, 9)")]);
        assert_eq!(error.option.as_deref(), Some("parameters.id"));
        assert_eq!(error.message, "`unifrom` isn't a function.");
        assert_eq!(error.hint.as_deref(), Some("Did you mean `uniform`?"));
        let error = refuse_mix(&["SELECT :a"], &[("a", "text")]);
        assert_eq!(error.option.as_deref(), Some("parameters.a"));
        assert!(error.hint.is_some_and(|hint| hint.contains("text in the statement itself")));
        let error = refuse_mix(&["SELECT 1 @0"], &[]);
        assert_eq!(error.message, "No statement would be executed.");
        let error = refuse_mix(&["SELECT 1"], &[("a b", "1")]);
        assert_eq!(error.option.as_deref(), Some("parameters.a b"));
    }

    fn refuse_mix(statements: &[&str], parameters: &[(&str, &str)]) -> OptionError {
        mix(statements, parameters).expect_err("a refusal")
    }

    fn access(script: &str) -> Option<Access> {
        let script = Script::parse(script.as_bytes(), "a.sql", QueryMode::Simple).ok()?;
        Access::from_script(&script, |name| match name {
            "scale" => Some(30),
            "range" => Some(500_000),
            _ => None,
        })
    }

    #[test]
    fn the_hot_range_is_read_from_the_script() {
        let paper =
            access(include_str!("../../../../suites/pgbench/read-only.sql")).expect("drawn");
        assert_eq!(paper.hot_rows, 500_000);
        let meaning = paper.meaning.to_string();
        assert!(meaning.contains("68% of all draws fall into the middle 10%"), "{meaning}");
        assert!(meaning.contains("95% into its middle 20%."), "{meaning}");
        let uniform = access("  \\set aid random(1, 100000 * :scale)\nSELECT 1;").expect("drawn");
        assert_eq!(uniform.hot_rows, 3_000_000);
        for parameter in ["1.1", "2", ":unset"] {
            let zipfian = format!("\\set aid random_zipfian(11, 20, {parameter})");
            assert!(access(&zipfian).is_some_and(|a| a.hot_rows == 10), "{zipfian}");
        }
        for unknown in [
            "SELECT 1;",
            "\\set aid 5",
            "\\set aid random(1, :unset)",
            "\\set aid random(1, 9223372036854775807 * 2)",
            "\\set aid random(5, 1)",
            "\\set aid hash(1, 2)",
            "\\set aid random(1",
        ] {
            assert_eq!(access(unknown).filter(|access| access.hot_rows > 0), None, "{unknown}");
        }
    }
}
