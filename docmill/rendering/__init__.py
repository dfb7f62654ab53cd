"""Opening documents and drawing their pages: paths in, values out.

Runs foreign native code on files from anywhere, so it belongs in a worker process (``serving.processes``).
"""

from docmill.rendering.documents import draw_page, open_document, render_page
from docmill.rendering.limits import RenderLimits
from docmill.rendering.picture import RenderedPage

__all__ = ["RenderLimits", "RenderedPage", "draw_page", "open_document", "render_page"]
