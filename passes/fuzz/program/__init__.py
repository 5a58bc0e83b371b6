"""Random programs that write in place, as text.

Knows how a program and its inputs are drawn. Must not know how it is compiled or judged.
"""

from .hard import HardProgram
from .plain import RandomProgram

__all__ = ["HardProgram", "RandomProgram"]
