//! Holm's correction: of twenty metrics, one shows a "difference" by chance.

/// Adjusts p values, so that the chance of any false verdict among them all stays below the level.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut highest = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        highest = highest.max((p[*index] * factor).min(1.0));
        adjusted[*index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_ones_are_multiplied_by_more() {
        let found = adjusted(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(found.iter().zip(&wanted).all(is_near), "{found:?}");
        assert_eq!(adjusted(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(adjusted(&[]).is_empty());
    }
}
