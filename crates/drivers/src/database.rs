//! The driver of a target.

use std::sync::atomic::{AtomicBool, Ordering};

use dyno_core::{Address, AdminDriver, Capabilities, DbError, DbResult, Dialect, Driver, ShardMap};

use crate::mysql::MysqlDriver;
use crate::net::Transport;
use crate::postgres::PostgresDriver;
use crate::route::{NodeRouting, Routed};
use crate::sqlite::SqliteDriver;
use crate::target::{TargetUrl, spell_hint};

/// One of the drivers, chosen once per trial, never per query. A clone shares its nodes.
#[derive(Clone)]
pub enum Database {
    Mysql(Routed<MysqlDriver>),
    Postgres(Routed<PostgresDriver>),
    Sqlite(SqliteDriver),
}

/// Evaluates an expression with the driver inside a [`Database`].
#[macro_export]
macro_rules! with_driver {
    ($database:expr, $driver:ident => $body:expr) => {
        match $database {
            $crate::Database::Mysql($driver) => $body,
            $crate::Database::Postgres($driver) => $body,
            $crate::Database::Sqlite($driver) => $body,
        }
    };
}

fn open_each<D>(nodes: &[TargetUrl], open: impl Fn(&TargetUrl) -> DbResult<D>) -> DbResult<Vec<D>> {
    nodes.iter().map(|node| open(node).map_err(|error| spell_hint(error, node.spellings))).collect()
}

impl Database {
    /// The driver for a target; connects to no server.
    pub fn open(target: &TargetUrl) -> DbResult<Self> {
        Self::open_nodes(
            std::slice::from_ref(target),
            0,
            NodeRouting::Primary,
            NodeRouting::Primary,
        )
    }

    /// The driver for a target with several nodes, of which `writable` takes writes: see [`Routed::new`]. For an
    /// embedded database, the first is opened.
    pub fn open_nodes(
        nodes: &[TargetUrl],
        writable: usize,
        way: NodeRouting,
        loads: NodeRouting,
    ) -> DbResult<Self> {
        Ok(match nodes[0].dialect {
            Dialect::Mysql => {
                let nodes = open_each(nodes, MysqlDriver::new)?;
                Database::Mysql(Routed::new(nodes, writable, way, loads)?)
            }
            Dialect::Postgres => {
                let nodes = open_each(nodes, PostgresDriver::new)?;
                Database::Postgres(Routed::new(nodes, writable, way, loads)?)
            }
            Dialect::Sqlite => Database::Sqlite(SqliteDriver::new(&nodes[0])?),
        })
    }

    /// Adds the names and numbers of the nodes that are shards: see [`Routed::with_shards`]. An embedded
    /// database has none.
    #[must_use]
    pub fn with_shards(self, shards: Vec<(String, usize)>, map: Option<ShardMap>) -> Self {
        match self {
            Database::Mysql(routed) => Database::Mysql(routed.with_shards(shards, map)),
            Database::Postgres(routed) => Database::Postgres(routed.with_shards(shards, map)),
            embedded => embedded,
        }
    }

    /// Has sessions opened from now on write to another node, counted in the order of the plan.
    pub fn switch_primary(&self, node: usize) {
        match self {
            Database::Mysql(routed) => routed.switch_primary(node),
            Database::Postgres(routed) => routed.switch_primary(node),
            // An embedded database is its only node.
            _ => {}
        }
    }

    /// The node that takes writes, counted in the order of the plan.
    pub fn writable(&self) -> usize {
        match self {
            Database::Mysql(routed) => routed.writable(),
            Database::Postgres(routed) => routed.writable(),
            _ => 0,
        }
    }

    /// The node that new session `number` reads from, counted in the order of the plan.
    pub fn reads_at(&self, number: u32) -> usize {
        match self {
            Database::Mysql(routed) => routed.reads_at(number),
            Database::Postgres(routed) => routed.reads_at(number),
            _ => 0,
        }
    }

    /// For what is not measured: opens sessions to the node that takes writes.
    pub fn primary_admin(&self) -> AdminDriver<'_> {
        with_driver!(self, driver => driver.primary().admin())
    }

    /// For what is not measured: opens sessions to the nodes that a trial's sessions go to.
    pub fn admin(&self) -> AdminDriver<'_> {
        with_driver!(self, driver => driver.admin())
    }

    /// The dialect that the server speaks.
    pub fn dialect(&self) -> Dialect {
        with_driver!(self, driver => driver.dialect())
    }

    /// Returns true if sessions block their thread.
    pub fn blocks(&self) -> bool {
        with_driver!(self, driver => driver.blocks())
    }

    /// Abilities of the driver's databases.
    pub fn capabilities(&self) -> &'static Capabilities {
        with_driver!(self, driver => driver.capabilities())
    }
}

static HAS_USED_FETCHED_KEY: AtomicBool = AtomicBool::new(false);

/// True if this process has sent a password over TCP without TLS under a key that the server sent.
pub fn has_used_fetched_key() -> bool {
    HAS_USED_FETCHED_KEY.load(Ordering::Relaxed)
}

/// A server's request for the password itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disclosure {
    ClearText,
    /// The password under an RSA key that came from the server, unsigned.
    FetchedKey,
}

/// The disclosures that the target's options allow over TCP without TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OptIns {
    clear_text: bool,
    fetched_key: bool,
}

impl OptIns {
    pub(crate) fn from_target(target: &TargetUrl) -> Self {
        OptIns {
            clear_text: target.option("allow_cleartext") == Some("true"),
            fetched_key: target.option("get_server_public_key") == Some("true"),
        }
    }
}

impl Disclosure {
    /// Refuses a request that others could read, or could have made.
    pub(crate) fn check(
        self,
        transport: &Transport,
        address: &Address,
        opt_ins: OptIns,
    ) -> DbResult<()> {
        let (is_allowed, way, risk, opt_in) = match self {
            Disclosure::ClearText => {
                (opt_ins.clear_text, "in clear text", "could read it", "allow_cleartext=true")
            }
            Disclosure::FetchedKey => (
                opt_ins.fetched_key,
                "under its own key",
                "could have sent theirs",
                "get-server-public-key=true or server_public_key=FILE",
            ),
        };
        if transport.is_private() {
            return Ok(());
        }
        if is_allowed {
            HAS_USED_FETCHED_KEY.fetch_or(self == Disclosure::FetchedKey, Ordering::Relaxed);
            return Ok(());
        }
        // Not 28000: another password would not help.
        let refusal = DbError::rejected(
            0,
            *b"08004",
            format!(
                "The server at {address} asks for the password {way} over a connection without TLS, where others {risk}."
            ),
        );
        Err(refusal.with_hint(format!(
            "connect with tls=require, or add {opt_in} in the URL if the network is yours"
        )))
    }
}
