//! Damages seeds: bits, bytes, numbers, pieces of other seeds.

/// Inputs are not longer.
const LONGEST: usize = 64 << 10;
/// Values at the edges of what readers expect.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1e308",
    "-0.0",
    "9007199254740993",
    "18446744073709551615",
    "99999999999999999999999",
    "1e-320",
    "null",
    "\"\"",
];

/// A stream of random numbers (xorshift), and what is made of them.
#[derive(Debug)]
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(stream: u64) -> Self {
        Mutator((stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `bound`; 0 if there is nothing below it.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Makes an input of a seed.
    pub(crate) fn damage(&mut self, seeds: &[Vec<u8>], input: &mut Vec<u8>) {
        let seed = self.below(seeds.len());
        input.clear();
        input.extend(seeds.get(seed).into_iter().flatten());
        for _ in 0..=self.below(6) {
            self.step(seeds, input);
        }
        input.truncate(LONGEST);
    }

    fn step(&mut self, seeds: &[Vec<u8>], input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let longest = 1 << self.below(8);
        let length = self.below(longest).min(input.len() - at);
        match self.below(9) {
            0 => {
                let bit = 1 << self.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= bit;
                }
            }
            1 => {
                let byte = self.next() as u8;
                input.insert(at, byte);
            }
            2 => drop(input.drain(at..at + length)),
            3 => {
                let piece = input[at..at + length].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            4 => input.truncate(at),
            5 => {
                let donor = &seeds[self.below(seeds.len())];
                let from = self.below(donor.len() + 1);
                let piece = &donor[from..(from + 64.min(donor.len() - from))];
                input.splice(at..at + length, piece.iter().copied());
            }
            6 => self.number(input, at),
            7 => {
                let (edge, width) = (self.pick(&EDGES), self.pick(&[1, 2, 4, 8]));
                let bytes = edge.to_le_bytes();
                let end = (at + width).min(input.len());
                input.splice(at..end, bytes[..width].iter().copied());
            }
            _ => {
                let byte = self.pick(b"\0\n\r\t \"'\\,;:=(){}[]%@/-+.*\x7f\x80\xff");
                let copies = 1 + self.below(3);
                input.splice(at..at, std::iter::repeat_n(byte, copies));
            }
        }
    }

    /// Puts another number instead of the first one behind `at`.
    fn number(&mut self, input: &mut Vec<u8>, at: usize) {
        let Some(from) = input[at..].iter().position(u8::is_ascii_digit).map(|from| at + from)
        else {
            return;
        };
        let digits = input[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let replacement = self.pick(&NUMBERS);
        input.splice(from..from + digits, replacement.bytes());
    }
}
