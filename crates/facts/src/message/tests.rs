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

fn trials_message(n: u64, target: impl Into<Arg>) -> Message {
    Message::of(&ENTRIES[0], [("n", Arg::Count(n)), ("target", target.into())])
}

fn in_chinese(message: &Message) -> String {
    message.render(Lang::Zh)
}

#[test]
fn places_are_filled_and_counts_choose_the_plural() {
    assert_eq!(trials_message(1, "a"), "1 trial on a");
    for (n, text) in [("1", "1 trial on a"), ("1 to 8", "1 to 8 trials on a")] {
        let message = Message::of(&ENTRIES[0], [("n", n.into()), ("target", "a".into())]);
        assert_eq!(message, text);
    }
    assert_eq!(trials_message(1200, "{n}"), "1,200 trials on {n}");
    assert_eq!(in_chinese(&trials_message(1200, "a")), "在 a 上 1,200 次试验");
}

#[test]
fn a_blank_stands_between_chinese_and_latin_only() {
    let default = Message::of(&ENTRIES[1], []);
    assert_eq!(trials_message(2, &default), "2 trials on default");
    assert_eq!(in_chinese(&trials_message(2, &default)), "在默认上 2 次试验");
}

#[test]
fn brackets_within_brackets_are_square_in_chinese() {
    assert_eq!(fill_zh("A（总耗时（s））"), "A（总耗时［s］）");
    assert_eq!(fill_zh("（a）与（b）"), "（a）与（b）", "one behind the other");
    // What one part of a line opens, another one may close.
    assert_eq!(fill_zh("（a（b）"), "（a（b）");
    assert_eq!(fill_zh("1）a（b）"), "1）a（b）");
}

/// A Chinese text filled into another.
fn fill_zh(text: &str) -> String {
    let rendered = trials_message(1, Message::both("", text)).render(Lang::Zh);
    rendered.trim_start_matches("在").trim_end_matches("上 1 次试验").trim().to_owned()
}

#[test]
fn lists_are_joined_as_each_language_does() {
    let texts = ["a", "b", "c"].map(Message::from);
    let list = Message::list(&texts);
    assert_eq!(
        (list.render(Lang::En), in_chinese(&list)),
        ("a, b and c".to_owned(), "a、b 和 c".to_owned())
    );
    assert_eq!(Message::list(&texts[..1]), Message::from("a"));
    assert_eq!(Message::sentences(&texts[..2]), "a b");
    assert!(Message::list(&[]).is_empty() && Message::default().is_empty());
}

#[test]
fn a_stored_message_is_the_same_when_it_is_read() {
    register(&[&ENTRIES]);
    let parts = [trials_message(3, "main"), Message::both("a", "甲"), Message::verbatim("b")];
    let messages = [Message::joined(&parts, "; ", "；"), Message::list(&parts), parts[0].clone()];
    for message in messages {
        let json = serde_json::to_string(&message).expect("JSON");
        let read: Message = serde_json::from_str(&json).expect("a message");
        assert_eq!(read, message, "{json}");
        assert_eq!(
            (read.render(Lang::En), in_chinese(&read)),
            (message.render(Lang::En), in_chinese(&message))
        );
    }
    let unknown = r#"{"key": "later.key", "args": {"n": 3}, "en": "3 things."}"#;
    let read: Message = serde_json::from_str(unknown).expect("a message");
    assert_eq!(
        (read.render(Lang::En), in_chinese(&read)),
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
