"""A walk told as a reading note: statements in the order in which a good reader works."""
