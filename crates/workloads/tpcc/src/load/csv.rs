//! The rows of a load as CSV files, with the names and the column orders of BenchmarkSQL's loader:
//! what `COPY ... WITH (FORMAT csv, NULL 'NULL')` takes.

use super::TpccLoadOptions;
use super::config::config_rows;
use super::rows::{Chunk, ChunkRows, RowParameters, item_chunks, warehouse_chunks};
use crate::random::Constants;
use crate::schema::{CONFIG, TpccTable};
use dyno_core::{Dialect, RowSource, RowWriter};
use dyno_load::LoadObserver;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
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
    let parameters = RowParameters::new(options.seed, dialect, options.loaded_at);
    let chunks = [item_chunks(), warehouse_chunks(1..=options.warehouses)].concat();
    let job = |table: TpccTable| {
        let chunks: Vec<Chunk> =
            chunks.iter().filter(|chunk| chunk.table == table).copied().collect();
        let rows = chunks.iter().map(|chunk| chunk.rows(options.seed)).sum();
        let path = PathBuf::from(format!("{prefix}{}.csv", shape(table).0));
        (table, chunks, CsvFile { table: table.name(), columns: columns(table), path, rows })
    };
    let mut jobs: Vec<_> = TpccTable::ALL.into_iter().map(job).collect();
    observer.rows_planned(jobs.iter().map(|(.., file)| file.rows).sum());
    // The largest ones first, so that none is left for the end.
    jobs.sort_by_key(|(.., file)| std::cmp::Reverse(file.rows));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((table, chunks, file)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            write_table(parameters, *table, chunks, file, null, observer)
                .map_err(|error| unwritten(&file.path, &error))?;
        }
        Ok::<(), String>(())
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
    let mut files = vec![write_config(options.warehouses, &parameters.constants, prefix)?];
    jobs.sort_by_key(|(table, ..)| *table);
    files.extend(jobs.into_iter().map(|(.., file)| file));
    Ok(files)
}

fn write_table(
    parameters: RowParameters,
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
        first: shape(table).1,
        cells: Vec::with_capacity(1 << 10),
        ends: Vec::new(),
        error: Ok(()),
    };
    let mut noted = 0;
    for chunk in chunks {
        let mut rows = ChunkRows::new(parameters, *chunk);
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
    /// The first columns of the file, by their places in the table.
    first: &'static [usize],
    /// The cells of a row, and where each of them ends.
    cells: Vec<u8>,
    ends: Vec<usize>,
    /// The first error: a row can't fail.
    error: io::Result<()>,
}

impl Lines<'_> {
    fn value(&mut self, value: &[u8]) {
        self.cells.extend_from_slice(value);
        self.ends.push(self.cells.len());
    }

    fn end_row(&mut self) {
        let order = self.first.iter().copied().chain(self.first.len()..self.ends.len());
        for (place, column) in order.enumerate() {
            let begin = column.checked_sub(1).map_or(0, |before| self.ends[before]);
            let cell = &self.cells[begin..self.ends[column]];
            let separator: &[u8] = if place == 0 { b"" } else { b"," };
            let written = self.out.write_all(separator).and_then(|()| self.out.write_all(cell));
            self.error = std::mem::replace(&mut self.error, Ok(())).and(written);
        }
        let written = self.out.write_all(b"\n");
        self.error = std::mem::replace(&mut self.error, Ok(())).and(written);
        self.cells.clear();
        self.ends.clear();
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
