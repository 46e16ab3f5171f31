//! The options of pgbench in suites.

use crate::init::SCALE_MAX;
use crate::mix::Mix;
use crate::script::{QueryMode, Script, find_builtin};
use dyno_core::offer::{DataSizing, Levels, Scale, TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionError, OptionRow, OptionValues, read};

pub const OFFER: WorkloadOffer = WorkloadOffer {
    name: "pgbench",
    tests: &[test("tpcb-like"), test("simple-update"), test("select-only"), test("script"), MIX],
    levels: Levels::Workers,
    workers_alias: None,
    options: || OPTIONS.iter().map(Row::describe).collect(),
    has_stages: true,
    pace: UsualPace { checked: 1_000_000.0, ..UsualPace::loading(150_000.0) },
};

/// Plain SQL on tables of the user's own.
pub const STATEMENTS: &str = "statements";
const MIX: TestOffer = TestOffer { name: STATEMENTS, size: None };

/// The variable `range` is the number of accounts that keys are drawn from.
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
        "the parameters of `statements`: numbers, or what is drawn anew for each transaction with `uniform(1, rows)`, \
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
            o.vacuum = [Vacuum::None, Vacuum::Some, Vacuum::All][at];
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

/// What happens to the tables before each trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vacuum {
    /// Nothing: pgbench's `-n`.
    #[default]
    None,
    /// Branches and tellers are vacuumed, the history is emptied: what pgbench does unasked.
    Some,
    /// Accounts too: pgbench's `-v`.
    All,
}

#[derive(Default)]
pub struct PgbenchSettings {
    pub scripts: Vec<(Script, u32)>,
    pub mode: QueryMode,
    pub scale: u32,
    pub defines: Vec<(String, String)>,
    /// Loops; `None` is one per core.
    pub jobs: Option<u32>,
    /// What happens to the tables before each trial.
    pub vacuum: Vacuum,
    /// The balances are checked after each trial that writes.
    pub check: bool,
    files: Vec<String>,
    statements: Vec<String>,
    parameters: Vec<(String, String)>,
    texts: Vec<String>,
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
            let refuse = |message: String| OptionError::experiment(message, None);
            // Prefixes are for command lines; a suite names the test in full.
            let builtin = find_builtin(test).ok().filter(|builtin| builtin.name == test);
            let no_test = || refuse(format!("`{test}` is no test of pgbench."));
            let builtin = builtin.ok_or_else(no_test)?;
            let script = builtin.script(mode).map_err(|error| refuse(error.to_string()))?;
            settings.scripts.push((script, 1));
            settings.texts.push(builtin.text.to_owned());
        }
        for (number, (name, weight, text)) in (1..).zip(scripts) {
            let script = Script::parse(text.as_bytes(), name, mode).map_err(|error| {
                OptionError::value(&format!("scripts.{number}"), error.to_string())
            })?;
            settings.scripts.push((script, weight));
            settings.texts.push(text.to_owned());
        }
        Ok(settings)
    }

    fn take_statements(&mut self) -> Result<(), OptionError> {
        let mix = Mix::read(&self.statements, &self.parameters)?;
        for (number, (weight, text)) in (1..).zip(mix.scripts) {
            let name = format!("statement {number}");
            let script = Script::parse(text.as_bytes(), &name, self.mode).map_err(|error| {
                OptionError::value(&format!("statements.{number}"), error.to_string())
            })?;
            self.scripts.push((script, weight));
            self.texts.push(text);
        }
        self.defines.extend(mix.constants);
        Ok(())
    }

    fn new() -> Self {
        PgbenchSettings { scale: 1, check: true, ..PgbenchSettings::default() }
    }

    /// The texts of the scripts that run.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.named_texts().map(|(_, text)| text)
    }

    /// The same, with the names of the scripts.
    pub(crate) fn named_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let running = self.texts.iter().zip(&self.scripts).filter(|(_, (_, weight))| *weight > 0);
        running.map(|(text, (script, _))| (script.description(), &**text))
    }

    /// The texts of all scripts, in their order.
    pub fn all_texts(&self) -> &[String] {
        &self.texts
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
        let given = [("define.range", "10"), ("scale", "2")];
        let settings = PgbenchSettings::read("select-only", given, []).expect("good options");
        assert_eq!((settings.variable("range"), settings.variable("scale")), (Some(10), Some(2)));
    }
}
