//! A page's elements as calls of the functions that the document's template defines. How they look is
//! the template's business; what they say and their order is the page's.

use super::html::{Element, Node};
use super::table;
use std::collections::HashSet;
use std::fmt::Write;

/// What is for screens only.
const LEFT_OUT: [&str; 9] =
    ["nav", "button", "input", "select", "form", "dialog", "template", "noscript", "head"];
/// Longer words get places where a line may break.
const LONGEST_WORD: usize = 20;

/// The page's content as markup.
pub(super) fn written(page: &Element) -> String {
    let body = page.find(&|element| element.name == "body").unwrap_or(page);
    let mut wanted = HashSet::new();
    let mut present = HashSet::new();
    body.each(&mut |element| {
        if let Some(target) = element.attribute("href").strip_prefix('#') {
            wanted.insert(target.to_owned());
        }
        present.insert(element.attribute("id").to_owned());
    });
    wanted.retain(|target| present.contains(target) && !target.is_empty());
    let mut writer =
        Writer { out: String::new(), targets: wanted, set: HashSet::new(), is_in_table: false };
    writer.all(&body.children);
    writer.out
}

pub(super) struct Writer {
    pub(super) out: String,
    /// Names that something refers to.
    targets: HashSet<String>,
    /// Those of them that have their place already: a name stands for one place.
    set: HashSet<String>,
    /// Small print in a table's cell stands below the figure it belongs to.
    pub(super) is_in_table: bool,
}

impl Writer {
    pub(super) fn all(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push_str(&markup(text)),
                Node::Drawing(svg) => self.drawing(svg),
                Node::Element(element) => self.element(element),
            }
        }
    }

    /// `[...]` with what is in the element, its name's place at the beginning.
    pub(super) fn bracketed(&mut self, element: &Element) {
        self.out.push('[');
        self.place(element);
        self.all(&element.children);
        self.out.push(']');
    }

    /// The place that links to the element lead to.
    pub(super) fn place(&mut self, element: &Element) {
        if let Some(name) = self.target(element) {
            let _ = write!(self.out, "#place-of({});", quoted(&name));
        }
    }

    /// The element's name, if something refers to it and it has no place yet.
    fn target(&mut self, element: &Element) -> Option<String> {
        let name = element.attribute("id").to_owned();
        (self.targets.contains(&name) && self.set.insert(name.clone())).then_some(name)
    }

    fn element(&mut self, element: &Element) {
        let name = element.name.as_str();
        let is_hidden = element.find_attribute("hidden").is_some()
            || ["no-print", "skip"].iter().any(|class| element.has_class(class));
        if LEFT_OUT.contains(&name) || is_hidden {
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                // Headings stand in the table of contents too: their place must not be in their text.
                let target = self.target(element).unwrap_or_default();
                let _ = write!(self.out, "\n#title-of-level({}, {})[", &name[1..], quoted(&target));
                self.all(&element.children);
                self.out.push_str("]\n");
            }
            "p" | "blockquote" => self.call(element, &with_class("paragraph", element)),
            "header" => self.call(element, &with_class("cover", element)),
            "figure" => self.call(element, &with_class("drawing", element)),
            "figcaption" => self.call(element, "drawing-caption"),
            "details" => self.call(element, &with_class("details", element)),
            "summary" => self.call(element, "details-title"),
            "ul" if element.has_class("legend") => self.legend(element),
            "ul" | "ol" => self.list(element),
            "dl" => self.terms(element),
            "table" => table::write(self, element),
            "pre" => {
                let _ =
                    write!(self.out, "\n#listing({})\n", quoted(element.text().trim_matches('\n')));
            }
            "br" => self.out.push_str("#linebreak();"),
            "wbr" => self.out.push_str("#gap;"),
            "hr" => self.out.push_str("\n#rule\n"),
            "a" => self.link(element),
            "strong" | "b" => self.inline(element, &with_class("bold", element)),
            "em" | "i" => self.inline(element, &with_class("stressed", element)),
            "code" | "kbd" | "samp" => self.inline(element, "code"),
            "small" if self.is_in_table => self.inline(element, &with_class("below", element)),
            "small" => self.inline(element, &with_class("small", element)),
            "sup" => self.inline(element, "super"),
            "sub" => self.inline(element, "sub"),
            "span" | "mark" => self.inline(element, &with_class("span", element)),
            "div" if element.has_class("grid") => self.grid(element),
            _ if element.find_attribute("class").is_some() => {
                self.call(element, &with_class("division", element));
            }
            _ => {
                self.place(element);
                self.all(&element.children);
            }
        }
    }

    /// `#call[...]` on a line of its own.
    fn call(&mut self, element: &Element, call: &str) {
        let _ = write!(self.out, "\n#{call}");
        self.bracketed(element);
        self.out.push('\n');
    }

    /// `#call[...];` within a line.
    fn inline(&mut self, element: &Element, call: &str) {
        let _ = write!(self.out, "#{call}");
        self.bracketed(element);
        self.out.push(';');
    }

    fn link(&mut self, element: &Element) {
        let to = element.attribute("href");
        let class = quoted(element.attribute("class"));
        match to.strip_prefix('#') {
            Some(name) if self.targets.contains(name) => {
                self.inline(element, &format!("link-to({}, {class})", quoted(name)));
            }
            _ if to.starts_with("https://") || to.starts_with("http://") => {
                self.inline(element, &format!("link({})", quoted(to)));
            }
            // A way to a file beside the page leads nowhere from here.
            _ => self.inline(element, &format!("span({class})")),
        }
    }

    fn list(&mut self, element: &Element) {
        let class = quoted(element.attribute("class"));
        let _ = write!(self.out, "\n#items({class}, {}", element.name == "ol");
        for item in element.elements() {
            self.out.push_str(", ");
            self.bracketed(item);
        }
        self.out.push_str(")\n");
    }

    /// Words with what is said of each.
    fn terms(&mut self, element: &Element) {
        let _ = write!(self.out, "\n#terms-of({}", quoted(element.attribute("class")));
        let mut parts = Vec::new();
        element.each(&mut |part| {
            if matches!(part.name.as_str(), "dt" | "dd") {
                parts.push(part);
            }
        });
        for part in parts {
            let _ = write!(self.out, ", ({}, ", quoted(&part.name));
            self.bracketed(part);
            self.out.push(')');
        }
        self.out.push_str(")\n");
    }

    /// The names of a drawing's lines with the classes that say how they are drawn.
    fn legend(&mut self, element: &Element) {
        self.out.push_str("\n#legend(");
        for item in element.elements() {
            let styled = item.find(&|inner| inner.find_attribute("class").is_some());
            let class = styled.map_or("", |styled| styled.attribute("class"));
            let name = item.text();
            let _ = write!(self.out, "({}, {}), ", quoted(name.trim()), quoted(class));
        }
        self.out.push_str(")\n");
    }

    /// Drawings beside each other.
    fn grid(&mut self, element: &Element) {
        let columns = if element.has_class("one") { 1 } else { 2 };
        let _ = write!(self.out, "\n#side-by-side({columns}");
        for item in element.elements() {
            self.out.push_str(", [");
            self.element(item);
            self.out.push(']');
        }
        self.out.push_str(")\n");
    }

    fn drawing(&mut self, svg: &str) {
        let tag = svg.split('>').next().unwrap_or("");
        let described = super::html::parse(&format!("{}></i>", tag.replacen("<svg", "<i", 1)));
        let described = described.elements().next().map(|i| i.attribute("aria-label").to_owned());
        let described = described.unwrap_or_default();
        // Alone, it has to say what it is.
        let svg = match tag.contains("xmlns=") {
            true => svg.to_owned(),
            false => svg.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1),
        };
        let (head, inside) = svg.split_once('>').unwrap_or((&svg, "</svg>"));
        let _ = write!(
            self.out,
            "\n#chart({}, {}, {})\n",
            quoted(&format!("{head}>")),
            quoted(inside),
            quoted(&described)
        );
    }
}

fn with_class(call: &str, element: &Element) -> String {
    format!("{call}({})", quoted(element.attribute("class")))
}

/// Text as a string of the document's language.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\\' | '"' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text as markup that means nothing but itself, with places to break in long words.
fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = '\n';
    let mut word = Word::default();
    for (at, c) in text.char_indices() {
        if c.is_whitespace() && c != '\u{a0}' {
            if last != ' ' {
                out.push(' ');
            }
            last = ' ';
            word = Word::default();
            continue;
        }
        if word.breaks_before(&text[at..], last) {
            out.push_str("#gap;");
        }
        match c {
            c if c.is_control() => out.push(' '),
            '\\' | '#' | '$' | '*' | '_' | '`' | '<' | '>' | '@' | '=' | '-' | '+' | '/' | '~'
            | '[' | ']' | '"' | '\'' => out.extend(['\\', c]),
            // Where no letter is before it, it may number a list or be the first of three.
            '.' if !last.is_alphabetic() => out.push_str("\\."),
            c => out.push(c),
        }
        last = c;
    }
    out
}

/// A run of ASCII letters and signs, which no line breaks by itself.
#[derive(Default)]
struct Word {
    is_long: bool,
    since_break: usize,
}

impl Word {
    /// Whether a line may break before what `rest` begins with.
    fn breaks_before(&mut self, rest: &str, last: char) -> bool {
        if !rest.starts_with(|c: char| c.is_ascii()) {
            *self = Word::default();
            return false;
        }
        if self.since_break == 0 {
            let inside = rest.chars().take_while(|c| c.is_ascii() && !c.is_whitespace());
            self.is_long = inside.count() > LONGEST_WORD;
        }
        let is_sign = matches!(last, '/' | '_' | ',' | '=' | '.' | ':' | '&' | '?' | '-' | ';');
        let breaks =
            self.is_long && (self.since_break == LONGEST_WORD || is_sign && self.since_break > 3);
        self.since_break = if breaks { 1 } else { self.since_break + 1 };
        breaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typst::html::parse;

    fn of(html: &str) -> String {
        written(&parse(html)).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn text_means_nothing_but_itself() {
        assert_eq!(
            markup("a  #b\n[c] 1. d... -- //"),
            "a \\#b \\[c\\] 1\\. d.\\.\\. \\-\\- \\/\\/"
        );
        assert_eq!(quoted("a\"\\\n\u{7}"), "\"a\\\"\\\\\\n \"");
        assert_eq!(markup("short_word 1.5"), "short\\_word 1\\.5");
        assert_eq!(markup(&"a".repeat(25)), format!("{}#gap;{}", "a".repeat(20), "a".repeat(5)));
        let url = "mysql://someone@somewhere:3306/some";
        assert_eq!(markup(url).replace("#gap;", "").replace('\\', ""), url);
        assert_eq!(markup(url).matches("#gap;").count(), 3, "{}", markup(url));
        let chinese = "很长的中文句子没有空格也可以在任何地方换行的很长的中文句子abc";
        assert_eq!(markup(chinese), chinese);
    }

    #[test]
    fn calls_can_not_swallow_the_text_after_them() {
        assert_eq!(
            of("<p class=x><b>a</b>(b) <code>c</code>[d]</p>"),
            "#paragraph(\"x\")[#bold(\"\")[a];(b) #code[c];\\[d\\]]"
        );
    }

    #[test]
    fn links_lead_to_what_exists_and_nowhere_else() {
        let page =
            "<p id=a>x</p><p id=a>x</p><a href='#a'>1</a><a href='#b'>2</a><a href='f.csv'>3</a>";
        assert_eq!(
            of("<h2 id=h>T</h2><a href='#h'>1</a>"),
            "#title-of-level(2, \"h\")[T] #link-to(\"h\", \"\")[1];"
        );
        assert_eq!(
            of(page),
            "#paragraph(\"\")[#place-of(\"a\");x] #paragraph(\"\")[x] #link-to(\"a\", \"\")[1];#span(\"\")[2];#span(\"\")[3];"
        );
    }

    #[test]
    fn what_is_for_screens_is_left_out() {
        assert_eq!(
            of("<nav>a</nav><p hidden>b</p><button>c</button><p class='no-print'>d</p>e"),
            "e"
        );
    }

    #[test]
    fn lists_keep_their_parts() {
        assert_eq!(of("<ul><li>a</li><li>b</li></ul>"), "#items(\"\", false, [a], [b])");
        assert_eq!(
            of("<dl class=x><div><dt>a</dt><dd>b</dd></div><dt>c</dt></dl>"),
            "#terms-of(\"x\", (\"dt\", [a]), (\"dd\", [b]), (\"dt\", [c]))"
        );
        assert_eq!(
            of("<ul class=legend><li><button class=\"s0 dashed\"><i></i> a</button></li></ul>"),
            "#legend((\"a\", \"s0 dashed\"), )"
        );
    }

    #[test]
    fn drawings_stand_alone_and_say_what_they_show() {
        assert_eq!(
            of("<svg viewBox=\"0 0 9 9\" aria-label=\"a &lt; b\"><path/></svg>"),
            "#chart(\"<svg xmlns=\\\"http://www.w3.org/2000/svg\\\" viewBox=\\\"0 0 9 9\\\" aria-label=\\\"a &lt; b\\\">\", \"<path/></svg>\", \"a < b\")"
        );
    }
}
