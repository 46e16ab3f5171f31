//! Embedded databases: a file, no server that would do anything by itself.

use super::{Asker, cell, checksum};
use super::{NodeState, ServerFacts, Tables};
use dyno_core::DbResult;
use dyno_facts::{CommitWait, say};

/// Queries the state of a database with these settings.
pub(super) async fn state(
    asker: &mut Asker<'_, '_>,
    facts: &ServerFacts,
    tables: &Tables<'_>,
) -> DbResult<NodeState> {
    let page_bytes = whole_setting(facts, "page_size").unwrap_or(0);
    let schema =
        "SELECT tbl_name, type, name, sql FROM sqlite_schema ORDER BY tbl_name, type, name";
    let schema = asker.rows(say!(asked_schema), schema).await?;
    let objects: Vec<_> = schema.into_iter().filter(|row| tables.has(cell(row, 0))).collect();
    // There is no such table before the first ANALYZE.
    let query = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    let has_statistics = asker.number(say!(asked_statistics), query).await? == Some(1.0);
    let analyzed = if has_statistics {
        asker.rows(say!(asked_statistics), "SELECT DISTINCT tbl FROM sqlite_stat1").await?
    } else {
        Vec::new()
    };
    let tables = objects.iter().filter(|row| cell(row, 1) == "table").map(|row| cell(row, 2));
    Ok(NodeState {
        isolation: Some("SERIALIZABLE".to_owned()),
        // Negative: KiB. Positive: pages.
        cache_bytes: whole_setting(facts, "cache_size").map(|size| match size {
            ..0 => size.unsigned_abs() * 1024,
            0.. => (size * page_bytes).unsigned_abs(),
        }),
        data_bytes: whole_setting(facts, "page_count")
            .map(|pages| (pages * page_bytes).unsigned_abs()),
        tables_without_statistics: tables
            .filter(|name| {
                !name.starts_with("sqlite_") && !analyzed.iter().any(|row| cell(row, 0) == *name)
            })
            .map(str::to_owned)
            .collect(),
        schema_checksum: checksum(objects.iter()),
        schema: objects
            .iter()
            .map(|row| (format!("{} {}", cell(row, 1), cell(row, 2)), cell(row, 3).to_owned()))
            .collect(),
        ..silent_state()
    })
}

/// A setting that is a whole number, perhaps below 0.
fn whole_setting(facts: &ServerFacts, name: &str) -> Option<i64> {
    facts.settings.get(name)?.parse().ok()
}

/// State of a database that says little of itself.
pub(super) fn silent_state() -> NodeState {
    NodeState {
        acknowledged_by: Some(CommitWait::Local(say!(acknowledged_locally))),
        transport: Some("embedded".to_owned()),
        ..NodeState::default()
    }
}
