"""Where a launch through a variable starts one kernel of several: ``auto kernel = &a; if (wide) kernel = &b;``.

In: a launch site that can mean several kernels, and one of them. Out: the conditions, in words, under which the
variable holds that kernel; nothing where that is not shown.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.model.reach import LaunchSite
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import negated
from opwalker.views.branches import any_of, needed
from opwalker.views.returns import Returns


def chosen_where(body: Body, branches: Returns, site: LaunchSite, kernel: str) -> tuple[str, ...]:
    """What has to hold for the variable of a launch to be ``kernel`` (a simple name)."""
    name = site.expression.strip("&() ")
    if len({one.function.offset for one in site.kernels}) < 2 or not re.fullmatch(r"\w+", name):
        return ()
    held = [one for one in body.locals_at(name, site.at) if one.start < site.at]
    if len(held) != 1:
        return ()
    declared = [(held[0].value[0], body.text(held[0].value))] if held[0].value is not None else []
    assigned = [(a.start, body.text(a.value)) for a in body.assigns_at(name, site.at) if a.start < site.at]
    found = [(at, text) for at, text in (*declared, *assigned) if re.search(rf"\b{re.escape(kernel)}\b", text)]
    if not found:
        call = declared[0][1].strip(" =") if len(declared) == 1 and not assigned else ""
        return (f"`{call}` gives it",) if call.endswith(")") else ()
    if len(found) == 1 and found[0] in assigned:
        here = branches.place(site.at)
        return tuple(text for text in branches.place(found[0][0]) if text not in here)
    # Its own branches, or that none of the others was taken.
    first = found[0] in declared
    tests = []
    for at, _ in [one for one in assigned if one not in found] if first else found:
        guards = needed(branches.around(branches.innermost(at)))
        own = [one for one in guards if not branches.holds(one.block, held[0].start)]
        if len(own) != 1 or own[0].condition.kind == "raw":
            return ()
        tests.append(own[0].condition)
    if not tests:
        return ()
    return (said(negated(any_of(tuple(tests))) if first else any_of(tuple(tests))),)
