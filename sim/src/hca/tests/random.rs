//! Random sequences: what good programs do comes out right, what bad ones do never ends the model.

use super::host::{BASE, CHANNEL, Cq, Host, Qp, QpOptions, Srq, Wqe, attributes};
use super::tag_host::{Count, Tags, eager};
use crate::hca::layout::{Cqe, cqe_opcode, wqe_opcode};
use crate::hca::packet::{Body, Datagram, Extension, Operation, Refusal, Remote, Request, Response};
use crate::hca::tm::app_op::{APPEND, CONSUMED_MSG, NOOP, REMOVE, UNEXPECTED};
use crate::hca::verbs::{attribute, qp_type};
use crate::hca::{CreateCq, HcaConfig, Packet, QpAttributes, SrqKind};

/// SplitMix64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).unwrap()
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.byte()).collect()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.next() % from.len() as u64).unwrap()]
    }
}

fn step_at_random(host: &mut Host, random: &mut Random) -> bool {
    let steps = host.hca.steps();
    if steps.is_empty() {
        return false;
    }
    let step = random.pick(&steps);
    assert!(host.hca.step(step), "{step:?} was said to be possible");
    true
}

#[test]
fn messages_arrive_once_whole_and_in_order_under_random_steps() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let window = 1 + random.below(8);
        let mut host = Host::with(HcaConfig { window, ..HcaConfig::default() });
        let mut cq = host.cq(256);
        let (mut a, mut b) = host.pair(&cq);
        let (mut sent, mut places, mut received) = (Vec::new(), Vec::new(), 0);
        for _ in 0..600 {
            match random.below(8) {
                0 if sent.len() < 30 => {
                    let length = random.below(900);
                    let bytes = random.bytes(length as usize);
                    let from = host.data(&bytes);
                    let wqe = match length {
                        0 => Wqe::new(wqe_opcode::SEND),
                        length => Wqe::send(host.key, from, length),
                    };
                    host.post(&mut a, &wqe);
                    sent.push(bytes);
                }
                1 if places.len() < 30 => places.push(host.receive_into(&mut b, 900)),
                _ => drop(step_at_random(&mut host, &mut random)),
            }
        }
        while places.len() < sent.len() {
            places.push(host.receive_into(&mut b, 900));
        }
        while step_at_random(&mut host, &mut random) {}
        let mut completed = 0;
        for cqe in host.poll_all(&mut cq) {
            if cqe.opcode() == cqe_opcode::REQUESTER {
                completed += 1;
                continue;
            }
            assert_eq!(cqe.opcode(), cqe_opcode::RECEIVED_SEND);
            let bytes: &Vec<u8> = &sent[received];
            assert_eq!(cqe.byte_count.get() as usize, bytes.len(), "seed {seed}");
            assert_eq!(&host.bytes(places[received], bytes.len()), bytes, "seed {seed}");
            received += 1;
        }
        assert_eq!((received, completed), (sent.len(), sent.len()), "seed {seed}");
    }
}

/// TM-CONTRACT 11.2 by itself, with one completion queue as its witness.
#[derive(Debug, Default)]
struct Contract {
    entries: Vec<(u16, u64, u64, bool)>,
    hardware: u16,
    software: u16,
    /// A completion does not name it.
    last_removed: u16,
}

#[derive(Clone, Copy, Debug)]
enum Command {
    Add { index: u16, tag: u64, mask: u64, count: Option<u16> },
    Remove { index: u16, count: Option<u16> },
    Sync { count: u16 },
}

impl Contract {
    fn report(&mut self, count: Option<u16>) {
        if let Some(count) = count {
            self.software = count;
            if self.software == self.hardware {
                self.entries.iter_mut().for_each(|entry| entry.3 = true);
            }
        }
    }

    /// (app_op, success)
    fn execute(&mut self, command: Command) -> (u8, bool) {
        match command {
            Command::Add { index, tag, mask, count } => {
                self.report(count);
                self.entries.push((index, tag, mask, self.software == self.hardware));
                (APPEND, true)
            }
            Command::Remove { index, count } => {
                self.report(count);
                let before = self.entries.len();
                self.entries.retain(|entry| entry.0 != index);
                self.last_removed = index;
                (REMOVE, self.entries.len() < before)
            }
            Command::Sync { count } => {
                self.report(Some(count));
                (NOOP, true)
            }
        }
    }

    fn arrive(&mut self, tag: u64) -> Option<u16> {
        let fits = |(_, wanted, mask, active): &(u16, u64, u64, bool)| *active && tag & mask == *wanted;
        let Some(place) = self.entries.iter().position(fits) else {
            self.hardware = self.hardware.wrapping_add(1);
            return None;
        };
        Some(self.entries.remove(place).0)
    }
}

#[test]
fn tag_matching_does_what_the_contract_says_under_random_steps() {
    let mut matched = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let initial_phase = random.pick(&[0, 0xfffe, 7]);
        let mut tags = Tags::with(HcaConfig { initial_phase, ..HcaConfig::default() });
        let mut contract =
            Contract { hardware: initial_phase, software: initial_phase, ..Contract::default() };
        let (mut commands, mut messages) =
            (std::collections::VecDeque::new(), std::collections::VecDeque::new());
        let (mut in_list, mut handled) = (Vec::new(), initial_phase);
        for _ in 0..400 {
            match random.below(10) {
                0 if tags.has_free() => {
                    let (tag, mask) = random.pick(&[(1, u64::MAX), (2, u64::MAX), (0, !3), (0, 0)]);
                    let count = random.pick(&[None, Some(handled)]);
                    let place = tags.host.alloc(64);
                    let index = tags.add_masked(tag, mask, (place, 64), Count(count));
                    commands.push_back(Command::Add { index, tag, mask, count });
                    in_list.push(index);
                }
                1 if !in_list.is_empty() => {
                    let index = random.pick(&in_list);
                    in_list.retain(|other| *other != index);
                    let count = random.pick(&[None, Some(handled)]);
                    tags.remove(index, Count(count));
                    commands.push_back(Command::Remove { index, count });
                }
                2 => {
                    tags.sync(handled);
                    commands.push_back(Command::Sync { count: handled });
                }
                3 => {
                    let tag = u64::from(random.below(5));
                    tags.send(&eager(tag, b"payload"));
                    messages.push_back(tag);
                }
                _ => drop(step_at_random(&mut tags.host, &mut random)),
            }
            for cqe in tags.poll() {
                check(&cqe, &mut contract, &mut commands, &mut messages, seed);
                match cqe.app_op {
                    UNEXPECTED => {
                        handled = handled.wrapping_add(1);
                        tags.host.srq_free(&mut tags.srq, cqe.wqe_counter.get());
                        tags.fill_buffers(1);
                    }
                    CONSUMED_MSG => {
                        matched += 1;
                        in_list.retain(|other| *other != cqe.app_info.get());
                        tags.give_back(cqe.app_info.get());
                    }
                    REMOVE if cqe.head[0] != 0 => tags.give_back(contract.last_removed),
                    _ => {}
                }
            }
        }
    }
    assert!(matched > 2000, "{matched} matches are too few to say much");
}

fn check(
    cqe: &Cqe,
    contract: &mut Contract,
    commands: &mut std::collections::VecDeque<Command>,
    messages: &mut std::collections::VecDeque<u64>,
    seed: u64,
) {
    if matches!(cqe.app_op, UNEXPECTED | CONSUMED_MSG) {
        let entry = contract.arrive(messages.pop_front().unwrap());
        let found = (cqe.app_op == CONSUMED_MSG).then_some(cqe.app_info.get());
        assert_eq!(found, entry, "seed {seed}");
        return;
    }
    let expected = contract.execute(commands.pop_front().unwrap());
    assert_eq!((cqe.app_op, cqe.head[0] != 0), expected, "seed {seed}");
    let phase = u16::from_be_bytes([cqe.head[4], cqe.head[5]]);
    assert_eq!(phase, contract.hardware, "seed {seed}");
}

/// Everything that a bad program, or a bad process at the other end of the fabric, can reach.
#[derive(Debug)]
struct Chaos {
    host: Host,
    random: Random,
    cqs: Vec<Cq>,
    qps: Vec<Qp>,
    srqs: Vec<Srq>,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let config = HcaConfig { window: 1 + random.below(9), log_tag_list: 5, ..HcaConfig::default() };
        let mut host = Host::with(config);
        let cqs = vec![host.cq(8), host.cq_of(32, 128)];
        let tags = SrqKind::TagMatching { tags: 7, cq: cqs[1].handle };
        let srqs = vec![host.srq(7), host.srq_of(63, tags).unwrap()];
        let mut qps = Vec::new();
        for number in 0..6 {
            let srq = [None, Some(srqs[0].handle), Some(srqs[1].handle)][number % 3];
            let datagram = number == 3;
            let options = QpOptions {
                qp_type: if datagram { qp_type::UD } else { qp_type::RC },
                srq,
                receive: if srq.is_some() { 0 } else { 8 },
                send: if number == 5 { 0 } else { 16 },
            };
            qps.push(host.qp(&cqs[number % 2], options));
        }
        Self { host, random, cqs, qps, srqs }
    }

    fn act(&mut self) {
        let place = usize::try_from(self.random.below(6)).unwrap();
        match self.random.below(16) {
            0 => self.modify(place),
            1 | 2 => self.post(place),
            3 => {
                let word = self.random.word() & self.random.pick(&[0xf, 0xffff, u32::MAX]);
                let doorbell = self.qps[place].doorbell + u64::from(self.random.below(2)) * 4;
                self.host.store(doorbell, word);
            }
            4 => {
                let packet = self.packet();
                self.host.hca.handle_packet(packet);
            }
            5 => {
                let at = BASE + 4096 + u64::from(self.random.below(20_000));
                let length = self.random.below(80) as usize;
                let bytes = self.random.bytes(length);
                self.host.fill(at, &bytes);
            }
            6 => {
                let which = self.random.below(2) as usize;
                let mut polled = 0;
                while polled < 5 && self.host.poll(&mut self.cqs[which]).is_some() {
                    polled += 1;
                }
            }
            7 => {
                let srq = &mut self.srqs[usize::from(self.random.byte() & 1)];
                let address = BASE + 4096 + u64::from(self.random.below(2000));
                let key = self.random.pick(&[self.host.key, 0x100, 5]);
                self.host.try_srq_receive(srq, (key, address, 64));
            }
            8 => self.host.hca.handle_process_lost(self.random.byte() & 3),
            9 => while self.host.hca.poll_async_event().is_some() {},
            10 => {
                let now = self.random.next() >> 30;
                self.host.hca.advance_clock(now);
                assert!(self.host.hca.run(20) <= 20 + 100_000);
            }
            _ => drop(step_at_random(&mut self.host, &mut self.random)),
        }
    }

    fn modify(&mut self, place: usize) {
        let dest_qpn = 0x41 + self.random.below(6);
        let attributes = QpAttributes {
            state: self.random.byte() % 8,
            dest_qpn,
            qkey: super::host::QKEY,
            path_mtu: self.random.byte() % 7,
            retry_count: self.random.byte() % 9,
            rnr_retry: self.random.byte() % 9,
            ..attributes()
        };
        let qp = &self.qps[place];
        if self.random.below(3) == 0 {
            let mask = self.random.word() & 0x03ff_ffff;
            let _ = self.host.modify(qp, mask, attributes);
        } else {
            self.host.forward(qp, attributes);
        }
        let reset = attribute::STATE;
        if self.random.below(8) == 0 {
            let _ = self.host.modify(qp, reset, QpAttributes { state: 0, ..attributes });
        }
    }

    fn post(&mut self, place: usize) {
        let opcode = self.random.pick(&[0, 1, 8, 9, 10, 10, 10, 11, 16, 17, 18, 0x28, 0x28, 0x25]);
        let key = self.random.pick(&[self.host.key, self.host.key, 0x100, 7]);
        let address = BASE + 4096 + u64::from(self.random.below(5000));
        let length = self.random.below(1500);
        let mut wqe = Wqe::new(opcode);
        match opcode {
            8 | 9 | 16 => wqe = wqe.remote(key, address).data(self.host.key, address, length),
            17 | 18 => wqe = wqe.remote(key, address).atomic(1, 2).data(self.host.key, address, 8),
            0x28 => {
                let command = self.random.byte() % 4;
                let flags = self.random.byte();
                let index = self.random.byte() % 9;
                let mut body = vec![command << 4, flags, 0, index, 0, 0, 0, self.random.byte() % 4];
                body.resize(32, 0);
                body[23] = self.random.byte() % 3;
                wqe = wqe.raw(&body).data(key, address, length);
            }
            _ => wqe = wqe.data(key, address, length),
        }
        if self.random.below(4) == 0 {
            let length = self.random.pick(&[0, 16, 64, 200]);
            let junk = self.random.bytes(length);
            wqe = wqe.raw(&junk);
        }
        if self.qps[place].sq_count > 0 {
            self.host.post(&mut self.qps[place], &wqe);
        }
    }

    fn packet(&mut self) -> Packet {
        let random = &mut self.random;
        let source = 0x41 + random.below(7);
        let destination = 0x41 + random.below(7);
        let psn = random.pick(&[0, 1, 2, 3, 0x00ff_ffff]);
        let address = BASE + u64::from(random.below(9000));
        let remote = Remote { address, key: self.host.key, length: random.word() >> random.below(32) };
        let length = random.pick(&[0, 1, 16, 32, 256, 4096]);
        let mut payload = random.bytes(length);
        if let Some(first) = payload.first_mut() {
            *first %= 5;
        }
        let operations = [
            Operation::Send,
            Operation::Send,
            Operation::Write(remote),
            Operation::Read(remote),
            Operation::FetchAdd { address, key: self.host.key, add: 1 },
            Operation::CompareSwap { address, key: 3, compare: 0, swap: 1 },
        ];
        let body = match random.below(3) {
            0 => Body::Request(Request {
                psn,
                attempt: random.byte() % 3,
                operation: random.pick(&operations),
                first: random.below(4) > 0,
                last: random.below(4) > 0,
                solicited: random.below(2) > 0,
                extension: random.pick(&[
                    Extension::None,
                    Extension::Immediate([1; 4]),
                    Extension::Invalidate(9),
                ]),
                payload,
            }),
            1 => Body::Response(match random.below(7) {
                0 => Response::Acknowledge { psn },
                1 => Response::NotReady { psn, timer: random.byte() % 32 },
                2 => Response::OutOfSequence { psn },
                3 => Response::Refused { psn, reason: random.pick(&[Refusal::Access, Refusal::Operation]) },
                4 => Response::ReadData { psn, payload },
                5 => Response::AtomicResult { psn, value: 1 },
                _ => Response::Dropped { psn, attempt: random.byte() % 3 },
            }),
            _ => Body::Datagram(Datagram {
                qkey: super::host::QKEY,
                slid: 1,
                sl: 0,
                solicited: false,
                immediate: None,
                grh: Some([1; 40]).filter(|_| random.below(2) == 0),
                payload,
            }),
        };
        Packet { source, destination, body }
    }
}

#[test]
fn bad_programs_and_strangers_on_the_fabric_never_end_the_model() {
    for seed in 0..400 {
        let mut chaos = Chaos::new(seed);
        for _ in 0..400 {
            chaos.act();
        }
        chaos.host.run();
        let context = chaos.host.context;
        chaos.host.hca.close_context(context);
        chaos.host.run();
        assert_eq!(chaos.host.hca.poll_async_event(), None);
        let again = chaos.host.hca.open_context();
        let request = CreateCq {
            user_handle: 0,
            entries: 3,
            vector: 0,
            channel: Some(CHANNEL),
            buffer: BASE,
            doorbell: BASE + 1024,
            cqe_size: 64,
        };
        assert!(chaos.host.hca.create_cq(again, &request).is_ok(), "seed {seed}");
    }
}
