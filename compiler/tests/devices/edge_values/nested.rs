//! Nested floating-point expressions, some written here and some random.
//!
//! An optimiser knows more about the inner value of an expression than about an operand, for example
//! that it is never NaN, and then chooses other instructions than for a single operation.

use gridlet::builtins::MathOp;
use gridlet::check::tree::BinaryOp;
use gridlet::types::Scalar;

use super::cases::{BINARY, Case};
use super::reference::{self, Expected};
use super::values::{Random, few_edges, float_bits};

/// The types, with the number of random expressions of each. The compiler's own code widens the
/// narrow types, whose expressions take long to compile.
const FLOATS: [(Scalar, usize); 4] =
    [(Scalar::F32, 30), (Scalar::F64, 30), (Scalar::F16, 8), (Scalar::Bf16, 8)];
/// The height of a random expression.
const LEVELS: u32 = 4;
/// Random triples of operands per expression.
const TRIPLES: usize = 1024;

/// The mathematical functions whose results are exact or correctly rounded.
const EXACT: [MathOp; 11] = [
    MathOp::Min,
    MathOp::Max,
    MathOp::Clamp,
    MathOp::Saturate,
    MathOp::Abs,
    MathOp::Sqrt,
    MathOp::Floor,
    MathOp::Ceil,
    MathOp::Round,
    MathOp::Trunc,
    MathOp::Fma,
];

/// An expression whose operands and value have one type.
#[derive(Clone)]
enum Tree {
    /// `x`, `y` or `z`.
    Operand(usize),
    Constant(u64),
    Negated(Box<Tree>),
    Operator(BinaryOp, Box<[Tree; 2]>),
    Call(MathOp, Vec<Tree>),
    /// Converted to another type and back.
    Through(Scalar, Box<Tree>),
    /// `if a < b { c } else { d }`
    If(BinaryOp, Box<[Tree; 4]>),
}

impl Tree {
    fn text(&self, scalar: Scalar) -> String {
        let own = scalar.name();
        let sign = |op: &BinaryOp| BINARY.iter().find(|(known, _)| known == op).unwrap().1;
        match self {
            Tree::Operand(at) => ["x", "y", "z"][*at].to_owned(),
            Tree::Constant(bits) => format!("bitcast::<{own}>({bits:#x}u{})", scalar.bits()),
            Tree::Negated(tree) => format!("(-{})", tree.text(scalar)),
            Tree::Operator(op, trees) => {
                let [left, right] = trees.each_ref().map(|tree| tree.text(scalar));
                format!("({left} {} {right})", sign(op))
            }
            Tree::Call(op, trees) => {
                let (_, name, _) = MathOp::all().find(|(known, ..)| known == op).unwrap();
                let arguments: Vec<String> = trees.iter().map(|tree| tree.text(scalar)).collect();
                format!("{name}({})", arguments.join(", "))
            }
            Tree::Through(to, tree) => {
                format!("({} as {} as {own})", tree.text(scalar), to.name())
            }
            Tree::If(op, trees) => {
                let [a, b, c, d] = trees.each_ref().map(|tree| tree.text(scalar));
                format!("(if {a} {} {b} {{ {c} }} else {{ {d} }})", sign(op))
            }
        }
    }

    /// Its value for these operands. All NaNs are alike: no operation here tells them apart.
    fn value(&self, operands: &[u64], scalar: Scalar) -> u64 {
        let bits = |expected| match expected {
            Expected::Bits(bits) => bits,
            _ => float_bits(f64::NAN, scalar),
        };
        let of = |tree: &Tree| tree.value(operands, scalar);
        match self {
            Tree::Operand(at) => operands[*at],
            Tree::Constant(bits) => *bits,
            Tree::Negated(tree) => bits(reference::unary(false, of(tree), scalar)),
            Tree::Operator(op, trees) => {
                let [left, right] = trees.each_ref().map(of);
                bits(reference::binary(*op, left, right, scalar, scalar))
            }
            Tree::Call(op, trees) => {
                let arguments: Vec<u64> = trees.iter().map(of).collect();
                bits(reference::math(*op, &arguments, scalar))
            }
            Tree::Through(to, tree) => match reference::cast(of(tree), scalar, *to) {
                Expected::Bits(wide) => bits(reference::cast(wide, *to, scalar)),
                _ => float_bits(f64::NAN, scalar),
            },
            Tree::If(op, trees) => {
                let [a, b] = [&trees[0], &trees[1]].map(of);
                let holds = reference::binary(*op, a, b, scalar, scalar) == Expected::Bits(1);
                of(&trees[if holds { 2 } else { 3 }])
            }
        }
    }

    fn case(&self, scalar: Scalar, tuples: &[Vec<u64>]) -> Case {
        Case::new(&self.text(scalar), &[scalar; 3], scalar, tuples, |operands| {
            let bits = self.value(operands, scalar);
            match super::values::float(bits, scalar).is_nan() {
                true => Expected::Nan,
                false => Expected::Bits(bits),
            }
        })
    }
}

fn call(op: MathOp, trees: &[Tree]) -> Tree {
    Tree::Call(op, trees.to_vec())
}

/// Of each order and operation: the inner value is never NaN, and the outer operand may be.
fn written(scalar: Scalar) -> Vec<Tree> {
    let [x, y] = [0, 1].map(Tree::Operand);
    let number = |value: f64| Tree::Constant(float_bits(value, scalar));
    let mut trees = vec![];
    for outer in [MathOp::Min, MathOp::Max] {
        for inner in [MathOp::Min, MathOp::Max] {
            for constant in [3.0, -3.0, 0.0, -0.0, f64::INFINITY] {
                let known = call(inner, &[y.clone(), number(constant)]);
                trees.push(call(outer, &[x.clone(), known.clone()]));
                trees.push(call(outer, &[known, x.clone()]));
            }
        }
    }
    let known = call(MathOp::Max, &[y.clone(), number(3.0)]);
    trees.push(call(MathOp::Clamp, &[x.clone(), known.clone(), number(7.0)]));
    let m = call(MathOp::Max, &[x.clone(), known]);
    trees.push(call(MathOp::Saturate, std::slice::from_ref(&m)));
    trees.push(call(MathOp::Min, &[y, call(MathOp::Saturate, &[x])]));
    let parts = [m.clone(), m.clone(), number(1.0), m];
    trees.push(Tree::If(BinaryOp::Ne, Box::new(parts)));
    trees
}

/// Generates trees of one type.
struct Trees {
    random: Random,
    scalar: Scalar,
    constants: Vec<u64>,
}

impl Trees {
    fn below(&mut self, limit: usize) -> usize {
        (self.random.next() >> 16) as usize % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// `may_scale`: whether products and quotients are allowed. libNVVM may fuse a product and a
    /// sum, and a quotient by a power of two is a product, so there are none below a sum of types
    /// that can be fused.
    fn tree(&mut self, levels: u32, may_scale: bool) -> Tree {
        if levels == 0 {
            return match self.below(4) {
                0 => Tree::Constant(self.pick(&self.constants.clone())),
                _ => Tree::Operand(self.below(3)),
            };
        }
        // One branch of each tree is short, so that many sizes occur.
        let short = self.below(levels as usize) as u32;
        let long = levels - 1;
        match self.below(20) {
            0 => Tree::Negated(Box::new(self.tree(long, may_scale))),
            1..=3 => {
                let op = self.pick(&[BinaryOp::Add, BinaryOp::Sub]);
                let is_narrow = matches!(self.scalar, Scalar::F16 | Scalar::Bf16);
                self.operator(op, [long, short], may_scale && is_narrow)
            }
            4..=5 if may_scale => {
                let op = self.pick(&[BinaryOp::Mul, BinaryOp::Div]);
                self.operator(op, [short, long], true)
            }
            6 => self.operator(BinaryOp::Rem, [long, short], may_scale),
            7..=8 => {
                let to = loop {
                    let to = self.pick(&Scalar::ALL);
                    if to != Scalar::Bool && to != self.scalar {
                        break to;
                    }
                };
                Tree::Through(to, Box::new(self.tree(long, may_scale)))
            }
            9..=11 => {
                let (op, _) = self.pick(&BINARY[10..]);
                let left = self.tree(short, may_scale);
                let right = match self.below(3) {
                    0 => left.clone(),
                    _ => self.tree(short, may_scale),
                };
                let [then, otherwise] = [long, short].map(|levels| self.tree(levels, may_scale));
                Tree::If(op, Box::new([left, right, then, otherwise]))
            }
            // Half of the calls are `min` and `max`.
            choice => {
                let op = if choice % 2 == 0 { self.pick(&EXACT[..2]) } else { self.pick(&EXACT) };
                let (_, _, count) = MathOp::all().find(|(known, ..)| *known == op).unwrap();
                let mut arguments: Vec<Tree> = (0..count)
                    .map(|at| self.tree(if at == 0 { long } else { short }, may_scale))
                    .collect();
                let turn = self.below(count);
                arguments.rotate_left(turn);
                Tree::Call(op, arguments)
            }
        }
    }

    fn operator(&mut self, op: BinaryOp, levels: [u32; 2], may_scale: bool) -> Tree {
        Tree::Operator(op, Box::new(levels.map(|levels| self.tree(levels, may_scale))))
    }
}

/// Operands and constants: the usual ones, and NaNs that signal. Only the functions in [`EXACT`] take
/// those for NaNs like all others; the C library's `pow(1.0, y)` does not.
fn edges(scalar: Scalar) -> Vec<u64> {
    let infinities = [f64::INFINITY, f64::NEG_INFINITY].map(|value| float_bits(value, scalar));
    let mut bits = few_edges(scalar);
    bits.extend(infinities.map(|bits| bits | 1));
    bits
}

/// The nested expressions of every float type.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = vec![];
    for (scalar, count) in FLOATS {
        let random = Random(count as u64 + u64::from(scalar.bits()));
        let mut trees = Trees { random, scalar, constants: edges(scalar) };
        let constants = trees.constants.clone();
        let tuples: Vec<Vec<u64>> =
            (0..TRIPLES).map(|_| (0..3).map(|_| trees.pick(&constants)).collect()).collect();
        if matches!(scalar, Scalar::F32 | Scalar::F64) {
            cases.extend(written(scalar).iter().map(|tree| tree.case(scalar, &tuples)));
        }
        cases.extend((0..count).map(|_| trees.tree(LEVELS, true).case(scalar, &tuples)));
    }
    cases
}
