"""Recurrent networks that write each step's output into a preallocated tensor."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Lstm(torch.nn.Module):
    """A cell that is unrolled by hand; outputs are written, states stay in buffers between the calls."""

    hidden: torch.Tensor
    memory: torch.Tensor

    def __init__(self, batch: int, width: int, hidden: int) -> None:
        super().__init__()
        self.cell: torch.nn.LSTMCell = torch.nn.LSTMCell(width, hidden)
        self.register_buffer("hidden", torch.zeros(batch, hidden))
        self.register_buffer("memory", torch.zeros(batch, hidden))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return ``(length, batch, hidden)`` for ``(length, batch, width)``."""
        outputs = inputs.new_empty(len(inputs), *self.hidden.shape)
        hidden, memory = self.hidden.clone(), self.memory.clone()
        for t in range(len(inputs)):
            hidden, memory = self.cell(inputs[t], (hidden, memory))
            outputs[t] = hidden
        self.hidden.copy_(hidden.detach())
        self.memory.copy_(memory.detach())
        return outputs


class Translator(torch.nn.Module):
    """An encoder and a decoder of gated units; the decoder's scores are written step by step."""

    def __init__(self, vocab: int, hidden: int) -> None:
        super().__init__()
        self.embed: torch.nn.Embedding = torch.nn.Embedding(vocab, hidden)
        self.encoder: torch.nn.GRUCell = torch.nn.GRUCell(hidden, hidden)
        self.decoder: torch.nn.GRUCell = torch.nn.GRUCell(2 * hidden, hidden)
        self.score: torch.nn.Linear = torch.nn.Linear(hidden, vocab)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``(length, batch)`` targets, given the tokens before each."""
        length, batch = source.shape
        hidden = self.embed.weight.new_zeros(batch, self.encoder.hidden_size)
        encoded = hidden.new_zeros(length, *hidden.shape)
        for t in range(length):
            hidden = self.encoder(self.embed(source[t]), hidden)
            encoded[t] = hidden
        scores = hidden.new_zeros(len(target), batch, self.score.out_features)
        for t in range(1, len(target)):
            weights = torch.einsum("sbh,bh->sb", encoded, hidden).softmax(0)
            context = torch.einsum("sb,sbh->bh", weights, encoded)
            hidden = self.decoder(torch.cat([self.embed(target[t - 1]), context], 1), hidden)
            scores[t] = self.score(hidden)
        return torch.nn.functional.cross_entropy(scores[1:].flatten(0, 1), target[1:].flatten())


def lstm(device: str, *, length: int, batch: int, width: int, hidden: int, training: bool) -> Program:
    """Return ``length`` steps of an LSTM."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Lstm(batch, width, hidden).train(training), (torch.randn(length, batch, width),))


def translate(device: str, *, vocab: int, hidden: int, length: int, batch: int) -> Program:
    """Return forward and backward of one batch with teacher forcing."""
    torch.manual_seed(0)
    with torch.device(device):
        sentences = torch.randint(0, vocab, (2, length, batch))
        return Program(Translator(vocab, hidden), (sentences[0], sentences[1]))
