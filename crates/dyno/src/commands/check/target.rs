//! The database that is checked, and the shards behind it.

use dyno_core::{ShardMap, ShardRule};
use dyno_facts::{Role, Route, SecretUrl, TargetFacts, TargetNode};
use dyno_runner::databases::{ReachedDatabase, reach, reach_planned, sharded};
use dyno_runner::failure::Failure;
use std::path::Path;

/// How the shards behind an endpoint are named.
pub(super) const HOW_TO_NAME_SHARDS: &str = "Name every shard behind it, in the order of the rule: --shard URL --shard URL \
                                             --shard-rule modulo. A cluster of dyno is named as cluster:FOLDER.";

/// In whose name passwords are looked for.
const NAME: &str = "target";

#[derive(Debug, clap::Args)]
pub(super) struct ShardArguments {
    /// A shard behind the endpoint, as a URL; once for each, in the order of the rule.
    #[arg(long = "shard", value_name = "URL", requires = "rule")]
    shards: Vec<String>,
    /// How rows lie on the shards: `modulo` (the warehouse modulo the number of shards), or `ranges 5,10,15` (the last
    /// warehouse of each shard but the last one).
    #[arg(long = "shard-rule", value_name = "RULE", id = "rule", requires = "shards")]
    rule: Option<ShardRule>,
}

/// The target with its nodes, where it has several.
fn planned(url: &str, arguments: &ShardArguments) -> Result<Option<TargetFacts>, Failure> {
    let Some(rule) = &arguments.rule else { return sharded(NAME, url) };
    let shards = &arguments.shards;
    ShardMap::new(rule.clone(), shards.len())
        .map_err(|problem| Failure::usage(problem).with_hint(HOW_TO_NAME_SHARDS))?;
    if url.starts_with("cluster:") {
        let problem = "The shards of a cluster of dyno are known: --shard is for other endpoints.";
        return Err(Failure::usage(problem).with_hint("Leave --shard and --shard-rule out."));
    }
    let endpoint = TargetNode::new("endpoint", Role::Endpoint, SecretUrl::new(url.to_owned()));
    let shard = |(number, url): (usize, &String)| {
        let name = format!("shard-{}", number + 1);
        TargetNode::new(name, Role::Shard, SecretUrl::new(url.clone()))
    };
    Ok(Some(TargetFacts {
        name: NAME.to_owned(),
        nodes: [endpoint].into_iter().chain(shards.iter().enumerate().map(shard)).collect(),
        route: Route::Endpoint,
        shard_rule: Some(rule.clone()),
        ..TargetFacts::default()
    }))
}

pub(super) fn reached(url: &str, arguments: &ShardArguments) -> Result<ReachedDatabase, Failure> {
    match planned(url, arguments)? {
        Some(target) => reach_planned(&target, Path::new("")),
        None => reach(NAME, url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(shards: &[&str], rule: &str) -> ShardArguments {
        let shards = shards.iter().map(|url| (*url).to_owned()).collect();
        ShardArguments { shards, rule: Some(rule.parse().expect("a rule")) }
    }

    #[test]
    fn shards_are_named_in_the_order_of_their_rule() {
        let arguments = given(&["mysql://a/d", "mysql://b/d"], "ranges 5");
        let target = planned("mysql://proxy/d", &arguments).expect("two").expect("nodes");
        let nodes: Vec<(&str, Role)> =
            target.nodes.iter().map(|node| (node.name.as_str(), node.role)).collect();
        let expected =
            [("endpoint", Role::Endpoint), ("shard-1", Role::Shard), ("shard-2", Role::Shard)];
        assert_eq!(nodes, expected);
        assert_eq!(target.shard_map().expect("a map").shard_of(6_u32), 1);
    }

    #[test]
    fn a_rule_for_other_shards_is_wrong_usage() {
        let failure = planned("mysql://proxy/d", &given(&["mysql://a/d"], "ranges 5, 10"));
        let failure = failure.expect_err("three are needed");
        assert_eq!(failure.code, 2);
        assert!(failure.message.to_string().contains("for 3 shards, and there is 1"));
        assert!(planned("cluster:c", &given(&["mysql://a/d"], "modulo")).is_err());
    }
}
