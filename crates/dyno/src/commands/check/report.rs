//! The results of a check, as a table and as JSON.

use crate::pretty;
use dyno_core::{counted, in_one_line};
use dyno_facts::format::grouped;
use dyno_facts::text_table;
use dyno_runner::failure::Failure;
use dyno_tpcc::settle::Settlement;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;

/// A check and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Line {
    pub(super) id: &'static str,
    pub(super) rule: String,
    /// `None` if it was not made: it need not hold for such a database.
    pub(super) holds: Option<bool>,
    pub(super) violations: u64,
    #[serde(rename = "first")]
    pub(super) keys: Vec<String>,
    /// Rows of different warehouses were compared in dyno.
    #[serde(rename = "driver_side")]
    pub(super) is_driver_side: bool,
    pub(super) time_s: f64,
}

impl Line {
    /// Not made yet.
    pub(super) fn new(id: &'static str, rule: impl Into<String>) -> Self {
        Line { id, rule: rule.into(), ..Line::default() }
    }

    /// Returns the cells of the check in the table.
    fn row(&self) -> Vec<String> {
        let [verdict, violations, time_s] = match self.holds {
            None => ["-".to_owned(), String::new(), String::new()],
            Some(holds) => [
                if holds { "holds" } else { "violated" }.to_owned(),
                grouped(self.violations),
                format!("{:.2}", self.time_s),
            ],
        };
        vec![self.id.to_owned(), verdict, self.rule.clone(), violations, time_s]
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LedgerReport {
    pub(super) path: String,
    pub(super) recorded_target: String,
    pub(super) runs: u32,
    pub(super) is_ended: bool,
    pub(super) torn: u64,
    pub(super) refused: u64,
    pub(super) settlement: Settlement,
    pub(super) time_s: f64,
}

impl LedgerReport {
    /// Returns the ledger's part of the report as it is printed.
    fn text(&self) -> String {
        let settlement = &self.settlement;
        let counts: [(&str, &dyn Display); 6] = [
            ("orders acknowledged", &settlement.acknowledged),
            ("of these lost", &settlement.lost),
            ("orders of unknown outcome", &settlement.unknown),
            ("of these committed", &settlement.committed),
            ("growth of the order numbers", &settlement.grown),
            ("of this by others", &settlement.others),
        ];
        let rows = counts.map(|(name, count)| vec![name.to_owned(), grouped(count)]);
        let runs = counted(self.runs, "run");
        let mut text = format!("Ledger {} of {runs} on {}\n\n", self.path, self.recorded_target);
        text.push_str(&text_table(&["ledger", "count"], &rows, |place| place >= 1));
        for lost in &settlement.listed {
            text.push_str(&format!("lost: {}\n", lost.message()));
        }
        if settlement.lost > settlement.listed.len() as u64 {
            let remaining = settlement.lost - settlement.listed.len() as u64;
            text.push_str(&format!("lost: {} more\n", grouped(remaining)));
        }
        for problem in &settlement.problems {
            text.push_str(&format!("wrong: {}\n", in_one_line(problem)));
        }
        text
    }

    /// Returns the ledger's part of the report for `--json`.
    fn json(&self) -> Value {
        let settlement = &self.settlement;
        let first_lost = settlement.listed.iter().map(|lost| {
            json!({
                "w_id": lost.warehouse,
                "d_id": lost.district,
                "o_id": lost.order.number,
                "why": lost.message().to_string(),
            })
        });
        json!({
            "file": self.path,
            "target": self.recorded_target,
            "runs": self.runs,
            "ended": self.is_ended,
            "torn_lines": self.torn,
            "refused": self.refused,
            "acknowledged": settlement.acknowledged,
            "lost": settlement.lost,
            "first_lost": first_lost.collect::<Vec<_>>(),
            "unknown": settlement.unknown,
            "unknown_committed": settlement.committed,
            "growth": settlement.grown,
            "growth_by_others": settlement.others,
            "problems": settlement.problems,
            "holds": settlement.is_durable(),
            "time_s": self.time_s,
        })
    }

    /// Returns a sentence if orders of others make the outcome less certain.
    fn doubt(&self) -> Option<String> {
        let foreign_orders = self.settlement.others;
        let orders = counted(foreign_orders, "order");
        (foreign_orders > 0).then(|| {
            format!(
                "No acknowledged order is lost. Others have entered {orders} since the ledger was begun: whether each order of \
                 unknown outcome is there once can't be derived from the counts."
            )
        })
    }

    /// Returns the first reason why the orders don't pass, if any.
    fn complaint(&self) -> Option<String> {
        let settlement = &self.settlement;
        if settlement.lost > 0 {
            let count = grouped(settlement.lost);
            let orders_are = if settlement.lost == 1 { "order is" } else { "orders are" };
            return Some(format!("{count} acknowledged {orders_are} lost."));
        }
        settlement.problems.first().cloned()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) workload: &'static str,
    pub(super) title: String,
    pub(super) facts: Vec<String>,
    pub(super) ledger: Option<LedgerReport>,
    pub(super) lines: Vec<Line>,
}

impl Report {
    /// Returns the report as it is printed.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n\n", in_one_line(&self.title));
        if let Some(ledger) = &self.ledger {
            text.push_str(&ledger.text());
            text.push('\n');
        }
        if !self.lines.is_empty() {
            let rows: Vec<Vec<String>> = self.lines.iter().map(Line::row).collect();
            text.push_str(&text_table(
                &["check", "verdict", "rule", "violations", "s"],
                &rows,
                |place| place >= 3,
            ));
        }
        for line in &self.lines {
            for key in &line.keys {
                text.push_str(&format!("{} is violated by: {}\n", line.id, in_one_line(key)));
            }
            if line.violations > line.keys.len() as u64 {
                let remaining = line.violations - line.keys.len() as u64;
                text.push_str(&format!("{}: {} more\n", line.id, grouped(remaining)));
            }
        }
        for fact in &self.facts {
            text.push_str(&format!("{}\n", in_one_line(fact)));
        }
        text
    }

    /// Returns the report for `--json`.
    pub(super) fn json(&self) -> Result<String, Failure> {
        pretty(&json!({
            "workload": self.workload,
            "title": self.title,
            "facts": self.facts,
            "ledger": self.ledger.as_ref().map(LedgerReport::json),
            "conditions": self.lines,
            "passed": self.complaint().is_none(),
        }))
    }

    /// The doubt that is left if the check has passed.
    pub(super) fn doubt(&self) -> Option<String> {
        self.ledger.as_ref().and_then(LedgerReport::doubt)
    }

    /// The reason why the database has not passed.
    pub(super) fn complaint(&self) -> Option<String> {
        let violated = self.lines.iter().filter(|line| line.holds == Some(false));
        let violated: Vec<&str> = violated.map(|line| line.id).collect();
        let conditions = match violated[..] {
            [] => None,
            [id] => Some(format!("Condition {id} is violated.")),
            _ => Some(format!("Conditions {} are violated.", violated.join(", "))),
        };
        let ledger = self.ledger.as_ref().and_then(LedgerReport::complaint);
        let sentences: Vec<String> = ledger.into_iter().chain(conditions).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_tpcc::ledger::LedgerOrder;
    use dyno_tpcc::settle::{LostOrder, OrderMismatch};

    fn report() -> Report {
        let order = LedgerOrder { number: 3_005, customer: 17, lines: 10 };
        let lost_order =
            LostOrder { warehouse: 1, district: 2, order, instead: OrderMismatch::Nothing };
        let settlement = Settlement {
            acknowledged: 1_234,
            lost: 2,
            listed: vec![lost_order],
            unknown: 3,
            committed: 1,
            grown: 1_235,
            others: 0,
            problems: Vec::new(),
        };
        let ledger = LedgerReport {
            path: "orders".to_owned(),
            recorded_target: "mysql://root@db/tpcc".to_owned(),
            runs: 1,
            is_ended: false,
            torn: 0,
            refused: 0,
            settlement,
            time_s: 0.5,
        };
        let holds = Line { holds: Some(true), time_s: 0.25, ..Line::new("C1", "Sums agree.") };
        let broken = Line {
            holds: Some(false),
            violations: 1_200,
            keys: vec!["w_id 1".to_owned()],
            time_s: 1.5,
            ..Line::new("C8", "History agrees.")
        };
        Report {
            workload: "tpcc",
            title: "TPC-C".to_owned(),
            facts: Vec::new(),
            ledger: Some(ledger),
            lines: vec![holds, Line::new("C11", "Fresh."), broken],
        }
    }

    #[test]
    fn the_table_names_what_is_lost_and_what_is_violated() {
        let text = report().text();
        let expected = "\
TPC-C

Ledger orders of 1 run on mysql://root@db/tpcc

ledger                       count
orders acknowledged          1,234
of these lost                    2
orders of unknown outcome        3
of these committed               1
growth of the order numbers  1,235
of this by others                0
lost: o_w_id 1, o_d_id 2, o_id 3005 does not exist
lost: 1 more

check  verdict   rule             violations     s
C1     holds     Sums agree.               0  0.25
C11    -         Fresh.
C8     violated  History agrees.       1,200  1.50
C8 is violated by: w_id 1
C8: 1,199 more
";
        assert_eq!(text, expected);
        assert_eq!(report().doubt(), None);
        let complaint = report().complaint();
        assert_eq!(
            complaint.as_deref(),
            Some("2 acknowledged orders are lost. Condition C8 is violated.")
        );
    }

    #[test]
    fn json_says_the_same() {
        let value: Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(value["passed"], false);
        assert_eq!(value["ledger"]["first_lost"][0]["o_id"], 3_005);
        assert_eq!(value["conditions"][1]["holds"], Value::Null);
        assert_eq!(value["conditions"][2]["violations"], 1_200);
        let sound = Report { ledger: None, lines: vec![], ..report() };
        assert_eq!(sound.complaint(), None);
    }
}
