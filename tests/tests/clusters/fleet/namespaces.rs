//! Load generators on hosts of their own: network namespaces with addresses of their own.

use super::{READS, Stage, executed, json, members, number, sum};
use dyno_testkit::{MariaDb, Nats, Network, RunningDyno, dyno_command};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A load generator inside a namespace.
fn generator(folder: &Path, network: &Network, host: u32, arguments: &[&str]) -> RunningDyno {
    fs::create_dir_all(folder).expect("made");
    let mut command = dyno_command(folder);
    command.args(arguments).env("DYNO_PASSWORD_MAIN", "geheim");
    let mut running = RunningDyno::spawn(folder, network.on_host(host, &command));
    running.wait_until("a load generator", |running| running.stderr().contains("waiting for work"));
    running
}

#[test]
fn three_hosts_make_the_load_that_the_server_counts() {
    let network = match Network::new(3) {
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
        stage.generators.push(generator(&folder, &network, host, &arguments));
    }
    let suite = stage.suite(&READS.replace("workers = [5]", "workers = [6]"));
    let url = format!("mysql://dyno@{address}:{}/sbtest", server.port);
    let arguments = stage.arguments(&suite, &url, &[]);
    let mut command = dyno_command(stage.scratch.path());
    command.args(&arguments).env("DYNO_PASSWORD_MAIN", "geheim");
    let before = executed(&server);
    let output = RunningDyno::spawn(stage.scratch.path(), command).end();
    assert_eq!(output.code, 0, "{output}");
    let server_statements = executed(&server) - before;
    let trial = json(&stage.only_run().join("trials/1.json"));
    let members = members(&trial);
    let statements = sum(members, "statements");
    let allowed = (server_statements / 1000).max(6);
    assert!(
        statements <= server_statements && server_statements - statements <= allowed,
        "{statements} of {server_statements}"
    );
    let is_within_bound = |member: &Value| {
        number(&member["from_s"]).abs() * 1e3 <= 5.0 + number(&member["clock_bound_ms"])
    };
    assert!(members.iter().all(is_within_bound), "{members:?}");
}
