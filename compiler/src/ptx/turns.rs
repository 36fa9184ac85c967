//! Turns of a warp's lanes in CUDA's device runtime.
//!
//! ptxas (CUDA 13.0) puts a `YIELD` into a loop with an atomic operation whose end it does not know, and at the start of a function
//! with one. At a `YIELD` the other lanes of the warp go on, also those that wait where a branch ends: behind the loop, the lanes that
//! ran it and those that did not are apart. Lanes of such a warp that launch at different places can then be in the device runtime at the
//! same time, where they wait for ever (a dump of an H200, driver 580.159.04: 9 lanes stood behind the `YIELD`, and 2 that launch at
//! different places were in the device runtime).
//!
//! So lanes that are together take turns with others of their warp. Where a kernel may reach both a `YIELD` and the device runtime,
//! calls of its functions go to functions with the same parameters. A kernel whose blocks have one thread needs none.
//!
//! ```text
//! .func (.param .b32 result) gridlet$turn$cudaLaunchDeviceV2(…)
//!     each lane tries to change the warp's word of `gridlet$turns` from 0 to the active lanes, until its own bit is set
//!     bar.warp.sync of the active lanes
//!     call cudaLaunchDeviceV2
//!     each lane clears its bit
//! ```
//!
//! Kernels that launch into the tail stream have turns already (`launch/cdp/turns.rs` in `gridlet-lang`), in the same way. The word holds
//! lanes, not their number: at the `YIELD` of the loop, lanes may also go on from `bar.warp.sync`, before their turn.
//!
//! The words are shared memory; a kernel's lanes clear that of their warp first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols;

use super::Ptx;
use super::reader::{Item, Kind, Module, renamed};

/// How the names of the device runtime's functions begin.
const RUNTIME: &str = "cuda";

/// Calls the device runtime in turns, in kernels that may reach one of the functions that yield; `None` if there are none, or if
/// this is not PTX as back ends write it.
pub(crate) fn with_turns(ptx: &Ptx, yielding: &[String]) -> Option<Ptx> {
    let of_lowering = |name: &str| symbol::in_ptx(&symbol::internal(name));
    // Those that the lowering of launches adds: what waits for a turn yields, and what records a lost launch: a program that loses
    // launches ends with an error.
    let added = of_lowering("gridlet.");
    let mut yielding = yielding.iter().filter(|name| !name.starts_with(&added)).peekable();
    // Most programs end here, without the PTX being read.
    if yielding.peek().is_none() || !ptx.0.contains(RUNTIME) {
        return None;
    }
    // Their kernels take turns already.
    let own_turns = of_lowering(symbols::TURNS);
    let module = Module::read(&ptx.0).ok()?;
    let items = || 0..module.items.len();
    let is = |at: usize, kind| module.items[at].kind == kind;
    let is_runtime =
        |at: usize| is(at, Kind::Declaration) && module.items[at].name.starts_with(RUNTIME);
    let yielding: BTreeSet<usize> = yielding.filter_map(|name| module.find(name)).collect();
    let kernels = items().filter(|at| is(*at, Kind::Entry)).map(|at| (at, called(&module, at)));
    let kernels: BTreeMap<usize, BTreeSet<usize>> = kernels.collect();
    let calls_runtime = |at: usize| module.uses(at).into_iter().any(is_runtime);
    let in_turns: BTreeSet<usize> = kernels
        .iter()
        .filter(|(kernel, _)| !has_one_thread(module.items[**kernel].head()))
        .map(|(_, called)| called)
        .filter(|called| !called.is_disjoint(&yielding))
        .filter(|called| !called.iter().any(|at| module.items[*at].text.contains(&own_turns)))
        .flat_map(|called| called.iter().copied().filter(|at| calls_runtime(*at)))
        .collect();
    let first = in_turns.first().copied()?;
    let runtime: BTreeSet<usize> =
        in_turns.iter().flat_map(|at| module.uses(*at)).filter(|at| is_runtime(*at)).collect();
    let runtime: Vec<&Item<'_>> = runtime.into_iter().map(|at| &module.items[at]).collect();
    let own: Vec<String> = runtime.iter().map(|item| own_name(item.name)).collect();
    let names = runtime.iter().map(|item| item.name).zip(own.iter().map(String::as_str)).collect();

    let clears = |at: usize| kernels.get(&at).is_some_and(|called| !called.is_disjoint(&in_turns));
    let words = items().find(|at| clears(*at)).map_or(first, |at| at.min(first));

    let mut text = String::with_capacity(ptx.0.len() + 8192);
    for (at, item) in module.items.iter().enumerate() {
        if at == words {
            text += WORDS;
        }
        if at == first {
            for function in &runtime {
                text += &in_turn(function)?;
            }
        }
        let code = match in_turns.contains(&at) {
            true => renamed(item.text, &names),
            false => item.text.to_owned(),
        };
        if clears(at) {
            let (head, body) = code.split_at(item.parts().0.len() + item.head().len());
            let (brace, body) = body.split_at(body.find('{')? + 1);
            text += head;
            text += brace;
            text += &clear();
            text += body;
        } else {
            text += &code;
        }
    }
    Some(Ptx(text + module.rest))
}

/// Whether the blocks of a kernel have one thread, by the directives behind its parameters (PTX ISA, "Performance-Tuning Directives").
fn has_one_thread(head: &str) -> bool {
    [".maxntid", ".reqntid"].into_iter().any(|directive| {
        let Some((_, behind)) = head.split_once(directive) else { return false };
        let sizes = behind.split('.').next().unwrap_or_default().split(',');
        sizes.into_iter().all(|size| size.trim() == "1")
    })
}

/// A kernel and the functions that it may call.
fn called(module: &Module<'_>, kernel: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([kernel]);
    let mut left = vec![kernel];
    while let Some(at) = left.pop() {
        // A kernel that is named is launched.
        let functions =
            module.uses(at).into_iter().filter(|at| module.items[*at].kind == Kind::Function);
        left.extend(functions.filter(|at| found.insert(*at)));
    }
    found
}

fn own_name(function: &str) -> String {
    format!("gridlet$turn${function}")
}

/// One word for each warp of the largest block.
const WORDS: &str = "\n.shared .align 4 .b8 gridlet$turns[128];\n";

/// The address of this warp's word.
const ADDRESS: &str = "\
\tmov.u32 \t%turn, %tid.z;
\tmov.u32 \t%other, %ntid.y;
\tmul.lo.s32 \t%turn, %turn, %other;
\tmov.u32 \t%other, %tid.y;
\tadd.s32 \t%turn, %turn, %other;
\tmov.u32 \t%other, %ntid.x;
\tmul.lo.s32 \t%turn, %turn, %other;
\tmov.u32 \t%other, %tid.x;
\tadd.s32 \t%turn, %turn, %other;
\tshr.u32 \t%turn, %turn, 5;
\tshl.b32 \t%turn, %turn, 2;
\tmov.u32 \t%other, gridlet$turns;
\tadd.s32 \t%turn, %turn, %other;
";

/// At the start of a kernel. All lanes of a warp write the same.
fn clear() -> String {
    format!(
        "\n\t{{\n\t.reg .b32 %turn;\n\t.reg .b32 %other;\n{ADDRESS}\tst.shared.u32 \t[%turn], 0;\n\tbar.warp.sync \t-1;\n\t}}\n"
    )
}

/// A function that calls one of the device runtime in turn.
fn in_turn(function: &Item<'_>) -> Option<String> {
    let head = function.head().trim_end_matches(';').trim_end();
    let head = head.strip_prefix(".extern").unwrap_or(head).trim_start();
    let (before, behind) = head.split_once(function.name)?;
    let result = match before.contains(".param") {
        true => Some(Parameter::read(before)?),
        false => None,
    };
    let list = behind.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')'));
    let list = list.unwrap_or_default().split(',').filter(|it| !it.trim().is_empty());
    let list = list.map(Parameter::read).collect::<Option<Vec<_>>>()?;
    let named = |stem: &str| {
        let list = list.iter().enumerate().map(|(at, it)| it.declaration(&format!("{stem}{at}")));
        list.collect::<Vec<_>>()
    };
    let mut text = String::from("\n.func ");
    if let Some(result) = &result {
        let _ = write!(text, "({}) ", result.declaration("result"));
    }
    let _ = writeln!(text, "{}(\n\t{}\n)\n{{", own_name(function.name), named("in").join(",\n\t"));
    text += "\t.reg .pred %waits;\n\t.reg .pred %taken;\n\t.reg .b32 %turn;\n\t.reg .b32 %other;\n\t.reg .b32 %lanes;\n\t.reg .b32 %own;\n";
    text += ADDRESS;
    text += TAKE;
    text += "\t{\n";
    let returned = result.as_ref().map(|result| result.declaration("returned"));
    for declaration in named("out").iter().chain(&returned) {
        let _ = writeln!(text, "\t{declaration};");
    }
    for (at, parameter) in list.iter().enumerate() {
        parameter.copy(&format!("in{at}"), &format!("out{at}"), &mut text);
    }
    let arguments: Vec<String> = (0..list.len()).map(|at| format!("out{at}")).collect();
    let returned = result.as_ref().map_or("", |_| "(returned), ");
    let _ = writeln!(text, "\tcall \t{returned}{}, ({});", function.name, arguments.join(", "));
    if let Some(result) = &result {
        result.copy("returned", "result", &mut text);
    }
    text += "\t}\n";
    text += GIVE;
    Some(text)
}

/// Behind [`ADDRESS`]: each lane waits for its bit. No branch stands around the loop, for at its `YIELD` the others would go on.
const TAKE: &str = "\
\tactivemask.b32 \t%lanes;
\tmov.u32 \t%own, %laneid;
\tshl.b32 \t%own, 1, %own;
$L__again:
\tatom.shared.cas.b32 \t%other, [%turn], 0, %lanes;
\tsetp.eq.u32 \t%taken, %other, 0;
\tselp.b32 \t%other, %lanes, %other, %taken;
\tand.b32 \t%other, %other, %own;
\tsetp.eq.u32 \t%waits, %other, 0;
\t@%waits bra \t$L__again;
\tbar.warp.sync \t%lanes;
\tmembar.cta;
";

/// The last of them leaves 0. They may return from the call one by one: ptxas removes a `bar.warp.sync` behind it.
const GIVE: &str = "\
\tmembar.cta;
\tnot.b32 \t%own, %own;
\tred.shared.and.b32 \t[%turn], %own;
\tret;
}
";

/// A parameter or a result.
struct Parameter<'p> {
    /// `.b64`, for example.
    ty: &'p str,
    /// Alignment and size of an array, in bytes.
    array: Option<(u32, u32)>,
}

impl<'p> Parameter<'p> {
    /// Reads `.param .b64 name` or `.param .align 4 .b8 name[12]`.
    fn read(text: &'p str) -> Option<Self> {
        let (_, behind) = text.split_once(".param")?;
        let words = behind.split([' ', '\t', '\n', '(', ')']).filter(|word| !word.is_empty());
        match words.collect::<Vec<_>>().as_slice() {
            [".align", alignment, ty, array] => {
                let (_, size) = array.split_once('[')?;
                let array = (alignment.parse().ok()?, size.strip_suffix(']')?.parse().ok()?);
                Some(Parameter { ty, array: Some(array) })
            }
            [ty, _] => Some(Parameter { ty, array: None }),
            _ => None,
        }
    }

    fn declaration(&self, name: &str) -> String {
        match self.array {
            Some((alignment, size)) => {
                format!(".param .align {alignment} {} {name}[{size}]", self.ty)
            }
            None => format!(".param {} {name}", self.ty),
        }
    }

    /// Copies the value of one parameter to another like it.
    fn copy(&self, from: &str, to: &str, text: &mut String) {
        let (ty, parts) = match self.array {
            // Dimensions are arrays of words.
            Some((alignment, size)) if alignment >= 4 && size.is_multiple_of(4) => {
                (".b32", size / 4)
            }
            Some((_, size)) => (".b8", size),
            None => (self.ty, 1),
        };
        let register = if ty == ".b8" { ".b16" } else { ty };
        let step = if ty == ".b8" { 1 } else { 4 };
        for at in (0..parts).map(|part| part * step) {
            let _ = writeln!(
                text,
                "\t{{\n\t.reg {register} %part;\n\tld.param{ty} \t%part, [{from}+{at}];\n\tst.param{ty} \t[{to}+{at}], %part;\n\t}}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels that launch `child` with a function, one of which yields, and one with other calls of the device runtime.
    const MODULE: &str = "\
.version 8.5
.target sm_90
.address_size 64

.extern .func (.param .b64 func_retval0) cudaGetParameterBufferV2(
	.param .b64 cudaGetParameterBufferV2_param_0,
	.param .align 4 .b8 cudaGetParameterBufferV2_param_1[12],
	.param .b32 cudaGetParameterBufferV2_param_2
)
;
.extern .func  (.param .b32 func_retval0) cudaDeviceSynchronize
()
;
.func  (.param .b32 func_retval0) spin(
	.param .b64 spin_param_0
)
{
	ret;
}
.func own_$_gridlet_$_record_lost_launch()
{
	ret;
}
.func start()
;
.visible .entry early()
{
	call.uni start;
	ret;
}
.visible .entry child(
	.param .u64 child_param_0
)
.maxntid 32
{
	call.uni spin;
	ret;
}
.func start()
{
	mov.u64 	%rd1, child;
	call.uni (retval0), cudaGetParameterBufferV2, (param0, param1, param2);
	ret;
}
.visible .entry parent(
	.param .u64 parent_param_0
)
{
	call.uni own_$_gridlet_$_record_lost_launch;
	call.uni spin;
	call.uni start;
	ret;
}
.visible .entry other()
{
	call.uni (retval0), cudaDeviceSynchronize, ();
	ret;
}
";

    fn turned(module: &str, yielding: &[&str]) -> Option<String> {
        let yielding: Vec<String> = yielding.iter().map(|name| (*name).to_owned()).collect();
        with_turns(&Ptx(module.into()), &yielding).map(|ptx| ptx.0)
    }

    #[test]
    fn functions_of_kernels_that_yield_take_turns() {
        insta::assert_snapshot!(turned(MODULE, &["spin"]).unwrap());
        assert_eq!(turned(MODULE, &["parent"]), turned(MODULE, &["spin"]));
        // A function without parameters.
        let text = turned(MODULE, &["other"]).unwrap();
        assert!(
            text.contains(".func (.param .b32 result) gridlet$turn$cudaDeviceSynchronize(\n\t\n)")
        );
        assert!(text.contains("(returned), cudaDeviceSynchronize, ();"), "{text}");
        assert!(text.contains("call.uni (retval0), cudaGetParameterBufferV2"), "{text}");
    }

    #[test]
    fn others_stay() {
        // A kernel that does not launch, though its launcher names it; a lost launch; and what is no function.
        for name in ["child", "own_$_gridlet_$_record_lost_launch", "cudaStreamDestroy"] {
            assert_eq!(turned(MODULE, &[name]), None, "{name}");
        }
        // A kernel of one thread.
        let bounds = [
            (".maxntid 1", true),
            (".maxntid 1, 1, 1\n.minnctapersm 2", true),
            (".minnctapersm 1\n.reqntid 1,1", true),
            (".maxntid 1, 2", false),
            (".minnctapersm 1", false),
        ];
        for (bound, has_one_thread) in bounds {
            let parent = ".u64 parent_param_0\n)\n";
            let module = MODULE.replace(parent, &format!("{parent}{bound}\n"));
            assert_eq!(turned(&module, &["spin"]).is_none(), has_one_thread, "{bound}");
        }
        // The kernel has turns.
        let module =
            MODULE.replace("mov.u64 \t%rd1, child;", "mov.u64 \t%rd1, own_$_gridlet_$_turns;");
        assert_eq!(turned(&module, &["spin"]), None);
        assert_eq!(turned("no module", &["spin"]), None);
    }
}
