//! Targets that are clusters of `dyno cluster`: `cluster:FOLDER` where a URL is taken.

use crate::failure::{Failure, sentence};
use dyno_core::ShardRule;
use dyno_facts::{Role, Route, SecretUrl, TargetFacts, TargetNode};
use dyno_suite::{Overrides, SuiteError};
use dyno_topology::{Cluster, ClusterError};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

/// What stands before the folder.
const SCHEME: &str = "cluster:";

/// Adds a target given as `NAME=URL`, `NAME:ROLE=URL` or `NAME=cluster:FOLDER`.
pub fn add_target(overrides: &mut Overrides, text: &str) -> Result<(), Failure> {
    match text.split_once('=').and_then(|(name, url)| Some((name, url.strip_prefix(SCHEME)?))) {
        Some((name, folder)) if !name.contains(':') => {
            overrides.nodes.push((name.to_owned(), cluster_nodes(folder)?));
            Ok(())
        }
        _ => overrides.add_target(text).map_err(|problem| SuiteError::from(problem).into()),
    }
}

/// The URL on which data are loaded and checked, where `url` is a cluster; else `url` itself.
pub(crate) fn loading_url(url: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(folder) = url.strip_prefix(SCHEME) else { return Ok(Cow::Borrowed(url)) };
    let nodes = cluster_nodes(folder)?;
    match TargetNode::loading(&nodes) {
        Some(node) => Ok(Cow::Owned(node.url.expose().to_owned())),
        None => Err(Failure::new(format!("No node of the cluster in {folder} takes writes."))),
    }
}

/// The target that `url` is, where it is a cluster with shards.
pub fn sharded(name: &str, url: &str) -> Result<Option<TargetFacts>, Failure> {
    let Some(folder) = url.strip_prefix(SCHEME) else { return Ok(None) };
    let nodes = cluster_nodes(folder)?;
    let is_sharded = nodes.iter().any(|node| node.role == Role::Shard);
    Ok(is_sharded.then(|| TargetFacts {
        name: name.to_owned(),
        nodes,
        route: Route::Endpoint,
        shard_rule: Some(ShardRule::OF_CLUSTERS),
        ..TargetFacts::default()
    }))
}

/// The URL of a node with its password. A plan that was read back from a run has no passwords, but the
/// cluster that a node belongs to may still be there.
pub(crate) fn secret_url(node: &TargetNode) -> SecretUrl {
    let of_cluster = || {
        let cluster = Cluster::open(Path::new(node.cluster.as_deref()?)).ok()?;
        let url = SecretUrl::new(cluster.node_url(&node.name).ok()?);
        // Another cluster may have been made in the same folder.
        (url.redacted() == node.url.redacted()).then_some(url)
    };
    let of_cluster = if node.url.has_password() { None } else { of_cluster() };
    of_cluster.unwrap_or_else(|| node.url.clone())
}

/// Fails where nodes of dyno's own clusters are as nobody would measure them: frozen, or following nobody.
pub(super) fn check_clusters(target: &TargetFacts) -> Result<(), Failure> {
    let folders: BTreeSet<&str> =
        target.nodes.iter().filter_map(|node| node.cluster.as_deref()).collect();
    // A folder of another machine's is none here.
    let mut clusters = folders.into_iter().filter_map(|dir| Cluster::open(Path::new(dir)).ok());
    clusters.try_for_each(|cluster| cluster.check_followers()).map_err(failure)
}

pub fn cluster_nodes(folder: &str) -> Result<Vec<TargetNode>, Failure> {
    let cluster = Cluster::open(Path::new(folder)).map_err(failure)?;
    // A run is gone on with from wherever its user stands.
    let absolute = std::path::absolute(folder)
        .map_err(|error| Failure::new(format!("The folder {folder} can't be found: {error}.")))?;
    let planned = cluster.nodes().iter().map(|node| {
        let role = Role::parse(&node.role).ok_or_else(|| {
            Failure::new(format!("The node {} has the unknown role {}.", node.name, node.role))
        })?;
        let url = SecretUrl::new(cluster.node_url(&node.name).map_err(failure)?);
        let cluster = Some(absolute.to_string_lossy().into_owned());
        Ok(TargetNode { cluster, ..TargetNode::new(&node.name, role, url) })
    });
    planned.collect()
}

fn failure(error: ClusterError) -> Failure {
    Failure::usage(sentence(&error.message)).hinted(error.hint)
}
