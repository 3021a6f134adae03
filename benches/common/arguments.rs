//! The arguments of a bench that is no criterion's: options that are known, with numbers where one belongs.
//!
//! Anything else is refused: a measurement with an option that was not understood is another than was asked for.

/// What was given.
#[derive(Clone, Debug)]
pub(crate) struct Arguments(Vec<(String, Option<usize>)>);

impl Arguments {
    /// Of this process; `--bench`, by which cargo says that it is a measurement, is always known. Ends the process
    /// with a word when something is wrong.
    pub(crate) fn of_process(flags: &[&str], numbers: &[&str]) -> Self {
        Self::read(std::env::args().skip(1), flags, numbers).unwrap_or_else(|what| {
            eprintln!("{what}");
            std::process::exit(2)
        })
    }

    fn read(
        mut given: impl Iterator<Item = String>,
        flags: &[&str],
        numbers: &[&str],
    ) -> Result<Self, String> {
        let mut read = Vec::new();
        while let Some(name) = given.next() {
            if name == "--bench" || flags.contains(&name.as_str()) {
                read.push((name, None));
            } else if numbers.contains(&name.as_str()) {
                let value = given.next().ok_or_else(|| format!("{name} needs a number"))?;
                let number = value.parse().map_err(|_| format!("{name} needs a number, not {value:?}"))?;
                read.push((name, Some(number)));
            } else {
                let known: Vec<&str> = flags.iter().chain(numbers).copied().collect();
                return Err(format!("unknown argument {name:?}; there are {}", known.join(", ")));
            }
        }
        Ok(Self(read))
    }

    /// Whether an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    /// The number of an option; of several the last.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.0.iter().rev().find(|(given, _)| given == name).and_then(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Result<Arguments, String> {
        Arguments::read(given.iter().map(|given| (*given).to_owned()), &["--json"], &["--runs"])
    }

    #[test]
    fn what_is_known_is_read() {
        let arguments = read(&["--bench", "--runs", "3", "--json"]).unwrap();
        assert!(arguments.has("--bench") && arguments.has("--json"));
        assert_eq!(arguments.number("--runs"), Some(3));
        assert_eq!(arguments.number("--rounds"), None);
    }

    #[test]
    fn what_is_not_understood_is_refused_and_not_passed_over() {
        let wrong = |given: &[&str]| read(given).unwrap_err();
        assert_eq!(wrong(&["--rnus", "1"]), "unknown argument \"--rnus\"; there are --json, --runs");
        assert_eq!(wrong(&["--runs", "abc"]), "--runs needs a number, not \"abc\"");
        assert_eq!(wrong(&["--runs"]), "--runs needs a number");
    }
}
