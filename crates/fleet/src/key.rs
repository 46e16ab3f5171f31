//! The key of a fleet: whoever has it may order load and report what was measured, and nobody else.
//!
//! Every message stands behind a seal: HMAC-SHA256 over what it is about and the message itself. A question is about
//! the subject that it is sent to, and holds a number used once and the end of its time; an answer is about the seal of
//! its question. So nothing that was heard can be said again, to another load generator or to another question.

use crate::error::{FleetError, FleetResult};
use dyno_core::hex;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a key, and of a seal.
const BYTES: usize = 32;

pub(crate) type Stamp = [u8; BYTES];

/// A secret of a fleet; Debug hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct FleetKey([u8; BYTES]);

impl std::fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetKey")
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SealContext<'a> {
    QuestionTo(&'a str),
    AnswerTo(&'a Stamp),
}

impl FleetKey {
    /// What fleets without a key use: everybody knows it.
    pub const OPEN: FleetKey = FleetKey([0; BYTES]);

    pub fn draw() -> FleetResult<FleetKey> {
        Ok(FleetKey(random()?))
    }

    /// Reads the text of a key: 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is none. What it is instead is not said: it may be another secret.
    pub fn parse(text: &str) -> FleetResult<FleetKey> {
        let text = text.trim();
        let wrong = || {
            FleetError::new("The fleet's key must have 64 hexadecimal digits.")
                .with_hint("`dyno fleet key FILE` makes one.")
        };
        if text.len() != 2 * BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut key = [0; BYTES];
        for (place, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
        }
        match FleetKey(key) {
            FleetKey::OPEN => Err(wrong()),
            key => Ok(key),
        }
    }

    /// Reads a file with a key that only its owner can read.
    pub fn read(path: &Path) -> FleetResult<FleetKey> {
        use std::os::unix::fs::PermissionsExt;
        let show = path.display();
        let failed =
            |error| FleetError::new(format!("The fleet's key {show} can't be read: {error}."));
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        // systemd hands credentials out by lists of rights, which look like those of a group.
        let is_credential =
            std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|of| path.starts_with(of));
        if mode & 0o077 != 0 && !is_credential {
            let message = format!("Others can read the fleet's key {show}, so it is no secret.");
            return Err(FleetError::new(message).with_hint(format!(
                "`chmod 600 {show}`, and make another key if others were here."
            )));
        }
        FleetKey::parse(&std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Writes the key to a new file that only its owner can read.
    pub fn write(&self, path: &Path) -> FleetResult<()> {
        let mut text = hex(&self.0);
        text.push('\n');
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(path);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            FleetError::new(format!("The key can't be written to {}: {error}.", path.display()))
                .with_hint("Name a file that does not exist yet.")
        })
    }

    pub(crate) fn seal(&self, about: SealContext<'_>, packet: &[u8]) -> (Stamp, Vec<u8>) {
        let stamp: Stamp = self.mac(about, packet).finalize().into_bytes().into();
        (stamp, [&stamp[..], packet].concat())
    }

    /// The message behind a seal and the seal; `None` where it was not made with this key, or about something else.
    pub(crate) fn open<'a>(
        &self,
        about: SealContext<'_>,
        sealed: &'a [u8],
    ) -> Option<(Stamp, &'a [u8])> {
        let (stamp, packet) = sealed.split_first_chunk::<BYTES>()?;
        self.mac(about, packet).verify_slice(stamp).is_ok().then_some((*stamp, packet))
    }

    fn mac(&self, about: SealContext<'_>, packet: &[u8]) -> Hmac<Sha256> {
        let mac: Hmac<Sha256> =
            Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        // A subject holds no zero byte, and a stamp has its length.
        let (kind, of) = match about {
            SealContext::QuestionTo(subject) => (&b"question\0"[..], subject.as_bytes()),
            SealContext::AnswerTo(stamp) => (&b"answer\0"[..], &stamp[..]),
        };
        mac.chain_update(kind).chain_update(of).chain_update(b"\0").chain_update(packet)
    }
}

/// A number that is used once.
pub(crate) fn nonce() -> FleetResult<String> {
    Ok(hex(&random::<16>()?))
}

fn random<const N: usize>() -> FleetResult<[u8; N]> {
    let mut bytes = [0; N];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match got {
        Ok(count) if count == N => Ok(bytes),
        _ => Err(FleetError::new("The system has no random bytes.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_one_key_one_message_and_one_place() {
        let (key, other) = (FleetKey::draw().expect("drawn"), FleetKey::draw().expect("drawn"));
        let (stamp, sealed) = key.seal(SealContext::QuestionTo("dyno.default.call"), b"who?");
        let open = |key: &FleetKey, to: &str, sealed: &[u8]| {
            key.open(SealContext::QuestionTo(to), sealed).map(|(_, packet)| packet.to_vec())
        };
        assert_eq!(open(&key, "dyno.default.call", &sealed).as_deref(), Some(&b"who?"[..]));
        assert_eq!(open(&other, "dyno.default.call", &sealed), None, "another key");
        assert_eq!(open(&FleetKey::OPEN, "dyno.default.call", &sealed), None, "no key");
        assert_eq!(open(&key, "dyno.default.generator.a", &sealed), None, "somebody else's");
        assert!(key.open(SealContext::AnswerTo(&stamp), &sealed).is_none(), "no answer");
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert_eq!(open(&key, "dyno.default.call", &forged), None, "{place}");
            assert_eq!(open(&key, "dyno.default.call", &sealed[..place]), None, "{place}");
        }
        let (_, answer) = key.seal(SealContext::AnswerTo(&stamp), b"me");
        assert!(key.open(SealContext::AnswerTo(&stamp), &answer).is_some());
        assert!(
            key.open(SealContext::AnswerTo(&[0; BYTES]), &answer).is_none(),
            "of another question"
        );
    }

    #[test]
    fn a_key_is_a_file_of_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fleet.key");
        let key = FleetKey::draw().expect("drawn");
        key.write(&file).expect("written");
        assert_eq!(FleetKey::read(&file), Ok(key.clone()));
        assert!(key.write(&file).is_err(), "no key is written over another");
        let mut permissions = std::fs::metadata(&file).expect("there").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        permissions.set_mode(0o640);
        std::fs::set_permissions(&file, permissions).expect("set");
        let error = FleetKey::read(&file).expect_err("others can read it");
        assert!(error.message.starts_with("Others can read"), "{error}");
        for text in ["", "0", &"0".repeat(64), &"g".repeat(64), &"a".repeat(63)] {
            assert!(FleetKey::parse(text).is_err(), "{text}");
        }
        assert_eq!(format!("{key:?}"), "FleetKey");
    }
}
