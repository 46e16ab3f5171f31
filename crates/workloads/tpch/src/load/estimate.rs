//! What a load will need on the disk and in memory, and whether that is there.

use super::TpchLoadOptions;
use dyno_core::{AdminSession, Dialect, Session};
use dyno_load::query::{answer, number};
use dyno_load::{LoadError, LoadObserver};

/// Memory of the generator in this process: its pool of text and the buffers of some sessions, bytes.
const GENERATOR_BYTES: u64 = 340_000_000;
/// The cache that SQLite is given in this process while it loads, bytes.
const SQLITE_CACHE_BYTES: u64 = super::work::SQLITE_CACHE_KIB as u64 * 1024;

/// What a load will need, in bytes; about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Tables and primary keys, when the load is over.
    pub data_bytes: u64,
    /// Secondary indexes, when the load is over.
    pub index_bytes: u64,
    /// The most that sorting, copies of tables and logs take meanwhile on top of it.
    pub temporary_bytes: u64,
    pub memory_bytes: u64,
}

impl Estimate {
    /// What has to be free before the first row.
    pub fn disk_bytes(&self) -> u64 {
        self.data_bytes + self.index_bytes + self.temporary_bytes
    }
}

/// Estimates a load. Measured at scale factors 0.1 and 1; tables grow with the scale factor.
pub fn estimate(dialect: Dialect, scale: f64, indexes: bool) -> Estimate {
    // MB for each unit of the scale factor: tables with primary keys, secondary indexes, and what
    // is needed in between (PostgreSQL: logs and the sorting of several indexes; MySQL: a second
    // lineitem when a key is added; SQLite: the log of one index).
    let (data, index, temporary) = match dialect {
        Dialect::Postgres => PER_SCALE_POSTGRES,
        Dialect::Mysql => PER_SCALE_MYSQL,
        Dialect::Sqlite => PER_SCALE_SQLITE,
    };
    let bytes = |mb: f64| (mb * 1e6 * scale) as u64;
    let cache = if dialect == Dialect::Sqlite { SQLITE_CACHE_BYTES } else { 0 };
    Estimate {
        data_bytes: bytes(data),
        index_bytes: if indexes { bytes(index) } else { 0 },
        temporary_bytes: bytes(temporary),
        memory_bytes: GENERATOR_BYTES + cache,
    }
}

const PER_SCALE_POSTGRES: (f64, f64, f64) = (1_480.0, 640.0, 800.0);
const PER_SCALE_MYSQL: (f64, f64, f64) = (1_500.0, 1_200.0, 1_300.0);
const PER_SCALE_SQLITE: (f64, f64, f64) = (1_300.0, 1_000.0, 200.0);

/// Refuses a load that does not fit the memory of this machine, or the disk of the database where
/// that can be seen from here.
pub(super) async fn check_room(
    session: &mut AdminSession<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    if options.force {
        return Ok(());
    }
    let dialect = session.dialect();
    let needed = estimate(dialect, options.scale, options.indexes);
    if let Some(available) = memory_available()
        && available < needed.memory_bytes
    {
        return Err(LoadError::Room {
            problem: format!(
                "A load needs about {} of memory for the generator, and this machine has {} left.",
                text(needed.memory_bytes),
                text(available)
            ),
            hint: "end other programs; --force loads nevertheless".to_owned(),
        });
    }
    let Some((folder, free)) = disk(session, options.same_host).await else {
        let sentence = "the disk of the server can't be looked at from here";
        observer
            .note(&format!("About {} of disk are needed; {sentence}", text(needed.disk_bytes())));
        return Ok(());
    };
    let there = size_bytes(session).await.unwrap_or(0);
    let missing = needed.disk_bytes().saturating_sub(there);
    if free >= missing {
        return Ok(());
    }
    Err(LoadError::Room {
        problem: format!(
            "Scale factor {} needs about {} more on the disk of {folder} ({} of rows and primary \
             keys, {} of secondary indexes, {} while it loads), and {} are free there.",
            options.scale,
            text(missing),
            text(needed.data_bytes),
            text(needed.index_bytes),
            text(needed.temporary_bytes),
            text(free)
        ),
        hint: "use a smaller scale factor or a larger disk; --force loads nevertheless".to_owned(),
    })
}

/// Bytes for people.
fn text(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e9 => format!("{:.0} MB", bytes / 1e6),
        bytes if bytes < 1e12 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} TB", bytes / 1e12),
    }
}

/// What the kernel could give to a process now, bytes.
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// The folder of the database and the bytes that are free there; `None` where it can't be seen.
async fn disk(session: &mut AdminSession<'_>, same_host: bool) -> Option<(String, u64)> {
    let sql = match session.dialect() {
        Dialect::Sqlite => "SELECT file FROM pragma_database_list",
        Dialect::Postgres if same_host => "SHOW data_directory",
        Dialect::Mysql if same_host => "SELECT @@datadir",
        Dialect::Postgres | Dialect::Mysql => return None,
    };
    let mut folder = answer(session, sql).await.ok()?.single()?.to_owned();
    if session.dialect() == Dialect::Sqlite {
        folder = std::path::Path::new(&folder).parent()?.display().to_string();
    }
    // In a container the server's folder may be another one, or none, here.
    let disk = rustix::fs::statvfs(&*folder).ok()?;
    Some((folder, disk.f_bavail * disk.f_frsize))
}

fn names() -> String {
    let names = crate::schema::SchemaTable::ALL.map(|table| format!("'{}'", table.name()));
    names.join(", ")
}

/// Bytes of the eight tables and their indexes; of an embedded database the whole file. `None` where the server
/// does not say.
pub(crate) async fn size_bytes(session: &mut AdminSession<'_>) -> Option<u64> {
    if let Some(sql) = session.capabilities().file_bytes {
        return number(session, sql).await.ok().flatten();
    }
    let sql = match session.dialect() {
        Dialect::Sqlite => return None,
        Dialect::Postgres => format!(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid \
             = c.relnamespace WHERE n.nspname = current_schema() AND c.relname IN ({})",
            names()
        ),
        Dialect::Mysql => format!(
            "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema \
             = DATABASE() AND table_name IN ({})",
            names()
        ),
    };
    number(session, &sql).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_grow_with_the_scale_factor_but_memory_does_not() {
        for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
            let one = estimate(dialect, 1.0, true);
            let hundred = estimate(dialect, 100.0, true);
            assert_eq!(hundred.disk_bytes() / 100, one.disk_bytes());
            assert_eq!(hundred.memory_bytes, one.memory_bytes);
            let bare = estimate(dialect, 1.0, false);
            assert_eq!(bare.disk_bytes() + one.index_bytes, one.disk_bytes());
        }
    }

    #[test]
    fn bytes_are_told_in_units_that_fit() {
        assert_eq!(text(340_000_000), "340 MB");
        assert_eq!(text(2_100_000_000), "2.1 GB");
        assert_eq!(text(210_000_000_000_000), "210.0 TB");
    }
}
