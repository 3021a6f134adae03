//! An archive in the format that the kernel unpacks as its first root ("newc", the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Directories and regular files are enough for that; links, devices and owners are not written.

use std::io::{self, Write};

/// Writes an archive, entry by entry.
#[derive(Debug)]
pub(crate) struct Archive<W> {
    out: W,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, entries: 0 }
    }

    /// A directory; those above it must have been added before.
    pub(crate) fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, DIRECTORY | 0o755, &[])
    }

    /// A file that may be run.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        self.entry(path, FILE | 0o755, content)
    }

    /// The end of the archive; what it was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let name_size = u32::try_from(path.len() + 1).map_err(io::Error::other)?;
        self.entries += 1;
        let links = if mode & DIRECTORY != 0 { 2 } else { 1 };
        // inode, mode, user, group, links, time, size, device (2), device that it is (2), size of the name, checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut head = String::from("070701");
        for field in fields {
            head += &format!("{field:08x}");
        }
        self.out.write_all(head.as_bytes())?;
        self.out.write_all(path.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(head.len() + path.len() + 1)?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    /// Names and contents end at multiples of four.
    fn pad(&mut self, length: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..length.next_multiple_of(4) - length])
    }
}

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_bytes_that_the_format_says() {
        let mut archive = Archive::new(Vec::new());
        archive.file("init", b"hello").unwrap();
        let bytes = archive.finish().unwrap();
        let head = "070701\
            00000001\
            000081ed\
            00000000\
            00000000\
            00000001\
            00000000\
            00000005\
            00000000\
            00000000\
            00000000\
            00000000\
            00000005\
            00000000";
        // 110 bytes of head and 5 of name, to 116; 5 of content, to 8.
        assert_eq!(&bytes[..124], format!("{head}init\0\0hello\0\0\0").as_bytes());
        assert!(bytes[124..].starts_with(b"070701") && bytes[234..].starts_with(b"TRAILER!!!\0"));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn every_length_of_name_and_content_ends_at_a_multiple_of_four() {
        for length in 0..9 {
            let mut archive = Archive::new(Vec::new());
            archive.directory(&"d".repeat(length + 1)).unwrap();
            archive.file("f", &vec![7; length]).unwrap();
            assert_eq!(archive.out.len() % 4, 0, "{length}");
        }
    }

    #[test]
    fn busybox_or_cpio_reads_what_was_written_back() {
        let mut archive = Archive::new(Vec::new());
        archive.directory("modules").unwrap();
        archive.file("modules/one.ko", b"\x7fELF").unwrap();
        archive.file("init", b"#!/busybox sh\n").unwrap();
        let bytes = archive.finish().unwrap();
        let read = |tool: &[&str]| {
            let mut child = std::process::Command::new(tool[0])
                .args(&tool[1..])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::null())
                .spawn()
                .ok()?;
            child.stdin.take().unwrap().write_all(&bytes).unwrap();
            Some(child.wait_with_output().unwrap())
        };
        let output = read(&["busybox", "cpio", "-t"]).or_else(|| read(&["cpio", "-t"]));
        let output = output.expect("the tests need busybox-static");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "modules\nmodules/one.ko\ninit\n");
    }
}
