//! The model as HTML, Markdown and JSON.

use crate::charts::{self, Figure};
use crate::format;
use crate::model::Paper;
use crate::svg::escape;
use crate::text::{Lang, Text, chinese, fill};
use crate::{tpcc, tpch};
use dyno_store::write_atomically;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value, context};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the escaping of Markdown.
const MARKDOWN: &str = "markdown";

/// A paper that can't be rendered or stored.
#[derive(Debug)]
pub struct ReportError {
    message: String,
    hint: Option<String>,
}

impl ReportError {
    /// What to do about it, without a leading `hint:`.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReportError {}

impl From<minijinja::Error> for ReportError {
    fn from(error: minijinja::Error) -> Self {
        ReportError { message: format!("The paper can't be rendered: {error:#}."), hint: None }
    }
}

/// The charts of an experiment or of all trials.
#[derive(Default, Serialize)]
struct Drawings {
    experiments: Vec<Vec<Figure>>,
    trials: Vec<Figure>,
    /// Of TPC-C, by experiment.
    tpcc: Vec<tpcc::Drawings>,
    /// Of TPC-H, by experiment.
    tpch: Vec<tpch::Drawings>,
}

impl Paper {
    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        let drawings = Drawings {
            experiments: self
                .experiments
                .iter()
                .map(|experiment| charts::of_experiment(self, experiment, lang))
                .collect(),
            trials: self
                .trials
                .iter()
                .filter_map(|trial| charts::of_trial(self, trial, lang))
                .collect(),
            tpcc: self
                .experiments
                .iter()
                .map(|experiment| tpcc::drawings(self, experiment, lang))
                .collect(),
            tpch: self
                .experiments
                .iter()
                .map(|experiment| tpch::drawings(self, experiment, lang))
                .collect(),
        };
        self.render("paper.html", &drawings, lang)
    }

    /// The same as text with tables.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn markdown(&self, lang: Lang) -> Result<String, ReportError> {
        self.render("paper.md", &Drawings::default(), lang)
    }

    /// The whole model.
    ///
    /// # Errors
    /// When a number can't be stored.
    pub fn json(&self) -> Result<String, ReportError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| ReportError {
            message: format!("The paper can't be stored as JSON: {error}."),
            hint: None,
        })?;
        Ok(text + "\n")
    }

    /// Writes `paper.html`, `paper.md`, `paper.csv` and `paper.json` into `dir`; returns their
    /// paths in this order.
    ///
    /// # Errors
    /// When one can't be rendered or written.
    pub fn write_all(&self, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let texts = [
            ("html", self.html(Lang::En)?),
            ("md", self.markdown(Lang::En)?),
            ("csv", self.csv()),
            ("json", self.json()?),
        ];
        let write = |(extension, text): &(&str, String)| {
            let path = dir.join(format!("paper.{extension}"));
            write_atomically(&path, text.as_bytes()).map_err(|error| ReportError {
                message: error.to_string(),
                hint: error.hint().map(str::to_owned),
            })?;
            Ok(path)
        };
        texts.iter().map(write).collect()
    }

    fn render(
        &self,
        template: &str,
        drawings: &Drawings,
        lang: Lang,
    ) -> Result<String, ReportError> {
        let environment = environment(lang)?;
        let style = include_str!("../templates/style.css");
        let script = include_str!("../templates/script.js");
        let context = context! {
            paper => Serde(self), drawings => Serde(drawings), style, script, lang => lang.code()
        };
        Ok(environment.get_template(template)?.render(context)?)
    }
}

pub(crate) fn environment(lang: Lang) -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|name| match name.rsplit('.').next() {
        Some("html") => AutoEscape::Html,
        Some("md") => AutoEscape::Custom(MARKDOWN.into()),
        _ => AutoEscape::None,
    });
    environment.set_formatter(move |out, state, value| write_value(out, state, value, lang));
    environment.add_filter("t", move |state: &State<'_, '_>, value: Value, values: Kwargs| {
        told(state, &value, &values, lang)
    });
    environment.add_filter("short", |value: Value| number(&value, format::short));
    environment.add_filter("whole", |value: Value| number(&value, format::whole));
    environment.add_filter("ms", |value: Value| number(&value, format::ms));
    environment.add_filter("bytes", |value: Value| number(&value, format::bytes));
    environment
        .add_filter("fixed2", |value: Value| number(&value, |number| format!("{number:.2}")));
    environment
        .add_filter("fixed3", |value: Value| number(&value, |number| format!("{number:.3}")));
    environment.add_filter("plain", |value: Value| number(&value, format::plain));
    environment
        .add_filter("path", |value: Value| Value::from_safe_string(path(&value.to_string())));
    environment
        .add_filter("coded", |value: Value| Value::from_safe_string(coded(&value.to_string())));
    environment.add_filter("percent", |value: Value| number(&value, format::percent));
    environment.add_template("tpcc.html", include_str!("../templates/tpcc.html"))?;
    environment.add_template("tpcc.md", include_str!("../templates/tpcc.md"))?;
    environment.add_template("tpch.html", include_str!("../templates/tpch.html"))?;
    environment.add_template("paper.html", include_str!("../templates/paper.html"))?;
    environment.add_template("tpch.md", include_str!("../templates/tpch.md"))?;
    environment.add_template("paper.typ", include_str!("../templates/paper.typ"))?;
    environment.add_template("paper.md", include_str!("../templates/paper.md"))?;
    Ok(environment)
}

fn number(value: &Value, text: fn(f64) -> String) -> String {
    f64::try_from(value.clone()).map_or_else(|_| format::DASH.to_owned(), text)
}

/// A path as a relative link: nothing in it is read as a scheme, a query or markup.
fn path(text: &str) -> String {
    let mut link = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            other => link.push_str(&format!("%{other:02X}")),
        }
    }
    link
}

/// A sentence for HTML: what stands between backticks is code.
fn coded(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    let is_paired = parts.len() % 2 == 1;
    if !is_paired {
        return escape(text);
    }
    let tags = |(place, part): (usize, String)| match place % 2 {
        0 => part,
        _ => format!("<code>{part}</code>"),
    };
    parts.into_iter().enumerate().map(tags).collect()
}

/// Names, messages and URLs come from outside: in Markdown they must not make tables, links or
/// HTML, just as in HTML they must not make elements.
fn write_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
    lang: Lang,
) -> Result<(), minijinja::Error> {
    let own = in_lang(value, lang);
    let value = own.as_ref().unwrap_or(value);
    let is_markdown = *state.auto_escape() == AutoEscape::Custom(MARKDOWN.into());
    if !is_markdown || value.is_safe() {
        return minijinja::escape_formatter(out, state, value);
    }
    out.write_str(&markdown_text(&value.to_string()))?;
    Ok(())
}

/// What a [`Text`](crate::Text) says in this language; `None` of any other value.
fn in_lang(value: &Value, lang: Lang) -> Option<Value> {
    if value.kind() != ValueKind::Map || value.len() != Some(Lang::ALL.len()) {
        return None;
    }
    let is_text = |lang: &Lang| value.get_attr(lang.code()).is_ok_and(|v| v.as_str().is_some());
    Lang::ALL.iter().all(is_text).then(|| value.get_attr(lang.code()).ok())?
}

/// The filter `t`: a text in the paper's language, or the dictionary's word for a pattern that stands
/// in a template, its places filled: `{{ "{n} trials"|t(n=3) }}`. Where a value is markup, the rest is
/// escaped here.
fn told(
    state: &State<'_, '_>,
    value: &Value,
    values: &Kwargs,
    lang: Lang,
) -> Result<Value, minijinja::Error> {
    if let Some(own) = in_lang(value, lang) {
        return Ok(own);
    }
    let pattern = value.to_string();
    let pattern = match lang {
        Lang::En => pattern.as_str(),
        Lang::Zh => chinese(&pattern).unwrap_or(&pattern),
    };
    let mut filled = Vec::new();
    let mut has_markup = false;
    for name in values.args() {
        let value: Value = values.get(name)?;
        let value = in_lang(&value, lang).unwrap_or(value);
        has_markup |= value.is_safe();
        filled.push((name, value));
    }
    let escaped = |text: &str| match *state.auto_escape() {
        AutoEscape::Html => escape(text),
        AutoEscape::Custom(_) => markdown_text(text),
        _ => text.to_owned(),
    };
    let part = |value: &Value| match value.is_safe() || !has_markup {
        true => Text::same(value.to_string()),
        false => Text::same(escaped(&value.to_string())),
    };
    let places: Vec<(&str, Text)> =
        filled.iter().map(|(name, value)| (*name, part(value))).collect();
    Ok(match has_markup {
        true => Value::from_safe_string(fill(&escaped(pattern), &places, lang)),
        false => Value::from(fill(pattern, &places, lang)),
    })
}

fn markdown_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_sentences_is_marked_and_nothing_else_becomes_markup() {
        assert_eq!(coded("`a < b` or `c`"), "<code>a &lt; b</code> or <code>c</code>");
        assert_eq!(coded("a ` alone <b>"), "a ` alone &lt;b&gt;");
    }

    #[test]
    fn a_path_is_no_url() {
        assert_eq!(path("../a b/javascript:x?y#(z)"), "../a%20b/javascript%3Ax%3Fy%23%28z%29");
    }
}
