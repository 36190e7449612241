//! What becomes of a request's trace.

use catamaran_message::Fields;

use crate::config::TraceConfig;
use crate::exchange::fields::forwarded::Sender;
use crate::trace_context::TraceParent;

/// Which trace a request with these fields is part of, and whether it is recorded, as a sentence.
pub(super) fn sentence(config: &TraceConfig, sender: &Sender, headers: &Fields) -> String {
    let percent = (config.sample * 1e6).round() / 1e4;
    let Some(parent) = TraceParent::of(headers) else {
        return format!("a trace is begun, of which {percent} % are recorded (`sample`)");
    };
    let recorded = if !parent.is_sampled {
        "not recorded, as its sender says".to_owned()
    } else if sender.peer.trusted {
        "recorded, as the trusted proxy says".to_owned()
    } else {
        let most = config.strangers_per_second;
        format!(
            "recorded, as its sender says, if no more than {most} strangers say so within a second"
        )
    };
    format!(
        "the trace {} goes on; it is {recorded}",
        parent.trace.digits()
    )
}
