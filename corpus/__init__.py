"""Real models and the reinplacing that is expected of them."""
