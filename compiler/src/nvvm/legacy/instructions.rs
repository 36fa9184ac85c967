//! Instructions other than memory accesses and calls.

use inkwell::llvm_sys::{
    LLVMFastMathAllowContract, LLVMFastMathAllowReassoc, LLVMFastMathAllowReciprocal,
    LLVMFastMathApproxFunc, LLVMFastMathNoInfs, LLVMFastMathNoNaNs, LLVMFastMathNoSignedZeros,
    LLVMIntPredicate, LLVMOpcode as Op, LLVMRealPredicate,
};

use super::body::Body;
use super::llvm::{Shape, Type, Value};
use super::refusal::{Written, refuse};

impl<'m> Body<'_, 'm, '_> {
    /// Writes the lines of one instruction.
    pub(super) fn instruction(&mut self, value: Value<'m>) -> Written<()> {
        match value.opcode() {
            Op::LLVMRet => self.ret(value),
            Op::LLVMBr => self.br(value),
            Op::LLVMSwitch => self.switch(value),
            Op::LLVMUnreachable => {
                self.line("unreachable".to_owned());
                Ok(())
            }
            Op::LLVMFNeg => self.fneg(value),
            // libNVVM's `frem` rounds the quotient down: 2 for -1 and 3, where it should be -1.
            Op::LLVMFRem => refuse(
                "libNVVM computes `frem` incorrectly for negative numbers",
                "call `__nv_fmod` or `__nv_fmodf` and link libdevice",
            ),
            opcode if binary_word(opcode).is_some() => {
                self.binary(value, binary_word(opcode).unwrap_or_default())
            }
            opcode if cast_word(opcode).is_some() => {
                self.cast(value, cast_word(opcode).unwrap_or_default())
            }
            Op::LLVMICmp => {
                let (left, right) =
                    (self.typed(value.operand(0))?, self.operand(value.operand(1))?);
                self.define(
                    value,
                    &format!("icmp {} {left}, {right}", int_word(value.int_predicate())),
                );
                Ok(())
            }
            Op::LLVMFCmp => {
                let (left, right) =
                    (self.typed(value.operand(0))?, self.operand(value.operand(1))?);
                let word = real_word(value.real_predicate());
                self.define(value, &format!("fcmp{} {word} {left}, {right}", fast_math(value)));
                Ok(())
            }
            Op::LLVMPHI => self.phi(value),
            Op::LLVMSelect => self.listed(value, "select"),
            Op::LLVMExtractElement => self.listed(value, "extractelement"),
            Op::LLVMInsertElement => {
                let (vector, lane) = (self.operand(value.operand(0))?, value.operand(2));
                let (element, lane) = (self.typed(value.operand(1))?, self.typed(lane)?);
                let text = self.inserted(value, &vector, &element, &lane)?;
                self.define(value, &text);
                Ok(())
            }
            Op::LLVMShuffleVector => self.shuffle(value),
            Op::LLVMExtractValue => self.with_indices(value, "extractvalue"),
            Op::LLVMInsertValue => self.with_indices(value, "insertvalue"),
            Op::LLVMFreeze => self.freeze(value),
            Op::LLVMAlloca => self.alloca(value),
            Op::LLVMLoad => self.load(value),
            Op::LLVMStore => self.store(value),
            Op::LLVMGetElementPtr => self.gep(value),
            Op::LLVMFence => self.fence(value),
            Op::LLVMAtomicRMW => self.atomicrmw(value),
            Op::LLVMAtomicCmpXchg => self.cmpxchg(value),
            Op::LLVMCall => self.call(value),
            Op::LLVMIndirectBr => {
                refuse("libNVVM has no `indirectbr`", "branch with `switch` over numbers")
            }
            Op::LLVMVAArg => {
                refuse("libNVVM has no variable arguments", "pass a pointer to a buffer")
            }
            _ => refuse(
                "LLVM 7 for NVPTX has no such instruction; there are no exceptions",
                "use `call` and `br`",
            ),
        }
    }

    fn ret(&mut self, value: Value<'m>) -> Written<()> {
        if value.operand_count() == 0 {
            self.line("ret void".to_owned());
            return Ok(());
        }
        let result = match self.result_pointee.clone() {
            Some(pointee) => self.pointer(value.operand(0), &pointee)?,
            None => self.typed(value.operand(0))?,
        };
        self.line(format!("ret {result}"));
        Ok(())
    }

    fn br(&mut self, value: Value<'m>) -> Written<()> {
        let targets: Vec<String> = value
            .successors()
            .into_iter()
            .map(|block| format!("label {}", self.block(block)))
            .collect();
        let hints = match value.metadata(self.writer.module.metadata_kind("llvm.loop")) {
            Some(node) => {
                self.writer.loop_hints(node)?.map(|number| format!(", !llvm.loop !{number}"))
            }
            None => None,
        };
        let hints = hints.unwrap_or_default();
        match value.condition() {
            Some(condition) => {
                let condition = self.typed(condition)?;
                self.line(format!("br {condition}, {}{hints}", targets.join(", ")));
            }
            None => self.line(format!("br {}{hints}", targets.join(", "))),
        }
        Ok(())
    }

    fn switch(&mut self, value: Value<'m>) -> Written<()> {
        let subject = self.typed(value.operand(0))?;
        let targets = value.successors();
        let Some((default, cases)) = targets.split_first() else {
            return refuse("a `switch` goes nowhere", "give it a default");
        };
        let default = self.block(*default);
        self.line(format!("switch {subject}, label {default} ["));
        for (index, target) in (1..).zip(cases) {
            let case = self.typed(value.case(index))?;
            let target = self.block(*target);
            self.line(format!("  {case}, label {target}"));
        }
        self.line("]".to_owned());
        Ok(())
    }

    /// LLVM 7 has no `fneg`; it writes, reads and optimises `fsub -0.0, x` as the negation.
    fn fneg(&mut self, value: Value<'m>) -> Written<()> {
        let zero = self.negative_zero(value.ty())?;
        let operand = self.operand(value.operand(0))?;
        let ty = self.ty(value.ty())?;
        self.define(value, &format!("fsub{} {ty} {zero}, {operand}", fast_math(value)));
        Ok(())
    }

    pub(super) fn negative_zero(&mut self, ty: Type<'m>) -> Written<String> {
        Ok(match ty.shape() {
            Shape::Vector(element, count) => {
                let one = format!("{} {}", self.ty(element)?, self.negative_zero(element)?);
                format!("<{}>", vec![one; count as usize].join(", "))
            }
            Shape::Half => "0xH8000".to_owned(),
            _ => "-0.000000e+00".to_owned(),
        })
    }

    fn binary(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let mut flags = fast_math(value);
        match value.opcode() {
            Op::LLVMAdd | Op::LLVMSub | Op::LLVMMul | Op::LLVMShl => {
                flags.push_str(if value.has_nuw() { " nuw" } else { "" });
                flags.push_str(if value.has_nsw() { " nsw" } else { "" });
            }
            Op::LLVMUDiv | Op::LLVMSDiv | Op::LLVMLShr | Op::LLVMAShr if value.is_exact() => {
                flags.push_str(" exact")
            }
            // `disjoint` only tells an optimiser that the `or` is a sum.
            _ => {}
        }
        let (left, right) = (self.typed(value.operand(0))?, self.operand(value.operand(1))?);
        self.define(value, &format!("{word}{flags} {left}, {right}"));
        Ok(())
    }

    /// Drops `nneg` of `zext` and `uitofp` and `nuw`, `nsw` of `trunc`, which only inform an
    /// optimiser.
    fn cast(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let from = match value.opcode() {
            // These casts take any pointer; the others take no pointer, or an `i8*` that stays one.
            Op::LLVMPtrToInt | Op::LLVMPtrToAddr | Op::LLVMAddrSpaceCast => {
                self.any(value.operand(0))?
            }
            _ => self.typed(value.operand(0))?,
        };
        let to = self.ty(value.ty())?;
        self.define(value, &format!("{word} {from} to {to}"));
        Ok(())
    }

    fn phi(&mut self, value: Value<'m>) -> Written<()> {
        let mut incoming = Vec::new();
        for (from, block) in value.incoming() {
            incoming.push(format!("[ {}, {} ]", self.operand(from)?, self.block(block)));
        }
        let ty = self.ty(value.ty())?;
        self.define(value, &format!("phi {ty} {}", incoming.join(", ")));
        Ok(())
    }

    /// An instruction written as its opcode and typed operands. Drops fast-math flags of a
    /// `select`, which LLVM 7 does not allow there.
    fn listed(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let mut operands = Vec::new();
        for operand in value.operands() {
            operands.push(self.typed(operand)?);
        }
        self.define(value, &format!("{word} {}", operands.join(", ")));
        Ok(())
    }

    /// The instruction that replaces a lane of `vector`, which has the type of `owner`. `element`
    /// and `lane` include their types.
    ///
    /// Inserts a `half` as its bits: at `-O 0`, libNVVM reports "unsupported operation" for
    /// inserting one at a constant lane.
    pub(super) fn inserted(
        &mut self,
        owner: Value<'m>,
        vector: &str,
        element: &str,
        lane: &str,
    ) -> Written<String> {
        let ty = self.ty(owner.ty())?;
        let Shape::Vector(of, count) = owner.ty().shape() else {
            return refuse("only vectors have lanes", "use `insertvalue`");
        };
        if of.shape() != Shape::Half {
            return Ok(format!("insertelement {ty} {vector}, {element}, {lane}"));
        }
        let bits = format!("<{count} x i16>");
        let vector = match vector {
            "undef" => "undef".to_owned(),
            vector => self.step(owner, "before", &format!("bitcast {ty} {vector} to {bits}")),
        };
        let element = self.step(owner, "bits", &format!("bitcast {element} to i16"));
        let after = format!("insertelement {bits} {vector}, i16 {element}, {lane}");
        let after = self.step(owner, "after", &after);
        Ok(format!("bitcast {bits} {after} to {ty}"))
    }

    fn shuffle(&mut self, value: Value<'m>) -> Written<()> {
        let (left, right) = (self.typed(value.operand(0))?, self.typed(value.operand(1))?);
        let mask: Vec<String> = value
            .shuffle_mask()
            .into_iter()
            .map(|lane| lane.map_or("i32 undef".to_owned(), |lane| format!("i32 {lane}")))
            .collect();
        let count = mask.len();
        self.define(
            value,
            &format!("shufflevector {left}, {right}, <{count} x i32> <{}>", mask.join(", ")),
        );
        Ok(())
    }

    fn with_indices(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let mut text = word.to_owned();
        for (index, operand) in value.operands().into_iter().enumerate() {
            text.push_str(if index == 0 { " " } else { ", " });
            text.push_str(&self.typed(operand)?);
        }
        for index in value.indices() {
            text.push_str(&format!(", {index}"));
        }
        self.define(value, &text);
        Ok(())
    }
}

/// The fast-math flags of an instruction, each preceded by a space.
pub(super) fn fast_math(value: Value<'_>) -> String {
    /// The flags in LLVM's print order.
    const FLAGS: [(u32, &str); 7] = [
        (LLVMFastMathAllowReassoc, " reassoc"),
        (LLVMFastMathNoNaNs, " nnan"),
        (LLVMFastMathNoInfs, " ninf"),
        (LLVMFastMathNoSignedZeros, " nsz"),
        (LLVMFastMathAllowReciprocal, " arcp"),
        (LLVMFastMathAllowContract, " contract"),
        (LLVMFastMathApproxFunc, " afn"),
    ];
    let set = value.fast_math();
    if FLAGS.iter().all(|(flag, _)| set & flag != 0) {
        return " fast".to_owned();
    }
    FLAGS.iter().filter(|(flag, _)| set & flag != 0).map(|(_, word)| *word).collect()
}

fn binary_word(opcode: Op) -> Option<&'static str> {
    Some(match opcode {
        Op::LLVMAdd => "add",
        Op::LLVMFAdd => "fadd",
        Op::LLVMSub => "sub",
        Op::LLVMFSub => "fsub",
        Op::LLVMMul => "mul",
        Op::LLVMFMul => "fmul",
        Op::LLVMUDiv => "udiv",
        Op::LLVMSDiv => "sdiv",
        Op::LLVMFDiv => "fdiv",
        Op::LLVMURem => "urem",
        Op::LLVMSRem => "srem",
        Op::LLVMShl => "shl",
        Op::LLVMLShr => "lshr",
        Op::LLVMAShr => "ashr",
        Op::LLVMAnd => "and",
        Op::LLVMOr => "or",
        Op::LLVMXor => "xor",
        _ => return None,
    })
}

fn cast_word(opcode: Op) -> Option<&'static str> {
    Some(match opcode {
        Op::LLVMTrunc => "trunc",
        Op::LLVMZExt => "zext",
        Op::LLVMSExt => "sext",
        Op::LLVMFPToUI => "fptoui",
        Op::LLVMFPToSI => "fptosi",
        Op::LLVMUIToFP => "uitofp",
        Op::LLVMSIToFP => "sitofp",
        Op::LLVMFPTrunc => "fptrunc",
        Op::LLVMFPExt => "fpext",
        Op::LLVMPtrToInt | Op::LLVMPtrToAddr => "ptrtoint",
        Op::LLVMIntToPtr => "inttoptr",
        Op::LLVMBitCast => "bitcast",
        Op::LLVMAddrSpaceCast => "addrspacecast",
        _ => return None,
    })
}

fn int_word(predicate: LLVMIntPredicate) -> &'static str {
    match predicate {
        LLVMIntPredicate::LLVMIntEQ => "eq",
        LLVMIntPredicate::LLVMIntNE => "ne",
        LLVMIntPredicate::LLVMIntUGT => "ugt",
        LLVMIntPredicate::LLVMIntUGE => "uge",
        LLVMIntPredicate::LLVMIntULT => "ult",
        LLVMIntPredicate::LLVMIntULE => "ule",
        LLVMIntPredicate::LLVMIntSGT => "sgt",
        LLVMIntPredicate::LLVMIntSGE => "sge",
        LLVMIntPredicate::LLVMIntSLT => "slt",
        LLVMIntPredicate::LLVMIntSLE => "sle",
    }
}

fn real_word(predicate: LLVMRealPredicate) -> &'static str {
    match predicate {
        LLVMRealPredicate::LLVMRealPredicateFalse => "false",
        LLVMRealPredicate::LLVMRealOEQ => "oeq",
        LLVMRealPredicate::LLVMRealOGT => "ogt",
        LLVMRealPredicate::LLVMRealOGE => "oge",
        LLVMRealPredicate::LLVMRealOLT => "olt",
        LLVMRealPredicate::LLVMRealOLE => "ole",
        LLVMRealPredicate::LLVMRealONE => "one",
        LLVMRealPredicate::LLVMRealORD => "ord",
        LLVMRealPredicate::LLVMRealUNO => "uno",
        LLVMRealPredicate::LLVMRealUEQ => "ueq",
        LLVMRealPredicate::LLVMRealUGT => "ugt",
        LLVMRealPredicate::LLVMRealUGE => "uge",
        LLVMRealPredicate::LLVMRealULT => "ult",
        LLVMRealPredicate::LLVMRealULE => "ule",
        LLVMRealPredicate::LLVMRealUNE => "une",
        LLVMRealPredicate::LLVMRealPredicateTrue => "true",
    }
}
