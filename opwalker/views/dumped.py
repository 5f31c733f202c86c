"""One stage's product as it is, for ``dump``.

In: a session, the stage's name, a path. Out: what that stage made, as plain data.
"""

from __future__ import annotations

import msgspec

from opwalker.errors import InputError


def dumped(session, stage: str, path: str | None) -> object:
    """``source``: the files; ``facts``: those of a path; ``index``: names and includes. InputError for a path that the
    source has not."""
    if stage == "source":
        return {
            "root": session.root,
            "files": [
                {"path": p, "size": r[0], "language": r[2], "digest": r[3]}
                for p, r in sorted(session.store.known().items())
            ],
        }
    if stage == "facts":
        return _dump_facts(session, path)
    index = session.workbench.index
    return {
        "bindings": session.workbench.bindings().bindings,
        "includes": {p: [found for _, found in index.includes(p)] for p in sorted(index.paths)},
        "names": {
            kind: sorted(index.names_of_kind(kind)) for kind in ("kernel", "function", "macro", "class", "alias")
        },
    }


def _dump_facts(session, path: str | None) -> object:
    from opwalker.facts import registry
    from opwalker.views.names import nearest

    known = session.store.known()
    if path is None or path not in known:
        near = nearest(known, path or "")
        raise InputError(f"no file {path!r} in the source", f"nearest: {', '.join(near)}" if near else None)
    out = {}
    for extractor in registry.REGISTRY.all().values():
        blob = session.store.facts(known[path][3], extractor.kind, session.producers[extractor.kind])
        if blob is not None:
            out[extractor.kind] = msgspec.msgpack.decode(blob)
    return {"path": path, "facts": out}
