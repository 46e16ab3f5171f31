//! What a drawing shows, and the numbers behind it.

use std::ops::Deref;

/// A drawing with its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Svg {
    /// The `<svg>` element.
    pub markup: String,
    pub data: Vec<Datum>,
}

/// A number of a drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datum {
    /// What the number measures, with its unit.
    pub measure: String,
    /// What stands on the other axis; may be empty.
    pub against: String,
    /// Where it stands there.
    pub at: String,
    pub series: String,
    pub value: Option<f64>,
    /// Ends of its spread or interval.
    pub low_high: Option<(f64, f64)>,
}

impl Svg {
    /// A drawing that shows no numbers.
    pub fn plain(markup: String) -> Svg {
        Svg { markup, data: Vec::new() }
    }

    /// Width and height of its view box.
    pub(crate) fn size(&self) -> (f64, f64) {
        let inside = self.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
        let sizes = inside.and_then(|(both, _)| both.split_once(' '));
        let parsed = sizes.and_then(|(wide, high)| Some((wide.parse().ok()?, high.parse().ok()?)));
        parsed.unwrap_or((960.0, 360.0))
    }
}

impl Deref for Svg {
    type Target = str;

    fn deref(&self) -> &str {
        &self.markup
    }
}
