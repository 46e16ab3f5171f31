use super::*;

static ENTRIES: [MessageTexts; 2] = [
    MessageTexts {
        key: "test.n_trials_on",
        one: Some("{n} trial on {target}"),
        en: "{n} trials on {target}",
        zh: "在 {target} 上 {n} 次试验",
        places: &["n", "target"],
    },
    MessageTexts { key: "test.default", one: None, en: "default", zh: "默认", places: &[] },
];

fn trials(n: u64, target: impl Into<Arg>) -> Message {
    Message::of(&ENTRIES[0], [("n", Arg::Count(n)), ("target", target.into())])
}

fn zh(message: &Message) -> String {
    message.render(Lang::Zh)
}

#[test]
fn places_are_filled_and_counts_choose_the_plural() {
    assert_eq!(trials(1, "a"), "1 trial on a");
    let with_text = |n: &str| Message::of(&ENTRIES[0], [("n", n.into()), ("target", "a".into())]);
    assert_eq!(with_text("1"), "1 trial on a");
    assert_eq!(with_text("1 to 8"), "1 to 8 trials on a");
    assert_eq!(trials(1200, "{n}"), "1,200 trials on {n}");
    assert_eq!(zh(&trials(1200, "a")), "在 a 上 1,200 次试验");
}

#[test]
fn a_blank_stands_between_chinese_and_latin_only() {
    let default = Message::of(&ENTRIES[1], []);
    assert_eq!(trials(2, &default), "2 trials on default");
    assert_eq!(zh(&trials(2, &default)), "在默认上 2 次试验");
}

#[test]
fn brackets_within_brackets_are_square_in_chinese() {
    let text = |zh: &str| fill_zh(zh);
    assert_eq!(text("A（总耗时（s））"), "A（总耗时［s］）");
    assert_eq!(text("（a）与（b）"), "（a）与（b）", "one behind the other");
    // What one part of a line opens, another one may close.
    assert_eq!(text("（a（b）"), "（a（b）");
    assert_eq!(text("1）a（b）"), "1）a（b）");
}

/// A Chinese text filled into another.
fn fill_zh(text: &str) -> String {
    let rendered = trials(1, Message::both("", text)).render(Lang::Zh);
    rendered.trim_start_matches("在").trim_end_matches("上 1 次试验").trim().to_owned()
}

#[test]
fn lists_are_joined_as_each_language_does() {
    let texts = ["a", "b", "c"].map(Message::from);
    let list = Message::list(&texts);
    assert_eq!(
        (list.render(Lang::En), zh(&list)),
        ("a, b and c".to_owned(), "a、b 和 c".to_owned())
    );
    assert_eq!(Message::list(&texts[..1]), Message::from("a"));
    assert_eq!(Message::sentences(&texts[..2]), "a b");
    assert!(Message::list(&[]).is_empty() && Message::default().is_empty());
}

#[test]
fn a_stored_message_is_the_same_when_it_is_read() {
    register(&[&ENTRIES]);
    let parts = [trials(3, "main"), Message::both("a", "甲"), Message::verbatim("b")];
    let messages = [Message::joined(&parts, "; ", "；"), Message::list(&parts), parts[0].clone()];
    for message in messages {
        let json = serde_json::to_string(&message).expect("JSON");
        let read: Message = serde_json::from_str(&json).expect("a message");
        assert_eq!(read, message, "{json}");
        assert_eq!((read.render(Lang::En), zh(&read)), (message.render(Lang::En), zh(&message)));
    }
    let unknown = r#"{"key": "later.key", "args": {"n": 3}, "en": "3 things."}"#;
    let read: Message = serde_json::from_str(unknown).expect("a message");
    assert_eq!(
        (read.render(Lang::En), zh(&read)),
        ("3 things.".to_owned(), "3 things.".to_owned())
    );
}

#[test]
fn names_of_arguments_are_those_of_the_places() {
    let entry = &ENTRIES[0];
    assert!(entry.takes(&["target", "n"]));
    assert!(
        !entry.takes(&["n"])
            && !entry.takes(&["n", "targets"])
            && !entry.takes(&["n", "target", "x"])
    );
}
