//! What of a loop is computed before it, and where lanes meet that leave it.

use gridlet::compile::BuildOptions;
use gridlet::launch::LaunchStrategy;

use super::plain_kernels::{count, kernels, kernels_with};

/// The lines of the only loop, or of the outermost one, from its head to its last jump back.
fn loop_of(ptx: &str) -> (usize, usize) {
    let lines: Vec<&str> = ptx.lines().collect();
    let label = |name: &str| lines.iter().position(|line| *line == format!("{name}:"));
    let mut found: Option<(usize, usize)> = None;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("bra")) {
        let target = line.split_whitespace().next_back().unwrap_or_default().trim_end_matches(';');
        if let Some(head) = label(target).filter(|head| *head < at) {
            let (first, last) = found.unwrap_or((head, at));
            found = Some((first.min(head), last.max(at)));
        }
    }
    found.unwrap_or_else(|| panic!("no loop:\n{ptx}"))
}

/// How often the code accesses local memory.
fn of_local_memory(ptx: &str) -> usize {
    count(ptx, "ld.local") + count(ptx, "st.local")
}

/// Lanes that leave in different rounds would each go on alone to the counter, which then gets one addition after another.
#[test]
fn lanes_meet_behind_a_loop_before_a_flag_parts_them() {
    let source = "
        #[noalias]
        kernel round(starts: *const u32, ends: *const u32, old: *const i8, new: *mut i8, left: *mut u32) {
            let v = block_idx.x * block_dim.x + thread_idx.x;
            let mut used: u64 = 0;
            let mut highest = true;
            for e in starts[v]..starts[v + 1] {
                let w = ends[e];
                if w == v { continue; }
                let other = old[w];
                if other == -1 {
                    if w * 77 > v * 77 {
                        highest = false;
                        break;
                    }
                } else {
                    used |= 1 << (other & 63);
                }
            }
            if highest {
                new[v] = ctz(!used) as i8;
            } else {
                new[v] = -1;
                atomic_add(left, 1);
            }
        }";
    let test = "lanes_meet_behind_a_loop_before_a_flag_parts_them";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["round"];
        let (_, last) = loop_of(ptx);
        let lines: Vec<&str> = ptx.lines().collect();
        let adds = lines.iter().position(|line| line.contains("red.")).unwrap();
        let label = lines[..adds].iter().rev().find(|line| line.starts_with('$')).unwrap();
        let jump = format!("{};", label.trim_end_matches(':'));
        let early = lines[..last].iter().any(|line| line.contains("bra") && line.ends_with(&jump));
        assert!(!early, "{backend:?}: a jump from the loop to {label}\n{ptx}");
    }
}

/// What `#[noalias]` allows to load before a loop is loaded there, though a divisor in the loop may be zero.
#[test]
fn loads_move_before_a_loop_past_the_trap_for_a_divisor() {
    let source = "
        #[noalias]
        kernel links(sides: *const u32, links: *const f32x2, to: *mut f32x2) {
            let i = block_idx.x * block_dim.x + thread_idx.x;
            let mut sum = f32x2(0.0, 0.0);
            for k in 0..i {
                let other = links[i % sides[k] + k];
                let own = links[4 * i];
                sum = f32x2(sum.x + own.x * other.x, sum.y + own.y * other.y);
            }
            to[i] = sum;
        }";
    let test = "loads_move_before_a_loop_past_the_trap_for_a_divisor";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["links"];
        assert!(count(ptx, "trap;") > 0, "{backend:?}\n{ptx}");
        // The link of another place, and the divisor, in each copy of a round.
        let loads = count(ptx, "ld.global.nc.");
        assert_eq!(loads % 2, 1, "{backend:?}: {loads}\n{ptx}");
    }
}

/// From a division before the loop, LLVM would conclude that its divisor is not zero.
#[test]
fn a_divisor_is_tested_where_its_division_does_not_change_in_a_loop() {
    let source = "
        #[noalias]
        kernel index(n: u32, sides: *const u32, x: *const u32, y: *const u32, to: *mut u32) {
            let mut sum: u32 = 0;
            #[unroll(1)]
            for k in 0..n { sum += y[x[k] % sides[k]] + x[y[0] / sides[0]]; }
            to[thread_idx.x] = sum;
        }
        #[noalias]
        kernel invariant(n: u32, side: u32, x: *const u32, y: *const u32, to: *mut u32) {
            let mut sum: u32 = 0;
            #[unroll(1)]
            for k in 0..n { sum += x[k] + y[n / side]; }
            to[thread_idx.x] = sum;
        }";
    let test = "a_divisor_is_tested_where_its_division_does_not_change_in_a_loop";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let traps = ["index", "invariant"].map(|name| count(&kernels[name], "trap;"));
        assert_eq!(traps, [2, 1], "{backend:?}\n{}\n{}", kernels["index"], kernels["invariant"]);
    }
}

/// The first element is written at an index that only the run shows, so that the array stays in memory.
#[test]
fn elements_of_a_local_array_are_in_registers_while_a_loop_runs() {
    let source = "
        kernel fill(boards: u32, black: *const u32, white: *const u32, points: *const u16, to: *mut u16) {
            let i = thread_idx.x;
            let y = points[i] as u32 / 19;
            let x = points[i] as u32 % 19;
            let mut own: [u32; 19];
            let dark = black[y * boards + i] >> x & 1 != 0;
            for k in 0u32..19 {
                let b = black[k * boards + i];
                let w = white[k * boards + i];
                own[k] = if dark { b } else { w };
            }
            let mut chain: [u32; 19] = [0; 19];
            chain[y] = own[y] & 1 << x;
            loop {
                let mut changed = false;
                for k in 0u32..19 {
                    let mut grown = chain[k] | chain[k] << 1 | chain[k] >> 1;
                    if k > 0 { grown |= chain[k - 1]; }
                    if k + 1 < 19 { grown |= chain[k + 1]; }
                    grown &= own[k];
                    if grown != chain[k] {
                        chain[k] = grown;
                        changed = true;
                    }
                }
                if !changed { break; }
            }
            let mut size: u32 = 0;
            for k in 0u32..19 { size += popc(chain[k]); }
            to[i] = size as u16;
        }";
    let test = "elements_of_a_local_array_are_in_registers_while_a_loop_runs";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["fill"];
        let (first, last) = loop_of(ptx);
        let lines: Vec<&str> = ptx.lines().collect();
        assert_eq!(of_local_memory(&lines[first..last].join("\n")), 0, "{backend:?}\n{ptx}");
        assert!(of_local_memory(ptx) > 0, "{backend:?}\n{ptx}");
    }
}

#[test]
fn small_numbers_are_divided_with_32_bits() {
    let source = "
        kernel powers(inverse: *const u32, to: *mut u32) {
            let i = thread_idx.x;
            let step = inverse[i] % 255;
            let mut sum: u32 = 0;
            for k in 0u32..8 { sum += to[(step * k) % 255] + to[(step * step) % 255]; }
            to[i] = sum;
        }";
    let Some(both) = kernels("small_numbers_are_divided_with_32_bits", source) else { return };
    for (backend, kernels) in both {
        assert_eq!(
            count(&kernels["powers"], "mul.hi.u16"),
            0,
            "{backend:?}\n{}",
            kernels["powers"]
        );
    }
}

/// All lanes read the same tap, and different places of a wave.
#[test]
fn tables_that_a_warp_reads_at_one_index_are_in_constant_memory() {
    let source = "
        const TAPS: [f32; 40] = [
            0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5,
            15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 21.5, 22.5, 23.5, 24.5, 25.5, 26.5, 27.5,
            28.5, 29.5, 30.5, 31.5, 32.5, 33.5, 34.5, 35.5, 36.5, 37.5, 38.5, 39.5,
        ];
        const WAVE: [f32; 40] = [
            0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5,
            15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 21.5, 22.5, 23.5, 24.5, 25.5, 26.5, 27.5,
            28.5, 29.5, 30.5, 31.5, 32.5, 33.5, 34.5, 35.5, 36.5, 37.5, 38.5, 39.5,
        ];
        kernel filter(n: u32, x: *const f32, to: *mut f32) {
            let i = thread_idx.x;
            if i >= n { return; }
            let mut sum: f32 = 0.0;
            for k in 0..min(n, 40) { sum += TAPS[k] * x[i + k]; }
            to[i] = sum + WAVE[i % 40];
        }";
    let test = "tables_that_a_warp_reads_at_one_index_are_in_constant_memory";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["filter"];
        let loads = [count(ptx, "ld.const."), count(ptx, "ld.global.nc.")];
        assert!(loads[0] > 0 && loads[1] == 1, "{backend:?}: {loads:?}\n{ptx}");
    }
}

/// The resident kernel knows of the pointers that its kernels get that they point to global memory. That is not so of this table.
#[test]
fn kernels_that_run_resident_read_tables_in_constant_memory() {
    let source = "
        const TAPS: [u32; 12] = [31, 41, 59, 26, 53, 58, 97, 93, 238, 462, 643, 383];
        const WAVE: [u32; 12] = [31, 41, 59, 26, 53, 58, 97, 93, 238, 462, 643, 383];
        kernel child(n: u32, to: *mut u32) {
            #[unroll(1)]
            for k in 0..min(n, 12) { to[thread_idx.x] += TAPS[k] * WAVE[(to[k] + thread_idx.x) % 12]; }
        }
        kernel parent(n: u32, to: *mut u32) { launch child<<<n, 32>>>(n, to); }";
    let test = "kernels_that_run_resident_read_tables_in_constant_memory";
    let resident = |backend| {
        BuildOptions::default().with_backend(backend).with_launch(LaunchStrategy::Resident.into())
    };
    let Some(both) = kernels_with(test, source, resident) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["__gridlet_resident"];
        assert!(count(ptx, "ld.const.") > 0, "{backend:?}");
        // From no address but those in registers or of variables.
        assert_eq!(ptx.lines().filter(|line| line.contains("[0")).count(), 0, "{backend:?}");
    }
}

/// LLVM knows that a piece has at most four rows, and that it comes to rest after at most twelve.
#[test]
fn loops_that_a_local_array_bounds_are_unrolled() {
    let source = "
        kernel place(boards: u32, boards_at: *const u32, piece: *const u32, to: *mut u32) {
            let i = thread_idx.x;
            let mut rows: [u32; 12];
            for k in 0u32..12 { rows[k] = boards_at[k * boards + i]; }
            let shape = piece[i];
            let mut tall: u32 = 0;
            while tall < 4 && shape >> (4 * tall) != 0 { tall += 1; }
            let mut y: u32 = 0;
            loop {
                let mut fits = y + tall < 12;
                if fits {
                    for k in 0..tall {
                        if rows[y + k] & (shape >> (4 * k) & 15) != 0 { fits = false; }
                    }
                }
                if !fits { break; }
                y += 1;
            }
            to[i] = y;
        }";
    let test = "loops_that_a_local_array_bounds_are_unrolled";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        assert_eq!(of_local_memory(&kernels["place"]), 0, "{backend:?}\n{}", kernels["place"]);
    }
}
