//! The PV `server`, which every server has: `pvlist`, `pvxlist` and `hodo pva list` ask it for its PVs, or for what it is.

use super::Core;
use super::handlers::{Call, ClientName};
use super::pv::PvOptions;
use crate::machines::data::SetError;
use crate::machines::normative::Normative;
use crate::machines::server::Claimant;
use crate::machines::{Array, Scalar, Type, Value};
use hodo_machine::{Address, Ends};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The name of the PV.
pub(super) const NAME: &str = "server";
const HELP: &str = "call it with op=channels for the names of the PVs, with op=info for what the server is";
/// Clients that are answered at once.
const AT_ONCE: usize = 2;

/// Serves the PV.
pub(super) fn serve(core: &Arc<Core>) {
    let mut value = Value::of(Normative::scalar(Scalar::Text).build());
    if value.set("value", HELP).is_ok() {
        PvOptions::new(Arc::clone(core), NAME.to_owned(), value).on_call(answer).concurrent(AT_ONCE).serve();
    }
}

fn answer(call: Call) {
    let text = |path: &str| Some(call.argument.as_ref()?.get(path)?.as_text()?.to_string());
    let reply = match text("query.op").or_else(|| text("op")).as_deref() {
        Some("channels") => names(&call),
        Some("info") => info(),
        Some("help") => help(),
        Some(other) => return call.refuse(format!("there is no op={other}: {HELP}")),
        None => return call.refuse(HELP),
    };
    match reply {
        Ok(value) => call.reply(Some(value)),
        Err(why) => call.refuse(why.to_string()),
    }
}

/// Returns the names of the PVs that the client may read.
fn names(call: &Call) -> Result<Value, SetError> {
    let core = &call.pv.core;
    let pvs: Vec<_> = core.served().values().cloned().collect();
    let rules = core.rules().clone();
    let ends = ends(&call.client);
    let claimant = Claimant { ends: &ends, user: &call.client.user, host: &call.client.host };
    let may_read = |name: &str| name != NAME && rules.of(&claimant, name).read;
    let mut names: Vec<_> = pvs.iter().map(|pv| pv.name.as_str()).filter(|name| may_read(name)).collect();
    names.sort_unstable();
    let mut value = Value::of(Normative::scalar_array(Scalar::Text).build());
    value.set("value", Array::texts(names))?;
    Ok(value)
}

/// Returns the ends of a client's connection, as far as its name tells.
fn ends(client: &ClientName) -> Ends {
    let remote = client.address.parse().map_or_else(
        |_| Address::Path(client.address.clone()),
        |address: IpAddr| Address::Tcp(SocketAddr::new(address, 0)),
    );
    Ends { local: Address::Path(String::new()), remote, interface: None, user: None }
}

fn info() -> Result<Value, SetError> {
    let fields = ["implLang", "version", "os", "arch"].map(|name| (name, Type::Scalar(Scalar::Text)));
    let mut value = Value::of(Type::structure("", fields));
    value.set("implLang", "rust")?;
    value.set("version", concat!("hodoscope ", env!("CARGO_PKG_VERSION")))?;
    value.set("os", std::env::consts::OS)?;
    value.set("arch", std::env::consts::ARCH)?;
    Ok(value)
}

fn help() -> Result<Value, SetError> {
    let mut value = Value::of(Normative::scalar(Scalar::Text).build());
    value.set("value", HELP)?;
    Ok(value)
}
