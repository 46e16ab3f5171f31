//! Nodes with their own network: a namespace each, joined by a bridge; their links can be cut.

use crate::{Cluster, ClusterError, Result, State, StateNode};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The name of the network namespace of a node; `None` if it has none.
pub(crate) fn namespace(state: &State, node: &StateNode) -> Option<String> {
    (state.isolated && node.role != "endpoint")
        .then(|| format!("dyno-{}-{}", tag(state), node.name))
}

/// Distinguishes the networks of clusters; names of links have at most 15 bytes.
fn tag(state: &State) -> &str {
    state.id.get(..6).unwrap_or(&state.id)
}

fn bridge_name(state: &State) -> String {
    format!("dyno{}b", tag(state))
}

/// The bridge's end of a node's link.
fn link(state: &State, node: &StateNode) -> String {
    format!("dyno{}{}", tag(state), node.name)
}

/// Networks of 256 addresses in the range for benchmarks of network devices, 198.18.0.0/15.
const PREFIXES: u32 = 512;

/// Returns the first three numbers of addresses that no network of this machine has.
pub(crate) fn free_prefix(state: &State) -> Result<String> {
    // From a random place on: two clusters made at once rarely choose alike.
    let begin = u32::from_str_radix(tag(state), 16).unwrap_or_default();
    free_from(begin, &run_ip(LIST_ADDRESSES)?).ok_or_else(|| {
        ClusterError::new("All networks below 198.18.0.0/15 are taken on this machine.")
            .with_hint("`ip addr` shows by whom; leave --isolated out, or take clusters down")
    })
}

/// Returns the first /24 prefix, such as `198.18.9`, from number `begin` on, around, that meets no network in the
/// output of `ip addr`; `None` if all are taken.
fn free_from(begin: u32, addresses: &str) -> Option<String> {
    let mut prefixes = (0..PREFIXES).map(|step| numbered_prefix(begin.wrapping_add(step)));
    prefixes.find(|prefix| count_networks(prefix, addresses) == 0)
}

fn numbered_prefix(number: u32) -> String {
    format!("198.{}.{}", 18 + (number >> 8 & 1), number & 255)
}

fn network_prefix(state: &State) -> &str {
    let isolated = state.nodes.iter().find(|node| node.role != "endpoint");
    isolated.and_then(|node| node.host.rsplit_once('.')).map_or("", |(prefix, _)| prefix)
}

/// Lists the addresses of this machine's links.
const LIST_ADDRESSES: &str = "-4 -o addr show";

/// Number of networks of links that have addresses with these first three numbers.
fn count_networks(prefix: &str, addresses: &str) -> usize {
    let own_bits = address_bits(&format!("{prefix}.0"));
    let after = addresses.split(" inet ").skip(1);
    let networks = after.filter_map(|rest| rest.split_whitespace().next());
    let overlapping = networks.filter(|network| {
        let (address, length) = network.split_once('/').unwrap_or((network, "32"));
        // Only the bits that belong to both networks are compared.
        let shift = 32 - length.parse().unwrap_or(32).min(24);
        address_bits(address) >> shift == own_bits >> shift
    });
    overlapping.count()
}

/// The bits of an IPv4 address; 0 for another text.
fn address_bits(text: &str) -> u64 {
    text.parse::<Ipv4Addr>().map_or(0, |address| u64::from(address.to_bits()))
}

/// The address of the node with this number, from 1.
pub(crate) fn address(prefix: &str, number: usize) -> String {
    format!("{prefix}.{}", 10 + number)
}

/// Checks that nodes can have their own networks: that dyno is root and the programs are installed.
pub(crate) fn check() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(ClusterError::new("Only root may give nodes their own networks.")
            .with_hint("leave --isolated out; `freeze` silences a node without it"));
    }
    crate::machine::need(&["ip"], "iproute2")?;
    crate::machine::need(&["setpriv"], "util-linux").map(drop)
}

fn run_ip(words: &str) -> Result<String> {
    let mut command = Command::new("ip");
    let reason = match command.args(words.split_whitespace()).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(failed!("`ip {words}` failed: {reason}.").with_hint(
        "networks of their own need root's full rights; leave --isolated out without them",
    ))
}

/// Makes the bridge, and a namespace and a link to it for each node.
pub(crate) fn make(state: &State) -> Result<()> {
    let (bridge, prefix) = (bridge_name(state), network_prefix(state));
    run_ip(&format!("link add {bridge} type bridge"))?;
    run_ip(&format!("addr add {prefix}.1/24 dev {bridge}"))?;
    if count_networks(prefix, &run_ip(LIST_ADDRESSES)?) > 1 {
        return Err(failed!("Somebody else took the network {prefix}.0/24 at the same time.")
            .with_hint("make the cluster again"));
    }
    run_ip(&format!("link set {bridge} up"))?;
    for node in &state.nodes {
        let Some(namespace) = namespace(state, node) else { continue };
        let link = link(state, node);
        run_ip(&format!("netns add {namespace}"))?;
        run_ip(&format!("link add {link} type veth peer name eth0 netns {namespace}"))?;
        run_ip(&format!("link set {link} master {bridge} up"))?;
        run_ip(&format!("-n {namespace} addr add {}/24 dev eth0", node.host))?;
        run_ip(&format!("-n {namespace} link set eth0 up"))?;
        run_ip(&format!("-n {namespace} link set lo up"))?;
    }
    Ok(())
}

/// Removes all links and namespaces of a cluster; fails if any is left.
pub(crate) fn remove(state: &State) -> Result<()> {
    if !state.isolated {
        return Ok(());
    }
    let mut leftovers = Vec::new();
    for node in &state.nodes {
        if let Some(namespace) = namespace(state, node) {
            // With the namespace goes its link. What isn't there can't be removed, which is fine.
            let _ = run_ip(&format!("link delete {}", link(state, node)));
            let _ = run_ip(&format!("netns delete {namespace}"));
            leftovers
                .push((Path::new("/run/netns").join(&namespace), format!("netns {namespace}")));
        }
    }
    let bridge = bridge_name(state);
    let _ = run_ip(&format!("link delete {bridge}"));
    leftovers.push((Path::new("/sys/class/net").join(&bridge), format!("link {bridge}")));
    leftovers.retain(|(path, _)| path.exists());
    let Some((_, what)) = leftovers.first() else { return Ok(()) };
    Err(failed!("The network of the cluster can't be removed: {what} is left.")
        .with_hint("take the cluster down as root, who made it"))
}

impl Cluster {
    /// Cuts a node off: no packet goes to it or comes from it until it is [healed](Cluster::heal).
    pub fn partition(&mut self, name: &str) -> Result<()> {
        self.set_link(name, "down")
    }

    /// Ends a [partition](Cluster::partition).
    pub fn heal(&mut self, name: &str) -> Result<()> {
        self.set_link(name, "up")
    }

    fn set_link(&mut self, name: &str, direction: &str) -> Result<()> {
        let _lock = self.change()?;
        let node = self.node(name)?;
        if namespace(&self.state, node).is_none() {
            return Err(failed!(
                "Node {name} can't be cut off: all nodes of this cluster share one network."
            )
            .with_hint(
                "`dyno cluster up ... --isolated`, as root, gives each node its own network; \
                 freezing a node silences it without that",
            ));
        }
        run_ip(&format!("link set {} {direction}", link(&self.state, node))).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_share_addresses_are_told() {
        let links = "2: eth0    inet 10.0.0.2/8 brd\n3: b    inet 198.18.7.1/24 scope global b\n";
        assert_eq!(
            ["198.18.7", "198.18.70", "198.19.7"].map(|it| count_networks(it, links)),
            [1, 0, 0]
        );
        fn is_taken(network: &str) -> bool {
            count_networks("198.18.7", &format!("2: b    inet {network} scope global b\n")) == 1
        }
        assert!(is_taken("198.18.7.1/24") && is_taken("198.18.7.200/32"));
        assert!(is_taken("198.18.0.1/16") && is_taken("198.19.0.1/15"));
        assert!(is_taken("10.0.0.1/0"), "everything");
        assert!(!is_taken("198.18.8.1/24") && !is_taken("198.19.7.1/16"));
    }

    #[test]
    fn a_cluster_gets_a_network_that_is_free() {
        let prefixes: Vec<String> = (0..PREFIXES).map(numbered_prefix).collect();
        assert_eq!((&prefixes[0][..], &prefixes[511][..]), ("198.18.0", "198.19.255"));
        fn list_links(numbers: &[u32]) -> String {
            let prefixes = numbers.iter().map(|number| numbered_prefix(*number));
            prefixes.map(|prefix| format!("2: b    inet {prefix}.1/24 scope global b\n")).collect()
        }
        assert_eq!(free_from(7, &list_links(&[7, 8])).as_deref(), Some("198.18.9"));
        assert_eq!(free_from(6, &list_links(&[7, 8])).as_deref(), Some("198.18.6"));
        let busy: Vec<u32> = (1..PREFIXES).collect();
        assert_eq!(
            free_from(300, &list_links(&busy)).as_deref(),
            Some("198.18.0"),
            "it begins again at the first"
        );
        let numbers: Vec<u32> = (0..PREFIXES).collect();
        assert_eq!(free_from(300, &list_links(&numbers)), None);
        assert_eq!(free_from(300, "2: b    inet 198.18.0.1/15 scope global b\n"), None);
    }
}
