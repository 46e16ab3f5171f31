//! TPC-C in suites, and what everything that runs it needs around a run: what has to be right before it, what
//! is checked before and after it, and what is reported of it.

mod checks;

use checks::data_check;
pub use checks::{
    Before, Preflight, is_missing, look_after, look_before, not_made, preflight, trial_needs,
};

use crate::Handover;
use crate::across::{
    ForeignWork, MappedNodes, across_check, footprint_of_shards, foreign_before, settle_on_shards,
    shards_without_rows, wait_for_branches,
};
use crate::facts::{TpccFacts, TpccKind};
use crate::ledger::{DistrictBooks, LedgerFile, Recorded, read};
use crate::load::{
    LOAD_NEEDS, LoadReport, TpccDatabase, TpccLoadOptions, check_options, existing_tables, load,
    loaded, mapped_shards,
};
use crate::options::{OFFER, TpccSettings};
use crate::profile::{DEFERRED_LIMIT_S, LIMITS_S, MIX_LEAST_PERCENT};
use crate::schema::{CONFIG, table_names};
use crate::settle::settle;
use crate::{DISTRICTS, ITEMS, Isolation, Timestamp, Tpcc, TpccOptions};
use dyno_core::{AdminDriver, AdminSession, Workload, counted};
use dyno_engine::TrialSpec;
use dyno_facts::format::short;
use dyno_facts::{
    CheckVerdict, DataCheck, DataFacts, ExperimentFacts, FamilyFacts, KindSummary, Message, say,
};
use dyno_load::settings::ServerNeed;
use dyno_runner::databases::Database;
use dyno_runner::failure::Failure;
use dyno_runner::family::{
    After, DriveOn, Driven, EndedTrial, Family, FamilyEntry, Footprint, LoadOrder, LostWork, Ready,
    UNPREPARED_HINT, all_or_none, ask, drive_on, footprint, given, load_failure, refused, with_p95,
};
use dyno_suite::Plan;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// TPC-C, for the registry.
pub static FAMILY: FamilyEntry = FamilyEntry::new(OFFER, crate::CATALOG, |plan, planned| {
    Ok(Box::new(TpccFamily::new(plan, planned)?))
});

pub static DRIVE_ON: DriveOn<Tpcc> = drive_on;

struct TpccFamily {
    options: Box<TpccSettings>,
    /// Set if a fault is injected: every order is recorded then, so that it can be looked for.
    has_fault: bool,
}

const OTHER_DATA_HINT: &str = "Drop the tables whose names begin with bmsql_, use another database, or write the \
                               number of warehouses that is there into the suite.";

struct TpccData {
    loaded: TpccDatabase,
    before: Before,
    ledger: Option<PathBuf>,
    /// Transactions of the others on each shard; empty if no shards are known.
    foreign: Vec<ForeignWork>,
}

impl TpccFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let options = TpccSettings::read(&experiment.test, given(experiment))
            .and_then(|options| {
                options.check_load(&experiment.workers, !experiment.rates.is_empty())?;
                Ok(options)
            })
            .map_err(|error| refused(plan, experiment, error))?;
        Ok(TpccFamily { options: Box::new(options), has_fault: experiment.fault.is_some() })
    }
}

impl Family for TpccFamily {
    fn needs(&self) -> Vec<ServerNeed> {
        [trial_needs(self.options.run.isolation), &LOAD_NEEDS[1..]].concat()
    }

    fn fits(&self, database: &Database) -> Result<(), Failure> {
        let driver = &database.primary_admin();
        check_options(&self.load_options(0), driver.dialect()).map_err(Failure::from)
    }

    fn load(&self, database: &Database, order: &LoadOrder<'_>) -> Result<Message, Failure> {
        let driver = &database.primary_admin();
        load(driver, &self.load_options(order.seed), order.observer)
            .map(|report| self.load_sentence(&report))
            .map_err(|error| load_failure(&error, OTHER_DATA_HINT))
    }

    fn settle(&self, database: &Database, ledger: &Path) -> Result<LostWork, Failure> {
        look_up(&database.primary_admin(), &read(ledger)?)
    }

    fn tables(&self) -> Vec<String> {
        table_names().map(str::to_owned).collect()
    }

    fn idle_tables(&self) -> Vec<&'static str> {
        vec![CONFIG]
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        let driver = &database.primary_admin();
        let existing = ask(driver, async |session| existing_tables(session).await)?;
        Ok(all_or_none(!existing.is_empty(), self.tables()))
    }
}

impl Driven for TpccFamily {
    type Workload = Tpcc;
    type Before = TpccData;
    type Kept = Handover;

    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn rolls_back_reads(&self) -> bool {
        self.options.run.profile.rolls_back_reads
    }

    /// A suite speaks of terminals; sessions are the engine's workers.
    fn tune(&self, spec: &mut TrialSpec) {
        if let Some(sessions) = self.options.session_count(spec.workers) {
            spec.terminals = Some(spec.workers);
            spec.workers = sessions;
        }
    }

    fn look_before(
        &self,
        database: &Database,
        spec: &TrialSpec,
        stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let driver = &database.primary_admin();
        let ((loaded, mut preflight), mut size) = ask(driver, async |session| {
            let preflight = self.preflight(session, spec.workers).await?;
            Ok::<_, Failure>((preflight, footprint(session, "bmsql@_%").await?))
        })?;
        let mapped = mapped_shards(driver);
        if let Some((map, shards)) = &mapped {
            let memory_setting = size.memory_setting;
            size = Footprint { memory_setting, ..footprint_of_shards(shards)? };
            let idle = shards_without_rows(shards, map, loaded.warehouses);
            preflight.warnings.extend(idle.map(|idle| idle.to_string()));
        }
        let data = DataFacts {
            rows: u64::from(self.options.run.warehouses) * u64::from(ITEMS),
            hot_rows: None,
            access: self.options.words(),
            size_bytes: size.size_bytes,
            memory_setting: size.memory_setting.to_owned(),
            memory_bytes: size.memory_bytes,
        };
        let workload = self.new_workload(driver, &loaded, preflight.isolation, spec)?;
        let before = look_before(driver, self.options.checks(), loaded.warehouses)?;
        let ledger = self.ledger(database, stem);
        let foreign = mapped.map_or(Ok(Vec::new()), |(_, shards)| foreign_before(&shards))?;
        let file = ledger.as_ref().map(|path| {
            // The file of a trial that was killed and is repeated.
            let _ = std::fs::remove_file(path);
            LedgerFile::open(path, "trial", &loaded, spec.seed, &before.books)
        });
        let workload = workload.with_ledger(file.transpose()?);
        let initial_facts = facts(&workload, &loaded, spec, &[], 0.0);
        Ok(Ready {
            workload,
            before: TpccData { loaded, before, ledger, foreign },
            test: self.options.run.profile.name.to_owned(),
            data: Some(data),
            own: Some(FamilyFacts::new(&initial_facts)),
            warnings: preflight.warnings,
        })
    }

    fn part(&self, database: &Database, spec: &TrialSpec, stem: &Path) -> Result<Tpcc, Failure> {
        let driver = &database.primary_admin();
        let (loaded, preflight) =
            ask(driver, async |session| self.preflight(session, spec.all_workers()).await)?;
        let workload = self.new_workload(driver, &loaded, preflight.isolation, spec)?;
        let file =
            self.ledger(database, stem).map(|path| LedgerFile::create_part(&path)).transpose()?;
        Ok(workload.with_ledger(file))
    }

    fn leave(&self, workload: &Tpcc) -> Result<Option<Handover>, Failure> {
        workload.leave().map(Some)
    }

    fn absorb(&self, workload: &Tpcc, kept: Handover) -> Result<(), Failure> {
        workload.absorb(kept)
    }

    /// A server that dies unasked leaves work on shards that is half done, too.
    fn ledger(&self, database: &Database, stem: &Path) -> Option<PathBuf> {
        let driver = &database.primary_admin();
        let is_kept = self.has_fault || mapped_shards(driver).is_some();
        is_kept.then(|| stem.with_extension("ledger"))
    }

    fn acknowledged_on(&self, database: &Database, workload: &Tpcc, shard: &str) -> Option<u64> {
        let driver = &database.primary_admin();
        let (map, shards) = mapped_shards(driver)?;
        let number = shards.iter().position(|node| node.name == shard)?;
        Some(workload.acknowledged_at(|warehouse| map.shard_of(warehouse) == number))
    }

    fn look_after(
        &self,
        database: &Database,
        workload: &Tpcc,
        data: TpccData,
        ran: &EndedTrial<'_>,
    ) -> After {
        let driver = &database.primary_admin();
        let mapped = mapped_shards(driver);
        let mapped = mapped.as_ref().map(|(map, shards)| (&shards[..], map));
        let checked = mapped.filter(|_| ran.unchecked.is_none());
        let branches = checked.and_then(|(shards, _)| wait_for_branches(shards));
        let mut findings = match ran.unchecked.clone() {
            Some(why) => not_made(&data.before, &why),
            None => look_after(driver, workload, &data.before),
        };
        let (kinds, window_s) = (&ran.summary.kinds, ran.summary.window_s);
        let mut facts = facts(workload, &data.loaded, ran.spec, kinds, window_s);
        facts.conditions = findings.conditions;
        let losses = data.ledger.as_ref().map(|ledger| {
            let settled = match ran.unchecked.clone() {
                Some(why) => Err(why),
                None => {
                    let shards = mapped.map(|shards| (shards, &data.foreign[..], branches));
                    settle_trial(driver, workload, ledger, shards, findings.payments_missing)
                        .map_err(|failure| failure.message)
                }
            };
            let (lost, across) = settled.unwrap_or_else(|why: Message| {
                let across = mapped
                    .map(|_| data_check(DataCheck::ACROSS, CheckVerdict::NotMade, why.clone()));
                (LostWork::unknown(why), across)
            });
            findings.checks.extend(across);
            findings.checks.push(ledger_check(&lost));
            lost
        });
        let warehouses = data.loaded.warehouses;
        let idle = mapped.and_then(|(shards, map)| shards_without_rows(shards, map, warehouses));
        let queued = Some(workload.deliveries_left()).filter(|count| *count > 0);
        let queued = queued.map(|count| say!(deliveries_left, n = count));
        let unproven = findings.checks.iter().filter(|check| is_missing(check));
        let [tpmc, committed, total] =
            [facts.tpmc, facts.tpmc_committed, facts.tpm_total].map(short);
        let rates = format!("{tpmc} tpmC ({committed} acknowledged), {total} tpmTOTAL");
        After {
            lost: losses,
            unproven: unproven.map(|check| check.name.clone()).collect(),
            headline: Some(with_p95(&rates, ran.summary)),
            checks: findings.checks,
            own: Some(FamilyFacts::new(&facts)),
            notes: queued.into_iter().chain(idle).collect(),
            ..After::default()
        }
    }
}

impl TpccFamily {
    fn load_options(&self, seed: u64) -> TpccLoadOptions {
        TpccLoadOptions { seed, loaded_at: Timestamp::now(), ..self.options.load.clone() }
    }

    /// Reads what is loaded, and inspects it and the server; fails if a run needs more warehouses.
    async fn preflight(
        &self,
        session: &mut AdminSession<'_>,
        sessions: u32,
    ) -> Result<(TpccDatabase, Preflight), Failure> {
        let loaded = loaded(session).await;
        let loaded = loaded.map_err(|error| load_failure(&error, UNPREPARED_HINT))?;
        let (requested, available) = (self.options.run.warehouses, loaded.warehouses);
        if available < requested {
            let warehouses = counted(requested, "warehouse");
            return Err(Failure::new(format!(
                "The run asks for {warehouses}, and the database has {available}."
            ))
            .with_hint(format!("Write `warehouses = {available}`, or load other tables.")));
        }
        let isolation = self.options.run.isolation;
        let foreign_keys = self.options.load.foreign_keys;
        Ok((loaded, preflight(session, sessions, isolation, foreign_keys).await?))
    }

    fn new_workload(
        &self,
        driver: &AdminDriver<'_>,
        loaded: &TpccDatabase,
        isolation: Option<Isolation>,
        spec: &TrialSpec,
    ) -> Result<Tpcc, Failure> {
        let options = TpccOptions { isolation, seed: spec.seed, ..self.options.run.clone() };
        let workload = Tpcc::new(options, loaded, driver.dialect()).map_err(Failure::new)?;
        Ok(match mapped_shards(driver) {
            Some((map, _)) => workload.with_shards(map),
            None => workload,
        })
    }

    fn load_sentence(&self, report: &LoadReport) -> Message {
        let warehouses = self.options.run.warehouses;
        if report.was_complete {
            return say!(warehouses_complete, n = warehouses);
        }
        report.sentence()
    }
}

/// Shards and their map, what each had of the others' transactions before, and the branches that were found on them.
type SettledShards<'a> = (MappedNodes<'a>, &'a [ForeignWork], Option<(u64, Duration)>);

/// Holds the ledger of a trial that has ended against the database; with shards also what lies on several of them.
fn settle_trial(
    driver: &AdminDriver<'_>,
    workload: &Tpcc,
    ledger: &Path,
    shards: Option<SettledShards<'_>>,
    payments_missing: u64,
) -> Result<(LostWork, Option<DataCheck>), Failure> {
    workload.ledger_file().map_or(Ok(()), LedgerFile::close)?;
    let recorded = read(ledger)?;
    let Some((shards, foreign, branches)) = shards else {
        return Ok((look_up(driver, &recorded)?, None));
    };
    let DistrictBooks { orders, payments, .. } = workload.acknowledged();
    // A load generator that was lost has not handed its part over.
    if orders.acknowledged != recorded.acknowledged() {
        return Err(Failure::new(say!(ledger_incomplete)));
    }
    let (settled, work) = settle_on_shards(shards, &recorded, foreign, branches)?;
    let check = across_check(&work);
    let about_payments = match payments_missing {
        0 => say!(payments_counted),
        n => say!(payments_missing, n),
    };
    // Orders that are away from home are among the lost ones by what became of their other parts, and payments on
    // several shards, too.
    let lost_count = settled.lost.saturating_sub(work.orders_away_from_home)
        + work.losses.lost
        + payments_missing.saturating_sub(work.payments_away_from_home);
    let evidence = [settled.evidence(), about_payments, check.evidence.clone()];
    let losses = LostWork {
        acknowledged: Some(settled.acknowledged + payments.acknowledged),
        lost: Some(lost_count),
        unknown: Some(settled.unknown + payments.unknown),
        evidence: Message::sentences(&evidence),
        across_shards: Some(work.losses),
    };
    Ok((losses, Some(check)))
}

/// Acknowledged work, order by order: the books compare sums only.
fn ledger_check(lost: &LostWork) -> DataCheck {
    let verdict = match lost.lost {
        None => CheckVerdict::NotMade,
        Some(0) => CheckVerdict::Passed,
        Some(_) => CheckVerdict::Failed,
    };
    let counts = lost.acknowledged.zip(lost.lost);
    let counts = counts.map(|(acknowledged, lost)| say!(ledger_counted, acknowledged, lost));
    let evidence: Vec<_> = counts.into_iter().chain([lost.evidence.clone()]).collect();
    data_check(DataCheck::LEDGER, verdict, Message::sentences(&evidence))
}

/// Looks for every order that was acknowledged.
fn look_up(driver: &AdminDriver<'_>, recorded: &Recorded) -> Result<LostWork, Failure> {
    let settled = ask(driver, async |session| settle(session, recorded, |_| {}).await)?;
    Ok(LostWork {
        acknowledged: Some(settled.acknowledged),
        lost: Some(settled.lost),
        unknown: Some(settled.unknown),
        across_shards: None,
        evidence: settled.evidence(),
    })
}

/// The facts of a run that has ended, from its kinds and the length of its window. The conditions are
/// left to [`look_after`].
pub fn facts(
    workload: &Tpcc,
    loaded: &TpccDatabase,
    spec: &TrialSpec,
    kinds: &[KindSummary],
    window_s: f64,
) -> TpccFacts {
    let options = &workload.options;
    let profile = &options.profile;
    let terminals = spec.terminals.unwrap_or(spec.workers);
    let audit = workload.audit();
    let orders = workload.acknowledged().orders;
    let mut facts = TpccFacts {
        profile: profile.name.to_owned(),
        isolation: workload.isolation.name().map(str::to_owned),
        warehouses: options.warehouses,
        warehouses_loaded: loaded.warehouses,
        terminals,
        sessions: spec.workers,
        tpmc_limit: tpmc_limit(workload, terminals),
        kinds: kinds_facts(workload),
        orders_acknowledged: orders.acknowledged,
        orders_unknown: orders.unknown,
        deliveries: audit.deliveries,
        deliveries_with_skips: audit.deliveries_with_skips,
        shards: workload.shards(),
        crossing_share: workload.lock_counters().crossing_share(),
        audit: audit.figures.into_iter().map(|figure| figure.line).collect(),
        ..TpccFacts::default()
    };
    facts.set_rates(kinds, window_s);
    facts
}

/// The tpmC that keying and think times allow; `None` without them. More terminals than the ten of each
/// warehouse enter more.
fn tpmc_limit(workload: &Tpcc, terminals: u32) -> Option<f64> {
    let options = &workload.options;
    let usual = f64::from(options.warehouses) * f64::from(DISTRICTS);
    let crowd = (f64::from(terminals) / usual.max(1.0)).max(1.0);
    options.tpmc_max().map(|limit| limit * crowd)
}

/// Bounds of each kind. The deferred part of Delivery comes last, and is not a part of the mix.
fn kinds_facts(workload: &Tpcc) -> Vec<TpccKind> {
    let profile = &workload.options.profile;
    let (shares, pauses) = (profile.choice.shares(), workload.pauses());
    let sum: u32 = shares.iter().sum();
    let kinds = workload.transactions().iter().enumerate().map(|(at, kind)| TpccKind {
        name: kind.name.clone(),
        limit_p90_s: LIMITS_S.get(at).copied().unwrap_or(DEFERRED_LIMIT_S),
        share_percent: shares
            .get(at)
            .map_or(0.0, |share| 100.0 * f64::from(*share) / f64::from(sum.max(1))),
        least_share_percent: MIX_LEAST_PERCENT.get(at).copied().unwrap_or(0.0),
        pauses: pauses.and_then(|pauses| pauses.get(at).copied()),
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TpccOptions;
    use crate::profile::{BMSQL_5_0, SPEC};
    use dyno_core::Dialect;
    use dyno_facts::CheckVerdict;
    use dyno_facts::Counts;

    fn kind_summary(name: &str, committed: u64) -> KindSummary {
        let counts = Counts { committed, started: committed, ..Counts::default() };
        let (statements, latency) = Default::default();
        KindSummary { name: name.to_owned(), counts, statements, latency }
    }

    #[test]
    fn rates_count_rollbacks_of_the_profile_and_a_delivery_once() {
        let loaded = TpccDatabase { warehouses: 5, c_last: 100 };
        let options = TpccOptions { warehouses: 2, ..TpccOptions::new(BMSQL_5_0, &loaded, 1) };
        let workload = Tpcc::new(options, &loaded, Dialect::Mysql).unwrap();
        let mut kinds = [
            kind_summary("new_order", 45),
            kind_summary("delivery", 4),
            kind_summary("delivery_deferred", 4),
        ];
        kinds[0].counts.rolled_back = 1;
        let spec = TrialSpec { terminals: Some(20), ..TrialSpec::closed(4) };
        let facts = facts(&workload, &loaded, &spec, &kinds, 30.0);
        assert_eq!((facts.tpmc, facts.tpmc_committed, facts.tpm_total), (92.0, 90.0, 100.0));
        assert_eq!((facts.warehouses, facts.warehouses_loaded), (2, 5));
        assert_eq!((facts.terminals, facts.sessions), (20, 4));
        assert_eq!(facts.isolation.as_deref(), Some("READ COMMITTED"));
        assert_eq!(facts.profile, "bmsql-5.0");
        assert_eq!(facts.tpmc_limit, None);
        let payment = &facts.kinds[1];
        assert_eq!((payment.limit_p90_s, payment.share_percent), (5.0, 43.0));
        assert_eq!(facts.audit.len(), 14, "nine shares, the lines, four distributions");
        assert!(facts.audit.iter().all(|line| line.verdict == CheckVerdict::NotMade));
    }

    #[test]
    fn pauses_bound_the_orders_of_a_warehouse() {
        let loaded = TpccDatabase { warehouses: 10, c_last: 100 };
        let options = TpccOptions::new(SPEC, &loaded, 1);
        let workload = Tpcc::new(options.clone(), &loaded, Dialect::Postgres).unwrap();
        let spec = TrialSpec { terminals: Some(100), ..TrialSpec::closed(8) };
        let facts = facts(&workload, &loaded, &spec, &[], 30.0);
        assert!((facts.tpmc_limit.unwrap() - 128.6).abs() < 1e-9);
        // Twenty terminals a warehouse, which key and think half as long.
        let (keying_multiplier, think_multiplier) = (0.5, 0.5);
        let options = TpccOptions { keying_multiplier, think_multiplier, ..options };
        let hasty = Tpcc::new(options, &loaded, Dialect::Postgres).unwrap();
        assert!((tpmc_limit(&hasty, 200).unwrap() - 4.0 * 128.6).abs() < 1e-9);
        assert_eq!(tpmc_limit(&workload, 1), facts.tpmc_limit, "the most that pauses allow");
        assert_eq!((facts.isolation, facts.terminals, facts.sessions), (None, 100, 8));
        let names: Vec<&str> = facts.kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names.last(), Some(&TpccFacts::DEFERRED));
        let deferred = facts.kinds.last().unwrap();
        assert_eq!((deferred.limit_p90_s, deferred.share_percent), (80.0, 0.0));
        assert_eq!(facts.kinds[4].least_share_percent, 4.0);
    }
}
