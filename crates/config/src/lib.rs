//! The configuration file, read into typed values with every fault at once.
