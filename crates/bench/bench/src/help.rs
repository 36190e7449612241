//! The texts of `-h` and `-V`, for `bench` and for ab mode.

use std::fmt::Write as _;

use crate::flag::{Flag, GROUPS, Group, ValueKind};

/// The description of a flag, for man pages and shell completions.
#[derive(Clone, Copy, Debug)]
pub struct FlagHelp {
    /// The title of the group that the help lists the flag in.
    pub group: &'static str,
    /// The flag's one-letter name; `None` if there is none.
    pub short: Option<char>,
    /// The flag's long name, without the two dashes.
    pub long: &'static str,
    /// The name of the flag's value in the help; `None` if the flag takes no value.
    pub value: Option<&'static str>,
    /// Whether the value may be left out; if it is given, it must be joined by an `=`.
    pub is_optional: bool,
    /// The flag's effect, as one phrase.
    pub help: &'static str,
}

/// Every flag of `bench`, in the order of its help.
pub fn flags() -> impl Iterator<Item = FlagHelp> {
    let in_group = |group: &'static Group| group.flags.iter().map(|flag| (group.title, flag));
    let titled_flags = GROUPS.iter().flat_map(in_group);
    titled_flags.map(|(title, flag)| FlagHelp {
        group: title,
        short: flag.short,
        long: flag.long,
        value: match flag.value {
            ValueKind::No => None,
            ValueKind::Needed(name) | ValueKind::Attached(name) => Some(name),
        },
        is_optional: matches!(flag.value, ValueKind::Attached(_)),
        help: flag.help,
    })
}

/// The help of `bench`, generated from the records of flags.
pub(crate) fn ours() -> String {
    let mut text = format!("{INTRODUCTION}\n");
    for group in &GROUPS {
        write!(text, "\n{}:\n", group.title).expect("a string takes all");
        for flag in group.flags {
            entry(&mut text, flag);
        }
    }
    write!(text, "\n{CLOSING}\n").expect("a string takes all");
    text
}

/// Appends the help of one flag: its names, its value and its effect.
fn entry(text: &mut String, flag: &Flag) {
    let letter = match flag.short {
        Some(letter) => format!("-{letter},"),
        None => String::new(),
    };
    let value = match flag.value {
        ValueKind::No => String::new(),
        ValueKind::Needed(name) => format!(" {name}"),
        ValueKind::Attached(name) => format!("[={name}]"),
    };
    let head = format!("  {letter:3} --{}{value}", flag.long);
    let mut lines = wrap(flag.help, WIDTH - INDENT);
    if head.len() + 2 <= INDENT {
        let first = lines.next().unwrap_or_default();
        writeln!(text, "{head:INDENT$}{first}").expect("a string takes all");
    } else {
        writeln!(text, "{head}").expect("a string takes all");
    }
    for line in lines {
        writeln!(text, "{:INDENT$}{line}", "").expect("a string takes all");
    }
}

/// Breaks `text` between words into lines of at most `width` letters.
fn wrap(text: &str, width: usize) -> impl Iterator<Item = String> {
    let mut words = text.split_whitespace().peekable();
    std::iter::from_fn(move || {
        let mut line = words.next()?.to_owned();
        while let Some(word) = words.next_if(|word| line.len() + 1 + word.len() <= width) {
            line.push(' ');
            line.push_str(word);
        }
        Some(line)
    })
}

/// ab's banner, which is also what it prints for `-V`; as HTML if `html`.
pub(crate) fn ab_banner(html: bool) -> &'static str {
    if html { AB_BANNER_HTML } else { AB_BANNER }
}

/// ab's usage message; `name` is the program's name in it.
pub(crate) fn ab_usage(name: &str) -> String {
    format!("Usage: {name} [options] [http[s]://]hostname[:port]/path\n{AB_OPTIONS}")
}

const WIDTH: usize = 100;
const INDENT: usize = 36;

const INTRODUCTION: &str = "\
Send load to an HTTP, AJP13 or memcached server, and report rate, latency and errors. It accepts
ab's command lines

Usage: catamaran bench [FLAGS] URL
       catamaran bench knee [FLAGS] URL     the highest rate that keeps within --fail-if

A URL is http://, https://, ajp://, http+unix:/SOCKET:/PATH, ajp+unix:/SOCKET:/PATH,
memcached://HOST or memcached+unix:/SOCKET. A TIME is such as 10s, 500ms or 1.5m; a number may end
in k or M.";

const CLOSING: &str = "\
Exit codes: 0 fine, 1 something failed, 2 usage, 3 a gate that the run did not decide. Called as
ab: ab's.
docs/bench.md has the details.";

const AB_BANNER: &str = "\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/
Licensed to The Apache Software Foundation, http://www.apache.org/

";

const AB_BANNER_HTML: &str = "\
<p>
 This is ApacheBench, Version 2.3 <i>&lt;$Revision$&gt;</i><br>
 Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/<br>
 Licensed to The Apache Software Foundation, http://www.apache.org/<br>
</p>
<p>
";

const AB_OPTIONS: &str = "\
Options are:
    -n requests     Number of requests to perform
    -c concurrency  Number of multiple requests to make at a time
    -t timelimit    Seconds to max. to spend on benchmarking
                    This implies -n 50000
    -s timeout      Seconds to max. wait for each response
                    Default is 30 seconds
    -b windowsize   Size of TCP send/receive buffer, in bytes
    -B address      Address to bind to when making outgoing connections
    -p postfile     File containing data to POST. Remember also to set -T
    -u putfile      File containing data to PUT. Remember also to set -T
    -T content-type Content-type header to use for POST/PUT data, eg.
                    'application/x-www-form-urlencoded'
                    Default is 'text/plain'
    -v verbosity    How much troubleshooting info to print
    -w              Print out results in HTML tables
    -i              Use HEAD instead of GET
    -x attributes   String to insert as table attributes
    -y attributes   String to insert as tr attributes
    -z attributes   String to insert as td or th attributes
    -C attribute    Add cookie, eg. 'Apache=1234'. (repeatable)
    -H attribute    Add Arbitrary header line, eg. 'Accept-Encoding: gzip'
                    Inserted after all normal header lines. (repeatable)
    -A attribute    Add Basic WWW Authentication, the attributes
                    are a colon separated username and password.
    -P attribute    Add Basic Proxy Authentication, the attributes
                    are a colon separated username and password.
    -X proxy:port   Proxyserver and port number to use
    -V              Print version number and exit
    -k              Use HTTP KeepAlive feature
    -d              Do not show percentiles served table.
    -S              Do not show confidence estimators and warnings.
    -q              Do not show progress when doing more than 150 requests
    -l              Accept variable document length (use this for dynamic pages)
    -g filename     Output collected data to gnuplot format file.
    -e filename     Output CSV file with percentages served
    -r              Don't exit on socket receive errors.
    -m method       Method name
    -h              Display usage information (this message)
    -I              Disable TLS Server Name Indication (SNI) extension
    -Z ciphersuite  Specify SSL/TLS cipher suite (See openssl ciphers)
    -f protocol     Specify SSL/TLS protocol
                    (SSL2, TLS1, TLS1.1, TLS1.2, TLS1.3 or ALL)
    -E certfile     Specify optional client certificate chain and private key
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits() {
        let text = ours();
        for line in text.lines() {
            assert!(line.len() <= WIDTH, "{line}");
        }
        assert!(text.contains("\n  -n, --requests N"), "{text}");
        assert!(text.contains("\n      --json[=FILE]"), "{text}");
    }
}
