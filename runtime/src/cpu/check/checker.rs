//! Connects a [`Detector`] to the executor.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{
    BlockCheck, Detector, DeviceStream, GridId, KernelInfo, Launch, Memory, Options, Place, Report,
    Verdict, Waiting, lock,
};
use crate::cpu::abi::{Location, TRAP_DIVISION, TRAP_EXPLICIT, TRAP_UNREACHABLE};
use crate::cpu::hooks::{self, Hooks, LaunchEvent, LaunchOrder, ThreadPosition, Variable};
use crate::cpu::{CpuFault, FaultKind};

/// Locks for the blocks that run, so that workers seldom meet.
const SHARDS: usize = 64;

/// Threads of a warp.
const WARP: u32 = 32;

type Blocks = BTreeMap<(hooks::GridId, u64), BlockCheck>;

/// A detector that the executor drives.
#[derive(Debug)]
pub struct Checker {
    detector: Arc<Detector>,
    /// Grids that have not ended.
    grids: Mutex<BTreeMap<hooks::GridId, GridId>>,
    kernels: Mutex<BTreeMap<String, Arc<KernelInfo>>>,
    blocks: Vec<Mutex<Blocks>>,
}

impl Checker {
    /// A checker that has seen nothing.
    pub fn new(options: Options) -> Arc<Checker> {
        Arc::new(Checker {
            detector: Detector::new(options),
            grids: Mutex::default(),
            kernels: Mutex::default(),
            blocks: (0..SHARDS).map(|_| Mutex::default()).collect(),
        })
    }

    /// What was found since the last call, and how many findings there were beyond the limit.
    pub fn take_reports(&self) -> (Vec<Report>, u64) {
        let further = self.detector.further_reports();
        (self.detector.take_reports(), further)
    }

    fn grid(&self, grid: hooks::GridId) -> Option<GridId> {
        lock(&self.grids).get(&grid).copied()
    }

    fn shard(&self, grid: hooks::GridId, block: u64) -> MutexGuard<'_, Blocks> {
        // Neighbouring grids and blocks in different shards.
        lock(&self.blocks[(grid.wrapping_mul(7).wrapping_add(block) % SHARDS as u64) as usize])
    }

    /// Does something with a block that runs.
    fn with<T>(
        &self,
        grid: hooks::GridId,
        block: u64,
        action: impl FnOnce(&mut BlockCheck) -> T,
    ) -> Option<T> {
        self.shard(grid, block).get_mut(&(grid, block)).map(action)
    }

    fn at<T>(
        &self,
        position: ThreadPosition,
        action: impl FnOnce(&mut BlockCheck) -> T,
    ) -> Option<T> {
        self.with(position.grid, position.block_number, action)
    }

    fn kernel(&self, launch: &LaunchEvent<'_>) -> Arc<KernelInfo> {
        let mut kernels = lock(&self.kernels);
        if let Some(known) = kernels.get(launch.kernel)
            && known.sources == launch.sources
            && Arc::ptr_eq(&known.memory.shared, &launch.memory.shared)
        {
            return Arc::clone(known);
        }
        let info = Arc::new(KernelInfo {
            name: launch.kernel.to_string(),
            sources: launch.sources.to_vec(),
            memory: launch.memory.clone(),
        });
        kernels.insert(launch.kernel.to_string(), Arc::clone(&info));
        info
    }
}

fn range((start, bytes): (usize, usize)) -> Range<usize> {
    start..start.saturating_add(bytes)
}

fn verdict(of: Option<Verdict>) -> hooks::Verdict {
    match of {
        Some(Verdict::Stop) => hooks::Verdict::Stop,
        Some(Verdict::Continue) | None => hooks::Verdict::Continue,
    }
}

impl Hooks for Checker {
    fn on_alloc(&self, address: usize, bytes: usize) {
        self.detector.allocated(address, bytes, Memory::Buffer, false);
    }

    fn on_free(&self, address: usize, _bytes: usize) {
        self.detector.freed(address, 0);
    }

    fn on_host_write(&self, address: usize, bytes: usize) {
        self.detector.host_wrote(address, bytes);
    }

    fn on_image_segment(&self, address: usize, bytes: usize) {
        self.detector.allocated(address, bytes, Memory::Image, true);
    }

    fn on_static(&self, variable: &Variable) {
        self.detector.static_variable(variable);
    }

    fn on_image_segment_gone(&self, address: usize) {
        self.detector.freed(address, 0);
    }

    fn on_launch(&self, launch: &LaunchEvent<'_>) {
        let what = Launch {
            kernel: self.kernel(launch),
            grid_dim: launch.grid_dim,
            block_dim: launch.block_dim,
            parameters: range(launch.parameters),
        };
        let stream = match launch.order {
            LaunchOrder::Host(stream) => {
                let grid = self.detector.host_launch(what, u64::from(stream));
                lock(&self.grids).insert(launch.grid, grid);
                return;
            }
            LaunchOrder::BlockDefault => DeviceStream::Default,
            LaunchOrder::Tail => DeviceStream::Tail,
            LaunchOrder::FireAndForget => DeviceStream::FireAndForget,
            LaunchOrder::Created(handle) => DeviceStream::Created(handle),
        };
        let grid = launch.launcher.and_then(|launcher| {
            self.at(launcher, |block| {
                block.launch(launcher.thread_number, what, stream, launch.location)
            })
        });
        if let Some(grid) = grid {
            lock(&self.grids).insert(launch.grid, grid);
        }
    }

    fn on_grid_start(&self, grid: hooks::GridId, _after: Option<hooks::GridId>) {
        if let Some(grid) = self.grid(grid) {
            self.detector.grid_started(grid);
        }
    }

    fn on_grid_end(&self, grid: hooks::GridId) {
        let known = lock(&self.grids).remove(&grid);
        if let Some(grid) = known {
            self.detector.grid_ended(grid);
        }
    }

    fn on_host_wait(&self, stream: u32) {
        self.detector.host_waited(Some(u64::from(stream)));
    }

    fn on_block_start(
        &self,
        first_thread: ThreadPosition,
        static_shared: (usize, usize),
        dynamic_shared: (usize, usize),
    ) {
        let Some(grid) = self.grid(first_thread.grid) else { return };
        let (own, dynamic) = (static_shared.0, range(dynamic_shared));
        let block = self.detector.block_started(grid, first_thread.block, own, dynamic);
        let key = (first_thread.grid, first_thread.block_number);
        self.shard(key.0, key.1).insert(key, block);
    }

    fn on_thread_start(&self, thread: ThreadPosition, stack: (usize, usize)) {
        self.at(thread, |block| block.thread_started(thread.thread_number, range(stack)));
    }

    fn on_thread_end(&self, thread: ThreadPosition) {
        self.at(thread, |block| block.thread_ended(thread.thread_number));
    }

    fn on_block_end(&self, grid: hooks::GridId, block_number: u64, _failed: bool) {
        let ended = self.shard(grid, block_number).remove(&(grid, block_number));
        if let Some(block) = ended {
            block.ended();
        }
    }

    fn on_access(
        &self,
        thread: ThreadPosition,
        address: usize,
        bytes: u32,
        kind: u32,
        location: Location,
    ) -> hooks::Verdict {
        verdict(
            self.at(thread, |block| {
                block.access(thread.thread_number, address, bytes, kind, location)
            }),
        )
    }

    fn on_parameter_buffer(&self, thread: ThreadPosition, address: usize, bytes: usize) {
        self.at(thread, |block| block.parameter_buffer(range((address, bytes))));
    }

    fn on_index(
        &self,
        thread: ThreadPosition,
        index: i64,
        count: u64,
        kind: u32,
        array: &str,
        location: Location,
    ) {
        let thread_number = thread.thread_number;
        self.at(thread, |block| {
            block.report_index(thread_number, location, kind, index, count, array)
        });
    }

    fn on_copied(&self, _thread: ThreadPosition, from: usize, to: usize, bytes: usize) {
        self.detector.copied(from, to, bytes);
    }

    fn on_local(&self, thread: ThreadPosition, variable: &Variable, location: Location) {
        self.at(thread, |block| block.local_begins(thread.thread_number, variable, location));
    }

    fn on_locals_end(&self, thread: ThreadPosition, count: u32) {
        self.at(thread, |block| block.locals_end(thread.thread_number, count));
    }

    fn on_barrier(&self, thread: ThreadPosition, location: Location) {
        self.at(thread, |block| block.barrier_reached(thread.thread_number, location));
    }

    fn on_barrier_release(
        &self,
        grid: hooks::GridId,
        block_number: u64,
        _waiting: u32,
        _block_threads: u32,
    ) -> hooks::Verdict {
        self.with(grid, block_number, |block| block.barrier_released());
        hooks::Verdict::Continue
    }

    fn on_warp_sync(&self, grid: hooks::GridId, block_number: u64, warp: u32, lanes: u32) {
        let named = (0..WARP).filter(|lane| lanes >> lane & 1 == 1);
        let threads: Vec<u32> = named.map(|lane| warp * WARP + lane).collect();
        self.with(grid, block_number, |block| block.warp_synced(&threads));
    }

    fn on_stuck(&self, first_thread: ThreadPosition, waiting: &[hooks::Waiting]) {
        let waiting: Vec<(u32, Waiting)> = waiting
            .iter()
            .map(|waiting| {
                let what = if waiting.at_barrier {
                    Waiting::Barrier(waiting.location)
                } else {
                    Waiting::Warp(waiting.location)
                };
                (waiting.thread_number, what)
            })
            .collect();
        self.at(first_thread, |block| block.stuck(&waiting));
    }

    fn on_poll(&self, thread: ThreadPosition, location: Location) -> hooks::Verdict {
        verdict(self.at(thread, |block| block.poll(thread.thread_number, location)))
    }

    fn on_fault(&self, thread: ThreadPosition, fault: &CpuFault) {
        // Of the others the detector has reported what it knows.
        let kind = match fault.kind {
            FaultKind::Trap => TRAP_EXPLICIT,
            FaultKind::Division => TRAP_DIVISION,
            FaultKind::Unreachable => TRAP_UNREACHABLE,
            _ => return,
        };
        let place = match &fault.location {
            Some(line) => Place { file: line.file.clone(), line: line.line },
            None => Place { file: String::new(), line: 0 },
        };
        self.at(thread, |block| block.trap(thread.thread_number, kind, place));
    }
}
