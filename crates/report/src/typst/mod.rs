//! The paper as a document for typst, which makes a PDF of it: the page of the paper, element by
//! element, so that both have the same sections, tables, charts and words.
//!
//! `templates/paper.typ` says how everything looks; it gets the content as calls of the functions that
//! it defines.
//!
//! So whoever changes a template of the page need not think of the PDF; what is for screens only has the
//! class `no-print`.

mod html;
mod style;
mod table;
mod write;

use crate::model::Paper;
use crate::render::{ReportError, Templates, environment};
use crate::text::Lang;
use minijinja::context;
use minijinja::value::Serde;
use std::fmt::Write;
use style::Style;

impl Paper {
    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn typst(&self, lang: Lang) -> Result<String, ReportError> {
        self.typst_with(&Templates::default(), lang)
    }

    /// The same with other templates: those of the page say what is in it, `paper.typ` how it looks.
    ///
    /// # Errors
    /// When a template does not fit the model; the message names template and line.
    pub fn typst_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        let page = self.html_with(templates, lang)?;
        let style = Style::of(templates.text("style.css"));
        let mut colours = String::new();
        for (name, value) in style.colours() {
            let _ = write!(colours, "{}: rgb({}), ", write::quoted(name), write::quoted(value));
        }
        let context = context! {
            paper => Serde(self),
            lang => lang.code(),
            title => write::quoted(self.title.render(lang).as_str()),
            style => write::quoted(&style.of_drawings()),
            colours,
            body => write::written(&html::parse(&page)),
        };
        Ok(environment(lang, templates)?.get_template("paper.typ")?.render(context)?)
    }
}
