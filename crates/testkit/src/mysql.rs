//! A MySQL for a test: the one that `tests/fetch-servers` unpacked, started by its own loader.

use crate::server::{TestServer, free_port, hand_over, set_up, unprivileged};
use crate::{Scratch, ask};
use std::path::{Path, PathBuf};

/// A running MySQL with user `root` (no password) and an empty database `sbtest`.
#[derive(Debug)]
pub struct MySql {
    pub server: TestServer,
    pub port: u16,
}

impl MySql {
    /// Where `tests/fetch-servers mysql` has unpacked MySQL and its Router; an error says that it has not.
    pub fn folder() -> Result<PathBuf, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/mysql");
        if !root.join("complete").is_file() {
            return Err(
                "there is no MySQL in target/servers; call tests/fetch-servers mysql".to_owned()
            );
        }
        root.canonicalize().map_err(|error| error.to_string())
    }

    /// Starts a small server. An error is that of [`Self::folder`]; panics when one that is there doesn't start.
    pub fn start() -> Result<Self, String> {
        let root = Self::folder()?;
        Ok(Self::launch(&root)
            .unwrap_or_else(|why| panic!("MySQL is there but doesn't start: {why}")))
    }

    fn launch(root: &Path) -> Result<Self, String> {
        let scratch = Scratch::new();
        hand_over(scratch.path())?;
        let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let loader = loader(&libraries).ok_or("the loader of its libraries is missing")?;
        let (port, daemon) = (free_port(), root.join("usr/sbin/mysqld").display().to_string());
        let (show, own) = (root.display(), scratch.path().display());
        let mut arguments: Vec<String> = vec![
            "--argv0".to_owned(),
            daemon.clone(),
            "--library-path".to_owned(),
            format!("{}:{show}/usr/lib/mysql/private", libraries.display()),
            daemon,
            "--no-defaults".to_owned(),
            format!("--basedir={show}/usr"),
            format!("--datadir={own}/data"),
            format!("--tmpdir={own}"),
            format!("--lc-messages-dir={show}/usr/share/mysql"),
            format!("--character-sets-dir={show}/usr/share/mysql/charsets"),
            "--mysqlx=OFF".to_owned(),
            "--secure-file-priv=NULL".to_owned(),
            "--innodb-redo-log-capacity=64M".to_owned(),
        ];
        let loader = loader.display().to_string();
        set_up(unprivileged(&loader).args(&arguments).arg("--initialize-insecure"))?;
        arguments.extend([
            format!("--plugin-dir={show}/usr/lib/mysql/plugin"),
            format!("--socket={own}/s"),
            format!("--pid-file={own}/pid"),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--innodb-buffer-pool-size=128M".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
        ]);
        let mut mysql = MySql { server: TestServer::new(scratch, &loader, arguments), port };
        let administrator = format!("mysql://root@127.0.0.1:{port}/mysql");
        mysql.server.launch(|| ask(&administrator, "SELECT 1").is_ok())?;
        ask(&administrator, "CREATE DATABASE sbtest").map_err(|error| error.to_string())?;
        Ok(mysql)
    }

    /// A URL of dyno for the TCP port and database `sbtest`.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/sbtest", self.port)
    }
}

fn loader(libraries: &Path) -> Option<PathBuf> {
    let names = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
    names.map(|name| libraries.join(name)).into_iter().find(|path| path.is_file())
}
