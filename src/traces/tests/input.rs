//! How traces are stored, and input that is no trace.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Read, Write};
use std::path::Path;

const TEXT: &str = "# format: fi-tagged-trace 1\narrive 0 tag=1 src=0 len=0\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(text.as_bytes())
        .and_then(|()| encoder.finish())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

fn steps(bytes: Vec<u8>) -> Result<usize, String> {
    Trace::from_bytes("t", bytes).map(|trace| trace.steps.len()).map_err(|error| error.to_string())
}

#[test]
fn plain_gzip_and_zstd_are_told_apart_by_their_first_bytes() {
    for (bytes, encoding) in
        [(TEXT.into(), Encoding::Plain), (gzip(TEXT), Encoding::Gzip), (zstd(TEXT), Encoding::Zstd)]
    {
        let mut all =
            Steps::new("misleading.gz.zst", Cursor::new(bytes)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(all.encoding(), encoding);
        assert_eq!(all.by_ref().filter(Result::is_ok).count(), 1);
        assert_eq!(all.lines(), 2);
        assert!(all.next().is_none());
    }
}

#[test]
fn members_and_frames_follow_one_another() {
    let (first, second) = TEXT.split_at(30);
    assert_eq!(steps([gzip(first), gzip(second)].concat()), Ok(1));
    assert_eq!(steps([zstd(first), zstd(second)].concat()), Ok(1));
}

#[test]
fn skippable_zstd_frames_are_skipped() {
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    assert_eq!(steps([skippable.to_vec(), zstd(TEXT)].concat()), Ok(1));
    assert_eq!(
        steps([zstd(TEXT), vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1]].concat()),
        Err("t: the zstd data is damaged or cut short: the file ends within a skippable frame".into())
    );
}

#[test]
fn a_wrong_checksum_is_damage() {
    let mut bytes = bundled()[0].bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    assert_eq!(
        steps(bytes),
        Err("t: the zstd data is damaged or cut short: the checksum of a frame is wrong".into())
    );
}

#[test]
fn compressed_data_cut_short_is_damage() {
    for bytes in [gzip(TEXT), bundled()[0].bytes.to_vec()] {
        for cut in [5, bytes.len() / 2, bytes.len() - 1] {
            let message =
                steps(bytes[..cut].to_vec()).err().unwrap_or_else(|| panic!("cut to {cut}: accepted"));
            assert!(message.contains("data is damaged or cut short"), "{message}");
        }
    }
}

#[test]
fn text_is_bounded_however_small_the_file() {
    // 2 MB of zeros in 2 KB, without a line feed; and endless short lines.
    let line = "# format: fi-tagged-trace 1\n";
    for text in [format!("{line}{}", "\0".repeat(2 << 20)), format!("{line}{}", "#\n".repeat(1 << 20))] {
        assert!(steps(gzip(&text)).is_err());
    }
    let text = format!("{line}# a: {}\n# b: {}\n", "x".repeat(600), "x".repeat(600));
    let mut all = Steps::new("t", Cursor::new(gzip(&text)))
        .unwrap_or_else(|error| panic!("{error}"))
        .with_bytes_max(1000);
    let message = all.next().and_then(Result::err).map(|error| error.to_string());
    assert_eq!(message.as_deref(), Some("t: more than 1000 bytes of text: too large for a trace to be read"));
    assert!(all.next().is_none());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Trace::open(Path::new("no/such/trace.zst")).err().map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("no/such/trace.zst: cannot be read: No such file or directory (os error 2)")
    );
}

/// Gives one byte at a time, and is interrupted before each.
struct Trickle {
    bytes: Cursor<&'static [u8]>,
    interrupted: bool,
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let end = buffer.len().min(1);
        self.bytes.read(&mut buffer[..end])
    }
}

#[test]
fn a_reader_that_trickles_gives_the_same_steps() {
    let input = Trickle { bytes: Cursor::new(TEXT.as_bytes()), interrupted: false };
    let all = Steps::new("t", input).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all.filter(Result::is_ok).count(), 1);
}
