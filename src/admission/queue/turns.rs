use std::collections::BTreeMap;

use crate::admission::TenantId;

/// Whose turn it is among tenants that wait: deficit round robin (Shreedhar and Varghese 1995).
///
/// Each visit adds `quantum × weight` to a tenant's deficit; it is served while its next request costs no more than
/// that. With a cost of 1 for every request this is weighted round robin. A tenant that has nothing waiting is skipped
/// and loses its deficit.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    deficits: BTreeMap<TenantId, u64>,
    /// Who is being visited.
    current: Option<TenantId>,
}

/// One tenant that waits: the cost of its next request, and what a visit adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) tenant: TenantId,
    pub(crate) cost: u64,
    pub(crate) visit: u64,
}

impl Turns {
    /// Whose turn it is among `waiting`, which are sorted by tenant. Changes nothing.
    pub(crate) fn next(&self, waiting: &[Turn]) -> Option<TenantId> {
        self.winner(waiting).map(|(_, at)| waiting[at].tenant)
    }

    /// Charges the winner of [`Self::next`] for its request.
    pub(crate) fn serve(&mut self, waiting: &[Turn]) {
        let Some((rounds, winner)) = self.winner(waiting) else { return };
        let current = self.current_of(waiting);
        let place = |at: usize| position(at, current, waiting.len());
        let last = place(winner);
        let deficits = waiting.iter().enumerate().map(|(at, turn)| {
            let visits = rounds.saturating_sub(u64::from(place(at) > last));
            let had = self.deficits.get(&turn.tenant).copied().unwrap_or(0);
            (turn.tenant, had.saturating_add(visits.saturating_mul(turn.visit)))
        });
        // tenants that do not wait are not here: their deficits are gone
        self.deficits = deficits.collect();
        let turn = waiting[winner];
        if let Some(deficit) = self.deficits.get_mut(&turn.tenant) {
            *deficit = deficit.saturating_sub(turn.cost);
        }
        self.current = Some(turn.tenant);
    }

    /// How many visits the winner needs, and its index: the least by (visits, place in the ring).
    fn winner(&self, waiting: &[Turn]) -> Option<(u64, usize)> {
        let current = self.current_of(waiting);
        let rounds = |at: usize, turn: &Turn| {
            let deficit = self.deficits.get(&turn.tenant).copied().unwrap_or(0);
            let missing = turn.cost.saturating_sub(deficit).div_ceil(turn.visit.max(1));
            // whoever is being visited has had its quantum; the others get one when their turn comes
            if Some(at) == current { missing } else { missing.max(1) }
        };
        let keyed = waiting.iter().enumerate().map(|(at, turn)| {
            let rounds = rounds(at, turn);
            let place = if rounds == 0 { 0 } else { position(at, current, waiting.len()) };
            (rounds, place, at)
        });
        keyed.min().map(|(rounds, _, at)| (rounds, at))
    }

    fn current_of(&self, waiting: &[Turn]) -> Option<usize> {
        self.current.and_then(|tenant| waiting.binary_search_by_key(&tenant, |turn| turn.tenant).ok())
    }
}

/// The place in the ring, counted from the one after the current; the current comes last.
fn position(at: usize, current: Option<usize>, len: usize) -> usize {
    current.map_or(at, |current| (at + len - current - 1) % len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves `rounds` requests to always backlogged tenants; gives requests and cost served of each.
    fn shares(rounds: u32, quantum: u64, tenants: &[(u64, u64)]) -> Vec<(u32, u64)> {
        let mut turns = Turns::default();
        let waiting: Vec<Turn> = (0u16..)
            .zip(tenants)
            .map(|(id, (weight, cost))| Turn { tenant: TenantId(id), cost: *cost, visit: quantum * weight })
            .collect();
        let mut served = vec![(0, 0); tenants.len()];
        for _ in 0..rounds {
            let winner = turns.next(&waiting).unwrap();
            turns.serve(&waiting);
            let (requests, cost) = &mut served[usize::from(winner.0)];
            *requests += 1;
            *cost += waiting[usize::from(winner.0)].cost;
        }
        served
    }

    #[test]
    fn round_robin_gives_dispatches_by_weight() {
        let served = shares(4_000, 1, &[(2, 1), (1, 1), (1, 1)]);
        assert_eq!(served.iter().map(|s| s.0).collect::<Vec<_>>(), [2_000, 1_000, 1_000]);
    }

    #[test]
    fn deficit_round_robin_gives_tokens_by_weight_whatever_the_sizes() {
        let served = shares(40_000, 1_000, &[(2, 600), (1, 1_200), (1, 3_000)]);
        let all: u64 = served.iter().map(|s| s.1).sum();
        for ((_, tokens), share) in served.iter().zip([0.5, 0.25, 0.25]) {
            let got = *tokens as f64 / all as f64;
            assert!((got - share).abs() < 0.002, "{got} instead of {share}");
        }
    }

    #[test]
    fn a_tenant_that_has_nothing_waiting_is_skipped_and_saves_nothing_up() {
        let turn = |id, cost| Turn { tenant: TenantId(id), cost, visit: 1 };
        let mut turns = Turns::default();
        let both = [turn(0, 1), turn(1, 1)];
        for _ in 0..10 {
            assert_eq!(turns.next(&both[..1]), Some(TenantId(0)));
            turns.serve(&both[..1]);
        }
        let mut got = Vec::new();
        for _ in 0..6 {
            got.push(turns.next(&both).unwrap().0);
            turns.serve(&both);
        }
        assert_eq!(got, [1, 0, 1, 0, 1, 0]);
    }
}
