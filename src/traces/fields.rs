//! The words of one line, and the numbers in them.
//!
//! Not here: what the words mean.

use super::problem::{Found, Problem};

/// The words of a line, one after the other. Exactly one space stands between two of them.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }

    /// The next word, which may be missing.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match rest.iter().position(|&byte| byte == b' ') {
            Some(end) => {
                self.rest = rest.get(end + 1..);
                rest.get(..end)
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }

    fn expect<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, Problem> {
        let Some(word) = self.word() else {
            return Err(Problem::Field { expected, found: Found::end_of_line() });
        };
        read(word).ok_or_else(|| Problem::Field { expected, found: Found::new(word) })
    }

    /// A decimal number.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, Problem> {
        self.expect(expected, decimal)
    }

    /// `name=` and a hexadecimal number.
    pub(super) fn hexadecimal(&mut self, name: &str, expected: &'static str) -> Result<u64, Problem> {
        self.expect(expected, |word| hexadecimal(word.strip_prefix(name.as_bytes())?))
    }

    /// `name=` and a decimal number.
    pub(super) fn decimal(&mut self, name: &str, expected: &'static str) -> Result<u64, Problem> {
        self.expect(expected, |word| decimal(word.strip_prefix(name.as_bytes())?))
    }

    /// `src=` and a rank or, if it may be, `any` (`None`).
    pub(super) fn source(&mut self, expected: &'static str, any: bool) -> Result<Option<u64>, Problem> {
        self.expect(expected, |word| match word.strip_prefix(b"src=")? {
            b"any" if any => Some(None),
            rank => decimal(rank).map(Some),
        })
    }

    /// This word, or the end of the line.
    pub(super) fn flag(&mut self, flag: &str) -> Result<bool, Problem> {
        match self.word() {
            None => Ok(false),
            Some(word) if word == flag.as_bytes() => Ok(true),
            Some(word) => Err(Problem::Trailing(Found::new(word))),
        }
    }

    /// Nothing more.
    pub(super) fn end(&mut self) -> Result<(), Problem> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(Problem::Trailing(Found::new(rest))),
        }
    }
}

/// A decimal number of at most 64 bits, without sign and leading zeros.
pub(super) fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || (word.len() > 1 && word.first() == Some(&b'0')) {
        return None;
    }
    word.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A hexadecimal number of at most 64 bits: lower case, no `0x`, no leading zeros.
fn hexadecimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 16 || (word.len() > 1 && word.first() == Some(&b'0')) {
        return None;
    }
    word.iter().try_fold(0u64, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some((value << 4) | u64::from(digit))
    })
}
