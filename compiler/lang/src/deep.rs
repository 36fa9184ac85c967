//! Room for deeply nested programs.
//!
//! The front end recurses as deeply as a program nests, and the stack of the caller's thread may be small. So work on a program
//! runs on a thread whose stack has room for as many levels as the program may have, up to [`MAX_HEIGHT`].

use std::cell::Cell;
use std::panic::resume_unwind;
use std::thread;

use crate::source::SourceMap;

/// The limit on the nesting of a program.
pub const MAX_HEIGHT: u16 = 10_000;

/// The limit on any other thread, and everywhere on blocks and types.
pub const SHALLOW: u16 = 256;

/// The most that a level takes is 33 KiB, in blocks, without optimisation.
const LEVEL_BYTES: usize = 48 << 10;

thread_local! {
    static LIMIT: Cell<u16> = const { Cell::new(SHALLOW) };
}

/// The limit on this thread.
pub(crate) fn limit() -> u16 {
    LIMIT.get()
}

/// Runs work on a program, with room for its nesting. If the system has no memory for the stack, the limit is [`SHALLOW`].
pub(crate) fn with_room<T: Send>(sources: &SourceMap, work: impl FnOnce() -> T + Send) -> T {
    if limit() == MAX_HEIGHT {
        return work();
    }
    let levels = sources.files().iter().map(|file| levels(&file.text)).max().unwrap_or(0);
    // Types nest deeper than the text where each variable adds a level.
    let stack = levels.clamp(SHALLOW.into(), MAX_HEIGHT.into()) * LEVEL_BYTES;
    let mut work = Some(work);
    let done = thread::scope(|scope| {
        let run = || {
            LIMIT.set(MAX_HEIGHT);
            work.take().map(|work| work())
        };
        let builder = thread::Builder::new().name("gridlet-deep".into()).stack_size(stack);
        let thread = builder.spawn_scoped(scope, run).ok()?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    match (done, work) {
        (Some(done), _) => done,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("the work ran or is still here"),
    }
}

/// The most levels that a text may have: they are at most its open brackets, and the words and signs of one statement.
fn levels(text: &str) -> usize {
    let (mut open, mut pieces, mut in_word, mut most) = (0_usize, 0, false, 0);
    for byte in text.bytes() {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128;
        if !is_word && !byte.is_ascii_whitespace() || is_word && !in_word {
            pieces += 1;
        }
        in_word = is_word;
        match byte {
            b'(' | b'[' | b'{' | b'<' => open += 1,
            b')' | b']' | b'}' | b'>' => open = open.saturating_sub(1),
            _ => {}
        }
        if matches!(byte, b';' | b'{' | b'}') {
            pieces = 0;
        }
        most = most.max(open + pieces);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::arch::CudaArch;
    use crate::diagnostics::ids;
    use crate::format::format;
    use crate::launch::{LaunchOptions, LaunchStrategy};
    use crate::program::check;

    type Make = fn(usize) -> String;

    /// Expressions with `n` levels, of `x`.
    const KINDS: [(&str, Make); 9] = [
        ("left", |n| format!("{}x{}", "(".repeat(n), " + 1)".repeat(n))),
        ("right", |n| format!("{}x{}", "1 + (".repeat(n), ")".repeat(n))),
        ("both", |n| format!("{}x{}", "(1 - (".repeat(n / 2), " * 3))".repeat(n / 2))),
        ("nothing between", |n| format!("{}x{}", "(".repeat(n), ")".repeat(n))),
        ("unary", |n| format!("{}x", "!".repeat(n))),
        ("casts", |n| format!("x{}", " as u64 as u32".repeat(n / 2))),
        ("calls", |n| format!("{}x{}", "f(".repeat(n), ")".repeat(n))),
        ("indices", |n| format!("{}x{}", "p[".repeat(n), "]".repeat(n))),
        ("conditions", |n| format!("({}x == 1{}) as u32", "(x == 2 || ".repeat(n), ")".repeat(n))),
    ];

    fn program(expression: &str) -> SourceMap {
        let text = format!(
            "fn f(x: u32) -> u32 {{ return x + 1; }}\n\
             kernel k(p: *mut u32, x: u32) {{ *p = {expression}; f(x); }}\n"
        );
        SourceMap::single("a.grid", text)
    }

    fn ids<T>(result: Result<T, Error>) -> Vec<&'static str> {
        match result {
            Ok(_) => vec![],
            Err(Error::Program(messages)) => messages.iter().map(|message| message.id).collect(),
            Err(error) => panic!("{error}"),
        }
    }

    /// On the stack of a test's thread, which is smaller than a main thread's.
    #[test]
    fn expressions_nest_up_to_the_limit_through_all_stages() {
        for (kind, make) in KINDS {
            // The statement takes a few levels.
            let most = usize::from(MAX_HEIGHT) - 10;
            let sources = program(&make(most));
            let checked =
                check(sources.clone()).unwrap_or_else(|error| panic!("{kind}: {error:?}"));
            let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
            checked.lower(&options).unwrap();
            let formatted = format(&sources).unwrap();
            assert!(formatted.contains("kernel k"), "{kind}");
            for more in [11_000, 100_000] {
                let found = ids(check(program(&make(more))));
                let is_one = found.iter().filter(|id| **id == ids::NESTING_TOO_DEEP).count() == 1;
                assert!(is_one, "{kind} of {more}: {found:?}");
                assert!(!ids(format(&program(&make(more)))).is_empty(), "{kind} of {more}");
            }
        }
    }

    #[test]
    fn blocks_and_array_literals_nest_as_deep_as_on_any_thread() {
        let blocks = |n: usize| format!("{}x{}", "{".repeat(n), "}".repeat(n));
        let arrays = |n: usize| format!("{}x{}{}", "[".repeat(n), "]".repeat(n), "[0]".repeat(n));
        for make in [blocks, arrays] {
            assert_eq!(ids(check(program(&make(100)))), [""; 0]);
            assert_eq!(ids(check(program(&make(300)))), [ids::NESTING_TOO_DEEP]);
            assert_eq!(ids(check(program(&make(20_000)))), [ids::NESTING_TOO_DEEP]);
        }
    }

    /// Each variable adds a level to the type of the one before.
    #[test]
    fn types_of_variables_nest_as_deep_as_written_ones() {
        let program = |n: usize, make: fn(&str) -> String| {
            let more = |at: usize| format!("let x{at} = {};\n", make(&format!("x{}", at - 1)));
            let lines: String = (1..=n).map(more).collect();
            let text = format!("kernel k(p: *mut u32) {{ let x0 = 1u32;\n{lines}*p = x0; }}\n");
            SourceMap::single("a.grid", text)
        };
        let makes: [fn(&str) -> String; 3] =
            [|x| format!("&{x}"), |x| format!("[{x}]"), |x| format!("[{x}; 1]")];
        for make in makes {
            assert_eq!(ids(check(program(255, make))), [""; 0]);
            assert_eq!(ids(check(program(256, make))), [ids::NESTING_TOO_DEEP]);
            assert_eq!(ids(check(program(20_000, make))), [ids::NESTING_TOO_DEEP]);
        }
    }

    #[test]
    fn only_texts_that_may_nest_deep_need_room() {
        assert!(levels(&"let x = (a + b) * c;\n".repeat(1000)) < 20);
        for deep in ["(", "! ", "x as u32 ", "{"] {
            assert!(levels(&deep.repeat(300)) >= 300, "{deep}");
        }
    }

    /// C's threads may have stacks of a few pages.
    #[test]
    fn programs_are_checked_on_threads_with_small_stacks() {
        let ifs = |n: usize| format!("{}{}", "if x > 1 {\n".repeat(n), "}".repeat(n));
        let blocks = format!("kernel b(x: u32) {{ {} }}\n", ifs(250));
        let texts = KINDS.map(|(_, make)| program(&make(250)));
        for sources in texts.into_iter().chain([SourceMap::single("b.grid", blocks)]) {
            let run = move || {
                let found = ids(check(sources.clone()));
                (found, format(&sources).is_ok())
            };
            let thread = thread::Builder::new().stack_size(128 << 10).spawn(run).unwrap();
            assert_eq!(thread.join().unwrap(), (vec![], true));
        }
    }
}
