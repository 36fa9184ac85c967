//! Which functions of a program code generators for GPUs must not inline.

use super::cdp::symbols::{RuntimeFunction, runtime_function};
use super::{resident, status};
use crate::ir::graph::CallGraph;
use crate::ir::{Function, InstKind, Module, Operand, Role, symbol};

/// So many more launches may be in the code because one function is inlined in several places.
const MOST_COPIES: usize = 2;

/// By function of a lowered module, whether it is one of the program that only launches, and whose launches would be copied to many places
/// if it were inlined. The code of a launch is long, so copies take long to compile, and a call takes little of a launch's time. Functions
/// that also do other work are not among them: they may be called often and seldom launch. Nor are those that get a pointer to a variable
/// of their caller, which can be in registers after inlining.
pub fn copies_launches(module: &Module) -> Vec<bool> {
    let count = module.functions.len();
    let added = module.functions.iter().map(|function| Added::function(&function.name));
    let added: Vec<Option<Added>> = added.collect();
    let externs: Vec<Added> =
        module.externs.iter().map(|item| Added::of(runtime_function(&item.name))).collect();
    let mut calls = vec![0usize; count];
    let mut gets_local = vec![false; count];
    for function in &module.functions {
        for inst in &function.instructions {
            if let InstKind::Call { function: callee, arguments } = &inst.kind {
                calls[callee.index()] += 1;
                gets_local[callee.index()] |= arguments.iter().any(|it| is_local(function, it));
            }
        }
    }
    let mut copies = vec![false; count];
    // What each function does, with the functions that are inlined there.
    let mut contents = vec![Content::default(); count];
    for at in CallGraph::of(module).callees_first() {
        let function = &module.functions[at];
        let mut own = Content::default();
        for inst in &function.instructions {
            let more = match &inst.kind {
                InstKind::Load(pointer) => Content::working(!is_local(function, pointer)),
                InstKind::Builtin { builtin, .. } => {
                    Content::working(!builtin.properties().effect.is_pure())
                }
                InstKind::CallExtern { function, .. } => externs[function.index()].content(),
                InstKind::Call { function, .. } => match added[function.index()] {
                    Some(added) => added.content(),
                    None if copies[function.index()] => Content::default(),
                    None => contents[function.index()],
                },
                _ => Content::default(),
            };
            own.launches = own.launches.saturating_add(more.launches);
            own.works |= more.works;
        }
        contents[at] = own;
        let more = own.launches.saturating_mul(calls[at].saturating_sub(1));
        let only_launches = function.role == Role::Device && added[at].is_none() && !own.works;
        copies[at] = only_launches && more > MOST_COPIES && !gets_local[at];
    }
    copies
}

/// What a call of a function means that is not the program's own.
#[derive(Clone, Copy)]
enum Added {
    Launch,
    /// A part of a launch.
    Part,
    Other,
}

impl Added {
    /// `None` if a function is the program's own.
    fn function(name: &str) -> Option<Added> {
        let is_part = resident::prepares_launch(name) || status::stays_out_of_line(name);
        match name {
            resident::SUBMIT => Some(Added::Launch),
            _ if is_part => Some(Added::Part),
            // Names in the language never contain a dot.
            _ if name.starts_with("gridlet.") => {
                Some(Added::of(runtime_function(&symbol::internal(name))))
            }
            _ => None,
        }
    }

    fn of(function: Option<RuntimeFunction>) -> Added {
        match function {
            Some(RuntimeFunction::LaunchDevice) => Added::Launch,
            Some(RuntimeFunction::GetParameterBuffer) => Added::Part,
            _ => Added::Other,
        }
    }

    fn content(self) -> Content {
        let launches = usize::from(matches!(self, Added::Launch));
        Content { launches, works: matches!(self, Added::Other) }
    }
}

#[derive(Clone, Copy, Default)]
struct Content {
    /// The launches in a function's code, which grow exponentially with functions that call others twice.
    launches: usize,
    /// Whether it reads memory or acts otherwise.
    works: bool,
}

impl Content {
    fn working(works: bool) -> Content {
        Content { launches: 0, works }
    }
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
            let functions = module.functions.iter().zip(copies_launches(&module));
            let apart = functions.filter(|(_, copies)| *copies);
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
