"""Answer questions, read only: query, hybrid ranking, filters, explanations."""

from obsidian_rag.search.answer import Answer, Filters, Hit, Request, Signals, Suggestion, Why
from obsidian_rag.search.measures import Measures, mean, measure
from obsidian_rag.search.query import DateRange, PropertyFilter, parse_property, parse_query
from obsidian_rag.search.searcher import Searcher

__all__ = [
    "Answer",
    "DateRange",
    "Filters",
    "Hit",
    "Measures",
    "PropertyFilter",
    "Request",
    "Searcher",
    "Signals",
    "Suggestion",
    "Why",
    "mean",
    "measure",
    "parse_property",
    "parse_query",
]
