//! `dyno benchmarksql build`.

use super::properties::{Properties, redacted};
use super::settings::{Place, Reader};
use super::{PropertiesSource, warn};
use crate::benchmarksql::Done;
use dyno_core::Dialect;
use dyno_facts::format::whole;
use dyno_load::Unobserved;
use dyno_runner::databases::{ReachedDatabase, reach_target};
use dyno_runner::failure::Failure;
use dyno_runner::progress::{LoadProgress, follow_load};
use dyno_runner::{lock_tables, output};
use dyno_tpcc::load::{LoadReport, TpccLoadOptions, load};
use dyno_tpcc::options::OFFER;
use dyno_tpcc::schema::{KeyTime, Shard, ShardClauses};

/// What `build` takes.
#[derive(Debug)]
pub struct BenchmarksqlBuild {
    pub source: PropertiesSource,
    pub seed: u64,
    /// `None` is the default of the dialect.
    pub keys: Option<KeyTime>,
    /// `None` is as BenchmarkSQL: on PostgreSQL only, where no table is spread.
    pub foreign_keys: Option<bool>,
    /// The clause behind CREATE TABLE of a table that is spread by warehouse, or a word for one.
    pub shard: Option<String>,
    /// The clause behind CREATE TABLE of the items.
    pub shard_item: Option<String>,
    /// A statement before each CREATE TABLE of a table that is spread.
    pub shard_before: Option<String>,
    /// A statement after each CREATE TABLE of a table that is spread.
    pub shard_after: Option<String>,
    /// A statement after CREATE TABLE of the items.
    pub shard_item_after: Option<String>,
}

pub(super) fn run(arguments: &BenchmarksqlBuild) -> Done {
    let properties = arguments.source.read()?;
    let mut reader = Reader::new(&properties);
    let place = reader.place()?;
    let load_workers = reader.load_workers()?;
    echo(&properties, load_workers);
    warn(&reader.warnings);
    let options = options(arguments, &place, load_workers)?;
    let ReachedDatabase { database, facts, .. } = reach_target(place.target, None)?;
    output::talk(&format!("{} {}", facts.product, facts.version));
    let _lock = lock_tables(&database, OFFER.name, &Unobserved)?;
    let load = |progress: &LoadProgress| load(&database.admin(), &options, progress);
    follow_load(load, build_summary).map(drop)
}

/// What the original says first: every key that it reads.
fn echo(properties: &Properties, load_workers: u32) {
    let mut text = "Starting BenchmarkSQL LoadData\n\n".to_owned();
    let value = |key: &str| properties.get(key).map(|entry| redacted(key, &entry.value));
    for key in ["driver", "conn", "user", "password", "warehouses"] {
        text.extend(value(key).map(|value| format!("{key}={value}\n")));
    }
    let workers = format!(" - using default {}", load_workers);
    for (key, otherwise) in [
        ("loadWorkers", workers.as_str()),
        ("fileLocation", ""),
        ("csvNullValue", " - using default 'NULL'"),
    ] {
        let undefined = || format!("{key} (not defined{otherwise})\n");
        text.push_str(&value(key).map_or_else(undefined, |value| format!("{key}={value}\n")));
    }
    text.push('\n');
    output::data(&text);
}

fn options(
    arguments: &BenchmarksqlBuild,
    place: &Place,
    load_workers: u32,
) -> Result<TpccLoadOptions, Failure> {
    let shard = shard(arguments)?;
    let usual = place.target.dialect == Dialect::Postgres && shard.is_none();
    Ok(TpccLoadOptions {
        sessions: load_workers,
        seed: arguments.seed,
        keys: arguments.keys,
        foreign_keys: arguments.foreign_keys.unwrap_or(usual),
        shard,
        ..TpccLoadOptions::new(place.warehouses)
    })
}

/// The clauses that the options make.
fn shard(arguments: &BenchmarksqlBuild) -> Result<Option<Shard>, Failure> {
    let mut shard = match arguments.shard.as_deref() {
        None => Shard::default(),
        Some("polardb-x") => Shard {
            by_warehouse: suffix("dbpartition by hash({column})"),
            item: suffix("broadcast"),
        },
        Some("citus") => Shard {
            by_warehouse: after("SELECT create_distributed_table('{table}', '{column}')"),
            item: after("SELECT create_reference_table('{table}')"),
        },
        Some(word) => match word.strip_prefix("hash:") {
            None => Shard { by_warehouse: suffix(word), item: ShardClauses::default() },
            Some(parts) => {
                let parts = parts.parse::<u16>().ok().filter(|&parts| parts > 0);
                let parts = parts.ok_or_else(|| {
                    Failure::usage(format!("--shard {word} has no number of partitions."))
                        .with_hint("write --shard hash:16")
                })?;
                let clause = format!("PARTITION BY HASH({{column}}) PARTITIONS {parts}");
                Shard { by_warehouse: suffix(&clause), item: ShardClauses::default() }
            }
        },
    };
    let replace = |clause: &mut Option<String>, given: &Option<String>| {
        if given.is_some() {
            clause.clone_from(given);
        }
    };
    replace(&mut shard.by_warehouse.before, &arguments.shard_before);
    replace(&mut shard.by_warehouse.after, &arguments.shard_after);
    replace(&mut shard.item.suffix, &arguments.shard_item);
    replace(&mut shard.item.after, &arguments.shard_item_after);
    Ok((shard != Shard::default()).then_some(shard))
}

fn suffix(clause: &str) -> ShardClauses {
    ShardClauses { suffix: Some(clause.to_owned()), ..ShardClauses::default() }
}

fn after(sql: &str) -> ShardClauses {
    ShardClauses { after: Some(sql.to_owned()), ..ShardClauses::default() }
}

fn build_summary(report: &LoadReport) -> String {
    if report.was_complete {
        return "nothing was missing; all rows are there as an earlier build stored them, whatever seed, keys \
                or clauses were asked for now"
            .to_owned();
    }
    let rows = |rows: u64| whole(rows as f64);
    let method = report.method.map_or(String::new(), |method| format!(" by {}", method.name()));
    let loaded =
        format!("{} rows loaded{method}, keys made, all rows counted", rows(report.rows_loaded));
    match report.rows_found {
        0 => loaded,
        found => format!("{} rows were there from an earlier build; {loaded}", rows(found)),
    }
}
