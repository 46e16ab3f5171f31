//! `LOAD DATA LOCAL INFILE` and `COPY ... FROM STDIN`: the format of the rows.

use super::lexer::{Parsed, Span, Token};
use super::names::{table_columns, words};
use super::parser::{Parser, integer};
use super::plan::{Format, Load};
use crate::counters::Kind;

// Options of COPY and LOAD DATA.
words! { pub(crate) enum Word, option:
    Local = b"local", Infile = b"infile", Table = b"table", Lines = b"lines",
    Fields = b"fields" | b"columns", Terminated = b"terminated", Enclosed = b"enclosed",
    Escaped = b"escaped", Ignore = b"ignore", Character = b"character", Set = b"set", From = b"from",
    Stdin = b"stdin", Csv = b"csv", Binary = b"binary", Delimiter = b"delimiter", Header = b"header",
}

impl Parser<'_, '_> {
    /// `LOAD DATA LOCAL INFILE 'f' ... INTO TABLE t [FIELDS ...] [LINES ...] [(columns)]`.
    pub(super) fn load_data(&mut self) -> Parsed<()> {
        self.plan.kind = Kind::Load;
        let (mut field, mut line, mut escape, mut quote) = (b'\t', b'\n', b'\\', 0);
        let mut load = Load { format: Format::Binary, columns: 0, file: Span::default(), skip: 0 };
        let (mut local, mut lines) = (false, false);
        let mut token = self.next()?;
        loop {
            match token {
                Token::End | Token::Symbol(b';') => break,
                Token::Symbol(b'(') if load.columns == 0 => {
                    load.columns = self.name_list()?.len() as u32
                }
                Token::Word => match option(self.lexer.text()) {
                    Word::Local => local = true,
                    Word::Infile => load.file = self.expect_text()?,
                    Word::Table => self.plan.table = self.expect_name()?,
                    Word::Fields => lines = false,
                    Word::Lines => lines = true,
                    Word::Terminated if lines => line = self.by_mark()?,
                    Word::Terminated => field = self.by_mark()?,
                    Word::Enclosed => quote = self.by_mark()?,
                    Word::Escaped => escape = self.by_mark()?,
                    Word::Ignore => {
                        token = self.next()?;
                        if token != Token::Number {
                            continue;
                        }
                        load.skip = integer(self.lexer.text()).unwrap_or(0).unsigned_abs();
                    }
                    // The SET of CHARACTER SET assigns nothing.
                    Word::Character => {
                        self.next()?;
                    }
                    Word::Set => {
                        token = self.next()?;
                        self.scan(token)?;
                        break;
                    }
                    _ => {}
                },
                _ => {}
            }
            token = self.next()?;
        }
        if !local || load.file.is_empty() || self.plan.table.is_empty() {
            return Err("LOAD DATA needs LOCAL INFILE 'file' INTO TABLE name");
        }
        load.format = Format::Text { field, line, escape, quote };
        self.set_load(load);
        Ok(())
    }

    /// `COPY t [(columns)] FROM STDIN [[WITH] (options)]`.
    pub(super) fn copy(&mut self) -> Parsed<()> {
        self.plan.kind = Kind::Load;
        self.plan.table = self.expect_name()?;
        let mut columns = 0;
        let mut token = self.next()?;
        while token == Token::Symbol(b'.') {
            self.plan.table = self.expect_name()?;
            token = self.next()?;
        }
        if token == Token::Symbol(b'(') {
            columns = self.name_list()?.len() as u32;
            token = self.next()?;
        }
        let from = token == Token::Word && option(self.lexer.text()) == Word::From;
        let source = self.next()?;
        if !from || source != Token::Word || option(self.lexer.text()) != Word::Stdin {
            return Err("only COPY ... FROM STDIN is answered");
        }
        let mut load = Load { format: Format::Binary, columns, file: Span::default(), skip: 0 };
        load.format = self.copy_options(&mut load.skip)?;
        self.set_load(load);
        Ok(())
    }

    fn copy_options(&mut self, skip: &mut u64) -> Parsed<Format> {
        let (mut csv, mut binary, mut field) = (false, false, None);
        loop {
            match self.next()? {
                Token::End | Token::Symbol(b';') => break,
                Token::Word => match option(self.lexer.text()) {
                    Word::Csv => csv = true,
                    Word::Binary => binary = true,
                    Word::Header => *skip = 1,
                    Word::Delimiter => {
                        let text = self.expect_text()?;
                        field = Some(one_byte(text.of(self.sql))?);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        if binary {
            return Ok(Format::Binary);
        }
        let (mark, escape, quote) = if csv { (b',', 0, b'"') } else { (b'\t', b'\\', 0) };
        Ok(Format::Text { field: field.unwrap_or(mark), line: b'\n', escape, quote })
    }

    fn set_load(&mut self, mut load: Load) {
        if load.columns == 0 {
            let known = table_columns(self.plan.table.of(self.sql));
            load.columns = known.map_or(0, |columns| columns.len() as u32);
        }
        self.plan.load = Some(load);
    }

    fn expect_text(&mut self) -> Parsed<Span> {
        match self.next()? {
            Token::Text => Ok(self.lexer.span),
            _ => Err("a quoted text is missing"),
        }
    }

    fn expect_name(&mut self) -> Parsed<Span> {
        match self.next()? {
            Token::Word => Ok(self.lexer.span),
            _ => Err("a table name is missing"),
        }
    }

    /// `BY 'x'`.
    fn by_mark(&mut self) -> Parsed<u8> {
        self.next()?;
        let text = self.expect_text()?;
        one_byte(text.of(self.sql))
    }
}

/// A delimiter as written in a literal; 0 if it is empty.
fn one_byte(literal: &[u8]) -> Parsed<u8> {
    match literal {
        [] => Ok(0),
        [byte] | [b'\\', byte @ (b'\\' | b'\'' | b'"')] => Ok(*byte),
        [b'\\', b't'] => Ok(b'\t'),
        [b'\\', b'n'] => Ok(b'\n'),
        [b'\\', b'r'] => Ok(b'\r'),
        _ => Err("a delimiter has more than one byte"),
    }
}
