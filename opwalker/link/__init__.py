"""Files joined: the index of symbols, registrations, calls and includes, and the store that keeps facts."""
