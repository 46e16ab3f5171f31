//! A paper in its forms.

use crate::evidence::Paper;
use crate::svg::escape;
use crate::write;
use dyno_core::is_command;
use dyno_facts::{Color, Lang, say};
use std::fmt::Write;

/// The shell of the page, its style and script, and the theme of the PDF.
const PAGE: &str = include_str!("../templates/paper.html");
const STYLE: &str = include_str!("../templates/style.css");
const CHART: &str = include_str!("../templates/chart.css");
const SCRIPT: &str = include_str!("../templates/script.js");
const THEME: &str = include_str!("../templates/paper.typ");

impl Paper {
    /// A single file that works offline: charts are inline SVG, readable without JavaScript.
    pub fn html(&self, lang: Lang) -> String {
        let style = format!("{STYLE}{CHART}{}", self.own_styles());
        let values = [
            ("title", &*escape(&self.title.render(lang))),
            ("lang", if lang == Lang::Zh { "zh-CN" } else { lang.code() }),
            ("skip", &escape(&say!(skip_to_the_summary).render(lang))),
            ("style", &style),
            ("script", SCRIPT),
            ("body", &write::html(&self.blocks(lang), lang, false)),
        ];
        fill_template(PAGE, &values)
    }

    /// The source of a PDF: needs the fonts `Noto Sans SC` and `Noto Sans Mono`, and no other file.
    pub fn typst(&self, lang: Lang) -> String {
        let charts = self.chart_style().replace("svg ", "").replace("svg.", ".");
        let charts = charts.replace("var(--sans)", "'Noto Sans SC'");
        let mut colors = String::new();
        let target_colors =
            self.own_colors().map(|(place, color)| (format!("p{place}"), color.hex()));
        let page_colors = page_colors().map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in page_colors.chain(target_colors) {
            let _ = write!(colors, "{}: rgb({}), ", quote(&name), quote(&value));
        }
        // The publisher, for catalogs; the program if no publisher is given.
        let organization = self.texts.organization.message().render(lang);
        let authors = self.texts.authors.iter().chain([&organization]);
        let authors: Vec<&str> =
            authors.map(String::as_str).filter(|name| !name.is_empty()).collect();
        let author = if authors.is_empty() { "dyno".to_owned() } else { authors.join(", ") };
        let logo = write::decode_logo(&self.texts.logo).map(|(kind, bytes)| {
            let bytes: String = bytes.iter().map(|byte| format!("{byte}, ")).collect();
            format!("logo({}, bytes(({bytes})))", quote(kind))
        });
        let logo = logo.unwrap_or_else(|| "none".to_owned());
        let values = [
            ("title", &*quote(&self.title.render(lang))),
            ("author", &quote(&author)),
            ("lang", lang.code()),
            ("region", if lang == Lang::Zh { "\"cn\"" } else { "none" }),
            ("style", &quote(&charts)),
            ("colors", &colors),
            ("logo", &logo),
            ("body", &quote(&write::html(&self.blocks(lang), lang, true))),
        ];
        fill_template(THEME, &values)
    }

    /// Text with tables.
    pub fn markdown(&self, lang: Lang) -> String {
        write::markdown(&self.blocks(lang), lang, &|_| None)
    }

    /// Text with tables, and with the files of [`Paper::charts`] in a folder alongside it as images.
    pub fn markdown_with_images(&self, lang: Lang, folder: &str) -> String {
        let blocks = self.blocks(lang);
        let drawings = write::named_drawings(&blocks);
        write::markdown(&blocks, lang, &|drawing| {
            let entry = drawings.iter().find(|(known, _)| std::ptr::eq(*known, drawing));
            entry.map(|(_, name)| format!("{folder}/{name}.svg"))
        })
    }

    /// The charts of the paper in their order as SVG files with the page's style: their names without extension
    /// (number in the paper and their section), and their texts.
    pub fn charts(&self, lang: Lang) -> Vec<(String, String)> {
        let sans = variables(STYLE).find(|(name, _)| *name == "sans");
        let sans = sans.map_or("sans-serif", |(_, value)| value).replace('"', "'");
        let style = self.chart_style().replace("var(--sans)", &sans);
        let blocks = self.blocks(lang);
        let drawings = write::named_drawings(&blocks).into_iter();
        drawings.map(|(drawing, name)| (name, write::standalone(drawing, &style))).collect()
    }

    /// Places of targets whose color the publisher has chosen, with it.
    pub(crate) fn own_colors(&self) -> impl Iterator<Item = (usize, Color)> {
        self.targets.iter().enumerate().filter_map(|(place, target)| {
            let texts = self.texts.targets.get(&target.facts.name)?;
            Some((place, Color::parse(&texts.color)?))
        })
    }

    /// Rules of a page for these colors, on white and on dark paper.
    fn own_styles(&self) -> String {
        let mut css = String::new();
        for (place, color) in self.own_colors() {
            let (light, dark) = (color.hex(), color.on_dark().hex());
            let _ = writeln!(
                css,
                ":root {{ --p{place}: {light}; }} @media (prefers-color-scheme: dark) {{ :root {{ --p{place}: {dark}; }} }} \
                 @media print {{ :root {{ --p{place}: {light}; }} }} \
                 .p{place} {{ --c: var(--p{place}); }} svg .p{place} {{ color: var(--p{place}); }}"
            );
        }
        css
    }

    /// The style sheet of charts on white paper, without variables but for the font.
    fn chart_style(&self) -> String {
        let mut css = CHART.to_owned();
        for (name, value) in page_colors() {
            css = css.replace(&format!("var(--{name})"), value);
        }
        for (place, color) in self.own_colors() {
            let _ = writeln!(css, "svg .p{place} {{ color: {}; }}", color.hex());
        }
        css
    }
}

/// The variables of a style sheet's first rule: those of white paper.
fn variables(css: &str) -> impl Iterator<Item = (&str, &str)> {
    let rule = css.split('}').next().unwrap_or_default();
    let declarations = rule.split(['{', ';']).filter_map(|part| part.trim().strip_prefix("--"));
    declarations
        .filter_map(|part| part.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
}

fn page_colors() -> impl Iterator<Item = (&'static str, &'static str)> {
    variables(STYLE).filter(|(_, value)| value.starts_with('#'))
}

/// A text as a string of the language of the PDF's theme.
fn quote(text: &str) -> String {
    let text = text.replace(|c: char| is_command(c) && c != '\n', " ");
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A template with its places `{{ name }}` filled.
fn fill_template(template: &str, values: &[(&str, &str)]) -> String {
    let mut parts = template.split("{{ ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (name, rest) in parts.filter_map(|part| part.split_once(" }}")) {
        out += values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        out += rest;
    }
    out
}
