"""Measure search quality: questions with known answers, asked in several ways, and a report."""

from obsidian_rag.search.evaluation.golden import Golden, Half, Question, half_of, read_golden
from obsidian_rag.search.evaluation.own_questions import questions_from
from obsidian_rag.search.evaluation.report import (
    PARTS,
    EvalOptions,
    Evaluated,
    Outcome,
    Report,
    Weakness,
    evaluate_search,
)

__all__ = [
    "PARTS",
    "EvalOptions",
    "Evaluated",
    "Golden",
    "Half",
    "Outcome",
    "Question",
    "Report",
    "Weakness",
    "evaluate_search",
    "half_of",
    "questions_from",
    "read_golden",
]
