#!/usr/bin/env python3
"""scripts/terminal_picture.py draws what cli/terminal/terminal.cpp writes."""

import unittest
import xml.etree.ElementTree

import terminal_picture


class TerminalPicture(unittest.TestCase):
    def screen(self, *pieces):
        screen = terminal_picture.Screen(5, 20)
        for piece in pieces:
            screen.feed(piece if isinstance(piece, bytes) else piece.encode())
        return screen

    def test_a_frame_is_drawn_over_the_last_one(self):
        first = "\ra long line\x1b[K\r\nsecond\x1b[K\r\n\x1b[J"
        second = "\r\x1b[2Ashort\x1b[K\r\n\x1b[J"
        self.assertEqual(self.screen(first).text(), "a long line\nsecond\n")
        self.assertEqual(self.screen(first, second).text(), "short\n")

    def test_characters_and_escapes_in_two_reads(self):
        bar = "█".encode()
        self.assertEqual(self.screen(b"a" + bar[:1], bar[1:] + b"\x1b[3", b"6mb").text(), "a█b")

    def test_an_unknown_escape_is_refused(self):
        with self.assertRaises(ValueError):
            self.screen("\x1b[5Z")

    def test_the_picture_has_the_text_and_its_colours(self):
        picture = self.screen("\x1b[32mgood <1>\x1b[0m ███▍░░").svg()
        root = xml.etree.ElementTree.fromstring(picture)
        texts = root.findall("{http://www.w3.org/2000/svg}text")
        self.assertEqual([(text.text, text.get("fill")) for text in texts],
                         [("good <1>", terminal_picture.INKS["32"])])
        # The background, three full cells, the partial one and its rest, the track.
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}rect")), 5)


if __name__ == "__main__":
    unittest.main()
