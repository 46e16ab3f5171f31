//! Answers too large to keep, read by threads of their own and merged by key as they come.
//!
//! A session pushes its rows, and two answers that are merged do not come equally fast: each one has
//! a thread that waits when it is too far ahead, and the server behind it waits with it.

use super::prepare;
use crate::text::read_scaled;
use dyno_core::{AdminDriver, AnswerRow, DbError, Dialect, Driver, Rows, Session};
use dyno_load::goes_on;
use dyno_reactor::block_on;
use dyno_runner::databases::stopped;
use dyno_runner::signals::unless_stopped;
use dyno_runner::watch::noted;
use std::cell::Cell;
use std::cmp::Ordering;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::Poll;
use std::thread::Scope;

/// Rows that travel together between threads.
const BATCH_ROWS: usize = 4_096;
const BATCHES_AHEAD: usize = 4;

/// One of the answers that are merged: rows in the order of their keys, which are integers.
#[derive(Clone, Debug)]
pub(super) struct MergedAnswer {
    pub(super) sql: String,
    /// The columns of the key come first.
    pub(super) keys: usize,
    /// The decimal places of the values behind them.
    pub(super) values: &'static [u32],
}

/// Rows in one piece, and what ended the answer.
type Batch = Result<Vec<i64>, DbError>;

/// The reader's end of an answer.
pub(super) struct Stream {
    batches: Receiver<Batch>,
    batch: Vec<i64>,
    at: usize,
    keys: usize,
    width: usize,
}

impl Stream {
    /// Begins to read on a thread of its own. `number` is that of the connection.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        driver: &'scope AdminDriver<'scope>,
        number: u32,
        side: &MergedAnswer,
    ) -> Self {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let (keys, width) = (side.keys, side.keys + side.values.len());
        let side = side.clone();
        scope.spawn(move || {
            let from = side.sql.split(" FROM ").nth(1).unwrap_or_default();
            let table: String = from.chars().take_while(|&char| char != ' ').collect();
            let what = format!("reading {table} for a comparison");
            let read = noted(&what, unless_stopped(read(driver, number, &side, &sender)));
            let ended = match block_on(read) {
                Ok(ended) => ended.unwrap_or_else(|| Err(stopped())),
                Err(error) => Err(DbError::unreachable(error.to_string())),
            };
            if let Err(error) = ended {
                // Nobody listens any more when another answer has failed first.
                let _ = sender.send(Err(error));
            }
        });
        Stream { batches, batch: Vec::new(), at: 0, keys, width }
    }

    /// The row that is next: key and values. `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<&[i64]>, DbError> {
        while self.at >= self.batch.len() {
            match self.batches.recv() {
                Ok(batch) => (self.batch, self.at) = (batch?, 0),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(&self.batch[self.at..self.at + self.width]))
    }

    fn skip(&mut self) {
        self.at += self.width;
    }

    /// Takes all rows with this key and adds up their values; rows with smaller keys are left
    /// behind.
    fn take(&mut self, key: &[i64], values: &mut [i64]) -> Result<(), DbError> {
        let keys = self.keys;
        while let Some(row) = self.peek()? {
            match row[..keys].cmp(key) {
                Ordering::Greater => break,
                Ordering::Less => {}
                Ordering::Equal => {
                    values.iter_mut().zip(&row[keys..]).for_each(|(sum, value)| *sum += value);
                }
            }
            self.skip();
        }
        Ok(())
    }
}

/// Joins answers by the key of the first one, whose rows are all kept: `each` gets its row with the
/// sums of the others' values behind it, 0 where there are none.
pub(super) fn merge(
    driver: &AdminDriver<'_>,
    left: &MergedAnswer,
    rights: &[MergedAnswer],
    mut each: impl FnMut(&[i64]),
) -> Result<(), DbError> {
    std::thread::scope(|scope| {
        let mut left_stream = Stream::start(scope, driver, 0, left);
        let mut streams: Vec<Stream> = (1..)
            .zip(rights)
            .map(|(number, side)| Stream::start(scope, driver, number, side))
            .collect();
        let mut joined = Vec::new();
        while let Some(row) = left_stream.peek()? {
            joined.clear();
            joined.extend_from_slice(row);
            left_stream.skip();
            for (stream, side) in streams.iter_mut().zip(rights) {
                let begin = joined.len();
                joined.resize(begin + side.values.len(), 0);
                let (row, values) = joined.split_at_mut(begin);
                stream.take(&row[..left.keys], values)?;
            }
            each(&joined);
        }
        // The rest has no row to be joined with, but an error behind it must not be missed.
        for stream in &mut streams {
            while stream.peek()?.is_some() {
                stream.skip();
            }
        }
        Ok(())
    })
}

async fn read(
    driver: &AdminDriver<'_>,
    number: u32,
    side: &MergedAnswer,
    sender: &SyncSender<Batch>,
) -> Result<(), DbError> {
    let mut session = driver.connect(number).await?;
    prepare(&mut session).await?;
    let is_over = Cell::new(false);
    let mut rows = Forward {
        side,
        dialect: session.dialect(),
        sender,
        batch: Vec::new(),
        last: Vec::new(),
        error: None,
        is_over: &is_over,
    };
    {
        let mut query = pin!(session.query(&side.sql, &mut rows));
        // A reader that nobody listens to any more leaves the rest of the answer unread.
        let read = poll_fn(|context| match is_over.get() {
            true => Poll::Ready(Ok(())),
            false => query.as_mut().poll(context).map(|read| read.map(drop)),
        });
        read.await?;
    }
    if is_over.get() {
        return rows.error.map_or(Ok(()), Err);
    }
    rows.send();
    session.close().await;
    Ok(())
}

/// Sends rows on, as integers.
struct Forward<'a> {
    side: &'a MergedAnswer,
    dialect: Dialect,
    sender: &'a SyncSender<Batch>,
    batch: Vec<i64>,
    last: Vec<i64>,
    error: Option<DbError>,
    /// The receiver is gone, or a row can't be used.
    is_over: &'a Cell<bool>,
}

impl Forward<'_> {
    fn send(&mut self) {
        goes_on();
        if self.sender.send(Ok(std::mem::take(&mut self.batch))).is_err() {
            self.is_over.set(true);
        }
    }

    fn fail(&mut self, what: &str) {
        self.error = Some(DbError::workload(format!("{what}, in: {}", self.side.sql)));
        self.is_over.set(true);
    }
}

impl Rows for Forward<'_> {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        if self.is_over.get() {
            return;
        }
        // Keys are never NULL; ShardingSphere-Proxy makes one such row of groups when there are none.
        if row.is_null(0) {
            return;
        }
        let begin = self.batch.len();
        let places = std::iter::repeat_n(&0, self.side.keys).chain(self.side.values);
        for (column, &decimals) in places.enumerate() {
            match read_scaled(row, column, decimals, self.dialect) {
                Some(value) => self.batch.push(value),
                None => return self.fail(&format!("Column {} is no number", column + 1)),
            }
        }
        // A database that can't sort over its shards would make the comparison worthless.
        let key = &self.batch[begin..begin + self.side.keys];
        if self.last.as_slice() > key {
            return self.fail("The rows do not come in the order that was asked for");
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        if self.batch.len() >= BATCH_ROWS * (self.side.keys + self.side.values.len()) {
            self.send();
        }
    }
}
