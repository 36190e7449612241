//! The grammars of the three servers: from a text to directives with their lines. They open no file and
//! know no directive's meaning.

pub mod httpd;
pub mod nginx;
pub mod properties;
