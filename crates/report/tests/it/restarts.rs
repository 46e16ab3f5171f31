//! Restarts before pairs in papers, and what a comparison of a system with itself is made with.

use crate::support::html_texts;
use crate::synthetic::pairs::{comparing, paired};
use crate::verdict::around;
use dyno_facts::{ComparisonFacts, RenewalFacts, Renewed};
use dyno_report::{Lang, Paper};
use dyno_store::RunData;

/// Twelve pairs with a start for each two of them: starts vary, pairs of one hardly do.
fn restarted() -> RunData {
    let starts = [0.95, 1.06, 0.93, 1.08, 0.97, 1.04];
    let pairs = starts.iter().flat_map(|ratio| [1000.0 * ratio, 1002.0 * ratio]);
    let mut run = paired(&pairs.map(|tps| (1000.0, tps)).collect::<Vec<_>>());
    let (mut experiment, mut renewals) = (run.header.experiments[0].clone(), Vec::new());
    experiment.restart_each = 2;
    for repeat in (1..12).step_by(2) {
        renewals.extend(["maria", "postgres"].map(|target| RenewalFacts {
            renewed: Renewed::Server,
            target: target.to_owned(),
            step: format!("{}/{target}/workers=8/repeat={repeat}", experiment.name),
            took_s: 5.0,
        }));
    }
    (run.header.experiments[0], run.header.renewals) = (experiment, renewals);
    let facts = ComparisonFacts {
        baseline: "maria".to_owned(),
        candidates: vec!["postgres".to_owned()],
        ..ComparisonFacts::default()
    };
    comparing(&mut run, facts);
    run
}

#[test]
fn pairs_of_one_start_count_as_one() {
    let paper = Paper::new(&[restarted()], &[]);
    let comparison = &paper.verdicts.comparisons[0];
    let row = &comparison.rows[0];
    assert_eq!((row.pairs, row.units, comparison.unit_pairs), (12, 6, 2));
    let reach = row.interval.expect("six starts");
    assert!(reach.low < 0.96 && reach.high > 1.04, "as wide as starts vary: {row:?}");
    assert!(row.pairs_needed.is_none_or(|pairs| pairs % 2 == 0), "{row:?}");
    let levels = comparison.levels.as_ref().expect("levels");
    let [pairs, starts] = levels.levels.as_slice() else { panic!("{levels:?}") };
    assert_eq!((levels.units, starts.seconds), (6, 10.0));
    assert!(pairs.deviation.is_some_and(|share| share < 0.01), "{levels:?}");
    assert!(starts.deviation.is_some_and(|share| share > 0.04), "{levels:?}");
    let (made, best) =
        (levels.as_made.as_ref().expect("numbers"), levels.cheapest.as_ref().expect("numbers"));
    assert_eq!((&made.within, &best.within), (&vec![2], &vec![1]));
    assert!(best.total_s < made.total_s);
    let text = paper.verdicts.text(Lang::En);
    for words in [
        "12 pairs that count as 6",
        "8 workers: standard deviations that each level adds to the ratio: pairs",
        "starts of the servers 10.0 s",
        "pairs in each: 1)",
    ] {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
    let html = html_texts(&paper.html(Lang::En));
    for words in
        ["before every 2 pairs", "The intervals cover differences between starts of the servers"]
    {
        assert!(html.contains(words), "{words}");
    }
    // A start for each pair: what it adds is not told apart.
    let mut restarted_each = restarted();
    restarted_each.header.experiments[0].restart_each = 1;
    let restarted_each = Paper::new(&[restarted_each], &[]);
    let comparison = &restarted_each.verdicts.comparisons[0];
    assert_eq!((comparison.rows[0].pairs, comparison.rows[0].units), (12, 12));
    let levels = comparison.levels.as_ref().expect("levels");
    assert!(levels.cheapest.is_none() && levels.levels.len() == 1, "{levels:?}");
    assert!(levels.words.to_string().contains("two pairs for each separate it"), "{levels:?}");
}

#[test]
fn a_comparison_with_itself_says_what_there_is_twice() {
    /// Gives the second target everything of the first but its name.
    fn twin(run: &mut RunData) {
        let name = std::mem::take(&mut run.header.targets[1].name);
        run.header.targets[1] = run.header.targets[0].clone();
        run.header.targets[1].name = name;
    }
    let clone = self_comparison(|_| ());
    assert!(
        clone.contains("a second clone of the same system")
            && clone.contains("its own servers and data")
    );
    assert!(self_comparison(twin).contains("it covers no other starts"));
    let started = self_comparison(|run| {
        run.header.experiments[0].restart_each = 1;
        twin(run);
    });
    assert!(started.contains("restarted for each trial"));
}

/// The page of a comparison of a system with itself, changed.
fn self_comparison(change: fn(&mut RunData)) -> String {
    let mut run = paired(&around(1.0, 6));
    let facts = ComparisonFacts {
        baseline: "maria".to_owned(),
        candidates: vec!["postgres".to_owned()],
        is_aa: true,
        ..ComparisonFacts::default()
    };
    comparing(&mut run, facts);
    change(&mut run);
    Paper::new(&[run], &[]).html(Lang::En)
}
