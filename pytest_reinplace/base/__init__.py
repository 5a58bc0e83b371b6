"""What any other package may use: words, names and files, the processes of a launch, the seam to torch.

It knows no graph, no test and no report.
"""
