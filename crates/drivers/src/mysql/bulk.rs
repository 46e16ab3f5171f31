//! Bulk loads: `LOAD DATA LOCAL INFILE` of a file that is generated on the way, or `INSERT` with many rows when the
//! server forbids that.

use super::channel::Reply;
use super::session::MysqlSession;
use dyno_core::{
    AnswerTable, BulkFallback, BulkMethod, BulkReport, DbError, DbResult, Discard, ErrorClass,
    Executed, RowSource, Session, is_shardingsphere,
};
use dyno_wire::mysql::Encoding;
use dyno_wire::mysql::error::classify;
use dyno_wire::mysql::insert::InsertRows;
use dyno_wire::mysql::packet::{HEADER_BYTES, begin_packet, finish_packet};
use dyno_wire::mysql::statement::{COM_QUERY, push_command};
use dyno_wire::text_rows::TextRows;

/// The name of the virtual file.
const FILE: &str = "dyno";
/// Size of the packets of a load: large enough for few system calls, small enough for the processor's cache.
const CHUNK_BYTES: usize = 128 << 10;
/// Size of an INSERT statement, unless the server's limit is lower.
const INSERT_BYTES: usize = 512 << 10;
/// The same for a proxy that parses statements into trees: ShardingSphere-Proxy 5.1.0 takes some kilobytes of heap for
/// each literal, and 512 KiB from eight sessions exceed its gigabyte. About 100 rows of a stock table.
const PROXY_INSERT_BYTES: usize = 32 << 10;

/// Loads rows as part of the open transaction, or in a new one.
pub(super) async fn load(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    if session.is_in_transaction() {
        return load_by_any_way(session, table, columns, rows).await;
    }
    session.query("START TRANSACTION", &mut Discard).await?;
    let loaded = match load_by_any_way(session, table, columns, rows).await {
        Ok(report) => session.query("COMMIT", &mut Discard).await.map(|_| report),
        Err(error) => Err(error),
    };
    if let Err(error) = &loaded
        && !error.is_fatal()
    {
        session.rollback().await?;
    }
    loaded
}

async fn load_by_any_way(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<BulkReport> {
    let refusal = if session.local_files {
        match load_data(session, table, columns, rows).await {
            Ok(rows) => {
                return Ok(BulkReport { rows, method: BulkMethod::LoadData, fallback: None });
            }
            Err(error) if is_forbidden(&error) => Some(error.to_string()),
            Err(error) => return Err(error),
        }
    } else {
        None
    };
    rows.restart();
    let stored = insert(session, table, columns, rows).await?;
    // A proxy would have to pass the rows on; ShardingSphere doesn't.
    let remedy = (!is_proxy(session)).then_some("SET GLOBAL local_infile=1");
    Ok(BulkReport {
        rows: stored,
        method: BulkMethod::MultiRowInsert,
        fallback: Some(BulkFallback { way: "LOAD DATA LOCAL", refusal, remedy }),
    })
}

fn is_proxy(session: &MysqlSession) -> bool {
    is_shardingsphere(&session.product().version)
}

/// Refusals before the first row: ER_NOT_ALLOWED_COMMAND (MySQL 5.7, MariaDB up to 10.4), ER_NOT_SUPPORTED_YET
/// (proxies), ER_CLIENT_LOCAL_FILES_DISABLED (MySQL 8), ER_LOAD_INFILE_CAPABILITY_DISABLED (MariaDB 10.5 and later).
fn is_forbidden(error: &DbError) -> bool {
    matches!(error.errno(), 1148 | 1235 | 3948 | 4166)
}

fn column_list(columns: &[&str]) -> String {
    if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) }
}

async fn load_data(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<u64> {
    // Literal tab and newline, whose meaning no SQL mode changes.
    let escape = if session.has_backslash_escapes() { r"\\" } else { r"\" };
    let list = column_list(columns);
    let sql = format!(
        "LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE {table} CHARACTER SET utf8mb4 FIELDS \
         TERMINATED BY '\t' ESCAPED BY '{escape}' LINES TERMINATED BY '\n'{list}"
    );
    let channel = &mut session.channel;
    channel.begin()?;
    let sequence = push_command(&mut channel.out, COM_QUERY, sql.as_bytes());
    channel.idle = false;
    channel.transport.send(&channel.out).await?;
    channel.answer.begin(Encoding::Text, sequence);
    match channel.reply(&mut session.definitions, &mut Discard).await? {
        Reply::FileRequest(name) if name == FILE.as_bytes() => {}
        Reply::FileRequest(name) => {
            let refused = channel.refuse_file(&name, &mut session.definitions, &mut Discard).await;
            // The statement names another file: this server gets no second one.
            return Err(refused.with_class(ErrorClass::ConnectionLost));
        }
        Reply::Done(_) => {
            return Err(DbError::protocol("The server did not ask for the rows of LOAD DATA."));
        }
    }
    let mut more = true;
    while more {
        channel.out.clear();
        let start = begin_packet(&mut channel.out);
        more = TextRows::new(&mut channel.out).fill(rows, CHUNK_BYTES);
        // An empty packet would end the file; it comes last.
        if channel.out.len() > HEADER_BYTES {
            let sequence = channel.answer.next_sequence();
            let next = finish_packet(&mut channel.out, start, sequence);
            channel.answer.continue_at(next);
            channel.transport.send(&channel.out).await?;
        }
    }
    channel.push_empty_packet();
    channel.transport.send(&channel.out).await?;
    let done = channel.receive(&mut session.definitions, &mut Discard).await?;
    check_warnings(session, table).await?;
    Ok(done.affected)
}

async fn insert(
    session: &mut MysqlSession,
    table: &str,
    columns: &[&str],
    rows: &mut dyn RowSource,
) -> DbResult<u64> {
    let mut limit = AnswerTable::default();
    session.query("SELECT @@max_allowed_packet", &mut limit).await?;
    let allowed = limit.single().and_then(|text| text.parse::<usize>().ok()).unwrap_or(1 << 20);
    // The last row may exceed the limit by its own length.
    let most_bytes = if is_proxy(session) { PROXY_INSERT_BYTES } else { INSERT_BYTES };
    let limit_bytes = (allowed / 2).clamp(1024, most_bytes);
    let head = format!("INSERT INTO {table}{} VALUES ", column_list(columns));
    let escapes = session.has_backslash_escapes();
    let (mut stored, mut more) = (0_u64, true);
    while more {
        session.channel.begin()?;
        let out = &mut session.channel.out;
        let start = begin_packet(out);
        out.push(COM_QUERY);
        out.extend_from_slice(head.as_bytes());
        let count;
        (count, more) = InsertRows::new(out, escapes).fill(rows, limit_bytes);
        if count == 0 {
            break;
        }
        let sequence = finish_packet(out, start, 0);
        let (channel, definitions) = (&mut session.channel, &mut session.definitions);
        let done: Executed =
            channel.exchange(Encoding::Text, sequence, definitions, &mut Discard).await?;
        check_warnings(session, table).await?;
        stored = stored.saturating_add(done.affected);
    }
    Ok(stored)
}

/// LOAD DATA LOCAL warns of duplicates, truncated texts and bad numbers: such a load has failed.
async fn check_warnings(session: &mut MysqlSession, table: &str) -> DbResult<()> {
    let count = session.warnings();
    if count == 0 {
        return Ok(());
    }
    let mut warnings = AnswerTable::default();
    session.query("SHOW WARNINGS LIMIT 1", &mut warnings).await?;
    let mut first = warnings.rows.into_iter().flatten().flatten();
    let level = first.next().unwrap_or_else(|| "Warning".to_owned());
    let code: u16 = first.next().and_then(|code| code.parse().ok()).unwrap_or(0);
    let message = first.next().unwrap_or_else(|| "unknown".to_owned());
    // Warnings have no SQLSTATE; class 23 holds duplicates and missing parents.
    let state = if matches!(code, 1062 | 1452 | 1048 | 1586) { *b"23000" } else { *b"HY000" };
    Err(DbError::server(
        classify(code, &state),
        u32::from(code),
        state,
        format!("The load into {table} gave {count} warnings and was undone. {level}: {message}."),
    ))
}
