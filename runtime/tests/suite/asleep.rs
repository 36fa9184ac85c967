//! Waiting until another thread waits, in place of a sleep that hopes so.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

/// So many looks in a row must find a thread asleep: one that waits for a lock is asleep for a moment, too.
const LOOKS: u32 = 20;

/// A thread of this process, as the system knows it.
pub(crate) struct ThreadFiles(PathBuf);

impl ThreadFiles {
    /// The calling thread.
    pub(crate) fn own() -> ThreadFiles {
        ThreadFiles(fs::canonicalize("/proc/thread-self").unwrap())
    }

    /// Whether it sleeps in the system; also once it has ended.
    fn is_asleep(&self) -> bool {
        let Ok(stat) = fs::read_to_string(self.0.join("stat")) else { return true };
        // The name of the thread is in parentheses, then comes its state.
        let (_, state) = stat.rsplit_once(") ").unwrap();
        state.starts_with(['S', 'D'])
    }

    /// Waits until the thread waits for something, or has ended.
    pub(crate) fn wait_until_asleep(&self) {
        let mut looks = 0;
        while looks < LOOKS {
            looks = if self.is_asleep() { looks + 1 } else { 0 };
            thread::yield_now();
        }
    }
}

/// Starts a thread, and waits until it waits for something or has ended.
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
