//! The rows of a load as CSV files, with the names and the column orders of BenchmarkSQL's loader:
//! what `COPY ... WITH (FORMAT csv, NULL 'NULL')` takes.

use super::TpccLoadOptions;
use super::chunks::{self, Chunk};
use super::rows::{ChunkRows, Common, row_count};
use super::state::config_rows;
use crate::random::Constants;
use crate::schema::{CONFIG, TpccTable};
use dyno_core::{Dialect, Rng, RowSource, RowWriter};
use dyno_load::LoadObserver;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Rows between two notes of progress.
const NOTED: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    pub table: &'static str,
    pub columns: Vec<&'static str>,
    pub path: PathBuf,
    pub rows: u64,
}

/// The name of a table's file without `.csv`, and its first columns where BenchmarkSQL has them in
/// another order than the table: the place of each of these in the table.
fn shape(table: TpccTable) -> (&'static str, &'static [usize]) {
    match table {
        TpccTable::Item => ("item", &[]),
        TpccTable::Warehouse => ("warehouse", &[]),
        TpccTable::District => ("district", &[1, 0]),
        TpccTable::Customer => ("customer", &[2, 1, 0]),
        TpccTable::History => ("cust-hist", &[]),
        TpccTable::Order => ("order", &[2, 0, 1]),
        TpccTable::NewOrder => ("new-order", &[]),
        TpccTable::Stock => ("stock", &[1, 0]),
        TpccTable::OrderLine => ("order-line", &[]),
    }
}

/// The columns of a table in the order of its file.
fn columns(table: TpccTable) -> Vec<&'static str> {
    let (columns, (_, first)) = (table.columns(), shape(table));
    first.iter().map(|&at| columns[at]).chain(columns[first.len()..].iter().copied()).collect()
}

/// Writes the rows that a load with the same options would store into ten files, whose names begin
/// with `prefix`; as many at once as the options have sessions. A file has its name only once it is
/// complete. `null` stands for NULL.
pub fn write_csv(
    options: &TpccLoadOptions,
    dialect: Dialect,
    (prefix, null): (&str, &str),
    observer: &dyn LoadObserver,
) -> Result<Vec<CsvFile>, String> {
    let constants = Constants::for_load(&mut Rng::new(options.seed, "tpcc constants", 0));
    let common = Common { seed: options.seed, dialect, loaded_at: options.loaded_at, constants };
    let chunks = chunks::all(options.warehouses);
    let job = |table: TpccTable| {
        let chunks: Vec<Chunk> =
            chunks.iter().filter(|chunk| chunk.table == table).copied().collect();
        let rows = chunks.iter().map(|chunk| row_count(options.seed, chunk)).sum();
        let path = PathBuf::from(format!("{prefix}{}.csv", shape(table).0));
        (table, chunks, CsvFile { table: table.name(), columns: columns(table), path, rows })
    };
    let mut jobs: Vec<_> = TpccTable::ALL.into_iter().map(job).collect();
    observer.rows_planned(jobs.iter().map(|(.., file)| file.rows).sum());
    // The largest ones first, so that none is left for the end.
    jobs.sort_by_key(|(.., file)| std::cmp::Reverse(file.rows));
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !has_failed.load(Ordering::Relaxed)
            && let Some((table, chunks, file)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let written = write_table(common, *table, chunks, file, null, observer);
            if let Err(error) = written {
                has_failed.store(true, Ordering::Relaxed);
                return Err(unwritten(&file.path, &error));
            }
        }
        Ok(())
    };
    let threads = (options.sessions.max(1) as usize).min(jobs.len());
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ends = started.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.collect::<Result<Vec<()>, _>>()
    })?;
    let mut files = vec![write_config(options.warehouses, &constants, prefix)?];
    jobs.sort_by_key(|(table, ..)| *table);
    files.extend(jobs.into_iter().map(|(.., file)| file));
    Ok(files)
}

fn write_table(
    common: Common,
    table: TpccTable,
    chunks: &[Chunk],
    file: &CsvFile,
    null: &str,
    observer: &dyn LoadObserver,
) -> io::Result<()> {
    let part = file.path.with_extension("csv.part");
    let mut out = Lines {
        out: BufWriter::with_capacity(1 << 18, File::create(&part)?),
        null,
        line: Vec::with_capacity(1 << 10),
        first: shape(table).1,
        starts: Vec::new(),
        error: Ok(()),
    };
    let mut noted = 0;
    for chunk in chunks {
        let mut rows = ChunkRows::new(common, *chunk);
        while rows.next_row(&mut out) {
            out.end_row();
            noted += 1;
            if noted == NOTED {
                observer.rows_done(noted);
                noted = 0;
            }
        }
        std::mem::replace(&mut out.error, Ok(()))?;
    }
    observer.rows_done(noted);
    out.out.flush()?;
    fs::rename(part, &file.path)
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("The file {} can't be written: {error}.", path.display())
}

fn write_config(warehouses: u32, constants: &Constants, prefix: &str) -> Result<CsvFile, String> {
    let rows = config_rows(warehouses, constants);
    let text: String = rows.iter().map(|(name, value)| format!("{name},{value}\n")).collect();
    let path = PathBuf::from(format!("{prefix}config.csv"));
    match fs::write(&path, text) {
        Ok(()) => {
            let columns = vec!["cfg_name", "cfg_value"];
            Ok(CsvFile { table: CONFIG, columns, path, rows: rows.len() as u64 })
        }
        Err(error) => Err(unwritten(&path, &error)),
    }
}

/// Writes rows as lines. What rows hold needs no quotes: letters, digits, points in time.
struct Lines<'a> {
    out: BufWriter<File>,
    null: &'a str,
    /// The line that is being made, in the order of the table.
    line: Vec<u8>,
    first: &'static [usize],
    /// Where its first columns begin and where the next one does.
    starts: Vec<usize>,
    /// The first error: a row can't fail.
    error: io::Result<()>,
}

impl Lines<'_> {
    fn value(&mut self, value: &[u8]) {
        if !self.line.is_empty() {
            self.line.push(b',');
        }
        if self.starts.len() <= self.first.len() {
            self.starts.push(self.line.len());
        }
        self.line.extend_from_slice(value);
    }

    fn end_row(&mut self) {
        let written =
            if self.first.is_empty() { self.out.write_all(&self.line) } else { self.moved() };
        let written = written.and_then(|()| self.out.write_all(b"\n"));
        if self.error.is_ok() {
            self.error = written;
        }
        self.line.clear();
        self.starts.clear();
    }

    /// The line with its first columns in the order of the file.
    fn moved(&mut self) -> io::Result<()> {
        for &at in self.first {
            // With the comma behind it.
            self.out.write_all(&self.line[self.starts[at]..self.starts[at + 1]])?;
        }
        self.out.write_all(&self.line[self.starts[self.first.len()]..])
    }
}

impl RowWriter for Lines<'_> {
    fn int(&mut self, value: i64) {
        let mut digits = crate::text::Short::<20>::default();
        digits.push_int(value);
        self.value(digits.get());
    }

    fn double(&mut self, value: f64) {
        self.value(value.to_string().as_bytes());
    }

    fn text(&mut self, value: &[u8]) {
        self.value(value);
    }

    fn null(&mut self) {
        self.value(self.null.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_loader() {
        let start = |table| columns(table).into_iter().take(4).collect::<Vec<_>>().join(",");
        assert_eq!(start(TpccTable::Stock), "s_i_id,s_w_id,s_quantity,s_ytd");
        assert_eq!(start(TpccTable::District), "d_id,d_w_id,d_ytd,d_tax");
        assert_eq!(start(TpccTable::Customer), "c_id,c_d_id,c_w_id,c_discount");
        assert_eq!(start(TpccTable::Order), "o_id,o_w_id,o_d_id,o_c_id");
        assert_eq!(start(TpccTable::OrderLine), "ol_w_id,ol_d_id,ol_o_id,ol_number");
        for table in TpccTable::ALL {
            let (mut ours, mut theirs) = (columns(table), table.columns());
            ours.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(ours, theirs, "{table:?}");
        }
    }
}
