//! `dyno bench URL [URL]`: the suite `mixed` on one database or two, with nothing else to know.

mod leftovers;
mod preflight;

use super::ending::EndLength;
use super::run::{Keeping, find_unfinished, run_kept, seconds};
use super::runs::RunsFolder;
use crate::terminal::human_time;
use crate::{Done, families};
use dyno_facts::SecretUrl;
use dyno_facts::format::bytes;
use dyno_load::catalog;
use dyno_runner as runner;
use dyno_runner::databases::{ReachedDatabase, reach};
use dyno_runner::failure::Failure;
use dyno_runner::family::{self, Trials, ask};
use dyno_runner::output;
use dyno_runner::watch::asking;
use dyno_suite::{Overrides, Plan, Suite, least_budget};
use preflight::BenchNeed;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The suite that is run.
const SUITE: &str = "mixed";
/// How many times as long as guessed the whole may take: the guesses know no other load of the machine, no slow disk, and
/// neither checks nor papers of short trials. Servers are asked more around a trial than embedded databases are.
const SLOWEST: [(bool, f64); 2] = [(true, 1.3), (false, 1.6)];
/// How targets are called, in their order.
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dyno bench mysql://root@127.0.0.1/test
  dyno bench postgres://me@10.0.0.5/test mysql://me@10.0.0.6/test --budget 30m --yes

The database of each URL must exist; one schema of it is all that the user needs. Nothing is done before the
question is answered. The tables are removed at the end; tables that were there before are not touched.
An interrupted run leaves its tables and says so. It goes on, and drops them in the end, when the same command is
given again; with --remove that only drops them.

Passwords are taken from the URL, from DYNO_PASSWORD_A and DYNO_PASSWORD_B, from ~/.pgpass or ~/.my.cnf, or
asked for. Exit codes: 0 fine, 1 failed or refused, 2 wrong usage, 4 a check of the data failed.")]
pub(crate) struct BenchArguments {
    /// The database; two are compared in pairs, the first one being the baseline.
    #[arg(required = true, num_args = 1..=2, value_name = "URL")]
    urls: Vec<String>,
    /// About how long the whole may take, such as 10m or 2h: this sets the size of the data and the length of the windows.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    budget: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Drop the tables that interrupted runs of `dyno bench` have left on these databases, and measure nothing.
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    runs: RunsFolder,
}

pub(crate) fn run(arguments: &BenchArguments) -> Done {
    let named = NAMES.iter().zip(&arguments.urls);
    let overrides = Overrides {
        targets: named.map(|(name, url)| ((*name).to_owned(), SecretUrl::new(url))).collect(),
        budget_s: guessed_budget(arguments)?,
        ..Overrides::default()
    };
    if arguments.remove {
        return drop_leftovers(arguments, &overrides);
    }
    let suite = Suite::open(SUITE, &crate::offers())?;
    let mut plan = match Plan::build(&suite, &overrides) {
        Ok(plan) => plan,
        Err(error) => {
            return Err(too_short(&suite, &overrides, arguments).unwrap_or_else(|| error.into()));
        }
    };
    runner::check_options(families(), &mut plan)?;
    let keeping = Keeping::of(&arguments.runs.dir, false);
    let keeping = Keeping { length: EndLength::Sentences, is_bench: true, ..keeping };
    let goes_on = find_unfinished(&plan, &keeping)?;
    let reached = reach_all(&overrides)?;
    let families = all_families(&plan)?;
    let need = BenchNeed::of(&plan);
    let in_the_way = || all_in_the_way(&reached, &families, goes_on.as_deref());
    let refuse = |missing: Vec<String>| -> Done {
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("Nothing was done: {}", missing.join(" "));
        let left = leftovers_in_words(&arguments.runs.dir, &overrides, &reached)?;
        let hint = "Put that right, or name another database.".to_owned();
        Err(Failure::new(message).with_hint(left.unwrap_or(hint)))
    };
    let mut missing = Vec::new();
    for (name, target) in &reached {
        let look = || preflight::missing(name, &target.database, target.same_host, &need);
        missing.extend(asking(name, target, look)?);
    }
    missing.extend(in_the_way()?);
    refuse(missing)?;
    let trial_table = preflight::trial_table();
    tell(&plan, slowest(&arguments.urls), &need, &families, &trial_table);
    agree(arguments)?;
    // Others may have made theirs while the question was open.
    refuse(in_the_way()?)?;
    for (name, target) in &reached {
        let tried = || preflight::try_rights(name, &target.database, &trial_table);
        asking(name, target, tried)?;
    }
    let done = run_kept(&plan, &keeping).and_then(|run| run.verdict);
    let Err(failure) = done else { return Ok(()) };
    let left = leftovers_in_words(&arguments.runs.dir, &overrides, &reached).unwrap_or_default();
    let hints = failure.hint.clone().filter(|_| !runner::signals::has_come()).into_iter();
    let hint = left.map(|left| hints.chain([left]).collect::<Vec<_>>().join(" "));
    Err(failure.hinted(hint))
}

/// Where tables of interrupted runs are, and what becomes of them.
fn leftovers_in_words(
    dir: &Path,
    overrides: &Overrides,
    reached: &[(String, ReachedDatabase)],
) -> Result<Option<String>, Failure> {
    let mut words = Vec::new();
    for ((_, url), (name, target)) in overrides.targets.iter().zip(reached) {
        for mut left in leftovers::on(dir, url)? {
            // Of a server that is gone all are named.
            let _ = asking(name, target, || left.disown(target));
            if left.tables.is_empty() {
                continue;
            }
            let (run, tables) = (left.run.display(), left.tables.join(", "));
            words.push(format!("The run {run} has left tables on {}: {tables}.", url.redacted()));
        }
    }
    if words.is_empty() {
        return Ok(None);
    }
    words.push(
        "The command of that run goes on with it and drops them in the end; with `--remove` it only drops them."
            .to_owned(),
    );
    Ok(Some(words.join(" ")))
}

/// `--remove`.
fn drop_leftovers(arguments: &BenchArguments, overrides: &Overrides) -> Done {
    let mut found = Vec::new();
    for (name, url) in &overrides.targets {
        let left = leftovers::on(&arguments.runs.dir, url)?;
        found.extend(left.into_iter().map(|left| (name, url.redacted(), left)));
    }
    if found.is_empty() && !leftovers::is_known(&arguments.runs.dir)? {
        let message =
            format!("There is no run of `dyno bench` in {}.", arguments.runs.dir.display());
        let hint = "`--dir` names the folder in which the run is kept that has left the tables.";
        return Err(Failure::new(message).with_hint(hint));
    }
    if found.is_empty() {
        output::talk("No interrupted run has left tables there.");
        return Ok(());
    }
    let reached = reach_all(overrides)?;
    let mut all = Vec::new();
    for (name, url, mut left) in found {
        let Some((_, target)) = reached.iter().find(|(other, _)| other == name) else { continue };
        let others = left.disown(target)?.join(", ");
        if !others.is_empty() {
            let run = left.run.display();
            output::talk(&format!(
                "These tables are kept on {url}, {run} has not made them: {others}."
            ));
        }
        if !left.tables.is_empty() {
            let tables = left.tables.join(", ");
            output::talk(&format!("These tables are dropped on {url}: {tables}."));
        }
        all.push((target, left));
    }
    if all.iter().any(|(_, left)| !left.tables.is_empty()) {
        agree(arguments)?;
    }
    all.iter().try_for_each(|(target, left)| left.drop_from(target))
}

/// Asks, unless `--yes` has answered.
fn agree(arguments: &BenchArguments) -> Done {
    if arguments.yes || is_agreed()? {
        return Ok(());
    }
    Err(Failure::new("Nothing was done.").with_hint("`--yes` answers the question."))
}

fn reach_all(overrides: &Overrides) -> Result<Vec<(String, ReachedDatabase)>, Failure> {
    let reach = |(name, url): &(String, SecretUrl)| {
        let reached =
            reach(name, url.expose()).map_err(|failure| failure.at(format!("target {name}")))?;
        Ok((name.clone(), reached))
    };
    overrides.targets.iter().map(reach).collect()
}

/// A family for each set of tables.
fn all_families(plan: &Plan) -> Result<Vec<Box<dyn Trials>>, Failure> {
    let loading = plan.experiments.iter().filter(|planned| planned.prepare);
    loading.map(|planned| family::experiment(families(), plan, planned)).collect()
}

/// Tables of somebody else's with the names that would be used: they would be measured as they are. Those that the run
/// has made that is gone on with are its own.
fn all_in_the_way(
    reached: &[(String, ReachedDatabase)],
    families: &[Box<dyn Trials>],
    goes_on: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let header = goes_on.map(dyno_store::read_header).transpose()?;
    let mut all = Vec::new();
    for (name, target) in reached {
        let mut own: BTreeSet<&str> = header.iter().flat_map(|header| header.made(name)).collect();
        if let Some(header) = header.as_ref().filter(|_| !own.is_empty()) {
            let unmarked = asking(name, target, || leftovers::unmarked(&target.database, header))?;
            own.retain(|table| !unmarked.contains(*table));
        }
        all.extend(asking(name, target, || in_the_way(name, target, families, &own))?);
    }
    Ok(all)
}

fn slowest(urls: &[String]) -> f64 {
    let is_embedded = urls.iter().all(|url| url.starts_with("sqlite:"));
    SLOWEST.iter().find(|(embedded, _)| *embedded == is_embedded).map_or(1.0, |(_, times)| *times)
}

/// The seconds that the run may be guessed to take, so that it stays within the budget on a slow machine too.
fn guessed_budget(arguments: &BenchArguments) -> Result<Option<f64>, Failure> {
    let budget_s = seconds("budget", Some(&arguments.budget))?;
    Ok(budget_s.map(|budget_s| budget_s / slowest(&arguments.urls)))
}

/// Of a budget that is too short: the hints of suites name options that this verb does not have.
fn too_short(suite: &Suite, overrides: &Overrides, arguments: &BenchArguments) -> Option<Failure> {
    let (least_s, guessed_s) = (Plan::smallest(suite, overrides)?.estimated_s, overrides.budget_s?);
    let slow_s = least_s * slowest(&arguments.urls);
    let message = format!(
        "The run takes about {:.0} s at its smallest, and up to {:.0} s on a slow or busy machine: more than the budget \
         of {}.",
        least_s.ceil(),
        slow_s.ceil(),
        arguments.budget
    );
    let hint = format!("Give it `--budget {}` at least.", least_budget(slow_s));
    (least_s > guessed_s).then(|| Failure::usage(message).with_hint(hint))
}

fn in_the_way(
    name: &str,
    target: &ReachedDatabase,
    families: &[Box<dyn Trials>],
    own: &BTreeSet<&str>,
) -> Result<Option<String>, Failure> {
    let listed =
        ask(&target.database.primary_admin(), async |session| catalog::tables(session).await)?;
    let mut found = BTreeSet::new();
    for family in families {
        let existing = family.existing(&target.database)?;
        // A family whose tables are one set names them all where it finds one. A proxy may list none of them.
        let is_listed = existing.iter().any(|table| listed.contains(table));
        found.extend(existing.into_iter().filter(|table| !is_listed || listed.contains(table)));
    }
    found.retain(|table| !own.contains(table.as_str()));
    let names: Vec<String> = found.into_iter().collect();
    Ok((!names.is_empty()).then(|| {
        format!("{name} has tables with the names that are needed: {}.", names.join(", "))
    }))
}

fn tell(
    plan: &Plan,
    slowest: f64,
    need: &BenchNeed,
    families: &[Box<dyn Trials>],
    trial_table: &str,
) {
    let tables: Vec<String> = families.iter().flat_map(|family| family.tables()).collect();
    let targets: Vec<String> = plan.targets.iter().map(|target| target.url.redacted()).collect();
    output::talk(&format!(
        "On {} these tables are created, and dropped in the end: {}.",
        targets.join(" and "),
        tables.join(", ")
    ));
    output::talk(&format!(
        "Before that, the table {trial_table} is created to try the user's rights, and dropped at once."
    ));
    output::talk(&format!(
        "It takes about {} (up to {} on a slow or busy machine), {} sessions and {} of disk on each.",
        human_time(plan.estimated_s),
        human_time(plan.estimated_s * slowest),
        need.sessions,
        bytes(need.disk_bytes)
    ));
    if plan.shrink < 1.0 {
        output::talk(
            "With this budget it is a rehearsal, with smaller data and shorter windows than the suite's: its figures \
             are no results.",
        );
    }
}

fn is_agreed() -> Result<bool, Failure> {
    output::talk_unended("Begin? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::new(format!("No answer can be read: {error}.")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_stays_within_its_budget_on_a_slow_machine_or_is_refused_with_what_it_takes() {
        let given = |url: &str, budget: &str| {
            let (urls, budget) = (vec![url.to_owned()], budget.to_owned());
            let runs = RunsFolder { dir: "dyno-runs".into() };
            BenchArguments { urls, budget, yes: true, remove: false, runs }
        };
        let plan = |url: &str, budget: &str| {
            let arguments = given(url, budget);
            let target = (NAMES[0].to_owned(), SecretUrl::new(url));
            let budget_s = guessed_budget(&arguments).expect("a time");
            let overrides = Overrides { targets: vec![target], budget_s, ..Overrides::default() };
            let suite = Suite::open(SUITE, &crate::offers()).expect("a suite");
            Plan::build(&suite, &overrides)
                .map(|plan| plan.estimated_s)
                .map_err(|_| too_short(&suite, &overrides, &arguments).expect("it says why"))
        };
        for url in ["sqlite:x.db", "postgres://u@h/d", "mysql://u@h/d"] {
            let refused = plan(url, "40s").expect_err("it would take longer");
            assert_eq!(refused.code, 2);
            let hint = refused.hint.expect("what it takes");
            let least = hint.split('`').nth(1).and_then(|given| given.strip_prefix("--budget "));
            let least = least.expect("a budget");
            let guessed_s = plan(url, least).expect("what is offered fits");
            let least_s = dyno_suite::seconds(least).expect("a time");
            assert!(guessed_s * slowest(&[url.to_owned()]) <= least_s, "{url} {guessed_s}");
        }
    }
}
