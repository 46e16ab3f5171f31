//! `/runs/NAME/FILE`: the files that dyno writes into run folders, and no others.

use crate::follow::run_folder;
use crate::page;
use crate::routes::{App, not_found};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

/// Bytes of a file that are sent at once.
const PART: usize = 1 << 16;

/// What may be sent, by the end of its name. A database that a run keeps in its folder is not among
/// it.
const KINDS: [(&str, &str); 9] = [
    ("csv", "text/csv; charset=utf-8"),
    ("hlog", "text/plain; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "text/plain; charset=utf-8"),
    ("md", "text/plain; charset=utf-8"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain; charset=utf-8"),
    ("typ", "text/plain; charset=utf-8"),
];

pub(crate) async fn file(
    State(app): State<Arc<App>>,
    Path((run, name)): Path<(String, String)>,
) -> Response {
    let found =
        run_folder(&app.runs, &run).and_then(|folder| Some((allowed(&folder, &name)?, name)));
    let opened = found.and_then(|((path, kind), name)| Some((File::open(path).ok()?, kind, name)));
    let Some((file, kind, name)) = opened else { return not_found() };
    let mut response = Body::from_stream(parts(file)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if name.ends_with(".html") {
        headers
            .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::PAPER_POLICY));
    }
    response
}

/// The path of a file of a run and its media type. What is asked for comes from outside: only plain
/// names below the folder are followed, and no link that leads out of it.
fn allowed(folder: &FilePath, name: &str) -> Option<(PathBuf, &'static str)> {
    let is_plain = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(fits)
    };
    if !name.split('/').all(is_plain) {
        return None;
    }
    let (_, ending) = name.rsplit_once('.')?;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == ending)?;
    // Only papers are pages.
    let is_paper = name.starts_with("paper.");
    if ending == "html" && !is_paper {
        return None;
    }
    let path = folder.join(name).canonicalize().ok()?;
    let is_inside = path.starts_with(folder.canonicalize().ok()?);
    (is_inside && path.is_file()).then_some((path, *kind))
}

/// A file piece by piece: histogram logs can be large.
fn parts(file: File) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let mut part = vec![0; PART];
        match file.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some((Ok(Bytes::from(part)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_dyno_wrote_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("trials")).expect("made");
        let files =
            ["run.json", "trials/3.csv", "paper.zh.html", "other.html", "data.db", ".secret.json"];
        for name in files {
            fs::write(run.join(name), "x").expect("written");
        }
        fs::write(folder.path().join("outside.json"), "x").expect("written");
        std::os::unix::fs::symlink(folder.path().join("outside.json"), run.join("link.json"))
            .expect("linked");
        for good in ["run.json", "trials/3.csv", "paper.zh.html"] {
            assert!(allowed(&run, good).is_some(), "{good}");
        }
        let bad = [
            "",
            "trials",
            "other.html",
            "data.db",
            ".secret.json",
            "link.json",
            "../outside.json",
            "trials/../../outside.json",
            "trials//3.csv",
            "/etc/passwd.txt",
            "absent.json",
        ];
        for bad in bad {
            assert_eq!(allowed(&run, bad), None, "{bad}");
        }
    }
}
