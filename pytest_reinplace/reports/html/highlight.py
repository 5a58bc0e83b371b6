"""Lines of a listing in colours, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.visible import brief

if TYPE_CHECKING:
    from markupsafe import Markup


def highlighted(texts: Sequence[str]) -> list[Markup]:
    """Return each text as HTML that is safe to put on a page, in the colours of Python."""
    from markupsafe import Markup, escape
    from pygments.lexers import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    found = []
    # Line by line: what one line leaves open, a quotation mark in a name, must not colour the next.
    for text in texts:
        html = ""
        for token, value in lexer.get_tokens(brief(text)):
            kind = _kind(token)
            shown = str(escape(value))
            html += f'<span class="{kind}">{shown}</span>' if kind else shown
        found.append(Markup(html))
    return found


def _kind(token: Any) -> str:
    """Return the class of a token; most have none, for each would cost twenty bytes and more."""
    from pygments.token import Keyword, Number, String

    if token in Keyword:
        return "k"
    if token in Number:
        return "m"
    return "s" if token in String else ""
