//! Opens what is measured, on either half, and sets before that what libraries look for in the environment.
#![allow(unsafe_code, reason = "variables of this process")]

use super::fabric::Fabric;
use super::own::Own;
use super::plan::{Contender, Over, Setup, Through};
use super::system;
use super::ucx::Ucx;
use super::work::{Open, Side};
use crate::mpi::place;
use std::env;
use std::net::IpAddr;

/// An endpoint of this contender, at this address of this host.
pub(super) fn open(contender: &Contender, address: IpAddr, setup: &Setup) -> Result<Box<dyn Open>, String> {
    Ok(match contender {
        Contender::Own(Through::Endpoint, over) => {
            Box::new(Side::new(Own::open(*over, address, setup)?, setup)?)
        }
        Contender::Own(Through::Libfabric, over) => {
            let fabric = Fabric::open("tagmatch", address, setup)?;
            Box::new(Side::new(fabric.over(words(*over)), setup)?)
        }
        Contender::Provider(name) => Box::new(Side::new(Fabric::open(name, address, setup)?, setup)?),
        Contender::Ucx(over) => Box::new(Side::new(Ucx::open(*over, setup)?, setup)?),
    })
}

const fn words(over: Over) -> &'static str {
    match over {
        Over::Shm => "shared memory",
        Over::Tcp => "tcp",
        Over::Verbs => "verbs",
    }
}

/// Set what must be set before anything is opened, while there is one thread. What is set already stays.
pub(super) fn prepare(setup: &Setup) -> Result<(), String> {
    for contender in &setup.contenders {
        for (name, value) in variables(contender)? {
            if env::var_os(name).is_none_or(|_| is_decided(name)) {
                // SAFETY: this is called before the listening thread begins, and nothing else has begun one.
                unsafe { system::set(name, value) };
            }
        }
    }
    Ok(())
}

fn variables(contender: &Contender) -> Result<Vec<(&'static str, String)>, String> {
    Ok(match contender {
        Contender::Own(Through::Endpoint, _) => Vec::new(),
        Contender::Own(Through::Libfabric, over) => {
            let path = env::var("FI_PROVIDER_PATH").ok();
            vec![
                ("FI_PROVIDER_PATH", place::directory(path.as_deref())?),
                ("FI_TAGMATCH_SHM", u8::from(*over == Over::Shm).to_string()),
                ("FI_TAGMATCH_NET", if *over == Over::Verbs { "verbs" } else { "tcp" }.into()),
            ]
        }
        // Beyond its default of 1,024 receives one of them hangs, and the other takes no more.
        Contender::Provider(name) => {
            let variables = [("ofi_rxm", "FI_OFI_RXM_RX_SIZE"), ("shm", "FI_SHM_RX_SIZE")];
            let of_it = variables.into_iter().filter(|(part, _)| name.contains(part));
            of_it.map(|(_, variable)| (variable, RECEIVES.to_owned())).collect()
        }
        Contender::Ucx(_) => vec![
            // A list that is still full when its worker goes is worth a line for each entry to UCX.
            ("UCX_LOG_LEVEL", "error".into()),
            ("UCX_WARN_UNUSED_ENV_VARS", "n".into()),
        ],
    })
}

/// What options say, and not the environment.
fn is_decided(name: &str) -> bool {
    name.starts_with("FI_PROVIDER") || name.starts_with("FI_TAGMATCH_")
}

/// How many receives peers are to have room for.
const RECEIVES: &str = "65536";
