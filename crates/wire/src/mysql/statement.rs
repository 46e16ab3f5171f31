//! Prepared statements: the answer to their preparation, and their executions.
//!
//! Commands without parameters.

use super::packet::PROGRESS_REPORT;
use super::packet::{
    ERROR, Framed, Framing, HEADER_BYTES, PacketReader, begin_packet, finish_packet,
    push_lenenc_bytes,
};
use super::row::{Definitions, column_type};
use super::{Malformed, Scanned, ServerError};
use crate::text_rows::FixedBytes;
use dyno_core::{Param, ParamType};

const COM_STMT_EXECUTE: u8 = 0x17;

#[derive(Debug)]
pub struct Prepared {
    /// The command up to the values, without NULLs and types.
    template: FixedBytes,
    /// Types that the server knows, or gets with the next execution.
    types: Vec<ParamType>,
    types_sent: bool,
    /// The types are known to the server, and are that of one integer.
    takes_one_int: bool,
    /// Columns of its result set, which servers that cache metadata do not repeat.
    pub definitions: Definitions,
}

/// A mismatch of parameters and statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongParamCount {
    pub expected: usize,
    pub given: usize,
}

/// Place of the server's number of the statement: behind header and command.
const ID: std::ops::Range<usize> = HEADER_BYTES + 1..HEADER_BYTES + 5;
/// Offset of the NULL bitmap: also behind flags and iteration count.
const BITMAP: usize = ID.end + 1 + 4;
/// Behind the bitmap of one parameter is the flag of new types.
const ONE_INT_BYTES: usize = BITMAP + 1 + 1 + size_of::<i64>();

impl Prepared {
    /// `id`: the server's number of the statement.
    pub fn new(id: u32, types: &[ParamType], definitions: Definitions) -> Self {
        let mut template = vec![0; HEADER_BYTES];
        template.push(COM_STMT_EXECUTE);
        template.extend_from_slice(&id.to_le_bytes());
        // No cursor.
        template.push(0);
        template.extend_from_slice(&1_u32.to_le_bytes());
        if !types.is_empty() {
            template.resize(template.len() + types.len().div_ceil(8), 0);
            // New types do not follow.
            template.push(0);
        }
        let template = FixedBytes::new(template);
        let (types, types_sent, takes_one_int) = (types.to_vec(), false, false);
        Prepared { template, types, types_sent, takes_one_int, definitions }
    }

    /// Appends an execution, except on an error. Returns the sequence number of the answer's first packet.
    #[inline]
    pub fn encode(
        &mut self,
        params: &[Param<'_>],
        out: &mut Vec<u8>,
    ) -> Result<u8, WrongParamCount> {
        if let ([Param::Int(value)], true) = (params, self.takes_one_int) {
            out.extend_from_slice(&self.with_one_int(*value));
            return Ok(1);
        }
        if params.len() != self.types.len() {
            return Err(WrongParamCount { expected: self.types.len(), given: params.len() });
        }
        let start = out.len();
        self.template.push(out);
        if !params.is_empty() {
            self.encode_types(params, out);
        }
        for (number, param) in params.iter().enumerate() {
            match param {
                Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
                Param::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
                Param::Text(value) => push_lenenc_bytes(out, value),
                Param::Null => out[start + BITMAP + number / 8] |= 1 << (number % 8),
            }
        }
        Ok(finish_packet(out, start, 0))
    }

    /// The whole packet of an execution with one integer: most executions have no other parameter.
    #[inline]
    fn with_one_int(&self, value: i64) -> [u8; ONE_INT_BYTES] {
        let mut packet = [0; ONE_INT_BYTES];
        let (head, number) = packet.split_at_mut(ONE_INT_BYTES - size_of::<i64>());
        head.copy_from_slice(&self.template.block[..head.len()]);
        head[0] = (ONE_INT_BYTES - HEADER_BYTES) as u8;
        number.copy_from_slice(&value.to_le_bytes());
        packet
    }

    /// Appends the types if the server does not know them yet.
    #[inline]
    fn encode_types(&mut self, params: &[Param<'_>], out: &mut Vec<u8>) {
        for (known, param) in self.types.iter_mut().zip(params) {
            let needed = match param {
                Param::Null => continue,
                Param::Int(_) => ParamType::Int,
                Param::Double(_) => ParamType::Double,
                Param::Text(_) => ParamType::Text,
            };
            if *known != needed {
                *known = needed;
                self.types_sent = false;
            }
        }
        if self.types_sent {
            return;
        }
        self.types_sent = true;
        self.takes_one_int = self.types == [ParamType::Int];
        if let Some(flag) = out.last_mut() {
            *flag = 1;
        }
        for known in &self.types {
            let code = match known {
                ParamType::Int => column_type::LONGLONG,
                ParamType::Double => column_type::DOUBLE,
                ParamType::Text | ParamType::Inferred => column_type::VAR_STRING,
            };
            out.extend_from_slice(&[code, 0]);
        }
    }

    /// An execution failed: the server may not have taken the types, so they are sent again.
    pub fn forget_types(&mut self) {
        (self.types_sent, self.takes_one_int) = (false, false);
    }

    /// Number of parameters.
    pub fn params(&self) -> usize {
        self.types.len()
    }

    /// Appends the command that closes the statement; the server doesn't answer it.
    pub fn encode_close(&self, out: &mut Vec<u8>) {
        push_command(out, COM_STMT_CLOSE, &self.template.bytes[ID]);
    }
}

/// The scanner of the answer to a preparation.
#[derive(Debug)]
pub struct PrepareAnswer {
    framing: Framing,
    deprecate_eof: bool,
    id: Option<u32>,
    params: u16,
    columns_announced: u16,
    params_left: u32,
    columns_left: u32,
    definitions: Definitions,
}

/// Result of a scan of the answer to a preparation.
#[derive(Debug)]
pub enum PrepareStep {
    More,
    Done { id: u32, params: u16, definitions: Definitions },
    Failed(ServerError),
}

impl PrepareAnswer {
    /// Expects the answer to start with packet `sequence`.
    pub fn new(deprecate_eof: bool, sequence: u8) -> Self {
        let mut framing = Framing::default();
        framing.expect(sequence);
        PrepareAnswer {
            framing,
            deprecate_eof,
            id: None,
            params: 0,
            columns_announced: 0,
            params_left: 0,
            columns_left: 0,
            definitions: Definitions::default(),
        }
    }

    /// Scans what was received; the first number is how many bytes are done with.
    pub fn scan(&mut self, bytes: &[u8]) -> Scanned<(usize, PrepareStep)> {
        let mut consumed = 0;
        loop {
            let payload = match self.framing.next_payload(&bytes[consumed..])? {
                Framed::Partial(more) => return Ok((consumed + more, PrepareStep::More)),
                Framed::Payload(payload, more) => {
                    consumed += more;
                    payload
                }
            };
            match (self.id, payload.first()) {
                (_, Some(&ERROR)) => {
                    let error = ServerError::parse(payload)?;
                    if error.errno != PROGRESS_REPORT {
                        return Ok((consumed, PrepareStep::Failed(error)));
                    }
                }
                (None, Some(0)) => {
                    let mut reader = PacketReader::new(&payload[1..]);
                    self.id = Some(reader.u32()?);
                    self.columns_announced = reader.u16()?;
                    self.params = reader.u16()?;
                    self.params_left = self.definitions(self.params);
                    self.columns_left = self.definitions(self.columns_announced);
                }
                (None, _) => return Err(Malformed("the answer to PREPARE is not one")),
                (Some(_), _) if self.params_left > 0 => self.params_left -= 1,
                (Some(_), _) => {
                    self.columns_left -= 1;
                    if self.definitions.columns.len() < usize::from(self.columns_announced) {
                        self.definitions.push(payload, true)?;
                    }
                }
            }
            if let (Some(id), 0, 0) = (self.id, self.params_left, self.columns_left) {
                let definitions = std::mem::take(&mut self.definitions);
                return Ok((consumed, PrepareStep::Done { id, params: self.params, definitions }));
            }
        }
    }

    /// Packets that announce `count` parameters or columns.
    fn definitions(&self, count: u16) -> u32 {
        let end = u32::from(count > 0 && !self.deprecate_eof);
        u32::from(count) + end
    }
}

/// Appends a command with its argument. Returns the sequence number of the answer's first packet.
pub fn push_command(out: &mut Vec<u8>, command: u8, argument: &[u8]) -> u8 {
    let start = begin_packet(out);
    out.push(command);
    out.extend_from_slice(argument);
    finish_packet(out, start, 0)
}

/// Ends the session; the server doesn't answer.
pub const COM_QUIT: u8 = 0x01;
pub const COM_QUERY: u8 = 0x03;
/// Ends a prepared statement; the server doesn't answer.
pub const COM_STMT_CLOSE: u8 = 0x19;
pub const COM_STMT_PREPARE: u8 = 0x16;

#[cfg(test)]
mod tests {
    use super::*;

    fn types_flag(bytes: &[u8]) -> u8 {
        bytes[BITMAP + 1]
    }

    #[test]
    fn executions_carry_types_once_and_nulls_in_the_bitmap() {
        let mut statement =
            Prepared::new(7, &[ParamType::Int, ParamType::Text], Definitions::default());
        let mut first = Vec::new();
        let next = statement.encode(&[Param::Int(-1), Param::Text(b"ab")], &mut first).unwrap();
        assert_eq!(next, 1);
        let mut expected = vec![28, 0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 253, 0];
        expected.extend_from_slice(&[0xff; 8]);
        expected.extend_from_slice(b"\x02ab");
        expected[0] = (expected.len() - 4) as u8;
        assert_eq!(first, expected);

        let mut second = Vec::new();
        statement.encode(&[Param::Null, Param::Text(b"")], &mut second).unwrap();
        assert_eq!(second[BITMAP..], [0b01, 0, 0]);

        let mut changed = Vec::new();
        statement.encode(&[Param::Double(0.0), Param::Null], &mut changed).unwrap();
        assert_eq!(changed[BITMAP..BITMAP + 6], [0b10, 1, 5, 0, 253, 0]);
        changed.clear();
        statement.encode(&[Param::Double(0.0), Param::Null], &mut changed).unwrap();
        assert_eq!(types_flag(&changed), 0);
        changed.clear();
        statement.forget_types();
        statement.encode(&[Param::Double(0.0), Param::Null], &mut changed).unwrap();
        assert_eq!(types_flag(&changed), 1);
    }

    #[test]
    fn a_wrong_number_of_parameters_appends_nothing() {
        let mut statement = Prepared::new(7, &[ParamType::Int], Definitions::default());
        let mut out = Vec::new();
        let error = WrongParamCount { expected: 1, given: 0 };
        assert_eq!(statement.encode(&[], &mut out), Err(error));
        assert!(out.is_empty());
        assert_eq!(Prepared::new(1, &[], Definitions::default()).encode(&[], &mut out), Ok(1));
        assert_eq!(out.len(), BITMAP);
    }
    #[test]
    fn an_execution_with_one_integer_is_the_same_by_the_short_way() {
        let mut prepared = Prepared::new(7, &[ParamType::Int], Definitions::default());
        let mut encode = |value: i64| {
            let mut out = Vec::new();
            assert_eq!(prepared.encode(&[Param::Int(value)], &mut out), Ok(1));
            out
        };
        let head = [0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let value = 0x0102_0304_0506_0708_i64.to_le_bytes();
        let first = [&[22][..], &head, &[1, 8, 0], &value].concat();
        assert_eq!(encode(0x0102_0304_0506_0708), first, "with its type");
        let next = [&[20][..], &head, &[0], &value].concat();
        assert_eq!(encode(0x0102_0304_0506_0708), next);
        assert_eq!(encode(-1), [&[20][..], &head, &[0], &[0xff; 8]].concat());
        prepared.forget_types();
        let mut again = Vec::new();
        assert_eq!(prepared.encode(&[Param::Int(-1)], &mut again), Ok(1));
        assert_eq!(again, [&[22][..], &head, &[1, 8, 0], &[0xff; 8]].concat());
    }
}
