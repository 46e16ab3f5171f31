//! The template engine: its filters, and in which form values stand in which document.

use super::escape::{coded, markdown_code, markdown_text, path};
use super::templates::Templates;
use crate::format;
use crate::svg::escape;
use crate::text::{Lang, Message, chinese, fill, stored};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};

/// Name of the escaping of Markdown.
const MARKDOWN: &str = "markdown";

/// An engine that speaks one language.
///
/// # Errors
/// When a template can't be read.
pub(crate) fn environment(
    lang: Lang,
    templates: &Templates,
) -> Result<Environment<'static>, minijinja::Error> {
    dyno_facts::register(&[crate::CATALOGUE]);
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
    environment.add_filter("sentences", move |texts: Value| joined(&texts, lang, " ", ""));
    environment.add_filter("listed", move |texts: Value| joined(&texts, lang, ", ", "、"));
    environment.add_filter("lines", move |texts: Value| joined(&texts, lang, "; ", "；"));
    environment.add_filter("stored", move |sentence: &str| stored(sentence).render(lang));
    environment.add_filter("plan", |plan: Value| Ok::<_, minijinja::Error>(without_steps(&plan)));
    environment.add_filter("shell", |word: &str| crate::format::shell_word(word));
    environment.add_filter("short", |value: Value| number(&value, format::short));
    environment.add_filter("whole", |value: Value| number(&value, format::whole));
    environment.add_filter("ms", |value: Value| number(&value, format::ms));
    environment.add_filter("bytes", |value: Value| number(&value, format::bytes));
    environment
        .add_filter("fixed2", |value: Value| number(&value, |number| format!("{number:.2}")));
    environment
        .add_filter("fixed3", |value: Value| number(&value, |number| format!("{number:.3}")));
    environment.add_filter("tenth", |value: Value| number(&value, format::tenth));
    environment.add_filter("plain", |value: Value| number(&value, format::plain));
    environment
        .add_filter("path", |value: Value| Value::from_safe_string(path(&value.to_string())));
    environment
        .add_filter("coded", |value: Value| Value::from_safe_string(coded(&value.to_string())));
    environment.add_filter("code", |text: &str| Value::from_safe_string(markdown_code(text)));
    environment.add_filter("percent", |value: Value| number(&value, format::percent));
    for (name, source) in templates.all() {
        environment.add_template_owned(name.to_owned(), source.to_owned())?;
    }
    Ok(environment)
}

fn number(value: &Value, text: fn(f64) -> String) -> String {
    f64::try_from(value.clone()).map_or_else(|_| format::DASH.to_owned(), text)
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

/// What a [`Message`] says in this language; `None` of any other value.
fn in_lang(value: &Value, lang: Lang) -> Option<Value> {
    let is_message = value.kind() == ValueKind::Map
        && (value.get_attr("en").is_ok_and(|en| !en.is_undefined())
            || value.get_attr("joined").is_ok_and(|parts| !parts.is_undefined())
            || value.get_attr("list").is_ok_and(|parts| !parts.is_undefined()));
    let message = is_message.then(|| serde_json::to_value(value).ok())??;
    let message: Message = serde_json::from_value(message).ok()?;
    Some(Value::from(message.render(lang)))
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
        true => Message::verbatim(value.to_string()),
        false => Message::verbatim(escaped(&value.to_string())),
    };
    let places: Vec<(&str, Message)> =
        filled.iter().map(|(name, value)| (*name, part(value))).collect();
    Ok(match has_markup {
        true => Value::from_safe_string(fill(&escaped(pattern), &places, lang)),
        false => Value::from(fill(pattern, &places, lang)),
    })
}

/// Texts of a list with what stands between them in each language.
fn joined(texts: &Value, lang: Lang, en: &str, zh: &str) -> Result<String, minijinja::Error> {
    let own = |text: Value| in_lang(&text, lang).unwrap_or(text).to_string();
    let texts: Vec<String> = texts.try_iter()?.map(own).collect();
    Ok(texts.join(match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }))
}

/// A plan as it is stored, without the list of its steps: they follow from the rest.
fn without_steps(plan: &Value) -> String {
    let mut plan = serde_json::to_value(plan).unwrap_or_default();
    if let Some(object) = plan.as_object_mut() {
        object.remove("steps");
    }
    serde_json::to_string_pretty(&plan).unwrap_or_default()
}
