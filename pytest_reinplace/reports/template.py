"""The templates of pages and charts, and the packages that they need."""

from __future__ import annotations

import importlib.resources
import importlib.util
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# Installed by the extra `html`.
_PACKAGES = ("jinja2", "pygments")


def missing() -> list[str]:
    """Return the packages that the page needs and that are not installed."""
    return [name for name in _PACKAGES if importlib.util.find_spec(name) is None]


def text_of(name: str, package: str) -> str:
    """Return a file that lies in a package."""
    return importlib.resources.files(package).joinpath(name).read_text("utf-8")


def environment(package: str) -> Environment:
    """Return the templates of a package: every value is escaped, and one that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    found = Environment(
        loader=FunctionLoader(lambda name: text_of(name, package)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    found.filters["breakable"] = breakable
    return found


def breakable(name: str) -> Markup:
    """Return the id of a test, escaped, that a browser breaks behind ``::``, ``/`` and ``_`` first."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"::|[/_]", r"\g<0><wbr>", str(escape(name))))
