//! The select list: which columns a result has and what they hold.

use super::lexer::{Dialect, Parsed, Span, Token};
use super::names::{
    Keyword, column_value, function_value, is_aggregate, table_columns, variable_value,
};
use super::parser::{Parser, integer};
use super::plan::{Column, Name, Rows, Value};

struct Item {
    /// From the item's first byte to its last.
    whole: Span,
    /// The identifier at its head: a column, or the function before `(`.
    head: Option<Span>,
    /// The name given by AS, or just behind the expression.
    alias: Option<Span>,
    value: Value,
    is_function: bool,
    is_star: bool,
}

impl Parser<'_, '_> {
    /// Reads the list behind SELECT or RETURNING; returns the token that ended it.
    pub(super) fn items(&mut self) -> Parsed<Token> {
        let mut token = self.next()?;
        while self.keyword_of(token) == Some(Keyword::Distinct) {
            token = self.next()?;
        }
        loop {
            let (item, end) = self.item(token)?;
            self.add(&item)?;
            if end != Token::Symbol(b',') {
                return Ok(end);
            }
            token = self.next()?;
        }
    }

    fn item(&mut self, first: Token) -> Parsed<(Item, Token)> {
        let mut item = self.begin_item(first)?;
        let mut depth = u32::from(first == Token::Symbol(b'('));
        // True while only `a.b.c` was read: then `(` makes it a call and another word an alias.
        let mut at_head = first == Token::Word;
        let mut previous = first;
        loop {
            item.whole.end = self.lexer.span.end;
            let token = self.next()?;
            let word = self.keyword_of(token);
            match token {
                Token::End | Token::Symbol(b',' | b';' | b')') if depth == 0 => {
                    return Ok((item, token));
                }
                Token::End => return Err("a parenthesis is not closed"),
                Token::Symbol(b'(') => {
                    if at_head && depth == 0 {
                        self.set_function(&mut item, b"");
                    }
                    depth += 1;
                }
                Token::Symbol(b')') => depth -= 1,
                Token::Text if item.is_function && depth == 1 && at_head => {
                    self.set_function(&mut item, self.lexer.text());
                }
                Token::Word if item.is_function && depth == 1 && at_head => {
                    if let (Value::Sum(_), decimal @ Value::Decimal(..)) =
                        (item.value, column_value(self.lexer.text()))
                    {
                        item.value = decimal;
                    }
                }
                Token::Symbol(b'*') if depth == 0 && previous == Token::Symbol(b'.') => {
                    item.is_star = true;
                }
                Token::Word if depth == 0 => match word {
                    Some(
                        Keyword::From
                        | Keyword::Clause
                        | Keyword::Order
                        | Keyword::Limit
                        | Keyword::Into,
                    ) => {
                        return Ok((item, token));
                    }
                    _ if previous == Token::Symbol(b'.') && at_head => self.set_head(&mut item),
                    Some(Keyword::As) => item.alias = None,
                    _ if ends_operand(previous) => item.alias = Some(self.lexer.span),
                    _ => {}
                },
                _ => {}
            }
            at_head &= matches!(token, Token::Word | Token::Symbol(b'.' | b'(')) && depth <= 1;
            previous = token;
        }
    }

    fn begin_item(&mut self, first: Token) -> Parsed<Item> {
        let mut item = Item {
            whole: self.lexer.span,
            head: None,
            alias: None,
            value: Value::Int(1),
            is_function: false,
            is_star: false,
        };
        match first {
            Token::Number => match integer(self.lexer.text()) {
                Some(number) => {
                    item.value = i32::try_from(number).map_or(Value::Big(number), Value::Int);
                }
                None => item.value = Value::Literal(self.lexer.span),
            },
            Token::Text => item.value = Value::Literal(self.lexer.span),
            Token::Symbol(b'*') => item.is_star = true,
            Token::Word if self.lexer.text().starts_with(b"@") => {
                item.value = variable_value(self.lexer.text(), self.lexer.dialect());
            }
            Token::Word => self.set_head(&mut item),
            Token::End | Token::Symbol(b',' | b';' | b')') => {
                return Err("the select list has a gap");
            }
            Token::Param(_) | Token::Symbol(_) => {}
        }
        Ok(item)
    }

    fn set_head(&self, item: &mut Item) {
        item.head = Some(self.lexer.span);
        item.value = column_value(self.lexer.text());
    }

    fn set_function(&mut self, item: &mut Item, argument: &[u8]) {
        let name = item.head.unwrap_or_default().of(self.sql);
        item.is_function = true;
        item.value = function_value(name, argument, self.lexer.dialect());
        self.aggregated |= is_aggregate(name);
    }

    fn add(&mut self, item: &Item) -> Parsed<()> {
        if item.is_star {
            self.star.get_or_insert(self.plan.columns.len());
            return Ok(());
        }
        let name = match (item.alias, item.head) {
            (Some(alias), _) => Name::Given(alias),
            (None, Some(head)) if !item.is_function => Name::Given(head),
            (None, Some(head)) if self.lexer.dialect() == Dialect::Postgres => Name::Given(head),
            (None, None) if self.lexer.dialect() == Dialect::Postgres => Name::Known(b"?column?"),
            _ => Name::Given(item.whole),
        };
        self.column(name, item.value)
    }

    /// Puts the table's columns in the place of `*` and settles the number of rows.
    pub(super) fn finish_select(&mut self) -> Parsed<()> {
        if let Some(at) = self.star {
            let unknown: &[&[u8]] = &[b"1"];
            let names = table_columns(self.plan.table.of(self.sql)).unwrap_or(unknown);
            let columns = names
                .iter()
                .map(|&name| Column { name: Name::Known(name), value: column_value(name) });
            self.plan.columns.splice(at..at, columns);
        }
        if self.aggregated {
            self.plan.rows = Rows::Count(1);
        }
        Ok(())
    }
}

/// Whether a word right behind this token is an alias.
fn ends_operand(token: Token) -> bool {
    matches!(token, Token::Word | Token::Number | Token::Text | Token::Param(_))
        || token == Token::Symbol(b')')
}
