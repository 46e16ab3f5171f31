//! `dyno bench URL [URL]`: the suite `mixed` on one database or two, with nothing else to know. What a database
//! must allow is found out before anything is made, and what interrupted runs have left there is told.

use super::compare::EndLength;
use super::run::{Keeping, find_unfinished, run_kept, seconds};
use super::runs::RunsFolder;
use crate::terminal::human_time;
use crate::{Done, families};
use dyno_core::{AdminDriver, AdminSession, AnswerTable, DbError, Dialect, Session};
use dyno_facts::format::bytes;
use dyno_facts::{RunHeader, RunStatus, SecretUrl, StepAction, TableOrigin};
use dyno_load::query::{answer, answer_if_any, is_pooled};
use dyno_load::{Unobserved, catalog};
use dyno_runner as runner;
use dyno_runner::databases::{Database, ReachedDatabase, reach};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{self, Trials, ask, remove_tables};
use dyno_runner::progress::LoadProgress;
use dyno_runner::watch::asking;
use dyno_runner::{TableLock, lock_tables, output};
use dyno_store::Run;
use dyno_suite::{Overrides, Plan, Suite, least_budget};
use rustix::fs::statvfs;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The suite that is run.
const SUITE: &str = "mixed";
/// Factor by which the whole may exceed the guess, for embedded databases and for others: guesses know no other load of the
/// machine, no slow disk, and neither checks nor papers of short trials. Servers are asked more around a trial than embedded databases are.
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
        let left = leftovers_in_words(&arguments.runs.dir, &overrides, &reached, &plan)?;
        let hint = "Put that right, or name another database.".to_owned();
        Err(Failure::new(message).with_hint(left.unwrap_or(hint)))
    };
    let mut lacking = Vec::new();
    for (name, target) in &reached {
        let look = || missing(name, &target.database, target.same_host, &need);
        lacking.extend(asking(name, target, look)?);
    }
    lacking.extend(in_the_way()?);
    refuse(lacking)?;
    let trial_table = trial_table();
    tell(&plan, slowest(&arguments.urls), &need, &families, &trial_table);
    agree(arguments)?;
    // Others may have made theirs while the question was open.
    refuse(in_the_way()?)?;
    for (name, target) in &reached {
        let tried = || try_rights(name, &target.database, &trial_table);
        asking(name, target, tried)?;
    }
    let done = run_kept(&plan, &keeping).and_then(|run| run.verdict);
    let Err(failure) = done else { return Ok(()) };
    let left = leftovers_in_words(&arguments.runs.dir, &overrides, &reached, &plan);
    let left = left.unwrap_or_default();
    let hints = failure.hint.clone().filter(|_| !runner::signals::has_come()).into_iter();
    let hint = left.map(|left| hints.chain([left]).collect::<Vec<_>>().join(" "));
    Err(failure.hinted(hint))
}

/// Where tables of interrupted runs are, and what becomes of them.
fn leftovers_in_words(
    dir: &Path,
    overrides: &Overrides,
    reached: &[(String, ReachedDatabase)],
    plan: &Plan,
) -> Result<Option<String>, Failure> {
    let mut words = Vec::new();
    let mut urls = Vec::new();
    for ((_, url), (name, target)) in overrides.targets.iter().zip(reached) {
        let mut all = leftovers_on(dir, url)?;
        // Of a server that is gone all are named.
        for left in &mut all {
            let _ = asking(name, target, || left.disown(target));
        }
        // Those of a run that is alive are not left.
        let marked = asking(name, target, || marked_leftover(target, plan, &all));
        all.extend(marked.ok().flatten());
        all.retain(|left| !left.tables.is_empty());
        for left in &all {
            let (run, tables) = (&left.words, left.tables.join(", "));
            words.push(format!("{run} has left tables on {}: {tables}.", url.redacted()));
        }
        if !all.is_empty() {
            urls.push(url.redacted());
        }
    }
    if words.is_empty() {
        return Ok(None);
    }
    words.push(format!(
        "The command of that run goes on with it and drops them in the end; with `--remove` it only drops them, as \
         `dyno bench {} --remove` does.",
        urls.join(" ")
    ));
    Ok(Some(words.join(" ")))
}

/// `--remove`.
fn drop_leftovers(arguments: &BenchArguments, overrides: &Overrides) -> Done {
    let reached = reach_all(overrides)?;
    let suite = Suite::open(SUITE, &crate::offers())?;
    let mut plan = Plan::build(&suite, &Overrides { budget_s: None, ..overrides.clone() })?;
    runner::check_options(families(), &mut plan)?;
    let mut found = Vec::new();
    for ((_, url), (name, target)) in overrides.targets.iter().zip(&reached) {
        let mut all = leftovers_on(&arguments.runs.dir, url)?;
        all.extend(asking(name, target, || marked_leftover(target, &plan, &all))?);
        found.extend(all.into_iter().map(|left| (target, url.redacted(), left)));
    }
    if found.is_empty() && !is_known(&arguments.runs.dir)? {
        let message =
            format!("There is no run of `dyno bench` in {}.", arguments.runs.dir.display());
        let hint = "`--dir` names the folder in which the run is kept that has left the tables.";
        return Err(Failure::new(message).with_hint(hint));
    }
    if found.is_empty() {
        output::talk("No interrupted run has left tables there.");
        return Ok(());
    }
    let mut all = Vec::new();
    for (target, url, mut left) in found {
        let others = left.disown(target)?.join(", ");
        if !others.is_empty() {
            output::talk(&format!(
                "These tables are kept on {url}, {} has not made them: {others}.",
                left.words
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
            let mark = header.table_mark();
            let unmarked = asking(name, target, || unmarked(&target.database, &mark))?;
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
    let (slow_s, budget_s) =
        (least_s * slowest(&arguments.urls), dyno_suite::seconds(&arguments.budget)?);
    let message = format!(
        "The run takes about {:.0} s at its smallest, and up to {:.0} s on a slow or busy machine: more than the budget \
         of {budget_s} s.",
        least_s.ceil(),
        slow_s.ceil(),
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

/// Sessions beside those of the workers: for looking at the server, loading and checking.
const SESSIONS_BESIDE: u32 = 6;
/// Statements that a session prepares: TPC-C's, or those of sysbench on ten tables.
const STATEMENTS_EACH: u64 = 120;
/// Bytes on disk for a row of the largest table: the other tables, indexes and logs are in it.
const BYTES_PER_ROW: f64 = 700.0;

pub(super) struct BenchNeed {
    pub(super) sessions: u32,
    statements: u64,
    pub(super) disk_bytes: f64,
}

impl BenchNeed {
    pub(super) fn of(plan: &Plan) -> BenchNeed {
        let trials = plan.steps.iter().filter_map(|step| match &step.action {
            StepAction::Trial(trial) => Some(trial.workers),
            StepAction::Prepare | StepAction::Cleanup => None,
        });
        let workers = trials.max().unwrap_or(1);
        let sizes = plan.experiments.iter().filter_map(|planned| planned.data);
        let rows = sizes.map(|size| size.tables as f64 * size.rows_per_table as f64);
        BenchNeed {
            sessions: workers + SESSIONS_BESIDE,
            statements: u64::from(workers) * STATEMENTS_EACH,
            // One experiment's tables are dropped before those of the next are made.
            disk_bytes: rows.fold(0.0, f64::max) * BYTES_PER_ROW,
        }
    }
}

/// What the server says of itself; `None` where it does not.
#[derive(Debug, Default, PartialEq)]
struct Limits {
    /// Sessions that may still be opened.
    sessions_free: Option<i64>,
    statements_free: Option<i64>,
    is_read_only: bool,
    /// Why no table can be made, in a sentence.
    no_tables: Option<String>,
    data_folder: Option<String>,
    /// A pooler gives the server's sessions to other clients between transactions.
    is_pooled: bool,
}

/// What is missing on a target, in sentences.
pub(super) fn missing(
    name: &str,
    database: &Database,
    same_host: bool,
    need: &BenchNeed,
) -> Result<Vec<String>, Failure> {
    let limits = limits(&database.primary_admin())?;
    let folder = limits.data_folder.as_ref().filter(|_| same_host);
    let disk = folder.and_then(|folder| statvfs(folder.as_str()).ok());
    let free_bytes = disk.map(|disk| disk.f_bavail as f64 * disk.f_frsize as f64);
    Ok(sentences(name, &limits, free_bytes, need))
}

fn sentences(
    name: &str,
    limits: &Limits,
    free_bytes: Option<f64>,
    need: &BenchNeed,
) -> Vec<String> {
    let mut missing = Vec::new();
    if let Some(free) = limits.sessions_free.filter(|free| *free < i64::from(need.sessions)) {
        missing.push(format!(
            "{name} takes {} more sessions, {} are needed (max_connections, or the user's own limit).",
            free.max(0),
            need.sessions
        ));
    }
    if let Some(free) = limits.statements_free.filter(|free| *free < need.statements as i64) {
        missing.push(format!(
            "{name} takes {} more prepared statements, {} are needed (max_prepared_stmt_count).",
            free.max(0),
            need.statements
        ));
    }
    if limits.is_read_only {
        missing.push(format!("{name} is read-only."));
    }
    if limits.is_pooled {
        missing.push(format!(
            "{name} is a pooler that gives the sessions of its server to other clients between transactions \
             (PgBouncer's pool_mode = transaction or statement): settings and prepared statements of a session get \
             lost. Name the server itself, or a pool by sessions."
        ));
    }
    missing.extend(limits.no_tables.as_ref().map(|why| format!("{name}: {why}")));
    if let Some(free) = free_bytes.filter(|free| *free < need.disk_bytes) {
        let (free, wanted) = (bytes(free), bytes(need.disk_bytes));
        missing.push(format!("{name} has {free} of disk left, {wanted} are needed."));
    }
    missing
}

fn limits(driver: &AdminDriver<'_>) -> Result<Limits, Failure> {
    ask(driver, async |session| {
        let limits = match session.dialect() {
            Dialect::Mysql => mysql_limits(session).await,
            Dialect::Postgres => match is_pooled(driver, session).await {
                // What it says of itself would come through the pool.
                Ok(true) => Ok(Limits { is_pooled: true, ..Limits::default() }),
                Ok(false) => postgres_limits(session).await,
                Err(error) => Err(error),
            },
            Dialect::Sqlite => Ok(Limits::default()),
        };
        limits.map_err(|error| Failure::from(&error))
    })
}

/// The first row as integers; what is no integer is `None`.
fn numbers(answer: Option<&AnswerTable>) -> Vec<Option<i64>> {
    let row = answer.and_then(|answer| answer.rows.first());
    let cell = |cell: &Option<String>| cell.as_ref().and_then(|text| text.parse().ok());
    row.map_or(Vec::new(), |row| row.iter().map(cell).collect())
}

async fn mysql_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let settings = "SELECT @@max_connections, @@max_user_connections, @@max_prepared_stmt_count, \
                    @@read_only, DATABASE() IS NULL";
    let asked = answer_if_any(session, settings).await?;
    let asked = numbers(asked.as_ref());
    let [connections, of_user, statements, read_only, homeless] =
        [0, 1, 2, 3, 4].map(|at| asked.get(at).copied().flatten());
    let status = |name: &str| format!("SHOW GLOBAL STATUS LIKE '{name}'");
    let mut used = Vec::new();
    for name in ["Threads_connected", "Prepared_stmt_count"] {
        let answer = answer_if_any(session, &status(name)).await?;
        let value = answer.and_then(|answer| answer.rows.first()?.get(1)?.clone()?.parse().ok());
        used.push(value.unwrap_or(0_i64));
    }
    // This session is one of them. 0 is no limit of a user's own.
    let of_user = of_user.filter(|limit| *limit > 0).map(|limit| limit - 1);
    let free = connections.map(|most| most - used[0]);
    let folder = answer_if_any(session, "SELECT @@datadir").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(of_user).min(),
        statements_free: statements.map(|most| most - used[1]),
        is_read_only: read_only == Some(1),
        no_tables: (homeless == Some(1)).then(|| "the URL names no database.".to_owned()),
        data_folder: folder.and_then(|answer| answer.rows.first()?.first()?.clone()),
        is_pooled: false,
    })
}

async fn postgres_limits(session: &mut AdminSession<'_>) -> Result<Limits, DbError> {
    let limits = "SELECT current_setting('max_connections')::int \
                  - current_setting('superuser_reserved_connections')::int \
                  - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
                  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), \
                  (SELECT datconnlimit FROM pg_database WHERE datname = current_database()), \
                  pg_is_in_recovery()::int, (current_schema() IS NULL)::int, \
                  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::int";
    let asked = answer_if_any(session, limits).await?;
    let asked = numbers(asked.as_ref());
    let [free, of_role, of_database, recovery, homeless, creates] =
        [0, 1, 2, 3, 4, 5].map(|at| asked.get(at).copied().flatten());
    // -1 is no limit.
    let own = [of_role, of_database].into_iter().flatten().filter(|limit| *limit >= 0);
    let no_tables = match (homeless, creates) {
        (Some(1), _) => Some("no schema of search_path exists for this user."),
        (_, Some(0)) => {
            Some("the user may create no tables in its schema (GRANT CREATE ON SCHEMA).")
        }
        _ => None,
    };
    let folder = answer_if_any(session, "SHOW data_directory").await?;
    Ok(Limits {
        sessions_free: free.into_iter().chain(own).min(),
        statements_free: None,
        is_read_only: recovery == Some(1),
        no_tables: no_tables.map(str::to_owned),
        data_folder: folder.and_then(|answer| answer.rows.first()?.first()?.clone()),
        is_pooled: false,
    })
}

/// A name that no table has: neither an application's nor that of another `dyno bench`.
pub(super) fn trial_table() -> String {
    let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("dyno_trial_{}_{:x}", std::process::id(), moment.as_nanos())
}

/// Makes, fills, reads and drops a small table, with a prepared statement.
///
/// # Errors
/// The user lacks a right, or something between dyno and the server takes no prepared statements.
pub(super) fn try_rights(name: &str, database: &Database, table: &str) -> Result<(), Failure> {
    ask(&database.primary_admin(), async |session| {
        try_rights_in_session(session, name, table).await
    })
}

async fn try_rights_in_session(
    session: &mut AdminSession<'_>,
    name: &str,
    table: &str,
) -> Result<(), Failure> {
    let create = format!("CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, n INT)");
    let created = answer(session, &create).await;
    created.map_err(|error| refused(name, "CREATE TABLE", &error))?;
    let used = use_table(session, table).await;
    let used = used.map_err(|(doing, error)| refused(name, doing, &error));
    let drop = format!("DROP TABLE {table}");
    match answer(session, &drop).await {
        Ok(_) => used,
        Err(error) => {
            let failure = used.err().unwrap_or_else(|| refused(name, "DROP TABLE", &error));
            let message = format!("{} The table {table} is left there.", failure.message);
            let hint = failure.hint.unwrap_or_default();
            Err(Failure::new(message).with_hint(format!("`{drop}` removes what is left. {hint}")))
        }
    }
}

async fn use_table(
    session: &mut AdminSession<'_>,
    table: &str,
) -> Result<(), (&'static str, DbError)> {
    let select = format!("SELECT n FROM {table} WHERE id = 1");
    for (doing, sql) in [
        ("CREATE INDEX", &format!("CREATE INDEX {table}_n ON {table} (n)")),
        ("INSERT", &format!("INSERT INTO {table} VALUES (1, 1)")),
        ("UPDATE", &format!("UPDATE {table} SET n = 2 WHERE id = 1")),
        ("SELECT", &select),
    ] {
        answer(session, sql).await.map_err(|error| (doing, error))?;
    }
    let prepared = session.prepare(&select, &[]).await;
    prepared.map_err(|error| ("a prepared statement", error))?;
    let delete = answer(session, &format!("DELETE FROM {table}")).await;
    delete.map(|_| ()).map_err(|error| ("DELETE", error))
}

fn refused(name: &str, doing: &str, error: &DbError) -> Failure {
    let message = format!("{name}: {doing} was refused: {}", sentence(&error.to_string()));
    Failure::new(message).with_hint(remedy(error.errno(), error.sqlstate()))
}

/// What helps, by the class of the error.
fn remedy(errno: u32, sqlstate: &str) -> &'static str {
    match (errno, sqlstate) {
        (1050, _) | (_, "42P07") => "Give the command again: it tries another name.",
        (1044 | 1142 | 1227, _) | (_, "42501") => "Grant it to the user, or name another database.",
        (1290 | 1792 | 1836, _) | (_, "25006") => {
            "Name a database that takes changes: it, or the session of this user, is read-only."
        }
        _ => "Put that right, or name another database.",
    }
}

/// Tables that a run has made on one database and has not dropped.
pub(super) struct Leftover {
    words: String,
    /// Its folder, where it is here, and how it calls the target.
    run: Option<(PathBuf, String)>,
    plan: Option<Plan>,
    mark: String,
    pub(super) tables: Vec<String>,
}

/// Tables that runs of `dyno bench` have left whose folder is elsewhere, or that called the database by another URL.
///
/// # Errors
/// A run that is alive works on it.
fn marked_leftover(
    target: &ReachedDatabase,
    plan: &Plan,
    known: &[Leftover],
) -> Result<Option<Leftover>, Failure> {
    let mark = RunHeader::marks_of(SUITE);
    let driver = target.database.primary_admin();
    let marked = ask(&driver, async |session| catalog::marked(session, &mark).await)?;
    let families = all_families(plan)?;
    let mut tables: Vec<String> = families.iter().flat_map(|family| family.tables()).collect();
    tables.retain(|table| {
        marked.contains(table) && !known.iter().any(|left| left.tables.contains(table))
    });
    if tables.is_empty() {
        return Ok(None);
    }
    lock_all(&target.database, plan)?;
    let words = "An interrupted run of `dyno bench`".to_owned();
    Ok(Some(Leftover { words, run: None, plan: Some(plan.clone()), mark, tables }))
}

fn lock_all(database: &Database, plan: &Plan) -> Result<Vec<TableLock>, Failure> {
    let planned = plan.experiments.iter();
    let workloads: BTreeSet<&str> = planned.map(|planned| planned.workload.as_str()).collect();
    let lock = |workload| Ok(lock_tables(database, workload, &Unobserved)?);
    workloads.into_iter().map(lock).collect()
}

/// What runs of `dyno bench` in `dir` that nobody executes any more have left on the database of `url`.
pub(super) fn leftovers_on(dir: &Path, url: &SecretUrl) -> Result<Vec<Leftover>, Failure> {
    let mut all = Vec::new();
    for entry in dyno_store::list(dir)? {
        let is_left = matches!(entry.status(), Some(RunStatus::Interrupted | RunStatus::Failed(_)));
        let Ok(header) = entry.header else { continue };
        if header.suite != SUITE || !is_left {
            continue;
        }
        let here = header.targets.iter().filter(|target| target.url.redacted() == url.redacted());
        let names: Vec<String> = here.map(|target| target.name.clone()).collect();
        for target in names {
            let tables: Vec<String> = header.made(&target).map(str::to_owned).collect();
            if !tables.is_empty() {
                all.push(Leftover {
                    words: format!("The run {}", entry.path.display()),
                    run: Some((entry.path.clone(), target)),
                    plan: Plan::of_run(&header),
                    mark: header.table_mark(),
                    tables,
                });
            }
        }
    }
    Ok(all)
}

/// Whether `dir` holds a run of `dyno bench`.
pub(super) fn is_known(dir: &Path) -> Result<bool, Failure> {
    let of_bench = |header: &RunHeader| header.suite == SUITE;
    Ok(dyno_store::list(dir)?.iter().any(|entry| entry.header.as_ref().is_ok_and(of_bench)))
}

/// The tables of a database that have not this mark.
fn unmarked(database: &Database, mark: &str) -> Result<HashSet<String>, Failure> {
    ask(&database.primary_admin(), async |session| catalog::unmarked(session, mark).await)
}

impl Leftover {
    /// Finds out which of them others have made by now, and leaves them out.
    pub(super) fn disown(&mut self, reached: &ReachedDatabase) -> Result<Vec<String>, Failure> {
        let unmarked = unmarked(&reached.database, &self.mark)?;
        let others =
            self.tables.iter().filter(|table| unmarked.contains(*table)).cloned().collect();
        self.tables.retain(|table| !unmarked.contains(table));
        Ok(others)
    }

    /// Drops them. The run still goes on when its command is given again: it loads anew.
    pub(super) fn drop_from(&self, reached: &ReachedDatabase) -> Done {
        let run = self.run.as_ref().map(|(folder, _)| Run::open(folder)).transpose()?;
        if let Some(plan) = &self.plan {
            let _locks = lock_all(&reached.database, plan)?;
            for family in all_families(plan)? {
                let progress = LoadProgress::new("remove tables");
                remove_tables(&*family, &reached.database, &self.tables, &progress)?;
            }
        }
        let (Some(mut run), Some((_, target))) = (run, &self.run) else { return Ok(()) };
        run.update(|header| {
            let known = header.tables.entry(target.clone()).or_default();
            let origins = known.values_mut().filter(|origin| **origin == TableOrigin::Made);
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
        assert!(sentences("a", &enough, Some(2e9), &NEED).is_empty());
        assert!(sentences("a", &Limits::default(), None, &NEED).is_empty(), "unknown");
    }

    #[test]
    fn the_table_that_tries_the_rights_is_nobodys_and_hints_fit_the_error() {
        let table = trial_table();
        assert!(format!("{table}_n").len() <= 63, "{table}");
        assert_ne!(trial_table(), table);
        let grant = "Grant it to the user, or name another database.";
        for (errno, sqlstate, said) in [
            (1142, "42000", grant),
            (1044, "42000", grant),
            (0, "42501", grant),
            (1050, "42S01", "another name"),
            (0, "42P07", "another name"),
            (1290, "HY000", "read-only"),
            (1792, "25006", "read-only"),
            (0, "25006", "read-only"),
            (1064, "42000", "Put that right"),
        ] {
            assert!(remedy(errno, sqlstate).contains(said), "{errno} {sqlstate}");
        }
    }

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let limits = Limits {
            sessions_free: Some(-3),
            statements_free: Some(100),
            is_read_only: true,
            no_tables: Some("the URL names no database.".to_owned()),
            data_folder: None,
            is_pooled: true,
        };
        let said = sentences("a", &limits, Some(1e9), &NEED).join("\n");
        for part in [
            "takes 0 more sessions, 22 are needed",
            "takes 100 more prepared statements, 1920 are needed",
            "a is read-only.",
            "a is a pooler that gives the sessions of its server to other clients",
            "a: the URL names no database.",
            "of disk left",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

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
            let suite = Suite::open(SUITE, &dyno_runner::family::offers(crate::families::FAMILIES));
            let suite = suite.expect("a suite");
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
