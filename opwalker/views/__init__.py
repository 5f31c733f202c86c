"""Answers: the index and what was expanded from it, turned into the results that a command shows."""
