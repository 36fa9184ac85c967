//! Runs one thread until it has made some accesses to memory that others see, or until it waits.

use super::race::Races;
use super::thread::{Frame, State, Thread, Wait};
use super::{Block, Machine};
use crate::code::{Code, Function, Op, Place};
use crate::memory::{self, Access, Memory, Space, address, parts};
use crate::number;

/// The largest stack of a thread, in bytes.
const MAX_STACK: usize = 1 << 22;
/// The number of operations after which a thread that touches nothing that others see gives way.
const MAX_QUIET: u32 = 50_000;

/// Why a thread stopped.
pub(super) enum Stop {
    /// It has made as many accesses as it was allowed.
    Budget,
    /// It sleeps.
    Yield,
    /// It waits for others.
    Wait(Wait),
    /// It has returned from the kernel.
    Ended,
    /// It has failed.
    Failed(Fault),
}

/// A failure of a thread.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// `trap()`
    Trap,
    /// A failed `assert`, with its message.
    Assert(String),
    /// Something that is undefined or that the model lacks.
    Wrong(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Fault::Wrong(message)
    }
}

/// The parts of the machine that a running thread uses.
pub(super) struct Runner<'m> {
    pub(super) code: &'m Code,
    pub(super) memory: &'m mut Memory,
    pub(super) thread: &'m mut Thread,
    pub(super) block: &'m Block,
    pub(super) number: usize,
    pub(super) printed: &'m mut String,
    pub(super) races: Option<&'m mut Races>,
    /// The number of operations so far.
    pub(super) steps: u64,
    /// Operations in a tick of the clock.
    pub(super) tick: u64,
}

impl Machine<'_> {
    /// Runs a thread that is ready until it has made `budget` accesses that others see, and stands before the next.
    pub(super) fn run_thread(&mut self, number: usize, budget: u32) -> Stop {
        let thread = &mut self.threads[number];
        let mut runner = Runner {
            code: self.code,
            memory: &mut self.memory,
            block: &self.blocks[thread.block],
            thread,
            number,
            printed: &mut self.printed,
            races: self.races.as_mut(),
            steps: self.steps,
            tick: self.tick,
        };
        let stop = runner.run(budget);
        self.steps = runner.steps;
        stop
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

impl Runner<'_> {
    fn run(&mut self, budget: u32) -> Stop {
        let mut function = &self.code.functions[self.thread.now.function as usize];
        let mut next = self.thread.now.next as usize;
        let start = self.steps;
        let mut left = budget;
        let stop = loop {
            let op = function.ops[next];
            // What others see waits for the scheduler's leave.
            if let Some(pointer) = seen(op) {
                let is_seen = match pointer {
                    Some(pointer) => {
                        parts(self.word(function, pointer)).space != Some(Space::Local)
                    }
                    None => true,
                };
                if is_seen {
                    if left == 0 {
                        break Stop::Budget;
                    }
                    left -= 1;
                }
            } else if self.steps - start > u64::from(MAX_QUIET) {
                break Stop::Budget;
            }
            self.steps += 1;
            if self.races.is_some() {
                self.thread.now.next = next as u32;
            }
            next += 1;
            match op {
                Op::Jump(target) => next = target as usize,
                Op::Branch { condition, then, otherwise } => {
                    let taken = self.word(function, condition) != 0;
                    next = if taken { then } else { otherwise } as usize;
                }
                Op::Call(at) => {
                    self.thread.now.next = next as u32;
                    if let Err(fault) = self.call(function, at) {
                        next -= 1;
                        break Stop::Failed(fault);
                    }
                    function = &self.code.functions[self.thread.now.function as usize];
                    next = 0;
                }
                Op::Return { from, bytes } => {
                    let Some(caller) = self.thread.callers.pop() else {
                        next -= 1;
                        break Stop::Ended;
                    };
                    let done = self.thread.now;
                    self.copy(function, from, done.base, caller.base + done.to as usize, bytes);
                    self.thread.now = caller;
                    function = &self.code.functions[caller.function as usize];
                    next = caller.next as usize;
                }
                Op::Builtin(at) => match self.builtin(function, &function.builtins[at as usize]) {
                    Ok(None) => {}
                    Ok(Some(stop)) => break stop,
                    Err(fault) => {
                        next -= 1;
                        break Stop::Failed(fault);
                    }
                },
                _ => {
                    if let Err(message) = self.plain(function, op) {
                        next -= 1;
                        break Stop::Failed(Fault::Wrong(message));
                    }
                }
            }
        };
        self.thread.now.next = next as u32;
        stop
    }

    /// An operand of up to 8 bytes.
    pub(super) fn word(&self, function: &Function, place: Place) -> u64 {
        match place.split() {
            (true, at) => word_at(&function.constants, at),
            (false, at) => word_at(&self.thread.stack, self.thread.now.base + at),
        }
    }

    /// Copies a value to `to` in the stack, with zeros up to 8 bytes. `base` is that of the frame of `from`.
    fn copy(&mut self, function: &Function, from: Place, base: usize, to: usize, bytes: u32) {
        let count = bytes as usize;
        let stack = &mut self.thread.stack;
        match from.split() {
            _ if count == 0 => {}
            (is_constant, at) if count <= 8 => {
                let value = match is_constant {
                    true => memory::read(&function.constants, at, count),
                    false => memory::read(stack, base + at, count),
                };
                memory::write(stack, to, 8, value.unwrap_or(0));
            }
            (true, at) => {
                stack[to..to + count].copy_from_slice(&function.constants[at..at + count]);
            }
            (false, at) => stack.copy_within(base + at..base + at + count, to),
        }
    }

    fn call(&mut self, function: &Function, at: u32) -> Result<(), Fault> {
        let call = &function.calls[at as usize];
        let caller = self.thread.now;
        let callee = &self.code.functions[call.function as usize];
        let base = caller.base + function.frame_bytes;
        if base + callee.frame_bytes > MAX_STACK {
            return Err(Fault::Wrong("the stack overflows".into()));
        }
        self.thread.reserve(base + callee.frame_bytes + 8);
        for (place, at, bytes) in &call.arguments {
            self.copy(function, *place, caller.base, base + *at as usize, *bytes);
        }
        self.thread.callers.push(caller);
        self.thread.now = Frame { function: call.function, next: 0, base, to: call.to };
        Ok(())
    }

    /// An operation that neither moves to another place nor waits.
    fn plain(&mut self, function: &Function, op: Op) -> Result<(), String> {
        let base = self.thread.now.base;
        match op {
            Op::Get { to, from, bytes } => {
                self.copy(function, from, base, base + to as usize, bytes);
            }
            Op::Put { to, from, bytes } if bytes <= 8 => {
                let value = self.word(function, from);
                memory::write(&mut self.thread.stack, base + to as usize, bytes as usize, value);
            }
            Op::Put { to, from, bytes } => {
                self.copy(function, from, base, base + to as usize, bytes);
            }
            Op::FrameAddress { to, offset } => {
                let value = address(Space::Local, self.number, (base + offset as usize) as u64);
                self.thread.set(to, value);
            }
            Op::SharedAddress { to, offset } => {
                let value = address(Space::Shared, self.thread.block, offset.into());
                self.thread.set(to, value);
            }
            Op::Unary { op, scalar, to, value } => {
                let value = self.word(function, value);
                self.thread.set(to, number::unary(op, scalar, value));
            }
            Op::Binary { op, scalar, to, left, right } => {
                let (left, right) = (self.word(function, left), self.word(function, right));
                let value = number::binary(op, scalar, left, right)
                    .ok_or_else(|| format!("{op:?} of {left:#x} and {right:#x} is undefined"))?;
                self.thread.set(to, value);
            }
            Op::Cast { from, to_scalar, to, value } => {
                let value = self.word(function, value);
                self.thread.set(to, number::cast(from, to_scalar, value));
            }
            Op::Select { to, condition, yes, no, bytes } => {
                let from = if self.word(function, condition) != 0 { yes } else { no };
                self.copy(function, from, base, base + to as usize, bytes);
            }
            Op::Offset { to, base, bytes } => {
                let value = self.word(function, base).wrapping_add(bytes.into());
                self.thread.set(to, value);
            }
            Op::Element { to, base, index, scalar, stride } => {
                let index = number::extend(scalar, self.word(function, index));
                let bytes = index.wrapping_mul(stride.into());
                let value = self.word(function, base).wrapping_add(bytes);
                self.thread.set(to, value);
            }
            Op::Difference { to, left, right, size } => {
                let bytes = self.word(function, left).wrapping_sub(self.word(function, right));
                self.thread.set(to, (bytes as i64 / i64::from(size)) as u64);
            }
            Op::Load { to, pointer, bytes, alignment } => {
                let pointer = self.word(function, pointer);
                self.load(pointer, bytes, alignment, base + to as usize)?;
            }
            Op::Store { pointer, from, bytes, alignment } => {
                let pointer = self.word(function, pointer);
                self.store(function, pointer, from, bytes, alignment)?;
            }
            Op::Geometry { to } => self.geometry(base + to as usize),
            Op::Unreachable => return Err("an unreachable place was reached".into()),
            _ => self.atomic(function, op)?,
        }
        Ok(())
    }

    fn atomic(&mut self, function: &Function, op: Op) -> Result<(), String> {
        match op {
            Op::Atomic { op, scalar, to, pointer, value } => {
                let (pointer, value) = (self.word(function, pointer), self.word(function, value));
                let bytes = scalar.size() as u32;
                let old = self.read_word(pointer, bytes, Access::Atomic)?;
                let new = number::atomic(op, scalar, old, value)
                    .ok_or_else(|| format!("atomic {op:?} on {}", scalar.name()))?;
                self.write_word(pointer, bytes, new, Access::Atomic)?;
                self.thread.set(to, old);
            }
            Op::AtomicCas { to, pointer, expected, new, bytes } => {
                let pointer = self.word(function, pointer);
                let old = self.read_word(pointer, bytes, Access::Atomic)?;
                // A failed exchange also needs memory that can be written.
                let is_equal = old == self.word(function, expected);
                let new = if is_equal { self.word(function, new) } else { old };
                self.write_word(pointer, bytes, new, Access::Atomic)?;
                self.thread.set(to, old);
            }
            Op::AtomicLoad { to, pointer, bytes, acquire } => {
                let pointer = self.word(function, pointer);
                let value = self.read_word(pointer, bytes, Access::Atomic)?;
                if acquire {
                    self.memory.acquire(self.thread.block);
                }
                self.thread.set(to, value);
            }
            Op::AtomicStore { pointer, value, bytes, release } => {
                let (pointer, value) = (self.word(function, pointer), self.word(function, value));
                if release {
                    self.memory.release(self.thread.block);
                }
                self.write_word(pointer, bytes, value, Access::Atomic)?;
            }
            Op::Fence { acquires, releases } => {
                if releases {
                    self.memory.release(self.thread.block);
                }
                if acquires {
                    self.memory.acquire(self.thread.block);
                }
            }
            other => return Err(format!("{other:?} is not plain")),
        }
        Ok(())
    }

    /// Writes the thread's geometry into the stack.
    fn geometry(&mut self, at: usize) {
        let layout = self.code.geometry;
        let block = self.block;
        let [x, y, _] = block.block_dim;
        let index = self.thread.index;
        let thread = [index % x, index / x % y, index / x / y];
        let values = [thread, block.block_idx, block.block_dim, block.grid_dim];
        for (field, value) in layout.fields.into_iter().zip(values) {
            for (axis, value) in layout.axes.into_iter().zip(value) {
                let at = at + (field + axis) as usize;
                memory::write(&mut self.thread.stack, at, 4, value.into());
            }
        }
        let dynamic = self.dynamic_shared();
        memory::write(&mut self.thread.stack, at + layout.fields[4] as usize, 8, dynamic);
    }

    /// The address of the block's dynamic shared memory.
    pub(super) fn dynamic_shared(&self) -> u64 {
        address(Space::Shared, self.thread.block, self.code.shared_bytes)
    }
}

/// Whether others can see an operation; if that depends on an address, its place.
fn seen(op: Op) -> Option<Option<Place>> {
    match op {
        Op::Load { pointer, .. }
        | Op::Store { pointer, .. }
        | Op::Atomic { pointer, .. }
        | Op::AtomicCas { pointer, .. }
        | Op::AtomicLoad { pointer, .. }
        | Op::AtomicStore { pointer, .. } => Some(Some(pointer)),
        Op::Builtin(_) | Op::Fence { .. } => Some(None),
        _ => None,
    }
}

/// A thread at the start of a kernel.
pub(super) fn start(
    code: &Code,
    thread: &mut Thread,
    entry: &crate::code::Entry,
    parameters: &[u8],
) {
    let function = &code.functions[entry.function as usize];
    thread.callers.clear();
    thread.now = Frame { function: entry.function, next: 0, base: 0, to: 0 };
    thread.state = State::Ready;
    thread.reserve(function.frame_bytes + 8);
    for ((at, bytes), (from, _)) in function.parameters.iter().zip(&entry.parameters) {
        let (at, bytes, from) = (*at as usize, *bytes as usize, *from as usize);
        if bytes <= 8 {
            thread.stack[at..at + 8].fill(0);
        }
        thread.stack[at..at + bytes].copy_from_slice(&parameters[from..from + bytes]);
    }
}
