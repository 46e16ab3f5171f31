//! Classes of statements: one is read from a read-only node only if its text proves that it changes nothing.
//!
//! Words before an opening parenthesis. Both lists are sorted, in small letters.

use dyno_core::{Dialect, SqlPart, SqlRules};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Read,
    BeginReadOnly,
    End,
    /// Changes the behavior of the session, on each node.
    Both,
    /// Makes something of this session on this node: all later reads stay there.
    Pin,
    Write,
    Other,
}

const WRITES: [&str; 10] =
    ["insert", "update", "delete", "replace", "merge", "truncate", "alter", "drop", "load", "copy"];
/// First words of statements that leave something with the session.
const PINS: [&str; 5] = ["lock", "prepare", "declare", "handler", "listen"];
/// Words that never occur in a plain read.
const NOT_IN_READS: [&str; 7] =
    ["into", "insert", "update", "delete", "merge", "procedure", "outfile"];

/// Classifies a statement by its first words.
pub(super) fn classify(sql: impl AsRef<[u8]>, dialect: Dialect) -> Class {
    let rules = SqlRules { dialect, has_backslash_escapes: true };
    let mut tokens = Tokens { sql: sql.as_ref(), at: 0, rules };
    let class = match tokens.next() {
        Some(Token::Word(word)) => by_first_word(word, &mut tokens),
        Some(mark @ Token::Mark(b'(')) => classify_read(&mut tokens, mark),
        _ => Class::Other,
    };
    // Several statements in one text stay together.
    if tokens.has_more_statements() { Class::Other } else { class }
}

fn is_among(word: &[u8], words: &[&str]) -> bool {
    words.iter().any(|other| is(word, other))
}

fn by_first_word<'a>(word: &'a [u8], tokens: &mut Tokens<'a>) -> Class {
    if is_among(word, &["select", "with", "values", "table"]) {
        classify_read(tokens, Token::Word(word))
    } else if is_among(word, &WRITES) {
        Class::Write
    } else if is_among(word, &["begin", "start"]) {
        classify_begin(tokens)
    } else if is_among(word, &["commit", "rollback", "end", "abort"]) {
        // `ROLLBACK TO SAVEPOINT`, `COMMIT AND CHAIN`.
        let continues = tokens.by_ref().any(|token| token.is_word("to") || token.is_word("and"));
        if continues { Class::Other } else { Class::End }
    } else if is_among(word, &["set"]) {
        classify_set(tokens)
    } else if is_among(word, &["use", "reset", "discard"]) {
        Class::Both
    } else if is_among(word, &["create"]) {
        let mut words = Iterator::take(tokens, 3);
        let is_temporary = words.any(|word| word.is_word("temporary") || word.is_word("temp"));
        if is_temporary { Class::Pin } else { Class::Write }
    } else if is_among(word, &PINS) {
        Class::Pin
    } else {
        Class::Other
    }
}

fn classify_begin(tokens: &mut Tokens<'_>) -> Class {
    let mut is_read = false;
    for token in tokens {
        if is_read && token.is_word("only") {
            return Class::BeginReadOnly;
        }
        is_read = token.is_word("read");
    }
    Class::Other
}

fn classify_set(tokens: &mut Tokens<'_>) -> Class {
    let mut class = Class::Both;
    let mut is_first = true;
    while let Some(token) = tokens.next() {
        let Token::Word(word) = token else { continue };
        if is_first
            && is_among(word, &["transaction", "local", "global", "persist", "persist_only"])
        {
            class = Class::Other;
        }
        is_first = false;
        if is(word, "autocommit") {
            // Without autocommit each statement begins a transaction.
            let stays_on = matches!(tokens.next(), Some(Token::Mark(b'=')))
                && tokens
                    .next()
                    .is_some_and(|value| ["1", "on", "true"].iter().any(|on| value.is_word(on)));
            if !stays_on {
                return Class::Pin;
            }
        }
    }
    class
}

/// Classifies a query by what comes after its first token.
fn classify_read<'a>(tokens: &mut Tokens<'a>, first: Token<'a>) -> Class {
    let mut class = Class::Read;
    let (mut before, mut last) = (Token::Mark(b';'), first);
    while let Some(token) = tokens.next_of_statement() {
        let is_unsafe = match (token, last) {
            (Token::Word(word), _) => last.forbids(word),
            (Token::Mark(b'('), Token::Word(word)) => !is_harmless_call(word, before),
            // Variables of the session, and comments that are executed.
            (Token::Mark(mark), _) => matches!(mark, b'@' | EXECUTED_COMMENT),
        };
        if is_unsafe {
            class = Class::Other;
        }
        if token.is_word("temp") || token.is_word("temporary") {
            return Class::Pin;
        }
        (before, last) = (last, token);
    }
    class
}

/// Returns true if an opening parenthesis after this word calls nothing harmful.
fn is_harmless_call(word: &[u8], before: Token<'_>) -> bool {
    if before == Token::Mark(b'.') || word.is_empty() {
        return false;
    }
    // A name with a list of columns.
    if ["as", "with", "recursive"].iter().any(|word| before.is_word(word)) {
        return true;
    }
    let mut lower = [0; 24];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let lists: [&[&str]; 2] = [&TAKES_PARENTHESIS, &SAFE_FUNCTIONS];
    lists.iter().any(|words| words.binary_search_by(|w| w.as_bytes().cmp(lower)).is_ok())
}

/// Most words differ in length, so inlining saves the call.
#[inline]
fn is(word: &[u8], other: &str) -> bool {
    word.len() == other.len() && word.eq_ignore_ascii_case(other.as_bytes())
}

/// The begin of a comment that MySQL executes.
const EXECUTED_COMMENT: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A word or a number; empty for a text or a name in quotes.
    Word(&'a [u8]),
    Mark(u8),
}

impl Token<'_> {
    fn is_word(self, other: &str) -> bool {
        matches!(self, Token::Word(word) if is(word, other))
    }

    /// Returns true if `word` after this one means that a statement does more than read.
    fn forbids(self, word: &[u8]) -> bool {
        is_among(word, &NOT_IN_READS)
            || self.is_word("for") && is_among(word, &["update", "share", "no", "key"])
            || self.is_word("lock") && is(word, "in")
            || self.is_word("next") && is(word, "value")
    }
}

/// Cuts a text into tokens; unknown bytes are marks.
struct Tokens<'a> {
    sql: &'a [u8],
    at: usize,
    rules: SqlRules,
}

impl<'a> Tokens<'a> {
    /// The next one of the same statement.
    fn next_of_statement(&mut self) -> Option<Token<'a>> {
        self.skip();
        if self.sql.get(self.at) == Some(&b';') { None } else { self.next() }
    }

    fn has_more_statements(&mut self) -> bool {
        let mut is_behind = false;
        for token in self {
            if is_behind && token != Token::Mark(b';') {
                return true;
            }
            is_behind |= token == Token::Mark(b';');
        }
        false
    }

    /// Returns true before a comment that MySQL executes: in doubt, of any server.
    fn is_executed(&self) -> bool {
        let remaining = &self.sql[self.at..];
        remaining.starts_with(b"/*!") || remaining.starts_with(b"/*M!")
    }

    /// Skips blanks and comments, except those that MySQL executes.
    fn skip(&mut self) {
        while let Some(byte) = self.sql.get(self.at) {
            if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.at += 1;
                continue;
            }
            if !matches!(byte, b'-' | b'/' | b'#') || self.is_executed() {
                return;
            }
            match self.rules.part_at(self.sql, self.at) {
                (SqlPart::Comment, end) => self.at = end,
                _ => return,
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip();
        let start = self.at;
        let first = *self.sql.get(start)?;
        let is_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        if self.is_executed() {
            self.at += 2;
            return Some(Token::Mark(EXECUTED_COMMENT));
        }
        if is_name(&first) && first != b'$' {
            let length = self.sql[start..].iter().position(|byte| !is_name(byte));
            self.at = length.map_or(self.sql.len(), |length| start + length);
            let word = &self.sql[start..self.at];
            // PostgreSQL's E'...' is one text.
            let is_prefix = is(word, "e") && self.sql.get(self.at) == Some(&b'\'');
            return if is_prefix { self.next() } else { Some(Token::Word(word)) };
        }
        // A name in backticks, in doubt, of any server.
        let dialect = if first == b'`' { Dialect::Mysql } else { self.rules.dialect };
        let (part, end) = SqlRules { dialect, ..self.rules }.part_at(self.sql, start);
        self.at = end;
        Some(if part == SqlPart::Quotation { Token::Word(b"") } else { Token::Mark(first) })
    }
}

/// Functions of MySQL, MariaDB and PostgreSQL that change neither data nor the session, and whose results don't depend
/// on the session's history. Others are left to the node that takes writes.
#[rustfmt::skip]
pub(super) const SAFE_FUNCTIONS: [&str; 128] = [
    "abs", "adddate", "addtime", "age", "array_agg", "ascii", "avg", "bit_and", "bit_length",
    "bit_or", "bit_xor", "bool_and", "bool_or", "btrim", "cast", "ceil", "ceiling", "char",
    "char_length", "character_length", "chr", "coalesce", "concat", "concat_ws", "convert",
    "convert_tz", "count", "crc32", "cume_dist", "curdate", "current_date", "current_timestamp",
    "curtime", "date", "date_add", "date_format", "date_part", "date_sub", "date_trunc", "datediff",
    "day", "dayofmonth", "dayofweek", "dayofyear", "dense_rank", "every", "exp", "extract", "field",
    "first_value", "floor", "format", "from_unixtime", "generate_series", "greatest",
    "group_concat", "hashtext", "hex", "hour", "if", "ifnull", "instr", "isnull", "json_agg",
    "json_extract", "json_unquote", "json_value", "lag", "last_value", "lcase", "lead", "least",
    "left", "length", "ln", "locate", "log", "log10", "log2", "lower", "lpad", "ltrim", "make_date",
    "max", "md5", "mid", "min", "minute", "mod", "month", "now", "nth_value", "ntile", "nullif",
    "octet_length", "percent_rank", "percentile_cont", "percentile_disc", "position", "pow",
    "power", "quarter", "rank", "repeat", "replace", "reverse", "right", "round", "row_number",
    "rpad", "rtrim", "second", "sign", "sqrt", "std", "stddev", "stddev_pop", "stddev_samp",
    "str_to_date", "string_agg", "strpos", "substr", "substring", "sum", "to_char", "to_date",
    "unix_timestamp", "upper",
];

/// Words of SQL itself that may precede a parenthesis, with types.
#[rustfmt::skip]
pub(super) const TAKES_PARENTHESIS: [&str; 46] = [
    "all", "and", "any", "array", "as", "between", "by", "case", "decimal", "distinct", "else",
    "except", "exists", "filter", "from", "group", "having", "in", "index", "intersect", "interval",
    "is", "join", "key", "lateral", "like", "limit", "not", "numeric", "offset", "on", "or",
    "order", "over", "partition", "row", "select", "set", "some", "then", "union", "using",
    "values", "varchar", "when", "where",
];
