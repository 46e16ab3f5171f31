//! Both protocols: whatever a server sends, every reader of the codecs returns.

use dyno_core::{AnswerRow, AnswerTable, Discard};
use dyno_wire::Names;
use dyno_wire::mysql::auth::PublicKey;
use dyno_wire::mysql::handshake::Greeting;
use dyno_wire::mysql::{Answer, AnswerStep, Definitions, Encoding, PrepareAnswer, ServerError};
use dyno_wire::postgres::frame::{next_frame, tag};
use dyno_wire::postgres::row::data_row;
use dyno_wire::postgres::scram::{ChannelBinding, ClientFirst};
use dyno_wire::postgres::types::ValueFormat;
use dyno_wire::postgres::{backend, frame};

/// Greetings, error packets and public keys.
pub(super) fn mysql_login(bytes: &[u8]) {
    let _ = Greeting::parse(bytes);
    let _ = ServerError::parse(bytes);
    if let Ok(key) = PublicKey::from_pem(bytes) {
        let _ = key.encrypt_password(b"secret", b"12345678901234567890", [7; 20]);
    }
}

/// Answers: the first byte chooses capabilities, encoding and where the bytes are cut.
pub(super) fn mysql_answer(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let has_bit = |number: u8| choice & (1 << number) != 0;
    let sequence = bytes.get(3).copied().unwrap_or(0);
    let encoding = if has_bit(2) { Encoding::Binary } else { Encoding::Text };
    let mut answer = Answer::new(has_bit(0), has_bit(1));
    answer.begin(encoding, sequence);
    let (mut start, mut columns) = (0, Definitions::default());
    for end in [bytes.len() * usize::from(choice >> 3) / 31, bytes.len()] {
        match answer.scan(&bytes[start..end], &mut columns, &mut AnswerTable::default()) {
            Ok((taken, AnswerStep::More)) => start += taken,
            _ => break,
        }
    }
    answer.begin(encoding, sequence);
    let scanned = answer.scan(bytes, &mut columns, &mut Discard);
    if let Some(executed) = answer.plain(bytes, sequence, None, &mut Discard) {
        assert_eq!(scanned, Ok((bytes.len(), AnswerStep::Done(executed))));
    }
    let _ = PrepareAnswer::new(has_bit(0), sequence).scan(bytes);
}

/// A stream of messages.
pub(super) fn postgres(stream: &[u8]) {
    let (mut columns, mut cells, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut at = 0;
    while let Ok(Some(frame)) = next_frame(&stream[at..]) {
        assert!(frame.wire_len() >= frame::HEADER_BYTES && at + frame.wire_len() <= stream.len());
        at += frame.wire_len();
        let body = frame.body;
        match frame.tag {
            tag::ROW_DESCRIPTION => {
                if backend::row_description(body, &mut columns, Some(&mut names)).is_ok() {
                    for column in &mut columns {
                        column.format = ValueFormat::for_result(column.type_oid);
                    }
                } else {
                    columns.clear();
                }
            }
            tag::DATA_ROW => {
                if let Ok(row) = data_row(body, &columns, &mut cells) {
                    for index in 0..=row.columns() {
                        let (int, double) = (row.int(index), row.double(index));
                        assert!(!row.is_null(index) || int.is_none() && double.is_none());
                        let _ = (row.bytes(index).map(<[u8]>::len), row.string(index));
                    }
                }
            }
            tag::ERROR | tag::NOTICE => {
                let _ = backend::report(body);
            }
            tag::AUTHENTICATION => match backend::authentication(body) {
                // The claimed number of iterations is real work, so large ones are left out.
                Ok(backend::Authentication::SaslContinue(message))
                    if message.len() < 60
                        && !message.windows(5).any(|five| five.iter().all(u8::is_ascii_digit)) =>
                {
                    let first = ClientFirst::new("u", &[7; 18], ChannelBinding::Impossible);
                    let _ = first.server_first(message).map(|it| it.answer("password"));
                }
                _ => {}
            },
            tag::BACKEND_KEY => {
                let _ = backend::backend_key(body);
            }
            tag::PARAMETER_STATUS => {
                let _ = backend::parameter_status(body);
            }
            tag::COMMAND_COMPLETE => {
                let _ = backend::rows_changed(body, false);
            }
            tag::READY => {
                let _ = backend::ready(body);
            }
            _ => {}
        }
    }
}
