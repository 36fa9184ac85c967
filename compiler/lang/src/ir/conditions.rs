//! Conditions of several comparisons that a back end decides in one branch.
//!
//! `a && b` and `a || b` are control flow. On a GPU a branch costs more than a comparison whose result may not be needed. Compilers join
//! branches, too, but not where the second block computes something that is used again, nor where `&&` and `||` are mixed.

use super::loops::reverse_post_order;
use super::{
    BinaryOp, Block, BlockId, Const, Function, Inst, InstKind, Module, Operand, Terminator,
};
use crate::builtins::{Builtin, MathOp};
use crate::types::Type;

/// The most that the right side of `&&` or `||` may cost to be computed in any case: two operators.
pub(crate) const SPECULATION_LIMIT: u32 = 5;
/// What an operator or a conversion costs.
pub(crate) const OPERATOR: u32 = 2;
/// What `&&` and `||` cost: a GPU's comparison also combines its result with another one.
pub(crate) const LOGICAL: u32 = 1;

/// The most branches that become one.
const MOST_BRANCHES: usize = 9;

/// What a branch decides about.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition<'f> {
    /// A `bool`.
    Value(&'f Operand),
    /// The opposite.
    Not(Box<Condition<'f>>),
    /// Both.
    And(Box<[Condition<'f>; 2]>),
    /// One or both.
    Or(Box<[Condition<'f>; 2]>),
}

impl Condition<'_> {
    /// Whether there is an `&&`, and an `||`.
    fn operators(&self) -> [bool; 2] {
        let (both, own) = match self {
            Condition::Value(_) => return [false; 2],
            Condition::Not(of) => return of.operators(),
            Condition::And(both) => (both, [true, false]),
            Condition::Or(both) => (both, [false, true]),
        };
        let [left, right] = both.each_ref().map(Condition::operators);
        [0, 1].map(|at| own[at] || left[at] || right[at])
    }
}

/// A branch that stands for those of several blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined<'f> {
    /// The other blocks, whose instructions come before the branch, in this order. Nothing else leads to them.
    pub blocks: Vec<BlockId>,
    /// The condition.
    pub condition: Condition<'f>,
    /// The target if it holds.
    pub then: BlockId,
    /// The target if it does not.
    pub otherwise: BlockId,
    /// What the instructions of the other blocks cost.
    cost: u32,
    /// Whether the other blocks compute with floats.
    computes: bool,
}

impl<'f> Joined<'f> {
    /// The target that is not this one.
    fn other(&self, target: BlockId) -> BlockId {
        if target == self.then { self.otherwise } else { self.then }
    }

    /// Whether the branch at a target leads to the other target as well.
    fn decides(&self, target: BlockId, of: &Joined<'f>) -> bool {
        let shared = self.other(target);
        let leads_there = [of.then, of.otherwise].contains(&shared) && of.then != of.otherwise;
        leads_there && shared != target && self.blocks.len() + of.blocks.len() + 2 <= MOST_BRANCHES
    }

    /// Joins the branch at a target.
    fn add(&mut self, target: BlockId, of: Joined<'f>, cost: u32) {
        let (is_then, shared) = (target == self.then, self.other(target));
        let other = if of.then == shared { of.otherwise } else { of.then };
        // With `&&` the other condition must hold to reach `other`, with `||` to reach `shared`.
        let is_opposite = is_then == (of.then == shared);
        let right = match is_opposite {
            true => Condition::Not(Box::new(of.condition)),
            false => of.condition,
        };
        let left = std::mem::replace(&mut self.condition, Condition::Value(&Operand::Parameter(0)));
        let both = Box::new([left, right]);
        if is_then {
            (self.condition, self.then) = (Condition::And(both), other);
        } else {
            (self.condition, self.otherwise) = (Condition::Or(both), other);
        }
        self.blocks.push(target);
        self.blocks.extend(of.blocks);
        self.cost += cost + of.cost + LOGICAL;
        self.computes |= of.computes;
    }
}

/// By block, the branch at its end with others that are better decided with it; `None` for blocks where there are none.
pub fn joined<'f>(module: &Module, function: &'f Function) -> Vec<Option<Joined<'f>>> {
    let mut entries = vec![0u32; function.blocks.len()];
    for target in function.blocks.iter().flat_map(|block| block.terminator.successors()) {
        entries[target.index()] += 1;
    }
    let mut plans: Vec<Option<Joined<'f>>> = function.blocks.iter().map(|_| None).collect();
    // Blocks whose conditions are part of one that would cost too much. LLVM joins the branches of such a condition by itself, but not with one
    // that stands for several: the distance to a triangle took 15 % longer where two of three parts were joined.
    let mut apart = vec![false; function.blocks.len()];
    // Those behind a block first.
    for id in reverse_post_order(function).into_iter().rev() {
        let Terminator::Branch { condition, then, otherwise } =
            &function.blocks[id.index()].terminator
        else {
            continue;
        };
        let condition = Condition::Value(condition);
        let (then, otherwise) = (*then, *otherwise);
        let blocks = vec![];
        let mut joined = Joined { blocks, condition, then, otherwise, cost: 0, computes: false };
        let mut too_much = None;
        let mut next = |joined: &Joined<'f>, entries: &[u32]| {
            [joined.then, joined.otherwise].into_iter().find_map(|target| {
                let plan = &mut plans[target.index()];
                let is_entered_once = entries[target.index()] == 1 && target > id;
                plan.as_ref().filter(|of| is_entered_once && joined.decides(target, of))?;
                let cost = cost(module, function, &function.blocks[target.index()])?;
                let fits = |of: &mut Joined<'f>| {
                    !apart[target.index()] && of.cost + cost <= SPECULATION_LIMIT
                };
                let of = plan.take_if(fits);
                if of.is_none() {
                    too_much = Some(target);
                }
                Some((target, of?, cost))
            })
        };
        while let Some((target, of, cost)) = next(&joined, &entries) {
            // Two ways there become one.
            entries[joined.other(target).index()] -= 1;
            joined.add(target, of, cost);
            joined.computes |= computes(function, &function.blocks[target.index()]);
        }
        if let Some(target) = too_much {
            apart[target.index()] = true;
            apart[id.index()] = true;
        }
        plans[id.index()] = Some(joined);
    }
    // LLVM joins branches by comparisons of integers, and often makes fewer of them: a stencil took 2 % longer with one branch of ours. But not
    // where some are of `&&` and others of `||`.
    let pays = |plan: &Joined<'f>| plan.computes || plan.condition.operators() == [true; 2];
    let plans = plans.into_iter().zip(apart);
    plans.map(|(plan, apart)| plan.filter(|plan| !apart && pays(plan))).collect()
}

/// What it costs to run a block's instructions where they may not be needed; `None` if they may do more than compute a value.
fn cost(module: &Module, function: &Function, block: &Block) -> Option<u32> {
    let costs = block.instructions.iter().map(|id| {
        let inst = &function.instructions[id.index()];
        match &inst.kind {
            InstKind::Load(pointer) => is_local(module, function, pointer).then_some(0),
            InstKind::FieldAddress { .. } => Some(0),
            InstKind::ElementAddress { .. } => Some(LOGICAL),
            InstKind::Extract { base: Operand::Parameter(_), .. } => Some(0),
            InstKind::Unary(..) | InstKind::Cast(_) => Some(OPERATOR),
            InstKind::Binary(BinaryOp::Div | BinaryOp::Rem, left, _) => {
                let ty = module.operand_type(function, left);
                ty.as_scalar().is_some_and(|scalar| scalar.is_float()).then_some(OPERATOR)
            }
            InstKind::Binary(..) => Some(OPERATOR),
            InstKind::Select(..) => Some(LOGICAL),
            // A modifier of an operand.
            InstKind::Builtin { builtin: Builtin::Math(MathOp::Abs), .. } if is_float(inst) => {
                Some(0)
            }
            _ => None,
        }
    });
    costs.sum()
}

/// Whether a block computes with floats, other than to compare them.
fn computes(function: &Function, block: &Block) -> bool {
    block.instructions.iter().map(|id| &function.instructions[id.index()]).any(|inst| {
        is_float(inst) && matches!(inst.kind, InstKind::Binary(..) | InstKind::Unary(..))
    })
}

/// Whether an instruction has a float as its result.
fn is_float(inst: &Inst) -> bool {
    inst.ty.as_scalar().is_some_and(|scalar| scalar.is_float())
}

/// Whether an address is certainly that of a part of a local variable.
fn is_local(module: &Module, function: &Function, address: &Operand) -> bool {
    let mut at = address;
    loop {
        let Operand::Inst(id) = at else { return matches!(at, Operand::Slot(_)) };
        at = match &function.instructions[id.index()].kind {
            InstKind::FieldAddress { base, .. } => base,
            InstKind::ElementAddress { base, index: Operand::Const(Const::Int(_, index)) } => {
                let is_inside = match module.operand_type(function, base) {
                    Type::Pointer { pointee, .. } => {
                        matches!(*pointee, Type::Array(_, count) if (0..i128::from(count)).contains(index))
                    }
                    _ => false,
                };
                if !is_inside {
                    return false;
                }
                base
            }
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, joined};
    use crate::ir::parse::parse;
    use crate::ir::{Function, Operand};

    /// A condition as text: the numbers of instructions or parameters.
    fn text(condition: &Condition<'_>) -> String {
        match condition {
            Condition::Value(Operand::Inst(id)) => format!("%{}", id.index()),
            Condition::Value(Operand::Parameter(at)) => format!("p{at}"),
            Condition::Value(other) => format!("{other:?}"),
            Condition::Not(of) => format!("!{}", text(of)),
            Condition::And(both) => format!("({} && {})", text(&both[0]), text(&both[1])),
            Condition::Or(both) => format!("({} || {})", text(&both[0]), text(&both[1])),
        }
    }

    /// The joined branches of a function: the block, the condition, the targets and the other blocks.
    fn found(blocks: &str) -> Vec<String> {
        let module = parse(&format!(
            "launches symbolic\n\nstruct Pair {{ key: f32, value: f32 }}\n\n\
             fn @f(%a: bool, %b: bool, %c: bool, %x: f32, %n: i32, %p: *const f32) {{\n{blocks}}}\n"
        ));
        let module = module.unwrap();
        let function: &Function = &module.functions[0];
        let name = |id: crate::ir::BlockId| function.blocks[id.index()].name.clone();
        let plans = joined(&module, function).into_iter().zip(&function.blocks);
        let plans = plans.filter_map(|(plan, block)| {
            let plan = plan?;
            let others: Vec<_> = plan.blocks.iter().map(|id| name(*id)).collect();
            let targets = format!("{}, {}", name(plan.then), name(plan.otherwise));
            Some(format!(
                "{}: {} -> {targets} [{}]",
                block.name,
                text(&plan.condition),
                others.join(" ")
            ))
        });
        plans.collect()
    }

    const ENDS: &str = "yes:\n  return\nno:\n  return\n";

    #[test]
    fn branches_that_lead_to_the_same_places_are_joined() {
        // An operator on floats.
        let right = "right:\n  %0: f32 = neg %x\n";
        let both = format!("entry:\n  branch %a, right, no\n{right}  branch %b, yes, no\n{ENDS}");
        assert_eq!(found(&both), ["entry: (p0 && p1) -> yes, no [right]"]);
        let either =
            format!("entry:\n  branch %a, yes, right\n{right}  branch %b, yes, no\n{ENDS}");
        assert_eq!(found(&either), ["entry: (p0 || p1) -> yes, no [right]"]);
        let not = format!("entry:\n  branch %a, right, no\n{right}  branch %b, no, yes\n{ENDS}");
        assert_eq!(found(&not), ["entry: (p0 && !p1) -> yes, no [right]"]);
        let not = format!("entry:\n  branch %a, yes, right\n{right}  branch %b, no, yes\n{ENDS}");
        assert_eq!(found(&not), ["entry: (p0 || !p1) -> yes, no [right]"]);
        let mixed = format!(
            "entry:\n  branch %a, yes, right\nright:\n  branch %b, more, no\nmore:\n  branch %c, yes, no\n{ENDS}"
        );
        assert_eq!(found(&mixed), ["entry: (p0 || (p1 && p2)) -> yes, no [right more]"]);
        let mixed = format!(
            "entry:\n  branch %a, more, right\nmore:\n  branch %b, yes, right\nright:\n  branch %c, yes, no\n{ENDS}"
        );
        assert_eq!(found(&mixed), ["entry: ((p0 && p1) || p2) -> yes, no [more right]"]);
    }

    #[test]
    fn local_variables_are_read_in_any_case() {
        let fields = format!(
            "  slot $s: Pair\n  slot $t: [f32; 4]\nentry:\n  branch %a, right, no\nright:\n  \
             %0: *mut f32 = field_address $s .value\n  %1: f32 = load %0\n  %2: *mut f32 = element_address $t, 3i32\n  \
             %3: f32 = load %2\n  %4: f32 = neg %3\n  %5: bool = lt %1, %4\n  branch %5, yes, no\n{ENDS}"
        );
        assert_eq!(found(&fields), ["entry: (p0 && %5) -> yes, no [right]"]);
        for (from, to) in [("3i32", "4i32"), ("3i32", "%n"), ("load %0", "load %p")] {
            assert_eq!(found(&fields.replace(from, to)), [""; 0], "{from} {to}");
        }
    }

    #[test]
    fn a_condition_that_costs_too_much_in_all_is_not_joined_in_part() {
        let chain = |first: &str| {
            found(&format!(
                "entry:\n  branch %a, first, no\nfirst:\n{first}  branch %b, second, no\nsecond:\n  %9: f32 = neg %x\n  \
                 branch %c, yes, no\n{ENDS}"
            ))
        };
        assert_eq!(
            chain("  %0: f32 = neg %x\n"),
            ["entry: (p0 && (p1 && p2)) -> yes, no [first second]"]
        );
        assert_eq!(chain("  %0: f32 = mul %x, %x\n  %1: bool = lt %0, %x\n"), [""; 0]);
    }

    #[test]
    fn the_absolute_value_of_a_float_costs_nothing() {
        let right = |ty: &str, of: &str| {
            found(&format!(
                "entry:\n  branch %a, right, no\nright:\n  %0: {ty} = abs(%{of})\n  %1: {ty} = neg %0\n  %2: bool = lt %1, %0\n  \
                 branch %2, yes, no\n{ENDS}"
            ))
        };
        assert_eq!(right("f32", "x"), ["entry: (p0 && %2) -> yes, no [right]"]);
        assert_eq!(right("i32", "n"), [""; 0]);
    }

    #[test]
    fn what_costs_much_or_does_more_stays_behind_its_branch() {
        let right = |instructions: &str| {
            found(&format!(
                "  slot $s: f32\nentry:\n  branch %a, right, no\nright:\n{instructions}  branch %b, yes, no\n{ENDS}"
            ))
        };
        assert_eq!(right("  %0: f32 = mul %x, %x\n  %1: bool = lt %0, %x\n").len(), 1);
        assert_eq!(
            right("  %0: f32 = mul %x, %x\n  %1: f32 = mul %0, %0\n  %2: bool = lt %1, %x\n").len(),
            0
        );
        assert_eq!(right("  %0: i32 = div %n, %n\n").len(), 0);
        assert_eq!(right("  store $s, %x\n").len(), 0);
        // Compilers join these themselves.
        assert_eq!(right("  %0: bool = lt %x, %x\n").len(), 0);
        assert_eq!(right("  %0: i32 = sub %n, 1i32\n  %1: bool = lt %n, %0\n").len(), 0);
        let other_way_in = format!(
            "entry:\n  branch %c, first, right\nfirst:\n  store $s, %x\n  branch %a, right, no\nright:\n  branch %b, yes, no\n{ENDS}"
        );
        assert_eq!(found(&format!("  slot $s: f32\n{other_way_in}")), [""; 0]);
    }
}
