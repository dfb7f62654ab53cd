"""Pages that say that they are not the whole document."""

from __future__ import annotations

import re

from docmill.finding.sheet import Sheet

_GOES_ON = re.compile(
    r"\bcontinued\s+(?:on|over)|\(continued\)|\bcont(?:inue)?'?d\.?$|\bcontinued\.{0,3}$|\b(?:carried|brought)\s+(?:forward|over)|"
    r"\bc/f\b|\bb/f\b|\bp\.?t\.?o\.?$|see\s+next\s+page|over\s?leaf|续下页|转下页",
    re.IGNORECASE,
)
_PAGE_OF = re.compile(r"\b(?:page|pag|seite|pagina|p\.)?\s*(\d{1,3})\s*(?:of|/|von|van|de)\s*(\d{1,3})$", re.IGNORECASE)


def goes_on(sheet: Sheet) -> bool:
    """Whether the page says that its document goes on behind it (or came before it): nothing is guessed there."""
    for piece in sheet.pieces:
        if _GOES_ON.search(piece.text):
            return True
        page = _PAGE_OF.search(piece.text)
        named = page is not None and re.search(r"page|pag|seite|\bof\b|\bvon\b", piece.text, re.IGNORECASE)
        if page is not None and named and int(page[1]) < int(page[2]):
            return True
    return False
