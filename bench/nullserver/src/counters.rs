//! Counters of the server. Each loop has its own cells, so counting takes no lock and no locked instruction; reading
//! sums the loops.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one loop writes and all may read.
#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed) + count, Relaxed);
    }
}

macro_rules! counters {
(
$($(#[$doc:meta])* $name:ident,)*;
$($(#[$about:meta])* $kind:ident $(@$default:ident)? = $executed:ident,)*
) => {
/// Commands, for the counters and for the transaction state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind { $($(#[$default])? $kind,)* }

/// Counts of one protocol since the server started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ProtocolCounters {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$about])* pub $executed: u64,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct Cells { $(pub(crate) $name: Cell,)* $($executed: Cell,)* }

        impl Cells {
            pub(crate) fn add_to(&self, sum: &mut ProtocolCounters) {
                $(sum.$name += self.$name.0.load(Relaxed);)*
                $(sum.$executed += self.$executed.0.load(Relaxed);)*
            }

            #[inline]
            pub(crate) fn statement(&self, kind: Kind) {
                match kind {
                    $(Kind::$kind => self.$executed.add(1),)*
                }
            }
        }

        impl ProtocolCounters {
            /// All counters with their names, in a fixed order.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                let statements = [$((stringify!($executed), self.$executed),)*];
                [$((stringify!($name), self.$name),)*].into_iter().chain(statements)
            }

/// Executed statements of all kinds.
pub fn statements(&self) -> u64 {
                [$(self.$executed),*].iter().sum()
            }
        }
    };
}

counters! {
    connections,
    logins,
    /// Queries that no canned answer fits.
    unknown,
/// Requests against the protocol; each closed its connection.
violations,
query,
/// COM_STMT_PREPARE packets or Parse messages.
prepare,
execute,
    bind,
    describe,
    sync,
    flush,
close,
/// COM_STMT_RESET and COM_RESET_CONNECTION packets.
reset,
    ping,
    init_db,
    set_option,
    quit,
    cancel,
    rows_sent,
    rows_inserted,
    /// Rows received by LOAD DATA and COPY.
    rows_loaded,
    ;
Empty @default = empty,
Select = select,
/// INSERT and REPLACE statements.
Insert = insert,
Update = update,
Delete = delete,
/// BEGIN and START TRANSACTION statements.
Begin = begin,
/// COMMIT and END statements.
Commit = commit,
    Rollback = rollback,
    Set = set,
    Show = show,
    Use = use_database,
    Load = load,
/// CREATE, DROP, ALTER and TRUNCATE statements.
Ddl = ddl,
Other = other,
}

/// Displays as one JSON object without counters that are 0, except `violations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    pub mysql: ProtocolCounters,
    pub postgres: ProtocolCounters,
}

impl Counters {
    pub fn violations(&self) -> u64 {
        self.mysql.violations + self.postgres.violations
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"violations\":{}", self.violations())?;
        for (protocol, counters) in [("mysql", &self.mysql), ("postgres", &self.postgres)] {
            write!(f, ",\"{protocol}\":{{\"statements\":{}", counters.statements())?;
            for (name, count) in counters.each().filter(|(_, count)| *count > 0) {
                write!(f, ",\"{name}\":{count}")?;
            }
            f.write_str("}")?;
        }
        f.write_str("}")
    }
}

/// Violations with a text; later ones are only counted.
const NOTES_MAX: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(crate) fn add(&self, note: String) {
        let mut notes = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if notes.len() < NOTES_MAX {
            notes.push(note);
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}
