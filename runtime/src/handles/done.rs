//! `.await` on events and streams, with any executor: one thread of the process wakes those who wait.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use gridlet_cpu::sync::lock;

use super::device::DEFAULT_TIMEOUT;
use super::event::Event;
use super::stream::Stream;
use crate::error::Result;

/// The time between two looks at an event: short at first, because most kernels are, and then longer, because looking
/// costs time.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LAST_PAUSE: Duration = Duration::from_millis(2);

impl Event {
    /// Waits for the event without blocking the thread: `event.done().await`.
    pub fn done(&self) -> EventDone<'_> {
        EventDone { event: self, pause: FIRST_PAUSE }
    }
}

impl Stream {
    /// Waits for everything launched so far without blocking the thread: `stream.done().await`. The wait has no timeout;
    /// dropping the future ends it, but not the kernels.
    ///
    /// It reports what [`Stream::synchronize`] reports. If more was launched meanwhile, a fault on the CPU device is left
    /// to a later wait.
    ///
    /// # Errors
    /// When it is called, the errors of [`Stream::record`]; when it is awaited, those of [`Stream::synchronize`], except
    /// for the timeout.
    pub fn done(&self) -> Result<StreamDone> {
        let event = Event::new(&self.device())?;
        let returned = self.inner.work.returned.load(Ordering::Acquire);
        self.record(&event)?;
        Ok(StreamDone { event, pause: FIRST_PAUSE, stream: self.clone(), returned })
    }
}

/// The future of [`Event::done`].
#[must_use = "nothing waits until it is awaited"]
pub struct EventDone<'a> {
    event: &'a Event,
    pause: Duration,
}

impl Future for EventDone<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let EventDone { event, pause } = &mut *self;
        look(event, pause, context)
    }
}

impl<'a> IntoFuture for &'a Event {
    type Output = Result<()>;
    type IntoFuture = EventDone<'a>;

    fn into_future(self) -> EventDone<'a> {
        self.done()
    }
}

/// The future of [`Stream::done`].
#[must_use = "nothing waits until it is awaited"]
pub struct StreamDone {
    event: Event,
    pause: Duration,
    stream: Stream,
    /// The launches that were in the stream before the event.
    returned: u64,
}

impl Future for StreamDone {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let StreamDone { event, pause, stream, returned } = &mut *self;
        match look(event, pause, context) {
            Poll::Ready(Ok(())) => Poll::Ready(report(stream, *returned)),
            other => other,
        }
    }
}

/// Reports on launches that have ended.
fn report(stream: &Stream, returned: u64) -> Result<()> {
    let inner = &stream.inner;
    if inner.work.submitted.load(Ordering::Acquire) == returned {
        // Returns at once: nothing runs in the stream.
        return stream.synchronize(DEFAULT_TIMEOUT);
    }
    inner.work.finished.fetch_max(returned, Ordering::AcqRel);
    let entered = inner.device.enter()?;
    inner.device.report_lost_launches(&entered)
}

/// Looks at an event once, and if it is not done, has the task woken after the pause.
fn look(event: &Event, pause: &mut Duration, context: &mut Context<'_>) -> Poll<Result<()>> {
    match event.is_done() {
        Ok(false) => {
            wake_after(*pause, context.waker());
            *pause = (*pause * 2).min(LAST_PAUSE);
            Poll::Pending
        }
        Ok(true) => Poll::Ready(Ok(())),
        Err(error) => Poll::Ready(Err(error)),
    }
}

/// The tasks to wake, with their times.
struct Alarm {
    waiting: Mutex<Vec<(Instant, Waker)>>,
    changed: Condvar,
}

/// Wakes a task after a pause.
fn wake_after(pause: Duration, waker: &Waker) {
    static ALARM: OnceLock<Option<&'static Alarm>> = OnceLock::new();

    let start = || {
        let alarm: &'static Alarm =
            Box::leak(Box::new(Alarm { waiting: Mutex::default(), changed: Condvar::new() }));
        let thread = thread::Builder::new().name("gridlet-await".into());
        thread.spawn(|| ring(alarm)).ok().map(|_| alarm)
    };
    match ALARM.get_or_init(start) {
        Some(alarm) => {
            lock(&alarm.waiting).push((Instant::now() + pause, waker.clone()));
            alarm.changed.notify_one();
        }
        // Without the thread, the executor polls again at once.
        None => waker.wake_by_ref(),
    }
}

/// Wakes tasks at their times, as long as the process lives.
fn ring(alarm: &Alarm) {
    let mut waiting = lock(&alarm.waiting);
    loop {
        let now = Instant::now();
        let due: Vec<_> = waiting.extract_if(.., |(at, _)| *at <= now).collect();
        if !due.is_empty() {
            drop(waiting);
            // A waker may do anything, also wait for something else.
            for (_, waker) in due {
                waker.wake();
            }
            waiting = lock(&alarm.waiting);
            continue;
        }
        let next = waiting.iter().map(|(at, _)| *at).min();
        waiting = match next {
            Some(next) => {
                let pause = next.saturating_duration_since(now);
                alarm.changed.wait_timeout(waiting, pause).unwrap_or_else(PoisonError::into_inner).0
            }
            None => alarm.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

impl fmt::Debug for EventDone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDone").finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamDone").field("stream", &self.stream).finish_non_exhaustive()
    }
}
