import torch


def rewrite(graph: torch.fx.Graph):
    return len(graph.nodes)
