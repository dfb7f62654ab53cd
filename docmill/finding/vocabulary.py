"""Words that labels of forms are made of. Knowing them tells a label from a value where no colon does."""

from __future__ import annotations

import re
from functools import lru_cache

from docmill.normalisation.text import comparison_form, has_wide

_WORDS = frozenset(
    re.findall(
        r"\S+",
        "account address adres advertiser advertisers affiliate age agency allergies alt amount applicant "
        "associations attention attn attorney balance bank base bedrag begin betreff bic bill birth birthday bonus "
        "booking born branch brand business buyer cash category cell check cheque cin citizen citizenship city "
        "civic class client code color comments commission commissions company concerns contact contract "
        "coordinator copies country county currency current customer date dated dates datum day demo demographic "
        "department description destination details diagnosis discount dob doctor due educational ein email "
        "emergency employee employer employer's end estimate executive expires expiry factuur family fax file filed "
        "first flight foreign forename form from gender given grade gross groups gst gstin guest height hired home "
        "hotel hours iban id identification identifying ifsc income institutions insurance invoice issued issuer "
        "item itin kind klant kunde last leaving lender length libraries licence license licensee maiden mail "
        "mailing marital market material means medication method middle mobile mode month naam name names "
        "nationality nature net newspapers no note notes nr num number nummer occupation office officials order "
        "organization origin overtime package page passport patient pay payer payment period permanent person "
        "personnel phone physician place plate policy position postal postcode press previous price primary "
        "principal print printed product program province purpose qty quantity rate reason receipt rechnung "
        "recipient recipients ref reference referral referred registrant registration relationship remark remarks "
        "remit rep report resident revision rooms salary sales salesperson schedule security seller services sex "
        "ship sign signature signed size social sold spots ssn start state station status street subtotal sum "
        "supplier surname swift tax taxpayer tel telephone term terminated terms time tin title to total town "
        "transmission transmitted type unit valid vat vendor vervaldatum wage website weight work year zip zipcode ",
    )
)
_SMALL = frozenset(re.findall(r"\S+", "of the and or for in on by at a an your our s is if any & / - to per as this"))
_CHINESE = re.compile(
    r"(姓名|性别|民族|日期|时间|年月|地址|电话|手机|邮箱|邮编|身高|体重|籍贯|状况|专业|学历|院校|学校|面貌|意向|单位|"
    r"职务|部门|人数|目的地|联系人|事由|车牌|司机|负责人|名称|品牌|产地|面料|建议|注意|事项|代码|号码|编号|识别号|"
    r"帐号|账号|开户行|金额|税额|税率|合计|收款人|复核|开票人|备注|国籍|证件|婚姻|职业|签名|签字|盖章|评价|情况|证书|"
    r"技能|水平|驾照|爱好|特长|英语|普通话|规格|型号|数量|单价|总价|类别|类型|用途|说明|称|地点|方式|尺码)$"
)
_NUMBER_LED = re.compile(r"^\s*\d{1,2}\s?[A-Za-z]?[.)]?\s+(?=[A-Z(])|^\s*\d{1,2}[.)]\s?(?=[A-Z(])|^\(?[a-z]\)\s")
_DATED = re.compile(r"^\s*\d{1,2}\.?\s+[^\W\d]{3,9}\.?,?\s+(?:19|20)\d{2}\b")
MOST_WORDS = 14
_PHRASES = re.compile(
    r"(?:sold|bill|ship|remit|billed|invoice)[\s-]to|invoice(?:\s(?:no|number|date))?|order(?:\s(?:no|number|date))?|name|"
    r"(?:full|first|last|company|customer|guest|client|account)\sname|date(?:\sof\s(?:birth|issue))?|due\sdate|phone|tel|"
    r"fax|e-?mail|address|iban|bic|swift|vat|btw|kvk|gst|tax|total|subtotal|account|website|number|no|id|attn|terms|"
    r"my\scommission\sexpires|gen\.?\sdate|page",
    re.IGNORECASE,
)
"""Labels that printed forms set before a value without a colon."""


def is_label_word(word: str) -> bool:
    """Whether a word is one that labels are made of."""
    plain = re.sub(r"[^\w']", "", word.lower().replace("e-mail", "email"))
    plain = re.sub(r"'s?$", "", plain)
    return plain in _WORDS or plain.rstrip("s") in _WORDS or plain + "s" in _WORDS


_STREET = re.compile(r"\b(street|st|road|rd|lane|ln|ave|avenue|drive|dr|blvd|way|court|ct|place)\.?,?$", re.IGNORECASE)


def is_numbered(text: str) -> bool:
    """Whether a text begins with an item's number (``5. Date``, ``12A. Pay``, ``1 Name``), and is no house number."""
    if _DATED.match(text):
        return False
    return bool(_NUMBER_LED.match(text)) and not (_STREET.search(text) and len(text.split()) <= 5)


def phrase_end(text: str) -> int:
    """Where a known label ends that a value follows without a colon (``Sold To Willowham``); 0 where there is none."""
    match = _PHRASES.match(text)
    if match is None or match.end() >= len(text) or text[match.end()] not in " #":
        return 0
    rest = text[match.end() :].lstrip(" #.")
    words = rest.split()
    if not rest or not (rest[0].isupper() or rest[0].isdigit() or rest[0] in "$€£¥") or is_prose(rest):
        return 0
    known = sum(is_label_word(w) for w in words)
    return match.end() if known * 3 < len(words) or (known == 0) else 0


@lru_cache(maxsize=8192)
def label_likeness(text: str) -> float:
    """How much a text reads like a form's label, 0 to 1, by its words and its form alone."""
    text = text.strip()
    if not any(c.isalpha() for c in text) or "@" in text:
        return 0.0
    if text.endswith((":", "：")) and len(text) < 80:
        return 1.0
    if has_wide(text):
        return _chinese_likeness(text)
    numbered = _NUMBER_LED.match(text) if is_numbered(text) else None
    body = text[numbered.end() :] if numbered else text
    outside = re.sub(r"\([^()]*\)", "", body).strip() or body
    clause = re.split(r"(?<=[a-z])\.\s", outside)[0]
    words = [w for w in re.findall(r"[A-Za-z'À-ÿ]+", clause.lower().replace("e-mail", "email")) if w not in _SMALL]
    known = sum(map(is_label_word, words)) / len(words) if words else 0.0
    if numbered and len(words) <= 24:
        return 0.85 if any(map(is_label_word, words[:8])) else 0.6
    if not words or len(words) > MOST_WORDS or sum(c.isdigit() for c in outside) > 2:
        return 0.05
    likeness = 0.75 * known
    if clause.endswith("?"):
        likeness = max(likeness, 0.6)
    if "(" in body and known:
        likeness += 0.1
    if len(words) > 6:
        likeness -= 0.1
    if len(words) == 1:
        likeness *= 0.85
    if re.fullmatch(r"\([^()]*\)", body) and known:
        likeness = max(likeness, 0.6)  # a caption
    return max(0.0, min(likeness, 0.9))


def _chinese_likeness(text: str) -> float:
    outside = re.sub(r"[(（][^()（）]*[)）]", "", text).strip()
    form = comparison_form(outside)
    wide = "".join(c for c in outside if has_wide(c))
    if not form or len(wide) > 14 or sum(c.isdigit() for c in form) > 2:
        return 0.05
    if _CHINESE.search(wide):
        return 0.85
    return 0.3 if len(wide) <= 6 else 0.1


def is_prose(text: str) -> bool:
    """Whether a text is running prose: many words and a sentence's form."""
    words = text.split()
    if has_wide(text):
        return len(text) > 40
    return len(words) > 12 and sum(w[:1].islower() for w in words) > 0.6 * len(words)
