//! What the tests on the simulated HCA share: the device, moved on by hand.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::rc::Rc;
use std::time::Duration;

use tagmatch_hw_tests::script::Advance;
use tagmatch_hw_tests::verbs::{Choice, Device};
use tagmatch_hw_tests::verbs_port::{Drive, VerbsTm};
use tagmatch_sim::hca::{HcaConfig, Step};
use tagmatch_sim::hca_abi::HcaControl;

/// A simulated device, and the verbs library's view of it.
pub(crate) fn stepped(config: HcaConfig) -> (Rc<HcaControl>, VerbsTm) {
    stepped_on_port(config, 1)
}

/// On another port than the first.
pub(crate) fn stepped_on_port(config: HcaConfig, port: u8) -> (Rc<HcaControl>, VerbsTm) {
    let control =
        Rc::new(HcaControl::new(config, tagmatch_sim::hca_abi::Drive::Steps).expect("sysfs is written"));
    let choice = Choice { device: Some(control.name().to_owned()), port, ..Choice::default() };
    let device = Device::open(&choice).expect("the simulated device is there");
    let drive = Box::new(Stepped(Rc::clone(&control)));
    (control, VerbsTm::new(device, drive, Duration::ZERO))
}

/// A device that has a thread of its own, as a card runs by itself.
pub(crate) fn threaded(config: HcaConfig) -> (Rc<HcaControl>, VerbsTm) {
    let control =
        Rc::new(HcaControl::new(config, tagmatch_sim::hca_abi::Drive::Thread).expect("sysfs is written"));
    let choice = Choice { device: Some(control.name().to_owned()), ..Choice::default() };
    let device = Device::open(&choice).expect("the simulated device is there");
    let drive = Box::new(Threaded(Rc::clone(&control)));
    (control, VerbsTm::new(device, drive, Duration::from_millis(2)))
}

/// Waits for the device's thread.
pub(crate) struct Threaded(pub(crate) Rc<HcaControl>);

impl Drive for Threaded {
    fn is_free(&self) -> bool {
        true
    }

    fn is_model(&self) -> bool {
        true
    }

    fn settle(&mut self) {
        while self.0.steps().iter().any(|step| !matches!(step, Step::Timer(_))) {
            std::thread::yield_now();
        }
    }

    fn advance(&mut self, _step: Advance, _qps: &[(u32, u32)]) -> bool {
        false
    }
}

/// Moves the device on.
pub(crate) struct Stepped(pub(crate) Rc<HcaControl>);

impl Stepped {
    fn is_possible(&self, step: Step) -> bool {
        self.0.steps().contains(&step)
    }

    /// While one of these is possible.
    fn exhaust(&self, steps: &[Step]) {
        while steps.iter().any(|step| self.is_possible(*step) && self.0.step(*step)) {}
    }
}

impl Drive for Stepped {
    fn is_free(&self) -> bool {
        false
    }

    fn is_model(&self) -> bool {
        true
    }

    fn settle(&mut self) {
        self.0.run_until_idle();
    }

    fn advance(&mut self, step: Advance, qps: &[(u32, u32)]) -> bool {
        match step {
            // The command QP is the one that is no sender's.
            Advance::Command => {
                let command = self.0.steps().into_iter().find(|step| match step {
                    Step::Send(qpn) => qps.iter().all(|(send, receive)| send != qpn && receive != qpn),
                    Step::Respond(_) | Step::Deliver { .. } | Step::Timer(_) | Step::Flush(_) => false,
                });
                command.is_some_and(|step| self.0.step(step))
            }
            Advance::Packet(sender) => {
                let (send, receive) = qps[usize::from(sender)];
                let waiting = Step::Deliver { from: send, to: receive };
                let sent = self.is_possible(waiting) || self.0.step(Step::Send(send));
                let delivered = sent && self.0.step(waiting);
                self.exhaust(&[Step::Respond(receive), Step::Deliver { from: receive, to: send }]);
                delivered
            }
            Advance::Any => {
                let mut steps = self.0.steps().into_iter();
                steps.find(|step| !matches!(step, Step::Timer(_))).is_some_and(|step| self.0.step(step))
            }
            Advance::Read => {
                let any = qps.iter().find(|(_, receive)| self.is_possible(Step::Send(*receive)));
                let Some(&(send, receive)) = any else { return false };
                self.exhaust(&[
                    Step::Send(receive),
                    Step::Deliver { from: receive, to: send },
                    Step::Respond(send),
                    Step::Deliver { from: send, to: receive },
                ]);
                true
            }
        }
    }
}
