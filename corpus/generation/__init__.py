"""What surrounds a language model's forward pass when text is made: beams, drafts, masks, scores.

Knows one algorithm a file. Must not know a model, or the other packages.
"""
