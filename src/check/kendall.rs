//! Kendall's tau-b: whether two numbers rise and fall together, from −1 to 1, ties counted as what they are.

/// A pair of numbers, and the group it is compared within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// Points of different groups are not compared.
    pub(super) group: usize,
    pub(super) x: u64,
    pub(super) y: u64,
}

/// How two numbers go together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kendall {
    /// (C − D)/√((n0 − n1)(n0 − n2)): C concordant and D discordant pairs of n0, of which n1 are tied in one number and
    /// n2 in the other. Nothing where one of the two never changes.
    pub(super) tau: f64,
    /// The lower end of its 95 % interval, by Fieller, Hartley and Pearson (1957):
    /// tanh(artanh τ − 1.96·√(0.437/(n − 4))).
    pub(super) at_least: f64,
}

/// Of at most a few thousand points: every pair is looked at. `None` of fewer than five.
pub(super) fn kendall(points: &[Point]) -> Option<Kendall> {
    if points.len() < 5 {
        return None;
    }
    let (mut agree, mut pairs, mut x_differ, mut y_differ) = (0i64, 0u64, 0u64, 0u64);
    for (i, a) in points.iter().enumerate() {
        for b in points[i + 1..].iter().filter(|b| b.group == a.group) {
            let (x, y) = (a.x.cmp(&b.x) as i64, a.y.cmp(&b.y) as i64);
            agree += x * y;
            pairs += 1;
            x_differ += u64::from(x != 0);
            y_differ += u64::from(y != 0);
        }
    }
    let scale = (x_differ as f64 * y_differ as f64).sqrt();
    let tau = if pairs > 0 && scale > 0.0 { agree as f64 / scale } else { 0.0 };
    let spread = 1.96 * (0.437 / (points.len() as f64 - 4.0)).sqrt();
    Some(Kendall { tau, at_least: (tau.clamp(-1.0, 1.0).atanh() - spread).tanh() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u64, u64)]) -> Kendall {
        let points: Vec<_> = pairs.iter().map(|(x, y)| Point { group: 0, x: *x, y: *y }).collect();
        kendall(&points).unwrap()
    }

    /// Worked by hand: of ten pairs 1 2 3 4 5 against 1 2 3 5 4 nine agree and one does not.
    #[test]
    fn it_is_the_number_of_the_textbook() {
        assert!((of(&[(1, 1), (2, 2), (3, 3), (4, 5), (5, 4)]).tau - 0.8).abs() < 1e-12);
        assert!((of(&[(1, 5), (2, 4), (3, 3), (4, 2), (5, 1)]).tau + 1.0).abs() < 1e-12);
        // two ties in x: 7 agree, 1 disagrees; √(8·10)
        let tied = of(&[(1, 1), (1, 2), (3, 3), (4, 5), (4, 4)]);
        assert!((tied.tau - 8.0 / 80f64.sqrt()).abs() < 1e-12, "{tied:?}");
        assert!(tied.at_least < tied.tau);
    }

    #[test]
    fn what_never_changes_goes_with_nothing_and_few_points_say_nothing() {
        let all: Vec<_> = (0..100).map(|i| (7, i)).collect();
        assert!(of(&all).tau.abs() < 1e-12);
        assert!(of(&all).at_least < 0.0);
        assert_eq!(kendall(&[Point { group: 0, x: 1, y: 1 }; 4]), None);
    }

    #[test]
    fn points_are_compared_within_their_group_only() {
        let apart: Vec<_> = (0..20)
            .map(|i| Point {
                group: usize::from(i < 10),
                x: i % 10,
                y: if i < 10 { i % 10 } else { 100 + i % 10 },
            })
            .collect();
        assert!((kendall(&apart).unwrap().tau - 1.0).abs() < 1e-12);
        let joined: Vec<_> = apart.iter().map(|point| Point { group: 0, ..*point }).collect();
        assert!(kendall(&joined).unwrap().tau < 0.8);
    }
}
