//! The templates of papers, which a user may replace one by one.

use super::ReportError;
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! own {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../templates/", $name)))),*]
    };
}

const OWN: &[(&str, &str)] = &own![
    "paper.html",
    "cover.html",
    "summary.html",
    "purpose.html",
    "environment.html",
    "fairness.html",
    "method.html",
    "results.html",
    "experiment.html",
    "tpcc.html",
    "tpch.html",
    "verdict.html",
    "steady.html",
    "nodes.html",
    "fleet.html",
    "disturbances.html",
    "resources.html",
    "published.html",
    "beside.html",
    "cost.html",
    "fault.html",
    "limits.html",
    "reproduce.html",
    "appendix.html",
    "trials.html",
    "style.css",
    "script.js",
    "paper.typ",
    "paper.md",
    "tpcc.md",
    "tpch.md",
    "nodes.md",
    "fleet.md",
    "verdict.md",
    "steady.md",
    "beside.md",
    "cost.md",
    "fault.md",
];

/// The templates that a paper is rendered with: dyno's own, some of them replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    replaced: BTreeMap<String, String>,
}

impl Templates {
    /// Replaces dyno's templates by the files of the same names in a folder.
    ///
    /// # Errors
    /// When the folder or a file can't be read, and when a file has no name of a template: it would
    /// change nothing.
    pub fn of_folder(folder: &Path) -> Result<Templates, ReportError> {
        let failed = |path: &Path, error: std::io::Error| {
            ReportError::new(format!("{} can't be read: {error}.", path.display()))
        };
        let mut replaced = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || path.is_dir() {
                continue;
            }
            if !Templates::names().any(|own| own == name) {
                let error = ReportError::new(format!("{} replaces no template.", path.display()));
                return Err(error.with_hint(&format!(
                    "Templates are {}.",
                    Templates::names().collect::<Vec<_>>().join(", ")
                )));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            replaced.insert(name, text);
        }
        Ok(Templates { replaced })
    }

    /// The names of all templates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OWN.iter().map(|(name, _)| *name)
    }

    /// dyno's own template of this name, to begin one's own with.
    pub fn own(name: &str) -> Option<&'static str> {
        OWN.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    /// Names and texts of all.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        OWN.iter().map(|(name, own)| (*name, self.replaced.get(*name).map_or(*own, String::as_str)))
    }

    /// The text of one.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.all().find(|(own, _)| *own == name).map_or("", |(_, text)| text)
    }
}
