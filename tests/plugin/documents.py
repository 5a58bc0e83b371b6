"""Documents as sessions leave them, made by hand: of any size, and with names that mean harm."""

from __future__ import annotations

from typing import Any

from pytest_reinplace.record.counts import counts_of, total

HOSTILE = [
    "<script>alert(1)</script>",
    "</details></table><img src=x onerror=alert(1)>",
    "a | b || c \\| d",
    "`code` ``more`` ```fence",
    "\x1b[31mred\x1b[0m\x07\x00\x9b2J",
    "line\nbreak\r\n::error::injected\u2028x",
    "*bold* _it_ ~~s~~ [l](javascript:alert(1)) ![i](http://example.com/x.png) #1 @someone www.example.com",
    "\u202egnp.exe\u202c \ufeff \ud800",
    "&lt;b&gt; &amp; %0A %25 , : =",
    "\"' onmouseover='alert(1)' {{ 7*7 }} {% raw %} ${x}",
    "ünïcödé 漢字 🙂",
    "x" * 100_000,
]


def blocker(node: str = "sum_1", source: str | None = "model.py:9") -> dict[str, Any]:
    return {"node": node, "op": "aten::sum", "source": source}


def outcome(label: str = "aten::index_put.self", **given: Any) -> dict[str, Any]:
    op, _, arg = label.rpartition(".")
    clone = {
        "label": label,
        "op": op,
        "arg": arg,
        "node": "index_put",
        "graph": "",
        "reinplaced": False,
        "nbytes": 32,
        "reason": "still-read",
        "blockers": [blocker()],
        "source": "model.py:7",
        "hint": "read the old value before the write",
        "added": False,
        "fused": False,
        "allocates": False,
        "moved": [],
    }
    return clone | given


def in_place(label: str = "mylib::write.out", **given: Any) -> dict[str, Any]:
    made = outcome(label, reinplaced=True, reason=None, blockers=[], hint="", node="write")
    return made | given


def picture(lines: int = 6, clone: str = "index_put", reader: str = "sum_1") -> dict[str, Any]:
    names = ["x", "mul", clone, reader, *(f"n{i}" for i in range(lines - 4))]
    before = [{"node": n, "text": f"{n}: float32[8] = aten.neg.default({n})"} for n in names]
    return {
        "before": before,
        "after": [*before, {"node": "", "text": "… 3 lines left out"}],
        "memory": {
            "nodes": lines,
            "step": 1,
            "functional": [32 * (i % 5) for i in range(min(lines, 400))],
            "decided": [16 * (i % 5) for i in range(min(lines, 400))],
            "peak_functional": 128,
            "peak_decided": 64,
            "copies": [{"at": 2, "node": clone, "label": "aten::index_put.self", "nbytes": 32}],
            "peak": {
                "at": 4,
                "count": 3,
                "values": [
                    {"node": clone, "element": "", "nbytes": 32, "last": 5},
                    {"node": reader, "element": "self[1]", "nbytes": 24, "last": 4},
                ],
            },
        },
    }


def graph(*outcomes: dict[str, Any], **given: Any) -> dict[str, Any]:
    found = {
        "graph": "[fw 0/0]",
        "pass": "inductor",
        "backend": "graph",
        "problem": "",
        "suspicious": [],
        "clones": [o["label"] for o in outcomes if not o["reinplaced"]],
        "reinplaced": [o["label"] for o in outcomes if o["reinplaced"]],
        "clone_bytes": sum(o["nbytes"] for o in outcomes if not o["reinplaced"]),
        "outcomes": list(outcomes),
        "picture": None,
    }
    return found | given


def added(label: str = "aten::mm.self", nbytes: int = 256, **given: Any) -> dict[str, Any]:
    """Return a copy that lowering adds."""
    copy = {
        "label": label,
        "nbytes": nbytes,
        "cause": "strides",
        "buffer": "buf1",
        "of": "buf0",
        "node": "mm",
        "value": "add",
        "source": "model.py:4",
        "device": "cpu",
        "meant": False,
        "graph": "",
        "hint": "make it contiguous before",
    }
    return copy | given


def program(static: int | None = 512, **given: Any) -> dict[str, Any]:
    """Return what a program held in a measured call; nothing is known where ``static`` is ``None``."""
    found = {
        "graph": "[fw 0/0]",
        "problem": "" if static is not None else "no Python program",
        "before": 0,
        "peak": static,
        "static_peak": static,
        "static_bound": static,
        "needed_by": "extern_kernels.mm(buf0, arg1_1, out=buf1)",
    }
    return found | given


def call(measured: int, *programs: dict[str, Any], bound: int = 512, outside: int = 0) -> dict[str, Any]:
    """Return a measured call; what is unexplained is what its programs leave."""
    explained = max([outside, *(one["peak"] for one in programs if one["peak"] is not None)])
    return {
        "measured_peak": measured,
        "lower_bound": bound,
        "outside": outside,
        "unexplained": measured - explained,
        "programs": list(programs),
    }


def with_calls(document: dict[str, Any], *calls: dict[str, Any], test: str = "") -> dict[str, Any]:
    """Return the document with measured calls in one of its tests, the first where none is named."""
    document["tests"][test or min(document["tests"])]["memory"] = list(calls)
    return document


def report(tests: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a document of tests by their ids, each a list of graphs."""
    entries = {
        test: {"outcome": "passed", **counts_of(graphs), "graphs": graphs} for test, graphs in tests.items()
    }
    return {
        "schema": 1,
        "versions": {"pytest-reinplace": "0.1.0", "torch": "2.13.0", "triton": None},
        "pass": None,
        "backend": None,
        "tests": entries,
        "reasons": {"still-read": "the old value is still read after this write"},
        "total": {"tests": len(entries), **total(map(counts_of, tests.values()))},
    }


def hostile() -> dict[str, Any]:
    """Return a document whose every text is hostile."""
    tests = {}
    for text in HOSTILE:
        clone = outcome(
            text, node=text, op=text, arg=text, source=f"{text}:3", hint=text, blockers=[blocker(text, text)]
        )
        one = graph(clone, in_place(text), graph=text, problem=text, suspicious=[text], backend=text)
        tests[text] = [one | {"picture": picture(clone=text, reader=text), "pass": text}]
    made = report(tests)
    made["versions"]["torch"] = made["pass"] = HOSTILE[0]
    return made


def hostile_below() -> dict[str, Any]:
    """Return a document with copies of lowering and measured calls whose every text is hostile."""
    made = hostile()
    for text, test in made["tests"].items():
        names = {"node": text, "buffer": text, "of": text, "hint": text, "source": f"{text}:3"}
        test["graphs"][0]["copies"] = [added(text, **names)]
        odd = program(None, graph=text, problem=text, needed_by=text)
        test["memory"] = [call(600, program(graph=text)), call(7, odd, bound=0)]
    return made
