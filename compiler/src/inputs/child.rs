//! Work in a child process, for code of LLVM that can end the process in ways that nothing catches: its reader of bitcode
//! allocates what damaged bitcode says, and aborts.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::fatal;

/// The time after which the child is taken to hang.
const TIME_OUT: Duration = Duration::from_secs(30);
/// The memory that the child may add to that of this process, in bytes.
const MEMORY: u64 = 4 << 30;

/// The end of the work in the child.
pub(super) enum End {
    /// Its result, or its message.
    Done(std::result::Result<Vec<u8>, String>),
    /// The child ended without either.
    Died(&'static str),
}

/// Runs `work` in a copy of this process.
///
/// # Errors
/// [`Error::Tool`] if the system gives no further process.
pub(super) fn run(work: impl FnOnce() -> std::result::Result<Vec<u8>, String>) -> Result<End> {
    let failed = |what: &str| {
        let log = format!("{what}: {}", std::io::Error::last_os_error());
        Error::Tool { tool: "LLVM", operation: "reading bitcode".into(), log }
    };
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(failed("no pipe"));
    }
    // SAFETY: new descriptors, each owned once.
    let [reader, writer] = ends.map(|end| unsafe { File::from(OwnedFd::from_raw_fd(end)) });
    // SAFETY: the child uses only memory of its own, LLVM with a context of its own, and system calls, and ends in `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(failed("no process")),
        0 => answer(writer, work),
        child => {
            drop(writer);
            Ok(wait(child, reader))
        }
    }
}

/// The child: does the work, and writes its result.
fn answer(writer: File, work: impl FnOnce() -> std::result::Result<Vec<u8>, String>) -> ! {
    confine();
    let end = |mut writer: &File, tag: u8, bytes: &[u8]| -> ! {
        let mut whole = vec![tag];
        whole.extend((bytes.len() as u64).to_le_bytes());
        whole.extend(bytes);
        let _ = writer.write_all(&whole);
        // SAFETY: without handlers and destructors, which belong to the parent.
        unsafe { libc::_exit(0) }
    };
    let of_fatal = writer.try_clone();
    fatal::report_to(move |text| {
        if let Ok(writer) = &of_fatal {
            end(writer, 1, text.as_bytes());
        }
    });
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(bytes)) => end(&writer, 0, &bytes),
        Ok(Err(message)) => end(&writer, 1, message.as_bytes()),
        // SAFETY: as above.
        Err(_) => unsafe { libc::_exit(1) },
    }
}

/// Takes the parent's signal handlers and files from the child, which ends with its parent, and limits its memory.
fn confine() {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let data = pages.and_then(|text| text.split(' ').nth(5)?.parse::<u64>().ok());
    // SAFETY: system calls with valid arguments. Their failure leaves the child less confined.
    unsafe {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if nothing >= 0 {
            (0..3).for_each(|standard| _ = libc::dup2(nothing, standard));
        }
        let limit = |bytes: u64| libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        libc::setrlimit(libc::RLIMIT_CORE, &limit(0));
        if let Some(pages) = data {
            let page = libc::sysconf(libc::_SC_PAGESIZE).max(0) as u64;
            libc::setrlimit(libc::RLIMIT_DATA, &limit(pages * page + MEMORY));
        }
    }
}

/// The parent: reads the result, and waits for the end.
fn wait(child: libc::pid_t, mut reader: File) -> End {
    let deadline = Instant::now() + TIME_OUT;
    let mut bytes = vec![];
    let late = loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        match unsafe { libc::poll(&mut poll, 1, left) } {
            0 => break true,
            -1 if std::io::Error::last_os_error().kind() != ErrorKind::Interrupted => break true,
            -1 => continue,
            _ => {}
        }
        let mut part = [0; 1 << 16];
        match reader.read(&mut part) {
            Ok(0) => break false,
            Ok(count) => bytes.extend(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break true,
        }
    };
    // SAFETY: a child of this process. The host may have waited for it already, which does no harm.
    unsafe {
        if late {
            libc::kill(child, libc::SIGKILL);
        }
        while libc::waitpid(child, std::ptr::null_mut(), 0) == -1
            && std::io::Error::last_os_error().kind() == ErrorKind::Interrupted
        {}
    }
    let whole = bytes.split_first().and_then(|(tag, rest)| {
        let (length, rest) = rest.split_first_chunk()?;
        (u64::from_le_bytes(*length) == rest.len() as u64).then(|| (*tag, rest.to_vec()))
    });
    match whole {
        Some((0, bytes)) => End::Done(Ok(bytes)),
        Some((_, text)) => End::Done(Err(String::from_utf8_lossy(&text).into_owned())),
        None if late => End::Died("it does not end"),
        None => End::Died("it crashes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(work: impl FnOnce() -> std::result::Result<Vec<u8>, String>) -> String {
        match run(work).unwrap() {
            End::Done(Ok(bytes)) => format!("{} bytes", bytes.len()),
            End::Done(Err(message)) => message,
            End::Died(how) => how.into(),
        }
    }

    #[test]
    fn every_end_is_known() {
        assert_eq!(end(|| Ok(vec![7; 1 << 20])), "1048576 bytes");
        assert_eq!(end(|| Err("wrong".into())), "wrong");
        assert_eq!(end(|| std::process::abort()), "it crashes");
        assert_eq!(end(|| panic!("in the child")), "it crashes");
        // More than the memory of any machine of today.
        assert_eq!(end(|| Ok(vec![1; 1 << 46])), "it crashes");
    }
}
