//! What users may replace of a paper: the shell of the page, its style and script, the theme of the PDF,
//! and slots for text of their own.

use crate::ReportError;
use crate::blocks::{Block, of_markdown};
use crate::sections;
use crate::text::Lang;
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! own {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../templates/", $name)))),*]
    };
}

const OWN: &[(&str, &str)] =
    &own!["paper.html", "style.css", "chart.css", "script.js", "paper.typ"];

/// Folder of the slots.
const SLOTS: &str = "slots";

/// The templates that a paper is written with: dyno's own, some of them replaced, and the user's slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    replaced: BTreeMap<String, String>,
    slots: BTreeMap<String, String>,
}

impl Templates {
    /// dyno's own, replaced by the files of the same names in this folder. A file of its folder `slots`,
    /// such as `after-summary.md` or `after-summary.zh.md`, is the user's own text there.
    ///
    /// # Errors
    /// When the folder can't be read, or when a file in it is neither.
    pub fn of_folder(folder: &Path) -> Result<Templates, ReportError> {
        let mut templates = Templates::default();
        for (name, text) in files(folder)? {
            if Templates::own(&name).is_none() {
                let error = ReportError::new(format!(
                    "{} is not named like a template, so it replaces none.",
                    folder.join(&name).display()
                ));
                let known: Vec<&str> = Templates::names().collect();
                return Err(error.with_hint(format!(
                    "Templates are {}; text of your own goes to {SLOTS}/.",
                    known.join(", ")
                )));
            }
            templates.replaced.insert(name, text);
        }
        let slots = folder.join(SLOTS);
        for (name, text) in if slots.is_dir() { files(&slots)? } else { Vec::new() } {
            let known = name.strip_suffix(".md").map(|name| {
                let langs =
                    Lang::ALL.iter().find_map(|l| name.strip_suffix(&format!(".{}", l.code())));
                langs.unwrap_or(name)
            });
            if !sections::slots().any(|slot| Some(slot.as_str()) == known) {
                let error = ReportError::new(format!(
                    "{} is named like no slot.",
                    slots.join(&name).display()
                ));
                let all: Vec<String> = sections::slots().map(|slot| slot + ".md").collect();
                return Err(error.with_hint(format!(
                    "Slots are {}; their names end with .zh.md where the text is for Chinese papers alone.",
                    all.join(", ")
                )));
            }
            templates.slots.insert(name, text);
        }
        Ok(templates)
    }

    /// The names of all templates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OWN.iter().map(|(name, _)| *name)
    }

    /// dyno's own template of this name, to begin one's own with.
    pub fn own(name: &str) -> Option<&'static str> {
        OWN.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    /// The text of one.
    pub(crate) fn text(&self, name: &str) -> &str {
        let own = || Templates::own(name).unwrap_or_default();
        self.replaced.get(name).map_or_else(own, String::as_str)
    }

    /// The user's own text for a place.
    pub(crate) fn slot(&self, name: &str, lang: Lang) -> Vec<Block> {
        let of_lang = self.slots.get(&format!("{name}.{}.md", lang.code()));
        let text = of_lang.or_else(|| self.slots.get(&format!("{name}.md")));
        text.map_or_else(Vec::new, |text| of_markdown(text))
    }

    /// A template with its places `{{ name }}` filled.
    ///
    /// # Errors
    /// When a place has a name that is not known; the message names template and line.
    pub(crate) fn filled(
        &self,
        name: &str,
        values: &[(&str, &str)],
    ) -> Result<String, ReportError> {
        let text = self.text(name);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("{{ ") {
            let inside = &rest[at + 3..];
            let end = inside.find(" }}").unwrap_or(inside.len());
            let wanted = &inside[..end];
            let Some((_, value)) = values.iter().find(|(known, _)| *known == wanted) else {
                let line = text[..text.len() - inside.len()].lines().count().max(1);
                let known: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
                let error = ReportError::new(format!(
                    "The template {name}, line {line}, has the place `{wanted}`, which dyno can't fill."
                ));
                return Err(error.with_hint(format!("Its places are {}.", known.join(", "))));
            };
            out += &rest[..at];
            out += value;
            rest = inside.get(end + 3..).unwrap_or_default();
        }
        Ok(out + rest)
    }
}

/// Names and texts of the files in a folder, hidden ones left out.
fn files(folder: &Path) -> Result<Vec<(String, String)>, ReportError> {
    let failed = |path: &Path, error: std::io::Error| {
        let message = format!("{}, of `--template`, can't be read: {error}.", path.display());
        ReportError::new(message).with_hint(
            "Name a folder of text files; `dyno paper --templates FOLDER` writes dyno's own into a new one.",
        )
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        files.push((name, text));
    }
    files.sort();
    Ok(files)
}
