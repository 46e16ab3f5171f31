//! Charts as files of their own: for pages of others, slides and documents.

use super::csv::quote;
use crate::blocks::{Block, Drawing};
use crate::evidence::Paper;
use crate::forms::variables;
use crate::svg::{Svg, escape, letters};
use crate::templates::Templates;
use crate::text::Lang;
use std::fmt::Write;

/// A chart that needs nothing but itself.
#[derive(Clone, Debug, Default)]
pub struct ChartFile {
    /// Of its files, without extension: number in the paper and the section it stands in.
    pub name: String,
    pub caption: String,
    pub svg: String,
    /// The numbers behind it; empty where it shows none.
    pub csv: String,
    /// In pixels.
    pub width: f64,
}

const MARGIN: f64 = 12.0;
const LINE: f64 = 17.0;
/// About the width of a letter of captions and notes.
const LETTER: f64 = 6.6;

impl Paper {
    /// The charts of the paper in their order, with the page's style.
    pub fn charts(&self, templates: &Templates, lang: Lang) -> Vec<ChartFile> {
        let fonts = variables(templates.text("style.css"));
        let sans = fonts.into_iter().find(|(name, _)| *name == "sans");
        let sans = sans.map_or("sans-serif", |(_, value)| value).replace('"', "'");
        let style = self.chart_style(templates).replace("var(--sans)", &sans);
        let blocks = self.blocks(templates, lang);
        let drawings = named_drawings(&blocks).into_iter();
        drawings.map(|(drawing, name)| alone(drawing, name, &style)).collect()
    }
}

/// All drawings with the names of their files.
pub(crate) fn named_drawings(blocks: &[Block]) -> Vec<(&Drawing, String)> {
    let mut named: Vec<(&Drawing, String)> = Vec::new();
    let mut section = "cover";
    for_each_drawing(blocks, &mut section, &mut |section, drawing| {
        named.push((drawing, format!("{:02}-{section}", named.len() + 1)));
    });
    named
}

/// Calls `look` with each drawing and the section that it stands in.
fn for_each_drawing<'a>(
    blocks: &'a [Block],
    section: &mut &'a str,
    look: &mut dyn FnMut(&str, &'a Drawing),
) {
    for block in blocks {
        match block {
            Block::Cover(cover) => cover.chart.iter().for_each(|chart| look("cover", chart)),
            Block::Heading(heading) if !heading.anchor.is_empty() => *section = &heading.anchor,
            Block::Figures { figures, .. } => figures.iter().for_each(|one| look(section, one)),
            Block::Details { blocks, .. } => for_each_drawing(blocks, section, look),
            _ => {}
        }
    }
}

/// A drawing in one `<svg>`: caption, legend, its parts below each other, note.
fn alone(drawing: &Drawing, name: String, style: &str) -> ChartFile {
    let sizes: Vec<(f64, f64)> = drawing.svgs.iter().map(Svg::size).collect();
    let inner = sizes.iter().map(|(width, _)| *width).fold(320.0, f64::max);
    let width = inner + 2.0 * MARGIN;
    let mut body = String::new();
    let mut y = MARGIN;
    for line in wrapped(&drawing.caption, inner) {
        y += LINE;
        let line = escape(&line);
        let _ =
            write!(body, "<text class=\"name\" x=\"{MARGIN}\" y=\"{:.1}\">{line}</text>", y - 4.0);
    }
    if drawing.legend.len() > 1 {
        y = legend(&mut body, &drawing.legend, inner, y + 4.0);
    }
    y += 8.0;
    for (svg, (wide, high)) in drawing.svgs.iter().zip(&sizes) {
        let place =
            format!("<svg x=\"{MARGIN}\" y=\"{y:.1}\" width=\"{wide:.0}\" height=\"{high:.0}\"");
        body += &svg.markup.replacen("<svg", &place, 1);
        y += high + 8.0;
    }
    for line in wrapped(&drawing.note, inner) {
        y += LINE;
        let line = escape(&line);
        let _ =
            write!(body, "<text class=\"tick\" x=\"{MARGIN}\" y=\"{:.1}\">{line}</text>", y - 4.0);
    }
    let height = y + MARGIN;
    let (caption, style) = (escape(&drawing.caption), escape_style(style));
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <title>{caption}</title>\n<style>{style}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}\n</svg>\n"
    );
    let csv = match drawing.svgs.iter().all(|svg| svg.data.is_empty()) {
        true => String::new(),
        false => csv(&drawing.svgs),
    };
    ChartFile { name, caption: drawing.caption.clone(), svg, csv, width }
}

/// The numbers of drawings as CSV, with a head.
fn csv(svgs: &[Svg]) -> String {
    let mut out = "measure,against,at,series,value,low,high\n".to_owned();
    for datum in svgs.iter().flat_map(|svg| &svg.data) {
        let texts = [&datum.measure, &datum.against, &datum.at, &datum.series];
        for text in texts {
            out += &quote(text);
            out.push(',');
        }
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let (low, high) = (datum.low_high.map(|both| both.0), datum.low_high.map(|both| both.1));
        let _ = writeln!(out, "{},{},{}", number(datum.value), number(low), number(high));
    }
    out
}

/// Names of lines with samples of them; returns where they end.
fn legend(out: &mut String, entries: &[(String, String)], inner: f64, top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top + LINE);
    for (name, class) in entries {
        let wide = letters(name) as f64 * LETTER + 44.0;
        if x > MARGIN && x + wide > MARGIN + inner {
            (x, y) = (MARGIN, y + LINE);
        }
        let (colour, stroke) = class.split_once(' ').unwrap_or((class, ""));
        let (middle, name) = (y - 8.0, escape(name));
        let sample = match stroke {
            "dots" => format!("<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3.2\"/>", x + 11.0),
            stroke => format!("<path class=\"line {stroke}\" d=\"M{x:.1},{middle:.1}h22\"/>"),
        };
        let _ = write!(
            out,
            "<g class=\"series {colour}\">{sample}<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{name}</text></g>",
            x + 28.0,
            y - 4.0
        );
        x += wide;
    }
    y
}

/// Lines that are not wider; a line breaks at blanks, and in Chinese anywhere.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let most = (width / LETTER) as usize;
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        let ends = c == ' ' || crate::text::is_wide(c);
        if c != ' ' {
            word.push(c);
        }
        if !ends {
            continue;
        }
        if !line.trim_end().is_empty() && letters(&line) + letters(&word) > most {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        }
        line += &std::mem::take(&mut word);
        if c == ' ' {
            line.push(' ');
        }
    }
    lines.extend(Some(line.trim_end().to_owned()).filter(|line| !line.is_empty()));
    lines
}

/// CSS as the text of an element.
fn escape_style(css: &str) -> String {
    css.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_between_chinese_characters() {
        let width = 10.0 * LETTER;
        assert_eq!(wrapped("one two three four", width), ["one two", "three four"]);
        assert_eq!(wrapped("延迟随并发数的变化", width), ["延迟随并发", "数的变化"]);
        assert_eq!(wrapped("", width), Vec::<String>::new());
    }

    #[test]
    fn a_legend_that_is_too_wide_goes_on_below() {
        let entries = [("a".repeat(20), "s0".to_owned()), ("b".repeat(20), "s1 dashed".to_owned())];
        let mut out = String::new();
        assert_eq!(legend(&mut out, &entries, 250.0, 0.0), 2.0 * LINE);
        assert!(out.contains("class=\"line dashed\""), "{out}");
        assert_eq!(legend(&mut String::new(), &entries, 800.0, 0.0), LINE);
    }
}
