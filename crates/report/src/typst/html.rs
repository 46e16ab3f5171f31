//! The elements of a paper's page. Our own templates are well-formed; a user's need not be, so that
//! nothing here fails: what is never closed ends with its parent.

/// A part of a page.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    /// Text, its entities resolved.
    Text(String),
    Element(Element),
    /// An `<svg>` as it stands.
    Drawing(String),
}

/// An element with what is in it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Element {
    /// In small letters.
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Node>,
}

const VOID: [&str; 10] = ["area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"];
/// What is in them is no markup, and nothing to print.
const RAW: [&str; 3] = ["script", "style", "title"];

impl Element {
    /// An attribute; empty where it is missing.
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.find_attribute(name).unwrap_or("")
    }

    pub(super) fn find_attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").split_whitespace().any(|known| known == class)
    }

    /// The elements right in it.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            _ => None,
        })
    }

    /// This element or the first one inside of it that is wanted.
    pub(super) fn find(&self, is_wanted: &dyn Fn(&Element) -> bool) -> Option<&Element> {
        if is_wanted(self) {
            return Some(self);
        }
        self.elements().find_map(|element| element.find(is_wanted))
    }

    /// Looks at this element and at all inside of it.
    pub(super) fn each<'a>(&'a self, look: &mut dyn FnMut(&'a Element)) {
        look(self);
        self.elements().for_each(|element| element.each(look));
    }

    /// All text in it.
    pub(super) fn text(&self) -> String {
        let text = |node: &Node| match node {
            Node::Text(text) => text.clone(),
            Node::Element(element) => element.text(),
            Node::Drawing(_) => String::new(),
        };
        self.children.iter().map(text).collect()
    }
}

/// The page as an element without a name.
pub(super) fn parse(html: &str) -> Element {
    let mut open = vec![Element::default()];
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        add(&mut open, Node::Text(resolved(&rest[..at])));
        rest = markup(&mut open, &rest[at..]);
    }
    add(&mut open, Node::Text(resolved(rest)));
    while open.len() > 1 {
        close_last(&mut open);
    }
    open.pop().unwrap_or_default()
}

/// What `rest` begins with; returns what comes after it.
fn markup<'a>(open: &mut Vec<Element>, rest: &'a str) -> &'a str {
    if rest.starts_with("<!--") {
        return after(rest, "-->");
    }
    if let Some(name) = rest.strip_prefix("</") {
        let name = name.split('>').next().unwrap_or("").trim().to_ascii_lowercase();
        if let Some(place) = open.iter().rposition(|element| element.name == name)
            && place > 0
        {
            while open.len() > place {
                close_last(open);
            }
        }
        return after(rest, ">");
    }
    if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '!') {
        add(open, Node::Text("<".to_owned()));
        return &rest[1..];
    }
    let end = end_of_tag(rest);
    let tag = &rest[1..end];
    if tag.starts_with('!') {
        return rest.get(end + 1..).unwrap_or("");
    }
    let element = tag_of(tag);
    let inside = rest.get(end + 1..).unwrap_or("");
    let is_empty = tag.ends_with('/') || VOID.contains(&element.name.as_str());
    if element.name == "svg" {
        let length = rest.find("</svg>").map_or(rest.len(), |at| at + "</svg>".len());
        add(open, Node::Drawing(rest[..length].to_owned()));
        return &rest[length..];
    }
    if RAW.contains(&element.name.as_str()) {
        return after(inside, &format!("</{}>", element.name));
    }
    match is_empty {
        true => add(open, Node::Element(element)),
        false => open.push(element),
    }
    inside
}

fn add(open: &mut [Element], node: Node) {
    if let (Some(parent), false) = (open.last_mut(), node == Node::Text(String::new())) {
        parent.children.push(node);
    }
}

fn close_last(open: &mut Vec<Element>) {
    if let Some(element) = open.pop() {
        add(open, Node::Element(element));
    }
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// Where the `>` of a tag is; it may also stand in a quoted value.
fn end_of_tag(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// An element of what stands between `<` and `>`.
fn tag_of(tag: &str) -> Element {
    let tag = tag.trim_end_matches('/');
    let (name, mut rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
    let mut element = Element { name: name.to_ascii_lowercase(), ..Element::default() };
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return element;
        }
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        let value;
        (value, rest) = match rest[end..].strip_prefix('=') {
            None => ("", &rest[end..]),
            Some(given) => value_of(given),
        };
        if end == 0 && value.is_empty() {
            return element;
        }
        element.attributes.push((name, resolved(value)));
    }
}

/// The value after a `=`, quoted or not, and what comes after it.
fn value_of(text: &str) -> (&str, &str) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            text.split_at(end)
        }
    }
}

/// The text with its entities resolved; unknown ones stay.
fn resolved(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let found = rest
            .find(';')
            .filter(|end| *end <= 10)
            .and_then(|end| entity(&rest[..end]).map(|c| (c, end)));
        match found {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "ndash" => '–',
        "mdash" => '—',
        "middot" => '·',
        "times" => '×',
        "minus" => '−',
        "plusmn" => '±',
        "le" => '≤',
        "ge" => '≥',
        "micro" => 'µ',
        "hellip" => '…',
        "larr" => '←',
        "rarr" => '→',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_their_attributes_and_children() {
        let page = parse(
            "<!DOCTYPE html><p class=\"a b\" id=x hidden>1 &lt; 2<br>3</p><!-- no --> &#x27;&#8211;&no;",
        );
        let p = page.elements().next().expect("an element");
        assert_eq!((p.name.as_str(), p.attribute("id"), p.text().as_str()), ("p", "x", "1 < 23"));
        assert!(p.has_class("a") && p.has_class("b") && !p.has_class("c"));
        assert_eq!(p.find_attribute("hidden"), Some(""));
        assert_eq!(page.text(), "1 < 23 '–&no;");
    }

    #[test]
    fn drawings_stay_as_they_are_and_scripts_go() {
        let svg = "<svg viewBox=\"0 0 1 1\"><title>a &lt; b</title></svg>";
        let page = parse(&format!("<div>{svg}<script>if (a < b) </script>c</div>"));
        let div = page.elements().next().expect("an element");
        assert_eq!(div.children, [Node::Drawing(svg.to_owned()), Node::Text("c".to_owned())]);
    }

    #[test]
    fn what_is_not_closed_ends_with_its_parent() {
        for html in
            ["<div><p>a</div>b", "<div><p title='>'>a</p></i></div>b", "<div><p>a</p></div>b"]
        {
            let page = parse(html);
            let div = page.elements().next().expect("an element");
            assert_eq!((div.text().as_str(), page.text().as_str()), ("a", "ab"), "{html}");
        }
        for html in [
            "<",
            "a < b",
            "<p",
            "<p a=",
            "<p a='",
            "<svg",
            "</",
            "<!--",
            "&",
            "&#x110000;",
            "<p =>",
        ] {
            let _ = parse(html);
        }
        assert_eq!(parse("a < b").text(), "a < b");
    }
}
