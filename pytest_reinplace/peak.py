"""How many bytes a call holds at its peak, for programs that measure it themselves."""

from .call.peak import measured

__all__ = ["measured"]
