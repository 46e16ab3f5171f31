//! Papers as PDF.
//!
//! [`compile`] makes a PDF of a typst source, with the fonts of this crate and no others, so that the
//! same source gives the same bytes on every machine. With the feature `typst` the compiler is inside;
//! without it a `typst` program on the PATH is asked.
//!
//! The compiler is a feature because it is nearly 300 crates: `./test` builds it in a step of its own with
//! the profile `quick`, and looks for every letter of every page.

mod error;
mod fonts;
#[cfg(feature = "typst")]
mod inside;
#[cfg(any(not(feature = "typst"), test))]
mod program;

pub use error::PdfError;
pub use fonts::{FONT_LICENCES, Font, fonts};

/// A PDF of a source that names no other files and uses this crate's fonts.
///
/// # Errors
/// When there is no compiler, and when the source is wrong; the message names the line.
pub fn compile(source: &str) -> Result<Vec<u8>, PdfError> {
    let fonts = fonts()?;
    #[cfg(feature = "typst")]
    return inside::compile(source, fonts);
    #[cfg(not(feature = "typst"))]
    return program::compile(source, &fonts, std::ffi::OsStr::new("typst"));
}
