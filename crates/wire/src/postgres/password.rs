//! The md5 password of PostgreSQL 7.2 to 18.

use dyno_core::hex;
use md5::{Digest, Md5};

/// The answer to a request for an md5 password: `md5` and 32 hexadecimal digits.
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(inner).chain_update(salt).finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_answers_as_libpq_does() {
        // md5(md5('secret' || 'bob') || '\x01020304') as PostgreSQL's own md5() computes it.
        assert_eq!(
            md5_password("bob", "secret", [1, 2, 3, 4]),
            "md5f21dfe33ff3a9e03dbc3e008251fe5cc"
        );
    }
}
