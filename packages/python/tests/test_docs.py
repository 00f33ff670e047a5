"""The programs of docs/python.md and README.md run."""

import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
PROGRAMS = [
    pytest.param(program, id=f"{page.name}-{number}")
    for page in (PACKAGE / "README.md", PACKAGE.parent.parent / "docs/python.md")
    for number, program in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_runs(program):
    exec(compile(program, "docs", "exec"), {})


def test_there_are_programs():
    assert len(PROGRAMS) == 4
