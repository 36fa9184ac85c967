//! Tests the detector alone: events in, reports out.

use std::sync::Arc;

use super::*;
use crate::abi::*;

/// Static shared memory, with two shared variables.
const STATIC: Range<usize> = 0x10_0000..0x10_0100;
const OTHER: Range<usize> = 0x10_0200..0x10_0240;
const DYNAMIC: Range<usize> = 0x10_1000..0x10_1000;
const BUFFER: usize = 0x20_0000;

/// A detector with one written buffer of 1,024 bytes at [`BUFFER`].
struct World {
    detector: Arc<Detector>,
}

impl World {
    fn new() -> World {
        World::with(Options::default())
    }

    fn with(options: Options) -> World {
        let world = World { detector: Detector::new(options) };
        world.detector.allocated(BUFFER, 1024, Memory::Buffer, true);
        world
    }

    fn kernel(&self, name: &str, grid: u32, block: u32) -> Launch {
        let sources = vec!["demo.grid".to_string()];
        let variable = |name: &str, offset, bytes| Variable { name: name.into(), offset, bytes };
        let memory = KernelMemory {
            shared: [
                variable("tile", 0, STATIC.len()),
                variable("sums", OTHER.start - STATIC.start, OTHER.len()),
            ]
            .into(),
            parameters: [variable("data", 0, 8), variable("n", 8, 4)].into(),
        };
        Launch {
            kernel: Arc::new(KernelInfo { name: name.to_string(), sources, memory }),
            grid_dim: [grid, 1, 1],
            block_dim: [block, 1, 1],
            parameters: 0xf000..0xf010,
        }
    }

    /// Launches a grid from the host into stream 0.
    fn start(&self, name: &str, grid: u32, block: u32) -> GridId {
        let id = self.detector.host_launch(self.kernel(name, grid, block), 0);
        self.detector.grid_started(id);
        id
    }

    fn block(&self, grid: GridId, index: u32) -> BlockCheck {
        self.detector.block_started(grid, [index, 0, 0], STATIC.start, DYNAMIC)
    }

    /// A block of a new one-block grid.
    fn one_block(&self, threads: u32) -> BlockCheck {
        let grid = self.start("k", 1, threads);
        self.block(grid, 0)
    }

    /// Kinds and lines of the findings, with the other line for races.
    fn found(&self) -> Vec<(Kind, u32, Option<u32>)> {
        let lines = |report: &Report| {
            (report.kind, report.place.line, report.other.as_ref().map(|other| other.place.line))
        };
        self.detector.reports().iter().map(lines).collect()
    }

    fn text(&self) -> String {
        let source = |_: &str, line: u32| Some(format!("    // text of line {line}"));
        render_all(&self.detector.reports(), self.detector.further_reports(), &source)
    }

    #[track_caller]
    fn assert_clean(&self) {
        assert_eq!(self.text(), "");
    }
}

#[track_caller]
fn read(block: &mut BlockCheck, thread: u32, address: usize, line: u32) {
    assert_eq!(block.access(thread, address, 4, ACCESS_READ, line), Verdict::Continue);
}

#[track_caller]
fn write(block: &mut BlockCheck, thread: u32, address: usize, line: u32) {
    assert_eq!(block.access(thread, address, 4, ACCESS_WRITE, line), Verdict::Continue);
}

#[track_caller]
fn atomic(block: &mut BlockCheck, thread: u32, address: usize, line: u32) {
    assert_eq!(block.access(thread, address, 4, ACCESS_ATOMIC, line), Verdict::Continue);
}

fn fence(block: &mut BlockCheck, thread: u32) {
    assert_eq!(block.access(thread, 0, 0, ACCESS_FENCE, 1), Verdict::Continue);
}

fn barrier(block: &mut BlockCheck, threads: u32, line: u32) {
    for thread in 0..threads {
        block.barrier_reached(thread, line);
    }
    block.barrier_released();
}

#[test]
fn accesses_outside_memory_stop_the_grid() {
    let world = World::new();
    let mut block = world.one_block(64);
    let stop = |block: &mut BlockCheck, address, bytes, line| {
        assert_eq!(block.access(33, address, bytes, ACCESS_WRITE, line), Verdict::Stop);
    };
    stop(&mut block, BUFFER + 1024, 4, 3);
    stop(&mut block, BUFFER - 8, 8, 4);
    stop(&mut block, BUFFER + 1020, 8, 5); // Misalignment takes precedence over bounds.
    stop(&mut block, 0, 4, 6);
    stop(&mut block, 0x7000_0000, 4, 7);
    stop(&mut block, STATIC.end + 12, 4, 8);
    stop(&mut block, OTHER.end, 4, 10);
    write(&mut block, 33, BUFFER + 1020, 9);
    insta::assert_snapshot!(world.text());
}

#[test]
fn copies_of_aggregates_may_not_cross_the_end() {
    let world = World::new();
    let mut block = world.one_block(1);
    assert_eq!(block.access(0, BUFFER + 1000, 24, ACCESS_READ, 3), Verdict::Continue);
    assert_eq!(block.access(0, BUFFER + 1000, 28, ACCESS_READ, 4), Verdict::Stop);
    assert_eq!(world.found(), [(Kind::OutOfBounds, 4, None)]);
}

#[test]
fn alignment_is_the_size_up_to_16_bytes() {
    let world = World::new();
    let mut block = world.one_block(1);
    for (offset, bytes, right) in
        [(1, 1, true), (2, 4, false), (4, 8, false), (8, 16, false), (16, 32, true), (8, 32, false)]
    {
        let verdict = block.access(0, BUFFER + offset, bytes, ACCESS_READ, 3);
        assert_eq!(verdict == Verdict::Continue, right, "{bytes} bytes at {offset}");
    }
    assert_eq!(world.found(), [(Kind::Misaligned, 3, None)]);
}

#[test]
fn freed_memory_is_remembered_until_it_is_used_again() {
    let world = World::new();
    let mut block = world.one_block(1);
    read(&mut block, 0, BUFFER + 4, 2);
    world.detector.freed(BUFFER, 0);
    assert_eq!(block.access(0, BUFFER + 4, 4, ACCESS_READ, 3), Verdict::Stop);
    world.detector.allocated(BUFFER, 64, Memory::Heap(7), true);
    read(&mut block, 0, BUFFER + 4, 4);
    world.detector.freed(BUFFER, 8);
    assert_eq!(block.access(0, BUFFER + 4, 4, ACCESS_WRITE, 5), Verdict::Stop);
    insta::assert_snapshot!(world.text());
}

#[test]
fn a_thread_owns_its_stack() {
    let world = World::new();
    let mut block = world.one_block(2);
    block.thread_started(0, 0x9000..0xa000);
    block.thread_started(1, 0xb000..0xc000);
    for (thread, offset) in [(0, 0x9010), (1, 0xb010)] {
        block.local_begins(thread, &Variable { name: "mine".into(), offset, bytes: 8 }, 1);
    }
    write(&mut block, 0, 0x9010, 2);
    read(&mut block, 1, 0xb010, 2);
    assert_eq!(block.access(1, 0x9010, 4, ACCESS_READ, 3), Verdict::Stop);
    insta::assert_snapshot!(world.text());
}

#[test]
fn memory_must_be_written_before_it_is_read() {
    let world = World::new();
    world.detector.allocated(0x30_0000, 8192, Memory::Buffer, false);
    world.detector.host_wrote(0x30_0000, 5000);
    let mut block = world.one_block(1);
    read(&mut block, 0, 0x30_0000 + 4996, 2);
    read(&mut block, 0, 0x30_0000 + 5000, 3);
    read(&mut block, 0, STATIC.start, 4);
    write(&mut block, 0, STATIC.start, 5);
    read(&mut block, 0, STATIC.start, 6);
    assert_eq!(block.access(0, STATIC.start, 32, ACCESS_READ, 7), Verdict::Continue);
    atomic(&mut block, 0, STATIC.start + 64, 8);
    insta::assert_snapshot!(world.text());
}

#[test]
fn threads_of_a_block_are_ordered_by_barriers_only() {
    let world = World::new();
    let mut block = world.one_block(64);
    write(&mut block, 0, STATIC.start, 2);
    barrier(&mut block, 64, 3);
    read(&mut block, 40, STATIC.start, 4);
    read(&mut block, 2, STATIC.start, 4);
    world.assert_clean();
    write(&mut block, 40, STATIC.start, 5);
    assert_eq!(world.found(), [(Kind::Race, 5, Some(4))]);
    barrier(&mut block, 64, 6);
    write(&mut block, 1, STATIC.start, 7);
    read(&mut block, 63, STATIC.start, 8);
    insta::assert_snapshot!(world.text());
}

#[test]
fn neighbouring_bytes_do_not_race() {
    let world = World::new();
    let mut block = world.one_block(4);
    for thread in 0..4 {
        let address = BUFFER + thread as usize;
        assert_eq!(block.access(thread, address, 1, ACCESS_WRITE, 2), Verdict::Continue);
    }
    world.assert_clean();
    read(&mut block, 3, BUFFER, 3);
    assert_eq!(world.found(), [(Kind::Race, 3, Some(2))]);
}

#[test]
fn bytes_of_a_word_remember_the_whole_words_writer() {
    let world = World::new();
    let mut block = world.one_block(2);
    write(&mut block, 0, BUFFER, 2);
    assert_eq!(block.access(1, BUFFER + 3, 1, ACCESS_READ, 3), Verdict::Continue);
    assert_eq!(world.found(), [(Kind::Race, 3, Some(2))]);
}

#[test]
fn the_reader_before_the_last_counts() {
    let world = World::new();
    let mut block = world.one_block(2);
    read(&mut block, 1, BUFFER, 2);
    read(&mut block, 0, BUFFER, 3);
    read(&mut block, 0, BUFFER, 4);
    write(&mut block, 0, BUFFER, 5);
    assert_eq!(world.found(), [(Kind::Race, 5, Some(2))]);
}

#[test]
fn warps_are_ordered_by_sync_warp() {
    let world = World::new();
    let mut block = world.one_block(64);
    write(&mut block, 1, BUFFER, 2);
    block.warp_synced(&[0, 1, 2]);
    read(&mut block, 0, BUFFER, 3);
    world.assert_clean();
    read(&mut block, 3, BUFFER, 4);
    assert_eq!(world.found(), [(Kind::Race, 4, Some(2))]);
    write(&mut block, 0, BUFFER + 8, 5);
    block.warp_synced(&[0, 1]);
    block.warp_synced(&[1, 3]);
    read(&mut block, 3, BUFFER + 8, 6);
    assert_eq!(world.found().len(), 1);
}

#[test]
fn a_child_sees_what_its_launcher_saw() {
    let world = World::new();
    let grid = world.start("parent", 1, 32);
    let mut parent = world.block(grid, 0);
    write(&mut parent, 5, BUFFER, 2);
    barrier(&mut parent, 32, 3);
    write(&mut parent, 0, BUFFER + 4, 4);
    write(&mut parent, 1, BUFFER + 8, 5);
    write(&mut parent, 1, BUFFER + 12, 5);
    parent.warp_synced(&[0, 2]);
    write(&mut parent, 2, BUFFER + 16, 6);
    let child = parent.launch(0, world.kernel("child", 1, 1), DeviceStream::FireAndForget, 7);
    write(&mut parent, 0, BUFFER + 20, 8);
    world.detector.grid_started(child);
    let mut child = world.block(child, 0);
    read(&mut child, 0, BUFFER, 20);
    read(&mut child, 0, BUFFER + 4, 21);
    world.assert_clean();
    read(&mut child, 0, BUFFER + 8, 22);
    read(&mut child, 0, BUFFER + 16, 23);
    read(&mut child, 0, BUFFER + 20, 24);
    write(&mut child, 0, BUFFER + 24, 25);
    read(&mut parent, 0, BUFFER + 24, 9);
    let found = [
        (Kind::Race, 22, Some(5)),
        (Kind::Race, 23, Some(6)),
        (Kind::Race, 24, Some(8)),
        (Kind::Race, 9, Some(25)),
    ];
    assert_eq!(world.found(), found);
    insta::assert_snapshot!(world.text());
}

#[test]
fn a_child_knows_what_its_launchers_lanes_knew() {
    let world = World::new();
    let mut parent = world.one_block(32);
    write(&mut parent, 7, BUFFER, 2);
    parent.warp_synced(&(0..32).collect::<Vec<_>>());
    let child = parent.launch(0, world.kernel("child", 1, 1), DeviceStream::Default, 7);
    world.detector.grid_started(child);
    read(&mut world.block(child, 0), 0, BUFFER, 20);
    world.assert_clean();
}

/// Whether writes by the first two launches of thread 0 race.
fn siblings_race(first: DeviceStream, second: DeviceStream) -> bool {
    let world = World::new();
    let mut parent = world.one_block(1);
    for (stream, line) in [(first, 30), (second, 40)] {
        let child = parent.launch(0, world.kernel("child", 1, 1), stream, line);
        world.detector.grid_started(child);
        let mut block = world.block(child, 0);
        let grandchild = block.launch(0, world.kernel("leaf", 1, 1), DeviceStream::Default, 9);
        world.detector.grid_started(grandchild);
        write(&mut world.block(grandchild, 0), 0, BUFFER, line);
        world.detector.grid_ended(grandchild);
        block.ended();
        world.detector.grid_ended(child);
    }
    !world.found().is_empty()
}

#[test]
fn grids_are_ordered_by_their_streams() {
    use DeviceStream::{Created, Default, FireAndForget, Tail};
    for (first, second, race) in [
        (Default, Default, false),
        (Default, FireAndForget, true),
        (FireAndForget, FireAndForget, true),
        (FireAndForget, Tail, false),
        (Default, Tail, false),
        (Tail, Tail, false),
        (Tail, Default, true),
        (Created(1), Created(1), false),
        (Created(1), Created(2), true),
    ] {
        assert_eq!(siblings_race(first, second), race, "{first:?} then {second:?}");
    }
}

#[test]
fn default_streams_of_two_blocks_are_not_ordered() {
    let world = World::new();
    let grid = world.start("parent", 2, 1);
    for index in 0..2 {
        let mut parent = world.block(grid, index);
        let child = parent.launch(0, world.kernel("child", 1, 1), DeviceStream::Default, 5);
        world.detector.grid_started(child);
        write(&mut world.block(child, 0), 0, BUFFER, 20);
    }
    insta::assert_snapshot!(world.text());
}

#[test]
fn a_tail_launch_follows_all_blocks_of_its_parent() {
    let world = World::new();
    let grid = world.start("parent", 2, 2);
    let mut first = world.block(grid, 0);
    let tail = first.launch(0, world.kernel("tail", 1, 1), DeviceStream::Tail, 5);
    write(&mut world.block(grid, 1), 1, BUFFER, 6);
    world.detector.grid_started(tail);
    read(&mut world.block(tail, 0), 0, BUFFER, 20);
    world.assert_clean();
}

#[test]
fn deep_chains_are_ordered_and_shown_in_short() {
    let world = World::new();
    let mut grid = world.start("walk", 1, 1);
    for depth in 0..1000 {
        let mut block = world.block(grid, 0);
        read(&mut block, 0, BUFFER, 3);
        write(&mut block, 0, BUFFER, 3);
        let stream = if depth % 3 == 0 { DeviceStream::Default } else { DeviceStream::Tail };
        grid = block.launch(0, world.kernel("walk", 1, 1), stream, 4);
        world.detector.grid_started(grid);
    }
    world.assert_clean();
    let mut block = world.block(grid, 0);
    assert_eq!(block.access(0, 0, 4, ACCESS_READ, 9), Verdict::Stop);
    insta::assert_snapshot!(world.text());
}

#[test]
fn the_hosts_waits_and_streams_order_grids() {
    for (second_stream, wait, race) in [
        (0, None, false),
        (1, None, true),
        (1, Some(None), false),
        (1, Some(Some(0)), false),
        (1, Some(Some(1)), true),
    ] {
        let world = World::new();
        let grid = world.start("first", 1, 1);
        // Keeps the first grid from being forgotten.
        let other = world.detector.host_launch(world.kernel("other", 1, 1), 9);
        write(&mut world.block(grid, 0), 0, BUFFER, 2);
        world.detector.grid_ended(grid);
        if let Some(stream) = wait {
            world.detector.host_waited(stream);
        }
        let second = world.detector.host_launch(world.kernel("second", 1, 1), second_stream);
        world.detector.grid_started(second);
        write(&mut world.block(second, 0), 0, BUFFER, 3);
        world.detector.grid_ended(other);
        assert_eq!(!world.found().is_empty(), race, "stream {second_stream}, wait {wait:?}");
    }
}

#[test]
fn waits_and_streams_order_nothing_backwards() {
    let world = World::new();
    let first = world.start("first", 1, 1);
    let second = world.start("second", 1, 1);
    write(&mut world.block(second, 0), 0, BUFFER, 2);
    read(&mut world.block(first, 0), 0, BUFFER, 3);
    assert_eq!(world.found(), [(Kind::Race, 3, Some(2))]);
    // This grid is launched after the wait, which does not cover it.
    world.detector.host_waited(Some(0));
    let third = world.start("third", 1, 1);
    write(&mut world.block(third, 0), 0, BUFFER + 8, 4);
    let other = world.detector.host_launch(world.kernel("other", 1, 1), 1);
    read(&mut world.block(other, 0), 0, BUFFER + 8, 5);
    assert_eq!(world.found()[1..], [(Kind::Race, 5, Some(4))]);
}

#[test]
fn host_writes_do_not_race() {
    let world = World::new();
    let grid = world.start("first", 1, 1);
    write(&mut world.block(grid, 0), 0, BUFFER, 2);
    world.detector.host_wrote(BUFFER, 16);
    let other = world.detector.host_launch(world.kernel("other", 1, 1), 1);
    read(&mut world.block(other, 0), 0, BUFFER, 3);
    world.assert_clean();
}

#[test]
fn a_stream_can_wait_for_another() {
    let world = World::new();
    let grid = world.start("first", 1, 1);
    write(&mut world.block(grid, 0), 0, BUFFER, 2);
    world.detector.host_stream_waits(1, 0, 0);
    let second = world.detector.host_launch(world.kernel("second", 1, 1), 1);
    write(&mut world.block(second, 0), 0, BUFFER, 3);
    world.assert_clean();
    let third = world.start("third", 1, 1);
    write(&mut world.block(third, 0), 0, BUFFER, 4);
    assert_eq!(world.found(), [(Kind::Race, 4, Some(3))]);
}

#[test]
fn grids_that_the_host_waited_for_are_forgotten() {
    let world = World::new();
    for round in 0..3 {
        let grid = world.start("k", 1, 2);
        let mut block = world.block(grid, 0);
        write(&mut block, round % 2, BUFFER, 2);
        block.ended();
        world.detector.grid_ended(grid);
        world.detector.host_waited(Some(0));
    }
    world.assert_clean();
    assert_eq!(world.detector.read_order().generation(), 3);
}

#[test]
fn blocks_race_unless_all_is_atomic() {
    let world = World::new();
    let grid = world.start("k", 2, 1);
    let (mut first, mut second) = (world.block(grid, 0), world.block(grid, 1));
    atomic(&mut first, 0, BUFFER, 2);
    atomic(&mut second, 0, BUFFER, 2);
    world.assert_clean();
    read(&mut first, 0, BUFFER, 3);
    write(&mut first, 0, BUFFER + 8, 4);
    write(&mut second, 0, BUFFER + 8, 4);
    insta::assert_snapshot!(world.text());
}

/// Blocks write and count up; the last block reads all results. Whether that is a race.
fn last_block_races(options: Options, fences: bool, barrier_after: bool) -> bool {
    let world = World::with(options);
    let counter = BUFFER + 512;
    let grid = world.start("sum", 3, 2);
    for index in 0..3 {
        let mut block = world.block(grid, index);
        let writer = u32::from(barrier_after);
        write(&mut block, writer, BUFFER + 4 * index as usize, 2);
        if fences {
            fence(&mut block, writer);
        }
        if barrier_after {
            barrier(&mut block, 2, 3);
        }
        atomic(&mut block, 0, counter, 4);
        if index == 2 {
            if fences {
                fence(&mut block, 0);
            }
            for other in 0..3 {
                read(&mut block, 0, BUFFER + 4 * other, 5);
            }
        }
        block.ended();
    }
    !world.found().is_empty()
}

#[test]
fn atomics_between_fences_order_blocks() {
    assert!(!last_block_races(Options::default(), true, false));
    assert!(!last_block_races(Options::default(), true, true));
    assert!(last_block_races(Options::default(), false, false));
    let implied = Options { fences: Fences::Implied, ..Options::default() };
    assert!(!last_block_races(implied, false, true));
}

/// The atomics themselves race, as one is for its block only.
#[test]
fn implied_fences_are_for_all_blocks() {
    let world = World::with(Options { fences: Fences::Implied, ..Options::default() });
    let grid = world.start("k", 2, 1);
    let flag = BUFFER + 512;
    let mut block = world.block(grid, 0);
    write(&mut block, 0, BUFFER, 2);
    atomic(&mut block, 0, flag, 3);
    block.ended();
    let mut block = world.block(grid, 1);
    let _ = block.access(0, flag, 4, ACCESS_ATOMIC | ACCESS_BLOCK, 4);
    read(&mut block, 0, BUFFER, 5);
    assert_eq!(world.found(), [(Kind::Race, 4, Some(3))]);
}

#[test]
fn releases_and_acquires_order_threads() {
    let world = World::new();
    let mut block = world.one_block(3);
    let flag = BUFFER + 512;
    write(&mut block, 0, BUFFER, 2);
    let _ = block.access(0, flag, 4, ACCESS_ATOMIC_STORE | ACCESS_RELEASE, 3);
    write(&mut block, 0, BUFFER + 4, 4);
    let _ = block.access(1, flag, 4, ACCESS_ATOMIC_LOAD | ACCESS_ACQUIRE, 5);
    read(&mut block, 1, BUFFER, 6);
    world.assert_clean();
    read(&mut block, 1, BUFFER + 4, 7);
    let _ = block.access(2, flag, 4, ACCESS_ATOMIC_LOAD, 8);
    read(&mut block, 2, BUFFER, 9);
    assert_eq!(world.found(), [(Kind::Race, 7, Some(4)), (Kind::Race, 9, Some(2))]);
}

#[test]
fn a_barrier_needs_all_threads() {
    let world = World::new();
    let mut block = world.one_block(4);
    block.thread_ended(2);
    for thread in [0, 1, 3] {
        block.barrier_reached(thread, 6);
    }
    block.barrier_released();
    let mut block = world.one_block(2);
    block.barrier_reached(0, 8);
    block.barrier_reached(1, 10);
    block.barrier_released();
    let mut block = world.one_block(64);
    block.stuck(&[(0, Waiting::Barrier(12)), (1, Waiting::Warp(13))]);
    block.stuck(&[(0, Waiting::Barrier(12))]);
    insta::assert_snapshot!(world.text());
}

#[test]
fn loops_that_only_look_wait_for_ever() {
    let limit = 4096;
    let world = World::with(Options { idle_polls: limit, ..Options::default() });
    let flag = [0_u64; 2];
    let address = flag.as_ptr().expose_provenance();
    world.detector.allocated(address, 16, Memory::Buffer, true);
    let mut block = world.one_block(2);
    let polls = (0..10 * limit).find(|_| {
        let _ = block.access(1, address, 4, ACCESS_ATOMIC, 4);
        block.poll(1, 5) == Verdict::Stop
    });
    assert!(polls.is_some_and(|polls| (limit..2 * limit).contains(&polls)), "{polls:?}");
    insta::assert_snapshot!(world.text());
}

#[test]
fn loops_that_do_something_may_go_on() {
    let limit = 1024;
    let world = World::with(Options { idle_polls: limit, ..Options::default() });
    let mut words = vec![0_u64; 1024];
    let address = words.as_mut_ptr().expose_provenance();
    world.detector.allocated(address, 8192, Memory::Buffer, true);
    let mut block = world.one_block(1);
    for round in 0..10 * limit {
        // Makes progress by computing.
        assert_eq!(block.poll(0, 2), Verdict::Continue);
        let _ = round;
    }
    for round in 0..10 * limit {
        // Makes progress because the polled value changes.
        let _ = block.access(0, address, 8, ACCESS_ATOMIC, 4);
        words[0] = round;
        assert_eq!(block.poll(0, 5), Verdict::Continue);
    }
    for round in 0..10 * limit as usize {
        let _ = block.access(0, address + round % 1024 * 8, 8, ACCESS_READ, 6);
        assert_eq!(block.poll(0, 7), Verdict::Continue);
    }
    for _ in 0..10 * limit {
        write(&mut block, 0, address, 8);
        assert_eq!(block.poll(0, 9), Verdict::Continue);
    }
    assert_eq!(world.found(), []);
}

#[test]
fn traps_say_why() {
    let world = World::new();
    let block = world.one_block(1);
    for (kind, line) in [(TRAP_DIVISION, 4), (TRAP_EXPLICIT, 5), (TRAP_UNREACHABLE, 6)] {
        block.trap(0, kind, Place { file: "demo.grid".to_string(), line });
    }
    insta::assert_snapshot!(world.text());
}

#[test]
fn reports_are_counted_and_limited() {
    let world = World::with(Options { report_limit: 2, ..Options::default() });
    let mut block = world.one_block(1);
    for line in [3, 3, 4, 5, 3] {
        let _ = block.access(0, 0, 4, ACCESS_READ, line);
    }
    let counts: Vec<u64> = world.detector.reports().iter().map(|report| report.count).collect();
    assert_eq!((counts, world.detector.further_reports()), (vec![3, 1], 1));
    assert_eq!(world.detector.take_reports().len(), 2);
    world.assert_clean();
}

#[test]
fn blocks_may_run_on_many_threads() {
    let world = World::new();
    let grid = world.start("k", 64, 32);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let world = &world;
            scope.spawn(move || {
                for index in (worker..64).step_by(4) {
                    let mut block = world.block(grid, index);
                    for thread in 0..32 {
                        atomic(&mut block, thread, BUFFER + 1020, 2);
                        read(&mut block, thread, BUFFER + 4 * thread as usize, 3);
                    }
                    block.ended();
                }
            });
        }
    });
    world.assert_clean();
}
