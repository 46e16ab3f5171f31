//! Authentication methods.

use curve25519_dalek::{EdwardsPoint, Scalar, scalar::clamp_integer};
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
    let hash = |hasher: Sha512| Scalar::from_bytes_mod_order_wide(&hasher.finalize().into());
    let nonce = hash(Sha512::new().chain_update(prefix).chain_update(message));
    let commitment = EdwardsPoint::mul_base(&nonce).compress();
    let challenge = hash(
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
        // A short scramble of a strange server is no reason to panic.
        assert_eq!(Plugin::Native.response(b"secret", b"abc").map(|it| it.len()), Some(20));
    }

    #[test]
    fn names_lead_back() {
        for plugin in Plugin::ALL {
            assert_eq!(Plugin::from_name(plugin.name()), Some(plugin));
        }
        assert_eq!(Plugin::from_name("mysql_old_password"), None);
    }
}
