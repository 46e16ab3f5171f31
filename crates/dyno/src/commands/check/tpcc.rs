//! TPC-C: the conditions and the ledger.

use super::Arguments;
use super::report::{LedgerReport, Line, Report, Verdict};
use super::target::HOW_TO_NAME_SHARDS;
use dyno_core::{AdminDriver, counted, is_shardingsphere, nearest};
use dyno_drivers::target::TargetUrl;
use dyno_facts::DataCheck;
use dyno_load::default_sessions;
use dyno_runner::failure::Failure;
use dyno_runner::family::ask;
use dyno_runner::output;
use dyno_runner::progress::ProgressBar;
use dyno_runner::watch::AskedNodes;
use dyno_tpcc::check::{CONDITIONS, Condition, Mode, Stage, joins_within_shards};
use dyno_tpcc::ledger::{Recorded, read};
use dyno_tpcc::load::{TpccDatabase, prove};
use dyno_tpcc::settle::settle;
use std::time::Instant;

pub(super) struct CheckRequest {
    /// All of them unless some were named.
    conditions: Vec<&'static Condition>,
    are_named: bool,
    mode: Mode,
    ledger: Option<Recorded>,
    /// Whether rows lie on their shards.
    shards: bool,
}

impl CheckRequest {
    /// Reads the ledger, before anybody waits for a database.
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let ledger = arguments.ledger.as_deref().map(read).transpose()?;
        if ledger.as_ref().is_some_and(|recorded| recorded.runs == 0) {
            return Err(Failure::new(
                "No run has begun to write into the ledger: there is nothing to check.",
            ));
        }
        if let (Some(recorded), Some(target)) = (&ledger, &arguments.target) {
            refuse_other_database(recorded, target)?;
        }
        let mut conditions = Vec::new();
        let mut shards = arguments.only.is_empty();
        for name in &arguments.only {
            if name.eq_ignore_ascii_case(DataCheck::LEDGER) {
                if ledger.is_none() {
                    let problem = "`--only ledger` needs a ledger.";
                    return Err(Failure::usage(problem).with_hint("Name it with --ledger FILE."));
                }
                continue;
            }
            if name.eq_ignore_ascii_case(DataCheck::SHARD_PLACEMENT) {
                shards = true;
                continue;
            }
            conditions.push(condition(name)?);
        }
        let are_named = !arguments.only.is_empty();
        Ok(CheckRequest {
            conditions: if are_named { conditions } else { CONDITIONS.iter().collect() },
            are_named,
            mode: if arguments.driver_side { Mode::Apart } else { Mode::Joined },
            ledger,
            shards,
        })
    }

    /// True when nothing was asked for that only TPC-C has.
    pub(super) fn is_usual(&self) -> bool {
        !self.are_named && self.mode == Mode::Joined && self.ledger.is_none()
    }
}

/// The host may be another one after a failover, the database's name and product may not.
fn refuse_other_database(recorded: &Recorded, target: &str) -> Result<(), Failure> {
    let read = |url: &str| url.trim_start_matches("jdbc:").parse::<TargetUrl>().ok();
    let (Some(recorded_url), Some(url)) = (read(&recorded.target), read(target)) else {
        return Ok(());
    };
    let is_same = recorded_url.dialect == url.dialect
        && (url.is_embedded()
            || recorded_url.database.is_none()
            || recorded_url.database == url.database);
    if is_same {
        return Ok(());
    }
    Err(Failure::new(format!(
        "The ledger {} was written on another database: {}.",
        recorded.path().display(),
        recorded.target
    ))
    .with_hint("Name that one, or the ledger of a run on this one."))
}

fn condition(name: &str) -> Result<&'static Condition, Failure> {
    let found = CONDITIONS.iter().find(|condition| condition.id.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let ids = CONDITIONS.iter().map(|condition| condition.id);
        let failure = Failure::usage(format!("There is no condition `{name}`."));
        let meant = nearest(&name.to_uppercase(), ids.clone());
        let all = ids
            .chain([DataCheck::LEDGER, DataCheck::SHARD_PLACEMENT])
            .collect::<Vec<_>>()
            .join(", ");
        failure.with_hint(match meant {
            Some(meant) => format!("Did you mean `{meant}`? There are {all}."),
            None => format!("There are {all}."),
        })
    })
}

pub(super) fn check(
    driver: &AdminDriver<'_>,
    wanted: &CheckRequest,
    loaded: &TpccDatabase,
    stage: Stage,
    server: String,
) -> Result<Report, Failure> {
    let ledger = match &wanted.ledger {
        Some(recorded) => {
            recorded.is_of(loaded)?;
            Some(check_ledger(driver, recorded)?)
        }
        None => None,
    };
    let mode = if joins_within_shards(&server) { Mode::Apart } else { wanted.mode };
    let mut lines = check_conditions(driver, wanted, mode, stage)?;
    if wanted.shards {
        lines.extend(check_shards(driver, loaded.warehouses, wanted.are_named)?);
    }
    let is_looked_at = lines.iter().any(|line| line.verdict != Verdict::NotMade);
    if !is_looked_at && ledger.is_none() {
        return Err(Failure::new(
            "Nothing was checked: C11 is for a database as it was loaded, and transactions have run on \
             this one.",
        )
        .with_hint("Check C11b, which holds at any time."));
    }
    let left_out = lines.iter().filter(|line| line.verdict == Verdict::NotMade);
    let facts = left_out.map(|line| {
        format!(
            "{} is for a database as it was loaded: transactions have run on this one.",
            line.id
        )
    });
    let is_unproven = wanted.shards && is_shardingsphere(&server) && driver.shards().is_none();
    let unproven = is_unproven.then(|| {
        format!("Nobody has said which shards are behind this endpoint: shard-placement is not checked. {HOW_TO_NAME_SHARDS}")
    });
    let facts = facts.chain(unproven);
    let warehouses = counted(loaded.warehouses, "warehouse");
    Ok(Report {
        workload: "tpcc",
        title: format!("TPC-C, {warehouses}, {}, on {server}", state(stage)),
        facts: facts.collect(),
        ledger,
        lines,
    })
}

fn state(stage: Stage) -> &'static str {
    match stage {
        Stage::Fresh => "as loaded",
        Stage::Used => "used since its load",
    }
}

fn check_conditions(
    driver: &AdminDriver<'_>,
    wanted: &CheckRequest,
    mode: Mode,
    stage: Stage,
) -> Result<Vec<Line>, Failure> {
    let progress = ProgressBar::new("checking", wanted.conditions.len() as u64, "conditions");
    let mut lines = Vec::new();
    for (done, condition) in wanted.conditions.iter().enumerate() {
        progress.at(done as u64, wanted.conditions.len() as u64, condition.id);
        let mut line = Line::new(condition.id, condition.rule().to_string());
        if condition.applies(stage) {
            let begin = Instant::now();
            let examined = condition.examine(driver, mode);
            let examined = examined.map_err(|error| Failure::from(&error).at(condition.id))?;
            if let Some(note) = examined.refusal_note() {
                progress.note(&note);
            }
            line.verdict = Verdict::of(examined.verdict.holds());
            line.violations = examined.verdict.violations;
            line.keys = examined.verdict.keys;
            line.is_driver_side = examined.is_apart;
            line.time_s = begin.elapsed().as_secs_f64();
        }
        lines.push(line);
    }
    progress.clear();
    Ok(lines)
}

/// Whether every row lies on its shard; `None` where there are none.
///
/// # Errors
/// They can't be asked, or it was asked for by name and they are not known.
fn check_shards(
    driver: &AdminDriver<'_>,
    warehouses: u32,
    is_named: bool,
) -> Result<Option<Line>, Failure> {
    let begin = Instant::now();
    let proof = prove(driver, warehouses, default_sessions(), &AskedNodes)?;
    let Some(proof) = proof else {
        let failure = || {
            Failure::usage("No shards are known of this database, or not how rows lie on them.")
                .with_hint(HOW_TO_NAME_SHARDS)
        };
        return if is_named { Err(failure()) } else { Ok(None) };
    };
    Ok(Some(Line {
        verdict: Verdict::of(proof.problems.is_empty()),
        violations: proof.found as u64,
        keys: proof.problems.iter().map(ToString::to_string).collect(),
        time_s: begin.elapsed().as_secs_f64(),
        ..Line::new(
            DataCheck::SHARD_PLACEMENT,
            "Every row lies on its shard, and the endpoint finds it there.",
        )
    }))
}

fn check_ledger(driver: &AdminDriver<'_>, recorded: &Recorded) -> Result<LedgerReport, Failure> {
    let total = recorded.acknowledged();
    let progress = ProgressBar::new("ledger", total, "orders");
    let begin = Instant::now();
    let settled = ask(driver, async |session| {
        settle(session, recorded, |done| progress.at(done, total, "")).await
    });
    progress.clear();
    if !recorded.is_ended {
        output::talk("note: The last run with this ledger was killed, or it is still going on.");
    }
    let settlement = settled.map_err(|failure| failure.at("The ledger"))?;
    Ok(LedgerReport {
        path: recorded.path().display().to_string(),
        recorded_target: recorded.target.clone(),
        runs: recorded.runs,
        is_ended: recorded.is_ended,
        torn: recorded.torn,
        refused: recorded.refused,
        settlement,
        time_s: begin.elapsed().as_secs_f64(),
    })
}
