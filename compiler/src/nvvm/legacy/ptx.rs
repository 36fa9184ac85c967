//! The `llvm.nvvm.*` intrinsics: those that libNVVM knows under the same name, those that it knows
//! under another name, and those that exist only as PTX instructions.

use super::body::{Argument, Body};
use super::constants::is_pointer;
use super::llvm::{Shape, Value};
use super::refusal::{Written, refuse};
use super::types::mangled;
use crate::nvvm::assembly::{self, Effect};

/// Intrinsics that libNVVM 13.0 knows with the same types and meaning, according to the PTX that it
/// generates for each. Braces list alternatives.
const KNOWN: [&str; 35] = [
    "bar.warp.sync",
    "d2f.{rm,rn,rp,rz}{,.ftz}",
    "d2i.{hi,lo}",
    "d2{i,ll,ui,ull}.{rm,rn,rp,rz}",
    "div.approx.{f,ftz.f}",
    "exit",
    "f2h.rn{,.ftz}",
    "f2{i,ll,ui,ull}.{rm,rn,rp,rz}{,.ftz}",
    "fns",
    "isspacep.{const,global,local,shared,shared.cluster}",
    "lg2.approx.{d,f,ftz.f}",
    "lohi.i2d",
    "match.all.sync.{i32p,i64p}",
    "match.any.sync.{i32,i64}",
    "membar.{cta,gl,sys}",
    "mul24.{i,ui}",
    "mulhi.{i,ll,s,ui,ull,us}",
    "prmt",
    "rcp.approx.ftz.d",
    "read.ptx.sreg.lanemask.{eq,ge,gt,le,lt}",
    "read.ptx.sreg.{clock,clock64,gridid,laneid,nsmid,nwarpid,smid,warpid,warpsize}",
    "read.ptx.sreg.{ctaid,nctaid,ntid,tid}.{w,x,y,z}",
    "read.ptx.sreg.envreg{,1,2,3}{0,1,2,3,4,5,6,7,8,9}",
    "read.ptx.sreg.pm{0,1,2,3}",
    "rsqrt.approx.{d,f,ftz.f}",
    "sad.{i,ll,s,ui,ull,us}",
    "shfl.sync.{bfly,down,idx,up}.{f32,i32}",
    "sqrt.f",
    "vote.{all,any,ballot,uni}.sync",
    "{add,div,fma,mul,rcp,sqrt}.{rm,rn,rp,rz}.{d,f,ftz.f}",
    "{ceil,floor,round,saturate,trunc}.{d,f,ftz.f}",
    "{cos,sin,sqrt}.approx.{f,ftz.f}",
    "{fmax,fmin}.{d,f,ftz.f}",
    "{i,ll,ui,ull}2d.{rm,rn,rp,rz}",
    "{i,ll,ui,ull}2f.{rm,rn,rp,rz}",
];

/// The modes of `llvm.nvvm.shfl.sync.i32`, which also returns the predicate (NVVM IR Specification,
/// "Data Movement").
const SHUFFLES: [&str; 4] = ["idx", "up", "down", "bfly"];

impl<'m> Body<'_, 'm, '_> {
    /// Writes a call of `llvm.nvvm.*`, given without its overload types.
    pub(super) fn nvvm(&mut self, value: Value<'m>, full_name: &str) -> Written<()> {
        let name = full_name.trim_start_matches("llvm.nvvm.");
        if KNOWN.iter().any(|pattern| fits(pattern, name)) {
            return self.known(value, full_name);
        }
        if let Some((ptx, effect)) = assembly::of(name) {
            return self.assembly(value, &ptx, effect);
        }
        if let Some(barrier) = name.strip_prefix("barrier.cta.") {
            return self.barrier(value, barrier);
        }
        if let Some(operation) = name.strip_prefix("atomic.") {
            return self.scoped_atomic(value, operation);
        }
        let float = match value.ty().shape() {
            Shape::Float => Some("f"),
            Shape::Double => Some("d"),
            _ => None,
        };
        match (name, float) {
            ("fabs", Some(letter)) => self.known(value, &format!("llvm.nvvm.fabs.{letter}")),
            ("fabs.ftz", Some("f")) => self.known(value, "llvm.nvvm.fabs.ftz.f"),
            ("ex2.approx", Some("f")) => self.known(value, "llvm.nvvm.ex2.approx.f"),
            ("ex2.approx.ftz", Some("f")) => self.known(value, "llvm.nvvm.ex2.approx.ftz.f"),
            (
                "move.i16" | "move.i32" | "move.i64" | "move.float" | "move.double" | "move.ptr",
                _,
            ) => self.forward(value),
            ("reflect", _) => self.known(value, "__nvvm_reflect"),
            _ if name.starts_with("shfl.sync.") => self.shuffle_with_predicate(value, name),
            _ if name.starts_with("shfl.") || name.starts_with("vote.") => refuse(
                format!("PTX has no `{full_name}` on sm_70 and later"),
                "use the intrinsic with `sync` and a mask",
            ),
            _ => refuse(format!("libNVVM's legacy dialect has no `{full_name}`"), "use inline PTX"),
        }
    }

    /// `llvm.nvvm.barrier.cta.*`.
    fn barrier(&mut self, value: Value<'m>, name: &str) -> Written<()> {
        let first = value.operand(0).unsigned() == Some(0);
        match name {
            "sync.aligned.all" if first => {
                let words = self.call_words(value)?;
                let call = self.declared_call("llvm.nvvm.barrier0", "void", &[]);
                self.line(format!("{call}{words}"));
                Ok(())
            }
            "sync.aligned.all" => self.known(value, "llvm.nvvm.barrier.n"),
            "sync.all" => self.known(value, "llvm.nvvm.barrier.sync"),
            "sync.count" => self.known(value, "llvm.nvvm.barrier.sync.cnt"),
            _ => refuse(
                format!("libNVVM's legacy dialect has no `llvm.nvvm.barrier.cta.{name}`"),
                "use inline PTX",
            ),
        }
    }

    /// `llvm.nvvm.atomic.*.gen.*`, whose names in LLVM 7 end in the type and the pointer to it.
    fn scoped_atomic(&mut self, value: Value<'m>, operation: &str) -> Written<()> {
        let pointer = value.operand(0);
        if pointer.ty().shape() != Shape::Pointer(0) {
            return refuse(
                "libNVVM has this intrinsic only for generic pointers",
                "cast the pointer, or use `atomicrmw`",
            );
        }
        let (ty, short) = (self.ty(value.ty())?, mangled(value.ty())?);
        let mut arguments = vec![self.pointer_argument(pointer, &ty)?];
        for argument in value.arguments().into_iter().skip(1) {
            arguments.push(self.argument(argument)?);
        }
        let call = self.declared_call(
            &format!("llvm.nvvm.atomic.{operation}.{short}.p0{short}"),
            &ty,
            &arguments,
        );
        self.define(value, &call);
        Ok(())
    }

    fn shuffle_with_predicate(&mut self, value: Value<'m>, name: &str) -> Written<()> {
        let parts: Vec<&str> = name.split('.').collect();
        let mode = parts.get(2).and_then(|mode| SHUFFLES.iter().position(|known| known == mode));
        let (Some(mode), Some(&ty)) = (mode, parts.get(3)) else {
            return refuse(
                format!("libNVVM's legacy dialect has no `llvm.nvvm.{name}`"),
                "use inline PTX",
            );
        };
        let mut arguments = Vec::new();
        for argument in value.arguments() {
            arguments.push(self.argument(argument)?);
        }
        if ty == "f32p" {
            let bits = self.step(value, "bits", &format!("bitcast {} to i32", arguments[1]));
            arguments[1] = Argument::new("i32", bits);
        }
        arguments.insert(1, Argument::new("i32", mode.to_string()));
        let call = self.declared_call("llvm.nvvm.shfl.sync.i32", "{ i32, i1 }", &arguments);
        if ty != "f32p" {
            self.define(value, &call);
            return Ok(());
        }
        let pair = self.step(value, "pair", &call);
        let moved = self.step(value, "moved", &format!("extractvalue {{ i32, i1 }} {pair}, 0"));
        let valid = self.step(value, "valid", &format!("extractvalue {{ i32, i1 }} {pair}, 1"));
        let moved = self.step(value, "value", &format!("bitcast i32 {moved} to float"));
        let first = self.step(
            value,
            "first",
            &format!("insertvalue {{ float, i1 }} undef, float {moved}, 0"),
        );
        self.define(value, &format!("insertvalue {{ float, i1 }} {first}, i1 {valid}, 1"));
        Ok(())
    }

    /// PTX assembly in place of a call. Assembly cannot take predicates as operands: an `i1` goes
    /// in as an `i32` that is 0 or 1, and comes out as one.
    fn assembly(&mut self, value: Value<'m>, ptx: &str, effect: Effect) -> Written<()> {
        let mut constraints = Vec::new();
        let (result, is_bit) = match value.ty().shape() {
            Shape::Void => ("void".to_owned(), false),
            Shape::Int(1) => ("i32".to_owned(), true),
            _ => (self.ty(value.ty())?, false),
        };
        if result != "void" {
            constraints.push(format!("={}", register(&result)?));
        }
        let mut arguments = Vec::new();
        for argument in value.arguments() {
            let mut typed = self.argument(argument)?;
            if typed.ty == "i1" {
                let bit = self.step(value, "bit", &format!("zext {typed} to i32"));
                typed = Argument::new("i32", bit);
            }
            constraints.push(if is_pointer(argument.ty()) {
                "l".to_owned()
            } else {
                register(&typed.ty)?.to_string()
            });
            arguments.push(typed.to_string());
        }
        if effect == Effect::Memory {
            constraints.push("~{memory}".to_owned());
        }
        let effects = if effect == Effect::Pure { "" } else { " sideeffect" };
        let mut words = self.call_words(value)?;
        if effect != Effect::Pure && !words.contains("convergent") {
            words.push_str(" convergent");
        }
        let text = format!(
            "call {result} asm{effects} \"{ptx}\", \"{}\"({}){words}",
            constraints.join(","),
            arguments.join(", ")
        );
        if is_bit {
            let number = self.step(value, "number", &text);
            self.define(value, &format!("icmp ne i32 {number}, 0"));
        } else {
            self.define(value, &text);
        }
        Ok(())
    }
}

/// The constraint letter of a type.
fn register(ty: &str) -> Written<char> {
    Ok(match ty {
        "i16" => 'h',
        "i32" => 'r',
        "i64" => 'l',
        "float" => 'f',
        "double" => 'd',
        _ => return refuse(format!("no PTX register holds `{ty}`"), "use 16, 32 or 64 bits"),
    })
}

/// Whether a name matches a pattern of [`KNOWN`].
fn fits(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('{') else { return pattern == name };
    let (Some(name), Some((choices, after))) = (name.strip_prefix(before), rest.split_once('}'))
    else {
        return false;
    };
    choices.split(',').any(|choice| name.strip_prefix(choice).is_some_and(|name| fits(after, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_their_names() {
        let known = |name: &str| KNOWN.iter().any(|pattern| fits(pattern, name));
        for name in [
            "add.rn.ftz.f",
            "d2f.rz",
            "d2f.rz.ftz",
            "read.ptx.sreg.tid.x",
            "read.ptx.sreg.envreg7",
            "f2ll.rz",
            "ui2f.rn",
        ] {
            assert!(known(name), "{name}");
        }
        for name in ["add.rn", "d2f", "read.ptx.sreg.tid", "add.rn.ftz.f.x", "redux.sync.add", ""] {
            assert!(!known(name), "{name}");
        }
    }
}
