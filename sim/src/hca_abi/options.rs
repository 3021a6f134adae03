//! The options of a preloaded device: `TAGMATCH_HCA_OPTIONS`, a list of `name=value` with commas between.
//!
//! | name | value |
//! |---|---|
//! | `tags` | entries of the matching list, rounded up to one less than a power of two; 0: no tag matching |
//! | `link` | `infiniband` or `ethernet` (RoCE) |
//! | `rendezvous` | `on` or `off`: whether the device offloads rendezvous |
//! | `drive` | `thread`, or `steps`: the program drives the device itself |
//! | `A1` … `A19` | a reading of a doubtful point, see [`READINGS`]; without it what is assumed |

use super::device::Drive;
use super::preload::DRIVE_DEFAULT;
use crate::hca::{HcaConfig, LinkLayer};
use tagmatch::device::soft::readings::{READINGS, Reading};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    config: HcaConfig,
    /// How the device is driven.
    pub(crate) drive: Drive,
}

impl Options {
    /// Those of this process's environment.
    ///
    /// # Errors
    /// A text for the user.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        let text = text.to_str().ok_or_else(|| format!("{VARIABLE} is not text"))?;
        Self::parse(text)
            .map_err(|what| format!("{what} (options of `tagmatch hca`, or what {VARIABLE} holds)"))
    }

    /// Of a text.
    ///
    /// # Errors
    /// A text for the user.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self { config: HcaConfig::default(), drive: DRIVE_DEFAULT };
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| format!("\"{option}\" is not name=value"))?;
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let unknown = || format!("{name} cannot be \"{value}\"");
        match (name, value) {
            ("tags", number) => {
                let tags: u32 = number.parse().map_err(|_| unknown())?;
                let log = u32::BITS - tags.leading_zeros();
                self.config.log_tag_list =
                    u8::try_from(log).ok().filter(|log| *log <= 15).ok_or_else(unknown)?;
            }
            ("link", "infiniband") => self.config.link_layer = LinkLayer::InfiniBand,
            ("link", "ethernet") => self.config = self.config.on_ethernet(),
            ("rendezvous", "on") => self.config.rendezvous = true,
            ("rendezvous", "off") => self.config.rendezvous = false,
            ("drive", "thread") => self.drive = Drive::Thread,
            ("drive", "steps") => self.drive = Drive::Steps,
            ("link" | "rendezvous" | "drive", _) => return Err(unknown()),
            _ => self.set_switch(name, value)?,
        }
        Ok(())
    }

    fn set_switch(&mut self, name: &str, value: &str) -> Result<(), String> {
        if !READINGS.iter().any(|reading| reading.point == name) {
            return Err(format!(
                "there is no option {name}, but tags, link, rendezvous, drive, and A1 to A19"
            ));
        }
        let reading = Reading::find(&format!("{name}={value}"))?;
        (reading.change)(&mut self.config.switches);
        Ok(())
    }

    /// The device of a process.
    pub(crate) const fn config(&self, process: u8) -> HcaConfig {
        HcaConfig { process, ..self.config }
    }
}

/// Where the options are.
const VARIABLE: &str = "TAGMATCH_HCA_OPTIONS";

#[cfg(test)]
mod tests {
    use super::*;
    use tagmatch::device::soft::switches::Activation;

    #[test]
    fn no_options_are_the_defaults() {
        let options = Options::parse("").unwrap();
        assert_eq!(options.config(3), HcaConfig { process: 3, ..HcaConfig::default() });
        assert_eq!(options.drive, Drive::Thread);
    }

    #[test]
    fn the_number_of_tags_is_rounded_up_to_what_a_device_can_have() {
        for (tags, has) in [("0", 0), ("1", 1), ("2", 3), ("1023", 1023), ("1024", 2047), ("32767", 32767)] {
            assert_eq!(Options::parse(&format!("tags={tags}")).unwrap().config(0).tags_max(), has, "{tags}");
        }
        assert!(Options::parse("tags=32768").is_err());
        assert!(Options::parse("tags=-1").is_err());
    }

    #[test]
    fn a_switch_is_set_by_the_name_of_its_other_reading() {
        let options = Options::parse("A1=only-at-append, drive=steps,link=ethernet").unwrap();
        assert_eq!(options.config(0).switches.activation, Activation::OnlyAtAppend);
        assert_eq!(options.config(0).link_layer, LinkLayer::Ethernet);
        assert_eq!(options.drive, Drive::Steps);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text| Options::parse(text).unwrap_err();
        assert_eq!(wrong("tags"), "\"tags\" is not name=value");
        assert_eq!(wrong("A1=yes"), "A1 cannot be \"yes\"; there is A1=only-at-append");
        assert_eq!(
            wrong("colour=red"),
            "there is no option colour, but tags, link, rendezvous, drive, and A1 to A19"
        );
        assert_eq!(wrong("link=token-ring"), "link cannot be \"token-ring\"");
    }
}
