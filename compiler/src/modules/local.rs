//! Addresses in memory that only one thread or block can reach.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use inkwell::llvm_sys::LLVMOpcode;

use super::held::{Content, Held, contents, location};
use super::kernels::{Parameter, name};
use super::layout::extent;
use super::uses::Bytes;
use crate::nvvm::legacy::llvm::{Kind, Shape, Value};

/// The address space of memory of a block.
const SHARED: u32 = 3;

/// The address space of memory of a thread.
const LOCAL: u32 = 5;

/// Intrinsics of libNVVM that make generic addresses.
const GENERIC: [&str; 2] = ["llvm.nvvm.ptr.shared.to.gen", "llvm.nvvm.ptr.local.to.gen"];

/// The bytes of a pointer.
const POINTER: i64 = 8;

/// The most pointers in a copy of memory that are looked at.
const MAX_POINTERS: usize = 256;

/// The most writes to a variable that are compared with each other.
const MAX_WRITES: usize = 256;

/// The memory that an argument of a launch certainly points to, or contains a pointer to, if a child grid cannot reach it. The number of
/// an address counts where the child uses it as an address.
pub(super) fn passed(argument: Value<'_>, parameter: &Parameter<'_>) -> Option<&'static str> {
    let found = Search::default().find(argument);
    found.filter(|_| !is_number(argument) || is_address(parameter))
}

/// As [`passed`], for an argument that is copied from memory: so many bytes behind an address.
pub(super) fn copied(
    from: Value<'_>,
    bytes: Bytes,
    parameter: &Parameter<'_>,
) -> Option<&'static str> {
    let numbers = matches!(parameter.ty.shape(), Shape::Pointer(_))
        || matches!(parameter.ty.shape(), Shape::Int(_)) && is_address(parameter);
    Search::default().behind(from, bytes, numbers)
}

/// Whether a kernel uses a parameter as an address.
fn is_address(parameter: &Parameter<'_>) -> bool {
    matches!(parameter.ty.shape(), Shape::Pointer(_))
        || parameter.value.users().into_iter().any(|user| {
            user.kind() == Kind::Instruction && user.opcode() == LLVMOpcode::LLVMIntToPtr
        })
}

fn is_number(value: Value<'_>) -> bool {
    matches!(value.ty().shape(), Shape::Int(_))
}

/// Looks for the memory that values certainly point to, or contain a pointer to, or are the number of an address in.
#[derive(Default)]
struct Search<'m> {
    /// Answers by value. One whose answer is still open, in a loop, is unknown.
    known: HashMap<Value<'m>, Option<&'static str>>,
    contents: HashMap<Value<'m>, Option<Rc<Vec<Held<'m>>>>>,
    /// The bytes of variables that are being looked at.
    open: HashSet<(Value<'m>, Bytes)>,
}

impl<'m> Search<'m> {
    fn find(&mut self, value: Value<'m>) -> Option<&'static str> {
        if let Some(found) = self.known.get(&value) {
            return *found;
        }
        self.known.insert(value, None);
        let found = self.look(value);
        self.known.insert(value, found);
        found
    }

    fn look(&mut self, value: Value<'m>) -> Option<&'static str> {
        use LLVMOpcode::*;

        if let Shape::Pointer(space @ (SHARED | LOCAL)) = value.ty().shape() {
            return Some(if space == SHARED { "shared memory" } else { "a local variable" });
        }
        let opcode = match value.kind() {
            Kind::Instruction => value.opcode(),
            Kind::Expression => value.constant_opcode(),
            _ => return None,
        };
        match opcode {
            LLVMAlloca => Some("a local variable"),
            LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMFreeze | LLVMIntToPtr => {
                self.find(value.operand(0))
            }
            LLVMPtrToInt if matches!(value.ty().shape(), Shape::Int(64)) => {
                self.find(value.operand(0))
            }
            LLVMAdd if is_index(value.operand(1)) => self.find(value.operand(0)),
            LLVMAdd if is_index(value.operand(0)) => self.find(value.operand(1)),
            LLVMSub if is_index(value.operand(1)) => self.find(value.operand(0)),
            LLVMInsertValue => {
                let part = Some(value.operand(1)).filter(|part| !is_number(*part));
                part.and_then(|part| self.find(part)).or_else(|| self.find(value.operand(0)))
            }
            LLVMExtractValue => self.find(inserted(value)?),
            LLVMSelect => self.all(&[value.operand(1), value.operand(2)]),
            LLVMPHI => {
                let incoming: Vec<_> = value.incoming().into_iter().map(|(one, _)| one).collect();
                self.all(&incoming)
            }
            LLVMLoad => self.loaded(value),
            LLVMCall => {
                let callee = value.callee();
                let is_generic = callee.kind() == Kind::Function
                    && GENERIC.iter().any(|known| name(callee).starts_with(known));
                if is_generic { self.find(value.operand(0)) } else { None }
            }
            _ => None,
        }
    }

    /// What all of some values point to.
    fn all(&mut self, values: &[Value<'m>]) -> Option<&'static str> {
        let mut found = values.iter().map(|value| self.find(*value));
        let first = found.next()??;
        found.all(|other| other.is_some()).then_some(first)
    }

    fn loaded(&mut self, load: Value<'m>) -> Option<&'static str> {
        let (variable, offset) = location(load.operand(0))?;
        let size = i64::try_from(extent(load.ty())?.size).ok()?;
        match offset {
            Some(offset) => {
                self.held(variable, (offset, offset.checked_add(size)?), is_number(load))
            }
            // Some element of an array.
            None => {
                let contents = self.contents(variable)?;
                let mut found = contents.iter().map(|held| self.content(held, is_number(load)));
                let first = found.next()??;
                found.all(|other| other.is_some()).then_some(first)
            }
        }
    }

    fn contents(&mut self, variable: Value<'m>) -> Option<Rc<Vec<Held<'m>>>> {
        let known = self.contents.entry(variable).or_insert_with(|| {
            let found = contents(variable)?;
            (found.len() <= MAX_WRITES).then(|| Rc::new(found))
        });
        known.clone()
    }

    /// What a part of some bytes of a variable points to, whichever write to that part came last. `numbers`: numbers of addresses
    /// count.
    fn held(&mut self, variable: Value<'m>, bytes: Bytes, numbers: bool) -> Option<&'static str> {
        let (first, last) = bytes;
        self.whole(variable, bytes, numbers).or_else(|| {
            // One of its pointers, whatever is beside it.
            let starts = (first..last).step_by(POINTER as usize).take(MAX_POINTERS);
            let mut pointers = starts.map(|start| (start, start + POINTER));
            pointers.find_map(
                |part| if part == bytes { None } else { self.whole(variable, part, false) },
            )
        })
    }

    fn whole(&mut self, variable: Value<'m>, bytes: Bytes, numbers: bool) -> Option<&'static str> {
        if !self.open.insert((variable, bytes)) {
            return None;
        }
        let contents = self.contents(variable);
        let found = contents.and_then(|contents| {
            let near = contents.iter().filter(|held| held.overlaps(bytes));
            let known: Vec<_> = near.map(|held| self.part(held, bytes, numbers)).collect();
            let overlap = |left: Bytes, right: Bytes| left.0 < right.1 && right.0 < left.1;
            known.iter().find_map(|(own, memory)| {
                let own = (*own)?;
                let mut all = known.iter();
                let is_certain = all.all(|(other, found)| {
                    found.is_some() || other.is_some_and(|other| !overlap(other, own))
                });
                memory.filter(|_| is_certain)
            })
        });
        self.open.remove(&(variable, bytes));
        found
    }

    /// The bytes of a variable that a write sets among some, and what it writes there.
    fn part(
        &mut self,
        held: &Held<'m>,
        bytes: Bytes,
        numbers: bool,
    ) -> (Option<Bytes>, Option<&'static str>) {
        match held.bytes {
            Some(own) if own.0 < bytes.0 || bytes.1 < own.1 => {
                let is_inside = own.0 <= bytes.0 && bytes.1 <= own.1;
                let found = match held.content {
                    Content::Copy(from) if is_inside => {
                        let at = (bytes.0 - own.0, bytes.1 - own.0);
                        self.behind(from, at, numbers)
                    }
                    _ => None,
                };
                (Some(if is_inside { bytes } else { own }), found)
            }
            own => (own, self.content(held, numbers)),
        }
    }

    /// What some bytes behind an address in a local variable point to.
    fn behind(&mut self, address: Value<'m>, at: Bytes, numbers: bool) -> Option<&'static str> {
        let (variable, offset) = location(address)?;
        let offset = offset?;
        let bytes = (offset.checked_add(at.0)?, offset.checked_add(at.1)?);
        self.held(variable, bytes, numbers)
    }

    fn content(&mut self, held: &Held<'m>, numbers: bool) -> Option<&'static str> {
        match held.content {
            Content::Value(value) if is_number(value) && !numbers => None,
            Content::Value(value) => self.find(value),
            Content::Copy(from) => {
                let (first, last) = held.bytes?;
                self.behind(from, (0, last - first), numbers)
            }
            Content::Fill => None,
        }
    }
}

/// Whether a number that is added to an address certainly is no distance to another address.
fn is_index(number: Value<'_>) -> bool {
    use LLVMOpcode::*;

    let is_product = || {
        number.kind() == Kind::Instruction
            && matches!(number.opcode(), LLVMMul | LLVMShl | LLVMZExt | LLVMSExt)
    };
    number.unsigned().is_some() || is_product()
}

/// The value that an `extractvalue` gives, if it was inserted at the same place.
fn inserted(extract: Value<'_>) -> Option<Value<'_>> {
    let (wanted, mut whole) = (extract.indices(), extract.operand(0));
    while whole.kind() == Kind::Instruction && whole.opcode() == LLVMOpcode::LLVMInsertValue {
        let indices = whole.indices();
        if indices == wanted {
            return Some(whole.operand(1));
        }
        if indices.starts_with(wanted) || wanted.starts_with(indices) {
            return None;
        }
        whole = whole.operand(0);
    }
    None
}
