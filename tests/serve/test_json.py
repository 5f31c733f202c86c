"""The JSON documents: the contract's keys, in order, for every result."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from opwalker.model.walk import KernelsResult, OpsResult, SourceInfo, Walk
from opwalker.serve.render.json import to_json
from tests.serve import samples

SCHEMAS = Path(__file__).parent / "schemas"
RESULTS = {
    "walk": samples.WALK,
    "walk of a kernel": samples.KERNEL_WALK,
    "walk with a second opinion": samples.CLANG_WALK,
    "ops": samples.OPS,
    "ops of nothing": samples.NO_OPS,
    "kernels": samples.KERNELS,
}


def checker(command: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", RESULTS)
def test_documents_keep_the_contract(name: str) -> None:
    document = json.loads(to_json(RESULTS[name]))
    assert list(document)[:2] == ["format", "source"]
    assert [error.message for error in checker(name.split()[0]).iter_errors(document)] == []


def test_the_contract_can_be_broken() -> None:
    document = json.loads(to_json(samples.WALK))
    document["implementations"][0]["certainty"] = "likely"
    del document["implementations"][1]["kernels"][1]["barriers"][0]["call"]
    document["entry"] = json.loads(to_json(samples.KERNEL_WALK))["entry"]
    assert len(list(checker("walk").iter_errors(document))) == 3


def test_an_index_report_has_names_in_place_of_pairs() -> None:
    document = json.loads(to_json(samples.REPORT))
    assert document["files"] == {"cpp": 12, "cuda": 29, "python": 1203}
    assert document["seconds"]["facts"] == 1.4
    assert document["problems"][0]["file"] == "csrc/rows/old.cu"
    assert [error.message for error in checker("index").iter_errors(document)] == []


def test_what_is_walked_is_an_op_or_an_entry() -> None:
    assert "entry" not in json.loads(to_json(samples.WALK))
    document = json.loads(to_json(samples.KERNEL_WALK))
    assert "op" not in document
    assert document["entry"]["kind"] == "kernel"


@pytest.mark.parametrize("result", [Walk, OpsResult, KernelsResult])
def test_keys_come_in_the_order_of_the_fields(result: type) -> None:
    sample = next(one for one in RESULTS.values() if type(one) is result)
    keys = list(json.loads(to_json(sample)))
    assert keys == [name for name in result.__struct_fields__ if name in keys]


def test_same_value_same_bytes() -> None:
    assert to_json(samples.WALK) == to_json(replace(samples.WALK))


def test_text_is_utf8_and_not_escaped() -> None:
    assert "größe → 2".encode() in to_json(SourceInfo("größe → 2"))


def test_names_that_are_no_utf8_come_out_as_replacement_characters() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    document = json.loads(to_json({"files": [SourceInfo(name)], "at": (name,)}))
    assert document["files"][0]["name"] == "caf�"
    assert document["at"] == ["caf�"]


def test_a_dump_is_indented() -> None:
    assert to_json({"a": [1]}, indent=2) == b'{\n  "a": [\n    1\n  ]\n}\n'
