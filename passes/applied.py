"""How an application is told, from plain data and without torch: by a ledger, the command and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def name_of(application: Mapping[str, Any]) -> str:
    """Return the pass, and the rule in it, of an application as ``Application.to_dict`` gives it."""
    name, rule = application["pass"], application["rule"]
    return f"{name}: {rule}" if rule else str(name)


def place_of(application: Mapping[str, Any]) -> str:
    """Return the stage, the pass with its rule, the node and the user's line."""
    node, source = application["node"], application["source"]
    at = f", node {node}{f' at {source}' if source else ''}" if node else ""
    return f"{application['stage'] or 'pipeline'} / {name_of(application)}{at}"


def change_of(application: Mapping[str, Any]) -> str:
    """Return what an application did: nodes, copies, bytes; and what is wrong with it."""
    told = [f"{application['nodes']:+d} nodes"] if application["node"] else ["another order"]
    if application["copies_added"]:
        told.append(f"new copies: {', '.join(application['copies_added'])}")
    if application["copies_removed"]:
        told.append(f"copies gone: {', '.join(application['copies_removed'])}")
    if application["copy_bytes"]:
        told.append(f"{application['copy_bytes']:+d} B copied")
    if is_wrong(application):
        told.append(application["finding"]["text"])
    return "; ".join(told)


def told(application: Mapping[str, Any]) -> str:
    """Return an application as one line."""
    return f"{application['number']} {place_of(application)}: {change_of(application)}"


def is_wrong(application: Mapping[str, Any]) -> bool:
    """Return whether an application broke the contract."""
    return _status(application) == "different"


def is_unchecked(application: Mapping[str, Any]) -> bool:
    """Return whether an application was to be checked and could not be."""
    return _status(application) == "not-checked"


def _status(application: Mapping[str, Any]) -> str:
    finding = application["finding"]
    return str(finding["status"]) if finding else ""


def unchecked_of(applications: Iterable[Mapping[str, Any]]) -> str:
    """Return how many applications could not be checked, and why the first was not; empty where all were."""
    left = [one for one in applications if is_unchecked(one)]
    if not left:
        return ""
    first = left[0]
    noun = "1 application" if len(left) == 1 else f"{len(left)} applications"
    return f"not checked: {noun}, the first {name_of(first)}: {first['finding']['text']}"
