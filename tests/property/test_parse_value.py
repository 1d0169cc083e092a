"""The value of a command is read from the last line as a terminal shows it, or not at all."""

import re
import unicodedata

from hypothesis import assume, example, given
from hypothesis import strategies as st

from trimtab.tune.parse_value import read_value
from trimtab.tune.terminal import MIXED, rendered

HEIGHT, WIDTH = 24, 80


class Terminal:
    """A terminal of 24 lines of 80 columns, cell by cell, which does all that the vocabulary below asks for."""

    def __init__(self):
        self.cells = [[" "] * WIDTH for _ in range(HEIGHT)]
        self.row = self.column = 0
        self.kept = (0, 0)
        self.hidden = False

    def show(self, text):
        for piece in re.findall(
            r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|\x1b\[[0-?]*[@-~]|\x1b\(B|\x1b.|.", text, re.S
        ):
            if len(piece) == 1:
                self.character(piece)
            elif piece.startswith("\x1b["):
                numbers = [int(number or 0) for number in re.findall(r"\d*", piece[2:-1])]
                self.control(piece[-1], piece[2:-1], numbers[0] if numbers else 0)
            elif piece in ("\x1b7", "\x1b8"):
                self.keep(piece == "\x1b7")
        rows = ["".join(row).rstrip() for row in self.cells]
        return next((row for row in reversed(rows) if row), "")

    def character(self, c):
        if c == "\n":
            self.column = 0
            self.down()
        elif c == "\r":
            self.column = 0
        elif c == "\b":
            self.column = max(min(self.column, WIDTH - 1) - 1, 0)
        elif c == "\t":
            self.column = min(self.column // 8 * 8 + 8, WIDTH - 1)
        elif c.isprintable():
            if self.column == WIDTH:
                self.column = 0
                self.down()
            self.cells[self.row][self.column] = " " if self.hidden else c
            self.column += 1

    def down(self):
        self.row += 1
        if self.row == HEIGHT:
            self.row -= 1
            self.cells = [*self.cells[1:], [" "] * WIDTH]

    def control(self, what, inside, n):
        n = max(n, 1) if what in "ABCDG" else n
        column = min(self.column, WIDTH - 1)
        if what == "m":
            self.hidden = inside == "8" or (self.hidden and inside not in ("", "0"))
        elif what in "AB":
            self.row = max(self.row - n, 0) if what == "A" else min(self.row + n, HEIGHT - 1)
        elif what in "CDG":
            moved = {"C": column + n, "D": column - n, "G": n - 1}[what]
            self.column = max(min(moved, WIDTH - 1), 0)
        elif what == "H":
            self.row = self.column = 0
        elif what == "K":
            self.blank(self.row, *{0: (column, WIDTH), 1: (0, column + 1), 2: (0, WIDTH)}[n])
        elif what == "J" and n < 3:
            for row in range(HEIGHT):
                if row == self.row and n < 2:
                    self.blank(row, *((column, WIDTH) if n == 0 else (0, column + 1)))
                elif n == 2 or (row > self.row and n == 0) or (row < self.row and n == 1):
                    self.blank(row, 0, WIDTH)

    def blank(self, row, begin, end):
        self.cells[row][begin:end] = [" "] * (end - begin)

    def keep(self, keep):
        if keep:
            self.kept = self.row, self.column
        else:
            self.row, self.column = self.kept


words = st.sampled_from(
    ["7", "99", "3.25", "100%", "x", " ", "  ", "load=", "##########", "█████", "[", "]", "a b", "-", "."]
)
quiet = st.sampled_from(
    [
        "\x1b[0m",
        "\x1b[m",
        "\x1b[1;32m",
        "\x1b[38;5;8m",
        "\x1b[48;2;8;8;8m",
        "\x1b[?25l",
        "\x1b[?25h",
        "\x1b[?2004h",
        "\x07",
        "\x1b]0;t 99\x07",
        "\x1b]8;;http://a/3\x1b\\",
        "\x1b]8;;\x1b\\",
        "\x1bP1$r0m\x1b\\",
        "\x1b(B",
        "\0",
        "\x1b[6n",
    ]
)
within = st.sampled_from(
    ["\r", "\b", "\b\b", "\t", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[C", "\x1b[3C", "\x1b[2D", "\x1b[5G"]
)
across = st.sampled_from(
    [
        "\x1b[A",
        "\x1b[2A",
        "\x1b[B",
        "\x1b[H",
        "\x1b[J",
        "\x1b[1J",
        "\x1b[2J",
        "\x1b[H\x1b[2J",
        "\x1b[H\x1b[J",
        "\x1b7",
        "\x1b8",
        "\x1b[8m",
    ]
)
bars = st.integers(2, 12).map(lambda n: "".join(f"\r[{'#' * k}{'.' * (n - k)}] {100 * k // n}%" for k in range(n + 1)))
spinners = st.lists(st.sampled_from("|/-\\"), max_size=5).map("".join).map(lambda marks: "\b".join(marks))
lines = st.sampled_from(["\n", "\r\n", "\n\n", "\r\r\n"])
anything = st.lists(st.one_of(words, quiet, within, lines, bars, spinners, across), max_size=12).map("".join)
on_a_line = st.lists(st.one_of(words, quiet, within, lines, bars, spinners), max_size=12).map("".join)
numbers = st.decimals(-9999, 9999, places=2).map(str)


def read_as_seen(out):
    seen = Terminal().show(out)
    value, why = read_value(out)
    assert (value is None) != (why is None)
    if value is not None:
        assert value == read_value(seen)[0], seen  # a line without anything special is read as it stands


@given(anything, numbers, anything)
@example("1000\r", "12.50", "\r\x1b[2J")
@example("", "12.50", "\n\x1b[0m\n")
@example("9\n\x1b[A", "1.25", "")
def test_no_other_number_than_the_one_that_is_seen(before, number, after):
    read_as_seen(before + number + after)


@given(on_a_line, numbers, on_a_line)
def test_what_stays_on_its_line_is_seen_by_both(before, number, after):
    """Rendered as the terminal does, but for lines that are mixed, which are not read."""
    out = before + number + after
    text, doubt = rendered(out)
    assume(doubt is None)
    last = next((line.rstrip() for line in reversed(text.split("\n")) if line.strip()), "")
    seen = Terminal().show(out)
    if MIXED not in last and len(last.expandtabs()) <= WIDTH:
        assert last.expandtabs() == seen
    read_as_seen(out)


@given(
    st.lists(st.one_of(words, quiet, lines, bars), max_size=8).map("".join),
    numbers,
    st.lists(quiet, max_size=3),
    st.booleans(),
)
def test_decoration_does_not_hide_a_number(before, number, after, ends):
    """Colours, titles and progress bars before a last line, and anything that shows nothing around its number."""
    out = f"{before}\n{number}{''.join(after)}" + ("\n\x1b[0m\n" if ends else "")
    assert read_value(out) == (float(number), None)


@given(st.text(st.characters(codec="utf-8"), max_size=30), numbers)
def test_any_text_before_a_number_on_a_line_of_its_own(before, number):
    value, _ = read_value(f"{before}\n{number}")
    if not any(unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t" for c in before):
        assert value == float(number)
    else:
        assert value in (None, float(number))
