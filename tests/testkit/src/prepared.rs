//! Data of servers that were initialized once: making them again takes a second or more of CPU, for each of hundreds of
//! servers in a run of all tests.

use crate::Scratch;
use crate::server::{hand_over, set_up};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A folder for a server, with a copy of the folder `data` that a server leaves which `make` starts and ends in another
/// one. It is made once for each `program`, and again where `source`, the code that makes it, has changed.
pub(crate) fn prepared<S>(
    program: &str,
    source: &str,
    make: impl FnOnce(Scratch) -> Result<S, String>,
) -> Result<Scratch, String> {
    static MAKING: Mutex<()> = Mutex::new(());
    let data_folder = data_folder(program, source)?;
    let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !data_folder.is_dir() {
        let scratch = server_scratch()?;
        let data = scratch.file("data");
        let ended = make(scratch)?;
        let part = data_folder.with_extension(std::process::id().to_string());
        let _ = fs::remove_dir_all(&part);
        copy(&data, &part)?;
        drop(ended);
        // Another process may have been quicker.
        if fs::rename(&part, &data_folder).is_err() {
            let _ = fs::remove_dir_all(&part);
        }
    }
    drop(making);
    let scratch = server_scratch()?;
    copy(&data_folder, &scratch.file("data"))?;
    Ok(scratch)
}

/// A folder that the server may write to.
fn server_scratch() -> Result<Scratch, String> {
    let scratch = Scratch::new();
    hand_over(scratch.path())?;
    Ok(scratch)
}

/// Folder of the data of a program.
fn data_folder(program: &str, source: &str) -> Result<PathBuf, String> {
    let describe_error = |error: std::io::Error| format!("{program}: {error}");
    let file = fs::metadata(program).map_err(describe_error)?;
    let since_1970 =
        file.modified().map_err(describe_error)?.duration_since(SystemTime::UNIX_EPOCH);
    let mut hasher = DefaultHasher::new();
    (program, source, file.len(), since_1970.unwrap_or_default()).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/prepared");
    fs::create_dir_all(&folder).map_err(describe_error)?;
    Ok(folder.join(format!("{:016x}", hasher.finish())))
}

/// With owners and rights, and without the zeros of logs that are still empty.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    set_up(Command::new("cp").args(["-aT", "--sparse=always"]).arg(from).arg(to))
}
