"""A terminal's screen as SVG: text, colours and block characters, with no font of its own.

Screen understands what cli/terminal/terminal.cpp writes, and refuses every other escape sequence.
"""

import copy
import re
from xml.sax.saxutils import escape

CELL, LINE, SIZE, MARGIN = 7.8, 18, 13, 14
BACKGROUND = "#16191f"
INKS = {"": "#d7dce2", "1": "#ffffff", "2": "#8b949e", "32": "#56d364", "31": "#ff7b72", "36": "#5ccfe6"}
ESCAPE = re.compile(r"\x1b\[(?P<numbers>[0-9;]*)(?P<letter>[A-Za-z])")
LOWER_BLOCKS = "▁▂▃▄▅▆▇█"  # an eighth of the height each, from below
LEFT_BLOCKS = "▏▎▍▌▋▊▉"  # an eighth of the width each, from the left
SHADE = "░"


class Screen:
    """Rows of cells; a cell is a character and its ink."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[]]
        self.row = self.column = 0
        self.ink = ""
        self.unread = b""

    def feed(self, data):
        # A read may end within a character or an escape sequence; what is left waits for the next.
        data = self.unread + data
        text = data.decode("utf-8", "ignore")
        begun = text.rfind("\x1b")
        if begun >= 0 and not ESCAPE.match(text, begun):
            text = text[:begun]
        self.unread = data[len(text.encode()):]
        at = 0
        while at < len(text):
            found = ESCAPE.match(text, at)
            if found:
                self.obey(found["numbers"], found["letter"])
                at = found.end()
            else:
                self.put(text[at])
                at += 1

    def obey(self, numbers, letter):
        if letter == "m":
            self.ink = "" if numbers in ("", "0") else numbers
        elif letter == "A":
            self.row = max(0, self.row - int(numbers or 1))
        elif letter == "K":
            del self.cells[self.row][self.column:]
        elif letter == "J":
            del self.cells[self.row][self.column:]
            del self.cells[self.row + 1:]
        elif letter == "H":
            self.row = self.column = 0
        else:
            raise ValueError(f"an escape sequence that is not known: {numbers}{letter}")

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == len(self.cells):
                self.cells.append([])
        else:
            line = self.cells[self.row]
            line.extend([(" ", "")] * (self.column + 1 - len(line)))
            line[self.column] = (character, self.ink)
            self.column += 1

    def copy(self):
        return copy.deepcopy(self)

    def text(self):
        return "\n".join("".join(character for character, _ in line).rstrip() for line in self.cells)

    def svg(self):
        lines = [line for line in self.cells]
        while lines and not "".join(character for character, _ in lines[-1]).strip():
            lines.pop()
        width = self.columns * CELL + 2 * MARGIN
        height = len(lines) * LINE + 2 * MARGIN
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                 f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
                 f'font-size="{SIZE}">\n<title>fettle run: the live screen</title>\n'
                 f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
        for number, line in enumerate(lines):
            parts += line_svg(line, MARGIN + number * LINE)
        return "\n".join(parts) + "\n</svg>\n"


def line_svg(line, top):
    """Words with one ink each become a text, blocks become rectangles."""
    at = 0
    while at < len(line):
        character, ink = line[at]
        end = at + 1
        if character == " ":
            at = end
            continue
        if is_block(character):
            while end < len(line) and line[end] == line[at]:
                end += 1
            yield block_svg(character, ink, at, end - at, top)
        else:
            # A single space within words of one ink is part of the text.
            while end < len(line) and not is_block(line[end][0]) and (
                    line[end][1] == ink and line[end][0] != " " or
                    line[end][0] == " " and end + 1 < len(line) and line[end + 1][0] != " " and
                    line[end + 1][1] == ink and not is_block(line[end + 1][0])):
                end += 1
            yield text_svg("".join(c for c, _ in line[at:end]), ink, at, top)
        at = end


def is_block(character):
    return character in LOWER_BLOCKS or character in LEFT_BLOCKS or character == SHADE


def text_svg(text, ink, column, top):
    weight = ' font-weight="bold"' if ink == "1" else ""
    return (f'<text x="{MARGIN + column * CELL:.1f}" y="{top + 13}" textLength="{len(text) * CELL:.1f}" '
            f'lengthAdjust="spacingAndGlyphs" fill="{INKS[ink]}"{weight}>{escape(text)}</text>')


def block_svg(character, ink, column, count, top):
    """A run of one block character. Runs overlap by a hair, or their seam would show."""
    full = LINE - 4
    part = 1.0
    if character in LEFT_BLOCKS:
        part = (LEFT_BLOCKS.index(character) + 1) / 8
    share = (LOWER_BLOCKS.index(character) + 1) / 8 if character in LOWER_BLOCKS else 1.0
    left, width = MARGIN + column * CELL, (count - 1 + part) * CELL
    opacity = ' opacity="0.25"' if character == SHADE else ""
    rest = ""
    if part < 1:  # the rest of the cell belongs to the track of a bar
        rest = rect(left + width, top + 2, CELL - part * CELL, full, INKS[ink], ' opacity="0.25"')
    return rect(left - 0.3 * (part < 1), top + 2 + full * (1 - share), width + 0.3 * (part < 1), full * share,
                INKS[ink], opacity) + rest


def rect(left, top, width, height, colour, more=""):
    return (f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"{more}/>')
