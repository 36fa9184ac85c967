//! Waits until another thread is blocked, instead of sleeping and hoping.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

/// A thread must be found asleep this many times in a row, because waiting for a lock also puts it to sleep
/// briefly.
const LOOKS: u32 = 20;

/// A thread of this process, as `/proc` shows it.
pub(crate) struct ThreadFiles(PathBuf);

impl ThreadFiles {
    /// The calling thread.
    pub(crate) fn own() -> ThreadFiles {
        ThreadFiles(fs::canonicalize("/proc/thread-self").unwrap())
    }

    /// Whether the thread is asleep or has ended.
    fn is_asleep(&self) -> bool {
        let Ok(stat) = fs::read_to_string(self.0.join("stat")) else { return true };
        // The thread's name is in parentheses, followed by its state.
        let (_, state) = stat.rsplit_once(") ").unwrap();
        state.starts_with(['S', 'D'])
    }

    /// Waits until the thread is blocked or has ended.
    pub(crate) fn wait_until_asleep(&self) {
        let mut looks = 0;
        while looks < LOOKS {
            looks = if self.is_asleep() { looks + 1 } else { 0 };
            thread::yield_now();
        }
    }
}

/// Starts a thread, and waits until it is blocked or has ended.
pub(crate) fn spawn_until_asleep<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let (sender, receiver) = mpsc::channel();
    let handle = scope.spawn(move || {
        sender.send(ThreadFiles::own()).unwrap();
        run()
    });
    receiver.recv().unwrap().wait_until_asleep();
    handle
}
