//! Connects a [`Detector`] to the executor.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::{
    BlockCheck, Detector, DeviceStream, GridId, KernelInfo, Launch, Memory, Options, Place, Report,
    Verdict, Waiting, lock,
};
use crate::abi::{Location, TRAP_DIVISION, TRAP_EXPLICIT, TRAP_UNREACHABLE};
use crate::hooks::{
    self, BlockHooks, Hooks, LaunchEvent, LaunchOrder, ThreadPosition, Variable, WarpMistake,
};
use crate::{CpuFault, FaultKind};

/// Threads of a warp.
const WARP: u32 = 32;

/// A detector driven by the executor.
#[derive(Debug)]
pub struct Checker {
    detector: Arc<Detector>,
    launched: Arc<Launched>,
}

/// Known launches.
#[derive(Debug, Default)]
struct Launched {
    /// Live grids.
    grids: Mutex<BTreeMap<hooks::GridId, GridId>>,
    kernels: Mutex<BTreeMap<String, Arc<KernelInfo>>>,
}

/// A running block.
struct RunningBlock {
    check: BlockCheck,
    launched: Arc<Launched>,
}

impl Checker {
    /// Creates a checker.
    pub fn new(options: Options) -> Arc<Checker> {
        Arc::new(Checker { detector: Detector::new(options), launched: Arc::default() })
    }

    /// Takes the findings since the last call, and the number of findings beyond the limit.
    pub fn take_reports(&self) -> (Vec<Report>, u64) {
        let further = self.detector.further_reports();
        (self.detector.take_reports(), further)
    }
}

impl Launched {
    fn grid(&self, grid: hooks::GridId) -> Option<GridId> {
        lock(&self.grids).get(&grid).copied()
    }

    fn add(&self, launch: &LaunchEvent<'_>, grid: GridId) {
        lock(&self.grids).insert(launch.grid, grid);
    }

    fn describe(&self, launch: &LaunchEvent<'_>) -> Launch {
        Launch {
            kernel: self.kernel(launch),
            grid_dim: launch.grid_dim,
            block_dim: launch.block_dim,
            parameters: range(launch.parameters),
        }
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

impl From<Verdict> for hooks::Verdict {
    fn from(verdict: Verdict) -> hooks::Verdict {
        match verdict {
            Verdict::Stop => hooks::Verdict::Stop,
            Verdict::Continue => hooks::Verdict::Continue,
        }
    }
}

impl Hooks for Checker {
    fn on_alloc(&self, address: usize, bytes: usize) {
        self.detector.allocated(address, bytes, Memory::Buffer, false);
    }

    fn on_name(&self, address: usize, name: &str) {
        self.detector.named(address, name);
    }

    fn on_stacks(&self, addresses: Range<usize>) {
        self.detector.stacks(addresses);
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

    fn on_string_constant(&self, variable: &Variable) {
        self.detector.allocated(variable.offset, variable.bytes, Memory::String, true);
    }

    fn on_image_segment_gone(&self, address: usize) {
        self.detector.freed(address, 0);
    }

    fn on_launch(
        &self,
        launch: &LaunchEvent<'_>,
        launcher: Option<&mut (dyn BlockHooks + 'static)>,
    ) {
        match (launch.order, launch.launcher, launcher) {
            (LaunchOrder::Host(stream), ..) => {
                let described = self.launched.describe(launch);
                let grid = self.detector.host_launch(described, stream as u64);
                self.launched.add(launch, grid);
            }
            (_, Some(position), Some(block)) => block.on_launch(position.thread_number, launch),
            _ => {}
        }
    }

    fn on_grid_start(&self, grid: hooks::GridId, _after: Option<hooks::GridId>) {
        if let Some(grid) = self.launched.grid(grid) {
            self.detector.grid_started(grid);
        }
    }

    fn on_grid_end(&self, grid: hooks::GridId) {
        let known = lock(&self.launched.grids).remove(&grid);
        if let Some(grid) = known {
            self.detector.grid_ended(grid);
        }
    }

    fn on_host_wait(&self, stream: usize) {
        self.detector.host_waited(Some(stream as u64));
    }

    fn on_stream_wait(&self, stream: usize, other: usize, later: u64) {
        self.detector.host_stream_waits(stream as u64, other as u64, later);
    }

    fn on_block_start(
        &self,
        first_thread: ThreadPosition,
        static_shared: (usize, usize),
        dynamic_shared: (usize, usize),
    ) -> Option<Box<dyn BlockHooks>> {
        let grid = self.launched.grid(first_thread.grid)?;
        let (own, dynamic) = (static_shared.0, range(dynamic_shared));
        let check = self.detector.block_started(grid, first_thread.block, own, dynamic);
        Some(Box::new(RunningBlock { check, launched: Arc::clone(&self.launched) }))
    }
}

impl BlockHooks for RunningBlock {
    fn on_parameter_buffer(&mut self, address: usize, bytes: usize) {
        self.check.parameter_buffer(range((address, bytes)));
    }

    fn on_launch(&mut self, thread: u32, launch: &LaunchEvent<'_>) {
        let stream = match launch.order {
            LaunchOrder::Host(_) => return,
            LaunchOrder::BlockDefault => DeviceStream::Default,
            LaunchOrder::Tail => DeviceStream::Tail,
            LaunchOrder::FireAndForget => DeviceStream::FireAndForget,
            LaunchOrder::Created(handle) => DeviceStream::Created(handle),
        };
        let described = self.launched.describe(launch);
        let grid = self.check.launch(thread, described, stream, launch.location);
        self.launched.add(launch, grid);
    }

    fn on_thread_start(&mut self, thread: u32, stack: (usize, usize)) {
        self.check.thread_started(thread, range(stack));
    }

    fn on_thread_end(&mut self, thread: u32) {
        self.check.thread_ended(thread);
    }

    fn on_end(self: Box<Self>, _failed: bool) {
        self.check.ended();
    }

    #[inline]
    fn on_access(
        &mut self,
        thread: u32,
        address: usize,
        bytes: u32,
        kind: u32,
        location: Location,
    ) -> hooks::Verdict {
        self.check.access(thread, address, bytes, kind, location).into()
    }

    fn on_index(
        &mut self,
        thread: u32,
        index: i64,
        count: u64,
        kind: u32,
        array: &str,
        location: Location,
    ) {
        self.check.report_index(thread, location, kind, index, count, array);
    }

    fn on_string(
        &mut self,
        thread: u32,
        address: usize,
        limit: Option<usize>,
        location: Location,
    ) -> hooks::Verdict {
        self.check.string(thread, address, limit, location).into()
    }

    fn on_copied(&mut self, from: usize, to: usize, bytes: usize) {
        self.check.copied(from, to, bytes);
    }

    fn on_local(&mut self, thread: u32, variable: &Variable, location: Location) {
        self.check.local_begins(thread, variable, location);
    }

    fn on_locals_end(&mut self, thread: u32, count: u32) {
        self.check.locals_end(thread, count);
    }

    fn on_barrier(&mut self, thread: u32, location: Location) {
        self.check.barrier_reached(thread, location);
    }

    fn on_barrier_release(&mut self) {
        self.check.barrier_released();
    }

    fn on_warp_sync(&mut self, warp: u32, lanes: u32) {
        let named = (0..WARP).filter(|lane| lanes >> lane & 1 == 1);
        let threads: Vec<u32> = named.map(|lane| warp * WARP + lane).collect();
        self.check.warp_synced(&threads);
    }

    fn on_warp_mistake(&mut self, thread: u32, mistake: WarpMistake, location: Location) {
        self.check.report_warp_mistake(thread, mistake, location);
    }

    fn on_stuck(&mut self, waiting: &[hooks::Waiting]) {
        let waiting: Vec<(u32, Waiting)> = waiting
            .iter()
            .map(|waiting| {
                let reason = if waiting.at_barrier {
                    Waiting::Barrier(waiting.location)
                } else {
                    Waiting::Warp(waiting.location)
                };
                (waiting.thread_number, reason)
            })
            .collect();
        self.check.stuck(&waiting);
    }

    fn on_poll(&mut self, thread: u32, location: Location) -> hooks::Verdict {
        self.check.poll(thread, location).into()
    }

    fn on_turn(&mut self, thread: u32) {
        self.check.turn(thread);
    }

    fn on_fault(&mut self, thread: u32, fault: &CpuFault) {
        // The detector itself reports faults of other kinds as far as it can.
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
        self.check.trap(thread, kind, place);
    }
}
