//! Papers as PDF, charts as PNG.
//!
//! [`compile`] makes a PDF of a typst source, with the fonts of this crate only, so that the same source gives the same
//! bytes on every machine. With the feature `typst` it contains the compiler; otherwise it needs a program `typst`.
//!
//! [`pngs`] draws charts with resvg, which comes with the compiler; without the feature the program does it.
//!
//! The compiler is a feature because it is nearly 300 crates: `./test` builds it in its own step with the profile
//! `quick`, and checks every letter of every page.

mod fonts;
#[cfg(feature = "typst")]
mod inside;
mod packed;
#[cfg(any(not(feature = "typst"), test))]
mod program;

pub use dyno_core::Error as PdfError;
pub use fonts::{FONT_LICENCES, Font, fonts};

/// Pixels of a PNG for each of the drawing.
pub const PNG_SCALE: f64 = 2.0;

/// PNGs of standalone drawings with their widths, in their order.
///
/// # Errors
/// When one is no SVG, or there is neither the feature nor a program.
pub fn pngs(drawings: &[(&str, f64)]) -> Result<Vec<Vec<u8>>, PdfError> {
    let fonts = fonts()?;
    #[cfg(feature = "typst")]
    return inside::pngs(drawings, fonts);
    #[cfg(not(feature = "typst"))]
    return program::pngs(drawings, &fonts, std::ffi::OsStr::new("typst"));
}

/// A PDF of a source without other files. Errors name the line.
pub fn compile(source: &str) -> Result<Vec<u8>, PdfError> {
    let fonts = fonts()?;
    #[cfg(feature = "typst")]
    let pdf = inside::compile(source, fonts)?;
    #[cfg(not(feature = "typst"))]
    let pdf = program::compile(source, &fonts, std::ffi::OsStr::new("typst"))?;
    Ok(packed::packed(pdf))
}
