//! The guard: a shell that removes a space when the pipe from this process ends, even if this process is killed.
//!
//! The pipe tells it the process groups of a shared space: `+ID` when one begins, `-ID` when it has
//! ended, since the system may then give the number to another process.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use catamaran_gauge::Group;

use super::namespace::Namespace;

#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    // A std mutex: held to write a line.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts the guard's shell, inside the namespace and outside the cgroup. Its arguments are the
    /// path of the cgroup, the name of the namespace, the directory, and the path of the cgroup's
    /// twin of version 1; an argument is empty if its object does not exist.
    pub(super) fn start(
        namespace: Option<&Namespace>,
        group: Option<&Group>,
        directory: &Path,
    ) -> io::Result<Self> {
        let twin = group.and_then(Group::twin).unwrap_or_default();
        let group_path = group.map_or_else(|| Path::new(""), Group::path);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "catamaran-guard"])
            .arg(group_path)
            .arg(namespace.map_or("", Namespace::name))
            .arg(directory)
            .arg(twin)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // So that ctrl-C in a terminal does not end it.
            .process_group(0);
        let mut spawn = || command.spawn();
        let mut child = match namespace {
            Some(namespace) => namespace.inside(spawn).map_err(io::Error::other)??,
            None => spawn()?,
        };
        let pipe = Mutex::new(child.stdin.take());
        Ok(Self { child, pipe })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells the guard that a process group of a shared space has begun, so that it kills it at the end.
    pub(crate) fn watch(&self, id: u32) {
        self.tell(&format!("+{id}\n"));
    }

    /// Tells the guard that a process group of a shared space has ended.
    pub(crate) fn forget(&self, id: u32) {
        self.tell(&format!("-{id}\n"));
    }

    /// Writes a line to the guard's shell; nothing if the guard was told to end.
    fn tell(&self, line: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // If the guard was killed, the destructors still clean up.
            let _ = pipe.write_all(line.as_bytes());
        }
    }

    /// Makes the guard clean up now, and waits until it has; `false` if it could not.
    pub(super) fn end(&mut self) -> bool {
        // The end of the pipe is the guard's sign to begin.
        drop(self.pipe.get_mut().map(Option::take));
        self.child.wait().is_ok_and(|status| status.success())
    }
}

const SCRIPT: &str = r#"
groups=
while read -r line; do
    case $line in
    +*) groups="$groups ${line#+} " ;;
    -*)
        was="$groups"
        groups=
        for one in $was; do [ "$one" = "${line#-}" ] || groups="$groups $one"; done
        ;;
    esac
done
for one in $groups; do kill -s KILL -- "-$one"; done
if [ -n "$1" ] && [ -e "$1" ]; then
    echo 1 >"$1/cgroup.kill"
    turns=0
    while grep -q 'populated 1' "$1/cgroup.events" && [ "$turns" -lt 1000 ]; do
        sleep 0.01
        turns=$((turns + 1))
    done
    find "$1" -depth -type d -exec rmdir {} ';'
fi
[ -z "$4" ] || [ ! -d "$4" ] || find "$4" -depth -type d -exec rmdir {} ';'
[ -z "$2" ] || ip netns delete "$2"
rm -rf -- "$3"
exit 0
"#;
