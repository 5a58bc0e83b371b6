import torch


def test_applied(reinplace):
    def program(x):
        x.add_(1)
        return x * 2

    graph = torch.fx.symbolic_trace(program)
    assert reinplace.apply(graph).outcomes


def test_function(reinplace):
    reinplace.apply(lambda x: x + 1)
