"""The torture campaign: what breaks when files are damaged, processes are killed and many work at once.

``make torture`` runs all of it; ``lab/results/torture.json`` holds what it found.
"""
