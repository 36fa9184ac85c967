"""Draws the Mandelbrot set over a large plane on all GPUs of a Ray cluster, or on CPUs if it has none.

    pip install ray
    python cluster.py --side 16384 --tile 2048 --out mandelbrot.npy

Each tile is a nested-launch program of its own: kernels launch kernels where the plane needs them. One actor has one GPU, or, with
--sms, one partition of a GPU. What a worker reports, such as lost launches or a fault, is raised here as the same exception. The
tiles of a worker that dies are done again by another. Ray alone moves data and starts processes; `ray start` on each machine
makes a cluster of them.
"""

import argparse
import pathlib
import time
from dataclasses import dataclass

import gridlet
import numpy as np
import ray
from ray.exceptions import RayActorError, RayTaskError

SOURCE = pathlib.Path(__file__).parent / "../programs/mandelbrot.grid"
# Pixels of the squares that the host launches for a tile; the kernels subdivide them.
SIDE = 128
THREADS = 128
# How often a worker that died is replaced before that counts as an error.
REPLACEMENTS = 3


@dataclass(frozen=True)
class Tile:
    """A square of the plane: its first pixel, its pixels in each direction, and its corners."""

    x: int
    y: int
    side: int
    low: complex
    high: complex


def tiles(side, tile):
    """The tiles of a plane of `side` × `side` pixels around the set."""
    low, span = -2.0 - 1.25j, 2.5
    for y in range(0, side, tile):
        for x in range(0, side, tile):
            at = low + span * complex(x, y) / side
            yield Tile(x, y, tile, at, at + span * complex(tile, tile) / side)


class Worker:
    """A device, or a partition of one, that draws tiles. Ray makes it an actor, in a process of its own."""

    def __init__(self, source, device, sms):
        self.device = gridlet.Device(*device[0], **device[1])
        self.program = gridlet.compile(source, name="mandelbrot.grid")
        self.place = self.device.partition(sms=sms) if sms else self.device

    def draw(self, tile):
        """The dwells of a tile's pixels."""
        dwells = self.device.zeros((tile.side, tile.side), np.uint32)
        corners = (tile.low.real, tile.low.imag), (tile.high.real, tile.high.imag)
        squares = tile.side // SIDE
        with self.place:
            self.program.squares[(squares, squares), THREADS](
                dwells, (*corners, tile.side, tile.side), 0, 0, SIDE, 0
            )
        self.place.synchronize()
        return dwells.numpy()


class Pool:
    """The workers of a cluster."""

    def __init__(self, source, sms=None):
        # A wrong program is this process's error, not that of each worker.
        gridlet.compile(source, name="mandelbrot.grid")
        self.source, self.sms = source, sms
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        if gpus:
            # Ray shows each actor the GPU that it has, as the first.
            parts = self.parts(sms) if sms else 1
            self.options, self.device = {"num_gpus": 1 / parts}, ((), {})
            count = gpus * parts
        else:
            self.options, self.device = {"num_cpus": 1}, (("cpu",), {"threads": 1})
            self.sms, count = None, max(1, int(resources.get("CPU", 1)))
        self.replaced = 0
        self.workers = [self.start() for _ in range(count)]

    @staticmethod
    def parts(sms):
        """The number of partitions of `sms` SMs that one GPU of the cluster has."""

        @ray.remote(num_gpus=1)
        def count():
            return max(1, gridlet.Device().info["sm_count"] // sms)

        return ray.get(count.remote())

    def start(self):
        actor = ray.remote(Worker).options(**self.options)
        return actor.remote(self.source, self.device, self.sms)

    def replace(self, error):
        """A worker for one that died."""
        self.replaced += 1
        if self.replaced > REPLACEMENTS:
            raise error
        return self.start()

    def draw(self, wanted, drawn):
        """Draws the tiles, each on the next free worker, and calls `drawn(tile, dwells)` in any order."""
        waiting, free, running = list(wanted)[::-1], list(self.workers), {}
        while waiting or running:
            while waiting and free:
                worker, tile = free.pop(), waiting.pop()
                running[worker.draw.remote(tile)] = worker, tile
            (done,), _ = ray.wait(list(running), num_returns=1)
            worker, tile = running.pop(done)
            try:
                dwells = ray.get(done)
            except RayTaskError as error:
                # The worker's own exception, not Ray's wrapping of it.
                raise error.cause from error
            except RayActorError as error:
                self.workers.remove(worker)
                worker = self.replace(error)
                self.workers.append(worker)
                waiting.append(tile)
            else:
                drawn(tile, dwells)
            free.append(worker)


def main():
    options = argparse.ArgumentParser(description="Draws the Mandelbrot set on a Ray cluster.")
    options.add_argument("--side", type=int, default=4096, help="pixels of the plane in each direction")
    options.add_argument("--tile", type=int, default=1024, help="pixels of a tile, a multiple of 128")
    options.add_argument("--sms", type=int, help="give each worker a partition of so many SMs")
    options.add_argument("--out", type=pathlib.Path, help="write the plane to this .npy file")
    options = options.parse_args()
    if options.tile % SIDE or options.side % options.tile:
        raise SystemExit(f"--tile must be a multiple of {SIDE}, and --side one of --tile")

    ray.init()
    pool = Pool(SOURCE.read_text(), options.sms)
    plane = np.zeros((options.side, options.side), np.uint32)

    def drawn(tile, dwells):
        plane[tile.y : tile.y + tile.side, tile.x : tile.x + tile.side] = dwells

    start = time.perf_counter()
    pool.draw(tiles(options.side, options.tile), drawn)
    seconds = time.perf_counter() - start
    print(f"{plane.size / 1e6:.1f} million pixels by {len(pool.workers)} workers in {seconds:.2f} s")
    if options.out:
        np.save(options.out, plane)


if __name__ == "__main__":
    main()
