//! `--paper` of the drop-ins: their command line is run as a suite.

use crate::Done;
use crate::commands::RUNS;
use crate::commands::ending::EndLength;
use crate::commands::run::{Keeping, run_kept};
use dyno_facts::SecretUrl;
use dyno_runner::exit::exit_code;
use dyno_runner::level_suite::{LevelSuite, TARGET};
use dyno_suite::{Overrides, Plan, Suite};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(levels: &LevelSuite) -> ExitCode {
    exit_code(kept(levels).map(|()| 0))
}

fn kept(levels: &LevelSuite) -> Done {
    let suite = Suite::parse("", &levels.text(), &crate::offers())?.with_scripts(&levels.scripts);
    let url = SecretUrl::new(levels.target.reveal().reveal());
    let overrides = Overrides {
        targets: vec![(TARGET.to_owned(), url)],
        seed: levels.seed,
        ..Overrides::default()
    };
    let plan = Plan::build(&suite, &overrides)?;
    let keeping = Keeping { length: EndLength::Short, ..Keeping::of(Path::new(RUNS), false) };
    run_kept(&plan, &keeping)?.verdict
}
