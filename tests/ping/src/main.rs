//! dyno with one family more: an option, a load, a transaction, a fact, a check, a table in papers. Copy this to begin
//! another. A family of dyno's own has no `main`: its two names are lines of `crates/dyno/src/families.rs`.

use dyno::families::{FAMILIES, PAPERS};
use dyno_report::prelude::*;
use dyno_runner::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

fn main() -> std::process::ExitCode {
    dyno::main([FAMILIES, &[&FAMILY]].concat().leak(), [PAPERS, &[&PAPER]].concat().leak())
}

/// Suites say `workload = "ping"` and `test = "one-row"`.
const OFFER: WorkloadOffer =
    WorkloadOffer::new("ping", &[TestOffer { name: "one-row", size: None }], || describe(OPTIONS));
static FAMILY: FamilyEntry =
    FamilyEntry::new(OFFER, &[], |plan, planned| read_family(OPTIONS, plan, planned));

const OPTIONS: &[OptionRow<Ping>] = &[OptionRow::new(
    "number",
    "1",
    OptionValues::Whole(1, 1_000_000, |ping, number| ping.number = number),
    "the number that the table holds, and that each answer must have",
)];

/// Options of a suite, and the record of a trial: `wrong` are the answers with another number.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct Ping {
    number: u32,
    wrong: u64,
}

impl FamilyRecord for Ping {
    const FAMILY: &'static str = "ping";
}

impl Family for Ping {
    fn tables(&self) -> Vec<String> {
        vec!["ping".to_owned()]
    }

    fn load(&self, database: &Database, _: &LoadOrder<'_>) -> Result<Message> {
        ask(&database.primary_admin(), async |session| {
            execute(session, "creating ping", "CREATE TABLE ping (number INT)").await?;
            let row = format!("INSERT INTO ping VALUES ({})", self.number);
            execute(session, "filling ping", &row).await
        })?;
        Ok("1 row".into())
    }
}

impl Driven for Ping {
    type Workload = Asking;
    type Before = ();
    type Kept = ();

    fn look_before(&self, _: &Database, _: &TrialSpec, _: &Path) -> Result<Ready<Self>> {
        let kinds = [TransactionKind { name: "ping".to_owned(), weight: 1 }];
        let asking = Asking { kinds, number: self.number.into(), wrong: AtomicU64::new(0) };
        Ok(Ready::new("one-row", asking, ()))
    }

    fn look_after(&self, _: &Database, asking: &Asking, (): (), _: &EndedTrial<'_>) -> After {
        let facts = Ping { wrong: asking.wrong.load(Ordering::Relaxed), ..self.clone() };
        let verdict = if facts.wrong == 0 { CheckVerdict::Passed } else { CheckVerdict::Failed };
        let evidence = format!("{} answers were not {}.", facts.wrong, facts.number).into();
        let checks = vec![DataCheck { name: "number".to_owned(), verdict, evidence }];
        After { checks, own: Some(FamilyFacts::new(&facts)), ..After::default() }
    }
}

/// Data that the workers of a trial share. This is the hot path: `run` must not allocate.
struct Asking {
    kinds: [TransactionKind; 1],
    number: i64,
    wrong: AtomicU64,
}

impl Workload for Asking {
    type Worker = Statement;
    type Terminal = ();

    fn transactions(&self) -> &[TransactionKind] {
        &self.kinds
    }

    async fn open<S: Session>(&self, s: &mut S, _: u32, _: u32, _: Rng) -> DbResult<Statement> {
        s.prepare("SELECT number FROM ping", &[]).await
    }

    async fn reopen<S: Session>(&self, worker: &mut Statement, s: &mut S) -> DbResult<()> {
        s.prepare("SELECT number FROM ping", &[]).await.map(|prepared| *worker = prepared)
    }

    async fn run<S: Session>(
        &self,
        worker: &mut Statement,
        session: &mut S,
        _: TransactionId,
        _: u32,
        tally: &mut Tally,
    ) -> DbResult<Outcome> {
        let mut answer = None;
        tally.count(session.execute(*worker, &[], &mut answer).await?);
        self.wrong.fetch_add((answer != Some(self.number)).into(), Ordering::Relaxed);
        Ok(Outcome::Committed)
    }
}

const PAPER: NamedPaper = NamedPaper { table, ..NamedPaper::new("ping", "Pings") };

fn table(paper: &Paper, experiment: &Experiment) -> Option<PaperTable> {
    let record = |trial: &Trial| trial.summary.own::<Ping>().cloned();
    let rows = PaperRows::new("Answers of each trial", paper.trials_in(experiment))
        .text("Trial", |trial| &trial.label)
        .col("Number expected", NumberFormat::Whole, |trial| record(trial).map(|ping| ping.number))
        .col("Other answers", NumberFormat::Whole, |trial| record(trial).map(|ping| ping.wrong));
    Some(rows.into())
}
