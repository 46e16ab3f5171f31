//! Load generators on hosts of their own: network namespaces with addresses of their own.

use super::{READS, Stage, executed, json, members, number, sum};
use dyno_testkit::{MariaDb, Nats, RunningDyno, dyno_command};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Three namespaces on a bridge, removed at the end.
struct Network {
    tag: u32,
}

impl Network {
    /// # Errors
    /// In words, where this can't be had: who isn't root, or a machine without `ip`.
    fn new() -> Result<Network, String> {
        // Names of interfaces have at most 15 bytes.
        let network = Network { tag: std::process::id() % 100_000 };
        let (tag, bridge) = (network.tag, network.bridge());
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {}/24 dev {bridge}", network.address(1)))?;
        ip(&format!("link set {bridge} up"))?;
        for host in 2..5 {
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

    fn address(&self, host: u32) -> String {
        format!("10.213.{}.{host}", self.tag % 250)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in 2..5 {
            // The pairs of links go with their ends inside.
            let _ = ip(&format!("netns del {}", self.host(host)));
        }
        let _ = ip(&format!("link del {}", self.bridge()));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("`ip` can't be run: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A load generator inside a namespace.
fn generator(folder: &Path, host: &str, arguments: &[&str]) -> RunningDyno {
    fs::create_dir_all(folder).expect("made");
    let plain = dyno_command(folder);
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", host]).arg(plain.get_program()).args(arguments);
    let envs = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
    inside.current_dir(folder).envs(envs).env("DYNO_PASSWORD_MAIN", "geheim");
    let mut running = RunningDyno::spawn(folder, inside);
    running.wait_until("a load generator", |running| running.stderr().contains("waiting for work"));
    running
}

#[test]
fn three_hosts_make_the_load_that_the_server_counts() {
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => return dyno_testkit::skipped("fleet in namespaces", &why),
    };
    let address = network.address(1);
    let bind = format!("--bind-address={address}");
    let server = MariaDb::start_with(&[&bind, "--innodb-flush-log-at-trx-commit=2"]);
    let server = match server {
        Ok(server) => server,
        Err(why) => return dyno_testkit::skipped("fleet in namespaces", &why),
    };
    let nats = match Nats::start_with(&address, &[]) {
        Ok(nats) => nats,
        Err(why) => return dyno_testkit::skipped("fleet in namespaces", &why),
    };
    let account = "CREATE USER dyno@'%' IDENTIFIED BY 'geheim'; GRANT ALL ON *.* TO dyno@'%'";
    server.sql(account).expect("an account");
    let mut stage = Stage::new(&nats.url(""), &[]);
    for host in 2..5 {
        let name = format!("host{host}");
        let folder = stage.scratch.file(&name);
        let only = format!("{address}:{}", server.port);
        let arguments =
            ["generator", "--nats", &stage.nats, "--name", &name, "--only-hosts", &only];
        stage.generators.push(generator(&folder, &network.host(host), &arguments));
    }
    let suite = stage.suite(&READS.replace("workers = [5]", "workers = [6]"));
    let url = format!("mysql://dyno@{address}:{}/sbtest", server.port);
    let arguments = stage.arguments(&suite, &url, &[]);
    let mut command = dyno_command(stage.scratch.path());
    command.args(&arguments).env("DYNO_PASSWORD_MAIN", "geheim");
    let before = executed(&server);
    let ran = RunningDyno::spawn(stage.scratch.path(), command).end();
    assert_eq!(ran.code, 0, "{}", ran.all());
    let of_server = executed(&server) - before;
    let trial = json(&stage.only_run().join("trials/1.json"));
    let members = members(&trial);
    let statements = sum(members, "statements");
    let allowed = (of_server / 1000).max(6);
    assert!(
        statements <= of_server && of_server - statements <= allowed,
        "{statements} of {of_server}"
    );
    for (member, host) in members.iter().zip(2..) {
        let known = member["host"].as_str().unwrap_or_default();
        assert!(known.contains(&network.address(host)), "{known}");
        assert!(
            number(&member["from_s"]).abs() * 1e3 <= 5.0 + number(&member["clock_bound_ms"]),
            "{member}"
        );
    }
}
