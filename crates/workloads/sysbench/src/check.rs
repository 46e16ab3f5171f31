//! Checks before a run, so that a wrong option is one clear sentence and not a storm of errors.

use crate::options::SysbenchOptions;
use crate::rows::id_at;
use dyno_core::{AdminSession, DbError};
use dyno_load::{LoadError, catalog, query, while_doing};

/// Behavior of a test with tables that have fewer rows than it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRows {
    /// Is refused, unless few are missing: its figures would be those of another test.
    Refused,
    /// Runs, as the original does (1.0.20 looks at no table), and says so.
    Noted,
}

/// Looks whether `workers` workers can run the test on this database: whether the tables are there and hold enough
/// rows. Returns sentences that the user should read.
pub async fn preflight(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    workers: u32,
    missing_rows: MissingRows,
) -> Result<Vec<String>, LoadError> {
    let names = options.table_names(workers);
    let existing = catalog::tables(session).await.map_err(while_doing("listing the tables"))?;
    let missing: Vec<&String> = names.iter().filter(|name| !existing.contains(*name)).collect();
    if let Some(first) = missing.first() {
        let problem = match missing.len() {
            1 => format!("table '{first}' doesn't exist"),
            2 => format!("table '{first}' doesn't exist, nor does 1 other"),
            count => format!("table '{first}' doesn't exist, nor do {} others", count - 1),
        };
        return Err(LoadError::data(problem, prepare_hint(options, workers)));
    }
    if options.test.is_bulk_insert() || options.test.is_insert() {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    for name in names.iter().take(tables_read(options)) {
        warnings.extend(check_size(session, options, name, missing_rows).await?);
    }
    Ok(warnings)
}

/// `select_random_*` reads the first table only.
fn tables_read(options: &SysbenchOptions) -> usize {
    if options.test.is_select_random() { 1 } else { options.tables as usize }
}

fn prepare_hint(options: &SysbenchOptions, workers: u32) -> String {
    let legacy = options.test.is_legacy();
    if options.test.is_bulk_insert() {
        format!("run prepare with --{}={workers}", if legacy { "num-threads" } else { "threads" })
    } else if options.test.is_select_random() && legacy {
        "run prepare".to_owned()
    } else {
        let name = if legacy { "oltp-tables-count" } else { "tables" };
        format!("run prepare with --{name}={}", options.tables)
    }
}

async fn check_size(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    table: &str,
    missing_rows: MissingRows,
) -> Result<Option<String>, LoadError> {
    let size_option = options.size_option();
    let size = i64::from(options.table_size);
    if size == 0 {
        return Err(LoadError::data(
            format!("--{size_option}=0 leaves no rows to work on"),
            format!("run prepare and run with --{size_option}=N, N > 0"),
        ));
    }
    let sql = format!("SELECT MAX(id) FROM {table}");
    let highest = query::number(session, &sql).await;
    let highest: i64 =
        highest.map_err(while_doing(format!("reading table '{table}'")))?.unwrap_or(0);
    if highest >= size {
        return Ok(None);
    }
    let (problem, hint) = match highest {
        0 => (
            format!("table '{table}' is empty"),
            format!("run prepare with --{size_option}={size}"),
        ),
        _ => (
            format!(
                "the ids of table '{table}' end at {highest}, but --{size_option} is {size}: {} of \
                 100 ids would not exist",
                ((size - highest) * 100 + size - 1) / size
            ),
            format!(
                "run with --{size_option}={highest}, or run cleanup and prepare with \
                 --{size_option}={size}"
            ),
        ),
    };
    // Deletes may have taken the last rows of a table that was prepared as the options say.
    if missing_rows == MissingRows::Noted || highest >= size - size / 10 {
        return Ok(Some(format!("Note that {problem}.")));
    }
    Err(LoadError::data(problem, hint))
}

/// Looks whether the server takes the statements that `workers` workers prepare.
pub async fn check_prepared(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
    workers: u32,
) -> Result<(), LoadError> {
    let remedy = "use fewer tables or threads, or send text with --db-ps-mode=disable";
    query::check_prepared(session, workers, options.prepared_statements(), remedy).await
}

/// Ids looked up at once by [`first_free_unique`].
const UNIQUE_WINDOW: u32 = 1_000;

/// For inserts that the client numbers (`auto_inc` off): how many numbers of the id sequence the
/// rows in the tables have used up, to be given as [`SysbenchOptions::unique_start`]. Starts from the number
/// of rows and passes over what failed transactions have left unused in between, as long as that
/// is less than a thousand numbers in a row.
pub async fn first_free_unique(
    session: &mut AdminSession<'_>,
    options: &SysbenchOptions,
) -> Result<u32, DbError> {
    let tables = options.table_names(1);
    let mut used: u32 = 0;
    for table in &tables {
        let count = query::number(session, &format!("SELECT COUNT(*) FROM {table}")).await?;
        used = used.wrapping_add(count.unwrap_or(0_i64) as u32);
    }
    loop {
        let ids: Vec<i64> = (0..UNIQUE_WINDOW).map(|n| id_at(used.wrapping_add(n))).collect();
        let list = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let mut last_taken = None;
        for table in &tables {
            let sql = format!("SELECT id FROM {table} WHERE id IN ({list})");
            for row in query::integers(session, &sql, 0).await? {
                let at = ids.iter().position(|id| row.first() == Some(id));
                last_taken = last_taken.max(at);
            }
        }
        match last_taken {
            Some(at) => used = used.wrapping_add(at as u32 + 1),
            None => return Ok(used),
        }
    }
}
