//! The extended query protocol: statements and portals, every field checked.

use super::answer;
use crate::answers::{BoundParam, Statement, Value};
use crate::protocol::{Checked, Fields};
use std::collections::HashMap;

/// Statements, and portals, one connection may hold.
const NAMES_MAX: usize = 65_536;

pub(super) mod oid {
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT4: u32 = 23;
    pub(crate) const TEXT: u32 = 25;
    pub(crate) const FLOAT8: u32 = 701;
    pub(crate) const NUMERIC: u32 = 1700;
}

pub(super) struct Prepared {
    statement: Statement,
    /// Types of the parameters; text where the client declares none, as libpq's clients do.
    types: Box<[u32]>,
}

pub(super) struct Portal {
    pub(super) statement: Statement,
    /// Bit n: column n is binary.
    pub(super) formats: u64,
    pub(super) rows_left: u64,
    pub(super) started: bool,
}

#[derive(Default)]
pub(super) struct Extended {
    unnamed: Option<Prepared>,
    unnamed_portal: Option<Portal>,
    statements: HashMap<Box<[u8]>, Prepared>,
    portals: HashMap<Box<[u8]>, Portal>,
    /// Messages of a batch came, but not its Sync.
    in_batch: bool,
    /// After an error the messages up to Sync are ignored.
    pub(super) has_failed: bool,
}

impl Extended {
    /// After Sync; outside a transaction it closes the portals.
    pub(super) fn synced(&mut self, in_transaction: bool) {
        self.in_batch = false;
        self.has_failed = false;
        if !in_transaction {
            self.unnamed_portal = None;
            if !self.portals.is_empty() {
                self.portals.clear();
            }
        }
    }

    pub(super) fn expect_no_batch(&self) -> Checked<()> {
        if self.in_batch {
            Err("a Query message stands before the Sync of a batch".into())
        } else {
            Ok(())
        }
    }

    pub(super) fn forget_unnamed(&mut self) {
        self.unnamed = None;
        self.unnamed_portal = None;
    }

    pub(super) fn parse(&mut self, shape: &mut Vec<u8>, body: &[u8]) -> Checked<Statement> {
        self.in_batch = true;
        let mut fields = Fields::new(body);
        let name = fields.until_zero()?;
        let sql = fields.until_zero()?;
        let declared = u16::from_be_bytes(fields.array()?);
        let declared = fields.bytes(usize::from(declared) * 4)?;
        fields.finish("Parse")?;
        let statement = Statement::read_only_one(sql, shape)?;
        if statement.is_unknown() {
            return Ok(statement);
        }
        let count = usize::from(statement.params).max(declared.len() / 4);
        let mut types = vec![oid::TEXT; count].into_boxed_slice();
        for (kind, declared) in types.iter_mut().zip(declared.as_chunks::<4>().0) {
            let declared = u32::from_be_bytes(*declared);
            if declared != 0 {
                *kind = declared;
            }
        }
        let prepared = Prepared { statement, types };
        if name.is_empty() {
            self.unnamed = Some(prepared);
        } else if self.statements.len() >= NAMES_MAX {
            return Err("a connection holds more than 65536 statements".into());
        } else if self.statements.insert(name.into(), prepared).is_some() {
            return Err(name_problem("Parse makes a statement that already exists", name));
        }
        Ok(statement)
    }

    fn prepared(&self, name: &[u8]) -> Checked<&Prepared> {
        let statement =
            if name.is_empty() { self.unnamed.as_ref() } else { self.statements.get(name) };
        statement.ok_or_else(|| name_problem("there is no statement", name))
    }

    fn portal(&mut self, name: &[u8]) -> Checked<&mut Portal> {
        let portal =
            if name.is_empty() { self.unnamed_portal.as_mut() } else { self.portals.get_mut(name) };
        portal.ok_or_else(|| name_problem("there is no portal", name))
    }

    pub(super) fn bind(&mut self, body: &[u8], is_empty: bool) -> Checked<()> {
        self.in_batch = true;
        let mut fields = Fields::new(body);
        let portal_name = fields.until_zero()?;
        let prepared = self.prepared(fields.until_zero()?)?;
        let statement = prepared.statement;
        let formats = formats(&mut fields, prepared.types.len(), "parameter")?;
        let count = usize::from(u16::from_be_bytes(fields.array()?));
        if count != prepared.types.len() {
            return Err(format!(
                "Bind gives {count} parameters, the statement has {}",
                prepared.types.len()
            ));
        }
        let mut row_exists = true;
        for (index, &kind) in prepared.types.iter().enumerate() {
            let length = i32::from_be_bytes(fields.array()?);
            if length == -1 {
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(format!("parameter {} has length {length}", index + 1));
            };
            let value = fields.bytes(length)?;
            let value = parse_param(value, kind, formats.is_binary(index), index)?;
            if let Some(answer) = statement.answer {
                row_exists &= answer.check(index, value)?;
            }
        }
        let columns = statement.columns();
        let results = self::formats(&mut fields, columns.len(), "result column")?;
        fields.finish("Bind")?;
        let mut formats = 0;
        for (at, column) in columns.iter().enumerate().filter(|(at, _)| results.is_binary(*at)) {
            if matches!(column.value, Value::Decimal(_)) {
                return Err("a numeric is asked for in binary format".into());
            }
            formats |= 1 << at;
        }
        let rows_left = if row_exists { statement.rows(is_empty) } else { 0 };
        let portal = Portal { statement, formats, rows_left, started: false };
        if portal_name.is_empty() {
            self.unnamed_portal = Some(portal);
        } else if self.portals.len() >= NAMES_MAX {
            return Err("a connection holds more than 65536 portals".into());
        } else if self.portals.insert(portal_name.into(), portal).is_some() {
            return Err(name_problem("Bind makes a portal that already exists", portal_name));
        }
        Ok(())
    }

    pub(super) fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Checked<()> {
        self.in_batch = true;
        let (kind, name) = parse_object(body, "Describe")?;
        let (statement, formats) = if kind == b'S' {
            let prepared = self.prepared(name)?;
            answer::parameters(out, &prepared.types);
            (prepared.statement, 0)
        } else {
            let portal = self.portal(name)?;
            (portal.statement, portal.formats)
        };
        if statement.columns().is_empty() {
            answer::empty(out, b'n');
        } else {
            answer::row_description(out, statement.columns(), formats);
        }
        Ok(())
    }

    /// Reads Execute; returns the portal and the most rows to send (0: all).
    pub(super) fn portal_to_execute(&mut self, body: &[u8]) -> Checked<(&mut Portal, u64)> {
        self.in_batch = true;
        let mut fields = Fields::new(body);
        let name = fields.until_zero()?;
        let rows_max = i32::from_be_bytes(fields.array()?);
        fields.finish("Execute")?;
        Ok((self.portal(name)?, rows_max.max(0) as u64))
    }

    pub(super) fn close(&mut self, body: &[u8]) -> Checked<()> {
        self.in_batch = true;
        // Closing what does not exist is not an error.
        match parse_object(body, "Close")? {
            (b'S', b"") => self.unnamed = None,
            (b'S', name) => drop(self.statements.remove(name)),
            (_, b"") => self.unnamed_portal = None,
            (_, name) => drop(self.portals.remove(name)),
        }
        Ok(())
    }
}

fn name_problem(problem: &str, name: &[u8]) -> String {
    format!("{problem}: \"{}\"", name.escape_ascii())
}

/// The kind ('S' or 'P') and name in Describe and Close.
fn parse_object<'a>(body: &'a [u8], message: &str) -> Checked<(u8, &'a [u8])> {
    let mut fields = Fields::new(body);
    let kind = fields.u8()?;
    if !matches!(kind, b'S' | b'P') {
        return Err(format!("{message} names neither a statement nor a portal"));
    }
    let name = fields.until_zero()?;
    fields.finish(message)?;
    Ok((kind, name))
}

/// Format codes of parameters or results: none (all text), one for all, or one each.
struct Formats<'a>(&'a [[u8; 2]]);

impl Formats<'_> {
    fn is_binary(&self, index: usize) -> bool {
        match self.0 {
            [] => false,
            [one] => one[1] == 1,
            each => each[index][1] == 1,
        }
    }
}

fn formats<'a>(fields: &mut Fields<'a>, wanted: usize, what: &str) -> Checked<Formats<'a>> {
    let count = usize::from(u16::from_be_bytes(fields.array()?));
    if count > 1 && count != wanted {
        return Err(format!("Bind gives {count} {what} formats for {wanted}"));
    }
    let codes = fields.bytes(count * 2)?.as_chunks::<2>().0;
    if codes.iter().any(|code| !matches!(code, [0, 0 | 1])) {
        return Err(format!("a {what} format is neither text nor binary"));
    }
    Ok(Formats(codes))
}

/// A parameter in its format; binary ones must have the length of their type.
fn parse_param(value: &[u8], kind: u32, is_binary: bool, index: usize) -> Checked<BoundParam<'_>> {
    let mismatch = |what: &str| Err(format!("parameter {} is not {what}", index + 1));
    match (kind, is_binary) {
        (oid::INT8, true) => match value.try_into() {
            Ok(bytes) => Ok(BoundParam::Integer(i64::from_be_bytes(bytes))),
            Err(_) => mismatch("of its type's length"),
        },
        (oid::INT4, true) => match value.try_into() {
            Ok(bytes) => Ok(BoundParam::Integer(i32::from_be_bytes(bytes).into())),
            Err(_) => mismatch("of its type's length"),
        },
        (oid::FLOAT8, true) if value.len() != 8 => mismatch("of its type's length"),
        (oid::FLOAT8, true) => Ok(BoundParam::Opaque),
        _ if value.contains(&0) || std::str::from_utf8(value).is_err() => {
            mismatch("a text in UTF-8")
        }
        _ => Ok(BoundParam::Bytes(value)),
    }
}
