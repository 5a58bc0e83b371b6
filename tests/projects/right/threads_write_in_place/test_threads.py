from concurrent.futures import ThreadPoolExecutor

import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


def test_pool(reinplace, assert_reinplaced):
    with ThreadPoolExecutor(2) as pool:
        found = [
            pool.submit(torch.compile(update), torch.zeros(8), torch.tensor([1]), torch.ones(1))
            for _ in range(2)
        ]
    assert [one.result().item() for one in found] == [2, 2]
    assert_reinplaced("aten::index_put.self")
