//! Authentication methods.
//!
//! RSA-OAEP: encrypts passwords of the SHA-256 methods on open channels.
//!
//! Encryption with a public key only: the padding of RFC 8017 around one modular power. No secret key is in memory, and
//! timing reveals nothing that the sender of the password does not know.

use super::{Malformed, Scanned};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use curve25519_dalek::scalar::clamp_integer;
use curve25519_dalek::{EdwardsPoint, Scalar};
use num_bigint::BigUint;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

dyno_core::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Plugin {
        /// SHA-1 of MySQL 4.1 and later, MariaDB's default.
        Native = "mysql_native_password",
        /// The default of MySQL 8 and later.
        CachingSha2 = "caching_sha2_password",
        /// The predecessor of `CachingSha2`.
        Sha256 = "sha256_password",
        /// Of MariaDB.
        Ed25519 = "client_ed25519",
        /// The password itself, for servers that ask somebody else (LDAP, PAM).
        ClearText = "mysql_clear_password",
        /// The password as the answer to the only question of MariaDB's PAM.
        Dialog = "dialog",
    }
}

impl Plugin {
    pub fn from_name(name: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// The first response; `None` for methods that need the password itself.
    pub fn response(self, password: &[u8], scramble: &[u8]) -> Option<Vec<u8>> {
        Some(match self {
            Plugin::Native if password.is_empty() => Vec::new(),
            Plugin::CachingSha2 | Plugin::Sha256 if password.is_empty() => vec![0],
            Plugin::Native => native(password, scramble).to_vec(),
            Plugin::CachingSha2 => caching_sha2(password, scramble).to_vec(),
            Plugin::Ed25519 => ed25519(password, scramble).to_vec(),
            Plugin::Sha256 | Plugin::ClearText | Plugin::Dialog => return None,
        })
    }

    pub fn key_request(self) -> u8 {
        match self {
            Plugin::Sha256 => SHA256_KEY_REQUEST,
            _ => CACHING_SHA2_KEY_REQUEST,
        }
    }
}

/// First byte of further authentication data of the server.
pub const MORE_DATA: u8 = 0x01;
/// First byte of a request to use another method.
pub const SWITCH: u8 = 0xfe;
/// caching_sha2_password: the server accepts the scrambled password.
pub const FAST_PATH_DONE: u8 = 0x03;
/// caching_sha2_password: the server needs the password itself.
pub const FULL_PATH: u8 = 0x04;
const CACHING_SHA2_KEY_REQUEST: u8 = 0x02;
const SHA256_KEY_REQUEST: u8 = 0x01;

/// The password itself, for a private channel.
pub fn clear_text(password: &[u8]) -> Vec<u8> {
    let mut text = password.to_vec();
    text.push(0);
    text
}

/// `SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))`.
fn native(password: &[u8], scramble: &[u8]) -> [u8; 20] {
    let scramble = &scramble[..scramble.len().min(20)];
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(scramble).chain_update(twice).finalize();
    std::array::from_fn(|index| once[index] ^ mask[index])
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)`.
fn caching_sha2(password: &[u8], scramble: &[u8]) -> [u8; 32] {
    let scramble = &scramble[..scramble.len().min(20)];
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(scramble).finalize();
    std::array::from_fn(|index| once[index] ^ mask[index])
}

/// MariaDB's variant of Ed25519: the password, of any length, replaces the seed.
fn ed25519(password: &[u8], message: &[u8]) -> [u8; 64] {
    let expanded: [u8; 64] = Sha512::digest(password).into();
    let (low, prefix) = expanded.split_at(32);
    let mut low: [u8; 32] = low.try_into().unwrap_or_default();
    low = clamp_integer(low);
    let secret = Scalar::from_bytes_mod_order(low);
    let public = EdwardsPoint::mul_base(&secret).compress();
    let hash_to_scalar =
        |hasher: Sha512| Scalar::from_bytes_mod_order_wide(&hasher.finalize().into());
    let nonce = hash_to_scalar(Sha512::new().chain_update(prefix).chain_update(message));
    let commitment = EdwardsPoint::mul_base(&nonce).compress();
    let challenge = hash_to_scalar(
        Sha512::new()
            .chain_update(commitment.as_bytes())
            .chain_update(public.as_bytes())
            .chain_update(message),
    );
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(commitment.as_bytes());
    signature[32..].copy_from_slice((nonce + challenge * secret).as_bytes());
    signature
}

const HASH_BYTES: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
    bytes: usize,
}

impl PublicKey {
    /// Reads a key of 1,024 to 16,384 bits in PEM, `BEGIN PUBLIC KEY`.
    pub fn from_pem(pem: &[u8]) -> Scanned<Self> {
        const BAD: Malformed = Malformed("its RSA public key can't be read");
        let text = std::str::from_utf8(pem).map_err(|_| BAD)?;
        let (_, body) = text.split_once("-----BEGIN PUBLIC KEY-----").ok_or(BAD)?;
        let (body, _) = body.split_once("-----END PUBLIC KEY-----").ok_or(BAD)?;
        let compact: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(compact).map_err(|_| BAD)?;
        let mut outer = Der(Der(&der).element(SEQUENCE).ok_or(BAD)?);
        let _algorithm = outer.element(SEQUENCE).ok_or(BAD)?;
        // The first byte counts unused bits.
        let bits = outer.element(BIT_STRING).and_then(|bits| bits.strip_prefix(&[0]));
        let mut numbers = Der(Der(bits.ok_or(BAD)?).element(SEQUENCE).ok_or(BAD)?);
        let modulus = BigUint::from_bytes_be(numbers.element(INTEGER).ok_or(BAD)?);
        let exponent = BigUint::from_bytes_be(numbers.element(INTEGER).ok_or(BAD)?);
        if !(1024..=16_384).contains(&modulus.bits()) || exponent.bits() > 64 || !modulus.bit(0) {
            return Err(BAD);
        }
        let bytes = modulus.bits().div_ceil(8) as usize;
        Ok(PublicKey { modulus, exponent, bytes })
    }

    /// Encrypts the password, mixed with the scramble. `seed` must be fresh random bytes.
    pub fn encrypt_password(
        &self,
        password: &[u8],
        scramble: &[u8],
        seed: [u8; HASH_BYTES],
    ) -> Scanned<Vec<u8>> {
        let mut mixed = clear_text(password);
        for (byte, mask) in mixed.iter_mut().zip(scramble.iter().cycle()) {
            *byte ^= mask;
        }
        self.encrypt(&mixed, seed)
    }

    /// RSAES-OAEP with SHA-1 and an empty label (RFC 8017, 7.1.1).
    fn encrypt(&self, message: &[u8], seed: [u8; HASH_BYTES]) -> Scanned<Vec<u8>> {
        let data_bytes = self.bytes - HASH_BYTES - 1;
        if message.len() + HASH_BYTES + 1 > data_bytes {
            return Err(Malformed("its RSA public key is too short for the password"));
        }
        let mut data = vec![0; data_bytes];
        data[..HASH_BYTES].copy_from_slice(&Sha1::digest(b""));
        let text = data_bytes - message.len();
        data[text - 1] = 1;
        data[text..].copy_from_slice(message);
        xor_mask(&mut data, &seed);
        let mut masked_seed = seed;
        xor_mask(&mut masked_seed, &data);
        let block = [&masked_seed[..], &data].concat();
        let cipher = BigUint::from_bytes_be(&block).modpow(&self.exponent, &self.modulus);
        let digits = cipher.to_bytes_be();
        let mut out = vec![0; self.bytes - digits.len().min(self.bytes)];
        out.extend_from_slice(&digits);
        Ok(out)
    }
}

/// MGF1 with SHA-1 (RFC 8017, B.2.1), applied to `data`.
fn xor_mask(data: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in data.chunks_mut(HASH_BYTES).enumerate() {
        let counter = (counter as u32).to_be_bytes();
        let mask = Sha1::new().chain_update(seed).chain_update(counter).finalize();
        for (byte, mask) in chunk.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// The forms of DER in a public key.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element, if it has this tag.
    fn element(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        let (&short, rest) = rest.split_first()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            0x81 => rest.split_first().map(|(&a, rest)| (usize::from(a), rest))?,
            0x82 => rest
                .split_first_chunk::<2>()
                .map(|(two, rest)| (usize::from(u16::from_be_bytes(*two)), rest))?,
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (found == tag).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::hex;

    /// The vectors were computed with Python's hashlib and, for Ed25519, with the reference code
    /// of RFC 8032; the public key of "secret" is the one in MariaDB's manual.
    #[test]
    fn responses_match_independent_implementations() {
        let scramble = b"12345678abcdefghijkl";
        assert_eq!(
            hex(&Plugin::Native.response(b"secret", scramble).unwrap()),
            "4f1522d6eb54737eda413b3e219ca6caebe3df2c"
        );
        assert_eq!(
            hex(&Plugin::CachingSha2.response(b"secret", scramble).unwrap()),
            "7f7e3878fe488ed45081455d0d6e89e26d4ef86ef6c6aeed02397b6fe8ad5422"
        );
        let nonce: Vec<u8> = (0..32).collect();
        assert_eq!(
            hex(&Plugin::Ed25519.response(b"secret", &nonce).unwrap()),
            "546c3e9311d19ee389d1ae5d945821bfe459423910136f16b3bd2ae89fd7d63b\
             449e689f4be812891a85b8f999076446d92adb83d0707215aaa60b5a23220907"
        );
    }

    #[test]
    fn no_response_holds_the_password_itself() {
        assert_eq!(Plugin::Sha256.response(b"secret", b""), None);
        assert_eq!(Plugin::ClearText.response(b"secret", b""), None);
        assert_eq!(Plugin::Sha256.response(b"", b""), Some(vec![0]));
        assert_eq!(Plugin::CachingSha2.response(b"", b""), Some(vec![0]));
        assert_eq!(Plugin::Native.response(b"", b""), Some(Vec::new()));
        // A short scramble of a strange server must not cause a panic.
        assert_eq!(Plugin::Native.response(b"secret", b"abc").map(|it| it.len()), Some(20));
    }

    #[test]
    fn names_lead_back() {
        for plugin in Plugin::ALL {
            assert_eq!(Plugin::from_name(plugin.name()), Some(plugin));
        }
        assert_eq!(Plugin::from_name("mysql_old_password"), None);
    }

    const PEM: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDZAIT+cludnQhb+NS1lDAFrvNq
195V9NhDvyJsuBUNEsmDNj+k2r6Ac+Sjs61mGdcN5xR6NoCZ8Iq3fGmkTc6U0Ds8
mHp2FC61BNjfv2nlsg82KF7CjZ3Vxk3kpgAiqDrJ+YF8kJCTjyc9FvBPZwZcwa8c
cHmnveVQRORgmYgnUwIDAQAB
-----END PUBLIC KEY-----
";

    /// Made by this code and decrypted with `openssl pkeyutl -decrypt -pkeyopt
    /// rsa_padding_mode:oaep`, which gave the message back.
    const CIPHER: &str = "73a8a842d88b73ff373aa49ac6002b2e547c9928483e7353fa320d44c6e5d6b056e99b2116ddac8f\
        d9f900f3b7bc6318f7ef2b985eb00ab16548817363c2f72658adf93fa4e85a335173ae0445767611\
        983a84158a12513d923726f2d1aabea51c1a71463a0dd1a60a902e7f990bc734be98eb72eebf76c5\
        7783b0df9f45dfa5";

    #[test]
    fn ciphertext_is_one_that_openssl_decrypts() {
        let key = PublicKey::from_pem(PEM.as_bytes()).unwrap();
        let seed = *b"abcdefghijklmnopqrst";
        let cipher = key.encrypt_password(b"secret", &[0; 20], seed).unwrap();
        assert_eq!(dyno_core::hex(&cipher), CIPHER);
    }

    #[test]
    fn long_passwords_and_bad_keys_are_errors() {
        let key = PublicKey::from_pem(PEM.as_bytes()).unwrap();
        // 128 bytes less two hashes, two bytes of padding and the NUL.
        assert!(key.encrypt_password(&[b'x'; 85], &[0; 20], [0; 20]).is_ok());
        assert!(key.encrypt_password(&[b'x'; 86], &[0; 20], [0; 20]).is_err());
        assert!(key.encrypt_password(b"secret", &[], [0; 20]).is_ok());
        for end in 0..PEM.len() - 2 {
            assert!(PublicKey::from_pem(&PEM.as_bytes()[..end]).is_err());
        }
        for (index, byte) in PEM.bytes().enumerate().skip(27).take(220) {
            let mut broken = PEM.as_bytes().to_vec();
            broken[index] = if byte == b'A' { b'/' } else { b'A' };
            // Some of these are other keys, most are none; none panics.
            if let Ok(key) = PublicKey::from_pem(&broken) {
                let _ = key.encrypt(b"secret", [0; 20]);
            }
        }
    }
}
