//! The paper as a document for typst, which makes a PDF of it: the page of the paper, element by
//! element, so that both have the same sections, tables, charts and words.
//!
//! `templates/paper.typ` says how everything looks; it gets the content as calls of the functions that
//! it defines.

mod html;
mod style;
mod table;
mod write;

use crate::model::Paper;
use crate::render::{self, ReportError};
use crate::text::Lang;
use minijinja::context;
use minijinja::value::Serde;
use style::Style;
use std::fmt::Write;

impl Paper {
    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn typst(&self, lang: Lang) -> Result<String, ReportError> {
        let page = self.html(lang)?;
        let style = Style::of(include_str!("../../templates/style.css"));
        let mut colours = String::new();
        for (name, value) in style.colours() {
            let _ = write!(colours, "{}: rgb({}), ", write::quoted(name), write::quoted(value));
        }
        let context = context! {
            paper => Serde(self),
            lang => lang.code(),
            title => write::quoted(&self.title),
            style => write::quoted(&style.of_drawings()),
            colours,
            body => write::written(&html::parse(&page)),
        };
        Ok(render::environment(lang)?.get_template("paper.typ")?.render(context)?)
    }
}
