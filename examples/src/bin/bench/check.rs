//! Checking speed: lines per minute, and whether the time grows linearly with the program.

use std::fmt::Write as _;

use anyhow::{bail, ensure};
use gridlet::diagnostics::render;
use gridlet::source::SourceMap;
use nvvm_tests::generate;

use crate::measure::{Options, Report, Times};

/// The largest accepted growth in time for ten times the lines. Instructions grow tenfold (`valgrind
/// --tool=callgrind`), but the data outgrows the processor's caches and the system must map more memory.
const MAX_GROWTH: f64 = 25.0;

/// A kind of program.
struct Shape {
    name: &'static str,
    /// A program of about this many lines.
    make: fn(usize) -> String,
    is_wrong: bool,
}

const fn right(name: &'static str, make: fn(usize) -> String) -> Shape {
    Shape { name, make, is_wrong: false }
}

const fn wrong(name: &'static str, make: fn(usize) -> String) -> Shape {
    Shape { name, make, is_wrong: true }
}

const SHAPES: [Shape; 20] = [
    right("random functions", |lines| generate::of_lines(1, lines).source),
    right("one function", one_function),
    right("small functions", functions),
    right("locals in one scope", locals),
    right("constants, each of the one after", constants),
    right("fields of one struct", fields),
    right("`else if`s, 200 in a row", else_ifs),
    right("elements of one array", elements),
    right("structs that point to each other", structs),
    right("parameters of one function", parameters),
    right("const parameters of one function", const_parameters),
    right("kernels with shared memory", shared),
    right("launches", launches),
    right("one sum", sum),
    right("blocks in one function", blocks),
    right("returns in 200 nested blocks", returns),
    right("fields of one large value", large_value),
    right("unused variables", unused),
    wrong("wrong names", wrong_names),
    wrong("wrong names in one line", |lines| wrong_names(lines).replace('\n', " ")),
];

/// Measures every shape up to the checker, and up to verified IR with layouts.
pub(crate) fn check_times(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    println!("\nparsing and checking, by the processor's time:");
    let mut slow = vec![];
    for shape in &SHAPES {
        let (mut checked, mut built) = (vec![], vec![]);
        for lines in [1000, 10_000, 100_000] {
            let source = (shape.make)(lines);
            let lines = source.lines().count().max(lines / 2);
            let sources = SourceMap::single("bench.grid", source);
            let repeat = if lines > 50_000 { options.repeat.min(5) } else { options.repeat };
            let check = Times::measure(repeat, || {
                let before = processor_time()?;
                let (program, diagnostics) = gridlet::check::parse_and_check(&sources);
                let messages = render(&diagnostics, &sources, false);
                let time = processor_time()? - before;
                if program.is_none() != shape.is_wrong {
                    bail!("{}: {messages}", shape.name);
                }
                Ok(time)
            })?;
            // Other programs evict the caches, so the best run is the most telling.
            let check = check.best;
            let build = Times::measure(if shape.is_wrong { 1 } else { repeat.min(5) }, || {
                let sources = sources.clone();
                let before = processor_time()?;
                let checked = gridlet::compile::check(sources);
                let time = processor_time()? - before;
                if !shape.is_wrong {
                    checked?;
                }
                Ok(time)
            })?;
            let speed = lines as f64 / check * 60_000.0 / 1e6;
            report.add(format!("{}: {lines} lines", shape.name), speed, "million lines a minute");
            // Per line, because the programs do not have exactly this many lines.
            checked.push(check / lines as f64);
            built.push(build.best / lines as f64);
        }
        let kinds = [("checking", checked), ("building the IR too", built)];
        for (what, times) in kinds.into_iter().take(if shape.is_wrong { 1 } else { 2 }) {
            let growth = times[2] / times[1] * 10.0;
            report.add(format!("  time of ten times the lines, {what}"), growth, "×");
            if growth > MAX_GROWTH {
                slow.push(format!("{} take {growth:.1} times the time, {what}", shape.name));
            }
        }
    }
    ensure!(slow.is_empty(), "with ten times the lines, {}", slow.join(", "));
    Ok(())
}

/// Milliseconds of processor time of this thread, which other programs do not increase.
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

/// Several structs, because one has at most 65,536 scalars.
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

fn structs(lines: usize) -> String {
    let line = |at| format!("struct S{at} {{ next: *mut S{}, value: u32 }}", at / 2);
    repeated(lines, "", line, "kernel k(p: *mut S3) { p.value = 1; }\n")
}

fn parameters(lines: usize) -> String {
    let tail = ") -> u32 { a0 }\nkernel k() {}\n";
    repeated(lines, "fn f(\n", |at| format!("    a{at}: u32,"), tail)
}

fn const_parameters(lines: usize) -> String {
    let line = |at| format!("    const A{at}: u32,");
    repeated(lines, "fn f<\n", line, ">() -> u32 { A0 }\nkernel k() {}\n")
}

fn shared(lines: usize) -> String {
    let line = |at| format!("kernel k{at}(p: *mut u32) {{ shared s: u32; s = p[0]; p[1] = s; }}");
    repeated(lines, "", line, "")
}

fn launches(lines: usize) -> String {
    let line = |at| format!("    launch k<<<n, {}>>>(out, {at});", at % 1024 + 1);
    repeated(lines, "kernel k(out: *mut u32, n: u32) {\n", line, "}\n")
}

fn sum(lines: usize) -> String {
    let head = "kernel k(out: *mut u32, n: u32) { *out = n\n";
    repeated(lines, head, |at| format!("    + {at} * n"), "; }\n")
}

fn blocks(lines: usize) -> String {
    let line = |at| format!("    {{ let a = n + {at}; {{ let b = a * 2; out[b] = a; }} }}");
    repeated(lines, "kernel k(out: *mut u32, n: u32) {\n", line, "}\n")
}

fn returns(lines: usize) -> String {
    let head = format!("kernel k(n: u32) {{ {}\n", "{".repeat(200));
    let tail = "}".repeat(201);
    repeated(lines, &head, |at| format!("    if n == {at} {{ return; }}"), &tail)
}

fn large_value(lines: usize) -> String {
    let half = lines.min(60_000) / 2;
    let fields: String = (0..half).map(|at| format!("    f{at}: u32,\n")).collect();
    let line = |at| format!("    p[{at}] = q[{at}]; q.f{} = {at};", at % half);
    let head = format!("struct S {{\n{fields}}}\nkernel k(p: *mut S, q: *mut S) {{\n");
    repeated(lines - half, &head, line, "}\n")
}

fn unused(lines: usize) -> String {
    let line = |at| format!("    let v{at} = n + {at};");
    repeated(lines, "kernel k(n: u32) {\n", line, "}\n")
}

fn wrong_names(lines: usize) -> String {
    let line = |at| match at % 2 {
        0 => format!("    let v{at} = n;"),
        _ => format!("    let w{at} = x{at} + y{at};"),
    };
    repeated(lines, "kernel k(n: u32) {\n", line, "}\n")
}
