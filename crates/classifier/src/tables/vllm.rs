//! vLLM and servers built on it: `{"object":"error","message","type","param","code"}`, flat or inside
//! an `error` object; `type` is a Python exception's name, `code` the status as a number.

use Class::{CallerFault, ModelAccess, Transient};
use Kind::ContextWindow;
use When::{Only, Refused};

use crate::evidence::Family;
use crate::table::{Rule, Table, When};
use crate::verdict::{Class, Kind};

pub(super) const TABLE: Table = Table {
    family: Family::Vllm,
    source: "the failure corpus under `corpus/` alone",
    revised: "2026-11-30",
    codes: &[
        Rule::new("not_found_error", ModelAccess)
            .weak()
            .when(Only(404)),
        Rule::new("bad_request_error", CallerFault)
            .weak()
            .when(Refused),
        Rule::new("internal_server_error", Transient).weak(),
    ],
    phrases: &[
        Rule::new("maximum model length", CallerFault).kind(ContextWindow),
        Rule::new("engine .. (died|dead|issue)", Transient),
    ],
    statuses: &[],
};
