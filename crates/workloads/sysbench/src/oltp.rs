//! The tests that run statements on the usual tables: which statements, in which order, with which
//! draws.

use crate::distribution::Sampler;
use crate::options::{LegacyTest, SysbenchOptions, SysbenchTest};
use crate::rows::{C_LENGTH, PAD_LENGTH, fill_groups};
use crate::statements::{Kind, Statements, Templates};
use crate::unique::UniqueIds;
use dyno_core::{DbError, Dialect, Outcome, Param, Rng, Session, Tally};

/// How many statements of each kind one transaction has. The order is fixed.
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
    prepares: Vec<Kind>,
}

const RANGES: [Kind; 4] =
    [Kind::SimpleRange, Kind::SumRange, Kind::OrderRange, Kind::DistinctRange];

impl Shape {
    pub(crate) fn of(options: &SysbenchOptions) -> Shape {
        let mut shape = match options.test {
            SysbenchTest::Legacy(legacy) => Shape::legacy(options, legacy),
            _ => Shape::v1(options),
        };
        if options.prepared {
            shape.prepares = prepares(options);
        }
        shape
    }

    /// Kinds that each connection prepares, in the order of the original.
    pub(crate) fn kinds_to_prepare(&self) -> &[Kind] {
        &self.prepares
    }

    /// True when the transaction changes nothing.
    fn only_reads(&self) -> bool {
        self.index_updates + self.non_index_updates + self.delete_inserts == 0
            && self.deletes + self.new_rows == 0
    }

    fn v1(options: &SysbenchOptions) -> Shape {
        let explicit = Shape { explicit: !options.skip_trx, ..Shape::default() };
        match options.test {
            SysbenchTest::PointSelect => Shape { point_selects: 1, ..Shape::default() },
            SysbenchTest::ReadOnly => explicit.with_reads(options),
            SysbenchTest::WriteOnly => explicit.with_writes(options),
            SysbenchTest::ReadWrite => explicit.with_reads(options).with_writes(options),
            SysbenchTest::UpdateIndex => {
                Shape { index_updates: options.index_updates, ..Shape::default() }
            }
            SysbenchTest::UpdateNonIndex => {
                Shape { non_index_updates: options.non_index_updates, ..Shape::default() }
            }
            SysbenchTest::Insert => Shape { new_rows: 1, ..Shape::default() },
            SysbenchTest::Delete => Shape { deletes: 1, ..Shape::default() },
            SysbenchTest::SelectRandomPoints
            | SysbenchTest::SelectRandomRanges
            | SysbenchTest::BulkInsert
            | SysbenchTest::Legacy(_) => Shape::default(),
        }
    }

    fn legacy(options: &SysbenchOptions, test: LegacyTest) -> Shape {
        let one_table = Shape { one_table: true, ..Shape::default() };
        match test {
            LegacyTest::Oltp => {
                let mut shape = Shape { explicit: !options.skip_trx, ..one_table };
                if !options.write_only {
                    shape = shape.with_reads(options);
                }
                if !options.read_only {
                    shape = shape.with_writes(options);
                }
                shape
            }
            LegacyTest::OltpSimple | LegacyTest::Select => Shape { point_selects: 1, ..one_table },
            LegacyTest::Insert => Shape { new_rows: 1, ..one_table },
            LegacyTest::Delete => Shape { deletes: 1, ..one_table },
            LegacyTest::UpdateIndex => Shape { index_updates: 1, ..one_table },
            LegacyTest::UpdateNonIndex => Shape { non_index_updates: 1, ..one_table },
            LegacyTest::BulkInsert
            | LegacyTest::SelectRandomPoints
            | LegacyTest::SelectRandomRanges => Shape::default(),
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

/// The statements of a test as text.
pub(crate) fn templates(options: &SysbenchOptions, shape: &Shape, dialect: Dialect) -> Templates {
    let (begin, commit) = crate::legacy::lock_tables(options, dialect).unwrap_or_else(|| {
        // SQLite can't turn a reader into a writer while there is another one: a transaction
        // that will write has to say so at its beginning.
        let immediate = dialect == Dialect::Sqlite && !shape.only_reads();
        let begin = if immediate { "BEGIN IMMEDIATE" } else { "BEGIN" };
        (begin.to_owned(), "COMMIT".to_owned())
    });
    let (column, sum, between) = crate::legacy::select_words(options);
    let range = |what: &str, order: &str| {
        format!("SELECT {what} FROM sbtest# WHERE id BETWEEN {between}{order}")
    };
    Templates::new([
        (Kind::Begin, begin),
        (Kind::Commit, commit),
        (Kind::PointSelect, format!("SELECT {column} FROM sbtest# WHERE id=?")),
        (Kind::SimpleRange, range("c", "")),
        (Kind::SumRange, range(sum, "")),
        (Kind::OrderRange, range("c", " ORDER BY c")),
        (Kind::DistinctRange, range("DISTINCT c", " ORDER BY c")),
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

/// What all workers of a test share.
#[derive(Debug)]
pub(crate) struct Oltp {
    shape: Shape,
    templates: Templates,
    tables: u32,
    /// The second bound of a range is this much above the first.
    range_span: i64,
    ids: IdSource,
    unique: UniqueIds,
}

/// Where the id of a new row comes from.
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
    rng: Rng,
    keys: Sampler,
    statements: Statements,
    c: [u8; C_LENGTH],
    pad: [u8; PAD_LENGTH],
}

impl Oltp {
    pub(crate) fn new(options: &SysbenchOptions, dialect: Dialect) -> Self {
        let shape = Shape::of(options);
        let templates = templates(options, &shape, dialect);
        let ids = match (options.auto_inc, dialect) {
            (false, _) => IdSource::Unique,
            (true, Dialect::Mysql) => IdSource::Zero,
            (true, _) => IdSource::Absent,
        };
        let range_span =
            if options.test.is_legacy() { 0 } else { i64::from(options.range_size) - 1 };
        let unique = UniqueIds::starting_at(options.unique_start, options.unique_part);
        Oltp { shape, templates, tables: options.tables, range_span, ids, unique }
    }

    pub(crate) async fn open<S: Session>(
        &self,
        session: &mut S,
        options: &SysbenchOptions,
        rng: Rng,
    ) -> Result<OltpWorker, DbError> {
        let keys = Sampler::new(&options.random, options.test.era(), 1, options.table_size);
        let statements = self.statements(session).await?;
        Ok(OltpWorker { rng, keys, statements, c: [0; C_LENGTH], pad: [0; PAD_LENGTH] })
    }

    pub(crate) async fn reopen<S: Session>(
        &self,
        worker: &mut OltpWorker,
        session: &mut S,
    ) -> Result<(), DbError> {
        worker.statements = self.statements(session).await?;
        Ok(())
    }

    async fn statements<S: Session>(&self, session: &mut S) -> Result<Statements, DbError> {
        let kinds = self.shape.kinds_to_prepare();
        Statements::open(session, &self.templates, kinds, self.tables).await
    }

    pub(crate) async fn run<S: Session>(
        &self,
        worker: &mut OltpWorker,
        session: &mut S,
        tally: &mut Tally,
    ) -> Result<Outcome, DbError> {
        let shape = &self.shape;
        let one_table = if shape.one_table { Some(worker.table(self.tables)) } else { None };
        let mut flow = Flow { oltp: self, worker, session, tally, one_table };
        if shape.explicit {
            flow.send(Kind::Begin, 1, &[]).await?;
        }
        flow.repeat(Kind::PointSelect, shape.point_selects).await?;
        for (kind, count) in RANGES.into_iter().zip(shape.ranges) {
            flow.repeat(kind, count).await?;
        }
        flow.repeat(Kind::IndexUpdate, shape.index_updates).await?;
        flow.repeat(Kind::NonIndexUpdate, shape.non_index_updates).await?;
        flow.repeat(Kind::Delete, shape.delete_inserts).await?;
        flow.deletes(shape.deletes).await?;
        flow.new_rows(shape.new_rows).await?;
        if shape.explicit {
            flow.send(Kind::Commit, 1, &[]).await?;
        }
        Ok(Outcome::Committed)
    }
}

impl OltpWorker {
    #[inline]
    fn table(&mut self, tables: u32) -> u32 {
        self.rng.uniform(1, u64::from(tables)) as u32
    }

    #[inline]
    fn id(&mut self) -> i64 {
        self.keys.draw(&mut self.rng)
    }
}

struct Flow<'a, S: Session> {
    oltp: &'a Oltp,
    worker: &'a mut OltpWorker,
    session: &'a mut S,
    tally: &'a mut Tally,
    one_table: Option<u32>,
}

impl<S: Session> Flow<'_, S> {
    /// The table of the next kind.
    #[inline]
    fn table(&mut self) -> u32 {
        match self.one_table {
            Some(table) => table,
            None => self.worker.table(self.oltp.tables),
        }
    }

    /// Executes one statement that need not change a row.
    #[inline]
    async fn send(&mut self, kind: Kind, table: u32, params: &[Param<'_>]) -> Result<(), DbError> {
        let statements = &mut self.worker.statements;
        let done =
            statements.execute(self.session, &self.oltp.templates, kind, table, params).await?;
        self.tally.count(done);
        Ok(())
    }

    /// Executes one statement that is meant to change a row.
    #[inline]
    async fn change(&mut self, kind: Kind, table: u32, id: i64) -> Result<(), DbError> {
        let OltpWorker { statements, c, .. } = &mut *self.worker;
        let with_text = [Param::Text(c), Param::Int(id)];
        let params = if kind == Kind::NonIndexUpdate { &with_text[..] } else { &with_text[1..] };
        let done =
            statements.execute(self.session, &self.oltp.templates, kind, table, params).await?;
        self.tally.count(done);
        self.tally.misses += u64::from(done.affected == 0);
        Ok(())
    }

    /// Inserts a row of fresh contents, under `id` where there is one.
    #[inline]
    async fn insert(&mut self, kind: Kind, table: u32, id: Option<i64>) -> Result<(), DbError> {
        let OltpWorker { rng, keys, statements, c, pad } = &mut *self.worker;
        let k = keys.draw(rng);
        fill_groups(c, rng);
        fill_groups(pad, rng);
        let id_param = Param::Int(id.unwrap_or_default());
        let all = [id_param, Param::Int(k), Param::Text(c), Param::Text(pad)];
        let params = if id.is_some() { &all[..] } else { &all[1..] };
        let done =
            statements.execute(self.session, &self.oltp.templates, kind, table, params).await?;
        self.tally.count(done);
        Ok(())
    }

    /// Statements of one kind on one table; a delete is followed by an insert of the same id.
    async fn repeat(&mut self, kind: Kind, count: u32) -> Result<(), DbError> {
        if count == 0 {
            return Ok(());
        }
        let table = self.table();
        for _ in 0..count {
            if kind == Kind::NonIndexUpdate {
                fill_groups(&mut self.worker.c, &mut self.worker.rng);
            }
            let id = self.worker.id();
            match kind {
                Kind::PointSelect => self.send(kind, table, &[Param::Int(id)]).await?,
                Kind::IndexUpdate | Kind::NonIndexUpdate => self.change(kind, table, id).await?,
                Kind::Delete => {
                    self.change(kind, table, id).await?;
                    self.insert(Kind::Insert, table, Some(id)).await?;
                }
                _ => {
                    let bounds = [Param::Int(id), Param::Int(id + self.oltp.range_span)];
                    self.send(kind, table, &bounds).await?;
                }
            }
        }
        Ok(())
    }

    async fn deletes(&mut self, count: u32) -> Result<(), DbError> {
        for _ in 0..count {
            let table = self.table();
            let id = self.worker.id();
            self.change(Kind::Delete, table, id).await?;
        }
        Ok(())
    }

    async fn new_rows(&mut self, count: u32) -> Result<(), DbError> {
        for _ in 0..count {
            let table = self.table();
            let id = match self.oltp.ids {
                IdSource::Absent => None,
                IdSource::Zero => Some(0),
                IdSource::Unique => Some(self.oltp.unique.next_id()),
            };
            self.insert(Kind::NewRow, table, id).await?;
        }
        Ok(())
    }
}
