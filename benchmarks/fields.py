"""How many of a data set's known fields the OCR engine's rules find.

    python benchmarks/fields.py DATASET CACHE --type receipt|generic|... [--verbose]

DATASET: a folder with truth.jsonl (see docmill/truth.py). CACHE: a folder with a pickled PageText for each page,
FILENAME.pN.pickle, so that rules are measured without reading the pages again. Writes JSON to standard output.

Typed fields: exact after normalisation for dates and amounts, else ANLS (1 - normalised Levenshtein distance, 0 below
0.5, upper case, blanks collapsed). Generic: key-value recall (a label like the key, with a value equal after
normalisation), value recall (the value under any label), check-box accuracy (label found and state right).
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from docmill.document_types import load_document_type
from docmill.extraction import Field, FieldKind, PageText
from docmill.finding.extractor import find_fields
from docmill.normalisation.dates import parse_date
from docmill.normalisation.money import parse_money
from docmill.normalisation.text import collapse, comparison_form


def anls(found: str, truth: str) -> float:
    """ANLS of one pair."""
    score = 1 - Levenshtein.normalized_distance(collapse(found.upper()), collapse(truth.upper()))
    return score if score >= 0.5 else 0.0


def key_words(key: str) -> str:
    """A key as words: CamelCase and snake_case parted, page prefixes left out."""
    key = re.sub(r"^p\d+ ", "", key)
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ")
    return collapse(key.lower())


def keys_alike(found: str, truth: str) -> bool:
    """Whether a printed label is the key that the truth names."""
    a, b = collapse(re.sub(r"[^\w\s]", " ", found.lower())), re.sub(r"[^\w\s]", " ", key_words(truth))
    if comparison_form(a) == comparison_form(b) or fuzz.ratio(a, b) >= 70:
        return True
    return bool(a and b) and (fuzz.token_set_ratio(a, b) >= 75 or (len(b) >= 4 and fuzz.partial_ratio(a, b) >= 85))


def values_equal(found: Field, truth: Any) -> bool:
    """Equal as text (letters and digits, nearly), as date, or as amount."""
    text = str(truth)
    if comparison_form(found.raw) == comparison_form(text):
        return True
    if len(text) >= 8 and fuzz.ratio(comparison_form(found.raw), comparison_form(text)) >= 90:
        return True
    known_date = parse_date(text, order="MDY") or parse_date(text)
    if known_date is not None and len(found.raw) < 30:
        return known_date in (parse_date(found.raw), parse_date(found.raw, order="MDY"))
    known = parse_money(text)
    money = parse_money(found.raw)
    return known is not None and money is not None and known.amount == money.amount


@dataclass
class Tally:
    """Counts of one run."""

    typed: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    keys: int = 0
    pairs: int = 0
    values: int = 0
    boxes: int = 0
    boxes_found: int = 0
    boxes_right: int = 0
    documents: int = 0
    without_rows: list[str] = field(default_factory=list)
    fields: int = 0
    pages: int = 0
    seconds: float = 0.0


def score_typed(tally: Tally, truth: dict[str, Any], fields: list[Field], names: dict[str, str], say: Any) -> None:
    """Score the fields that truth and document type share."""
    for key, value in truth.items():
        name = names.get(key, key)
        found = next((f for f in fields if f.name == name), None)
        if name not in names.values() and found is None:
            continue
        if found is not None and found.kind is FieldKind.DATE:
            score = float(found.value in (parse_date(str(value)), parse_date(str(value), order="MDY")))
        elif found is not None and found.kind in (FieldKind.MONEY, FieldKind.NUMBER):
            known = parse_money(str(value))
            score = float(known is not None and found.value is not None and abs(found.value) == known.amount)  # type: ignore[arg-type]
        else:
            score = anls(str(found.value), str(value)) if found is not None else 0.0
        tally.typed[name].append(score)
        if score < 0.9:
            say(f"  {name}: {value!r} | {found.raw if found else None!r} {score:.2f}")


def score_generic(tally: Tally, truth: dict[str, Any], fields: list[Field], say: Any) -> None:
    """Score key-value pairs whatever they are called."""
    for key, value in truth.items():
        if value in ("", None):
            continue
        tally.keys += 1
        same = [f for f in fields if values_equal(f, value)]
        paired = [f for f in same if keys_alike(f.name.split(".")[-1], key) or keys_alike(f.name, key)]
        tally.values += bool(same)
        tally.pairs += bool(paired)
        if not paired:
            near = max(fields, key=lambda f: fuzz.ratio(f.raw, str(value)), default=None)
            say(f"  {'VALUE' if same else 'NOTHING'} {key}: {value!r} | "
                f"{[(f.name, f.raw) for f in same] or (near and (near.name, near.raw))}")  # fmt: skip


def score_boxes(tally: Tally, boxes: list[dict[str, Any]], fields: list[Field], say: Any) -> None:
    """Score check boxes: by place where the truth has boxes, else by label."""
    held = [f for f in fields if f.kind is FieldKind.BOOLEAN]
    for box in boxes:
        tally.boxes += 1
        match = None
        if "box_norm" in box:
            x, y = (box["box_norm"][0] + box["box_norm"][2]) / 2, (box["box_norm"][1] + box["box_norm"][3]) / 2
            near = [f for f in held if f.box and abs(_middle(f)[0] - x) < 0.02 and abs(_middle(f)[1] - y) < 0.02]
            match = min(near, key=lambda f: abs(_middle(f)[0] - x) + abs(_middle(f)[1] - y), default=None)
        else:
            best = max(held, key=lambda f: _alike(f.name, box["label"]), default=None)
            if best is not None and _alike(best.name, box["label"]) >= 75:
                match = best
        tally.boxes_found += match is not None
        tally.boxes_right += match is not None and match.value is box["checked"]
        if match is None or match.value is not box["checked"]:
            say(f"  BOX {box['label']!r} {box['checked']} | {match and (match.name, match.value)}")


def _middle(found: Field) -> tuple[float, float]:
    assert found.box is not None
    return found.box.center


def _alike(a: str, b: str) -> float:
    yes_no = {"yes", "no"}
    ends = {a.lower().split()[-1] if a.split() else ""} & yes_no, {b.lower().split()[-1] if b.split() else ""} & yes_no
    if ends[0] != ends[1]:
        return 0.0
    items = re.match(r"(\d{1,2}[A-Za-z]?)\b", a), re.match(r"(\d{1,2}[A-Za-z]?)\b", b)
    if ends[0] and items[0] and items[1]:
        return 100.0 if items[0][1] == items[1][1] else 0.0
    return fuzz.token_set_ratio(a.lower(), b.lower()) * 0.5 + fuzz.ratio(a.lower(), b.lower()) * 0.5


def main() -> None:
    """Read the arguments, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--type", default="generic")
    parser.add_argument("--name", action="append", default=[], help="TRUTH_KEY=FIELD, for typed scoring")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    document_type = load_document_type(arguments.type)
    names = {s.name: s.name for s in document_type.fields} | dict(n.split("=", 1) for n in arguments.name)

    def say(text: str) -> None:
        if arguments.verbose:
            print(text, file=sys.stderr)

    tally = Tally()
    for line in (arguments.dataset / "truth.jsonl").read_text(encoding="utf-8").splitlines():
        truth = json.loads(line)
        name = Path(truth["file"]).name
        fields: list[Field] = []
        caches = sorted(arguments.cache.glob(f"{name}.p*.pickle"), key=lambda p: int(p.suffixes[-2][2:]))
        if not caches:
            continue
        say(f"== {name}")
        for cache in caches:
            text: PageText = pickle.loads(cache.read_bytes())
            began = time.perf_counter()
            fields.extend(find_fields(text, document_type)[0])
            tally.seconds += time.perf_counter() - began
            tally.pages += 1
        tally.documents += 1
        tally.fields += len(fields)
        if not fields:
            tally.without_rows.append(name)
        if document_type.fields:
            score_typed(tally, truth.get("fields", {}), fields, names, say)
        else:
            score_generic(tally, truth.get("fields", {}), fields, say)
        score_boxes(tally, truth.get("checkboxes", []), fields, say)
    share = lambda part, whole: round(part / whole, 3) if whole else None  # noqa: E731
    print(json.dumps({
        "documents": tally.documents, "without_rows": tally.without_rows, "fields": tally.fields,
        "seconds_per_page": share(tally.seconds, tally.pages),
        "typed": {k: {"n": len(v), "mean": share(sum(v), len(v))} for k, v in tally.typed.items()},
        "keys": tally.keys, "pair_recall": share(tally.pairs, tally.keys),
        "value_recall": share(tally.values, tally.keys),
        "boxes": tally.boxes, "boxes_found": share(tally.boxes_found, tally.boxes),
        "boxes_right": share(tally.boxes_right, tally.boxes),
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
