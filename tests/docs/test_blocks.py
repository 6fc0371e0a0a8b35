"""What runs the documents has to notice what is wrong with them."""
import pathlib
import unittest

from blocks import blocks_of, console, matches, same_output
from commands import Commands

TABLE = {"verbs": [
    {"name": "check", "runs": True, "actions": [], "options": [{"name": "target", "kind": "list", "value": {"type": "choice", "choices": ["gfx950"]}},
                                                               {"name": "quiet", "letter": "q", "kind": "flag"}]},
    {"name": "cache", "runs": False, "options": [], "actions": [{"name": "cache ls", "options": [{"name": "json", "kind": "flag"}]}]},
]}


class Blocks(unittest.TestCase):
    def test_blocks_have_their_marks_and_places(self):
        blocks, problems = blocks_of("a.md", "text\n<!-- file: x.json -->\n```json\n{}\n```\n\n  <!-- needs: gpu -->\n  ```sh\n  heddle check\n  ```\n")
        self.assertEqual(problems, [])
        self.assertEqual([(b.language, b.text, b.marks, b.place) for b in blocks],
                         [("json", "{}\n", {"file": "x.json"}, "a.md:4"), ("sh", "heddle check\n", {"needs": "gpu"}, "a.md:9")])

    def test_wrong_marks_are_noticed(self):
        self.assertTrue(blocks_of("a.md", "<!-- needs: luck -->\n```sh\n```\n")[1])
        self.assertTrue(blocks_of("a.md", "<!-- exits: 1 -->\n\nno block\n")[1])
        self.assertTrue(blocks_of("a.md", "```sh\nheddle\n")[1])

    def test_commands_go_on_behind_a_backslash(self):
        self.assertEqual(console("$ a \\\n  b\nout\n$ c\n"), [("a \\\n  b", ["out"]), ("c", [])])
        self.assertRaises(ValueError, console, "out\n")


class Output(unittest.TestCase):
    def test_times_and_near_fractions_match(self):
        self.assertTrue(matches("rms 1.75e-03 in 3.2 s", "rms  1.80e-03 in 99 s"))
        self.assertFalse(matches("rms 1.75e-03", "rms 2.50e-03"))
        self.assertTrue(matches("x … y 3", "x whatever y 3"))
        self.assertFalse(matches("key abab", "key abac"))
        self.assertFalse(matches("2 bad", "3 bad"))

    def test_lines_left_out_are_passed_over_and_others_are_not(self):
        self.assertIsNone(same_output(["a", "…", "c"], ["a", "b", "b", "c"]))
        self.assertIsNone(same_output(["a", "…"], ["a", "b"]))
        self.assertEqual(same_output(["a", "c"], ["a", "b", "c"]), "c")
        self.assertIsNotNone(same_output(["a"], ["a", "b"]))
        self.assertEqual(same_output(["…", "d"], ["a", "b"]), "d")


class Help(unittest.TestCase):
    def wrong(self, script, **more):
        here = pathlib.Path(__file__).parent
        return len(Commands(TABLE, here, here).problems(script, **more))

    def test_right_commands_pass(self):
        self.assertEqual(self.wrong("A=b build/heddle check SPEC --target gfx950 -q > out # --none\nheddle cache ls --json | heddle check - --target=gfx950"), 0)

    def test_wrong_ones_are_counted(self):
        self.assertEqual(self.wrong("heddle chekc x"), 1)
        self.assertEqual(self.wrong("heddle check x --tarmac gfx950"), 1)
        self.assertEqual(self.wrong("heddle check x --target gfx1"), 1)
        self.assertEqual(self.wrong("heddle check x --target"), 1)
        self.assertEqual(self.wrong("heddle check --target", words_only=True), 0)
        self.assertEqual(self.wrong("heddle cache lss"), 1)
        self.assertEqual(self.wrong("tools/nothing.sh"), 1)


if __name__ == "__main__":
    unittest.main()
