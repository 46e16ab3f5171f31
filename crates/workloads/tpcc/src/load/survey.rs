//! Rows that a database holds, as counts and sums by warehouse: what a load has stored, whether all is there, and
//! whether each row lies on its shard and the endpoint finds it there.
//!
//! Each shard is requested its rows, and so is the endpoint for the warehouses of that shard only: it goes by its own
//! rule then, which may be another one than that of the target.

use super::rows::Chunk;
use super::{mapped_shards, tables};
use crate::schema::{CONFIG, TpccTable};
use dyno_core::{AdminDriver, AdminSession, DbError, ShardMap};
use dyno_facts::{Message, say};
use dyno_load::query::{answer, whole};
use dyno_load::{LoadError, LoadObserver, LoadSessions, doing, while_doing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

const LISTED: usize = 5;

/// Count, the count of each chunk if there are several, and on shards two sums, by warehouse; for the configuration,
/// values by their names.
type Tally = BTreeMap<String, Vec<String>>;

/// Asked of a shard, or of the endpoint for what lies there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    table: &'static str,
    /// `None` at the endpoint for all warehouses, and for a table that is the same on all shards.
    shard: Option<usize>,
    asks_endpoint: bool,
}

/// Columns whose sums are compared.
fn summed(table: TpccTable) -> &'static str {
    match table {
        TpccTable::Item => "sum(i_price), sum(i_im_id)",
        TpccTable::Warehouse => "sum(w_ytd), sum(w_tax)",
        TpccTable::District => "sum(d_ytd), sum(d_next_o_id)",
        TpccTable::Customer => "sum(c_balance), sum(c_payment_cnt)",
        TpccTable::History => "sum(h_amount), sum(h_c_id)",
        TpccTable::Order => "sum(o_ol_cnt), sum(o_c_id)",
        TpccTable::NewOrder => "sum(no_o_id), sum(no_d_id)",
        TpccTable::Stock => "sum(s_quantity), sum(s_ytd)",
        TpccTable::OrderLine => "sum(ol_amount), sum(ol_quantity)",
    }
}

/// Asks for the cells of a [`Tally`]. `only` are the warehouses that are requested.
fn tally_sql(table: TpccTable, has_sums: bool, only: Option<&[u32]>) -> String {
    let name = table.name();
    let parts = table.parts().into_iter();
    let parts = parts.map(|part| format!("sum(CASE WHEN {part} THEN 1 ELSE 0 END)"));
    let sums = has_sums.then(|| summed(table).to_owned());
    let counts = ["count(*)".to_owned()].into_iter().chain(parts).chain(sums);
    let counts = counts.collect::<Vec<_>>().join(", ");
    let Some(column) = table.warehouse_column() else {
        return format!("SELECT 0, {counts} FROM {name}");
    };
    let only = only.map_or(String::new(), |only| {
        let only: Vec<String> = only.iter().map(u32::to_string).collect();
        format!(" WHERE {column} IN ({})", only.join(", "))
    });
    format!("SELECT {column}, {counts} FROM {name}{only} GROUP BY {column}")
}

/// Returns a number as every server writes it: without zeros at the end of `10.50`; `NULL` without a value.
fn normalize_number(cell: Option<String>) -> String {
    let Some(text) = cell else { return "NULL".to_owned() };
    if text.contains('.') && text.parse::<f64>().is_ok() {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

async fn read_tally(session: &mut AdminSession<'_>, sql: &str) -> Result<Tally, DbError> {
    let answer = answer(session, sql).await?;
    let tally = answer.rows.into_iter().map(|row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(normalize_number);
        (cells.next().unwrap_or_default(), cells.collect())
    });
    Ok(tally.collect())
}

/// The questions to a shard, or to the endpoint if `place` is `None`.
fn questions(
    tables: &[TpccTable],
    map: Option<&ShardMap>,
    warehouses: u32,
    place: Option<usize>,
) -> Vec<(Question, String)> {
    let asks_endpoint = place.is_none();
    let mut questions = Vec::new();
    for &table in tables {
        let name = table.name();
        match (map, place) {
            (Some(map), None) if table.warehouse_column().is_some() => {
                for shard in 0..map.shards() {
                    let mut on_shard: Vec<u32> = (1..=warehouses).collect();
                    on_shard.retain(|warehouse| map.shard_of(*warehouse) == shard);
                    if !on_shard.is_empty() {
                        let sql = tally_sql(table, true, Some(&on_shard));
                        let question = Question { table: name, shard: Some(shard), asks_endpoint };
                        questions.push((question, sql));
                    }
                }
            }
            _ => {
                let question = Question { table: name, shard: place, asks_endpoint };
                questions.push((question, tally_sql(table, map.is_some(), None)));
            }
        }
    }
    if map.is_some() && tables.contains(&TpccTable::Item) {
        let question = Question { table: CONFIG, shard: place, asks_endpoint };
        questions.push((question, format!("SELECT cfg_name, cfg_value FROM {CONFIG}")));
    }
    questions
}

/// The rows of some tables, as each place counts them.
#[derive(Debug)]
pub(super) struct Survey {
    /// `None` if no shards are known, or no rule.
    map: Option<ShardMap>,
    names: Vec<String>,
    warehouses: u32,
    answers: BTreeMap<Question, Tally>,
}

impl Survey {
    /// Counts the rows of a database. There must be no writers meanwhile. Must not be called within an
    /// event loop.
    ///
    /// # Errors
    /// Errors of sessions; a shard can't be queried.
    pub(super) fn read(
        driver: &AdminDriver<'_>,
        tables_wanted: &[TpccTable],
        (warehouses, sessions): (u32, u32),
        observer: &dyn LoadObserver,
    ) -> Result<Survey, LoadError> {
        let (map, nodes) = mapped_shards(driver).unzip();
        let nodes = nodes.unwrap_or_default();
        let at_endpoint = questions(tables_wanted, map.as_ref(), warehouses, None);
        let at_shards: Vec<_> = (0..nodes.len())
            .map(|shard| questions(tables_wanted, map.as_ref(), warehouses, Some(shard)))
            .collect();
        let mut places = vec![(driver, at_endpoint.as_slice())];
        places.extend(
            nodes.iter().zip(&at_shards).map(|(node, questions)| (&node.driver, &questions[..])),
        );
        let answers = Mutex::new(BTreeMap::new());
        LoadSessions::new(driver, observer, sessions).each_at(
            &places,
            async |session| tables(session).await,
            async |session, tables, (question, sql)| {
                // A copy that a shard has not: perhaps none has one.
                if !question.asks_endpoint && !tables.contains(question.table) {
                    return Ok(());
                }
                let place = match (question.shard, question.asks_endpoint) {
                    (Some(shard), false) => format!("the shard {}", nodes[shard].name),
                    _ => "the endpoint".to_owned(),
                };
                let counting = format!("counting the rows of {} on {place}", question.table);
                doing(&*counting);
                let tally = read_tally(session, sql).await.map_err(while_doing(counting))?;
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.insert(question.clone(), tally);
                Ok(())
            },
        )?;
        let answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let names = nodes.into_iter().map(|node| node.name).collect();
        Ok(Survey { map, names, warehouses, answers })
    }

    fn find_tally(
        &self,
        table: &'static str,
        shard: Option<usize>,
        asks_endpoint: bool,
    ) -> Option<&Tally> {
        self.answers.get(&Question { table, shard, asks_endpoint })
    }

    /// Rows of a chunk that are stored on a shard, or at the endpoint if `shard` is `None`.
    pub(super) fn stored(&self, chunk: &Chunk, shard: Option<usize>) -> u64 {
        let tally = self.find_tally(chunk.table.name(), shard, shard.is_none());
        let cells = tally.and_then(|tally| tally.get(&chunk.warehouse.to_string()));
        let place = if chunk.table.parts().is_empty() { 0 } else { 1 + chunk.part as usize };
        cells.and_then(|cells| whole(cells.get(place)?)).unwrap_or(0)
    }

    /// The proof that rows lie on the right shards; `None` without shards.
    pub(super) fn proof(&self) -> Option<ShardProof> {
        let map = self.map.as_ref()?;
        let (mut problems, mut rows) = (Vec::new(), 0);
        for table in TpccTable::ALL.into_iter().filter(|table| table.warehouse_column().is_some()) {
            for shard in 0..self.names.len() {
                problems.extend(self.problems(map, table.name(), shard));
                let tally = self.find_tally(table.name(), Some(shard), true);
                rows += tally
                    .into_iter()
                    .flat_map(Tally::values)
                    .map(|cells| row_count(cells))
                    .sum::<u64>();
            }
        }
        for table in [TpccTable::Item.name(), CONFIG] {
            problems.extend(self.problems_of_copies(table));
        }
        let problem_count = problems.len();
        problems.truncate(LISTED);
        Some(ShardProof { problems, found: problem_count, rows, map: map.clone() })
    }

    /// Rows that lie on a shard and belong to another, and what the endpoint does not find as it lies there.
    fn problems(&self, map: &ShardMap, table: &'static str, shard: usize) -> Vec<Message> {
        let none = Tally::new();
        let [held, seen] = [false, true].map(|asks_endpoint| {
            self.find_tally(table, Some(shard), asks_endpoint).unwrap_or(&none)
        });
        let name = &self.names[shard];
        let warehouses: BTreeSet<&String> = held.keys().chain(seen.keys()).collect();
        let problems = warehouses.into_iter().filter_map(|warehouse| {
            let number =
                warehouse.parse().ok().filter(|number| (1..=self.warehouses).contains(number));
            let owner = number.map(|number: u32| map.shard_of(number));
            let (held, seen) = (held.get(warehouse), seen.get(warehouse));
            match held {
                Some(cells) if owner != Some(shard) => Some(say!(
                    row_misplaced,
                    table,
                    shard = name,
                    n = row_count(cells),
                    warehouse,
                    other = owner.map_or_else(|| say!(no_shard), |at| (&self.names[at]).into())
                )),
                _ if held == seen => None,
                _ => Some(say!(
                    shard_unseen,
                    table,
                    shard = name,
                    warehouse,
                    held = describe_rows(held),
                    seen = describe_rows(seen)
                )),
            }
        });
        problems.collect()
    }

    fn problems_of_copies(&self, table: &'static str) -> Vec<Message> {
        let copies: Vec<_> =
            (0..self.names.len()).map(|shard| self.find_tally(table, Some(shard), false)).collect();
        // A table that no shard has is the endpoint's own.
        if copies.iter().all(Option::is_none) {
            return Vec::new();
        }
        let at_endpoint = self.find_tally(table, None, true);
        let unlike = copies.iter().zip(&self.names).filter(|(copy, _)| **copy != at_endpoint);
        unlike.map(|(_, name)| say!(copy_differs, table, shard = name)).collect()
    }
}

/// `30000 rows with the sums 1, 2`.
fn describe_rows(cells: Option<&Vec<String>>) -> Message {
    let sums = cells.and_then(|cells| cells.split_last_chunk::<2>());
    match cells.zip(sums) {
        Some((cells, (_, sums))) => {
            say!(rows_with_sums, n = row_count(cells), sums = sums.join(", "))
        }
        None => say!(no_row),
    }
}

fn row_count(cells: &[String]) -> u64 {
    cells.first().and_then(|cell| cell.parse().ok()).unwrap_or(0)
}

#[derive(Debug)]
pub struct ShardProof {
    /// The first few problems, in sentences.
    pub problems: Vec<Message>,
    pub found: usize,
    /// Rows that the endpoint sees of the warehouses.
    pub rows: u64,
    map: ShardMap,
}

impl ShardProof {
    /// The result, in a sentence or several.
    pub fn message(&self) -> Message {
        if self.problems.is_empty() {
            let rule = self.map.rule().to_string();
            return say!(shards_proven, rows = self.rows, shards = self.map.shards(), rule);
        }
        let unlisted = self.found - self.problems.len();
        let unlisted = (unlisted > 0).then(|| say!(shards_more, n = unlisted));
        Message::sentences(&self.problems.iter().cloned().chain(unlisted).collect::<Vec<_>>())
    }
}

/// Proves that the rows of a database lie on their shards; `None` if no shards are known, or no rule. There must be no
/// writers meanwhile. Must not be called within an event loop.
///
/// # Errors
/// Errors of sessions; a shard can't be queried.
pub fn prove(
    driver: &AdminDriver<'_>,
    warehouses: u32,
    sessions: u32,
    observer: &dyn LoadObserver,
) -> Result<Option<ShardProof>, LoadError> {
    if mapped_shards(driver).is_none() {
        return Ok(None);
    }
    let survey = Survey::read(driver, &TpccTable::ALL, (warehouses, sessions), observer)?;
    Ok(survey.proof())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_core::ShardRule;

    fn new_tally(rows: &[(u32, u64, u64)]) -> Tally {
        let rows = rows.iter().map(|&(warehouse, count, sum)| {
            (warehouse.to_string(), vec![count.to_string(), sum.to_string(), "7".to_owned()])
        });
        rows.collect()
    }

    /// Two shards with three warehouses, where `change` was done to what is right.
    fn proof(change: impl FnOnce(&mut BTreeMap<Question, Tally>)) -> ShardProof {
        let mut answers = BTreeMap::new();
        for table in TpccTable::ALL.into_iter().filter(|table| table.warehouse_column().is_some()) {
            for asks_endpoint in [false, true] {
                for (shard, rows) in [(0, &[(2, 10, 50)][..]), (1, &[(1, 10, 50), (3, 9, 45)])] {
                    answers
                        .insert(question_on(table.name(), shard, asks_endpoint), new_tally(rows));
                }
            }
        }
        for table in [TpccTable::Item.name(), CONFIG] {
            for (shard, asks_endpoint) in [(None, true), (Some(0), false), (Some(1), false)] {
                let question = Question { table, shard, asks_endpoint };
                answers.insert(question, new_tally(&[(1, 100, 5)]));
            }
        }
        change(&mut answers);
        let map = ShardMap::new(ShardRule::Modulo, 2).unwrap();
        let names = ["n1", "n2"].map(str::to_owned).into();
        Survey { map: Some(map), names, warehouses: 3, answers }.proof().expect("shards")
    }

    fn question_on(table: &'static str, shard: usize, asks_endpoint: bool) -> Question {
        Question { table, shard: Some(shard), asks_endpoint }
    }

    fn assert_only_problem(proof: &ShardProof, expected: &str) {
        assert_eq!((proof.found, proof.message().to_string()), (1, expected.to_owned()));
    }

    #[test]
    fn what_lies_where_it_should_is_proven() {
        let sound = proof(|_| {});
        assert_eq!((sound.found, sound.rows), (0, 8 * 29));
        assert_eq!(
            sound.message(),
            "Every row lies on its shard by the rule `modulo`, and the endpoint finds each of the 232 rows of the \
             warehouses on the 2 shards."
        );
        // Catalog and configuration may be the endpoint's own.
        let endpoint_only = proof(|answers| {
            answers.retain(|question, _| question.asks_endpoint || question.table != "bmsql_item");
        });
        assert_eq!(endpoint_only.found, 0);
    }

    #[test]
    fn a_row_on_another_shard_is_named() {
        let moved = proof(|answers| {
            answers
                .insert(question_on("bmsql_stock", 0, false), new_tally(&[(2, 10, 50), (3, 1, 5)]));
        });
        assert_only_problem(
            &moved,
            "bmsql_stock: the shard n1 has 1 row of warehouse 3, which lies on n2.",
        );
        let strange = proof(|answers| {
            answers
                .insert(question_on("bmsql_stock", 0, false), new_tally(&[(2, 10, 50), (4, 2, 5)]));
        });
        assert_only_problem(
            &strange,
            "bmsql_stock: the shard n1 has 2 rows of warehouse 4, which lies on no shard.",
        );
    }

    #[test]
    fn what_the_endpoint_does_not_find_is_named() {
        let unseen = proof(|answers| {
            answers.insert(question_on("bmsql_stock", 1, true), new_tally(&[(1, 10, 50)]));
        });
        assert_only_problem(
            &unseen,
            "bmsql_stock, warehouse 3: the shard n2 has 9 rows with the sums 45, 7, and the endpoint finds no row.",
        );
        let other_sums = proof(|answers| {
            answers.insert(question_on("bmsql_stock", 0, false), new_tally(&[(2, 10, 51)]));
        });
        assert!(other_sums.message().to_string().contains("the sums 51, 7, and"), "{other_sums:?}");
        let empty = proof(|answers| {
            answers.insert(question_on("bmsql_stock", 0, false), new_tally(&[]));
        });
        assert!(empty.message().to_string().contains("the shard n1 has no row"), "{empty:?}");
        let copy = proof(|answers| {
            answers.insert(question_on("bmsql_item", 1, false), new_tally(&[(1, 99, 5)]));
        });
        assert_only_problem(
            &copy,
            "bmsql_item on the shard n2 differs from what the endpoint shows.",
        );
    }

    #[test]
    fn the_endpoint_is_asked_for_warehouses_and_sums_are_compared_as_numbers() {
        assert_eq!(
            tally_sql(TpccTable::Customer, true, Some(&[1, 5])),
            "SELECT c_w_id, count(*), sum(CASE WHEN c_d_id BETWEEN 1 AND 5 THEN 1 ELSE 0 END), sum(CASE WHEN c_d_id \
             BETWEEN 6 AND 10 THEN 1 ELSE 0 END), sum(c_balance), sum(c_payment_cnt) FROM bmsql_customer WHERE c_w_id \
             IN (1, 5) GROUP BY c_w_id"
        );
        assert_eq!(
            ["10.50", "10.5", "10.00", "100", "1a.0"]
                .map(|text| normalize_number(Some(text.to_owned()))),
            ["10.5", "10.5", "10", "100", "1a.0"]
        );
    }

    #[test]
    fn rows_of_chunks_are_counted_one_by_one() {
        let cells = ["60000", "25000", "24999", "10001", "0"].map(str::to_owned);
        let question = Question { table: "bmsql_stock", shard: None, asks_endpoint: true };
        let tally = Tally::from([("2".to_owned(), cells.to_vec())]);
        let answers = BTreeMap::from([(question, tally)]);
        let survey = Survey { map: None, names: Vec::new(), warehouses: 2, answers };
        for (warehouse, part, stored) in
            [(2, 0, 25_000), (2, 1, 24_999), (2, 2, 10_001), (2, 3, 0), (1, 0, 0)]
        {
            let chunk = Chunk { table: TpccTable::Stock, warehouse, part };
            assert_eq!(survey.stored(&chunk, None), stored, "{chunk:?}");
        }
        assert!(survey.proof().is_none());
    }
}
