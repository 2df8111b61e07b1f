//! What the shell knows of a run, as its report says it.

use std::net::IpAddr;

use crate::live::{Generator, Looked, Needs};
use crate::plan::Lookup;
use crate::report::{AddressPart, DryNeeds, GeneratorPart, NamePart};

/// What sent the load.
pub(super) fn generator(by: Generator) -> GeneratorPart {
    GeneratorPart {
        sender: by.sender.name().to_owned(),
        scheduling: by.scheduling.map_or_else(|| "not known".to_owned(), |how| how.to_string()),
        timer_resolution_ns: u64::try_from(by.resolution.as_nanos()).unwrap_or(u64::MAX),
        grain_us: by.grain.and_then(|grain| u64::try_from(grain.as_micros()).ok()),
    }
}

/// How the target's name was looked up.
pub(super) fn name(looked: Looked) -> NamePart {
    let address = |(ip, answers): (IpAddr, u64)| AddressPart { address: ip.to_string(), answers };
    NamePart {
        host: looked.host,
        every_s: match looked.policy {
            Lookup::Once => None,
            Lookup::Every(interval) => Some(interval.as_secs_f64()),
        },
        lookups: looked.lookups,
        addresses: looked.addresses.into_iter().map(address).collect(),
    }
}

/// What a run needs of this machine.
pub(super) fn needs(needs: &Needs) -> DryNeeds {
    DryNeeds {
        open: needs.open,
        connections: needs.connections,
        sources: needs.sources,
        calls: needs.calls,
        descriptors: needs.descriptors,
        ports: Needs::ports(),
        provider_keeps: needs.provider_keeps,
        open_take: needs.open_take,
    }
}
