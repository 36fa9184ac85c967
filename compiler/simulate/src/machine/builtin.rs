//! Built-ins that are no plain operation, and functions of the device.

use gridlet_lang::builtins::Builtin;
use gridlet_lang::types::Scalar;

use super::format::format;
use super::run::{Fault, Runner, Stop};
use super::thread::{Wait, WarpOp};
use crate::code::{BuiltinCall, Callee, Function};
use crate::number;

impl Runner<'_> {
    /// Runs a built-in; tells if the thread must stop after it.
    pub(super) fn builtin(
        &mut self,
        function: &Function,
        call: &BuiltinCall,
    ) -> Result<Option<Stop>, Fault> {
        let argument = |at: usize| {
            call.arguments.get(at).map_or(0, |argument| self.word(function, argument.place))
        };
        let (first, second, third) = (argument(0), argument(1), argument(2));
        let scalar_of = |at: usize| {
            call.arguments.get(at).and_then(|argument| argument.scalar).unwrap_or(Scalar::U64)
        };
        let scalar = call.scalar.unwrap_or(Scalar::U64);
        let wrong = |what: &str| Err(Fault::Wrong(what.to_owned()));
        let builtin = match &call.callee {
            Callee::NamedBarrier => {
                let wait =
                    Wait::Barrier { id: first as u32, threads: Some(second as u32), reduce: None };
                return Ok(Some(self.wait(call.to, wait)));
            }
            Callee::Fence { .. } => return wrong("a fence is an operation of its own"),
            Callee::Sleep => return Ok(Some(Stop::Yield)),
            Callee::HardwareThread => {
                let [x, ..] = self.block.block_dim;
                self.thread.set(call.to, (self.thread.index % x).into());
                return Ok(None);
            }
            Callee::DynamicShared => {
                let value = self.dynamic_shared();
                self.thread.set(call.to, value);
                return Ok(None);
            }
            Callee::GlobalPointer => {
                self.thread.set(call.to, first);
                return Ok(None);
            }
            Callee::Unknown(name) => {
                return wrong(&format!("the model lacks the function `{name}`"));
            }
            Callee::Builtin(builtin) => *builtin,
        };
        let warp = |op, value, lane| Wait::Warp { op, mask: first as u32, value, lane };
        let value = match builtin {
            Builtin::SyncThreads => {
                let wait = Wait::Barrier { id: 0, threads: None, reduce: None };
                return Ok(Some(self.wait(call.to, wait)));
            }
            Builtin::SyncThreadsReduce(op) => {
                let reduce = Some((op, first != 0));
                return Ok(Some(
                    self.wait(call.to, Wait::Barrier { id: 0, threads: None, reduce }),
                ));
            }
            Builtin::SyncWarp => {
                return Ok(Some(self.wait(call.to, warp(WarpOp::Sync, 0, 0))));
            }
            Builtin::Shuffle(mode) => {
                let wait = warp(WarpOp::Shuffle(mode), second, third as u32);
                return Ok(Some(self.wait(call.to, wait)));
            }
            Builtin::Vote(mode) => {
                return Ok(Some(self.wait(call.to, warp(WarpOp::Vote(mode), second, 0))));
            }
            Builtin::MatchAny => {
                return Ok(Some(self.wait(call.to, warp(WarpOp::MatchAny, second, 0))));
            }
            Builtin::Reduce(op) => {
                let wait = warp(WarpOp::Reduce(op, scalar), second, 0);
                return Ok(Some(self.wait(call.to, wait)));
            }
            Builtin::ActiveMask => return Ok(Some(self.wait(call.to, Wait::Active))),
            Builtin::LaneId => self.thread.lane().into(),
            Builtin::SmId => self.thread.block as u64,
            Builtin::Clock64 | Builtin::GlobalTimer => self.steps / self.tick,
            Builtin::Trap => return Err(Fault::Trap),
            Builtin::Assert => {
                let message = self.memory.string(first).unwrap_or_default();
                return Err(Fault::Assert(message));
            }
            Builtin::Math(op) => {
                let values: Vec<u64> = call
                    .arguments
                    .iter()
                    .map(|argument| self.word(function, argument.place))
                    .collect();
                match number::math(op, scalar, &values) {
                    Some(value) => value,
                    None => return wrong(&format!("{op:?} on {}", scalar.name())),
                }
            }
            Builtin::Bit(op) => number::bit(op, scalar_of(0), first),
            Builtin::MulHi => number::mul_hi(scalar, first, second),
            Builtin::Malloc => {
                let bytes = usize::try_from(first).unwrap_or(usize::MAX).min(1 << 40);
                match bytes {
                    0..0x0100_0000 => self.memory.allocate(vec![0xa5; bytes], true).unwrap_or(0),
                    _ => 0,
                }
            }
            Builtin::Free => {
                if first != 0 && !self.memory.free(first) {
                    return wrong("a pointer that is not from malloc is freed");
                }
                return Ok(None);
            }
            Builtin::Printf => {
                let format_text = self.memory.string(call.format).unwrap_or_default();
                let values: Vec<(Scalar, u64)> = call
                    .arguments
                    .iter()
                    .map(|argument| {
                        let scalar = argument.scalar.unwrap_or(Scalar::U64);
                        (scalar, self.word(function, argument.place))
                    })
                    .collect();
                let text = format(&format_text, &values, |at| self.memory.string(at));
                self.printed.push_str(&text);
                values.len() as u64
            }
            other => return wrong(&format!("the model lacks the built-in `{}`", other.name())),
        };
        self.thread.set(call.to, value);
        Ok(None)
    }

    fn wait(&mut self, to: u32, wait: Wait) -> Stop {
        self.thread.to = to;
        Stop::Wait(wait)
    }
}
