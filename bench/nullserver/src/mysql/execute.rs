//! COM_STMT_EXECUTE: every byte is checked, because a client that sends less is faster.

use crate::answers::{BoundParam, Statement};
use crate::protocol::{Checked, Fields};

/// Checks the bytes behind the statement id; false if the row that they ask for doesn't exist. `types` are those of the
/// last execution; new ones of the client replace them.
pub(super) fn check(body: &[u8], statement: &Statement, types: &mut Vec<u8>) -> Checked<bool> {
    let mut fields = Fields::new(body);
    let [flags, iterations @ ..] = fields.array::<5>()?;
    if flags != 0 {
        return Err(format!("COM_STMT_EXECUTE asks for cursor 0x{flags:02x}"));
    }
    if u32::from_le_bytes(iterations) != 1 {
        return Err("COM_STMT_EXECUTE has an iteration count other than 1".into());
    }
    let count = usize::from(statement.params);
    if count == 0 {
        fields.finish("COM_STMT_EXECUTE without parameters")?;
        return Ok(true);
    }
    let nulls = fields.bytes(count.div_ceil(8))?;
    let spare = count % 8;
    if spare != 0 && nulls[nulls.len() - 1] >> spare != 0 {
        return Err("the NULL bitmap has bits beyond the last parameter".into());
    }
    match fields.u8()? {
        1 => new_types(&mut fields, count, types)?,
        0 if types.len() == count => {}
        0 => return Err("the first execution does not send the parameter types".into()),
        flag => return Err(format!("the new-parameters flag is {flag}")),
    }
    let mut row_exists = true;
    for (index, &kind) in types.iter().enumerate() {
        if nulls[index / 8] >> (index % 8) & 1 == 1 {
            continue;
        }
        let value = parse_value(&mut fields, kind)?;
        if let Some(answer) = statement.answer {
            row_exists &= answer.check(index, value)?;
        }
    }
    fields.finish("COM_STMT_EXECUTE")?;
    Ok(row_exists)
}

fn new_types(fields: &mut Fields<'_>, count: usize, types: &mut Vec<u8>) -> Checked<()> {
    types.clear();
    for pair in fields.bytes(count * 2)?.chunks_exact(2) {
        if pair[1] & 0x7f != 0 {
            return Err(format!("a parameter type has the flags 0x{:02x}", pair[1]));
        }
        types.push(pair[0]);
    }
    Ok(())
}

fn parse_value<'a>(fields: &mut Fields<'a>, kind: u8) -> Checked<BoundParam<'a>> {
    Ok(match kind {
        // LONGLONG, LONG and INT24, SHORT and YEAR, TINY. Unsigned ones beyond i64 are not ids.
        8 => BoundParam::Integer(i64::from_le_bytes(fields.array()?)),
        3 | 9 => BoundParam::Integer(i32::from_le_bytes(fields.array()?).into()),
        2 | 13 => BoundParam::Integer(i16::from_le_bytes(fields.array()?).into()),
        1 => BoundParam::Integer(i8::from_le_bytes(fields.array()?).into()),
        // FLOAT, DOUBLE.
        4 => fields.array::<4>().map(|_| BoundParam::Opaque)?,
        5 => fields.array::<8>().map(|_| BoundParam::Opaque)?,
        // NULL.
        6 => BoundParam::Opaque,
        // TIMESTAMP, DATE, DATETIME; TIME.
        7 | 10 | 12 => skip_sized(fields, &[0, 4, 7, 11], kind)?,
        11 => skip_sized(fields, &[0, 8, 12], kind)?,
        // DECIMAL, VARCHAR, BIT, JSON, NEWDECIMAL, ENUM, SET, the BLOBs, VAR_STRING, STRING.
        0 | 15 | 16 | 245..=255 => {
            let length = length(fields)?;
            BoundParam::Bytes(fields.bytes(length)?)
        }
        _ => return Err(format!("there is no parameter type {kind}")),
    })
}

fn skip_sized<'a>(fields: &mut Fields<'a>, lengths: &[u8], kind: u8) -> Checked<BoundParam<'a>> {
    let length = fields.u8()?;
    if !lengths.contains(&length) {
        return Err(format!("a value of type {kind} has {length} bytes"));
    }
    fields.bytes(length.into())?;
    Ok(BoundParam::Opaque)
}

/// A length-encoded length; the reader of the bytes checks it.
pub(super) fn length(fields: &mut Fields<'_>) -> Checked<usize> {
    Ok(match fields.u8()? {
        short @ 0..=250 => short.into(),
        0xfc => u16::from_le_bytes(fields.array()?).into(),
        0xfd => {
            let [a, b, c] = fields.array()?;
            u32::from_le_bytes([a, b, c, 0]) as usize
        }
        0xfe => usize::try_from(u64::from_le_bytes(fields.array()?)).unwrap_or(usize::MAX),
        byte => return Err(format!("a length begins with 0x{byte:02x}")),
    })
}
