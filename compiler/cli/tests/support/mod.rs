//! Runs the `gridlet` program in tests.

pub(crate) mod devices;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A new folder that is deleted after the test.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// An invocation of the program in a folder.
pub(crate) struct Gridlet {
    command: Command,
    folder: PathBuf,
}

/// The result of an invocation.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Gridlet {
    /// The program under test: `GRIDLET_BIN` when testing a bundle, else the one built with the
    /// tests.
    pub(crate) fn new(folder: &TempDir) -> Self {
        let program = std::env::var_os("GRIDLET_BIN")
            .map_or_else(|| env!("CARGO_BIN_EXE_gridlet").into(), PathBuf::from);
        let mut command = Command::new(program);
        command.current_dir(folder.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        // Tests compile, and leave the user's cache alone.
        command.env("GRIDLET_CACHE_SIZE", "0");
        Gridlet { command, folder: folder.path().into() }
    }

    /// Hides every toolkit from the program, except one in `/usr/local/cuda`.
    #[allow(dead_code, reason = "not every test crate that has this module needs it")]
    pub(crate) fn without_toolkit(self) -> Self {
        let hidden = [
            ("GRIDLET_TOOLKIT", "/no/toolkit"),
            ("CUDA_HOME", "/no/toolkit"),
            ("CUDA_PATH", "/no/toolkit"),
            ("GRIDLET_CACHE", "/no/cache"),
        ];
        hidden.into_iter().fold(self, |call, (name, value)| call.env(name, value))
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Limits the program's address space.
    #[allow(dead_code, reason = "not every test crate that has this module needs it")]
    pub(crate) fn with_address_space(self, mebibytes: u32) -> Self {
        self.in_shell(&format!("ulimit -v {}", mebibytes * 1024))
    }

    /// Runs commands in a shell that then becomes the program.
    #[allow(dead_code, reason = "not every test crate that has this module needs it")]
    pub(crate) fn in_shell(mut self, commands: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{commands} && exec \"$0\" \"$@\"")]);
        shell.arg(self.command.get_program()).current_dir(&self.folder).stdin(Stdio::null());
        for (name, value) in self.command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        self.command = shell;
        self
    }

    /// Redirects standard input from a file.
    #[allow(dead_code, reason = "not every test crate that has this module needs it")]
    pub(crate) fn input(mut self, path: &std::path::Path) -> Self {
        self.command.stdin(std::fs::File::open(path).expect("the file is there"));
        self
    }

    /// Runs the program. Removes the temporary folder's path from its output.
    pub(crate) fn run(mut self, arguments: &[&str]) -> Output {
        let output = self.command.args(arguments).output().expect("the gridlet program starts");
        let prefix = format!("{}/", self.folder.display());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&prefix, "");
        Output {
            status: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A folder with `source` as `p.grid`.
#[allow(dead_code, reason = "not every test crate that has this module needs it")]
pub(crate) fn program(source: &str) -> TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("p.grid"), source).expect("the folder can be written");
    folder
}

/// Parses the output of a command with `--json`.
#[allow(dead_code, reason = "not every test crate that has this module needs it")]
pub(crate) fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A program with nested launches: each grid of `tree` with `left` above 0 launches 4 grids, one
/// into each kind of stream, through a function; `large` launches it from a grid whose parameters
/// leave no room for a depth.
#[allow(dead_code, reason = "not every test crate that has this module needs it")]
pub(crate) const NESTED: &str = "\
struct Large {
    words: [u32; 1022],
}

fn grow(count: *mut u32, left: u32) {
    let own = stream_create();
    launch tree<<<2, 32>>>(count, left);
    launch tree<<<1, 32, stream = fire_and_forget>>>(count, left);
    launch tree<<<1, 1, stream = tail>>>(count, left);
    launch tree<<<dim3(1, 1, 3), 1, stream = own>>>(count, left);
    stream_destroy(own);
}

kernel tree(count: *mut u32, left: u32) {
    if block_idx.x == 0 && block_idx.z == 0 && thread_idx.x == 0 {
        atomic_add(count, 1);
        if left > 0 {
            grow(count, left - 1);
        }
    }
}

kernel large(count: *mut u32, more: Large) {
    launch tree<<<1, 1>>>(count, more.words[3]);
}

kernel outer(count: *mut u32) {
    let mut words: [u32; 1022];
    words[3] = 1;
    launch large<<<1, 1>>>(count, Large { words: words });
}
";

/// A program whose launches overflow a small pool of pending launches.
#[allow(dead_code, reason = "not every test crate that has this module needs it")]
pub(crate) const OVERFLOW: &str = "\
kernel child(done: *mut u32) {
    atomic_add(done, 1);
}

kernel parent(done: *mut u32) {
    launch child<<<1, 1>>>(done);
}
";
