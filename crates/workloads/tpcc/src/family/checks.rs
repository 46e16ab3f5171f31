//! Checks before and after a run: the books, the consistency conditions, the audit; with shards, that rows lie
//! where they should and that each shard is consistent for itself.

use crate::Tpcc;
use crate::across::on_each_shard;
use crate::audit::Audit;
use crate::books::{Books, books};
use crate::check::{self, CONDITIONS, Condition, ConditionVerdict, Mode, Stage, check_some};
use crate::facts::{ConditionLine, ConditionState};
use crate::load::{mapped_shards, prove};
use crate::options::CheckTime;
use dyno_core::{AdminDriver, AdminSession, DbError, ShardNode};
use dyno_facts::{CheckVerdict, DataCheck, Message, say};
use dyno_load::settings::adopt;
use dyno_load::{LoadError, default_sessions};
use dyno_runner::databases::{self, stopped};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::output;
use dyno_runner::watch::AskedNodes;

const AUDIT_CHECK: &str = "audit";

/// The verdicts on the conditions, or why there are none.
type Verdicts = Result<Vec<ConditionVerdict>, Message>;

/// What the database held before a run.
#[derive(Debug)]
pub struct Before {
    books: Books,
    verdicts: Verdicts,
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
    let books = read_books(driver)?;
    let verdicts = match is_wanted {
        true => Ok(examine(driver, stage(&books))?),
        false => Err(say!(conditions_unwanted)),
    };
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
    let books = match read_books(driver) {
        Ok(books) => books,
        Err(error) => {
            let mut findings = not_made(before, &reason(&error));
            // What was executed is known without a database.
            findings.checks.retain(|check| check.name != AUDIT_CHECK);
            findings.checks.push(audit_check(workload));
            return findings;
        }
    };
    let verdicts = match is_wanted {
        true => examine(driver, stage(&books)).map_err(|error| reason(&error)),
        false => Err(say!(conditions_unwanted)),
    };
    let mut checks = vec![
        books_check(workload, &before.books, &books),
        audit_check(workload),
        conditions_check(&verdicts),
    ];
    if let Some((_, shards)) = mapped_shards(driver) {
        checks.push(shard_conditions_check(&shards, is_wanted, &books));
    }
    checks.extend(placement_check(driver, is_wanted, before.warehouses));
    Findings {
        checks,
        conditions: lines(before, &verdicts),
        payments_missing: workload.payments_missing(&before.books, &books),
    }
}

/// The findings of a run after which nothing could be checked, with the reason as a sentence.
pub fn not_made(before: &Before, why: &Message) -> Findings {
    let shard_checks = before
        .placement
        .as_ref()
        .map(|_| [DataCheck::SHARD_PLACEMENT, DataCheck::SHARD_CONDITIONS]);
    let names = [DataCheck::BOOKS, AUDIT_CHECK, DataCheck::CONDITIONS];
    let names = names.into_iter().chain(shard_checks.into_iter().flatten());
    Findings {
        checks: names.map(|name| check(name, CheckVerdict::NotMade, why.clone())).collect(),
        conditions: lines(before, &Err(why.clone())),
        payments_missing: 0,
    }
}

fn check(name: &str, verdict: CheckVerdict, evidence: Message) -> DataCheck {
    DataCheck { name: name.to_owned(), verdict, evidence }
}

/// Passed without problems, else failed with them.
fn judge(name: &str, problems: &[Message], passed: impl FnOnce() -> Message) -> DataCheck {
    match problems {
        [] => check(name, CheckVerdict::Passed, passed()),
        problems => check(name, CheckVerdict::Failed, Message::sentences(problems)),
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

fn read_books(driver: &AdminDriver<'_>) -> Result<Books, DbError> {
    databases::run(databases::in_session(driver, async |session| {
        adopt(session).await?;
        books(session).await
    }))
}

fn stage(books: &Books) -> Stage {
    if books.is_fresh() { Stage::Fresh } else { Stage::Used }
}

fn examine(driver: &AdminDriver<'_>, stage: Stage) -> Result<Vec<ConditionVerdict>, DbError> {
    let mode = Mode::usual(driver)?;
    let verdict = |condition: &Condition| {
        let examined = condition.examine(driver, mode)?;
        if let Some(note) = examined.refusal_note() {
            output::talk(&note);
        }
        Ok(examined.verdict)
    };
    CONDITIONS.iter().filter(|condition| condition.applies(stage)).map(verdict).collect()
}

fn books_check(workload: &Tpcc, before: &Books, after: &Books) -> DataCheck {
    let total = workload.acknowledged();
    let cents = total.paid_cents.acknowledged;
    judge(DataCheck::BOOKS, &workload.reconcile(before, after), || {
        say!(
            books_agree,
            orders = total.orders.acknowledged,
            payments = total.payments.acknowledged,
            sum = format!("{}.{:02}", cents / 100, cents % 100),
            delivered = workload.delivered().acknowledged
        )
    })
}

fn audit_check(workload: &Tpcc) -> DataCheck {
    check_of_audit(&workload.audit())
}

fn check_of_audit(audit: &Audit) -> DataCheck {
    let (problems, unjudged) = (audit.problems(), audit.unjudged());
    if problems.is_empty() && audit.orders + audit.deliveries == 0 {
        return check(AUDIT_CHECK, CheckVerdict::NotMade, say!(audit_too_little));
    }
    judge(AUDIT_CHECK, &problems, || match unjudged.is_empty() {
        true => say!(audit_passed),
        false => say!(audit_passed_in_part, unjudged = Message::list(&unjudged)),
    })
}

fn conditions_check(verdicts: &Verdicts) -> DataCheck {
    match verdicts {
        Err(why) => check(DataCheck::CONDITIONS, CheckVerdict::NotMade, why.clone()),
        Ok(verdicts) => {
            let violated = Vec::from_iter(check::violated(verdicts));
            judge(DataCheck::CONDITIONS, &violated, || say!(conditions_hold, n = verdicts.len()))
        }
    }
}

/// Whether every row lies on its shard; `None` where no shards are known, or no rule. It reads all tables, as the
/// conditions do.
fn placement_check(
    driver: &AdminDriver<'_>,
    is_wanted: bool,
    warehouses: u32,
) -> Option<DataCheck> {
    mapped_shards(driver)?;
    let not_made = |why| check(DataCheck::SHARD_PLACEMENT, CheckVerdict::NotMade, why);
    if !is_wanted {
        return Some(not_made(say!(conditions_unwanted)));
    }
    Some(match prove(driver, warehouses, default_sessions(), &AskedNodes) {
        Err(LoadError::Canceled { .. }) => not_made(reason(&stopped())),
        Err(error) => not_made(sentence(&error.to_string()).into()),
        Ok(proof) => {
            let proof = proof?;
            let verdict = match proof.problems.is_empty() {
                true => CheckVerdict::Passed,
                false => CheckVerdict::Failed,
            };
            check(DataCheck::SHARD_PLACEMENT, verdict, proof.message())
        }
    })
}

/// Checks that each shard holds the conditions, and that the books of all add up to those of the endpoint.
fn shard_conditions_check(
    shards: &[ShardNode<AdminDriver<'_>>],
    with_conditions: bool,
    endpoint: &Books,
) -> DataCheck {
    let stage = with_conditions.then_some(stage(endpoint));
    let answers = on_each_shard(shards, async |_, session| look_at_shard(session, stage).await);
    let looks = match answers {
        Ok(looks) => looks,
        Err(error) => {
            let why = sentence(&error.to_string()).into();
            return check(DataCheck::SHARD_CONDITIONS, CheckVerdict::NotMade, why);
        }
    };
    let mut problems = Vec::new();
    let mut sum = Books::default();
    for (node, (books, verdicts)) in shards.iter().zip(&looks) {
        sum.add(books);
        let violated = check::violated(verdicts);
        problems.extend(
            violated.map(|violated| say!(shard_violates, node = &node.name, violated = violated)),
        );
    }
    if sum != *endpoint {
        problems.push(say!(shards_differ_from_endpoint));
    }
    let conditions = looks.first().map_or(0, |(_, verdicts)| verdicts.len());
    judge(DataCheck::SHARD_CONDITIONS, &problems, || {
        say!(shards_hold, shards = looks.len(), n = conditions)
    })
}

/// The books of a shard, and the conditions that it can answer alone: the others are compared through the endpoint.
async fn look_at_shard(
    session: &mut AdminSession<'_>,
    stage: Option<Stage>,
) -> Result<(Books, Vec<ConditionVerdict>), DbError> {
    let books = books(session).await?;
    let verdicts = check_some(session, |condition| {
        stage.is_some_and(|stage| condition.applies(stage)) && !condition.joins_warehouses()
    });
    Ok((books, verdicts.await?))
}

/// True for a check that should have been made and could not: what it would have said is not known.
pub fn is_missing(check: &DataCheck) -> bool {
    let is_wanted = check.name != AUDIT_CHECK && check.evidence != say!(conditions_unwanted);
    check.verdict == CheckVerdict::NotMade && is_wanted
}

fn lines(before: &Before, after: &Verdicts) -> Vec<ConditionLine> {
    let line = |condition: &Condition| ConditionLine {
        id: condition.id.to_owned(),
        rule: condition.rule(),
        before: state(condition, &before.verdicts),
        after: state(condition, after),
    };
    CONDITIONS.iter().map(line).collect()
}

/// `None` where the condition need not hold.
fn state(condition: &Condition, verdicts: &Verdicts) -> Option<ConditionState> {
    let (verdict, evidence) = match verdicts {
        Err(why) if condition.applies(Stage::Used) => (CheckVerdict::NotMade, why.clone()),
        Err(_) => return None,
        Ok(verdicts) => {
            let verdict = verdicts.iter().find(|verdict| verdict.condition == *condition)?;
            match verdict.holds() {
                true => (CheckVerdict::Passed, Message::default()),
                false => (CheckVerdict::Failed, verdict.counted()),
            }
        }
    };
    Some(ConditionState { verdict, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditFigure;

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
        let check = conditions_check(&Ok(verdicts.to_vec()));
        assert_eq!(check.verdict, CheckVerdict::Failed);
        assert_eq!(
            check.evidence,
            "C3 is violated, 1 violation: w 1, d 2. Its rule: The NO_O_ID of a district have no gap. \
             X5 is violated, 7 violations: s_w_id 1; and more. Its rule: S_QUANTITY is between 10 and \
             100."
        );
        assert_eq!(conditions_check(&Ok(verdicts[..1].to_vec())).verdict, CheckVerdict::Passed);
        let refused = conditions_check(&Err("No join.".into()));
        assert_eq!(
            (refused.verdict, &refused.evidence),
            (CheckVerdict::NotMade, &"No join.".into())
        );
        let unwanted = conditions_check(&Err(say!(conditions_unwanted)));
        assert_eq!(unwanted.verdict, CheckVerdict::NotMade);
        assert!(is_missing(&refused) && !is_missing(&unwanted));
        assert!(!is_missing(&conditions_check(&Ok(verdicts.to_vec()))));
    }

    #[test]
    fn an_audit_that_passed_names_what_it_has_not_judged() {
        let figure = |title, verdict| AuditFigure {
            title,
            verdict,
            ..AuditFigure::share(say!(audit_items), (1, 100), 0.01)
        };
        let figures = vec![
            figure(say!(audit_items), CheckVerdict::Passed),
            figure(say!(audit_last_names), CheckVerdict::NotMade),
        ];
        let mut audit = Audit { figures, orders: 100, deliveries: 0, deliveries_with_skips: 0 };
        let passed = |evidence| check(AUDIT_CHECK, CheckVerdict::Passed, evidence);
        let in_part =
            say!(audit_passed_in_part, unjudged = Message::list(&[say!(audit_last_names)]));
        assert_eq!(check_of_audit(&audit), passed(in_part));
        audit.figures.pop();
        assert_eq!(check_of_audit(&audit), passed(say!(audit_passed)));
    }

    #[test]
    fn every_condition_has_a_line_also_where_it_was_not_checked() {
        let before = Before {
            books: Books::default(),
            verdicts: Ok(vec![verdict("C1", &[], 0), verdict("C11", &[], 0)]),
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
        let unwanted = Before { verdicts: Err(say!(conditions_unwanted)), ..before };
        let lines = lines(&unwanted, &Err(say!(conditions_unwanted)));
        assert!(lines.iter().all(|line| line.id == "C11" || line.before.is_some()));
    }

    #[test]
    fn large_databases_are_checked_once() {
        assert_eq!(CheckTime::usual(10), CheckTime::BeforeAndAfter);
        assert_eq!(CheckTime::usual(11), CheckTime::After);
    }
}
