"""Random macro programs for comparing the expander with a compiler's preprocessor.

A program is a source text and two headers. Its definitions use ``#``, ``##``, variable arguments, each other and
themselves, are replaced and taken back between uses, and stand under conditions that both readers can decide.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

NAMES = ("A", "B", "C", "D", "E", "F")
PARAMETERS = ("x", "y", "z")
ATOMS = ("p", "q", "1", "2.5f", '"s\\n"', "0x1F", 'R"(a,) b)"', "z8", "+", "<", ">", "&", "|", "::", ".", "->", "L")
PIECES = ("p", "q", "7", '"t, )"', "<", "+", "-", "A", "B", "[", "]", '"\\\\"')
CONDITIONS = (
    "ifdef FLAG", "ifndef FLAG", "if FLAG", "if OTHER > 3", "if defined(OTHER) && OTHER == 2", "if 0",
    "if FLAG && OTHER % 2 == 1", "if (FLAG || OTHER == 3) && !(OTHER < 2)",
)  # fmt: skip


@dataclass
class Program:
    """``headers`` are named ``one.h`` and ``two.h``; the text includes both."""

    text: str
    headers: dict[str, str]


class _Writer:
    """Writes one program, every choice drawn from ``random``."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        #: What each name is now: None for no function-like macro, else its parameter count and whether it is variadic.
        self.kinds: dict[str, tuple[int, bool] | None] = {}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def atom(self, parameters: tuple[str, ...], variadic: bool, source: bool = False) -> str:
        draw = self.random.random()
        if parameters and draw < 0.3:
            return self.random.choice(parameters)
        if variadic and draw < 0.42:
            return "__VA_ARGS__"
        if draw < 0.75:
            return self.use(self.random.choice(NAMES), parameters, source, 0)
        return self.random.choice(ATOMS)

    def use(self, name: str, parameters: tuple[str, ...], source: bool, depth: int) -> str:
        kind = self.kinds.get(name)
        if kind is None or self.chance(0.15):
            return name
        count, variadic = kind
        total = count + (self.random.randint(0 if count == 0 else 1, 2) if variadic else 0)
        # A variable argument that is there and empty is where compilers differ: it begins with something that stays.
        arguments = [
            f"q {self.argument((), depth + 1)}" if place >= count else self.argument(parameters, depth + 1)
            for place in range(total)
        ]
        separator = self.random.choice((", ", ",", ",\n  ", ", /* c , ) */ ") if source else (", ", ","))
        if source and total == 2 and self.chance(0.2):
            inside = f"{arguments[0]},\n#if 1\n{arguments[1]}\n#else\n garbage, (\n#endif\n"
        else:
            inside = separator.join(arguments)
        return f"{name}{self.random.choice(('', '', ' '))}({inside})"

    def argument(self, parameters: tuple[str, ...], depth: int) -> str:
        draw = self.random.random()
        if draw < 0.1:
            return ""
        if draw < 0.3 and depth < 3:
            return self.use(self.random.choice(NAMES), parameters, False, depth)
        if draw < 0.4 and depth < 3:
            return f"({self.argument(parameters, depth + 1)}, {self.argument(parameters, depth + 1)})"
        if draw < 0.6 and parameters:
            return self.random.choice(parameters)
        glue = self.random.choice((" ", "  "))
        return glue.join(self.random.choice(PIECES) for _ in range(self.random.randint(1, 3)))

    def body(self, parameters: tuple[str, ...] | None, variadic: bool) -> str:
        out = []
        total = self.random.randint(0, 6)
        held = parameters or ()
        for number in range(total):
            draw = self.random.random()
            if held and draw < 0.12:
                out.append(self.random.choice(("#", "# ")) + self.random.choice(held))
            elif draw < 0.22 and number + 1 < total:
                left = self.random.choice((*held, "A", "B", "p", "q1"))
                right = self.random.choice((*held, "C", "2", "_t"))
                out.append(self.random.choice((f"{left}##{right}", f"{left} ## {right} ## w")))
            elif variadic and draw < 0.28:
                out.append("f(z0, ##__VA_ARGS__)")
            elif variadic and draw < 0.34:
                out.append(self.random.choice(("__VA_OPT__(q ,) k", "__VA_OPT__(, 5) k", "__VA_OPT__(x)")))
            else:
                out.append(self.atom(held, variadic))
        return " ".join(out)

    def define(self, name: str) -> str:
        if self.chance(0.35):
            kind = None
            text = f"#define {name} {self.body(None, False)}"
        else:
            count, variadic = self.random.randint(0, 3), self.chance(0.35)
            kind = (count, variadic)
            parameters = PARAMETERS[:count]
            listed = ", ".join((*parameters, *(("...",) if variadic else ())))
            gap = self.random.choice((" ", " ", " \\\n  "))
            text = f"#define {name}({listed}){gap}{self.body(parameters, variadic)}"
        self.kinds[name] = kind
        return text + self.random.choice(("", "", "", " /* c, ( */", " // d ("))

    def definitions(self, count: int, conditions: tuple[str, ...]) -> list[str]:
        out = []
        for name in self.random.sample(NAMES, count):
            if self.chance(0.25):
                out += [f"#{self.random.choice(conditions)}", f"#undef {name}", self.define(name)]
                out += ["#else", f"#undef {name}", self.define(name), "#endif"]
            else:
                out += [f"#undef {name}", self.define(name)]
        return out

    def program(self) -> Program:
        lines = [f"#define FLAG {self.random.randint(0, 1)}", f"#define OTHER {self.random.randint(1, 5)}"]
        # A use before any definition may mean one that another file gives: here nothing is meant.
        lines += [f"#undef {name}" for name in NAMES]
        headers = {}
        for name in ("one", "two"):
            inside = self.definitions(self.random.randint(0, 2), (*CONDITIONS, "if 1", "if 2 > 1 && !0"))
            guard = self.random.randint(0, 2)
            if guard == 1:
                inside = ["#pragma once", *inside]
            elif guard == 2:
                inside = [f"#ifndef GUARD_{name}", f"#define GUARD_{name}", *inside, "#endif"]
            headers[f"{name}.h"] = "\n".join(inside) + "\n"
            lines.append(f'#include "{name}.h"')
            lines += self.definitions(self.random.randint(0, 3), CONDITIONS)
        for _ in range(self.random.randint(1, 4)):
            if self.chance(0.3):
                lines += self.definitions(1, CONDITIONS)
            if self.chance(0.15):
                name = self.random.choice(NAMES)
                lines.append(f"#undef {name}")
                self.kinds[name] = None
            pieces = [self.atom((), False, True) for _ in range(self.random.randint(1, 4))]
            lines.append(f"BEGIN {' '.join(pieces)} END")
        return Program("\n".join(lines) + "\n", headers)


def programs() -> st.SearchStrategy[Program]:
    """Programs, each made from a seeded source of randomness."""
    return st.integers(0, 2**32).map(program)


def program(seed: int) -> Program:
    """The program of one seed."""
    return _Writer(random.Random(seed)).program()
