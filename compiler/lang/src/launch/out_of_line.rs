//! Which functions code generators for GPUs must not inline.

use super::{cdp, resident, status};
use crate::ir::graph::CallGraph;
use crate::ir::{Function, Inst, InstKind, Module, Operand, Role};

/// So many more launches may be in the code because one function is inlined in several places.
const MOST_COPIES: usize = 2;

/// Whether a function that a strategy adds must not be inlined, because it is called seldom or in many places.
pub fn stays_out_of_line(function: &str) -> bool {
    status::stays_out_of_line(function)
        || cdp::stays_out_of_line(function)
        || resident::stays_out_of_line(function)
}

/// By function of a lowered module, whether it must not be inlined: those that a strategy adds, and those of the program that only launch
/// and whose launches would be copied to many places. The code of a launch is long, so copies take long to compile, and a call takes little
/// of a launch's time. Functions that also do other work stay inline: they may be called often and seldom launch. So do those that get a
/// pointer to a variable of their caller, which can then be in registers.
pub fn out_of_line(module: &Module) -> Vec<bool> {
    let mut stays: Vec<bool> =
        module.functions.iter().map(|function| stays_out_of_line(&function.name)).collect();
    let mut calls = vec![0usize; stays.len()];
    let mut gets_local = vec![false; stays.len()];
    for function in &module.functions {
        for inst in &function.instructions {
            if let InstKind::Call { function: callee, arguments } = &inst.kind {
                calls[callee.index()] += 1;
                gets_local[callee.index()] |= arguments.iter().any(|it| is_local(function, it));
            }
        }
    }
    let mut contents = vec![Content::default(); stays.len()];
    for at in CallGraph::of(module).callees_first() {
        let function = &module.functions[at];
        let mut own = Content::default();
        for inst in &function.instructions {
            let more = content(module, function, inst, &stays, &contents);
            own.launches = own.launches.saturating_add(more.launches);
            own.works |= more.works;
        }
        contents[at] = own;
        let copies = own.launches.saturating_mul(calls[at].saturating_sub(1));
        let only_launches =
            function.role == Role::Device && !is_added(&function.name) && !own.works;
        stays[at] |= only_launches && copies > MOST_COPIES && !gets_local[at];
    }
    stays
}

/// What a function does, with the functions that are inlined there.
#[derive(Clone, Copy, Default)]
struct Content {
    /// The launches in its code, which grow exponentially with functions that call others twice.
    launches: usize,
    /// Whether it reads memory or acts otherwise.
    works: bool,
}

fn content(
    module: &Module,
    function: &Function,
    inst: &Inst,
    stays: &[bool],
    contents: &[Content],
) -> Content {
    let launch = Content { launches: 1, works: false };
    let works = |works| Content { launches: 0, works };
    match &inst.kind {
        InstKind::Load(pointer) => works(!is_local(function, pointer)),
        InstKind::Builtin { builtin, .. } => works(!builtin.properties().effect.is_pure()),
        InstKind::CallExtern { function: callee, .. } => {
            let name = &module.externs[callee.index()].name;
            match cdp::symbols::launches(name) {
                true => launch,
                false => works(!cdp::symbols::prepares_launch(name)),
            }
        }
        InstKind::Call { function: callee, .. } => {
            let name = &module.function(*callee).name;
            let prepares = || {
                cdp::symbols::prepares_launch(name)
                    || resident::prepares_launch(name)
                    || status::stays_out_of_line(name)
            };
            match name == resident::SUBMIT || cdp::symbols::launches(name) {
                true => launch,
                false if is_added(name) => works(!prepares()),
                false if stays[callee.index()] => Content::default(),
                false => contents[callee.index()],
            }
        }
        _ => Content::default(),
    }
}

/// Whether a strategy has added a function with that name.
fn is_added(name: &str) -> bool {
    name.starts_with("gridlet.")
}

/// Whether a value is the address of a local variable or of a part of one.
fn is_local(function: &Function, value: &Operand) -> bool {
    let mut value = value;
    loop {
        let Operand::Inst(id) = value else { return matches!(value, Operand::Slot(_)) };
        value = match &function.instructions[id.index()].kind {
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. } => base,
            InstKind::Cast(pointer) => pointer,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::CudaArch;
    use crate::launch::{LaunchOptions, LaunchStrategy};
    use crate::program::check;
    use crate::source::SourceMap;

    /// The functions of a program that are not inlined, with both strategies.
    fn apart(source: &str) -> Vec<String> {
        let program = check(SourceMap::single("test.grid", source)).unwrap();
        let [cdp, resident] = [LaunchStrategy::Cdp, LaunchStrategy::Resident].map(|strategy| {
            let options = LaunchOptions::for_arch(strategy, CudaArch::DEFAULT);
            let module = program.lower(&options).unwrap();
            let functions = module.functions.iter().zip(out_of_line(&module));
            let apart = functions.filter(|(function, stays)| *stays && !is_added(&function.name));
            apart.map(|(function, _)| function.name.clone()).collect::<Vec<_>>()
        });
        assert_eq!(cdp, resident);
        cdp
    }

    /// A program whose root calls `f` with `argument` so many times.
    fn calling(functions: &str, argument: &str, calls: usize) -> String {
        let calls = format!("f(data, {argument});").repeat(calls);
        format!(
            "kernel child(data: *mut u32, n: u32) {{ data[n] = n; }}
             {functions}
             kernel root(data: *mut u32, n: u32) {{ let mut local = n; local += 1; {calls} }}"
        )
    }

    const ONE_LAUNCH: &str =
        "fn f(data: *mut u32, n: u32) { if n > 1 { launch child<<<1, 32>>>(data, n / 2); } }";

    #[test]
    fn launches_that_would_be_copied_often_stay_in_their_function() {
        assert_eq!(apart(&calling(ONE_LAUNCH, "n", 3)), [""; 0]);
        assert_eq!(apart(&calling(ONE_LAUNCH, "n", 4)), ["f"]);
        // With the launches of what is inlined there, but not of what is not.
        let nested = "fn g(data: *mut u32, n: u32) { launch child<<<1, 32>>>(data, n); launch child<<<1, 64>>>(data, n); }
                      fn f(data: *mut u32, n: u32) { launch child<<<1, 32>>>(data, n); g(data, n); }";
        assert_eq!(apart(&calling(nested, "n", 2)), ["f"]);
        let both = nested.replace("g(data, n); }", "g(data, n); g(data, n); g(data, n); }");
        assert_eq!(apart(&calling(&both, "n", 2)), ["g"]);
    }

    #[test]
    fn functions_that_also_work_or_get_local_variables_are_inlined() {
        for work in [
            "if data[n] == 0 { return; }",
            "if atomic_sub(data, 1) != 1 { return; }",
            "sync_threads();",
        ] {
            let source = ONE_LAUNCH.replace("{ if n", &format!("{{ {work} if n"));
            assert_eq!(apart(&calling(&source, "n", 4)), [""; 0], "{work}");
        }
        let called = "fn first(data: *mut u32) -> u32 { return data[0]; }
                      fn f(data: *mut u32, n: u32) { launch child<<<1, first(data)>>>(data, n); }";
        assert_eq!(apart(&calling(called, "n", 4)), [""; 0]);
        let pointed =
            "fn f(data: *mut u32, n: *mut u32) { launch child<<<1, 32>>>(data, 1); *n = 1; }";
        assert_eq!(apart(&calling(pointed, "&local", 4)), [""; 0]);
        assert_eq!(apart(&calling(pointed, "data", 4)), ["f"]);
    }

    #[test]
    fn functions_that_call_each_other_twice_are_counted() {
        let mut functions = ONE_LAUNCH
            .replace("{ if n", "{ if data[n] == 0 { return; } if n")
            .replace("fn f", "fn f0");
        for at in 1..70 {
            functions += &format!(
                "fn f{at}(data: *mut u32, n: u32) {{ f{0}(data, n); f{0}(data, n); }}",
                at - 1
            );
        }
        functions += "fn f(data: *mut u32, n: u32) { f69(data, n); }";
        assert_eq!(apart(&calling(&functions, "n", 4)), [""; 0]);
    }
}
