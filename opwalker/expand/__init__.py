"""Macros expanded, names resolved, calls followed: which launches an entry point reaches, and how."""
