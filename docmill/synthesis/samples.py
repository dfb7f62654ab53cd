"""The bundled samples: what is in ``samples/``, made again by ``python -m docmill.synthesis samples --samples``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from docmill.failures import UnreadableDocument
from docmill.synthesis.documents import Kind, SynthDocument, make_document
from docmill.synthesis.files import Format, encode, write_document, write_truth
from docmill.synthesis.scanning import Scan
from docmill.truth import DocumentTruth


@dataclass(frozen=True, slots=True)
class Sample:
    """One bundled file.

    Attributes:
        name: path in ``samples/``; its folder holds one document type.
        kept: share of the bytes that are kept; below 1 the file is broken on purpose.
    """

    name: str
    kind: Kind
    seed: int
    form: Format
    how: Scan
    dpi: int = 150
    pages: int = 1
    kept: float = 1.0

    def make(self) -> SynthDocument:
        """Draw and scan it."""
        return make_document(self.kind, self.seed, dpi=self.dpi, how=self.how, pages=self.pages)

    def encode(self, document: SynthDocument) -> bytes:
        """Its file."""
        data = encode(document, self.form, dpi=self.dpi)
        return data[: int(len(data) * self.kept)]


SAMPLES = (
    Sample("receipts/receipt-01.jpg", Kind.RECEIPT, 300, Format.JPEG, Scan(0.3), dpi=200),
    Sample("receipts/receipt-02.jpg", Kind.RECEIPT, 301, Format.JPEG, Scan(0.7, color=False), dpi=200),
    Sample("receipts/receipt-03.png", Kind.RECEIPT, 302, Format.PNG, Scan(0.5, bilevel=True), dpi=200),
    Sample("receipts/receipt-04.jpg", Kind.RECEIPT, 309, Format.JPEG, Scan(1.0), dpi=200),
    Sample("invoices/invoice-01.pdf", Kind.INVOICE, 300, Format.PDF, Scan(0.3)),
    Sample("invoices/invoice-02.pdf", Kind.INVOICE, 301, Format.PDF, Scan(0.5), pages=2),
    Sample("invoices/invoice-03.jpg", Kind.INVOICE, 302, Format.JPEG, Scan(0.6)),
    Sample("invoices/invoice-04.tif", Kind.INVOICE, 303, Format.TIFF, Scan(0.3, bilevel=True), dpi=200, pages=2),
    Sample("invoices/invoice-05.pdf", Kind.INVOICE, 304, Format.PDF, Scan(0.3), kept=0.3),
    Sample("applications/application-01.png", Kind.APPLICATION_FORM, 300, Format.PNG, Scan(0)),
    Sample("applications/application-02.tif", Kind.APPLICATION_FORM, 301, Format.TIFF, Scan(0.4, bilevel=True),
           dpi=200, pages=2),
    Sample("applications/application-03.jpg", Kind.APPLICATION_FORM, 303, Format.JPEG, Scan(0.4)),
)  # fmt: skip


def write_samples(folder: Path) -> list[DocumentTruth]:
    """Make all of them again in ``folder``, with ``truth.jsonl`` and ``words.jsonl``."""
    truths = []
    for sample in SAMPLES:
        document = sample.make()
        truth = write_document(document, folder, sample.name, sample.encode(document))
        if sample.kept < 1:
            truth = DocumentTruth(sample.name, pages=0, document_type=sample.kind.value, expect=UnreadableDocument.code)
        truths.append(truth)
    write_truth(folder, truths)
    return truths
