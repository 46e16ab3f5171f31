//! The compiler as a program.

use crate::{Font, PNG_SCALE, PdfError};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// The remedy for a missing compiler.
const MISSING: &str = "Build dyno with the PDF compiler inside (`cargo build --release --features pdf`), or install the program `typst` (0.15) and call dyno again; the typst source is written beside the paper.";

pub(crate) fn compile(source: &str, fonts: &[Font], program: &OsStr) -> Result<Vec<u8>, PdfError> {
    let folder = folder_with(fonts)?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("paper.typ"), source).map_err(failed)?;
    run(program, folder.path(), &["paper.typ", "paper.pdf"])?;
    fs::read(at("paper.pdf")).map_err(failed)
}

/// A page for each drawing, as wide as it is: one call draws all.
pub(crate) fn pngs(
    drawings: &[(&str, f64)],
    fonts: &[Font],
    program: &OsStr,
) -> Result<Vec<Vec<u8>>, PdfError> {
    let folder = folder_with(fonts)?;
    let at = |name: &str| folder.path().join(name);
    let mut source = "#set page(width: auto, height: auto, margin: 0pt)\n".to_owned();
    for (place, (svg, width)) in drawings.iter().enumerate() {
        let number = place + 1;
        fs::write(at(&format!("{number}.svg")), svg).map_err(failed)?;
        let gap = if place == 0 { "" } else { "#pagebreak()\n" };
        source += &format!("{gap}#image(\"{number}.svg\", width: {width}pt)\n");
    }
    fs::write(at("paper.typ"), source).map_err(failed)?;
    let pixels = format!("{}", 72.0 * PNG_SCALE);
    let arguments = ["--format", "png", "--ppi", &pixels, "paper.typ", "{p}.png"];
    run(program, folder.path(), &arguments)?;
    (1..=drawings.len())
        .map(|number| fs::read(at(&format!("{number}.png"))).map_err(failed))
        .collect()
}

fn failed(error: std::io::Error) -> PdfError {
    let folder = std::env::temp_dir();
    PdfError::new(format!("No PDF or PNG can be made in {}: {error}.", folder.display()))
        .with_hint("Make room there, or name another folder by the environment variable TMPDIR.")
}

fn folder_with(fonts: &[Font]) -> Result<tempfile::TempDir, PdfError> {
    let folder = tempfile::tempdir().map_err(failed)?;
    for font in fonts {
        fs::write(folder.path().join(font.name), &font.data).map_err(failed)?;
    }
    Ok(folder)
}

fn run(program: &OsStr, folder: &Path, arguments: &[&str]) -> Result<(), PdfError> {
    let output = Command::new(program)
        .args(["compile", "--ignore-system-fonts", "--diagnostic-format", "short"])
        .args(["--font-path", "."])
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                PdfError::new("There is no compiler for PDF and PNG here.").with_hint(MISSING)
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
    Err(PdfError::new(format!("The program `typst` can't make the file: {said}."))
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
        let path = program(
            "#!/bin/sh\ncase \"$*\" in *'--format png --ppi 144 paper.typ {p}.png'*) ;; *) exit 1;; esac\n\
             grep -c image paper.typ > count; for n in 1 2; do cat count $n.svg > $n.png; done\n",
        );
        let path = path.path().join("typst");
        let drawn = pngs(&[("<a/>", 10.0), ("<b/>", 20.5)], &[font()], path.as_os_str());
        assert_eq!(drawn.expect("drawn"), [b"2\n<a/>", b"2\n<b/>"]);
        let failing = program("#!/bin/sh\necho 'paper.typ:3:1: error: what is this' >&2\nexit 1\n");
        let path = failing.path().join("typst");
        let error = compile("", &[font()], path.as_os_str()).expect_err("it fails");
        assert_eq!(
            error.to_string(),
            "The program `typst` can't make the file: 3:1: error: what is this."
        );
    }
}
