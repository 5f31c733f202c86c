"""The check: a source read for the rules, the rules run, and their findings judged against what a project asked for."""
