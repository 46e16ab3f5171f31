//! The extended query protocol: statements and portals, every field checked.

use super::answer;
use crate::protocol::{Checked, Fields};
use crate::sql::{Dialect, PlanCache, Statement, Value, is_decimal};
use std::collections::HashMap;
use std::rc::Rc;

/// Statements, and portals, one connection may hold.
const NAMES_MAX: usize = 65_536;
/// Parameters whose integer a row count may depend on: BETWEEN's bounds are among the first.
const BOUNDS_MAX: usize = 64;

pub(super) mod oid {
    pub(crate) const BOOL: u32 = 16;
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT2: u32 = 21;
    pub(crate) const INT4: u32 = 23;
    pub(crate) const TEXT: u32 = 25;
    pub(crate) const FLOAT4: u32 = 700;
    pub(crate) const FLOAT8: u32 = 701;
    pub(crate) const BPCHAR: u32 = 1042;
    pub(crate) const VARCHAR: u32 = 1043;
    pub(crate) const DATE: u32 = 1082;
    pub(crate) const TIMESTAMP: u32 = 1114;
    pub(crate) const TIMESTAMPTZ: u32 = 1184;
    pub(crate) const NUMERIC: u32 = 1700;
}

pub(super) struct Prepared {
    statement: Rc<Statement>,
    /// Types of the parameters; 0 where neither the client nor a known column has one.
    types: Box<[u32]>,
}

pub(super) struct Portal {
    pub(super) statement: Rc<Statement>,
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
    /// After a failed COPY the rest of the batch is not executed, so messages before Sync could not be checked.
    failed: bool,
}

impl Extended {
    fn begin(&mut self) -> Checked<()> {
        self.in_batch = true;
        if self.failed { Err("a failed batch goes on without Sync".into()) } else { Ok(()) }
    }

    pub(super) fn fail(&mut self, is_extended: bool) {
        self.failed = is_extended;
    }

    /// After Sync; outside a transaction it closes the portals.
    pub(super) fn synced(&mut self, in_transaction: bool) {
        self.in_batch = false;
        self.failed = false;
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

    pub(super) fn parse(&mut self, plans: &mut PlanCache, body: &[u8]) -> Checked<()> {
        self.begin()?;
        let mut fields = Fields::new(body);
        let name = fields.until_zero()?;
        let sql = fields.until_zero()?;
        let declared = u16::from_be_bytes(fields.array()?);
        let declared = fields.bytes(usize::from(declared) * 4)?;
        fields.finish("Parse")?;
        let statement = plans.prepare(sql, Dialect::Postgres)?;
        let count = statement.plan.params.len().max(declared.len() / 4);
        let mut types = vec![0; count].into_boxed_slice();
        for (kind, known) in types.iter_mut().zip(&statement.plan.params) {
            *kind = known.map_or(0, type_of);
        }
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
            return Err(named("Parse makes a statement that already exists", name));
        }
        Ok(())
    }

    fn prepared(&self, name: &[u8]) -> Checked<&Prepared> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.statements.get(name) };
        found.ok_or_else(|| named("there is no statement", name))
    }

    fn portal(&mut self, name: &[u8]) -> Checked<&mut Portal> {
        let found =
            if name.is_empty() { self.unnamed_portal.as_mut() } else { self.portals.get_mut(name) };
        found.ok_or_else(|| named("there is no portal", name))
    }

    pub(super) fn bind(&mut self, body: &[u8]) -> Checked<()> {
        self.begin()?;
        let mut fields = Fields::new(body);
        let portal_name = fields.until_zero()?;
        let prepared = self.prepared(fields.until_zero()?)?;
        let plan = &prepared.statement.plan;
        let formats = formats(&mut fields, prepared.types.len(), "parameter")?;
        let count = usize::from(u16::from_be_bytes(fields.array()?));
        if count != prepared.types.len() {
            return Err(format!(
                "Bind gives {count} parameters, the statement has {}",
                prepared.types.len()
            ));
        }
        let mut bounds = [None; BOUNDS_MAX];
        for (index, &kind) in prepared.types.iter().enumerate() {
            let length = i32::from_be_bytes(fields.array()?);
            if length == -1 {
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(format!("parameter {} has length {length}", index + 1));
            };
            let value = fields.bytes(length)?;
            let integer = integer(value, kind, formats.is_binary(index), index)?;
            if let Some(bound) = bounds.get_mut(index) {
                *bound = integer;
            }
        }
        let columns = plan.columns.len();
        let results = self::formats(&mut fields, columns, "result column")?;
        fields.finish("Bind")?;
        let sql = &prepared.statement.sql;
        let bound = |index: u16| bounds.get(usize::from(index)).copied().flatten();
        let portal = Portal {
            statement: Rc::clone(&prepared.statement),
            formats: (0..columns).fold(0, |bits, at| bits | u64::from(results.is_binary(at)) << at),
            rows_left: plan.row_count(sql, bound),
            started: false,
        };
        if portal_name.is_empty() {
            self.unnamed_portal = Some(portal);
        } else if self.portals.len() >= NAMES_MAX {
            return Err("a connection holds more than 65536 portals".into());
        } else if self.portals.insert(portal_name.into(), portal).is_some() {
            return Err(named("Bind makes a portal that already exists", portal_name));
        }
        Ok(())
    }

    pub(super) fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Checked<()> {
        self.begin()?;
        let (kind, name) = object(body, "Describe")?;
        let (statement, formats) = if kind == b'S' {
            let prepared = self.prepared(name)?;
            answer::parameters(out, &prepared.types);
            (&prepared.statement, 0)
        } else {
            let portal = self.portal(name)?;
            (&portal.statement, portal.formats)
        };
        if statement.plan.columns.is_empty() {
            answer::empty(out, b'n');
        } else {
            answer::row_description(out, &statement.sql, &statement.plan.columns, formats);
        }
        Ok(())
    }

    /// Reads Execute; returns the portal and the most rows to send (0: all).
    pub(super) fn portal_to_execute(&mut self, body: &[u8]) -> Checked<(&mut Portal, u64)> {
        self.begin()?;
        let mut fields = Fields::new(body);
        let name = fields.until_zero()?;
        let rows_max = i32::from_be_bytes(fields.array()?);
        fields.finish("Execute")?;
        Ok((self.portal(name)?, rows_max.max(0) as u64))
    }

    pub(super) fn close(&mut self, body: &[u8]) -> Checked<()> {
        self.begin()?;
        // Closing what does not exist is no error.
        match object(body, "Close")? {
            (b'S', b"") => self.unnamed = None,
            (b'S', name) => drop(self.statements.remove(name)),
            (_, b"") => self.unnamed_portal = None,
            (_, name) => drop(self.portals.remove(name)),
        }
        Ok(())
    }
}

fn named(problem: &str, name: &[u8]) -> String {
    format!("{problem}: \"{}\"", name.escape_ascii())
}

/// The kind ('S' or 'P') and name in Describe and Close.
fn object<'a>(body: &'a [u8], message: &str) -> Checked<(u8, &'a [u8])> {
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

/// The type of a parameter beside a column with this value.
pub(super) fn type_of(value: Value) -> u32 {
    match value {
        Value::Bool(_) => oid::BOOL,
        Value::Int(_) => oid::INT4,
        Value::Big(_) | Value::Sum(_) | Value::Clock => oid::INT8,
        Value::Char(_) => oid::BPCHAR,
        Value::Null | Value::Text(_) | Value::Literal(_) => oid::TEXT,
        Value::Timestamp => oid::TIMESTAMP,
        Value::Decimal(..) => oid::NUMERIC,
    }
}

/// Checks a parameter against its type; returns its value if it is an integer.
fn integer(value: &[u8], kind: u32, binary: bool, index: usize) -> Checked<Option<i64>> {
    let wrong = |what: &str| Err(format!("parameter {} is not {what}", index + 1));
    let integer = match (binary, value) {
        (true, &[a, b]) => Some(i16::from_be_bytes([a, b]).into()),
        (true, &[a, b, c, d]) => Some(i32::from_be_bytes([a, b, c, d]).into()),
        (true, value) => value.try_into().ok().map(i64::from_be_bytes),
        (false, text) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
    };
    let (length, low, high) = match kind {
        oid::INT2 => (2, i16::MIN.into(), i16::MAX.into()),
        oid::INT4 => (4, i32::MIN.into(), i32::MAX.into()),
        oid::INT8 => (8, i64::MIN, i64::MAX),
        oid::TEXT | oid::BPCHAR | oid::VARCHAR => {
            let is_text = !value.contains(&0) && std::str::from_utf8(value).is_ok();
            return if is_text { Ok(integer) } else { wrong("a text in UTF-8") };
        }
        oid::BOOL | oid::FLOAT4 | oid::FLOAT8 | oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let length = match kind {
                oid::BOOL => 1,
                oid::FLOAT4 | oid::DATE => 4,
                _ => 8,
            };
            let fits = if binary { value.len() == length } else { !value.is_empty() };
            return if fits { Ok(None) } else { wrong("of its type's length") };
        }
        oid::NUMERIC if !binary && !is_decimal(value) => return wrong("a number"),
        // An open type: such clients send text.
        _ => return Ok(integer.filter(|_| !binary)),
    };
    match integer {
        Some(integer) if (low..=high).contains(&integer) && (!binary || value.len() == length) => {
            Ok(Some(integer))
        }
        _ => wrong("an integer of its type"),
    }
}
