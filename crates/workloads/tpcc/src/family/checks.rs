//! What is checked before and after a run: the books, the consistency conditions, the audit.

use super::shards;
use crate::Tpcc;
use crate::audit::Audit;
use crate::books::{Books, books};
use crate::check::{self, CONDITIONS, Condition, Mode, Stage, joins_within_shards};
use crate::facts::{ConditionLine, ConditionState};
use crate::load::{mapped_shards, prove};
use crate::options::CheckTime;
use dyno_core::{AdminDriver, DbError, Session};
use dyno_facts::{CheckVerdict, DataCheck, Message, say};
use dyno_load::settings::adopt;
use dyno_load::{LoadError, default_sessions};
use dyno_runner::databases::{self, stopped};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::output;
use dyno_runner::watch::AskedNodes;

const AUDIT_CHECK: &str = "audit";

/// What the database held before a run.
#[derive(Debug)]
pub struct Before {
    books: Books,
    /// What was checked; `None` is nothing.
    verdicts: Option<Vec<check::ConditionVerdict>>,
    /// Whether rows lay on their shards, where that can be said.
    placement: Option<DataCheck>,
    when: CheckTime,
    /// Those that are loaded.
    warehouses: u32,
}

impl Before {
    /// The books before the run, which a ledger begins with.
    pub fn books(&self) -> &Books {
        &self.books
    }
}

#[derive(Debug, Default)]
pub struct Findings {
    /// Books, conditions and audit.
    pub checks: Vec<DataCheck>,
    pub conditions: Vec<ConditionLine>,
    /// Payments that were acknowledged and that the history lacks, at least.
    pub payments_missing: u64,
}

/// Reads what the run will be compared with. Nobody may write until it begins.
///
/// # Errors
/// Those of the session; a condition that doesn't hold or rows on wrong shards, with code 4: figures of such
/// a database are worth nothing.
pub fn look_before(
    driver: &AdminDriver<'_>,
    when: CheckTime,
    warehouses: u32,
) -> Result<Before, Failure> {
    let is_wanted = when == CheckTime::BeforeAndAfter;
    announce(is_wanted, warehouses);
    let (books, looked) = look(driver, is_wanted).map_err(|error| Failure::from(&error))?;
    let verdicts = looked.transpose().map_err(|error| Failure::from(&error))?;
    let unusable = |violated: Message| {
        Failure::denied(say!(database_inconsistent, violated = violated))
            .with_hint("Drop the tables and load them again: nothing is measured on these.")
    };
    if let Some(violated) = check::violated(verdicts.iter().flatten()) {
        return Err(unusable(violated));
    }
    let placement = placement_check(driver, is_wanted, warehouses);
    if let Some(failed) = placement.as_ref().filter(|check| check.verdict == CheckVerdict::Failed) {
        return Err(unusable(failed.evidence.clone()));
    }
    Ok(Before { books, verdicts, placement, when, warehouses })
}

/// Compares and checks. Nobody else may have written since [`look_before`].
pub fn look_after(driver: &AdminDriver<'_>, workload: &Tpcc, before: &Before) -> Findings {
    let is_wanted = before.when != CheckTime::Never;
    announce(is_wanted, before.warehouses);
    match look(driver, is_wanted) {
        Ok((books, looked)) => {
            let verdicts = looked.as_ref().map(|looked| looked.as_deref().map_err(reason));
            let mut checks = vec![
                books_check(workload, &before.books, &books),
                audit_check(workload),
                conditions_check(verdicts.as_ref()),
            ];
            let placement = placement_check(driver, is_wanted, before.warehouses);
            if let (Some((map, shards)), Some(placement)) = (mapped_shards(driver), &placement) {
                let is_proven = placement.verdict != CheckVerdict::NotMade;
                checks.push(shards::conditions_check(
                    (&shards, &map),
                    is_wanted,
                    is_proven,
                    &books,
                ));
            }
            checks.extend(placement);
            Findings {
                checks,
                conditions: match verdicts {
                    Some(Err(why)) => lines(before, After::NotMade(&why)),
                    verdicts => lines(before, After::Looked(verdicts.and_then(Result::ok))),
                },
                payments_missing: workload.payments_missing(&before.books, &books),
            }
        }
        Err(error) => {
            let mut findings = not_made(before, &reason(&error));
            // What was executed is known without a database.
            findings.checks.retain(|check| check.name != AUDIT_CHECK);
            findings.checks.push(audit_check(workload));
            findings
        }
    }
}

/// The same for a run after which nothing could be checked, with the reason as a sentence.
pub fn not_made(before: &Before, why: &Message) -> Findings {
    let check = |name: &str| DataCheck {
        name: name.to_owned(),
        verdict: CheckVerdict::NotMade,
        evidence: why.clone(),
    };
    Findings {
        checks: [DataCheck::BOOKS, AUDIT_CHECK, DataCheck::CONDITIONS]
            .into_iter()
            .chain(
                before
                    .placement
                    .iter()
                    .flat_map(|_| [DataCheck::SHARD_PLACEMENT, DataCheck::SHARD_CONDITIONS]),
            )
            .map(check)
            .collect(),
        conditions: lines(before, After::NotMade(why)),
        payments_missing: 0,
    }
}

/// Why something could not be looked at. Errors are English; what the user has done is said in all languages.
fn reason(error: &DbError) -> Message {
    let why = error.to_string();
    if why == databases::STOPPED { say!(check_stopped) } else { sentence(&why).into() }
}

fn announce(is_wanted: bool, warehouses: u32) {
    if is_wanted && CheckTime::usual(warehouses) != CheckTime::BeforeAndAfter {
        output::talk(&format!(
            "The consistency conditions are being checked: that reads all tables of {warehouses} \
             warehouses."
        ));
    }
}

/// The books, and the verdicts on the conditions if they are wanted: without them, books are worth something
/// nevertheless.
type Looked = (Books, Option<Result<Vec<check::ConditionVerdict>, DbError>>);

fn look(driver: &AdminDriver<'_>, with_conditions: bool) -> Result<Looked, DbError> {
    let (books, is_sharded) = databases::run(databases::in_session(driver, async |session| {
        adopt(session).await?;
        let is_sharded = joins_within_shards(&session.product().version);
        Ok::<_, DbError>((books(session).await?, is_sharded))
    }))?;
    let stage = if books.is_fresh() { Stage::Fresh } else { Stage::Used };
    let mode = if is_sharded { Mode::Apart } else { Mode::Joined };
    let verdict = |condition: &Condition| {
        let examined = condition.examine(driver, mode)?;
        if let Some(refusal) = examined.refused {
            output::talk(&format!(
                "note: {}: the database refused to join rows of different warehouses, so they are compared here: {}",
                condition.id,
                sentence(&refusal.to_string())
            ));
        }
        Ok(examined.verdict)
    };
    let conditions = CONDITIONS.iter().filter(|condition| condition.applies(stage));
    Ok((books, with_conditions.then(|| conditions.map(verdict).collect())))
}

fn books_check(workload: &Tpcc, before: &Books, after: &Books) -> DataCheck {
    let problems = workload.reconcile(before, after);
    let total = workload.acknowledged();
    let (verdict, evidence) = match problems.is_empty() {
        true => {
            let cents = total.paid_cents.acknowledged;
            let agree = say!(
                books_agree,
                orders = total.orders.acknowledged,
                payments = total.payments.acknowledged,
                sum = format!("{}.{:02}", cents / 100, cents % 100),
                delivered = workload.delivered().acknowledged
            );
            (CheckVerdict::Passed, agree)
        }
        false => (CheckVerdict::Failed, Message::sentences(&problems)),
    };
    DataCheck { name: DataCheck::BOOKS.to_owned(), verdict, evidence }
}

fn audit_check(workload: &Tpcc) -> DataCheck {
    let (verdict, evidence) = outcome(&workload.audit());
    DataCheck { name: AUDIT_CHECK.to_owned(), verdict, evidence }
}

fn outcome(audit: &Audit) -> (CheckVerdict, Message) {
    let (problems, unjudged) = (audit.problems(), audit.unjudged());
    let done: u64 = audit.orders + audit.deliveries;
    match (problems.is_empty(), done) {
        (true, 0) => (CheckVerdict::NotMade, say!(audit_too_little)),
        (true, _) if unjudged.is_empty() => (CheckVerdict::Passed, say!(audit_passed)),
        (true, _) => {
            let unjudged = Message::list(&unjudged);
            (CheckVerdict::Passed, say!(audit_passed_in_part, unjudged = unjudged))
        }
        (false, _) => (CheckVerdict::Failed, Message::sentences(&problems)),
    }
}

fn conditions_check(verdicts: Option<&Result<&[check::ConditionVerdict], Message>>) -> DataCheck {
    let (verdict, evidence) = match verdicts {
        None => (CheckVerdict::NotMade, say!(conditions_unwanted)),
        Some(Err(why)) => (CheckVerdict::NotMade, why.clone()),
        Some(Ok(verdicts)) => match check::violated(*verdicts) {
            None => (CheckVerdict::Passed, say!(conditions_hold, n = verdicts.len())),
            Some(violated) => (CheckVerdict::Failed, violated),
        },
    };
    DataCheck { name: DataCheck::CONDITIONS.to_owned(), verdict, evidence }
}

/// Whether every row lies on its shard; `None` where no shards are known, or no rule. It reads all tables, as the
/// conditions do.
fn placement_check(
    driver: &AdminDriver<'_>,
    is_wanted: bool,
    warehouses: u32,
) -> Option<DataCheck> {
    mapped_shards(driver)?;
    let proof = is_wanted.then(|| prove(driver, warehouses, default_sessions(), &AskedNodes));
    let (verdict, evidence) = match proof {
        None => (CheckVerdict::NotMade, say!(conditions_unwanted)),
        Some(Err(LoadError::Canceled { .. })) => (CheckVerdict::NotMade, reason(&stopped())),
        Some(Err(error)) => (CheckVerdict::NotMade, sentence(&error.to_string()).into()),
        Some(Ok(proof)) => {
            let proof = proof?;
            let verdict = match proof.problems.is_empty() {
                true => CheckVerdict::Passed,
                false => CheckVerdict::Failed,
            };
            (verdict, proof.message())
        }
    };
    Some(DataCheck { name: DataCheck::SHARD_PLACEMENT.to_owned(), verdict, evidence })
}

/// True for a check that should have been made and could not: what it would have said is not known.
pub fn is_missing(check: &DataCheck) -> bool {
    let is_wanted = check.name != AUDIT_CHECK && check.evidence != say!(conditions_unwanted);
    check.verdict == CheckVerdict::NotMade && is_wanted
}

/// What is known of the time after a run.
enum After<'a> {
    Looked(Option<&'a [check::ConditionVerdict]>),
    NotMade(&'a Message),
}

fn lines(before: &Before, after: After<'_>) -> Vec<ConditionLine> {
    let line = |condition: &Condition| ConditionLine {
        id: condition.id.to_owned(),
        rule: condition.rule(),
        before: state(condition, before.verdicts.as_deref()),
        after: match &after {
            After::Looked(verdicts) => state(condition, *verdicts),
            // A run has used the database.
            After::NotMade(why) => condition.applies(Stage::Used).then(|| not_made_state(why)),
        },
    };
    CONDITIONS.iter().map(line).collect()
}

/// `None` where the condition need not hold.
fn state(
    condition: &Condition,
    verdicts: Option<&[check::ConditionVerdict]>,
) -> Option<ConditionState> {
    let Some(verdicts) = verdicts else {
        return condition.applies(Stage::Used).then(|| not_made_state(&say!(conditions_unwanted)));
    };
    let verdict = verdicts.iter().find(|verdict| verdict.condition == *condition)?;
    Some(match verdict.holds() {
        true => ConditionState { verdict: CheckVerdict::Passed, evidence: Message::default() },
        false => ConditionState { verdict: CheckVerdict::Failed, evidence: verdict.counted() },
    })
}

fn not_made_state(why: &Message) -> ConditionState {
    ConditionState { verdict: CheckVerdict::NotMade, evidence: why.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{LINES_MEAN, Skew};

    fn verdict(id: &str, keys: &[&str], violations: u64) -> check::ConditionVerdict {
        let condition = *CONDITIONS.iter().find(|condition| condition.id == id).unwrap();
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        check::ConditionVerdict { condition, violations, keys }
    }

    #[test]
    fn violated_conditions_are_named_with_their_keys() {
        let verdicts = [
            verdict("C1", &[], 0),
            verdict("C3", &["w 1, d 2"], 1),
            verdict("X5", &["s_w_id 1"], 7),
        ];
        let check = conditions_check(Some(&Ok(&verdicts)));
        assert_eq!(check.verdict, CheckVerdict::Failed);
        assert_eq!(
            check.evidence,
            "C3 is violated, 1 violation: w 1, d 2. Its rule: The NO_O_ID of a district have no gap. \
             X5 is violated, 7 violations: s_w_id 1; and more. Its rule: S_QUANTITY is between 10 and \
             100."
        );
        assert_eq!(conditions_check(Some(&Ok(&verdicts[..1]))).verdict, CheckVerdict::Passed);
        let refused = conditions_check(Some(&Err("No join.".into())));
        assert_eq!(
            (refused.verdict, &refused.evidence),
            (CheckVerdict::NotMade, &"No join.".into())
        );
        assert_eq!(conditions_check(None).verdict, CheckVerdict::NotMade);
        assert!(is_missing(&refused) && !is_missing(&conditions_check(None)));
        assert!(!is_missing(&conditions_check(Some(&Ok(&verdicts)))));
    }

    #[test]
    fn an_audit_that_passed_names_what_it_has_not_judged() {
        let skew = |name, is_judged| Skew {
            name,
            draws: 100,
            distance: 0.0,
            limit: 50.0,
            is_judged,
            is_right: true,
        };
        let mut audit = Audit {
            shares: Vec::new(),
            skews: vec![skew("items", true), skew("last_names", false)],
            is_deck: false,
            orders: 100,
            lines_per_order: LINES_MEAN,
            lines_bound: Some(1.0),
            deliveries: 0,
            skipped_deliveries: 0,
            deliveries_with_skips: 0,
        };
        let (verdict, evidence) = outcome(&audit);
        assert_eq!(verdict, CheckVerdict::Passed);
        assert_eq!(
            evidence,
            "What was judged matches the profile within the limits of chance. Not judged, for too few \
             observations: last names."
        );
        audit.lines_bound = None;
        assert!(outcome(&audit).1.to_string().ends_with(" and last names."));
        audit.lines_bound = Some(1.0);
        audit.skews[1].is_judged = true;
        assert_eq!(outcome(&audit), (CheckVerdict::Passed, say!(audit_passed)));
    }

    #[test]
    fn every_condition_has_a_line_also_where_it_was_not_checked() {
        let before = Before {
            books: Books::default(),
            verdicts: Some(vec![verdict("C1", &[], 0), verdict("C11", &[], 0)]),
            placement: None,
            when: CheckTime::BeforeAndAfter,
            warehouses: 1,
        };
        let findings = not_made(&before, &"The server was gone.".into());
        let line = |id: &str| findings.conditions.iter().find(|line| line.id == id).unwrap();
        assert_eq!(findings.conditions.len(), CONDITIONS.len());
        assert_eq!(line("C1").before.as_ref().unwrap().verdict, CheckVerdict::Passed);
        assert_eq!(line("C1").after.as_ref().unwrap().evidence, "The server was gone.");
        assert_eq!(line("C11").before.as_ref().unwrap().verdict, CheckVerdict::Passed);
        assert_eq!(line("C11").after, None, "it need not hold then");
        assert!(findings.checks.iter().all(|check| check.verdict == CheckVerdict::NotMade));
        let unwanted = Before { verdicts: None, ..before };
        let lines = lines(&unwanted, After::Looked(None));
        assert!(lines.iter().all(|line| line.id == "C11" || line.before.is_some()));
    }

    #[test]
    fn large_databases_are_checked_once() {
        assert_eq!(CheckTime::usual(10), CheckTime::BeforeAndAfter);
        assert_eq!(CheckTime::usual(11), CheckTime::After);
    }
}
