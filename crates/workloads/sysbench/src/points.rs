//! `select_random_points` and `select_random_ranges`: one statement that reads several random keys
//! of the first table. Each worker has its own share of the key range.

use crate::distribution::Sampler;
use crate::options::{SysbenchOptions, SysbenchTest};
use crate::statements::{placeholders, substitute};
use dyno_core::{
    DbError, Dialect, Discard, Outcome, Param, ParamType, Rng, Session, Statement, Tally, WorkerId,
};

#[derive(Debug)]
pub(crate) struct RandomKeys {
    template: String,
    draws: u32,
    /// Parameters per draw: 1 for points, 2 for ranges.
    per_draw: usize,
    delta: i64,
    prepared: bool,
}

#[derive(Debug)]
pub(crate) struct RandomKeysWorker {
    rng: Rng,
    keys: Sampler,
    statement: Option<Statement>,
    params: Vec<Param<'static>>,
    text: String,
}

/// Letters that a drawn number takes in text mode, at most, with the comma.
const NUMBER_LENGTH: usize = 12;

impl RandomKeys {
    pub(crate) fn new(options: &SysbenchOptions) -> Self {
        let ranges = matches!(
            options.test,
            SysbenchTest::SelectRandomRanges | SysbenchTest::V05SelectRandomRanges
        );
        let table = if options.test.is_legacy() { "sbtest" } else { "sbtest1" };
        let draws = if ranges { options.number_of_ranges } else { options.random_points };
        let template = if ranges {
            let parts = vec!["k BETWEEN ? AND ?"; draws as usize];
            format!("SELECT count(k) FROM {table} WHERE {}", parts.join(" OR "))
        } else {
            let parts = vec!["?"; draws as usize];
            format!("SELECT id, k, c, pad FROM {table} WHERE k IN ({})", parts.join(", "))
        };
        RandomKeys {
            template,
            draws,
            per_draw: if ranges { 2 } else { 1 },
            delta: i64::from(options.delta),
            prepared: options.prepared,
        }
    }

    pub(crate) async fn open<S: Session>(
        &self,
        session: &mut S,
        options: &SysbenchOptions,
        id: WorkerId,
        workers: u32,
        rng: Rng,
    ) -> Result<RandomKeysWorker, DbError> {
        // The share is a fraction whose bounds lose their decimals only at the draw.
        let share = f64::from(options.table_size) / f64::from(workers.max(1));
        let low = (share * f64::from(id)) as u32;
        let high = (share * f64::from(id.saturating_add(1))) as u32;
        let params = self.draws as usize * self.per_draw;
        let mut worker = RandomKeysWorker {
            rng,
            keys: Sampler::new(&options.random, options.test.era(), low, high),
            statement: None,
            params: Vec::with_capacity(params),
            text: String::new(),
        };
        self.reopen(&mut worker, session).await?;
        if worker.statement.is_none() {
            worker.text.reserve(self.template.len() + params * NUMBER_LENGTH);
        }
        Ok(worker)
    }

    pub(crate) async fn reopen<S: Session>(
        &self,
        worker: &mut RandomKeysWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        if self.prepared {
            let sql = self.sql(session.dialect());
            let types = vec![ParamType::Int; self.draws as usize * self.per_draw];
            worker.statement = Some(session.prepare(&sql, &types).await?);
        }
        Ok(())
    }

    fn sql(&self, dialect: Dialect) -> String {
        placeholders(&self.template, 1, dialect)
    }

    pub(crate) async fn run<S: Session>(
        &self,
        worker: &mut RandomKeysWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        worker.params.clear();
        for _ in 0..self.draws {
            let key = worker.keys.draw(&mut worker.rng);
            worker.params.push(Param::Int(key));
            if self.per_draw == 2 {
                worker.params.push(Param::Int(key + self.delta));
            }
        }
        let done = match worker.statement {
            Some(statement) => {
                session.execute_short(statement, &worker.params, &mut Discard).await?
            }
            None => {
                worker.text.clear();
                substitute(&mut worker.text, &self.template, 1, &worker.params);
                session.query(&worker.text, &mut Discard).await?
            }
        };
        tally.count(done);
        Ok(Outcome::Committed)
    }
}
