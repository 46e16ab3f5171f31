//! The compiler as a library.

#[cfg(test)]
mod tests;

use super::Font;
use dyno_core::Error;
use typst::diag::{FileError, FileResult, SourceDiagnostic, SourceResult};
use typst::foundations::{Bytes, Datetime, Duration, Smart};
use typst::syntax::{FileId, Source};
use typst::text::{Font as Face, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World, WorldExt};
use typst_layout::PagedDocument;
use typst_pdf::PdfOptions;

/// The world of the compiler: one source, our fonts, no files, no clock.
struct PaperWorld {
    library: LazyHash<Library>,
    book: LazyHash<FontBook>,
    faces: Vec<Face>,
    source: Source,
}

impl PaperWorld {
    fn new(source: &str, fonts: Vec<Font>) -> PaperWorld {
        let faces: Vec<Face> =
            fonts.into_iter().flat_map(|(_, data)| Face::iter(Bytes::new(data))).collect();
        PaperWorld {
            library: LazyHash::new(Library::default()),
            book: LazyHash::new(FontBook::from_fonts(&faces)),
            faces,
            source: Source::detached(source),
        }
    }
}

impl World for PaperWorld {
    fn library(&self) -> &LazyHash<Library> {
        &self.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.book
    }

    fn main(&self) -> FileId {
        self.source.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.source.id() { Ok(self.source.clone()) } else { Err(FileError::AccessDenied) }
    }

    fn file(&self, _: FileId) -> FileResult<Bytes> {
        Err(FileError::AccessDenied)
    }

    fn font(&self, index: usize) -> Option<Face> {
        self.faces.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

/// Compiles a typst source to a PDF; the error names the first mistake.
pub(super) fn compile(source: &str, fonts: Vec<Font>) -> Result<Vec<u8>, Error> {
    let world = PaperWorld::new(source, fonts);
    let document = typst::compile::<PagedDocument>(&world).output;
    let document = document.map_err(|errors| explain(&world, &errors))?;
    let pdf = pdf(&document).map_err(|errors| explain(&world, &errors));
    // The cache of this document is of no use to the next one.
    typst::comemo::evict(0);
    pdf
}

/// Like the program: identified by title and author, without a time.
fn pdf(document: &PagedDocument) -> SourceResult<Vec<u8>> {
    let options = PdfOptions { creator: Smart::Custom(Some("dyno".into())), ..Default::default() };
    typst_pdf::pdf(document, &options)
}

/// The first error, with its line.
fn explain(world: &PaperWorld, errors: &[SourceDiagnostic]) -> Error {
    let Some(error) = errors.first() else {
        return Error::new("The PDF can't be made: the compiler gives no reason.");
    };
    let line = world.range(error.span).and_then(|range| {
        let text = world.source.text().get(..range.start)?;
        Some(text.matches('\n').count() + 1)
    });
    let place = line.map_or(String::new(), |line| format!(" (line {line} of the typst source)"));
    Error::new(format!("The PDF can't be made{place}: {}.", error.message))
        .with_hint("The typst source is written next to the paper.")
}
