//! Buffers: at home, lent, taken, leaked.

use super::super::buffer::{BufferError, BufferTable, OwnedBuffer, Region, StableBuffer};
use super::*;
use crate::ids::BufferId;

/// Counts how often its like was freed.
#[derive(Debug)]
pub(in crate::domain) struct Counted {
    buffer: OwnedBuffer,
    freed: Arc<AtomicU64>,
}

impl StableBuffer for Counted {
    fn region(&mut self) -> Region {
        self.buffer.region()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_buffer_keeps_its_address_from_submission_until_it_is_handed_back() {
    let mut table = BufferTable::default();
    let mut buffer = OwnedBuffer::new(100);
    let region = buffer.region();
    assert_eq!(region.length, 100);
    let id = table.insert(buffer).unwrap();
    assert_eq!(table.expose(id), Ok(region));
    // The table grows, and moves.
    for _ in 0..1_000 {
        table.insert(OwnedBuffer::new(10)).unwrap();
    }
    let mut table = Box::new(table);
    assert_eq!(table.expose(id), Ok(region));
    table.release(id).unwrap();
    table.release(id).unwrap();
    table.bytes_mut(id).unwrap()[3] = 42;
    let mut back = table.take(id).unwrap();
    assert_eq!(back.region(), region);
    assert_eq!(back.bytes()[3], 42);
    let bytes = back.into_boxed_slice();
    assert_eq!(bytes.as_ptr().addr() as u64, region.address);
}

#[test]
fn bytes_of_users_are_taken_in_and_given_back_without_a_copy() {
    let boxed: Box<[u8]> = vec![1, 2, 3].into();
    let address = boxed.as_ptr().addr() as u64;
    let mut buffer = OwnedBuffer::from(boxed);
    assert_eq!(buffer.region(), Region { address, length: 3 });
    let vector = buffer.into_vec();
    assert_eq!(vector.as_ptr().addr() as u64, address);
    assert_eq!(OwnedBuffer::from(vector).bytes(), [1, 2, 3]);
    assert_ne!(OwnedBuffer::new(0).region().address, 0);
}

#[test]
fn a_buffer_that_a_device_may_write_is_neither_given_out_nor_shown() {
    let mut table = BufferTable::default();
    let id = table.insert(OwnedBuffer::new(8)).unwrap();
    table.expose(id).unwrap();
    table.expose(id).unwrap();
    for loans in [2, 1] {
        assert_eq!(table.take(id).unwrap_err(), BufferError::Exposed { id, loans });
        assert_eq!(table.bytes_mut(id).unwrap_err(), BufferError::Exposed { id, loans });
        assert_eq!((table.len(), table.exposed()), (1, 1));
        table.release(id).unwrap();
    }
    assert_eq!(table.release(id), Err(BufferError::Loans { id, loans: 0 }));
    assert_eq!(table.exposed(), 0);
    assert!(table.take(id).is_ok());
    assert!(table.is_empty());
}

#[test]
fn an_id_names_nothing_once_its_buffer_was_taken() {
    let mut table = BufferTable::with_capacity(1);
    let old = table.insert(OwnedBuffer::new(8)).unwrap();
    table.take(old).unwrap();
    let unknown = BufferError::Unknown { id: old };
    let new = table.insert(OwnedBuffer::new(8)).unwrap();
    assert_eq!((new.index, new.generation), (old.index, old.generation + 1), "the place is used again");
    assert_eq!(table.take(old).unwrap_err(), unknown);
    assert_eq!(table.expose(old), Err(unknown));
    assert_eq!(table.release(old), Err(unknown));
    assert_eq!(table.bytes_mut(old).unwrap_err(), unknown);
    let never = BufferId { index: 7, generation: 0 };
    assert_eq!(table.take(never).unwrap_err(), BufferError::Unknown { id: never });
    assert!(table.take(new).is_ok());
}

#[test]
fn a_dropped_table_frees_what_is_at_home_and_leaks_what_devices_hold() {
    let freed = Arc::new(AtomicU64::new(0));
    let mut table = BufferTable::default();
    let mut insert = || {
        let buffer = Counted { buffer: OwnedBuffer::new(64), freed: Arc::clone(&freed) };
        table.insert(buffer).unwrap()
    };
    let [lent, lent_twice, returned, _never_lent, taken] = std::array::from_fn(|_| insert());
    table.expose(lent).unwrap();
    for _ in 0..2 {
        table.expose(lent_twice).unwrap();
    }
    table.release(lent_twice).unwrap();
    table.expose(returned).unwrap();
    table.release(returned).unwrap();
    drop(table.take(taken).unwrap());
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    assert_eq!(table.exposed(), 2);
    drop(table);
    assert_eq!(freed.load(Ordering::Relaxed), 3, "one taken, two at home");
    // What was leaked still has its share of the counter.
    assert_eq!(Arc::strong_count(&freed), 1 + 2);
}

#[test]
fn a_panic_with_buffers_in_devices_leaks_them_as_well() {
    let freed = Arc::new(AtomicU64::new(0));
    panics(|| {
        let mut table = BufferTable::default();
        let buffer = Counted { buffer: OwnedBuffer::new(64), freed: Arc::clone(&freed) };
        let id = table.insert(buffer).unwrap();
        table.expose(id).unwrap();
        panic!("with a buffer lent");
    });
    assert_eq!(freed.load(Ordering::Relaxed), 0);
}
