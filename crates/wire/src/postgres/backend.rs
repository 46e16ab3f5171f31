//! Bodies of the server's messages, except rows.

use super::frame::MessageReader;
use super::frame::{HEADER_BYTES, tag};
use super::types::{PostgresColumn, ValueFormat};
use super::{Read, WireError};
use crate::text_rows::Names;

/// Of ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    Open,
    /// Only ROLLBACK is possible.
    Failed,
}

/// Reads ReadyForQuery.
#[inline]
pub fn ready(body: &[u8]) -> Read<TransactionStatus> {
    match body {
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::Open),
        b"E" => Ok(TransactionStatus::Failed),
        _ => Err(WireError("the server states an unknown transaction status")),
    }
}

/// A request of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    Ok,
    Cleartext,
    /// The password hashed with the user's name and this salt.
    Md5([u8; 4]),
    /// One of these mechanisms, separated by zero bytes.
    Sasl(SaslMechanisms<'a>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    /// A method that dyno lacks (GSSAPI, SSPI, Kerberos ...), by its number.
    Unsupported(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslMechanisms<'a>(&'a [u8]);

impl SaslMechanisms<'_> {
    /// Returns true if the server offers this mechanism.
    pub fn contains(&self, name: &str) -> bool {
        self.0.split(|&byte| byte == 0).any(|offered| offered == name.as_bytes())
    }
}

/// Reads the request for a way of authentication.
pub fn authentication(body: &[u8]) -> Read<Authentication<'_>> {
    let mut reader = MessageReader::new(body);
    let request = match reader.u32()? {
        0 => Authentication::Ok,
        3 => Authentication::Cleartext,
        5 => {
            let salt = reader.u32()?;
            Authentication::Md5(salt.to_be_bytes())
        }
        10 => Authentication::Sasl(SaslMechanisms(reader.rest())),
        11 => Authentication::SaslContinue(reader.rest()),
        12 => Authentication::SaslFinal(reader.rest()),
        other => return Ok(Authentication::Unsupported(other)),
    };
    reader.end()?;
    Ok(request)
}

/// The key of cancel requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendKey {
    pub process: u32,
    /// 4 bytes in protocol 3.0, up to 256 later.
    pub secret: Vec<u8>,
}

pub fn backend_key(body: &[u8]) -> Read<BackendKey> {
    let mut reader = MessageReader::new(body);
    let process = reader.u32()?;
    let secret = reader.rest();
    if !(4..=256).contains(&secret.len()) {
        return Err(WireError("the server's cancel key has an impossible length"));
    }
    Ok(BackendKey { process, secret: secret.to_vec() })
}

pub fn parameter_status(body: &[u8]) -> Read<(&[u8], &[u8])> {
    let mut reader = MessageReader::new(body);
    let pair = (reader.zero_terminated()?, reader.zero_terminated()?);
    reader.end()?;
    Ok(pair)
}

/// Reads RowDescription into emptied `columns`, and into `names` if wanted.
pub fn row_description(
    body: &[u8],
    columns: &mut Vec<PostgresColumn>,
    mut names: Option<&mut Names>,
) -> Read<()> {
    columns.clear();
    if let Some(names) = &mut names {
        names.clear();
    }
    let mut reader = MessageReader::new(body);
    for _ in 0..reader.u16()? {
        let name = reader.zero_terminated()?;
        if let Some(names) = &mut names {
            names.push(name);
        }
        // OID of the table and number of the column in it.
        reader.take_bytes(6)?;
        let type_oid = reader.u32()?;
        // Size and modifier of the type.
        reader.take_bytes(6)?;
        let format = match reader.u16()? {
            0 => ValueFormat::Text,
            1 => ValueFormat::Binary,
            _ => return Err(WireError("the server states an unknown format of a column")),
        };
        columns.push(PostgresColumn { type_oid, format });
    }
    reader.end()
}

/// Reads the changed rows of CommandComplete, from tags such as `INSERT 0 3` and `UPDATE 3`. `SELECT 3` counts rows of
/// a result set, unless there was none (`CREATE TABLE AS`).
#[inline]
pub fn rows_changed(body: &[u8], has_rows: bool) -> Read<u64> {
    let Some((&0, tag)) = body.split_last() else {
        return Err(WireError("a text of the server has no end"));
    };
    let changes = [b"INSERT ", b"UPDATE ", b"DELETE "].iter().any(|word| tag.starts_with(*word))
        || tag.starts_with(b"MERGE ")
        || tag.starts_with(b"COPY ")
        || (!has_rows && tag.starts_with(b"SELECT "));
    if !changes {
        return Ok(0);
    }
    let digits = tag.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let number = digits.iter().try_fold(0_u64, |number, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    });
    number.ok_or(WireError("the server states an impossible number of rows"))
}

/// The whole answer to one execution, when nothing special is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAnswer {
    pub rows: u64,
    pub affected: u64,
    pub status: TransactionStatus,
}

/// Reads `received` as one whole answer to Bind, perhaps Describe, Execute and Sync: BindComplete, a description, rows,
/// CommandComplete, ReadyForQuery and nothing else. `None` for anything else, which then has to be read message by
/// message. Rows are counted and not looked at.
#[inline]
pub fn plain_answer(received: &[u8], has_rows: bool) -> Option<PlainAnswer> {
    let mut remaining = received.strip_prefix(b"2\0\0\0\x04")?;
    let mut rows = 0;
    loop {
        let (&[tag, a, b, c, d], _) = remaining.split_first_chunk::<HEADER_BYTES>()?;
        // The length counts itself, and not the tag.
        let len = (u32::from_be_bytes([a, b, c, d]) as usize).wrapping_add(1);
        let (message, next) = remaining.split_at_checked(len)?;
        let body = message.get(HEADER_BYTES..)?;
        match tag {
            tag::DATA_ROW => rows += 1,
            tag::ROW_DESCRIPTION | tag::NO_DATA if rows == 0 => {}
            tag::COMMAND_COMPLETE => {
                let status = ready(next.strip_prefix(b"Z\0\0\0\x05")?).ok()?;
                // A statement with a result set and without rows may have changed some, as `rows_changed` knows.
                let affected = if has_rows && body.starts_with(b"SELECT ") {
                    0
                } else {
                    rows_changed(body, has_rows).ok()?
                };
                return Some(PlainAnswer { rows, affected, status });
            }
            _ => return None,
        }
        remaining = next;
    }
}

/// The fields of ErrorResponse and NoticeResponse that dyno uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport<'a> {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE` ...: field V, which is never translated, or S before 9.6.
    pub severity: &'a [u8],
    /// Zeros when the server sent none.
    pub sqlstate: [u8; 5],
    pub message: &'a [u8],
    pub detail: Option<&'a [u8]>,
    pub hint: Option<&'a [u8]>,
    /// A place in the statement, in characters from 1.
    pub position: Option<u32>,
    /// The statement of a function that failed.
    pub internal_query: Option<&'a [u8]>,
    /// Context of the server, such as a function.
    pub context: Option<&'a [u8]>,
}

impl ServerReport<'_> {
    /// Returns true if the server ends the session.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity, b"FATAL" | b"PANIC")
    }
}

/// Reads ErrorResponse or NoticeResponse, without unknown fields.
pub fn report(body: &[u8]) -> Read<ServerReport<'_>> {
    let mut report = ServerReport { sqlstate: *b"00000", ..ServerReport::default() };
    let mut reader = MessageReader::new(body);
    let mut untranslated = false;
    loop {
        let kind = reader.u8()?;
        if kind == 0 {
            break;
        }
        let text = reader.zero_terminated()?;
        match kind {
            b'V' => {
                report.severity = text;
                untranslated = true;
            }
            b'S' if !untranslated => report.severity = text,
            b'C' => {
                report.sqlstate = crate::sqlstate(text)
                    .ok_or(WireError("the server states an impossible SQLSTATE"))?;
            }
            b'M' => report.message = text,
            b'D' => report.detail = Some(text),
            b'H' => report.hint = Some(text),
            b'q' => report.internal_query = Some(text),
            b'W' => report.context = Some(text),
            b'P' => report.position = str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
            _ => {}
        }
    }
    reader.end()?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::types;
    use dyno_core::ColumnNames;
    use proptest::prelude::*;

    #[test]
    fn a_plain_answer_is_read_at_once_and_nothing_else_is() {
        let described = b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x06\0\0D\0\0\0\x07\0\0xC\0\0\0\x0dSELECT 2\0Z\0\0\0\x05T";
        let answer = PlainAnswer { rows: 2, affected: 0, status: TransactionStatus::Open };
        assert_eq!(plain_answer(described, true), Some(answer));
        let changed = b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x0dUPDATE 7\0Z\0\0\0\x05I";
        let answer = PlainAnswer { rows: 0, affected: 7, status: TransactionStatus::Idle };
        assert_eq!(plain_answer(changed, false), Some(answer));
        for whole in [&described[..], changed] {
            for len in 0..whole.len() {
                assert_eq!(plain_answer(&whole[..len], false), None, "{len} bytes");
            }
            // A notice behind it, an error instead of it, a length of 0.
            assert_eq!(plain_answer(&[whole, b"N"].concat(), false), None);
            assert_eq!(plain_answer(&whole[5..], false), None);
            let mut short = whole.to_vec();
            short[9] = 0;
            assert_eq!(plain_answer(&short, false), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange_for_a_plain_answer(
            bytes in prop::collection::vec(prop::sample::select(b"2TnDCZI\0\x04\x05\x06\xff".to_vec()), 0..60),
        ) {
            plain_answer(&[b"2\0\0\0\x04", &bytes[..]].concat(), true);
        }
    }

    #[test]
    fn counts_rows_by_command_tag() {
        let cases: [(&[u8], bool, u64); 10] = [
            (b"INSERT 0 3\0", false, 3),
            (b"UPDATE 0\0", false, 0),
            (b"DELETE 18446744073709551615\0", false, u64::MAX),
            (b"MERGE 2\0", false, 2),
            (b"COPY 7\0", false, 7),
            (b"SELECT 5\0", true, 0),
            (b"SELECT 5\0", false, 5),
            (b"BEGIN\0", false, 0),
            (b"FETCH 3\0", true, 0),
            (b"INSERT 0 1\0", true, 1),
        ];
        for (tag, has_rows, changed) in cases {
            assert_eq!(rows_changed(tag, has_rows), Ok(changed), "{}", tag.escape_ascii());
        }
        for tag in [&b""[..], b"UPDATE 3", b"UPDATE x\0", b"UPDATE 18446744073709551616\0"] {
            assert!(rows_changed(tag, false).is_err(), "{}", tag.escape_ascii());
        }
    }

    #[test]
    fn reads_errors() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mtwice\0DKey (id)=(1).\0HLook.\0P15\0Xnew\0\0";
        let read = report(body).unwrap();
        assert_eq!(read.severity, b"ERROR");
        assert_eq!(&read.sqlstate, b"23505");
        assert_eq!((read.message, read.position), (&b"twice"[..], Some(15)));
        assert_eq!(read.detail, Some(&b"Key (id)=(1)."[..]));
        assert_eq!(read.hint, Some(&b"Look."[..]));
        assert!(!read.is_fatal());
        assert!(report(b"SFATAL\0Mold server\0\0").unwrap().is_fatal());
        for end in 0..body.len() {
            assert!(report(&body[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn reads_authentication_requests() {
        assert_eq!(authentication(&[0, 0, 0, 0]), Ok(Authentication::Ok));
        assert_eq!(
            authentication(&[0, 0, 0, 5, 1, 2, 3, 4]),
            Ok(Authentication::Md5([1, 2, 3, 4]))
        );
        assert_eq!(authentication(&[0, 0, 0, 7]), Ok(Authentication::Unsupported(7)));
        let Ok(Authentication::Sasl(offered)) =
            authentication(b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")
        else {
            panic!("not read as SASL");
        };
        assert!(offered.contains("SCRAM-SHA-256") && !offered.contains("SCRAM"));
        for wrong in [&b""[..], &[0, 0, 0], &[0, 0, 0, 5, 1, 2], &[0, 0, 0, 0, 0]] {
            assert!(authentication(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn reads_columns() {
        let body = b"\0\x02id\0\0\0\x40\0\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01\
            ?column?\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let mut columns = vec![PostgresColumn { type_oid: 1, format: ValueFormat::Text }];
        let mut names = Names::default();
        names.push(b"earlier");
        row_description(body, &mut columns, Some(&mut names)).unwrap();
        assert_eq!((names.count(), names.name(0), names.name(1)), (2, "id", "?column?"));
        assert_eq!(
            columns,
            [
                PostgresColumn { type_oid: types::INT4, format: ValueFormat::Binary },
                PostgresColumn { type_oid: types::TEXT, format: ValueFormat::Text }
            ]
        );
        for end in 0..body.len() {
            assert!(row_description(&body[..end], &mut columns, None).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn reads_what_a_session_begins_with() {
        let key = BackendKey { process: 258, secret: vec![9, 8, 7, 6] };
        assert_eq!(backend_key(&[0, 0, 1, 2, 9, 8, 7, 6]), Ok(key));
        assert!(backend_key(&[0, 0, 1, 2, 9, 8, 7]).is_err());
        assert!(backend_key(&[0; 261]).is_err());
        assert_eq!(parameter_status(b"a\0b\0"), Ok((&b"a"[..], &b"b"[..])));
        assert!(parameter_status(b"a\0b").is_err());
        assert_eq!(ready(b"E"), Ok(TransactionStatus::Failed));
        assert!(ready(b"").is_err() && ready(b"X").is_err() && ready(b"II").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut columns = Vec::new();
            let mut names = Names::default();
            let _ = row_description(&body, &mut columns, Some(&mut names));
            prop_assert!(names.count() - columns.len() <= 1);
            // A column takes at least 19 bytes, whatever number the body claims.
            prop_assert!(columns.len() <= body.len() / 19);
            let _ = report(&body);
            let _ = authentication(&body);
            let _ = backend_key(&body);
            let _ = parameter_status(&body);
            let _ = rows_changed(&body, false);
            let _ = ready(&body);
        }
    }
}
