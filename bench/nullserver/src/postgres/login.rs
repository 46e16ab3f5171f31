//! Startup and authentication.

use super::{Connection, Phase, answer};
use crate::protocol::{Checked, Fields, Lent, ReadResult};

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const VERSION_3: u32 = 3;

/// Settings sent to each session, as libpq and the drivers expect them.
const REPORTED: [(&str, &str); 9] = [
    ("server_version", "15.0"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("integer_datetimes", "on"),
    ("server_encoding", "UTF8"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
    ("search_path", "\"$user\", public"),
    ("synchronous_commit", "on"),
];

impl Connection {
    pub(super) fn startup(&mut self, lent: &mut Lent<'_>, body: &[u8]) -> Checked<ReadResult> {
        let mut fields = Fields::new(body);
        let code = u32::from_be_bytes(fields.array()?);
        match code {
            SSL | GSS => {
                fields.finish("the encryption request")?;
                lent.out.push(b'N');
                return Ok(ReadResult::NeedsInput);
            }
            CANCEL => {
                let _key = fields.array::<8>()?;
                fields.finish("CancelRequest")?;
                lent.cells.cancel.add(1);
                return Ok(ReadResult::Close);
            }
            _ => {}
        }
        if code >> 16 != VERSION_3 {
            return Err(format!("the client asks for protocol {}.{}", code >> 16, code & 0xffff));
        }
        let options = parameters(&mut fields)?;
        if code & 0xffff != 0 || !options.is_empty() {
            answer::negotiate(lent.out, &options);
        }
        lent.cells.logins.add(1);
        self.phase = Phase::Ready;
        answer::authenticated(lent.out);
        for (name, value) in REPORTED {
            answer::parameter(lent.out, name, value);
        }
        answer::key(lent.out, self.id);
        answer::ready(lent.out, false);
        Ok(ReadResult::NeedsInput)
    }
}

/// Reads the startup parameters; returns the protocol options among them, all of them unknown.
fn parameters<'a>(fields: &mut Fields<'a>) -> Checked<Vec<&'a [u8]>> {
    let (mut options, mut has_user) = (Vec::new(), false);
    loop {
        let name = fields.until_zero()?;
        if name.is_empty() {
            break;
        }
        let value = fields.until_zero()?;
        has_user |= name == b"user" && !value.is_empty();
        if name.starts_with(b"_pq_.") {
            options.push(name);
        }
    }
    fields.finish("the startup packet")?;
    if has_user { Ok(options) } else { Err("the startup packet names no user".into()) }
}
