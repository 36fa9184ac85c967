//! What a failure says: where every thread is.

use std::fmt::Write as _;

use super::Machine;
use super::race::{Kind, Site};
use super::thread::{Frame, State, Thread, Wait};
use crate::failure::{Failure, FailureKind};

/// The calls of a thread that are listed.
const MAX_CALLS: usize = 8;

impl Machine<'_> {
    pub(super) fn failure(
        &self,
        kind: FailureKind,
        thread: Option<usize>,
        message: &str,
    ) -> Box<Failure> {
        let place = thread.map(|at| {
            let thread = &self.threads[at];
            let [x, y, z] = self.blocks[thread.block].block_idx;
            format!("block ({x}, {y}, {z}) thread {}: {}", thread.index, self.calls(thread))
        });
        Box::new(Failure {
            kind,
            message: message.to_owned(),
            place: place.unwrap_or_default(),
            threads: self.threads_text(),
            printed: self.printed.clone(),
            steps: self.steps,
            races: self.races_text(),
        })
    }

    /// The races that were found.
    pub(super) fn races_text(&self) -> Vec<String> {
        let found = self.races.iter().flat_map(|races| &races.found);
        let side = |(kind, site): (Kind, Site)| {
            let inner = Frame { function: site.inner.0, next: site.inner.1, ..Frame::default() };
            let mut text = format!("{kind:?} in {}", self.position(&inner, false));
            if site.outer.0 != u32::MAX {
                let outer = Frame { function: site.outer.0, next: site.outer.1, ..inner };
                text.push_str(&format!(" < {}", self.position(&outer, true)));
            }
            text
        };
        found.map(|(first, second)| format!("{} and {}", side(*first), side(*second))).collect()
    }

    /// One line for each block and place where threads of it are.
    fn threads_text(&self) -> String {
        let mut text = String::new();
        for (slot, threads) in self.threads.chunks(self.block_threads.max(1)).enumerate() {
            let [x, y, z] = self.blocks[slot].block_idx;
            let mut places: Vec<(String, Vec<(u32, u32)>)> = vec![];
            for thread in threads {
                let place = match thread.state {
                    State::Ready => format!("runs in {}", self.calls(thread)),
                    State::Waiting(wait) => format!("{} in {}", waits(wait), self.calls(thread)),
                    State::Ended => "has ended".to_owned(),
                };
                let known = places.iter().position(|(known, _)| *known == place);
                let known = known.unwrap_or_else(|| {
                    places.push((place, vec![]));
                    places.len() - 1
                });
                let ranges = &mut places[known].1;
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == thread.index => *last = thread.index,
                    _ => ranges.push((thread.index, thread.index)),
                }
            }
            for (place, ranges) in places {
                let ranges: Vec<String> = ranges
                    .iter()
                    .map(|(first, last)| match first == last {
                        true => first.to_string(),
                        false => format!("{first}-{last}"),
                    })
                    .collect();
                let _ =
                    writeln!(text, "block ({x}, {y}, {z}) threads {}: {place}", ranges.join(" "));
            }
        }
        text
    }

    /// The calls of a thread, innermost first.
    fn calls(&self, thread: &Thread) -> String {
        let mut text = String::new();
        let frames = std::iter::once(&thread.now).chain(thread.callers.iter().rev());
        for (at, frame) in frames.enumerate() {
            if at == MAX_CALLS {
                text.push_str(" < …");
                break;
            }
            if at > 0 {
                text.push_str(" < ");
            }
            // A caller, and a thread that waits, are one operation further on.
            let is_past = at > 0 || matches!(thread.state, State::Waiting(_));
            text.push_str(&self.position(frame, is_past));
        }
        text
    }

    fn position(&self, frame: &Frame, is_past: bool) -> String {
        let function = &self.code.functions[frame.function as usize];
        let at = (frame.next as usize).saturating_sub(usize::from(is_past));
        let Some(span) = function.spans.get(at) else { return function.name.clone() };
        if span.start == span.end {
            // Code that the compiler made has no position: its block says more.
            let block = function.blocks.iter().rfind(|(start, _)| *start as usize <= at);
            let block = block.map_or("", |(_, name)| name);
            return format!("{} ({block})", function.name);
        }
        let file = self.code.sources.file(span.file);
        let file = file.name.rsplit('/').next().unwrap_or_default();
        format!("{} ({file}:{})", function.name, self.code.sources.line(*span))
    }
}

fn waits(wait: Wait) -> String {
    match wait {
        Wait::Barrier { id, threads: Some(threads), .. } => {
            format!("waits at barrier {id} for {threads} threads")
        }
        Wait::Barrier { .. } => "waits for the block".to_owned(),
        Wait::Warp { op, mask, .. } => format!("waits at {op:?} of lanes {mask:#010x}"),
        Wait::Active => "stands at active_mask".to_owned(),
    }
}
