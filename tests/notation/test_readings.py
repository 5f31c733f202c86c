"""Each text read once, in whatever run; and what of it is new."""

from __future__ import annotations

from opwalker.notation.readings import Readings


def counted(asked: list[str]):
    def read(text: str) -> int:
        asked.append(text)
        return len(text)

    return read


def test_a_text_is_read_once() -> None:
    asked: list[str] = []
    readings: Readings[int] = Readings()
    assert [readings.reading(text, counted(asked)) for text in ("ab", "c", "ab")] == [2, 1, 2]
    assert asked == ["ab", "c"] and readings.fresh


def test_what_an_earlier_run_read_is_not_read_again() -> None:
    asked: list[str] = []
    readings: Readings[int] = Readings(lambda: {"ab": 2})
    assert readings.reading("ab", counted(asked)) == 2
    assert asked == [] and not readings.fresh


def test_readings_are_joined_with_those_of_another_run() -> None:
    asked: list[str] = []
    readings: Readings[int] = Readings()
    readings.reading("ab", counted(asked))
    readings.recall_from(lambda: {"c": 1})
    assert readings.known == {"ab": 2, "c": 1} and readings.fresh
    readings.recall_from(lambda: {"ab": 2, "c": 1, "d": 1})
    assert readings.reading("d", counted(asked)) == 1
    assert asked == ["ab"] and not readings.fresh


def test_readings_that_were_loaded_are_not_recalled_again() -> None:
    recalled: list[str] = []

    def recall() -> None:
        recalled.append("recalled")

    readings: Readings[int] = Readings(recall)
    readings.load()
    assert recalled == ["recalled"]
    readings.reading("ab", len)
    assert recalled == ["recalled"] and readings.known == {"ab": 2}
