//! The built binary and real servers, end to end.

mod tomcat;
