//! Connections to backends: dialling, pools, leases, and one exchange over AJP13 or HTTP/1.1.
pub mod config;
