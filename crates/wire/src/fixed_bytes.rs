//! Constant bytes of messages.

/// As long as most pieces are, or longer.
const BLOCK_BYTES: usize = 32;

/// Bytes that are the same in every message. A few are copied as a block of constant size: no call to copy them.
#[derive(Clone, Debug)]
pub(crate) struct FixedBytes {
    block: [u8; BLOCK_BYTES],
    bytes: Box<[u8]>,
}

impl FixedBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut block = [0; BLOCK_BYTES];
        if let Some(start) = block.get_mut(..bytes.len()) {
            start.copy_from_slice(&bytes);
        }
        FixedBytes { block, bytes: bytes.into() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// They, and zeros behind them; all zeros where they are longer.
    #[inline]
    pub(crate) fn block(&self) -> &[u8; BLOCK_BYTES] {
        &self.block
    }

    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        if self.bytes.len() > BLOCK_BYTES {
            return out.extend_from_slice(&self.bytes);
        }
        let end = out.len() + self.bytes.len();
        out.extend_from_slice(&self.block);
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_are_appended_whole() {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 100] {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let mut out = b"before".to_vec();
            FixedBytes::new(bytes.clone()).push(&mut out);
            assert_eq!(out, [&b"before"[..], &bytes].concat());
        }
    }
}
