"""Spreads independent tasks over all GPUs of a Ray cluster, or over its processors if it has no GPU.

A `Worker` has one GPU, or with `sms` one partition of a GPU, and lives in a process of its own. What it reports, such as lost
launches or a fault, is raised in the driver as the same exception. The task of a worker that dies is done again by another. Ray
alone moves data and starts processes; `ray start` on each machine makes a cluster of them.

mandelbrot_cluster.py and ragged_sums.py use it.
"""

import gridlet
import ray
from ray.exceptions import RayActorError, RayTaskError

# How often workers that died are replaced before that counts as an error.
REPLACEMENTS = 3


class Worker:
    """A device, or a partition of one, and a program. Subclasses do tasks with them in `run`."""

    def __init__(self, program, device):
        text, name = program
        self.device = gridlet.Device(*device[0], **device[1])
        self.program = gridlet.compile(text, name=name)
        self.place = self.device

    def gpu(self):
        """Identifies the GPU in the cluster."""
        context = ray.get_runtime_context()
        return context.get_node_id(), *context.get_accelerator_ids()["GPU"]

    def enter(self, sms, index):
        """Takes one of the device's partitions."""
        self.place = self.device.partition(sms=sms, index=index)

    def run(self, task):
        """The result of a task. Both must be values that can be pickled."""
        raise NotImplementedError


class Pool:
    """Workers on all devices of the cluster."""

    def __init__(self, worker, source, name, sms=None):
        # A wrong program is this process's error, not that of each worker.
        gridlet.compile(source, name=name)
        self.worker, self.program, self.sms = worker, (source, name), sms
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        if gpus:
            parts = self.parts(sms) if sms else 1
            # Ray shows each actor the GPU that it has, as the first. The work of its processor is to wait.
            self.options, self.device = {"num_gpus": 1 / parts, "num_cpus": 0}, ((), {})
            count = gpus * parts
        else:
            self.options, self.device = {"num_cpus": 1}, (("cpu",), {"threads": 1})
            self.sms, count = None, max(1, int(resources.get("CPU", 1)))
        self.replaced = 0
        # The partition that each worker has: its GPU, and the index there.
        self.places = {}
        self.workers = self.start(count)

    @staticmethod
    def parts(sms):
        """The number of partitions of `sms` SMs that one GPU of the cluster has."""

        @ray.remote(num_gpus=1, num_cpus=0)
        def count():
            return gridlet.Device().count_partitions(sms=sms)

        return ray.get(count.remote())

    def start(self, count):
        """So many new workers."""
        actor = ray.remote(self.worker).options(**self.options)
        workers = [actor.remote(self.program, self.device) for _ in range(count)]
        if self.sms:
            for worker, gpu in zip(workers, ray.get([worker.gpu.remote() for worker in workers])):
                taken = {index for other, index in self.places.values() if other == gpu}
                index = min(set(range(len(taken) + 1)) - taken)
                self.places[worker] = gpu, index
                worker.enter.remote(self.sms, index)
        return workers

    def replace(self, worker, error):
        """A worker for one that died."""
        self.workers.remove(worker)
        self.places.pop(worker, None)
        self.replaced += 1
        if self.replaced > REPLACEMENTS:
            raise error
        (started,) = self.start(1)
        self.workers.append(started)
        return started

    def run(self, tasks, done):
        """Does the tasks, each on the next free worker, and calls `done(task, result)` in any order."""
        waiting, free, running = list(tasks)[::-1], list(self.workers), {}
        while waiting or running:
            while waiting and free:
                worker, task = free.pop(), waiting.pop()
                running[worker.run.remote(task)] = worker, task
            (ended,), _ = ray.wait(list(running), num_returns=1)
            worker, task = running.pop(ended)
            try:
                result = ray.get(ended)
            except RayTaskError as error:
                # The worker's own exception, not Ray's wrapping of it.
                raise error.cause from error
            except RayActorError as error:
                worker = self.replace(worker, error)
                waiting.append(task)
            else:
                done(task, result)
            free.append(worker)
