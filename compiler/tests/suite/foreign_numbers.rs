//! Modules of other compilers on the CPU device: arithmetic that tells of an overflow or stops at a limit, atomic operations, and
//! shuffles of vectors, compared with the same in Rust.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::time::Duration;

use gridlet::artifact;
use gridlet::compile::{BuildOptions, CpuOptions, Session};
use gridlet::modules::Own;
use gridlet::target::Target;
use gridlet::types::Type;
use gridlet_runtime::{Arg, Buffer, CpuConfig, Device, LaunchConfig, Program};
use inkwell::context::Context;

/// Runs the kernel `k(ptr, i64, i64)` of a module with each pair of numbers; gives the words that it stores.
fn run(text: &str, words: usize, pairs: &[(i64, i64)]) -> Vec<Vec<i64>> {
    let context = Context::create();
    let own = Own::read(&context, "m.ll", text.as_bytes()).unwrap();
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
    let bundle = artifact::build_own(&Session::new(), &own, &[Target::Cpu], &cuda, &cpu).unwrap();
    let device = Device::open_cpu(CpuConfig::default()).unwrap();
    let program = Program::load(&device, &bundle).unwrap();
    let kernel = program.kernel("k").unwrap();
    let stream = device.stream().unwrap();
    let config = LaunchConfig::new(1, 1);
    let one = |&(a, b): &(i64, i64)| {
        let numbers = [Arg::from(a), Arg::from(b)];
        let launch = |out: Arg<'_>| {
            let arguments = [&[out], &numbers[..]].concat();
            stream.launch(&kernel, &config, &arguments).unwrap();
            stream.synchronize(Duration::from_secs(60)).unwrap();
        };
        // As the accesses through it have one type or several.
        if own
            .program()
            .parameter_buffers()
            .any(|of| of.slots[0].ty == Type::pointer_mut(Type::I64))
        {
            let mut out = Buffer::<i64>::alloc_zeroed(&device, words).unwrap();
            launch(Arg::from(&mut out));
            return out.to_vec().unwrap();
        }
        let mut out = Buffer::<u8>::alloc_zeroed(&device, words * 8).unwrap();
        launch(Arg::from(&mut out));
        let bytes = out.to_vec().unwrap();
        bytes.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
    };
    pairs.iter().map(one).collect()
}

/// The parts of a kernel `k(p, a, b)` that stores words one after another.
#[derive(Default)]
struct Kernel {
    declarations: String,
    code: String,
    words: usize,
}

impl Kernel {
    /// A parameter as an integer of a width.
    fn cut(&mut self, parameter: &str, width: u32) -> String {
        if width == 64 {
            return parameter.to_owned();
        }
        let name = format!("{parameter}.{width}.{}", self.words);
        writeln!(self.code, "  {name} = trunc i64 {parameter} to i{width}").unwrap();
        name
    }

    fn store(&mut self, value: &str, width: u32) {
        let at = self.words;
        let wide = match width {
            64 => value.to_owned(),
            _ => {
                writeln!(self.code, "  %w{at} = zext i{width} {value} to i64").unwrap();
                format!("%w{at}")
            }
        };
        writeln!(self.code, "  %p{at} = getelementptr i64, ptr %p, i64 {at}").unwrap();
        writeln!(self.code, "  store i64 {wide}, ptr %p{at}").unwrap();
        self.words += 1;
    }

    fn text(&self) -> String {
        format!(
            "{}define ptx_kernel void @k(ptr %p, i64 %a, i64 %b) {{\n{}  ret void\n}}\n",
            self.declarations, self.code
        )
    }
}

/// A number of a width as Rust's widest one.
fn number(value: i64, width: u32, is_signed: bool) -> i128 {
    let shift = 128 - width;
    let high = (value as u128) << shift;
    if is_signed { (high as i128) >> shift } else { (high >> shift) as i128 }
}

#[test]
fn overflows_and_limits_are_those_of_rust() {
    let mut kernel = Kernel::default();
    let mut cases = vec![];
    for (width, sign, op) in [8, 16, 32, 64].into_iter().flat_map(|width| {
        ["s", "u"].into_iter().flat_map(move |sign| {
            ["add", "sub", "mul"].into_iter().map(move |op| (width, sign, op))
        })
    }) {
        let ty = format!("i{width}");
        let (left, right) = (kernel.cut("%a", width), kernel.cut("%b", width));
        let name = format!("llvm.{sign}{op}.with.overflow.{ty}");
        let pair = format!("%pair{}", kernel.words);
        writeln!(kernel.declarations, "declare {{ {ty}, i1 }} @{name}({ty}, {ty})").unwrap();
        writeln!(kernel.code, "  {pair} = call {{ {ty}, i1 }} @{name}({ty} {left}, {ty} {right})")
            .unwrap();
        for (at, width) in [(0, width), (1, 1)] {
            let part = format!("{pair}.{at}");
            writeln!(kernel.code, "  {part} = extractvalue {{ {ty}, i1 }} {pair}, {at}").unwrap();
            kernel.store(&part, width);
        }
        if op != "mul" {
            let name = format!("llvm.{sign}{op}.sat.{ty}");
            let value = format!("%sat{}", kernel.words);
            writeln!(kernel.declarations, "declare {ty} @{name}({ty}, {ty})").unwrap();
            writeln!(kernel.code, "  {value} = call {ty} @{name}({ty} {left}, {ty} {right})")
                .unwrap();
            kernel.store(&value, width);
        }
        cases.push((width, sign == "s", op));
    }
    let edges: Vec<i64> = [0, 1, 2, 3, 7, 127, 128, 255, 32767, 65535, i64::from(i32::MAX)]
        .into_iter()
        .chain([1 << 31, 1 << 32, 3_037_000_500, i64::MAX, i64::MAX / 3])
        .flat_map(|edge: i64| [edge, edge.wrapping_neg(), edge.wrapping_add(1)])
        .collect();
    let pairs: Vec<_> = edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b))).collect();
    let results = run(&kernel.text(), kernel.words, &pairs);
    for ((a, b), words) in pairs.into_iter().zip(results) {
        let mut words = words.into_iter();
        for &(width, is_signed, op) in &cases {
            let (left, right) = (number(a, width, is_signed), number(b, width, is_signed));
            let whole = match op {
                "add" => left + right,
                "sub" => left - right,
                _ => left.wrapping_mul(right),
            };
            let (least, most) = match is_signed {
                true => (-(1_i128 << (width - 1)), (1_i128 << (width - 1)) - 1),
                false => (0, (1_i128 << width) - 1),
            };
            let is_over = left.checked_mul(right).filter(|_| op == "mul").map_or_else(
                || op == "mul" || !(least..=most).contains(&whole),
                |product| !(least..=most).contains(&product),
            );
            let bits = |value: i128| number(value as i64, width, false) as i64;
            let said = (words.next().unwrap(), words.next().unwrap());
            let what = format!("{op} of {left} and {right}, {width} bits, signed: {is_signed}");
            assert_eq!(said, (bits(whole), i64::from(is_over)), "{what}");
            if op != "mul" {
                assert_eq!(words.next(), Some(bits(whole.clamp(least, most))), "sat: {what}");
            }
        }
    }
}

#[test]
fn atomic_operations_have_every_order() {
    let text = "\
define ptx_kernel void @k(ptr %p, i64 %a, i64 %b) {
  %q = getelementptr i64, ptr %p, i64 8
  %x = trunc i64 %a to i32
  store atomic i32 %x, ptr %q release, align 4
  %l = load atomic i32, ptr %q acquire, align 4
  %l.w = zext i32 %l to i64
  store atomic i64 %l.w, ptr %p seq_cst, align 8
  %c = cmpxchg ptr %q, i32 %x, i32 77 acq_rel monotonic
  %c.old = extractvalue { i32, i1 } %c, 0
  %c.ok = extractvalue { i32, i1 } %c, 1
  %d = cmpxchg weak volatile ptr %q, i32 %x, i32 78 syncscope(\"block\") seq_cst seq_cst
  %d.old = extractvalue { i32, i1 } %d, 0
  %d.ok = extractvalue { i32, i1 } %d, 1
  %c.w = zext i32 %c.old to i64
  %d.w = zext i32 %d.old to i64
  %c.b = zext i1 %c.ok to i64
  %d.b = zext i1 %d.ok to i64
  %p1 = getelementptr i64, ptr %p, i64 1
  store i64 %c.w, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  store i64 %c.b, ptr %p2
  %p3 = getelementptr i64, ptr %p, i64 3
  store i64 %d.w, ptr %p3
  %p4 = getelementptr i64, ptr %p, i64 4
  store i64 %d.b, ptr %p4
  %r = getelementptr i64, ptr %p, i64 9
  %e = cmpxchg ptr %r, ptr null, ptr %p syncscope(\"device\") release monotonic
  %f = atomicrmw xchg ptr %r, ptr null seq_cst
  %same = icmp eq ptr %f, %p
  %same.w = zext i1 %same to i64
  %p5 = getelementptr i64, ptr %p, i64 5
  store i64 %same.w, ptr %p5
  %g = getelementptr i64, ptr %p, i64 10
  %h = atomicrmw fsub ptr %g, float 1.5 syncscope(\"device\") monotonic
  %i = load atomic float, ptr %g unordered, align 4
  %i.n = fptosi float %i to i64
  %p6 = getelementptr i64, ptr %p, i64 6
  store i64 %i.n, ptr %p6
  %v = insertelement <2 x i64> poison, i64 %a, i32 0
  %w = insertelement <2 x i64> %v, i64 %b, i32 1
  %s = shufflevector <2 x i64> %w, <2 x i64> <i64 5, i64 6>, <2 x i32> <i32 3, i32 1>
  %s0 = extractelement <2 x i64> %s, i32 0
  %s1 = extractelement <2 x i64> %s, i32 1
  %s.sum = add i64 %s0, %s1
  %p7 = getelementptr i64, ptr %p, i64 7
  store i64 %s.sum, ptr %p7
  ret void
}
";
    let results = run(text, 12, &[(5, 30)]);
    assert_eq!(results[0][..8], [5, 5, 1, 77, 0, 1, -1, 36]);
}
