//! Loads of both parts of an `f16x2` or a `bf16x2` for one operation on them.

use super::loops::ptx;

/// How many loads of 16, of twice 16 and of 32 bits from global memory a kernel has that stores `value`.
fn loads(pair: &str, value: &str) -> [usize; 3] {
    let text = ptx(&format!(
        "fn low(p: *mut {pair}) -> {element} {{ let x = p[2].x; p[1].y = x; return x; }}
         kernel k(p: *mut {pair}, i: u32, to: *mut {pair}) {{ to[i] = {pair}({value}); }}",
        element = pair.trim_end_matches("x2"),
    ));
    ["ld.global.b16", "ld.global.v2.b16", "ld.global.b32"].map(|load| text.matches(load).count())
}

#[test]
fn both_parts_are_one_load() {
    for pair in ["f16x2", "bf16x2"] {
        assert_eq!(loads(pair, "p[1].x * p[2].x, p[1].y * p[2].y"), [0, 0, 2], "{pair}");
        // At the same place, however it is computed.
        let value = "fma(p[i + 7].x, p[1].x, p[i].x), fma(p[i + 7].y, p[1].y, p[i].y)";
        assert_eq!(loads(pair, value), [0, 0, 3], "{pair}");
    }
}

#[test]
fn other_parts_are_loaded_alone() {
    for pair in ["f16x2", "bf16x2"] {
        // LLVM joins neighbours that nothing but conversions use.
        let swapped = if pair == "bf16x2" { [0, 1, 1] } else { [2, 0, 1] };
        let value = "p[1].y * p[2].x, p[1].x * p[2].y";
        assert_eq!(loads(pair, value), swapped, "{pair}: swapped");
        assert_eq!(loads(pair, "p[1].x * p[3].x, p[2].y * p[4].y"), [4, 0, 0], "{pair}: places");
        // The call writes `p[1].y` after `p[1].x` is read.
        assert_eq!(loads(pair, "p[1].x * low(p), p[1].y * p[3].y"), [3, 0, 0], "{pair}: written");
    }
}
