//! How the messages of an endpoint go and who matches them: what `FI_TAGMATCH_NET`, `FI_TAGMATCH_DEVICE` and
//! `FI_TAGMATCH_TM` ask for, and what there is (decision 0026).
//!
//! Not here: the paths themselves, which are opened accordingly (`paths`).

use super::parameters::{Network as Asked, Parameters, TagMatching};
use crate::device::verbs::context::Context;
use crate::device::verbs::{VerbsError, devices};
pub use crate::paths::{Matcher, Network};

/// How messages go, and who matches them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// How they go.
    pub network: Network,
    /// Who matches them.
    pub matcher: Matcher,
    /// Why no device matches where one may.
    pub without: Option<String>,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.matcher, &self.network) {
            (Matcher::Device, Network::Verbs(Some(device))) => return write!(f, "{device}"),
            (Matcher::Software | Matcher::Device, _) => write!(f, "software")?,
            (Matcher::Model, _) => write!(f, "the soft TM-SRQ, a model of a device")?,
        }
        if let Network::Verbs(Some(device)) = &self.network {
            write!(f, ", over {device}")?;
        }
        if let Some(without) = &self.without {
            write!(f, " (there is no device that matches tags: {without})")?;
        }
        Ok(())
    }
}

/// What is asked for is not there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A device is to match, and there is none.
    #[error(
        "FI_TAGMATCH_TM=require is refused: there is no device that matches tags: {0}; auto, soft and off do without"
    )]
    NoMatching(String),
    /// Messages are to go over verbs, and there is no device.
    #[error("FI_TAGMATCH_NET=verbs is refused: {0}; tcp and auto do without")]
    NoDevice(String),
}

/// How messages go and who matches them where this is asked for.
///
/// # Errors
/// It is not there.
pub fn choose(parameters: &Parameters) -> Result<Choice, Refusal> {
    let device = parameters.device.as_deref();
    let over_tcp = |matcher, without| Ok(Choice { network: Network::Tcp, matcher, without });
    let over = |name, matcher| Ok(Choice { network: Network::Verbs(Some(name)), matcher, without: None });
    let is_asked_for = device.is_some() || parameters.tag_matching == TagMatching::Require;
    match (parameters.network, parameters.tag_matching) {
        (Asked::Tcp, TagMatching::Require) => Err(Refusal::NoMatching(OVER_TCP.into())),
        (Asked::Tcp, TagMatching::Auto) => over_tcp(Matcher::Software, Some(OVER_TCP.into())),
        // Nobody's messages leave tcp unasked: all processes of a job must come to the same.
        (Asked::Auto, TagMatching::Auto) if !is_asked_for => {
            over_tcp(Matcher::Software, Some(NOT_ASKED_FOR.into()))
        }
        (Asked::Auto, TagMatching::Off) if !is_asked_for => over_tcp(Matcher::Software, None),
        (Asked::Auto, TagMatching::Soft) if !is_asked_for => over_tcp(Matcher::Model, None),
        (Asked::Tcp, TagMatching::Off) => over_tcp(Matcher::Software, None),
        (Asked::Tcp, TagMatching::Soft) => over_tcp(Matcher::Model, None),
        (Asked::Auto | Asked::Verbs, TagMatching::Require) => match that_matches(device) {
            Ok(name) => over(name, Matcher::Device),
            Err(reason) => Err(Refusal::NoMatching(reason)),
        },
        (Asked::Auto | Asked::Verbs, TagMatching::Auto) => match that_matches(device) {
            Ok(name) => over(name, Matcher::Device),
            Err(reason) => {
                let network = Network::Verbs(Some(any(device).map_err(no_device)?));
                Ok(Choice { network, matcher: Matcher::Software, without: Some(reason) })
            }
        },
        (Asked::Auto | Asked::Verbs, TagMatching::Off) => {
            over(any(device).map_err(no_device)?, Matcher::Software)
        }
        (Asked::Auto | Asked::Verbs, TagMatching::Soft) => {
            over(any(device).map_err(no_device)?, Matcher::Model)
        }
    }
}

fn no_device(error: VerbsError) -> Refusal {
    Refusal::NoDevice(error.to_string())
}

/// The device of this name, or the first with a port that carries something.
fn any(name: Option<&str>) -> Result<String, VerbsError> {
    find(name, |_, _| None)
}

/// The same, and it says that it matches tags where its library can let it.
fn that_matches(name: Option<&str>) -> Result<String, String> {
    let found = find(name, |context, port| {
        let limits = match context.limits() {
            Ok(limits) => limits,
            Err(error) => return Some(error),
        };
        let refused = |reason| {
            Some(VerbsError::NoTagMatching { device: context.name().to_owned(), reason: Box::new(reason) })
        };
        match limits.tag_matching {
            None => refused(crate::device::verbs::TagMatchingRefusal::NotReported),
            Some(_) if port.link == crate::device::verbs::context::LinkLayer::Ethernet => {
                refused(crate::device::verbs::TagMatchingRefusal::OnEthernet)
            }
            Some(_) => None,
        }
    });
    found.map_err(|error| error.to_string())
}

/// The first device to which nothing is wrong, or what is wrong with the first.
fn find(
    name: Option<&str>,
    is_wrong: impl Fn(&Context, &crate::device::verbs::context::Port) -> Option<VerbsError>,
) -> Result<String, VerbsError> {
    let mut first = None;
    let all = devices()?;
    let names: Vec<&str> = all.iter().map(|device| device.name.as_str()).collect();
    if let Some(wanted) = name.filter(|name| !names.contains(name)) {
        return Err(VerbsError::UnknownDevice { wanted: wanted.to_owned(), there: names.join(", ") });
    }
    for device in names.into_iter().filter(|device| name.is_none_or(|name| name == *device)) {
        let checked = Context::open(Some(device)).and_then(|context| {
            let port = context.active_port()?;
            is_wrong(&context, &port).map_or(Ok(()), Err)
        });
        match checked {
            Ok(()) => return Ok(device.to_owned()),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or(VerbsError::NoDevice))
}

const NOT_ASKED_FOR: &str = "messages go over TCP, since nothing asks for verbs";
const OVER_TCP: &str = "messages go over TCP, as FI_TAGMATCH_NET=tcp says";
