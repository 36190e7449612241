//! The result of an operation, and why it was refused.

use crate::BackendProbe;

objects! {
    /// The result of a reload, or of opening the log again.
    pub struct OperationReport {
        /// What was done, in words.
        pub report: String,
    }

    /// An upgrade that was begun.
    pub struct UpgradeStart {
        /// The number of the process that serves now.
        pub process: u32,
        /// The number of this upgrade. `upgrade` of the status has the same number when the upgrade is over.
        pub number: u64,
    }

    /// The answer to a request for a probe: the probe's number, and its result if it ended within 5 seconds.
    pub struct ProbeResult {
        /// Whether the probe is under way. It is over when `last_probe` of the backend has this number, or a
        /// higher one.
        pub probing: bool,
        /// The probe's number.
        pub number: u64,
        /// The probe's result, if it ended within 5 seconds. Absent while the probe is under way.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub probe: Option<BackendProbe>,
    }

    /// Why a request was refused, in the form of RFC 9457.
    pub struct Problem {
        /// Always `about:blank`; `token` says which problem it is.
        #[serde(rename = "type")]
        pub kind: String,
        /// The status code in words.
        pub title: String,
        /// The status code.
        pub status: u16,
        /// The problem, as a token for programs.
        pub token: String,
        /// What is wrong, for people.
        pub detail: String,
    }
}
