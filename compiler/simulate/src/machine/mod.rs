//! Runs a grid: its threads take steps in an order that a seed decides.

mod access;
mod builtin;
mod format;
mod race;
mod report;
mod run;
mod schedule;
mod thread;
mod wait;

use crate::code::{Code, Entry};
use crate::failure::{Failure, FailureKind};
use crate::grid::{Grid, Options, Outcome};
use crate::memory::Memory;
use crate::random::Random;
use run::{Fault, Stop};
use schedule::Schedule;
use thread::{State, Thread, Wait};

/// A running block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    block_idx: [u32; 3],
    block_dim: [u32; 3],
    grid_dim: [u32; 3],
    barriers: Vec<wait::Barrier>,
    /// The threads that have not ended.
    live: u32,
}

/// A running grid.
pub(crate) struct Machine<'c> {
    code: &'c Code,
    memory: Memory,
    blocks: Vec<Block>,
    /// Those of the first running block, then those of the second, and so on.
    threads: Vec<Thread>,
    block_threads: usize,
    /// The threads that are ready or stand at an `active_mask()`.
    ready: Vec<usize>,
    /// The place of each thread in `ready`.
    places: Vec<Option<usize>>,
    printed: String,
    steps: u64,
    tick: u64,
    random: Random,
    races: Option<race::Races>,
}

/// Runs a grid to its end. `memory` is device memory before and after.
pub(crate) fn run(
    code: &Code,
    memory: &mut Memory,
    entry: &Entry,
    parameters: &[u8],
    grid: &Grid,
    options: &Options,
) -> Result<Outcome, Box<Failure>> {
    let blocks = grid.blocks();
    let running = match options.running_blocks {
        0 => blocks,
        limit => blocks.min(limit.into()),
    };
    let block_threads = grid.block_threads();
    let threads = Thread {
        block: 0,
        index: 0,
        stack: vec![],
        callers: vec![],
        now: thread::Frame::default(),
        state: State::Ended,
        to: 0,
    };
    let running = running as usize;
    let mut random = Random::new(options.seed);
    let mut machine = Machine {
        code,
        memory: std::mem::take(memory),
        blocks: vec![Block::default(); running],
        threads: vec![threads; running * block_threads],
        block_threads,
        ready: vec![],
        places: vec![None; running * block_threads],
        printed: String::new(),
        steps: 0,
        tick: options.tick,
        random: Random::new(random.next()),
        races: options.races.then(|| race::Races::new(running * block_threads)),
    };
    machine.memory.shared = vec![vec![]; running];
    if options.weak {
        machine.memory.weaken(running, Random::new(random.next()));
    }
    let mut schedule =
        Schedule::new(options.policy, options.lockstep, random, machine.threads.len());
    let result = machine.run(&mut schedule, entry, parameters, grid, options);
    for block in 0..running {
        machine.memory.release(block);
    }
    machine.memory.strengthen();
    *memory = std::mem::take(&mut machine.memory);
    result.map(|()| {
        let races = machine.races_text();
        Outcome { printed: machine.printed, steps: machine.steps, races }
    })
}

impl Machine<'_> {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        entry: &Entry,
        parameters: &[u8],
        grid: &Grid,
        options: &Options,
    ) -> Result<(), Box<Failure>> {
        let blocks = grid.blocks();
        let mut next_block = 0;
        for slot in 0..self.blocks.len() {
            self.start_block(slot, next_block, entry, parameters, grid);
            next_block += 1;
        }
        loop {
            let Some((thread, budget)) = schedule.next(&self.ready, &self.places) else {
                if self.blocks.iter().any(|block| block.live > 0) {
                    return Err(self.failure(FailureKind::Deadlock, None, "every thread waits"));
                }
                return Ok(());
            };
            if self.steps > options.max_steps {
                let message = format!("the grid runs after {} operations", self.steps);
                return Err(self.failure(FailureKind::Endless, None, &message));
            }
            if self.threads[thread].state == State::Waiting(Wait::Active) {
                self.active_mask(thread);
                continue;
            }
            match self.run_thread(thread, budget) {
                Stop::Budget => {}
                Stop::Yield => schedule.yielded(thread),
                Stop::Wait(wait) => {
                    schedule.ended();
                    self.threads[thread].state = State::Waiting(wait);
                    if wait != Wait::Active {
                        self.set_ready(thread, false);
                    }
                    self.arrive(thread, wait).map_err(|fault| self.fault_of(thread, fault))?;
                }
                Stop::Failed(fault) => return Err(self.fault_of(thread, fault)),
                Stop::Ended => {
                    schedule.ended();
                    let slot = self.threads[thread].block;
                    self.end_thread(thread).map_err(|fault| self.fault_of(thread, fault))?;
                    if self.blocks[slot].live == 0 && next_block < blocks {
                        self.memory.release(slot);
                        self.memory.acquire(slot);
                        self.start_block(slot, next_block, entry, parameters, grid);
                        next_block += 1;
                    }
                }
            }
        }
    }

    fn fault_of(&self, thread: usize, fault: Fault) -> Box<Failure> {
        match fault {
            Fault::Trap => self.failure(FailureKind::Trap, Some(thread), "trap"),
            Fault::Assert(message) => self.failure(FailureKind::Assert, Some(thread), &message),
            Fault::Wrong(message) => self.failure(FailureKind::Wrong, Some(thread), &message),
        }
    }

    /// Starts block `number` of the grid in the place of a running block that has ended.
    fn start_block(
        &mut self,
        slot: usize,
        number: u64,
        entry: &Entry,
        parameters: &[u8],
        grid: &Grid,
    ) {
        let [x, y, _] = grid.grid.map(u64::from);
        let block_idx = [number % x, number / x % y, number / x / y].map(|value| value as u32);
        self.blocks[slot] = Block {
            block_idx,
            block_dim: grid.block,
            grid_dim: grid.grid,
            barriers: vec![wait::Barrier::default(); 16],
            live: self.block_threads as u32,
        };
        let bytes = self.code.shared_bytes as usize + grid.shared as usize;
        let mut shared = vec![0; bytes];
        // Shared memory is not initialised.
        shared.fill_with(|| self.random.next() as u8);
        self.memory.shared[slot] = shared;
        for index in 0..self.block_threads {
            let at = slot * self.block_threads + index;
            let thread = &mut self.threads[at];
            (thread.block, thread.index) = (slot, index as u32);
            run::start(self.code, thread, entry, parameters);
            self.set_ready(at, true);
        }
    }

    /// Adds a thread to those that can be picked, or removes it.
    fn set_ready(&mut self, thread: usize, ready: bool) {
        match (self.places[thread], ready) {
            (None, true) => {
                self.places[thread] = Some(self.ready.len());
                self.ready.push(thread);
            }
            (Some(place), false) => {
                self.ready.swap_remove(place);
                if let Some(moved) = self.ready.get(place) {
                    self.places[*moved] = Some(place);
                }
                self.places[thread] = None;
            }
            _ => {}
        }
    }

    fn end_thread(&mut self, thread: usize) -> Result<(), Fault> {
        self.threads[thread].state = State::Ended;
        self.set_ready(thread, false);
        let slot = self.threads[thread].block;
        self.blocks[slot].live -= 1;
        self.after_end(thread)
    }
}
