//! Dependencies of dyno: where crates come from, under which licenses, how often, and who maintains them.

use crate::{assert_none, none_but_known, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

const LICENSES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that no one looks after any more, as the advisories of RustSec say.
const UNMAINTAINED: [&str; 15] = [
    "ansi_term",
    "atty",
    "backoff",
    "bincode",
    "derivative",
    "fxhash",
    "instant",
    "net2",
    "number_prefix",
    "paste",
    "proc-macro-error",
    "proc-macro-hack",
    "serde_yaml",
    "term_size",
    "yaml-rust",
];

/// Names, versions and sources of all crates, of every platform and feature.
fn locked() -> Vec<(String, String, Option<String>)> {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let find_value = |part: &str, key: &str| {
        let start = format!("{key} = \"");
        let line = part.lines().find_map(|line| line.strip_prefix(&start))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = text.split("[[package]]").skip(1).map(|part| {
        let get_value = |key| find_value(part, key).expect("a name and a version");
        (get_value("name"), get_value("version"), find_value(part, "source"))
    });
    packages.collect()
}

#[test]
fn all_crates_are_of_one_registry_and_checked() {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let sums = text.lines().filter(|line| line.starts_with("checksum = ")).count();
    let foreign = locked().into_iter().filter(|(_, _, source)| source.is_some());
    let foreign: Vec<_> = foreign.collect();
    assert_eq!(sums, foreign.len(), "each has a checksum");
    let elsewhere =
        foreign.into_iter().filter(|(_, _, source)| source.as_deref() != Some(REGISTRY));
    assert_none(elsewhere.map(|(name, _, source)| format!("{name} is of {source:?}")).collect());
}

#[test]
fn versions_of_a_crate_get_no_more() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in locked() {
        versions.entry(name).or_default().insert(version);
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    let several = several.map(|(name, versions)| (name, versions.len()));
    none_but_known("duplicates", &several.collect());
}

#[test]
fn crates_without_a_maintainer_are_said() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("a policy");
    let policy = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let unmaintained =
        locked().into_iter().filter(|(name, ..)| UNMAINTAINED.contains(&name.as_str()));
    let unmaintained = unmaintained.map(|(name, version, _)| {
        let version = version.split('+').next().unwrap_or_default();
        format!("{name} {version}")
    });
    assert_none(
        unmaintained
            .filter(|one| !policy.contains(one))
            .map(|one| format!("SECURITY.md: {one}?"))
            .collect(),
    );
}

/// Returns true if an expression of SPDX lets dyno use what stands under it.
fn is_free(license: &str) -> bool {
    let license = license.trim();
    let either = split_outside_brackets(license, " OR ");
    if either.len() > 1 {
        return either.into_iter().any(is_free);
    }
    let parts = split_outside_brackets(license, " AND ");
    if parts.len() > 1 {
        return parts.into_iter().all(is_free);
    }
    match license.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_free(inner),
        None => LICENSES.contains(&license),
    }
}

/// The parts between words, except for those in brackets.
fn split_outside_brackets<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth == 0 && at >= begin && text[at..].starts_with(word) {
            parts.push(&text[begin..at]);
            begin = at + word.len();
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[test]
fn licenses_are_read_as_they_are_meant() {
    for free in
        ["MIT", "MIT OR GPL-2.0-only", "(MIT OR GPL-3.0) AND Unicode-3.0", "Apache-2.0 AND ISC"]
    {
        assert!(is_free(free), "{free}");
    }
    for other in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT AND GPL-3.0) OR AGPL-3.0", ""] {
        assert!(!is_free(other), "{other}");
    }
}

#[test]
fn licenses_let_dyno_be_used() {
    // Only what this machine builds: nothing is fetched to look at it.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--locked",
            "--format-version=1",
            "--filter-platform",
            &platform,
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("crates");
    assert!(packages.len() > 200, "{}", packages.len());
    let complaints = packages.iter().filter_map(|package| {
        let license = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        let license = license.split_whitespace().collect::<Vec<_>>().join(" ");
        (!is_free(&license)).then(|| format!("{} stands under `{license}`", package["name"]))
    });
    assert_none(complaints.collect());
}

#[test]
fn what_is_fetched_has_its_checksum() {
    let folder = root().join("target/tmp/checked");
    fs::create_dir_all(&folder).expect("made");
    let file = folder.join("nats-server_2.9.10-1+b3_amd64.deb");
    fs::write(&file, "another file of that name").expect("written");
    let script = "hashes=tests/servers.sha256; . tests/checked; checked \"$1\" || echo \"$why\"";
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(&file)
        .current_dir(root())
        .env_remove("DYNO_BLESS")
        .output()
        .expect("bash runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("is not the file of tests/servers.sha256"), "{stdout}");
    let checksums = fs::read_to_string(root().join("tests/servers.sha256")).expect("sums");
    for fetched in
        ["nats-server_", "pgpool2_", "shardingsphere-proxy-bootstrap-", "mysql-server-core_"]
    {
        assert!(checksums.lines().any(|line| line.contains(&format!("  {fetched}"))), "{fetched}");
    }
}
