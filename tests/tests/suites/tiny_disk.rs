//! A disk that is soon full.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A tiny file system, unmounted at the end of its life.
#[derive(Debug)]
pub(crate) struct TinyDisk(PathBuf);

impl TinyDisk {
    /// Mounts it at a folder that is made for it. `size` is in the words of tmpfs: `2m`, `4k`.
    pub(crate) fn mount(at: PathBuf, size: &str) -> Result<Self, String> {
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&at);
        let output = mount.output().map_err(|error| format!("no mount: {error}"))?;
        if output.status.success() {
            return Ok(TinyDisk(at));
        }
        Err(format!("a tmpfs can't be mounted: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
