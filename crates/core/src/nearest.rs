//! The known name closest to a misspelt one.

/// Longer words cost time to compare; no name of dyno is as long.
const LONGEST_BYTES: usize = 64;

/// The known name with the fewest edits (insert, delete, replace, swap neighbours), if those are at most a third of the
/// longer one's letters. Case does not count, and `-` is `_`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_BYTES {
        return None;
    }
    let word = letters(word);
    known
        .into_iter()
        .map(|name| {
            let name_letters = letters(name);
            (edits(&word, &name_letters), word.len().max(name_letters.len()), name)
        })
        .filter(|&(edits, length, _)| edits * 3 <= length)
        .min_by_key(|&(edits, ..)| edits)
        .map(|(.., name)| name)
}

/// True of a name whose value may be a password, also where it is misspelt: `mysql-pasword`.
pub fn is_like_password(name: &str) -> bool {
    let mut parts = name.split(['-', '_', '.']);
    parts.any(|part| part.eq_ignore_ascii_case("pwd") || nearest(part, ["password"]).is_some())
}

fn letters(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

/// The edits between two words: the distance of Damerau and Levenshtein, restricted to one edit per pair of letters.
fn edits(a: &[char], b: &[char]) -> usize {
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
        let known = ["table_size", "tables", "range_size", "point_selects", "threads", "sslmode"];
        for (word, name) in [
            ("tabel-size", Some("table_size")),
            ("table", Some("tables")),
            ("pointselects", Some("point_selects")),
            ("Thraeds", Some("threads")),
            ("SSLMODE", Some("sslmode")),
            ("warehouse", None),
            ("", None),
            ("x", None),
            (&"threads".repeat(10), None),
        ] {
            assert_eq!(nearest(word, known), name, "{word}");
        }
        assert_eq!(nearest("threads", []), None);
    }

    #[test]
    fn misspelt_passwords_are_known() {
        for name in
            ["password", "mysql-pasword", "pgsql_passwrod", "iPassword", "passwd", "MYSQL_PWD"]
        {
            assert!(is_like_password(name), "{name}");
        }
        for name in ["passes", "user", "mysql-host", "", "port", "warehouses"] {
            assert!(!is_like_password(name), "{name}");
        }
    }

    #[test]
    fn counts_swapped_neighbours_as_one_edit() {
        for (a, b, count) in
            [("oltop", "oltpo", 1), ("kitten", "sitting", 3), ("", "abc", 3), ("ü-", "Ü_", 0)]
        {
            assert_eq!(edits(&letters(a), &letters(b)), count, "{a} {b}");
            assert_eq!(edits(&letters(b), &letters(a)), count, "{b} {a}");
        }
    }
}
