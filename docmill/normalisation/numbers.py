"""Numbers in the notations of several countries, and with the digits that OCR mistakes."""

from __future__ import annotations

import re
from decimal import Decimal

from docmill.normalisation.text import fold_width

DIGIT_LOOKALIKES = str.maketrans({"O": "0", "o": "0", "Q": "0", "D": "0", "l": "1", "I": "1", "|": "1", "i": "1"})
"""Letters that OCR reads for digits. Only applied where digits must stand."""

_SHAPE = re.compile(r"[+\-]?\s*[\dOoQDlI|i][\dOoQDlI|i.,'’ ]*|[+\-]?\s*[.,]\d+")
_CHINESE_DIGITS = {
    c: i
    for i, pair in enumerate(("零〇", "一壹", "二贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖"))
    for c in pair
}
_CHINESE_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_CHINESE_AMOUNT = re.compile(r"^[零〇一壹二贰三叁四肆五伍六陆七柒八捌九玖十拾百佰千仟万亿圆元角分整正]+$")


_GROUPED = re.compile(r"\d+|\d{1,3}(?:[.,]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")
"""Whole numbers: plain, in threes, or the Indian way."""


def parse_number(text: str, *, decimal_mark: str | None = None, thousands_dot: bool = False) -> Decimal | None:
    """The number that the whole text is.

    ``1,234.56``, ``1.234,56``, ``1 234,56``, ``1'234.50``, ``(12.00)``, ``12.00-``, ``17%``, ``.10``.

    Args:
        text: as printed.
        decimal_mark: ``.`` or ``,`` where the document decides it; else it is told from the text.
        thousands_dot: read ``1.234`` as one thousand (money has two decimals); else as a decimal.

    Returns:
        None where it is not one number.
    """
    folded = fold_width(text).strip().replace("−", "-").replace("–", "-").replace("—", "-").rstrip("%").strip()
    negative = False
    if folded.startswith("(") and folded.endswith(")"):
        negative, folded = True, folded[1:-1].strip()
    if folded.endswith("-"):
        negative, folded = True, folded[:-1].strip()
    if not _SHAPE.fullmatch(folded):
        return None
    if folded[0] in "+-":
        negative, folded = negative != (folded[0] == "-"), folded[1:].strip()
    real = sum(c.isdigit() for c in folded)
    if real * 2 < sum(c.isalnum() or c == "|" for c in folded) or not real:
        return None
    plain = _without_grouping(folded.translate(DIGIT_LOOKALIKES), decimal_mark, thousands_dot)
    if plain is None:
        return None
    return -Decimal(plain) if negative else Decimal(plain)


def _without_grouping(digits: str, decimal_mark: str | None, thousands_dot: bool) -> str | None:
    digits = re.sub(r"(?<=[.,]) (?=\d)", "", digits)  # OCR sets a blank after the point: "12. 50"
    digits = digits.replace("'", " ").replace("’", " ").rstrip(".,")
    if " " in digits and not re.fullmatch(r"\d{1,3}( \d{3})+([.,]\d+)?", digits):
        return None
    digits = digits.replace(" ", "")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+\.\d{2}|\d{1,3}(?:,\d{3})+,\d{2}", digits):
        digits = digits[:-3].replace(digits[-3], "") + "." + digits[-2:]  # OCR made both signs the same
    mark = decimal_mark or _decimal_mark(digits, thousands_dot)
    group = {".": ",", ",": ".", "": ""}[mark]
    if not mark:
        return re.sub(r"[.,]", "", digits) if _GROUPED.fullmatch(digits) else None
    whole, _, part = digits.rpartition(mark) if mark in digits else (digits, "", "")
    if mark in whole or (group and group in part):
        return None
    if not _GROUPED.fullmatch(whole or "0"):
        return None
    whole = whole.replace(group, "") if group else whole
    return f"{whole or '0'}.{part}" if part else whole or None


def _decimal_mark(digits: str, thousands_dot: bool) -> str:
    """The decimal mark by the separators' places; empty where there are no decimals."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return ""
    mark, other = digits[last], "," if digits[last] == "." else "."
    behind = len(digits) - last - 1
    if other in digits:
        return mark
    if digits.count(mark) > 1:
        return ""  # 1.234.567
    grouping = behind == 3 and 1 <= last <= 3 and digits[0] != "0"
    if grouping and (mark == "," or thousands_dot):
        return ""
    return mark


def parse_chinese_number(text: str) -> Decimal | None:
    """A number in Chinese numerals, plain or financial: ``陆仟零贰拾柒圆柒角肆分`` is 6027.74."""
    folded = "".join(text.split())
    if not _CHINESE_AMOUNT.match(folded) or not any(c in _CHINESE_DIGITS or c in "十拾" for c in folded):
        return None
    total = section = digit = 0
    small = Decimal(0)
    for char in folded:
        if char in _CHINESE_DIGITS:
            digit = digit * 10 + _CHINESE_DIGITS[char] if digit and char not in "零〇" else _CHINESE_DIGITS[char]
        elif char in _CHINESE_UNITS:
            section += (digit or 1) * _CHINESE_UNITS[char]
            digit = 0
        elif char in "万亿":
            total = (total + section + digit) * (10_000 if char == "万" else 100_000_000)
            section = digit = 0
        elif char in "圆元":
            total += section + digit
            section = digit = 0
        elif char in "角分":
            small += Decimal(digit) / (10 if char == "角" else 100)
            digit = 0
    return Decimal(total + section + digit) + small
