//! The interface of a family of workloads with the runner.
//!
//! A family says what the runner needs to know ([`Family`]): options, load, and how a trial is executed and
//! stored. Where the engine drives it, the family says what is looked at before and checked after it ([`Driven`]).
//! The runner holds families as [`FamilyEntry`]. Only [`drive_on`] tells drivers apart, in the crate of the family.
//!
//! A family may add to the summary of a trial: facts of its data (how much is hot, how large alongside the
//! server's memory), latencies of single statements, and checks of the data. A check that fails makes the
//! trial fail, and the run ends with exit code 4.

pub use crate::command::{CommandTiming, ShellCommand, run as run_command};
pub use crate::fault::LostWork;
pub use crate::fleet::{Assist, Left, drive_part};
pub use crate::trial::{Job, Pass, PassWatch, TrialDone, drive_pass, drive_trial, with_p95};

use crate::databases::{self, Database};
use crate::failure::{Failure, Result, sentence};
use crate::progress::LoadProgress;
use dyno_core::offer::WorkloadOffer;
use dyno_core::options::{OptionError, OptionRow, read};
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, Workload};
use dyno_drivers::with_driver;
use dyno_engine::{Control, DriveError, Observer, TrialResult, TrialSpec, drive};
use dyno_facts::{
    Catalog, DataCheck, DataFacts, ExperimentFacts, FamilyFacts, Message, StatementLatency,
    TrialSummary, say,
};
use dyno_load::query::{answer_if_any, drop_tables, tables, whole};
use dyno_load::settings::ServerNeed;
use dyno_load::{LoadError, LoadErrorKind, LoadSessions, settings};
use dyno_store::RunData;
use dyno_suite::{OptionPart, Plan};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An experiment of a family of workloads, with valid options: its data and its trials. A [`FamilyEntry`] makes it.
pub trait Family: Sync {
    /// Warnings about the options, in sentences.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if its trials change the data.
    fn writes(&self) -> bool {
        true
    }

    /// Commands of the shell that trials run on this machine.
    fn commands(&self) -> Vec<String> {
        Vec::new()
    }

    /// The needs of its loads and trials that a setting of the server can take away.
    fn needs(&self) -> Vec<ServerNeed> {
        vec![ServerNeed::WHOLE_ANSWERS]
    }

    /// Checks that this can be done on a database; called before anything is touched.
    fn fits(&self, _database: &Database) -> Result<()> {
        Ok(())
    }

    /// Loads the data, or what an interrupted load has left undone; says what was done.
    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message>;

    /// Holds what a trial has recorded as acknowledged in `ledger` against the data, long after it.
    fn settle(&self, _database: &Database, _ledger: &Path) -> Result<LostWork> {
        Ok(LostWork::unknown(say!(losses_untraceable)))
    }

    /// The tables of its data, each after those that have a foreign key to it: they can be dropped in this order.
    fn tables(&self) -> Vec<String>;

    /// False where a script of the user's own decides what it creates and drops, so that no one knows the tables.
    fn keeps_existing(&self) -> bool {
        true
    }

    /// The part of [`Family::tables`] that no transaction works on.
    fn idle_tables(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The part of [`Family::tables`] that must not be taken for the run's own when it makes the rest:
    /// the ones that exist, and what belongs to them.
    fn existing(&self, database: &Database) -> Result<BTreeSet<String>> {
        let existing = ask(&database.primary_admin(), async |session| tables(session).await)?;
        Ok(self.tables().into_iter().filter(|table| existing.contains(table)).collect())
    }

    /// Drops `tables`, which are some of [`Family::tables`] and in their order, and no others.
    fn remove(
        &self,
        database: &Database,
        tables: &[String],
        observer: &LoadProgress,
    ) -> Result<()> {
        LoadSessions::new(&database.primary_admin(), observer, 1)
            .one(async |session| drop_tables(session, tables, observer).await)
            .map_err(drop_failure)
    }
}

/// Execution of the trials of a family. A family that is [`Driven`] has this from the engine.
pub trait Trials: Family {
    /// Executes a trial and stores it in the run; returns how it has ended.
    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone>;

    /// Returns true if load generators on other machines can share its trials; else this process drives them alone.
    fn takes_fleet(&self) -> Result<bool> {
        Ok(false)
    }

    /// Drives a part of a trial for another process; `None` when it was stopped before it began.
    fn assist(&self, _database: &Database, _part: Assist<'_>) -> Result<Option<Left>> {
        Err(Failure::new("The trials of this workload can't be shared."))
    }
}

impl<F: Family + Driven> Trials for F {
    fn trial(&self, database: &Database, job: Job<'_>) -> Result<TrialDone> {
        drive_trial(self, database, job)
    }

    fn takes_fleet(&self) -> Result<bool> {
        Driven::takes_fleet(self)
    }

    fn assist(&self, database: &Database, part: Assist<'_>) -> Result<Option<Left>> {
        drive_part(self, database, part)
    }
}

/// Trials that the engine drives: workers execute transactions for some time.
pub trait Driven: Sized {
    type Workload: Workload;
    /// Facts found before a trial that are needed to judge the data after it.
    type Before;
    /// Facts that the workload of a part keeps for [`Driven::absorb`].
    type Kept: Serialize + DeserializeOwned;

    /// Looks at the data and makes the workload of one trial. What the workload writes itself has
    /// names that begin with `stem`, in the run folder.
    ///
    /// # Errors
    /// When the trial would fail or measure something else.
    fn look_before(
        &self,
        database: &Database,
        spec: &TrialSpec,
        stem: &Path,
    ) -> Result<Ready<Self>>;

    /// Makes the workload of a part of a trial ([`TrialSpec::part`]). The data have been looked at already,
    /// by whoever shares the trial out. `stem` as above, in a folder of this load generator's own.
    fn part(&self, database: &Database, spec: &TrialSpec, stem: &Path) -> Result<Self::Workload> {
        Ok(self.look_before(database, spec, stem)?.workload)
    }

    /// The facts that the workload of a part has kept, once the part has been driven.
    fn leave(&self, _workload: &Self::Workload) -> Result<Option<Self::Kept>> {
        Ok(None)
    }

    /// Adds what the workload of a part has kept to the workload of the whole: once per part and before
    /// [`Driven::look_after`].
    fn absorb(&self, _workload: &Self::Workload, _kept: Self::Kept) -> Result<()> {
        Ok(())
    }

    /// Like [`Trials::takes_fleet`]. If it can, what parts count themselves is lost without [`Driven::leave`] and
    /// [`Driven::absorb`].
    fn takes_fleet(&self) -> Result<bool> {
        Ok(false)
    }

    /// Returns true if transactions that only read end with ROLLBACK: no server counts them as commits.
    fn rolls_back_reads(&self) -> bool {
        false
    }

    /// Has the engine drive a trial with the workload.
    ///
    /// # Errors
    /// Like [`drive`].
    fn drive(
        &self,
        database: &Database,
        workload: &Self::Workload,
        spec: &TrialSpec,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<TrialResult, DriveError> {
        drive_on(database, workload, spec, control, observer)
    }

    /// Changes the order to the engine.
    fn tune(&self, _spec: &mut TrialSpec) {}

    /// The file in which a trial records what is acknowledged, for [`Family::settle`]: if that is to be held
    /// against the data also when a server was lost. `stem` as above.
    fn ledger(&self, _database: &Database, _stem: &Path) -> Option<PathBuf> {
        None
    }

    /// The count of acknowledged writes, by the workload, on the shard of this name; `None` if no one
    /// knows.
    fn acknowledged_on(
        &self,
        _database: &Database,
        _workload: &Self::Workload,
        _shard: &str,
    ) -> Option<u64> {
        None
    }

    /// The workload's facts of a trial, and its checks of the data after it. A user who has interrupted
    /// the trial doesn't want to wait for a check.
    fn look_after(
        &self,
        _database: &Database,
        _workload: &Self::Workload,
        _before: Self::Before,
        _ran: &EndedTrial<'_>,
    ) -> After {
        After::default()
    }
}

pub type DriveOn<W> =
    fn(&Database, &W, &TrialSpec, &Control, &mut dyn Observer) -> Result<TrialResult, DriveError>;

/// Drives a trial on a database. A family has a `static` of this for its drop-in: the code for each driver is then
/// compiled in the crate of the family, once for suites and the drop-in.
pub fn drive_on<W: Workload>(
    database: &Database,
    workload: &W,
    spec: &TrialSpec,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<TrialResult, DriveError> {
    with_driver!(database, driver => drive(workload, driver, spec, control, observer))
}

/// Needs of a load besides its options.
pub struct LoadOrder<'a> {
    pub seed: u64,
    pub observer: &'a LoadProgress,
}

pub const UNPREPARED_HINT: &str = "Load the tables with the same options before; a suite without `prepare = false` loads them \
                               itself.";

const CONTINUES_HINT: &str = "The same command continues with what has been loaded.";
const REMOVE_CAUSE_HINT: &str =
    "Remove the cause; then the same command continues with what has been loaded.";

/// Tables that make one data set and are dropped together: one that exists speaks for all.
pub fn all_or_none(is_there: bool, tables: Vec<String>) -> BTreeSet<String> {
    if is_there { tables.into_iter().collect() } else { BTreeSet::new() }
}

/// Tables that can't be dropped, with a remedy that drops nothing but dyno's: a server's own, CASCADE, would.
pub fn drop_failure(error: LoadError) -> Failure {
    let failure = Failure::from(&error);
    // dependent_objects_still_exist
    let Some(error) = error.error.as_ref().filter(|error| error.sqlstate() == "2BP01") else {
        return failure;
    };
    let detail = error.detail.as_deref().map(|detail| sentence(detail).into());
    let message = [failure.message].into_iter().chain(detail);
    let message = Message::sentences(&message.collect::<Vec<_>>());
    Failure { message, ..failure }.with_hint(
        "Something that dyno has not made depends on the tables: remove that, then the tables.",
    )
}

/// Asks a question in its own session.
pub fn ask<T, E: Into<Failure>>(
    driver: &AdminDriver<'_>,
    question: impl AsyncFnOnce(&mut AdminSession<'_>) -> Result<T, E>,
) -> Result<T> {
    let answer = databases::in_session(driver, async |session| {
        settings::adopt(session).await?;
        question(session).await.map_err(E::into)
    });
    databases::on_loop(answer)?
}

/// Checks that no setting of the server takes one of these away from its sessions.
///
/// # Errors
/// A sentence that names the setting, with the remedy; the server can't be reached.
pub fn check_settings(driver: &AdminDriver<'_>, needs: &[ServerNeed]) -> Result<()> {
    let reading = databases::in_session(driver, async |session| settings::read(session).await);
    Ok(databases::run(reading)?.unwrap_or_default().check(needs)?)
}

/// A loader's error with the remedy that suits a suite: the loader's own may speak of a command line.
/// `of_data` is the remedy for tables that hold something else.
pub fn load_failure(error: &LoadError, of_data: &str) -> Failure {
    let failure = Failure::from(error);
    match &error.error {
        _ if error.kind == LoadErrorKind::Data => failure.with_hint(of_data),
        Some(of_session) if of_session.hint().is_none() => {
            let hint = if error.recurs() { REMOVE_CAUSE_HINT } else { CONTINUES_HINT };
            Failure { hint: error.is_resumable.then(|| hint.to_owned()), ..failure }
        }
        _ => failure,
    }
}

pub struct Ready<F: Driven> {
    pub workload: F::Workload,
    /// For [`Driven::look_after`].
    pub before: F::Before,
    pub test: String,
    /// The data, where the workload says something of them.
    pub data: Option<DataFacts>,
    /// Facts that only the family records, as far as they are known now: for a trial that is killed.
    pub own: Option<FamilyFacts>,
    pub warnings: Vec<String>,
}

impl<F: Driven> Ready<F> {
    pub fn new(test: &str, workload: F::Workload, before: F::Before) -> Self {
        let test = test.to_owned();
        Ready { workload, before, test, data: None, own: None, warnings: Vec::new() }
    }
}

pub struct EndedTrial<'a> {
    pub spec: &'a TrialSpec,
    /// The measured summary; the workload's own part is still to come.
    pub summary: &'a TrialSummary,
    /// Reason for not checking the data after it, in a sentence: no one waits, no one answers, or no one knows what
    /// they must be.
    pub unchecked: Option<Message>,
    /// Commits of each kind of transaction, warm-up included; not those that ended after the window.
    pub committed: &'a [u64],
    /// Transactions that may have been committed without an answer, warm-up included.
    pub unanswered: u64,
}

/// Additions of a workload to the summary of a trial.
#[derive(Default)]
pub struct After {
    pub statements: Vec<StatementLatency>,
    pub checks: Vec<DataCheck>,
    /// Facts that only the family records.
    pub own: Option<FamilyFacts>,
    pub notes: Vec<Message>,
    /// Names of checks that were wanted and could not be made: without them the trial proves nothing.
    pub unproven: Vec<String>,
    /// The figures in a line; rates and the latency where a family has no other.
    pub headline: Option<String>,
    /// Acknowledged work that is lost after a fault.
    pub lost: Option<LostWork>,
}

/// The options of an experiment, as names and values.
pub fn given(experiment: &ExperimentFacts) -> impl Iterator<Item = (&str, &str)> {
    let mut options: Vec<(&str, &str)> =
        experiment.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The tenth of a list comes after the second.
    options.sort_by_key(|(name, _)| {
        let number = name.rsplit_once('.').and_then(|(_, number)| number.parse::<u32>().ok());
        number.map_or((*name, 0), |number| (name.split('.').next().unwrap_or(name), number))
    });
    options.into_iter()
}

/// A complaint of a workload, with its place in the suite.
pub fn refused(plan: &Plan, experiment: &ExperimentFacts, error: OptionError) -> Failure {
    let name = &experiment.name;
    let OptionError { option, is_value, message, hint, .. } = error;
    let part = if is_value { OptionPart::Value } else { OptionPart::Name };
    match option {
        Some(option) => plan.option_error(name, &option, part, message, hint).into(),
        None => plan.experiment_error(name, message, hint).into(),
    }
}

/// An experiment of a family, or why its options are wrong.
pub type ReadFamily = Result<Box<dyn Trials>>;

/// An experiment of a family whose options are rows of `table`: with their defaults, and what the experiment gives.
///
/// # Errors
/// An option that the table does not have, or a wrong value, with its place in the suite.
pub fn read_family<F: Trials + Default + 'static>(
    table: &[OptionRow<F>],
    plan: &Plan,
    experiment: &ExperimentFacts,
) -> ReadFamily {
    let mut family = F::default();
    for row in table.iter().filter(|row| !row.default.is_empty()) {
        row.set(&mut family, None, row.default).expect("the default is one of the values");
    }
    let names = (&*experiment.workload, &*experiment.test);
    read(table, names, given(experiment), &mut family)
        .map_err(|error| refused(plan, experiment, error))?;
    Ok(Box::new(family))
}

#[derive(Clone, Copy, Debug)]
pub struct FamilyEntry {
    pub offer: WorkloadOffer,
    pub catalog: Catalog,
    /// The last lines of a run's output.
    pub last_words: fn(&RunData) -> String,
    /// Examines the options of an experiment; nothing is connected yet.
    pub read: fn(&Plan, &ExperimentFacts) -> ReadFamily,
}

impl FamilyEntry {
    /// An entry without last words.
    pub const fn new(
        offer: WorkloadOffer,
        catalog: Catalog,
        read: fn(&Plan, &ExperimentFacts) -> ReadFamily,
    ) -> Self {
        FamilyEntry { offer, catalog, last_words: |_| String::new(), read }
    }
}

/// Statics of the families' crates: what is generic in an entry is then compiled there, once.
pub type Families = &'static [&'static FamilyEntry];

/// The workloads of these families, as suites may name them.
pub fn offers(families: Families) -> Vec<WorkloadOffer> {
    families.iter().map(|family| family.offer).collect()
}

/// An experiment of a plan, with valid options.
///
/// # Errors
/// A wrong option. A stored plan may also name a workload that this process doesn't know.
pub fn experiment(families: Families, plan: &Plan, planned: &ExperimentFacts) -> ReadFamily {
    let workload = planned.workload.as_str();
    match families.iter().find(|family| family.offer.name == workload) {
        Some(family) => (family.read)(plan, planned),
        None => {
            let message = format!("This dyno can't run the workload `{workload}`.");
            Err(plan.experiment_error(&planned.name, message, None).into())
        }
    }
}

/// Drops those of `tables` that are the family's, in the order that its foreign keys allow.
///
/// # Errors
/// Like [`Family::remove`](super::Family::remove).
pub fn remove_tables(
    family: &dyn Trials,
    database: &Database,
    tables: &[String],
    observer: &LoadProgress,
) -> Result<()> {
    let mut dropped = family.tables();
    dropped.retain(|table| tables.contains(table));
    if dropped.is_empty() {
        return Ok(());
    }
    family.remove(database, &dropped, observer)
}

/// The size of the tables alongside the server's memory for data, both in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The tables with their indexes, on SQLite all that is in the file; `None` when the server doesn't say.
    pub size_bytes: Option<u64>,
    pub memory_setting: &'static str,
    /// Its value; `None` when the server doesn't say.
    pub memory_bytes: Option<u64>,
}

/// Asks the server for the size of the tables whose names are `LIKE` a pattern, in which `@` escapes, and for its
/// memory for data. What it refuses to say is left out.
///
/// # Errors
/// Only when the connection is lost.
pub async fn footprint(
    session: &mut AdminSession<'_>,
    pattern: &str,
) -> Result<Footprint, DbError> {
    let (memory_setting, size, memory) = match session.dialect() {
        Dialect::Postgres => (
            "shared_buffers",
            // Partitions are separate tables; their parent has no rows.
            format!(
                "SELECT CAST(sum(pg_total_relation_size(oid)) AS bigint) FROM pg_class WHERE relkind = 'r' \
             AND relname LIKE '{pattern}' ESCAPE '@' AND pg_table_is_visible(oid)"
            ),
            "SELECT pg_size_bytes(current_setting('shared_buffers'))",
        ),
        Dialect::Mysql => (
            "innodb_buffer_pool_size",
            format!(
                "SELECT CAST(SUM(data_length + index_length) AS SIGNED) FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name LIKE '{pattern}' ESCAPE '@'"
            ),
            "SELECT @@innodb_buffer_pool_size",
        ),
        Dialect::Sqlite => (
            "cache_size",
            // All tables of the file: it doesn't say whose its pages are.
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, \
             pragma_freelist_count, pragma_page_size"
                .to_owned(),
            // Pages, or KiB when negative.
            "SELECT CASE WHEN cache_size < 0 THEN -1024 * cache_size ELSE cache_size * page_size END \
             FROM pragma_cache_size, pragma_page_size",
        ),
    };
    let size_bytes = query_number(session, &size).await?;
    let memory_bytes = query_number(session, memory).await?;
    Ok(Footprint { size_bytes, memory_setting, memory_bytes })
}

async fn query_number(session: &mut AdminSession<'_>, sql: &str) -> Result<Option<u64>, DbError> {
    let answer = answer_if_any(session, sql).await?;
    Ok(answer.and_then(|answer| answer.single().and_then(whole)))
}
