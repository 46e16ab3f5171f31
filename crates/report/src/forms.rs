//! A paper in its forms.

use crate::ReportError;
use crate::blocks::Block;
use crate::evidence::Paper;
use crate::svg::escape;
use crate::templates::Templates;
use crate::text::Lang;
use crate::{sections, write};
use dyno_store::write_atomically;
use std::fmt::Write;
use std::path::{Path, PathBuf};

impl Paper {
    /// What it says and shows, with the user's own text in its slots.
    pub fn blocks(&self, templates: &Templates, lang: Lang) -> Vec<Block> {
        sections::of_paper(self, lang, |name| templates.slot(name, lang))
    }

    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn html_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        let style = format!("{}{}", templates.text("style.css"), templates.text("chart.css"));
        templates.filled(
            "paper.html",
            &[
                ("title", &escape(&self.title.render(lang))),
                ("lang", if lang == Lang::Zh { "zh-CN" } else { lang.code() }),
                ("skip", &escape(&dyno_facts::say!(skip_to_the_summary).render(lang))),
                ("style", &style),
                ("script", templates.text("script.js")),
                ("body", &write::html(&self.blocks(templates, lang), lang)),
            ],
        )
    }

    /// The same with dyno's own templates.
    ///
    /// # Errors
    /// Never, but for a mistake in these.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        self.html_with(&Templates::default(), lang)
    }

    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    ///
    /// # Errors
    /// When a template has a place that is not known; the message names template and line.
    pub fn typst_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        let colours = light_colours(templates.text("style.css"));
        let mut charts = templates.text("chart.css").replace("svg ", "").replace("svg.", ".");
        let mut known = String::new();
        for (name, value) in &colours {
            charts = charts.replace(&format!("var(--{name})"), value);
            let _ = write!(known, "{}: rgb({}), ", write::quoted(name), write::quoted(value));
        }
        let charts = charts.replace("var(--sans)", "'Noto Sans SC'");
        templates.filled(
            "paper.typ",
            &[
                ("title", &write::quoted(&self.title.render(lang))),
                ("lang", lang.code()),
                ("region", if lang == Lang::Zh { "\"cn\"" } else { "none" }),
                ("style", &write::quoted(&charts)),
                ("colours", &known),
                ("body", &write::typst(&self.blocks(templates, lang), lang)),
            ],
        )
    }

    /// The same with dyno's own templates.
    ///
    /// # Errors
    /// Never, but for a mistake in these.
    pub fn typst(&self, lang: Lang) -> Result<String, ReportError> {
        self.typst_with(&Templates::default(), lang)
    }

    /// The same as text with tables.
    pub fn markdown(&self, lang: Lang) -> String {
        self.markdown_with(&Templates::default(), lang)
    }

    /// The same with the user's own text in its slots.
    pub fn markdown_with(&self, templates: &Templates, lang: Lang) -> String {
        write::markdown(&self.blocks(templates, lang), lang)
    }

    /// Its tables of results, for a terminal.
    pub fn terminal(&self, lang: Lang) -> String {
        write::terminal(&sections::for_terminal(self, lang), lang)
    }

    /// Its results in short, for a terminal: what was checked in a line each, in full only what is wrong.
    pub fn brief(&self, lang: Lang) -> String {
        write::terminal(&sections::at_the_end(self), lang)
    }

    /// A line for each comparison; where nothing is compared, one for what each target has reached in each experiment.
    pub fn results_text(&self, lang: Lang) -> String {
        match self.verdicts.comparisons.is_empty() {
            true => {
                sections::results_reached(self).iter().map(|it| it.render(lang) + "\n").collect()
            }
            false => self.verdicts.text(lang),
        }
    }

    /// Its tables of comparisons and gates, for a terminal.
    pub fn verdict_tables(&self, lang: Lang) -> String {
        write::terminal(&sections::of_verdicts(self, lang), lang)
    }

    /// Writes `paper.html`, `paper.md`, `paper.csv` and `paper.json` into `dir`; returns their
    /// paths in this order.
    ///
    /// # Errors
    /// When one can't be rendered or written.
    pub fn write_all(&self, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let texts = [
            ("html", self.html(Lang::En)?),
            ("md", self.markdown(Lang::En)),
            ("csv", self.csv()),
            ("json", self.json()?),
        ];
        let write = |(extension, text): &(&str, String)| {
            let path = dir.join(format!("paper.{extension}"));
            write_atomically(&path, text.as_bytes()).map_err(|error| {
                let failed = ReportError::new(error.to_string());
                error
                    .hint()
                    .map_or(failed, |hint| ReportError::new(error.to_string()).with_hint(hint))
            })?;
            Ok(path)
        };
        texts.iter().map(write).collect()
    }
}

/// The variables of a style sheet's first rule that are colours: those of paper.
fn light_colours(css: &str) -> Vec<(&str, &str)> {
    let rule = css.split('}').next().unwrap_or_default();
    let both = rule.split(['{', ';']).filter_map(|part| part.trim().strip_prefix("--"));
    let both = both.filter_map(|part| part.split_once(':'));
    both.map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(_, value)| value.starts_with('#'))
        .collect()
}
