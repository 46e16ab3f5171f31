//! Balances: a payment adds the same amount to an account, a teller, a branch and the history, so the sums of all
//! four change by the same, whatever ran before. And whether each row of the history that was acknowledged is
//! there: after a failover what the transactions wrote is held against the table as a multiset.

use crate::script::{Action, Script};
use dyno_core::{AdminSession, AnswerRow, AnswerTable, DbError, Rows};
use dyno_facts::{Message, say};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

dyno_core::named! {
    /// Book of amounts.
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
    /// The table with the balances of the book.
    fn table(self) -> String {
        format!("pgbench_{}", self.name())
    }

    /// The column with the amounts of the book.
    fn column(self) -> &'static str {
        ["abalance", "tbalance", "bbalance", "delta"][self as usize]
    }
}

/// The sums of all books at one moment, or their changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    /// Sorted in the order of [`Book::ALL`].
    pub sums: [i128; 4],
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
    let mut numbers = [0; 5];
    for (at, number) in numbers.iter_mut().enumerate() {
        let text = row.get(at).and_then(Option::as_deref).unwrap_or_default();
        *number = text.parse().map_err(|_| {
            DbError::protocol(format!("a sum of balances is `{text}`, not a number"))
        })?;
    }
    let [sums @ .., history_rows] = numbers;
    Ok(Balances { sums, history_rows })
}

/// Agreement of the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BooksVerdict {
    /// Set if all that must change alike did.
    pub is_balanced: bool,
    /// Amount by which each of them changed, in a sentence.
    pub evidence: Message,
}

impl Balances {
    /// Amount by which each sum has changed since `before`.
    pub fn change_since(&self, before: &Balances) -> Balances {
        let mut changes = *self;
        changes.sums.iter_mut().zip(before.sums).for_each(|(sum, before)| *sum -= before);
        changes.history_rows -= before.history_rows;
        changes
    }

    /// The sum of a book.
    pub fn sum(&self, book: Book) -> i128 {
        self.sums[book as usize]
    }

    /// Checks that the books named by the ledger changed by these amounts. `None` when it names none.
    pub fn verdict(&self, ledger: &Ledger) -> Option<BooksVerdict> {
        if ledger.is_empty() {
            return None;
        }
        let (mut is_balanced, mut sentences) = (true, Vec::new());
        for books in &ledger.0 {
            if books.iter().all(|book| self.sum(*book) == self.sum(books[0])) {
                let names: Vec<Message> = books.iter().map(|book| book.name().into()).collect();
                let (books, sum) = (Message::list(&names), self.sum(books[0]).to_string());
                sentences.push(say!(books_agree, books, sum));
            } else {
                is_balanced = false;
                let sums = books.iter().map(|book| {
                    say!(book_changed, book = book.name(), sum = self.sum(*book).to_string())
                });
                sentences.push(say!(books_differ, sums = Message::list(&sums.collect::<Vec<_>>())));
            }
        }
        if ledger.0.iter().any(|books| books.contains(&Book::History)) {
            sentences.push(say!(history_grew, rows = self.history_rows.to_string()));
        }
        Some(BooksVerdict { is_balanced, evidence: Message::sentences(&sentences) })
    }
}

/// Books that change alike when scripts run, as far as their texts say so: groups of at least two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(Vec<Vec<Book>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Booking {
    /// Adds the variable of this name, once per transaction.
    Adds(String),
    /// A way that nothing follows from.
    Otherwise,
}

impl Ledger {
    /// The ledger of these scripts, run in any mixture. A book belongs to a group with those that
    /// get the same variable from the same scripts.
    pub fn from_scripts<'a>(scripts: impl IntoIterator<Item = &'a Script>) -> Ledger {
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

    /// Returns true if nothing can be checked: the scripts only read, or write in other ways.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The books that a script writes, and how.
fn bookings(script: &Script) -> BTreeMap<Book, Booking> {
    let mut by_book: BTreeMap<Book, Booking> = BTreeMap::new();
    // A command in a branch may run or not.
    let is_conditional =
        script.commands.iter().any(|command| matches!(command.action, Action::If { .. }));
    for statement in statements(script) {
        for book in Book::ALL {
            let Some(booking) = booking(&statement, book) else { continue };
            let is_second = by_book.contains_key(&book);
            let booking = if is_second || is_conditional { Booking::Otherwise } else { booking };
            by_book.insert(book, booking);
        }
    }
    by_book
}

/// The SQL of a script: in lower case, without comments, blanks made single.
fn statements(script: &Script) -> Vec<String> {
    let sql = script.commands.iter().filter(|command| command.is_sql());
    let text: String = sql.map(|command| format!("{};\n", command.text())).collect();
    let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n").to_lowercase();
    let parts = text.split(';').map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.filter(|part| !part.is_empty()).collect()
}

/// Change of a book by one statement; `None` when it doesn't change it.
fn booking(statement: &str, book: Book) -> Option<Booking> {
    const WRITES: [&str; 8] =
        ["insert", "update", "delete", "truncate", "merge", "copy", "call", "replace"];
    let words: Vec<&str> = statement.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    // A common table expression may write, too.
    let leading_words = if words.first() == Some(&"with") { usize::MAX } else { 1 };
    let is_write = words.iter().take(leading_words).any(|word| WRITES.contains(word));
    if !is_write || !words.contains(&book.table().as_str()) {
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
    let assignment =
        statement.strip_prefix("update ")?.strip_prefix(&table)?.strip_prefix(" set ")?;
    let sum = assignment.strip_prefix(column)?.trim_start().strip_prefix('=')?.trim_start();
    let addend = sum.strip_prefix(column)?.trim_start().strip_prefix('+')?.trim_start();
    let (variable, rest) = variable(addend)?;
    rest.trim_start().starts_with("where ").then(|| variable.to_owned())
}

/// Rows that a transaction of the script writes into the history; `None` if that doesn't follow from the text.
pub(crate) fn history_rows(script: &Script) -> Option<u64> {
    match bookings(script).get(&Book::History) {
        None => Some(0),
        Some(Booking::Adds(_)) => Some(1),
        Some(Booking::Otherwise) => None,
    }
}

/// The variable at the place of `column` in `insert into TABLE (COLUMNS) values (VALUES)`.
fn inserted(statement: &str, book: Book, column: &str) -> Option<String> {
    let row = statement.strip_prefix("insert into ")?.strip_prefix(&book.table())?;
    let (columns, row) = row.trim_start().strip_prefix('(')?.split_once(')')?;
    let at = columns.split(',').position(|name| name.trim() == column)?;
    let values = row.trim_start().strip_prefix("values")?.trim_start();
    let values = values.strip_prefix('(')?.strip_suffix(')')?;
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

/// The columns that tell rows apart: the time of the server is not known to the client.
const COLUMNS: [&str; 4] = ["tid", "bid", "aid", "delta"];

type Written = [i64; 4];

/// The variables whose values one transaction of the script writes into the history, in the order of the columns;
/// `None` if it writes none, or what it writes doesn't follow from the text.
pub(crate) fn history_variables(script: &Script) -> Option<[String; 4]> {
    let Some(Booking::Adds(_)) = bookings(script).remove(&Book::History) else { return None };
    let [tid, bid, aid, delta] = COLUMNS.map(|column| {
        let statements = statements(script);
        statements.iter().find_map(|statement| inserted(statement, Book::History, column))
    });
    Some([tid?, bid?, aid?, delta?])
}

/// End of a transaction, as far as its row is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFate {
    Acknowledged,
    /// Its answer never came.
    Unknown,
}

/// Writes of the transactions of a run, by client: the acknowledged ones, and those that may be there.
#[derive(Debug)]
pub struct Journal {
    /// Numbers of the variables of each script.
    variables: Vec<Option<[u32; 4]>>,
    clients: Vec<Mutex<Vec<(RowFate, Written)>>>,
}

impl Journal {
    pub(crate) fn new(variables: Vec<Option<[u32; 4]>>, clients: u32) -> Self {
        Journal { variables, clients: (0..clients).map(|_| Mutex::default()).collect() }
    }

    /// The variables with the values of a script's row in the history.
    #[inline]
    pub(crate) fn variables(&self, script: usize) -> Option<[u32; 4]> {
        self.variables.get(script).copied().flatten()
    }

    /// Notes what a transaction wrote. Clients don't share what they note: no lock is waited for.
    #[inline]
    pub(crate) fn record(&self, client: u32, fate: RowFate, written: Written) {
        let Some(rows) = self.clients.get(client as usize) else { return };
        rows.lock().unwrap_or_else(PoisonError::into_inner).push((fate, written));
    }

    /// Returns true if at least one script writes rows that can be followed.
    pub fn is_useful(&self) -> bool {
        self.variables.iter().any(Option::is_some)
    }

    /// Looks for what was acknowledged in what the table has gained.
    pub fn reconcile(&self, before: &History, after: &History) -> Settled {
        let mut gained = after.0.clone();
        for (row, count) in &before.0 {
            gained.entry(*row).and_modify(|left| *left = left.saturating_sub(*count));
        }
        let mut settled = Settled::default();
        // Whoever was acknowledged comes first: a row that both may have written is theirs.
        for fate in [RowFate::Acknowledged, RowFate::Unknown] {
            for rows in &self.clients {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                for (_, row) in rows.iter().filter(|(other, _)| *other == fate) {
                    let unmatched = gained.get_mut(row).filter(|count| **count > 0);
                    let is_stored = unmatched.map(|count| *count -= 1).is_some();
                    if fate == RowFate::Acknowledged {
                        settled.acknowledged += 1;
                        settled.lost += u64::from(!is_stored);
                    } else {
                        settled.unknown += 1;
                        settled.committed += u64::from(is_stored);
                    }
                }
            }
        }
        settled
    }
}

/// The rows of the history with how often each is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(HashMap<Written, u32>);

impl Rows for History {
    fn row<R: AnswerRow>(&mut self, row: &R) {
        // What can't be read equals nothing that a transaction wrote.
        let written = [0, 1, 2, 3].map(|column| {
            let cell = if column < row.columns() { row.int(column) } else { None };
            cell.unwrap_or(i64::MIN)
        });
        *self.0.entry(written).or_default() += 1;
    }
}

/// Reads the history. No one may write meanwhile.
pub async fn history(session: &mut AdminSession<'_>) -> Result<History, DbError> {
    let mut history = History::default();
    let sql = format!("SELECT {} FROM pgbench_history", COLUMNS.join(", "));
    session.query(&sql, &mut history).await?;
    Ok(history)
}

/// Outcome of the rows that a run wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    pub acknowledged: u64,
    pub lost: u64,
    /// Transactions whose connection was lost before their COMMIT was answered, or sent.
    pub unknown: u64,
    pub committed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{QueryMode, find_builtin};
    use Book::{Accounts, Branches, Tellers};

    const PAPER: &str = include_str!("../../../../suites/pgbench/read-write.sql");
    const READS: &str = include_str!("../../../../suites/pgbench/read-only.sql");
    const SIMPLE: &str = "\\set aid random(1, 100000 * :scale)\n\\set delta \\\n  random(-5000, 5000)\n\
        BEGIN;\nUPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
        SELECT abalance FROM pgbench_accounts WHERE aid = :aid; -- pgbench_tellers;\n\
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n";

    fn script(text: &str) -> Script {
        Script::parse(text.as_bytes(), "test.sql", QueryMode::Simple).expect("a script")
    }

    fn ledger(texts: &[&str]) -> Ledger {
        let scripts: Vec<Script> = texts.iter().map(|text| script(text)).collect();
        Ledger::from_scripts(&scripts)
    }

    /// The groups of books that must agree after these scripts.
    fn groups(texts: &[&str]) -> Vec<Vec<Book>> {
        ledger(texts).0
    }

    #[test]
    fn scripts_say_which_books_change_alike() {
        let every_book = vec![Accounts, Tellers, Branches, Book::History];
        assert_eq!(groups(&[PAPER]), std::slice::from_ref(&every_book));
        assert_eq!(groups(&[PAPER, READS]), [every_book]);
        assert_eq!(groups(&[SIMPLE]), [vec![Accounts, Book::History]]);
        assert_eq!(
            groups(&[PAPER, SIMPLE]),
            [vec![Accounts, Book::History], vec![Tellers, Branches]]
        );
        assert!(ledger(&[READS]).is_empty());
        assert!(ledger(&[]).is_empty());
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
            assert_eq!(groups(&[&odd]), [vec![Tellers, Branches, Book::History]], "{odd}");
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
        let before = Balances { sums: [7, -3, 5, 100], history_rows: 9 };
        let after = Balances { sums: [17, 7, 15, 110], history_rows: 11 };
        let paper = ledger(&[PAPER]);
        let verdict = after.change_since(&before).verdict(&paper).expect("a verdict");
        assert!(verdict.is_balanced, "what was there before doesn't matter");
        assert_eq!(
            verdict.evidence,
            "The sums of accounts, tellers, branches and history changed by 10 each. The history got 2 rows."
        );
        let broken = Balances { sums: [17, 8, 15, 110], ..after };
        let verdict = broken.change_since(&before).verdict(&paper).expect("a verdict");
        assert!(!verdict.is_balanced);
        assert_eq!(
            verdict.evidence,
            "The sums changed by different amounts, but must change alike: accounts by 10, tellers by 11, \
             branches by 10 and history by 10. The history got 2 rows."
        );
        let simple = broken.change_since(&before).verdict(&ledger(&[SIMPLE]));
        assert!(simple.expect("a verdict").is_balanced, "simple-update doesn't touch tellers");
        assert_eq!(broken.change_since(&before).verdict(&ledger(&[READS])), None);
    }

    /// A history with these rows.
    fn table(rows: &[Written]) -> History {
        let mut history = History::default();
        for row in rows {
            *history.0.entry(*row).or_default() += 1;
        }
        history
    }

    #[test]
    fn the_scripts_that_write_say_what() {
        let columns = Some(["tid", "bid", "aid", "delta"].map(str::to_owned));
        let names = ["tpcb-like", "simple-update", "select-only"]
            .map(|name| history_variables(&script(find_builtin(name).expect("a script").text)));
        assert_eq!(names, [columns.clone(), columns, None]);
        let literal = "INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 2, :a, :d);";
        assert_eq!(history_variables(&script(literal)), None);
        let twice = "INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (:t, :b, :a, :d);";
        assert_eq!(
            history_variables(&script(&format!("{twice}\n{twice}"))),
            None,
            "one row each is followed"
        );
    }

    #[test]
    fn rows_are_a_multiset_and_those_from_before_count_for_nobody() {
        let [a, b, c] = [[1, 1, 1, 5], [1, 1, 2, 5], [2, 1, 3, -5]];
        let journal = Journal::new(vec![Some([0, 1, 2, 3])], 2);
        for (client, fate, row) in [
            (0, RowFate::Acknowledged, a),
            (1, RowFate::Acknowledged, a),
            (0, RowFate::Acknowledged, b),
            (1, RowFate::Unknown, c),
            (1, RowFate::Unknown, b),
        ] {
            journal.record(client, fate, row);
        }
        let complete = Settled { acknowledged: 3, lost: 0, unknown: 2, committed: 1 };
        let before = table(&[a, c]);
        assert_eq!(journal.reconcile(&before, &table(&[a, c, a, a, b, c])), complete);
        // One of the two equal rows is missing, and the one of unknown outcome did not happen.
        let one_lost = Settled { lost: 1, committed: 0, ..complete };
        assert_eq!(journal.reconcile(&before, &table(&[a, c, a, b])), one_lost);
        assert_eq!(journal.reconcile(&before, &before).lost, 3);
    }
}
