//! Papers of made-up runs in print: nothing overlaps, nothing leaves the page, no letter is missing.

use super::PaperWorld;
use crate::pdf::{compile, fonts};
use dyno_report::{Edition, Lang, Paper};
use std::io::Read;
use std::path::Path;
use typst::layout::{Frame, FrameItem, Transform};
use typst_layout::PagedDocument;

#[expect(dead_code, reason = "made for the tests of the papers themselves")]
#[path = "../../../../report/tests/it/synthetic/mod.rs"]
mod synthetic;

/// Points between the text and the edge of the page at least, and by how much neighbors may touch.
const MARGIN: f64 = 40.0;
const TOUCH: f64 = 0.6;

fn papers() -> Vec<(&'static str, Paper)> {
    let mut long = synthetic::two_targets(&[1, 8, 64, 512], 3, 30);
    for trial in &mut long.trials {
        if let Some(node) = trial.before.values_mut().next() {
            let settings = (0..60).map(|n| (format!("a_setting_with_number_{n}"), "on".repeat(n)));
            node.settings = settings.collect();
        }
    }
    long.header.title = format!("{}\\n#x $y$ [z] {}", synthetic::HOSTILE, "很长的标题".repeat(20));
    vec![
        ("sysbench", Paper::new(&[long], &[synthetic::published()])),
        ("pgbench", Paper::new(&[synthetic::pgbench::pgbench()], &synthetic::pgbench::published())),
        ("tpcc", Paper::new(&[synthetic::tpcc::tpcc()], &synthetic::tpcc::published())),
        ("tpch", Paper::new(&[synthetic::tpch::tpch()], &synthetic::tpch::published())),
    ]
}

fn compile_document(source: &str) -> PagedDocument {
    let world = PaperWorld::new(source, fonts().expect("unpacked"));
    let compiled = typst::compile::<PagedDocument>(&world);
    let warnings: Vec<_> = compiled.warnings.iter().map(|warning| &warning.message).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    match compiled.output {
        Ok(document) => document,
        Err(errors) => panic!("{}", super::explain(&world, &errors)),
    }
}

/// A run of letters on a page: if it begins and ends, its base line and height.
struct Run {
    text: String,
    left: f64,
    right: f64,
    line: f64,
    size: f64,
}

fn collect_runs(frame: &Frame, at: Transform, runs: &mut Vec<Run>) {
    for (place, item) in frame.items() {
        let at = at.pre_concat(Transform::translate(place.x, place.y));
        match item {
            FrameItem::Group(group) => {
                collect_runs(&group.frame, at.pre_concat(group.transform), runs)
            }
            FrameItem::Text(text) => {
                // Glyph 0 is the box in place of a letter which the font lacks.
                let missing = text.glyphs.iter().any(|glyph| glyph.id == 0);
                assert!(!missing, "a letter is missing in {:?}", text.text);
                runs.push(Run {
                    text: text.text.to_string(),
                    left: at.tx.to_pt(),
                    right: at.tx.to_pt() + text.width().to_pt(),
                    line: at.ty.to_pt(),
                    size: text.size.to_pt(),
                });
            }
            _ => {}
        }
    }
}

/// Panics if text leaves its page or covers other text; returns all text.
fn check_layout(name: &str, document: &PagedDocument) -> String {
    let mut document_text = String::new();
    for (number, page) in document.pages().iter().enumerate() {
        let size = page.frame.size();
        let mut runs = Vec::new();
        collect_runs(&page.frame, Transform::identity(), &mut runs);
        for (place, run) in runs.iter().enumerate() {
            let Run { text, left, right, line, size: height } = run;
            let is_inside = *left > MARGIN
                && *right < size.x.to_pt() - MARGIN
                && *line - height > 0.0
                && *line < size.y.to_pt() - 20.0;
            assert!(is_inside, "{name}, page {}: {text:?} leaves the page", number + 1);
            for other in &runs[place + 1..] {
                let wide = right.min(other.right) - left.max(other.left);
                let apart = (line - other.line).abs();
                // Letters are about 0.7 of their size high above the line, and 0.2 deep.
                let high = 0.75 * height.min(other.size) - apart;
                assert!(
                    wide < TOUCH
                        || high < TOUCH
                        || text.trim().is_empty()
                        || other.text.trim().is_empty(),
                    "{name}, page {}: {text:?} and {:?} overlap",
                    number + 1,
                    other.text
                );
            }
            document_text.push_str(text);
            document_text.push('\n');
        }
    }
    document_text
}

/// All streams of a PDF, unpacked, and what is between them.
fn unpack_streams(pdf: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut remaining = pdf;
    let find =
        |text: &[u8], pattern: &[u8]| text.windows(pattern.len()).position(|part| part == pattern);
    while let Some(at) = find(remaining, b"stream\n") {
        bytes.extend_from_slice(&remaining[..at]);
        let inside = &remaining[at + b"stream\n".len()..];
        let end = find(inside, b"endstream").expect("a stream ends");
        let mut text = Vec::new();
        let mut reader = flate2::read::ZlibDecoder::new(&inside[..end]);
        match reader.read_to_end(&mut text) {
            Ok(_) => bytes.extend(text),
            Err(_) => bytes.extend_from_slice(&inside[..end]),
        }
        remaining = &inside[end + b"endstream".len()..];
    }
    bytes.extend_from_slice(remaining);
    bytes
}

/// Each paper in one language: the typesetter is slow without optimization. Short editions are in the other one.
fn languages() -> impl Iterator<Item = Lang> {
    [Lang::Zh, Lang::En].into_iter().cycle()
}

#[test]
fn papers_are_printed_whole_in_both_languages() {
    for ((name, paper), lang) in papers().into_iter().zip(languages()) {
        let name = format!("{name}, {}", lang.code());
        let document = compile_document(&paper.typst(lang));
        let text = check_layout(&name, &document);
        let pages = document.pages().len();
        assert!((3..200).contains(&pages), "{name}: {pages} pages");
        assert!(text.contains(&format!("{pages} / {pages}")), "{name}: the last page's number");
        if lang == Lang::Zh {
            assert!(text.contains("目录"), "{name}: the contents");
        }
    }
}

#[test]
fn the_short_edition_has_at_most_12_pages() {
    let runs = [synthetic::two_targets(&[1, 8, 64, 512], 3, 30), synthetic::pgbench::pgbench()];
    let combined = Paper::new(&runs, &[synthetic::published()]);
    let papers = papers().into_iter().chain([("both", combined)]);
    for ((name, paper), lang) in papers.zip(languages().skip(1)) {
        let name = format!("{name}, {}", lang.code());
        let document = compile_document(&paper.in_edition(Edition::Short).typst(lang));
        check_layout(&name, &document);
        let pages = document.pages().len();
        assert!(pages <= 12, "{name}: {pages} pages");
    }
}

#[test]
fn a_pdf_has_bookmarks_and_fonts_and_is_the_same_every_time() {
    let (_, paper) = papers().swap_remove(1);
    let source = paper.typst(Lang::Zh);
    assert_eq!(source, paper.typst(Lang::Zh));
    let pdf = compile(&source).expect("made");
    assert!(pdf.starts_with(b"%PDF-"));
    assert!(pdf == compile(&source).expect("made again"), "the same bytes");
    let inside = String::from_utf8_lossy(&unpack_streams(&pdf)).into_owned();
    for wanted in ["/Outlines", "NotoSansSC", "NotoSansMono", "/ToUnicode", "/StructTreeRoot"] {
        assert!(inside.contains(wanted), "{wanted}");
    }
    assert!(!inside.contains("/CreationDate"), "no time");
}

/// The entries of a folder; none if it can't be read.
fn list_folder(folder: &Path) -> Vec<std::fs::DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().collect()
}

#[test]
fn every_letter_of_the_messages_is_in_the_fonts() {
    let fonts = fonts().expect("unpacked");
    let world = PaperWorld::new("", fonts);
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("Cargo.lock").is_file()).expect("the workspace");
    let crates = root.join("crates");
    let rooms = list_folder(&crates).into_iter().chain(list_folder(&crates.join("workloads")));
    let mut letters = 0;
    for file in rooms.flat_map(|room| list_folder(&room.path().join("messages"))) {
        let text = std::fs::read_to_string(file.path()).expect("text");
        for c in text.chars().filter(|c| !c.is_control()) {
            let faces = world.faces.iter().filter(|face| face.info().family == "Noto Sans SC");
            let count = faces.filter(|face| face.info().coverage.contains(c as u32)).count();
            assert_eq!(count, 2, "{c:?} in Regular and Bold");
            letters += 1;
        }
    }
    assert!(letters > 1000, "{letters}");
}

#[test]
fn errors_name_the_line_of_the_source() {
    let error = compile("a\n\n#nothing()").expect_err("no such function");
    assert_eq!(
        error.to_string(),
        "The PDF can't be made (line 3 of the typst source): unknown variable: nothing."
    );
    let error = compile("#read(\"/etc/passwd\")").expect_err("no files");
    assert!(error.to_string().contains("access denied"), "{error}");
}
