//! The form of all messages: a head in JSON, and bytes that JSON would only swell.

use crate::error::{FleetError, FleetResult};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn pack<T: Serialize>(head: &T, body: &[u8]) -> Vec<u8> {
    // All heads are plain structs with string keys: nothing of them can fail.
    let head = serde_json::to_vec(head).expect("heads have a form in JSON");
    let mut packet = Vec::with_capacity(4 + head.len() + body.len());
    packet.extend_from_slice(&(head.len() as u32).to_le_bytes());
    packet.extend_from_slice(&head);
    packet.extend_from_slice(body);
    packet
}

pub(crate) fn unpack<T: DeserializeOwned>(packet: &[u8]) -> FleetResult<(T, &[u8])> {
    let wrong = |why: &str| FleetError::new(format!("A message can't be understood: {why}."));
    let (length, rest) = packet.split_first_chunk::<4>().ok_or_else(|| wrong("it is cut off"))?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, body) = rest.split_at_checked(length).ok_or_else(|| wrong("it is cut off"))?;
    let head = serde_json::from_slice(head).map_err(|error| wrong(&error.to_string()))?;
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let packet = pack(&("a", 7), b"\0\xff");
        let (head, body): ((String, u32), &[u8]) = unpack(&packet).expect("it is whole");
        assert_eq!((head, body), (("a".to_owned(), 7), &b"\0\xff"[..]));
    }

    #[test]
    fn cut_or_strange_packets_are_refused() {
        let packet = pack(&("a", 7), b"");
        for cut in 0..packet.len() {
            assert!(unpack::<(String, u32)>(&packet[..cut]).is_err(), "{cut}");
        }
        assert!(unpack::<u32>(&packet).is_err());
        assert!(unpack::<u32>(&[0xff; 8]).is_err());
    }
}
