"""The nouns that flow between the stages: frozen records (``msgspec.Struct``), nothing else of a library."""
