"""Answer questions, read only: query, hybrid ranking, filters, explanations."""

from obsidian_rag.search.answer import Answer, Filters, Hit, Request, Signals, Suggestion, Why
from obsidian_rag.search.measures import (
    Measures,
    mean,
    measure,
    mildest_threshold,
    share_below,
)
from obsidian_rag.search.query import DateRange, PropertyFilter, parse_property, parse_query
from obsidian_rag.search.searcher import Meanings, Searcher
from obsidian_rag.search.words import has_phrase, matched_terms, question_words

__all__ = [
    "Answer",
    "DateRange",
    "Filters",
    "Hit",
    "Meanings",
    "Measures",
    "PropertyFilter",
    "Request",
    "Searcher",
    "Signals",
    "Suggestion",
    "Why",
    "has_phrase",
    "matched_terms",
    "mean",
    "measure",
    "mildest_threshold",
    "parse_property",
    "parse_query",
    "question_words",
    "share_below",
]
