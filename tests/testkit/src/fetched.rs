//! Servers that `tests/fetch-servers` has unpacked: programs of another system, executed by its own loader.

use std::path::{Path, PathBuf};

/// The folder of one of them.
#[derive(Debug)]
pub(crate) struct Fetched(pub(crate) PathBuf);

impl Fetched {
    /// The server of that name; an error says that it was not fetched.
    pub(crate) fn find(name: &str) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers").join(name);
        if !root.join("complete").is_file() {
            return Err(format!(
                "there is no {name} in target/servers; call tests/fetch-servers {name}"
            ));
        }
        root.canonicalize().map(Fetched).map_err(|error| error.to_string())
    }

    /// A file or folder of it.
    pub(crate) fn file(&self, path: &str) -> String {
        self.0.join(path).display().to_string()
    }

    /// The loader of the program at `path`, and the arguments before the program's own. Its
    /// libraries are those of its system and those in `private`.
    pub(crate) fn program(
        &self,
        path: &str,
        private: &str,
    ) -> Result<(String, Vec<String>), String> {
        let libraries = self.0.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let names = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
        let loader = names.map(|name| libraries.join(name)).into_iter().find(|path| path.is_file());
        let loader = loader.ok_or("the loader of its libraries is missing")?;
        let program = self.file(path);
        let arguments = vec![
            "--argv0".to_owned(),
            program.clone(),
            "--library-path".to_owned(),
            format!("{}:{}", libraries.display(), self.file(private)),
            program,
        ];
        Ok((loader.display().to_string(), arguments))
    }
}
