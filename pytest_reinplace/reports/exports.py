"""The figures of a report for dashboards of others: Bencher, and PyTorch's benchmark database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compare.trend import figures_of
from ..record.stored import Stored, StoredTest

# Bencher's own measure of time is called latency, and is in nanoseconds.
_MEASURES = {
    "clones": "clones",
    "clone_bytes": "clone-bytes",
    "peak_bytes": "peak-bytes",
    "runtime": "latency",
}
_UNITS = {"clones": "clones", "clone_bytes": "B", "peak_bytes": "B", "runtime": "s"}


def bencher(report: Stored) -> dict[str, dict[str, dict[str, float]]]:
    """Return a report in Bencher's metric format, for ``bencher run --adapter json``.

    Source: https://bencher.dev/docs/reference/bencher-metric-format: for each benchmark its measures, each
    with a ``value``. They are ``clones``, ``clone-bytes``, ``peak-bytes``, and ``latency`` in nanoseconds.
    """
    found = {}
    for name, test in report.tests.items():
        figures = figures_of(test)
        if figures:
            found[name] = {_MEASURES[metric]: _value(metric, figure) for metric, figure in figures.items()}
    return found


def _value(metric: str, figure: float) -> dict[str, float]:
    return {"value": figure * 1e9 if metric == "runtime" else figure}


def pytorch(report: Stored, targets: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Return a report as the records of PyTorch's benchmark database (``oss_ci_benchmark_v3``), one a figure.

    Source: https://github.com/pytorch/pytorch/wiki/PyTorch-OSS-benchmark-infra, "Benchmark results format": a
    list of metrics, each with ``benchmark``, ``model`` and ``metric``. Bytes are bytes, a runtime is seconds.

    Args:
        report: the report.
        targets: what is given as ``target_value``, by test and metric; left out where there is none.
    """
    records = []
    for name, test in report.tests.items():
        for metric, figure in figures_of(test).items():
            target = targets.get((name, metric))
            records.append(
                {
                    "benchmark": {
                        "name": "pytest-reinplace",
                        "mode": _mode(test),
                        "extra_info": _taken_with(report, test),
                    },
                    "model": {"name": name},
                    "metric": {
                        "name": metric,
                        "benchmark_values": _values(test, metric, figure),
                        **({} if target is None else {"target_value": target}),
                        "extra_info": {"unit": _UNITS[metric]},
                    },
                }
            )
    return records


def _mode(test: StoredTest) -> str:
    """Return what the database calls a program that has a backward graph, and one that has none."""
    has_backward = any(str(graph["graph"]).startswith("[bw") for graph in test.record.graphs)
    return "training" if has_backward else "inference"


def _values(test: StoredTest, metric: str, figure: float) -> list[float]:
    times = test.sides.tested.times if metric == "runtime" and test.sides is not None else ()
    return list(times) or [figure]


def _taken_with(report: Stored, test: StoredTest) -> dict[str, Any]:
    """Return what is known of how a test ran: texts alone, for the rest of a report was not checked."""
    graphs = test.record.graphs
    device, versions = report.document.get("device"), report.document.get("versions")
    known = {
        **(versions if isinstance(versions, dict) else {}),
        "device": device.get("slug") if isinstance(device, dict) else None,
        **({key: graphs[0].get(key) for key in ("pass", "backend")} if graphs else {}),
    }
    return {key: value for key, value in known.items() if isinstance(value, str) and value}
