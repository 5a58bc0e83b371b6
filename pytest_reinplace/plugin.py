"""The pytest plugin: its hooks."""
