//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802 and RFC 7677), the client's side.
//!
//! The md5 password of PostgreSQL 7.2 to 18.
//!
//! The channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use dyno_core::hex;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::borrow::Cow;
use std::fmt;

pub const MECHANISM: &str = "SCRAM-SHA-256";
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// More would stall the loop that logs in: PostgreSQL's default is 4,096.
const ITERATION_LIMIT: u32 = 100_000;

/// The tie of an exchange to its TLS session.
#[derive(Debug)]
pub enum ChannelBinding {
    /// The client has no binding.
    Impossible,
    /// The client has one, and the server offers none: a server that has offered it learns of who left it out.
    Unoffered,
    /// The hash of the server's certificate: [`tls_server_end_point`].
    EndPoint(Vec<u8>),
}

impl ChannelBinding {
    /// The GS2 header, without another identity, and the data that the server compares with its own.
    fn parts(&self) -> (&'static str, &[u8]) {
        match self {
            ChannelBinding::Impossible => ("n,,", &[]),
            ChannelBinding::Unoffered => ("y,,", &[]),
            ChannelBinding::EndPoint(hash) => ("p=tls-server-end-point,,", hash),
        }
    }
}

/// A sentence without the full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramError(String);

impl fmt::Display for ScramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScramError {}

fn scram_error<T>(text: &str) -> Result<T, ScramError> {
    Err(ScramError(text.to_owned()))
}

/// The first half of the exchange, after the client's first message.
#[derive(Debug)]
pub struct ClientFirst {
    bare: String,
    nonce: String,
    binding: ChannelBinding,
}

/// A challenge that the server wants to be answered.
pub struct Challenge {
    /// The text that both sides sign.
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
    pub fn new(user: &str, random: &[u8; 18], binding: ChannelBinding) -> Self {
        Self::with_nonce(user, BASE64.encode(random), binding)
    }

    fn with_nonce(user: &str, nonce: String, binding: ChannelBinding) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        ClientFirst { bare: format!("n={user},r={nonce}"), nonce, binding }
    }

    /// The client's first message.
    pub fn message(&self) -> String {
        format!("{}{}", self.binding.parts().0, self.bare)
    }

    pub fn server_first(self, message: &[u8]) -> Result<Challenge, ScramError> {
        let Ok(text) = str::from_utf8(message) else {
            return scram_error("the server's SCRAM message is not UTF-8");
        };
        let mut fields = text.split(',');
        let [Some(nonce), Some(salt), Some(iterations)] =
            ["r=", "s=", "i="].map(|name| fields.next().and_then(|field| field.strip_prefix(name)))
        else {
            return scram_error("the server's first SCRAM message is malformed");
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return scram_error("the server's SCRAM nonce does not continue the client's");
        }
        let Some(salt) = BASE64.decode(salt).ok().filter(|salt| !salt.is_empty()) else {
            return scram_error("the server's SCRAM salt is not base64");
        };
        let iterations = match iterations.parse() {
            Ok(count @ 1..=ITERATION_LIMIT) => count,
            _ => return scram_error("the server asks for an absurd number of SCRAM iterations"),
        };
        let (header, data) = self.binding.parts();
        let bound = BASE64.encode([header.as_bytes(), data].concat());
        let without_proof = format!("c={bound},r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.bare);
        Ok(Challenge { signed, without_proof, salt, iterations })
    }
}

impl Challenge {
    /// The proof that the client knows the password; takes milliseconds.
    pub fn answer(&self, password: &str) -> ClientFinal {
        let Challenge { signed, without_proof, salt, iterations } = self;
        let salted = salted_password(prepare_password(password).as_bytes(), salt, *iterations);
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
            Some(_) => {
                scram_error("the server does not know the password: its SCRAM signature is wrong")
            }
            None => scram_error("the server's last SCRAM message is malformed"),
        }
    }
}

/// SASLprep (RFC 4013): letters that look alike become the same. As in PostgreSQL, a password that it prohibits, or of
/// which nothing is left, stays unchanged.
fn prepare_password(password: &str) -> Cow<'_, str> {
    let prepared = stringprep::saslprep(password).ok().filter(|prepared| !prepared.is_empty());
    prepared.unwrap_or(Cow::Borrowed(password))
}

/// The HMAC of a message by SHA-256.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    keyed_hmac(key).chain_update(message).finalize().into_bytes().into()
}

fn keyed_hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// PBKDF2 with HMAC-SHA-256 and one block of output.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    // The keyed state is computed once, which halves the work.
    let keyed = keyed_hmac(password);
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

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The first parameter of RSASSA-PSS.
const FIRST_PARAMETER: u8 = 0xa0;
const RSASSA_PSS: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a";

/// The binding for a certificate in DER, by the hash of its signature; `None` if that has none, such as Ed25519.
pub fn tls_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_to_be_signed, rest) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (mut name, parameters) = element(algorithm, OBJECT_IDENTIFIER)?;
    if name == RSASSA_PSS {
        let (parameters, _) = element(parameters, SEQUENCE)?;
        name = match element(parameters, FIRST_PARAMETER) {
            Some((hash, _)) => element(element(hash, SEQUENCE)?.0, OBJECT_IDENTIFIER)?.0,
            // The default is SHA-1.
            None => return Some(Sha256::digest(certificate).to_vec()),
        };
    }
    // Names of PKCS #1, of ECDSA, and of hashes. MD5 and SHA-1 are replaced by SHA-256.
    Some(match name {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4 | 5 | 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]
        | [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Sha256::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]
        | [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Sha384::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]
        | [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// The content of the element at the front, which has this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length))?
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
        ClientFirst::with_nonce("user", NONCE.to_owned(), ChannelBinding::Impossible)
    }

    fn answered() -> ClientFinal {
        client().server_first(SERVER_FIRST.as_bytes()).unwrap().answer("pencil")
    }

    #[test]
    fn a_binding_is_said_and_signed() {
        for (binding, header, input) in [
            (ChannelBinding::Impossible, "n,,", "biws"),
            (ChannelBinding::Unoffered, "y,,", "eSws"),
            (
                ChannelBinding::EndPoint(vec![1, 2, 3]),
                "p=tls-server-end-point,,",
                "cD10bHMtc2VydmVyLWVuZC1wb2ludCwsAQID",
            ),
        ] {
            let first = ClientFirst::with_nonce("user", NONCE.to_owned(), binding);
            assert_eq!(first.message(), format!("{header}n=user,r={NONCE}"));
            let challenge = first.server_first(SERVER_FIRST.as_bytes()).unwrap();
            assert!(challenge.signed.ends_with(&challenge.without_proof));
            let last = challenge.answer("pencil");
            assert!(last.message.starts_with(&format!("c={input},r={NONCE}")), "{}", last.message);
        }
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

    /// An element of DER.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u8;
        let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
        [head, content.to_vec()].concat()
    }

    /// A certificate with this signature algorithm, and nothing else that counts.
    fn certificate(name: &[u8], parameters: &[u8]) -> Vec<u8> {
        let algorithm = [der(OBJECT_IDENTIFIER, name), parameters.to_vec()].concat();
        let parts = [der(SEQUENCE, &[7; 130]), der(SEQUENCE, &algorithm), der(3, &[1, 2])];
        der(SEQUENCE, &parts.concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let lengths = [4, 5, 11, 12, 13, 14].map(|last| hash_length(&rsa_name(last), &[5, 0]));
        assert_eq!(lengths, [Some(32), Some(32), Some(32), Some(48), Some(64), None]);
        let lengths = [2, 3].map(|last| {
            hash_length(&[&b"\x2a\x86\x48\xce\x3d\x04\x03"[..], &[last]].concat(), &[])
        });
        assert_eq!(lengths, [Some(32), Some(48)], "ECDSA");
        assert_eq!(hash_length(b"\x2b\x65\x70", &[]), None, "Ed25519");
        let sha384 = der(OBJECT_IDENTIFIER, b"\x60\x86\x48\x01\x65\x03\x04\x02\x02");
        let pss = der(SEQUENCE, &der(FIRST_PARAMETER, &der(SEQUENCE, &sha384)));
        assert_eq!(hash_length(&rsa_name(10), &pss), Some(48));
        assert_eq!(hash_length(&rsa_name(10), &der(SEQUENCE, &[])), Some(32));
    }

    fn rsa_name(last: u8) -> Vec<u8> {
        [&b"\x2a\x86\x48\x86\xf7\x0d\x01\x01"[..], &[last]].concat()
    }

    /// The length of the hash of a certificate with this signature; `None` if it has none.
    fn hash_length(name: &[u8], parameters: &[u8]) -> Option<usize> {
        let certificate = certificate(name, parameters);
        let hash = tls_server_end_point(&certificate)?;
        let is_hash = match hash.len() {
            32 => hash == Sha256::digest(&certificate)[..],
            48 => hash == Sha384::digest(&certificate)[..],
            _ => hash == Sha512::digest(&certificate)[..],
        };
        assert!(is_hash, "{name:?}");
        Some(hash.len())
    }

    proptest! {
        #[test]
        fn anything_may_stand_in_a_certificate(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = tls_server_end_point(&bytes);
            let _ = tls_server_end_point(&der(SEQUENCE, &[der(SEQUENCE, &[]), bytes].concat()));
        }
    }
}
