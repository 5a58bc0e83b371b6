"""Real models and the reinplacing that is expected of them."""

if __name__ != "pytest_reinplace.corpus":
    raise ImportError(f"this folder is the package pytest_reinplace.corpus; it was imported as {__name__!r}")
