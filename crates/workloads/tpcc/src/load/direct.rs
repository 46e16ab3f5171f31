//! Loading the shards behind an endpoint directly: where rows go, and what of them is there.

use super::chunks::{self, Chunk};
use super::{Missing, missing_of, state};
use crate::schema::{LOAD_STATE, SHARD_STATE, STATE_COLUMNS, TpccTable};
use crate::text::Timestamp;
use dyno_core::{AdminDriver, AdminSession, ShardMap, ShardNode, Shards};
use dyno_load::query::execute;
use dyno_load::{LoadError, LoadObserver, LoadSessions, while_doing};
use std::collections::HashMap;

/// Where a part of the rows goes.
pub(super) struct LoadPlace<'d> {
    pub(super) driver: AdminDriver<'d>,
    /// The table that says what of it is done.
    pub(super) state: &'static str,
    /// The name of the shard; `None` of the address of the target.
    pub(super) shard: Option<String>,
    pub(super) missing: Vec<Missing>,
    /// Rows that are there.
    pub(super) rows_found: u64,
}

impl LoadPlace<'_> {
    /// With the shard, where it is one: `loading the rows bmsql_stock.1.1 on shard n2`.
    pub(super) fn named(&self, doing: String) -> String {
        match &self.shard {
            Some(shard) => format!("{doing} on shard {shard}"),
            None => doing,
        }
    }
}

/// What all rows of a load have in common.
#[derive(Clone, Copy)]
pub(super) struct LoadId {
    pub(super) seed: u64,
    pub(super) loaded_at: Timestamp,
}

/// The shards behind a driver and how warehouses lie on them, where both are known: then each can be reached directly.
pub(crate) fn mapped_shards<'d>(
    driver: &AdminDriver<'d>,
) -> Option<(ShardMap, Vec<ShardNode<AdminDriver<'d>>>)> {
    let Shards { nodes, map } = driver.shards()?;
    Some((map?, nodes))
}

/// The places of a load: the address of the target, then the shards that are loaded directly. `progress` is what has
/// been noted at that address.
///
/// # Errors
/// Those of sessions to shards; the endpoint has made other tables there.
pub(super) fn places<'d>(
    driver: &AdminDriver<'d>,
    id: LoadId,
    warehouses: u32,
    progress: &HashMap<String, bool>,
    observer: &dyn LoadObserver,
) -> Result<Vec<LoadPlace<'d>>, LoadError> {
    let place = |driver: &AdminDriver<'d>,
                 shard: Option<String>,
                 chunks: Vec<Chunk>,
                 progress: &HashMap<String, bool>| {
        let (missing, rows_found) = missing_of(id.seed, chunks, progress);
        let state = if shard.is_some() { SHARD_STATE } else { LOAD_STATE };
        LoadPlace { driver: *driver, state, shard, missing, rows_found }
    };
    let Some((map, nodes)) = mapped_shards(driver) else {
        return Ok(vec![place(driver, None, chunks::all(warehouses), progress)]);
    };
    let mut places = Vec::new();
    let mut have_items = false;
    for (number, ShardNode { name, driver }) in nodes.into_iter().enumerate() {
        let loader = LoadSessions::new(&driver, observer, 1);
        let (progress, has_items) =
            loader.one(async |session: &mut AdminSession<'_>| open(session, &name, id).await)?;
        have_items |= has_items;
        let own = (1..=warehouses).filter(|&warehouse| map.shard_of(warehouse) == number);
        let mut chunks = chunks::of_warehouses(own);
        if has_items {
            chunks.splice(..0, chunks::items());
        }
        places.push(place(&driver, Some(name), chunks, &progress));
    }
    // A catalogue that no shard has is the endpoint's own.
    let own = if have_items { Vec::new() } else { chunks::items() };
    places.insert(0, place(driver, None, own, progress));
    Ok(places)
}

/// What this load has done on a shard, and whether the items belong there. What another load has noted is forgotten: the
/// endpoint has made the tables anew since.
async fn open(
    session: &mut AdminSession<'_>,
    shard: &str,
    id: LoadId,
) -> Result<(HashMap<String, bool>, bool), LoadError> {
    let tables = state::tables(session).await?;
    let by_warehouse = |table: &&TpccTable| table.warehouse_column().is_some();
    let missing = TpccTable::ALL.iter().filter(by_warehouse).find(|it| !tables.contains(it.name()));
    if let Some(table) = missing {
        let problem = format!(
            "The shard {shard} has no table {}: the endpoint has created it under another name or elsewhere.",
            table.name()
        );
        let hint = "leave the shards or their `shard_rule` out of the target: the endpoint spreads the rows then";
        return Err(LoadError::data(problem, hint));
    }
    let has_items = tables.contains(TpccTable::Item.name());
    let own = format!("load {} {}", id.seed, id.loaded_at.0);
    if tables.contains(SHARD_STATE) {
        let progress = state::progress(session, SHARD_STATE).await?;
        if progress.contains_key(&own) {
            return Ok((progress, has_items));
        }
        forget(session).await?;
    }
    let doing = format!("creating table {SHARD_STATE} on shard {shard}");
    execute(session, &*doing, &format!("CREATE TABLE {SHARD_STATE} ({STATE_COLUMNS})")).await?;
    state::note_begun(session, SHARD_STATE, &own).await.map_err(while_doing(doing))?;
    Ok((HashMap::new(), has_items))
}

/// What the copies of the configuration on shards say, together: the endpoint reads any one of them, and a shard that
/// died has perhaps missed what the others were given.
pub(super) fn configs_on_shards(
    driver: &AdminDriver<'_>,
    observer: &dyn LoadObserver,
) -> Result<HashMap<String, String>, LoadError> {
    let mut together = HashMap::new();
    for node in mapped_shards(driver).map_or(Vec::new(), |(_, nodes)| nodes) {
        let of_shard = LoadSessions::new(&node.driver, observer, 1);
        let read = async |session: &mut AdminSession<'_>| state::config_found(session).await;
        together.extend(of_shard.one(read)?);
    }
    Ok(together)
}

async fn forget(session: &mut AdminSession<'_>) -> Result<(), LoadError> {
    let sql = format!("DROP TABLE IF EXISTS {SHARD_STATE}");
    execute(session, "dropping the list of what is done on a shard", &sql).await
}

/// Drops what a load has noted on shards.
pub(super) fn forget_all(
    driver: &AdminDriver<'_>,
    observer: &dyn LoadObserver,
) -> Result<(), LoadError> {
    let nodes = driver.shards().map_or(Vec::new(), |shards| shards.nodes);
    nodes.iter().try_for_each(|node| {
        let of_shard = LoadSessions::new(&node.driver, observer, 1);
        of_shard.one(async |session: &mut AdminSession<'_>| forget(session).await)
    })
}
