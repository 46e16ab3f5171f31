//! The compressed protocol: packets travel in frames, each of them compressed by itself. A frame begins with its
//! length, its number and the length of its content, which is 0 if that is not compressed.

use super::packet::HEADER_BYTES;
use super::{Malformed, Scanned};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

const FRAME_HEADER_BYTES: usize = 7;
/// The longest content of a frame.
const CONTENT_MAX: usize = (1 << 24) - 1;
/// Shorter contents are sent as they are, as the servers' own clients do.
const COMPRESS_FROM: usize = 50;

/// Both directions of one connection.
#[derive(Debug)]
pub struct Frames {
    compress: Compress,
    decompress: Decompress,
    /// The number of the next frame to send, unless a command begins with it.
    next: u8,
}

impl Default for Frames {
    fn default() -> Self {
        let compress = Compress::new(Compression::default(), true);
        Frames { compress, decompress: Decompress::new(true), next: 0 }
    }
}

impl Frames {
    /// Appends whole packets to `out`. Each command has its own frames, numbered from 0: the server counts again
    /// with each of them.
    pub fn pack(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        let mut remaining = packets;
        while !remaining.is_empty() {
            let (command, later) = remaining.split_at(command_bytes(remaining));
            if begins_command(command) {
                self.next = 0;
            }
            for content in command.chunks(CONTENT_MAX) {
                self.push_frame(content, out);
            }
            remaining = later;
        }
    }

    fn push_frame(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        let body = out.len();
        // What gets no shorter is sent unchanged.
        let is_packed = content.len() >= COMPRESS_FROM
            && self.compress(content, out)
            && out.len() - body < content.len();
        if !is_packed {
            out.truncate(body);
            out.extend_from_slice(content);
        }
        let (length, whole) = (out.len() - body, if is_packed { content.len() } else { 0 });
        out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        out[start + 3] = self.next;
        out[start + 4..body].copy_from_slice(&(whole as u32).to_le_bytes()[..3]);
        self.next = self.next.wrapping_add(1);
    }

    /// Appends the content of the frame at the front of `bytes` to `packets`. Returns the length of the frame; 0 while
    /// it is not complete.
    pub fn unpack(&mut self, bytes: &[u8], packets: &mut Vec<u8>) -> Scanned<usize> {
        let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(0);
        };
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]);
        let (length, whole) = (number(0) as usize, number(4) as usize);
        let Some(body) = rest.get(..length) else { return Ok(0) };
        match whole {
            0 => packets.extend_from_slice(body),
            _ => self.decompress(body, whole, packets)?,
        }
        self.next = header[3].wrapping_add(1);
        Ok(FRAME_HEADER_BYTES + length)
    }

    /// Appends the compressed content; false if that would be no shorter.
    fn compress(&mut self, content: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.resize(start + content.len(), 0);
        self.compress.reset();
        let status = self.compress.compress(content, &mut out[start..], FlushCompress::Finish);
        out.truncate(start + self.compress.total_out() as usize);
        matches!(status, Ok(Status::StreamEnd))
    }

    /// Appends the packets of a compressed frame; `whole` is their length.
    fn decompress(&mut self, body: &[u8], whole: usize, packets: &mut Vec<u8>) -> Scanned<()> {
        let start = packets.len();
        packets.resize(start + whole, 0);
        self.decompress.reset(true);
        let status =
            self.decompress.decompress(body, &mut packets[start..], FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) if self.decompress.total_out() as usize == whole => Ok(()),
            _ => Err(Malformed("a compressed frame does not hold what it says")),
        }
    }
}

fn begins_command(packets: &[u8]) -> bool {
    packets.get(HEADER_BYTES - 1) == Some(&0)
}

/// Bytes up to the next packet that begins a command: one with the number 0.
fn command_bytes(packets: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let Some(header) = packets[at..].first_chunk::<HEADER_BYTES>() else {
            return packets.len();
        };
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        at = packets.len().min(at + HEADER_BYTES + length);
        if begins_command(&packets[at..]) {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(number);
        packet.extend_from_slice(payload);
        packet
    }

    /// Numbers and contents of frames.
    fn read(frames: &mut Frames, mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut numbered_contents = Vec::new();
        while !bytes.is_empty() {
            let mut content = Vec::new();
            let consumed = frames.unpack(bytes, &mut content).expect("a good frame");
            assert!(consumed > 0, "whole frames");
            numbered_contents.push((bytes[3], content));
            bytes = &bytes[consumed..];
        }
        numbered_contents
    }

    #[test]
    fn each_command_has_frames_from_0_on() {
        let mut frames = Frames::default();
        let (long, short) = (packet(0, &[7; 300]), packet(0, b"\x0eping"));
        let mut out = Vec::new();
        frames.pack(&[&long[..], &short, &packet(1, b"more")].concat(), &mut out);
        assert!(out.len() < 100, "{} bytes", out.len());
        let second = [&short[..], &packet(1, b"more")].concat();
        assert_eq!(read(&mut frames, &out), [(0, long.clone()), (0, second)]);
        // A file continues the numbers of the server.
        let mut answer = Vec::new();
        frames.push_frame(b"give me the file", &mut answer);
        answer[3] = 4;
        read(&mut frames, &answer);
        out.clear();
        frames.pack(&packet(5, b"rows"), &mut out);
        assert_eq!(read(&mut frames, &out)[0].0, 5);
    }

    #[test]
    fn long_packets_take_several_frames() {
        let mut frames = Frames::default();
        let long = [packet(0, &vec![1; CONTENT_MAX]), packet(1, b"end")].concat();
        let mut out = Vec::new();
        frames.pack(&long, &mut out);
        let read = read(&mut frames, &out);
        assert_eq!(read.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(read.into_iter().flat_map(|(_, content)| content).collect::<Vec<_>>(), long);
    }

    #[test]
    fn a_frame_that_lies_is_refused() {
        let mut frames = Frames::default();
        let mut out = Vec::new();
        frames.push_frame(&[9; 1_000], &mut out);
        for (at, byte) in [(4, 0xff), (5, 1), (6, 0xff), (10, 0x55), (12, 0xff)] {
            let mut broken = out.clone();
            broken[at] = byte;
            assert!(frames.unpack(&broken, &mut Vec::new()).is_err(), "{at}");
        }
        assert_eq!(frames.unpack(&out, &mut Vec::new()), Ok(out.len()));
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            payloads in prop::collection::vec(prop::collection::vec(0_u8..4, 0..400), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut frames = Frames::default();
            let packets: Vec<u8> = payloads.iter().flat_map(|payload| packet(0, payload)).collect();
            let mut out = Vec::new();
            frames.pack(&packets, &mut out);
            let unpacked: Vec<u8> = read(&mut frames, &out).into_iter().flat_map(|(_, it)| it).collect();
            prop_assert_eq!(unpacked, packets);
            let mut first = Vec::new();
            let length = frames.unpack(&out, &mut first).unwrap();
            let part = &out[..cut.index(length)];
            prop_assert_eq!(frames.unpack(part, &mut Vec::new()), Ok(0));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::default();
            let _ = frames.unpack(&bytes, &mut Vec::new());
            frames.pack(&bytes, &mut Vec::new());
        }
    }
}
