//! libpq's service files: named sets of connection options.

use super::TargetError;
use std::path::{Path, PathBuf};

/// Where Debian's and PostgreSQL's own packages keep the file of the whole system.
const SYSTEM_FOLDERS: [&str; 2] = ["/etc/postgresql-common", "/etc"];

/// The options of a service, from `PGSERVICEFILE` or `~/.pg_service.conf`, else from the system's file.
///
/// # Errors
/// The file can't be read, has a line that is none, or no file has the service.
pub(super) fn read(
    service: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, TargetError> {
    let named = variable("PGSERVICEFILE").map(PathBuf::from);
    if let Some(path) = named.as_ref().filter(|path| !path.exists()) {
        return Err(TargetError::new(format!("service file \"{}\" not found", path.display())));
    }
    let of_user =
        named.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pg_service.conf")));
    let folders = variable("PGSYSCONFDIR").map_or_else(
        || SYSTEM_FOLDERS.map(PathBuf::from).to_vec(),
        |folder| vec![PathBuf::from(folder)],
    );
    let of_system = folders.into_iter().map(|folder| folder.join("pg_service.conf"));
    for path in of_user.into_iter().chain(of_system).filter(|path| path.exists()) {
        let bytes = std::fs::read(&path).map_err(|error| {
            TargetError::new(format!("The service file {} can't be read: {error}.", path.display()))
        })?;
        if let Some(options) = find(service, &String::from_utf8_lossy(&bytes), &path)? {
            return Ok(options);
        }
    }
    Err(TargetError::new(format!("definition of service \"{service}\" not found")))
}

fn find(
    service: &str,
    text: &str,
    path: &Path,
) -> Result<Option<Vec<(String, String)>>, TargetError> {
    let mut options = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if options.is_some() {
                break;
            }
            let is_wanted = name.trim_end().strip_suffix(']') == Some(service);
            options = is_wanted.then(Vec::new);
            continue;
        }
        let Some(found) = &mut options else { continue };
        let Some((name, value)) = line.split_once('=') else {
            return Err(TargetError::new(format!(
                "syntax error in service file \"{}\", line {number}",
                path.display()
            )));
        };
        if name == "service" {
            return Err(TargetError::new(format!(
                "nested service specifications not supported in service file \"{}\", line {number}",
                path.display()
            )));
        }
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_its_section() {
        let text = "# all\n[a]\nhost=x\n\n[b]\nhost=y\nport=7\n[c]\nnonsense\n";
        let of = |service| find(service, text, Path::new("f")).map_err(|error| error.message);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("b"), Ok(Some(vec![pair("host", "y"), pair("port", "7")])));
        assert_eq!(of("d"), Ok(None));
        assert_eq!(of("c"), Err("syntax error in service file \"f\", line 9".to_owned()));
    }
}
