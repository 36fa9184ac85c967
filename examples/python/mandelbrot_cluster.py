"""Draws the Mandelbrot set over a large plane on all GPUs of a Ray cluster, or on CPUs if it has none.

    pip install ray
    python mandelbrot_cluster.py --side 16384 --tile 2048 --out mandelbrot.npy

Each tile is a nested launch of its own: kernels launch kernels where the plane needs them. cluster.py spreads the tiles.
"""

import argparse
import pathlib
import time
from dataclasses import dataclass

import numpy as np
import ray
from cluster import Pool, Worker

SOURCE = pathlib.Path(__file__).parent / "../programs/mandelbrot.grid"
# Pixels of the squares that the host launches for a tile; the kernels subdivide them.
SIDE = 128
THREADS = 128


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


class Painter(Worker):
    """Draws tiles."""

    def run(self, tile):
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


def pool(source, sms=None):
    """Workers that draw with this program."""
    return Pool(Painter, source, "mandelbrot.grid", sms)


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
    workers = pool(SOURCE.read_text(), options.sms)
    plane = np.zeros((options.side, options.side), np.uint32)

    def drawn(tile, dwells):
        plane[tile.y : tile.y + tile.side, tile.x : tile.x + tile.side] = dwells

    start = time.perf_counter()
    workers.run(tiles(options.side, options.tile), drawn)
    seconds = time.perf_counter() - start
    print(f"{plane.size / 1e6:.1f} million pixels by {len(workers.workers)} workers in {seconds:.2f} s")
    if options.out:
        np.save(options.out, plane)


if __name__ == "__main__":
    main()
