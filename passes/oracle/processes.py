"""Work that may end the process that does it: a wrong program may write outside of its memory."""

from __future__ import annotations

import concurrent.futures
import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, TypeVar

import torch

Found = TypeVar("Found")


def _worked(work: Callable[[Sequence[int]], list[Found]], numbers: Sequence[int]) -> list[Found]:
    try:
        return work(numbers)
    except torch.AcceleratorError:  # a kernel wrote outside of its memory: nothing runs there any more
        os._exit(1)


class Processes(Generic[Found]):
    """Several processes, each of which is replaced when it ends before its time.

    Args:
        work: what is done with some numbers in a process, a result for each; it is pickled.
        lost: what the result is of a number with which alone a process ends.
        jobs: how many processes.
    """

    def __init__(
        self, work: Callable[[Sequence[int]], list[Found]], lost: Callable[[int], Found], jobs: int
    ) -> None:
        self._work = work
        self._lost = lost
        self._jobs = jobs
        self._own = threading.local()
        self._started: list[concurrent.futures.ProcessPoolExecutor] = []

    def results(self, numbers: Sequence[int], together: int) -> Iterator[Found]:
        """Yield the results in order, so many numbers given to a process at a time."""
        shards = [numbers[i : i + together] for i in range(0, len(numbers), together)]
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as threads:
            try:
                for found in threads.map(self._done, shards):
                    yield from found
            finally:
                threads.shutdown(cancel_futures=True)
                for process in self._started:
                    process.shutdown()

    def _done(self, numbers: Sequence[int]) -> list[Found]:
        try:
            return self._process().submit(_worked, self._work, numbers).result()
        except BrokenProcessPool:
            del self._own.process
        if len(numbers) == 1:
            return [self._lost(numbers[0])]
        return list(itertools.chain.from_iterable(self._done([number]) for number in numbers))

    def _process(self) -> concurrent.futures.ProcessPoolExecutor:
        """Return the process of this thread."""
        if not hasattr(self._own, "process"):
            context = multiprocessing.get_context("spawn")
            self._own.process = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
            self._started.append(self._own.process)
        found: concurrent.futures.ProcessPoolExecutor = self._own.process
        return found
