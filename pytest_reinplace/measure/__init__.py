"""Measuring corpus entries, their baselines and the gate."""
