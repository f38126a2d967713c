"""Answer questions, read only: query, hybrid ranking, filters, explanations, evaluation."""

from obsidian_rag.search.answer import Answer, Filters, Hit, Request, Signals
from obsidian_rag.search.evaluation import (
    PARTS,
    EvalOptions,
    Evaluated,
    Outcome,
    Report,
    Weakness,
    evaluate_search,
)
from obsidian_rag.search.facts import Facts, FoundFact
from obsidian_rag.search.filters import fits_any, property_names
from obsidian_rag.search.golden import Golden, Half, Question, half_of, questions_from, read_golden
from obsidian_rag.search.keywords import bm25, length_damping
from obsidian_rag.search.passages import note_passages
from obsidian_rag.search.query import DateRange, parse_property, parse_query
from obsidian_rag.search.searcher import Meanings, Searcher
from obsidian_rag.search.words import has_phrase, matched_terms

__all__ = [
    "PARTS",
    "Answer",
    "DateRange",
    "EvalOptions",
    "Evaluated",
    "Facts",
    "Filters",
    "FoundFact",
    "Golden",
    "Half",
    "Hit",
    "Meanings",
    "Outcome",
    "Question",
    "Report",
    "Request",
    "Searcher",
    "Signals",
    "Weakness",
    "bm25",
    "evaluate_search",
    "fits_any",
    "half_of",
    "has_phrase",
    "length_damping",
    "matched_terms",
    "note_passages",
    "parse_property",
    "parse_query",
    "property_names",
    "questions_from",
    "read_golden",
]
