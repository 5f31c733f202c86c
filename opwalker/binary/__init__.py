"""What a shared library holds, read from its bytes. In: a file. Out: ``LibraryFacts``. Nothing is loaded or run."""
