//! `dyno export`, `import` and `verify`: archives that anything was changed in are refused, and the place is named.

use dyno_testkit::{Scratch, dyno, only_run};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

const SUITE: &str = r#"
[suite]
name = "archived"
retry_starved = 0
[target.old]
url = "sqlite:old.db"
[target.new]
url = "sqlite:new.db"
[[experiment]]
name = "e"
workload = "sysbench"
test = "oltp_point_select"
options = { table_size = 100 }
workers = 2
events = 500
compare = { baseline = "old", candidates = "new", pairs = 2 }
"#;

/// Number of changes that are tried: `DYNO_MUTATIONS`, by default a few of each kind.
fn mutation_count() -> usize {
    std::env::var("DYNO_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

fn export(folder: &Path, more: &[&str]) -> String {
    let exported = dyno(folder, &[&["export", "last", "--dir", "runs"], more].concat());
    assert_eq!(exported.code, 0, "{exported}");
    exported.stdout.trim().to_owned()
}

type Entries = Vec<(String, Vec<u8>)>;

fn read_entries(path: &Path) -> Entries {
    let packed = fs::read(path).expect("an archive");
    let mut archive = tar::Archive::new(StreamingDecoder::new(&packed[..]).expect("zstd"));
    let mut entries = Vec::new();
    for entry in archive.entries().expect("tar") {
        let mut entry = entry.expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("read");
        entries.push((String::from_utf8_lossy(&entry.path_bytes()).into_owned(), bytes));
    }
    entries
}

fn write_entries(path: &Path, entries: &Entries) {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, &bytes[..]).expect("appended");
    }
    let packed = builder.into_inner().expect("tar");
    fs::write(path, compress_to_vec(&packed[..], CompressionLevel::Uncompressed)).expect("written");
}

/// A forger makes the manifest fit.
fn forge_manifest(entries: &mut Entries) {
    let mut manifest: Value = serde_json::from_slice(&entries[0].1).expect("a manifest");
    let mut files = BTreeMap::new();
    for (name, bytes) in &entries[1..] {
        let sha256: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        files.insert(name.clone(), serde_json::json!({ "bytes": bytes.len(), "sha256": sha256 }));
    }
    manifest["files"] = serde_json::json!(files);
    entries[0].1 = manifest.to_string().into_bytes();
}

fn is_trial(name: &str) -> bool {
    name.strip_prefix("trials/")
        .and_then(|name| name.strip_suffix(".json"))
        .is_some_and(|number| number.chars().all(|char| char.is_ascii_digit()))
}

/// Changes a digit of a file, and returns what `verify` must name.
fn change_digit(
    entries: &mut Entries,
    is_candidate: impl Fn(&str) -> bool,
    number: usize,
) -> String {
    let candidates: Vec<usize> = (1..entries.len())
        .filter(|&place| {
            is_candidate(&entries[place].0) && entries[place].1.iter().any(u8::is_ascii_digit)
        })
        .collect();
    let (name, bytes) = &mut entries[candidates[number % candidates.len()]];
    let digits: Vec<usize> =
        (0..bytes.len()).filter(|&place| bytes[place].is_ascii_digit()).collect();
    let place = digits[number * 7919 % digits.len()];
    bytes[place] = b'0' + (bytes[place] - b'0' + 1 + (number % 9) as u8) % 10;
    name.clone()
}

/// Changes an entry in one of several ways, by a number, and returns what `verify` must name.
fn mutate(entries: &mut Entries, number: usize) -> String {
    let step = number / 8;
    match number % 8 {
        0 => change_digit(entries, is_trial, step),
        1 => change_digit(entries, |name| name.starts_with("trials/"), step),
        2 => change_digit(entries, |name| name == "run.json" || name.starts_with("server/"), step),
        3 => entries.remove(1 + step % (entries.len() - 1)).0,
        4 => {
            entries.push((format!("trials/{}.json", 100 + step), b"{}".to_vec()));
            format!("trials/{}.json", 100 + step)
        }
        5 => {
            // A figure of a trial, such as transactions per second, by somebody who knows of manifests.
            let trials: Vec<usize> =
                (1..entries.len()).filter(|&place| is_trial(&entries[place].0)).collect();
            let trial = &mut entries[trials[step % trials.len()]].1;
            let mut values: Value = serde_json::from_slice(trial).expect("a trial");
            values["tps"] = serde_json::json!(values["tps"].as_f64().expect("a figure") * 1.1);
            *trial = values.to_string().into_bytes();
            forge_manifest(entries);
            "paper.json/".to_owned()
        }
        6 => {
            let header = entries.iter_mut().find(|(name, _)| name == "run.json").expect("a header");
            let mut values: Value = serde_json::from_slice(&header.1).expect("a header");
            values["seed"] = serde_json::json!(step + 1_000);
            header.1 = values.to_string().into_bytes();
            forge_manifest(entries);
            "paper.json/".to_owned()
        }
        _ => {
            for (name, bytes) in entries.iter_mut().filter(|(name, _)| is_trial(name)) {
                let mut values: Value = serde_json::from_slice(bytes).expect(name);
                let opposite = if values["target"] == "old" { "new" } else { "old" };
                values["target"] = serde_json::json!(opposite);
                *bytes = values.to_string().into_bytes();
            }
            forge_manifest(entries);
            "paper".to_owned()
        }
    }
}

#[test]
fn archives_are_verified_and_changed_ones_refused() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    fs::write(folder.join("s.toml"), SUITE).expect("a file");
    let run = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert!([0, 3].contains(&run.code), "{run}");
    let name = export(folder, &[]);
    let verified = dyno(folder, &["verify", &name]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(verified.stdout.contains("not signed"), "{verified}");
    // The same folder gives the same archive, and the same paper at another place.
    let again = export(folder, &["--out", "again.tar.zst"]);
    assert!(fs::read(folder.join(&name)).unwrap() == fs::read(folder.join(&again)).unwrap());
    let imported = dyno(folder, &["import", &name, "--dir", "elsewhere"]);
    assert_eq!(imported.code, 0, "{imported}");
    let twice = dyno(folder, &["import", &name, "--dir", "elsewhere"]);
    assert_eq!(twice.code, 2, "{twice}");
    for (dir, out) in [("runs", "here"), ("elsewhere", "there")] {
        let words = [
            "paper",
            "last",
            "--dir",
            dir,
            "--out",
            out,
            "--format",
            "html,md,csv,json",
            "--lang",
            "en,zh",
        ];
        let paper = dyno(folder, &words);
        assert_eq!(paper.code, 0, "{paper}");
    }
    for file in ["paper.html", "paper.zh.html", "paper.md", "paper.csv", "paper.json"] {
        let [original, imported] = ["here", "there"]
            .map(|dir| fs::read_to_string(folder.join(dir).join(file)).expect(file));
        // Papers link to the folder of their run.
        assert!(
            original.replace("runs/", "") == imported.replace("elsewhere/", ""),
            "{file} differs"
        );
    }
    let entries = read_entries(&folder.join(&name));
    for number in 0..mutation_count() {
        let mut changed = entries.clone();
        let place = mutate(&mut changed, number);
        write_entries(&folder.join("changed.tar.zst"), &changed);
        let refusal = dyno(folder, &["verify", "changed.tar.zst"]);
        assert_eq!(refusal.code, 4, "change {number} at {place}: {refusal}");
        assert!(refusal.stdout.contains(&place), "change {number} at {place}: {refusal}");
    }
}

#[test]
fn signatures_are_those_of_a_key_and_secrets_are_not_exported() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    fs::write(folder.join("s.toml"), SUITE).expect("a file");
    let run = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert!([0, 3].contains(&run.code), "{run}");
    let openssl = |words: &[&str]| {
        let output =
            Command::new("openssl").args(words).current_dir(folder).output().expect("openssl");
        assert!(output.status.success(), "{output:?}");
    };
    for key in ["key", "other"] {
        let (private, public) = (format!("{key}.pem"), format!("{key}.public.pem"));
        openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private]);
        openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
    }
    let name = export(folder, &["--sign", "key.pem"]);
    let verify = |key: &str| dyno(folder, &["verify", &name, "--signed-by", key]);
    assert_eq!(verify("key.public.pem").code, 0, "{}", verify("key.public.pem"));
    assert_eq!(verify("other.public.pem").code, 4);
    assert_eq!(verify("key.pem").code, 1);
    let mut entries = read_entries(&folder.join(&name));
    entries.retain(|(name, _)| name != "manifest.sig");
    write_entries(&folder.join(&name), &entries);
    assert_eq!(verify("key.public.pem").code, 4);
    let run = only_run(&folder.join("runs")).expect("a run");
    fs::write(run.join("note.txt"), "see mysql://me:secret@db/x\n").expect("a file");
    let refusal = dyno(folder, &["export", "last", "--dir", "runs"]);
    assert_eq!(refusal.code, 4, "{refusal}");
    assert!(
        refusal.stderr.contains("note.txt, line 1") && !refusal.stderr.contains("secret"),
        "{refusal}"
    );
}

#[test]
fn archives_that_lead_out_of_their_folder_are_refused() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let mut bytes = Vec::new();
    for name in ["../x", "/x", "a/../../x"] {
        let mut header = tar::Header::new_ustar();
        header.set_size(0);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        bytes.clear();
        let mut builder = tar::Builder::new(&mut bytes);
        builder.append(&header, &[][..]).expect("appended");
        builder.finish().expect("tar");
        drop(builder);
        let packed = compress_to_vec(&bytes[..], CompressionLevel::Uncompressed);
        fs::write(folder.join("evil.tar.zst"), packed).expect("written");
        let refusal = dyno(folder, &["import", "evil.tar.zst"]);
        assert_eq!(refusal.code, 1, "{name}: {refusal}");
        assert!(refusal.stderr.contains("isn't a file inside it"), "{name}: {refusal}");
    }
    for text in ["", "no archive"] {
        fs::write(folder.join("evil.tar.zst"), text).expect("written");
        assert_eq!(dyno(folder, &["verify", "evil.tar.zst"]).code, 1);
    }
}

#[test]
fn runs_are_listed_by_state_and_removed() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    fs::write(folder.join("s.toml"), SUITE).expect("a file");
    let run = dyno(folder, &["run", "s.toml", "--dir", "runs"]);
    assert!([0, 3].contains(&run.code), "{run}");
    let list = |words: &[&str]| {
        let listed = dyno(folder, &[&["ls", "--dir", "runs", "--json"], words].concat());
        assert_eq!(listed.code, 0, "{listed}");
        let runs: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        runs.as_array().expect("an array").len()
    };
    assert_eq!(list(&[]), 1);
    assert_eq!(list(&["--status", "complete"]), 1);
    assert_eq!(list(&["--status", "failed"]), 0);
    assert_eq!([list(&["ARCHIVED"]), list(&["nothing"])], [1, 0]);
    let removed = dyno(folder, &["rm", "last", "--dir", "runs"]);
    assert_eq!(removed.code, 0, "{removed}");
    assert_eq!(list(&[]), 0);
    assert_eq!(dyno(folder, &["rm", "last", "--dir", "runs"]).code, 2);
}
