//! The logo that a publisher names: a file beside that which names it. A plan holds it, so that a stored run can be
//! printed without the file.

use crate::bundled::BUNDLED_PREFIX;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::path::Path;

/// It stands in every paper, and in `run.json`.
const BYTES_MAX: u64 = 64 << 10;

/// As a `data:` URL; what is wrong comes with a remedy.
pub(crate) fn read(file: &str, name: &str) -> Result<String, (String, String)> {
    let remedy = || {
        format!(
            "Name a PNG or an SVG of at most {} KiB beside the file that names it.",
            BYTES_MAX >> 10
        )
    };
    if file.starts_with(BUNDLED_PREFIX) {
        return Err(("A bundled suite has no logo.".to_owned(), remedy()));
    }
    let path = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
    let refused = |why: String| (format!("The logo {} {why}.", path.display()), remedy());
    let failed = |error: std::io::Error| refused(format!("can't be read: {error}"));
    // The size first: reading a huge file to refuse it would take long.
    let size = std::fs::metadata(&path).map_err(failed)?.len();
    if size > BYTES_MAX {
        return Err(refused(format!("has {size} bytes, more than {BYTES_MAX}")));
    }
    let bytes = std::fs::read(&path).map_err(failed)?;
    let kind = kind(&bytes).map_err(|why| refused(why.to_owned()))?;
    Ok(format!("data:image/{kind};base64,{}", BASE64_STANDARD.encode(&bytes)))
}

fn kind(bytes: &[u8]) -> Result<&'static str, &'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Ok("png");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is neither a PNG nor an SVG")?;
    if !text.contains("<svg") || !text.contains("http://www.w3.org/2000/svg") {
        return Err("is neither a PNG nor an SVG");
    }
    // A paper works offline, and shows what it holds.
    let text = text.to_ascii_lowercase();
    let active = ["<script", "<foreignobject", "href=\"http", "href='http", "url(http", "@import"];
    match active.iter().any(|part| text.contains(part)) {
        true => Err("refers to other files or has scripts"),
        false => Ok("svg+xml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 2 1\"><path d=\"M0,0h2v1z\"/></svg>";

    fn read_of(name: &str, bytes: &[u8]) -> Result<String, (String, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), bytes).expect("written");
        read(&folder.path().join("paper.toml").to_string_lossy(), name)
    }

    #[test]
    fn png_and_svg_become_data_urls() {
        let png = read_of("a.png", b"\x89PNG\r\n\x1a\nrest").expect("a PNG");
        assert!(png.starts_with("data:image/png;base64,iVBORw0KGgpyZXN0"), "{png}");
        let svg = read_of("a.svg", SVG.as_bytes()).expect("an SVG");
        assert!(svg.starts_with("data:image/svg+xml;base64,PHN2Zy"), "{svg}");
    }

    #[test]
    fn other_files_and_large_ones_are_refused_with_a_remedy() {
        let active = SVG.replace("<path", "<script>alert(1)</script><path");
        let linked = SVG.replace("<path", "<image href=\"https://example.org/x.png\"/><path");
        let large = vec![b' '; (BYTES_MAX + 1) as usize];
        for (bytes, why) in [
            (b"GIF89a".as_slice(), "neither"),
            (active.as_bytes(), "scripts"),
            (linked.as_bytes(), "refers to other files"),
            (&large, "65537 bytes"),
        ] {
            let (message, hint) = read_of("logo.x", bytes).expect_err("refused");
            assert!(message.contains(why) && hint.contains("64 KiB"), "{message} {hint}");
        }
        assert!(
            read("nowhere/paper.toml", "logo.svg")
                .expect_err("missing")
                .0
                .contains("can't be read")
        );
    }
}
