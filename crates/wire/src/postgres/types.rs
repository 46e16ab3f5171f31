//! Type OIDs (catalog `pg_type`), and the two formats of values.

use dyno_core::ParamType;

pub const NAME: u32 = 19;
pub const INT8: u32 = 20;
pub const INT2: u32 = 21;
pub const INT4: u32 = 23;
pub const TEXT: u32 = 25;
pub const OID: u32 = 26;
pub const FLOAT8: u32 = 701;
/// A literal without a type.
pub const UNKNOWN: u32 = 705;
pub const BPCHAR: u32 = 1042;
pub const VARCHAR: u32 = 1043;

/// `Text`: of the type's output function. `Binary`: of its send function, integers in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    Text,
    Binary,
}

impl ValueFormat {
    /// The format of results of this type: binary for integers, which [`crate::postgres::row::DataRow`] decodes, and for
    /// types that are the same in both formats. The text of others depends on the session, as `extra_float_digits`.
    pub fn for_result(type_oid: u32) -> ValueFormat {
        match type_oid {
            NAME | INT8 | INT2 | INT4 | TEXT | OID | UNKNOWN | BPCHAR | VARCHAR => {
                ValueFormat::Binary
            }
            _ => ValueFormat::Text,
        }
    }

    /// The protocol's number of the format.
    pub fn code(self) -> u16 {
        match self {
            ValueFormat::Text => 0,
            ValueFormat::Binary => 1,
        }
    }
}

/// int8, float8, varchar, or 0 for the server to infer.
pub fn param_oid(param: ParamType) -> u32 {
    match param {
        ParamType::Int => INT8,
        ParamType::Double => FLOAT8,
        ParamType::Text => VARCHAR,
        ParamType::Inferred => 0,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresColumn {
    pub type_oid: u32,
    pub format: ValueFormat,
}
