//! `dyno export`, `dyno import` and `dyno verify`: a run in one file, and the proof that its paper follows from its trials.
//!
//! An archive is a tar file compressed by zstd. Its first entry, `manifest.json`, has the size and SHA-256 of all others; the
//! second one, if the publisher signs, is the Ed25519 signature of the first. The rest is the run folder. `export` writes the
//! paper as JSON and CSV into the archive, and `verify` makes it again.

use super::paper::{Format, Forms, write_paper};
use super::runs::{RunsFolder, find_run};
use crate::CommandResult;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_runner::failure::Failure;
use dyno_runner::output;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "manifest.sig";
/// The forms of the paper that are made again.
const PAPERS: [&str; 2] = ["paper.json", "paper.csv"];
/// Differences that are printed.
const DIFFERENCES_MAX: usize = 20;
/// An Ed25519 public key as X.509 has it begins with this.
const PUBLIC_KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/export.txt").trim_ascii_end())]
pub(crate) struct ExportArguments {
    /// A run: its folder, its name, the beginning of its name, or `last`.
    #[arg(default_value = "last")]
    run: String,
    /// The archive; by default the name of the run with `.tar.zst`, in the current folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sign with this Ed25519 key, a PEM file as `openssl genpkey -algorithm ed25519` makes it.
    #[arg(long, value_name = "KEY.pem")]
    sign: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsFolder,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArguments {
    /// An archive that `dyno export` has written.
    archive: PathBuf,
    #[command(flatten)]
    runs: RunsFolder,
}

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/verify.txt").trim_ascii_end())]
pub(crate) struct VerifyArguments {
    /// An archive that `dyno export` has written.
    archive: PathBuf,
    /// Demand the signature of this key, a PEM file as `openssl pkey -pubout` writes it.
    #[arg(long, value_name = "PUBLIC.pem")]
    signed_by: Option<PathBuf>,
}

/// The first entry of an archive.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The version of dyno that has made the archive, and so the paper in it.
    dyno: String,
    /// The name of the run's folder.
    run: String,
    /// All other files by their paths within the run.
    files: BTreeMap<String, FileEntry>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileEntry {
    bytes: u64,
    /// In lower-case hexadecimal digits.
    sha256: String,
}

impl FileEntry {
    fn new(bytes: &[u8]) -> Self {
        FileEntry { bytes: bytes.len() as u64, sha256: dyno_core::hex(&Sha256::digest(bytes)) }
    }
}

/// The entries of an archive, the manifest and its signature apart.
struct Archive {
    manifest: Manifest,
    manifest_bytes: Vec<u8>,
    signature: Option<Vec<u8>>,
    files: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn export(arguments: &ExportArguments) -> CommandResult {
    let folder = find_run(&arguments.runs.dir, &arguments.run)?;
    if dyno_store::is_growing(&folder) {
        let message = format!("The run {} hasn't ended.", folder.display());
        return Err(Failure::usage(message).with_hint("Export it when it has."));
    }
    let mut files = BTreeMap::new();
    read_folder(&folder, "", &mut files)?;
    files.retain(|path, _| !PAPERS.contains(&path.as_str()));
    let absolute = folder.canonicalize().map_err(|error| file_failure(&folder, "found", &error))?;
    let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.extend(make_papers(&files, &name)?);
    for (path, bytes) in &files {
        refuse_secrets(path, bytes)?;
    }
    let entries = files.iter().map(|(path, bytes)| (path.clone(), FileEntry::new(bytes)));
    let dyno = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = Manifest { dyno, run: name, files: entries.collect() };
    let manifest_bytes = crate::pretty(&manifest)?.into_bytes();
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, MANIFEST, &manifest_bytes)?;
    if let Some(key) = &arguments.sign {
        append(&mut builder, SIGNATURE, private_key(key)?.sign(&manifest_bytes).as_ref())?;
    }
    for (path, bytes) in &files {
        append(&mut builder, path, bytes)?;
    }
    let packed = builder.into_inner().map_err(|error| Failure::new(format!("{error}.")))?;
    let out =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar.zst", manifest.run)));
    dyno_store::write_atomically(&out, &compress_to_vec(&packed[..], CompressionLevel::Fastest))?;
    output::data(&format!("{}\n", out.display()));
    Ok(())
}

pub(crate) fn import(arguments: &ImportArguments) -> CommandResult {
    let archive = read_archive(&arguments.archive)?;
    if let Some(problem) = archive.damages().first() {
        return Err(Failure::new(format!("{}: {problem}.", arguments.archive.display()))
            .with_hint("Copy the archive again; `dyno verify` lists all differences."));
    }
    let folder = arguments.runs.dir.join(&archive.manifest.run);
    if folder.exists() {
        let message = format!("{} is there already.", folder.display());
        return Err(Failure::usage(message).with_hint("`--dir` names another folder of runs."));
    }
    unpack(&archive.files, &folder)?;
    output::data(&format!("{}\n", folder.display()));
    Ok(())
}

pub(crate) fn verify(arguments: &VerifyArguments) -> CommandResult {
    let archive = read_archive(&arguments.archive)?;
    let mut problems = archive.damages();
    let signer = match (&arguments.signed_by, &archive.signature) {
        (Some(key), Some(signature)) => {
            let key = UnparsedPublicKey::new(&ED25519, public_key(key)?);
            if key.verify(&archive.manifest_bytes, signature).is_err() {
                problems.push(format!("{MANIFEST}: the signature isn't that of this key"));
            }
            "signed by this key"
        }
        (Some(_), None) => {
            problems.push("the archive isn't signed".to_owned());
            "not signed"
        }
        (None, Some(_)) => "signed, which `--signed-by PUBLIC.pem` checks",
        (None, None) => "not signed",
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut figures = 0;
    if archive.manifest.dyno == version {
        match make_papers(&archive.files, &archive.manifest.run) {
            Err(failure) => problems.push(format!("its paper can't be made: {}", failure.message)),
            Ok(papers) => {
                for (path, made) in papers {
                    let stored = archive.files.get(&path).map(Vec::as_slice).unwrap_or_default();
                    figures += compare_papers(&path, stored, &made, &mut problems);
                }
            }
        }
    } else {
        let made_by = &archive.manifest.dyno;
        problems.push(format!(
            "dyno {made_by} has made the paper, and this is {version}: its figures can't be made again"
        ));
    }
    if problems.is_empty() {
        output::data(&format!(
            "{}: {} files as in the manifest, {figures} figures of the paper as the trials give them, {signer}\n",
            archive.manifest.run,
            archive.files.len()
        ));
        return Ok(());
    }
    let count = problems.len();
    if count > DIFFERENCES_MAX {
        problems.truncate(DIFFERENCES_MAX);
        problems.push(format!("{} more", count - DIFFERENCES_MAX));
    }
    for problem in &problems {
        output::data(&format!("{problem}\n"));
    }
    let message = format!("{} isn't what was exported.", arguments.archive.display());
    Err(Failure::denied(message).with_hint("Ask the publisher for the archive again."))
}

impl Archive {
    /// The files that differ from the manifest, a phrase each.
    fn damages(&self) -> Vec<String> {
        let mut damages = Vec::new();
        for (path, entry) in &self.manifest.files {
            match self.files.get(path) {
                None => damages.push(format!("{path} is missing")),
                Some(bytes) if FileEntry::new(bytes) != *entry => {
                    damages.push(format!("{path} isn't the file of the manifest"));
                }
                Some(_) => {}
            }
        }
        let unknown = self.files.keys().filter(|path| !self.manifest.files.contains_key(*path));
        damages.extend(unknown.map(|path| format!("{path} isn't in the manifest")));
        damages
    }
}

/// Compares a paper with the one that was made again, and returns the number of figures in it.
fn compare_papers(path: &str, stored: &[u8], made: &[u8], problems: &mut Vec<String>) -> usize {
    let parsed = (serde_json::from_slice(stored), serde_json::from_slice(made));
    if let (Ok(stored), Ok(made)) = parsed {
        return compare_values(path, &stored, &made, problems);
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (stored, made) = (lines(stored), lines(made));
    for number in 0..stored.len().max(made.len()) {
        if stored.get(number) != made.get(number) {
            problems.push(format!("{path}: line {} isn't what the trials give", number + 1));
        }
    }
    0
}

/// Compares two documents value by value, and returns the number of numbers in them.
fn compare_values(place: &str, stored: &Value, made: &Value, problems: &mut Vec<String>) -> usize {
    match (stored, made) {
        (Value::Object(stored), Value::Object(made)) => {
            let names = stored.keys().chain(made.keys().filter(|name| !stored.contains_key(*name)));
            names
                .map(|name| {
                    let values = [stored, made].map(|map| map.get(name).unwrap_or(&Value::Null));
                    compare_values(&format!("{place}/{name}"), values[0], values[1], problems)
                })
                .sum()
        }
        (Value::Array(stored), Value::Array(made)) if stored.len() == made.len() => {
            let pairs = stored.iter().zip(made).enumerate();
            pairs
                .map(|(number, (stored, made))| {
                    compare_values(&format!("{place}/{number}"), stored, made, problems)
                })
                .sum()
        }
        _ => {
            if stored != made {
                let [stored, made] = [stored, made].map(shorten);
                problems.push(format!("{place}: the paper has {stored}, the trials give {made}"));
            }
            usize::from(made.is_number())
        }
    }
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}

/// Makes the paper of a run from a copy of its files, and returns its forms by their names. The folder of the copy has the
/// name of the run, which the paper states.
fn make_papers(
    files: &BTreeMap<String, Vec<u8>>,
    run: &str,
) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let temporary = tempfile::tempdir()
        .map_err(|error| Failure::new(format!("A temporary folder can't be made: {error}.")))?;
    let folder = temporary.path().join(run);
    unpack(files, &folder)?;
    let runs = [dyno_store::read(&folder)?];
    let forms = Forms { formats: vec![Format::Json, Format::Csv], ..Forms::default() };
    write_paper(&runs, &folder, &forms, |_| ())?;
    let mut papers = BTreeMap::new();
    for name in PAPERS {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|error| file_failure(&path, "read", &error))?;
        papers.insert(name.to_owned(), bytes);
    }
    Ok(papers)
}

/// Reads all files below a folder; those that are still being written are left out.
fn read_folder(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), Failure> {
    let failed = |error| file_failure(folder, "read", &error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, name) = (entry.path(), format!("{prefix}{name}"));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            read_folder(&path, &format!("{name}/"), files)?;
        } else if kind.is_file() && !name.ends_with(".partial.json") {
            let bytes = fs::read(&path).map_err(|error| file_failure(&path, "read", &error))?;
            files.insert(name, bytes);
        }
    }
    Ok(())
}

/// Reads an archive into memory. No name in it may lead out of the folder of the run.
fn read_archive(path: &Path) -> Result<Archive, Failure> {
    let is_no_archive = |problem: &str| {
        Failure::new(format!("{} is no archive of a run: {problem}.", path.display()))
            .with_hint("`dyno export RUN` makes one.")
    };
    let packed = fs::read(path).map_err(|error| file_failure(path, "read", &error))?;
    let decoder = StreamingDecoder::new(&packed[..])
        .map_err(|_| is_no_archive("it isn't compressed by zstd"))?;
    let mut entries = tar::Archive::new(decoder);
    let mut files = BTreeMap::new();
    for entry in entries.entries().map_err(|error| is_no_archive(&error.to_string()))? {
        let mut entry = entry.map_err(|error| is_no_archive(&error.to_string()))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !is_inside(&name) || !entry.header().entry_type().is_file() {
            return Err(is_no_archive(&format!("`{name}` isn't a file inside it")));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| is_no_archive(&error.to_string()))?;
        if files.insert(name.clone(), bytes).is_some() {
            return Err(is_no_archive(&format!("it has `{name}` twice")));
        }
    }
    let manifest_bytes = files.remove(MANIFEST).ok_or(is_no_archive("it has no manifest.json"))?;
    let manifest: Manifest = serde_json::from_slice(&manifest_bytes)
        .map_err(|error| is_no_archive(&format!("{MANIFEST}: {error}")))?;
    if !is_inside(&manifest.run) || manifest.run.contains('/') {
        return Err(is_no_archive(&format!("{MANIFEST}: `{}` isn't a name", manifest.run)));
    }
    Ok(Archive { manifest, manifest_bytes, signature: files.remove(SIGNATURE), files })
}

fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn unpack(files: &BTreeMap<String, Vec<u8>>, folder: &Path) -> Result<(), Failure> {
    for (name, bytes) in files {
        let path = folder.join(name);
        let failed = |error| file_failure(&path, "written", &error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, bytes).map_err(failed)?;
    }
    Ok(())
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    builder
        .append_data(&mut header, name, bytes)
        .map_err(|error| Failure::new(format!("{name} can't be archived: {error}.")))
}

/// Refuses a file with a private key, or with a URL that has a password. Run folders have neither; scripts and texts of the
/// user's own might.
fn refuse_secrets(path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(bytes);
    for (number, line) in text.lines().enumerate() {
        let has_password = line.split("://").skip(1).any(|rest| {
            let login = rest.split(['/', '"', '\'', ' ', '<', '\\']).next().unwrap_or_default();
            let password = login.rsplit_once('@').and_then(|(login, _)| login.split_once(':'));
            password.is_some_and(|(_, password)| !password.chars().all(|char| "*.…".contains(char)))
        });
        if has_password || line.contains("PRIVATE KEY-----") {
            let message = format!("{path}, line {}, has a password or a private key.", number + 1);
            let hint =
                "Take it out of the file, and change it on the server if others had the file.";
            return Err(Failure::denied(message).with_hint(hint));
        }
    }
    Ok(())
}

fn private_key(path: &Path) -> Result<Ed25519KeyPair, Failure> {
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&read_pem(path)?).map_err(|error| {
        Failure::new(format!("{} holds no Ed25519 key: {error}.", path.display()))
            .with_hint("`openssl genpkey -algorithm ed25519 -out key.pem` makes one.")
    })
}

/// The 32 bytes of a public key.
fn public_key(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = read_pem(path)?;
    match bytes.strip_prefix(&PUBLIC_KEY_PREFIX) {
        Some(key) if key.len() == 32 => Ok(key.to_vec()),
        _ => {
            let message = format!("{} holds no Ed25519 public key.", path.display());
            Err(Failure::new(message)
                .with_hint("`openssl pkey -in key.pem -pubout -out public.pem` writes it."))
        }
    }
}

/// The bytes of the first block of a PEM file.
fn read_pem(path: &Path) -> Result<Vec<u8>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| file_failure(path, "read", &error))?;
    let lines = text.lines().skip_while(|line| !line.starts_with("-----BEGIN")).skip(1);
    let body: String = lines.take_while(|line| !line.starts_with("-----END")).collect();
    STANDARD.decode(body.trim()).map_err(|error| {
        Failure::new(format!("{} is no PEM file of a key: {error}.", path.display()))
    })
}

fn file_failure(path: &Path, verb: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} can't be {verb}: {error}.", path.display()))
}
