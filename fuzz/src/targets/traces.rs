//! Recorded traces: plain, zstd or gzip, whatever the first bytes say. Reading ends with steps or with an error that names the
//! line; what is read is bounded, however much a small file unpacks to.

use std::io::Cursor;

use tagmatch::traces::Steps;

pub(super) fn run(bytes: &[u8]) -> bool {
    let Ok(steps) = Steps::new("trace", Cursor::new(bytes.to_vec())) else { return false };
    let mut count = 0;
    for step in steps.with_bytes_max(TEXT_MAX) {
        match step {
            Ok(_) => count += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    count > 0
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let text = TRACE.as_bytes().to_vec();
    vec![text, ZSTD.to_vec(), GZIP.to_vec()]
}

const TEXT_MAX: u64 = 1 << 16;
const TRACE: &str = include_str!("trace.txt");
const ZSTD: &[u8] = include_bytes!("trace.zst");
const GZIP: &[u8] = include_bytes!("trace.gz");
