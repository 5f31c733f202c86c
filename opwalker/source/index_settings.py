"""Which package index is asked: what the user has set for pip, read without pip.

In: environment variables and pip's configuration files. Out: ``IndexSettings``. Only what decides *where* packages come
from is read: index addresses and the certificate bundle.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from opwalker.errors import EnvironmentMissing

VARIABLE = "OPWALKER_INDEX_URL"

#: pip's settings for all users of a Unix machine, read after those of the XDG folders.
_FOR_ALL_USERS = Path("/etc/pip.conf")


class IndexSettings(Struct, frozen=True):
    """``urls`` in the order in which they are asked; None stands for the client library's default index.

    ``named_by`` is the setting that named the first one, None when nothing did. ``certificates`` is a bundle file to
    trust, if one is set.
    """

    urls: tuple[str | None, ...] = (None,)
    named_by: str | None = None
    certificates: str | None = None


def index_settings(environment: Mapping[str, str] = os.environ) -> IndexSettings:
    """The settings in force. EnvironmentMissing when the main address is no http(s) address."""
    own = environment.get(VARIABLE, "").strip()
    config = _pip_config(environment)
    certificates = environment.get("PIP_CERT") or config.get("cert") or None
    if own:
        return IndexSettings((_checked(own, VARIABLE),), VARIABLE, certificates)
    main: str | None = None
    named_by = None
    for name, value in (
        ("PIP_INDEX_URL", environment.get("PIP_INDEX_URL", "")),
        ("pip's setting index-url", config.get("index-url", "")),
    ):
        if value.strip():
            main, named_by = _checked(value.strip(), name), name
            break
    extra = environment.get("PIP_EXTRA_INDEX_URL") or config.get("extra-index-url", "")
    # An extra index that is a folder on disk holds wheels for pip and cannot be asked over the network.
    others = [url for url in extra.split() if _is_http(url) and url != main]
    return IndexSettings((main, *dict.fromkeys(others)), named_by, certificates)


def _checked(url: str, named_by: str) -> str:
    if not _is_http(url):
        raise EnvironmentMissing(
            f"the package index that {named_by} names is no http or https address", f"set {VARIABLE} to one"
        )
    return url


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _pip_config(environment: Mapping[str, str]) -> dict[str, str]:
    """The ``[global]`` section of pip's files, the later ones winning. A file that cannot be parsed is passed over."""
    import configparser

    found: dict[str, str] = {}
    for path in _pip_config_files(environment):
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, configparser.Error):
            continue
        if parser.has_section("global"):
            # pip takes index_url for index-url.
            found.update((key.replace("_", "-"), value) for key, value in parser.items("global") if value)
    return found


def _pip_config_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip looks on this platform: for all users, for this user, for this Python, and a file named outright."""
    named = environment.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    if sys.platform == "win32":
        files = [Path(environment.get(name, "")) / "pip" / "pip.ini" for name in ("PROGRAMDATA", "APPDATA")]
        files.insert(1, home / "pip" / "pip.ini")
        files.append(Path(sys.prefix) / "pip.ini")
    else:
        system = [Path(folder) for folder in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]
        user = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        if sys.platform == "darwin":
            library = home / "Library" / "Application Support"
            system = [Path("/Library/Application Support")]
            user = library if (library / "pip").is_dir() else user
        files = [folder / "pip" / "pip.conf" for folder in system]
        files += [_FOR_ALL_USERS, home / ".pip" / "pip.conf", user / "pip" / "pip.conf"]
        files.append(Path(sys.prefix) / "pip.conf")
    return [*files, Path(named)] if named else files
