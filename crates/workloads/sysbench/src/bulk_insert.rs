//! `bulk_insert`: every worker fills its own table with rows (n, n), many per statement. The
//! transaction is one row; most of them only join the packet that the next full one sends.

use crate::options::SysbenchOptions;
use dyno_core::{
    AdminSession, DbError, Discard, ErrorClass, Outcome, Session, Tally, WorkerId, push_int,
};
use dyno_load::query::number;

/// Bytes of a statement, at most.
const PACKET_BYTES: usize = 512 * 1_024;
/// Bytes of a row, at most: two numbers, brackets and commas.
const ROW_BYTES: usize = 2 * 20 + 4;

#[derive(Debug)]
pub(crate) struct BulkWorker {
    table: u32,
    packet: String,
    /// Letters of the packet before its first row.
    head: usize,
    /// The number of the packet's first row and of the next one to be added.
    first: i64,
    next: i64,
}

/// Finds the first free id of the worker's table.
pub(crate) async fn open<S: Session>(
    session: &mut S,
    options: &SysbenchOptions,
    id: WorkerId,
) -> Result<BulkWorker, DbError> {
    let table = id + u32::from(!options.test.is_legacy());
    // A second run continues behind the rows of the first; the original fails on duplicate keys.
    let next = highest_id(session, table).await? + 1;
    let mut packet = String::with_capacity(PACKET_BYTES + ROW_BYTES);
    packet.push_str("INSERT INTO sbtest");
    push_int(&mut packet, i64::from(table));
    packet.push_str(" VALUES");
    let head = packet.len();
    Ok(BulkWorker { table, packet, head, first: next, next })
}

/// Continues on a new session, without a packet that was stored.
pub(crate) async fn reopen<S: Session>(
    worker: &mut BulkWorker,
    session: &mut S,
) -> Result<(), DbError> {
    // The lost connection may have stored the packet before it went: a packet is one statement and
    // either wholly there or not at all.
    if worker.has_rows() && highest_id(session, worker.table).await? >= worker.first {
        worker.start_packet();
    }
    Ok(())
}

async fn highest_id<S: Session>(session: &mut S, table: u32) -> Result<i64, DbError> {
    let sql = format!("SELECT MAX(id) FROM sbtest{table}");
    Ok(number(&mut AdminSession::lent(session), &sql).await?.unwrap_or(0))
}

/// Adds one row, after sending the packet if the row does not fit any more.
pub(crate) async fn run<S: Session>(
    worker: &mut BulkWorker,
    session: &mut S,
    tally: &mut Tally,
) -> Result<Outcome, DbError> {
    let length = worker.packet.len();
    worker.push_row();
    if worker.packet.len() > PACKET_BYTES {
        worker.packet.truncate(length);
        send(worker, session, tally).await?;
        worker.push_row();
    }
    worker.next += 1;
    Ok(Outcome::Committed)
}

/// Sends what is left.
pub(crate) async fn finish<S: Session>(
    worker: &mut BulkWorker,
    session: &mut S,
    tally: &mut Tally,
) -> Result<(), DbError> {
    if worker.has_rows() { send(worker, session, tally).await } else { Ok(()) }
}

/// Sends the packet. After an error it stays, so that a retry sends the same rows.
async fn send<S: Session>(
    worker: &mut BulkWorker,
    session: &mut S,
    tally: &mut Tally,
) -> Result<(), DbError> {
    match session.query(&worker.packet, &mut Discard).await {
        Ok(done) => {
            tally.count(done);
            worker.start_packet();
            Ok(())
        }
        Err(error) if error.class() == ErrorClass::Constraint => {
            let hint = format!(
                "another run fills sbtest{} at the same time; let one run at a time use the \
                 tables, or start again with cleanup and prepare",
                worker.table
            );
            Err(error.with_hint(hint))
        }
        Err(error) => Err(error),
    }
}

impl BulkWorker {
    fn has_rows(&self) -> bool {
        self.packet.len() > self.head
    }

    fn push_row(&mut self) {
        let packet = &mut self.packet;
        packet.push_str(if packet.len() > self.head { ",(" } else { "(" });
        push_int(packet, self.next);
        packet.push(',');
        push_int(packet, self.next);
        packet.push(')');
    }

    fn start_packet(&mut self) {
        self.packet.truncate(self.head);
        self.first = self.next;
    }
}
