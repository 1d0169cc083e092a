"""Render a command's output as a terminal would: without colours, titles, progress bars and overwritten text.

It works line by line, since the height of the terminal is unknown. After an unknown control sequence, or one that
moves the cursor to another line, the output is uncertain until the screen is cleared.
"""

from __future__ import annotations

import re
import unicodedata

NARROWEST = 80  # columns that every terminal has; in longer lines, overwriting depends on where they wrap
MIXED = "\ufdd0"  # marks where overwriting text ends within a word of older text

TURNING = r"\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that change the direction of text
TEXT = rf"[^\x00-\x1f\x7f-\x9f{TURNING}]"
STRING = rf"(?:\x1b\]{TEXT}*(?:\x07|\x1b\\)|\x1b[PX^_]{TEXT}*\x1b\\)"
SPECIAL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{TURNING}]")
SHOWN = re.compile(TEXT)
PIECE = re.compile(rf"{TEXT}+|{STRING}|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|.", re.DOTALL)
MOVE = re.compile(r"\x1b\[(\d{0,4})([CDG])")
ERASE = re.compile(r"\x1b\[([01]?)([JK])|\x1b\[(2)(K)")
HARMLESS = re.compile(
    rf"{STRING}|[\x00-\x07\x0f\x7f]|\x1b[()*+][AB]|\x1b[=>7\\]|\x1b\[s|\x1b\[3J"
    r"|\x1b\[\?(?:1|5|12|25|100\d|2004|2026)[hl]|\x1b\[[\d;?>=]*[cn]|\x1b\[[<=>?][\d;]*[mu]|\x1b\[\d* q"
)
COLOUR = re.compile(r"\x1b\[([\d;:]*)m")
OF_PALETTE = re.compile(r"[345]8[;:](?:5[;:]\d+|2(?:[;:]\d*){3,4})")
HOME = ("\x1b[H", "\x1b[1;1H", "\x1b[;H", "\x1b[f", "\x1b[1;1f")
OTHER_SCREEN = ("\x1b[?1049h", "\x1b[?1049l")


def rendered(out: str) -> tuple[str, str | None]:
    r"""Return the visible text, and the control sequence after which it is uncertain, if any.

    >>> rendered("\x1b]0;title\x07\x1b[32m10%\r 99%\x1b[0m\n12.5\n\x1b[?25h")
    (' 99%\n12.5\n', None)
    >>> rendered("3\n\x1b[A12.5")[1]
    '\x1b[A'
    """
    out = out.replace("\r\n", "\n")
    if not SPECIAL.search(out):
        return out, None
    screen = Screen()
    for piece in PIECE.findall(out):
        screen.take(piece)
    return "\n".join(map("".join, screen.lines)), screen.lost


class Screen:
    """The lines of a terminal; only the last one can change."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = [[]]
        self.column = 0
        self.lost: str | None = None
        """The sequence that made the output uncertain."""
        self._home = self._cleared = False
        self._beneath: tuple[list[list[str]], int, str | None] | None = None

    def take(self, piece: str) -> None:
        """Process a run of text or a control sequence."""
        if SHOWN.match(piece):
            self._write(piece)
        elif piece == "\n" or (piece in ("\v", "\f") and not self.column):
            self.lines.append([])
            self.column, self._home, self._cleared = 0, False, False
        elif piece in ("\r", "\b", "\t"):
            self._go({"\r": 0, "\b": self.column - 1, "\t": self.column // 8 * 8 + 8}[piece], piece)
        elif piece == "\x1b[2J" or (self._home and piece in ("\x1b[J", "\x1b[0J")):
            self._clear(piece)
        elif piece == "\x1bc":
            self._restart()
        elif piece in HOME:
            self._go_home(piece)
        elif found := MOVE.fullmatch(piece):
            steps = max(int(found[1] or 1), 1)
            self._go({"C": self.column + steps, "D": self.column - steps, "G": steps - 1}[found[2]], piece)
        elif found := ERASE.fullmatch(piece):
            self._erase(piece, found[1] or found[3] or "0", found[2] or found[4])
        elif piece in OTHER_SCREEN:
            self._switch(piece)
        elif not _harmless(piece):
            self._lose(piece)

    def _write(self, text: str) -> None:
        line, end = self.lines[-1], self.column + len(text)
        if self.column < len(line):
            self._check_columns(text, text)
            if end < len(line) and not text[-1].isspace() and not line[end].isspace():
                line[end] = MIXED
        line[self.column : end] = text
        self.column, self._home, self._cleared = end, False, False

    def _erase(self, piece: str, part: str, of: str) -> None:
        line = self.lines[-1]
        if part != "0" or self.column < len(line) or self.column >= NARROWEST:
            self._check_columns(piece)
            if self.column >= NARROWEST:  # the cursor may be on the last character, or on the next line
                self._lose(piece)
        if part != "0":
            line[: self.column + 1] = [" "] * (self.column + 1)
        if part != "1":
            del line[self.column :]
        if part == "1" and of == "J":
            del self.lines[:-1]

    def _go(self, column: int, piece: str) -> None:
        line, column = self.lines[-1], max(column, 0)
        if piece not in "\r\t" and (max(column, self.column) >= NARROWEST or not _narrow(line)):
            self._lose(piece)
            return
        line.extend([" "] * (column - len(line)))
        self.column, self._home = column, False

    def _go_home(self, piece: str) -> None:
        if self._cleared or (self.lost is None and not any("".join(line).strip() for line in self.lines)):
            self._restart()
        else:
            self._lose(piece)
        self.column, self._home = 0, True

    def _clear(self, piece: str) -> None:
        """Clear the screen; the cursor's column is certain at home, or if all characters were narrow."""
        if self._home:
            self._restart()
        elif self.column >= NARROWEST or not _narrow(self.lines[-1]):
            self._lose(piece)
        self.lines, self._cleared = [[" "] * self.column], True

    def _restart(self) -> None:
        self.lines, self.column, self.lost = [[]], 0, None

    def _switch(self, piece: str) -> None:
        if piece == OTHER_SCREEN[0] and self._beneath is None:
            self._beneath = self.lines, self.column, self.lost
            self._clear(piece)
        elif piece == OTHER_SCREEN[1] and self._beneath is not None:
            self.lines, self.column, self.lost = self._beneath
            self._beneath, self._home, self._cleared = None, False, False
        else:
            self._lose(piece)

    def _check_columns(self, piece: str, text: str = "") -> None:
        """Columns are uncertain in a wrapped line, or one with characters that are not one column wide."""
        line = self.lines[-1]
        if len(line) > NARROWEST or self.column + len(text) > NARROWEST or not _narrow(line) or not _narrow(text):
            self._lose(piece)

    def _lose(self, piece: str) -> None:
        self.lost, self._home, self._cleared = self.lost or piece, False, False


def _harmless(piece: str) -> bool:
    """Whether a sequence leaves the visible text unchanged; concealing text does not."""
    if colour := COLOUR.fullmatch(piece):
        return "8" not in re.split("[;:]", OF_PALETTE.sub("", colour[1]))
    return HARMLESS.fullmatch(piece) is not None


def _narrow(text: str | list[str]) -> bool:
    return all(
        c.isascii()
        or c == MIXED
        or not (unicodedata.east_asian_width(c) in "WF" or unicodedata.category(c) in ("Mn", "Me", "Cf"))
        for c in text
    )
