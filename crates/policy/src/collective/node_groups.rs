//! Node groups: clients of a transfer that make their requests at the same time (Nitzberg,
//! Performance of the iPSC/860 Concurrent File System, NASA RND-92-020; PIOSIM, SC 1997).
//!
//! Invariants:
//! - Every client is in one group, and every group has a client.
//! - No group has more clients than the size says.

use crate::placement::Stripe;
use units::ClientId;

/// Division of the clients of a transfer into groups that take turns, in the order of ranks.
///
/// ```text
/// 7 clients, size 3:   turn 0: 0 1 2   turn 1: 3 4 5   turn 2: 6
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeGroups {
    clients: u32,
    size: u32,
}

impl NodeGroups {
    /// Groups of `size` of the `clients` clients. A size of 0 means the default for files of this
    /// stripe: one client for each disk, but at least two groups. More clients than disks only
    /// queue there; no paper publishes a size.
    pub fn new(clients: u32, size: u32, stripe: &Stripe) -> Self {
        let half = clients.div_ceil(2);
        let by_default = || u32::try_from(stripe.disks()).map_or(half, |disks| disks.min(half));
        let size = if size == 0 { by_default() } else { size };
        Self { clients, size: size.max(1) }
    }

    /// Number of groups, and so of turns.
    pub fn turns(&self) -> u32 {
        self.clients.div_ceil(self.size)
    }

    /// Turn of a client, counted from 0.
    pub fn turn_of(&self, client: ClientId) -> u32 {
        client.0 / self.size
    }
}

#[cfg(test)]
mod tests {
    //! Proves: for every small number of clients and every size, each client has one turn, and each
    //! turn a client and none too many.
    use super::*;

    fn stripe(servers: u32, disks: u32) -> Stripe {
        Stripe::round_robin(64, servers, disks)
    }

    #[test]
    fn every_client_has_a_turn_and_no_turn_has_too_many() {
        for clients in 1..=40 {
            for size in 0..=45 {
                let groups = NodeGroups::new(clients, size, &stripe(3, 2));
                let mut members = vec![0; groups.turns() as usize];
                let turns = (0..clients).map(|client| groups.turn_of(ClientId(client)));
                turns.for_each(|turn| members[turn as usize] += 1);
                let most = if size == 0 { 6 } else { size };
                assert!(members.iter().all(|count| (1..=most).contains(count)), "{members:?}");
                assert_eq!(members.iter().sum::<u32>(), clients);
            }
        }
    }

    #[test]
    fn the_default_is_one_client_for_each_disk_and_two_groups_at_least() {
        let turns = |clients, stripe: Stripe| NodeGroups::new(clients, 0, &stripe).turns();
        assert_eq!(turns(128, stripe(10, 1)), 13);
        assert_eq!(turns(16, stripe(16, 1)), 2);
        assert_eq!(turns(16, stripe(2, 2)), 4);
        assert_eq!(turns(3, stripe(1 << 20, 1 << 20)), 2);
        assert_eq!(turns(1, stripe(1, 1)), 1);
    }

    #[test]
    fn one_group_may_hold_everyone() {
        for size in [4, 5, u32::MAX] {
            assert_eq!(NodeGroups::new(4, size, &stripe(2, 1)).turns(), 1);
        }
    }
}
