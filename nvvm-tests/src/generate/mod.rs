//! Random valid programs: well typed, without races, and with the same result on every device.
//!
//! The same seed gives the same program on every machine. These rules make its result unique:
//!
//! - A thread writes only its own slots of the output. Shared memory is written at the thread's own place, then read
//!   after a barrier, before another one. Threads of different grids share memory only through atomic operations:
//!   each variable has one kind of commutative operation, and nobody reads the old values.
//! - Barriers and warp operations stand where all threads of a block arrive.
//! - NaNs, infinities and denormal numbers are made on purpose. A NaN's sign and payload differ between processors: the
//!   bits of floats are read only through a function that makes all NaNs equal. Only mathematical functions that are
//!   exact or correctly rounded everywhere are called.
//! - GPUs may fuse a product and a sum, CPUs do not, and a quotient by a power of two is a product. So the bits of
//!   every product and quotient are combined with a parameter that is 0, which no compiler knows, and they are rounded
//!   before the addition. Those of `f16` and `bf16` are always rounded separately.
//! - libNVVM evaluates some operations on constants differently from a GPU ("Types" in docs/language.md): `min` and `max`
//!   of two zeros, casts of signalling NaNs, comparisons of equal NaNs, `fma` with a denormal result. So floats are made of bits
//!   that are combined with that parameter, and so is an operand of each of these operations. (A seed below 200,000 that is
//!   written down anywhere means a program from before this rule, of 2026-11-23.)
//! - Loops and recursion end: their counts are in the source. An estimate of the steps bounds the time.
//!
//! A statement does not share its lines, and a whole exchange through shared memory is on one line. So [`reduce`] can
//! remove a line, or a line that opens a block together with that block, without creating a race.

mod expressions;
mod functions;
mod instances;
mod kernels;
pub(crate) mod random;
pub mod reduce;
mod shapes;
mod statements;
mod types;

use std::fmt::Write as _;

use anyhow::Context as _;
use gridlet::types::{Scalar, Struct, Structs, Type};
use serde::{Deserialize, Serialize};

use functions::Function;
use instances::Constants;
use kernels::Kernel;
use random::Random;

/// The entry kernel's name. Its parameters: `out: *mut u64`, which holds [`Program::slots`] zeros; `z: u64`, which is
/// 0; `seed: u64`, any number.
pub const ENTRY: &str = "entry";

/// How the last line of [`Program::to_text`] begins. The rest of it says how to run the program, as JSON.
const RUN: &str = "// Run: ";

/// A program and how to run it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The seed that it was generated from.
    pub seed: u64,
    /// The text.
    #[serde(skip)]
    pub source: String,
    /// Blocks of the entry kernel's grid.
    pub grid: [u32; 3],
    /// Threads of its blocks.
    pub block: [u32; 3],
    /// Bytes of its dynamic shared memory.
    pub shared_bytes: u32,
    /// Elements of the output.
    pub slots: usize,
    /// The `seed` to pass.
    pub argument: u64,
    /// The variables that the host reads after the run.
    pub statics: Vec<String>,
}

impl Program {
    /// The program, and in a comment at its end how to run it.
    ///
    /// # Errors
    /// If JSON cannot be written.
    pub fn to_text(&self) -> anyhow::Result<String> {
        Ok(format!("{}{RUN}{}\n", self.source, serde_json::to_string(self)?))
    }

    /// Reads what [`Program::to_text`] wrote.
    ///
    /// # Errors
    /// If the text does not say how to run it.
    pub fn from_text(text: &str) -> anyhow::Result<Program> {
        let (source, run) = text.rsplit_once(RUN).with_context(|| {
            format!("no line begins with `{RUN}`, as the last one of a generated program does")
        })?;
        let program: Program = serde_json::from_str(run)
            .with_context(|| format!("cannot read the line that begins with `{RUN}`"))?;
        Ok(Program { source: source.into(), ..program })
    }
}

/// A program that runs quickly.
pub fn program(seed: u64) -> Program {
    let mut generator = Generator::new(seed);
    generator.declarations();
    let functions = 2 + generator.random.below(5);
    for _ in 0..functions {
        generator.function();
    }
    let children = generator.random.below(4);
    let entry = generator.kernels(children);
    generator.finish(&entry)
}

/// A program of about this many lines, to be compiled but not run, because running it may take long.
pub fn of_lines(seed: u64, lines: usize) -> Program {
    let mut generator = Generator::new(seed);
    generator.declarations();
    generator.recent_only = true;
    while generator.lines() + 60 < lines {
        generator.function();
    }
    let entry = generator.kernels(1);
    generator.finish(&entry)
}

/// A variable in scope.
#[derive(Clone, Debug)]
struct Variable {
    /// Its spelling, with `#` and the array's length in place of an index: `v.a[#4]`.
    path: String,
    ty: Type,
    mutable: bool,
}

/// The context of the code that is being generated.
struct Place {
    /// An estimate of how often it runs.
    times: u64,
    /// Levels of blocks and loops.
    depth: u32,
    /// Whether all threads of the block arrive here, so that they can synchronise.
    meets: bool,
    /// The labels of the enclosing loops that can be left, innermost last; empty for unlabelled loops.
    loops: Vec<String>,
    /// The function's return type; `None` in kernels and where `return` is not allowed.
    result: Option<Type>,
    /// Whether warps are full.
    full_warps: bool,
}

/// Names that mean something to C, the linker, LLVM or PTX, and nothing to the language.
const FOREIGN: [&str; 24] = [
    "sinf", "cosf", "sincosf", "sincos", "expf", "powf", "fmodf", "cbrtf", "memcmp", "bcopy",
    "environ", "errno", "stdout", "exit", "main", "_init", "_fini", "_end", "_DYNAMIC", "llvm",
    "nvvm", "ret", "mov", "vec4",
];

struct Generator {
    random: Random,
    seed: u64,
    text: String,
    indent: usize,
    line_count: usize,
    names: u32,
    /// Those of [`FOREIGN`] that are taken.
    foreign: Vec<&'static str>,
    structs: Structs,
    /// Constants and read-only tables.
    globals: Vec<Variable>,
    /// `static` variables with the atomic operations that each allows.
    counters: Vec<(String, Scalar, &'static [&'static str])>,
    functions: Vec<Function>,
    kernels: Vec<Kernel>,
    variables: Vec<Variable>,
    /// The const parameters of the current function.
    constants: Constants,
    place: Place,
    /// Levels of indices in indices.
    indices: u32,
    /// Steps of one call of the current function.
    cost: u64,
    /// The limit of these steps.
    budget: u64,
    /// Shared variables of the current function, by name and type: a scalar, or an array with one element per thread.
    shared: Vec<(String, Type)>,
    /// Where its declarations go, in bytes from the start of the text.
    shared_at: usize,
    /// Only the latest functions are called, so that the choice stays fast.
    recent_only: bool,
}

impl Generator {
    fn new(seed: u64) -> Generator {
        Generator {
            random: Random::new(seed),
            seed,
            text: String::new(),
            indent: 0,
            line_count: 0,
            names: 0,
            foreign: vec![],
            structs: Structs::new(),
            globals: vec![],
            counters: vec![],
            functions: vec![],
            kernels: vec![],
            variables: vec![],
            constants: Constants::default(),
            place: Place {
                times: 1,
                depth: 0,
                meets: false,
                loops: vec![],
                result: None,
                full_warps: false,
            },
            indices: 0,
            cost: 0,
            budget: 0,
            shared: vec![],
            shared_at: 0,
            recent_only: false,
        }
    }

    fn lines(&self) -> usize {
        self.line_count
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", self.indent * 4);
        self.line_count += 1;
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    /// Starts a function, whose shared variables will be declared here.
    fn start_body(&mut self, head: &str) {
        self.open(head);
        self.shared.clear();
        self.shared_at = self.text.len();
    }

    /// A shared variable of a type, reused if there are enough already.
    fn share(&mut self, ty: &Type, most: usize) -> Option<String> {
        if let Some((name, _)) = self.shared.iter().find(|(_, known)| known == ty) {
            return Some(name.clone());
        }
        if self.shared.len() == most {
            return None;
        }
        let name = self.fresh("s");
        let line = format!("    shared {name}: {};\n", self.show(ty));
        self.text.insert_str(self.shared_at, &line);
        self.shared_at += line.len();
        self.line_count += 1;
        self.shared.push((name.clone(), ty.clone()));
        Some(name)
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// A name for a function or a variable of the program: sometimes one that means something to other tools.
    fn item(&mut self, stem: &str) -> String {
        let plain = self.fresh(stem);
        let at = (self.seed.wrapping_add(7 * u64::from(self.names)) % (3 * FOREIGN.len() as u64))
            as usize;
        match FOREIGN.get(at) {
            Some(name) if !self.foreign.contains(name) => {
                self.foreign.push(name);
                (*name).into()
            }
            _ => plain,
        }
    }

    fn show(&self, ty: &Type) -> String {
        ty.display(&self.structs).to_string()
    }

    /// Constants, structs, variables of the program and the functions that all code uses.
    fn declarations(&mut self) {
        self.line(&format!("// Seed {}.", self.seed));
        for _ in 0..self.random.below(4) {
            let scalar = self.scalar();
            let (name, value) = (self.fresh("C"), self.literal(scalar));
            self.line(&format!("const {name}: {} = {value};", scalar.name()));
            let ty = Type::Scalar(scalar);
            self.globals.push(Variable { path: name, ty, mutable: false });
        }
        for _ in 0..1 + self.random.below(3) {
            self.structure();
        }
        for _ in 0..self.random.below(3) {
            let element = self.some_type(1);
            let ty = Type::Array(Box::new(element), 1 + self.random.below(6) as u64);
            let (name, value) = (self.item("TABLE"), self.constant(&ty));
            self.line(&format!("static {name}: {} = {value};", self.show(&ty)));
            self.add_global(&name, &ty);
        }
        for _ in 0..1 + self.random.below(3) {
            let scalar = self.random.pick(&[Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64]);
            let kind = self.random.pick::<&'static [&'static str]>(&[
                &["add", "sub"],
                &["xor"],
                &["or"],
                &["and"],
                &["min"],
                &["max"],
            ]);
            let (name, value) = (self.item("COUNTER"), self.literal(scalar));
            self.line(&format!("static {name}: {} = {value};", scalar.name()));
            self.counters.push((name, scalar, kind));
        }
        self.helpers();
    }

    fn add_global(&mut self, name: &str, ty: &Type) {
        let parts = self.parts(name, ty, false);
        self.globals.extend(parts);
    }

    fn structure(&mut self) {
        let name = self.fresh("S");
        let count = 1 + self.random.below(4);
        let mut fields = vec![];
        for at in 0..count {
            let ty = self.some_type(1);
            fields.push(gridlet::types::Field { name: format!("f{at}"), ty });
        }
        let list: Vec<String> = fields
            .iter()
            .map(|field| format!("{}: {}", field.name, self.show(&field.ty)))
            .collect();
        self.line(&format!("struct {name} {{ {} }}", list.join(", ")));
        self.structs.add(Struct { name, fields, span: None });
    }

    fn helpers(&mut self) {
        for line in HELPERS.lines() {
            self.line(line);
        }
    }

    fn finish(self, entry: &Kernel) -> Program {
        Program {
            seed: self.seed,
            grid: entry.grid,
            block: entry.block,
            shared_bytes: entry.shared_bytes,
            slots: entry.slots,
            argument: self.random.seed_argument(),
            statics: self.counters.into_iter().map(|(name, ..)| name).collect(),
            source: self.text,
        }
    }
}

/// The prelude of all programs: the thread's number, checksums of values, and numbers that compilers do not know. Hiding adds
/// what making combines by `^`: of a number that was made and then hidden, `^` twice would leave a constant.
pub const HELPERS: &str = "\
fn in_block() -> u32 { (thread_idx.z * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x }
fn block_size() -> u32 { block_dim.x * block_dim.y * block_dim.z }
fn in_grid() -> u32 { ((block_idx.z * grid_dim.y + block_idx.y) * grid_dim.x + block_idx.x) * block_size() + in_block() }
fn mix(h: u64, v: u64) -> u64 { let x = (h ^ v) * 0x9e37_79b9_7f4a_7c15; x ^ (x >> 29) }
fn bits_f16(x: f16) -> u16 { if x == x { bitcast::<u16>(x) } else { 0x7e00 } }
fn bits_bf16(x: bf16) -> u16 { if x == x { bitcast::<u16>(x) } else { 0x7fc0 } }
fn bits_f32(x: f32) -> u32 { if x == x { bitcast::<u32>(x) } else { 0x7fc0_0000 } }
fn bits_f64(x: f64) -> u64 { if x == x { bitcast::<u64>(x) } else { 0x7ff8_0000_0000_0000 } }
fn make_f16(bits: u16, z: u64) -> f16 { bitcast::<f16>(bits ^ z as u16) }
fn make_bf16(bits: u16, z: u64) -> bf16 { bitcast::<bf16>(bits ^ z as u16) }
fn make_f32(bits: u32, z: u64) -> f32 { bitcast::<f32>(bits ^ z as u32) }
fn make_f64(bits: u64, z: u64) -> f64 { bitcast::<f64>(bits ^ z) }
fn hide_f16(x: f16, z: u64) -> f16 { bitcast::<f16>(bitcast::<u16>(x) + z as u16) }
fn hide_bf16(x: bf16, z: u64) -> bf16 { bitcast::<bf16>(bitcast::<u16>(x) + z as u16) }
fn hide_f32(x: f32, z: u64) -> f32 { bitcast::<f32>(bitcast::<u32>(x) + z as u32) }
fn hide_f64(x: f64, z: u64) -> f64 { bitcast::<f64>(bitcast::<u64>(x) + z) }
fn mul32(a: f32, b: f32, z: u64) -> f32 { bitcast::<f32>(bitcast::<u32>(a * b) ^ z as u32) }
fn mul64(a: f64, b: f64, z: u64) -> f64 { bitcast::<f64>(bitcast::<u64>(a * b) ^ z) }
fn div32(a: f32, b: f32, z: u64) -> f32 { bitcast::<f32>(bitcast::<u32>(a / b) ^ z as u32) }
fn div64(a: f64, b: f64, z: u64) -> f64 { bitcast::<f64>(bitcast::<u64>(a / b) ^ z) }";

#[cfg(test)]
mod tests {
    use gridlet::builtins::{Builtin, MathOp};
    use gridlet::compile;
    use gridlet::diagnostics::render;
    use gridlet::error::Error;
    use gridlet::ir::{BinaryOp, Const, Function, Inst, InstKind, Module, Operand};
    use gridlet::source::SourceMap;

    use super::*;

    #[test]
    fn a_seed_gives_one_program() {
        assert_eq!(program(7), program(7));
        assert_ne!(program(7).source, program(8).source);
        assert_eq!(of_lines(1, 2000), of_lines(1, 2000));
    }

    /// The messages of a program that should have none.
    fn messages(program: &Program) -> String {
        let sources = SourceMap::single("p.grid", program.source.clone());
        match compile::check(sources.clone()) {
            Ok(_) => String::new(),
            Err(Error::Program(diagnostics)) => render(&diagnostics, &sources, false),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn programs_are_right() {
        for seed in 0..300 {
            let program = program(seed);
            let messages = messages(&program);
            assert!(messages.is_empty(), "seed {seed}: {messages}");
        }
    }

    /// A float operation of which libNVVM might know all operands, and which it then evaluates differently from a GPU.
    fn wrongly_folded(module: &Module, function: &Function, inst: &Inst) -> bool {
        let float = |ty: &Type| matches!(ty, Type::Scalar(scalar) if scalar.is_float());
        let inst_of = |operand: &Operand| match operand {
            Operand::Inst(id) => Some(&function.instructions[id.index()]),
            _ => None,
        };
        let is_helper = |name: &str, stems: &[&str]| {
            stems.iter().any(|stem| name.strip_prefix(stem).is_some_and(|ty| HELPED.contains(&ty)))
        };
        let is_hidden = |operand: &Operand| {
            let of_call = |operand: &Operand| match inst_of(operand).map(|inst| &inst.kind) {
                Some(InstKind::Call { function, .. }) => {
                    let name = &module.function(*function).name;
                    is_helper(name, &["hide_", "make_", "mul", "div"])
                }
                _ => false,
            };
            // `clamp` is a `min` of a `max`.
            of_call(operand)
                || matches!(inst_of(operand).map(|inst| &inst.kind),
                    Some(InstKind::Builtin { builtin: Builtin::Math(MathOp::Max), arguments, .. })
                    if arguments.iter().any(of_call))
        };
        let number = |operand: &Operand| match operand {
            Operand::Const(Const::Float(_, value)) => Some(*value),
            _ => None,
        };
        match &inst.kind {
            InstKind::Builtin { builtin: Builtin::Bitcast, .. } if float(&inst.ty) => {
                !is_helper(&function.name, &["hide_", "make_", "mul", "div"])
            }
            InstKind::Builtin { builtin: Builtin::Math(op), arguments, .. } if float(&inst.ty) => {
                let is_known = !arguments.iter().any(is_hidden);
                let is_zero = |it: &Operand| number(it).is_none_or(|value| value == 0.0);
                match op {
                    MathOp::Min | MathOp::Max => is_known && arguments.iter().all(is_zero),
                    MathOp::Fma => is_known,
                    _ => false,
                }
            }
            InstKind::Binary(
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Le | BinaryOp::Ge,
                left,
                right,
            ) => {
                let is_same = left == right
                    || inst_of(left).is_some_and(|left| {
                        inst_of(right).is_some_and(|right| left.kind == right.kind)
                    });
                let is_float = inst_of(left).is_some_and(|inst| float(&inst.ty));
                let both = [left, right];
                is_float && !is_same && !both.iter().any(|it| is_hidden(it) || number(it).is_some())
            }
            _ => false,
        }
    }

    /// The endings of the names of helpers.
    const HELPED: [&str; 6] = ["f16", "bf16", "f32", "f64", "32", "64"];

    #[test]
    fn libnvvm_evaluates_nothing_that_it_evaluates_wrongly() {
        for seed in 0..300 {
            let program = program(seed);
            let sources = SourceMap::single("p.grid", program.source);
            let module = compile::check(sources).unwrap().module;
            for function in &module.functions {
                for inst in &function.instructions {
                    let name = &function.name;
                    let is_wrong = wrongly_folded(&module, function, inst);
                    assert!(!is_wrong, "seed {seed}, `{name}`: {inst:?}");
                }
            }
        }
    }

    #[test]
    fn a_program_has_about_the_lines_that_were_asked_for() {
        for lines in [500, 5000] {
            let program = of_lines(3, lines);
            let found = program.source.lines().count();
            assert!((lines * 9 / 10..lines * 13 / 10).contains(&found), "{found} lines");
            assert_eq!(messages(&program), "");
        }
    }
}
