//! Comparison of answers with known ones, or with those of earlier trials.

use super::RunOptions;
use crate::check::{Expected, reference};
use crate::facts::{AnswerFacts, QueryFacts};
use crate::parameters::ParameterChoice;
use crate::plans::digest;
use dyno_core::AnswerTable;
use dyno_facts::{CheckVerdict, Message, say};
use dyno_store::write_atomically;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// A target at a parallel degree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Answerer {
    target: String,
    degree: u32,
}

/// An answer that an earlier trial has left.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    who: Answerer,
    query: u8,
    parameters: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

/// Judges the answer of a query that was answered; `None` if there is nothing to compare it with. An answer that is not known
/// beforehand is stored for later trials. `state` names the refresh functions applied, such as `0` or `3.1`; `None` while
/// they change.
pub(super) fn judge(
    options: &RunOptions,
    state: Option<&str>,
    facts: &QueryFacts,
    table: AnswerTable,
) -> Option<AnswerFacts> {
    let state = state?;
    if table.is_cut() {
        let mib = (AnswerTable::WORKLOAD_BYTES_MAX >> 20).to_string();
        return Some(not_made(say!(answer_not_kept, mib)));
    }
    if options.parameters == ParameterChoice::Default
        && state == "0"
        && let Some(expected) = reference(facts.query, options.scale)
    {
        return Some(expected.judge(facts.query, &table));
    }
    let parameters_digest = digest(&facts.parameters.join("\n"));
    let name = format!("sf{}-r{state}-q{:02}-{parameters_digest}.json", options.scale, facts.query);
    let file = options.answers.as_ref()?.join(name);
    let who = Answerer { target: options.target.clone(), degree: options.degree };
    judge_by_file(&file, who, facts, table).unwrap_or_else(|error| {
        let file = file.display().to_string();
        Some(not_made(say!(file_not_usable, file, why = error.to_string())))
    })
}

fn judge_by_file(
    file: &Path,
    who: Answerer,
    facts: &QueryFacts,
    table: AnswerTable,
) -> io::Result<Option<AnswerFacts>> {
    match fs::read(file) {
        Ok(text) => {
            let stored: StoredAnswer = serde_json::from_slice(&text)?;
            let source =
                say!(target_answer, target = &stored.who.target, degree = stored.who.degree);
            let expected = Expected::from_engine(AnswerTable::from(stored.rows), source);
            let answer = expected.judge(facts.query, &table);
            // What a target says twice is no more right than what it says once.
            let is_same_target = stored.who.target == who.target;
            Ok(Some(match answer.verdict {
                CheckVerdict::Passed if is_same_target => {
                    AnswerFacts { verdict: CheckVerdict::NotMade, ..answer }
                }
                _ => answer,
            }))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let (query, parameters) = (facts.query, facts.parameters.clone());
            let stored = StoredAnswer { who, query, parameters, rows: table.rows };
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            write_atomically(file, &serde_json::to_vec(&stored)?).map_err(io::Error::other)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn not_made(why: Message) -> AnswerFacts {
    AnswerFacts {
        verdict: CheckVerdict::NotMade,
        against: say!(earlier_answer),
        differences: vec![why],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::{AnswerRow, Rows};

    fn new_table(rows: &[&[&str]]) -> AnswerTable {
        let rows = rows.iter().map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect());
        AnswerTable::from(rows.collect::<Vec<_>>())
    }

    struct Long;

    impl AnswerRow for Long {
        fn columns(&self) -> usize {
            1
        }
        fn is_null(&self, _column: usize) -> bool {
            false
        }
        fn int(&self, _column: usize) -> Option<i64> {
            None
        }
        fn double(&self, _column: usize) -> Option<f64> {
            None
        }
        fn bytes(&self, _column: usize) -> Option<&[u8]> {
            None
        }
        fn string(&self, _column: usize) -> Option<String> {
            Some("x".repeat(8 << 20))
        }
    }

    #[test]
    fn the_second_answer_is_held_against_the_first() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("answers");
        let [a, a_at_2, b, c] =
            [("a", 0), ("a", 2), ("b", 0), ("c", 0)].map(|(target, degree)| RunOptions {
                scale: 0.05,
                answers: Some(folder.clone()),
                target: target.to_owned(),
                degree,
                ..RunOptions::default()
            });
        let facts =
            QueryFacts { query: 4, parameters: vec!["1993-07-01".into()], ..<_>::default() };
        let right = new_table(&[&["1-URGENT", "999"], &["2-HIGH", "997"]]);
        let wrong = new_table(&[&["1-URGENT", "999"], &["2-HIGH", "998"]]);
        assert_eq!(judge(&a, Some("0"), &facts, right.clone()), None);
        let second = judge(&b, Some("0"), &facts, right.clone()).unwrap();
        assert_eq!(
            (second.verdict, second.against.to_string()),
            (CheckVerdict::Passed, "the answer of target a at degree 0".to_owned())
        );
        let again = judge(&a_at_2, Some("0"), &facts, right).unwrap();
        assert_eq!((again.verdict, again.differences.len()), (CheckVerdict::NotMade, 0), "its own");
        let changed = judge(&a_at_2, Some("0"), &facts, wrong.clone()).unwrap();
        assert_eq!(changed.verdict, CheckVerdict::Failed);
        let third = judge(&c, Some("0"), &facts, wrong.clone()).unwrap();
        assert_eq!((third.verdict, third.differences.len()), (CheckVerdict::Failed, 1));
        assert_eq!(judge(&c, Some("1.1"), &facts, wrong.clone()), None, "other data");
        assert_eq!(judge(&c, None, &facts, wrong.clone()), None, "data that change");
        let mut endless = AnswerTable::for_workload();
        while !endless.is_cut() {
            endless.row(&Long);
        }
        let cut = judge(&c, Some("0"), &facts, endless).unwrap();
        assert_eq!(
            cut.verdict,
            CheckVerdict::NotMade,
            "an answer that is not kept is not compared"
        );
        let other_parameters = QueryFacts { parameters: vec!["1994-07-01".into()], ..facts };
        assert_eq!(judge(&c, Some("0"), &other_parameters, wrong), None, "other parameters");
    }

    #[test]
    fn known_answers_come_before_those_of_others() {
        let options = RunOptions { scale: 0.01, ..RunOptions::default() };
        let facts = QueryFacts { query: 6, ..<_>::default() };
        let answer = judge(&options, Some("0"), &facts, new_table(&[&["1"]])).unwrap();
        assert_eq!(answer.verdict, CheckVerdict::Failed);
        assert!(answer.against.to_string().contains("stored answers"), "{}", answer.against);
    }
}
