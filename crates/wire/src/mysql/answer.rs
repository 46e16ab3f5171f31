//! Scans answers: result sets, OK, errors, requests for a file, also several in a row.

use super::{
    Malformed, Scanned, ServerError,
    packet::{
        ERROR, FULL_PACKET_BYTES, Framed, Framing, HEADER_BYTES, PROGRESS_REPORT, PacketHeader,
        PacketReader,
    },
    row::{
        BinaryRow, CellSpan, Definitions, MysqlColumn, TextRow, kept_joined_row,
        read_kept_binary_row, read_kept_text_row, scan_binary_row, scan_text_row,
    },
};
use dyno_core::{Executed, Rows};

pub const STATUS_IN_TRANSACTION: u16 = 0x0001;
pub const STATUS_MORE_RESULTS: u16 = 0x0008;
pub const STATUS_NO_BACKSLASH_ESCAPES: u16 = 0x0200;

/// `Text`: answers to COM_QUERY. `Binary`: answers to COM_STMT_EXECUTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Text,
    Binary,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerStep {
    More,
    Done(Executed),
    Failed(ServerError),
    /// The server asks for this file; the answer continues after packets from [`Answer::next_sequence`] on, the last of
    /// them empty.
    FileRequest(Vec<u8>),
}

/// Servers allow no more.
const MAX_COLUMNS: u64 = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Columns(u64),
    ColumnsEnd,
    Rows,
}

/// Scans the answers of a session piece by piece as they arrive. Allocates only while its scratch space grows.
#[derive(Debug)]
pub struct Answer {
    framing: Framing,
    state: State,
}

/// Without the framing, which a payload borrows.
#[derive(Debug)]
struct State {
    deprecate_eof: bool,
    cache_metadata: bool,
    encoding: Encoding,
    phase: Phase,
    /// Outcome of all results of the answer.
    executed: Executed,
    /// Rows of the results before the current one.
    earlier_rows: u64,
    warnings: u32,
    status: u16,
    /// Missing bytes of an unwanted row.
    skip_bytes: usize,
    /// Set if that row continues in the next packet.
    skip_continues: bool,
    spans: Vec<CellSpan>,
}

impl Answer {
    pub fn new(deprecate_eof: bool, cache_metadata: bool) -> Self {
        let state = State {
            deprecate_eof,
            cache_metadata,
            encoding: Encoding::Text,
            phase: Phase::Head,
            executed: Executed::default(),
            earlier_rows: 0,
            warnings: 0,
            status: 0,
            skip_bytes: 0,
            skip_continues: false,
            spans: Vec::new(),
        };
        Answer { framing: Framing::default(), state }
    }

    /// Packets may have any number from now on, as on compressed connections: [`Framing::allow_any_sequence`].
    pub fn allow_any_sequence(&mut self) {
        self.framing.allow_any_sequence();
    }

    /// Begins an answer whose first packet has this sequence number.
    #[inline]
    pub fn begin(&mut self, encoding: Encoding, sequence: u8) {
        self.framing.expect(sequence);
        self.state.encoding = encoding;
        self.state.phase = Phase::Head;
        self.state.executed = Executed::default();
        self.state.earlier_rows = 0;
        self.state.warnings = 0;
        self.state.skip_bytes = 0;
        self.state.skip_continues = false;
    }

    /// The next sequence number, in either direction.
    pub fn next_sequence(&self) -> u8 {
        self.framing.next_sequence()
    }

    /// Continues with this sequence number, after a file was sent.
    pub fn continue_at(&mut self, sequence: u8) {
        self.framing.expect(sequence);
    }

    /// Number of warnings of the last statement.
    pub fn warnings(&self) -> u32 {
        self.state.warnings
    }

    /// Sets the server's status before its first answer.
    pub fn set_status(&mut self, status: u16) {
        self.state.status = status;
    }

    /// Status flags of the last packet that had some.
    pub fn status(&self) -> u16 {
        self.state.status
    }

    /// Reads `received` as one whole answer to COM_STMT_EXECUTE whose first packet has this sequence number: OK, or a
    /// result set whose rows are only counted, or kept as they come. `None` for anything else, which has to be scanned
    /// from [`Answer::begin`] on; then `rows` has got nothing. `definitions` of the statement are needed to keep rows.
    #[inline]
    pub fn plain<R: Rows>(
        &mut self,
        received: &[u8],
        sequence: u8,
        mut definitions: Option<&mut Definitions>,
        rows: &mut R,
    ) -> Option<Executed> {
        let state = &mut self.state;
        let allows_any_sequence = self.framing.is_any_sequence();
        if !state.deprecate_eof || (R::WANTED || R::DESCRIBED) && !R::KEPT {
            return None;
        }
        let mut packets = Packets { rest: received, sequence, allows_any_sequence };
        let head = packets.next()?;
        let mut executed = Executed::default();
        let mut kept_bytes: &[u8] = &[];
        let end = match *head {
            [0, ..] => head,
            [columns @ 0..=0xfa, ref flags @ ..] => {
                // Columns that come once only are kept by the other way.
                let definition_count = match (state.cache_metadata, flags) {
                    (true, [0, ..]) => 0,
                    (false, _) => columns,
                    _ => return None,
                };
                if R::KEPT {
                    packets.definitions(definitions.as_deref_mut()?, columns, definition_count)?;
                } else {
                    for _ in 0..definition_count {
                        packets.next_definition()?;
                    }
                }
                executed.has_rows = true;
                let begin = packets.rest;
                let (rows, end) = packets.rows()?;
                executed.rows = rows;
                if R::KEPT {
                    kept_bytes =
                        &begin[..begin.len() - packets.rest.len() - HEADER_BYTES - end.len()];
                }
                end
            }
            // An error, a request for a file, hundreds of columns.
            _ => return None,
        };
        if end[0] == 0xff || !packets.rest.is_empty() {
            return None;
        }
        let ok = OkPacket::read(end).ok().filter(|ok| ok.status & STATUS_MORE_RESULTS == 0)?;
        state.status = ok.status;
        state.warnings = ok.warnings.into();
        if !executed.has_rows {
            executed.affected = ok.affected;
        }
        if R::KEPT && executed.has_rows {
            state.encoding = Encoding::Binary;
            state.describe(definitions?, rows);
            rows.kept_rows(kept_bytes, executed.rows as usize);
        }
        if R::DESCRIBED {
            rows.finish_statement(executed);
        }
        Some(executed)
    }

    /// Scans received bytes; the first number counts the consumed ones. `definitions` belongs to the statement (or to
    /// the session, for text) and takes the column definitions that the server sends.
    #[inline]
    pub fn scan<R: Rows>(
        &mut self,
        bytes: &[u8],
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> Scanned<(usize, AnswerStep)> {
        let mut consumed = 0;
        loop {
            if !R::WANTED && self.state.phase == Phase::Rows && !self.framing.is_joining() {
                consumed += self.state.skip_rows(&mut self.framing, &bytes[consumed..])?;
                if self.state.skip_bytes > 0 || self.state.skip_continues {
                    return Ok((consumed, AnswerStep::More));
                }
            } else if R::KEPT && self.state.phase == Phase::Rows && !self.framing.is_joining() {
                consumed += self.state.keep_rows(&mut self.framing, &bytes[consumed..], rows)?;
            }
            match self.framing.next_payload(&bytes[consumed..])? {
                Framed::Partial(more) => {
                    if self.framing.is_joining() && self.state.phase != Phase::Rows {
                        return Err(Malformed(
                            "something other than a row is longer than a packet",
                        ));
                    }
                    return Ok((consumed + more, AnswerStep::More));
                }
                Framed::Payload(payload, more) => {
                    consumed += more;
                    if let Some(step) = self.state.payload(payload, definitions, rows)? {
                        return Ok((consumed, step));
                    }
                }
            }
        }
    }
}

impl State {
    /// Takes one payload; returns a step when the caller has to act.
    #[inline]
    fn payload<R: Rows>(
        &mut self,
        payload: &[u8],
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> Scanned<Option<AnswerStep>> {
        let Some(&first) = payload.first() else {
            return Err(Malformed("an answer has an empty packet"));
        };
        if first == ERROR {
            return parse_failure(payload);
        }
        match self.phase {
            Phase::Head => match first {
                0 => {
                    let affected = self.read_ok(payload)?;
                    self.executed.affected = self.executed.affected.saturating_add(affected);
                    if R::DESCRIBED {
                        rows.finish_statement(Executed { affected, ..Executed::default() });
                    }
                    return Ok(self.end_of_result());
                }
                0xfb => return Ok(Some(AnswerStep::FileRequest(payload[1..].to_vec()))),
                _ => self.read_head(payload, definitions, rows)?,
            },
            Phase::Columns(left) => {
                if self.keeps_columns::<R>() {
                    definitions.push(payload, self.keeps_names::<R>())?;
                }
                self.phase = self.after_column(left);
                if left <= 1 {
                    self.describe(definitions, rows);
                }
            }
            Phase::ColumnsEnd if first == 0xfe => self.phase = Phase::Rows,
            Phase::ColumnsEnd => return Err(Malformed("column definitions lack their end")),
            Phase::Rows if ends_rows(first, payload.len()) => {
                self.read_end_of_rows(payload)?;
                if R::DESCRIBED {
                    let rows_of_it = self.executed.rows - self.earlier_rows;
                    rows.finish_statement(Executed {
                        has_rows: true,
                        rows: rows_of_it,
                        affected: 0,
                    });
                }
                return Ok(self.end_of_result());
            }
            Phase::Rows => {
                self.executed.rows += 1;
                if R::WANTED {
                    self.deliver(payload, &definitions.columns, rows)?;
                }
            }
        }
        Ok(None)
    }

    /// Reads the number of columns at the start of a result set.
    #[inline]
    fn read_head<R: Rows>(
        &mut self,
        payload: &[u8],
        definitions: &mut Definitions,
        rows: &mut R,
    ) -> Scanned<()> {
        let mut reader = PacketReader::new(payload);
        let count = reader.lenenc()?;
        if count > MAX_COLUMNS {
            return Err(Malformed("a result set has more columns than the protocol allows"));
        }
        self.executed.has_rows = true;
        self.earlier_rows = self.executed.rows;
        // If caching was agreed on, MariaDB says whether definitions follow.
        if self.cache_metadata && reader.u8()? == 0 {
            if (R::WANTED || R::DESCRIBED) && definitions.columns.len() as u64 != count {
                return Err(Malformed("a result set lacks column definitions never sent before"));
            }
            self.phase = if self.deprecate_eof { Phase::Rows } else { Phase::ColumnsEnd };
            self.describe(definitions, rows);
            return Ok(());
        }
        if self.keeps_columns::<R>() {
            definitions.clear();
        }
        self.phase = Phase::Columns(count);
        Ok(())
    }

    /// A result set begins.
    #[inline]
    fn describe<R: Rows>(&self, definitions: &Definitions, rows: &mut R) {
        if R::DESCRIBED {
            rows.columns(&definitions.names);
        }
        if R::KEPT {
            let read = match self.encoding {
                Encoding::Text => read_kept_text_row,
                Encoding::Binary => read_kept_binary_row,
            };
            rows.kept_columns(definitions.columns.iter().map(|column| column.to_kept()), read);
        }
    }

    /// Returns true if column definitions must be read, to decode rows now or, if the server sends them only once,
    /// later.
    #[inline]
    fn keeps_columns<R: Rows>(&self) -> bool {
        R::WANTED || R::DESCRIBED || self.cache_metadata
    }

    /// Returns true if their names are kept too: definitions that are sent only once may be wanted later.
    #[inline]
    fn keeps_names<R: Rows>(&self) -> bool {
        R::DESCRIBED || (self.cache_metadata && self.encoding == Encoding::Binary)
    }

    #[inline]
    fn after_column(&self, left: u64) -> Phase {
        match (left, self.deprecate_eof) {
            (2.., _) => Phase::Columns(left - 1),
            (_, true) => Phase::Rows,
            (_, false) => Phase::ColumnsEnd,
        }
    }

    /// Reads an OK packet; returns the number of changed rows.
    #[inline]
    fn read_ok(&mut self, payload: &[u8]) -> Scanned<u64> {
        let ok = OkPacket::read(payload)?;
        self.status = ok.status;
        self.warnings = self.warnings.saturating_add(u32::from(ok.warnings));
        Ok(ok.affected)
    }

    #[inline]
    fn read_end_of_rows(&mut self, payload: &[u8]) -> Scanned<()> {
        if self.deprecate_eof {
            return self.read_ok(payload).map(|_| ());
        }
        let mut reader = PacketReader::new(&payload[1..]);
        self.warnings = self.warnings.saturating_add(u32::from(reader.u16()?));
        self.status = reader.u16()?;
        Ok(())
    }

    #[inline]
    fn end_of_result(&mut self) -> Option<AnswerStep> {
        if self.status & STATUS_MORE_RESULTS != 0 {
            self.phase = Phase::Head;
            return None;
        }
        Some(AnswerStep::Done(self.executed))
    }

    /// Hands one row to `rows`.
    #[inline]
    fn deliver<R: Rows>(
        &mut self,
        payload: &[u8],
        columns: &[MysqlColumn],
        rows: &mut R,
    ) -> Scanned<()> {
        match self.encoding {
            _ if R::KEPT => rows.kept_rows(&kept_joined_row(payload), 1),
            Encoding::Text => {
                scan_text_row(payload, columns.len(), &mut self.spans)?;
                rows.row(&TextRow { payload, spans: &self.spans });
            }
            Encoding::Binary => {
                scan_binary_row(payload, columns, &mut self.spans)?;
                rows.row(&BinaryRow { payload, spans: &self.spans, columns });
            }
        }
        Ok(())
    }

    /// Hands on the rows that are wholly there.
    #[inline]
    fn keep_rows<R: Rows>(
        &mut self,
        framing: &mut Framing,
        bytes: &[u8],
        rows: &mut R,
    ) -> Scanned<usize> {
        let (mut at, mut count) = (0, 0);
        while let Some(header) = PacketHeader::read(&bytes[at..]) {
            let begin = at + HEADER_BYTES;
            let Some(row) = bytes.get(begin..begin + header.length) else { break };
            let is_row = row.first().is_some_and(|&first| !ends_rows(first, row.len()));
            if !is_row || row.len() == FULL_PACKET_BYTES {
                break;
            }
            framing.advance(header.sequence)?;
            count += 1;
            at = begin + row.len();
        }
        self.executed.rows += count as u64;
        rows.kept_rows(&bytes[..at], count);
        Ok(at)
    }

    /// Skips rows that are only counted, by their headers and first bytes; their other bytes may arrive later.
    #[inline]
    fn skip_rows(&mut self, framing: &mut Framing, bytes: &[u8]) -> Scanned<usize> {
        let mut at = 0;
        loop {
            let skipped = self.skip_bytes.min(bytes.len() - at);
            self.skip_bytes -= skipped;
            at += skipped;
            let Some(header) = PacketHeader::read(&bytes[at..]) else { return Ok(at) };
            if !self.skip_continues {
                match bytes.get(at + HEADER_BYTES) {
                    Some(&first) if header.length > 0 && !ends_rows(first, header.length) => {}
                    _ => return Ok(at),
                }
                self.executed.rows += 1;
            }
            framing.advance(header.sequence)?;
            self.skip_continues = header.length == FULL_PACKET_BYTES;
            self.skip_bytes = header.length;
            at += HEADER_BYTES;
        }
    }
}

/// OK, also at the end of rows.
struct OkPacket {
    affected: u64,
    status: u16,
    warnings: u16,
}

impl OkPacket {
    /// Reads the packet that ends a statement without rows.
    #[inline]
    fn read(payload: &[u8]) -> Scanned<Self> {
        // Most of them have small numbers.
        if let [_, affected @ 0..=0xfa, 0..=0xfa, a, b, c, d, ..] = *payload {
            let (status, warnings) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
            return Ok(OkPacket { affected: affected.into(), status, warnings });
        }
        let mut reader = PacketReader::new(payload.get(1..).unwrap_or_default());
        let affected = reader.lenenc()?;
        let _last_insert_id = reader.lenenc()?;
        Ok(OkPacket { affected, status: reader.u16()?, warnings: reader.u16()? })
    }
}

/// Whole packets, one after the other.
struct Packets<'a> {
    rest: &'a [u8],
    sequence: u8,
    allows_any_sequence: bool,
}

impl<'a> Packets<'a> {
    #[inline]
    fn next_definition(&mut self) -> Option<&'a [u8]> {
        self.next().filter(|payload| payload.first().is_some_and(|first| *first != 0xff))
    }

    /// The definitions of all columns; `known` ones stay if none are sent.
    fn definitions(&mut self, known: &mut Definitions, columns: u8, sent: u8) -> Option<()> {
        if sent > 0 {
            known.clear();
        }
        for _ in 0..sent {
            known.push(self.next_definition()?, true).ok()?;
        }
        (known.columns.len() == usize::from(columns)).then_some(())
    }

    /// Number of rows that come, and the packet behind them.
    #[inline(always)]
    fn rows(&mut self) -> Option<(u64, &'a [u8])> {
        let mut rows = 0;
        loop {
            let payload = self.next()?;
            if ends_rows(*payload.first()?, payload.len()) {
                return Some((rows, payload));
            }
            rows += 1;
        }
    }

    /// `None` when it is not there as a whole, continues in the next one, or has a wrong number.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (header, rest) = self.rest.split_first_chunk::<HEADER_BYTES>()?;
        let header = u32::from_le_bytes(*header);
        let (length, sequence) = (header as usize & FULL_PACKET_BYTES, (header >> 24) as u8);
        if length == FULL_PACKET_BYTES || (sequence != self.sequence && !self.allows_any_sequence) {
            return None;
        }
        let (payload, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        self.sequence = sequence.wrapping_add(1);
        Some(payload)
    }
}

/// Returns true for the end of rows: 0xff is an error, and 0xfe starts a row only when its first value is longer than a
/// packet.
#[inline]
fn ends_rows(first: u8, length: usize) -> bool {
    first >= 0xfe && (first == 0xff || length < FULL_PACKET_BYTES)
}

#[cold]
fn parse_failure(payload: &[u8]) -> Scanned<Option<AnswerStep>> {
    let error = ServerError::parse(payload)?;
    Ok((error.errno != PROGRESS_REPORT).then_some(AnswerStep::Failed(error)))
}
