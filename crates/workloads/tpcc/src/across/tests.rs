use super::*;
use crate::ledger::{Across, Entry, LedgerOrder, LedgerPayment, LedgerWork};
use dyno_core::{ShardMap, ShardRule};
use dyno_facts::CrossShardLosses;

/// Warehouse 1 is on the second shard, warehouse 2 on the third.
fn map() -> ShardMap {
    ShardMap::new(ShardRule::Modulo, 4).unwrap()
}

const PAID: LedgerPayment = LedgerPayment { warehouse: 2, district: 3, customer: 7, cents: 1_250 };
const ORDER: LedgerOrder = LedgerOrder { number: 3_001, customer: 9, lines: 5 };

fn record_across(work: LedgerWork<'static>, is_acknowledged: bool) -> Across {
    Across { entry: Entry { warehouse: 1, district: 4, work }, is_acknowledged }
}

fn payment_across(is_acknowledged: bool) -> Across {
    record_across(LedgerWork::Payment(PAID), is_acknowledged)
}

/// An order of warehouse 1 with lines from warehouses 2 and 3, two of them the same.
fn order(is_acknowledged: bool) -> Across {
    let away = vec![(2, 50), (3, 60), (3, 60)];
    record_across(LedgerWork::Order { order: ORDER, away: away.into() }, is_acknowledged)
}

/// Shards on which the home part of [`payment_across`] is there, and its customer.
fn paid(has_history: bool, has_customer: bool) -> Vec<ShardWork> {
    let mut shard_work = vec![ShardWork::default(); 4];
    if has_history {
        shard_work[1].payments.insert((1, 4, PAID), 1);
    }
    if has_customer {
        shard_work[2].foreign.insert(CounterKey::Customer((2, 3, 7)), (1, 1_250));
    }
    shard_work
}

fn judge_work(recorded: &[Across], found: &[ShardWork]) -> CrossShardWork {
    judge(recorded, &map(), found, &["n1", "n2", "n3", "n4"])
}

/// Lost, half done, in doubt, and of unknown outcome: committed, half done.
fn fates(work: &CrossShardWork) -> [u64; 5] {
    let CrossShardLosses {
        lost, half_done, in_doubt, unknown_committed, unknown_half_done, ..
    } = work.losses;
    [lost, half_done, in_doubt, unknown_committed, unknown_half_done]
}

#[test]
fn a_payment_that_was_acknowledged_is_whole_lost_or_half_done() {
    for (history, customer, expected) in [
        (true, true, [0, 0, 0, 0, 0]),
        (false, false, [1, 0, 0, 0, 0]),
        (true, false, [0, 1, 0, 0, 0]),
        (false, true, [0, 1, 0, 0, 0]),
    ] {
        let work = judge_work(&[payment_across(true)], &paid(history, customer));
        assert_eq!(fates(&work), expected, "{history} {customer}: {work:?}");
        assert_eq!((work.losses.acknowledged, work.unexplained), (1, 0));
        assert_eq!(work.is_whole(), history && customer);
    }
    let work = judge_work(&[payment_across(true)], &paid(true, false));
    assert_eq!(
        work.listed,
        [
            "the payment of 12.50 by customer 7 of district 3 of warehouse 2 at district 4 of warehouse 1: on n2, not \
          on n3 (half done)"
        ]
    );
}

#[test]
fn a_payment_of_unknown_outcome_may_be_there_or_not_but_not_half() {
    for (history, customer, expected) in [
        (true, true, [0, 0, 0, 1, 0]),
        (false, false, [0, 0, 0, 0, 0]),
        (true, false, [0, 0, 0, 0, 1]),
        (false, true, [0, 0, 0, 0, 1]),
    ] {
        let work = judge_work(&[payment_across(false)], &paid(history, customer));
        assert_eq!(fates(&work), expected, "{history} {customer}: {work:?}");
        assert_eq!(work.is_whole(), history == customer);
    }
}

#[test]
fn a_part_that_is_prepared_is_in_doubt_as_often_as_there_are_branches() {
    let mut shard_work = paid(true, false);
    shard_work[2].branches = 1;
    let work = judge_work(&[payment_across(true)], &shard_work);
    assert_eq!(fates(&work), [0, 0, 1, 0, 0]);
    assert_eq!(work.losses.branches_left, Some(1));
    // Two payments, and one branch only: the other one is half done.
    let second_payment = LedgerPayment { customer: 8, ..PAID };
    let second = record_across(LedgerWork::Payment(second_payment), true);
    shard_work[1].payments.insert((1, 4, second_payment), 1);
    assert_eq!(fates(&judge_work(&[payment_across(true), second], &shard_work)), [0, 1, 1, 0, 0]);
    // A branch of another shard explains nothing.
    let mut elsewhere = paid(true, false);
    elsewhere[3].branches = 1;
    assert_eq!(fates(&judge_work(&[payment_across(true)], &elsewhere)), [0, 1, 0, 0, 0]);
    // Whole on no shard, prepared on both.
    let mut nowhere = paid(false, false);
    (nowhere[1].branches, nowhere[2].branches) = (1, 1);
    assert_eq!(fates(&judge_work(&[payment_across(true)], &nowhere)), [0, 0, 1, 0, 0]);
}

/// Judges an order of which these of its three shards have their part.
fn judge_order_on(shards: [bool; 3]) -> CrossShardWork {
    let mut shard_work = vec![ShardWork::default(); 4];
    if shards[0] {
        shard_work[1].orders.insert((1, 4, 3_001), (9, 5));
    }
    if shards[1] {
        shard_work[2].foreign.insert(CounterKey::Stock((2, 50)), (1, 0));
    }
    if shards[2] {
        shard_work[3].foreign.insert(CounterKey::Stock((3, 60)), (2, 0));
    }
    judge_work(&[order(true)], &shard_work)
}

#[test]
fn an_order_is_half_done_where_the_stock_of_one_shard_was_not_taken() {
    assert!(judge_order_on([true, true, true]).is_whole());
    for shards in
        [[true, true, false], [true, false, true], [false, true, true], [false, true, false]]
    {
        let work = judge_order_on(shards);
        assert_eq!(fates(&work), [0, 1, 0, 0, 0], "{shards:?}");
        assert_eq!(work.orders_away_from_home, u64::from(!shards[0]));
    }
    let nowhere = judge_order_on([false, false, false]);
    assert_eq!((fates(&nowhere), nowhere.orders_away_from_home), ([1, 0, 0, 0, 0], 1));
    assert!(
        nowhere.listed[0]
            .to_string()
            .starts_with("order 3001 of district 4 of warehouse 1: on -, not on n2, n3, n4")
    );
}

#[test]
fn alike_payments_are_told_apart_by_their_number() {
    // The same payment was sent again after an answer that did not come: one of both is there.
    let work = judge_work(&[payment_across(false), payment_across(true)], &paid(true, true));
    assert_eq!((fates(&work), work.is_whole()), ([0; 5], true));
    let mut twice = paid(true, true);
    twice[1].payments.insert((1, 4, PAID), 2);
    twice[2].foreign.insert(CounterKey::Customer((2, 3, 7)), (2, 2_500));
    assert_eq!(
        fates(&judge_work(&[payment_across(false), payment_across(true)], &twice)),
        [0, 0, 0, 1, 0]
    );
}

#[test]
fn the_amount_says_whose_part_is_missing() {
    let second_payment = LedgerPayment { cents: 999, ..PAID };
    let second = record_across(LedgerWork::Payment(second_payment), true);
    let mut shard_work = paid(true, true);
    shard_work[1].payments.insert((1, 4, second_payment), 1);
    // The customer has paid once: 9.99.
    shard_work[2].foreign.insert(CounterKey::Customer((2, 3, 7)), (1, 999));
    let work = judge_work(&[payment_across(true), second], &shard_work);
    assert_eq!(fates(&work), [0, 1, 0, 0, 0]);
    assert!(work.listed[0].to_string().contains("12.50"), "{:?}", work.listed);
}

#[test]
fn what_nobody_entered_is_unexplained() {
    let mut shard_work = paid(true, true);
    shard_work[3].foreign.insert(CounterKey::Stock((3, 1)), (1, 0));
    let work = judge_work(&[payment_across(true)], &shard_work);
    assert_eq!((work.unexplained, work.is_whole()), (1, false));
}

#[test]
fn what_lies_on_one_shard_is_none_of_several() {
    // Warehouse 5 is on the shard of warehouse 1.
    let near = LedgerPayment { warehouse: 5, ..PAID };
    let near = record_across(LedgerWork::Payment(near), true);
    let work = judge_work(&[near], &vec![ShardWork::default(); 4]);
    assert_eq!((work.losses.acknowledged, work.is_whole()), (0, true));
}
