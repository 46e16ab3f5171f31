//! Shards behind an endpoint, and the rule by which rows lie on them.

use crate::counted;
use std::fmt;
use std::str::FromStr;

/// Rule by which rows lie on shards: by their key, which is the number of the warehouse in TPC-C.
///
/// Suites, plans and messages have it as a text: `modulo`, or `ranges 5, 10, 15`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardRule {
    /// The key modulo the number of shards: the first shard has those that it divides.
    Modulo,
    /// The last key of each shard but the last one, which has all larger keys; ascending.
    Ranges(Vec<u64>),
}

impl ShardRule {
    /// The rule of all clusters of `dyno cluster`.
    pub const OF_CLUSTERS: ShardRule = ShardRule::Modulo;
}

impl fmt::Display for ShardRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShardRule::Modulo => f.write_str("modulo"),
            ShardRule::Ranges(last) => {
                let last: Vec<String> = last.iter().map(u64::to_string).collect();
                write!(f, "ranges {}", last.join(", "))
            }
        }
    }
}

impl FromStr for ShardRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let last =
            || rest.split(',').map(|key| key.trim().parse()).collect::<Result<Vec<u64>, _>>();
        match (word, last()) {
            ("modulo", _) if rest.is_empty() => Ok(ShardRule::Modulo),
            ("ranges", Ok(last)) if last.is_sorted_by(|a, b| a < b) => Ok(ShardRule::Ranges(last)),
            ("ranges", Ok(_)) => Err(format!("The keys of `{text}` don't ascend.")),
            _ => Err(format!("`{text}` isn't a rule for shards.")),
        }
    }
}

/// A rule for a number of shards: says of each key where its rows lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    rule: ShardRule,
    shards: usize,
}

impl ShardMap {
    /// # Errors
    /// A sentence: shards are missing, or there is another number of them than the rule is for.
    pub fn new(rule: ShardRule, shards: usize) -> Result<Self, String> {
        match &rule {
            _ if shards == 0 => {
                Err(format!("`{rule}` is a rule for shards, and there is no node of role shard."))
            }
            ShardRule::Ranges(last) if last.len() + 1 != shards => Err(format!(
                "`{rule}` is a rule for {}, and there {} {shards}.",
                counted(last.len() as u64 + 1, "shard"),
                if shards == 1 { "is" } else { "are" }
            )),
            _ => Ok(ShardMap { rule, shards }),
        }
    }

    /// The rule by which rows lie on shards.
    pub fn rule(&self) -> &ShardRule {
        &self.rule
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The number of the shard, from 0 in the order of the nodes, that the rows of a key lie on.
    pub fn shard_of(&self, key: impl Into<u64>) -> usize {
        let key = key.into();
        match &self.rule {
            ShardRule::Modulo => (key % self.shards as u64) as usize,
            ShardRule::Ranges(last) => last.partition_point(|&last| last < key),
        }
    }
}

/// The shards behind an endpoint, for programs that may go there directly: a loader, a check.
#[derive(Clone, Debug)]
pub struct Shards<D> {
    /// Sorted in the order in which the rule counts them; at least one.
    pub nodes: Vec<ShardNode<D>>,
    /// Map of rows to shards; `None` if no one has defined one.
    pub map: Option<ShardMap>,
}

#[derive(Clone, Debug)]
pub struct ShardNode<D> {
    /// Its name in the plan.
    pub name: String,
    pub driver: D,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rule: &str, shards: usize) -> Result<ShardMap, String> {
        rule.parse().and_then(|rule| ShardMap::new(rule, shards))
    }

    #[test]
    fn every_key_has_one_shard() {
        assert_eq!(shards("modulo", 4, &[1, 2, 3, 4, 5, 20]), [1, 2, 3, 0, 1, 0]);
        assert_eq!(shards("modulo", 1, &[1, 2]), [0, 0]);
        assert_eq!(
            shards("ranges 5,10", 3, &[0, 1, 5, 6, 10, 11, u32::MAX]),
            [0, 0, 0, 1, 1, 2, 2]
        );
    }

    /// The shards of these keys.
    fn shards(rule: &str, count: usize, keys: &[u32]) -> Vec<usize> {
        let map = map(rule, count).expect("a map");
        keys.iter().map(|&key| map.shard_of(key)).collect()
    }

    #[test]
    fn rules_are_texts() {
        for rule in ["modulo", "ranges 5, 10, 15", "ranges 7"] {
            assert_eq!(rule.parse::<ShardRule>().expect("a rule").to_string(), rule);
        }
        for (wrong, message) in [
            ("hash", "`hash` isn't a rule for shards."),
            ("modulo 4", "`modulo 4` isn't a rule for shards."),
            ("ranges", "`ranges` isn't a rule for shards."),
            ("ranges 5, x", "`ranges 5, x` isn't a rule for shards."),
            ("ranges 5, 5", "The keys of `ranges 5, 5` don't ascend."),
        ] {
            assert_eq!(wrong.parse::<ShardRule>(), Err(message.to_owned()));
        }
    }

    #[test]
    fn a_rule_is_for_a_number_of_shards() {
        let message = "`modulo` is a rule for shards, and there is no node of role shard.";
        assert_eq!(map("modulo", 0), Err(message.to_owned()));
        let message = "`ranges 5, 10` is a rule for 3 shards, and there are 4.";
        assert_eq!(map("ranges 5, 10", 4), Err(message.to_owned()));
    }
}
