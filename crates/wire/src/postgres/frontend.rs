//! Messages to the server, appended to the caller's buffer.

use super::types::{PostgresColumn, ValueFormat, param_oid};
use super::{Read, WireError};
use crate::text_rows::{FixedBytes, push_double_15g};
use dyno_core::{LONGEST_INT, Param, ParamType, write_int};

/// Protocol 3.0, known to every server since PostgreSQL 7.4.
const PROTOCOL_3_0: u32 = 3 << 16;
/// Replaces a version: "encrypt this connection".
const SSL_REQUEST: u32 = 80_877_103;
/// Replaces a version: "cancel".
const CANCEL_REQUEST: u32 = 80_877_102;
/// PostgreSQL refuses longer messages from a client.
const MESSAGE_LIMIT_BYTES: usize = 0x3fff_ffff;
/// Parameters of one statement: a 16-bit field.
const PARAM_LIMIT: usize = 65_535;

/// `Execute` of the unnamed portal without a row limit.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// `Describe` of the unnamed portal.
const DESCRIBE_PORTAL: &[u8] = b"D\0\0\0\x06P\0";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// Asks for TLS before everything else.
pub fn ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&SSL_REQUEST.to_be_bytes());
}

/// Asks the server, on a new connection, to cancel the statement of the session with this key.
pub fn cancel_request(out: &mut Vec<u8>, process: u32, secret: &[u8]) {
    out.extend_from_slice(&(12 + secret.len() as u32).to_be_bytes());
    out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
    out.extend_from_slice(&process.to_be_bytes());
    out.extend_from_slice(secret);
}

/// Opens a session with parameters such as `("user", "app")`.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) -> Read<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&PROTOCOL_3_0.to_be_bytes());
    for (name, value) in parameters {
        zero_terminated(out, start, name)?;
        zero_terminated(out, start, value)?;
    }
    out.push(0);
    finish(out, start, start)
}

/// Answers a request for a password.
pub fn password(out: &mut Vec<u8>, password: &str) -> Read<()> {
    message(out, b'p', |out, start| zero_terminated(out, start, password))
}

/// Chooses a SASL mechanism and sends its first message.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, first: &[u8]) -> Read<()> {
    message(out, b'p', |out, start| {
        zero_terminated(out, start, mechanism)?;
        out.extend_from_slice(&(first.len() as u32).to_be_bytes());
        out.extend_from_slice(first);
        Ok(())
    })
}

pub fn sasl_response(out: &mut Vec<u8>, data: &[u8]) -> Read<()> {
    message(out, b'p', |out, _| {
        out.extend_from_slice(data);
        Ok(())
    })
}

/// One or more statements as text.
pub fn query(out: &mut Vec<u8>, sql: impl AsRef<[u8]>) -> Read<()> {
    let sql = sql.as_ref();
    message(out, b'Q', |out, start| zero_terminated(out, start, sql))
}

/// Parses `sql` under `name`, with the types of [`param_oid`]; declares none if all are inferred, as libpq.
pub fn parse(
    out: &mut Vec<u8>,
    name: &str,
    sql: impl AsRef<[u8]>,
    params: &[ParamType],
) -> Read<()> {
    if params.len() > PARAM_LIMIT {
        return Err(WireError("a statement can't have more than 65535 parameters"));
    }
    let is_declared = params.iter().any(|param| *param != ParamType::Inferred);
    let params = if is_declared { params } else { &[] };
    message(out, b'P', |out, start| {
        zero_terminated(out, start, name)?;
        zero_terminated(out, start, sql)?;
        out.extend_from_slice(&(params.len() as u16).to_be_bytes());
        for &param in params {
            out.extend_from_slice(&param_oid(param).to_be_bytes());
        }
        Ok(())
    })
}

pub fn describe_statement(out: &mut Vec<u8>, name: &str) -> Read<()> {
    message(out, b'D', |out, start| {
        out.push(b'S');
        zero_terminated(out, start, name)
    })
}

pub fn close_statement(out: &mut Vec<u8>, name: &str) -> Read<()> {
    message(out, b'C', |out, start| {
        out.push(b'S');
        zero_terminated(out, start, name)
    })
}

/// Executes `sql` without a name: `Parse`, `Bind`, `Describe`, `Execute` (not `Sync`), byte for byte as libpq's
/// `PQexecParams`. The server infers the types of the parameters, which are text, and answers in text. Appends nothing
/// on an error.
pub fn execute_once(out: &mut Vec<u8>, sql: impl AsRef<[u8]>, params: &[Param<'_>]) -> Read<()> {
    if params.len() > PARAM_LIMIT {
        return Err(WireError("a statement can't have more than 65535 parameters"));
    }
    let start = out.len();
    parse(out, "", sql, &[])?;
    let bind = out.len();
    // Unnamed portal and statement, and no formats: all is text.
    out.extend_from_slice(b"B\0\0\0\0\0\0\0\0");
    out.extend_from_slice(&(params.len() as u16).to_be_bytes());
    let encoded = params.iter().try_for_each(|&param| push_text_param(out, param));
    out.extend_from_slice(b"\0\x01\0\0");
    if let Err(error) = encoded.and_then(|()| finish(out, bind, bind + 1)) {
        out.truncate(start);
        return Err(error);
    }
    out.extend_from_slice(DESCRIBE_PORTAL);
    out.extend_from_slice(EXECUTE);
    Ok(())
}

/// Appends Sync, which ends an implicit transaction.
#[inline]
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(SYNC);
}

/// Appends Terminate, which ends the session.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(b"X\0\0\0\x04");
}

/// Begins a CopyData message for [`end_copy_data`].
pub fn begin_copy_data(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(b"d\0\0\0\0");
    start
}

pub fn end_copy_data(out: &mut Vec<u8>, start: usize) -> Read<()> {
    finish(out, start, start + 1)
}

pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// Gives up a copy; the server answers with an error that contains `reason`.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) -> Read<()> {
    message(out, b'f', |out, start| zero_terminated(out, start, reason))
}

/// The constant bytes of the execution of a prepared statement.
#[derive(Clone, Debug)]
pub struct Execution {
    params: Box<[ParamType]>,
    /// `Bind` up to the number of parameters, with room for its length.
    head: FixedBytes,
    /// The end of `Bind` after the parameters, `Execute` and `Sync`.
    tail: FixedBytes,
    /// Bytes of the first of these.
    formats_len: usize,
}

impl Execution {
    /// For the statement prepared as `name`, whose answer has `columns`.
    pub fn new(name: &str, params: &[ParamType], columns: &[PostgresColumn]) -> Read<Self> {
        if params.len() > PARAM_LIMIT || columns.len() > PARAM_LIMIT {
            return Err(WireError("a statement can't have more than 65535 parameters or columns"));
        }
        let mut head = b"B\0\0\0\0\0".to_vec();
        zero_terminated(&mut head, 0, name)?;
        push_formats(&mut head, params.iter().map(|&param| param_format(param)));
        head.extend_from_slice(&(params.len() as u16).to_be_bytes());
        let mut tail = Vec::new();
        push_formats(&mut tail, columns.iter().map(|column| column.format));
        let formats_len = tail.len();
        tail.extend_from_slice(EXECUTE);
        sync(&mut tail);
        let (head, tail) = (FixedBytes::new(head), FixedBytes::new(tail));
        Ok(Execution { params: params.into(), head, tail, formats_len })
    }

    /// Appends `Bind` and `Execute` (not `Sync`), except on an error. A double takes an integer, an inferred type
    /// anything.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>, params: &[Param<'_>]) -> Read<()> {
        self.encode_synced(out, params)?;
        out.truncate(out.len() - SYNC.len());
        Ok(())
    }

    /// Like [`Execution::encode`], with `Sync`.
    #[inline]
    pub fn encode_synced(&self, out: &mut Vec<u8>, params: &[Param<'_>]) -> Read<()> {
        let start = out.len();
        if params.len() != self.params.len() {
            return Err(WireError("the number of parameters is not the one declared"));
        }
        self.head.push(out);
        for (param, declared) in params.iter().zip(&self.params) {
            if let Err(error) = push_param(out, *param, *declared) {
                out.truncate(start);
                return Err(error);
            }
        }
        let end = out.len() + self.formats_len;
        self.tail.push(out);
        finish_at(out, end, start, start + 1)
    }
}

#[inline]
fn push_param(out: &mut Vec<u8>, param: Param<'_>, declared: ParamType) -> Read<()> {
    match (param, declared) {
        (param, ParamType::Inferred) => push_text_param(out, param)?,
        (Param::Int(value), ParamType::Int) => push_word(out, value.to_be_bytes()),
        (Param::Double(value), ParamType::Double) => push_word(out, value.to_be_bytes()),
        (Param::Int(value), ParamType::Double) => push_word(out, (value as f64).to_be_bytes()),
        (Param::Text(text), ParamType::Text) if text.len() <= MESSAGE_LIMIT_BYTES => {
            push_counted(out, text);
        }
        (Param::Null, _) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        _ => return Err(WireError("a parameter is not of the type declared for it")),
    }
    Ok(())
}

fn param_format(param: ParamType) -> ValueFormat {
    match param {
        ParamType::Int | ParamType::Double => ValueFormat::Binary,
        ParamType::Text | ParamType::Inferred => ValueFormat::Text,
    }
}

/// No code for text only, one code for binary only, as the protocol allows.
fn push_formats(out: &mut Vec<u8>, formats: impl Iterator<Item = ValueFormat> + Clone) {
    let count = match formats.clone().count() {
        _ if formats.clone().all(|format| format == ValueFormat::Text) => 0,
        _ if formats.clone().all(|format| format == ValueFormat::Binary) => 1,
        count => count,
    };
    out.extend_from_slice(&(count as u16).to_be_bytes());
    for format in formats.take(count) {
        out.extend_from_slice(&format.code().to_be_bytes());
    }
}

/// Like [`push_text_param`], in one piece.
#[inline]
fn push_int_param(out: &mut Vec<u8>, value: i64) {
    const LEN_BYTES: usize = 4;
    let mut text = [0; LEN_BYTES + LONGEST_INT];
    let at = write_int(&mut text, value);
    let len = (text.len() - at) as u32;
    text[at - LEN_BYTES..at].copy_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&text[at - LEN_BYTES..]);
}

#[inline]
fn push_text_param(out: &mut Vec<u8>, param: Param<'_>) -> Read<()> {
    match param {
        Param::Int(value) => push_int_param(out, value),
        Param::Double(value) => {
            let length_at = out.len();
            out.extend_from_slice(&[0; 4]);
            push_double_15g(out, value);
            let len = (out.len() - length_at - 4) as u32;
            out[length_at..length_at + 4].copy_from_slice(&len.to_be_bytes());
        }
        Param::Text(text) if text.len() <= MESSAGE_LIMIT_BYTES => push_counted(out, text),
        Param::Text(_) => return Err(WireError("a parameter is longer than 1 GiB")),
        Param::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
    Ok(())
}

/// A text behind its length.
#[inline]
fn push_counted(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text);
}

#[inline]
fn push_word(out: &mut Vec<u8>, value: [u8; 8]) {
    let [a, b, c, d, e, f, g, h] = value;
    out.extend_from_slice(&[0, 0, 0, 8, a, b, c, d, e, f, g, h]);
}

/// A message with a tag; `body` writes its body and gets its start.
#[inline]
fn message(
    out: &mut Vec<u8>,
    tag: u8,
    body: impl FnOnce(&mut Vec<u8>, usize) -> Read<()>,
) -> Read<()> {
    let start = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    body(out, start)?;
    finish(out, start, start + 1)
}

/// Writes the length, which counts itself but not the tag, at `length_at`. Removes a message that is too long.
#[inline]
fn finish(out: &mut Vec<u8>, start: usize, length_at: usize) -> Read<()> {
    finish_at(out, out.len(), start, length_at)
}

/// Writes the length of a message that ends at `end`, which others follow already; they are removed with it.
#[inline]
fn finish_at(out: &mut Vec<u8>, end: usize, start: usize, length_at: usize) -> Read<()> {
    let len = end - length_at;
    if len > MESSAGE_LIMIT_BYTES {
        out.truncate(start);
        return Err(WireError("a message to the server would be longer than 1 GiB"));
    }
    out[length_at..length_at + 4].copy_from_slice(&(len as u32).to_be_bytes());
    Ok(())
}

/// Appends `text` and a zero byte, or removes the whole message, which began at `start`, for a zero byte in `text`.
#[inline]
fn zero_terminated(out: &mut Vec<u8>, start: usize, text: impl AsRef<[u8]>) -> Read<()> {
    let text = text.as_ref();
    if text.contains(&0) {
        out.truncate(start);
        return Err(WireError("a text with a zero byte in it can't be sent to PostgreSQL"));
    }
    out.extend_from_slice(text);
    out.push(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::types;
    use proptest::prelude::*;

    const INT4: PostgresColumn =
        PostgresColumn { type_oid: types::INT4, format: ValueFormat::Binary };
    const DATE: PostgresColumn = PostgresColumn { type_oid: 1082, format: ValueFormat::Text };

    #[test]
    fn startup_and_requests_have_their_documented_form() {
        let mut out = Vec::new();
        startup(&mut out, &[("user", "u")]).unwrap();
        assert_eq!(out, b"\0\0\0\x10\0\x03\0\0user\0u\0\0");
        out.clear();
        ssl_request(&mut out);
        assert_eq!(out, b"\0\0\0\x08\x04\xd2\x16\x2f");
        out.clear();
        cancel_request(&mut out, 7, &[1, 2, 3, 4]);
        assert_eq!(out, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\x01\x02\x03\x04");
    }

    #[test]
    fn parse_declares_the_types() {
        let mut out = Vec::new();
        parse(&mut out, "d1", "x", &[ParamType::Int, ParamType::Double, ParamType::Text]).unwrap();
        assert_eq!(out, b"P\0\0\0\x17d1\0x\0\0\x03\0\0\0\x14\0\0\x02\xbd\0\0\x04\x13");
        out.clear();
        parse(&mut out, "d1", "x", &[ParamType::Inferred; 2]).unwrap();
        assert_eq!(out, b"P\0\0\0\x0bd1\0x\0\0\0");
    }

    #[test]
    fn a_statement_is_closed_by_its_name() {
        let mut out = Vec::new();
        close_statement(&mut out, "d1").unwrap();
        assert_eq!(out, b"C\0\0\0\x08Sd1\0");
    }

    #[test]
    fn an_execution_is_bind_and_execute() {
        let execution = Execution::new("d1", &[ParamType::Int], &[INT4]).unwrap();
        let mut out = Vec::new();
        execution.encode(&mut out, &[Param::Int(258)]).unwrap();
        let bind = b"B\0\0\0\x1e\0d1\0\0\x01\0\x01\0\x01\0\0\0\x08\0\0\0\0\0\0\x01\x02\0\x01\0\x01";
        let execute = b"E\0\0\0\x09\0\0\0\0\0";
        assert_eq!(out, [&bind[..], execute].concat());
        assert_eq!(u32::from_be_bytes([0, 0, 0, 0x1e]) as usize + 1, bind.len());
    }

    #[test]
    fn formats_and_nulls() {
        let types = [ParamType::Int, ParamType::Text];
        let execution = Execution::new("a", &types, &[INT4, DATE]).unwrap();
        let mut out = Vec::new();
        execution.encode(&mut out, &[Param::Null, Param::Text(b"hi")]).unwrap();
        let bind =
            b"B\0\0\0\x1f\0a\0\0\x02\0\x01\0\0\0\x02\xff\xff\xff\xff\0\0\0\x02hi\0\x02\0\x01\0\0";
        assert_eq!(bind.len(), 0x1f + 1);
        assert_eq!(out, [&bind[..], EXECUTE].concat());
    }

    #[test]
    fn inferred_parameters_are_text() {
        let inferred = [ParamType::Inferred; 4];
        let execution = Execution::new("a", &inferred, &[]).unwrap();
        let params = [Param::Int(-120), Param::Double(0.1), Param::Text(b"hi"), Param::Null];
        let mut out = Vec::new();
        execution.encode(&mut out, &params).unwrap();
        let bind = b"B\0\0\0\x26\0a\0\0\0\0\x04\0\0\0\x04-120\0\0\0\x030.1\0\0\0\x02hi\xff\xff\xff\xff\0\0";
        assert_eq!(bind.len(), 0x26 + 1);
        assert_eq!(
            out.escape_ascii().to_string(),
            [&bind[..], EXECUTE].concat().escape_ascii().to_string()
        );
        out.clear();
        parse(&mut out, "a", "x", &inferred[..2]).unwrap();
        assert_eq!(out, b"P\0\0\0\x0aa\0x\0\0\0");
    }

    #[test]
    fn once_is_what_libpq_sends() {
        // The form that PQexecParams gives them, with neither types nor formats.
        let mut out = b"kept".to_vec();
        execute_once(&mut out, "SELECT $1, $2", &[Param::Int(7), Param::Null]).unwrap();
        let parse = b"P\0\0\0\x15\0SELECT $1, $2\0\0\0";
        let bind = b"B\0\0\0\x17\0\0\0\0\0\x02\0\0\0\x017\xff\xff\xff\xff\0\x01\0\0";
        let describe_and_execute = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";
        assert_eq!(out[4..], [&parse[..], bind, describe_and_execute].concat());
        out.truncate(4);
        assert!(execute_once(&mut out, "a\0b", &[]).is_err());
        assert!(execute_once(&mut out, "a", &vec![Param::Null; 65_536]).is_err());
        assert_eq!(out, b"kept");
    }

    #[test]
    fn wrong_parameters_append_nothing() {
        let execution = Execution::new("a", &[ParamType::Int], &[]).unwrap();
        let mut out = b"kept".to_vec();
        for wrong in [&[][..], &[Param::Int(1), Param::Int(2)], &[Param::Text(b"1")]] {
            assert!(execution.encode(&mut out, wrong).is_err());
            assert_eq!(out, b"kept");
        }
        let double = Execution::new("a", &[ParamType::Double], &[]).unwrap();
        double.encode(&mut out, &[Param::Int(1)]).unwrap();
    }

    #[test]
    fn zero_bytes_are_refused_and_append_nothing() {
        let mut out = b"kept".to_vec();
        assert!(query(&mut out, "select '\0'").is_err());
        assert!(startup(&mut out, &[("user", "a\0b")]).is_err());
        assert!(parse(&mut out, "a", "\0", &[]).is_err());
        assert_eq!(out, b"kept");
    }

    proptest! {
        #[test]
        fn every_message_states_its_own_length(sql in "[^\0]{0,80}", rows in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            query(&mut out, &sql).unwrap();
            parse(&mut out, "d1", &sql, &[ParamType::Text]).unwrap();
            let start = begin_copy_data(&mut out);
            out.extend_from_slice(&rows);
            end_copy_data(&mut out, start).unwrap();
            copy_fail(&mut out, &sql).unwrap();
            execute_once(&mut out, &sql, &[Param::Text(&rows), Param::Int(rows.len() as i64)]).unwrap();
            sync(&mut out);
            let (mut at, mut tags) = (0, Vec::new());
            while at < out.len() {
                tags.push(out[at]);
                at += 1 + u32::from_be_bytes(out[at + 1..at + 5].try_into().unwrap()) as usize;
            }
            prop_assert_eq!(at, out.len());
            prop_assert_eq!(tags, b"QPdfPBDES".to_vec());
        }
    }
}
