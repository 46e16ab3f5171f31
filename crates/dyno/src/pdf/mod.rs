//! Papers as PDF.
//!
//! [`compile`] makes a PDF of a typst source, with dyno's own fonts only, so that the same source gives the same bytes
//! on every machine. With the feature `pdf` dyno contains the compiler, nearly 300 crates; otherwise it needs a program
//! `typst`, which gets the fonts too.

#[cfg(feature = "pdf")]
mod inside;

use dyno_core::Error;
use flate2::read::GzDecoder;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::process::Command;

/// Subsets of Noto Sans SC and Noto Sans Mono; `fonts/make.sh` made them.
const PACKED: [(&str, &[u8]); 4] = [
    ("NotoSansSC-Regular.ttf", include_bytes!("../../fonts/NotoSansSC-Regular.ttf.gz")),
    ("NotoSansSC-Bold.ttf", include_bytes!("../../fonts/NotoSansSC-Bold.ttf.gz")),
    ("NotoSansMono-Regular.ttf", include_bytes!("../../fonts/NotoSansMono-Regular.ttf.gz")),
    ("NotoSansMono-Bold.ttf", include_bytes!("../../fonts/NotoSansMono-Bold.ttf.gz")),
];

/// Name and bytes of a TrueType file.
type Font = (&'static str, Vec<u8>);

/// All fonts of papers.
fn fonts() -> Result<Vec<Font>, Error> {
    let mut fonts = Vec::new();
    for (name, packed) in PACKED {
        let mut data = Vec::new();
        GzDecoder::new(packed)
            .read_to_end(&mut data)
            .map_err(|error| Error::new(format!("The font {name} can't be unpacked: {error}.")))?;
        fonts.push((name, data));
    }
    Ok(fonts)
}

/// A PDF of a source without other files. Errors name the line.
pub(crate) fn compile(source: &str) -> Result<Vec<u8>, Error> {
    #[cfg(feature = "pdf")]
    {
        inside::compile(source, fonts()?)
    }
    #[cfg(not(feature = "pdf"))]
    {
        compile_outside(source, &fonts()?, OsStr::new("typst"))
    }
}

/// The remedy for a missing compiler.
const MISSING: &str = "Build dyno with the PDF compiler inside (`cargo build --release --features pdf`), or install the program `typst` (0.15) and call dyno again; the typst source is written next to the paper.";

/// Makes a PDF by a program.
#[cfg_attr(feature = "pdf", cfg_attr(not(test), expect(dead_code, reason = "it is inside")))]
fn compile_outside(source: &str, fonts: &[Font], program: &OsStr) -> Result<Vec<u8>, Error> {
    let folder = tempfile::tempdir().map_err(folder_error)?;
    for (name, data) in fonts {
        fs::write(folder.path().join(name), data).map_err(folder_error)?;
    }
    fs::write(folder.path().join("paper.typ"), source).map_err(folder_error)?;
    let output = Command::new(program)
        .args(["compile", "--ignore-system-fonts", "--diagnostic-format", "short"])
        .args(["--font-path", ".", "paper.typ", "paper.pdf"])
        .current_dir(folder.path())
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new("There is no compiler for PDF here."),
            _ => Error::new(format!("The program `typst` can't be run: {error}.")),
        })
        .map_err(|error| error.with_hint(MISSING))?;
    if output.status.success() {
        return fs::read(folder.path().join("paper.pdf")).map_err(folder_error);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let error = errors.lines().find(|line| line.contains("error")).unwrap_or("it gives no reason");
    let error = error.trim_start_matches("paper.typ:").trim_end_matches('.');
    Err(Error::new(format!("The program `typst` can't make the file: {error}."))
        .with_hint("Papers are written for typst 0.15."))
}

fn folder_error(error: std::io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::new(format!("No PDF can be made in {}: {error}.", folder.display()))
        .with_hint("Make room there, or name another folder by the environment variable TMPDIR.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn all_are_truetype_and_free() {
        for (name, data) in fonts().expect("unpacked") {
            assert_eq!(&data[..4], [0, 1, 0, 0], "{name}");
        }
        for license in [
            include_str!("../../fonts/NotoSansSC-LICENSE.txt"),
            include_str!("../../fonts/NotoSansMono-LICENSE.txt"),
        ] {
            assert!(license.contains("SIL OPEN FONT LICENSE Version 1.1"));
        }
    }

    /// A program in place of typst.
    fn program(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("typst");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may be run");
        folder
    }

    #[test]
    fn without_a_program_the_error_says_how_to_get_one() {
        let error =
            compile_outside("", &[], OsStr::new("/nowhere/typst")).expect_err("no such program");
        assert!(
            error.hint.as_deref().is_some_and(|hint| hint.contains("--features pdf")),
            "{error}"
        );
    }

    #[test]
    fn the_program_gets_source_and_fonts_and_its_errors_are_told() {
        let fonts = [("f.ttf", b"font".to_vec())];
        let copying = program("#!/bin/sh\ncat paper.typ f.ttf > paper.pdf\n");
        let path = copying.path().join("typst");
        let pdf = compile_outside("source ", &fonts, path.as_os_str()).expect("made");
        assert_eq!(pdf, b"source font");
        let failing = program("#!/bin/sh\necho 'paper.typ:3:1: error: what is this' >&2\nexit 1\n");
        let path = failing.path().join("typst");
        let error = compile_outside("", &fonts, path.as_os_str()).expect_err("it fails");
        assert_eq!(
            error.to_string(),
            "The program `typst` can't make the file: 3:1: error: what is this."
        );
    }
}
