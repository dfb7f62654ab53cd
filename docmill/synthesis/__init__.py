"""Made receipts, invoices and application forms with exact truth, for the demo, the tests and the benchmarks."""

from docmill.synthesis.documents import Kind, SynthDocument, make_document
from docmill.synthesis.scanning import CLEAN, Scan

__all__ = ["CLEAN", "Kind", "Scan", "SynthDocument", "make_document"]
