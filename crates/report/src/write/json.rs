//! `paper.json`: what was found, and the sections as blocks.

use crate::ReportError;
use crate::blocks::Block;
use crate::evidence::{Check, Paper};
use crate::evidence::{GateRow, PairedComparison};
use crate::templates::Templates;
use crate::text::{Lang, Message};
use dyno_facts::{RunHeader, SCHEMA_VERSION};
use schemars::generate::SchemaSettings;
use serde::Serialize;

/// A paper as JSON. Numbers are as they were measured; the summary of every trial is in the run's folder.
#[derive(Serialize, schemars::JsonSchema)]
struct Document<'a> {
    schema_version: u32,
    title: &'a Message,
    runs: Vec<Header<'a>>,
    /// Every check that was made; those without findings have nothing to remark.
    checks: &'a [Check],
    /// Targets held against each other, pair by pair of trials.
    verdicts: &'a [PairedComparison],
    gates: &'a [GateRow],
    /// The sections from the cover to the glossary.
    blocks: Vec<Block>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Header<'a> {
    folder: &'a str,
    /// `run.json`.
    header: &'a RunHeader,
}

impl Paper {
    /// What was found, and the sections in English with the keys of their texts.
    ///
    /// # Errors
    /// When a number can't be stored.
    pub fn json(&self) -> Result<String, ReportError> {
        let document = Document {
            schema_version: SCHEMA_VERSION,
            title: &self.title,
            runs: self
                .runs
                .iter()
                .map(|run| Header { folder: &run.folder, header: &run.header })
                .collect(),
            checks: &self.checks,
            verdicts: &self.verdicts.comparisons,
            gates: &self.verdicts.gates,
            blocks: self.blocks(&Templates::default(), Lang::En),
        };
        pretty(&document)
    }
}

/// The JSON Schema (2020-12) of what [`Paper::json`] writes: every field with its unit and meaning.
///
/// # Errors
/// When it can't be written as JSON.
pub fn schema() -> Result<String, ReportError> {
    // What is written, not what could be read: fields with a default are always there.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    pretty(&settings.into_generator().into_root_schema_for::<Document<'_>>())
}

fn pretty(value: &impl Serialize) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        ReportError::new(format!("The paper can't be written as JSON: {error}."))
    })?;
    Ok(text + "\n")
}
