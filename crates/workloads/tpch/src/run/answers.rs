//! What answers are held against.

use crate::check::{Expected, reference};
use crate::facts::{AnswerFacts, QueryFacts};
use crate::plans::digest;
use dyno_core::AnswerTable;
use dyno_facts::{CheckVerdict, Message, say};
use dyno_store::write_atomically;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The data that the answers of a trial are of.
pub(super) struct Answers<'a> {
    pub(super) scale: f64,
    /// Refresh functions applied, such as `0` or `3.1`; `None` while they change.
    pub(super) state: Option<String>,
    /// Whether the parameters are those of the known answers.
    pub(super) is_default: bool,
    /// Where the first trial of a run leaves what nobody knows beforehand.
    pub(super) folder: Option<&'a Path>,
    pub(super) who: &'a Answerer,
}

/// A target at a parallel degree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answerer {
    pub target: String,
    pub degree: u32,
}

/// An answer that an earlier trial has left.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    who: Answerer,
    query: u8,
    parameters: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl Answers<'_> {
    /// Judges the answer of a query that was answered; `None` where there is nothing to hold it
    /// against. What nobody knows beforehand is left for those that follow.
    pub(super) fn judge(&self, facts: &QueryFacts, table: AnswerTable) -> Option<AnswerFacts> {
        let state = self.state.as_deref()?;
        if table.is_cut() {
            let mib = (AnswerTable::WORKLOAD_BYTES_MAX >> 20).to_string();
            return Some(not_made(say!(answer_not_kept, mib = mib)));
        }
        if self.is_default
            && state == "0"
            && let Some(expected) = reference(facts.query, self.scale)
        {
            return Some(expected.judge(facts.query, &table));
        }
        let file = self.folder?.join(self.file_name(state, facts));
        self.judge_by_file(&file, facts, table).unwrap_or_else(|error| {
            let file = file.display().to_string();
            Some(not_made(say!(file_not_usable, file = file, why = error.to_string())))
        })
    }

    fn file_name(&self, state: &str, facts: &QueryFacts) -> String {
        let what = digest(&facts.parameters.join("\n"));
        format!("sf{}-r{state}-q{:02}-{what}.json", self.scale, facts.query)
    }

    fn judge_by_file(
        &self,
        file: &Path,
        facts: &QueryFacts,
        table: AnswerTable,
    ) -> io::Result<Option<AnswerFacts>> {
        match fs::read(file) {
            Ok(text) => {
                let left: StoredAnswer = serde_json::from_slice(&text)?;
                let expected = Expected::from_engine(
                    AnswerTable::from(left.rows),
                    say!(answer_of, target = &left.who.target, degree = left.who.degree),
                );
                let judged = expected.judge(facts.query, &table);
                // What a target says twice is no more right than what it says once.
                let is_own = left.who.target == self.who.target;
                Ok(Some(match judged.verdict {
                    CheckVerdict::Passed if is_own => {
                        AnswerFacts { verdict: CheckVerdict::NotMade, ..judged }
                    }
                    _ => judged,
                }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let left = StoredAnswer {
                    who: self.who.clone(),
                    query: facts.query,
                    parameters: facts.parameters.clone(),
                    rows: table.rows,
                };
                if let Some(folder) = file.parent() {
                    fs::create_dir_all(folder)?;
                }
                write_atomically(file, &serde_json::to_vec(&left)?).map_err(io::Error::other)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
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

    fn table(rows: &[&[&str]]) -> AnswerTable {
        let row = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
        AnswerTable::from(rows.iter().map(row).collect::<Vec<_>>())
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
        let at = |target: &str, degree| Answerer { target: target.to_owned(), degree };
        let (a, a_at_2, b, c) = (at("a", 0), at("a", 2), at("b", 0), at("c", 0));
        let answers = |who, state: Option<&str>| Answers {
            scale: 0.05,
            state: state.map(str::to_owned),
            is_default: true,
            folder: Some(&folder),
            who,
        };
        let facts =
            QueryFacts { query: 4, parameters: vec!["1993-07-01".into()], ..<_>::default() };
        let right = table(&[&["1-URGENT", "999"], &["2-HIGH", "997"]]);
        let wrong = table(&[&["1-URGENT", "999"], &["2-HIGH", "998"]]);
        assert_eq!(answers(&a, Some("0")).judge(&facts, right.clone()), None);
        let second = answers(&b, Some("0")).judge(&facts, right.clone()).unwrap();
        assert_eq!(
            (second.verdict, second.against.to_string()),
            (CheckVerdict::Passed, "the answer of target a at degree 0".to_owned())
        );
        let own = answers(&a_at_2, Some("0"));
        let again = own.judge(&facts, right).unwrap();
        assert_eq!((again.verdict, again.differences.len()), (CheckVerdict::NotMade, 0), "its own");
        assert_eq!(own.judge(&facts, wrong.clone()).unwrap().verdict, CheckVerdict::Failed);
        let third = answers(&c, Some("0")).judge(&facts, wrong.clone()).unwrap();
        assert_eq!((third.verdict, third.differences.len()), (CheckVerdict::Failed, 1));
        assert_eq!(answers(&c, Some("1.1")).judge(&facts, wrong.clone()), None, "other data");
        assert_eq!(answers(&c, None).judge(&facts, wrong.clone()), None, "data that change");
        let mut endless = AnswerTable::of_workload();
        while !endless.is_cut() {
            endless.row(&Long);
        }
        let cut = answers(&c, Some("0")).judge(&facts, endless).unwrap();
        assert_eq!(cut.verdict, CheckVerdict::NotMade, "of what is not kept nothing is said");
        let other = QueryFacts { parameters: vec!["1994-07-01".into()], ..facts };
        assert_eq!(answers(&c, Some("0")).judge(&other, wrong), None, "other parameters");
    }

    #[test]
    fn known_answers_come_before_those_of_others() {
        let answers = Answers {
            scale: 0.01,
            state: Some("0".into()),
            is_default: true,
            folder: None,
            who: &Answerer::default(),
        };
        let facts = QueryFacts { query: 6, ..<_>::default() };
        let judged = answers.judge(&facts, table(&[&["1"]])).unwrap();
        assert_eq!(judged.verdict, CheckVerdict::Failed);
        assert!(judged.against.to_string().contains("stored answers"), "{}", judged.against);
    }
}
