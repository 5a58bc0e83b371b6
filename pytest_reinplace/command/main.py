"""The entry point: arguments, and exit codes."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base import _torch
from ..base.choices import BACKENDS, pass_name
from ..base.visible import visible
from ..compare.limit import Limit, limit
from ..record.stored import StoredError
from .errors import CommandError

FINE, EXCEEDED, WRONG = 0, 1, 2

_LIMIT = "clones:0, new_clones:0, clone_bytes:4KiB, peak_bytes:1%%, runtime:5%%; may be given several times"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 when all is fine, 1 when a limit is exceeded, 2 when it cannot be done."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names and arrows, on a terminal that knows ASCII only
            stream.reconfigure(errors="backslashreplace")
    given = _parser().parse_args(arguments)
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except (CommandError, StoredError) as error:
        print(f"pytest-reinplace {given.command}: error: {visible(error)}", file=sys.stderr)
    except BrokenPipeError:  # the reader has seen enough; Python would complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return WRONG


def _run(given: argparse.Namespace) -> int:
    if given.command == "show":
        from . import show

        return show.show(given.report, given.markdown, given.verbose)
    if given.command == "results":
        from . import results

        return results.run(given.report, given.out, given.about)
    if given.command == "compare":
        from . import compare

        return compare.run(given.old, given.new, given.fail_on, given.form)
    if given.command == "history":
        from . import history

        return history.run(given.reports, given.markdown, given.svg, given.bencher, given.pytorch)
    if given.command == "merge":
        from . import merge

        return merge.run(given.out, given.shards, given.force)
    if given.command == "comment":
        from . import comment

        return comment.run(given.file, given.forge, given.repo, given.pull, given.name)
    if given.command == "corpus":
        from . import corpus

        corpus.run(given.arguments)
    return _run_on_function(given)


def _run_on_function(given: argparse.Namespace) -> int:
    """Run a command that compiles a function."""
    called = given.function, given.shape, given.inputs, given.pass_name
    if given.command == "memory":
        from . import memory

        files = memory.Files(given.html, given.perfetto, given.snapshot)
        return memory.run(
            *called, given.device, given.form, dynamic=given.dynamic, beside=given.beside, files=files
        )
    if given.command == "blame":
        from . import blame

        return blame.run(*called, given.of, given.device, given.form, dynamic=given.dynamic)
    from . import explain

    return explain.run(*called, given.backend, given.device)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pytest-reinplace",
        description="Show, compare and merge reports, comment on pull requests, explain one function, say "
        "which pass made it wrong, or what it holds in memory.",
        epilog="Exit codes: 0 fine, 1 a limit is exceeded, (blame) somebody is to blame or (memory) "
        "something is unexplained, 2 wrong usage or an input that cannot be used.",
    )
    version = _torch.version("pytest-reinplace") or "unknown"
    parser.add_argument("--version", action="version", version=f"pytest-reinplace {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="print the terminal section of a JSON report")
    show.add_argument("report", type=Path, metavar="A.json")
    forms = show.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="print what --reinplace-markdown writes")
    verbose = "print each line with clones, and each test; -vv each clone, too"
    forms.add_argument("-v", "--verbose", action="count", default=0, help=verbose)
    results = commands.add_parser("results", help="write what a run measured as a page with a plot")
    results.add_argument("report", type=Path, metavar="A.json")
    results.add_argument("out", type=Path, metavar="OUT.md", help="its plot goes beside it, as OUT.svg")
    results.add_argument("--about", default="", metavar="COMMAND", help="the command that measured")
    _add_compare(
        commands.add_parser("compare", help="compare two reports, and fail where a limit is exceeded")
    )
    _add_history(commands.add_parser("history", help="print how figures went over several reports"))
    merge = commands.add_parser("merge", help="write the reports of several shards as one")
    merge.add_argument("out", type=Path, metavar="OUT.json", help="the report to write")
    merge.add_argument("shards", type=Path, nargs="+", metavar="A.json")
    merge.add_argument("--force", action="store_true", help="replace OUT.json where it exists")
    _add_explain(commands.add_parser("explain", help="compile a function, and say what is in place"))
    _add_blame(commands.add_parser("blame", help="say which pass and rule made a function wrong, or a copy"))
    _add_memory(commands.add_parser("memory", help="say what a function holds at its peak, and why"))
    _add_comment(commands.add_parser("comment", help="keep one comment on a pull request up to date"))
    # Whatever follows is pytest's, options too: no argument begins with this prefix.
    corpus = commands.add_parser(
        "corpus", help="run the entries that are installed with us", prefix_chars="\0", add_help=False
    )
    corpus.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="an argument of pytest")
    return parser


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD.json")
    parser.add_argument("new", type=Path, metavar="NEW.json")
    parser.add_argument(
        "--fail-on", action="append", default=[], type=_limit, metavar="METRIC:LIMIT", help=_LIMIT
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--markdown",
        dest="form",
        action="store_const",
        const="markdown",
        default="text",
        help="print Markdown, for a comment on a pull request",
    )
    forms.add_argument(
        "--json", dest="form", action="store_const", const="json", help="print JSON, for other programs"
    )


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reports",
        type=Path,
        nargs="+",
        metavar="A.json",
        help="oldest first; of a folder all *.json, by name",
    )
    parser.add_argument("--markdown", action="store_true", help="for a comment or a page")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw a small chart for each figure")
    parser.add_argument(
        "--bencher", type=Path, metavar="FILE", help="write the last report in Bencher's metric format"
    )
    parser.add_argument(
        "--pytorch", type=Path, metavar="FILE", help="write it as records of PyTorch's benchmark database"
    )


def _add_comment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.md", help="the text; it replaces the last one")
    parser.add_argument(
        "--forge", choices=("github", "gitlab"), help="default: that whose CI runs this, or github"
    )
    parser.add_argument("--repo", metavar="OWNER/NAME", help="default: what the CI says")
    parser.add_argument("--pull", type=int, metavar="NUMBER", help="default: what the CI says")
    parser.add_argument(
        "--name", type=_name, default="reinplace", help="tells several comments apart (default: reinplace)"
    )


def _add_blame(parser: argparse.ArgumentParser) -> None:
    _add_function(parser)
    parser.add_argument(
        "--of",
        default="contract",
        help="contract (default), copies, nodes, seconds, crash or matches:RULE",
    )
    _add_dynamic(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "-v",
        "--verbose",
        dest="form",
        action="store_const",
        const="verbose",
        default="text",
        help="print every application",
    )
    forms.add_argument(
        "--json", dest="form", action="store_const", const="json", help="print JSON, for other programs"
    )


def _add_explain(parser: argparse.ArgumentParser) -> None:
    _add_function(parser)
    parser.add_argument("--backend", default="inductor", choices=BACKENDS, help="graph generates no code")


def _add_memory(parser: argparse.ArgumentParser) -> None:
    _add_function(parser)
    _add_dynamic(parser)
    parser.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const="json",
        default="text",
        help="print JSON, for other programs",
    )
    parser.add_argument(
        "--beside", type=_pass, metavar="NAME", help="another pass, told and drawn before that of --pass"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="draw what is held at each position, as a page"
    )
    parser.add_argument("--perfetto", type=Path, metavar="FILE", help="write a trace that Perfetto opens")
    parser.add_argument(
        "--snapshot", type=Path, metavar="FILE", help="write a snapshot that torch's memory viewer opens"
    )


def _add_dynamic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dynamic", action="store_true", help="compile with symbols for sizes")


def _add_function(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="module:function")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="TENSOR",
        help="an argument, such as float32[8,16]; repeat it for each argument, or give several in one text",
    )
    inputs.add_argument("--inputs", metavar="module:function", help="a callable that returns the arguments")
    parser.add_argument(
        "--pass",
        dest="pass_name",
        default="inductor",
        type=_pass,
        metavar="NAME",
        help="inductor (default), exact, post_grad or package.module:attribute",
    )
    parser.add_argument("--device", default="cpu", help="the device of the tensors of --shape (default: cpu)")


def _limit(text: str) -> Limit:
    try:
        return limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _name(text: str) -> str:
    if not text.isprintable() or not text.strip() or "--" in text:
        raise argparse.ArgumentTypeError(f"expected a name on one line, without --, got {text!r}")
    return text


def _pass(text: str) -> str:
    try:
        return pass_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
