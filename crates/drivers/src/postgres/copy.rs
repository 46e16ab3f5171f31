//! Bulk load: `COPY ... FROM STDIN` in text format, or in binary format where the rows are written so.

use super::answers::{Expect, Progress};
use super::error::unsendable;
use super::link::{Link, Stop};
use dyno_core::{DbError, DbResult, Discard, ErrorClass, RowSource};
use dyno_wire::postgres::binary_rows::{BinaryRows, HEADER, TRAILER};
use dyno_wire::postgres::frontend;
use dyno_wire::text_rows::TextRows;

/// Size of the pieces of rows: large enough for few system calls, small enough for the cache.
const PIECE_BYTES: usize = 128 * 1024;

pub(super) fn copy_sql(table: &str, columns: &[&str]) -> String {
    let columns =
        if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("COPY {table}{columns} FROM STDIN")
}

/// Streams all rows into the COPY that `sql` begins; returns the number of rows that the server has stored.
pub(super) async fn copy_in(link: &mut Link, sql: &str, rows: &mut dyn RowSource) -> DbResult<u64> {
    link.begin()?;
    frontend::query(&mut link.out, sql).map_err(unsendable)?;
    link.state.begin_flight();
    let sent = link.transport.send(&link.out).await;

    let mut progress = Progress::default();
    let mut stored = 0;
    let mut done = |outcome: DbResult<dyno_core::Executed>| {
        stored = outcome.map_or(stored, |it| it.affected.saturating_add(stored));
    };
    let mut stop = link.collect(&mut progress, Expect::Text, &mut Discard, &mut done).await?;
    sent?;
    let is_wanted = stop == Stop::CopyIn;
    if is_wanted {
        stop = match stream(link, rows, &mut progress, &mut done).await? {
            Some(stop) => stop,
            None => link.collect(&mut progress, Expect::Text, &mut Discard, &mut done).await?,
        };
    }
    match (progress.error, stop) {
        (Some(error), _) => Err(error),
        (None, Stop::Ready) if is_wanted => Ok(stored),
        (None, Stop::Ready) => Err(DbError::protocol(
            "The server did not ask for the rows of a COPY.",
        )
        .with_hint("no row was sent: what answers there, perhaps a proxy, does not know COPY")),
        (None, Stop::CopyIn) => {
            Err(DbError::protocol("The server asked for the rows of a COPY a second time."))
        }
    }
}

/// Sends the rows and the end of the copy. Stops early when the server has given up.
async fn stream(
    link: &mut Link,
    rows: &mut dyn RowSource,
    progress: &mut Progress,
    done: &mut impl FnMut(DbResult<dyno_core::Executed>),
) -> DbResult<Option<Stop>> {
    let (mut more, mut is_first) = (true, true);
    while more {
        link.out.clear();
        let start = frontend::begin_copy_data(&mut link.out);
        more = if rows.is_binary() {
            binary_piece(&mut link.out, rows, is_first)
        } else {
            TextRows::new(&mut link.out).fill(rows, PIECE_BYTES)
        };
        is_first = false;
        // Fails only for a row of more than 1 GiB.
        frontend::end_copy_data(&mut link.out, start)
            .map_err(|error| unsendable(error).with_class(ErrorClass::ConnectionLost))?;
        if !more {
            frontend::copy_done(&mut link.out);
        }
        let sent = link.transport.send_receiving(&link.out, &mut link.inbox).await;
        // Without waiting: the server's messages so far are enough.
        let received = link.transport.try_recv(&mut link.inbox);
        let stop = link.take(progress, Expect::Text, &mut Discard, done)?;
        if stop.is_some() {
            return Ok(stop);
        }
        if let Err(lost) = sent.and(received) {
            return Err(progress.error.take().filter(DbError::is_fatal).unwrap_or(lost));
        }
    }
    Ok(None)
}

/// Appends rows with what the format has before the first and after the last one.
fn binary_piece(out: &mut Vec<u8>, rows: &mut dyn RowSource, is_first: bool) -> bool {
    if is_first {
        out.extend_from_slice(&HEADER);
    }
    let more = BinaryRows::new(out).fill(rows, PIECE_BYTES);
    if !more {
        out.extend_from_slice(&TRAILER);
    }
    more
}
