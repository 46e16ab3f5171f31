//! Greetings, error packets and public keys.
#![no_main]

use dyno_wire::mysql::{ServerError, handshake::Greeting, rsa::PublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Greeting::parse(bytes);
    let _ = ServerError::parse(bytes);
    if let Ok(key) = PublicKey::from_pem(bytes) {
        let _ = key.encrypt_password(b"secret", b"12345678901234567890", [7; 20]);
    }
});
