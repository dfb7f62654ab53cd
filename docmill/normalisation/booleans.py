"""Yes and no, as people and forms write them."""

from __future__ import annotations

from docmill.normalisation.text import collapse, comparison_form, fold_width

_YES = frozenset(
    {"yes", "y", "true", "t", "checked", "ticked", "on", "ja", "oui", "si", "sí", "sim", "ya", "x", "v"}
    | {"是", "有", "对", "真", "同意", "愿意"}
)
_NO = frozenset(
    {"no", "n", "false", "f", "unchecked", "off", "nein", "non", "nee", "não", "tidak"}
    | {"否", "无", "没有", "不", "不是", "不同意", "假"}
)
_MARKED = frozenset("√✓✔☑☒✗✘×■●◉⊠⊗")
_BLANK = frozenset("□☐○◯▢")
_BRACKETS = {"[x]": True, "(x)": True, "[v]": True, "[]": False, "()": False, "[ ]": False, "( )": False}


def parse_boolean(text: str) -> bool | None:
    """``True`` or ``False`` for a word or a mark that means it (English, Chinese and neighbours), else None.

    An empty text is None: nothing written is not a no.
    """
    folded = collapse(fold_width(text)).casefold()
    if folded in _BRACKETS:
        return _BRACKETS[folded]
    marks = {c for c in folded if c in _MARKED}
    blanks = {c for c in folded if c in _BLANK}
    if bool(marks) != bool(blanks) and (not folded.strip("".join(_MARKED | _BLANK)) or len(folded) == 1):
        return bool(marks)
    word = comparison_form(folded)
    if word in _YES:
        return True
    return False if word in _NO else None
