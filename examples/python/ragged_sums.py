"""Sums the rows of many files on all GPUs of a Ray cluster, or on CPUs if it has none. The rows have any lengths.

    pip install ray
    python ragged_sums.py rows --make 100
    python ragged_sums.py rows --out sums.npz

Each file of the folder is a task. A kernel has one thread for each row and launches a grid for each long one; tail launches then
add up everything. cluster.py spreads the files, which all machines of the cluster must see at the same path.

A file is `NAME.npz` with the arrays `values` (float32) and `offsets` (uint32, one more than rows): row i is
`values[offsets[i]:offsets[i + 1]]`.
"""

import argparse
import pathlib
import time

import numpy as np
import ray
from cluster import Pool, Worker

SOURCE = pathlib.Path(__file__).parent / "../programs/segment_sum.grid"
# `THREADS` and `TILE` of the program.
THREADS = 128
TILE = 1024


def read(path):
    """The values and offsets of a file, checked: the kernels trust the offsets."""
    with np.load(path) as file:
        values, offsets = file["values"], file["offsets"]
    right = values.dtype == np.float32 and offsets.dtype == np.uint32
    if not right or values.ndim != 1 or offsets.ndim != 1 or not offsets.size:
        raise ValueError(f"{path}: expected a row of float32 and a row of uint32")
    if offsets[0] != 0 or offsets[-1] != values.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"{path}: the offsets must rise from 0 to the number of values")
    return values, offsets


class Adder(Worker):
    """Sums up files."""

    def run(self, path):
        """The sum of each row of a file, and that of all."""
        values, offsets = read(path)
        rows = offsets.size - 1
        values, offsets = self.device.array(values), self.device.array(offsets)
        sums, total = self.device.zeros(rows, np.float64), self.device.zeros(1, np.float64)
        partials = self.device.empty(2 * rows // TILE + 1, np.float64)
        with self.place:
            self.program.segment_sums[max(1, -(-rows // THREADS)), THREADS](
                (values, offsets, rows), sums, partials, total
            )
        self.place.synchronize()
        return sums.numpy(), total.tolist()[0]


def pool(source, sms=None):
    """Workers that sum up with this program."""
    return Pool(Adder, source, "segment_sum.grid", sms)


def make(folder, count, seed=0):
    """Writes files with random rows, few of them long."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    for number in range(count):
        lengths = random.integers(0, 32, 10_000)
        long = random.random(lengths.size) < 0.01
        lengths[long] = random.integers(64, 4096, long.sum())
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
        np.savez(folder / f"{number:05}.npz", values=random.random(offsets[-1], np.float32), offsets=offsets)


def main():
    options = argparse.ArgumentParser(description="Sums the rows of many files on a Ray cluster.")
    options.add_argument("folder", type=pathlib.Path, help="the folder with the .npz files")
    options.add_argument("--make", type=int, metavar="N", help="write N random files there instead")
    options.add_argument("--sms", type=int, help="give each worker a partition of so many SMs")
    options.add_argument("--out", type=pathlib.Path, help="write the sums of each file's rows to this .npz file")
    options = options.parse_args()
    if options.make:
        return make(options.folder, options.make)
    files = sorted(str(path.resolve()) for path in options.folder.glob("*.npz"))
    if not files:
        raise SystemExit(f"{options.folder} has no .npz files; --make N writes some")

    ray.init()
    workers = pool(SOURCE.read_text(), options.sms)
    sums, totals = {}, {}

    def added(path, result):
        name = pathlib.Path(path).stem
        sums[name], totals[name] = result

    start = time.perf_counter()
    workers.run(files, added)
    seconds = time.perf_counter() - start
    rows = sum(part.size for part in sums.values())
    print(f"{rows} rows of {len(files)} files by {len(workers.workers)} workers in {seconds:.2f} s")
    print(f"total: {sum(totals[name] for name in sorted(totals))}")
    if options.out:
        np.savez(options.out, **sums)


if __name__ == "__main__":
    main()
