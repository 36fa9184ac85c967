//! The scopes of atomic operations and fences (LLVM 22 User Guide for NVPTX, "Synchronization scopes").

use inkwell::llvm_sys::LLVMAtomicOrdering as Ordering;

use super::legacy::llvm::Value;

/// The threads that see an atomic operation or a fence as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Thread,
    Block,
    Cluster,
    Device,
    System,
}

impl Scope {
    /// The scope of an atomic instruction, or its name if NVPTX has none of that name. LLVM's C interface returns a number whose name
    /// only the context knows, so the name is read from the printed instruction.
    pub(crate) fn of(value: Value<'_>) -> Result<Scope, String> {
        let printed = value.print();
        let Some((_, rest)) = printed.split_once("syncscope(\"") else { return Ok(Scope::System) };
        match rest.split('"').next().unwrap_or_default() {
            "singlethread" => Ok(Scope::Thread),
            "block" => Ok(Scope::Block),
            "cluster" => Ok(Scope::Cluster),
            "device" => Ok(Scope::Device),
            other => Err(other.to_owned()),
        }
    }

    /// What to do about a scope that NVPTX lacks.
    pub(crate) const INSTEAD: &str = "use `block`, `cluster`, `device`, or none for the system";

    /// The suffix of `llvm.nvvm.membar`.
    pub(crate) fn membar(self) -> &'static str {
        match self {
            Scope::Thread | Scope::Block => "cta",
            Scope::Cluster | Scope::Device => "gl",
            Scope::System => "sys",
        }
    }
}

/// Whether an order asks for a fence before and after a relaxed access. `reads` tells whether a sequentially consistent access also
/// needs one after it.
pub(crate) fn fences(ordering: Ordering, reads: bool) -> (bool, bool) {
    use Ordering::*;
    let before = matches!(
        ordering,
        LLVMAtomicOrderingRelease
            | LLVMAtomicOrderingAcquireRelease
            | LLVMAtomicOrderingSequentiallyConsistent
    );
    let after = match ordering {
        LLVMAtomicOrderingAcquire | LLVMAtomicOrderingAcquireRelease => true,
        LLVMAtomicOrderingSequentiallyConsistent => reads,
        _ => false,
    };
    (before, after)
}

/// The stronger of a `cmpxchg`'s two orderings.
pub(crate) fn stronger(success: Ordering, failure: Ordering) -> Ordering {
    use Ordering::*;
    match (success, failure) {
        (LLVMAtomicOrderingSequentiallyConsistent, _)
        | (_, LLVMAtomicOrderingSequentiallyConsistent) => LLVMAtomicOrderingSequentiallyConsistent,
        (LLVMAtomicOrderingRelease, LLVMAtomicOrderingAcquire) => LLVMAtomicOrderingAcquireRelease,
        (LLVMAtomicOrderingMonotonic, failure) => failure,
        (success, _) => success,
    }
}
