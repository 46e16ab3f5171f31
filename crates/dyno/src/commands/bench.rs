//! `dyno bench URL [URL]`: the suite `mixed` on one database or two, with nothing else to know. What a database
//! must allow is found out before anything is made, and the leftovers of interrupted runs are reported.

use super::run::{RunSettings, find_unfinished, parse_seconds, run_and_store};
use super::runs::RunsFolder;
use crate::terminal::human_time;
use crate::{CommandResult, families};
use dyno_core::{AdminSession, DbError, Dialect};
use dyno_facts::format::bytes;
use dyno_facts::{RunStatus, SecretUrl, StepAction, TableOrigin};
use dyno_load::query::{answer_if_any, is_pooled};
use dyno_load::{Unobserved, catalog};
use dyno_runner as runner;
use dyno_runner::databases::{Database, ReachedDatabase, are_costs_readable, reach};
use dyno_runner::failure::Failure;
use dyno_runner::family::{self, Trials, ask, remove_tables};
use dyno_runner::progress::LoadProgress;
use dyno_runner::watch::asking;
use dyno_runner::{lock_tables, output};
use dyno_store::Run;
use dyno_suite::{Overrides, Plan, Suite, least_budget};
use rustix::fs::statvfs;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// The suite that is run.
const SUITE: &str = "mixed";
/// Names of targets, in their order.
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/bench.txt").trim_ascii_end())]
pub(crate) struct BenchArguments {
    /// The database; two are compared in pairs, the first one being the baseline.
    #[arg(required = true, num_args = 1..=2, value_name = "URL")]
    urls: Vec<String>,
    /// About how long the whole may take, such as 10m or 2h: this sets the size of the data and the length of the
    /// windows.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_seconds)]
    budget: f64,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Drop the tables that interrupted runs of `dyno bench` have left on these databases, and measure nothing.
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    runs: RunsFolder,
}

/// Executes `dyno bench`.
pub(crate) fn run(arguments: &BenchArguments) -> CommandResult {
    let targets = NAMES.iter().zip(&arguments.urls);
    let mut overrides = Overrides {
        targets: targets.map(|(name, url)| ((*name).to_owned(), SecretUrl::new(url))).collect(),
        // So that it stays within the budget on a slow machine too.
        budget_s: Some(arguments.budget / slowdown_factor(&arguments.urls)),
        ..Overrides::default()
    };
    if arguments.remove {
        return drop_leftovers(arguments, &overrides);
    }
    let suite = Suite::open(SUITE, &crate::offers())?;
    overrides.costs_are_readable = are_costs_readable(&suite, &overrides);
    let mut plan = match Plan::build(&suite, &overrides) {
        Ok(plan) => plan,
        Err(error) => {
            return Err(
                short_budget_failure(&suite, &overrides, arguments).unwrap_or_else(|| error.into())
            );
        }
    };
    runner::check_options(families(), &mut plan)?;
    let dir = &arguments.runs.dir;
    let settings = RunSettings { dir: dir.clone(), is_bench: true, ..RunSettings::default() };
    let unfinished = find_unfinished(&plan, &settings)?;
    let databases = reach_all(&overrides)?;
    let families = all_families(&plan)?;
    let need = BenchNeed::new(&plan);
    let mut shortages = Vec::new();
    for (name, target) in &databases {
        shortages.extend(asking(name, target, || describe_shortages(name, target, &need))?);
    }
    shortages.extend(conflicting_tables(&databases, &families, unfinished.as_deref())?);
    refuse_if_any(&shortages, dir, &databases, &overrides)?;
    announce(&plan, slowdown_factor(&arguments.urls), &need, &families);
    confirm(arguments)?;
    // Others may have made theirs while the question was open.
    let conflicts = conflicting_tables(&databases, &families, unfinished.as_deref())?;
    refuse_if_any(&conflicts, dir, &databases, &overrides)?;
    let Err(failure) = run_and_store(&plan, &settings).and_then(|run| run.verdict) else {
        return Ok(());
    };
    let leftovers = describe_leftovers(dir, &databases, &overrides);
    let hints = failure.hint.clone().filter(|_| !runner::signals::has_come()).into_iter();
    let hint = leftovers.unwrap_or_default().map(|words| Vec::from_iter(hints.chain([words])));
    Err(failure.hinted(hint.map(|hints| hints.join(" "))))
}

/// Fails if there are problems, with a hint at the leftovers that may be their cause.
fn refuse_if_any(
    problems: &[String],
    dir: &Path,
    databases: &[(String, ReachedDatabase)],
    overrides: &Overrides,
) -> CommandResult {
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("Nothing was done: {}", problems.join(" "));
    let leftovers = describe_leftovers(dir, databases, overrides)?;
    let hint = "Put that right, or name another database.".to_owned();
    Err(Failure::new(message).with_hint(leftovers.unwrap_or(hint)))
}

/// Sentences on the tables of interrupted runs, and how they are removed.
fn describe_leftovers(
    dir: &Path,
    databases: &[(String, ReachedDatabase)],
    overrides: &Overrides,
) -> Result<Option<String>, Failure> {
    let mut leftovers = find_leftovers(dir, databases, overrides, false)?;
    leftovers.retain(|leftover| !leftover.tables.is_empty());
    let sentences = leftovers.iter().map(|Leftover { run, tables, url, .. }| {
        format!("The run {} has left tables on {url}: {}. ", run.display(), tables.join(", "))
    });
    let urls = BTreeSet::from_iter(leftovers.iter().map(|leftover| leftover.url.as_str()));
    let remedy = format!(
        "The command of that run resumes it and drops them in the end; with `--remove` it only drops them, as \
         `dyno bench {} --remove` does.",
        Vec::from_iter(urls).join(" ")
    );
    Ok((!leftovers.is_empty()).then(|| sentences.collect::<String>() + &remedy))
}

/// `--remove`.
fn drop_leftovers(arguments: &BenchArguments, overrides: &Overrides) -> CommandResult {
    let dir = &arguments.runs.dir;
    let databases = reach_all(overrides)?;
    let leftovers = find_leftovers(dir, &databases, overrides, true)?;
    if leftovers.is_empty() {
        let entries = dyno_store::list(dir)?;
        let mut headers = entries.iter().filter_map(|entry| entry.header.as_ref().ok());
        if !headers.any(|header| header.suite == SUITE) {
            let message = format!("There is no run of `dyno bench` in {}.", dir.display());
            let hint =
                "`--dir` names the folder in which the run is kept that has left the tables.";
            return Err(Failure::new(message).with_hint(hint));
        }
        output::talk("No interrupted run has left tables there.");
    }
    for Leftover { url, foreign_tables, tables, .. } in &leftovers {
        if !foreign_tables.is_empty() {
            let foreign_tables = foreign_tables.join(", ");
            output::talk(&format!("These tables of others are kept on {url}: {foreign_tables}."));
        }
        if !tables.is_empty() {
            output::talk(&format!("These tables are dropped on {url}: {}.", tables.join(", ")));
        }
    }
    if leftovers.iter().any(|leftover| !leftover.tables.is_empty()) {
        confirm(arguments)?;
    }
    leftovers.iter().try_for_each(Leftover::remove)
}

/// Asks, unless `--yes` has answered.
fn confirm(arguments: &BenchArguments) -> CommandResult {
    if arguments.yes {
        return Ok(());
    }
    output::talk_unended("Begin? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::new(format!("No answer can be read: {error}.")))?;
    match answer.trim() {
        "y" | "Y" | "yes" | "Yes" => Ok(()),
        _ => Err(Failure::new("Nothing was done.").with_hint("`--yes` answers the question.")),
    }
}

fn reach_all(overrides: &Overrides) -> Result<Vec<(String, ReachedDatabase)>, Failure> {
    let targets = overrides.targets.iter().map(|(name, url)| {
        let database = reach(name, url.expose());
        Ok((name.clone(), database.map_err(|failure| failure.at(format!("target {name}")))?))
    });
    targets.collect()
}

/// A family for each set of tables.
fn all_families(plan: &Plan) -> Result<Vec<Box<dyn Trials>>, Failure> {
    let loading = plan.experiments.iter().filter(|planned| planned.prepare);
    loading.map(|planned| family::experiment(families(), plan, planned)).collect()
}

/// Sentences on tables of others with the names that would be used: they would be measured as they are. Tables of the
/// continued run are its own.
fn conflicting_tables(
    databases: &[(String, ReachedDatabase)],
    families: &[Box<dyn Trials>],
    continued: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let header = continued.map(dyno_store::read_header).transpose()?;
    let mut sentences = Vec::new();
    for (name, target) in databases {
        let database = &target.database;
        let conflicts = asking(name, target, || {
            let mut own_tables: BTreeSet<&str> =
                header.iter().flat_map(|header| header.made(name)).collect();
            if let Some(header) = header.as_ref().filter(|_| !own_tables.is_empty()) {
                let unmarked = unmarked(database, &header.table_mark())?;
                own_tables.retain(|table| !unmarked.contains(*table));
            }
            let listed =
                ask(&database.primary_admin(), async |session| catalog::tables(session).await)?;
            let mut tables = BTreeSet::new();
            for family in families {
                let existing = family.existing(database)?;
                // A family whose tables are one set names them all if it finds one. A proxy may list none of them.
                let is_listed = existing.iter().any(|table| listed.contains(table));
                tables.extend(
                    existing.into_iter().filter(|table| !is_listed || listed.contains(table)),
                );
            }
            tables.retain(|table| !own_tables.contains(table.as_str()));
            Ok(Vec::from_iter(tables))
        })?;
        if !conflicts.is_empty() {
            let tables = conflicts.join(", ");
            sentences.push(format!("{name} has tables with the names that are needed: {tables}."));
        }
    }
    Ok(sentences)
}

/// The factor by which the whole may exceed the guess: guesses know no other load of the machine, no slow disk, and
/// neither checks nor papers of short trials. Servers are queried more around a trial than embedded databases.
fn slowdown_factor(urls: &[String]) -> f64 {
    if urls.iter().all(|url| url.starts_with("sqlite:")) { 1.3 } else { 1.6 }
}

/// The failure for a budget that is too short: the hints of suites name options that this verb does not have.
fn short_budget_failure(
    suite: &Suite,
    overrides: &Overrides,
    arguments: &BenchArguments,
) -> Option<Failure> {
    let (smallest_s, guessed_s) =
        (Plan::smallest(suite, overrides)?.estimated_s, overrides.budget_s?);
    let (slow_s, budget_s) = (smallest_s * slowdown_factor(&arguments.urls), arguments.budget);
    let message = format!(
        "The run takes about {:.0} s at its smallest, and up to {:.0} s on a slow or busy machine: more than the budget \
         of {budget_s} s.",
        smallest_s.ceil(),
        slow_s.ceil(),
    );
    let hint = format!("Give it `--budget {}` at least.", least_budget(slow_s));
    (smallest_s > guessed_s).then(|| Failure::usage(message).with_hint(hint))
}

/// Prints the tables, the time and the disk space that the bench takes.
fn announce(plan: &Plan, slowdown_factor: f64, need: &BenchNeed, families: &[Box<dyn Trials>]) {
    let tables: Vec<String> = families.iter().flat_map(|family| family.tables()).collect();
    let targets: Vec<String> = plan.targets.iter().map(|target| target.url.redacted()).collect();
    output::talk(&format!(
        "On {} these tables are created, and dropped in the end: {}.\n\
         It takes about {} (up to {} on a slow or busy machine), {} sessions and {} of disk on each.",
        targets.join(" and "),
        tables.join(", "),
        human_time(plan.estimated_s),
        human_time(plan.estimated_s * slowdown_factor),
        need.sessions,
        bytes(need.disk_bytes)
    ));
    if plan.shrink < 1.0 {
        output::talk(
            "With this budget it is a rehearsal, with smaller data and shorter windows than the suite's: its figures \
             aren't results.",
        );
    }
}

/// Sessions alongside those of the workers: for looking at the server, loading and checking.
const EXTRA_SESSIONS: u32 = 6;
/// Statements that a session prepares: TPC-C's, or those of sysbench on ten tables.
const STATEMENTS_PER_SESSION: u64 = 120;
/// Bytes on disk for a row of the largest table: the other tables, indexes and logs are in it.
const BYTES_PER_ROW: f64 = 700.0;

struct BenchNeed {
    sessions: u32,
    statements: u64,
    disk_bytes: f64,
}

impl BenchNeed {
    fn new(plan: &Plan) -> BenchNeed {
        let trials = plan.steps.iter().filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some(trial.workers),
            StepAction::Prepare | StepAction::Cleanup => None,
        });
        let workers = trials.max().unwrap_or(1);
        let sizes = plan.experiments.iter().filter_map(|planned| planned.data);
        let rows = sizes.map(|size| size.tables as f64 * size.rows_per_table as f64);
        BenchNeed {
            sessions: workers + EXTRA_SESSIONS,
            statements: u64::from(workers) * STATEMENTS_PER_SESSION,
            // One experiment's tables are dropped before those of the next are made.
            disk_bytes: rows.fold(0.0, f64::max) * BYTES_PER_ROW,
        }
    }
}

/// The limits that the server states; `None` if it does not.
#[derive(Debug, Default, PartialEq)]
struct Limits {
    /// Sessions that may still be opened.
    sessions_free: Option<i64>,
    statements_free: Option<i64>,
    data_folder: Option<String>,
    /// Reasons why a run is impossible, as ends of sentences that begin with the target's name.
    problems: Vec<&'static str>,
}

/// Sentences on what a target lacks.
fn describe_shortages(
    name: &str,
    target: &ReachedDatabase,
    need: &BenchNeed,
) -> Result<Vec<String>, Failure> {
    let driver = target.database.primary_admin();
    let limits = ask(&driver, async |session| match session.dialect() {
        Dialect::Mysql => mysql_limits(session).await,
        Dialect::Postgres if is_pooled(&driver, session).await? => {
            // What it says of itself would come through the pool.
            Ok(Limits { problems: vec![POOLED], ..Limits::default() })
        }
        Dialect::Postgres => postgres_limits(session).await,
        Dialect::Sqlite => Ok(Limits::default()),
    })?;
    let folder = limits.data_folder.as_ref().filter(|_| target.same_host);
    let disk = folder.and_then(|folder| statvfs(folder.as_str()).ok());
    let free_bytes = disk.map(|disk| disk.f_bavail as f64 * disk.f_frsize as f64);
    Ok(shortage_sentences(name, &limits, free_bytes, need))
}

const POOLED: &str = " is a pooler that gives the sessions of its server to other clients between transactions \
                      (PgBouncer's pool_mode = transaction or statement): settings and prepared statements of a session \
                      get lost. Name the server itself, or a pool by sessions.";

fn shortage_sentences(
    name: &str,
    limits: &Limits,
    free_bytes: Option<f64>,
    need: &BenchNeed,
) -> Vec<String> {
    let mut missing = Vec::new();
    let counts = [
        ("sessions", limits.sessions_free, u64::from(need.sessions), SESSIONS_LIMIT),
        ("prepared statements", limits.statements_free, need.statements, "max_prepared_stmt_count"),
    ];
    for (kind, free, needed, setting) in counts {
        if let Some(free) = free.filter(|free| *free < needed as i64) {
            let free = free.max(0);
            missing
                .push(format!("{name} takes {free} more {kind}, {needed} are needed ({setting})."));
        }
    }
    missing.extend(limits.problems.iter().map(|problem| format!("{name}{problem}")));
    if let Some(free) = free_bytes.filter(|free| *free < need.disk_bytes) {
        let (free, wanted) = (bytes(free), bytes(need.disk_bytes));
        missing.push(format!("{name} has {free} of disk left, {wanted} are needed."));
    }
    missing
}

const SESSIONS_LIMIT: &str = "max_connections, or the user's own limit";
const READ_ONLY: &str = " is read-only.";

/// The first row as integers; any other value is `None`.
async fn numbers<const N: usize>(
    session: &mut AdminSession<'_>,
    sql: &str,
) -> Result<[Option<i64>; N], DbError> {
    let answer = answer_if_any(session, sql).await?;
    let row = answer.and_then(|answer| answer.rows.into_iter().next()).unwrap_or_default();
    Ok(std::array::from_fn(|at| row.get(at)?.as_ref()?.parse().ok()))
}

/// The problems whose flag the server has set.
fn problems(flags: &[(Option<i64>, &'static str)]) -> Vec<&'static str> {
    flags.iter().filter(|(flag, _)| *flag == Some(1)).map(|(_, problem)| *problem).collect()
}

async fn mysql_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let settings = "SELECT @@max_connections, @@max_user_connections, @@max_prepared_stmt_count, \
                    @@read_only, DATABASE() IS NULL";
    let [connections, user_limit, statements, read_only, lacks_database] =
        numbers(session, settings).await?;
    let mut used = Vec::new();
    for name in ["Threads_connected", "Prepared_stmt_count"] {
        let status = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let [_, value] = numbers(session, &status).await?;
        used.push(value.unwrap_or(0));
    }
    // This session is one of them. 0 is not a limit of a user's own.
    let user_limit = user_limit.filter(|limit| *limit > 0).map(|limit| limit - 1);
    let free = connections.map(|limit| limit - used[0]);
    let folder = answer_if_any(session, "SELECT @@datadir").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(user_limit).min(),
        statements_free: statements.map(|limit| limit - used[1]),
        data_folder: folder.and_then(|answer| answer.single().map(str::to_owned)),
        problems: problems(&[
            (read_only, READ_ONLY),
            (lacks_database, ": the URL names no database."),
        ]),
    })
}

async fn postgres_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let limits = "SELECT current_setting('max_connections')::int \
                  - current_setting('superuser_reserved_connections')::int \
                  - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
                  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), \
                  (SELECT datconnlimit FROM pg_database WHERE datname = current_database()), \
                  pg_is_in_recovery()::int, (current_schema() IS NULL)::int, \
                  (NOT has_schema_privilege(current_schema(), 'CREATE'))::int";
    let [free, role_limit, database_limit, recovery, lacks_schema, cannot_create] =
        numbers(session, limits).await?;
    // -1 is not a limit.
    let account_limits =
        [role_limit, database_limit].into_iter().flatten().filter(|limit| *limit >= 0);
    let folder = answer_if_any(session, "SHOW data_directory").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(account_limits).min(),
        statements_free: None,
        data_folder: folder.and_then(|answer| answer.single().map(str::to_owned)),
        problems: problems(&[
            (recovery, READ_ONLY),
            (lacks_schema, ": no schema of search_path exists for this user."),
            (
                cannot_create,
                ": the user may create no tables in its schema (GRANT CREATE ON SCHEMA).",
            ),
        ]),
    })
}

/// Tables that a run has made on one database and has not dropped.
struct Leftover<'a> {
    run: PathBuf,
    plan: Option<Plan>,
    /// The run's name of the database.
    target: String,
    database: &'a Database,
    /// Without the password.
    url: String,
    tables: Vec<String>,
    /// Tables that others have made instead of the run's.
    foreign_tables: Vec<String>,
}

/// The tables that runs of `dyno bench` in `dir` that are no longer executed have left on these databases. If a server
/// does not answer, all are named as left, unless they are `to_be_removed`.
fn find_leftovers<'a>(
    dir: &Path,
    databases: &'a [(String, ReachedDatabase)],
    overrides: &Overrides,
    to_be_removed: bool,
) -> Result<Vec<Leftover<'a>>, Failure> {
    let mut leftovers = Vec::new();
    for entry in dyno_store::list(dir)? {
        let is_unfinished =
            matches!(entry.status(), Some(RunStatus::Interrupted | RunStatus::Failed(_)));
        let Ok(header) = &entry.header else { continue };
        if header.suite != SUITE || !is_unfinished {
            continue;
        }
        for ((_, url), (name, target)) in overrides.targets.iter().zip(databases) {
            let (url, database) = (url.redacted(), &target.database);
            for recorded in header.targets.iter().filter(|recorded| recorded.url.redacted() == url)
            {
                let tables: Vec<_> = header.made(&recorded.name).map(str::to_owned).collect();
                if tables.is_empty() {
                    continue;
                }
                let unmarked = asking(name, target, || unmarked(database, &header.table_mark()));
                let unmarked = if to_be_removed { unmarked? } else { unmarked.unwrap_or_default() };
                let (foreign_tables, tables) =
                    tables.into_iter().partition(|table| unmarked.contains(table));
                leftovers.push(Leftover {
                    run: entry.path.clone(),
                    plan: Plan::from_header(header),
                    target: recorded.name.clone(),
                    database,
                    url: url.clone(),
                    tables,
                    foreign_tables,
                });
            }
        }
    }
    Ok(leftovers)
}

/// The tables of a database that have not this mark.
fn unmarked(database: &Database, mark: &str) -> Result<HashSet<String>, Failure> {
    ask(&database.primary_admin(), async |session| catalog::unmarked(session, mark).await)
}

impl Leftover<'_> {
    /// Drops them. The run still continues when its command is given again: it loads again.
    fn remove(&self) -> CommandResult {
        let mut run = Run::open(&self.run)?;
        if let Some(plan) = &self.plan {
            let workloads: BTreeSet<&str> =
                plan.experiments.iter().map(|planned| planned.workload.as_str()).collect();
            let locks = workloads
                .into_iter()
                .map(|workload| lock_tables(self.database, workload, &Unobserved));
            let _locks = locks.collect::<Result<Vec<_>, _>>()?;
            for family in all_families(plan)? {
                let progress = LoadProgress::new("remove tables");
                remove_tables(&*family, self.database, &self.tables, &progress)?;
            }
        }
        run.update(|header| {
            let tables = header.tables.entry(self.target.clone()).or_default();
            let origins = tables.values_mut().filter(|origin| **origin == TableOrigin::Made);
            origins.for_each(|origin| *origin = TableOrigin::Dropped);
        })?;
        run.finish(RunStatus::Interrupted)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: BenchNeed = BenchNeed { sessions: 22, statements: 1_920, disk_bytes: 2e9 };

    #[test]
    fn what_is_there_is_not_missed() {
        let enough =
            Limits { sessions_free: Some(22), statements_free: Some(1_920), ..Limits::default() };
        assert!(shortage_sentences("a", &enough, Some(2e9), &NEED).is_empty());
        assert!(shortage_sentences("a", &Limits::default(), None, &NEED).is_empty(), "unknown");
    }

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let limits = Limits {
            sessions_free: Some(-3),
            statements_free: Some(100),
            data_folder: None,
            problems: vec![READ_ONLY, POOLED, ": the URL names no database."],
        };
        let text = shortage_sentences("a", &limits, Some(1e9), &NEED).join("\n");
        for part in [
            "takes 0 more sessions, 22 are needed",
            "takes 100 more prepared statements, 1920 are needed",
            "a is read-only.",
            "a is a pooler that gives the sessions of its server to other clients",
            "a: the URL names no database.",
            "of disk left",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// The seconds that a bench within this budget is estimated to take.
    fn estimate(url: &str, budget: &str) -> Result<f64, Failure> {
        let (urls, budget) = (vec![url.to_owned()], parse_seconds(budget).expect("a time"));
        let runs = RunsFolder { dir: "dyno-runs".into() };
        let arguments = BenchArguments { urls, budget, yes: true, remove: false, runs };
        let target = (NAMES[0].to_owned(), SecretUrl::new(url));
        let budget_s = Some(arguments.budget / slowdown_factor(&arguments.urls));
        let overrides = Overrides { targets: vec![target], budget_s, ..Overrides::default() };
        let suite = Suite::open(SUITE, &dyno_runner::family::offers(crate::families::FAMILIES));
        let suite = suite.expect("a suite");
        Plan::build(&suite, &overrides)
            .map(|plan| plan.estimated_s)
            .map_err(|_| short_budget_failure(&suite, &overrides, &arguments).expect("it says why"))
    }

    #[test]
    fn a_bench_stays_within_its_budget_on_a_slow_machine_or_is_refused_with_what_it_takes() {
        for url in ["sqlite:x.db", "postgres://u@h/d", "mysql://u@h/d"] {
            let failure = estimate(url, "40s").expect_err("it would take longer");
            assert_eq!(failure.code, 2);
            let hint = failure.hint.expect("what it takes");
            let budget = hint.split('`').nth(1).and_then(|text| text.strip_prefix("--budget "));
            let budget = budget.expect("a budget");
            let guessed_s = estimate(url, budget).expect("what is offered fits");
            let budget_s = dyno_suite::seconds(budget).expect("a time");
            assert!(
                guessed_s * slowdown_factor(&[url.to_owned()]) <= budget_s,
                "{url} {guessed_s}"
            );
        }
    }
}
