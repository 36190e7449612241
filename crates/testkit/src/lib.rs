//! Tools for tests: scripted peers, transcripts, child processes with deadlines.
