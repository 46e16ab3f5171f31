//! The model as HTML, Markdown and JSON.

mod environment;
mod escape;
mod templates;

pub use templates::Templates;

use crate::charts::{self, Figure};
use crate::model::Paper;
use crate::text::Lang;
use crate::{tpcc, tpch, verdict};
use dyno_store::write_atomically;
pub(crate) use environment::environment;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// A paper that can't be rendered or stored.
#[derive(Debug)]
pub struct ReportError {
    message: String,
    hint: Option<String>,
}

impl ReportError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ReportError { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

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
        // The innermost error is where the mistake stands.
        let mut inner = &error;
        let mut source = std::error::Error::source(&error);
        while let Some(own) = source {
            inner = own.downcast_ref().unwrap_or(inner);
            source = own.source();
        }
        let place = match (inner.name(), inner.line()) {
            (Some(name), Some(line)) => format!(" (template {name}, line {line})"),
            _ => String::new(),
        };
        let what = match inner.detail() {
            Some(detail) => format!("{}: {detail}", inner.kind()),
            None => inner.kind().to_string(),
        };
        ReportError::new(format!("The paper can't be rendered{place}: {what}."))
    }
}

/// The charts of an experiment or of all trials.
#[derive(Default, Serialize)]
struct Drawings {
    topology: Option<Figure>,
    experiments: Vec<Vec<Figure>>,
    trials: Vec<Figure>,
    trials_not_drawn: usize,
    resources: Vec<Figure>,
    distributions: Vec<Figure>,
    /// Of TPC-C, by experiment.
    tpcc: Vec<tpcc::Drawings>,
    /// Of TPC-H, by experiment.
    tpch: Vec<tpch::Drawings>,
    /// Timelines, by row of the paper's faults.
    faults: Vec<Vec<Figure>>,
    /// Forest plots.
    verdict: Vec<Figure>,
}

impl Drawings {
    fn of(paper: &Paper, lang: Lang) -> Drawings {
        let experiments = || paper.experiments.iter();
        let (trials, trials_not_drawn) = charts::of_trials(paper, lang);
        Drawings {
            topology: charts::topology::figure(paper, lang),
            resources: charts::resources::figures(paper, lang),
            distributions: charts::distributions::figures(paper, lang),
            experiments: experiments().map(|e| charts::of_experiment(paper, e, lang)).collect(),
            trials,
            trials_not_drawn,
            tpcc: experiments().map(|e| tpcc::drawings(paper, e, lang)).collect(),
            tpch: experiments().map(|e| tpch::drawings(paper, e, lang)).collect(),
            faults: charts::fault::figures(paper, lang),
            verdict: verdict::drawings(paper, lang),
        }
    }
}

impl Paper {
    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        self.html_with(&Templates::default(), lang)
    }

    /// The same with other templates.
    ///
    /// # Errors
    /// When a template does not fit the model; the message names template and line.
    pub fn html_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        self.render("paper.html", templates, &Drawings::of(self, lang), lang)
    }

    /// The same as text with tables.
    ///
    /// # Errors
    /// When a template does not fit the model.
    pub fn markdown(&self, lang: Lang) -> Result<String, ReportError> {
        self.markdown_with(&Templates::default(), lang)
    }

    /// The same with other templates.
    ///
    /// # Errors
    /// When a template does not fit the model; the message names template and line.
    pub fn markdown_with(&self, templates: &Templates, lang: Lang) -> Result<String, ReportError> {
        self.render("paper.md", templates, &Drawings::default(), lang)
    }

    /// The whole model.
    ///
    /// # Errors
    /// When a number can't be stored.
    pub fn json(&self) -> Result<String, ReportError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            ReportError::new(format!("The paper can't be stored as JSON: {error}."))
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
        templates: &Templates,
        drawings: &Drawings,
        lang: Lang,
    ) -> Result<String, ReportError> {
        let environment = environment(lang, templates)?;
        let (style, script) = (templates.text("style.css"), templates.text("script.js"));
        let context = context! {
            paper => Serde(self), drawings => Serde(drawings), style, script, lang => lang.code()
        };
        Ok(environment.get_template(template)?.render(context)?)
    }
}
