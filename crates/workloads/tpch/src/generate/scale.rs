//! Which scale factors make a database that TPC-H's keys allow.

use dyno_load::LoadError;
use tpchgen::generators::SupplierGenerator;

/// The largest scale factor of clause 4.1.3.1.
pub const SCALE_MAX: f64 = 100_000.0;

/// Accepts a scale factor of which consistent tables can be made: fractions too, also above 1.
pub fn check_scale(scale: f64) -> Result<(), LoadError> {
    if !(scale > 0.0 && scale <= SCALE_MAX) {
        return Err(LoadError::data(
            format!("The scale factor must be above 0 and at most {SCALE_MAX}, not {scale}."),
            "Use 1 for the smallest official size, 0.01 for a trial.",
        ));
    }
    if suppliers_differ(scale) {
        return Ok(());
    }
    let from = (scale * 1000.0).floor() as u32 + 1;
    let next = (from..).map(|thousandths| f64::from(thousandths) / 1000.0);
    let next = next.into_iter().find(|next| suppliers_differ(*next)).unwrap_or(SCALE_MAX);
    Err(LoadError::data(
        format!(
            "The scale factor {scale} is too small: some parts would have a supplier twice, which \
             the primary key of partsupp forbids."
        ),
        format!("The next greater one that works is {next}."),
    ))
}

/// Whether the four suppliers of every part differ. Clause 4.2.3: supplier i of part p is
/// (p + i * (S/4 + (p-1)/S)) mod S + 1, and p reaches 20 S.
fn suppliers_differ(scale: f64) -> bool {
    let suppliers = SupplierGenerator::calculate_row_count(scale, 1, 1);
    let parts = tpchgen::generators::PartGenerator::calculate_row_count(scale, 1, 1);
    if suppliers < 4 {
        return false;
    }
    let laps = 0..=(parts - 1) / suppliers;
    let mut steps = laps.map(|lap| suppliers / 4 + lap);
    steps.all(|step| (1..=3).all(|times| times * step % suppliers != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_sizes_are_accepted() {
        for scale in [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 10.0, 1000.0, SCALE_MAX] {
            assert!(check_scale(scale).is_ok(), "{scale}");
        }
    }

    #[test]
    fn sizes_without_a_database_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 100_000.5] {
            let error = check_scale(scale).expect_err("out of range").to_string();
            assert!(error.contains("must be above 0"), "{error}");
        }
        // 10 suppliers: with a step of 5 the third supplier is the first.
        let error = check_scale(0.001).expect_err("too small");
        let next = error.hint().and_then(|hint| hint.trim_end_matches('.').rsplit(' ').next());
        assert!(check_scale(next.and_then(|next| next.parse().ok()).expect("a number")).is_ok());
    }
}
