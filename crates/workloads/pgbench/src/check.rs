//! Balances: a payment adds the same amount to an account, a teller, a branch and the history, so the
//! sums of all four change by the same, whatever ran before.

use dyno_core::{AdminSession, AnswerTable, DbError, Session};
use dyno_facts::{Message, say};
use std::collections::BTreeMap;

dyno_core::named! {
    /// Where amounts are booked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Book {
        /// `pgbench_accounts.abalance`
        Accounts = "accounts",
        /// `pgbench_tellers.tbalance`
        Tellers = "tellers",
        /// `pgbench_branches.bbalance`
        Branches = "branches",
        /// `pgbench_history.delta`
        History = "history",
    }
}

impl Book {
    fn table(self) -> String {
        format!("pgbench_{}", self.name())
    }

    fn column(self) -> &'static str {
        match self {
            Book::Accounts => "abalance",
            Book::Tellers => "tbalance",
            Book::Branches => "bbalance",
            Book::History => "delta",
        }
    }
}

/// The sums of all books at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    /// Sum of `abalance`.
    pub accounts: i128,
    /// Sum of `tbalance`.
    pub tellers: i128,
    /// Sum of `bbalance`.
    pub branches: i128,
    /// Sum of `delta`.
    pub history: i128,
    pub history_rows: i128,
}

/// Sums up all books. One statement, so that all sums are of the same moment; a pass over each table.
pub async fn balances(session: &mut AdminSession<'_>) -> Result<Balances, DbError> {
    let sums = Book::ALL
        .map(|book| format!("(SELECT coalesce(sum({}), 0) FROM {})", book.column(), book.table()));
    let sql = format!("SELECT {}, (SELECT count(*) FROM pgbench_history)", sums.join(", "));
    let mut table = AnswerTable::default();
    session.query(&sql, &mut table).await?;
    let row = table.rows.first().map(Vec::as_slice).unwrap_or_default();
    let number = |at: usize| {
        let text = row.get(at).and_then(Option::as_deref).unwrap_or_default();
        text.parse::<i128>()
            .map_err(|_| DbError::protocol(format!("a sum of balances is `{text}`, not a number")))
    };
    Ok(Balances {
        accounts: number(0)?,
        tellers: number(1)?,
        branches: number(2)?,
        history: number(3)?,
        history_rows: number(4)?,
    })
}

impl Balances {
    /// By how much each sum has changed since `before`.
    pub fn change_since(&self, before: &Balances) -> SumChanges {
        SumChanges(Balances {
            accounts: self.accounts - before.accounts,
            tellers: self.tellers - before.tellers,
            branches: self.branches - before.branches,
            history: self.history - before.history,
            history_rows: self.history_rows - before.history_rows,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumChanges(pub Balances);

/// Whether the books agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BooksVerdict {
    /// True when all that must change alike did.
    pub is_balanced: bool,
    /// By how much each of them changed, in a sentence.
    pub evidence: Message,
}

impl SumChanges {
    fn of(&self, book: Book) -> i128 {
        match book {
            Book::Accounts => self.0.accounts,
            Book::Tellers => self.0.tellers,
            Book::Branches => self.0.branches,
            Book::History => self.0.history,
        }
    }

    /// Whether the books that the ledger says change alike did. `None` when it names none.
    pub fn verdict(&self, ledger: &Ledger) -> Option<BooksVerdict> {
        if ledger.0.is_empty() {
            return None;
        }
        let differs =
            |books: &&Vec<Book>| books.iter().any(|book| self.of(*book) != self.of(books[0]));
        let broken: Vec<&Vec<Book>> = ledger.0.iter().filter(differs).collect();
        let mut sentences = Vec::new();
        for books in &ledger.0 {
            let sum = |book: &Book| self.of(*book).to_string();
            let changed = |book: &Book| say!(book_changed, book = book.name(), sum = sum(book));
            if broken.contains(&books) {
                let sums: Vec<Message> = books.iter().map(changed).collect();
                sentences.push(say!(books_differ, sums = Message::list(&sums)));
            } else {
                let names: Vec<Message> = books.iter().map(|book| book.name().into()).collect();
                let books = (Message::list(&names), sum(&books[0]));
                sentences.push(say!(books_agree, books = books.0, sum = books.1));
            }
        }
        if ledger.0.iter().any(|books| books.contains(&Book::History)) {
            sentences.push(say!(history_grew, rows = self.0.history_rows.to_string()));
        }
        Some(BooksVerdict {
            is_balanced: broken.is_empty(),
            evidence: Message::sentences(&sentences),
        })
    }
}

/// Which books change alike when scripts run, as far as their texts say so: groups of at least two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(Vec<Vec<Book>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Booking {
    /// Adds the variable of this name, once per transaction.
    Adds(String),
    /// In a way that nothing follows from.
    Otherwise,
}

impl Ledger {
    /// The ledger of these scripts, run in any mixture. A book belongs to a group with those that
    /// get the same variable from the same scripts.
    pub fn of<'a>(scripts: impl IntoIterator<Item = &'a str>) -> Ledger {
        let scripts: Vec<BTreeMap<Book, Booking>> = scripts.into_iter().map(bookings).collect();
        let mut groups: BTreeMap<Vec<Option<&Booking>>, Vec<Book>> = BTreeMap::new();
        for book in Book::ALL {
            let changes: Vec<Option<&Booking>> =
                scripts.iter().map(|bookings| bookings.get(&book)).collect();
            let is_booked = changes.iter().any(Option::is_some);
            if is_booked && !changes.contains(&Some(&Booking::Otherwise)) {
                groups.entry(changes).or_default().push(book);
            }
        }
        let mut groups: Vec<Vec<Book>> =
            groups.into_values().filter(|books| books.len() > 1).collect();
        groups.sort();
        Ledger(groups)
    }

    /// True when nothing can be checked: the scripts only read, or write in ways of their own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn bookings(script: &str) -> BTreeMap<Book, Booking> {
    let mut found: BTreeMap<Book, Booking> = BTreeMap::new();
    // What stands in a branch may run or not.
    let is_conditional = script.lines().any(|line| line.trim_start().starts_with("\\if"));
    for statement in statements(script) {
        for book in Book::ALL {
            let Some(booking) = booking(&statement, book) else { continue };
            let is_second = found.contains_key(&book);
            let booking = if is_second || is_conditional { Booking::Otherwise } else { booking };
            found.insert(book, booking);
        }
    }
    found
}

/// The SQL of a script: in lower case, without comments and meta commands, blanks made single.
fn statements(script: &str) -> Vec<String> {
    let mut sql = String::new();
    let mut is_meta = false;
    for line in script.lines() {
        if is_meta || line.trim_start().starts_with('\\') {
            // A backslash at the end continues a meta command on the next line.
            is_meta = line.trim_end().ends_with('\\');
            continue;
        }
        sql.push_str(line.split("--").next().unwrap_or_default());
        sql.push('\n');
    }
    sql.split(';')
        .map(|part| part.trim().trim_end_matches('\\').to_lowercase())
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|part| !part.is_empty())
        .collect()
}

/// How one statement changes a book; `None` when it doesn't.
fn booking(statement: &str, book: Book) -> Option<Booking> {
    let mentions = statement
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == book.table());
    let writes = ["insert", "update", "delete", "truncate", "merge", "copy", "call", "replace"];
    let mut words = statement.split(|c: char| !c.is_alphanumeric() && c != '_');
    // A common table expression may write, too.
    let is_write = match words.next() {
        Some("with") => words.any(|word| writes.contains(&word)),
        first => first.is_some_and(|word| writes.contains(&word)),
    };
    if !mentions || !is_write {
        return None;
    }
    let variable = match book {
        Book::History => inserted(statement, book, book.column()),
        Book::Accounts | Book::Tellers | Book::Branches => added(statement, book),
    };
    Some(variable.map_or(Booking::Otherwise, Booking::Adds))
}

/// The variable of `update TABLE set COLUMN = COLUMN + :VARIABLE where ...`.
fn added(statement: &str, book: Book) -> Option<String> {
    let (table, column) = (book.table(), book.column());
    let rest = statement.strip_prefix("update ")?.strip_prefix(&table)?.strip_prefix(" set ")?;
    let rest = rest.strip_prefix(column)?.trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.strip_prefix(column)?.trim_start().strip_prefix('+')?.trim_start();
    let (variable, rest) = variable(rest)?;
    rest.trim_start().starts_with("where ").then(|| variable.to_owned())
}

/// Rows that a transaction of the script writes into the history; `None` where that doesn't follow from the text.
pub(crate) fn history_rows(script: &str) -> Option<u64> {
    match bookings(script).get(&Book::History) {
        None => Some(0),
        Some(Booking::Adds(_)) => Some(1),
        Some(Booking::Otherwise) => None,
    }
}

/// The variable that a script inserts into this column of the history, once per transaction.
pub(crate) fn inserted_variable(script: &str, column: &str) -> Option<String> {
    match bookings(script).get(&Book::History)? {
        Booking::Otherwise => None,
        Booking::Adds(_) => statements(script)
            .iter()
            .find_map(|statement| inserted(statement, Book::History, column)),
    }
}

/// The variable at the place of `column` in `insert into TABLE (COLUMNS) values (VALUES)`.
fn inserted(statement: &str, book: Book, column: &str) -> Option<String> {
    let rest = statement.strip_prefix("insert into ")?.strip_prefix(&book.table())?;
    let (columns, rest) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
    let at = columns.split(',').position(|name| name.trim() == column)?;
    let rest = rest.trim_start().strip_prefix("values")?.trim_start();
    let values = rest.strip_prefix('(')?.strip_suffix(')')?;
    // More rows, or a comma inside of a call, make the place of the column unclear.
    if values.contains(['(', ')']) {
        return None;
    }
    let (variable, rest) = variable(values.split(',').nth(at)?.trim())?;
    rest.is_empty().then(|| variable.to_owned())
}

/// `:name` and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix(':')?;
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Book::{Accounts, Branches, History, Tellers};

    const PAPER: &str = include_str!("../../../../suites/pgbench/read-write.sql");
    const READS: &str = include_str!("../../../../suites/pgbench/read-only.sql");
    const SIMPLE: &str = "\\set aid random(1, 100000 * :scale)\n\\set delta \\\n  random(-5000, 5000)\n\
        BEGIN;\nUPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
        SELECT abalance FROM pgbench_accounts WHERE aid = :aid; -- pgbench_tellers;\n\
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n";

    fn groups(scripts: &[&str]) -> Vec<Vec<Book>> {
        Ledger::of(scripts.iter().copied()).0
    }

    #[test]
    fn scripts_say_which_books_change_alike() {
        let all = vec![Accounts, Tellers, Branches, History];
        assert_eq!(groups(&[PAPER]), std::slice::from_ref(&all));
        assert_eq!(groups(&[PAPER, READS]), [all]);
        assert_eq!(groups(&[SIMPLE]), [vec![Accounts, History]]);
        assert_eq!(groups(&[PAPER, SIMPLE]), [vec![Accounts, History], vec![Tellers, Branches]]);
        assert!(Ledger::of([READS]).is_empty());
        assert!(Ledger::of([]).is_empty());
    }

    #[test]
    fn what_can_not_be_followed_is_left_alone() {
        for odd in [
            PAPER.replace("abalance + :delta", "abalance - :delta"),
            PAPER.replace("abalance + :delta", "abalance + :other"),
            PAPER.replace("abalance + :delta", "abalance + :delta, filler = 'x'"),
            format!("{PAPER}\nDELETE FROM pgbench_accounts WHERE aid = 1;"),
            format!(
                "{PAPER}\nUPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = 1;"
            ),
            format!("{PAPER}\nWITH x AS (UPDATE pgbench_accounts SET abalance = 0) SELECT 1;"),
        ] {
            assert_eq!(groups(&[&odd]), [vec![Tellers, Branches, History]], "{odd}");
        }
        let odd = PAPER.replace("CURRENT_TIMESTAMP", "now()");
        assert_eq!(groups(&[&odd]), [vec![Accounts, Tellers, Branches]]);
        assert!(groups(&[&format!("\\if :x\n{PAPER}\\endif\n")]).is_empty());
        assert!(
            groups(&["UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = 1"])
                .is_empty()
        );
    }

    #[test]
    fn books_must_change_by_the_same() {
        let before =
            Balances { accounts: 7, tellers: -3, branches: 5, history: 100, history_rows: 9 };
        let after =
            Balances { accounts: 17, tellers: 7, branches: 15, history: 110, history_rows: 11 };
        let ledger = Ledger::of([PAPER]);
        let verdict = after.change_since(&before).verdict(&ledger).expect("a verdict");
        assert!(verdict.is_balanced, "what was there before doesn't matter");
        assert_eq!(
            verdict.evidence,
            "The sums of accounts, tellers, branches and history changed by 10 each. The history got 2 rows."
        );
        let broken = Balances { tellers: 8, ..after };
        let verdict = broken.change_since(&before).verdict(&ledger).expect("a verdict");
        assert!(!verdict.is_balanced);
        assert_eq!(
            verdict.evidence,
            "The sums changed by different amounts, but must change alike: accounts by 10, tellers by 11, \
             branches by 10 and history by 10. The history got 2 rows."
        );
        let simple = broken.change_since(&before).verdict(&Ledger::of([SIMPLE]));
        assert!(simple.expect("a verdict").is_balanced, "simple-update doesn't touch tellers");
        assert_eq!(broken.change_since(&before).verdict(&Ledger::of([READS])), None);
    }
}
