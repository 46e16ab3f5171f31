//! Packets: a three-byte length, a sequence number and at most 16 MiB - 1 of payload; longer
//! payloads are split and joined here.
//!
//! Reading fields from the payload of one packet.

use dyno_core::{DbError, ErrorClass};

use super::{Malformed, Scanned};

/// Length of a packet that the next one continues.
pub const FULL_PACKET_BYTES: usize = 0xff_ffff;

pub const HEADER_BYTES: usize = 4;

/// Longest joined payload: the largest `max_allowed_packet`.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 30;

/// First byte of an error packet.
pub(super) const ERROR: u8 = 0xff;

/// Reserves the header of a packet, whose payload follows in `out`. Returns its start, for [`finish_packet`].
#[inline]
pub fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    start
}

/// Completes the packet begun at `start` with the sequence number `sequence`, and splits it if it is too long. Returns
/// the next sequence number.
#[inline]
pub fn finish_packet(out: &mut Vec<u8>, start: usize, sequence: u8) -> u8 {
    let length = out.len() - start - HEADER_BYTES;
    if length < FULL_PACKET_BYTES {
        out[start..start + HEADER_BYTES].copy_from_slice(&header(length, sequence));
        return sequence.wrapping_add(1);
    }
    split_packet(out, start, sequence)
}

/// The bytes before a payload of this length.
#[inline]
fn header(length: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    (length as u32 | u32::from(sequence) << 24).to_le_bytes()
}

#[cold]
fn split_packet(out: &mut Vec<u8>, start: usize, sequence: u8) -> u8 {
    let length = out.len() - start - HEADER_BYTES;
    let parts = length / FULL_PACKET_BYTES;
    out.resize(out.len() + parts * HEADER_BYTES, 0);
    // From the last part to the first, so that each moves before it is overwritten.
    for part in (0..=parts).rev() {
        let from = start + HEADER_BYTES + part * FULL_PACKET_BYTES;
        let to = from + part * HEADER_BYTES;
        let bytes = if part == parts { length % FULL_PACKET_BYTES } else { FULL_PACKET_BYTES };
        out.copy_within(from..from + bytes, to);
        let number = sequence.wrapping_add(part as u8);
        out[to - HEADER_BYTES..to].copy_from_slice(&header(bytes, number));
    }
    sequence.wrapping_add(parts as u8).wrapping_add(1)
}

/// Takes payloads out of a stream of bytes, checks their sequence numbers and joins split ones.
#[derive(Debug, Default)]
pub struct Framing {
    next_sequence: u8,
    /// Packets may have any number: see [`Framing::allow_any_sequence`].
    is_any_sequence: bool,
    joined: Vec<u8>,
    joining: bool,
}

/// The start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// More bytes are needed; this many are consumed.
    Partial(usize),
    /// A whole payload, and its length with headers.
    Payload(&'a [u8], usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    pub length: usize,
    pub sequence: u8,
}

impl PacketHeader {
    /// `None` for fewer than four bytes.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<PacketHeader> {
        let word = u32::from_le_bytes(*bytes.first_chunk::<HEADER_BYTES>()?);
        Some(PacketHeader { length: (word & 0xff_ffff) as usize, sequence: (word >> 24) as u8 })
    }
}

impl Framing {
    /// Sets the next sequence number: 1 after a command of one packet.
    #[inline]
    pub fn expect(&mut self, sequence: u8) {
        self.next_sequence = sequence;
        self.joining = false;
    }

    /// On a compressed connection a server numbers the packets of each further result again, after the frame that they
    /// are in; the original clients don't look at the number there.
    pub fn allow_any_sequence(&mut self) {
        self.is_any_sequence = true;
    }

    #[inline]
    pub(super) fn is_any_sequence(&self) -> bool {
        self.is_any_sequence
    }

    #[inline]
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }

    /// True in the middle of a payload that spans packets.
    #[inline]
    pub fn is_joining(&self) -> bool {
        self.joining
    }

    /// Checks the number of a packet and counts on.
    #[inline]
    pub fn advance(&mut self, sequence: u8) -> Scanned<()> {
        if sequence != self.next_sequence && !self.is_any_sequence {
            return Err(Malformed("packets are out of order"));
        }
        self.next_sequence = sequence.wrapping_add(1);
        Ok(())
    }

    /// Takes the next payload from the start of `bytes`. Consumed bytes must not be passed again.
    #[inline]
    pub fn next_payload<'a>(&'a mut self, bytes: &'a [u8]) -> Scanned<Framed<'a>> {
        let Some(header) = PacketHeader::read(bytes) else { return Ok(Framed::Partial(0)) };
        if header.length == FULL_PACKET_BYTES || self.joining {
            return self.join(bytes);
        }
        let end = HEADER_BYTES + header.length;
        let Some(payload) = bytes.get(HEADER_BYTES..end) else { return Ok(Framed::Partial(0)) };
        if let [ERROR, ..] = payload {
            // A server that ends the session sends an unsolicited error, whose sequence number is unrelated.
            self.next_sequence = header.sequence;
        }
        self.advance(header.sequence)?;
        Ok(Framed::Payload(payload, end))
    }

    /// Joins packets of the maximum length into one payload.
    #[cold]
    fn join<'a>(&'a mut self, bytes: &'a [u8]) -> Scanned<Framed<'a>> {
        if !self.joining {
            self.joining = true;
            // A buffer of that size must not stay after its answer.
            self.joined = Vec::new();
        }
        let mut consumed = 0;
        while let Some(header) = PacketHeader::read(&bytes[consumed..]) {
            let end = consumed + HEADER_BYTES + header.length;
            let Some(part) = bytes.get(consumed + HEADER_BYTES..end) else { break };
            self.advance(header.sequence)?;
            if self.joined.len() + part.len() > MAX_PAYLOAD_BYTES {
                return Err(Malformed("a row of the answer is longer than 1 GiB"));
            }
            self.joined.extend_from_slice(part);
            consumed = end;
            if header.length < FULL_PACKET_BYTES {
                self.joining = false;
                return Ok(Framed::Payload(&self.joined, consumed));
            }
        }
        Ok(Framed::Partial(consumed))
    }
}

/// A cursor over a payload. Every read is checked; the length that a peer claims is only compared with the present
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketReader<'a> {
    rest: &'a [u8],
}

/// A value of a text row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextValue<'a> {
    Null,
    Bytes(&'a [u8]),
}

const SHORT: Malformed = Malformed("a packet ends before its last field");

impl<'a> PacketReader<'a> {
    #[inline]
    pub fn new(payload: &'a [u8]) -> Self {
        PacketReader { rest: payload }
    }

    /// The bytes that have not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads this number of bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Scanned<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(SHORT)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads bytes of a constant number.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Scanned<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Scanned<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads two bytes, the lowest first.
    #[inline]
    pub fn u16(&mut self) -> Scanned<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads four bytes, the lowest first.
    #[inline]
    pub fn u32(&mut self) -> Scanned<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes, the lowest first.
    #[inline]
    pub fn u64(&mut self) -> Scanned<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number of variable length; fails for the marks of NULL and errors.
    #[inline]
    pub fn lenenc(&mut self) -> Scanned<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.u64(),
            _ => Err(Malformed("a length starts with a byte that no length can start with")),
        }
    }

    #[inline]
    pub fn lenenc_bytes(&mut self) -> Scanned<&'a [u8]> {
        let length = self.lenenc()?;
        self.bytes(usize::try_from(length).map_err(|_| SHORT)?)
    }

    /// A value of a text row: NULL or bytes preceded by their length.
    #[inline]
    pub fn text_value(&mut self) -> Scanned<TextValue<'a>> {
        if let Some((0xfb, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(TextValue::Null);
        }
        self.lenenc_bytes().map(TextValue::Bytes)
    }

    /// Bytes up to a NUL, which is read too.
    pub fn until_nul(&mut self) -> Scanned<&'a [u8]> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Malformed("a text lacks its terminating NUL"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(text)
    }
}

#[inline]
pub fn push_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[inline]
pub fn push_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Error number of MariaDB's progress reports, which are not errors.
pub const PROGRESS_REPORT: u16 = 0xffff;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub errno: u16,
    /// `HY000` when the server sent none.
    pub sqlstate: [u8; 5],
    pub message: String,
}

impl ServerError {
    /// Before the log-in error packets have no SQLSTATE.
    pub fn parse(payload: &[u8]) -> Scanned<Self> {
        let mut reader = PacketReader::new(payload);
        if reader.u8()? != ERROR {
            return Err(Malformed("an error packet starts with another byte than 0xff"));
        }
        let errno = reader.u16()?;
        let mut sqlstate = *b"HY000";
        if let Some((b'#', rest)) = reader.rest().split_first()
            && let Some((state, message)) = rest.split_first_chunk::<5>()
        {
            sqlstate = crate::sqlstate(state).unwrap_or(sqlstate);
            reader = PacketReader::new(message);
        }
        let message = crate::server_text(reader.rest());
        Ok(ServerError { errno, sqlstate, message })
    }

    /// The error of a statement.
    pub fn into_db_error(self) -> DbError {
        let (errno, sqlstate, message) = (u32::from(self.errno), self.sqlstate, self.message);
        let error = match classify(self.errno, &sqlstate) {
            ErrorClass::ConnectionLost => DbError::closed(errno, sqlstate, message),
            class => DbError::server(class, errno, sqlstate, message),
        };
        match self.errno {
            1153 => error.with_hint("raise max_allowed_packet on the server"),
            1184 if error.message().contains("init_connect") => error
                .with_hint("correct the server's init_connect, which its sessions begin with: SET GLOBAL init_connect"),
            // A statement names its engine, and no session lets the server take another one.
            1290 if error.message().contains("NO_ENGINE_SUBSTITUTION") => error.with_hint(
                "the server's enforce_storage_engine demands another engine than the statement's: SET GLOBAL \
                 enforce_storage_engine = DEFAULT",
            ),
            _ => error,
        }
    }
}

/// Numbers decide before states: servers give several of these the catch-all state HY000.
pub fn classify(errno: u16, sqlstate: &[u8; 5]) -> ErrorClass {
    match errno {
        // ER_LOCK_DEADLOCK, ER_XA_RBDEADLOCK
        1213 | 1614 => ErrorClass::Deadlock,
        // ER_LOCK_WAIT_TIMEOUT, ER_XA_RBTIMEOUT, ER_LOCK_NOWAIT
        1205 | 1613 | 3572 => ErrorClass::LockTimeout,
        // ER_CHECKREAD (MariaDB's snapshot isolation), ER_TRANSACTION_ROLLBACK_DURING_COMMIT (group replication),
        // TiDB's write conflicts and changed schema.
        1020 | 3101 | 8002 | 8022 | 8028 | 9007 => ErrorClass::Serialization,
        // The connection is closed: shutdown, normal shutdown, forced close, aborted, packet too large, network errors,
        // aborted again, killed (MariaDB), lost (numbers of the client library, from proxies), killed and idle (MySQL).
        1053
        | 1079
        | 1080
        | 1152
        | 1153
        | 1158..=1161
        | 1184
        | 1927
        | 2006
        | 2013
        | 3169
        | 4031 => ErrorClass::ConnectionLost,
        // ER_CHECK_CONSTRAINT_VIOLATED has the state HY000 on MySQL.
        3819 => ErrorClass::Constraint,
        _ => match sqlstate {
            b"40001" => ErrorClass::Serialization,
            [b'2', b'3', ..] => ErrorClass::Constraint,
            _ => ErrorClass::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::Cause;
    use proptest::prelude::*;

    fn packet(payload: &[u8], sequence: u8) -> (Vec<u8>, u8) {
        let mut out = b"before".to_vec();
        let start = begin_packet(&mut out);
        out.extend_from_slice(payload);
        let next = finish_packet(&mut out, start, sequence);
        assert_eq!(&out[..6], b"before");
        (out.split_off(6), next)
    }

    /// Joins the payloads of a stream that comes in pieces of `step` bytes.
    fn join(stream: &[u8], sequence: u8, step: usize) -> Vec<u8> {
        let mut framing = Framing::default();
        framing.expect(sequence);
        let (mut start, mut end) = (0, 0);
        loop {
            end = (end + step).min(stream.len());
            match framing.next_payload(&stream[start..end]).unwrap() {
                Framed::Partial(consumed) => start += consumed,
                Framed::Payload(payload, consumed) => {
                    assert_eq!(start + consumed, stream.len());
                    return payload.to_vec();
                }
            }
            assert!(end < stream.len());
        }
    }

    #[test]
    fn long_payloads_are_split_and_joined_at_every_boundary() {
        for length in [
            0,
            1,
            FULL_PACKET_BYTES - 1,
            FULL_PACKET_BYTES,
            FULL_PACKET_BYTES + 1,
            2 * FULL_PACKET_BYTES,
            2 * FULL_PACKET_BYTES + 1,
        ] {
            let payload: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let (stream, next) = packet(&payload, 254);
            let parts = length / FULL_PACKET_BYTES + 1;
            assert_eq!(stream.len(), length + parts * HEADER_BYTES);
            assert_eq!(next, 254_u8.wrapping_add(parts as u8));
            assert!(join(&stream, 254, 1 << 20) == payload, "{length}");
        }
    }

    #[test]
    fn small_packets_wait_for_their_last_byte() {
        let (stream, _) = packet(b"hello", 1);
        assert_eq!(join(&stream, 1, 1), b"hello");
        for end in 0..stream.len() {
            let mut framing = Framing::default();
            framing.expect(1);
            assert_eq!(framing.next_payload(&stream[..end]), Ok(Framed::Partial(0)));
        }
    }

    #[test]
    fn a_wrong_sequence_number_is_an_error() {
        let (stream, _) = packet(b"hello", 2);
        let mut framing = Framing::default();
        framing.expect(1);
        assert!(framing.next_payload(&stream).is_err());
    }

    proptest! {
        #[test]
        fn lengths_read_back_and_tolerate_truncation(value: u64, shift in 0..64_u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            push_lenenc(&mut out, value);
            let mut reader = PacketReader::new(&out);
            prop_assert_eq!(reader.lenenc(), Ok(value));
            prop_assert!(reader.rest().is_empty());
            for end in 0..out.len() {
                prop_assert!(PacketReader::new(&out[..end]).lenenc().is_err());
            }
        }

        #[test]
        fn claimed_lengths_beyond_the_packet_are_errors(claim in 4_u64.., tail in any::<[u8; 3]>()) {
            let mut out = Vec::new();
            push_lenenc(&mut out, claim);
            out.extend_from_slice(&tail);
            prop_assert!(PacketReader::new(&out).lenenc_bytes().is_err());
            prop_assert!(PacketReader::new(&out).text_value().is_err());
        }
    }

    #[test]
    fn null_and_error_prefixes_are_no_lengths() {
        assert!(PacketReader::new(&[0xfb]).lenenc().is_err());
        assert!(PacketReader::new(&[0xff, 0, 0]).lenenc().is_err());
        assert_eq!(PacketReader::new(&[0xfb]).text_value(), Ok(TextValue::Null));
        assert!(PacketReader::new(b"no end").until_nul().is_err());
    }

    #[test]
    fn reads_packets_with_and_without_state() {
        let error = ServerError::parse(b"\xff\xbd\x04#40001Deadlock found").unwrap();
        assert_eq!((error.errno, &error.sqlstate), (1213, b"40001"));
        assert_eq!(error.message, "Deadlock found");
        let early = ServerError::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((early.errno, &early.sqlstate), (1040, b"HY000"));
        assert_eq!(early.message, "Too many connections");
        assert!(ServerError::parse(b"\xff\x10").is_err());
        assert!(ServerError::parse(b"\x00\x10\x04").is_err());
        assert_eq!(ServerError::parse(b"\xff\x10\x04#08").unwrap().message, "#08");
    }

    #[test]
    fn classes_follow_number_then_state() {
        for (errno, state, class) in [
            (1213, b"40001", ErrorClass::Deadlock),
            (1205, b"HY000", ErrorClass::LockTimeout),
            (3572, b"HY000", ErrorClass::LockTimeout),
            (1020, b"HY000", ErrorClass::Serialization),
            (1180, b"40001", ErrorClass::Serialization),
            (1062, b"23000", ErrorClass::Constraint),
            (1452, b"23000", ErrorClass::Constraint),
            (3819, b"HY000", ErrorClass::Constraint),
            (1053, b"08S01", ErrorClass::ConnectionLost),
            (1927, b"70100", ErrorClass::ConnectionLost),
            (1317, b"70100", ErrorClass::Other),
            (1047, b"08S01", ErrorClass::Other),
            (1146, b"42S02", ErrorClass::Other),
        ] {
            let message = "Sorry".to_owned();
            let error = ServerError { errno, sqlstate: *state, message }.into_db_error();
            let cause = match class {
                ErrorClass::ConnectionLost => Cause::Lost,
                _ => Cause::Server,
            };
            assert_eq!((error.class(), error.cause()), (class, cause), "{errno}");
            assert_eq!((error.errno(), error.sqlstate().as_bytes()), (errno.into(), &state[..]));
        }
    }
}
