//! Nodes with a network of their own: a namespace each, joined by a bridge, whose link can be cut.

use crate::{Cluster, ClusterError, State, StateNode};
use std::path::Path;
use std::process::{Command, Stdio};

/// The namespace of a node.
pub(crate) fn namespace(state: &State, node: &StateNode) -> Option<String> {
    (state.isolated && node.role != "endpoint")
        .then(|| format!("dyno-{}-{}", tag(state), node.name))
}

/// What tells the networks of two clusters apart; names of links have at most 15 bytes.
fn tag(state: &State) -> &str {
    state.id.get(..6).unwrap_or(&state.id)
}

fn bridge(state: &State) -> String {
    format!("dyno{}b", tag(state))
}

/// The bridge's end of a node's link.
fn link(state: &State, node: &StateNode) -> String {
    format!("dyno{}{}", tag(state), node.name)
}

/// The first three numbers of the cluster's addresses: of the range for benchmarks of network devices,
/// which nobody uses for anything else.
fn prefix(state: &State) -> String {
    let number = u32::from_str_radix(tag(state), 16).unwrap_or_default();
    format!("198.{}.{}", 18 + (number >> 8 & 1), number & 255)
}

/// The address of the node with this number, from 1.
pub(crate) fn address(state: &State, number: usize) -> String {
    format!("{}.{}", prefix(state), 10 + number)
}

/// Says why nodes can't have networks of their own.
pub(crate) fn check() -> Result<(), ClusterError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ClusterError::new("Only root may give nodes a network of their own.")
            .with_hint("leave --isolated out; `freeze` silences a node without it"));
    }
    crate::programs::need(&["ip"], "iproute2")?;
    crate::programs::need(&["setpriv"], "util-linux").map(drop)
}

fn ip(words: &str) -> Result<(), ClusterError> {
    let failed = |why: String| {
        ClusterError::new(format!("`ip {words}` failed: {why}")).with_hint(
            "networks of their own need root's full rights; leave --isolated out without them",
        )
    };
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{error}.")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned() + "."))
}

/// Makes the bridge, and a namespace and a link to it for each node.
pub(crate) fn make(state: &State) -> Result<(), ClusterError> {
    let (bridge, prefix) = (bridge(state), prefix(state));
    ip(&format!("link add {bridge} type bridge"))?;
    ip(&format!("addr add {prefix}.1/24 dev {bridge}"))?;
    ip(&format!("link set {bridge} up"))?;
    for node in &state.nodes {
        let Some(namespace) = namespace(state, node) else { continue };
        let link = link(state, node);
        ip(&format!("netns add {namespace}"))?;
        ip(&format!("link add {link} type veth peer name eth0 netns {namespace}"))?;
        ip(&format!("link set {link} master {bridge} up"))?;
        ip(&format!("-n {namespace} addr add {}/24 dev eth0", node.host))?;
        ip(&format!("-n {namespace} link set eth0 up"))?;
        ip(&format!("-n {namespace} link set lo up"))?;
    }
    Ok(())
}

/// Removes what is there of it.
///
/// # Errors
/// When something is still there afterwards.
pub(crate) fn remove(state: &State) -> Result<(), ClusterError> {
    if !state.isolated {
        return Ok(());
    }
    let mut left = Vec::new();
    for node in &state.nodes {
        if let Some(namespace) = namespace(state, node) {
            // With the namespace goes its link. What isn't there can't be removed, which is fine.
            let _ = ip(&format!("link delete {}", link(state, node)));
            let _ = ip(&format!("netns delete {namespace}"));
            left.push((Path::new("/run/netns").join(&namespace), format!("netns {namespace}")));
        }
    }
    let bridge = bridge(state);
    let _ = ip(&format!("link delete {bridge}"));
    left.push((Path::new("/sys/class/net").join(&bridge), format!("link {bridge}")));
    left.retain(|(path, _)| path.exists());
    let Some((_, what)) = left.first() else { return Ok(()) };
    Err(ClusterError::new(format!("The network of the cluster can't be removed: {what} is left."))
        .with_hint("take the cluster down as root, who made it"))
}

impl Cluster {
    /// Cuts a node off: no packet goes to it or comes from it until it is [healed](Cluster::heal).
    ///
    /// # Errors
    /// When the cluster isn't isolated; the hint names what can be done instead.
    pub fn partition(&mut self, name: &str) -> Result<(), ClusterError> {
        self.set_link(name, "down")
    }

    /// Connects a node again.
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub fn heal(&mut self, name: &str) -> Result<(), ClusterError> {
        self.set_link(name, "up")
    }

    fn set_link(&mut self, name: &str, direction: &str) -> Result<(), ClusterError> {
        let _lock = self.change()?;
        let node = self.node(name)?;
        if namespace(&self.state, node).is_none() {
            return Err(ClusterError::new(format!(
                "Node {name} can't be cut off: all nodes of this cluster share one network."
            ))
            .with_hint(
                "`dyno cluster up ... --isolated`, as root, gives each node a network of its own; \
                 freezing a node silences it without that",
            ));
        }
        ip(&format!("link set {} {direction}", link(&self.state, node)))
    }
}
