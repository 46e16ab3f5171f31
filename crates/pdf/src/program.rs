//! The compiler as a program.

use crate::{Font, PdfError};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// The remedy for a missing compiler.
const MISSING: &str = "Build dyno with the PDF compiler inside (`cargo build --release --features pdf`), or install the program `typst` (0.15) and call dyno again; the typst source is written beside the paper.";

pub(crate) fn compile(source: &str, fonts: &[Font], program: &OsStr) -> Result<Vec<u8>, PdfError> {
    let failed = |error: std::io::Error| {
        PdfError::new(format!("The PDF can't be made in a temporary folder: {error}."))
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let at = |name: &str| folder.path().join(name);
    for font in fonts {
        fs::write(at(font.name), &font.data).map_err(failed)?;
    }
    fs::write(at("paper.typ"), source).map_err(failed)?;
    run(program, folder.path())?;
    fs::read(at("paper.pdf")).map_err(failed)
}

fn run(program: &OsStr, folder: &Path) -> Result<(), PdfError> {
    let output = Command::new(program)
        .args(["compile", "--ignore-system-fonts", "--diagnostic-format", "short"])
        .args(["--font-path", ".", "paper.typ", "paper.pdf"])
        .current_dir(folder)
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                PdfError::new("There is no compiler for PDF here.").with_hint(MISSING)
            }
            _ => PdfError::new(format!("The program `typst` can't be run: {error}."))
                .with_hint(MISSING),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| line.contains("error")).unwrap_or("it gives no reason");
    let said = said.trim_start_matches("paper.typ:").trim_end_matches('.');
    Err(PdfError::new(format!("The program `typst` can't make the PDF: {said}."))
        .with_hint("Papers are written for typst 0.15."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that stands for typst.
    fn program(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("typst");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may be run");
        folder
    }

    #[test]
    fn without_a_program_the_error_says_how_to_get_one() {
        let error = compile("", &[], OsStr::new("/nowhere/typst")).expect_err("no such program");
        assert!(
            error.hint.as_deref().is_some_and(|hint| hint.contains("--features pdf")),
            "{error}"
        );
    }

    #[test]
    fn the_program_gets_source_and_fonts_and_its_errors_are_told() {
        let font = || Font { name: "f.ttf", data: b"font".to_vec() };
        let copying = program("#!/bin/sh\ncat paper.typ f.ttf > paper.pdf\n");
        let path = copying.path().join("typst");
        let pdf = compile("source ", &[font()], path.as_os_str()).expect("made");
        assert_eq!(pdf, b"source font");
        let failing = program("#!/bin/sh\necho 'paper.typ:3:1: error: what is this' >&2\nexit 1\n");
        let path = failing.path().join("typst");
        let error = compile("", &[font()], path.as_os_str()).expect_err("it fails");
        assert_eq!(
            error.to_string(),
            "The program `typst` can't make the PDF: 3:1: error: what is this."
        );
    }
}
