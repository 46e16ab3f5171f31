//! Charts as PNG.

use crate::{Font, PNG_SCALE, PdfError};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

pub(crate) fn pngs(drawings: &[(&str, f64)], fonts: Vec<Font>) -> Result<Vec<Vec<u8>>, PdfError> {
    let mut options = Options { font_family: "Noto Sans SC".to_owned(), ..Options::default() };
    let known = options.fontdb_mut();
    fonts.into_iter().for_each(|font| known.load_font_data(font.data));
    drawings.iter().map(|(svg, _)| png(svg, &options)).collect()
}

fn png(svg: &str, options: &Options<'_>) -> Result<Vec<u8>, PdfError> {
    let failed = |why: String| PdfError::new(format!("A chart can't be drawn as PNG: {why}."));
    let tree = Tree::from_str(svg, options).map_err(|error| failed(error.to_string()))?;
    let scale = PNG_SCALE as f32;
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let size = tree.size();
    let map = Pixmap::new(pixels(size.width()), pixels(size.height()));
    let mut map = map.ok_or_else(|| failed("it has no area".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut map.as_mut());
    map.encode_png().map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_lines_are_drawn_in_their_colours() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 60 20\" width=\"60\" height=\"20\">\
            <style>svg .s0 { color: #ff0000; } svg text { font-family: Nowhere, 'Noto Sans SC'; fill: currentColor; }</style>\
            <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/><g class=\"s0\"><text x=\"2\" y=\"15\">延迟 ms</text></g></svg>";
        let made = pngs(&[(svg, 60.0)], crate::fonts().expect("fonts")).expect("drawn");
        let map = Pixmap::decode_png(&made[0]).expect("a PNG");
        assert_eq!((map.width(), map.height()), (120, 40));
        let reds = map.pixels().iter().filter(|p| p.red() > 200 && p.green() < 90 && p.blue() < 90);
        assert!(reds.count() > 100, "five letters and characters");
        let error = pngs(&[("no svg", 1.0)], Vec::new()).expect_err("refused");
        assert!(error.to_string().starts_with("A chart can't be drawn as PNG"), "{error}");
    }
}
