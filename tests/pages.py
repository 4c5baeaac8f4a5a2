"""The pages of the documentation as tests read them: blocks, commands, and what differs from run to run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

WHATEVER = "…"
"""A line of promised output that stands for any lines, or none."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its title if it has one, its text, the line it begins on."""

    language: str
    title: str | None
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A line typed after `$`, and what the page says it prints."""

    line: str
    output: list[str]


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    found = re.finditer(r'^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2], m[3], text.count("\n", 0, m.start(3))) for m in found]


def without_blocks(page: Path) -> str:
    """The prose of a page."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block, each with the lines under it."""
    commands: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        else:
            commands[-1].output.append(line)
    return commands


def replaced(text: str, pairs: dict[str, str]) -> str:
    """The text with each value put in the place of its key."""
    for old, new in pairs.items():
        text = text.replace(old, new)
    return text


_DIFFERS = (
    (r"[\w.-]+:\d+:[0-9a-f]{8}\b", "OWNER"),
    (r"[\w.-]+ \(pid \d+\)", "SERVER"),
    (r"\b[\w.-]+@[\w.-]+", "PERSON"),
    (r"\b[0-9a-f]{32}\b", "TOKEN"),
    (r"\b\d{13}\b", "FENCE"),
    (r"(\w{3} )?\d{4}-\d\d-\d\d[ \n]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?", "INSTANT"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"\b(in \d+ (seconds?|ms)|\d+ (seconds?|ms) ago)\b", "SOON"),
    (r"\b\d+(\.\d+)? (m?s|seconds?)\b", "LENGTH"),
    (r"for \d\d:\d\d\b", "FOR AN HOUR"),
    (r"\b\d+(\.\d+)?/s\b", "RATE"),
    (r"\b\d+m\d\ds left\b", "LEFT"),
)


def comparable(text: str) -> str:
    """The text without what differs from run to run: owners, fences, times, the width of columns."""
    for pattern, word in _DIFFERS:
        text = re.sub(pattern, word, text)
    return re.sub(r" {2,}", "  ", text)


def prints(said: list[str], promised: list[str]) -> bool:
    """Whether the words said are those promised, where `…` stands for any; lines may break elsewhere."""
    parts: list[list[str]] = [[]]
    for line in promised:
        if line.strip() == WHATEVER:
            parts.append([])
        else:
            parts[-1].append(line)
    pattern = "(?: .*)?".join(re.escape(f" {_flat(part)}".rstrip()) for part in parts)
    return re.fullmatch(pattern, f" {_flat(said)}".rstrip()) is not None


def _flat(lines: list[str]) -> str:
    return comparable(" ".join(" ".join(lines).split()))
