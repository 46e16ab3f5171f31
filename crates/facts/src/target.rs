//! The targets of a plan, with what was found when they were reached.

use crate::secret::password_variable;
use crate::{Message, SecretCommand, SecretUrl};
use dyno_core::{ShardMap, ShardRule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

dyno_core::named! {
    /// Role of a node in its target.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        #[default]
        Primary = "primary",
        ReadOnly = "read_only",
        /// A proxy that spreads what it takes over the nodes.
        Endpoint = "endpoint",
        /// Holds a part of the data behind an endpoint. It is watched and never driven.
        Shard = "shard",
    }
}

impl Role {
    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

dyno_core::named! {
    /// Route of the load to the nodes of a target.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Route {
        /// All of it goes to the primary.
        #[default]
        Primary = "primary",
        /// All of it goes through the endpoint.
        Endpoint = "endpoint",
        /// Transactions and writes go to the primary; reads outside of transactions, and transactions begun as
        /// read-only, to the read-only nodes, each worker to its own one.
        Split = "split",
        /// All of it goes to the read-only nodes, workers evenly. Each of several load generators has nodes of its
        /// own: generator `g` of `n` drives nodes `g`, `g + n`, ... (with more generators than nodes some share one);
        /// where the numbers don't divide, all drive all.
        Spread = "spread",
    }
}

impl Route {
    /// The route of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Route::ALL.into_iter().find(|route| route.name() == name)
    }

    /// The route of a target that names none: the endpoint, if there is one, else the primary, else the
    /// read-only nodes.
    pub fn default_for(roles: &[Role]) -> Route {
        match roles {
            roles if roles.contains(&Role::Endpoint) => Route::Endpoint,
            roles if roles.contains(&Role::Primary) => Route::Primary,
            _ => Route::Spread,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Price of the whole target for an hour.
    pub per_hour: f64,
    /// For example `USD`.
    pub currency: String,
}

/// A target of a plan. What was found there is empty until it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    pub name: String,
    /// Title in papers; empty if it is the name.
    pub title: String,
    /// The title in Chinese, or empty.
    pub title_zh: String,
    /// Paragraphs, or empty.
    pub description: String,
    pub description_zh: String,
    /// URL of the node that the load reaches first; `{run}` is the run folder.
    pub url: SecretUrl,
    /// The role of that node.
    pub role: Role,
    /// All nodes, if there are several, or where a cluster of `dyno cluster` stands behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<TargetNode>,
    /// Route of the load to them; without meaning if there are none.
    pub route: Route,
    /// Rule by which rows lie on the shards among them, if that is known.
    #[serde(with = "rule_text")]
    #[schemars(with = "Option<String>")]
    pub shard_rule: Option<ShardRule>,
    /// Number of shards that it represents, if the suite states it.
    pub shards: Option<u32>,
    /// The target whose database this is, under another name: to measure the noise.
    pub twin_of: Option<String>,
    /// The target whose cluster this is, of which only the first read-only nodes are driven.
    pub part_of: Option<String>,
    /// Node class, where the suite names one.
    pub class: String,
    /// Virtual CPUs of a node, where the suite states them.
    pub vcpu: Option<f64>,
    /// Memory of a node in GiB, where the suite states it.
    pub memory_gib: Option<f64>,
    /// Mechanism that makes a commit durable, if the suite states it.
    pub durability: Option<String>,
    /// Facts that the suite states because no one can read them, by the name of the fact.
    pub stated: BTreeMap<String, String>,
    /// The command of the shell that restarts its servers, where the suite has one.
    pub restart: Option<SecretCommand>,
    /// Price of an hour, if the suite states it.
    pub price: Option<Price>,
    /// For example `MariaDB`, as the server states it.
    pub product: String,
    /// Text of the server.
    pub version: String,
    /// Login of its sessions; `None` for embedded databases.
    pub log_in: Option<LogInFacts>,
    /// Set if a node is on the load generator's own machine.
    pub same_host: bool,
}

/// A node of a target with several. What was found there is empty until it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct TargetNode {
    /// Unique in its target: its name in the suite, or its role and number.
    pub name: String,
    pub role: Role,
    pub url: SecretUrl,
    /// The folder of the cluster of `dyno cluster` that it belongs to, under the same name there: only such
    /// a node can be killed, stopped or started by dyno itself.
    pub cluster: Option<String>,
    /// For example `MariaDB`, as the server states it.
    pub product: String,
    /// Text of the server.
    pub version: String,
    /// Login of its sessions; `None` for embedded databases.
    pub log_in: Option<LogInFacts>,
    /// Set if it is on the load generator's own machine.
    pub same_host: bool,
}

impl TargetNode {
    /// A node that no one but its operator can start or stop.
    pub fn new(name: impl Into<String>, role: Role, url: SecretUrl) -> Self {
        TargetNode { name: name.into(), role, url, ..TargetNode::default() }
    }

    /// The node on which data are loaded, looked at and checked: the one that takes writes, or an endpoint
    /// before shards.
    pub fn loading(nodes: &[TargetNode]) -> Option<&TargetNode> {
        let [primary, endpoint, shard] = [Role::Primary, Role::Endpoint, Role::Shard]
            .map(|role| nodes.iter().find(|node| node.role == role));
        primary.filter(|_| shard.is_none()).or(endpoint)
    }
}

impl TargetFacts {
    /// The URL to connect to, with `{run}` replaced by the run folder, percent-encoded.
    pub fn url_in(&self, run: &Path) -> SecretUrl {
        // What has a meaning in a URL must not end the path.
        let path = run.to_string_lossy().replace('%', "%25").replace('?', "%3F");
        SecretUrl::new(self.url.expose().replace("{run}", &path.replace('#', "%23")))
    }

    /// The name under which its database is known: its own, or that of the target whose twin or part
    /// it is.
    pub fn owner(&self) -> &str {
        self.twin_of.as_deref().or(self.part_of.as_deref()).unwrap_or(&self.name)
    }

    /// The name of the target that is connected to for its trials: a twin is the same connection, a
    /// part has its own nodes.
    pub fn reached_as(&self) -> &str {
        self.twin_of.as_deref().unwrap_or(&self.name)
    }

    /// The part of the target that load generator `generator` of `generators`, counted from 0, needs. If the load is
    /// spread these are its own read-only nodes; if the numbers don't divide, all generators drive all of them, so
    /// that no node gets more than its share.
    #[must_use]
    pub fn for_generator(&self, generator: u32, generators: u32) -> TargetFacts {
        let mut part = self.clone();
        if self.route == Route::Spread {
            part.nodes.retain(|node| node.role == Role::ReadOnly);
            part.nodes = dealt(part.nodes, generator as usize, generators.max(1) as usize);
        }
        part
    }

    /// Map of rows to its shards, which the map counts in the order of the nodes; `None` if it has no
    /// shards, or no one has said how rows lie on them.
    pub fn shard_map(&self) -> Option<ShardMap> {
        let shards = self.nodes.iter().filter(|node| node.role == Role::Shard).count();
        ShardMap::new(self.shard_rule.clone()?, shards).ok()
    }

    /// The URL of the node on which its data are loaded; `None` if no node takes writes.
    pub fn loading_url(&self) -> Option<&SecretUrl> {
        match self.nodes.as_slice() {
            [] => Some(&self.url),
            nodes => TargetNode::loading(nodes).map(|node| &node.url),
        }
    }

    /// The name under which the password of one of its nodes is looked for first.
    pub fn node_name(&self, node: &TargetNode) -> String {
        format!("{}_{}", self.owner(), node.name)
    }

    /// The environment variable that may hold the password of one of its nodes, if that has its own.
    pub fn node_password_variable(&self, node: &TargetNode) -> String {
        password_variable(&self.node_name(node))
    }

    /// The environment variable that may hold the password: `DYNO_PASSWORD_` and the name in
    /// upper case, with `_` for everything that is not a letter or digit. For twins and parts it is that
    /// of their owner.
    pub fn password_variable(&self) -> String {
        password_variable(self.owner())
    }

    /// Gives it, or one of its nodes, a URL with a password, which plans that were read back have not.
    pub fn set_secret(&mut self, node: Option<&str>, url: &SecretUrl) {
        match node {
            None => self.url = url.clone(),
            Some(name) => {
                for node in self.nodes.iter_mut().filter(|node| node.name == name) {
                    node.url = url.clone();
                }
            }
        }
    }
}

/// A rule for shards as its text.
mod rule_text {
    use super::ShardRule;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    /// Writes the text of the rule.
    pub(super) fn serialize<S: Serializer>(
        rule: &Option<ShardRule>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        rule.as_ref().map(ShardRule::to_string).serialize(serializer)
    }

    /// Parses the text of a rule.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ShardRule>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// The nodes of load generator `generator` of `generators`: with more generators than nodes, some share one.
fn dealt(nodes: Vec<TargetNode>, generator: usize, generators: usize) -> Vec<TargetNode> {
    let count = nodes.len();
    if count == 0 || (!count.is_multiple_of(generators) && !generators.is_multiple_of(count)) {
        return nodes;
    }
    nodes.into_iter().skip(generator % count).step_by(generators).collect()
}

/// The facts that one node reported at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ServerFacts {
    pub product: String,
    /// For example `10.11.19-MariaDB`.
    pub version: String,
    /// All settings (`SHOW GLOBAL VARIABLES`, `pg_settings`, pragmas), secrets left out.
    pub settings: BTreeMap<String, String>,
    /// All counters (`SHOW GLOBAL STATUS`, `pg_stat_database` ...). Numbers as text, as sent.
    pub counters: BTreeMap<String, String>,
    /// Columns (`sbtest1.k`) and indexes (`index sbtest1.k_1`) of the workload's tables, and how they are defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schema: BTreeMap<String, String>,
    /// Login of the session that has asked; `None` for embedded databases.
    pub log_in: Option<LogInFacts>,
    /// Facts that could not be read, with reasons.
    pub not_readable: Vec<Message>,
}

/// The proofs that server and user gave each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct LogInFacts {
    /// For example `TLS 1.3`.
    pub tls: Option<String>,
    /// A certificate has proven who the server is.
    pub is_verified: bool,
    /// For example `scram-sha-256`; `none` where nothing was asked.
    pub method: String,
}

impl ServerFacts {
    /// Amount by which a numeric counter grew from `before` to `self`.
    pub fn growth(&self, before: &ServerFacts, counter: &str) -> Option<f64> {
        let [new, old] =
            [self, before].map(|facts| facts.counters.get(counter)?.parse::<f64>().ok());
        Some(new? - old?)
    }
}

/// The facts that the nodes of a target reported, by the node's name.
pub type NodeFacts = BTreeMap<String, ServerFacts>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_numbers_on_both_sides() {
        let [after, before, damaged] = ["15", "5", "ON"].map(|value| ServerFacts {
            counters: BTreeMap::from([("Com_select".to_owned(), value.to_owned())]),
            ..ServerFacts::default()
        });
        assert_eq!(after.growth(&before, "Com_select"), Some(10.0));
        assert_eq!(after.growth(&damaged, "Com_select"), None);
        assert_eq!(after.growth(&before, "Com_insert"), None);
    }
}
