//! Startup and authentication.

use super::{Connection, Phase, answer, unexpected};
use crate::PostgresAuth;
use crate::protocol::{Checked, Fields, Lent, ReadResult};
use crate::sql::{Dialect, POSTGRES_VERSION, variable};
use md5::{Digest as _, Md5};
use std::fmt::Write as _;

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const VERSION_3: u32 = 3;

/// Settings sent to each session, as libpq and the drivers expect them.
const REPORTED: [&str; 8] = [
    "client_encoding",
    "DateStyle",
    "integer_datetimes",
    "server_encoding",
    "standard_conforming_strings",
    "TimeZone",
    "search_path",
    "synchronous_commit",
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
        let options = self.parameters(&mut fields)?;
        if code & 0xffff != 0 || !options.is_empty() {
            answer::negotiate(lent.out, &options);
        }
        match (&lent.shared.password, lent.shared.postgres_auth) {
            (None, _) => self.welcome(lent),
            (Some(_), PostgresAuth::Md5) => {
                answer::authentication(lent.out, 5, &self.salt);
                self.phase = Phase::Password;
            }
            (Some(_), PostgresAuth::Cleartext) => {
                answer::authentication(lent.out, 3, b"");
                self.phase = Phase::Password;
            }
        }
        Ok(ReadResult::NeedsInput)
    }

    /// Reads the startup parameters; returns the protocol options among them, all of them unknown.
    fn parameters<'a>(&mut self, fields: &mut Fields<'a>) -> Checked<Vec<&'a [u8]>> {
        let mut options = Vec::new();
        loop {
            let name = fields.until_zero()?;
            if name.is_empty() {
                break;
            }
            let value = fields.until_zero()?;
            if name == b"user" {
                self.user = value.to_vec();
            } else if name.starts_with(b"_pq_.") {
                options.push(name);
            }
        }
        fields.finish("the startup packet")?;
        if self.user.is_empty() {
            return Err("the startup packet names no user".into());
        }
        Ok(options)
    }

    pub(super) fn password(
        &mut self,
        lent: &mut Lent<'_>,
        kind: u8,
        body: &[u8],
    ) -> Checked<ReadResult> {
        if kind != b'p' {
            return Err(unexpected(kind));
        }
        let mut fields = Fields::new(body);
        let given = fields.until_zero()?;
        fields.finish("PasswordMessage")?;
        let password = lent.shared.password.as_deref().unwrap_or_default();
        let is_right = match lent.shared.postgres_auth {
            PostgresAuth::Cleartext => given == password.as_bytes(),
            PostgresAuth::Md5 => {
                let inner = Md5::new().chain_update(password).chain_update(&self.user).finalize();
                let outer = Md5::new().chain_update(hex(&inner)).chain_update(self.salt).finalize();
                given.strip_prefix(b"md5") == Some(hex(&outer).as_bytes())
            }
        };
        if !is_right {
            lent.cells.logins_refused.add(1);
            let user = String::from_utf8_lossy(&self.user);
            let message = format!("password authentication failed for user \"{user}\"");
            answer::error(lent.out, "FATAL", b"28P01", &message);
            return Ok(ReadResult::Close);
        }
        self.welcome(lent);
        Ok(ReadResult::NeedsInput)
    }

    fn welcome(&mut self, lent: &mut Lent<'_>) {
        lent.cells.logins.add(1);
        self.phase = Phase::Ready;
        answer::authentication(lent.out, 0, b"");
        answer::parameter(lent.out, "server_version", POSTGRES_VERSION);
        for name in REPORTED {
            let value = variable(name.as_bytes(), Dialect::Postgres).unwrap_or_default();
            answer::parameter(lent.out, name, value);
        }
        answer::key(lent.out, self.id);
        answer::ready(lent.out, false);
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
