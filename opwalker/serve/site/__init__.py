"""The notes as static web pages: nothing is loaded from outside, and all text of the source is escaped."""
