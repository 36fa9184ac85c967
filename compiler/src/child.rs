//! Work in a child process, for code that can end the process in ways that nothing catches: LLVM's reader of bitcode allocates what
//! damaged bitcode says, and aborts; libNVVM and LLVM's back end crash on modules that they cannot compile.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
#[cfg(feature = "llvm")]
use crate::fatal;

/// What the child may use.
#[derive(Clone, Copy)]
pub(crate) enum Limits {
    /// A time after which it is taken to hang, and the bytes that it may add to the memory of this process: for work that ends
    /// soon.
    #[cfg_attr(
        not(feature = "llvm"),
        expect(dead_code, reason = "only LLVM's reader is such work")
    )]
    Short,
    /// As much as it needs: optimising a large module takes minutes, and only the caller knows how long is too long.
    Working,
}

/// The time of [`Limits::Short`].
const TIME_OUT: Duration = Duration::from_secs(30);
/// The times without work after which a child is taken to wait for a lock that another thread of this process held when the child
/// started. Another child then starts, but for the last time: a machine may have so much to do.
const IDLE: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(8), Duration::from_secs(30)];
/// The memory of [`Limits::Short`], in bytes.
const MEMORY: u64 = 4 << 30;
/// The most bytes that are read of what the child said.
const MAX_SAID: u64 = 4096;

/// The end of the work in the child.
pub(crate) enum End {
    /// Its result, or its message.
    Done(std::result::Result<Vec<u8>, String>),
    /// The child ended without either.
    Died {
        /// `it crashes`
        how: &'static str,
        /// What it wrote to standard error.
        said: String,
    },
}

/// Runs `work` in a copy of this process. `operation` is for messages; what `gate` gives is held while the copy is made.
///
/// # Errors
/// [`Error::Tool`] if the system gives no further process.
pub(crate) fn run<G>(
    operation: &str,
    limits: Limits,
    gate: impl Fn() -> G,
    work: impl FnOnce() -> std::result::Result<Vec<u8>, String> + Send,
) -> Result<End> {
    let failed = |what: &str| {
        let why = std::io::Error::last_os_error();
        let log = format!("{what}, which keeps a crash from ending this one: {why}");
        Error::Tool { tool: "gridlet", operation: operation.into(), log }
    };
    for idle in IDLE {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(failed("no pipe to a child process"));
        }
        // SAFETY: new descriptors, each owned once.
        let [reader, writer] = ends.map(|end| unsafe { File::from(OwnedFd::from_raw_fd(end)) });
        // SAFETY: the name is a C string.
        let errors = unsafe { libc::memfd_create(c"gridlet".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: a new descriptor, owned once.
        let errors = (errors >= 0).then(|| unsafe { File::from(OwnedFd::from_raw_fd(errors)) });
        let held = gate();
        // SAFETY: the child uses only memory of its own, LLVM with a context of its own, a library of which no other thread is
        // inside, and system calls, and ends in `_exit`.
        let child = match unsafe { libc::fork() } {
            -1 => return Err(failed("no child process")),
            0 => answer(writer, errors.as_ref(), limits, work),
            child => child,
        };
        drop((held, writer));
        if let Some(end) = wait(child, reader, errors, limits, idle) {
            return Ok(end);
        }
    }
    Ok(End::Died { how: "it does not end", said: String::new() })
}

/// The first byte of an answer that has the result.
const DONE: u8 = 0;
/// The first byte of an answer that has a message.
const FATAL: u8 = 1;

/// LLVM's recursion is as deep as on a main thread.
const STACK_BYTES: usize = 8 << 20;

/// The child: does the work, and writes its result.
fn answer(
    writer: File,
    errors: Option<&File>,
    limits: Limits,
    work: impl FnOnce() -> std::result::Result<Vec<u8>, String> + Send,
) -> ! {
    confine(&writer, errors, limits);
    let end = |mut writer: &File, tag: u8, bytes: &[u8]| -> ! {
        let mut whole = vec![tag];
        whole.extend((bytes.len() as u64).to_le_bytes());
        whole.extend(bytes);
        let _ = writer.write_all(&whole);
        // SAFETY: without handlers and destructors, which belong to the parent.
        unsafe { libc::_exit(0) }
    };
    let run = || {
        #[cfg(feature = "llvm")]
        if let Ok(writer) = writer.try_clone() {
            fatal::report_to(move |text| end(&writer, FATAL, text.as_bytes()));
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(bytes)) => end(&writer, DONE, &bytes),
            Ok(Err(message)) => end(&writer, FATAL, message.as_bytes()),
            // SAFETY: as above.
            Err(_) => unsafe { libc::_exit(1) },
        }
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        if let Ok(thread) = thread.spawn_scoped(scope, run) {
            let _ = thread.join();
        }
    });
    // SAFETY: as above.
    unsafe { libc::_exit(1) }
}

/// Takes the parent's signal handlers and files from the child, which ends with its parent, and limits its memory.
fn confine(writer: &File, errors: Option<&File>, limits: Limits) {
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
        if let Some(errors) = errors {
            libc::dup2(errors.as_raw_fd(), 2);
        }
        // Others wait for the end of pipes that the parent writes, such as a ptxas.
        #[cfg(target_os = "linux")]
        {
            let kept = u32::try_from(writer.as_raw_fd()).unwrap_or(0);
            libc::syscall(libc::SYS_close_range, 3, kept.saturating_sub(1), 0);
            libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0);
        }
        let limit = |bytes: u64| libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        libc::setrlimit(libc::RLIMIT_CORE, &limit(0));
        if let (Limits::Short, Some(pages)) = (limits, data) {
            let page = libc::sysconf(libc::_SC_PAGESIZE).max(0) as u64;
            libc::setrlimit(libc::RLIMIT_DATA, &limit(pages * page + MEMORY));
        }
    }
}

/// The parent: reads the result, and waits for the end. `None` if the child did nothing for the time `idle`.
fn wait(
    child: libc::pid_t,
    mut reader: File,
    errors: Option<File>,
    limits: Limits,
    idle: Duration,
) -> Option<End> {
    let start = Instant::now();
    let (mut worked, mut pauses) = (Duration::ZERO, 0);
    let mut bytes = vec![];
    let late = loop {
        let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        match unsafe { libc::poll(&mut poll, 1, (idle / 2).as_millis() as i32) } {
            0 => {
                let now = processor_time(child);
                // Twice, because both processes may have been stopped.
                pauses = if now > worked + Duration::from_millis(1) { 0 } else { pauses + 1 };
                worked = now;
                let is_over = matches!(limits, Limits::Short) && start.elapsed() >= TIME_OUT;
                if is_over || pauses == 2 {
                    break true;
                }
                continue;
            }
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
    Some(match whole {
        Some((DONE, bytes)) => End::Done(Ok(bytes)),
        Some((_, text)) => End::Done(Err(String::from_utf8_lossy(&text).into_owned())),
        None if pauses == 2 => return None,
        None => {
            let how = if late { "it does not end" } else { "it crashes" };
            End::Died { how, said: said(errors) }
        }
    })
}

/// The time that a child has computed.
fn processor_time(child: libc::pid_t) -> Duration {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers are to variables that live through the calls.
    let is_known = unsafe {
        libc::clock_getcpuclockid(child, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    let whole = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
    if is_known { whole } else { Duration::ZERO }
}

/// The start of what a child wrote to standard error.
fn said(errors: Option<File>) -> String {
    let mut bytes = vec![];
    if let Some(mut errors) = errors
        && errors.rewind().is_ok()
    {
        let _ = errors.take(MAX_SAID).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(work: impl FnOnce() -> std::result::Result<Vec<u8>, String> + Send) -> String {
        match run("testing", Limits::Short, || {}, work).unwrap() {
            End::Done(Ok(bytes)) => format!("{} bytes", bytes.len()),
            End::Done(Err(message)) => message,
            End::Died { how, said } => format!("{how}{said}"),
        }
    }

    /// Whoever reads a pipe whose other end the child kept would wait for the child.
    #[test]
    #[cfg(target_os = "linux")]
    fn files_of_the_parent_are_closed() {
        let (reader, writer) = std::io::pipe().unwrap();
        let ends = [reader.as_raw_fd(), writer.as_raw_fd()];
        // SAFETY: a question about a descriptor.
        let is_open = |end: &i32| unsafe { libc::fcntl(*end, libc::F_GETFD) } >= 0;
        assert!(ends.iter().all(is_open));
        let open = || Err(format!("{} open", ends.iter().filter(|end| is_open(end)).count()));
        assert_eq!(end(open), "0 open");
    }

    #[test]
    fn every_end_is_known() {
        assert_eq!(end(|| Ok(vec![7; 1 << 20])), "1048576 bytes");
        assert_eq!(end(|| Err("wrong".into())), "wrong");
        assert_eq!(end(|| std::process::abort()), "it crashes");
        assert!(end(|| panic!("in the child")).starts_with("it crashes"));
        let says = || {
            // SAFETY: the text lives through the call.
            unsafe { libc::write(2, c": LLVM ERROR: no\n".as_ptr().cast(), 17) };
            std::process::abort()
        };
        assert_eq!(end(says), "it crashes: LLVM ERROR: no");
        // More than the memory of any machine of today.
        assert!(end(|| Ok(vec![1; 1 << 46])).starts_with("it crashes"));
    }
}
