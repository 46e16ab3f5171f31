//! Reports on their way from a load generator to the coordinator: a flow of bytes with offsets.
//!
//! The coordinator asks for what comes after the last byte that it has. So lost questions and answers are asked again,
//! nothing is taken twice, and a report may be longer than a message of NATS.

use crate::protocol::{pack, unpack};
use crate::{FleetError, FleetResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;

/// The longest report: what a workload keeps of a long trial, such as the orders of TPC-C.
const REPORT_MAX: usize = 256 << 20;

/// Keeps reports until they were received.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Bytes that were received and forgotten.
    forgotten: u64,
    bytes: VecDeque<u8>,
}

impl Outbox {
    pub(crate) fn push<T: Serialize>(&mut self, head: &T, body: &[u8]) {
        let packet = pack(head, body);
        self.bytes.extend((packet.len() as u32).to_le_bytes());
        self.bytes.extend(packet);
    }

    /// At most `most` bytes from `offset` on; those before it were received.
    pub(crate) fn after(&mut self, offset: u64, most: usize) -> Vec<u8> {
        let received = offset.saturating_sub(self.forgotten).min(self.bytes.len() as u64);
        self.bytes.drain(..received as usize);
        self.forgotten += received;
        self.bytes.iter().take(most).copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The offset of the first byte that is still kept.
    pub(crate) fn offset(&self) -> u64 {
        self.forgotten
    }
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    received: u64,
    bytes: Vec<u8>,
}

impl Inbox {
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Takes the new ones of `bytes`, which stand at `offset`. A late or repeated answer has none.
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) {
        let Some(known) = self.received.checked_sub(offset) else { return };
        let Some(new) = bytes.get(known as usize..) else { return };
        self.received += new.len() as u64;
        self.bytes.extend_from_slice(new);
    }

    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> FleetResult<Option<(T, Vec<u8>)>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > REPORT_MAX {
            return Err(FleetError::new(format!("A report claims to have {length} bytes.")));
        }
        let Some(packet) = rest.get(..length) else { return Ok(None) };
        let (head, body) = unpack(packet)?;
        let body = body.to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some((head, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(inbox: &mut Inbox) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| inbox.next::<u32>().expect("reports are whole")).collect()
    }

    #[test]
    fn lost_and_repeated_answers_change_nothing() {
        let mut outbox = Outbox::default();
        let mut inbox = Inbox::default();
        let reports: Vec<(u32, Vec<u8>)> =
            (0..40_u32).map(|number| (number, vec![number as u8; number as usize * 7])).collect();
        let mut taken = Vec::new();
        let mut old = (0, Vec::new());
        for (round, (head, body)) in reports.iter().enumerate() {
            outbox.push(head, body);
            let offset = inbox.received();
            let bytes = outbox.after(offset, 100);
            assert_eq!(outbox.offset(), offset);
            match round % 4 {
                // The answer is lost.
                0 => {}
                // It comes, and an old one after it.
                1 => {
                    inbox.take(offset, &bytes);
                    inbox.take(old.0, &old.1);
                }
                // It comes twice.
                2 => {
                    inbox.take(offset, &bytes);
                    inbox.take(offset, &bytes);
                }
                _ => inbox.take(offset, &bytes),
            }
            old = (offset, bytes);
            taken.extend(drained(&mut inbox));
        }
        loop {
            let offset = inbox.received();
            let bytes = outbox.after(offset, 100);
            if bytes.is_empty() {
                break;
            }
            inbox.take(offset, &bytes);
            taken.extend(drained(&mut inbox));
        }
        assert_eq!(taken, reports);
    }

    #[test]
    fn no_report_claims_gigabytes() {
        let mut inbox = Inbox::default();
        inbox.take(0, &u32::MAX.to_le_bytes());
        assert!(inbox.next::<u32>().is_err());
    }

    #[test]
    fn bytes_from_beyond_a_hole_are_not_taken() {
        let mut inbox = Inbox::default();
        inbox.take(5, b"abc");
        assert_eq!(inbox.received(), 0);
        assert_eq!(inbox.next::<u32>().expect("nothing is wrong"), None);
    }
}
