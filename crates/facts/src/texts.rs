//! What a suite and a publisher say to readers, in both languages.

use crate::Message;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A text in both languages; where one is missing the other stands in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct BothTexts {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub en: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zh: String,
}

impl BothTexts {
    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.zh.is_empty()
    }

    /// As a message; of two empty texts an empty one.
    pub fn message(&self) -> Message {
        Message::either(&self.en, &self.zh)
    }
}

/// What the publisher of a paper says: `[paper]` of a suite, or the file of `dyno paper --paper`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PaperTexts {
    pub title: BothTexts,
    pub subtitle: BothTexts,
    pub authors: Vec<String>,
    pub organisation: BothTexts,
    /// As it is printed.
    pub date: String,
    /// Of the organisation, as a `data:` URL of a PNG or an SVG; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
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

/// What the publisher says of a target; what is missing is as the suite has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct TargetTexts {
    /// The name that tables and charts show.
    pub name: BothTexts,
    pub class: Option<String>,
    pub vcpu: Option<f64>,
    pub memory_gib: Option<f64>,
    /// In charts: `#rrggbb`, legible on white; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub colour: String,
}
