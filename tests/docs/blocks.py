"""The fenced blocks of a document, and what stands in them.

A comment before a block, invisible in rendering, says what a reader has to know and a machine can't guess:

    <!-- file: NAME -->       the block is a file of that name, which blocks after it find
    <!-- file+: NAME -->      the same, appended to it
    <!-- needs: WHAT -->      not run here, since it needs WHAT (NEEDS below); its commands are held against the command's own help
    <!-- exits: N -->         its last command ends with N, and that is what it is there to show

Blocks of `sh` are scripts. Blocks of `console` are commands after `$ ` and what they print.
"""
import dataclasses
import re

NEEDS = {
    "gpu": "a GPU",
    "network": "the network",
    "minutes": "minutes",
    "root": "an installation, or root",
    "terminal": "a terminal",
    "yours": "files or programs of the reader's own",
}
MARK = re.compile(r"<!-- *(file|file\+|needs|exits): *(.*?) *-->$")
FENCE = re.compile(r"^( *)```(\S*) *$")


@dataclasses.dataclass
class Block:
    document: str
    line: int  # of the first line inside the fence
    language: str
    text: str
    marks: dict

    @property
    def place(self):
        return f"{self.document}:{self.line}"


def blocks_of(document, text):
    """The blocks of a document in order, and what is wrong with its marks."""
    found, problems, marks, block = [], [], {}, None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if block is not None:
            if fence and not fence[2]:
                block.text = "".join(f"{one}\n" for one in block.text)
                found.append(block)
                block = None
            else:
                block.text.append(line[indent:] if not line[:indent].strip() else line)
        elif fence:
            indent = len(fence[1])
            block = Block(document, number + 1, fence[2], [], marks)
            marks = {}
        elif mark := MARK.match(line.strip()):
            marks[mark[1]] = mark[2]
            if mark[1] == "needs" and mark[2] not in NEEDS:
                problems.append(f"{document}:{number}: needs: {mark[2]} is none of {', '.join(NEEDS)}")
        elif line.strip():
            if marks:
                problems.append(f"{document}:{number}: a mark is not followed by a block")
            marks = {}
    if block is not None:
        problems.append(f"{block.place}: the block doesn't end")
    return found, problems


def console(text):
    """[(command, what it prints)] of a console block. A command goes on behind a backslash."""
    steps, in_command = [], False
    for line in text.splitlines():
        if in_command:
            steps[-1][0] += "\n" + line
        elif line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
            continue
        else:
            raise ValueError("it begins with no command")
        in_command = line.endswith("\\")
    return [(command, printed) for command, printed in steps]


TIME = re.compile(r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)? ?(ns|us|µs|ms|s|min)\b")  # differs from run to run
FRACTION = re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")  # may differ a little from compiler to compiler
NEAR = 0.25


def plain(line):
    return TIME.sub(r"0 \1", " ".join(line.split()))


def matches(expected, printed):
    """Whether a printed line is what was expected: blanks count as one, times as any time, fractions as any near one, … as anything."""
    expected, printed = plain(expected), plain(printed)
    parts = re.split(r" ?… ?", FRACTION.sub("\0", expected))
    found = re.match(".*".join(re.escape(part).replace("\0", f"({FRACTION.pattern})") for part in parts) + r"\Z", printed)
    pairs = zip(FRACTION.findall(expected), found.groups()) if found else []
    return bool(found) and all(abs(float(one) - float(other)) <= NEAR * abs(float(one)) for one, other in pairs)


def same_output(expected, printed):
    """None, or the first expected line that was not printed. A line of … alone stands for any number of lines."""
    at, skipping = 0, False
    for line in expected:
        if line.strip() == "…":
            skipping = True
            continue
        while skipping and at < len(printed) and not matches(line, printed[at]):
            at += 1
        if at == len(printed) or not matches(line, printed[at]):
            return line
        at, skipping = at + 1, False
    return None if skipping or at == len(printed) else f"nothing more, but there is: {printed[at]}"
