//! The simulated HCA's kernel side, met as a program meets it: by the device's path and by written commands. What is
//! written may be anything; the answer is the kernel's, and never the end of the process.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::ffi::{CStr, CString, c_int};
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

tagmatch_sim::hca_hooks!();

/// A descriptor of a device, closed when dropped.
struct Opened(c_int);

impl Opened {
    fn new(control: &HcaControl) -> Self {
        let path = CString::new(node(control)).unwrap();
        // SAFETY: a path that ends with a zero.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        assert!(fd >= 0, "{}: {}", node(control), std::io::Error::last_os_error());
        Self(fd)
    }

    /// With a context.
    fn with_context(control: &HcaControl) -> Self {
        let opened = Self::new(control);
        assert_eq!(opened.get_context(), Ok(()));
        opened
    }

    fn get_context(&self) -> Result<(), c_int> {
        let mut answer = [0u8; 80];
        let driver = [16u32, 4, 0, 0, 1, 0, 0, 0];
        self.plain(0, &words(&driver), Some(&mut answer))
    }

    /// Write bytes: what `write` answers.
    fn write(&self, bytes: &[u8]) -> Result<(), c_int> {
        // SAFETY: bytes of that length.
        let wrote = unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) };
        if wrote >= 0 {
            assert_eq!(wrote.cast_unsigned(), bytes.len(), "a command is taken whole");
            return Ok(());
        }
        Err(errno())
    }

    /// A well-framed command of the first kind.
    fn plain(&self, command: u32, body: &[u8], answer: Option<&mut [u8]>) -> Result<(), c_int> {
        let address = if answer.is_some() { 8 } else { 0 };
        let in_words = u16::try_from((8 + address + body.len()) / 4).unwrap();
        let out_words = answer.as_ref().map_or(0, |answer| u16::try_from(answer.len() / 4).unwrap());
        let mut bytes = header(command, in_words, out_words);
        if let Some(answer) = answer {
            bytes.extend((answer.as_mut_ptr().addr() as u64).to_ne_bytes());
        }
        bytes.extend(body);
        self.write(&bytes)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::close(self.0) };
    }
}

fn control() -> HcaControl {
    HcaControl::new(HcaConfig::default(), Drive::Steps).unwrap()
}

fn node(control: &HcaControl) -> String {
    control.name().replace("mlx5_", "/dev/infiniband/uverbs")
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn header(command: u32, in_words: u16, out_words: u16) -> Vec<u8> {
    let mut bytes = command.to_ne_bytes().to_vec();
    bytes.extend(in_words.to_ne_bytes());
    bytes.extend(out_words.to_ne_bytes());
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn word(bytes: &[u8], place: usize) -> u32 {
    u32::from_ne_bytes(bytes[place..place + 4].try_into().unwrap())
}

const ALLOC_PD: u32 = 3;
const DEALLOC_PD: u32 = 4;
const REG_MR: u32 = 9;
const DEREG_MR: u32 = 13;
const CREATE_COMP_CHANNEL: u32 = 17;
const CREATE_CQ: u32 = 18;
const DESTROY_CQ: u32 = 20;
const EXTENDED: u32 = 0x8000_0000;

#[test]
fn the_node_is_a_character_device_that_can_be_mapped() {
    let control = control();
    let path = CString::new(node(&control)).unwrap();
    // SAFETY: plain numbers, of which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends with a zero, and a structure.
    assert_eq!(unsafe { libc::stat(path.as_ptr(), &raw mut stat) }, 0);
    assert_eq!(stat.st_mode & libc::S_IFMT, libc::S_IFCHR);
    // SAFETY: a path that ends with a zero.
    assert_eq!(unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) }, 0);

    let opened = Opened::new(&control);
    // SAFETY: a new mapping, anywhere.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, libc::MAP_SHARED, opened.0, 3 * 4096)
    };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the mapping that was just made.
    assert_eq!(unsafe { libc::munmap(page, 4096) }, 0);
}

#[test]
fn another_path_or_number_is_left_to_the_kernel() {
    let _control = control();
    for path in [c"/dev/infiniband/uverbs999", c"/dev/infiniband/uverbs", c"/dev/infiniband/uverbs1x"] {
        // SAFETY: a path that ends with a zero.
        assert_eq!(unsafe { libc::open(path.as_ptr(), libc::O_RDWR) }, -1, "{path:?}");
        assert_eq!(errno(), libc::ENOENT, "{path:?}");
    }
    let this_file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(std::fs::read_to_string(this_file).unwrap().contains("tagmatch-sim"));
}

#[test]
fn the_kernels_list_of_devices_is_out_of_reach() {
    let _control = control();
    const NETLINK_RDMA: c_int = 20;
    // SAFETY: numbers alone.
    assert_eq!(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, NETLINK_RDMA) }, -1);
    // SAFETY: numbers alone.
    let other = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    assert!(other >= 0, "other sockets are the kernel's");
    // SAFETY: ours.
    unsafe { libc::close(other) };
}

#[test]
fn an_ioctl_is_answered_as_if_there_were_none() {
    let control = control();
    let opened = Opened::new(&control);
    // SAFETY: the device reads nothing.
    assert_eq!(unsafe { libc::ioctl(opened.0, 0xc018_1b01) }, -1);
    assert_eq!(errno(), libc::ENOTTY);
}

#[test]
fn commands_need_a_context_and_a_context_is_got_once() {
    let control = control();
    let opened = Opened::new(&control);
    let mut answer = [0u8; 8];
    assert_eq!(opened.plain(ALLOC_PD, &[], Some(&mut answer)), Err(libc::EINVAL));
    assert_eq!(opened.get_context(), Ok(()));
    assert_eq!(opened.get_context(), Err(libc::EINVAL));
    assert_eq!(opened.plain(ALLOC_PD, &[], Some(&mut answer)), Ok(()));
}

#[test]
fn a_context_with_direct_firmware_commands_is_refused() {
    let control = control();
    let opened = Opened::new(&control);
    let mut answer = [0u8; 80];
    let driver = [16u32, 4, 1, 0, 1, 0, 0, 0];
    assert_eq!(opened.plain(0, &words(&driver), Some(&mut answer)), Err(libc::EINVAL));
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let control = control();
    let opened = Opened::with_context(&control);
    let answer = [0u8; 8];
    let address = (answer.as_ptr().addr() as u64).to_ne_bytes();
    let command = |in_words, out_words, body: &[u8]| {
        let mut bytes = header(ALLOC_PD, in_words, out_words);
        bytes.extend(body);
        opened.write(&bytes)
    };
    assert_eq!(opened.write(&[]), Err(libc::EINVAL), "nothing");
    assert_eq!(opened.write(&[3, 0, 0, 0, 2, 0]), Err(libc::EINVAL), "half a header");
    assert_eq!(command(5, 2, &address), Err(libc::EINVAL), "says more than it brings");
    assert_eq!(command(3, 2, &address), Err(libc::EINVAL), "says less than it brings");
    assert_eq!(command(2, 2, &[]), Err(libc::ENOSPC), "no address for the answer");
    assert_eq!(command(4, 0, &address), Err(libc::ENOSPC), "no room for the answer");
    assert_eq!(command(4, 2, &address), Ok(()));
}

#[test]
fn unknown_commands_are_refused() {
    let control = control();
    let opened = Opened::with_context(&control);
    let mut answer = [0u8; 64];
    for command in [21, 37, 41, 200] {
        assert_eq!(opened.plain(command, &[0; 32], Some(&mut answer)), Err(libc::EOPNOTSUPP), "{command}");
    }
    for command in [0x100, 0x4000_0003] {
        assert_eq!(opened.plain(command, &[0; 32], Some(&mut answer)), Err(libc::EINVAL), "{command}");
    }
}

#[test]
fn an_extended_command_must_agree_with_itself_about_its_answer() {
    let control = control();
    let opened = Opened::with_context(&control);
    let mut answer = [0u8; 512];
    let address = answer.as_mut_ptr().addr() as u64;
    let command = |response: u64, out_words: u16, reserved: u32| {
        let mut bytes = header(EXTENDED | 1, 1, out_words);
        bytes.extend(response.to_ne_bytes());
        bytes.extend([0u8; 4]);
        bytes.extend(reserved.to_ne_bytes());
        bytes.extend([0u8; 8]);
        opened.write(&bytes)
    };
    assert_eq!(command(0, 38, 0), Err(libc::EINVAL), "room nowhere");
    assert_eq!(command(address, 0, 0), Err(libc::EINVAL), "a place without room");
    assert_eq!(command(address, 2, 0), Err(libc::ENOSPC), "too little room");
    assert_eq!(command(address, 38, 1), Err(libc::EINVAL), "reserved");
    assert_eq!(command(address, 38, 0), Ok(()));
    assert_eq!(word(&answer, 180), 304, "response_length");
}

#[test]
fn an_answer_that_cannot_be_written_creates_nothing() {
    let control = control();
    let opened = Opened::with_context(&control);
    for address in [0u64, 8, u64::MAX - 3, 1 << 63] {
        let mut bytes = header(ALLOC_PD, 4, 2);
        bytes.extend(address.to_ne_bytes());
        assert_eq!(opened.write(&bytes), Err(libc::EFAULT), "{address:#x}");
    }
    // SAFETY: memory without a right to write, where nothing else is.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0)
    };
    let mut bytes = header(ALLOC_PD, 4, 2);
    bytes.extend((page.addr() as u64).to_ne_bytes());
    assert_eq!(opened.write(&bytes), Err(libc::EFAULT), "memory that cannot be written");
}

#[test]
fn a_command_that_cannot_be_read_is_a_fault() {
    let control = control();
    let opened = Opened::with_context(&control);
    // SAFETY: an address that nothing is behind, for the kernel side to find out.
    let wrote = unsafe { libc::write(opened.0, std::ptr::without_provenance(8), 16) };
    assert_eq!((wrote, errno()), (-1, libc::EFAULT));
}

#[test]
fn handles_of_another_kind_or_context_are_refused() {
    let control = control();
    let (first, second) = (Opened::with_context(&control), Opened::with_context(&control));
    let mut answer = [0u8; 8];
    first.plain(ALLOC_PD, &[], Some(&mut answer)).unwrap();
    let pd = word(&answer, 0);
    assert_eq!(first.plain(DEREG_MR, &words(&[pd]), None), Err(libc::EINVAL), "a PD is no MR");
    assert_eq!(second.plain(DEALLOC_PD, &words(&[pd]), None), Err(libc::EINVAL), "the PD is the other's");
    assert_eq!(first.plain(DEALLOC_PD, &words(&[pd + 1]), None), Err(libc::EINVAL), "never given out");
    assert_eq!(first.plain(DEALLOC_PD, &words(&[pd]), None), Ok(()));
    assert_eq!(first.plain(DEALLOC_PD, &words(&[pd]), None), Err(libc::EINVAL), "twice");
}

/// The body of REG_MR.
fn registration(start: u64, length: u64, pd: u32, access: u32) -> Vec<u8> {
    let mut body: Vec<u8> = [start, length, start].iter().flat_map(|word| word.to_ne_bytes()).collect();
    body.extend(words(&[pd, access]));
    body
}

#[test]
fn only_memory_can_be_registered() {
    let control = control();
    let opened = Opened::with_context(&control);
    let mut answer = [0u8; 12];
    opened.plain(ALLOC_PD, &[], Some(&mut answer[..8])).unwrap();
    let pd = word(&answer, 0);
    let buffer = vec![0u8; 3 * 4096];
    let start = buffer.as_ptr().addr() as u64;
    let mut register =
        |start, length| opened.plain(REG_MR, &registration(start, length, pd, 1), Some(&mut answer));
    assert_eq!(register(start, 3 * 4096), Ok(()));
    assert_eq!(register(8, 4096), Err(libc::EFAULT));
    assert_eq!(register(u64::MAX - 4096, 8192), Err(libc::EINVAL), "around the end of the address space");
    assert_eq!(register(start, 1 << 46), Err(libc::EFAULT), "far beyond the buffer");
    let mr = word(&answer, 0);
    assert_eq!(opened.plain(DEALLOC_PD, &words(&[pd]), None), Err(libc::EBUSY), "the MR uses it");
    assert_eq!(opened.plain(DEREG_MR, &words(&[mr]), None), Ok(()));
    assert_eq!(opened.plain(DEALLOC_PD, &words(&[pd]), None), Ok(()));
}

#[test]
fn a_cq_takes_a_channel_of_its_own_context_alone() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let control = control();
    let (first, second) = (Opened::with_context(&control), Opened::with_context(&control));
    let mut answer = [0u8; 16];
    first.plain(CREATE_COMP_CHANNEL, &[], Some(&mut answer[..4])).unwrap();
    let channel = word(&answer, 0);
    let memory = Box::new((Page([0; 4096]), Page([0; 4096])));
    let create = |opened: &Opened, channel: u32, answer: &mut [u8]| {
        let mut body = 77u64.to_ne_bytes().to_vec();
        body.extend(words(&[31, 0, channel, 0]));
        body.extend((memory.0.0.as_ptr().addr() as u64).to_ne_bytes());
        body.extend((memory.1.0.as_ptr().addr() as u64).to_ne_bytes());
        body.extend(words(&[64, 0, 0, 0]));
        opened.plain(CREATE_CQ, &body, Some(answer))
    };
    assert_eq!(create(&second, channel, &mut answer), Err(libc::EBADF), "another context's channel");
    assert_eq!(create(&first, first.0.cast_unsigned(), &mut answer), Err(libc::EBADF), "no channel at all");
    assert_eq!(create(&first, channel, &mut answer), Ok(()));
    let cq = word(&answer, 0);
    assert_eq!(first.plain(DESTROY_CQ, &words(&[cq, 0]), Some(&mut answer[..8])), Ok(()));
    assert_eq!((word(&answer, 0), word(&answer, 4)), (0, 0), "no event was read");
    // SAFETY: the channel's descriptor.
    assert_eq!(unsafe { libc::close(channel.cast_signed()) }, 0);
}

#[test]
fn a_number_that_went_to_another_file_is_not_taken_for_the_device() {
    let control = control();
    let opened = Opened::with_context(&control);
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: descriptors of ours; closes the device past the hooks.
    assert_eq!(unsafe { libc::dup2(ends[1], opened.0) }, opened.0);
    assert_eq!(opened.write(b"sixteen bytes ..."), Ok(()), "it is a pipe now");
    let mut bytes = [0u8; 32];
    // SAFETY: room of that length.
    let length = unsafe { libc::read(ends[0], bytes.as_mut_ptr().cast(), bytes.len()) };
    assert_eq!(bytes.get(..length.cast_unsigned()), Some(&b"sixteen bytes ..."[..]));
    for end in ends {
        // SAFETY: a descriptor of ours.
        assert_eq!(unsafe { libc::close(end) }, 0);
    }
}

#[test]
fn a_forked_child_has_no_device_and_takes_nothing_away() {
    let control = control();
    let opened = Opened::with_context(&control);
    // SAFETY: the child makes system calls alone.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let answer = [0u8; 8];
        let mut bytes = [0u8; 16];
        bytes[0] = 3;
        bytes[4] = 4;
        bytes[6] = 2;
        bytes[8..].copy_from_slice(&(answer.as_ptr().addr() as u64).to_ne_bytes());
        // SAFETY: bytes of that length.
        let wrote = unsafe { libc::write(opened.0, bytes.as_ptr().cast(), bytes.len()) };
        let is_refused = wrote == -1 && errno() == libc::EACCES;
        // SAFETY: the parent's descriptor is another one.
        let closed = unsafe { libc::close(opened.0) };
        // SAFETY: ends the child without the parent's handlers.
        unsafe { libc::_exit(if is_refused && closed == 0 { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: room for the status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's write is EACCES");
    let mut answer = [0u8; 8];
    assert_eq!(opened.plain(ALLOC_PD, &[], Some(&mut answer)), Ok(()), "the parent's goes on");
}

/// How many threads drive devices; those of other tests are stepped.
fn driving_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("tagmatch-hca")).count()
}

/// Wait until there are so many: a thread has its name, and is out of the list, a little later than it starts and ends.
fn until_driven_by(count: usize) {
    let begin = std::time::Instant::now();
    while driving_threads() != count {
        assert!(begin.elapsed().as_secs() < 60, "{} threads drive and not {count}", driving_threads());
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_drives_a_device_as_long_as_it_is_open() {
    let control = HcaControl::new(HcaConfig::default(), Drive::Thread).unwrap();
    for _ in 0..20 {
        until_driven_by(0);
        let first = Opened::with_context(&control);
        until_driven_by(1);
        let second = Opened::with_context(&control);
        drop(first);
        assert_eq!(driving_threads(), 1, "one of the two is still open");
        let mut answer = [0u8; 8];
        assert_eq!(
            second.plain(ALLOC_PD, &[], Some(&mut answer)),
            Ok(()),
            "the thread lets commands through"
        );
    }
}

#[test]
fn closing_a_descriptor_destroys_what_was_made_by_it() {
    let config = HcaConfig::default();
    let limits = tagmatch_sim::hca::Limits { protection_domains: 3, ..config.limits };
    let control = HcaControl::new(HcaConfig { limits, ..config }, Drive::Steps).unwrap();
    let fill = |opened: &Opened| {
        let mut answer = [0u8; 8];
        (0..10).take_while(|_| opened.plain(ALLOC_PD, &[], Some(&mut answer)) == Ok(())).count()
    };
    let first = Opened::with_context(&control);
    let second = Opened::with_context(&control);
    assert_eq!(fill(&first), 3);
    assert_eq!(fill(&second), 0, "the device has no more");
    drop(first);
    assert_eq!(fill(&second), 3);
}

#[test]
fn whatever_is_written_the_process_lives_and_the_device_works() {
    let control = control();
    let opened = Opened::with_context(&control);
    let mut room = vec![0u8; 1 << 20];
    let address = room.as_mut_ptr().addr() as u64;
    let mut random = Random(1);
    for _ in 0..20_000 {
        let bytes = random.command(address);
        // Almost all are refused; none may do more than that.
        let _ = opened.write(&bytes);
    }
    let mut answer = [0u8; 8];
    assert_eq!(opened.plain(ALLOC_PD, &[], Some(&mut answer)), Ok(()));
}

/// Commands from a seed: well-framed more often than not, with small handles and addresses that are memory at times.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn word(&mut self) -> u32 {
        match self.below(6) {
            0 => 0,
            1 => u32::MAX,
            2 => u32::try_from(self.next() >> 32).unwrap(),
            _ => u32::try_from(self.below(70)).unwrap(),
        }
    }

    fn command(&mut self, address: u64) -> Vec<u8> {
        let is_extended = self.below(4) == 0;
        let number = if self.below(20) == 0 { self.word() } else { u32::try_from(self.below(45)).unwrap() };
        // Descriptors would run out; no command is of this number.
        let number = if number == CREATE_COMP_CHANNEL { 16 } else { number };
        let body: Vec<u8> = (0..self.below(60)).flat_map(|_| self.word().to_ne_bytes()).collect();
        let room = u16::try_from(self.below(200)).unwrap();
        let mut bytes;
        if is_extended {
            let core = body.len() / 8;
            bytes = header(EXTENDED | number, u16::try_from(core).unwrap(), room);
            bytes.extend(address.to_ne_bytes());
            bytes.extend([0u8; 8]);
            bytes.extend(&body[..core * 8]);
        } else {
            bytes = header(number, u16::try_from(4 + body.len() / 4).unwrap(), room);
            bytes.extend(address.to_ne_bytes());
            bytes.extend(&body);
        }
        if self.below(10) == 0 {
            let place = usize::try_from(self.below(bytes.len() as u64)).unwrap();
            bytes[place] = bytes[place].wrapping_add(1);
        }
        bytes
    }
}

#[test]
fn the_verbs_library_lists_a_device_by_its_name() {
    type List = unsafe extern "C" fn(*mut c_int) -> *mut *mut std::ffi::c_void;
    type Name = unsafe extern "C" fn(*mut std::ffi::c_void) -> *const std::ffi::c_char;
    let control = control();
    // SAFETY: libibverbs' constructors do nothing to us.
    let library = unsafe { libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(
        !library.is_null(),
        "libibverbs.so.1 is needed: package libibverbs1, and ibverbs-providers for mlx5"
    );
    // SAFETY: a library that is open, names that end with a zero.
    let list = unsafe { libc::dlsym(library, c"ibv_get_device_list".as_ptr()) };
    // SAFETY: as above.
    let name = unsafe { libc::dlsym(library, c"ibv_get_device_name".as_ptr()) };
    assert!(!list.is_null() && !name.is_null());
    // SAFETY: the function's type by infiniband/verbs.h.
    let list: List = unsafe { std::mem::transmute(list) };
    // SAFETY: as above.
    let name: Name = unsafe { std::mem::transmute(name) };
    let mut count = 0;
    // SAFETY: room for the count.
    let devices = unsafe { list(&raw mut count) };
    assert!(!devices.is_null());
    let names: Vec<String> = (0..usize::try_from(count).unwrap())
        .map(|place| {
            // SAFETY: within the list.
            let device = unsafe { devices.add(place) };
            // SAFETY: an entry of the list.
            let device = unsafe { *device };
            // SAFETY: a device of the list.
            let name = unsafe { name(device) };
            // SAFETY: the library's string.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        })
        .collect();
    assert!(names.contains(&control.name().to_string()), "{names:?}");
}
