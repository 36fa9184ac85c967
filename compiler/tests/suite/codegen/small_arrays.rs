//! Small arrays in local variables stay in registers, whatever their index.

use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::source::SourceMap;

/// The PTX of a kernel that reads element `i % length` of an array in a structure that a function takes by value.
fn ptx(element: &str, length: u32) -> String {
    let source = format!(
        "struct S {{ n: u32, a: [{element}; {length}] }}
         fn get(s: S, i: u32) -> {element} {{ return s.a[(i + s.n) % {length}]; }}
         kernel k(s: S, out: *mut {element}) {{ out[thread_idx.x] = get(s, thread_idx.x); }}"
    );
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let options = BuildOptions::default().with_backend(Backend::Nvptx);
    Session::new().ptx(&program, &options).expect("PTX").0.0
}

#[test]
fn elements_of_small_arrays_are_chosen_in_registers() {
    for (element, length) in [("u32", 2), ("*mut u64", 2), ("f32", 4), ("u16", 3), ("f64", 1)] {
        let text = ptx(element, length);
        assert!(!text.contains(".local"), "[{element}; {length}]: {text}");
    }
    // Larger arrays are in local memory.
    assert!(ptx("u32", 9).contains(".local"));
}
