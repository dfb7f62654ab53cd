"""What the amount of a row of print is, by the words of its label."""

from __future__ import annotations

import re

from docmill.normalisation.text import comparison_form, lookalike_form

_SUMMARY = re.compile(r"(gst|sst|vat|tax|btw|mwst)(summary|analysis|code|detail|breakdown|rate$)|ratecode|税率汇总")
_KINDS = (
    ("carried", r"carried|brought(fwd|for)|carry(fwd|for)|^[cb]/?f(wd)?$|übertrag|surlapage|sofar|承前|转下页"),
    ("change", r"change|^chg|找零|找续|找赎|wechsel|rückgeld|wisselgeld"),
    (
        "quantity",
        r"qty|quantity|itemcount|noofitem|itemscount|totalitem(?!.*disc)|^items?\d*$|件数|总数|数量|^pcs|points?$"
        r"|balancepoint",
    ),
    ("total", r"(total|totai|tota1|amount|amt).*(after|rounded|incl.*round)|rounded(total|amount)|^roundedtotal"),
    ("rounding", r"round(ing|adj|$|amt)|rndadj|rouding|抹零|舍入"),
    ("saving", r"disc|saving|saved|voucher|rebate|折扣|优惠|korting|rabatt|rebaja"),
    (
        "subtotal",
        r"su[bg]tot|netamount|untaxed|^gross$|excl|exciud|exc(gst|tax|vat|l)|before(gst|tax|vat)|beforeadj|netto(?!tal)|taxable|zwischensumme|subtota"
        r"|小计|不含税|合计金额|totalht",
    ),
    (
        "total",
        r"(total|totai|amt|amount|price).*(in[cd]l|inciu|inclus|with(gst|tax|vat))|incl.*tota|totaal.*incl|价税合计"
        r"|totalttc",
    ),
    ("service", r"serv(ice)?ch|svcch|服务费|servicecharge"),
    ("tax", r"gst|sst|vat|tax|btw|mwst|ust\b|税|tva"),
    (
        "total",
        r"total|totai|tota1|amountdue|amtdue|balancedue|totaldue|payable|nett|grandt|^due$|^topay|totaal|tebetalen"
        r"|gesamtbetrag|gesamtsumme|^ttl|summe(eur|chf|$)|合计|总计|总额|总金额|应付|实付|应收|消费金额",
    ),
    (
        "cash",
        r"cash(?!ier)|^bar(zahlung|geld)?$|^gegeben|eftpos|tender|visa|master|amex|card|paid|payment|received|现金|实收|微信|支付宝|debit|credit|maestro|nets$",
    ),
)
"""What a row's amount is, by its label's comparison form; the first that fits decides."""

_LIKE_KINDS = (
    ("subtotal", lookalike_form("subtotal")),
    ("total", lookalike_form("total")),
    ("rounding", lookalike_form("rounding")),
    ("change", lookalike_form("change")),
)


def kind_of_row(label: str) -> str:
    """What the amount of a row with this label is (``total``, ``tax``, ``cash``, ...); empty where nothing says it."""
    form = comparison_form(label)
    if not form:
        return ""
    for kind, pattern in _KINDS:
        if re.search(pattern, form):
            return kind
    like = lookalike_form(label)
    return next((kind for kind, start in _LIKE_KINDS if like.startswith(start)), "")


def is_summary(text: str) -> bool:
    """Whether a row of print heads the tax summary at the foot of a receipt."""
    return bool(_SUMMARY.search(comparison_form(text)))
