//! SCRAM-SHA-256 (RFC 5802 and RFC 7677) without channel binding, the client's side.
//!
//! A password is used as its UTF-8 bytes, without SASLprep (RFC 4013), which changes only some non-ASCII passwords.
//!
//! The md5 password of PostgreSQL 7.2 to 18.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use dyno_core::hex;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::{Digest, Sha256};
use std::fmt;

pub const MECHANISM: &str = "SCRAM-SHA-256";

/// More would stall the loop that logs in: PostgreSQL's default is 4,096.
const ITERATION_LIMIT: u32 = 100_000;

/// A sentence without the full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramError(String);

impl fmt::Display for ScramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScramError {}

fn error<T>(text: &str) -> Result<T, ScramError> {
    Err(ScramError(text.to_owned()))
}

/// The first half of the exchange, after the client's first message.
#[derive(Debug)]
pub struct ClientFirst {
    bare: String,
    nonce: String,
}

/// What the server wants to be answered.
pub struct Challenge {
    /// What both sides sign.
    signed: String,
    without_proof: String,
    salt: Vec<u8>,
    /// Hashes that [`Challenge::answer`] computes, in pairs.
    pub iterations: u32,
}

/// The second half: the server must prove itself too.
pub struct ClientFinal {
    pub message: String,
    server_signature: [u8; 32],
}

impl ClientFirst {
    /// `random` must be fresh for each exchange. PostgreSQL ignores `user`, which may be empty.
    pub fn new(user: &str, random: &[u8; 18]) -> Self {
        Self::with_nonce(user, BASE64.encode(random))
    }

    fn with_nonce(user: &str, nonce: String) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        ClientFirst { bare: format!("n={user},r={nonce}"), nonce }
    }

    pub fn message(&self) -> String {
        format!("n,,{}", self.bare)
    }

    pub fn server_first(self, message: &[u8]) -> Result<Challenge, ScramError> {
        let Ok(text) = str::from_utf8(message) else {
            return error("the server's SCRAM message is not UTF-8");
        };
        let mut fields = text.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(iterations)) = (field("r="), field("s="), field("i="))
        else {
            return error("the server's first SCRAM message is malformed");
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return error("the server's SCRAM nonce does not continue the client's");
        }
        let Some(salt) = BASE64.decode(salt).ok().filter(|salt| !salt.is_empty()) else {
            return error("the server's SCRAM salt is not base64");
        };
        let iterations = match iterations.parse() {
            Ok(count @ 1..=ITERATION_LIMIT) => count,
            _ => return error("the server asks for an absurd number of SCRAM iterations"),
        };
        // The header of the first message in base64.
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.bare);
        Ok(Challenge { signed, without_proof, salt, iterations })
    }
}

impl Challenge {
    pub fn answer(&self, password: &str) -> ClientFinal {
        let Challenge { signed, without_proof, salt, iterations } = self;
        let salted = salted_password(password.as_bytes(), salt, *iterations);
        let client_key = hmac(&salted, b"Client Key");
        let stored_key = Sha256::digest(client_key);
        let client_signature = hmac(&stored_key, signed.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(client_signature)
            .map(|(key, signature)| key ^ signature)
            .collect();
        let server_signature = hmac(&hmac(&salted, b"Server Key"), signed.as_bytes());
        ClientFinal {
            message: format!("{without_proof},p={}", BASE64.encode(proof)),
            server_signature,
        }
    }
}

impl ClientFinal {
    /// Checks the server's last message, which proves that it knows the password.
    pub fn server_final(&self, message: &[u8]) -> Result<(), ScramError> {
        if let Some(reason) = message.strip_prefix(b"e=") {
            let reason = String::from_utf8_lossy(reason);
            return Err(ScramError(format!("the server ended SCRAM with the error {reason}")));
        }
        let first = message.split(|&byte| byte == b',').next().unwrap_or_default();
        let signature = first.strip_prefix(b"v=").and_then(|text| BASE64.decode(text).ok());
        match signature {
            Some(signature) if signature == self.server_signature => Ok(()),
            Some(_) => error("the server does not know the password: its SCRAM signature is wrong"),
            None => error("the server's last SCRAM message is malformed"),
        }
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    keyed(key).chain_update(message).finalize().into_bytes().into()
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// PBKDF2 with HMAC-SHA-256 and one block of output.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    // The keyed state is computed once, which halves the work.
    let keyed = keyed(password);
    let mut block: [u8; 32] =
        keyed.clone().chain_update(salt).chain_update([0, 0, 0, 1]).finalize().into_bytes().into();
    let mut sum = block;
    for _ in 1..iterations {
        block = keyed.clone().chain_update(block).finalize().into_bytes().into();
        for (sum, byte) in sum.iter_mut().zip(block) {
            *sum ^= byte;
        }
    }
    sum
}

/// The answer to a request for an md5 password: `md5` and 32 hexadecimal digits.
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(inner).chain_update(salt).finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // RFC 7677, section 3.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn client() -> ClientFirst {
        ClientFirst::with_nonce("user", NONCE.to_owned())
    }

    fn answered() -> ClientFinal {
        client().server_first(SERVER_FIRST.as_bytes()).unwrap().answer("pencil")
    }

    #[test]
    fn example_of_rfc_7677() {
        let first = client();
        assert_eq!(first.message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let last = first.server_first(SERVER_FIRST.as_bytes()).unwrap().answer("pencil");
        assert_eq!(last.message, CLIENT_FINAL);
        last.server_final(SERVER_FINAL.as_bytes()).unwrap();
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_refused() {
        let last = answered();
        for wrong in ["v=AAAA", "v=", "", "e=other-error", "x=1", "v=*"] {
            assert!(last.server_final(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let challenge = client().server_first(SERVER_FIRST.as_bytes()).unwrap();
        let last = challenge.answer("pencil2");
        assert!(last.server_final(SERVER_FINAL.as_bytes()).is_err());
    }

    #[test]
    fn hostile_first_messages_are_refused() {
        for wrong in [
            "",
            "r=other,s=W22Z,i=1",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=1",
            "r=rOprNGfwEbeRWgbNEkqOx,s=,i=1",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22,i=1",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=0",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=-1",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=100001",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Z",
            "m=ext,r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=1",
        ] {
            assert!(client().server_first(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_messages_never_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = client().server_first(&text);
            prop_assert!(answered().server_final(&text).is_err());
        }
    }

    #[test]
    fn md5_answers_as_libpq_does() {
        // md5(md5('secret' || 'bob') || '\x01020304') as PostgreSQL's own md5() computes it.
        assert_eq!(
            md5_password("bob", "secret", [1, 2, 3, 4]),
            "md5f21dfe33ff3a9e03dbc3e008251fe5cc"
        );
    }
}
