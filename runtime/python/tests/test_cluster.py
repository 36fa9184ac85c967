"""The examples for several GPUs and machines, on a cluster of processes here."""

import importlib
import os
import pathlib
import runpy
import subprocess
import sys

import gridlet
import numpy as np
import pytest

FOLDER = (pathlib.Path(__file__).parent / "../../../examples/python").resolve()
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="needs the repository's examples")

SIDE, TILE, FILES = 1024, 256, 12
# The examples' kernels, with launches that get lost and with a fault.
MANDELBROT = """
struct Complex { re: f32, im: f32 }
struct View { lo: Complex, hi: Complex, width: u32, height: u32 }
kernel child() {}
kernel squares(out: *mut u32, view: View, x0: u32, y0: u32, side: u32, depth: u32) {
    BODY
}
"""
SUMS = """
struct Segments { values: *const f32, offsets: *const u32, count: u32 }
kernel child() {}
kernel segment_sums(segments: Segments, results: *mut f64, partials: *mut f64, out: *mut f64) {
    BODY
}
"""
LOSES, BREAKS = "launch child<<<1, block_dim.x * 1024>>>();", "trap();"


@pytest.fixture(scope="module")
def examples():
    """The examples' modules by name, and a cluster of two processors."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    paths = [str(FOLDER), *filter(None, sys.path)]
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}}
    ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, runtime_env=environment)
    sys.path.insert(0, str(FOLDER))
    yield {name: importlib.import_module(name) for name in ["cluster", "mandelbrot_cluster", "ragged_sums"]}
    sys.path.remove(str(FOLDER))
    ray.shutdown()


class Plane:
    """The Mandelbrot set: its tasks are tiles."""

    program, source = "mandelbrot", MANDELBROT

    def __init__(self, examples, _folder):
        self.module = examples["mandelbrot_cluster"]
        self.tasks = list(self.module.tiles(SIDE, TILE))
        # Each worker of the pool has one thread; this has all.
        worker = self.module.Painter((self.module.SOURCE.read_text(), "mandelbrot.grid"), (("cpu",), {}))
        self.expected = worker.run(*self.module.tiles(SIDE, SIDE))

    def check(self, results):
        whole = np.zeros((SIDE, SIDE), np.uint32)
        for tile, dwells in results.items():
            whole[tile.y : tile.y + TILE, tile.x : tile.x + TILE] = dwells
        # Coordinates are rounded differently near the border of the set.
        assert np.mean(whole == self.expected) > 0.99


class Sums:
    """Ragged sums: the tasks are files."""

    program, source = "segment_sum", SUMS

    def __init__(self, examples, folder):
        self.module = examples["ragged_sums"]
        self.module.make(folder, FILES)
        # One without rows, one whose rows are empty.
        for name, rows in [("none", 1), ("empty", 4)]:
            np.savez(folder / name, values=np.zeros(0, np.float32), offsets=np.zeros(rows, np.uint32))
        self.tasks = sorted(str(path) for path in folder.glob("*.npz"))
        assert len(self.tasks) == FILES + 2

    def check(self, results):
        for path, (sums, total) in results.items():
            values, offsets = self.module.read(path)
            # Multiples of 2^-24, of which every sum is exact in any order.
            before = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
            expected = before[offsets[1:]] - before[offsets[:-1]]
            assert np.array_equal(sums, expected) and total == before[-1], path


@pytest.fixture(scope="module", params=[Plane, Sums])
def work(request, examples, tmp_path_factory):
    return request.param(examples, tmp_path_factory.mktemp("files"))


def run(pool, work, done=lambda *_: None):
    """The result of each task, each done once."""
    results = {}

    def put(task, result):
        assert task not in results
        results[task] = result
        done(task, result)

    try:
        pool.run(work.tasks, put)
    finally:
        for worker in pool.workers:
            ray.kill(worker)
    assert set(results) == set(work.tasks)
    return results


def test_workers_do_all_tasks(work):
    pool = work.module.pool(work.module.SOURCE.read_text(), sms=1)
    assert len(pool.workers) == 2
    processes = ray.get([worker.__ray_call__.remote(lambda _: os.getpid()) for worker in pool.workers])
    assert len({os.getpid(), *processes}) == 3
    work.check(run(pool, work))


def test_the_tasks_of_a_dead_worker_are_done_again(work):
    pool = work.module.pool(work.module.SOURCE.read_text())
    killed = []

    def kill_one(*_):
        if not killed:
            killed.append(pool.workers[0])
            ray.kill(killed[0])

    results = run(pool, work, kill_one)
    work.check(results)
    assert pool.replaced == 1 and killed[0] not in pool.workers


def test_workers_that_die_again_and_again_are_an_error(examples, work):
    pool = work.module.pool(work.module.SOURCE.read_text())

    def kill_all(*_):
        for worker in pool.workers:
            ray.kill(worker)

    with pytest.raises(ray.exceptions.RayActorError):
        run(pool, work, kill_all)
    assert pool.replaced == examples["cluster"].REPLACEMENTS + 1


def test_lost_launches_arrive_at_the_driver(work):
    with pytest.raises(gridlet.LostLaunches) as raised:
        run(work.module.pool(work.source.replace("BODY", LOSES)), work)
    lost = raised.value
    line = work.source[: work.source.index("BODY")].count("\n") + 1
    assert (lost.program, lost.file, lost.line) == (work.program, f"{work.program}.grid", line)
    assert lost.count > 0 and lost.name.startswith("cudaError")


def test_faults_arrive_at_the_driver(work):
    with pytest.raises(gridlet.Fault, match="stopped itself with a trap") as raised:
        run(work.module.pool(work.source.replace("BODY", BREAKS)), work)
    (kernel,) = raised.value.kernels
    assert f"kernel {kernel}(" in work.source


def test_a_wrong_program_starts_no_worker(work):
    with pytest.raises(gridlet.CompileError, match="error\\[syntax-error\\]"):
        work.module.pool("kernel squares( {")


def test_errors_of_python_arrive_at_the_driver(examples, tmp_path):
    np.savez(tmp_path / "wrong", values=np.zeros(2, np.float32), offsets=np.array([0, 3], np.uint32))
    pool = examples["ragged_sums"].pool(examples["ragged_sums"].SOURCE.read_text())
    with pytest.raises(ValueError, match="wrong.npz: the offsets must rise from 0"):
        pool.run([str(tmp_path / "wrong.npz")], None)
    np.savez(tmp_path / "wrong", values=np.zeros(2), offsets=np.array([0, 2], np.uint32))
    with pytest.raises(ValueError, match="wrong.npz: expected a row of float32"):
        pool.run([str(tmp_path / "wrong.npz")], None)
    for worker in pool.workers:
        ray.kill(worker)


@pytest.mark.parametrize(
    "name, arguments, text",
    [
        ("mandelbrot_cluster", ["--side", "1000"], "--tile must be a multiple of 128"),
        ("ragged_sums", ["{folder}"], "has no .npz files; --make N writes some"),
    ],
)
def test_the_programs_check_their_options(examples, monkeypatch, tmp_path, name, arguments, text):
    arguments = [argument.format(folder=tmp_path) for argument in arguments]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit, match=text):
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def test_the_programs_write_their_results(examples, monkeypatch, tmp_path, capsys):
    # The cluster is there already.
    monkeypatch.setattr(ray, "init", lambda: None)

    def program(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")

    program("mandelbrot_cluster", "--side", 256, "--tile", 128, "--out", tmp_path / "plane.npy")
    assert np.load(tmp_path / "plane.npy").shape == (256, 256)
    program("ragged_sums", tmp_path / "rows", "--make", 3)
    program("ragged_sums", tmp_path / "rows", "--out", tmp_path / "sums.npz")
    with np.load(tmp_path / "sums.npz") as sums:
        assert sorted(sums) == ["00000", "00001", "00002"] and sums["00000"].shape == (10_000,)
    said = capsys.readouterr().out
    assert "0.1 million pixels by 2 workers" in said and "30000 rows of 3 files by 2 workers" in said


# What Ray says of its workers goes to the output, in the middle of other lines.
GPUS = """
import os, ray, sys
from cluster import Pool, Worker

class Echo(Worker):
    def run(self, task):
        return task

ray.init(num_cpus=1, num_gpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})
workers = Pool(Echo, "kernel k() {}", "k.grid", sms=64)

def look(worker):
    return worker.device.kind, worker.place.sms, os.environ["CUDA_VISIBLE_DEVICES"], os.getpid()

def seen():
    looks = ray.get([worker.__ray_call__.remote(look) for worker in workers.workers])
    places = [workers.places[worker][1] for worker in workers.workers]
    return sorted((*part[:3], index) for part, index in zip(looks, places)), len({part[3] for part in looks})

said = open(sys.argv[1], "w")
print("first:", *seen(), file=said)
ray.kill(workers.workers[1])
done = []
workers.run(range(8), lambda *pair: done.append(pair))
assert sorted(done) == [(task, task) for task in range(8)]
print("again:", *seen(), workers.replaced, file=said)
said.close()
"""


def test_each_partition_of_a_gpu_has_a_worker(examples, driver, tmp_path):
    """On the fake driver, which runs no kernels, and has GPUs of 132 SMs."""
    paths = [str(FOLDER), *filter(None, sys.path)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": os.pathsep.join(paths)}
    # A cluster of its own, with fewer processors than workers.
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-c", GPUS, str(tmp_path / "said")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    said = (tmp_path / "said").read_text().splitlines()
    expected = [("cuda", 64, gpu, index) for gpu in "01" for index in range(2)]
    assert said == [f"first: {expected} 4", f"again: {expected} 4 1"], done.stdout + done.stderr
