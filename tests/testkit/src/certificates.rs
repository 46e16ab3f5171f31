//! Certificates for the servers of tests.

use crate::Scratch;
use crate::binary::run_for_stdout;
use crate::server::hand_over;
use std::process::Command;

/// Two CAs, and a server certificate for localhost and 127.0.0.1 of the first.
#[derive(Debug)]
pub struct Certificates(Scratch);

impl Certificates {
    /// Makes them with the program openssl.
    pub fn make() -> Result<Self, String> {
        Self::make_at("127.0.0.1")
    }

    /// Makes them for one more address of the server.
    pub fn make_at(address: &str) -> Result<Self, String> {
        let scratch = Scratch::new();
        let folder = scratch.path().to_owned();
        let run_openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            run_for_stdout(command.args(arguments.split(' ')).current_dir(&folder))
        };
        for ca in ["ca", "other"] {
            run_openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout \
                 {ca}.key -out {ca}.pem -subj /CN=test-{ca} -addext keyUsage=critical,keyCertSign"
            ))?;
        }
        run_openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key \
             -out server.csr -subj /CN=localhost",
        )?;
        let names = format!("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{address}\n");
        std::fs::write(folder.join("names"), names).map_err(|error| error.to_string())?;
        run_openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile names -out server.pem",
        )?;
        // The server runs as another user and must read its key.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.join("server.key"), PermissionsExt::from_mode(0o644))
            .map_err(|error| error.to_string())?;
        let private_key = folder.join("own.key");
        std::fs::copy(folder.join("server.key"), &private_key)
            .and_then(|_| std::fs::set_permissions(&private_key, PermissionsExt::from_mode(0o600)))
            .map_err(|error| error.to_string())?;
        hand_over(&private_key)?;
        Ok(Certificates(scratch))
    }

    /// The path of a file: `ca.pem`, `other.pem`, `server.pem`, `server.key`; `own.key` is the same for the server alone, as
    /// PostgreSQL wants it.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.file(name)
    }

    /// The path of the first CA.
    pub fn ca(&self) -> String {
        self.0.file("ca.pem").display().to_string()
    }
}
