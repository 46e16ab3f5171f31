//! Subsets of Noto Sans SC and Noto Sans Mono; `fonts/make.sh` made them.

use crate::PdfError;
use flate2::read::GzDecoder;
use std::io::Read;

/// The licences of the fonts, which are also embedded in every PDF.
pub const FONT_LICENCES: [&str; 2] = [
    include_str!("../fonts/NotoSansSC-LICENSE.txt"),
    include_str!("../fonts/NotoSansMono-LICENSE.txt"),
];

const PACKED: [(&str, &[u8]); 4] = [
    ("NotoSansSC-Regular.ttf", include_bytes!("../fonts/NotoSansSC-Regular.ttf.gz")),
    ("NotoSansSC-Bold.ttf", include_bytes!("../fonts/NotoSansSC-Bold.ttf.gz")),
    ("NotoSansMono-Regular.ttf", include_bytes!("../fonts/NotoSansMono-Regular.ttf.gz")),
    ("NotoSansMono-Bold.ttf", include_bytes!("../fonts/NotoSansMono-Bold.ttf.gz")),
];

/// A font file.
pub struct Font {
    pub name: &'static str,
    /// TrueType.
    pub data: Vec<u8>,
}

/// All fonts of papers.
pub fn fonts() -> Result<Vec<Font>, PdfError> {
    let unpacked = |(name, packed): &(&'static str, &[u8])| {
        let mut data = Vec::new();
        GzDecoder::new(*packed).read_to_end(&mut data).map_err(|error| {
            PdfError::new(format!("The font {name} can't be unpacked: {error}."))
        })?;
        Ok(Font { name, data })
    };
    PACKED.iter().map(unpacked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_truetype_and_free() {
        for font in fonts().expect("unpacked") {
            assert_eq!(&font.data[..4], [0, 1, 0, 0], "{}", font.name);
        }
        for licence in FONT_LICENCES {
            assert!(licence.contains("SIL OPEN FONT LICENSE Version 1.1"));
        }
    }
}
