//! Passwords of targets: found by load generators themselves, or sent where both ends are encrypted.

use super::{READS, Stage, json, members};
use dyno_testkit::{MariaDb, Nats, Scratch, server_or_skip};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A certificate for 127.0.0.1 that is trusted itself; the key lies alongside it.
fn certificate(folder: &Path) -> Result<(), String> {
    let openssl = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dyno"])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", "key.pem", "-out", "ca.pem"])
        .current_dir(folder)
        .output()
        .map_err(|error| format!("openssl can't be run: {error}"))?;
    if openssl.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&openssl.stderr).into_owned())
    }
}

#[test]
fn passwords_travel_only_where_both_ends_are_encrypted() {
    let server = server_or_skip!(MariaDb, "secrets of a fleet");
    let scratch = Scratch::new();
    if let Err(why) = certificate(scratch.path()) {
        return dyno_testkit::skipped("secrets of a fleet", &why);
    }
    server
        .sql("CREATE USER dyno@'%' IDENTIFIED BY 'g/heim@1'; GRANT ALL ON *.* TO dyno@'%'")
        .expect("an account");
    let url = format!("mysql://dyno:g%2Fheim%401@127.0.0.1:{}/sbtest", server.port);

    let plain = server_or_skip!(Nats, "secrets of a fleet");
    let stage = Stage::new(&plain.url(""), &["a"]);
    let suite = stage.suite(&READS.replace("duration_s = 3", "duration_s = 1"));
    let output = stage.run(&suite, &url, &[]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("load generator a: target main:"), "{output}");
    assert!(output.stderr.contains("DYNO_PASSWORD_MAIN"), "{output}");
    assert!(!output.to_string().contains("heim"), "{output}");

    let (authority, key) = (scratch.file("ca.pem"), scratch.file("key.pem"));
    let (authority, key) = (authority.display().to_string(), key.display().to_string());
    let options = ["--tls", "--tlscert", &authority, "--tlskey", &key];
    let nats = Nats::start_with("127.0.0.1", &options).expect("it is installed");
    let url_of_nats = nats.url("").replace("nats://", "tls://");
    let mut stage = Stage::new(&url_of_nats, &[]);
    stage.add_with("b", &["--nats-ca", &authority]);
    let suite = stage.suite(&READS.replace("duration_s = 3", "duration_s = 1"));
    let output = stage.run(&suite, &url, &["--nats-ca", &authority]);
    assert_eq!(output.code, 0, "{output}");
    let run = stage.only_run();
    let trial = json(&run.join("trials/1.json"));
    assert_eq!(members(&trial).len(), 1);
    let stored = fs::read_to_string(run.join("run.json")).expect("read");
    assert!(!(stored + &output.to_string() + &stage.generators[0].stderr()).contains("heim"));
    // Whoever doesn't know the authority isn't let in.
    let output = dyno_testkit::dyno(scratch.path(), &["generator", "--nats", &url_of_nats]);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("NATS can't be reached"), "{output}");
}
