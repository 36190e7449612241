//! A balancer that terminates TLS and speaks HTTP/2 without TLS.

use crate::Row;
use crate::backend::Backend;
use crate::client::{Ended, ask};
use crate::server::{Kind, Stage};

/// The row of the table: the status of each server, or `reset`.
pub(crate) async fn row(stage: &Stage) -> anyhow::Result<Row> {
    let mut cells = Vec::new();
    for kind in Kind::ALL {
        let backend = Backend::start().await?;
        let trusts = true;
        let server = kind.start(stage, backend.address, trusts)?;
        cells.push(match ask(server.clear, "https").await {
            Ended::Answered(status) => status.to_string(),
            Ended::Refused | Ended::Lost => "reset".to_owned(),
        });
    }
    Ok(Row {
        attack: "none: `:scheme: https` of a balancer that speaks HTTP/2 in clear".to_owned(),
        cells,
    })
}
