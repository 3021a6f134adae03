//! The parts alone: the table, the ring of links.

use super::world::Random;
use crate::matching::fifo::{self, Link, Links, Unlinked};
use crate::matching::hash::Hasher;
use crate::matching::table::Table;
use std::collections::BTreeMap;

#[test]
fn table_finds_every_key_through_growth_and_removal() {
    let mut random = Random(2);
    let hasher = Hasher::new(3);
    let mut table = Table::new();
    let mut present: BTreeMap<u32, u32> = BTreeMap::new();
    for round in 0..6 {
        let target = [10, 3000, 20, 20_000, 0, 5000][round];
        while present.len() != target {
            let slot = random.next() as u32 % 40_000;
            let fragment = hasher.fragment(u64::from(slot) << 20, 0);
            let place = table.find(fragment, |other| other == slot);
            assert_eq!(place.is_some(), present.contains_key(&slot));
            match place {
                Some(place) if present.len() > target => {
                    assert_eq!(place.slot, slot);
                    table.remove(fragment, place);
                    present.remove(&slot);
                }
                None if present.len() < target => {
                    table.insert(fragment, slot);
                    present.insert(slot, fragment);
                }
                _ => {}
            }
        }
        let mut cells: Vec<(u32, u32)> = table.check().into_iter().map(|(f, s)| (s, f)).collect();
        cells.sort_unstable();
        let expected: Vec<(u32, u32)> = present.iter().map(|(s, f)| (*s, *f | 1 << 31)).collect();
        assert_eq!(cells, expected);
    }
}

#[test]
fn table_whose_fragments_all_fall_into_one_line_still_finds_them() {
    let mut table = Table::new();
    for slot in 0..2000 {
        table.insert(slot << 24, slot);
    }
    for slot in (0..2000).step_by(2) {
        let place = table.find(slot << 24, |other| other == slot).expect("it was inserted");
        table.remove(slot << 24, place);
    }
    assert_eq!(table.check().len(), 1000);
    for slot in 0..2000 {
        assert_eq!(table.find(slot << 24, |other| other == slot).is_some(), slot % 2 == 1);
    }
}

#[test]
fn table_grows_by_one_line_per_key_while_a_sweep_goes_on() {
    let hasher = Hasher::new(0);
    let mut table = Table::new();
    let mut lines = table.lines_used();
    for slot in 0..100_000 {
        table.insert(hasher.fragment(u64::from(slot), 0), slot);
        assert!(table.lines_used() - lines <= 1, "one key split several lines");
        lines = table.lines_used();
        assert!(table.keys() <= lines * 5, "the sweep fell behind");
    }
}

#[test]
fn cleared_table_is_empty_and_can_be_filled_again() {
    let hasher = Hasher::new(0);
    let mut table = Table::new();
    for round in 0..4 {
        for slot in 0..3000 {
            let fragment = hasher.fragment(u64::from(slot), 0);
            assert!(table.find(fragment, |other| other == slot).is_none());
            table.insert(fragment, slot);
        }
        if round == 1 {
            table.clear_for(10_000)
        } else {
            table.clear()
        }
        assert_eq!(table.check(), []);
    }
}

#[test]
fn strided_tags_spread_over_lines() {
    for seed in 0..20 {
        let hasher = Hasher::new(seed);
        for stride in [1, 2, 3, 1024, 1 << 20, 1 << 32, 1 << 48, 0x1_0000_0001, (1 << 48) - 1] {
            let mut counts = vec![0u32; 1024];
            for i in 0..4096u64 {
                counts[hasher.fragment(i.wrapping_mul(stride), 0) as usize % 1024] += 1;
            }
            let most = counts.iter().max().copied().unwrap_or_default();
            assert!(most <= 20, "{most} of 4096 keys in one of 1024 lines at stride {stride:#x}");
        }
    }
}

impl Links for Vec<Link> {
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self[slot as usize]
    }
}

#[test]
fn ring_keeps_its_order_when_entries_leave_anywhere() {
    let mut random = Random(4);
    let mut links = vec![Link::default(); 32];
    let mut ring: Vec<u32> = Vec::new();
    for _ in 0..10_000 {
        let absent: Vec<u32> = (0..32).filter(|slot| !ring.contains(slot)).collect();
        if !absent.is_empty() && (ring.is_empty() || random.chance(50)) {
            let slot = random.pick(&absent);
            if let Some(head) = ring.first() {
                fifo::append(&mut links, *head, slot);
            } else {
                links[slot as usize] = Link::alone(slot);
            }
            ring.push(slot);
        } else {
            let at = random.below(ring.len());
            let slot = ring.remove(at);
            let expected = match (at, ring.first()) {
                (_, None) => Unlinked::Last,
                (0, Some(head)) => Unlinked::Head(*head),
                _ => Unlinked::Inner,
            };
            let link = links[slot as usize];
            assert_eq!(fifo::unlink(&mut links, slot, link), expected);
        }
        for (at, slot) in ring.iter().enumerate() {
            assert_eq!(links[*slot as usize].next(), ring[(at + 1) % ring.len()]);
            assert_eq!(links[*slot as usize].is_head(), at == 0);
        }
    }
}
