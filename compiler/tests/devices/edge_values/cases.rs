//! The table of tests: each operation on each type, as a kernel over an array of operands.

use std::fmt::Write as _;

use gridlet::builtins::{BitOp, MathOp};
use gridlet::check::tree::BinaryOp;
use gridlet::types::Scalar;
use half::{bf16, f16};

use super::reference::{self, Expected};
use super::values::{Random, edges, few_edges, integer_bits, mask, show, some_edges};

/// An operation, its operands and its expected results.
pub(crate) struct Case {
    /// Its name in messages.
    pub(crate) name: String,
    /// An expression in `x`, `y` and `z`.
    expression: String,
    /// The types of the operands.
    pub(crate) inputs: Vec<Scalar>,
    pub(crate) output: Scalar,
    /// One array per operand.
    pub(crate) operands: Vec<Vec<u64>>,
    pub(crate) expected: Vec<Expected>,
}

impl Case {
    pub(crate) fn new(
        expression: &str,
        inputs: &[Scalar],
        output: Scalar,
        tuples: &[Vec<u64>],
        expected: impl Fn(&[u64]) -> Expected,
    ) -> Self {
        let types: Vec<&str> = inputs.iter().map(|scalar| scalar.name()).collect();
        Case {
            name: format!("`{expression}` on {}", types.join(", ")),
            expression: expression.into(),
            inputs: inputs.to_vec(),
            output,
            operands: (0..inputs.len())
                .map(|at| tuples.iter().map(|tuple| tuple[at]).collect())
                .collect(),
            expected: tuples.iter().map(|tuple| expected(tuple)).collect(),
        }
    }

    /// The source of the kernel, under the given name.
    pub(crate) fn source(&self, name: &str) -> String {
        let mut text = format!("kernel {name}(");
        for (scalar, array) in self.inputs.iter().zip(["a", "b", "c"]) {
            let _ = write!(text, "{array}: *const {}, ", scalar.name());
        }
        let _ = writeln!(text, "out: *mut {}, n: u32) {{", self.output.name());
        text += "    let i = block_idx.x * block_dim.x + thread_idx.x;\n    if i < n {\n";
        for (value, array) in [("x", "a"), ("y", "b"), ("z", "c")].iter().take(self.inputs.len()) {
            let _ = writeln!(text, "        let {value} = {array}[i];");
        }
        let _ = writeln!(text, "        out[i] = {};\n    }}\n}}", self.expression);
        text
    }

    /// Describes a wrong result; `None` if it is correct.
    pub(crate) fn wrong(&self, at: usize, found: u64, is_gpu: bool) -> Option<String> {
        let scalar = self.output;
        let is_nan = scalar.is_float() && super::values::float(found, scalar).is_nan();
        let (expected, right) = match self.expected[at] {
            Expected::Bits(bits) => (show(bits, scalar), bits == found),
            Expected::Nan => ("NaN".into(), is_nan),
            Expected::Near(bits, cpu, gpu) => {
                let bound = if is_gpu { gpu } else { cpu };
                let distance = super::values::distance(bits, found, scalar);
                // The sign of a zero must match, too.
                let sign = (bits ^ found) & (mask(scalar) ^ (mask(scalar) >> 1));
                let right =
                    !is_nan && distance <= bound && (sign == 0 || bits << 1 & mask(scalar) != 0);
                (format!("{} give or take {bound}", show(bits, scalar)), right)
            }
        };
        if right {
            return None;
        }
        let operands: Vec<String> = self
            .inputs
            .iter()
            .zip(&self.operands)
            .map(|(scalar, values)| show(values[at], *scalar))
            .collect();
        let (name, found) = (&self.name, show(found, scalar));
        Some(format!("{name}: of {} it is {expected}, not {found}", operands.join(", ")))
    }
}

fn singles(scalar: Scalar) -> Vec<Vec<u64>> {
    edges(scalar).into_iter().map(|x| vec![x]).collect()
}

fn pairs(left: Scalar, right: Scalar) -> Vec<Vec<u64>> {
    let right = some_edges(right);
    some_edges(left).into_iter().flat_map(|x| right.iter().map(move |y| vec![x, *y])).collect()
}

fn triples(scalar: Scalar) -> Vec<Vec<u64>> {
    let few = few_edges(scalar);
    let pairs = few.iter().flat_map(|x| few.iter().map(|y| [*x, *y]));
    pairs.flat_map(|[x, y]| few.iter().map(move |z| vec![x, y, *z])).collect()
}

fn numbers() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.into_iter().filter(|scalar| *scalar != Scalar::Bool)
}

/// The binary operators on scalars, the comparisons last.
pub(crate) const BINARY: [(BinaryOp, &str); 16] = [
    (BinaryOp::Add, "+"),
    (BinaryOp::Sub, "-"),
    (BinaryOp::Mul, "*"),
    (BinaryOp::Div, "/"),
    (BinaryOp::Rem, "%"),
    (BinaryOp::And, "&"),
    (BinaryOp::Or, "|"),
    (BinaryOp::Xor, "^"),
    (BinaryOp::Shl, "<<"),
    (BinaryOp::Shr, ">>"),
    (BinaryOp::Eq, "=="),
    (BinaryOp::Ne, "!="),
    (BinaryOp::Lt, "<"),
    (BinaryOp::Le, "<="),
    (BinaryOp::Gt, ">"),
    (BinaryOp::Ge, ">="),
];

fn operators(cases: &mut Vec<Case>) {
    for scalar in Scalar::ALL {
        for (op, sign) in BINARY {
            let is_shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
            let on_bits = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
            let on_bool = on_bits || matches!(op, BinaryOp::Eq | BinaryOp::Ne);
            if scalar == Scalar::Bool && !on_bool || scalar.is_float() && (is_shift || on_bits) {
                continue;
            }
            let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem) && scalar.is_integer();
            let output = if op.is_comparison() { Scalar::Bool } else { scalar };
            let counts = match is_shift {
                true => vec![scalar, Scalar::I8, Scalar::U64],
                false => vec![scalar],
            };
            for count in counts {
                let mut tuples = pairs(scalar, count);
                tuples.retain(|tuple| !divides || tuple[1] != 0);
                let code = format!("x {sign} y");
                cases.push(Case::new(&code, &[scalar, count], output, &tuples, |values| {
                    reference::binary(op, values[0], values[1], scalar, count)
                }));
            }
        }
        if scalar.is_signed() || scalar.is_float() {
            cases.push(Case::new("-x", &[scalar], scalar, &singles(scalar), |values| {
                reference::unary(false, values[0], scalar)
            }));
        }
        if !scalar.is_float() {
            cases.push(Case::new("!x", &[scalar], scalar, &singles(scalar), |values| {
                reference::unary(true, values[0], scalar)
            }));
        }
    }
    let bools = pairs(Scalar::Bool, Scalar::Bool);
    let both = [Scalar::Bool; 2];
    cases.push(Case::new("x && y", &both, Scalar::Bool, &bools, |v| Expected::Bits(v[0] & v[1])));
    cases.push(Case::new("x || y", &both, Scalar::Bool, &bools, |v| Expected::Bits(v[0] | v[1])));
}

fn casts(cases: &mut Vec<Case>) {
    for from in Scalar::ALL {
        for to in numbers().filter(|to| *to != from) {
            if from == Scalar::Bool && !to.is_integer() {
                continue;
            }
            let code = format!("x as {}", to.name());
            cases.push(Case::new(&code, &[from], to, &singles(from), |values| {
                reference::cast(values[0], from, to)
            }));
        }
    }
}

fn mathematics(cases: &mut Vec<Case>) {
    for (op, name, count) in MathOp::all() {
        for scalar in numbers().filter(|scalar| op.supports(*scalar)) {
            let (code, tuples) = match count {
                1 => (format!("{name}(x)"), singles(scalar)),
                2 => (format!("{name}(x, y)"), pairs(scalar, scalar)),
                _ => (format!("{name}(x, y, z)"), triples(scalar)),
            };
            cases.push(Case::new(&code, &vec![scalar; count], scalar, &tuples, |values| {
                reference::math(op, values, scalar)
            }));
        }
    }
}

fn bits(cases: &mut Vec<Case>) {
    let names =
        [(BitOp::Popc, "popc"), (BitOp::Clz, "clz"), (BitOp::Ctz, "ctz"), (BitOp::Brev, "brev")];
    for scalar in numbers().filter(|scalar| scalar.is_integer() && scalar.size() >= 4) {
        for (op, name) in names {
            let output = if op == BitOp::Brev { scalar } else { Scalar::U32 };
            let code = format!("{name}(x)");
            cases.push(Case::new(&code, &[scalar], output, &singles(scalar), |values| {
                reference::bit(op, values[0], scalar)
            }));
        }
        let both = [scalar, scalar];
        cases.push(Case::new("mul_hi(x, y)", &both, scalar, &pairs(scalar, scalar), |values| {
            reference::mul_hi(values[0], values[1], scalar)
        }));
    }
    for from in numbers() {
        for to in numbers().filter(|to| to.size() == from.size() && *to != from) {
            let code = format!("bitcast::<{}>(x)", to.name());
            cases.push(Case::new(&code, &[from], to, &singles(from), |v| Expected::Bits(v[0])));
        }
    }
    for half in [Scalar::F16, Scalar::Bf16] {
        let code = format!("bitcast::<{}x2>(x).y", half.name());
        cases.push(Case::new(&code, &[Scalar::U32], half, &singles(Scalar::U32), |values| {
            Expected::Bits(values[0] >> 16)
        }));
    }
    for (code, size) in [("size_of::<f64>()", 8), ("align_of::<f32x3>()", 4)] {
        let one = [vec![1]];
        cases.push(Case::new(code, &[Scalar::Bool], Scalar::U64, &one, |_| Expected::Bits(size)));
    }
}

/// Every operation of the language whose result depends only on its operands.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = vec![];
    operators(&mut cases);
    casts(&mut cases);
    mathematics(&mut cases);
    bits(&mut cases);
    cases
}

/// `f16` and `bf16`: all values through each conversion and function, and random pairs through
/// each operator.
pub(crate) fn halves() -> Vec<Case> {
    let mut cases = vec![];
    let every: Vec<Vec<u64>> = (0..=0xffff).map(|bits| vec![bits]).collect();
    let mut random = Random(1);
    let some: Vec<Vec<u64>> =
        (0..50_000).map(|_| (0..3).map(|_| random.next() & 0xffff).collect()).collect();
    // Numbers of similar magnitude: otherwise one operand usually absorbs the other.
    let alike = |digits: u64| {
        let narrow = move |bits: u64| 0x3000 | (bits & (0x8000 | ((1 << (digits + 2)) - 1)));
        some.iter().map(move |tuple| tuple.iter().map(|bits| narrow(*bits)).collect())
    };
    for (half, digits) in [(Scalar::F16, 10), (Scalar::Bf16, 7)] {
        let tuples: Vec<Vec<u64>> = some.iter().cloned().chain(alike(digits)).collect();
        for to in numbers().filter(|to| *to != half) {
            let code = format!("x as {}", to.name());
            cases.push(Case::new(&code, &[half], to, &every, |values| {
                let (bits, from) = (values[0] as u16, half);
                match (from, to) {
                    // The `half` crate, where it converts in one step.
                    (Scalar::F16, Scalar::F32) if !f16::from_bits(bits).is_nan() => {
                        Expected::Bits(f16::from_bits(bits).to_f32().to_bits().into())
                    }
                    (Scalar::Bf16, Scalar::F32) if !bf16::from_bits(bits).is_nan() => {
                        Expected::Bits(bf16::from_bits(bits).to_f32().to_bits().into())
                    }
                    _ => reference::cast(values[0], from, to),
                }
            }));
        }
        for (op, name, _) in MathOp::all().filter(|(op, _, count)| *count == 1 && op.supports(half))
        {
            let code = format!("{name}(x)");
            cases.push(Case::new(&code, &[half], half, &every, |v| reference::math(op, v, half)));
        }
        cases.push(Case::new("-x", &[half], half, &every, |v| reference::unary(false, v[0], half)));
        for (op, sign) in BINARY {
            if matches!(
                op,
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr
            ) {
                continue;
            }
            let output = if op.is_comparison() { Scalar::Bool } else { half };
            let code = format!("x {sign} y");
            cases.push(Case::new(&code, &[half, half], output, &tuples, |values| {
                reference::binary(op, values[0], values[1], half, half)
            }));
        }
        for (op, code) in [(MathOp::Min, "min(x, y)"), (MathOp::Max, "max(x, y)")] {
            cases.push(Case::new(code, &[half, half], half, &tuples, |v| {
                reference::math(op, &v[..2], half)
            }));
        }
        cases.push(Case::new("fma(x, y, z)", &[half; 3], half, &tuples, |values| {
            reference::math(MathOp::Fma, values, half)
        }));
        // A product followed by a sum rounds twice, even if a back end would like to fuse them.
        cases.push(Case::new("x * y + z", &[half; 3], half, &tuples, |values| {
            let product = reference::binary(BinaryOp::Mul, values[0], values[1], half, half);
            let Expected::Bits(product) = product else { return Expected::Nan };
            reference::binary(BinaryOp::Add, product, values[2], half, half)
        }));
        // Values to narrow: at, below and above the midpoint of each two neighbours.
        for (wide, least) in [(Scalar::F32, 1), (Scalar::F64, 1)] {
            let middles = (0..0x7fff_u64).filter_map(|bits| {
                let (low, high) =
                    (super::values::float(bits, half), super::values::float(bits + 1, half));
                let middle = low / 2.0 + high / 2.0;
                middle.is_finite().then(|| super::values::float_bits(middle, wide))
            });
            let sign = mask(wide) ^ (mask(wide) >> 1);
            let around = middles.flat_map(|bits| [bits.saturating_sub(least), bits, bits + least]);
            let around: Vec<Vec<u64>> =
                around.flat_map(|bits| [vec![bits], vec![bits | sign]]).collect();
            let code = format!("x as {}", half.name());
            cases.push(Case::new(&code, &[wide], half, &around, |v| {
                reference::cast(v[0], wide, half)
            }));
        }
        for wide in numbers().filter(|scalar| scalar.is_integer()) {
            let whole: Vec<Vec<u64>> = (0..20_000_u64)
                .map(|n| match n % 2 {
                    0 => vec![integer_bits(i128::from(n * 7) - 70_000, wide)],
                    _ => vec![(random.next() >> (n % 64)) & mask(wide)],
                })
                .collect();
            let code = format!("x as {}", half.name());
            cases.push(Case::new(&code, &[wide], half, &whole, |v| {
                reference::cast(v[0], wide, half)
            }));
        }
    }
    cases
}
