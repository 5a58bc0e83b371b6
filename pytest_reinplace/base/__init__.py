"""What any other package may use: words, names and files, the processes of a launch, the seam to torch.

Nothing in it knows a graph, a compilation or a report.
"""
