"""Pictures of pages with what was found drawn over them."""

from docmill.drawing.overlay import draw_boxes
from docmill.drawing.palette import Level, level_of

__all__ = ["Level", "draw_boxes", "level_of"]
