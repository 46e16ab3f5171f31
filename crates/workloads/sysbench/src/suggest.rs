//! The nearest known name of a misspelt one.

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours), if that is
/// at most a third of the longer name's letters. `-` and `_` are the same letter.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = canonical(name).chars().collect();
    candidates
        .into_iter()
        .map(|candidate| {
            let letters: Vec<char> = canonical(candidate).chars().collect();
            (distance(&name, &letters), name.len().max(letters.len()), candidate)
        })
        .filter(|&(edits, length, _)| edits * 3 <= length)
        .min_by_key(|&(edits, ..)| edits)
        .map(|(.., candidate)| candidate)
}

/// An option's name with `-` written as `_`.
pub(crate) fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_intended_name_or_none() {
        let known = ["table_size", "tables", "range_size", "point_selects"];
        assert_eq!(nearest("tabel-size", known), Some("table_size"));
        assert_eq!(nearest("table", known), Some("tables"));
        assert_eq!(nearest("pointselects", known), Some("point_selects"));
        assert_eq!(nearest("warehouse", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn counts_swapped_neighbours_as_one_edit() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&letters("oltop"), &letters("oltpo")), 1);
        assert_eq!(distance(&letters("kitten"), &letters("sitting")), 3);
        assert_eq!(distance(&letters(""), &letters("abc")), 3);
    }
}
