//! The PTX of `f16`, `bf16` and integers of 8 and 16 bits through both back ends.

use gridlet::compile::BuildOptions;

use crate::plain_kernels::{count, kernels, kernels_with};

/// Counts of instructions in kernels for an architecture, through both back ends.
fn instructions(test: &str, source: &str, arch: &str, kernel: &str, expected: &[(&str, usize)]) {
    let options = |backend| BuildOptions::for_arch(arch.parse().unwrap()).with_backend(backend);
    let Some(ways) = kernels_with(test, source, options) else { return };
    for (backend, kernels) in ways {
        let ptx = &kernels[kernel];
        for (word, times) in expected {
            assert_eq!(count(ptx, word), *times, "{word}, {arch}, {backend:?}:\n{ptx}");
        }
    }
}

const NARROW: &str = "
    kernel one(x: *const f32, wide: *const f64, out: *mut bf16) {
        out[0] = x[0] as bf16;
        out[1] = wide[0] as bf16;
        out[2] = out[3] + out[4];
        out[5] = fma(out[6], out[7], out[8]);
    }
    kernel converted(x: *const f32x2, half: *mut f16x2, brain: *mut bf16x2) {
        half[0] = f16x2(x[0].x as f16, x[0].y as f16);
        brain[0] = bf16x2(x[0].x as bf16, x[0].y as bf16);
    }
    kernel halves(p: *mut f16x2) {
        let a = p[1];
        let b = p[2];
        p[0] = f16x2(fma(a.x, b.x, a.x) - a.x * b.x + b.x, fma(a.y, b.y, a.y) - a.y * b.y + b.y);
    }
    kernel brains(p: *mut bf16x2) {
        let a = p[1];
        let b = p[2];
        p[0] = bf16x2(fma(a.x, b.x, a.x) - a.x * b.x + b.x, fma(a.y, b.y, a.y) - a.y * b.y + b.y);
    }
    kernel different(p: *mut f16x2) {
        let a = p[1];
        p[0] = f16x2(a.x + a.y, a.x - a.y);
    }
    kernel limits(p: *mut f16x2, q: *mut bf16x2) {
        let a = p[1];
        let b = p[2];
        p[0] = f16x2(min(abs(a.x), -b.x), min(abs(a.y), -b.y));
        q[0] = bf16x2(max(q[1].x, q[2].x), max(q[1].y, q[2].y));
    }
    kernel integers(x: *const f32, bytes: *mut u8, shorts: *mut i16) {
        bytes[0] = x[0] as u8;
        shorts[0] = x[1] as i16;
    }
    kernel quotients(p: *mut f16, q: *mut i16) {
        p[0] = p[1] / p[2];
        p[3] = p[4] / 8.0;
        let divisor = q[2];
        q[0] = q[1] / divisor ^ q[1] % divisor;
    }
";

#[test]
fn narrow_numbers_have_instructions_of_their_own() {
    let test = "narrow_numbers_have_instructions_of_their_own";
    let limits = [("min.f16x2", 1), ("max.bf16x2", 1), ("and.b32", 1), ("xor.b32", 1)];
    instructions(test, NARROW, "sm_90", "limits", &limits);
    let casts = [("cvt.rzi.u8.f32", 1), ("cvt.rzi.s16.f32", 1), ("min.", 0), ("max.", 0)];
    instructions(test, NARROW, "sm_90", "integers", &casts);
    // One product for each quotient of f16, and one test of the divisor.
    let quotients = [("mul.rn.f32", 2), ("trap;", 1), ("div.", 0), ("rem.", 0)];
    instructions(test, NARROW, "sm_90", "quotients", &quotients);
}

#[test]
fn bf16_is_rounded_by_the_gpu_from_sm_80_on() {
    let test = "bf16_is_rounded_by_the_gpu_from_sm_80_on";
    for arch in ["sm_80", "sm_90", "sm_100"] {
        let expected = [("cvt.rn.bf16.f32", 2), ("fma.rn.bf16 ", 2)];
        instructions(test, NARROW, arch, "one", &expected);
        let expected = [("cvt.rn.f16x2.f32", 1), ("cvt.rn.bf16x2.f32", 1)];
        instructions(test, NARROW, arch, "converted", &expected);
    }
    instructions(test, NARROW, "sm_75", "one", &[("cvt.rn.bf16", 0), ("fma.rn.bf16", 0)]);
    instructions(test, NARROW, "sm_75", "converted", &[("cvt.rn.f16.f32", 2)]);
}

#[test]
fn pairs_of_narrow_floats_are_computed_at_once() {
    let test = "pairs_of_narrow_floats_are_computed_at_once";
    let halves = [
        ("fma.rn.f16x2", 1),
        ("sub.rn.f16x2", 1),
        ("mul.rn.f16x2", 1),
        ("add.rn.f16x2", 1),
        ("fma.rn.f16 ", 0),
        ("mul.rn.f32", 0),
    ];
    instructions(test, NARROW, "sm_90", "halves", &halves);
    let brains = [("fma.rn.bf16x2", 4), ("fma.rn.bf16 ", 0)];
    instructions(test, NARROW, "sm_90", "brains", &brains);
    // Two different operations stay apart.
    instructions(test, NARROW, "sm_90", "different", &[("add.rn.f16x2", 0), ("sub.rn.f16x2", 0)]);
}

/// ptxas takes a 16-bit `min` and a test for equality for one instruction, and reads its result from the wrong half.
#[test]
fn extremes_of_16_bits_are_not_tested_for_equality() {
    let source = "kernel extremes(out: *mut u32, x: *const u16) {
        let i = thread_idx.x;
        let most = clamp(x[i], 3, 8) % 16;
        out[i] = if most == 0 { 7 } else if most == 2 { 62534 } else if most == 4 { i } else if most == 6 { 3 }
            else if most == 8 { 21535 } else if most == 10 { 14 } else if most == 12 { 15 } else { 2 };
    }";
    let Some(kernels) = kernels("extremes", source) else { return };
    let [(_, ptx), _] = kernels;
    let ptx = &ptx["extremes"];
    // LLVM's own back end tests the operands instead.
    assert_eq!(count(ptx, "min.u16"), 1, "{ptx}");
    assert_eq!(count(ptx, "setp.eq"), 0, "{ptx}");
    assert!(count(ptx, "not.pred") > 3, "{ptx}");
}

/// libNVVM makes a vector of eight halves of these stores, which its back end lacks.
#[test]
fn eight_halves_in_a_row_are_stored() {
    let source = "
        struct Wide { bits: u64x2, halves: [f16; 8] }
        static wide: Wide = Wide { bits: u64x2(0, 0), halves: [0.0; 8] };
        kernel k(x: *const f32) {
            let first = (x[0] * 2.0) as f16;
            let second = (x[1] + 3.0) as f16;
            #[unroll] for i in 0..4 { wide.halves[2 * i] = first; wide.halves[2 * i + 1] = second; }
        }";
    let Some(both) = kernels("eight_halves_in_a_row_are_stored", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert_eq!(count(ptx, "st.global."), 1, "{backend:?}\n{ptx}");
    }
}

/// libNVVM makes a vector of four halves of what `ld.global.nc` loads, which its back end lacks.
#[test]
fn four_halves_in_a_row_are_loaded() {
    let source = "
        struct Wide { words: u32x2, halves: f16x4 }
        #[noalias]
        kernel whole(from: *const f16x4, to: *mut f32) {
            let v = from[thread_idx.x];
            to[thread_idx.x] = v.x as f32 + v.y as f32 + v.z as f32 + v.w as f32;
        }
        #[noalias]
        kernel field(from: *const Wide, to: *mut f32) {
            let v = from[thread_idx.x];
            to[thread_idx.x] = (v.halves.x * v.halves.w) as f32;
        }";
    let Some(both) = kernels("four_halves_in_a_row_are_loaded", source) else { return };
    for (backend, kernels) in both {
        for name in ["whole", "field"] {
            let ptx = &kernels[name];
            assert_eq!(count(ptx, "ld.global.nc.v"), 1, "{backend:?}\n{ptx}");
        }
    }
}

/// LLVM takes `(n as f16) as f32` for `n as f32` if `n` has few significant bits, though 65,520 and more are infinities.
#[test]
fn integers_too_great_for_halves_become_infinite() {
    let source = "
        kernel unsigned(n: u32, out: *mut f32) { out[0] = (n << 28) as f16 as f32; }
        kernel signed(n: i64, out: *mut f32) { out[0] = (n << 60) as f16 as f32; }";
    let Some(both) = kernels("integers_too_great_for_halves_become_infinite", source) else {
        return;
    };
    for (backend, kernels) in both {
        for (name, limits) in [("unsigned", 1), ("signed", 2)] {
            let ptx = &kernels[name];
            assert_eq!(count(ptx, "selp."), limits, "{backend:?}\n{ptx}");
        }
    }
}

/// A shift and a mask of the word that was loaded, without parts of 16 bits.
#[test]
fn pairs_of_bf16_become_f32_from_their_word() {
    let source = "
        #[noalias]
        kernel k(n: u32, from: *const bf16x2, to: *mut f32) {
            let mut sum: f32 = 0.0;
            for i in 0..n {
                let pair = from[i];
                sum += pair.x as f32 * pair.y as f32;
            }
            to[thread_idx.x] = sum;
        }";
    let test = "pairs_of_bf16_become_f32_from_their_word";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let masks = ptx.lines().filter(|line| line.contains("-65536")).count();
        assert!(masks > 0 && count(ptx, "shl.b32") >= masks, "{backend:?}\n{ptx}");
        assert!(!ptx.contains("b16"), "{backend:?}\n{ptx}");
    }
}

/// As a vector, which is the operand as it is.
#[test]
fn pairs_of_bf16_that_are_computed_with_stay_pairs() {
    let source = "
        #[noalias]
        kernel k(from: *const bf16x2, to: *mut bf16x2) {
            let mut all = [bf16x2(0.0, 0.0); 4];
            for i in 0u32..4 { all[i] = from[i]; }
            let mut most = all[0];
            for i in 1u32..4 { most = bf16x2(max(most.x, all[i].x), max(most.y, all[i].y)); }
            to[thread_idx.x] = most;
        }";
    let test = "pairs_of_bf16_that_are_computed_with_stay_pairs";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert_eq!(count(ptx, "max.bf16x2"), 3, "{backend:?}\n{ptx}");
        let apart = ["shr", "shl", "and.b32", "or.b32", "prmt"].map(|it| count(ptx, it));
        assert_eq!(apart, [0; 5], "{backend:?}\n{ptx}");
    }
}
