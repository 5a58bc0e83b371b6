import torch

from pytest_reinplace.passes import reinplace


def halved(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        with graph.inserting_after(node):
            low = graph.call_function(torch.ops.aten.to.dtype, (node, torch.float16))
        with graph.inserting_after(low):
            back = graph.call_function(torch.ops.aten.to.dtype, (low, torch.float32))
        low.meta["val"], back.meta["val"] = node.meta["val"].half(), node.meta["val"]
        node.replace_all_uses_with(back, lambda user, low=low: user is not low)
    reinplace(graph.owning_module)
