//! The family: one option, one fact, one check; its table is in `paper`.

use crate::workload::Ping;
use dyno_core::offer::{Levels, TestOffer, UsualPace, WorkloadOffer};
use dyno_core::options::{OptionRow, OptionValues, read};
use dyno_engine::TrialSpec;
use dyno_facts::{CheckVerdict, DataCheck, ExperimentFacts, FamilyFacts, FamilyRecord, Message};
use dyno_load::catalog::tables;
use dyno_load::query::execute;
use dyno_runner::databases::Database;
use dyno_runner::failure::Failure;
use dyno_runner::family::{
    After, Driven, EndedTrial, Family, FamilyEntry, LoadOrder, Ready, ask, given, refused,
};
use dyno_suite::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

pub(crate) static PING: FamilyEntry =
    FamilyEntry::new(OFFER, &[], |plan, planned| Ok(Box::new(PingFamily::new(plan, planned)?)));

const OPTIONS: &[OptionRow<Settings>] = &[OptionRow::new(
    "number",
    "1",
    OptionValues::Whole(1, 1_000_000, |settings, number| settings.number = number),
    "the number that the table holds, and that each answer must have",
)];

struct Settings {
    number: u32,
}

/// What a trial records of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PingFacts {
    /// The number that was expected.
    pub(crate) number: u32,
    /// Answers with another one.
    pub(crate) wrong: u64,
}

impl FamilyRecord for PingFacts {
    const FAMILY: &'static str = "ping";
}

const OFFER: WorkloadOffer = WorkloadOffer {
    name: "ping",
    tests: &[TestOffer { name: "one-row", size: None }],
    levels: Levels::Workers,
    workers_alias: None,
    options: || OPTIONS.iter().map(OptionRow::describe).collect(),
    has_stages: true,
    pace: UsualPace::loading(100_000.0),
};

struct PingFamily {
    settings: Settings,
}

impl PingFamily {
    fn new(plan: &Plan, experiment: &ExperimentFacts) -> Result<Self, Failure> {
        let mut settings = Settings { number: 1 };
        read(OPTIONS, ("ping", &experiment.test), given(experiment), &mut settings)
            .map_err(|error| refused(plan, experiment, error))?;
        Ok(PingFamily { settings })
    }
}

impl Family for PingFamily {
    fn load(&self, database: &Database, _order: &LoadOrder<'_>) -> Result<Message, Failure> {
        ask(&database.primary_admin(), async |session| {
            execute(session, "creating ping", "CREATE TABLE ping (number INT)").await?;
            let row = format!("INSERT INTO ping VALUES ({})", self.settings.number);
            execute(session, "filling ping", &row).await
        })?;
        Ok("1 row".into())
    }

    fn tables(&self) -> Vec<String> {
        vec!["ping".to_owned()]
    }

    fn existing(&self, database: &Database) -> Result<BTreeSet<String>, Failure> {
        let existing = ask(&database.primary_admin(), async |session| tables(session).await)?;
        Ok(existing.into_iter().filter(|table| table == "ping").collect())
    }
}

impl Driven for PingFamily {
    type Workload = Ping;
    type Before = ();
    type Kept = ();

    /// What a part has counted is not kept for the whole.
    fn takes_fleet(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    fn look_before(
        &self,
        _database: &Database,
        _spec: &TrialSpec,
        _stem: &Path,
    ) -> Result<Ready<Self>, Failure> {
        let workload = Ping::new(self.settings.number);
        let own = Some(FamilyFacts::new(&self.facts(&workload)));
        let (test, warnings) = ("one-row".to_owned(), Vec::new());
        Ok(Ready { workload, before: (), test, data: None, own, warnings })
    }

    fn part(&self, _: &Database, _spec: &TrialSpec, _stem: &Path) -> Result<Ping, Failure> {
        Ok(Ping::new(self.settings.number))
    }

    fn look_after(
        &self,
        _database: &Database,
        workload: &Ping,
        (): (),
        _ran: &EndedTrial<'_>,
    ) -> After {
        let facts = self.facts(workload);
        let (verdict, evidence) = match facts.wrong {
            0 => (CheckVerdict::Passed, format!("All answers were {}.", facts.number)),
            wrong => (CheckVerdict::Failed, format!("{wrong} answers were not {}.", facts.number)),
        };
        let check = DataCheck { name: "number".to_owned(), verdict, evidence: evidence.into() };
        After { checks: vec![check], own: Some(FamilyFacts::new(&facts)), ..After::default() }
    }
}

impl PingFamily {
    fn facts(&self, workload: &Ping) -> PingFacts {
        let wrong = workload.wrong.load(Ordering::Relaxed);
        PingFacts { number: self.settings.number, wrong }
    }
}
