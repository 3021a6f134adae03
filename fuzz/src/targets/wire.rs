//! Messages of peers. A message means one thing: whatever is understood encodes to what it was read from, and is known by its
//! beginning; an error names the trouble.

use tagmatch::wire::{Control, HelloRefused, Message, Partial, RefusedHello, decode, decode_partial};

pub(super) fn run(bytes: &[u8]) -> bool {
    // The last byte says where the message is cut.
    let Some((&cut, bytes)) = bytes.split_last() else { return false };
    let cut = usize::from(cut) % (bytes.len() + 1);
    let whole = decode(bytes);
    let part = decode_partial(&bytes[..cut], bytes.len() as u64);
    match &whole {
        Ok(message) => {
            let mut out = vec![0; bytes.len().max(1)];
            let length = message.encode(&mut out).expect("what was understood can be said");
            assert_eq!(&out[..length], bytes, "said otherwise: {message:?}");
            if let Partial::Message(early) = part.expect("the whole is right, so is its beginning") {
                assert_eq!(early.payload_range(), message.payload_range());
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if !matches!(part, Ok(Partial::Needed(_))) {
                assert_eq!(part.err(), Some(*error), "wrong in another way than as a whole");
            }
        }
    }
    whole.is_ok()
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let refused = HelloRefused { reason: RefusedHello::Busy, version_min: 1, version_max: 2 };
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let mut out = [0; 64];
    let length = Message::Control(Control::HelloRefused(refused)).encode(&mut out).expect("there is room");
    seeds.push(out[..length].to_vec());
    // Every kind by its first bytes, with and without something behind.
    for kind in 0..0x40 {
        for length in [4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 100] {
            let mut bytes = vec![0; length + 1];
            bytes[1] = kind;
            seeds.push(bytes);
        }
    }
    for opcode in 1..4 {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[31], bytes[39]) = (opcode, 9, 9);
        seeds.push(bytes);
    }
    seeds
}
