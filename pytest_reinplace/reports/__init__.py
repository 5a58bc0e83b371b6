"""The reports. Each is made of one JSON-ready document and of nothing else."""
