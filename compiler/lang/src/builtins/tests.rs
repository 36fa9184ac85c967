//! Consistency rules between the columns of the table.

use std::collections::BTreeSet;

use super::*;
use crate::program::check;
use crate::source::SourceMap;

#[test]
fn no_two_built_ins_have_one_name() {
    let names: BTreeSet<&str> = Builtin::ALL.iter().map(|builtin| builtin.name()).collect();
    assert_eq!(names.len(), Builtin::ALL.len());
}

#[test]
fn a_row_with_a_t_defines_it() {
    use TypePattern::{ConstPointer, MutPointer, T};
    for builtin in Builtin::ALL {
        let row = builtin.properties();
        let has_t = row.arguments.iter().any(|ty| matches!(ty, T | MutPointer | ConstPointer));
        let is_inferred = !matches!(row.types, Types::None | Types::Named);
        assert_eq!(has_t, is_inferred, "the arguments of `{}`", builtin.name());
        assert!(row.result != T || row.types != Types::None, "the value of `{}`", builtin.name());
    }
}

#[test]
fn atomic_accesses_begin_with_their_pointer() {
    for builtin in Builtin::ALL {
        let row = builtin.properties();
        let Memory::Atomic(access) = row.memory else { continue };
        let pointer = match access {
            Access::Load => TypePattern::ConstPointer,
            Access::Store | Access::Update => TypePattern::MutPointer,
        };
        assert_eq!(row.arguments[0], pointer, "`{}`", builtin.name());
    }
}

#[test]
fn pure_operations_touch_and_wait_for_nothing() {
    for builtin in Builtin::ALL {
        let row = builtin.properties();
        if row.effect.is_pure() {
            assert_eq!(
                (row.waits, row.memory),
                (WaitsFor::No, Memory::None),
                "`{}`",
                builtin.name()
            );
        }
    }
}

#[test]
fn constants_are_computed() {
    for builtin in Builtin::ALL {
        let row = builtin.properties();
        if row.effect != Effect::Constant || row.lowering == Lowering::Checker {
            continue;
        }
        let call = format!("{}({})", builtin.name(), vec!["1u32"; row.arguments.len()].join(", "));
        let text = format!("const C: u32 = {call};\nkernel k(p: *mut u32) {{ *p = C; }}\n");
        assert!(check(SourceMap::single("a.grid", text)).is_ok(), "{call} is no constant");
    }
}
