"""Speculative decoding: drafts are accepted or corrected, and caches keep what was accepted."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Verification(torch.nn.Module):
    """Sequences and their lengths; rejected drafts are replaced by what is left of the target's mass."""

    tokens: torch.Tensor
    lengths: torch.Tensor
    accepted: torch.Tensor

    def __init__(self, batch: int, capacity: int) -> None:
        super().__init__()
        self.register_buffer("tokens", torch.zeros(batch, capacity, dtype=torch.int64))
        self.register_buffer("lengths", torch.randint(1, capacity // 2, (batch,)))
        self.register_buffer("accepted", torch.zeros(1, dtype=torch.int64))

    def forward(
        self, draft: torch.Tensor, proposed: torch.Tensor, target: torch.Tensor, chances: torch.Tensor
    ) -> torch.Tensor:
        """Return how many drafts each sequence accepts, and append them with one more token.

        Args:
            draft: tokens, ``(batch, k)``.
            proposed: the draft's probabilities, ``(batch, k, vocab)``.
            target: the target's, ``(batch, k + 1, vocab)``.
            chances: uniform numbers, ``(batch, k)``.
        """
        batch, k = draft.shape
        rows = torch.arange(batch, device=draft.device)
        p = target[:, :k].gather(2, draft.unsqueeze(2)).squeeze(2)
        q = proposed.gather(2, draft.unsqueeze(2)).squeeze(2)
        accept = (chances < p / q).long().cumprod(1)
        count = accept.sum(1)
        rest = target[rows, count]
        rejected = proposed[rows, count.clamp(max=k - 1)].masked_fill_((count == k).unsqueeze(1), 0)
        rest.sub_(rejected).clamp_(min=0)
        rest /= rest.sum(1, keepdim=True)
        out = torch.full((batch, k + 1), -1, dtype=torch.int64, device=draft.device)
        out[:, :k] = torch.where(accept.bool(), draft, -1)
        out[rows, count] = rest.argmax(1)
        place = self.lengths.unsqueeze(1) + torch.arange(k + 1, device=draft.device)
        self.tokens.scatter_(1, place, out.clamp(min=0))
        self.lengths += count + 1
        self.accepted += count.sum()
        return count


class Tree(torch.nn.Module):
    """Caches into which a tree of drafts was written behind the text; its best path moves to the front."""

    caches: torch.Tensor
    length: torch.Tensor

    def __init__(self, layers: int, heads: int, capacity: int, width: int, length: int) -> None:
        super().__init__()
        self.register_buffer("caches", torch.randn(2 * layers, heads, capacity, width))
        self.register_buffer("length", torch.tensor([length]))

    def forward(self, logits: torch.Tensor, candidates: torch.Tensor, paths: torch.Tensor) -> torch.Tensor:
        """Return the best path's tokens; ``paths`` holds places in the tree, ``(paths, depth)``.

        Args:
            logits: of every node of the tree, ``(nodes, vocab)``.
            candidates: the tree's tokens along each path, ``(paths, depth)``.
            paths: as said.
        """
        depth = paths.shape[1]
        chosen = logits.argmax(-1)[paths]
        agrees = (candidates[:, 1:] == chosen[:, :-1]).long().cumprod(1).sum(1)
        best = agrees.argmax(0, keepdim=True)
        source = paths[best].squeeze(0) + self.length
        target = torch.arange(depth, device=paths.device) + self.length
        for cache in self.caches:
            cache[:, target] = cache[:, source]
        self.length += agrees[best] + 1
        return candidates[best].squeeze(0)


def verify(device: str, *, batch: int, capacity: int, k: int, vocab: int) -> Program:
    """Return a step that accepts some of ``k`` drafts in each sequence."""
    torch.manual_seed(0)
    with torch.device(device):
        draft = torch.randint(0, vocab, (batch, k))
        proposed = torch.randn(batch, k, vocab).softmax(-1)
        target = torch.randn(batch, k + 1, vocab).softmax(-1)
        return Program(Verification(batch, capacity), (draft, proposed, target, torch.rand(batch, k)))


def compact(
    device: str, *, layers: int, heads: int, capacity: int, width: int, length: int, nodes: int, vocab: int
) -> Program:
    """Return the compaction of caches after a tree of drafts was verified."""
    torch.manual_seed(0)
    with torch.device(device):
        paths = torch.stack([torch.arange(4) * step for step in range(1, (nodes - 1) // 3 + 1)])
        candidates = torch.randint(0, vocab, paths.shape)
        model = Tree(layers, heads, capacity, width, length)
        return Program(model, (torch.randn(nodes, vocab), candidates, paths))
