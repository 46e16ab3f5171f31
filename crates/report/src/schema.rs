//! The JSON Schema of `paper.json`.

use crate::error::ReportError;
use crate::evidence::Paper;
use schemars::generate::SchemaSettings;

/// The JSON Schema (2020-12) of what [`Paper::json`] writes: every field with its unit and meaning.
///
/// # Errors
/// When it can't be written as JSON.
pub fn schema() -> Result<String, ReportError> {
    // What is written, not what could be read: fields with a default are always there.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Paper>();
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| ReportError::new(format!("The schema can't be written: {error}.")))?;
    Ok(text + "\n")
}
