import torch

from pytest_reinplace.passes import inductor_options


@torch.library.custom_op("requirednamelib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor) -> None:
    cache[: len(rows)] = rows


def test_in_place():
    options = inductor_options(require=["requirednamelib::updat.cache"])
    torch.compile(update, options=options)(torch.ones(4), torch.zeros(2))
