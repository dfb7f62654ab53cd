"""How the lines at the head of a receipt or an invoice read: names, addresses, numbers, what follows them."""

from __future__ import annotations

import re

COMPANY = re.compile(
    r"\b(sdn\.?\s*b[hn]d|bhd|s/b|5/b|ltd|limited|llc|llp|inc|corp|corporation|company|co\.|gmbh|ag|kg|b\.?v\.?|n\.?v\.?|s\.?a\.?r?\.?l?|"
    r"s\.?r\.?l|plc|pte|pty|oy|ab|aps|as|enterprise|enterprises|trading|holdings?|industries|restaurant|restoran|"
    r"kedai|syarikat|perniagaan|store|stores|mart|minimarket|supermarket|hypermarket|bakery|cafe|coffee|hardware|"
    r"pharmacy|farmasi|clinic|klinik|hotel|services?|stationery|group|international|resources|marketing|"
    r"confectionery|retail|furniture|motor|auto|books?|shop)\b|公司|酒店|饭店|餐厅|超市|商店|商场|集团|药房|药店",
    re.IGNORECASE,
)  # fmt: skip
STRONG = re.compile(
    r"\b(sdn\.?\s*b[hn]d|bhd|s/b|5/b|ltd|limited|llc|llp|inc|corp|gmbh|b\.v|plc|pte|pty)\b|公司", re.IGNORECASE
)
CONTACT = re.compile(
    r"^\W*(tel\b|te1|1e1|telephone|phone|fax|hotline|mobile|h/p|hp\b|gst|6st|sst|vat|roc\b|reg\b|co\.?\s*reg|company\s*(no|reg)|e-?mail|"
    r"website|web\b|http|www|电话|税号)|@\w+\.\w|\.com\b",
    re.IGNORECASE,
)
"""Lines that shops print between two lines of their address."""
FIELD = re.compile(r"^(?!add)[A-Za-z][\w .]{1,18}\s?[:：]\s*\S", re.IGNORECASE)
SUFFIX_ONLY = re.compile(
    r"^\(?(m\)?\s*)?(sdn\.?\s*b[hn]d|bhd|ltd|limited|llc|inc|gmbh|co\.?,?\s*ltd)\.?$", re.IGNORECASE
)
OTHER = re.compile(
    r"^\W*(tax\s*invoice|payment\s*receipt|simplified|invoice|receipt|cash\s*(bill|sale)|bill\b|welcome|thank|tel\b|telephone|phone|fax|gst|sst|"
    r"vat|roc\b|reg\b|co\.?\s*reg|company\s*(reg|no)|(business|co)\s*reg|email|e-mail|website|http|www\.|date|time|cashier|"
    r"table|order|inv\b|no\s*of|shopping\s*hours|member|valued|customer|bill\s*to|page\b|original|copy|duplicate|"
    r"mon\s*-|sun\s*-|operating|business\s*hour|hotline|mobile|h/p|hp\b|licen|formerly|"
    r"收据|发票|小票|欢迎|电话|日期|单号)|taxinvoice|thank\s*you|@\w+\.\w|\.com\b",
    re.IGNORECASE,
)  # fmt: skip
STOP = re.compile(
    r"^\W*(tel\b|te1|1e1|telephone|phone|fax|gst|6st|sst|vat\b|roc\b|tax|invoice|receipt|cash|bill\b|date|e-?mail|website|http|www|"
    r"company|co\.?\s*reg|reg\b|shopping|order|cashier|table|inv\b|doc|slip|hotline|mobile|member|valued|h/p|"
    r"mon\s*-|sun\s*-|operating|business|item|description|qty|customer|bill to|iban|bic|kvk|btw|ust-?id|steuer|abn\b|"
    r"acn\b|open(?:ing)?\b|(?:store|branch|outlet|shop|site|pos|till)\s*(?:#|no\b|id\b)|"
    r"siret|p\.?\s?iva|nif\b|uid\b|ein\b|uen\b|brn\b|web\b|(?:official|payment|sales|simplified|credit|delivery|guest|dine)[\s-]+"
    r"(?:receipt|invoice|bill|sale|order|check|slip|note|in\b)|电话|税号|日期|单号)|"
    r"taxinvoice|@\w+\.\w|\.com\b",
    re.IGNORECASE,
)  # fmt: skip
ADDRESS = re.compile(
    r"\b(no\.?\s*\d|lot\b|jalan|jln|ja1an|lorong|lrg|taman|tmn|bandar|kampung|kg\.|persiaran|lebuh|kawasan|seksyen|section|"
    r"floor|flr|level|ground|block|blk|unit|suite|building|bangunan|wisma|plaza|mall|complex|kompleks|"
    r"street|st\.|road|rd\b|avenue|ave\b|lane|drive|dr\.|boulevard|blvd|highway|way\b|square|court|parade|crescent|"
    r"terrace|close|grove|quay|esplanade|parkway|pkwy|suite|ste\b|straat|weg\b|laan|plein|strasse|straße|platz|rue|via\b|calle|"
    r"[a-zäöü]{3,}(?:weg|straße|strasse|str\.|gasse|allee|platz|straat|laan|plein|kade)\s+\d|p\.?o\.?\s*box|"
    r"km\s*\d+|selangor|johor|kuala|penang|perak|melaka|malaysia|singapore)|\b\d{5}\b|\b\d{4}\s?[A-Z]{2}\b",
    re.IGNORECASE,
)  # fmt: skip
HOUSE = re.compile(
    r"^\d{1,5}[A-Za-z]?(?:[/-]\d{1,5}[A-Za-z]?)?\s+[A-Z][a-z][\w']*(?:\s[A-Z][\w']+){0,3},?(?:\s\d{4,6}\s.*)?$"
)
STARTS_NUMBERED = re.compile(r"^\s*(no\.?\s*)?[A-Z]{0,3}-?\d+[A-Z]?(?:[-/&]\w+)*\s*,", re.IGNORECASE)
REGISTRATION = re.compile(
    r"\s*[\[(]\s*(?:(?:co\.?|reg\.?|company|roc)[^()\[\]]*|"
    r"[A-Z]{0,3}\s?[-\d]?[\d\- ]{4,}[-\s]?[A-Z0-9]{0,2})\s*[\])].*$|"
    r"\s+(?:co\.?\s*no|reg\.?\s*no|roc)\b.*$|\s+\d{5,}-?\s?[A-Z]\b.*$",
    re.IGNORECASE,
)
FORMER = re.compile(r"formerly|known as|licensee|owned by|trading as|operated by", re.IGNORECASE)
RUNNING = re.compile(
    r"[\s,;–-]+(?:(?:tax\s*)?invoice|receipt|statement|order|contract|page)\b.*(?:continued|cont'?d|page|\d{3}).*$|"
    r"[\s,;(–-]+(?:continued|cont'?d|page\s*\d+)\b.*$",
    re.IGNORECASE,
)
"""What a running head prints behind the name: the document's number, ``continued``, the page."""
PHONE = re.compile(r"^[+()\d\s\-/.]{7,}$")
TRADE_ONLY = re.compile(
    r"^\W*(?:(?:hardware|paints?|trading|enterprise|restaurant|restoran|electrical|electric|machinery|stationery|supplies|auto|"
    r"parts|motor|bakery|cafe|catering|furniture|optical|clinic|pharmacy|books?|gift|shop|store|mini|market|marketing|services?|"
    r"industries|engineering|tools|building|materials?|seafood|food|beverages?|and|dan|&|sdn|bhd|s/b|ltd|co|company|m)\b\W*)+$",
    re.IGNORECASE,
)
"""The second line of a name over two lines: what kind of business it is, and its form."""
