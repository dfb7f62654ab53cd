"""Comparing what was read with what is known. A document that failed counts as wrong; none is dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from docmill.document_types import DocumentType
from docmill.evaluation.dataset import Dataset
from docmill.evaluation.metrics import (
    character_edits,
    mean,
    normal_form,
    similarity,
    text_in_rows,
    words_found,
)
from docmill.evaluation.outcomes import DocumentOutcome
from docmill.evaluation.pairs import cells_found, checkbox_state, found_checkboxes, pair_found, value_found
from docmill.evaluation.report import EvaluationReport, FieldScore, Miss, Share
from docmill.extraction import FieldKind
from docmill.layout.straightening import Straightening
from docmill.truth import DocumentTruth, PageTruth

NOT_READ = "not_read"
"""The code of a document for which there is no outcome at all."""


@dataclass(slots=True)
class _Tally:
    """One field's answers so far."""

    kind: FieldKind
    found: int = 0
    exact: int = 0
    similarities: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Sums:
    """What is summed over documents."""

    edits: Share = field(default_factory=Share)  # edits over characters of the truth
    words: Share = field(default_factory=Share)
    checkboxes: Share = field(default_factory=Share)
    key_values: Share = field(default_factory=Share)
    values: Share = field(default_factory=Share)
    table_cells: Share = field(default_factory=Share)
    pages: int = 0
    pages_failed: int = 0
    seconds: list[float] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)


def score(dataset: Dataset, outcomes: Iterable[DocumentOutcome], document_type: DocumentType) -> EvaluationReport:
    """Score a set.

    Args:
        dataset: with the answers; documents of another type are left out.
        outcomes: one a file, in any order. A file without one counts as failed with the code ``not_read``.
        document_type: names the fields and how they are compared; ``generic`` compares label-value pairs instead.
    """
    chosen = dataset.of_type(document_type.name)
    by_file = {outcome.file: outcome for outcome in outcomes}
    kinds = {spec.name: spec.kind for spec in document_type.fields if spec.kind is not FieldKind.TABLE}
    tallies = {name: _Tally(kind) for name, kind in kinds.items()}
    sums, failures, expected, unscored = _Sums(), dict[str, str](), 0, set[str]()
    for truth in chosen.documents:
        outcome = by_file.get(truth.file) or DocumentOutcome(truth.file, failure=NOT_READ)
        code = outcome.failure or next((p.failure for p in outcome.pages if p.failure), None)
        if code is not None:
            failures[truth.file] = code
            expected += code == truth.expect
        _count_pages(sums, truth, outcome)
        if document_type.fields:
            unscored |= truth.fields.keys() - kinds.keys()
            _score_fields(tallies, sums, truth, outcome, document_type)
        else:
            _score_pairs(sums, truth, outcome)
        _score_checkboxes(sums, truth, outcome)
        sums.table_cells += cells_found(truth.tables, outcome)
        for page in truth.page_truths:
            _score_text(sums, page, outcome)
    scores = tuple(_field_score(name, tally) for name, tally in tallies.items() if tally.similarities)
    answers = sum(s.documents for s in scores)
    return EvaluationReport(
        dataset=str(dataset.folder),
        document_type=document_type.name,
        documents=len(chosen.documents),
        documents_failed=sum(1 for t in chosen.documents if _failed(by_file.get(t.file))),
        failures_expected=expected,
        pages=sums.pages,
        pages_failed=sums.pages_failed,
        fields=scores,
        exact=sum(s.exact for s in scores) / answers if answers else None,
        anls=mean([value for tally in tallies.values() for value in tally.similarities]),
        character_error_rate=sums.edits.rate,
        words=sums.words,
        checkboxes=sums.checkboxes,
        key_values=sums.key_values,
        values=sums.values,
        table_cells=sums.table_cells,
        seconds_per_page=mean(sums.seconds),
        failures=failures,
        unscored=tuple(sorted(unscored)),
        misses=tuple(sums.misses),
    )


def _failed(outcome: DocumentOutcome | None) -> bool:
    """Whether nothing of the document was read."""
    return outcome is None or all(page.extraction is None for page in outcome.pages)


def _count_pages(sums: _Sums, truth: DocumentTruth, outcome: DocumentOutcome) -> None:
    read = sum(1 for page in outcome.pages if page.extraction is not None)
    wanted = max(truth.pages, len(truth.page_truths), len(outcome.pages))
    sums.pages += wanted
    sums.pages_failed += wanted - read
    sums.seconds += [page.seconds for page in outcome.pages if page.seconds is not None]


def _score_fields(
    tallies: dict[str, _Tally],
    sums: _Sums,
    truth: DocumentTruth,
    outcome: DocumentOutcome,
    document_type: DocumentType,
) -> None:
    for name, answer in truth.fields.items():
        tally = tallies.get(name)
        if tally is None:
            continue
        found = outcome.best(name)
        read = None if found is None or not (found.raw or found.value is not None) else found
        tally.found += read is not None
        if read is None:
            exact, alike = not answer.text and not _failed(outcome), 0.0
        else:
            order = document_type.date_order
            known = normal_form(tally.kind, answer.text, date_order=order)
            exact = bool(answer.text) and known == normal_form(tally.kind, read.raw, read.value, date_order=order)
            text = read.value if isinstance(read.value, str) else read.raw
            alike = similarity(answer.text, text) if answer.text else 0.0
        tally.exact += exact
        tally.similarities.append(1.0 if exact else alike)
        if not exact:
            sums.misses.append(Miss(truth.file, name, answer.text, None if read is None else read.raw))


def _score_pairs(sums: _Sums, truth: DocumentTruth, outcome: DocumentOutcome) -> None:
    fields = outcome.fields
    for label, answer in truth.fields.items():
        if not answer.text:
            continue
        right = pair_found(label, answer.text, fields)
        sums.key_values += (int(right), 1)
        sums.values += (int(value_found(answer.text, fields)), 1)
        if not right:
            sums.misses.append(Miss(truth.file, label, answer.text, None))


def _score_checkboxes(sums: _Sums, truth: DocumentTruth, outcome: DocumentOutcome) -> None:
    found = found_checkboxes(outcome)
    for box in truth.checkboxes:
        state = checkbox_state(box, outcome, found)
        sums.checkboxes += (int(state is box.checked), 1)
        if state is not box.checked:
            read = None if state is None else _ticked(state)
            sums.misses.append(Miss(truth.file, box.label, _ticked(box.checked), read))


def _ticked(state: bool) -> str:
    return "ticked" if state else "empty"


def _score_text(sums: _Sums, page: PageTruth, outcome: DocumentOutcome) -> None:
    read = next((p for p in outcome.pages if p.number == page.number), None)
    if read is not None and read.text is not None:
        # Both are put into rows on the page as it was levelled: on a tilted one the ends of two lines share a height.
        way = Straightening.of(read.text)
        aspect = way.size[0] / way.size[1]
        known = text_in_rows(((line.text, way.to_upright(line.box)) for line in page.lines), aspect)
        text = text_in_rows(((line.text, way.to_upright(line.box)) for line in read.text.lines), aspect)
    else:
        aspect = page.width / page.height if page.width and page.height else 1.0
        known = text_in_rows(((line.text, line.box) for line in page.lines), aspect)
        text = read.extraction.text if read is not None and read.extraction is not None else ""
    sums.edits += character_edits(known, text)
    sums.words += words_found(known, text)


def _field_score(name: str, tally: _Tally) -> FieldScore:
    count = len(tally.similarities)
    return FieldScore(name, tally.kind.value, count, tally.found, tally.exact, sum(tally.similarities) / count)
