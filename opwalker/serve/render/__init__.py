"""A result in an output form, one module a form. Results know nothing of how they are shown."""
