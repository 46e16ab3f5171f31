//! The tables and the refresh sets as files.

use super::{TpchRows, part_row_count, refresh, row_count};
use crate::schema::SchemaTable;
use dyno_core::{RowSource, RowWriter};
use dyno_load::LoadObserver;
use dyno_runner::failure::Failure;
use dyno_wire::text_rows::{push_double, push_int};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A chunk's size: far more work than what a generator costs to begin, and it stays in the cache.
const CHUNK_BYTES: u64 = 512 << 10;
/// Bytes of a larger chunk that a thread makes before it waits for its turn.
const HELD_MAX_BYTES: usize = 1 << 20;
/// Interval at which a waiting thread looks whether all is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const OTHER_FOLDER: &str = "Choose a folder that you may write with --out.";

#[derive(Clone, Debug)]
pub struct FileOptions {
    /// One that [`super::check_scale`] accepts.
    pub scale: f64,
    /// The folder that gets the files; it is made if it does not exist.
    pub folder: PathBuf,
    pub format: LineFormat,
    pub content: Content,
    /// Threads, at least 1.
    pub threads: usize,
    pub overwrite: bool,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// Whole tables, a file each: `lineitem.tbl`.
    Tables(Vec<SchemaTable>),
    /// Parts of tables, in the files that dbgen writes with `-C parts`: `lineitem.tbl.3`; region and
    /// nation are whole and come with part 1.
    Parts {
        tables: Vec<SchemaTable>,
        /// Numbers of the parts, from 1.
        part: RangeInclusive<u32>,
        parts: u32,
    },
    /// Refresh sets, in the files that dbgen writes with `-U`: `orders.tbl.u1`, `lineitem.tbl.u1`,
    /// `delete.1`. The sets are from 1 to [`refresh::SET_MAX`].
    Refresh(RangeInclusive<u32>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: PathBuf,
    /// Its rows, without the header of CSV.
    pub rows: u64,
    pub bytes: u64,
}

/// A file that several threads write, each its chunk, in order. It has its name only once it is complete.
struct Job {
    path: PathBuf,
    /// The columns are the first of this table.
    table: SchemaTable,
    columns: usize,
    rows: u64,
    chunks: u32,
    /// The rows of a chunk, from 0.
    make: Box<dyn Fn(u32) -> TpchRows + Send + Sync>,
    progress: Mutex<Progress>,
    turned: Condvar,
}

#[derive(Default)]
struct Progress {
    file: Option<File>,
    /// The chunk whose turn it is.
    next: u32,
    rows: u64,
    bytes: u64,
}

/// Writes all files; several threads share each. A file has its name only once it is complete, and what
/// is unfinished at an error is removed.
///
/// # Errors
/// The first file that exists, or can't be written; an interruption after `stop` said so.
pub fn write(
    options: &FileOptions,
    observer: &dyn LoadObserver,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<WrittenFile>, Failure> {
    let jobs = jobs(options);
    if !options.overwrite {
        let existing: Vec<&Job> = jobs.iter().filter(|job| job.path.exists()).collect();
        if let Some(first) = existing.first() {
            let first = first.path.display();
            let message = match existing.len() - 1 {
                0 => format!("The file {first} exists already."),
                others => format!("The file {first} and {others} more exist already."),
            };
            return Err(Failure::usage(message).with_hint(
                "Add --overwrite to replace them, or choose another folder with --out.",
            ));
        }
    }
    fs::create_dir_all(&options.folder).map_err(|error| {
        let folder = options.folder.display();
        Failure::new(format!("The folder {folder} can't be made: {error}.")).with_hint(OTHER_FOLDER)
    })?;
    observer.rows_planned(jobs.iter().map(|job| job.rows).sum());
    super::prepare();
    let outcome = write_jobs(options, &jobs, observer, stop);
    if outcome.is_err() {
        jobs.iter().for_each(Job::discard);
    }
    let written = jobs.into_iter().map(|job| {
        let Progress { rows, bytes, .. } = *job.lock_progress();
        WrittenFile { path: job.path, rows, bytes }
    });
    outcome.map(|()| written.collect())
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
            "Make room, choose another folder with --out, or write less: fewer --tables, or one --part of several \
             --parts.",
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(OTHER_FOLDER),
        _ => None,
    };
    Failure::new(format!(
        "The file {} can't be written: {error}. What was unfinished is removed; complete files are kept.",
        path.display()
    ))
    .hinted(hint)
}

/// The files in the order in which they are written: the largest table first, because its chunks keep
/// all threads busy, and what is small fills the end.
fn jobs(options: &FileOptions) -> Vec<Job> {
    match &options.content {
        Content::Tables(tables) => {
            largest_first(tables).map(|table| table_job(options, table, 1, 1, "")).collect()
        }
        Content::Parts { tables, part: chosen, parts } => largest_first(tables)
            .flat_map(|table| {
                let is_small = matches!(table, SchemaTable::Region | SchemaTable::Nation);
                let file_parts = chosen.clone().filter(move |part| !is_small || *part == 1);
                file_parts.map(move |part| (table, part, is_small))
            })
            .map(|(table, part, is_small)| {
                let name = if is_small { String::new() } else { part.to_string() };
                table_job(options, table, part, *parts, &name)
            })
            .collect(),
        Content::Refresh(sets) => sets.clone().flat_map(|set| refresh_jobs(options, set)).collect(),
    }
}

/// The tables, each once, from the largest to the smallest.
fn largest_first(tables: &[SchemaTable]) -> impl Iterator<Item = SchemaTable> {
    let mut tables = tables.to_vec();
    tables.sort();
    tables.dedup();
    tables.into_iter().rev()
}

/// Part `part` of `parts` (both from 1) of a table, in a file with `name` for its part.
fn table_job(options: &FileOptions, table: SchemaTable, part: u32, parts: u32, name: &str) -> Job {
    let scale = options.scale;
    let chunks = chunks_of_part(table, scale, parts);
    Job {
        path: file_path(options, table.name(), name),
        table,
        columns: table.columns().len(),
        rows: part_row_count(table, scale, part, parts),
        chunks,
        make: Box::new(move |chunk: u32| {
            TpchRows::for_part(table, scale, (part - 1) * chunks + chunk + 1, parts * chunks)
        }),
        progress: Mutex::default(),
        turned: Condvar::new(),
    }
}

/// The three files of a refresh set: orders and lines to insert, keys to delete.
fn refresh_jobs(options: &FileOptions, set: u32) -> [Job; 3] {
    let scale = options.scale;
    let orders = refresh::orders(scale);
    let tables = [
        (SchemaTable::Orders, orders),
        (SchemaTable::Lineitem, refresh::lines(scale, set)),
        (SchemaTable::Orders, orders),
    ];
    let [orders, lines, deleted] = tables.map(|(table, rows)| Job {
        path: file_path(options, table.name(), &format!("u{set}")),
        rows,
        chunks: 1,
        make: Box::new(move |_| refresh::inserted(table, scale, set, 0..u64::MAX)),
        ..table_job(options, table, 1, 1, "")
    });
    let deleted = Job {
        path: file_path(options, "delete", &set.to_string()),
        columns: 1,
        make: Box::new(move |_| refresh::deleted(scale, set)),
        ..deleted
    };
    [orders, lines, deleted]
}

fn file_path(options: &FileOptions, name: &str, part: &str) -> PathBuf {
    let extension = options.format.extension();
    let name = match options.format {
        _ if part.is_empty() => format!("{name}.{extension}"),
        LineFormat::Tbl if name == "delete" => format!("{name}.{part}"),
        LineFormat::Tbl => format!("{name}.{extension}.{part}"),
        LineFormat::Csv => format!("{name}.{part}.{extension}"),
    };
    options.folder.join(name)
}

fn write_jobs(
    options: &FileOptions,
    jobs: &[Job],
    observer: &dyn LoadObserver,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let error = Mutex::new(None);
    let over = || has_failed.load(Ordering::Relaxed) || stop();
    let work = || {
        let mut buffer = Vec::with_capacity(2 * HELD_MAX_BYTES);
        while !over()
            && let Some((job, chunk)) = chunk_at(jobs, next.fetch_add(1, Ordering::Relaxed))
        {
            match job.write_chunk(chunk, options.format, &mut buffer, &over) {
                Ok(rows) => observer.rows_done(rows),
                Err(cause) => {
                    has_failed.store(true, Ordering::Relaxed);
                    let first = &mut *error.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert_with(|| not_written(&job.path, &cause));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..options.threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error),
        None if stop() => Err(Failure::interrupted(
            "Stopped. What was unfinished is removed; complete files are kept.",
        )),
        None => Ok(()),
    }
}

fn chunk_at(jobs: &[Job], mut number: usize) -> Option<(&Job, u32)> {
    for job in jobs {
        if number < job.chunks as usize {
            return Some((job, number as u32));
        }
        number -= job.chunks as usize;
    }
    None
}

impl Job {
    fn lock_progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfinished_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".part");
        path.into()
    }

    /// Returns the number of rows; stops if `over` says so.
    fn write_chunk(
        &self,
        chunk: u32,
        format: LineFormat,
        buffer: &mut Vec<u8>,
        over: &dyn Fn() -> bool,
    ) -> io::Result<u64> {
        buffer.clear();
        if chunk == 0 && format == LineFormat::Csv {
            let names = self.table.columns().iter().take(self.columns).map(|(name, _)| *name);
            buffer.extend_from_slice(names.collect::<Vec<_>>().join(",").as_bytes());
            buffer.push(b'\n');
        }
        let (mut rows, mut count) = ((self.make)(chunk), 0);
        loop {
            let has_more = format.fill(&mut rows, buffer, HELD_MAX_BYTES, &mut count);
            let mut progress = self.lock_progress();
            while progress.next != chunk {
                if over() {
                    return Ok(0);
                }
                let woken = self.turned.wait_timeout(progress, LOOK_EVERY);
                progress = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            let file = match &mut progress.file {
                Some(file) => file,
                none => none.insert(File::create(self.unfinished_path())?),
            };
            file.write_all(buffer)?;
            progress.bytes += buffer.len() as u64;
            buffer.clear();
            if !has_more {
                progress.rows += count;
                progress.next += 1;
                if progress.next == self.chunks {
                    progress.file = None;
                    fs::rename(self.unfinished_path(), &self.path)?;
                }
                self.turned.notify_all();
            }
            if !has_more || over() {
                return Ok(count);
            }
        }
    }

    /// Removes what is unfinished: on a full disk it would be in the way of what comes next.
    fn discard(&self) {
        if self.lock_progress().file.take().is_some() {
            // There is an earlier error to tell of.
            let _ = fs::remove_file(self.unfinished_path());
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// The format of dbgen: `|` behind every column.
    #[default]
    Tbl,
    /// Columns separated by commas and quoted if they hold one (RFC 4180, but lines end with a newline
    /// alone); the names of the columns are the first line.
    Csv,
}

impl LineFormat {
    /// The end of a file's name.
    fn extension(self) -> &'static str {
        match self {
            LineFormat::Tbl => "tbl",
            LineFormat::Csv => "csv",
        }
    }

    /// Appends rows until the buffer holds `limit_bytes`; counts them. Returns false when there are
    /// no more.
    pub fn fill(
        self,
        rows: &mut dyn RowSource,
        out: &mut Vec<u8>,
        limit_bytes: usize,
        count: &mut u64,
    ) -> bool {
        let is_csv = self == LineFormat::Csv;
        let mut columns = Columns { out, separator: if is_csv { b',' } else { b'|' } };
        while columns.out.len() < limit_bytes {
            if !rows.next_row(&mut columns) {
                return false;
            }
            match columns.out.last_mut() {
                // The last comma becomes the end of the row.
                Some(last) if is_csv => *last = b'\n',
                _ => columns.out.push(b'\n'),
            }
            *count += 1;
        }
        true
    }
}

/// Columns with a separator behind each.
struct Columns<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
}

impl RowWriter for Columns<'_> {
    #[inline]
    fn int(&mut self, value: i64) {
        push_int(self.out, value);
        self.out.push(self.separator);
    }

    #[inline]
    fn double(&mut self, value: f64) {
        push_double(self.out, value);
        self.out.push(self.separator);
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 3);
        // TPC-H's text has neither quotes nor newlines.
        let is_quoted = self.separator == b',' && value.contains(&b',');
        if is_quoted {
            self.out.push(b'"');
        }
        self.out.extend_from_slice(value);
        if is_quoted {
            self.out.push(b'"');
        }
        self.out.push(self.separator);
    }

    #[inline]
    fn null(&mut self) {
        self.out.push(self.separator);
    }
}

/// Into how many chunks each of `parts` parts of a table goes.
///
/// A part is `rows / parts` rows, the last one more; so chunks of a part are parts of the table only if
/// their number divides the rows of the part. A prime number of rows makes one chunk: slower with
/// several threads, but right.
fn chunks_of_part(table: SchemaTable, scale: f64, parts: u32) -> u32 {
    // Lines are made by orders, partsupp by parts.
    let (maker, rows_each) = match table {
        SchemaTable::Region | SchemaTable::Nation => return 1,
        SchemaTable::Partsupp => (SchemaTable::Part, 4),
        SchemaTable::Lineitem => (SchemaTable::Orders, 4),
        other => (other, 1),
    };
    let unit_bytes = rows_each * table.row_bytes();
    let part_units = row_count(maker, scale) / u64::from(parts.max(1));
    // The number of a chunk in the whole table is an i32 in tpchgen.
    let chunks_max = (i32::MAX as u64 / u64::from(parts.max(1))).max(1);
    let target_chunks = (part_units * unit_bytes / CHUNK_BYTES).clamp(1, chunks_max);
    let mut larger_first = (1..=target_chunks).rev();
    let fitting = larger_first.find(|chunks| parts == 1 || part_units.is_multiple_of(*chunks));
    fitting.unwrap_or(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::part_row_count;

    #[test]
    fn chunks_of_a_part_have_its_rows() {
        for (scale, parts) in [(1.0, 1), (0.7, 1), (1.0, 4), (1.0, 7), (3.333, 3), (10.0, 16)] {
            for table in [
                SchemaTable::Orders,
                SchemaTable::Part,
                SchemaTable::Customer,
                SchemaTable::Supplier,
            ] {
                let chunks = chunks_of_part(table, scale, parts);
                for part in 1..=parts {
                    let first = (part - 1) * chunks + 1;
                    let rows = (first..first + chunks)
                        .map(|chunk| part_row_count(table, scale, chunk, parts * chunks));
                    assert_eq!(
                        rows.sum::<u64>(),
                        part_row_count(table, scale, part, parts),
                        "{table:?} {scale} {part}/{parts}"
                    );
                }
            }
        }
    }

    #[test]
    fn large_tables_make_many_chunks() {
        assert_eq!(chunks_of_part(SchemaTable::Lineitem, 1.0, 1), 1453);
        assert!(chunks_of_part(SchemaTable::Lineitem, 1.0, 4) > 100);
        assert!(chunks_of_part(SchemaTable::Lineitem, 100_000.0, 1000) > 1000);
        // Seven doesn't divide the orders; what each part has is still divided.
        assert!(chunks_of_part(SchemaTable::Orders, 1.0, 7) > 1);
    }
}
