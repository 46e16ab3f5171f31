//! The pgbench family in suites.

use crate::check::{Balances, History, Journal, Ledger, balances, history, history_rows};
use crate::init::{
    ACCOUNTS_PER_BRANCH, CHILDREN_FIRST, InitOptions, LOAD_NEEDS, existing_tables, initialize,
    table_info, vacuum_accounts, vacuum_before_run,
};
use crate::options::{Access, OFFER, PgbenchSettings, STATEMENTS, Vacuum};
use crate::run::{self, Part, PgBench, Statistics, Talk, Talker};
use crate::script::{Action, QueryMode, Script, ScriptCommand, find_builtin};
use dyno_core::{AdminDriver, AdminSession, AnswerTable, Dialect};
use dyno_engine::TrialSpec;
use dyno_facts::{
    CheckVerdict, DataCheck, DataFacts, ExperimentFacts, Message, StatementLatency, format,
    mask_script, say,
};
use dyno_load::default_sessions;
use dyno_load::settings::ServerNeed;
use dyno_report::{Experiment, NamedPaper};
use dyno_runner::databases::Database;
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::family::{
    After, DriveOn, Driven, EndedTrial, Family, FamilyEntry, Footprint, LoadOrder, LostWork, Ready,
    UNPREPARED_HINT, all_or_none, ask, drive_on, footprint, given, load_failure, refused,
};
use dyno_runner::output;
use dyno_suite::Plan;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

pub static FAMILY: FamilyEntry = FamilyEntry::new(OFFER, crate::CATALOG, |plan, planned| {
    Ok(Box::new(PgbenchFamily::new(plan, planned)?))
});

/// Its chapter of papers.
pub const PAPER: NamedPaper = NamedPaper {
    tests: &["pgbench"],
    derived_from: &[("tpcb-like", "TPC-B"), ("simple-update", "TPC-B")],
    own_tables: &[STATEMENTS],
    statements: statements_asked,
    ..NamedPaper::new("pgbench", "pgbench")
};

/// Statements of a transaction: of a script of the experiment, or of pgbench's own of this name.
fn statements_asked(experiment: &Experiment, _test: &str, kind: &str) -> Option<f64> {
    experiment.test.strip_prefix("pgbench ")?;
    let file = experiment.scripts.iter().find(|script| script.name == kind);
    let text = file
        .map(|script| script.text.as_str())
        .or_else(|| Some(find_builtin(kind).ok().filter(|known| known.name == kind)?.text));
    script_statements(text?)
}

/// `None` if it branches, and where a command is several statements.
fn script_statements(text: &str) -> Option<f64> {
    let script = Script::parse(text.as_bytes(), "", QueryMode::Simple).ok()?;
    let statements = script.commands.iter().filter(|command| command.is_sql()).count();
    let is_plain = script.commands.iter().all(|command| match &command.action {
        Action::Sql(statement) => !statement.is_chain,
        action => !matches!(action, Action::If { .. }),
    });
    is_plain.then_some(statements as f64)
}

pub static DRIVE_ON: DriveOn<PgBench> = drive_on;

/// From this scale on a pass over the accounts takes seconds, and is announced.
const LARGE_SCALE: u32 = 100;
/// The loader's own remedy speaks of options of its command line.
const OTHER_DATA_HINT: &str = "Drop the tables pgbench_accounts, pgbench_branches, pgbench_history and \
                               pgbench_tellers, or use another database.";
/// Lines that scripts and clients may print in one trial.
const LINES_MAX: u32 = 20;

struct PgbenchFamily {
    test: String,
    options: PgbenchSettings,
    ledger: Ledger,
    /// Set if a fault is injected: what is written into the history is kept then.
    has_fault: bool,
}

impl PgbenchFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let scripts = experiment.scripts.iter();
        let scripts = scripts.map(|script| (&*script.name, script.weight, &*script.text));
        let options = PgbenchSettings::read(&experiment.test, given(experiment), scripts)
            .map_err(|error| refused(plan, experiment, error))?;
        let ledger =
            if options.check { Ledger::from_scripts(options.running()) } else { Ledger::default() };
        Ok(PgbenchFamily {
            test: experiment.test.clone(),
            options,
            ledger,
            has_fault: experiment.fault.is_some(),
        })
    }
}

impl Family for PgbenchFamily {
    fn writes(&self) -> bool {
        const VERBS: [&str; 5] = ["insert", "update", "delete", "merge", "truncate"];
        let text = self.options.texts().collect::<String>().to_ascii_lowercase();
        VERBS.iter().any(|verb| text.contains(verb))
    }

    fn commands(&self) -> Vec<String> {
        let commands = self.options.scripts.iter().flat_map(|(script, _)| &script.commands);
        let shell = commands.filter(|command| command.is_shell());
        shell.map(|command| command.first_line.clone()).collect()
    }

    fn needs(&self) -> Vec<ServerNeed> {
        if self.is_own_mix() { vec![ServerNeed::WHOLE_ANSWERS] } else { LOAD_NEEDS[1..].to_vec() }
    }

    fn fits(&self, database: &Database) -> Result<(), Failure> {
        let driver = &database.primary_admin();
        let dialect = driver.dialect();
        if !self.is_own_mix() {
            self.init_options().check(dialect)?;
        }
        let options = self.run_options(&TrialSpec::closed(1), false);
        PgBench::new(options, dialect, talker())
            .map(|_| ())
            .map_err(|problem| Failure::new(sentence(&problem)))
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let driver = &database.primary_admin();
        if self.is_own_mix() {
            return Ok(say!(no_pgbench_tables));
        }
        let report = initialize(driver, &self.init_options(), order.observer)
            .map_err(|error| load_failure(&error, OTHER_DATA_HINT))?;
        Ok(report.loaded.sentence())
    }

    fn tables(&self) -> Vec<String> {
        if self.is_own_mix() { Vec::new() } else { CHILDREN_FIRST.map(str::to_owned).to_vec() }
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        let driver = &database.primary_admin();
        let existing = ask(driver, async |session| existing_tables(session).await)?;
        Ok(all_or_none(!existing.is_empty(), self.tables()))
    }
}

impl Driven for PgbenchFamily {
    type Workload = PgBench;
    type Before = (Option<Balances>, Option<History>);
    type Kept = Statistics;

    fn takes_fleet(&self) -> Result<bool, Failure> {
        let mut commands = self.options.scripts.iter().flat_map(|(script, _)| &script.commands);
        match commands.find(|command| command.is_shell()) {
            Some(command) => Err(Failure::new(format!(
                "A script has `\\{}`: load generators on other machines execute no commands.",
                command.name
            ))
            .with_hint("Leave --nats out, or the command.")),
            None => Ok(true),
        }
    }

    fn tune(&self, spec: &mut TrialSpec) {
        spec.loops = self.options.jobs;
    }

    fn look_before(
        &self,
        database: &Database,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let driver = &database.primary_admin();
        let (data, before, warnings) = ask(driver, async |session| self.inspect(session).await)?;
        let workload = self.build_workload(driver, spec)?;
        Ok(Ready { workload, before, test: self.test.clone(), data, own: None, warnings })
    }

    fn part(
        &self,
        database: &Database,
        spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<PgBench, Failure> {
        let driver = &database.primary_admin();
        self.build_workload(driver, spec)
    }

    fn leave(&self, workload: &PgBench) -> Result<Option<Statistics>, Failure> {
        Ok(Some(workload.statistics()))
    }

    fn absorb(&self, workload: &PgBench, kept: Statistics) -> Result<(), Failure> {
        workload.absorb(&kept).map_err(|problem| Failure::new(sentence(&problem)))
    }

    fn look_after(
        &self,
        database: &Database,
        workload: &PgBench,
        (before, history): (Option<Balances>, Option<History>),
        ran: &EndedTrial<'_>,
    ) -> After {
        let driver = &database.primary_admin();
        let statements = statement_latencies(workload);
        let check = before.map(|before| match ran.unchecked.clone() {
            Some(why) => (CheckVerdict::NotMade, why),
            None => self.check(driver, &before, ran),
        });
        let check = check.map(|(verdict, evidence)| DataCheck {
            name: "balances".to_owned(),
            verdict,
            evidence,
        });
        let lost_work = history
            .zip(workload.journal.as_ref())
            .filter(|(_, journal)| journal.is_useful())
            .map(|(before, journal)| match ran.unchecked.clone() {
                Some(why) => LostWork::unknown(why),
                None => lost_rows(driver, journal, &before),
            });
        let checks = check.into_iter().collect();
        After { statements, checks, lost: lost_work, ..After::default() }
    }
}

/// Data, sums and history before a trial, and warnings.
type BeforeTrial = (Option<DataFacts>, (Option<Balances>, Option<History>), Vec<String>);

impl PgbenchFamily {
    /// Returns true if statements of the user's own run, on tables that dyno neither makes nor drops.
    fn is_own_mix(&self) -> bool {
        self.test == STATEMENTS
    }

    /// Texts of a suite are UTF-8: a session with another encoding would take them for other letters.
    async fn check_encoding(&self, session: &mut AdminSession<'_>) -> Result<(), Failure> {
        if session.dialect() != Dialect::Postgres
            || self.options.texts().all(|text| text.is_ascii())
        {
            return Ok(());
        }
        let mut answer = AnswerTable::default();
        let result = session.query("SHOW client_encoding", &mut answer).await;
        result.map_err(|error| Failure::new(sentence(&error.to_string())))?;
        let encoding = answer.single().unwrap_or_default();
        if matches!(encoding, "UTF8" | "SQL_ASCII") {
            return Ok(());
        }
        let text =
            format!("The statements are UTF-8, but the encoding of the sessions is {encoding}.");
        Err(Failure::new(text).with_hint("Add `set.client_encoding=UTF8` to the target's URL."))
    }

    /// Checks that the tables fit the plan, and reads their state.
    async fn inspect(&self, session: &mut AdminSession<'_>) -> Result<BeforeTrial, Failure> {
        self.check_encoding(session).await?;
        if !self.options.texts().any(|text| text.contains("pgbench_")) {
            return Ok(BeforeTrial::default());
        }
        let info = table_info(session).await.map_err(|error| sentence(&error.to_string()));
        let info = info
            .and_then(|info| info.ok_or_else(|| "There is no table pgbench_accounts.".to_owned()));
        let info = info.map_err(|problem| Failure::new(problem).with_hint(UNPREPARED_HINT))?;
        // A mix of one's own runs on whatever is there.
        if !self.is_own_mix() && info.scale != i64::from(self.options.scale) {
            return Err(Failure::new(format!(
                "The tables have scale {}, but the suite says {}.",
                info.scale, self.options.scale
            ))
            .with_hint(format!("Write `scale = {}` or load other tables.", info.scale)));
        }
        let mut errors = Vec::new();
        if self.options.vacuum != Vacuum::None {
            errors.extend(vacuum_before_run(session).await);
        }
        if self.options.vacuum == Vacuum::All {
            errors.extend(vacuum_accounts(session).await);
        }
        let mut warnings: Vec<String> =
            errors.iter().map(|error| sentence(&error.to_string())).collect();
        let size = footprint(session, "pgbench@_%").await?;
        let data = self.data_facts(info.scale, size, &mut warnings);
        let before = if self.ledger.is_empty() { None } else { Some(balances(session).await?) };
        let history = if self.has_fault { Some(history(session).await?) } else { None };
        Ok((Some(data), (before, history), warnings))
    }

    fn data_facts(&self, scale: i64, size: Footprint, warnings: &mut Vec<String>) -> DataFacts {
        let rows = scale.unsigned_abs() * u64::from(ACCOUNTS_PER_BRANCH);
        let accesses = self.options.running().filter_map(|script| {
            let access = Access::from_script(script, |name| self.options.variable(name));
            let mut texts = script.commands.iter().map(ScriptCommand::text);
            let uses_accounts =
                access.is_some() || texts.any(|text| text.contains("pgbench_accounts"));
            uses_accounts.then_some(access)
        });
        let accesses: Vec<Option<Access>> = accesses.collect();
        let widest = accesses.iter().flatten().map(|access| access.hot_rows).max();
        if let Some(widest) = widest.filter(|widest| *widest > rows) {
            warnings.push(format!(
                "Accounts are drawn from {widest} numbers, but there are only {rows}: many draws \
                 will meet no row."
            ));
        }
        // Scripts that differ have no figure in common.
        let common = accesses.first().cloned().flatten();
        let common =
            common.filter(|first| accesses.iter().all(|other| other.as_ref() == Some(first)));
        let (hot_rows, access) = match common {
            Some(Access { hot_rows, meaning }) => (Some(hot_rows), meaning),
            None => (None, Message::default()),
        };
        DataFacts {
            rows,
            hot_rows,
            access,
            size_bytes: size.size_bytes,
            memory_setting: size.memory_setting.to_owned(),
            memory_bytes: size.memory_bytes,
        }
    }

    fn init_options(&self) -> InitOptions {
        InitOptions {
            scale: self.options.scale,
            connections: default_sessions(),
            resume: true,
            ..InitOptions::default()
        }
    }

    fn build_workload(
        &self,
        driver: &AdminDriver<'_>,
        spec: &TrialSpec,
    ) -> Result<PgBench, Failure> {
        PgBench::new(self.run_options(spec, driver.blocks()), driver.dialect(), talker())
            .map_err(|problem| Failure::new(sentence(&problem)))
    }

    /// Sessions that block have a loop each.
    fn run_options(&self, spec: &TrialSpec, is_blocking: bool) -> run::PgbenchOptions {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let loops = if is_blocking { spec.workers } else { spec.loops.unwrap_or(cores) };
        let options = &self.options;
        run::PgbenchOptions {
            clients: spec.workers,
            threads: loops,
            part: generator_part(spec),
            scale: i64::from(options.scale),
            defines: options.defines.clone(),
            statement_latencies: true,
            continue_on_error: true,
            fails_at_preparation: true,
            reconnects: spec.errors.reconnect,
            keeps_history: self.has_fault,
            ..run::PgbenchOptions::new(options.scripts.clone(), options.mode, spec.seed)
        }
    }

    /// Compares the balances with those before the trial.
    fn check(
        &self,
        driver: &AdminDriver<'_>,
        before: &Balances,
        ran: &EndedTrial<'_>,
    ) -> (CheckVerdict, Message) {
        if self.options.scale >= LARGE_SCALE {
            output::talk("The balances are being checked: a pass over all accounts.");
        }
        let after = match ask(driver, async |session| balances(session).await) {
            Ok(after) => after,
            Err(failure) => return (CheckVerdict::NotMade, failure.message),
        };
        let changes = after.change_since(before);
        let Some(found) = changes.verdict(&self.ledger) else {
            return (CheckVerdict::NotMade, say!(nothing_booked));
        };
        // What a fault has lost is counted row by row.
        let strange = self.strange_rows(changes.history_rows, ran).filter(|_| !self.has_fault);
        match (strange, found.is_balanced) {
            (None, true) => (CheckVerdict::Passed, found.evidence),
            (strange, _) => {
                let sentences: Vec<Message> = [found.evidence].into_iter().chain(strange).collect();
                (CheckVerdict::Failed, Message::sentences(&sentences))
            }
        }
    }

    /// Rows of the history that the trial's transactions don't explain, in a sentence.
    fn strange_rows(&self, grown: i128, ran: &EndedTrial<'_>) -> Option<Message> {
        let rows = self.options.scripts.iter().map(|(script, _)| history_rows(script));
        let rows: Vec<u64> = rows.collect::<Option<_>>()?;
        let total: u64 = rows.iter().zip(ran.committed).map(|(rows, count)| rows * count).sum();
        let (min_rows, max_rows) = (i128::from(total), i128::from(total + ran.unanswered));
        match grown {
            grown
                if rows.iter().all(|rows| *rows == 0) || (min_rows..=max_rows).contains(&grown) =>
            {
                None
            }
            grown if grown > max_rows => Some(say!(
                foreign_rows,
                rows = format::whole((grown - max_rows) as f64),
                most = format::whole(max_rows as f64)
            )),
            grown => Some(say!(
                rows_missing,
                rows = format::whole((min_rows - grown) as f64),
                least = format::whole(min_rows as f64)
            )),
        }
    }
}

/// The clients and threads before those of this load generator. Machines may have different numbers of
/// cores: if no one says how many threads there are, none has more than its clients.
fn generator_part(spec: &TrialSpec) -> Part {
    let share = spec.share;
    Part {
        clients_before: share.workers_before,
        clients_total: share.workers_total,
        threads_before: match spec.loops {
            Some(loops) => share.generator * loops.max(1),
            None => share.workers_before,
        },
    }
}

fn lost_rows(driver: &AdminDriver<'_>, journal: &Journal, before: &History) -> LostWork {
    let after = match ask(driver, async |session| history(session).await) {
        Ok(after) => after,
        Err(failure) => return LostWork::unknown(failure.message),
    };
    let settled = journal.reconcile(before, &after);
    let mut evidence = vec![say!(history_rows_verified)];
    if settled.unknown > 0 {
        let (n, there) = (settled.unknown, settled.committed);
        evidence.push(say!(transactions_unanswered, n, there));
    }
    LostWork {
        acknowledged: Some(settled.acknowledged),
        lost: Some(settled.lost),
        unknown: Some(settled.unknown),
        evidence: Message::sentences(&evidence),
        ..LostWork::default()
    }
}

fn statement_latencies(workload: &PgBench) -> Vec<StatementLatency> {
    let scripts = workload.options.scripts.iter().map(|(script, _)| script);
    let mut latencies = Vec::new();
    for (script, statistics) in scripts.zip(workload.statistics().scripts) {
        let commands = script.commands.iter().zip(&statistics.commands);
        // Meta commands are not work of the database, but those that wait take time.
        let timed_commands = (1..).zip(commands).filter(|(_, (command, _))| {
            command.is_sql()
                || command.is_shell()
                || command.name.eq_ignore_ascii_case("sleep")
                || command.name.ends_with("pipeline")
        });
        for (number, (command, statistics)) in timed_commands {
            let latency = &statistics.latency;
            latencies.push(StatementLatency {
                script: script.description.clone(),
                number,
                text: mask_script(&command.first_line),
                count: latency.count,
                mean_us: latency.mean_ns() / 1e3,
                min_us: latency.min_ns as f64 / 1e3,
                max_us: latency.max_ns as f64 / 1e3,
                failures: statistics.failures,
                retries: statistics.retries,
            });
        }
    }
    latencies
}

/// Passes on what scripts and clients say, but not without end.
fn talker() -> Talker {
    let lines = AtomicU32::new(0);
    Box::new(move |talk| {
        let text = match talk {
            Talk::Error(text) | Talk::Info(text) | Talk::Debug(text) => text,
        };
        match lines.fetch_add(1, Ordering::Relaxed) {
            LINES_MAX => output::talk("Scripts have more to say; the rest is left out."),
            line if line < LINES_MAX => output::talk(text),
            _ => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::ScriptFacts;

    #[test]
    fn statements_of_scripts_are_counted_unless_they_branch() {
        assert_eq!(script_statements("\\set a 1\n-- b;\nBEGIN;\nSELECT\n1;\nEND;\n"), Some(3.0));
        assert_eq!(script_statements("SELECT 1; -- one; two\n"), Some(1.0));
        assert_eq!(script_statements("\\if :a\nSELECT 1;\n\\endif\n"), None);
        assert_eq!(script_statements("SELECT 1\\; SELECT 2;"), None);
        assert_eq!(script_statements("SELECT ';';"), Some(1.0));
        assert_eq!(script_statements("SELECT 1 \\gset"), Some(1.0));
        assert_eq!(script_statements("SELECT 1\\;"), None);
    }

    #[test]
    fn scripts_of_pgbench_itself_are_known_by_their_names() {
        let script = ScriptFacts {
            name: "tpcb-like".to_owned(),
            text: "SELECT 1; SELECT 2;".to_owned(),
            ..ScriptFacts::default()
        };
        assert_eq!(
            count_statements("pgbench builtin", Vec::new()),
            [Some(7.0), Some(5.0), Some(1.0), None]
        );
        assert_eq!(count_statements("pgbench script", vec![script])[..2], [Some(2.0), Some(5.0)]);
        assert_eq!(count_statements("sysbench select", Vec::new()), [None; 4]);
    }

    /// The statements of each kind of transaction.
    fn count_statements(test: &str, scripts: Vec<ScriptFacts>) -> [Option<f64>; 4] {
        let facts = ExperimentFacts { scripts, ..ExperimentFacts::default() };
        let experiment = Experiment { test: test.to_owned(), facts, ..Experiment::default() };
        ["tpcb-like", "simple-update", "select-only", "a.sql"]
            .map(|kind| statements_asked(&experiment, "", kind))
    }
}
