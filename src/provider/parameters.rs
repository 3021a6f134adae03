//! The run-time parameters `FI_TAGMATCH_*`: their names, meanings, ranges and defaults, and what is set.
//!
//! Not here: what they do. Those of `fi_rxm(7)` that have a meaning here have twins with the rest of their name.

use std::time::Duration;

/// One parameter, as `tagmatch info` and the documentation show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name of the environment variable behind `FI_TAGMATCH_`.
    pub name: &'static str,
    /// What it is for, one sentence.
    pub meaning: &'static str,
    /// What it takes.
    pub range: Range,
    /// What is taken where it is not set.
    pub default: &'static str,
    /// The parameter of `ofi_rxm` with the same meaning.
    pub twin: Option<&'static str>,
    /// Whether its value is nobody's business.
    pub secret: bool,
}

/// What a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// A whole number, also with `K`, `M` or `G` behind it, or in hexadecimal with `0x` before it.
    Number {
        /// The least.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// `1`, `yes`, `true`, `on`, or `0`, `no`, `false`, `off`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text of so many bytes at least.
    Text {
        /// Bytes.
        least: usize,
    },
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Switch => write!(f, "1, yes, true, on, 0, no, false or off"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text { least } => write!(f, "text of {least} bytes at least"),
        }
    }
}

/// A number parameter.
const fn number(
    name: &'static str,
    twin: Option<&'static str>,
    (least, most): (u64, u64),
    default: &'static str,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, meaning, range: Range::Number { least, most }, default, twin, secret: false }
}

/// All of them. [`Parameters`] has a field for each, in this order.
pub const TABLE: [Parameter; 22] = [
    number(
        "BUFFER_SIZE",
        Some("FI_OFI_RXM_BUFFER_SIZE"),
        (64, 1 << 30),
        "1048576",
        "The longest message in bytes that is sent eagerly, where a device matches at most 16384; longer ones go by \
         rendezvous or in segments.",
    ),
    number(
        "SAR_LIMIT",
        Some("FI_OFI_RXM_SAR_LIMIT"),
        (0, 1 << 30),
        "0",
        "The longest message in bytes that is sent in segments; 0: none is.",
    ),
    number(
        "TX_SIZE",
        Some("FI_OFI_RXM_TX_SIZE"),
        (1, 1 << 20),
        "1024",
        "The transmit context size that is shown; no limit of sends follows from it.",
    ),
    number(
        "RX_SIZE",
        Some("FI_OFI_RXM_RX_SIZE"),
        (1, 1 << 20),
        "1024",
        "The receive context size that is shown; no limit of posted receives follows from it.",
    ),
    Parameter {
        name: "DATA_AUTO_PROGRESS",
        meaning: "Automatic progress by a thread, also for applications that do not ask for it.",
        range: Range::Switch,
        default: "0",
        twin: Some("FI_OFI_RXM_DATA_AUTO_PROGRESS"),
        secret: false,
    },
    number(
        "INJECT_SIZE",
        None,
        (64, 1 << 20),
        "16384",
        "The longest message in bytes that fi_inject and its relatives take.",
    ),
    number(
        "CREDIT_BYTES",
        None,
        (1 << 16, 1 << 40),
        "16777216",
        "Bytes of eager payload that one peer may have outstanding or kept unexpected here.",
    ),
    number(
        "CREDIT_MESSAGES",
        None,
        (16, 1 << 30),
        "16384",
        "Eager messages with a payload that one peer may have outstanding or kept unexpected here.",
    ),
    number(
        "CREDIT_HEADERS",
        None,
        (1 << 10, 1 << 31),
        "1048576",
        "Messages of any kind that one peer may have outstanding or kept unexpected here.",
    ),
    number(
        "CONNECT_TIMEOUT",
        None,
        (10, 3_600_000),
        "30000",
        "Milliseconds in which a connection must come about before sends to that peer fail.",
    ),
    number(
        "KEEPALIVE",
        None,
        (0, 86_400_000),
        "0",
        "Milliseconds of silence after which a peer is asked whether it is there, and lost if it says nothing for as \
         long again; 0: never.",
    ),
    number("PEERS_MAX", None, (1, 1 << 28), "1048576", "Peers that an endpoint knows at most."),
    Parameter {
        name: "IFACE",
        meaning: "The network interface to use, by its name or one of its addresses.",
        range: Range::Text { least: 1 },
        default: "",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "JOB_KEY",
        meaning: "The key that all endpoints of a job hold: connections come about only between those that prove it.",
        range: Range::Text { least: 16 },
        default: "",
        twin: None,
        secret: true,
    },
    Parameter {
        name: "TM",
        meaning: "Matching by the device: off, by the model of one in software, by a card where there is one, or by a \
                  card or not at all.",
        range: Range::Word(&["off", "soft", "auto", "require"]),
        default: "auto",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "NET",
        meaning: "How messages go to other processes: over tcp, over verbs, or over verbs where a card is to match (TM) \
                  and there is one, or where DEVICE names one, and else over tcp.",
        range: Range::Word(&["tcp", "verbs", "auto"]),
        default: "auto",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "DEVICE",
        meaning: "The verbs device to use, by its name; without it the first that will do.",
        range: Range::Text { least: 1 },
        default: "",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "SHM",
        meaning: "Shared memory with processes of the same host and user, beside the network: on, off, or where nothing says \
                  how messages go (NET, DEVICE) or that a device is to match them (TM).",
        range: Range::Word(&["auto", "on", "off", "1", "0", "yes", "no", "true", "false"]),
        default: "auto",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "CQ_DATA",
        meaning: "Remote completion data of 4 bytes.",
        range: Range::Switch,
        default: "1",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "STATS",
        meaning: "Where counters go at the end: exit (standard error), a file, to which they are appended, or a directory, \
                  in which there is a new file; off: they are not shown to `tagmatch stats` either.",
        range: Range::Text { least: 1 },
        default: "",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "DIRECTED_RECV",
        meaning: "Receives that name their source; without them MPICH puts the source of a message into its tag.",
        range: Range::Switch,
        default: "1",
        twin: None,
        secret: false,
    },
    Parameter {
        name: "LIST_RMA",
        meaning: "Remote memory access (FI_RMA, FI_ATOMIC) also for applications that ask for no capabilities, such as MPICH.",
        range: Range::Switch,
        default: "0",
        twin: None,
        secret: false,
    },
];

/// Whether devices match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagMatching {
    /// In software alone.
    Off,
    /// The soft TM-SRQ over the transport.
    Soft,
    /// A card where there is one.
    Auto,
    /// A card, or no provider.
    Require,
}

/// How messages go to other processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// Over TCP.
    Tcp,
    /// Over verbs.
    Verbs,
    /// Over verbs where that is good for something.
    Auto,
}

/// Whether processes of one host share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedMemory {
    /// They do.
    On,
    /// They do not.
    Off,
    /// Where nothing says otherwise, and where the system lets them.
    Auto,
}

/// What is set.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each field is described in the table, under its name")]
pub struct Parameters {
    pub buffer_size: u64,
    pub sar_limit: u64,
    pub tx_size: u64,
    pub rx_size: u64,
    pub data_auto_progress: bool,
    pub inject_size: u64,
    pub credit_bytes: u64,
    pub credit_messages: u64,
    pub credit_headers: u64,
    pub connect_timeout: Duration,
    pub keepalive: Option<Duration>,
    pub peers_max: u64,
    pub iface: Option<String>,
    pub job_key: Option<Vec<u8>>,
    pub tag_matching: TagMatching,
    pub network: Network,
    pub device: Option<String>,
    pub shm: SharedMemory,
    pub cq_data: bool,
    pub stats: Option<String>,
    pub directed_recv: bool,
    /// Whether remote memory access is listed to who asks for no capabilities.
    pub list_rma: bool,
}

/// A value that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable}={value} is refused: it takes {range}")]
pub struct BadParameter {
    /// The environment variable.
    pub variable: String,
    /// Its value.
    pub value: String,
    /// What it takes.
    pub range: Range,
}

/// A parameter's value and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Which.
    pub parameter: &'static Parameter,
    /// The environment variable.
    pub variable: String,
    /// The value that holds, as text; of a secret one only whether there is one.
    pub value: String,
    /// Whether the environment says so. Else it is the default.
    pub from_environment: bool,
}

impl Parameters {
    /// Those of this process's environment.
    ///
    /// # Errors
    /// The first value that is refused.
    pub fn from_environment() -> Result<Self, BadParameter> {
        Self::read(|variable| std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Those of an environment.
    ///
    /// # Errors
    /// The first value that is refused.
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, BadParameter> {
        let text = |name: &str| text_of(name, &environment);
        let number = |name: &str| {
            let (parameter, text) = text(name)?;
            parse_number(&text)
                .filter(|value| match parameter.range {
                    Range::Number { least, most } => (least..=most).contains(value),
                    Range::Switch | Range::Word(_) | Range::Text { .. } => false,
                })
                .ok_or_else(|| bad(parameter, text))
        };
        let milliseconds = |name: &str| number(name).map(Duration::from_millis);
        let optional = |name: &str| {
            let (parameter, text) = text(name)?;
            let Range::Text { least } = parameter.range else { return Err(bad(parameter, text)) };
            match text.len() {
                0 => Ok(None),
                length if length < least => Err(bad(parameter, text)),
                _ => Ok(Some(text)),
            }
        };
        // Whoever sets a key and has none must not run without.
        let key = |name: &str| match (environment(&variable(name)), optional(name)?) {
            (Some(empty), None) => Err(bad(text(name)?.0, empty)),
            (_, value) => Ok(value),
        };
        let switch = |name: &str| {
            let (parameter, text) = text(name)?;
            parse_switch(&text).ok_or_else(|| bad(parameter, text))
        };
        let (word, matching) = text("TM")?;
        let (net, network) = text("NET")?;
        Ok(Self {
            buffer_size: number("BUFFER_SIZE")?,
            sar_limit: number("SAR_LIMIT")?,
            tx_size: number("TX_SIZE")?,
            rx_size: number("RX_SIZE")?,
            data_auto_progress: switch("DATA_AUTO_PROGRESS")?,
            inject_size: number("INJECT_SIZE")?,
            credit_bytes: number("CREDIT_BYTES")?,
            credit_messages: number("CREDIT_MESSAGES")?,
            credit_headers: number("CREDIT_HEADERS")?,
            connect_timeout: milliseconds("CONNECT_TIMEOUT")?,
            keepalive: Some(milliseconds("KEEPALIVE")?).filter(|time| !time.is_zero()),
            peers_max: number("PEERS_MAX")?,
            iface: optional("IFACE")?,
            job_key: key("JOB_KEY")?.map(String::into_bytes),
            tag_matching: match matching.as_str() {
                "off" => TagMatching::Off,
                "soft" => TagMatching::Soft,
                "auto" => TagMatching::Auto,
                "require" => TagMatching::Require,
                _ => return Err(bad(word, matching)),
            },
            network: match network.as_str() {
                "tcp" => Network::Tcp,
                "verbs" => Network::Verbs,
                "auto" => Network::Auto,
                _ => return Err(bad(net, network)),
            },
            device: optional("DEVICE")?,
            shm: shared(text("SHM")?)?,
            cq_data: switch("CQ_DATA")?,
            stats: optional("STATS")?,
            directed_recv: switch("DIRECTED_RECV")?,
            list_rma: switch("LIST_RMA")?,
        })
    }

    /// Whether there is shared memory beside the network. Whoever says how messages are to go, or that a device is to match
    /// them, means all of them unless it says this too.
    #[must_use]
    pub fn shares_memory(&self) -> bool {
        let is_anything_said = self.network != Network::Auto
            || self.device.is_some()
            || matches!(self.tag_matching, TagMatching::Soft | TagMatching::Require);
        match self.shm {
            SharedMemory::On => true,
            SharedMemory::Off => false,
            SharedMemory::Auto => !is_anything_said,
        }
    }

    /// Every parameter with its value and where it comes from. Bad values are shown like others.
    pub fn rows(environment: impl Fn(&str) -> Option<String>) -> Vec<Row> {
        let row = |parameter: &'static Parameter| {
            let variable = variable(parameter.name);
            let set = environment(&variable).filter(|value| !value.is_empty());
            let from_environment = set.is_some();
            let value = match set {
                Some(_) if parameter.secret => "(set)".into(),
                Some(value) => value,
                None => parameter.default.into(),
            };
            Row { parameter, variable, value, from_environment }
        };
        TABLE.iter().map(row).collect()
    }
}

/// The environment variable of a parameter.
fn variable(name: &str) -> String {
    format!("FI_TAGMATCH_{name}")
}

/// A parameter, and its text. An empty variable is as good as none, but for the key.
fn text_of(
    name: &str,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<(&'static Parameter, String), BadParameter> {
    let Some(parameter) = TABLE.iter().find(|parameter| parameter.name == name) else {
        return Err(BadParameter {
            variable: variable(name),
            value: String::new(),
            range: Range::Text { least: 0 },
        });
    };
    let set = environment(&variable(name)).map(|value| value.trim().to_owned());
    Ok((parameter, set.filter(|value| !value.is_empty()).unwrap_or_else(|| parameter.default.into())))
}

fn bad(parameter: &Parameter, value: String) -> BadParameter {
    let value = if parameter.secret { format!("({} bytes)", value.len()) } else { value };
    BadParameter { variable: variable(parameter.name), value, range: parameter.range }
}

fn parse_number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let unit = text.chars().last().map(|last| last.to_ascii_lowercase());
    let unit = units.iter().find(|(letter, _)| Some(*letter) == unit);
    let (digits, shift) = match unit {
        Some((_, shift)) => (&text[..text.len() - 1], *shift),
        None => (text, 0),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn shared((parameter, text): (&'static Parameter, String)) -> Result<SharedMemory, BadParameter> {
    match parse_switch(&text) {
        Some(true) => Ok(SharedMemory::On),
        Some(false) => Ok(SharedMemory::Off),
        None if text.eq_ignore_ascii_case("auto") => Ok(SharedMemory::Auto),
        None => Err(bad(parameter, text)),
    }
}

fn parse_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Some(true),
        "0" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
