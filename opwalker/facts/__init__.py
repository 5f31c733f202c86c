"""One file at a time: text to facts. Facts depend on that file alone, so they are cached by its digest."""
