//! Greeting and authentication.

use super::capability::{self, NEVER};
use super::execute::length;
use super::{AUTOCOMMIT, Connection, Phase};
use crate::protocol::{Checked, Fields, Lent, ReadResult};

const NATIVE: &[u8] = b"mysql_native_password";
/// With this version clients choose MariaDB's dialect and its metadata caching.
const VERSION: &[u8] = b"5.5.5-10.11.6-MariaDB\0";
/// Always the same, as every password is right.
const SCRAMBLE: &[u8; 21] = b"abcdefghijklmnopqrst\0";

impl Connection {
    /// The handshake packet, version 10.
    pub(crate) fn greet(&mut self, lent: &mut Lent<'_>) {
        let announced = capability::ANNOUNCED.to_le_bytes();
        let mut payload = vec![10];
        payload.extend_from_slice(VERSION);
        payload.extend_from_slice(&self.id.to_le_bytes());
        payload.extend_from_slice(&SCRAMBLE[..8]);
        payload.push(0);
        payload.extend_from_slice(&announced[..2]);
        payload.push(45);
        payload.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
        payload.extend_from_slice(&announced[2..4]);
        payload.push(SCRAMBLE.len() as u8);
        payload.extend_from_slice(&[0; 6]);
        // The bits above 32 are read only if LONG_PASSWORD is not announced: it marks MySQL.
        payload.extend_from_slice(&announced[4..]);
        payload.extend_from_slice(&SCRAMBLE[8..]);
        payload.extend_from_slice(NATIVE);
        payload.push(0);
        self.sequence = 0;
        self.answer(lent.out, 0).packet(&payload);
    }

    pub(super) fn login(&mut self, lent: &mut Lent<'_>, payload: &[u8]) -> Checked<ReadResult> {
        let proof = match self.phase {
            Phase::Login => match self.handshake_response(payload)? {
                Some(proof) => proof,
                None => {
                    let mut switch = vec![0xfe];
                    switch.extend_from_slice(NATIVE);
                    switch.push(0);
                    switch.extend_from_slice(SCRAMBLE);
                    self.answer(lent.out, 0).packet(&switch);
                    self.phase = Phase::AuthSwitch;
                    return Ok(ReadResult::NeedsInput);
                }
            },
            _ => payload,
        };
        if !matches!(proof.len(), 0 | 20) {
            return Err(format!(
                "the answer to mysql_native_password has {} bytes instead of 20 or none",
                proof.len()
            ));
        }
        lent.cells.logins.add(1);
        self.phase = Phase::Command;
        self.answer(lent.out, 0).ok(0);
        Ok(ReadResult::NeedsInput)
    }

    /// Reads the response; `None` if it answers for another authentication plugin.
    fn handshake_response<'a>(&mut self, payload: &'a [u8]) -> Checked<Option<&'a [u8]>> {
        let mut fields = Fields::new(payload);
        let low = u64::from(u32::from_le_bytes(fields.array()?));
        let _max_packet = fields.array::<4>()?;
        let _collation = fields.u8()?;
        let filler = fields.array::<19>()?;
        let high = u64::from(u32::from_le_bytes(fields.array()?));
        let is_mysql = low & capability::LONG_PASSWORD != 0;
        if filler != [0; 19] || is_mysql && high != 0 {
            return Err("the filler of the handshake response is not zero".into());
        }
        let requested = low | high << 32;
        let needed = capability::PROTOCOL_41 | capability::SECURE_CONNECTION;
        if requested & needed != needed {
            return Err("the client speaks no protocol 4.1 with secure authentication".into());
        }
        if requested & NEVER != 0 || high << 32 & !capability::ANNOUNCED != 0 {
            return Err("the client asks for capabilities that were not announced".into());
        }
        self.capabilities = requested & capability::ANNOUNCED;
        let _user = fields.until_zero()?;
        let proof_length = match requested & capability::PLUGIN_AUTH_LENENC {
            0 => fields.u8()?.into(),
            _ => length(&mut fields)?,
        };
        let proof = fields.bytes(proof_length)?;
        if requested & capability::CONNECT_WITH_DB != 0 {
            fields.until_zero()?;
        }
        let mut plugin = NATIVE;
        if requested & capability::PLUGIN_AUTH != 0 {
            plugin = fields.until_zero()?;
        }
        if requested & capability::CONNECT_ATTRS != 0 {
            attributes(&mut fields)?;
        }
        fields.finish("the handshake response")?;
        Ok((plugin == NATIVE).then_some(proof))
    }
}

/// Connection attributes: pairs of length-encoded texts that fill their announced length.
fn attributes(fields: &mut Fields<'_>) -> Checked<()> {
    let total = length(fields)?;
    let mut pairs = Fields::new(fields.bytes(total)?);
    while !pairs.rest.is_empty() {
        for _ in 0..2 {
            let length = length(&mut pairs)?;
            pairs.bytes(length)?;
        }
    }
    Ok(())
}
