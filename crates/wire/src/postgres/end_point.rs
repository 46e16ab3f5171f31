//! The channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate.

use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The first parameter of RSASSA-PSS.
const FIRST_PARAMETER: u8 = 0xa0;

/// The binding for a certificate in DER, by the hash of its signature; `None` where that has none, such as Ed25519.
pub fn tls_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_to_be_signed, rest) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    Some(match hash_of(algorithm)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

fn hash_of(algorithm: &[u8]) -> Option<Hash> {
    let (name, parameters) = element(algorithm, OBJECT_IDENTIFIER)?;
    match name {
        // PKCS #1: MD5 and SHA-1, which are replaced, SHA-256, SHA-384, SHA-512.
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04" | b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05" => {
            Some(Hash::Sha256)
        }
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" => Some(Hash::Sha256),
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" => Some(Hash::Sha384),
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" => Some(Hash::Sha512),
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" => hash_of_pss(parameters),
        // ECDSA: SHA-1, SHA-256, SHA-384, SHA-512.
        b"\x2a\x86\x48\xce\x3d\x04\x01" | b"\x2a\x86\x48\xce\x3d\x04\x03\x02" => Some(Hash::Sha256),
        b"\x2a\x86\x48\xce\x3d\x04\x03\x03" => Some(Hash::Sha384),
        b"\x2a\x86\x48\xce\x3d\x04\x03\x04" => Some(Hash::Sha512),
        _ => None,
    }
}

fn hash_of_pss(parameters: &[u8]) -> Option<Hash> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    // Without it SHA-1.
    let Some((first, _)) = element(parameters, FIRST_PARAMETER) else { return Some(Hash::Sha256) };
    let (hash, _) = element(first, SEQUENCE)?;
    match element(hash, OBJECT_IDENTIFIER)?.0 {
        b"\x60\x86\x48\x01\x65\x03\x04\x02\x01" => Some(Hash::Sha256),
        b"\x60\x86\x48\x01\x65\x03\x04\x02\x02" => Some(Hash::Sha384),
        b"\x60\x86\x48\x01\x65\x03\x04\x02\x03" => Some(Hash::Sha512),
        _ => None,
    }
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
        let hash = |name: &[u8], parameters: &[u8]| {
            let certificate = certificate(name, parameters);
            tls_server_end_point(&certificate).map(|hash| {
                let is_hash = match hash.len() {
                    32 => hash == Sha256::digest(&certificate)[..],
                    48 => hash == Sha384::digest(&certificate)[..],
                    _ => hash == Sha512::digest(&certificate)[..],
                };
                assert!(is_hash, "{name:?}");
                hash.len()
            })
        };
        let rsa = |last: u8| [&b"\x2a\x86\x48\x86\xf7\x0d\x01\x01"[..], &[last]].concat();
        let lengths = [4, 5, 11, 12, 13, 14].map(|last| hash(&rsa(last), &[5, 0]));
        assert_eq!(lengths, [Some(32), Some(32), Some(32), Some(48), Some(64), None]);
        let ecdsa = |last: &[u8]| hash(&[b"\x2a\x86\x48\xce\x3d\x04", last].concat(), &[]);
        assert_eq!(ecdsa(&[3, 2]), Some(32));
        assert_eq!(ecdsa(&[3, 3]), Some(48));
        assert_eq!(hash(b"\x2b\x65\x70", &[]), None, "Ed25519");
        let sha384 = der(OBJECT_IDENTIFIER, b"\x60\x86\x48\x01\x65\x03\x04\x02\x02");
        let pss = der(SEQUENCE, &der(FIRST_PARAMETER, &der(SEQUENCE, &sha384)));
        assert_eq!(hash(&rsa(10), &pss), Some(48));
        assert_eq!(hash(&rsa(10), &der(SEQUENCE, &[])), Some(32));
    }

    proptest! {
        #[test]
        fn anything_may_stand_in_a_certificate(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = tls_server_end_point(&bytes);
            let _ = tls_server_end_point(&der(SEQUENCE, &[der(SEQUENCE, &[]), bytes].concat()));
        }
    }
}
