"""What is sensitive, what is withheld, and what is worth remembering."""

from dataclasses import replace

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.config import SecuritySettings
from obsidian_rag.config.settings import MemorySettings
from obsidian_rag.tools.guard import (
    AGENT,
    GuardSettings,
    Passage,
    Verdict,
    guard_settings,
    judge,
    memory_suggestion,
)

DEFAULT = GuardSettings(
    patterns=MemorySettings.model_validate({}).patterns,
    confirmed_categories=("health", "financial"),
    sensitive_sections=SecuritySettings.model_validate({}).sensitive_sections,
    is_withholding=False,
    is_suggesting=True,
)
WITHHOLD = replace(DEFAULT, is_withholding=True)
NOTHING_LISTED = replace(DEFAULT, confirmed_categories=())


def categories(
    text: str,
    settings: GuardSettings = DEFAULT,
    *,
    section: str | None = None,
    path: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
) -> tuple[str, ...]:
    return judge(text, section, path, tags, False, settings).categories


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I owe Sreenivas two hundred", ("financial",)),
        ("PAID in full", ("financial",)),
        ("It cost $20", ("financial",)),
        ("unpaid work, a flower, borrowed", ()),
        ("the $ sign alone", ()),
        ("started therapy", ("health",)),
        ("therapy, and I paid for it", ("financial", "health")),
        ("shopping list for Costco: grocery", ()),
        ("a walk by the lake", ()),
        ("", ()),
    ],
)
def test_words_decide_and_errands_are_not_sensitive(text: str, expected: tuple[str, ...]) -> None:
    assert categories(text) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"section": "#mentalhealth"}, ("health",)),
        ({"section": "#Relations"}, ("relations",)),
        ({"section": "Relations"}, ("relations",)),
        ({"path": ("Journal", "Mental health")}, ("health",)),
        ({"path": ("Relations", "Ana")}, ("relations",)),
        ({"tags": ("#relations/family",)}, ("relations",)),
        ({"tags": ("#PhysicalHealth",)}, ("health",)),
        ({"section": "#gardening", "tags": ("#relationship",)}, ()),
    ],
)
def test_sections_headings_and_tags_decide(where: dict[str, object], expected: object) -> None:
    assert categories("A quiet day.", **where) == expected  # type: ignore[arg-type]  # a table


def test_categories_that_are_not_listed_do_not_count() -> None:
    only_health = replace(DEFAULT, confirmed_categories=("health",))
    assert categories("I owe money", only_health) == ()
    assert categories("therapy", only_health) == ("health",)
    assert categories("I owe money; therapy", NOTHING_LISTED) == ()


def test_sensitive_sections_and_private_notes_count_whatever_is_listed() -> None:
    assert categories("A day.", NOTHING_LISTED, section="#mentalhealth") == ("health",)
    assert categories("A day.", NOTHING_LISTED, section="#Relations") == ("relations",)
    assert judge("A day.", None, (), (), True, NOTHING_LISTED).categories == ("private",)


def test_a_category_of_the_users_own_counts_when_it_is_listed() -> None:
    own = replace(
        DEFAULT,
        patterns={**DEFAULT.patterns, "Work": ("salary",)},
        confirmed_categories=("work", "commitments"),
    )
    assert categories("my salary at Costco, paid", own) == ("commitments", "Work")


@pytest.mark.parametrize(
    ("text", "is_private", "settings", "expected"),
    [
        ("A day.", False, DEFAULT, Verdict((), False)),
        ("I owe you", False, DEFAULT, Verdict(("financial",), False)),
        ("A day.", True, DEFAULT, Verdict(("private",), True)),
        ("A day.", False, WITHHOLD, Verdict((), False)),
        ("I owe you", False, WITHHOLD, Verdict(("financial",), True)),
        ("I owe you", True, WITHHOLD, Verdict(("financial", "private"), True)),
    ],
)
def test_flag_marks_and_withhold_keeps_back(
    text: str, is_private: bool, settings: GuardSettings, expected: Verdict
) -> None:
    verdict = judge(text, None, (), (), is_private, settings)
    assert verdict == expected
    assert AGENT.misses(verdict) is expected.is_withheld
    assert AGENT.confirming(True).misses(verdict) is False
    assert verdict.is_sensitive is bool(expected.categories)


def test_settings_come_from_the_config_with_the_designs_name_for_debts(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    assert guard_settings(engine(make_vault({}))) == DEFAULT
    changed = {
        "security.require_confirmation_for": ["Financial_Debt"],
        "security.sensitive_sections": [],
        "security.sensitive_policy": "withhold",
        "memory.auto_suggest": False,
    }
    settings = guard_settings(engine(make_vault({}), changed))
    assert settings == replace(
        WITHHOLD,
        confirmed_categories=("financial",),
        sensitive_sections=(),
        is_suggesting=False,
    )


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("I owe Sreenivas $200.", "debt_to_sreenivas", "I owe Sreenivas $200."),
        (
            "Rain.\n- [ ] I owe [[Sreenivas Pillai|Sreenivas]] **$1,150** as of May. Sunny later.",
            "debt_to_sreenivas",
            "I owe Sreenivas $1,150 as of May.",
        ),
        ("I still owe $40 to Ana Maria.", "debt_to_ana_maria", "I still owe $40 to Ana Maria."),
        ("a debt to Jürgen", "debt_to_jürgen", "a debt to Jürgen"),
        (
            "## Boiler\nPaid the plumber for the boiler repair.",
            "financial_plumber_boiler_repair",
            "Paid the plumber for the boiler repair.",
        ),
        ("Next therapy with Dr Ash.", "health_next_dr_ash", "Next therapy with Dr Ash."),
        (
            "Shopping list: oat milk, candles",
            "commitments_milk_candles",
            "Shopping list: oat milk, candles",
        ),
        ("#mentalhealth\nStarted medication today", None, "Started medication today"),
    ],
)
def test_a_matching_sentence_becomes_a_suggestion(text: str, key: str | None, value: str) -> None:
    found = memory_suggestion([Passage(text, "Finance/Debts.md")], DEFAULT)
    assert found is not None
    assert found["value"] == value
    assert found["source"] == "Finance/Debts.md"
    if key is not None:
        assert found["key"] == key


def test_the_sentence_with_more_of_the_patterns_is_chosen() -> None:
    text = "I spent a day there. In the end I paid $50 of the debt. I spent more."
    found = memory_suggestion([Passage(text, "a.md")], DEFAULT)
    assert found is not None
    assert found["value"] == "In the end I paid $50 of the debt."


def test_a_long_sentence_is_cut_between_words_and_its_key_is_short() -> None:
    found = memory_suggestion([Passage("I paid " + "incomprehensibility " * 40, "a.md")], DEFAULT)
    assert found is not None
    assert len(found["value"]) <= 300
    assert found["value"].endswith("incomprehensibility…")
    assert len(found["key"]) <= 60


@pytest.mark.parametrize(
    ("hits", "settings"),
    [
        ([], DEFAULT),
        ([Passage("A walk.", "a.md")], DEFAULT),
        ([Passage("## Therapy notes", "a.md")], DEFAULT),
        ([Passage("#mentalhealth #therapy", "a.md")], DEFAULT),
        ([Passage("unpaid", "a.md"), Passage("I owe you", "b.md")], DEFAULT),
        ([Passage("I owe you", "a.md", is_withheld=True)], DEFAULT),
        ([Passage("I owe you", "a.md", True), Passage("I owe me", "b.md")], DEFAULT),
        ([Passage("I owe you", "a.md")], replace(DEFAULT, is_suggesting=False)),
        ([Passage("I owe you", "a.md")], replace(DEFAULT, patterns={})),
    ],
    ids=[
        "no hits",
        "nothing matches",
        "only a heading",
        "only tags",
        "only the best passage counts",
        "withheld",
        "the best is withheld",
        "switched off",
        "no patterns",
    ],
)
def test_nothing_is_suggested(hits: list[Passage], settings: GuardSettings) -> None:
    assert memory_suggestion(hits, settings) is None
