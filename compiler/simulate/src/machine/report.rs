//! What a failure says: where every thread is.

use std::fmt::Write as _;

use super::Machine;
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
        })
    }

    /// One line for each run of threads of a block that are at the same place.
    fn threads_text(&self) -> String {
        let mut text = String::new();
        let mut last: Option<(usize, u32, u32, String)> = None;
        let mut flush = |last: Option<(usize, u32, u32, String)>| {
            if let Some((block, from, to, place)) = last {
                let [x, y, z] = self.blocks[block].block_idx;
                let _ = writeln!(text, "block ({x}, {y}, {z}) threads {from} to {to}: {place}");
            }
        };
        for thread in &self.threads {
            let place = match thread.state {
                State::Ready => format!("runs in {}", self.calls(thread)),
                State::Waiting(wait) => format!("{} in {}", waits(wait), self.calls(thread)),
                State::Ended => "has ended".to_owned(),
            };
            match &mut last {
                Some((block, _, to, known)) if *block == thread.block && *known == place => {
                    *to = thread.index;
                }
                _ => flush(last.replace((thread.block, thread.index, thread.index, place))),
            }
        }
        flush(last);
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
