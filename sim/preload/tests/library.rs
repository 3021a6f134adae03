//! The library itself: what it exports for programs that drive the device themselves.

mod common;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

/// A function of the library.
fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a library that is open, and a name that ends with a zero.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?} is not exported");
    symbol
}

#[test]
fn a_program_that_drives_the_device_finds_how() {
    type Count = extern "C" fn() -> c_uint;
    type Step = extern "C" fn(c_uint) -> c_int;
    type Run = extern "C" fn(c_uint) -> c_uint;
    type Open = extern "C" fn(*const c_char, c_int, libc::mode_t) -> c_int;
    type Close = extern "C" fn(c_int) -> c_int;

    // SAFETY: this test's binary has one test, and no thread reads the environment meanwhile.
    unsafe { std::env::set_var("TAGMATCH_HCA_OPTIONS", "drive=steps") };
    let path = CString::new(common::library().display().to_string()).unwrap();
    // SAFETY: its constructor looks at the environment and makes a directory.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null());
    // SAFETY: the function's type.
    let steps: Count = unsafe { std::mem::transmute(symbol(library, c"tagmatch_hca_steps")) };
    // SAFETY: the function's type.
    let step: Step = unsafe { std::mem::transmute(symbol(library, c"tagmatch_hca_step")) };
    // SAFETY: the function's type.
    let run: Run = unsafe { std::mem::transmute(symbol(library, c"tagmatch_hca_run")) };
    // SAFETY: the function's type.
    let open: Open = unsafe { std::mem::transmute(symbol(library, c"open")) };
    // SAFETY: the function's type.
    let close: Close = unsafe { std::mem::transmute(symbol(library, c"close")) };

    let tree = std::env::var("SYSFS_PATH").unwrap();
    assert!(std::path::Path::new(&tree).join("class/infiniband/mlx5_0/node_guid").exists(), "{tree}");
    let fd = open(c"/dev/infiniband/uverbs0".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC, 0);
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    let threads = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    assert!(!threads.into_iter().any(|name| name.starts_with("tagmatch-hca")), "no thread drives it");
    assert_eq!((steps(), step(0), run(100)), (0, 0, 0), "a device without objects has nothing to do");
    assert_eq!(close(fd), 0);
}
