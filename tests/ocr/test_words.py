from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.ocr.words import Character, is_han, with_spaces, words_of


def characters(text: str, pitch: float | None = None) -> list[Character]:
    step = pitch or 1 / max(1, len(text))
    return [Character(c, (i + 0.5) * step, 0.9) for i, c in enumerate(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Invoice number 42", ["Invoice", "number", "42"]),
        ("姓名 张三", ["姓名", "张三"]),
        ("合计Total金额100元", ["合计", "Total", "金额", "100", "元"]),
        ("电话：010-1234", ["电话：010-1234"]),
        ("  ", []),
        ("", []),
        ("a", ["a"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert [w.text for w in words_of(characters(text))] == words


@given(st.text(alphabet="ab1 中文：.", max_size=30))
def test_words_keep_all_characters_in_order_and_do_not_overlap(text: str) -> None:
    words = words_of(characters(text))
    assert "".join(w.text for w in words) == "".join(text.split())
    assert all(0 <= w.start <= w.end <= 1 for w in words)
    assert all(a.end <= b.start + 1e-9 for a, b in pairwise(words))


def test_a_space_that_was_overlooked() -> None:
    places = [0.05, 0.1, 0.15, 0.2, 0.25, 0.4, 0.45, 0.5, 0.55]
    line = [Character(c, at, 0.9) for c, at in zip("OPENHOURS"[:9], places, strict=True)]
    assert "".join(c.text for c in with_spaces(line)) == "OPENH OURS"


def test_no_space_is_put_between_chinese_characters_or_in_short_words() -> None:
    line = [Character("中", 0.1, 0.9), Character("文", 0.8, 0.9)]
    assert with_spaces(line) == line
    assert with_spaces(characters("word")) == characters("word")


def test_wide_characters() -> None:
    assert is_han("中") and is_han("：") and not is_han("a") and not is_han("é")
