"""Waiting for a stream without a thread."""

import asyncio

# Seconds between two looks: short at first, because most kernels are, and then longer, because polling costs time.
FIRST_PAUSE = 50e-6
LAST_PAUSE = 2e-3


async def done(stream, event, launches):
    """Returns when the work before `event` has ended, and raises what it reports. `launches` is the number of launches
    in the stream when the event was recorded."""
    pause = FIRST_PAUSE
    while not event.is_done:
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE)
    if stream.launches == launches:
        # Returns at once: it only reports.
        stream.synchronize()
    else:
        await asyncio.get_running_loop().run_in_executor(None, stream.synchronize)
