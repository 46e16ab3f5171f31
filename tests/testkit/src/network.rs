//! Hosts in a separate network: namespaces, joined by a bridge.

use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Namespaces on a bridge, removed at the end. This machine is host 1.
#[derive(Debug)]
pub struct Network {
    tag: u32,
    hosts: Range<u32>,
}

impl Network {
    /// Makes this many namespaces: hosts 2, 3 ...
    ///
    /// # Errors
    /// In words, where this can't be had: who isn't root, or a machine without `ip`.
    pub fn new(hosts: u32) -> Result<Network, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Names of interfaces have at most 15 bytes.
        let tag = std::process::id() % 10_000 * 10 + MADE.fetch_add(1, Ordering::Relaxed) % 10;
        let network = Network { tag, hosts: 2..2 + hosts };
        let bridge = network.bridge();
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {}/24 dev {bridge}", network.address(1)))?;
        ip(&format!("link set {bridge} up"))?;
        for host in network.hosts.clone() {
            let (name, outside, inside) =
                (network.host(host), format!("dv{tag}o{host}"), format!("dv{tag}i{host}"));
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {outside} type veth peer name {inside}"))?;
            ip(&format!("link set {outside} master {bridge} up"))?;
            ip(&format!("link set {inside} netns {name}"))?;
            ip(&format!("-n {name} addr add {}/24 dev {inside}", network.address(host)))?;
            ip(&format!("-n {name} link set {inside} up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(network)
    }

    fn bridge(&self) -> String {
        format!("db{}", self.tag)
    }

    fn host(&self, host: u32) -> String {
        format!("dyno-{}-{host}", self.tag)
    }

    pub fn address(&self, host: u32) -> String {
        format!("10.{}.{}.{host}", 200 + self.tag / 250 % 50, self.tag % 250)
    }

    /// A command as `host` executes it, in the same folder and environment.
    pub fn on_host(&self, host: u32, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.host(host)]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in self.hosts.clone() {
            // The pairs of links go with their ends inside.
            let _ = ip(&format!("netns del {}", self.host(host)));
        }
        let _ = ip(&format!("link del {}", self.bridge()));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("`ip` can't be run: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
