//! One statement in, one [`Plan`] out.

use super::lexer::{Dialect, Lexer, Parsed, Span, Token};
use super::names::{Keyword, TABLE, column_parameter, keyword, table_columns, variable_value};
use super::plan::{Column, Name, Operand, Plan, Rows, Value};
use super::tpc;
use crate::counters::Kind;

pub(super) struct Parser<'a, 'p> {
    pub(super) sql: &'a [u8],
    pub(super) lexer: Lexer<'a>,
    pub(super) plan: &'p mut Plan,
    /// The last identifier, which a following parameter belongs to.
    beside: Span,
    /// Position of `*` in the select list.
    pub(super) star: Option<usize>,
    /// The select list has an aggregate and no GROUP BY was seen.
    pub(super) aggregated: bool,
}

/// Reads the statement of `sql` that begins at `start` into `plan`.
pub(crate) fn parse(sql: &[u8], start: usize, dialect: Dialect, plan: &mut Plan) -> Parsed<()> {
    plan.clear();
    let lexer = Lexer::new(sql, start, dialect);
    let mut parser =
        Parser { sql, lexer, plan, beside: Span::default(), star: None, aggregated: false };
    parser.statement()?;
    let (params, end) = (parser.lexer.params, parser.lexer.position());
    plan.params.resize(usize::from(params), None);
    plan.end = end;
    Ok(())
}

impl Parser<'_, '_> {
    pub(super) fn next(&mut self) -> Parsed<Token> {
        let token = self.lexer.next()?;
        if let Token::Param(index) = token {
            let known = column_parameter(self.beside.of(self.sql));
            self.note_param(index, known);
        }
        Ok(token)
    }

    /// Remembers the column beside a parameter, unless an earlier use had one.
    fn note_param(&mut self, index: u16, value: Option<Value>) {
        let index = usize::from(index);
        if self.plan.params.len() <= index {
            self.plan.params.resize(index + 1, None);
        }
        let known = &mut self.plan.params[index];
        *known = known.or(value);
    }

    pub(super) fn keyword_of(&self, token: Token) -> Option<Keyword> {
        (token == Token::Word).then(|| keyword(self.lexer.text()))
    }

    fn statement(&mut self) -> Parsed<()> {
        let mut first = self.next()?;
        while first == Token::Symbol(b';') {
            first = self.next()?;
        }
        if first == Token::End {
            return Ok(());
        }
        self.plan.tag[0] = self.lexer.span;
        let Some(mut verb) = self.keyword_of(first) else {
            self.plan.kind = Kind::Other;
            return self.scan(first);
        };
        if verb == Keyword::With {
            verb = self.skip_common_tables()?;
        }
        match verb {
            Keyword::Select => {
                self.plan.kind = Kind::Select;
                let token = self.items()?;
                self.scan(token)?;
                self.finish_select()
            }
            Keyword::Insert | Keyword::Replace => self.insert(),
            Keyword::Update => self.write(Kind::Update),
            Keyword::Delete => self.write(Kind::Delete),
            Keyword::Show => self.show(),
            Keyword::Explain => {
                self.column(Name::Known(b"QUERY PLAN"), Value::Text(b"Result"))?;
                self.rest(Kind::Select)
            }
            Keyword::Load if self.lexer.dialect() == Dialect::Mysql => self.load_data(),
            Keyword::Copy if self.lexer.dialect() == Dialect::Postgres => self.copy(),
            Keyword::Create | Keyword::Drop | Keyword::Alter | Keyword::Truncate => self.ddl(verb),
            Keyword::Begin | Keyword::Start => self.rest(Kind::Begin),
            Keyword::Commit | Keyword::End => self.rest(Kind::Commit),
            Keyword::Rollback => self.rest(Kind::Rollback),
            Keyword::Set => self.rest(Kind::Set),
            Keyword::Use => self.rest(Kind::Use),
            _ => self.rest(Kind::Other),
        }
    }

    fn rest(&mut self, kind: Kind) -> Parsed<()> {
        self.plan.kind = kind;
        let token = self.next()?;
        self.scan(token)
    }

    /// From WITH to the verb of the statement proper.
    fn skip_common_tables(&mut self) -> Parsed<Keyword> {
        let mut depth = 0u32;
        loop {
            let token = self.next()?;
            match token {
                Token::Symbol(b'(') => depth += 1,
                Token::Symbol(b')') => depth = depth.saturating_sub(1),
                Token::End => return Err("WITH is not followed by a statement"),
                Token::Word if depth == 0 => {
                    let verb = keyword(self.lexer.text());
                    if matches!(
                        verb,
                        Keyword::Select | Keyword::Insert | Keyword::Update | Keyword::Delete
                    ) {
                        self.plan.tag[0] = self.lexer.span;
                        return Ok(verb);
                    }
                }
                _ => {}
            }
        }
    }

    fn ddl(&mut self, verb: Keyword) -> Parsed<()> {
        self.plan.kind = Kind::Ddl;
        let token = self.next()?;
        if verb != Keyword::Truncate && token == Token::Word {
            self.plan.tag[1] = self.lexer.span;
        }
        self.scan(token)
    }

    fn write(&mut self, kind: Kind) -> Parsed<()> {
        self.plan.affected = 1;
        self.rest(kind)
    }

    /// `INSERT INTO t [(columns)] VALUES (...), (...) ...`: counts the rows.
    fn insert(&mut self) -> Parsed<()> {
        self.plan.kind = Kind::Insert;
        let mut token = self.next()?;
        loop {
            match (token, self.keyword_of(token)) {
                (Token::Symbol(b'('), _) => self.plan.insert_columns = self.name_list()?,
                (_, Some(Keyword::Values)) => break,
                (_, Some(Keyword::Select | Keyword::Set | Keyword::With)) => {
                    self.plan.affected = 1;
                    token = self.next()?;
                    return self.scan(token);
                }
                (_, Some(Keyword::Other)) => self.plan.table = self.lexer.span,
                (Token::Word | Token::Symbol(b'.'), _) => {}
                _ => return Err("INSERT has neither VALUES nor SELECT"),
            }
            token = self.next()?;
        }
        let token = self.tuples()?;
        self.scan(token)
    }

    /// Names between parentheses, the first of which was read; their memory is that of `insert_columns`.
    pub(super) fn name_list(&mut self) -> Parsed<Vec<Span>> {
        let mut names = std::mem::take(&mut self.plan.insert_columns);
        loop {
            match self.next()? {
                Token::Word => names.push(self.lexer.span),
                Token::Symbol(b',') => {}
                Token::Symbol(b')') => return Ok(names),
                _ => return Err("a column list holds something that is no name"),
            }
        }
    }

    /// The rows behind VALUES; returns the token after them.
    fn tuples(&mut self) -> Parsed<Token> {
        let known = table_columns(self.plan.table.of(self.sql)).unwrap_or_default();
        let mut values = self.plan.insert_columns.len();
        loop {
            if self.next()? != Token::Symbol(b'(') {
                return Err("VALUES is not followed by a row in parentheses");
            }
            let count = self.tuple(known)?;
            if values == 0 {
                values = count;
            }
            if count != values {
                return Err("a row has another number of values than there are columns");
            }
            self.plan.affected += 1;
            let token = self.next()?;
            if token != Token::Symbol(b',') {
                return Ok(token);
            }
        }
    }

    /// One row behind its `(`; returns the number of values.
    fn tuple(&mut self, known: &[&[u8]]) -> Parsed<usize> {
        let (mut depth, mut count) = (0u32, 1usize);
        loop {
            match self.lexer.next()? {
                Token::Symbol(b'(') => depth += 1,
                Token::Symbol(b')') if depth == 0 => return Ok(count),
                Token::Symbol(b')') => depth -= 1,
                Token::Symbol(b',') if depth == 0 => count += 1,
                Token::Symbol(b';') | Token::End => return Err("a row is not closed"),
                Token::Param(index) => {
                    let listed = self.plan.insert_columns.get(count - 1);
                    let name = match listed {
                        Some(name) => name.of(self.sql),
                        None => known.get(count - 1).copied().unwrap_or_default(),
                    };
                    self.note_param(index, column_parameter(name));
                }
                _ => {}
            }
        }
    }

    /// Reads to the end of the statement and picks up the basis of the answer.
    pub(super) fn scan(&mut self, mut token: Token) -> Parsed<()> {
        let mut depth = 0u32;
        loop {
            match token {
                Token::End | Token::Symbol(b';') if depth == 0 => return Ok(()),
                Token::End => return Err("a parenthesis is not closed"),
                Token::Symbol(b'(') => depth += 1,
                Token::Symbol(b')') if depth == 0 => return Err("a parenthesis was never opened"),
                Token::Symbol(b')') => depth -= 1,
                Token::Word => match keyword(self.lexer.text()) {
                    Keyword::Other => self.beside = self.lexer.span,
                    word if depth == 0 => {
                        token = self.clause(word)?;
                        continue;
                    }
                    _ => {}
                },
                Token::Param(_) | Token::Number if depth == 0 => self.note_key(token),
                _ => {}
            }
            token = self.next()?;
        }
    }

    /// A row is there only if its key can be.
    fn note_key(&mut self, token: Token) {
        if self.plan.kind == Kind::Select
            && let Some(last) = tpc::last_key(self.beside.of(self.sql))
        {
            self.plan.rows = Rows::UpTo(self.operand_of(token, false), last);
        }
    }

    /// Behind a keyword outside parentheses; returns the token to go on with.
    fn clause(&mut self, word: Keyword) -> Parsed<Token> {
        match word {
            Keyword::From if self.plan.table.is_empty() => {
                let token = self.next()?;
                if token == Token::Word {
                    self.plan.table = self.lexer.span;
                }
                Ok(token)
            }
            Keyword::Between => {
                let low = self.operand()?;
                let and = self.next()?;
                if self.keyword_of(and) != Some(Keyword::And) {
                    return Ok(and);
                }
                let high = self.operand()?;
                self.plan.rows = Rows::Between(low, high);
                self.next()
            }
            Keyword::In => self.in_list(),
            Keyword::Order => {
                if self.plan.kind == Kind::Select && self.plan.rows == Rows::Count(1) {
                    self.plan.rows = Rows::Count(tpc::rows_in_order(self.plan.table.of(self.sql)));
                }
                self.next()
            }
            Keyword::Limit => self.limit(),
            Keyword::GroupBy => {
                self.aggregated = false;
                self.next()
            }
            Keyword::Returning => {
                self.plan.rows = Rows::Count(self.plan.affected.max(1));
                self.items()
            }
            _ => self.next(),
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let mut token = self.next()?;
        let negative = token == Token::Symbol(b'-');
        if negative {
            token = self.next()?;
        }
        Ok(self.operand_of(token, negative))
    }

    fn operand_of(&self, token: Token, negative: bool) -> Operand {
        match token {
            Token::Param(index) => Operand::Param(index),
            Token::Number => match integer(self.lexer.text()) {
                Some(value) => Operand::Literal(if negative { -value } else { value }),
                None => Operand::Unknown,
            },
            _ => Operand::Unknown,
        }
    }

    /// `LIMIT 3` and MySQL's `LIMIT 10, 3`; a parameter limits nothing.
    fn limit(&mut self) -> Parsed<Token> {
        let mut most = None;
        loop {
            let token = self.next()?;
            match token {
                Token::Number => most = integer(self.lexer.text()),
                Token::Symbol(b',') => {}
                _ => {
                    if let (Rows::Count(count), Some(most)) = (self.plan.rows, most) {
                        self.plan.rows = Rows::Count(count.min(most.unsigned_abs()));
                    }
                    return Ok(token);
                }
            }
        }
    }

    /// `IN (a, b, c)` finds as many rows as it lists values.
    fn in_list(&mut self) -> Parsed<Token> {
        let token = self.next()?;
        if token != Token::Symbol(b'(') {
            return Ok(token);
        }
        let (mut depth, mut count) = (0u32, 1u64);
        loop {
            match self.next()? {
                Token::Symbol(b'(') => depth += 1,
                Token::Symbol(b')') if depth == 0 => break,
                Token::Symbol(b')') => depth -= 1,
                Token::Symbol(b',') if depth == 0 => count += 1,
                Token::Symbol(b';') | Token::End => return Err("a parenthesis is not closed"),
                _ => {}
            }
        }
        self.plan.rows = Rows::Count(count);
        self.next()
    }

    fn show(&mut self) -> Parsed<()> {
        self.plan.kind = Kind::Show;
        let mut token = self.next()?;
        if self.lexer.dialect() == Dialect::Postgres {
            let value = variable_value(self.lexer.text(), Dialect::Postgres);
            self.column(Name::Given(self.lexer.span), value)?;
            return self.scan(token);
        }
        self.plan.rows = Rows::Count(0);
        while token == Token::Word {
            let what = self.lexer.text();
            if what.eq_ignore_ascii_case(b"variables") || what.eq_ignore_ascii_case(b"status") {
                self.column(Name::Known(b"Variable_name"), Value::Text(b""))?;
                self.column(Name::Known(b"Value"), Value::Text(b""))?;
                self.plan.rows = Rows::Variables(Span::default());
            } else if what.eq_ignore_ascii_case(b"tables") {
                self.column(Name::Known(b"Tables_in_sbtest"), Value::Text(TABLE))?;
                self.plan.rows = Rows::Count(1);
            } else if keyword(what) == Keyword::Like {
                let pattern = self.next()?;
                if pattern != Token::Text {
                    return Err("LIKE is not followed by a pattern");
                }
                if matches!(self.plan.rows, Rows::Variables(_)) {
                    self.plan.rows = Rows::Variables(self.lexer.span);
                }
            }
            token = self.next()?;
        }
        if self.plan.columns.is_empty() {
            self.column(Name::Known(b"Result"), Value::Text(b""))?;
        }
        let rows = self.plan.rows;
        self.scan(token)?;
        self.plan.rows = rows;
        Ok(())
    }

    pub(super) fn column(&mut self, name: Name, value: Value) -> Parsed<()> {
        if self.plan.columns.len() >= super::plan::COLUMNS_MAX {
            return Err("a result has more than 64 columns");
        }
        self.plan.columns.push(Column { name, value });
        Ok(())
    }
}

/// A decimal literal without a fraction.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
