"""The example for several GPUs and machines, on a cluster of processes here."""

import os
import pathlib
import runpy
import sys

import gridlet
import numpy as np
import pytest

EXAMPLE = (pathlib.Path(__file__).parent / "../../../examples/python/cluster.py").resolve()
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="needs the repository's examples")

SIDE, TILE = 1024, 256
LOSES = """
struct Complex { re: f32, im: f32 }
struct View { lo: Complex, hi: Complex, width: u32, height: u32 }
kernel child() {}
kernel squares(out: *mut u32, view: View, x0: u32, y0: u32, side: u32, depth: u32) {
    launch child<<<1, side * 1024>>>();
}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The example's functions, and a cluster of two workers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    paths = [str(EXAMPLE.parent), *filter(None, sys.path)]
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}}
    ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, runtime_env=environment)
    sys.path.insert(0, str(EXAMPLE.parent))
    import cluster

    yield cluster
    sys.path.remove(str(EXAMPLE.parent))
    ray.shutdown()


def plane(cluster, pool, drawn=lambda *_: None):
    """The plane, and how often each tile was drawn."""
    whole, counts = np.zeros((SIDE, SIDE), np.uint32), {}

    def put(tile, dwells):
        whole[tile.y : tile.y + TILE, tile.x : tile.x + TILE] = dwells
        counts[tile] = counts.get(tile, 0) + 1
        drawn(tile, dwells)

    pool.draw(cluster.tiles(SIDE, TILE), put)
    assert len(counts) == (SIDE // TILE) ** 2 and set(counts.values()) == {1}
    return whole


@pytest.fixture(scope="module")
def expected(cluster):
    worker = cluster.Worker(cluster.SOURCE.read_text(), (("cpu",), {}), None)
    (whole,) = cluster.tiles(SIDE, SIDE)
    return worker.draw(whole)


def test_workers_draw_the_plane(cluster, expected):
    pool = cluster.Pool(cluster.SOURCE.read_text(), sms=1)
    assert len(pool.workers) == 2
    whole = plane(cluster, pool)
    # Coordinates are rounded differently near the border of the set.
    assert np.mean(whole == expected) > 0.99
    for worker in pool.workers:
        ray.kill(worker)


def test_tiles_of_a_dead_worker_are_done_again(cluster, expected):
    pool = cluster.Pool(cluster.SOURCE.read_text())
    killed = []

    def kill_one(*_):
        if not killed:
            killed.append(pool.workers[0])
            ray.kill(killed[0])

    whole = plane(cluster, pool, kill_one)
    assert np.mean(whole == expected) > 0.99
    assert pool.replaced == 1 and killed[0] not in pool.workers
    for worker in pool.workers:
        ray.kill(worker)


def test_lost_launches_arrive_at_the_driver(cluster):
    pool = cluster.Pool(LOSES)
    with pytest.raises(gridlet.LostLaunches) as raised:
        plane(cluster, pool)
    lost = raised.value
    assert (lost.program, lost.file, lost.line) == ("mandelbrot", "mandelbrot.grid", 6)
    assert lost.count == 4 * 128 and lost.name.startswith("cudaError")
    for worker in pool.workers:
        ray.kill(worker)


def test_a_wrong_program_starts_no_worker(cluster):
    with pytest.raises(gridlet.CompileError, match="error\\[syntax-error\\]"):
        cluster.Pool("kernel squares( {")


def test_the_program_checks_its_options(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["cluster.py", "--side", "1000"])
    with pytest.raises(SystemExit, match="--tile must be a multiple of 128"):
        runpy.run_path(str(EXAMPLE), run_name="__main__")
