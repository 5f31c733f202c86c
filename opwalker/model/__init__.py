"""The nouns that flow between the stages: frozen, slotted dataclasses, standard library only."""
