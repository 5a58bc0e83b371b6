"""pytest-reinplace: a pytest plugin that asserts, explains and gates reinplacing."""
