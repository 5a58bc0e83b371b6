"""``python -m pytest_reinplace.command``, the same as ``pytest-reinplace``."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
