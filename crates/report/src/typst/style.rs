//! The page's style sheet for drawings that stand alone: colours resolved to those of paper.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What the page says with variables, and what the compiler of the document understands.
const FONT: &str = "Noto Sans SC";

/// The style sheet, read.
pub(super) struct Style {
    /// `--ink` is `ink` here.
    variables: Vec<(String, String)>,
    /// Classes that set the colour of what is drawn in them, and that colour.
    classes: Vec<(String, String)>,
    /// Selector and declarations.
    rules: Vec<(String, String)>,
}

impl Style {
    pub(super) fn of(css: &str) -> Style {
        let rules = top_rules(css);
        let mut style = Style { variables: Vec::new(), classes: Vec::new(), rules: Vec::new() };
        for (selector, body) in &rules {
            if selector == ":root" {
                style.variables.extend(declarations(body).filter_map(|(name, value)| {
                    Some((name.strip_prefix("--")?.to_owned(), value.to_owned()))
                }));
            }
        }
        for (selector, body) in &rules {
            let colour = declarations(body).find(|(name, _)| *name == "--c");
            let class = selector.rsplit(' ').next().and_then(|last| last.strip_prefix('.'));
            if let (Some((_, colour)), Some(class)) = (colour, class) {
                let colour = style.resolved(colour);
                style.classes.push((class.to_owned(), colour));
            }
        }
        style.rules =
            rules.into_iter().filter(|(selector, _)| selector.starts_with("svg")).collect();
        style
    }

    /// The names of colours with their values: all variables that are one, and the classes.
    pub(super) fn colours(&self) -> BTreeMap<&str, &str> {
        let all = self.variables.iter().chain(&self.classes);
        let all = all.map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(_, value)| value.starts_with('#')).collect()
    }

    /// The rules of drawings.
    pub(super) fn of_drawings(&self) -> String {
        let mut out = format!("text{{font-family:'{FONT}'}}");
        for (selector, body) in &self.rules {
            let kept = declarations(body).filter(|(name, _)| is_known(name));
            let (own, common): (Vec<_>, Vec<_>) =
                kept.partition(|(_, value)| value.contains("var(--c)"));
            let selector = selector.strip_prefix("svg ").unwrap_or(selector);
            if !common.is_empty() {
                let _ = write!(out, "{selector}{{{}}}", self.written(&common, ""));
            }
            if own.is_empty() {
                continue;
            }
            for (class, colour) in &self.classes {
                let _ = write!(
                    out,
                    ".{class} {selector},{selector}.{class}{{{}}}",
                    self.written(&own, colour)
                );
            }
        }
        out
    }

    fn written(&self, declarations: &[(&str, &str)], colour: &str) -> String {
        let written: Vec<String> = declarations
            .iter()
            .map(|(name, value)| {
                let value = self.resolved(&value.replace("var(--c)", colour));
                format!("{name}:{value}")
            })
            .collect();
        written.join(";")
    }

    /// The value with its variables replaced.
    fn resolved(&self, value: &str) -> String {
        let mut value = value.to_owned();
        for (name, known) in &self.variables {
            value = value.replace(&format!("var(--{name})"), known);
        }
        value
    }
}

/// What drawings need of a rule.
fn is_known(name: &str) -> bool {
    const KNOWN: [&str; 5] = ["fill", "opacity", "stroke", "font-size", "font-weight"];
    KNOWN.contains(&name)
        || name.starts_with("stroke-")
        || matches!(name, "display" | "paint-order" | "text-anchor" | "fill-opacity")
}

/// Selector by selector, without what stands in `@media` and the like.
fn top_rules(css: &str) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    let mut rest = css;
    while let Some(at) = rest.find('{') {
        let selectors = rest[..at].trim();
        // `@page` and its kind may stand before it, ended by a semicolon.
        let selectors = selectors.rsplit([';', '}']).next().unwrap_or("").trim();
        let Some(length) = block(&rest[at..]) else {
            break;
        };
        let body = &rest[at + 1..at + length - 1];
        if !selectors.starts_with('@') {
            let all = selectors.split(',').map(|selector| selector.trim().to_owned());
            rules.extend(all.map(|selector| (selector, body.to_owned())));
        }
        rest = &rest[at + length..];
    }
    rules
}

/// Length of the block that the text begins with, braces included; `None` when it doesn't end.
fn block(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn declarations(body: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = body.split(';').filter_map(|part| part.split_once(':'));
    parts.map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_paper_and_classes_have_theirs() {
        let style = Style::of(
            ":root { --ink: #111; --s0: #00f; } @media (x) { :root { --ink: #fff; } svg .a { fill: #000; } }
             .s0 { --c: var(--s0); } svg .line, svg path { fill: none; stroke: var(--c); cursor: help; } svg .axis { stroke: var(--ink); } p { color: #123; }",
        );
        assert_eq!(
            style.of_drawings(),
            "text{font-family:'Noto Sans SC'}.line{fill:none}.s0 .line,.line.s0{stroke:#00f}\
             path{fill:none}.s0 path,path.s0{stroke:#00f}.axis{stroke:#111}"
        );
        assert_eq!(style.colours(), BTreeMap::from([("ink", "#111"), ("s0", "#00f")]));
    }

    #[test]
    fn a_broken_style_sheet_is_no_reason_to_fail() {
        for css in ["{", "a {", "}", "@media {", "svg {"] {
            let _ = Style::of(css).of_drawings();
        }
    }
}
