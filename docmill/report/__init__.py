"""The drawn report of a batch: one HTML file that needs nothing else."""

from docmill.report.data import ReportData, ReportDocument, ReportFailure, ReportPage
from docmill.report.page import render_report
from docmill.report.pictures import page_picture

__all__ = ["ReportData", "ReportDocument", "ReportFailure", "ReportPage", "page_picture", "render_report"]
