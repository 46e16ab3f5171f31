//! `--paper` of a drop-in: its command line as a suite, which is run as any other and leaves a paper.

use dyno_drivers::TargetUrl;
use serde_json::Value;
use std::process::ExitCode;

/// How the target of such a suite is called.
pub const TARGET: &str = "main";

/// Runs the suite that a command line amounts to. Papers are none of the drop-ins' business.
pub type RunLevels = fn(&LevelSuite) -> ExitCode;

/// What a command line asks for: one experiment on tables that are there, with a trial for each number of workers.
#[derive(Clone, Debug)]
pub struct LevelSuite {
    /// The front end, which is the name of the suite.
    pub front_end: &'static str,
    pub workload: &'static str,
    pub test: String,
    pub target: TargetUrl,
    pub workers: Vec<u32>,
    /// Other keys of the experiment, as the suite format has them.
    pub keys: Vec<(&'static str, Value)>,
    /// The options of the test; a name with a dot is a key of a table.
    pub options: Vec<(String, String)>,
    /// Names and texts of its scripts.
    pub scripts: Vec<(String, String)>,
    pub seed: Option<u64>,
}

impl LevelSuite {
    /// The suite in its file format.
    pub fn text(&self) -> String {
        let name = format!("{}-{}", self.front_end, plain(&self.test));
        let title = format!("{}: {}", self.front_end, self.test);
        let mut text = format!("[suite]\nname = {}\ntitle = {}\n", quoted(&name), quoted(&title));
        text += "\n[[experiment]]\nprepare = false\ncleanup = false\n";
        let named = [("name", &plain(&self.test)), ("title", &self.test), ("test", &self.test)];
        for (key, value) in named {
            // A script of Lua is a key of its own.
            if key != "test" || self.workload != "lua" {
                text += &format!("{key} = {}\n", quoted(value));
            }
        }
        text += &format!("workload = {}\nworkers = {:?}\n", quoted(self.workload), self.workers);
        for (key, value) in &self.keys {
            let value = value.as_str().map_or_else(|| value.to_string(), quoted);
            text += &format!("{key} = {value}\n");
        }
        for (name, value) in &self.options {
            let parts: Vec<String> = name.split('.').map(quoted).collect();
            text += &format!("options.{} = {}\n", parts.join("."), quoted(value));
        }
        text
    }
}

/// The refusal of what a run that leaves a paper has no place for.
pub fn refusal(option: &str) -> (String, &'static str) {
    (
        format!("{option} and --paper can't be given together"),
        "leave one of them out: a run with --paper is one of `dyno run`, whose folder has all intervals, histograms and results",
    )
}

/// A text in quotation marks. What JSON escapes, TOML reads; it wants one letter more.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A text as the name of a suite or an experiment.
fn plain(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "script".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::offer::WorkloadOffer;
    use dyno_suite::{Overrides, Plan, Suite};

    const OFFER: WorkloadOffer = WorkloadOffer {
        name: "w",
        tests: &[dyno_core::offer::TestOffer { name: "mix", size: None }],
        levels: dyno_core::offer::Levels::Workers,
        workers_alias: None,
        options: Vec::new,
        has_stages: true,
        pace: dyno_core::offer::UsualPace::loading(1.0),
    };

    #[test]
    fn a_command_line_is_a_suite() {
        let text = "-- \"x\" \u{7f}\n".to_owned();
        let suite = LevelSuite {
            front_end: "pgbench",
            workload: "w",
            test: "mix".to_owned(),
            target: "sqlite:x.db".parse().expect("a URL"),
            workers: vec![1, 4],
            keys: vec![("duration_s", 2.into()), ("percentiles", vec![95].into())],
            options: vec![("odd".to_owned(), text.clone())],
            scripts: Vec::new(),
            seed: Some(7),
        };
        let read = Suite::parse("", &suite.text(), &[OFFER]).expect("a suite");
        let url = dyno_facts::SecretUrl::new(suite.target.reveal().reveal());
        let overrides =
            Overrides { targets: vec![(TARGET.to_owned(), url)], ..Overrides::default() };
        let plan = Plan::build(&read, &overrides).expect("a plan");
        let experiment = &plan.experiments[0];
        assert_eq!((experiment.workers.as_slice(), experiment.prepare), (&[1, 4][..], false));
        assert_eq!(experiment.options.get("odd"), Some(&text));
        assert_eq!(plan.steps.len(), 2, "{:?}", plan.steps);
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain("oltp_read_only"), "oltp-read-only");
        assert_eq!(plain("<builtin: x>"), "builtin--x");
        assert_eq!(plain("./"), "script");
    }
}
