"""The arguments of a macro use, taken from the tokens that follow its name."""

from __future__ import annotations

from opwalker.expand.tokens import Token


def given_lambda(pending: list[Token]) -> bool:
    """Whether one of the arguments that begin at the end of ``pending`` is a lambda, in parentheses or not."""
    depth, opens = 0, False
    for token in reversed(pending):
        text = token.text
        if text == "[" and opens:
            return True
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if not depth:
            return False
        opens = (text == "," and depth == 1) or (text == "(" and (opens or depth == 1))
    return False


def take_arguments(pending: list[Token]) -> tuple[list[list[Token]], list[Token], Token] | None:
    """Pop ``( … )`` off a reversed token list, cut at its top-level commas, which come along; None (nothing popped)
    when it never closes."""
    depth = 0
    at = len(pending) - 1
    arguments: list[list[Token]] = [[]]
    commas: list[Token] = []
    while at >= 0:
        token = pending[at]
        text = token.text
        if text in ("(", "[", "{"):
            # Only parentheses protect a comma from the preprocessor; brackets are counted as parentheses are not.
            if text == "(":
                depth += 1
                if depth > 1:
                    arguments[-1].append(token)
            else:
                arguments[-1].append(token)
        elif text == ")":
            depth -= 1
            if depth == 0:
                del pending[at:]
                return arguments, commas, token
            arguments[-1].append(token)
        elif text == "," and depth == 1:
            arguments.append([])
            commas.append(token)
        else:
            arguments[-1].append(token)
        at -= 1
    return None
