//! Tests of the configuration file from outside: what a file means, what is said of a bad one, and
//! that the reference page is what the code says.

mod any_text;
mod corpus;
mod example;
mod faults;
mod machine;
mod odd;
mod page;
