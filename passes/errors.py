"""Errors of the passes: each says what was expected, what came, where, and what to do."""

from __future__ import annotations


class ReinplaceError(Exception):
    """Base of every error that the passes raise on purpose."""


class GraphError(ReinplaceError):
    """The graph is not a functional graph that can be analysed; it was left as it was."""


class OutsideTensorError(GraphError):
    """The graph names bytes outside the tensor that it views: it does not say what they are then."""


class RewriteError(ReinplaceError):
    """A rewrite failed in the middle; the graph was put back as it was."""


class SeamError(ReinplaceError):
    """A private name of torch is missing in the installed version."""


class DeclarationError(ReinplaceError):
    """A declaration about an operator cannot be made, or what it says was seen to be wrong."""
