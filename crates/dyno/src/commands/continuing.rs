//! `dyno run --continue RUN`: a comparison until decided goes on where an earlier run has left it.

use super::runs::find_run;
use crate::Done;
use dyno_facts::{EarlierSession, ExperimentFacts, RunHeader, RunStatus, StopRule, TargetFacts};
use dyno_judge::findings::verdict::sessions_of;
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_suite::Plan;
use serde_json::{Map, Value};
use std::path::Path;

/// An earlier run that a new one goes on with.
pub(crate) struct Continued {
    folder: String,
    header: RunHeader,
    /// It and those that it goes on with itself, the oldest first.
    pub(crate) sessions: Vec<EarlierSession>,
}

/// Reads the run of a name.
///
/// # Errors
/// When there is none, somebody writes to it, or it has no pairs that can count.
pub(crate) fn read(dir: &Path, name: &str) -> Result<Continued, Failure> {
    let data = dyno_store::read(&find_run(dir, name)?)?;
    let folder = data.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if data.status() == RunStatus::Running {
        let message = format!("{folder} is still being written, so it can't be continued yet.");
        return Err(Failure::usage(message).with_hint("Wait for its end, or stop it by Ctrl-C."));
    }
    for warning in &data.warnings {
        output::talk(&format!("warning: {warning}"));
    }
    let sessions = sessions_of(&data).map_err(Failure::usage)?;
    let own = sessions.last().map_or(&[][..], |own| &own.comparisons);
    let most = own.iter().flat_map(|of| of.metrics.values()).map(Vec::len).max();
    if most.unwrap_or(0) < 2 {
        let message =
            format!("{folder} has no two complete pairs, so there is nothing to continue.");
        return Err(Failure::usage(message).with_hint(
            "The same command goes on with an interrupted run; a comparison begins without `--continue`.",
        ));
    }
    Ok(Continued { folder, header: data.header, sessions })
}

impl Continued {
    /// Another seed than those of the sessions before: each draws its orders anew.
    pub(crate) fn next_seed(&self) -> u64 {
        self.header.seed + 1
    }

    /// Whether pairs of this plan may count beside those of the run.
    ///
    /// # Errors
    /// Where the verdict of both would not be valid.
    pub(crate) fn refuse_another(&self, plan: &Plan) -> Done {
        let refused = |why: String, hint: &str| {
            let message = format!("{} can't be continued: {why}.", self.folder);
            Err(Failure::usage(message).with_hint(hint))
        };
        const SAME: &str = "Give the same suite, targets and options as that run had.";
        if self.header.suite != plan.suite.name {
            let why =
                format!("it ran the suite `{}`, not `{}`", self.header.suite, plan.suite.name);
            return refused(why, SAME);
        }
        let both = [("this command", &plan.experiments), ("it", &self.header.experiments)];
        for (whose, experiments) in both {
            let is_ended_by_another_rule = |of: &ExperimentFacts| {
                of.comparison.as_ref().is_none_or(|comparison| !comparison.stop.is_until_decided)
            };
            if let Some(found) = experiments.iter().find(|one| is_ended_by_another_rule(one)) {
                let why = format!("{whose} does not compare `{}` until decided", found.name);
                return refused(why, "Only `--until-decided` stays valid over sessions.");
            }
        }
        if let Some(found) = plan.experiments.iter().find(|one| one.pairs_per_unit() > 1) {
            let why = format!("several pairs of `{}` share a restart or a load", found.name);
            return refused(why, "`restart_each = \"pair\"` can be continued.");
        }
        let experiments = |all: &[ExperimentFacts]| all.iter().map(essence).collect();
        if let Some(found) = difference(
            "experiment",
            experiments(&self.header.experiments),
            experiments(&plan.experiments),
        ) {
            return refused(found, SAME);
        }
        let targets = |all: &[TargetFacts]| all.iter().map(address).collect();
        if let Some(found) =
            difference("target", targets(&self.header.targets), targets(&plan.targets))
        {
            return refused(found, SAME);
        }
        Ok(())
    }

    /// Says where the machine is another one; server versions are compared in the paper.
    pub(crate) fn warn(&self) {
        let now = dyno_observe::environment();
        let then = &self.header.environment;
        let facts = [
            ("host", &then.host, &now.host),
            ("CPU", &then.cpu_model, &now.cpu_model),
            ("kernel", &then.kernel, &now.kernel),
            ("dyno", &then.dyno_version, &now.dyno_version),
            ("dyno's SHA-256", &then.binary_sha256, &now.binary_sha256),
        ];
        for (name, then, now) in facts.into_iter().filter(|(_, then, now)| then != now) {
            output::talk(&format!(
                "warning: {} had another {name} ({then} instead of {now}); the paper says so.",
                self.folder
            ));
        }
    }
}

/// What decides what an experiment measures and how it is judged, by its name; not when it ends.
fn essence(of: &ExperimentFacts) -> (String, Map<String, Value>) {
    let mut own = of.clone();
    for text in [&mut own.title, &mut own.title_zh, &mut own.description, &mut own.description_zh] {
        text.clear();
    }
    own.gates.clear();
    own.published.clear();
    own.prepare = false;
    own.cleanup = false;
    (own.repeats, own.repeats_s) = (0, None);
    if let Some(comparison) = &mut own.comparison {
        comparison.stop = StopRule::default();
    }
    let mut all = object(&own);
    if let Some(Value::Object(comparison)) = all.remove("comparison") {
        all.extend(comparison);
    }
    (of.name.clone(), all)
}

/// How a target is reached.
fn address(of: &TargetFacts) -> (String, Map<String, Value>) {
    let all = object(of);
    let keys = ["url", "role", "nodes", "route", "shard_rule", "twin_of", "part_of"];
    (of.name.clone(), all.into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect())
}

fn object(of: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// The first thing in which two lists differ: its name, and what of it.
fn difference(
    what: &str,
    then: Vec<(String, Map<String, Value>)>,
    now: Vec<(String, Map<String, Value>)>,
) -> Option<String> {
    let names = |all: &[(String, Map<String, Value>)]| {
        all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ")
    };
    if names(&then) != names(&now) {
        return Some(format!("its {what}s are {}, not {}", names(&then), names(&now)));
    }
    then.iter().zip(&now).find_map(|((name, then), (_, now))| {
        let keys = then.keys().chain(now.keys());
        let key = keys.into_iter().find(|key| then.get(*key) != now.get(*key))?;
        let shown =
            |all: &Map<String, Value>| all.get(key).map_or("none".to_owned(), Value::to_string);
        Some(format!("`{key}` of its {what} `{name}` was {}, not {}", shown(then), shown(now)))
    })
}
