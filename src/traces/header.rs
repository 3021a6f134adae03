//! The headers of a trace: what was run, and what the file says about itself.
//!
//! Only `format` must be there. Those that this module knows are checked where they are there; others are kept as
//! they are.

use super::fields::decimal;
use super::problem::{Found, Problem};

/// The headers of a trace, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    items: Vec<(String, String)>,
    ranks: Option<u32>,
    order: Option<Order>,
    declared: [Option<u64>; COUNTED.len()],
}

/// Where arrivals stand among the receiver's own events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// An arrival stands before an event of the receiver if it was sent earlier.
    Send,
    /// An arrival stands before an event of the receiver if it was sent before the receiver's last look into its
    /// completion queue ahead of that event.
    Poll,
}

impl Header {
    /// Headers of a trace that was made up and not read. They are not checked against anything.
    #[must_use]
    pub fn made_up(items: &[(&str, &str)]) -> Self {
        let items = items.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { items, ..Self::default() }
    }

    /// The value of a header.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.items.iter().find(|(of, _)| of == key).map(|(_, value)| value.as_str())
    }

    /// All headers, in the order of the file.
    pub fn items(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How many ranks the run had, where the file says so.
    #[must_use]
    pub const fn ranks(&self) -> Option<u32> {
        self.ranks
    }

    /// Where arrivals stand, where the file says so.
    #[must_use]
    pub const fn order(&self) -> Option<Order> {
        self.order
    }

    /// Take one line that begins with `#`.
    pub(super) fn handle_line(&mut self, line: &[u8]) -> Result<(), Problem> {
        let syntax = || Problem::HeaderSyntax(Found::new(line));
        let text =
            line.strip_prefix(b"# ").and_then(|text| std::str::from_utf8(text).ok()).ok_or_else(syntax)?;
        let (key, value) = text.split_once(": ").ok_or_else(syntax)?;
        if key.is_empty() || key.contains(char::is_control) || value.contains(char::is_control) {
            return Err(syntax());
        }
        if self.value(key).is_some() {
            return Err(Problem::HeaderTwice { key: key.to_owned() });
        }
        if self.items.len() == HEADERS_MAX {
            return Err(Problem::HeadersMany { max: HEADERS_MAX });
        }
        self.understand(key, value)?;
        self.items.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Whether the counts of the file are those that its headers declare.
    pub(super) fn check_counts(&self, counted: &[u64; COUNTED.len()]) -> Result<(), Problem> {
        for ((&key, &declared), &counted) in COUNTED.iter().zip(&self.declared).zip(counted) {
            if let Some(declared) = declared.filter(|&declared| declared != counted) {
                return Err(Problem::Count { key, declared, counted });
            }
        }
        Ok(())
    }

    fn understand(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let wrong = |expected| Problem::HeaderValue {
            key: key.to_owned(),
            expected,
            found: Found::new(value.as_bytes()),
        };
        let number = || decimal(value.as_bytes()).ok_or_else(|| wrong("a decimal number"));
        if let Some(place) = COUNTED.iter().position(|&counted| counted == key) {
            let declared = match key {
                "events" => {
                    events(value).ok_or_else(|| wrong("\"m\" or \"m (first of n)\", m not above n"))?
                }
                _ => number()?,
            };
            if let Some(slot) = self.declared.get_mut(place) {
                *slot = Some(declared);
            }
            return Ok(());
        }
        match key {
            "ranks" => {
                let ranks =
                    number().ok().and_then(|ranks| u32::try_from(ranks).ok()).filter(|&ranks| ranks > 0);
                self.ranks = Some(ranks.ok_or_else(|| wrong("a number of ranks, 1 to 4294967295"))?);
            }
            "rank" => {
                let rank = number()?;
                if self.ranks.is_some_and(|ranks| rank >= u64::from(ranks)) {
                    return Err(wrong("a rank below the header \"ranks\""));
                }
            }
            "order" => {
                self.order = Some(match value {
                    "send" => Order::Send,
                    "poll" => Order::Poll,
                    _ => return Err(wrong("send or poll")),
                });
            }
            "arrivals-delayed" | "missed-peeks-folded" => {
                number()?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The value of `events`: `m`, or `m (first of n)`.
fn events(value: &str) -> Option<u64> {
    let Some((declared, rest)) = value.split_once(' ') else {
        return decimal(value.as_bytes());
    };
    let declared = decimal(declared.as_bytes())?;
    let all = decimal(rest.strip_prefix("(first of ")?.strip_suffix(')')?.as_bytes())?;
    (declared <= all).then_some(declared)
}

/// Headers that count something in the file, in the order in which the parser keeps its counts.
pub(super) const COUNTED: [&str; 7] =
    ["events", "n-post", "n-arrive", "n-claim", "n-peek", "n-cancel", "n-match"];

const HEADERS_MAX: usize = 64;
