//! A `tracing` subscriber that records events and spans, without times.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects lines for events and spans up to a level.
#[derive(Clone)]
pub(crate) struct Collector {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    pub(crate) fn new(level: Level) -> Collector {
        Collector { level, lines: Arc::default() }
    }

    /// The lines collected so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn write(&self, metadata: &Metadata<'_>, fields: impl FnOnce(&mut Line)) {
        let what = if metadata.is_span() { metadata.name() } else { "" };
        let mut line = Line(format!("{} {what}", metadata.level()));
        fields(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            // A time, or the number of a stream, which depends on the other tests in the process.
            name @ ("us" | "stream") => write!(self.0, " {name}=_"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == gridlet_runtime::observe::TARGET && *metadata.level() <= self.level
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata(), |line| event.record(line));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
