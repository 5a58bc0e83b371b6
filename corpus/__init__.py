"""Real models and the reinplacing that is expected of them."""

if __name__ != "pytest_reinplace.corpus":
    raise ImportError(
        f"expected to be imported as pytest_reinplace.corpus, was imported as {__name__}; "
        "install the project (pip install -e .) and import pytest_reinplace.corpus"
    )
