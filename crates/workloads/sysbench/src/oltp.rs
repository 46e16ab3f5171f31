//! The tests that run statements on the usual tables: which statements, in which order, with which
//! draws.

use crate::distribution::Sampler;
use crate::options::{EngineTransactions, SysbenchOptions, SysbenchTest};
use crate::rows::UniqueIds;
use crate::rows::{C_LENGTH, PAD_LENGTH, fill_groups};
use crate::statements::{Kind, Statements, Templates};
use dyno_core::{DbError, Dialect, Param, Rng, Session};
use std::ops::Range;

/// Number of statements of each kind in one transaction. The order is fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// BEGIN and COMMIT around the rest.
    explicit: bool,
    /// One table per transaction, as in 0.5; otherwise one per kind.
    one_table: bool,
    point_selects: u32,
    ranges: [u32; RANGES.len()],
    index_updates: u32,
    non_index_updates: u32,
    delete_inserts: u32,
    deletes: u32,
    new_rows: u32,
    /// Kinds that each connection prepares, in the order of the original.
    pub(crate) prepares: Vec<Kind>,
}

const RANGES: [Kind; 4] =
    [Kind::SimpleRange, Kind::SumRange, Kind::OrderRange, Kind::DistinctRange];

impl Shape {
    pub(crate) fn from_options(options: &SysbenchOptions) -> Shape {
        let mut shape = Shape::for_test(options);
        if options.prepared {
            shape.prepares = prepares(options);
        }
        shape
    }

    /// The parts of a transaction that have statements, in their order.
    fn parts(&self) -> Vec<Part> {
        let once = u32::from(self.explicit);
        let ranges: &'static [Kind] = &RANGES;
        let mut parts =
            vec![(&[Kind::Begin][..], once), (&[Kind::PointSelect], self.point_selects)];
        parts.extend(ranges.chunks(1).zip(self.ranges));
        parts.extend([
            (&[Kind::IndexUpdate][..], self.index_updates),
            (&[Kind::NonIndexUpdate], self.non_index_updates),
            (&[Kind::Delete, Kind::Insert], self.delete_inserts),
            (&[Kind::Delete], self.deletes),
            (&[Kind::NewRow], self.new_rows),
            (&[Kind::Commit], once),
        ]);
        let parts = parts.into_iter().map(|(kinds, count)| Part { kinds, count });
        parts.filter(|part| part.count > 0).collect()
    }

    /// Number of statements of a transaction, with BEGIN and COMMIT.
    pub(crate) fn statements(&self) -> u32 {
        self.parts().iter().map(|part| part.kinds.len() as u32 * part.count).sum()
    }

    /// Returns true if the transaction changes nothing.
    fn only_reads(&self) -> bool {
        self.index_updates + self.non_index_updates + self.delete_inserts == 0
            && self.deletes + self.new_rows == 0
    }

    pub(crate) fn for_test(options: &SysbenchOptions) -> Shape {
        let none = Shape { one_table: options.test.is_legacy(), ..Shape::default() };
        let explicit = Shape { explicit: !options.skip_trx, ..none.clone() };
        match options.test {
            SysbenchTest::ReadOnly => explicit.with_reads(options),
            SysbenchTest::WriteOnly => explicit.with_writes(options),
            SysbenchTest::ReadWrite => explicit.with_reads(options).with_writes(options),
            SysbenchTest::V05Oltp => {
                let reads =
                    if options.write_only { explicit } else { explicit.with_reads(options) };
                if options.read_only { reads } else { reads.with_writes(options) }
            }
            SysbenchTest::PointSelect | SysbenchTest::V05OltpSimple | SysbenchTest::V05Select => {
                Shape { point_selects: 1, ..none }
            }
            SysbenchTest::UpdateIndex => Shape { index_updates: options.index_updates, ..none },
            SysbenchTest::UpdateNonIndex => {
                Shape { non_index_updates: options.non_index_updates, ..none }
            }
            SysbenchTest::V05UpdateIndex => Shape { index_updates: 1, ..none },
            SysbenchTest::V05UpdateNonIndex => Shape { non_index_updates: 1, ..none },
            SysbenchTest::Insert | SysbenchTest::V05Insert => Shape { new_rows: 1, ..none },
            SysbenchTest::Delete | SysbenchTest::V05Delete => Shape { deletes: 1, ..none },
            _ => none,
        }
    }

    fn with_reads(self, options: &SysbenchOptions) -> Shape {
        let ranges = [
            options.simple_ranges,
            options.sum_ranges,
            options.order_ranges,
            options.distinct_ranges,
        ];
        let ranges = if options.range_selects { ranges } else { [0; RANGES.len()] };
        Shape { point_selects: options.point_selects, ranges, ..self }
    }

    fn with_writes(self, options: &SysbenchOptions) -> Shape {
        Shape {
            index_updates: options.index_updates,
            non_index_updates: options.non_index_updates,
            delete_inserts: options.delete_inserts,
            ..self
        }
    }
}

/// The original prepares all kinds of a test, even those whose count is zero, and the range kinds
/// unless `range_selects` is off.
fn prepares(options: &SysbenchOptions) -> Vec<Kind> {
    let transaction: &[Kind] = if options.skip_trx { &[] } else { &[Kind::Begin, Kind::Commit] };
    let ranges: &[Kind] = if options.range_selects { &RANGES } else { &[] };
    let writes = &[Kind::IndexUpdate, Kind::NonIndexUpdate, Kind::Delete, Kind::Insert];
    let parts: &[&[Kind]] = match options.test {
        SysbenchTest::PointSelect => &[&[Kind::PointSelect]],
        SysbenchTest::ReadOnly => &[&[Kind::PointSelect], transaction, ranges],
        SysbenchTest::WriteOnly => &[transaction, writes],
        SysbenchTest::ReadWrite => &[transaction, &[Kind::PointSelect], ranges, writes],
        SysbenchTest::UpdateIndex => &[&[Kind::IndexUpdate]],
        SysbenchTest::UpdateNonIndex => &[&[Kind::NonIndexUpdate]],
        SysbenchTest::Delete => &[&[Kind::Delete]],
        _ => &[],
    };
    parts.concat()
}

/// The column of a point select, the sum, and the bounds of a range, in the family's words.
fn select_words(options: &SysbenchOptions) -> (&'static str, &'static str, String) {
    if !options.test.is_legacy() {
        return ("c", "SUM(k)", "? AND ?".to_owned());
    }
    let column = if options.test == SysbenchTest::V05Select { "pad" } else { "c" };
    // 0.5 leaves the addition to the server.
    (column, "SUM(K)", format!("? AND ?+{}", options.range_size - 1))
}

/// LOCK TABLES and UNLOCK TABLES, instead of BEGIN and COMMIT, for engines without transactions.
fn lock_tables(options: &SysbenchOptions, dialect: Dialect) -> Option<(String, String)> {
    let without = match options.engine_transactions {
        EngineTransactions::Yes => false,
        EngineTransactions::No => true,
        EngineTransactions::Auto => options.mysql_storage_engine.eq_ignore_ascii_case("myisam"),
    };
    if !(without && options.test.is_legacy() && dialect == Dialect::Mysql) {
        return None;
    }
    let locks: Vec<String> =
        (1..=options.tables).map(|number| format!("sbtest{number} WRITE")).collect();
    Some((format!("LOCK TABLES {}", locks.join(" ,")), "UNLOCK TABLES".to_owned()))
}

/// The statements of a test as text.
pub(crate) fn templates(options: &SysbenchOptions, shape: &Shape, dialect: Dialect) -> Templates {
    let (begin, commit) = lock_tables(options, dialect).unwrap_or_else(|| {
        // SQLite can't turn a reader into a writer while there is another one: a transaction
        // that will write has to say so at its beginning.
        let immediate = dialect == Dialect::Sqlite && !shape.only_reads();
        let begin = if immediate { "BEGIN IMMEDIATE" } else { "BEGIN" };
        (begin.to_owned(), "COMMIT".to_owned())
    });
    let (column, sum, between) = select_words(options);
    let [simple_range, sum_range, order_range, distinct_range] =
        [("c", ""), (sum, ""), ("c", " ORDER BY c"), ("DISTINCT c", " ORDER BY c")].map(
            |(what, order)| format!("SELECT {what} FROM sbtest# WHERE id BETWEEN {between}{order}"),
        );
    Templates::new([
        (Kind::Begin, begin),
        (Kind::Commit, commit),
        (Kind::PointSelect, format!("SELECT {column} FROM sbtest# WHERE id=?")),
        (Kind::SimpleRange, simple_range),
        (Kind::SumRange, sum_range),
        (Kind::OrderRange, order_range),
        (Kind::DistinctRange, distinct_range),
        (Kind::IndexUpdate, "UPDATE sbtest# SET k=k+1 WHERE id=?".to_owned()),
        (Kind::NonIndexUpdate, "UPDATE sbtest# SET c=? WHERE id=?".to_owned()),
        (Kind::Delete, "DELETE FROM sbtest# WHERE id=?".to_owned()),
        (Kind::Insert, "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)".to_owned()),
        (Kind::NewRow, new_row(options, dialect).to_owned()),
    ])
}

fn new_row(options: &SysbenchOptions, dialect: Dialect) -> &'static str {
    // MySQL numbers a row whose id is given as 0. The others would store the 0.
    if server_numbers(options, dialect) {
        "INSERT INTO sbtest# (k, c, pad) VALUES (?, ?, ?)"
    } else {
        "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)"
    }
}

fn server_numbers(options: &SysbenchOptions, dialect: Dialect) -> bool {
    options.auto_inc && dialect != Dialect::Mysql
}

/// Statements that a transaction executes one after the other, several times.
#[derive(Debug)]
struct Part {
    /// A delete is followed by an insert of the same id, or alone.
    kinds: &'static [Kind],
    count: u32,
}

impl Part {
    /// One table for all of them, but for deletes without inserts and for new rows, which draw one each.
    #[inline]
    fn draws_table(&self, number: u32) -> bool {
        match self.kinds {
            [Kind::Begin | Kind::Commit] => false,
            [Kind::Delete | Kind::NewRow] => true,
            _ => number == 0,
        }
    }
}

/// Data that all workers of a test share.
#[derive(Debug)]
pub(crate) struct Oltp {
    shape: Shape,
    parts: Vec<Part>,
    pub(crate) templates: Templates,
    tables: u32,
    /// The second bound of a range is this much above the first.
    range_span: i64,
    ids: IdSource,
    unique: UniqueIds,
}

/// Source of the id of a new row.
#[derive(Clone, Copy, Debug)]
enum IdSource {
    /// The server; the statement has no id.
    Absent,
    /// The server, asked by a 0.
    Zero,
    /// The client.
    Unique,
}

#[derive(Debug)]
pub(crate) struct OltpWorker {
    pub(crate) draws: Draws,
    pub(crate) statements: Statements,
}

/// Sources of the values of a worker's statements, and the texts that were drawn last.
#[derive(Debug)]
pub(crate) struct Draws {
    rng: Rng,
    keys: Sampler,
    c: [u8; C_LENGTH],
    pad: [u8; PAD_LENGTH],
}

/// Place in a transaction, and the values drawn for its last statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OltpCursor {
    part: usize,
    /// Number among the repetitions of the part, and the kind within it.
    number: u32,
    kind: usize,
    one_table: Option<u32>,
    pub(crate) table: u32,
    id: i64,
    second: i64,
}

impl OltpCursor {
    #[inline]
    fn go_on(&mut self, part: &Part) {
        self.kind += 1;
        if self.kind == part.kinds.len() {
            self.kind = 0;
            self.number += 1;
            if self.number == part.count {
                self.number = 0;
                self.part += 1;
            }
        }
    }
}

impl Oltp {
    pub(crate) fn new(options: &SysbenchOptions, dialect: Dialect) -> Self {
        let shape = Shape::from_options(options);
        let templates = templates(options, &shape, dialect);
        let ids = match (options.auto_inc, dialect) {
            (false, _) => IdSource::Unique,
            (true, Dialect::Mysql) => IdSource::Zero,
            (true, _) => IdSource::Absent,
        };
        let range_span =
            if options.test.is_legacy() { 0 } else { i64::from(options.range_size) - 1 };
        let unique = UniqueIds::starting_at(options.unique_start, options.unique_part);
        Oltp {
            parts: shape.parts(),
            shape,
            templates,
            tables: options.tables,
            range_span,
            ids,
            unique,
        }
    }

    /// Prepares the statements of a worker.
    pub(crate) async fn open<S: Session>(
        &self,
        session: &mut S,
        options: &SysbenchOptions,
        rng: Rng,
    ) -> Result<OltpWorker, DbError> {
        let keys = Sampler::new(&options.random, options.test.era(), 1, options.table_size);
        let statements = self.prepare_statements(session).await?;
        let draws = Draws { rng, keys, c: [0; C_LENGTH], pad: [0; PAD_LENGTH] };
        Ok(OltpWorker { draws, statements })
    }

    /// Prepares the statements of a worker again, on a new session.
    pub(crate) async fn reopen<S: Session>(
        &self,
        worker: &mut OltpWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.statements = self.prepare_statements(session).await?;
        Ok(())
    }

    async fn prepare_statements<S: Session>(&self, session: &mut S) -> Result<Statements, DbError> {
        let kinds = &self.shape.prepares;
        Statements::open(session, &self.templates, kinds, self.tables).await
    }

    /// Begins a transaction.
    #[inline]
    pub(crate) fn begin(&self, draws: &mut Draws) -> OltpCursor {
        let one_table = self.shape.one_table.then(|| self.draw_table(&mut draws.rng));
        OltpCursor { part: 0, number: 0, kind: 0, one_table, table: 1, id: 0, second: 0 }
    }

    /// The transaction has no further statement.
    #[inline]
    pub(crate) fn is_over(&self, cursor: &OltpCursor) -> bool {
        cursor.part >= self.parts.len()
    }

    /// Draws what the next statement of a transaction takes; its kind, or `None` at the end.
    #[inline(always)]
    pub(crate) fn next(&self, draws: &mut Draws, cursor: &mut OltpCursor) -> Option<Kind> {
        let part = self.parts.get(cursor.part)?;
        let kind = *part.kinds.get(cursor.kind)?;
        if cursor.kind == 0 {
            if part.draws_table(cursor.number) {
                cursor.table = cursor.one_table.unwrap_or_else(|| self.draw_table(&mut draws.rng));
            } else if cursor.number == 0 {
                cursor.table = 1;
            }
        }
        if matches!(kind, Kind::NonIndexUpdate | Kind::Insert | Kind::NewRow) {
            self.draw_row(kind, draws, cursor);
        } else if !matches!(kind, Kind::Begin | Kind::Commit) {
            cursor.id = draws.keys.sample(&mut draws.rng);
            cursor.second = cursor.id + self.range_span;
        }
        cursor.go_on(part);
        Some(kind)
    }

    /// Draws what a statement with texts takes.
    fn draw_row(&self, kind: Kind, draws: &mut Draws, cursor: &mut OltpCursor) {
        let Draws { rng, keys, c, pad } = draws;
        match kind {
            Kind::NonIndexUpdate => {
                fill_groups(c, rng);
                cursor.id = keys.sample(rng);
                return;
            }
            Kind::NewRow => cursor.id = self.new_id(),
            // The id of the row that was deleted.
            _ => {}
        }
        cursor.second = keys.sample(rng);
        fill_groups(c, rng);
        fill_groups(pad, rng);
    }

    /// The parameter of most statements, which take no other.
    #[inline]
    pub(crate) fn only_id(&self, kind: Kind, cursor: &OltpCursor) -> Option<Param<'static>> {
        (self.param_range(kind) == (0..1)).then_some(Param::Int(cursor.id))
    }

    /// The parameters of a statement: some of these.
    #[inline]
    pub(crate) fn params<'a>(
        &self,
        kind: Kind,
        draws: &'a Draws,
        cursor: &OltpCursor,
    ) -> ([Param<'a>; 4], Range<usize>) {
        let (id, second) = (Param::Int(cursor.id), Param::Int(cursor.second));
        let (c, pad) = (Param::Text(&draws.c), Param::Text(&draws.pad));
        let params = match kind {
            Kind::NonIndexUpdate => [c, id, Param::Null, Param::Null],
            _ => [id, second, c, pad],
        };
        (params, self.param_range(kind))
    }

    #[inline]
    fn draw_table(&self, rng: &mut Rng) -> u32 {
        rng.uniform(1, u64::from(self.tables)) as u32
    }

    #[inline]
    fn new_id(&self) -> i64 {
        match self.ids {
            IdSource::Absent | IdSource::Zero => 0,
            IdSource::Unique => self.unique.next_id(),
        }
    }

    /// Values that a statement takes: id, second number, `c` and `pad`.
    #[inline]
    fn param_range(&self, kind: Kind) -> Range<usize> {
        match kind {
            Kind::Begin | Kind::Commit => 0..0,
            Kind::PointSelect | Kind::IndexUpdate | Kind::Delete => 0..1,
            Kind::NewRow if matches!(self.ids, IdSource::Absent) => 1..4,
            Kind::Insert | Kind::NewRow => 0..4,
            _ => 0..2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn myisam_locks_all_tables_unless_told_otherwise() {
        let mut options = SysbenchOptions::new(SysbenchTest::V05Oltp);
        options.tables = 2;
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
        options.mysql_storage_engine = "MyISAM".to_owned();
        let locks = ("LOCK TABLES sbtest1 WRITE ,sbtest2 WRITE", "UNLOCK TABLES");
        let (begin, commit) = lock_tables(&options, Dialect::Mysql).unwrap();
        assert_eq!((begin.as_str(), commit.as_str()), locks);
        assert_eq!(lock_tables(&options, Dialect::Postgres), None);
        options.engine_transactions = EngineTransactions::Yes;
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
        let options = SysbenchOptions {
            mysql_storage_engine: "myisam".to_owned(),
            ..SysbenchOptions::new(SysbenchTest::ReadWrite)
        };
        assert_eq!(lock_tables(&options, Dialect::Mysql), None);
    }
}
