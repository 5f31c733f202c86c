"""The doors: the command line, and the forms in which a result is shown. Nothing here reads a source."""
