//! Holm's correction: of a family of tests, the smallest p times their number, the next times one fewer, and so on,
//! never falling (Holm 1979). The chance of one false alarm in the whole family stays below the level.

/// The corrected p of each, in the order given.
pub(super) fn holm(raw: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..raw.len()).collect();
    order.sort_by(|a, b| raw[*a].total_cmp(&raw[*b]));
    let mut corrected = vec![1.0; raw.len()];
    let mut least: f64 = 0.0;
    for (place, i) in order.into_iter().enumerate() {
        least = least.max(raw[i] * (raw.len() - place) as f64).min(1.0);
        corrected[i] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_pays_for_all_and_no_later_one_is_smaller() {
        let got = holm(&[0.01, 0.04, 0.03, 0.005]);
        let want = [0.03, 0.06, 0.06, 0.02];
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12), "{got:?}");
        assert!(holm(&[]).is_empty());
        assert!((holm(&[0.9, 0.8])[0] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn six_measures_at_five_runs_a_side_can_be_called_and_seven_cannot() {
        let smallest = 2.0 / super::super::rank::choose(10, 5);
        assert!(holm(&[smallest, 1.0, 1.0, 1.0, 1.0, 1.0])[0] < 0.05);
        assert!(holm(&[smallest, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])[0] > 0.05);
    }
}
