//! The result of an operation, and why it was refused.

use crate::BackendProbe;

objects! {
    /// The result of a reload, or of opening the log again.
    pub struct OperationReport {
        /// In words.
        pub report: String,
    }

    /// An upgrade that was begun.
    pub struct UpgradeStart {
        /// The process that serves now.
        pub process: u32,
        /// Its number: that of `upgrade` of the status, once it is over.
        pub number: u64,
    }

    /// A probe that was begun.
    pub struct ProbeResult {
        /// Whether it is under way: it is over when `last_probe` of the backend has this number, or a higher one.
        pub probing: bool,
        /// Its number.
        pub number: u64,
        /// Its result, if it ended within 5 seconds. Absent while it is under way.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub probe: Option<BackendProbe>,
    }

    /// Why a request was refused, in the form of RFC 9457.
    pub struct Problem {
        /// Always `about:blank`: `token` says which problem it is.
        #[serde(rename = "type")]
        pub kind: String,
        /// The status in words.
        pub title: String,
        /// The status.
        pub status: u16,
        /// Which problem it is, for programs.
        pub token: String,
        /// What is wrong, for people.
        pub detail: String,
    }
}
