//! How fast programs are checked: lines a minute, and whether twice the program takes twice the time.

use std::fmt::Write as _;

use anyhow::{bail, ensure};
use gridlet::diagnostics::render;
use gridlet::source::SourceMap;
use nvvm_tests::generate;

use crate::{Options, Report, median};

/// The most that ten times the lines may take.
const MOST_GROWTH: f64 = 12.0;

/// A kind of program.
struct Shape {
    name: &'static str,
    /// A program of about that many lines.
    make: fn(usize) -> String,
}

const SHAPES: [Shape; 8] = [
    Shape { name: "random functions", make: |lines| generate::of_lines(1, lines).source },
    Shape { name: "one function", make: one_function },
    Shape { name: "small functions", make: functions },
    Shape { name: "locals in one scope", make: locals },
    Shape { name: "constants, each of the one after", make: constants },
    Shape { name: "fields of one struct", make: fields },
    Shape { name: "`else if`s, 200 in a row", make: else_ifs },
    Shape { name: "elements of one array", make: elements },
];

/// Measures every shape as far as the checker, and as far as verified IR with layouts.
pub(crate) fn check_times(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    println!("\nparsing and checking, by the processor's time:");
    let mut slow = vec![];
    for shape in &SHAPES {
        let (mut checked, mut built) = (vec![], vec![]);
        for lines in [1000, 10_000, 100_000] {
            let source = (shape.make)(lines);
            let lines = source.lines().count();
            let sources = SourceMap::single("bench.grid", source);
            let repeat = if lines > 50_000 { options.repeat.min(5) } else { options.repeat };
            let check = median(repeat, || {
                let before = processor_time()?;
                let (program, diagnostics) = gridlet::parse_and_check(&sources);
                let time = processor_time()? - before;
                if program.is_none() {
                    bail!("{}: {}", shape.name, render(&diagnostics, &sources, false));
                }
                Ok(time)
            })?;
            let build = median(repeat.min(3), || {
                let sources = sources.clone();
                let before = processor_time()?;
                gridlet::compile::check(sources)?;
                Ok(processor_time()? - before)
            })?;
            let speed = lines as f64 / check * 60_000.0 / 1e6;
            report.add(format!("{}: {lines} lines", shape.name), speed, "million lines a minute");
            // Of a line, since the programs are not of exactly so many.
            checked.push(check / lines as f64);
            built.push(build / lines as f64);
        }
        for (what, times) in [("checking", checked), ("building the IR too", built)] {
            let growth = times[2] / times[1] * 10.0;
            report.add(format!("  time of ten times the lines, {what}"), growth, "×");
            if growth > MOST_GROWTH {
                slow.push(format!("{} take {growth:.1} times the time, {what}", shape.name));
            }
        }
    }
    ensure!(slow.is_empty(), "with ten times the lines, {}", slow.join(", "));
    Ok(())
}

/// Milliseconds that this thread ran, which what else runs on the machine does not add to.
fn processor_time() -> anyhow::Result<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, and `time` is one.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    ensure!(status == 0, "no clock of the thread: {}", std::io::Error::last_os_error());
    Ok(time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6)
}

fn repeated(lines: usize, head: &str, line: impl Fn(usize) -> String, tail: &str) -> String {
    let mut source = String::from(head);
    for at in 0..lines.saturating_sub(2) {
        let _ = writeln!(source, "{}", line(at));
    }
    source + tail
}

fn one_function(lines: usize) -> String {
    let line = |at| match at % 4 {
        0 => format!("    x = x * {at} + (y >> {}) as u32;", at % 60),
        1 => format!("    if x > {at} {{ y += x as u64; }}"),
        2 => format!("    out[x % 64] = y ^ {at};"),
        _ => format!("    for i in 0..{}u32 {{ x ^= i + n; }}", at % 9),
    };
    let head = "kernel k(out: *mut u64, n: u32) { let mut x = n; let mut y = 1u64;\n";
    repeated(lines, head, line, "}\n")
}

fn functions(lines: usize) -> String {
    let line = |at| match at {
        0 => "fn f0(x: u32) -> u32 { x + 1 }".to_owned(),
        _ => format!("fn f{at}(x: u32) -> u32 {{ f{}(x * {at}) ^ f{}(3) }}", at - 1, at / 2),
    };
    let tail = format!("kernel k(out: *mut u32) {{ *out = f{}(1); }}\n", lines - 3);
    repeated(lines, "", line, &tail)
}

fn locals(lines: usize) -> String {
    let line = |at| match at {
        0 => "    let v0 = n;".to_owned(),
        _ => format!("    let v{at} = v{} + v{};", at - 1, at / 2),
    };
    let tail = format!("    out[0] = v{}; }}\n", lines - 3);
    repeated(lines, "kernel k(out: *mut u32, n: u32) {\n", line, &tail)
}

fn constants(lines: usize) -> String {
    let last = lines - 3;
    let line = |at| match at {
        _ if at == last => format!("const C{at}: u32 = 1;"),
        _ => format!("const C{at}: u32 = (C{} ^ {at}) / 2;", at + 1),
    };
    repeated(lines, "", line, "kernel k(out: *mut u32) { *out = C0; }\n")
}

/// Several structs: one has at most 65,536 scalars.
fn fields(lines: usize) -> String {
    const MOST: usize = 20_000;
    let mut source = String::new();
    for first in (0..lines).step_by(MOST) {
        let _ = writeln!(source, "struct S{first} {{");
        for at in first..lines.min(first + MOST) {
            let _ = writeln!(source, "    f{at}: u32,");
        }
        source.push_str("}\n");
    }
    source + "kernel k(p: *mut S0) { p.f3 = p.f7; }\n"
}

fn else_ifs(lines: usize) -> String {
    let line = |at| match at % 200 {
        0 => format!("    if n == {at} {{ out[0] = {at};"),
        199 => format!("    }} else if n == {at} {{ out[1] = {at}; }}"),
        _ => format!("    }} else if n == {at} {{ out[1] = {at};"),
    };
    repeated(lines / 200 * 200 + 2, "kernel k(out: *mut u32, n: u32) {\n", line, "}\n")
}

fn elements(lines: usize) -> String {
    let line = |at| format!("    {at} * 3 ^ 5,");
    let head = format!("static table: [u32; {}] = [\n", lines.saturating_sub(2));
    repeated(lines, &head, line, "]; kernel k(out: *mut u32) { *out = table[*out]; }\n")
}
