//! Answers: the first byte chooses capabilities, encoding and where the bytes are cut.
#![no_main]

use dyno_core::{Discard, Table};
use dyno_wire::mysql::{Answer, Definitions, Encoding, PrepareAnswer, AnswerStep};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (choice, bytes) = input;
    let bit = |number: u8| choice & (1 << number) != 0;
    let sequence = bytes.get(3).copied().unwrap_or(0);
    let encoding = if bit(2) { Encoding::Binary } else { Encoding::Text };
    let mut answer = Answer::new(bit(0), bit(1));
    answer.begin(encoding, sequence);
    let (mut start, mut columns) = (0, Definitions::default());
    for end in [bytes.len() * usize::from(choice >> 3) / 31, bytes.len()] {
        match answer.scan(&bytes[start..end], &mut columns, &mut Table::default()) {
            Ok((taken, AnswerStep::More)) => start += taken,
            _ => break,
        }
    }
    answer.begin(encoding, sequence);
    let _ = answer.scan(&bytes, &mut columns, &mut Discard);
    let _ = PrepareAnswer::new(bit(0), sequence).scan(&bytes);
});
