//! The frame of a paper: its schema and its size.

use crate::support::elements;
use crate::synthetic::{self, published, two_targets};
use dyno_report::{Lang, Paper, SCHEMA};
use serde_json::Value;

/// Places at which a value does not fit its schema; supports the parts of JSON Schema that schemas of papers use.
fn misfits(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target =
            root.pointer(name.trim_start_matches('#')).expect("a reference leads somewhere");
        misfits(root, target, value, place, found);
    }
    for name in ["anyOf", "oneOf"] {
        let Some(choices) = schema[name].as_array() else { continue };
        let fits_one = choices.iter().any(|choice| {
            let mut choice_misfits = Vec::new();
            misfits(root, choice, value, place, &mut choice_misfits);
            choice_misfits.is_empty()
        });
        if !fits_one {
            found.push(format!("{place}: none of {name} fits {value}"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        misfits(root, part, value, place, found);
    }
    if schema.get("const").is_some_and(|wanted| wanted != value)
        || schema["enum"].as_array().is_some_and(|known| !known.contains(value))
    {
        found.push(format!("{place}: {value} is not known"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let has_type = types.iter().any(|name| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type"),
    });
    if !types.is_empty() && !has_type {
        found.push(format!("{place}: {value} is none of {types:?}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            misfits(root, items, item, &format!("{place}/{index}"), found);
        }
    }
    let Some(object) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            found.push(format!("{place}: {name} is missing"));
        }
    }
    for (name, value) in object {
        let place = format!("{place}/{name}");
        match (&schema["properties"][name], schema.get("additionalProperties")) {
            (Value::Null, Some(Value::Bool(false))) => found.push(format!("{place} is unknown")),
            (Value::Null, Some(other)) if other.is_object() => {
                misfits(root, other, value, &place, found);
            }
            (Value::Null, None) if schema.get("properties").is_some() && is_whole(schema) => {
                found.push(format!("{place} is not described"));
            }
            (property, _) if property.is_object() => misfits(root, property, value, &place, found),
            _ => {}
        }
    }
}

/// Returns true if a schema describes a whole object and nothing is merged into it.
fn is_whole(schema: &Value) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf"].iter().all(|name| schema.get(name).is_none())
}

#[test]
fn every_paper_fits_the_published_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let papers = [
        Paper::new(&[two_targets(&[8, 64], 2, 6)], &[published()]),
        Paper::new(&[synthetic::pgbench::pgbench()], &synthetic::pgbench::published()),
        Paper::new(&[synthetic::tpcc::tpcc()], &[]),
        Paper::new(&[synthetic::tpch::tpch()], &[]),
        Paper::new(&[synthetic::cluster::cluster()], &[]),
        Paper::new(&[synthetic::run(&["main"], Vec::new())], &[]),
    ];
    for paper in papers {
        let value: Value = serde_json::from_str(&paper.json().expect("written")).expect("JSON");
        let mut problems = Vec::new();
        misfits(&schema, &schema, &value, "", &mut problems);
        assert_eq!(problems, Vec::<String>::new(), "{}", paper.title);
    }
}

#[test]
fn a_value_that_does_not_fit_is_found() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let paper = Paper::new(&[two_targets(&[8], 1, 6)], &[]);
    let good: Value = serde_json::from_str(&paper.json().expect("written")).expect("JSON");
    let spoil: [fn(&mut Value); 4] = [
        |paper| paper["title"] = 3.into(),
        |paper| paper["checks"][0]["level"] = "X".into(),
        |paper| paper["runs"][0]["header"]["seed"] = "first".into(),
        |paper| drop(paper.as_object_mut().and_then(|paper| paper.remove("blocks"))),
    ];
    for change in spoil {
        let mut value = good.clone();
        change(&mut value);
        let mut problems = Vec::new();
        misfits(&schema, &schema, &value, "", &mut problems);
        assert!(!problems.is_empty());
    }
}

#[test]
fn five_hundred_points_stay_small() {
    let run = two_targets(&(1..=250).map(|step| step * 4).collect::<Vec<_>>(), 1, 120);
    assert_eq!(run.trials.len(), 501);
    let html = Paper::new(&[run], &[published()]).html(Lang::En);
    assert!(html.len() <= 3_000_000, "{} bytes", html.len());
    elements(&html);
}

#[test]
fn both_languages_are_rendered_alike_twice() {
    for lang in Lang::ALL {
        let (first, second) = (two_target_paper().html(lang), two_target_paper().html(lang));
        assert_eq!(first, second);
        let (first, second) =
            (two_target_paper().markdown(lang), two_target_paper().markdown(lang));
        assert_eq!(first, second);
    }
    let chinese = two_target_paper().html(Lang::Zh);
    assert!(chinese.contains("<html lang=\"zh-CN\">"));
    assert!(chinese.contains("测试结果") && !chinese.contains(">Results<"));
}

/// A paper of two targets, made from scratch.
fn two_target_paper() -> Paper {
    Paper::new(&[two_targets(&[8, 64], 2, 6)], &[published()])
}
