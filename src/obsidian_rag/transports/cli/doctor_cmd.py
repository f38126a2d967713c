"""doctor: every check with its outcome and the next step."""

from typing import Annotated

import typer

from obsidian_rag.transports.cli.backend import open_engine
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope
from obsidian_rag.transports.cli.streams import style
from obsidian_rag.transports.lazy import engine, tools

_MARKS = {"ok": "ok", "warning": "warning", "problem": "PROBLEM"}
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check the content of every chunk and note")
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Check the installation and say what to do about each problem

    Example:  obsidian-rag doctor --deep
    """
    findings = []
    with open_engine() as opened:
        for finding in engine.examine(opened, deep=deep):
            findings.append(finding)
            if not json_output:
                mark = f"{_MARKS[finding.verdict]:<8}"
                verdict = style(mark, fg=_COLOURS[finding.verdict], bold=True)
                print(f"{verdict} {finding.check:<12} {finding.message}")
                if finding.suggestion:
                    print(f"{'':<21} {finding.suggestion}")
    trouble = next((finding.error for finding in findings if finding.error), None)
    if json_output:
        shown = tools.to_json(findings, {"error": None})
        print_envelope(tools.success({"findings": shown}, trouble=trouble))
    return trouble.exit_code if trouble else 0
