//! Checks before a thousand sessions are opened, and before and after a run: the books, the
//! consistency conditions, the audit; with shards, that rows lie on the right shards and that each shard is
//! consistent for itself.

use crate::across::on_each_shard;
use crate::audit::Audit;
use crate::check::{self, CONDITIONS, Condition, ConditionVerdict, Stage};
use crate::facts::{ConditionLine, ConditionState};
use crate::load::{foreign_keys, mapped_shards, prove};
use crate::options::CheckTime;
use crate::settle::{Books, books};
use crate::{Isolation, Tpcc, prepared_statements};
use dyno_core::{AdminDriver, AdminSession, DbError, Dialect, ShardNode, is_shardingsphere};
use dyno_facts::{CheckVerdict, DataCheck, Message, say};
use dyno_load::query::check_prepared;
use dyno_load::settings::{ServerNeed, adopt};
use dyno_load::{LoadErrorKind, default_sessions};
use dyno_runner::databases::{self, stopped};
use dyno_runner::failure::{Failure, sentence};
use dyno_runner::output;
use dyno_runner::watch::AskedNodes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// The isolation that sessions ask for; `None` is what is usual for the dialect.
    pub isolation: Option<Isolation>,
    /// Warnings for the user, in sentences.
    pub warnings: Vec<String>,
}

/// The needs of a trial at the isolation that is requested.
pub fn trial_needs(isolation: Option<Isolation>) -> &'static [ServerNeed] {
    match isolation {
        None | Some(Isolation::ReadCommitted) => {
            &[ServerNeed::WHOLE_ANSWERS, ServerNeed::READ_COMMITTED_WRITES]
        }
        _ => &[ServerNeed::WHOLE_ANSWERS],
    }
}

/// Inspects a loaded database and its server, for a number of sessions that ask for this isolation (`None` is what is
/// usual for the dialect), and for tables with or without foreign keys.
///
/// # Errors
/// The server's limits are too low; the session failed.
pub async fn preflight(
    session: &mut AdminSession<'_>,
    sessions: u32,
    isolation: Option<Isolation>,
    wants_foreign_keys: bool,
) -> Result<Preflight, Failure> {
    let dialect = session.dialect();
    let per_session = prepared_statements(dialect).into();
    check_prepared(session, sessions, per_session, "or use fewer sessions").await?;
    let keys = foreign_keys(session).await?;
    let is_passed_on = !is_shardingsphere(&session.product().version);
    let warnings = [
        about_foreign_keys(keys, wants_foreign_keys),
        about_isolation(dialect, is_passed_on, isolation),
    ];
    // The target's own level stays, unless another one is requested.
    let is_set_by_url = isolation.is_none()
        && ["transaction_isolation", "tx_isolation"]
            .iter()
            .any(|name| session.is_set_by_target(name));
    let isolation =
        if is_passed_on && !is_set_by_url { isolation } else { Some(Isolation::ServerDefault) };
    Ok(Preflight { isolation, warnings: warnings.into_iter().flatten().collect() })
}

fn about_foreign_keys(found: usize, wanted: bool) -> Option<String> {
    ((found > 0) != wanted).then(|| {
        format!(
            "The tables have {found} foreign keys, which are made at the end of a load only and which every transaction \
             pays for: compare the figures only with those of databases that have as many."
        )
    })
}

/// ShardingSphere-Proxy takes the level that a session asks for and does not pass it on: its sessions at the shards
/// keep theirs. SQLite has one level.
fn about_isolation(
    dialect: Dialect,
    is_passed_on: bool,
    requested: Option<Isolation>,
) -> Option<String> {
    let level = requested?.name()?;
    let is_available = dialect != Dialect::Sqlite || requested == Some(Isolation::Serializable);
    (!is_passed_on || !is_available).then(|| {
        format!("The option `isolation` ({level}) does not count: this server keeps its own level.")
    })
}

const AUDIT_CHECK: &str = "audit";

/// The verdicts on the conditions, or why there are none.
type Verdicts = Result<Vec<ConditionVerdict>, Message>;

/// Content of the database before a run.
#[derive(Debug)]
pub struct Before {
    /// A ledger begins with them.
    pub books: Books,
    verdicts: Verdicts,
    /// Placement of rows on their shards, if known.
    placement: Option<DataCheck>,
    when: CheckTime,
    /// Number of warehouses that are loaded.
    warehouses: u32,
}

#[derive(Debug, Default)]
pub struct Findings {
    pub checks: Vec<DataCheck>,
    pub conditions: Vec<ConditionLine>,
    /// Payments that were acknowledged and that the history lacks, at least.
    pub payments_missing: u64,
}

/// Reads what the run will be compared with. No one may write until it begins.
///
/// # Errors
/// Errors of the session; a condition that doesn't hold or rows on wrong shards, with code 4: figures of such
/// a database are worth nothing.
pub fn look_before(
    driver: &AdminDriver<'_>,
    when: CheckTime,
    warehouses: u32,
) -> Result<Before, Failure> {
    let is_wanted = when == CheckTime::BeforeAndAfter;
    announce_conditions(is_wanted, warehouses);
    let books = read_books(driver)?;
    let verdicts = examine_conditions(driver, is_wanted, &books)?;
    let placement = placement_check(driver, is_wanted, warehouses);
    let misplaced = placement.as_ref().filter(|check| check.verdict == CheckVerdict::Failed);
    let violated = check::violated(verdicts.iter().flatten());
    match violated.or(misplaced.map(|check| check.evidence.clone())) {
        None => Ok(Before { books, verdicts, placement, when, warehouses }),
        Some(violated) => Err(Failure::denied(say!(database_inconsistent, violated))
            .with_hint("Drop the tables and load them again: nothing is measured on these.")),
    }
}

/// Compares and checks. No one else may have written since [`look_before`].
pub fn look_after(driver: &AdminDriver<'_>, workload: &Tpcc, before: &Before) -> Findings {
    let is_wanted = before.when != CheckTime::Never;
    announce_conditions(is_wanted, before.warehouses);
    // What was executed is known without a database.
    let audit = audit_check(&workload.audit());
    let books = match read_books(driver) {
        Ok(books) => books,
        Err(error) => {
            let mut findings = not_made(before, &reason(&error));
            findings.checks.retain(|check| check.name != AUDIT_CHECK);
            findings.checks.push(audit);
            return findings;
        }
    };
    let verdicts =
        examine_conditions(driver, is_wanted, &books).unwrap_or_else(|error| Err(reason(&error)));
    let mut checks =
        vec![books_check(workload, &before.books, &books), audit, conditions_check(&verdicts)];
    if let Some((_, shards)) = mapped_shards(driver) {
        checks.push(shard_conditions_check(&shards, is_wanted, &books));
    }
    checks.extend(placement_check(driver, is_wanted, before.warehouses));
    // One of unknown outcome may make up for a lost one.
    let payments = workload.acknowledged().payments.acknowledged;
    let payments_missing = payments.saturating_sub(books.history_grew_by(&before.books));
    Findings { checks, conditions: condition_lines(before, &verdicts), payments_missing }
}

/// The findings of a run after which nothing could be checked, with the reason as a sentence.
pub fn not_made(before: &Before, why: &Message) -> Findings {
    let mut names = vec![DataCheck::BOOKS, AUDIT_CHECK, DataCheck::CONDITIONS];
    if before.placement.is_some() {
        names.extend([DataCheck::SHARD_PLACEMENT, DataCheck::SHARD_CONDITIONS]);
    }
    let checks = names.into_iter().map(|name| data_check(name, CheckVerdict::NotMade, why.clone()));
    Findings {
        checks: checks.collect(),
        conditions: condition_lines(before, &Err(why.clone())),
        payments_missing: 0,
    }
}

pub(crate) fn data_check(name: &str, verdict: CheckVerdict, evidence: Message) -> DataCheck {
    DataCheck { name: name.to_owned(), verdict, evidence }
}

/// Passed without problems, else failed with them.
fn judge(name: &str, problems: &[Message], passed: impl FnOnce() -> Message) -> DataCheck {
    match problems {
        [] => data_check(name, CheckVerdict::Passed, passed()),
        problems => data_check(name, CheckVerdict::Failed, Message::sentences(problems)),
    }
}

/// Reason why something could not be inspected. Errors are English; what the user has done is translated.
fn reason(error: &DbError) -> Message {
    let text = error.to_string();
    if text == databases::STOPPED { say!(check_stopped) } else { sentence(&text).into() }
}

fn announce_conditions(is_wanted: bool, warehouses: u32) {
    if is_wanted && CheckTime::usual(warehouses) != CheckTime::BeforeAndAfter {
        output::talk(&format!(
            "The consistency conditions are being checked: that reads all tables of {warehouses} \
             warehouses, and takes about {} min.",
            CheckTime::minutes(warehouses)
        ));
    }
}

fn read_books(driver: &AdminDriver<'_>) -> Result<Books, DbError> {
    databases::run(databases::in_session(driver, async |session| {
        adopt(session).await?;
        books(session).await
    }))
}

fn data_stage(books: &Books) -> Stage {
    if books.is_fresh() { Stage::Fresh } else { Stage::Used }
}

fn examine_conditions(
    driver: &AdminDriver<'_>,
    is_wanted: bool,
    books: &Books,
) -> Result<Verdicts, DbError> {
    if !is_wanted {
        return Ok(Err(say!(conditions_unwanted)));
    }
    let stage = data_stage(books);
    let conditions = CONDITIONS.iter().filter(|condition| condition.applies(stage));
    conditions.map(|condition| condition.examine(driver, false)).collect::<Result<_, _>>().map(Ok)
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
            delivered = total.delivered.acknowledged
        )
    })
}

fn audit_check(audit: &Audit) -> DataCheck {
    let (problems, unjudged) = (audit.problems(), audit.unjudged());
    if problems.is_empty() && audit.orders + audit.deliveries == 0 {
        return data_check(AUDIT_CHECK, CheckVerdict::NotMade, say!(audit_too_little));
    }
    judge(AUDIT_CHECK, &problems, || {
        if unjudged.is_empty() {
            say!(audit_passed)
        } else {
            say!(audit_passed_in_part, unjudged = Message::list(&unjudged))
        }
    })
}

fn conditions_check(verdicts: &Verdicts) -> DataCheck {
    match verdicts {
        Err(why) => data_check(DataCheck::CONDITIONS, CheckVerdict::NotMade, why.clone()),
        Ok(verdicts) => {
            let violated = Vec::from_iter(check::violated(verdicts));
            judge(DataCheck::CONDITIONS, &violated, || say!(conditions_hold, n = verdicts.len()))
        }
    }
}

/// Checks that every row lies on its shard; `None` if no shards are known, or no rule. It reads all tables, as the
/// conditions do.
fn placement_check(
    driver: &AdminDriver<'_>,
    is_wanted: bool,
    warehouses: u32,
) -> Option<DataCheck> {
    mapped_shards(driver)?;
    let (verdict, evidence): (CheckVerdict, Message) = if is_wanted {
        match prove(driver, warehouses, default_sessions(), &AskedNodes) {
            Err(error) if error.kind == LoadErrorKind::Canceled => {
                (CheckVerdict::NotMade, reason(&stopped()))
            }
            Err(error) => (CheckVerdict::NotMade, sentence(&error.to_string()).into()),
            Ok(proof) => {
                let proof = proof?;
                let is_proven = proof.problems.is_empty();
                let verdict = if is_proven { CheckVerdict::Passed } else { CheckVerdict::Failed };
                (verdict, proof.message())
            }
        }
    } else {
        (CheckVerdict::NotMade, say!(conditions_unwanted))
    };
    Some(data_check(DataCheck::SHARD_PLACEMENT, verdict, evidence))
}

/// Checks that each shard holds the conditions that it can answer alone (the others are compared through the endpoint),
/// and that the books of all add up to those of the endpoint.
fn shard_conditions_check(
    shards: &[ShardNode<AdminDriver<'_>>],
    with_conditions: bool,
    endpoint: &Books,
) -> DataCheck {
    let stage = data_stage(endpoint);
    let answers = on_each_shard(shards, async |_, session| {
        let books = books(session).await?;
        let verdicts = check::check(session, |condition: &Condition| {
            with_conditions && condition.applies(stage) && !condition.joins_warehouses()
        });
        Ok((books, verdicts.await?))
    });
    let shard_answers = match answers {
        Ok(shard_answers) => shard_answers,
        Err(error) => {
            let reason = sentence(&error.to_string()).into();
            return data_check(DataCheck::SHARD_CONDITIONS, CheckVerdict::NotMade, reason);
        }
    };
    let mut problems = Vec::new();
    let mut sum = Books::default();
    for (node, (books, verdicts)) in shards.iter().zip(&shard_answers) {
        sum.add(books);
        let violated = check::violated(verdicts);
        problems.extend(violated.map(|violated| say!(shard_violates, node = &node.name, violated)));
    }
    if sum != *endpoint {
        problems.push(say!(shards_differ_from_endpoint));
    }
    let conditions = shard_answers.first().map_or(0, |(_, verdicts)| verdicts.len());
    judge(DataCheck::SHARD_CONDITIONS, &problems, || {
        say!(shards_hold, shards = shard_answers.len(), n = conditions)
    })
}

/// Returns true for a check that should have been made and could not: what it would have said is not known.
pub fn is_missing(check: &DataCheck) -> bool {
    let is_wanted = check.name != AUDIT_CHECK && check.evidence != say!(conditions_unwanted);
    check.verdict == CheckVerdict::NotMade && is_wanted
}

fn condition_lines(before: &Before, after: &Verdicts) -> Vec<ConditionLine> {
    let lines = CONDITIONS.iter().map(|condition| ConditionLine {
        id: condition.id.to_owned(),
        rule: condition.rule(),
        before: condition_state(condition, &before.verdicts),
        after: condition_state(condition, after),
    });
    lines.collect()
}

/// `None` if the condition need not hold.
fn condition_state(condition: &Condition, verdicts: &Verdicts) -> Option<ConditionState> {
    let (verdict, evidence) = match verdicts {
        Err(why) if condition.applies(Stage::Used) => (CheckVerdict::NotMade, why.clone()),
        Err(_) => return None,
        Ok(verdicts) => {
            let verdict = verdicts.iter().find(|verdict| verdict.condition == *condition)?;
            if verdict.holds() {
                (CheckVerdict::Passed, Message::default())
            } else {
                (CheckVerdict::Failed, verdict.describe_violations())
            }
        }
    };
    Some(ConditionState { verdict, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditFigure;
    use crate::facts::AuditLine;

    fn verdict_on(id: &str, keys: &[&str], violations: u64) -> check::ConditionVerdict {
        let condition = *CONDITIONS.iter().find(|condition| condition.id == id).unwrap();
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        check::ConditionVerdict { condition, violations, keys, is_apart: false }
    }

    #[test]
    fn violated_conditions_are_named_with_their_keys() {
        let verdicts = [
            verdict_on("C1", &[], 0),
            verdict_on("C3", &["w 1, d 2"], 1),
            verdict_on("X5", &["s_w_id 1"], 7),
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
        let failed = conditions_check(&Err("No join.".into()));
        assert_eq!((failed.verdict, &failed.evidence), (CheckVerdict::NotMade, &"No join.".into()));
        let unwanted = conditions_check(&Err(say!(conditions_unwanted)));
        assert_eq!(unwanted.verdict, CheckVerdict::NotMade);
        assert!(is_missing(&failed) && !is_missing(&unwanted));
        assert!(!is_missing(&conditions_check(&Ok(verdicts.to_vec()))));
    }

    #[test]
    fn an_audit_that_passed_names_what_it_has_not_judged() {
        let lines = [
            (say!(audit_items), CheckVerdict::Passed),
            (say!(audit_last_names), CheckVerdict::NotMade),
        ];
        let figures = lines.map(|(name, verdict)| {
            let figure = AuditFigure::share(say!(audit_items), [100, 1], 0.01);
            AuditFigure { line: AuditLine { name, verdict, ..figure.line.clone() }, ..figure }
        });
        let mut audit =
            Audit { figures: figures.into(), orders: 100, deliveries: 0, deliveries_with_skips: 0 };
        let in_part =
            say!(audit_passed_in_part, unjudged = Message::list(&[say!(audit_last_names)]));
        assert_eq!(audit_check(&audit), data_check(AUDIT_CHECK, CheckVerdict::Passed, in_part));
        audit.figures.pop();
        let audit_result = say!(audit_passed);
        assert_eq!(
            audit_check(&audit),
            data_check(AUDIT_CHECK, CheckVerdict::Passed, audit_result)
        );
    }

    #[test]
    fn every_condition_has_a_line_also_where_it_was_not_checked() {
        let before = Before {
            books: Books::default(),
            verdicts: Ok(vec![verdict_on("C1", &[], 0), verdict_on("C11", &[], 0)]),
            placement: None,
            when: CheckTime::BeforeAndAfter,
            warehouses: 1,
        };
        let findings = not_made(&before, &"The server was gone.".into());
        let [c1, c11] =
            ["C1", "C11"].map(|id| findings.conditions.iter().find(|line| line.id == id).unwrap());
        assert_eq!(findings.conditions.len(), CONDITIONS.len());
        assert_eq!(c1.before.as_ref().unwrap().verdict, CheckVerdict::Passed);
        assert_eq!(c1.after.as_ref().unwrap().evidence, "The server was gone.");
        assert_eq!(c11.before.as_ref().unwrap().verdict, CheckVerdict::Passed);
        assert_eq!(c11.after, None, "it need not hold then");
        assert!(findings.checks.iter().all(|check| check.verdict == CheckVerdict::NotMade));
        let unwanted = Before { verdicts: Err(say!(conditions_unwanted)), ..before };
        let lines = condition_lines(&unwanted, &Err(say!(conditions_unwanted)));
        assert!(lines.iter().all(|line| line.id == "C11" || line.before.is_some()));
    }

    #[test]
    fn large_databases_are_checked_once() {
        assert_eq!(CheckTime::usual(10), CheckTime::BeforeAndAfter);
        assert_eq!(CheckTime::usual(11), CheckTime::After);
    }

    #[test]
    fn foreign_keys_are_as_asked_for_or_told() {
        assert_eq!(about_foreign_keys(0, false), None);
        assert_eq!(about_foreign_keys(10, true), None);
        assert!(about_foreign_keys(10, false).unwrap().contains("10 foreign keys"));
        assert!(about_foreign_keys(0, true).unwrap().contains("0 foreign keys"));
    }

    #[test]
    fn isolation_that_is_not_to_be_had_is_told() {
        let repeatable = Some(Isolation::RepeatableRead);
        assert_eq!(about_isolation(Dialect::Mysql, true, repeatable), None);
        assert_eq!(about_isolation(Dialect::Postgres, true, repeatable), None);
        assert_eq!(about_isolation(Dialect::Mysql, true, None), None);
        assert!(about_isolation(Dialect::Sqlite, true, repeatable).is_some());
        assert_eq!(about_isolation(Dialect::Sqlite, true, Some(Isolation::Serializable)), None);
        assert!(about_isolation(Dialect::Postgres, false, repeatable).is_some());
        assert_eq!(about_isolation(Dialect::Mysql, false, Some(Isolation::ServerDefault)), None);
    }
}
