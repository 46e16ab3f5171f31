//! `trials/<n>.executed.jsonl`: what a pass over queries has executed so far, a line for each query and
//! refresh function that has ended.

use dyno_facts::{QueryFacts, RefreshFacts, TpchFacts};
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Executed {
    /// A query has ended.
    Query(QueryFacts),
    /// A refresh function has ended.
    Refresh(RefreshFacts),
}

impl Executed {
    /// The line, with its end.
    pub(crate) fn line(&self) -> Vec<u8> {
        // Numbers, texts and lists of them can always be written as JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Adds the whole lines of a file to what was known before; returns the numbers of damaged lines, and what is wrong with them.
pub(crate) fn add(facts: &mut TpchFacts, text: &str) -> Vec<(usize, String)> {
    let mut damaged = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str(line) {
            Ok(Executed::Query(query)) => facts.queries.push(query),
            Ok(Executed::Refresh(refresh)) => facts.refreshes.push(refresh),
            Err(error) => damaged.push((number, error.to_string())),
        }
    }
    damaged
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_facts::QueryOutcome;

    #[test]
    fn what_was_written_is_read_back_and_damage_costs_one_line() {
        let query = QueryFacts {
            query: 17,
            seconds: 0.25,
            outcome: QueryOutcome::Failed("a \"quote\"\nand a line".to_owned()),
            ..QueryFacts::default()
        };
        let refresh = RefreshFacts { function: 2, pair: 1, rows: 7_500, ..RefreshFacts::default() };
        let mut text = Executed::Query(query.clone()).line();
        text.extend(b"{\"query\": 5}\n");
        text.extend(Executed::Refresh(refresh.clone()).line());
        let mut facts = TpchFacts::default();
        let damaged = add(&mut facts, &String::from_utf8(text).expect("text"));
        assert_eq!((facts.queries, facts.refreshes), (vec![query], vec![refresh]));
        assert_eq!(damaged.len(), 1);
        assert_eq!(damaged[0].0, 2, "{damaged:?}");
    }
}
