//! What the publisher concludes, held against the verdicts and figures of the paper.
//!
//! A sentence is judged where it can be read by rule: it names two targets and says which one is faster or slower, or it
//! gives a throughput. What it says must be the verdict at every load level that it speaks of (those of an experiment that
//! it names, else all), its percentages and factors must lie in the intervals of these verdicts, and its throughputs must
//! be results. All else stays the publisher's own.

use super::{Case, Rule};
use crate::evidence::{Call, Evidence, Finding, Group, Level, PairedComparison, Spot, Verdicts};
use crate::messages::checks;
use crate::text::Message;
use dyno_facts::say;
use dyno_statistics::Metric;

pub(super) const RULES: &[Rule] =
    &[Rule::case(Group::H, Level::W, checks::conclusion, conclusions)];

fn conclusions(case: &Case<'_>) -> Vec<Finding> {
    let Some(run) = case.evidence.runs.first() else { return Vec::new() };
    let place = Spot::run(&run.folder);
    let texts = &case.evidence.texts.conclusions;
    let found = |sentence: String| {
        let why = objection(&sentence, case.evidence, case.verdicts)?;
        let value = say!(conclusion_not_borne, sentence = sentence, why = why);
        Some(Finding::new(place.clone(), value))
    };
    [&texts.en, &texts.zh].into_iter().flat_map(|text| sentences(text)).filter_map(found).collect()
}

/// Sentences of Markdown without its marks; headings and code say nothing.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut is_code = false;
    let mut whole = String::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        is_code ^= line.starts_with("```");
        let begins = line.is_empty() || line.starts_with(['-', '*', '#', '`', '|']);
        if begins {
            sentences.append(&mut split(&std::mem::take(&mut whole)));
        }
        if !is_code && !line.starts_with(['#', '`', '|']) {
            whole += line.trim_start_matches(['-', '*', ' ']);
            whole.push(' ');
        }
    }
    sentences
}

/// At full stops that end a sentence, not those within numbers and names.
fn split(text: &str) -> Vec<String> {
    let text = text.replace(['*', '`'], "");
    let mut sentences = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        sentences.last_mut().expect("there is one").push(c);
        let is_end = match c {
            '。' | '；' | '！' | '？' => true,
            '.' | ';' | '!' | '?' => rest.peek().is_none_or(|next| next.is_whitespace()),
            _ => false,
        };
        if is_end {
            sentences.push(String::new());
        }
    }
    let trimmed = sentences.iter().map(|sentence| sentence.trim().to_owned());
    trimmed.filter(|sentence| !sentence.is_empty()).collect()
}

/// Why the paper does not bear a sentence; `None` where it does, or nothing in it can be judged.
fn objection(sentence: &str, evidence: &Evidence, verdicts: &Verdicts) -> Option<Message> {
    let lower = sentence.to_lowercase();
    let compared =
        direction(&lower).and_then(|faster| of_targets(&lower, faster, evidence, verdicts));
    compared.or_else(|| throughput(&lower, evidence))
}

const FASTER: [&str; 6] = ["faster", "quicker", "outperform", "times as fast", "快", "优于"];
const SLOWER: [&str; 4] = ["slower", "times as slow", "慢", "逊于"];
/// What turns a sentence around, or makes it a question.
const DENIED: [&str; 9] =
    [" not ", "n't ", " no ", "neither", "whether", "不比", "并不", "未必", "是否"];

/// True of faster, false of slower; `None` where neither or both are said, or it is denied.
fn direction(sentence: &str) -> Option<bool> {
    let says = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    match (says(&FASTER), says(&SLOWER), says(&DENIED)) {
        (true, false, false) => Some(true),
        (false, true, false) => Some(false),
        _ => None,
    }
}

/// Who is said to be faster than whom.
struct Claim<'a> {
    winner: &'a str,
    loser: &'a str,
    /// As the sentence has it: numbers of a slower one are shares of the other's speed.
    is_of_winner: bool,
}

fn of_targets(
    sentence: &str,
    is_faster: bool,
    evidence: &Evidence,
    verdicts: &Verdicts,
) -> Option<Message> {
    let [subject, object] = named(sentence, evidence)?;
    let claim = match is_faster {
        true => Claim { winner: subject, loser: object, is_of_winner: true },
        false => Claim { winner: object, loser: subject, is_of_winner: false },
    };
    let between = |of: &&PairedComparison| {
        let both = [of.baseline.as_str(), of.candidate.as_str()];
        both.contains(&claim.winner) && both.contains(&claim.loser) && !of.is_aa
    };
    let all: Vec<&PairedComparison> = verdicts.comparisons.iter().filter(between).collect();
    let is_meant = |of: &&&PairedComparison| {
        let titles = [dyno_facts::Lang::En, dyno_facts::Lang::Zh].map(|lang| of.title.render(lang));
        let names = titles.iter().map(String::as_str).chain([of.experiment.as_str()]);
        names.filter(|name| name.len() > 2).any(|name| sentence.contains(&name.to_lowercase()))
    };
    let meant: Vec<&PairedComparison> = all.iter().filter(is_meant).copied().collect();
    let meant = if meant.is_empty() { all } else { meant };
    if meant.is_empty() {
        return Some(say!(no_comparison_of, a = subject, b = object));
    }
    let ranges: Vec<Option<(f64, f64)>> = meant.iter().map(|of| speed(of, claim.winner)).collect();
    let (decided, opposite): (Vec<_>, Vec<_>) =
        ranges.iter().flatten().partition(|(low, high)| low * high > 1.0);
    if !opposite.is_empty() {
        return Some(say!(
            the_other_is_faster,
            other = claim.loser,
            n = opposite.len(),
            all = ranges.len().to_string()
        ));
    }
    if decided.is_empty() {
        return Some(say!(no_verdict_says, winner = claim.winner, loser = claim.loser));
    }
    let is_borne = |number: &Number| {
        let wanted = number.ratio(claim.is_of_winner);
        decided.iter().any(|(low, high)| wanted.iter().any(|(a, b)| b >= low && a <= high))
    };
    let wrong =
        numbers(sentence).into_iter().find(|number| number.is_ratio() && !is_borne(number))?;
    Some(say!(number_outside_the_intervals, number = wrong.written))
}

/// The interval of the winner's speed as a multiple of the loser's, where a verdict says that they differ.
fn speed(of: &PairedComparison, winner: &str) -> Option<(f64, f64)> {
    let row = of.rows.first().filter(|row| matches!(row.call, Call::Faster | Call::Slower))?;
    let (low, high) = row.interval.map_or((row.ratio, row.ratio), |both| (both.low, both.high));
    let is_turned = row.is_less_better != (of.candidate != winner);
    Some(if is_turned { (1.0 / high, 1.0 / low) } else { (low, high) })
}

/// The two targets of a sentence, the one that it speaks of first.
fn named<'a>(sentence: &str, evidence: &'a Evidence) -> Option<[&'a str; 2]> {
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    for target in &evidence.targets {
        let own = evidence.texts.targets.get(&target.facts.name);
        let own = own.map(|own| [own.name.en.clone(), own.name.zh.clone()]).unwrap_or_default();
        let product = target.product.split(' ').next().unwrap_or_default();
        let is_only =
            evidence.targets.iter().filter(|other| other.product.starts_with(product)).count() == 1;
        let mut names = vec![target.label.clone(), target.facts.name.clone()];
        names.extend(own);
        names.extend(target.major_product());
        names.extend(is_only.then(|| product.to_owned()));
        for name in names.iter().map(|name| name.to_lowercase()).filter(|name| name.len() > 1) {
            found.extend(places(sentence, &name).map(|at| (at, name.len(), target.label.as_str())));
        }
    }
    // The longest name at a place is the one that is meant.
    found.sort_by_key(|(at, length, _)| (*at, usize::MAX - length));
    let mut kept: Vec<(usize, usize, &str)> = Vec::new();
    for (at, length, label) in found {
        let is_free = kept.last().is_none_or(|(before, long, _)| before + long <= at);
        if is_free && !kept.iter().any(|(_, _, known)| *known == label) {
            kept.push((at, length, label));
        }
    }
    let [(first_at, _, first), (_, _, second)] = kept.as_slice() else { return None };
    // "Compared with B, A is faster", “与 B 相比，A 更快”.
    let before = sentence[..*first_at].trim_end();
    let is_object =
        ["than", "compared with", "compared to", "against", "over", "与", "比", "较", "相对"]
            .iter()
            .any(|word| before.ends_with(word));
    Some(if is_object { [second, first] } else { [first, second] })
}

/// Where a name stands as a word of its own.
fn places<'a>(sentence: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    sentence.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let (before, after) = (&sentence[..*at], &sentence[at + name.len()..]);
        let goes_on = after.starts_with('.') && is_inside(after[1..].chars().next());
        !is_inside(before.chars().next_back()) && !is_inside(after.chars().next()) && !goes_on
    })
}

/// A number of a sentence, with what it counts.
struct Number {
    written: String,
    value: f64,
    /// Half a unit of its last digit.
    rounding: f64,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Percent,
    Times,
    Of(Metric),
}

const UNITS: [(&str, Unit); 14] = [
    ("%", Unit::Percent),
    ("percent", Unit::Percent),
    ("times", Unit::Times),
    ("倍", Unit::Times),
    ("tpmc", Unit::Of(Metric::Tpmc)),
    ("tps", Unit::Of(Metric::Tps)),
    ("qps", Unit::Of(Metric::Qps)),
    ("transactions per second", Unit::Of(Metric::Tps)),
    ("transactions/s", Unit::Of(Metric::Tps)),
    ("事务/s", Unit::Of(Metric::Tps)),
    ("statements per second", Unit::Of(Metric::Qps)),
    ("statements/s", Unit::Of(Metric::Qps)),
    ("queries per second", Unit::Of(Metric::Qps)),
    ("语句/s", Unit::Of(Metric::Qps)),
];

impl Number {
    fn is_ratio(&self) -> bool {
        matches!(self.unit, Unit::Percent | Unit::Times)
    }

    /// Ranges of the winner's speed as a multiple of the loser's that it may stand for.
    fn ratio(&self, is_of_winner: bool) -> Vec<(f64, f64)> {
        let (low, high) = (self.value - self.rounding, self.value + self.rounding);
        match (self.unit, is_of_winner) {
            (Unit::Percent, true) => vec![(1.0 + low / 100.0, 1.0 + high / 100.0)],
            (Unit::Percent, false) => {
                vec![(1.0 / (1.0 - low / 100.0), 1.0 / (1.0 - high / 100.0).max(1e-9))]
            }
            // “快一倍” is twice as fast.
            _ => vec![(low, high), (1.0 + low, 1.0 + high)],
        }
    }
}

/// Numbers with a unit; of `18 to 24 %` both.
fn numbers(sentence: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut open: Option<String> = None;
    let mut rest = sentence;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_name =
            rest[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.');
        let tail = &rest[at..];
        let length =
            tail.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(tail.len());
        let written = tail[..length].trim_end_matches([',', '.']);
        let after = &tail[written.len()..];
        rest = after;
        if is_name {
            continue;
        }
        let behind = after.trim_start();
        let unit = UNITS.iter().find(|(word, _)| behind.starts_with(word)).map(|(_, unit)| *unit);
        let first = open.take();
        match unit {
            Some(unit) => {
                found.extend(first.and_then(|first| number(&first, unit)));
                found.extend(number(written, unit));
            }
            // The first of two: the second one has the unit.
            None if ["to ", "–", "-", "至", "到", "and "]
                .iter()
                .any(|word| behind.starts_with(word)) =>
            {
                open = Some(written.to_owned());
            }
            None => {}
        }
    }
    found
}

fn number(written: &str, unit: Unit) -> Option<Number> {
    let digits = written.replace(',', "");
    let value: f64 = digits.parse().ok()?;
    let rounding = match digits.split_once('.') {
        Some((_, decimals)) => 0.5 * 10_f64.powi(-(decimals.len() as i32)),
        // 16,200 is rounded to hundreds, 20 % to whole percent.
        None if matches!(unit, Unit::Of(_)) => {
            let zeros = digits.len() - digits.trim_end_matches('0').len();
            0.5 * 10_f64.powi(zeros.min(digits.len() - 1) as i32)
        }
        None => 0.5,
    };
    Some(Number { written: written.to_owned(), value, rounding, unit })
}

/// A throughput that is no result of any load level.
fn throughput(sentence: &str, evidence: &Evidence) -> Option<Message> {
    let points = || evidence.experiments.iter().flat_map(|own| &own.points);
    let is_result = |number: &Number, metric: Metric| {
        let found = points().filter_map(|point| point.metric(metric.name()));
        let (low, high) = (number.value - number.rounding, number.value + number.rounding);
        let mut found = found.flat_map(|spread| [spread.min, spread.median, spread.max]);
        found.any(|figure| (low..=high).contains(&figure))
    };
    numbers(sentence).into_iter().find_map(|number| {
        let Unit::Of(metric) = number.unit else { return None };
        let figure = format!("{} {}", number.written, metric.name());
        (!is_result(&number, metric)).then(|| say!(no_result_is, figure = figure))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sentence: &str) -> Vec<(String, f64)> {
        numbers(sentence).into_iter().map(|number| (number.written, number.rounding)).collect()
    }

    #[test]
    fn sentences_end_at_full_stops_and_items() {
        let text = "# Head\n\nA is 1.5 times\nas fast. B is not!\n\n- **C** wins\n- D\n\n```\ncode\n```\n甲更快。乙慢；";
        let found = sentences(text);
        assert_eq!(
            found,
            ["A is 1.5 times as fast.", "B is not!", "C wins", "D", "甲更快。", "乙慢；"]
        );
    }

    #[test]
    fn numbers_have_the_unit_behind_them_and_the_rounding_of_their_digits() {
        assert_eq!(shown("18 to 24 % faster"), [("18".to_owned(), 0.5), ("24".to_owned(), 0.5)]);
        assert_eq!(shown("mysql-8.0 does 16,200 tpmc"), [("16,200".to_owned(), 50.0)]);
        assert_eq!(
            shown("2.5 times, 8 workers, 快 20%"),
            [("2.5".to_owned(), 0.05), ("20".to_owned(), 0.5)]
        );
    }

    #[test]
    fn what_is_denied_or_ambiguous_is_not_judged() {
        assert_eq!(direction("a is faster than b"), Some(true));
        assert_eq!(direction("甲比乙慢"), Some(false));
        for open in
            ["a is not faster", "a is faster here and slower there", "是否更快", "a is good"]
        {
            assert_eq!(direction(open), None, "{open}");
        }
    }
}
