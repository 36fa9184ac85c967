//! Calls that make ptxas keep the lanes that wait in deep nests of branches.
//!
//! Where a branch of diverging lanes ends, they wait for each other in one of 12 convergence barriers; a function that is not inlined
//! often has only 6. In a nest that needs more, ptxas (CUDA 13.0, all architectures) keeps other barriers in registers, but swaps them
//! where lanes already wait, which are then lost (`link/barriers.rs` finds that in machine code).
//! ptxas does save a barrier before lanes wait in it if a call within its region changes the barrier. So the innermost
//! branches of such nests get a call of a function that uses 6 barriers. It never happens, because no lane has an empty mask:
//!
//! ```text
//!     mov.u32 %deep_lane, %lanemask_eq;
//!     setp.eq.u32 %deep, %deep_lane, 0;
//!     @%deep call gridlet$deep;
//! ```
//!
//! The regions are those between a branch and its immediate post-dominator; branches with the same one share a barrier.
//!
//! It does not help where a jump leaves many regions at once: ptxas keeps the barrier of each region that a jump leaves in place.

mod regions;

use std::fmt::Write as _;

use super::Ptx;
use super::blocks::Blocks;
use super::reader::{Item, Module};
use regions::Regions;

/// Regions at a place that may lack a call: fewer than the barriers of a function, less those that ptxas adds for warp operations and
/// chains of conditions.
const MAX_WITHOUT_CALL: usize = 2;

/// Adds the calls; `None` if no branches are nested.
pub(crate) fn with_calls(ptx: &Ptx) -> Option<Ptx> {
    let module = Module::read(&ptx.0).ok()?;
    let mut text = String::with_capacity(ptx.0.len() + 4096);
    let mut has_calls = false;
    for item in &module.items {
        if !item.is_code() {
            text += item.text;
            if item.parts().1.starts_with(".address_size") {
                text += &deep_function();
            }
            continue;
        }
        let lines: Vec<&str> = item.text.split_inclusive('\n').collect();
        let Blocks { successors, places, .. } = Blocks::read(&lines);
        let mut places = Regions::of(&successors).calls(MAX_WITHOUT_CALL, &places);
        places.sort_unstable();
        has_calls |= !places.is_empty();
        let mut places = places.into_iter().peekable();
        for (at, line) in lines.iter().enumerate() {
            if places.next_if_eq(&at).is_some() {
                text += CALL;
            }
            text += line;
        }
    }
    has_calls.then(|| Ptx(text + module.rest))
}

/// Those of the functions `names` with more nested regions than a kernel has barriers.
pub(crate) fn deep_among(ptx: &Ptx, names: Vec<String>) -> Vec<String> {
    const BARRIERS: usize = 12;
    let Ok(module) = Module::read(&ptx.0) else { return vec![] };
    let is_deep = |item: &Item<'_>| {
        let lines: Vec<&str> = item.text.split_inclusive('\n').collect();
        Regions::of(&Blocks::read(&lines).successors).deepest() > BARRIERS
    };
    let mut deep = names;
    deep.retain(|name| module.find(name).is_some_and(|at| is_deep(&module.items[at])));
    deep
}

const CALL: &str = "\
\t{
\t.reg .b32 %deep_lane;
\t.reg .pred %deep;
\tmov.u32 \t%deep_lane, %lanemask_eq;
\tsetp.eq.u32 \t%deep, %deep_lane, 0;
\t@%deep call gridlet$deep;
\t}
";

/// The function that is called. ptxas can neither inline its branches nor replace them by conditional instructions.
fn deep_function() -> String {
    const LEVELS: usize = 6;
    let mut text = String::from(
        "\n\n.func gridlet$deep()\n{\n\t.reg .b32 %r<2>;\n\t.reg .pred %p<1>;\n\tmov.u32 \t%r0, %laneid;\n",
    );
    for level in 0..LEVELS {
        let _ = writeln!(
            text,
            "\tmov.u32 \t%r1, %clock;\n\tsetp.eq.u32 \t%p0, %r1, %r0;\n\t@%p0 bra \t$L__deep_{level};"
        );
    }
    for level in (0..LEVELS).rev() {
        let _ =
            writeln!(text, "\tmov.u32 \t%r1, %clock;\n\tnanosleep.u32 \t%r1;\n$L__deep_{level}:");
    }
    text + "\tret;\n}"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Branches in each other, with code behind each.
    fn nest(levels: usize) -> Ptx {
        let mut text = String::from(
            ".version 8.0\n.address_size 64\n\n.visible .entry k(\n)\n{\n\t.reg .pred %p<2>;\n",
        );
        for level in 0..levels {
            text += &format!("\t@%p1 bra \t$L__BB0_{level};\n\tst.global.b32 [%rd1], {level};\n");
        }
        for level in (0..levels).rev() {
            text += &format!("\tbar.warp.sync \t-1;\n$L__BB0_{level}:\n");
        }
        Ptx(text + "\tret;\n}\n")
    }

    #[test]
    fn the_innermost_branch_gets_a_call() {
        let Some(Ptx(text)) = with_calls(&nest(4)) else { panic!("no call") };
        assert_eq!(text.matches("call gridlet$deep;").count(), 1);
        let (before, behind) = text.split_once(CALL).unwrap();
        assert!(before.ends_with("bra \t$L__BB0_3;\n"), "{before}");
        assert!(behind.starts_with("\tst.global.b32 [%rd1], 3;"), "{behind}");
        assert!(before.contains(&deep_function()));
    }

    #[test]
    fn nests_of_more_than_twelve_branches_are_deep() {
        let deep = |levels| deep_among(&nest(levels), vec!["k".into(), "other".into()]);
        assert!(deep(12).is_empty());
        assert_eq!(deep(13), ["k"]);
    }

    #[test]
    fn flat_code_stays() {
        assert_eq!(with_calls(&nest(MAX_WITHOUT_CALL)), None);
        // One branch with several ways, twice.
        let text = ".address_size 64\n.func f(\n)\n{\n\tts: .branchtargets\n\t\t$L_a,\n\t\t$L_b;\n\tbrx.idx %r1, ts;\n\
                    $L_a:\n\tbra.uni $L_c;\n$L_b:\n\tbra.uni $L_c;\n$L_c:\n\tret;\n}\n";
        assert_eq!(with_calls(&Ptx(text.into())), None);
    }
}
