//! Lists of percentiles, as options take them.

/// Percentiles above 0 and up to 100, with commas, in the order given and each of them once.
///
/// # Errors
/// What the option takes, to be put after "the value must be".
pub fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let mut percentiles: Vec<f64> = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let percent: f64 =
            part.parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0).ok_or(
                "a list of numbers above 0 and up to 100, with commas, such as 50,95,99.9",
            )?;
        if !percentiles.contains(&percent) {
            percentiles.push(percent);
        }
    }
    Ok(percentiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_above_0_and_up_to_100() {
        assert_eq!(percentiles("50,99.9, 50"), Ok(vec![50.0, 99.9]));
        for wrong in ["0", "101", "nan", "x"] {
            assert!(percentiles(wrong).is_err(), "{wrong}");
        }
    }
}
