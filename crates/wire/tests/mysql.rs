//! Answers of a MySQL server, whole, cut into pieces, truncated and made up.

use dyno_core::{AnswerRow, ColumnNames, Discard, Executed, KeptColumn, ReadKeptRow, Rows};
use dyno_testkit::{Headings, Transcript};
use dyno_wire::mysql::packet::{begin_packet, finish_packet, push_lenenc_bytes};
use dyno_wire::mysql::statement::PrepareStep;
use dyno_wire::mysql::{Answer, AnswerStep, Definitions, Encoding, Malformed, PrepareAnswer};
use proptest::prelude::*;

/// Packets of a server, one by one.
struct Script {
    bytes: Vec<u8>,
    sequence: u8,
    deprecate_eof: bool,
}

impl Script {
    fn new(deprecate_eof: bool) -> Self {
        Script { bytes: Vec::new(), sequence: 1, deprecate_eof }
    }

    /// Appends a packet.
    fn packet(mut self, payload: &[u8]) -> Self {
        let start = begin_packet(&mut self.bytes);
        self.bytes.extend_from_slice(payload);
        self.sequence = finish_packet(&mut self.bytes, start, self.sequence);
        self
    }

    /// Appends the definitions of columns of these types.
    fn columns(mut self, types: &[u8]) -> Self {
        for &column_type in types {
            let mut payload = Vec::new();
            let name = format!("column_{column_type}");
            for name in ["def", "db", "t", "t", &name, "original"] {
                push_lenenc_bytes(&mut payload, name.as_bytes());
            }
            payload.extend_from_slice(&[12, 45, 0, 255, 0, 0, 0, column_type, 0, 0, 0, 0, 0]);
            self = self.packet(&payload);
        }
        if self.deprecate_eof { self } else { self.packet(&[0xfe, 0, 0, 2, 0]) }
    }

    /// Appends an OK packet.
    fn ok(self, affected: u8, status: u16, warnings: u8) -> Self {
        let [low, high] = status.to_le_bytes();
        self.packet(&[0, affected, 0, low, high, warnings, 0])
    }

    /// Appends the packet that ends definitions or rows.
    fn end(self, status: u16) -> Self {
        let [low, high] = status.to_le_bytes();
        if self.deprecate_eof {
            self.packet(&[0xfe, 0, 0, low, high, 0, 0])
        } else {
            self.packet(&[0xfe, 0, 0, low, high])
        }
    }
}

#[derive(Default)]
struct RowTable(Vec<Vec<Option<String>>>);

impl Rows for RowTable {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        self.0.push((0..row.columns()).map(|column| row.string(column)).collect());
    }
}

/// Reads rows that are kept as they came.
#[derive(Default)]
struct Later {
    columns: Vec<KeptColumn>,
    read: Option<ReadKeptRow>,
    rows: Vec<Vec<Option<String>>>,
}

impl Rows for Later {
    const KEPT: bool = true;

    fn row<R: AnswerRow>(&mut self, _row: &R) {
        panic!("a row was not kept as it came");
    }

    fn kept_columns(&mut self, columns: impl Iterator<Item = KeptColumn>, read: ReadKeptRow) {
        (self.columns, self.read) = (columns.collect(), Some(read));
    }

    /// A row that can't be read ends them.
    fn kept_rows(&mut self, rows: &[u8], count: usize) {
        let mut remaining = rows;
        for _ in 0..count {
            let (mut values, read) = (Vec::new(), self.read.expect("columns come first"));
            let consumed = read(remaining, &self.columns, &mut |number, value| {
                assert_eq!(number, values.len());
                values.push(value.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
            });
            let Some(consumed) = consumed else { return };
            remaining = &remaining[consumed..];
            self.rows.push(values);
        }
        assert!(remaining.is_empty());
    }
}

/// An answer whose rows are only counted.
fn plain(answer: &mut Answer, bytes: &[u8], sequence: u8) -> Option<Executed> {
    answer.plain(bytes, sequence, None, &mut Discard)
}

#[test]
fn names_and_ends_are_told_per_result() {
    for deprecate_eof in [true, false] {
        let bytes = several(deprecate_eof);
        for step in [1, 2, 7, bytes.len()] {
            let mut answer = Answer::new(deprecate_eof, false);
            let (mut described, mut names) = (Transcript::default(), Headings::default());
            answer.begin(Encoding::Text, 1);
            feed(&mut answer, &bytes, step, &mut Definitions::default(), &mut described).unwrap();
            let expected = [
                "columns column_3, column_253",
                "row 1, hello",
                "row 2, NULL",
                "done 2 rows",
                "columns column_253",
                "done 0 rows",
                "done 5 changed",
            ];
            assert_eq!(described.0, expected);
            answer.begin(Encoding::Text, 1);
            feed(&mut answer, &bytes, step, &mut Definitions::default(), &mut names).unwrap();
            let expected: Vec<_> =
                expected.into_iter().filter(|line| !line.starts_with("row")).collect();
            assert_eq!(names.0.0, expected);
        }
    }
}

/// Feeds `bytes` in pieces of `step` bytes; `None` when more would be needed at their end.
fn feed<R: Rows>(
    answer: &mut Answer,
    bytes: &[u8],
    step: usize,
    columns: &mut Definitions,
    rows: &mut R,
) -> Result<Option<AnswerStep>, Malformed> {
    let (mut start, mut end) = (0, 0);
    loop {
        if end == bytes.len() && end > 0 {
            return Ok(None);
        }
        end = (end + step).min(bytes.len());
        let (consumed, result) = answer.scan(&bytes[start..end], columns, rows)?;
        assert!(consumed <= end - start);
        start += consumed;
        if result != AnswerStep::More {
            assert_eq!(start, end, "the answer ends with its last byte");
            return Ok(Some(result));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
    }
}

/// Two result sets and a count, as a procedure answers.
fn several(deprecate_eof: bool) -> Vec<u8> {
    Script::new(deprecate_eof)
        .packet(&[2])
        .columns(&[3, 253])
        .packet(b"\x011\x05hello")
        .packet(b"\x012\xfb")
        .end(8)
        .packet(&[1])
        .columns(&[253])
        .end(8)
        .packet(b"\xff\xff\xff\x01progress of MariaDB")
        .ok(5, 2, 3)
        .bytes
}

#[test]
fn several_results_arrive_in_any_pieces() {
    for deprecate_eof in [true, false] {
        let bytes = several(deprecate_eof);
        let expected = Executed { has_rows: true, rows: 2, affected: 5 };
        for step in 1..=bytes.len() {
            let mut answer = Answer::new(deprecate_eof, false);
            let mut columns = Definitions::default();
            let mut table = RowTable::default();
            answer.begin(Encoding::Text, 1);
            let end = feed(&mut answer, &bytes, step, &mut columns, &mut table).unwrap();
            assert_eq!(end, Some(AnswerStep::Done(expected)), "{step}");
            let [one, hello, two] = ["1", "hello", "2"].map(|text| Some(text.to_owned()));
            assert_eq!(table.0, [vec![one, hello], vec![two, None]]);
            assert_eq!((answer.warnings(), answer.status()), (3, 2));

            answer.begin(Encoding::Text, 1);
            let end = feed(&mut answer, &bytes, step, &mut columns, &mut Discard).unwrap();
            assert_eq!(end, Some(AnswerStep::Done(expected)), "{step}");
        }
        for end in 0..bytes.len() {
            let mut answer = Answer::new(deprecate_eof, false);
            answer.begin(Encoding::Text, 1);
            let mut table = RowTable::default();
            let cut = feed(&mut answer, &bytes[..end], 7, &mut Definitions::default(), &mut table);
            assert_eq!(cut, Ok(None), "{end}");
        }
    }
}

#[test]
fn binary_rows_use_cached_columns() {
    let first = Script::new(true)
        .packet(&[1, 1])
        .columns(&[8])
        .packet(&[0, 0, 7, 0, 0, 0, 0, 0, 0, 0])
        .end(2)
        .bytes;
    let second =
        Script::new(true).packet(&[1, 0]).packet(&[0, 0, 8, 0, 0, 0, 0, 0, 0, 0]).end(2).bytes;
    let mut answer = Answer::new(true, true);
    let mut columns = Definitions::default();
    // The columns are kept even when no one wants the rows: they come only once.
    answer.begin(Encoding::Binary, 1);
    feed(&mut answer, &first, 100, &mut columns, &mut Discard).unwrap();
    let mut table = RowTable::default();
    answer.begin(Encoding::Binary, 1);
    feed(&mut answer, &second, 100, &mut columns, &mut table).unwrap();
    assert_eq!(table.0, [[Some("8".to_string())]]);
    let mut later = Later::default();
    answer.begin(Encoding::Binary, 1);
    feed(&mut answer, &second, 100, &mut columns, &mut later).unwrap();
    assert_eq!(later.rows, table.0);
    let mut described = Transcript::default();
    answer.begin(Encoding::Binary, 1);
    feed(&mut answer, &second, 100, &mut columns, &mut described).unwrap();
    assert_eq!(described.0, ["columns column_8", "row 8", "done 1 rows"], "names are kept as well");
    answer.begin(Encoding::Binary, 1);
    let strange = feed(&mut answer, &second, 100, &mut Definitions::default(), &mut table);
    assert!(strange.is_err(), "columns that were never sent");
}

#[test]
fn names_are_kept_where_definitions_come_once() {
    for (encoding, caches, expected) in [
        (Encoding::Binary, true, (1, 1)),
        // Texts are read by no statement that was prepared: their definitions come again.
        (Encoding::Text, true, (1, 0)),
        (Encoding::Binary, false, (1, 0)),
    ] {
        let head: &[u8] = if caches { &[1, 1] } else { &[1] };
        let bytes = Script::new(true).packet(head).columns(&[8]).end(2).bytes;
        let mut answer = Answer::new(true, caches);
        let mut definitions = Definitions::default();
        answer.begin(encoding, 1);
        feed(&mut answer, &bytes, 100, &mut definitions, &mut RowTable::default()).unwrap();
        assert_eq!((definitions.columns.len(), definitions.names.count()), expected);
    }
}

#[test]
fn binary_rows_have_all_their_columns() {
    let row = [&[0, 0b1000, 7, 0, 0, 0][..], b"\x02ab"].concat();
    let bytes = Script::new(true).packet(&[3]).columns(&[3, 8, 253]).packet(&row).end(2).bytes;
    let mut answer = Answer::new(true, false);
    let mut table = RowTable::default();
    answer.begin(Encoding::Binary, 1);
    feed(&mut answer, &bytes, 100, &mut Definitions::default(), &mut table).unwrap();
    assert_eq!(table.0, [[Some("7".to_owned()), None, Some("ab".to_owned())]]);
}

#[test]
fn rows_that_are_only_counted_are_not_waited_for() {
    let bytes = Script::new(true).packet(&[1]).columns(&[253]).packet(b"\x05hello").end(2).bytes;
    // Behind the row is the end of rows, of 11 bytes.
    let row = bytes.len() - 11 - 10;
    let mut answer = Answer::new(true, false);
    for (end, taken) in [(row + 4, row), (row + 5, row + 5), (row + 7, row + 7)] {
        answer.begin(Encoding::Text, 1);
        let scan = answer.scan(&bytes[..end], &mut Definitions::default(), &mut Discard);
        assert_eq!(scan, Ok((taken, AnswerStep::More)), "{end}");
    }
}

#[test]
fn any_number_of_a_packet_is_allowed_where_frames_are_numbered() {
    let rows = Script::new(true).packet(&[1]).columns(&[3]).packet(b"\x017");
    let bytes = Script { sequence: 9, ..rows }.packet(b"\x018").end(2).bytes;
    let changed = Script { sequence: 5, ..Script::new(true) }.ok(3, 2, 0).bytes;
    for (is_any, bytes, counts) in [
        (true, &bytes, (2, 0)),
        (true, &changed, (0, 3)),
        (false, &bytes, (0, 0)),
        (false, &changed, (0, 0)),
    ] {
        let mut answer = Answer::new(true, false);
        if is_any {
            answer.allow_any_sequence();
        }
        let executed = Executed { has_rows: counts.0 > 0, rows: counts.0, affected: counts.1 };
        answer.begin(Encoding::Text, 1);
        let end = feed(&mut answer, bytes, 100, &mut Definitions::default(), &mut Discard);
        assert_eq!(end.ok(), is_any.then_some(Some(AnswerStep::Done(executed))));
        assert_eq!(plain(&mut answer, bytes, 1), is_any.then_some(executed));
    }
}

#[test]
fn rows_over_16_mib_are_joined_or_skipped() {
    let long = vec![b'x'; (1 << 24) + 5];
    let mut row = Vec::new();
    push_lenenc_bytes(&mut row, &long);
    let bytes =
        Script::new(true).packet(&[1]).columns(&[253]).packet(&row).packet(b"\x01y").end(2).bytes;
    let expected = Some(AnswerStep::Done(Executed { has_rows: true, rows: 2, affected: 0 }));
    for step in [bytes.len(), 1_000_003] {
        let mut answer = Answer::new(true, false);
        answer.begin(Encoding::Text, 1);
        let mut table = RowTable::default();
        let end = feed(&mut answer, &bytes, step, &mut Definitions::default(), &mut table).unwrap();
        assert_eq!(end, expected);
        assert_eq!(table.0[0][0].as_ref().map(String::len), Some(long.len()));
        assert_eq!(table.0[1][0].as_deref(), Some("y"));
        answer.begin(Encoding::Text, 1);
        let mut later = Later::default();
        feed(&mut answer, &bytes, step, &mut Definitions::default(), &mut later).unwrap();
        assert!(later.rows == table.0, "rows that are kept as they came");
        answer.begin(Encoding::Text, 1);
        let end =
            feed(&mut answer, &bytes, step, &mut Definitions::default(), &mut Discard).unwrap();
        assert_eq!(end, expected);
    }
}

#[test]
fn errors_and_file_requests_end_a_scan() {
    let mut answer = Answer::new(true, false);
    answer.begin(Encoding::Text, 1);
    let bytes = Script::new(true)
        .packet(&[1])
        .columns(&[3])
        .packet(b"\x011")
        .packet(b"\xff\xbd\x04#40001Deadlock")
        .bytes;
    let step = feed(&mut answer, &bytes, 9, &mut Definitions::default(), &mut Discard).unwrap();
    let Some(AnswerStep::Failed(error)) = step else { panic!("{step:?}") };
    assert_eq!((error.errno, error.message.as_str()), (1213, "Deadlock"));

    answer.begin(Encoding::Text, 1);
    let bytes = Script::new(true).packet(b"\xfb/etc/passwd").bytes;
    let step = feed(&mut answer, &bytes, 9, &mut Definitions::default(), &mut Discard).unwrap();
    assert_eq!(step, Some(AnswerStep::FileRequest(b"/etc/passwd".to_vec())));
    assert_eq!(answer.next_sequence(), 2);
}

#[test]
fn a_wrong_packet_is_an_error() {
    let broken = [
        Script::new(true).packet(b"").bytes,
        Script::new(true).packet(&[0]).bytes,
        Script::new(true).packet(&[0xfd, 0xff, 0xff, 0xff]).bytes,
        Script::new(true).packet(&[0xfe, 1]).bytes,
        Script::new(false).packet(&[1]).packet(&[3, b'd', b'e']).bytes,
        Script::new(true).packet(&[1]).columns(&[3]).packet(b"\xfc\xff\xffabc").bytes,
        Script::new(true).packet(&[1]).columns(&[3]).packet(b"\x01ab").bytes,
        Script { sequence: 2, ..Script::new(true) }.ok(0, 0, 0).bytes,
    ];
    for (number, bytes) in broken.iter().enumerate() {
        let mut answer = Answer::new(number != 4, false);
        answer.begin(Encoding::Text, 1);
        let result =
            feed(&mut answer, bytes, 100, &mut Definitions::default(), &mut RowTable::default());
        assert!(result.is_err(), "{number}: {result:?}");
    }
}

#[test]
fn rows_of_columns_that_were_never_sent_are_only_counted() {
    let bytes = Script::new(true).packet(&[1, 0]).packet(b"\x017").end(1).bytes;
    let [mut answer, mut discarded] = [(); 2].map(|()| Answer::new(true, true));
    answer.begin(Encoding::Text, 1);
    discarded.begin(Encoding::Text, 1);
    let mut none = Definitions::default();
    let Malformed(why) = feed(&mut answer, &bytes, 100, &mut none, &mut RowTable::default())
        .expect_err("no columns");
    assert!(why.contains("lacks column definitions"), "{why}");
    assert!(feed(&mut discarded, &bytes, 100, &mut none, &mut Discard).is_ok());
}

fn prepared(deprecate_eof: bool) -> Vec<u8> {
    Script::new(deprecate_eof)
        .packet(&[0, 7, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0])
        .columns(&[253])
        .columns(&[3, 253])
        .bytes
}

#[test]
fn a_preparation_is_read_in_any_pieces() {
    for deprecate_eof in [true, false] {
        let bytes = prepared(deprecate_eof);
        for step in 1..=bytes.len() {
            let mut answer = PrepareAnswer::new(deprecate_eof, 1);
            let (mut start, mut end) = (0, 0);
            let (id, params, definitions) = loop {
                end = (end + step).min(bytes.len());
                let (consumed, result) = answer.scan(&bytes[start..end]).unwrap();
                start += consumed;
                match result {
                    PrepareStep::More => assert!(end < bytes.len()),
                    PrepareStep::Done { id, params, definitions } => {
                        break (id, params, definitions);
                    }
                    PrepareStep::Failed(error) => panic!("{error:?}"),
                }
            };
            assert_eq!((id, params, start), (7, 1, bytes.len()));
            assert_eq!((definitions.names.count(), definitions.names.name(1)), (2, "column_253"));
            let types: Vec<u8> =
                definitions.columns.iter().map(|column| column.column_type).collect();
            assert_eq!(types, [3, 253]);
        }
    }
    let failed = Script::new(true).packet(b"\xff\x0f\x05#HY000can't").bytes;
    let (_, step) = PrepareAnswer::new(true, 1).scan(&failed).unwrap();
    assert!(matches!(step, PrepareStep::Failed(error) if error.errno == 1295));
}

#[test]
fn a_plain_answer_is_read_at_once_and_nothing_else_is() {
    let row = b"\0\0\x07";
    let described = Script::new(true).packet(&[2]).columns(&[3, 3]);
    let described = described.packet(row).packet(row).end(1).bytes;
    let without_columns = Script::new(true).packet(&[2, 0]).packet(row).end(1).bytes;
    let changed = Script::new(true).ok(7, 1, 2).bytes;
    let [first, second] = [1, 2].map(|rows| Executed { has_rows: true, rows, affected: 0 });
    let seven = Executed { has_rows: false, rows: 0, affected: 7 };
    let cases =
        [(false, &described, second), (true, &without_columns, first), (true, &changed, seven)];
    for (caches, whole, executed) in cases {
        let mut whole_one = Answer::new(true, caches);
        assert_eq!(plain(&mut whole_one, whole, 1), Some(executed));
        assert_eq!(whole_one.status(), 1);
        assert_eq!(whole_one.warnings(), if executed.has_rows { 0 } else { 2 });
        for len in 0..whole.len() {
            assert_eq!(
                plain(&mut Answer::new(true, caches), &whole[..len], 1),
                None,
                "{len} bytes"
            );
        }
        assert_eq!(plain(&mut Answer::new(true, caches), &[whole, &b"\x01"[..]].concat(), 1), None);
        assert_eq!(plain(&mut Answer::new(true, caches), whole, 2), None);
        assert_eq!(plain(&mut Answer::new(false, caches), whole, 1), None);
    }
    // Columns that are sent only once, more results, an error.
    let described = Script::new(true).packet(&[2, 1]).columns(&[3, 3]).end(1);
    let failed = Script::new(true).packet(b"\xff\x0f\x05#HY000no");
    for other in [described, Script::new(true).ok(0, 8, 0), failed] {
        assert_eq!(plain(&mut Answer::new(true, true), &other.bytes, 1), None);
    }
}

#[test]
fn rows_of_a_plain_answer_are_kept_as_they_come() {
    let row = |value| [0, 0, value, 0, 0, 0];
    let described = Script::new(true).packet(&[1]).columns(&[3]).packet(&row(7)).packet(&row(8));
    let without_columns = Script::new(true).packet(&[1, 0]).packet(&row(7)).packet(&row(8));
    let mut definitions = Definitions::default();
    for (caches, script) in [(false, described), (true, without_columns)] {
        let bytes = script.end(1).bytes;
        let mut later = Later::default();
        let cut = &bytes[..bytes.len() - 1];
        let mut answer = Answer::new(true, caches);
        assert_eq!(answer.plain(cut, 1, Some(&mut definitions), &mut later), None);
        assert!(later.read.is_none() && later.rows.is_empty(), "nothing has been handed on");
        assert_eq!(answer.plain(&bytes, 1, None, &mut later), None);
        let executed = answer.plain(&bytes, 1, Some(&mut definitions), &mut later);
        assert_eq!(executed, Some(Executed { has_rows: true, rows: 2, affected: 0 }));
        assert_eq!(later.rows, ["7", "8"].map(|text| vec![Some(text.to_owned())]));
        // So has what another answer follows.
        let two = [&bytes[..], &bytes].concat();
        assert_eq!(answer.plain(&two, 1, Some(&mut definitions), &mut later), None);
        // A row that is decoded at once has to come by the other way.
        let mut table = RowTable::default();
        assert_eq!(answer.plain(&bytes, 1, Some(&mut definitions), &mut table), None);
    }
}

/// Packets with sequence numbers that fit, so that what is inside them is looked at.
fn packets(payloads: &[Vec<u8>]) -> Vec<u8> {
    payloads.iter().fold(Script::new(true), |script, payload| script.packet(payload)).bytes
}

fn encodings() -> impl Strategy<Value = Encoding> {
    prop_oneof![Just(Encoding::Text), Just(Encoding::Binary)]
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![3 => 0..8_u8, 1 => 0xf8..=0xff_u8, 1 => any::<u8>()];
    prop::collection::vec(prop::collection::vec(byte, 0..24), 0..12)
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        flags: (bool, bool),
        encoding in encodings(),
    ) {
        let mut answer = Answer::new(flags.0, flags.1);
        answer.begin(encoding, bytes.get(3).copied().unwrap_or(0));
        let _ = answer.scan(&bytes, &mut Definitions::default(), &mut RowTable::default());
        answer.begin(encoding, bytes.get(3).copied().unwrap_or(0));
        let _ = answer.scan(&bytes, &mut Definitions::default(), &mut Discard);
        let _ = PrepareAnswer::new(flags.0, bytes.get(3).copied().unwrap_or(0)).scan(&bytes);
        let _ = dyno_wire::mysql::handshake::Greeting::parse(&bytes);
        let _ = dyno_wire::mysql::auth::PublicKey::from_pem(&bytes);
    }

    /// However the bytes are cut, the outcome is the same, and so are rows that are read later.
    #[test]
    fn made_up_packets_give_the_same_in_any_pieces(
        payloads in payloads(),
        flags: (bool, bool),
        encoding in encodings(),
        step in 1..40_usize,
    ) {
        let bytes = packets(&payloads);
        let answer = || {
            let mut answer = Answer::new(flags.0, flags.1);
            answer.begin(encoding, 1);
            answer
        };
        let (mut table, mut pieces) = (RowTable::default(), RowTable::default());
        let outcome = scanned(answer(), &bytes, bytes.len().max(1), &mut table);
        prop_assert_eq!(&scanned(answer(), &bytes, step, &mut pieces), &outcome);
        prop_assert_eq!(&pieces.0, &table.0);
        if outcome.is_ok() {
            let mut later = Later::default();
            prop_assert_eq!(scanned(answer(), &bytes, step, &mut later), outcome);
            prop_assert_eq!(later.rows, table.0);
        }
        let mut at_once = answer();
        let (mut first, mut then) = (Later::default(), Later::default());
        let mut definitions = Definitions::default();
        if encoding == Encoding::Binary
            && let Some(executed) = answer().plain(&bytes, 1, Some(&mut definitions), &mut first)
        {
            let scan = scanned(answer(), &bytes, step, &mut then);
            prop_assert_eq!(scan, Ok(AnswerStep::Done(executed)));
            prop_assert_eq!(first.rows, then.rows);
        }
        if let Some(executed) = plain(&mut at_once, &bytes, 1) {
            let mut scanner = answer();
            let scan = scanner.scan(&bytes, &mut Definitions::default(), &mut Discard);
            prop_assert_eq!(scan, Ok((bytes.len(), AnswerStep::Done(executed))));
            let [eager, lazy] = [&at_once, &scanner].map(|it| (it.status(), it.warnings()));
            prop_assert_eq!(eager, lazy);
        }
    }
}

/// Scans an answer that comes in pieces of `step` bytes.
fn scanned(
    mut answer: Answer,
    bytes: &[u8],
    step: usize,
    rows: &mut impl Rows,
) -> Result<AnswerStep, Malformed> {
    let mut columns = Definitions::default();
    let (mut start, mut end) = (0, 0);
    loop {
        end = (end + step).min(bytes.len());
        match answer.scan(&bytes[start..end], &mut columns, rows) {
            Ok((consumed, AnswerStep::More)) if end < bytes.len() => start += consumed,
            other => return other.map(|(_, step)| step),
        }
    }
}
