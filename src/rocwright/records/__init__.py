"""The record of what was done and seen: runs, steps, findings, artifacts, channels, in a database.

The store is the truth; the records are evidence. A build goes on where they cannot be written.
"""
