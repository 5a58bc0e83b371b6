import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


def test_pool(assert_clones):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.compile(keep), torch.ones(4)).result()
    assert assert_clones == []


@pytest.mark.reinplace(max_clones=0)
def test_thread():
    thread = threading.Thread(target=torch.compile(keep), args=(torch.ones(4),))
    thread.start()
    thread.join()
