//! What LLVM's back end makes of integer arithmetic.

use super::loops::ptx;

/// The sum of four products of the bytes that `left` and `right` read, as `dp4a` in a kernel with one pair of arguments of each type.
fn products(types: [&str; 2], sum: &str) -> String {
    let [a, b] = types;
    ptx(&format!(
        "kernel k(a: *const {a}, b: *const {b}, to: *mut i32) {{
             let i = thread_idx.x;
             let x = a[i];
             let y = b[i];
             to[i] = to[i] + {sum};
         }}"
    ))
}

#[test]
fn sums_of_products_of_bytes_are_one_instruction() {
    let all = "x.z as i32 * y.z as i32 + y.w as i32 * x.w as i32 + x.x as i32 * y.x as i32 + x.y as i32 * y.y as i32";
    let mixed = ["dp4a.s32.u32", "dp4a.u32.s32"];
    for (types, instructions) in [
        (["i8x4", "i8x4"], ["dp4a.s32.s32"].as_slice()),
        (["u8x4", "u8x4"], &["dp4a.u32.u32"]),
        (["i8x4", "u8x4"], &mixed),
        (["u8x4", "i8x4"], &mixed),
    ] {
        let text = products(types, all);
        let count: usize = instructions.iter().map(|it| text.matches(it).count()).sum();
        assert_eq!(count, 1, "{types:?}\n{text}");
        assert!(!text.contains("mad.lo") && !text.contains("mul.lo"), "{types:?}\n{text}");
    }
    // Bytes that a program takes from words itself.
    let words = "((x & 255) * (y & 255) + (x >> 8 & 255) * (y >> 8 & 255)
        + (x >> 16 & 255) * (y >> 16 & 255) + (x >> 24) * (y >> 24)) as i32";
    let text = products(["u32", "u32"], words);
    assert_eq!(text.matches("dp4a.u32.u32").count(), 1, "{text}");
}

#[test]
fn other_sums_of_products_stay() {
    let three = "x.x as i32 * y.x as i32 + x.y as i32 * y.y as i32 + x.z as i32 * y.z as i32";
    let crossed = "x.x as i32 * y.y as i32 + x.y as i32 * y.x as i32 + x.z as i32 * y.z as i32 + x.w as i32 * y.w as i32";
    let twice = "x.x as i32 * y.x as i32 + x.x as i32 * y.x as i32 + x.y as i32 * y.y as i32 + x.z as i32 * y.z as i32";
    let differences = "x.x as i32 * y.x as i32 - x.y as i32 * y.y as i32 + x.z as i32 * y.z as i32 + x.w as i32 * y.w as i32";
    for sum in [three, crossed, twice, differences] {
        let text = products(["i8x4", "i8x4"], sum);
        assert!(!text.contains("dp4a"), "{sum}\n{text}");
    }
    // What is left of a sum stays in it.
    let more = "x.x as i32 * y.x as i32 + 5 + x.y as i32 * y.y as i32 + i as i32
        + x.z as i32 * y.z as i32 + x.w as i32 * y.w as i32";
    let text = products(["i8x4", "i8x4"], more);
    assert_eq!(text.matches("dp4a.s32.s32").count(), 1, "{text}");
    assert!(text.contains(", 5;"), "{text}");
}

/// Both in 32 bits where the numbers are that small.
#[test]
fn remainders_beside_quotients_are_as_narrow_as_these() {
    for ty in ["u64", "i64"] {
        let text = ptx(&format!(
            "kernel k(a: {ty}, b: {ty}, to: *mut {ty}) {{ to[0] = a / b; to[1] = a % b; }}"
        ));
        // One product of 64 bits for the remainder of numbers that are not, and those of its quotient.
        let wide = text.lines().filter(|line| line.contains("mul.lo.s64")).count();
        let narrow = text.lines().filter(|line| line.contains("mul.lo.s32")).count();
        assert_eq!((wide, narrow), (1, 1), "{ty}\n{text}");
    }
    let text = ptx("kernel k(a: u64, to: *mut u64) { to[0] = a / 10; to[1] = a % 10; }");
    assert!(!text.contains("rem.") && !text.contains("div."), "{text}");
}
