//! What a load does to the table of accounts: how much of it is hot.

use dyno_facts::{Message, format, say};

/// How a script draws accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The highest account that can be drawn, counted from the lowest: rows of the hot range.
    pub hot_rows: u64,
    /// What the distribution means, in a sentence.
    pub meaning: Message,
}

impl Access {
    /// How a script draws `:aid`, as far as its text says so. `value` gives variables that are
    /// defined before the script runs.
    pub fn of(script: &str, value: impl Fn(&str) -> Option<i64>) -> Option<Access> {
        let line = script.lines().find_map(|line| {
            line.trim_start().strip_prefix("\\set")?.trim_start().strip_prefix("aid")
        })?;
        let (function, arguments) = line.trim().strip_suffix(')')?.split_once('(')?;
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let (low, high) = match arguments.as_slice() {
            [low, high, ..] => (product(low, &value)?, product(high, &value)?),
            _ => return None,
        };
        let hot_rows = u64::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
        let parameter = arguments.get(2).and_then(|text| text.parse::<f64>().ok());
        let meaning = meaning(function.trim(), parameter)?;
        Some(Access { hot_rows, meaning })
    }
}

/// Hot rows and how they are drawn, of scripts and their names. Where scripts differ there is no figure for all of them.
pub(crate) fn of_all(scripts: &[(&str, Option<Access>)]) -> (Option<u64>, Message) {
    let Some((_, first)) = scripts.first() else { return (None, Message::default()) };
    if scripts.iter().all(|(_, access)| access == first) {
        return match first {
            Some(access) => (Some(access.hot_rows), access.meaning.clone()),
            None => (None, Message::default()),
        };
    }
    let of_one = |&(script, ref access): &(&str, Option<Access>)| match access {
        Some(Access { hot_rows, meaning }) => {
            let rows = format::whole(*hot_rows as f64);
            vec![say!(hot_range_of_script, script = script, rows = rows), meaning.clone()]
        }
        None => vec![say!(accounts_of_script_unknown, script = script)],
    };
    let sentences: Vec<Message> = scripts.iter().flat_map(of_one).collect();
    (None, Message::sentences(&sentences))
}

/// A product of integers and variables, such as `100000 * :scale`.
fn product(text: &str, value: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
    text.split('*').map(str::trim).try_fold(1_i64, |product, factor| {
        let factor = match factor.strip_prefix(':') {
            Some(name) => value(name)?,
            None => factor.parse().ok()?,
        };
        product.checked_mul(factor)
    })
}

fn meaning(function: &str, parameter: Option<f64>) -> Option<Message> {
    let function = function.to_lowercase();
    Some(match (function.as_str(), parameter) {
        ("random", _) => say!(accounts_uniform),
        // Within one and two standard deviations of the middle; below a parameter of 3 the cut
        // tails change the shares.
        ("random_gaussian", Some(p)) if p >= 3.0 => {
            let (one, two) = (percent(1.0 / p), percent(2.0 / p));
            say!(accounts_gaussian, p = p.to_string(), one = one, two = two)
        }
        ("random_gaussian", _) => say!(accounts_in_the_middle),
        ("random_exponential" | "random_zipfian", _) => {
            say!(accounts_at_the_beginning, function = function)
        }
        _ => return None,
    })
}

fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(script: &str) -> Option<Access> {
        Access::of(script, |name| match name {
            "scale" => Some(30),
            "range" => Some(500_000),
            _ => None,
        })
    }

    #[test]
    fn scripts_that_differ_have_a_sentence_each_and_no_figure() {
        let uniform = access("\\set aid random(1, 100000 * :scale)");
        let zipfian = access("\\set aid random_zipfian(1, :range, 1.1)");
        let (hot_rows, meaning) = of_all(&[("a.sql", uniform.clone()), ("b.sql", uniform.clone())]);
        assert_eq!(hot_rows, Some(3_000_000));
        assert_eq!(meaning.to_string(), "Accounts are drawn uniformly from the hot range.");
        let scripts = [("a.sql", uniform), ("b.sql", zipfian), ("c.sql", None)];
        let (hot_rows, meaning) = of_all(&scripts);
        assert_eq!(hot_rows, None);
        assert_eq!(
            meaning.to_string(),
            "The hot range of the script a.sql has 3,000,000 rows. Accounts are drawn uniformly from \
             the hot range. The hot range of the script b.sql has 500,000 rows. Accounts are drawn by \
             random_zipfian: they crowd at the beginning of the hot range. The script c.sql does not \
             show how it draws accounts."
        );
        assert_eq!(of_all(&scripts[2..]), (None, Message::default()));
    }

    #[test]
    fn the_hot_range_is_read_from_the_script() {
        let paper =
            access(include_str!("../../../../suites/pgbench/read-only.sql")).expect("drawn");
        assert_eq!(paper.hot_rows, 500_000);
        let meaning = paper.meaning.to_string();
        assert!(meaning.contains("68 % of all draws fall into the middle 10 %"), "{meaning}");
        assert!(meaning.contains("95 % into its middle 20 %."), "{meaning}");
        let uniform = access("  \\set aid random(1, 100000 * :scale)\nSELECT 1;").expect("drawn");
        assert_eq!(uniform.hot_rows, 3_000_000);
        assert!(access("\\set aid random_zipfian(11, 20, 1.1)").is_some_and(|a| a.hot_rows == 10));
        for unknown in [
            "SELECT 1;",
            "\\set aid 5",
            "\\set aid random(1, :nobody)",
            "\\set aid random(1, 9223372036854775807 * 2)",
            "\\set aid random(5, 1)",
            "\\set aid hash(1, 2)",
            "\\set aid random(1",
        ] {
            assert_eq!(access(unknown).filter(|access| access.hot_rows > 0), None, "{unknown}");
        }
    }
}
