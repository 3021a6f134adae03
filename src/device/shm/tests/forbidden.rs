//! Where reading another process's memory is forbidden, as in many containers: what is long comes through the ring, and
//! nobody has to be asked. A filter of system calls (`seccomp(2)`) forbids it to one thread here.

use std::thread;

use crate::device::shm::direct;
use crate::device::tests::{Memory, Policy, Rig, pattern, trusted};

/// From now on this thread gets this error of `process_vm_readv(2)`.
fn forbid(errno: i32) {
    let load = u16::try_from(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS).expect("it is small");
    let compare = u16::try_from(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K).expect("it is small");
    let answer = u16::try_from(libc::BPF_RET | libc::BPF_K).expect("it is small");
    let number = u32::try_from(libc::SYS_process_vm_readv).expect("it is small");
    let refused = libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        // The number of the call stands at the beginning (`struct seccomp_data`).
        step(load, 0, 0, 0),
        step(compare, number, 0, 1),
        step(answer, refused, 0, 0),
        step(answer, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program is ours and is copied; it holds for this thread alone.
    let set =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0) };
    assert_eq!(set, 0);
}

/// Long messages from a sender to a receiver, both in this thread.
fn exchange(mut rig: Rig) {
    // More than both rings hold.
    for (seed, size) in [0, 1, 70_000, 131_072, 3_000_000, 500].into_iter().enumerate() {
        for cut in [false, true] {
            let cuts: &[usize] = if cut { &[0, size / 3, 1, 5] } else { &[] };
            let (from, into) = (Memory::cut(pattern(seed, size), cuts), Memory::cut(vec![0; size], cuts));
            let before = rig.ear().data().len();
            rig.ear().policy = Policy::Accept([into.buffer()].into());
            let request = rig.send_rendezvous(seed as u64, from.buffer());
            let data = rig.until_data(before + 1)[before];
            assert_eq!((data.length, data.error), (size as u64, None));
            assert_eq!(into.bytes(), pattern(seed, size));
            let fin = request.fin().to_bytes().to_vec();
            rig.until(|rig| rig.sender_ear().controls().contains(&fin));
        }
    }
}

#[test]
fn what_is_long_comes_through_the_ring_where_reading_it_is_forbidden() {
    for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES] {
        let work = thread::spawn(move || {
            forbid(errno);
            let own = std::process::id().cast_signed();
            let (from, into) = (Memory::new(vec![7; 16]), Memory::zeros(16));
            let stretches = trusted().stretches(&into.buffer(), 0, 16);
            let refused = direct::read(own, from.buffer().address, stretches);
            assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(errno)));
            exchange(Rig::shm());
        });
        work.join().expect("it works all the same");
    }
}

#[test]
fn what_is_long_goes_on_to_come_when_reading_it_is_forbidden_in_the_midst() {
    let work = thread::spawn(|| {
        let mut rig = Rig::shm();
        for (seed, is_forbidden) in [(1, false), (2, true), (3, true)] {
            let (from, into) = (Memory::new(pattern(seed, 400_000)), Memory::zeros(400_000));
            rig.ear().policy = Policy::Accept([into.buffer()].into());
            if is_forbidden {
                forbid(libc::EPERM);
            }
            rig.send_rendezvous(1, from.buffer());
            rig.until_data(seed);
            assert_eq!(into.bytes(), pattern(seed, 400_000));
        }
    });
    work.join().expect("it works all the same");
}
