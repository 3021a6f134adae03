//! Words as a shell reads them back, whatever bytes they have.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// A word between quotes, in which nothing is special.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> Vec<u8> {
    let mut text = vec![b'\''];
    for &byte in word.as_ref().as_bytes() {
        if byte == b'\'' {
            text.extend(b"'\\''");
        } else {
            text.push(byte);
        }
    }
    text.push(b'\'');
    text
}

/// Whether a shell can have a variable of this name.
pub(crate) fn is_variable(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.first().is_some_and(|&first| letter(first))
        && name.iter().all(|&byte| letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_words_back_as_they_were() {
        for word in ["", "a b", "it's", "$HOME `x` \\ \"", "new\nline", "-n", "é*?"] {
            let mut script = b"printf %s ".to_vec();
            script.extend(quoted(word));
            let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
            assert_eq!(output.stdout, word.as_bytes());
        }
    }

    #[test]
    fn names_that_a_shell_cannot_have_are_told_apart() {
        for good in ["PATH", "_x1", "a"] {
            assert!(is_variable(OsStr::new(good)), "{good}");
        }
        for bad in ["", "1a", "BASH_FUNC_x%%", "a-b", "a b", "a=b"] {
            assert!(!is_variable(OsStr::new(bad)), "{bad}");
        }
    }
}
