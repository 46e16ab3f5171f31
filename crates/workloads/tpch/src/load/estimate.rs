//! The room that a load needs on the disk, and whether it is there.

use super::TpchLoadOptions;
use dyno_core::{AdminSession, Dialect, Session};
use dyno_facts::format;
use dyno_load::query::{answer, number};
use dyno_load::{LoadError, LoadObserver};

/// The room that a load needs on the disk, in bytes; about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Tables and primary keys, when the load is over.
    pub data_bytes: u64,
    /// Secondary indexes, when the load is over.
    pub index_bytes: u64,
    /// The most that sorting, copies of tables and logs take meanwhile on top of it.
    pub temporary_bytes: u64,
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
        Dialect::Postgres => (1_480.0, 640.0, 800.0),
        Dialect::Mysql => (1_500.0, 1_200.0, 1_300.0),
        Dialect::Sqlite => (1_300.0, 1_000.0, 200.0),
    };
    let bytes = |mb: f64| (mb * 1e6 * scale) as u64;
    Estimate {
        data_bytes: bytes(data),
        index_bytes: if indexes { bytes(index) } else { 0 },
        temporary_bytes: bytes(temporary),
    }
}

/// Refuses a load that does not fit the disk of the database, where that can be seen from here.
pub(super) async fn check_room(
    session: &mut AdminSession<'_>,
    options: &TpchLoadOptions,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    if options.force {
        return Ok(());
    }
    let needed = estimate(session.dialect(), options.scale, options.indexes);
    let text = |bytes: u64| format::bytes(bytes as f64);
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
    fn needs_grow_with_the_scale_factor() {
        for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
            let one = estimate(dialect, 1.0, true);
            let hundred = estimate(dialect, 100.0, true);
            assert_eq!(hundred.disk_bytes() / 100, one.disk_bytes());
            let bare = estimate(dialect, 1.0, false);
            assert_eq!(bare.disk_bytes() + one.index_bytes, one.disk_bytes());
        }
    }
}
