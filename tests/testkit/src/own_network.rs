//! Tests in their own network, where an address that is not loopback is reached without leaving the test.

use crate::{ProcessOutput, skipped};
use rustix::process::geteuid;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// Stands for another machine in a network of a test's own; RFC 5737 keeps it for examples.
pub const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

const INSIDE: &str = "DYNO_TEST_OWN_NETWORK";

/// Executes the test with this path once more, in a network namespace whose loopback device has the address
/// [`ELSEWHERE`]. True inside of it; outside false, when the test has passed there, or says that it is skipped.
#[expect(
    clippy::print_stderr,
    reason = "what the test inside has left out must be said outside, too"
)]
pub fn is_in_own_network(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        for arguments in
            [&["link", "set", "lo", "up"][..], &["address", "add", "192.0.2.1/32", "dev", "lo"]]
        {
            let _ = ProcessOutput::capture(Command::new("ip").args(arguments)).good();
        }
        return true;
    }
    if !unshare_command().args(["ip", "-V"]).output().is_ok_and(|output| output.status.success()) {
        skipped(test, "network namespaces can't be made here");
        return false;
    }
    let program = std::env::current_exe().expect("a test knows its own path");
    let output = ProcessOutput::capture(
        unshare_command().arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1"),
    );
    assert!(output.code == 0 && output.stdout.contains("1 passed"), "{output}");
    for line in output.stderr.lines().filter(|line| line.starts_with("skipped: ")) {
        eprintln!("{line}");
    }
    false
}

fn unshare_command() -> Command {
    let mut unshare = Command::new("unshare");
    unshare.arg("--net");
    if !geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare
}
