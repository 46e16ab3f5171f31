//! Values of options, read as sysbench reads them, but for numbers: what is no number is refused.
//!
//! Every function's error says what the option takes, to be put after "the value must be".

/// A switch; the empty text is what `--name` alone gives.
pub(super) fn switch(value: &str) -> Result<bool, String> {
    match value {
        "" | "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

pub(super) fn whole<N: TryFrom<u64>>(value: &str, low: u64, high: u64) -> Result<N, String> {
    let expected = || format!("a whole number from {low} to {high}");
    let number: u64 = value.parse().map_err(|_| expected())?;
    if !(low..=high).contains(&number) {
        return Err(expected());
    }
    N::try_from(number).map_err(|_| expected())
}

/// A number of bytes, with K, M, G or T after it for powers of 1,024.
pub(super) fn size(value: &str) -> Result<u64, String> {
    let expected = || "a whole number, with K, M, G or T after it if need be".to_owned();
    let last = value.chars().last().ok_or_else(expected)?;
    let (digits, shift) = match last.to_ascii_uppercase() {
        'K' => (&value[..value.len() - 1], 10),
        'M' => (&value[..value.len() - 1], 20),
        'G' => (&value[..value.len() - 1], 30),
        'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).ok_or_else(expected)
}

/// The parts of a list, without the empty ones.
pub(super) fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty())
}

pub(super) fn whole_list<N: TryFrom<u64>>(
    value: &str,
    low: u64,
    high: u64,
) -> Result<Vec<N>, String> {
    let numbers: Result<Vec<N>, String> = list(value).map(|part| whole(part, low, high)).collect();
    numbers.map_err(|_| format!("a list of whole numbers from {low} to {high}, with commas"))
}

pub(super) fn word<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == value).map(|&(_, meaning)| meaning).ok_or_else(|| {
        let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_know_three_words_for_yes_and_for_no() {
        for yes in ["", "on", "true", "1"] {
            assert_eq!(switch(yes), Ok(true));
        }
        for no in ["off", "false", "0"] {
            assert_eq!(switch(no), Ok(false));
        }
        for neither in ["TRUE", "yes", "2", " on"] {
            assert!(switch(neither).is_err(), "{neither}");
        }
    }

    #[test]
    fn numbers_that_are_not_numbers_are_refused() {
        assert_eq!(whole::<u32>("64", 1, 100), Ok(64));
        for wrong in ["abc", "", "-1", "1.5", "1K", "0x2", "0", "101", "99999999999999999999"] {
            assert!(whole::<u32>(wrong, 1, 100).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["", "K", "1X", "1.5K", "99999999999T", "é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_have_commas() {
        assert_eq!(list("a, b,,c").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(whole_list::<u16>("3306,3307", 1, 65_535), Ok(vec![3306, 3307]));
        assert!(whole_list::<u16>("3306,x", 1, 65_535).is_err());
    }
}
