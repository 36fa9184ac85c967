//! What is wrong with a module that LLVM's verifier refuses, in the words of those who build modules: the verifier names no line of
//! their source.

use std::collections::HashMap;

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::RECORD_LOST_LAUNCH;
use gridlet_lang::launch::cdp::symbols::{RuntimeFunction, runtime_function};
use inkwell::llvm_sys::LLVMOpcode;

use super::SOURCES;
use super::legacy::llvm::{Block, Kind, Meta, Module, Value};

/// More mistakes than these are of little use.
const MAX_MISTAKES: usize = 5;

/// The likeliest mistakes, one a line, each with its function and the nearest line.
pub(super) fn explain(module: &inkwell::module::Module<'_>) -> String {
    let module = Module::new(module);
    let functions = module.functions();
    let found = functions.iter().flat_map(|function| {
        let context = Function::of(module, *function);
        let blocks = context.blocks.iter().filter_map(|block| context.end(*block));
        let phis = context.blocks.iter().flat_map(|block| context.phis(*block));
        let foreign = context.foreign_location(&functions);
        blocks.chain(phis).chain(foreign).collect::<Vec<_>>()
    });
    found.take(MAX_MISTAKES).map(|one| format!("{one}\n")).collect()
}

fn position(instruction: Value<'_>) -> Option<String> {
    instruction.position().map(|at| format!("{}:{}", at.file, at.line))
}

/// A function of the module.
struct Function<'m> {
    module: Module<'m>,
    function: Value<'m>,
    name: String,
    blocks: Vec<Block<'m>>,
    /// By block, those that branch to it.
    before: HashMap<Block<'m>, Vec<Block<'m>>>,
}

impl<'m> Function<'m> {
    fn of(module: Module<'m>, function: Value<'m>) -> Self {
        let (blocks, mut before) = (function.blocks(), HashMap::<_, Vec<_>>::new());
        for block in &blocks {
            let last = block.instructions().last().copied().filter(|last| last.is_terminator());
            for next in last.into_iter().flat_map(Value::successors) {
                before.entry(next).or_default().push(*block);
            }
        }
        Function { module, function, name: function.text_name(), blocks, before }
    }

    fn before(&self, block: Block<'m>) -> &[Block<'m>] {
        self.before.get(&block).map_or(&[], Vec::as_slice)
    }

    fn label(&self, block: Block<'m>) -> String {
        match block.as_value().name() {
            Some(name) => format!("block `{}`", String::from_utf8_lossy(&name)),
            None => {
                let at = self.blocks.iter().position(|known| *known == block).unwrap_or_default();
                format!("block number {}", at + 1)
            }
        }
    }

    /// The line that is nearest to the end of a block, or to an instruction, as it follows the function's name.
    fn near(&self, block: Block<'m>, instruction: Option<Value<'m>>) -> String {
        let nearby = std::iter::once(&block).chain(self.before(block));
        let lines = nearby.map(|block| block.instructions().into_iter().rev().find_map(position));
        let function = || self.function.subprogram().map(|at| format!("{}:{}", at.file, at.line));
        let own = instruction.and_then(position);
        let at = own.or_else(|| lines.flatten().next()).or_else(function);
        at.map_or_else(String::new, |at| format!(", at {at}"))
    }

    /// What is wrong with the end of a block.
    fn end(&self, block: Block<'m>) -> Option<String> {
        let (name, instructions) = (&self.name, block.instructions());
        let (last, rest) = match instructions.split_last() {
            Some((last, rest)) => (Some(*last), rest),
            None => (None, &[][..]),
        };
        if let Some(end) = rest.iter().find(|one| one.is_terminator()) {
            let (near, label) = (self.near(block, Some(*end)), self.label(block));
            return Some(format!(
                "function `{name}`{near}: {label} goes on behind its end; put the builder into another block first"
            ));
        }
        if last.is_some_and(Value::is_terminator) {
            return None;
        }
        let near = self.near(block, None);
        let label = match self.launch_before(block) {
            Some(Some(at)) => format!("the block behind the launch at {at}"),
            Some(None) => "the block behind a launch".into(),
            None => self.label(block),
        };
        Some(format!(
            "function `{name}`{near}: {label} has no terminator; end it with a branch, a return or `unreachable`"
        ))
    }

    /// The launch behind which [`crate::modules::Launches`] opened a block, with its position.
    fn launch_before(&self, block: Block<'m>) -> Option<Option<String>> {
        let calls = self.before(block).iter().flat_map(|block| block.instructions());
        let mut launches = calls.filter_map(|call| {
            let is_record = called(call)? == symbol::internal(RECORD_LOST_LAUNCH);
            let is_launch = is_runtime(call, RuntimeFunction::LaunchDevice);
            let recorded = || self.recorded(call).filter(|_| is_record);
            (is_record || is_launch).then(|| recorded().or_else(|| position(call)))
        });
        launches.next()
    }

    /// The position that a record of a lost launch has.
    fn recorded(&self, record: Value<'m>) -> Option<String> {
        let [_, file, line] = record.arguments()[..] else { return None };
        let lists = self.module.named_metadata();
        let files = lists.into_iter().find(|list| list.name == SOURCES)?.nodes;
        let at = usize::try_from(file.unsigned()?).ok()?.checked_sub(1)?;
        match files.get(at)?.meta_operands().first()? {
            Meta::Text(file) => {
                Some(format!("{}:{}", String::from_utf8_lossy(file), line.unsigned()?))
            }
            _ => None,
        }
    }

    /// What is wrong with the blocks that a `phi` names.
    fn phis(&self, block: Block<'m>) -> Vec<String> {
        let phis = block.instructions().into_iter();
        let phis = phis.filter(|one| one.opcode() == LLVMOpcode::LLVMPHI);
        let wrong = |phi: Value<'m>| {
            let named: Vec<_> = phi.incoming().into_iter().map(|(_, block)| block).collect();
            let before = self.before(block);
            let (name, near, label) = (&self.name, self.near(block, Some(phi)), self.label(block));
            if let Some(stranger) = named.iter().find(|named| !before.contains(named)) {
                let launches = stranger
                    .instructions()
                    .into_iter()
                    .any(|call| is_runtime(call, RuntimeFunction::GetParameterBuffer));
                let hint = if launches {
                    "`Launches::emit` opens a block: take `builder.get_insert_block()` after it"
                } else {
                    "name the blocks that do"
                };
                return Some(format!(
                    "function `{name}`{near}: a `phi` names {}, which does not branch to its {label}; {hint}",
                    self.label(*stranger)
                ));
            }
            let missing = before.iter().find(|before| !named.contains(before))?;
            Some(format!(
                "function `{name}`{near}: a `phi` has no value for {}, which branches to its {label}",
                self.label(*missing)
            ))
        };
        phis.filter_map(wrong).collect()
    }

    /// The first instruction with a debug location of another function.
    fn foreign_location(&self, functions: &[Value<'m>]) -> Option<String> {
        let own = self.function.own_subprogram();
        let mut instructions = self.blocks.iter().flat_map(|block| block.instructions());
        let wrong = instructions.find(|one| one.located_in().is_some_and(|of| Some(of) != own))?;
        let of = wrong.located_in();
        let other = functions.iter().find(|other| of.is_some() && other.own_subprogram() == of);
        let other =
            other.map_or_else(|| "another".into(), |other| format!("`{}`", other.text_name()));
        let at = position(wrong).unwrap_or_default();
        Some(format!(
            "function `{}`: an instruction has the debug location {at} of function {other}; call `SourceLines::at` again after the \
             builder moves to another function",
            self.name
        ))
    }
}

/// The function that an instruction calls.
fn called(instruction: Value<'_>) -> Option<String> {
    let is_call = instruction.opcode() == LLVMOpcode::LLVMCall;
    let callee = is_call.then(|| instruction.callee())?;
    (callee.kind() == Kind::Function).then(|| callee.text_name())
}

fn is_runtime(instruction: Value<'_>, function: RuntimeFunction) -> bool {
    called(instruction).and_then(|name| runtime_function(&name)) == Some(function)
}
