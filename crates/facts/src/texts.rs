//! Texts of a suite and of a publisher for readers, in both languages.

use crate::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A text in both languages; if one is missing the other stands in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BothTexts {
    pub en: String,
    pub zh: String,
}

impl BothTexts {
    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.zh.is_empty()
    }

    /// The text as a message, which is empty if both texts are.
    pub fn message(&self) -> Message {
        Message::either(&self.en, &self.zh)
    }
}

/// Texts of the publisher of a paper: `[paper]` of a suite, or the file of `dyno paper --paper`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PaperTexts {
    pub title: BothTexts,
    pub subtitle: BothTexts,
    pub authors: Vec<String>,
    pub organization: BothTexts,
    /// Text as it is printed.
    pub date: String,
    /// Logo of the organization, as a `data:` URL of a PNG or an SVG; may be empty.
    pub logo: String,
    /// Markdown before the summary.
    pub preface: BothTexts,
    /// Markdown: what the products are.
    pub introduction: BothTexts,
    /// Markdown behind the results.
    pub conclusions: BothTexts,
    /// Markdown at the end.
    pub legal: BothTexts,
    /// Names of targets in the order in which the paper has them; others follow.
    pub order: Vec<String>,
    /// By the name of a target.
    pub targets: BTreeMap<String, TargetTexts>,
}

impl PaperTexts {
    pub fn is_empty(&self) -> bool {
        *self == PaperTexts::default()
    }
}

/// Texts of the publisher about a target; missing ones are those of the suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetTexts {
    /// The name that tables and charts show.
    pub name: BothTexts,
    pub class: Option<String>,
    pub vcpu: Option<f64>,
    pub memory_gib: Option<f64>,
    /// In charts: `#rrggbb`, legible on white; may be empty.
    pub color: String,
}

/// White paper.
pub const WHITE: Color = Color([255, 255, 255]);
/// The background of a dark page.
pub const DARK: Color = Color([0x16, 0x18, 0x1b]);
/// Contrast that text needs (WCAG 2.2, 1.4.3): charts show names in the color of their line.
pub const CONTRAST_MIN: f64 = 4.5;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color([u8; 3]);

impl Color {
    /// Of `#rrggbb`.
    pub fn parse(text: &str) -> Option<Color> {
        let digits = text.strip_prefix('#').filter(|digits| {
            digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        })?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        let [_, colors @ ..] = number.to_be_bytes();
        Some(Color(colors))
    }

    /// Like `#rrggbb`.
    pub fn hex(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// From 1 (none) to 21 (black on white), as WCAG defines it.
    pub fn contrast(self, other: Color) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// This hue on a dark page: mixed with white until it can be read there.
    pub fn on_dark(self) -> Color {
        let mut mixtures = (0..=10_u32).map(|tenths| {
            Color(self.0.map(|own| ((u32::from(own) * (10 - tenths) + 255 * tenths) / 10) as u8))
        });
        mixtures.find(|color| color.contrast(DARK) >= CONTRAST_MIN).unwrap_or(WHITE)
    }

    /// From 0 (black) to 1 (white), as WCAG defines it.
    fn luminance(self) -> f64 {
        let linear = self.0.map(|part| match f64::from(part) / 255.0 {
            low if low <= 0.040_45 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_color(text: &str) -> Color {
        Color::parse(text).expect(text)
    }

    #[test]
    fn contrasts_are_those_of_wcag() {
        assert!((parse_color("#000000").contrast(WHITE) - 21.0).abs() < 1e-9);
        // The lightest gray that passes on white, and its neighbor that does not.
        assert!(parse_color("#767676").contrast(WHITE) >= CONTRAST_MIN);
        assert!(parse_color("#777777").contrast(WHITE) < CONTRAST_MIN);
        for text in ["red", "#fff", "#12345g", "123456", "#+12345"] {
            assert_eq!(Color::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_dark_page_gets_a_lighter_color_only_where_it_needs_one() {
        for text in ["#000000", "#0068a8", "#7a0000"] {
            let original = parse_color(text);
            assert!(original.on_dark().contrast(DARK) >= CONTRAST_MIN, "{text}");
            assert_ne!(original.on_dark(), original, "{text}");
        }
        assert_eq!(parse_color("#ff8800").on_dark().hex(), "#ff8800");
    }
}
