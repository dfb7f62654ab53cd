"""Amounts of money and their currency."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from docmill.normalisation.numbers import parse_chinese_number, parse_number
from docmill.normalisation.text import fold_width

SYMBOLS = {
    "US$": "USD", "S$": "SGD", "HK$": "HKD", "A$": "AUD", "C$": "CAD", "NT$": "TWD", "R$": "BRL", "$": "USD",
    "RM": "MYR", "€": "EUR", "£": "GBP", "¥": "CNY", "￥": "CNY", "元": "CNY", "圆": "CNY",
    "₹": "INR", "Rs.": "INR", "Rs": "INR",
    "₩": "KRW", "₫": "VND", "฿": "THB", "₽": "RUB", "₱": "PHP", "Rp": "IDR", "zł": "PLN", "Kč": "CZK",
}  # fmt: skip
"""Printed sign → ISO 4217. ``$`` and ``¥`` stand for several: the document type's currency decides those."""

CODES = frozenset(
    {"USD", "EUR", "GBP", "CNY", "RMB", "JPY", "MYR", "SGD", "HKD", "AUD", "CAD", "NZD", "CHF", "SEK", "NOK", "DKK"}
    | {"INR", "IDR", "THB", "PHP", "VND", "KRW", "TWD", "BRL", "MXN", "ZAR", "PLN", "CZK", "HUF", "TRY", "AED"}
    | {"SAR", "ILS", "RUB", "RON", "BGN"}
)
_DOLLARS = frozenset({"USD", "SGD", "HKD", "AUD", "CAD", "NZD", "TWD", "MXN", "MYR"})
_YEN = frozenset({"CNY", "JPY"})

_SIGN = "|".join(sorted((re.escape(s) for s in SYMBOLS), key=len, reverse=True))
_CODE = "|".join(sorted(CODES))
_CURRENCY = rf"(?:{_CODE}|{_SIGN})"
_PLAIN = r"\d{1,3}(?:[,.'’ ]\d{3})+(?:[.,]\s?\d{1,2})?(?!\d)|\d+[.,]\s?\d{1,4}(?!\d)|\d+|[.,]\d{2}(?!\d)"
_AMOUNT = re.compile(
    rf"(?<![\w.,/\-])(?P<open>\()?(?P<minus>[-−–]\s?)?(?P<before>{_CURRENCY})?\s?(?P<minus2>[-−–]\s?)?"
    rf"(?P<number>{_PLAIN})(?P<minus3>-(?!\w))?\s?(?P<after>{_CURRENCY}(?!\w))?(?P<close>\))?",
)
_MISREAD_POINT = re.compile(r"\d{1,5}\s?[-:°·]\s?\d{2}")
_TAIL = re.compile(r"[A-Za-z]{0,4}(?![\w/\-])")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount; ``currency`` is ISO 4217, None where nothing says it."""

    amount: Decimal
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class FoundAmount:
    """An amount inside a text: ``start`` and ``end`` are its place; ``decimals`` how many digits follow the point."""

    money: Money
    start: int
    end: int
    decimals: int


def currency_of(sign: str, default: str | None = None) -> str | None:
    """ISO 4217 of a printed sign or code; ``default`` decides between the currencies that share ``$`` or ``¥``."""
    sign = sign.strip()
    if sign.upper() in CODES:
        return "CNY" if sign.upper() == "RMB" else sign.upper()
    if sign == "$" and default in _DOLLARS:
        return default
    if sign in {"¥", "￥"} and default in _YEN:
        return default
    return SYMBOLS.get(sign) or SYMBOLS.get(sign.upper()) or default


def find_amounts(text: str, *, default_currency: str | None = None) -> list[FoundAmount]:
    """All amounts in a text from left to right. Parts of dates, times, codes and percentages are none."""
    found = []
    folded = fold_width(text)
    for match in _AMOUNT.finditer(folded):
        end = match.start() + len(match[0].rstrip())
        rest = folded[end:]
        if rest[:1] in {"%", ":", "/", "@"} or re.match(r"\s?%|[.,]\d", rest) or not _TAIL.match(rest):
            continue
        if folded[: match.start()].rstrip().endswith(("#", "@")) and "." not in match["number"]:
            continue
        number = parse_number(match["number"], thousands_dot=True)
        if number is None:
            continue
        signs = match["minus"] or match["minus2"] or match["minus3"]
        negative = bool(signs) or bool(match["open"] and match["close"])
        sign = match["before"] or match["after"]
        currency = currency_of(sign, default_currency) if sign else default_currency
        exponent = number.as_tuple().exponent
        decimals = -exponent if isinstance(exponent, int) else 0
        money = Money(-number if negative else number, currency)
        found.append(FoundAmount(money, match.start(), end, max(decimals, 0)))
    return found


def parse_money(text: str, *, default_currency: str | None = None) -> Money | None:
    """The amount that the whole text is, with or without a currency.

    ``RM 13.10``, ``$620.00``, ``1.234,56 €``, ``¥4888.00``, ``USD (12.00)``, ``12.00-``, ``5.90SR`` (a tax code
    behind it is left out), ``陆仟零贰拾柒圆柒角肆分``.

    Returns:
        None where it is not one amount.
    """
    folded = fold_width(text).strip().strip(":=*").strip()
    chinese = parse_chinese_number(folded)
    if chinese is not None:
        return Money(chinese, default_currency or "CNY")
    currency = default_currency
    signs = re.findall(_CURRENCY, folded)
    if len(signs) == 1 or (len(signs) == 2 and signs[1] in {"元", "圆"}):
        currency = currency_of(signs[0], default_currency)
        for sign in signs:
            folded = folded.replace(sign, " ", 1)
    if _MISREAD_POINT.fullmatch(folded.strip()):
        folded = re.sub(r"\s?[-:°·]\s?", ".", folded.strip())
    folded = re.sub(r"(?<=[\d.,])\s?[A-Z]{1,3}$|(?<=\d)\s[a-zA-Z*]$", "", folded.strip()).strip()
    folded = re.sub(r"\(\s+", "(", re.sub(r"-\s+(?=\d)", "-", folded))
    number = parse_number(folded, thousands_dot=True)
    return None if number is None else Money(number, currency)
