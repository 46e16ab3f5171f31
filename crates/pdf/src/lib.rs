//! Papers as PDF.
//!
//! [`compile`] makes a PDF of a typst source, with the fonts of this crate only, so that the same source gives the same
//! bytes on every machine. With the feature `typst` it contains the compiler; otherwise it needs a program `typst`.
//!
//! The compiler is a feature because it is nearly 300 crates: `./test` builds it in its own step with the profile
//! `quick`, and checks every letter of every page.

mod fonts;
#[cfg(feature = "typst")]
mod inside;
#[cfg(any(not(feature = "typst"), test))]
mod program;

pub use dyno_core::HintedError as PdfError;
pub use fonts::{FONT_LICENCES, Font, fonts};

/// A PDF of a source without other files. Errors name the line.
pub fn compile(source: &str) -> Result<Vec<u8>, PdfError> {
    let fonts = fonts()?;
    #[cfg(feature = "typst")]
    return inside::compile(source, fonts);
    #[cfg(not(feature = "typst"))]
    return program::compile(source, &fonts, std::ffi::OsStr::new("typst"));
}
