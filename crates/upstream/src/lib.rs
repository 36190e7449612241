//! Dialling, pools, leases and one exchange with a backend over AJP13 or HTTP/1.1.
