//! Finds branches that all threads of a row take the same way.
//!
//! A kernel usually starts with `if i < n`, where `i` increases by one from thread to thread. In a row
//! (threads that differ only in `thread_idx.x`), such a branch goes the same way in all threads if it does in
//! the first and the last one and nothing wraps in between. Codegen that runs a row as a loop can test this
//! once before the loop and remove the branch from the loop.

use super::loops::stored_values;
use super::{BinaryOp, BlockId, Const, Function, InstId, InstKind, Module, Operand, Terminator};
use crate::types::{Scalar, Type};

/// Maximum number of threads in a row (CUDA C++ Programming Guide, "Technical Specifications").
const MAX_THREADS: i64 = 1024;
/// Maximum number of guards to report per function.
const MAX_GUARDS: usize = 8;
/// Maximum depth of nested operations to analyse.
const MAX_DEPTH: u32 = 32;
/// The field of the geometry, and of its `dim3`, that distinguishes the threads of a row.
pub(crate) const THREAD_IDX: u32 = 0;
pub(crate) const X: u32 = 0;

/// A branch on a comparison between a value that steps along a row and one that is constant in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The comparison, a `bool`.
    pub condition: InstId,
    /// The operands: the stepping value, then the other one.
    pub compared: (Operand, Operand),
    /// Whether it is `==` or `!=`, which may differ within a row even if both ends agree.
    pub is_equality: bool,
    /// The value of the condition in threads that have work to do.
    pub expected: bool,
    /// The instructions to compute for it, in this order. None has side effects.
    pub needs: Vec<InstId>,
    /// The stepping integers among them, and whether they increase. As long as none of them wraps, each
    /// equals its value in exact arithmetic and so is monotonic.
    pub steps: Vec<(InstId, bool)>,
}

/// The change of a value along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Constant.
    Same,
    /// Changes by this amount from one thread to the next, unless it wraps; never 0.
    Steps(i64),
}

/// The guards of a kernel's body, in block order.
pub fn guards(module: &Module, body: &Function) -> Vec<Guard> {
    let stored = stored_once(body);
    let mut rows =
        Rows { module, body, shapes: vec![None; body.instructions.len()], stored: &stored };
    let branches = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Branch { condition: Operand::Inst(condition), then, otherwise } => {
            Some((*condition, *then, *otherwise))
        }
        _ => None,
    });
    branches
        .filter_map(|(condition, then, _)| rows.guard(condition, !is_idle(body, then)))
        .take(MAX_GUARDS)
        .collect()
}

/// The field of the geometry that an instruction of a body reads, if any.
pub(crate) fn geometry_field(body: &Function, kind: &InstKind) -> Option<u32> {
    match kind {
        InstKind::Extract { base: Operand::Parameter(0), index } => {
            body.takes_geometry.then_some(*index)
        }
        _ => None,
    }
}

/// By slot, the value of its only store; `None` if there are other stores, or its address is used in other
/// ways.
pub fn stored_once(function: &Function) -> Vec<Option<Operand>> {
    let one = |stored: Option<Vec<Operand>>| match stored?.as_slice() {
        [value] => Some(value.clone()),
        _ => None,
    };
    stored_values(function).into_iter().map(one).collect()
}

/// Whether nothing but the return happens from a block on.
fn is_idle(function: &Function, mut id: BlockId) -> bool {
    // A path without a loop is no longer than this.
    for _ in 0..function.blocks.len() {
        let Some(block) = function.blocks.get(id.index()) else { return false };
        match &block.terminator {
            _ if !block.instructions.is_empty() => return false,
            Terminator::Return(None) => return true,
            Terminator::Jump(to) => id = *to,
            _ => return false,
        }
    }
    false
}

/// The shapes of a function's values along a row.
struct Rows<'f> {
    module: &'f Module,
    body: &'f Function,
    stored: &'f [Option<Operand>],
    /// By instruction; the inner `None` stands for an arbitrary value.
    shapes: Vec<Option<Option<Shape>>>,
}

impl Rows<'_> {
    fn guard(&mut self, condition: InstId, expected: bool) -> Option<Guard> {
        let InstKind::Binary(op, left, right) =
            &self.body.instructions.get(condition.index())?.kind
        else {
            return None;
        };
        self.integer(left)?;
        let is_equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        // That all threads of a row are equal to something does not help.
        if !op.is_comparison() || is_equality && expected == (*op == BinaryOp::Eq) {
            return None;
        }
        let compared = match (self.shape(left, 0)?, self.shape(right, 0)?) {
            (Shape::Steps(_), Shape::Same) => (left.clone(), right.clone()),
            (Shape::Same, Shape::Steps(_)) => (right.clone(), left.clone()),
            _ => return None,
        };
        let (mut needs, mut steps) = (Vec::new(), Vec::new());
        self.collect(&Operand::Inst(condition), 0, &mut needs, &mut steps)?;
        Some(Guard { condition, compared, is_equality, expected, needs, steps })
    }

    /// The integer type of an operand.
    fn integer(&self, operand: &Operand) -> Option<Scalar> {
        match self.module.operand_type(self.body, operand) {
            Type::Scalar(scalar) if scalar.is_integer() => Some(scalar),
            _ => None,
        }
    }

    fn shape(&mut self, operand: &Operand, depth: u32) -> Option<Shape> {
        match operand {
            Operand::Const(_) => Some(Shape::Same),
            Operand::Parameter(0) if self.body.takes_geometry => None,
            Operand::Parameter(_) => Some(Shape::Same),
            Operand::Inst(id) if depth < MAX_DEPTH => {
                if let Some(known) = self.shapes.get(id.index())? {
                    return *known;
                }
                let shape = self.shape_of(*id, depth + 1);
                let shape = shape.filter(|shape| self.fits(*id, *shape));
                self.shapes[id.index()] = Some(shape);
                shape
            }
            _ => None,
        }
    }

    fn shape_of(&mut self, id: InstId, depth: u32) -> Option<Shape> {
        let body = self.body;
        match &body.instructions[id.index()].kind {
            InstKind::Load(Operand::Slot(slot)) => {
                let value = self.stored.get(slot.index())?.as_ref()?;
                self.shape(value, depth)
            }
            InstKind::Extract { base, index } => match self.geometry_field(base) {
                Some(THREAD_IDX) if *index == X => Some(Shape::Steps(1)),
                Some(_) => Some(Shape::Same),
                None => self.shape(base, depth).filter(|shape| *shape == Shape::Same),
            },
            InstKind::Cast(value) => match self.shape(value, depth)? {
                Shape::Same => Some(Shape::Same),
                steps => self.integer(value).map(|_| steps),
            },
            InstKind::Binary(op, left, right) => {
                let shapes = (self.shape(left, depth)?, self.shape(right, depth)?);
                self.combine(*op, right, shapes)
            }
            _ => None,
        }
    }

    fn combine(&self, op: BinaryOp, right: &Operand, shapes: (Shape, Shape)) -> Option<Shape> {
        let steps = match (op, shapes) {
            // A divisor that may be 0 is tested before the division.
            (BinaryOp::Div | BinaryOp::Rem, (Shape::Same, Shape::Same)) => {
                return matches!(right, Operand::Const(_)).then_some(Shape::Same);
            }
            (_, (Shape::Same, Shape::Same)) => return Some(Shape::Same),
            (BinaryOp::Add, (Shape::Steps(a), Shape::Same) | (Shape::Same, Shape::Steps(a))) => a,
            (BinaryOp::Add, (Shape::Steps(a), Shape::Steps(b))) => a.checked_add(b)?,
            (BinaryOp::Sub, (Shape::Steps(a), Shape::Same)) => a,
            (BinaryOp::Sub, (Shape::Same, Shape::Steps(a))) => a.checked_neg()?,
            (BinaryOp::Sub, (Shape::Steps(a), Shape::Steps(b))) => a.checked_sub(b)?,
            (BinaryOp::Mul, (Shape::Steps(a), Shape::Same)) => {
                let Operand::Const(Const::Int(_, factor)) = right else { return None };
                a.checked_mul(i64::try_from(*factor).ok()?)?
            }
            _ => return None,
        };
        (steps != 0).then_some(Shape::Steps(steps))
    }

    /// Whether a stepping value can wrap at most once in a row, so that checking both ends is enough.
    fn fits(&self, id: InstId, shape: Shape) -> bool {
        let Shape::Steps(step) = shape else { return true };
        let Some(scalar) = self.integer(&Operand::Inst(id)) else { return false };
        let span = i128::from(step).abs() * i128::from(MAX_THREADS);
        span < 1 << (scalar.bits() - 1)
    }

    /// The field of the geometry that an operand reads, if any.
    fn geometry_field(&self, operand: &Operand) -> Option<u32> {
        let Operand::Inst(id) = operand else { return None };
        geometry_field(self.body, &self.body.instructions.get(id.index())?.kind)
    }

    /// Lists the instructions that an operand of known shape depends on, and the stepping ones among them;
    /// `None` if there are too many.
    fn collect(
        &self,
        operand: &Operand,
        depth: u32,
        needs: &mut Vec<InstId>,
        steps: &mut Vec<(InstId, bool)>,
    ) -> Option<()> {
        let Operand::Inst(id) = operand else { return Some(()) };
        if needs.contains(id) {
            return Some(());
        }
        // Cached shapes may have deep operands.
        if depth > 2 * MAX_DEPTH {
            return None;
        }
        let mut is_small = true;
        let mut visit = |operand: &Operand| {
            is_small = is_small && self.collect(operand, depth + 1, needs, steps).is_some();
        };
        match &self.body.instructions[id.index()].kind {
            InstKind::Load(Operand::Slot(slot)) => {
                visit(self.stored.get(slot.index())?.as_ref()?);
            }
            kind => kind.for_each_operand(visit),
        }
        needs.push(*id);
        if let Some(Some(Shape::Steps(step))) = self.shapes[id.index()] {
            steps.push((*id, step > 0));
        }
        is_small.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::LaunchOptions;
    use crate::program::check;
    use crate::source::SourceMap;

    /// The guards of a kernel `k(n: u32, m: i32, out: *mut u32)`: operator of the condition, expected value,
    /// and direction of each stepping value.
    fn found(body: &str) -> Vec<(BinaryOp, bool, Vec<bool>)> {
        let source = format!("kernel k(n: u32, m: i32, out: *mut u32) {{ {body} }}");
        let program = check(SourceMap::single("test.grid", source)).unwrap();
        let module = program.lower(&LaunchOptions::CPU).unwrap();
        let body = module.function(module.kernels[0].body);
        let describe = |guard: Guard| {
            let kind = &body.instructions[guard.condition.index()].kind;
            let InstKind::Binary(op, ..) = kind else { panic!("{kind:?}") };
            (*op, guard.expected, guard.steps.iter().map(|(_, rises)| *rises).collect())
        };
        guards(&module, body).into_iter().map(describe).collect()
    }

    const INDEX: &str = "let i = block_idx.x * block_dim.x + thread_idx.x;";

    #[test]
    fn the_usual_ones() {
        let one = |op, expected, steps: &[bool]| vec![(op, expected, steps.to_vec())];
        let up = [true; 3];
        let with = |rest: &str| found(&format!("{INDEX} {rest}"));
        assert_eq!(with("if i < n { out[i] = 1; }"), one(BinaryOp::Lt, true, &up));
        assert_eq!(with("if i >= n { return; } out[i] = 1;"), one(BinaryOp::Ge, false, &up));
        assert_eq!(with("if n > i { out[i] = 1; }"), one(BinaryOp::Gt, true, &up));
        assert_eq!(with("if i == 0 { return; } out[i] = 1;"), one(BinaryOp::Eq, false, &up));
        let signed = "let s = i as i32; if s < m { out[s] = 1; }";
        assert_eq!(with(signed), one(BinaryOp::Lt, true, &[true; 5]));
        let down = "let k = n - 1 - i; if k < n { out[k] = 1; }";
        assert_eq!(with(down), one(BinaryOp::Lt, true, &[true, true, true, false, false]));
        let two = with("if i > 0 && i < n - 1 { out[i] = 1; }");
        assert_eq!(
            two.iter().map(|guard| guard.0).collect::<Vec<_>>(),
            [BinaryOp::Gt, BinaryOp::Lt]
        );
    }

    #[test]
    fn branches_that_are_not_guards() {
        let none = |body: &str| assert_eq!(found(body), [], "{body}");
        // Constant in the whole row; LLVM handles it.
        none("if thread_idx.y < n { out[0] = 1; }");
        // Assigned twice, or loaded from memory.
        none("let mut i = thread_idx.x; i += 1; if i < n { out[i] = 1; }");
        none("if out[thread_idx.x] < n { out[0] = 1; }");
        // May wrap more than once.
        none("if (thread_idx.x as u8) < (n as u8) { out[0] = 1; }");
        none("if thread_idx.x * 4_194_304 < n { out[0] = 1; }");
        // Not monotonic, not integers, not two sides.
        none("if thread_idx.x * thread_idx.x < n { out[0] = 1; }");
        none("if thread_idx.x % 2 == 0 { out[0] = 1; }");
        none("if (thread_idx.x as f32) < (n as f32) { out[0] = 1; }");
        none("if thread_idx.x < n - thread_idx.x { out[0] = 1; }");
        // A single thread of the row has work to do.
        none("if thread_idx.x == n { out[0] = 1; }");
    }

    #[test]
    fn long_computations_are_left_alone() {
        let mut body = String::from("let u0 = n;");
        for at in 1..3000 {
            body += &format!("let u{at} = u{} + 1; if u{at} < 7 {{ out[0] = 1; }}", at - 1);
        }
        assert_eq!(found(&format!("{body} if thread_idx.x < u2999 {{ out[1] = 1; }}")), []);
        assert_eq!(found(&format!("{body} if thread_idx.x < u9 {{ out[1] = 1; }}")).len(), 1);
    }

    #[test]
    fn a_divisor_that_may_be_zero_is_not_computed_early() {
        assert_eq!(found("if n != 0 { if thread_idx.x < m as u32 / n { out[0] = 1; } }"), []);
        assert_eq!(found("if thread_idx.x < n / 2 { out[0] = 1; }").len(), 1);
    }
}
