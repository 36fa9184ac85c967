//! Which thread runs next, and for how long.

use super::thread::WARP;
use crate::grid::Policy;
use crate::random::Random;

#[derive(Clone, Debug)]
pub(super) struct Schedule {
    policy: Policy,
    random: Random,
    /// Whether the lanes of a warp take their accesses together.
    lockstep: bool,
    /// With `lockstep`: the lanes that are still to take an access, the last one first, and how often all shall again.
    together: Vec<usize>,
    rounds: u32,
    /// The thread that ran last, with the accesses left to it.
    last: usize,
    /// For `Starve`: the group of threads that does not run, and for how many more decisions.
    starved: (usize, u32),
    /// For `Priorities`: larger runs first.
    priorities: Vec<u64>,
    lowest: u64,
    /// For `Priorities`: how often the same thread was picked in a row.
    streak: u32,
}

impl Schedule {
    pub(super) fn new(policy: Policy, lockstep: bool, mut random: Random, threads: usize) -> Self {
        let policy = match policy {
            Policy::Any => {
                let all = Policy::ALL;
                all[random.below(all.len())]
            }
            named => named,
        };
        let high = 1 << 32;
        let priorities = (0..threads).map(|_| high + (random.next() >> 32)).collect();
        Schedule {
            policy,
            lockstep,
            together: vec![],
            rounds: 0,
            random,
            last: 0,
            starved: (0, 0),
            priorities,
            lowest: high,
            streak: 0,
        }
    }

    /// The next of the threads in `ready`, and how many accesses it may make. `places` has each thread's place in `ready`.
    pub(super) fn next(
        &mut self,
        ready: &[usize],
        places: &[Option<usize>],
    ) -> Option<(usize, u32)> {
        if ready.is_empty() {
            return None;
        }
        if !self.lockstep {
            return Some(self.pick(ready, places));
        }
        loop {
            while let Some(lane) = self.together.pop() {
                if places[lane].is_some() {
                    return Some((lane, 1));
                }
            }
            let first = self.last / WARP as usize * WARP as usize;
            let lanes = |first: usize| {
                let all = (first..(first + WARP as usize).min(places.len())).rev();
                all.filter(|lane| places[*lane].is_some())
            };
            if self.rounds > 0 {
                self.rounds -= 1;
                self.together.extend(lanes(first));
            } else {
                let (thread, budget) = self.pick(ready, places);
                self.rounds = budget - 1;
                self.together.extend(lanes(thread / WARP as usize * WARP as usize));
            }
        }
    }

    /// The next thread by the policy.
    fn pick(&mut self, ready: &[usize], places: &[Option<usize>]) -> (usize, u32) {
        let (thread, budget) = match self.policy {
            Policy::Uniform | Policy::Any => (self.any(ready), 1),
            Policy::Bursts => {
                let length = self.random.below(12);
                (self.any(ready), 1 << length)
            }
            Policy::RoundRobin => (self.following(places), 1),
            Policy::Warps => {
                // All lanes of a warp take an access in turn, then another warp.
                let next = self.last + 1;
                let goes_on = !next.is_multiple_of(WARP as usize) && next < places.len();
                let thread = match goes_on.then(|| places[next]) {
                    Some(Some(_)) => next,
                    Some(None) => self.following(places),
                    None => {
                        let warp = self.any(ready) / WARP as usize * WARP as usize;
                        (warp..places.len()).find(|at| places[*at].is_some()).unwrap_or(ready[0])
                    }
                };
                (thread, 1)
            }
            Policy::Starve => {
                (self.not_starved(ready, places.len()), 1 + self.random.below(4) as u32)
            }
            Policy::Priorities => (self.first(ready), 16),
        };
        self.last = thread;
        (thread, budget)
    }

    fn any(&mut self, ready: &[usize]) -> usize {
        ready[self.random.below(ready.len())]
    }

    /// The first thread that is ready after the last one.
    fn following(&self, places: &[Option<usize>]) -> usize {
        let count = places.len();
        let order = (1..=count).map(|step| (self.last + step) % count);
        order.into_iter().find(|at| places[*at].is_some()).unwrap_or(self.last)
    }

    fn not_starved(&mut self, ready: &[usize], threads: usize) -> usize {
        if self.starved.1 == 0 {
            let group = self.random.below(threads.div_ceil(WARP as usize));
            self.starved = (group, 1 << self.random.below(16));
        }
        self.starved.1 -= 1;
        for _ in 0..8 {
            let thread = self.any(ready);
            if thread / WARP as usize != self.starved.0 {
                return thread;
            }
        }
        self.any(ready)
    }

    /// Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding bugs": the thread with the
    /// highest priority runs, and at a few random places it becomes the last. A thread that runs for long becomes the last
    /// too, because it may wait for another.
    fn first(&mut self, ready: &[usize]) -> usize {
        let thread = ready.iter().copied().max_by_key(|at| self.priorities[*at]).unwrap_or(0);
        self.streak = if thread == self.last { self.streak + 1 } else { 0 };
        if self.streak > 100 || self.random.one_in(200) {
            self.demote(thread);
        }
        thread
    }

    fn demote(&mut self, thread: usize) {
        self.lowest -= 1;
        self.priorities[thread] = self.lowest;
    }

    /// A thread sleeps.
    pub(super) fn yielded(&mut self, thread: usize) {
        if self.policy == Policy::Priorities {
            self.demote(thread);
        }
    }

    /// A thread waits or has ended.
    pub(super) fn ended(&mut self) {
        self.streak = 0;
    }
}
