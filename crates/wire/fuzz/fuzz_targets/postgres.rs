//! Whatever a server sends, every reader of the PostgreSQL codec returns.
#![no_main]

use dyno_core::Row;
use dyno_wire::names::Names;
use dyno_wire::postgres::frame::{next_frame, tag};
use dyno_wire::postgres::row::data_row;
use dyno_wire::postgres::scram::{ChannelBinding, ClientFirst};
use dyno_wire::postgres::types::Format;
use dyno_wire::postgres::{backend, frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| {
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
                        column.format = Format::for_result(column.type_oid);
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
            tag::ERROR | tag::NOTICE => drop(backend::report(body)),
            tag::AUTHENTICATION => match backend::authentication(body) {
                // The claimed number of iterations is real work, so large ones are left out.
                Ok(backend::Authentication::SaslContinue(message)) if message.len() < 60 => {
                    if !message.windows(5).any(|five| five.iter().all(u8::is_ascii_digit)) {
                        let first = ClientFirst::new("u", &[7; 18], ChannelBinding::Impossible);
                        let _ = first.server_first(message).map(|it| it.answer("password"));
                    }
                }
                _ => {}
            },
            tag::BACKEND_KEY => drop(backend::backend_key(body)),
            tag::PARAMETER_STATUS => drop(backend::parameter_status(body)),
            tag::NEGOTIATE => drop(backend::negotiate(body)),
            tag::PARAMETER_DESCRIPTION => drop(backend::parameter_description(body)),
            tag::COMMAND_COMPLETE => drop(backend::rows_changed(body, false)),
            tag::READY => drop(backend::ready(body)),
            _ => {}
        }
    }
});
