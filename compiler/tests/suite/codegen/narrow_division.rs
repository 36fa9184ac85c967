//! 64-bit divisions of small numbers have 32 bits.

use gridlet::compile::{self, BuildOptions};
use gridlet::source::SourceMap;

/// The number of 64-bit and of 32-bit divisions in the NVVM IR of an expression of `z: u64`, `y: i64` and `n: u32`.
fn divisions(expression: &str) -> (usize, usize) {
    let source = format!(
        "kernel k(out: *mut u64, z: u64, y: i64, n: u32) {{ *out = ({expression}) as u64; }}"
    );
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let text = compile::nvvm(&program, &BuildOptions::default()).expect("NVVM IR");
    let text = String::from_utf8_lossy(&text.bytes);
    let count = |bits: u32| {
        ["udiv", "urem", "sdiv", "srem"]
            .iter()
            .map(|name| text.matches(&format!(" {name} i{bits} ")).count())
            .sum()
    };
    (count(64), count(32))
}

#[test]
fn divisions_of_small_numbers_have_32_bits() {
    for (expression, wide, narrow) in [
        ("n as u64 / 10", 0, 1),
        ("n as u64 % (n | 1) as u64", 0, 1),
        ("n as i64 / 10", 0, 1),
        ("(z & 0xffff_ffff) / 7", 0, 1),
        ("(z >> 32) / 7", 0, 1),
        ("(y & 255) % 3", 0, 1),
        // Only the second one has small operands: the result of the first is below 20.
        ("(19u64 % (z | 1)) % 3", 1, 1),
        ("(z % 1000) / 7", 1, 1),
        ("z / 10", 1, 0),
        ("(z & 0x1_ffff_ffff) / 7", 1, 0),
        ("(z & 255) / 0x1_0000_0000", 1, 0),
        // These may be negative.
        ("y % 3", 1, 0),
        ("(y % 3) % 5", 2, 0),
        ("n as i32 as i64 / 10", 1, 0),
    ] {
        assert_eq!(divisions(expression), (wide, narrow), "64 and 32 bits in {expression}");
    }
}
