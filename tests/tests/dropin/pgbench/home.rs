//! Files of a home folder that can't be used do not stop logins that don't need them.

use super::support::{original, ours};
use dyno_testkit::{Certificates, Postgres, ProcessOutput, Scratch, server_or_skip, skipped};
use std::fs::{Permissions, create_dir, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const FILES: [&str; 6] = [
    ".pgpass",
    ".my.cnf",
    ".pg_service.conf",
    ".postgresql/root.crt",
    ".postgresql/postgresql.crt",
    ".postgresql/postgresql.key",
];

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// A program as a user who has no rights, in the home folder of the tester.
fn as_nobody(command: &Command, home: &Path) -> ProcessOutput {
    let mut command_as_nobody = Command::new("setpriv");
    command_as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command_as_nobody.arg(command.get_program()).args(command.get_args()).current_dir("/");
    ProcessOutput::capture(command_as_nobody.env("HOME", home).env_remove("PGPASSWORD"))
}

#[test]
fn home_files_that_cannot_be_used_are_no_obstacle() {
    const NAME: &str = "home_files_that_cannot_be_used_are_no_obstacle";
    let server = server_or_skip!(Postgres, NAME);
    if !rustix::process::geteuid().is_root() {
        return skipped(NAME, "only root can run a program as another user");
    }
    let (home, scripts) = (Scratch::new(), Scratch::new());
    create_dir(home.file(".postgresql")).expect("a folder");
    for file in FILES {
        write(home.file(file), "nothing\n").expect("a file");
        set_mode(&home.file(file), 0o600);
    }
    let script = scripts.file("one.sql");
    write(&script, "SELECT 1;\n").expect("a script");
    let (port, script) = (server.port.to_string(), script.display().to_string());
    let words = ["-n", "-t1", "-f", &script, "-h127.0.0.1", "-p", &port, "-Upostgres", "sbtest"];
    for (home_mode, file_mode, warning) in
        [(0o700, 0o600, ""), (0o755, 0o600, "Permission denied"), (0o755, 0o644, "chmod 600")]
    {
        set_mode(home.path(), home_mode);
        set_mode(&home.file(".pgpass"), file_mode);
        let output = as_nobody(&ours(home.path(), &words), home.path()).good();
        assert!(!output.stderr.contains("pgbench: error"), "{output}");
        let warnings = output.stderr.lines().filter(|line| line.contains("warning: "));
        assert_eq!(warnings.clone().count(), usize::from(!warning.is_empty()), "{output}");
        assert!(warnings.clone().all(|line| line.contains(warning)), "{output}");
        if let Some(command) = original(home.path(), &words) {
            let _ = as_nobody(&command, home.path()).good();
        }
        // A service that was named is needed.
        let mut service = words;
        service[8] = "service=mine";
        let output = as_nobody(&ours(home.path(), &service), home.path());
        let expected =
            if home_mode == 0o700 { "not found" } else { ".pg_service.conf can't be read" };
        assert!(output.code == 1 && output.stderr.contains(expected), "{output}");
        let mysql = ["-n", "--target", "mysql://127.0.0.1:1/none"];
        let output = as_nobody(&ours(home.path(), &mysql), home.path());
        assert!(output.stderr.contains("127.0.0.1:1"), "not reached: {output}");
    }
}

#[test]
fn the_certificates_of_the_home_folder_are_those_of_the_client() {
    const NAME: &str = "the_certificates_of_the_home_folder_are_those_of_the_client";
    let certificates = match Certificates::make() {
        Ok(certificates) => certificates,
        Err(why) => return skipped(NAME, &why),
    };
    let certificate_path = |name: &str| certificates.file(name).display().to_string();
    let hba = "host all postgres all trust\nhostssl all localhost all cert\n";
    write(certificates.file("hba"), hba).expect("a file");
    let settings = ["ssl_cert_file", "ssl_key_file", "ssl_ca_file", "hba_file"];
    let values = ["server.pem", "own.key", "ca.pem", "hba"];
    let pairs = settings
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{name}={}", certificate_path(value)));
    let options: Vec<String> = ["ssl=on".to_owned()].into_iter().chain(pairs).collect();
    let options: Vec<&str> = options.iter().flat_map(|text| ["-c", text.as_str()]).collect();
    let server = match Postgres::start_with(&options) {
        Ok(server) => server,
        Err(why) => return skipped(NAME, &why),
    };
    server.sql("CREATE ROLE localhost LOGIN").expect("a role");
    let home = Scratch::new();
    write(home.file("one.sql"), "SELECT 1;\n").expect("a script");
    let port = server.port.to_string();
    let words = ["-n", "-t1", "-f", "one.sql", "-h127.0.0.1", "-p", &port, "-Ulocalhost", "sbtest"];
    let without = ProcessOutput::capture(&mut ours(home.path(), &words));
    assert_eq!(without.code, 1, "{without}");
    create_dir(home.file(".postgresql")).expect("a folder");
    for (from, to) in
        [("server.pem", "postgresql.crt"), ("server.key", "postgresql.key"), ("ca.pem", "root.crt")]
    {
        let copy = home.file(&format!(".postgresql/{to}"));
        std::fs::copy(certificates.file(from), &copy).expect("a copy");
        set_mode(&copy, 0o600);
    }
    for mode in ["prefer", "require", "verify-full"] {
        let run_with_mode =
            |mut command: Command| ProcessOutput::capture(command.env("PGSSLMODE", mode)).good();
        let _ = run_with_mode(ours(home.path(), &words));
        if let Some(command) = original(home.path(), &words) {
            let _ = run_with_mode(command);
        }
    }
}
