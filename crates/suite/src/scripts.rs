//! The scripts that an experiment names: files in the folder of the suite, or bundled with it. A plan
//! holds their texts, so that a stored run can be gone on with and printed without them.

use std::path::{Component, Path};

use dyno_facts::ScriptFacts;
use sha2::{Digest, Sha256};

use crate::bundled::{self, BUNDLED_PREFIX};
use crate::problem::{Problem, SuiteError};
use crate::suite::{OptionEntry, Suite, SuiteExperiment};

/// A longer script is refused: it is some other file.
const BYTES_MAX: usize = 1 << 20;

pub(crate) fn read(
    suite: &Suite,
    experiment: &SuiteExperiment,
) -> Result<Vec<ScriptFacts>, SuiteError> {
    let is_script = |entry: &&OptionEntry| entry.name.starts_with("scripts.");
    let named: Vec<&OptionEntry> = experiment.options.iter().filter(is_script).collect();
    let test = &experiment.test;
    let takes_scripts = test.value == "script";
    match named.first() {
        None if takes_scripts => {
            let message = "The test `script` has no scripts.";
            let hint = "Add `scripts = [\"my.sql\"]` to the options: files in the suite's folder.";
            let problem = Problem::new(message).hint(hint);
            return Err(problem.at(&suite.text, &test.span).into());
        }
        Some(first) if !takes_scripts => {
            let message = format!("The test `{}` takes no scripts.", test.value);
            let problem = Problem::new(message).hint("Write `test = \"script\"`.");
            return Err(problem.at(&suite.text, &first.key_span).into());
        }
        _ => {}
    }
    let mut scripts = Vec::new();
    for entry in &named {
        let script = read_one(suite, &entry.value).map_err(|(message, hint)| {
            Problem::new(message).hint(hint).at(&suite.text, &entry.value_span)
        })?;
        scripts.push(script);
    }
    if let (Some(first), true) = (named.first(), scripts.iter().all(|script| script.weight == 0)) {
        let problem = Problem::new("No script has a weight above 0, so nothing would run.")
            .hint("Write `FILE@WEIGHT`; without `@` the weight is 1.");
        return Err(problem.at(&suite.text, &first.value_span).into());
    }
    Ok(scripts)
}

/// `FILE` or `FILE@WEIGHT`; what is wrong comes with a remedy.
fn read_one(suite: &Suite, written: &str) -> Result<ScriptFacts, (String, String)> {
    let (name, weight) = match written.rsplit_once('@') {
        Some((name, weight)) => match weight.parse::<u32>() {
            Ok(weight) => (name, weight),
            Err(_) => {
                return Err((
                    format!("`{weight}` is not a weight."),
                    "Write `FILE@WEIGHT`, the weight being a whole number from 0 on.".to_owned(),
                ));
            }
        },
        None => (written, 1),
    };
    let sha256 = |text: &str| dyno_core::hex(&Sha256::digest(text.as_bytes()));
    if let Some((_, text)) = suite.script_texts.iter().find(|(given, _)| given == name) {
        let (name, text, sha256) = (name.to_owned(), text.clone(), sha256(text));
        return Ok(ScriptFacts { name, weight, text, sha256 });
    }
    let is_inside = |path: &Path| {
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    if name.is_empty() || !is_inside(Path::new(name)) {
        return Err((
            format!("The script `{name}` is not in the suite's folder."),
            "Put the file beside the suite, or into a folder beside it, and write its relative \
             path."
                .to_owned(),
        ));
    }
    let text = text_of(&suite.text.file, name)?;
    Ok(ScriptFacts { name: name.to_owned(), weight, sha256: sha256(&text), text })
}

fn text_of(suite_file: &str, name: &str) -> Result<String, (String, String)> {
    if suite_file.starts_with(BUNDLED_PREFIX) {
        return bundled::script(name).map(str::to_owned).ok_or_else(|| {
            let names: Vec<&str> = bundled::scripts().iter().map(|script| script.name).collect();
            let hint = format!("Bundled scripts: {}.", names.join(", "));
            (format!("The script `{name}` is not bundled."), hint)
        });
    }
    let path = Path::new(suite_file).parent().unwrap_or(Path::new("")).join(name);
    let failed = |why: String| {
        let hint = "Scripts are searched in the folder of the suite.".to_owned();
        (format!("The script {} can't be read: {why}.", path.display()), hint)
    };
    // The size first: reading a huge file to refuse it would take long.
    let size = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?.len();
    if size > BYTES_MAX as u64 {
        return Err(failed(format!("it has {size} bytes, more than {BYTES_MAX}")));
    }
    std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))
}
