"""How good the answers are: every set, category and ranking, at both speeds, signal by signal.

Sets: the golden questions over the digital garden and the sample vault, and the collections of the
shared evaluation data with each document as a note. The even half of a golden set may be looked at;
the odd half is what is reported. Data comes from OBSIDIAN_RAG_DATA or ../shared/data; what is not
there is said and skipped. Indexes are kept in .cache/quality and brought up to date. Run by
`make bench NAME=quality`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.index import ROOT, put_between
from benchmarks.search import collection, indexed, say

from obsidian_rag.engine import Engine
from obsidian_rag.search import (
    PARTS,
    EvalOptions,
    Evaluated,
    Half,
    Question,
    Report,
    Signals,
    half_of,
)
from obsidian_rag.search.evaluation import report_of
from obsidian_rag.tools.evaluation import evaluate, load_golden

MARKS = ("<!-- quality benchmark -->", "<!-- end of quality benchmark -->")
MODEL = "minilm"
# Golden files, and the vault that each is about: an archive, or a folder of this repository.
GOLDEN = {"blue-book": "lyz-code__blue-book.tar.gz", "sample": "samples/vault"}
STATIC, MEANING = "static only", f"with {MODEL}"
# An ablation asks everything once for each signal: of larger sets, a sample says enough.
MOST_ABLATED = 100
CATEGORY, MOST_LOST, ROUNDING = 12, 0.03, 0.0005
NOTHING = frozenset[str]()


@dataclass(frozen=True)
class Place:
    """Where data comes from and where indexes are kept."""

    data: Path
    cache: Path
    fresh: bool
    limit: int | None
    has_ablation: bool = True
    static_sets: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Part:
    """A set, or half of a golden one, with a report for each speed."""

    name: str
    half: str
    is_golden: bool
    reports: Mapping[str, Report]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.half}" if self.half else self.name


@dataclass(frozen=True)
class Measured:
    """All that one set gave; `ablated` is the nDCG@5 by part and by the signal left out."""

    whole: Part
    parts: tuple[Part, ...]
    ablated: Mapping[str, Mapping[str, float]]
    remarks: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", help="only these, with commas between: blue-book,scifact")
    parser.add_argument("--fresh", action="store_true", help="build every index anew")
    parser.add_argument("--limit", type=int, help="ask only so many questions of each set")
    parser.add_argument("--static-only", action="store_true", help="leave out meaning vectors")
    parser.add_argument(
        "--static-sets", default="", help="these without meaning vectors, which take long to make"
    )
    parser.add_argument("--no-ablation", action="store_true", help="leave out that table")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "quality")
    parser.add_argument("--write", type=Path, help="put the tables into this file")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("LANCEDB_LOG", "error")
    data = Path(os.environ.get("OBSIDIAN_RAG_DATA") or ROOT.parent / "shared" / "data")
    static_sets = frozenset(chosen.static_sets.split(","))
    ablates = not chosen.no_ablation
    place = Place(data, chosen.cache, chosen.fresh, chosen.limit, ablates, static_sets)
    names = chosen.sets.split(",") if chosen.sets else None
    model = None if chosen.static_only else fetched_model(place.cache / "model")
    text = tables(measure_all(place, names, model))
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def measure_all(place: Place, names: Sequence[str] | None, model: Path | None) -> list[Measured]:
    """Every set that is there and wanted."""
    known = [*GOLDEN, *known_collections(place.data)]
    for name in names or ():
        if name not in known:
            say(f"{name}: no such set; there are {', '.join(known)}")
    found = []
    for name in known:
        if names is None or name in names:
            try:
                found.append(measured(name, place, model))
            except FileNotFoundError as error:
                say(f"{name}: left out, {error.filename} is not there")
    return found


def known_collections(data: Path) -> list[str]:
    folder = data / "eval"
    if not folder.is_dir():
        say(f"no collections: {folder} is not there")
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


# Vaults, questions and vectors ----------------------------------------------------------------


def measured(name: str, place: Place, model: Path | None) -> Measured:
    say(f"{name} …")
    folder = place.cache / name
    root, questions = vault_and_questions(name, place, folder)
    home = folder / "home"
    indexed(root, home, place.fresh).close()
    if name in place.static_sets:
        remark: str | None = "--static-sets"
    else:
        remark = add_meaning(home, model) if model is not None else f"{MODEL} is not there"
    with closing(indexed(root, home, fresh=False)) as engine:
        if questions is None:
            loaded = load_golden(engine, place.data / "golden" / f"{name}.json")
            questions = list(loaded.questions)
        questions = spread(half_of(questions, Half.ALL), place.limit)
        reports = reports_of(engine, questions, with_meaning=remark is None)
        parts = tuple(parts_of(name, reports))
        ablated = ablation(engine, questions, parts) if place.has_ablation else {}
    remarks = tuple(f"{name}: {text}" for text in remarks_on(reports, remark))
    whole = Part(name, "both halves" if name in GOLDEN else "", name in GOLDEN, reports)
    return Measured(whole, parts, ablated, remarks)


def vault_and_questions(
    name: str, place: Place, folder: Path
) -> tuple[Path, list[Question] | None]:
    """The vault of a set; its questions too, unless they are in a golden file."""
    if name not in GOLDEN:
        return folder / "vault", collection(place.data / "eval" / name, folder / "vault")
    (place.data / "golden" / f"{name}.json").stat()
    if not GOLDEN[name].endswith(".tar.gz"):
        return ROOT / GOLDEN[name], None
    archive = place.data / "vaults" / GOLDEN[name]
    root = folder / archive.name.removesuffix(".tar.gz")
    if not root.is_dir():
        with tarfile.open(archive) as stream:
            stream.extractall(folder, filter="data")
    return root, None


def fetched_model(home: Path) -> Path | None:
    """The folder of the transformer, fetched once; None if it cannot be had."""
    folder = home / "models" / MODEL
    if not folder.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        problem = ran(home, "model", "get", MODEL)
        if problem is not None or not folder.is_dir():
            say(f"no meaning vectors: `model get {MODEL}` failed: {problem or 'no such folder'}")
            return None
    return folder


def add_meaning(home: Path, model: Path) -> str | None:
    """Add what is missing of the meaning vectors; what went wrong, if something did."""
    own = home / "models" / MODEL
    if not own.is_dir():
        own.parent.mkdir(exist_ok=True)
        shutil.copytree(model, own, copy_function=os.link)
    return ran(home, "sync", "--deep-vectors")


def ran(home: Path, *arguments: str) -> str | None:
    """Run a command on a data folder; the last line that it said if it failed."""
    done = subprocess.run(
        [sys.executable, "-m", "obsidian_rag", *arguments],
        env={**os.environ, "OBSIDIAN_RAG_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.returncode:
        return None
    lines = [line.strip(" │╰╯─╭╮") for line in done.stderr.splitlines()]
    said = [line for line in lines if line]
    errors = [line for line in said if line.startswith("error")]
    return next(iter(errors or said[-1:]), f"exit code {done.returncode}")


def reports_of(
    engine: Engine, questions: Sequence[Question], *, with_meaning: bool
) -> dict[str, Report]:
    """All rankings without meaning vectors; those that use vectors with them as well."""
    static = evaluate(engine, questions, EvalOptions(leave_out=frozenset({"meaning"})))
    reports = {STATIC: static}
    if with_meaning:
        ways = (Signals.VECTORS, Signals.HYBRID)
        reports[MEANING] = evaluate(engine, questions, EvalOptions(ways=ways))
    for report in reports.values():
        if report.trouble is not None:
            raise report.trouble
    return reports


def remarks_on(reports: Mapping[str, Report], remark: str | None) -> Iterator[str]:
    if remark is not None:
        yield f"no meaning vectors ({remark})."
        return
    report = reports[MEANING]
    if (report.meaning_vectors or 0) < report.chunks:
        yield f"meaning vectors of {report.meaning_vectors or 0:,} of {report.chunks:,} passages."
    if not report.with_meaning:
        yield "meaning vectors took part in no answer."


def spread(questions: Sequence[Question], most: int | None) -> list[Question]:
    """At most so many questions from everywhere in a set, as many of each half."""
    if most is None or len(questions) <= most:
        return list(questions)
    step = -(-len(questions) // most)
    return list(questions[:: step + (step % 2 == 0)])  # an even step would leave out a half


def parts_of(name: str, reports: Mapping[str, Report]) -> Iterator[Part]:
    """A golden set in its two halves, the reported one first; another set as it is."""
    if name not in GOLDEN:
        yield Part(name, "", False, reports)
        return
    for half, parity in (("odd half (reported)", 1), ("even half", 0)):
        yield Part(
            name, half, True, {speed: every_second(one, parity) for speed, one in reports.items()}
        )


def every_second(report: Report, parity: int) -> Report:
    chosen = {
        way: tuple(one for one in some if one.question.position % 2 == parity)
        for way, some in report.outcomes.items()
    }
    return report_of(chosen, report.trouble)


def ablation(
    engine: Engine, questions: Sequence[Question], parts: Sequence[Part]
) -> dict[str, dict[str, float]]:
    """nDCG@5 of hybrid by part and by the signal left out; "" is with all of them."""
    sample = spread(questions, MOST_ABLATED)
    found: dict[str, dict[str, float]] = {part.label: {} for part in parts}
    for signal in ("", *PARTS):
        options = EvalOptions(
            ways=(Signals.HYBRID,), leave_out=frozenset({signal}) if signal else NOTHING
        )
        reports = {"": evaluate(engine, sample, options)}
        for part in parts_of(parts[0].name, reports):
            overall = part.reports[""].overall
            found[part.label][signal] = overall.by_signals[Signals.HYBRID].ndcg_at_5
    return found


# Tables ---------------------------------------------------------------------------------------


def tables(found: Sequence[Measured]) -> str:
    parts = [part for one in found for part in one.parts]
    if not parts:
        return "Nothing was measured: no data.\n"
    sections = [overview(parts), weak_flags(parts)]
    golden = [part for part in parts if part.is_golden]
    if golden:
        sections.insert(1, categories(golden))
    ablated = {label: row for one in found for label, row in one.ablated.items()}
    if ablated:
        sections.append(ablation_table(ablated))
    sections.append("".join(f"- {line}\n" for line in verdict(found)))
    return "\n".join(sections)


def overview(parts: Sequence[Part]) -> str:
    rows = []
    for part in parts:
        overall = part.reports[STATIC].overall
        label = f"{part.label}: {overall.questions:,} questions"
        for name, one, way in rankings(part):
            m, seen = one.by_signals[way], one.answers[way]
            answers = (seen.answer_at_1, seen.answer_at_3) if seen.questions else (None, None)
            numbers = (m.ndcg_at_5, m.ndcg_at_10, m.mrr, m.hit_at_1, m.hit_at_3, m.hit_at_5)
            rows.append([label, name, *map(number, (*numbers, *answers))])
            label = ""
    heads = ["nDCG@5", "nDCG@10", "MRR", "Hit@1", "Hit@3", "Hit@5", "answer@1", "answer@3"]
    return table(["set", "ranked by", *heads], rows)


def rankings(part: Part) -> Iterator[tuple[str, Evaluated, Signals]]:
    """Each ranking of a part by its name: words once, the others at each speed."""
    for speed, report in part.reports.items():
        for way in report.overall.by_signals:
            name = "words" if way is Signals.WORDS else f"{way.value}, {speed}"
            bold = "**" if way is Signals.HYBRID else ""
            yield f"{bold}{name}{bold}", report.overall, way


def categories(parts: Sequence[Part]) -> str:
    """nDCG@5 of every ranking, and how often hybrid has a right note first or among five."""
    speeds = [speed for speed in (STATIC, MEANING) if any(speed in one.reports for one in parts)]
    rows = []
    for part in parts:
        label = part.label
        for one in part.reports[STATIC].categories:
            row = [label, f"{one.category} ({one.questions})", cell(one, Signals.WORDS)]
            for speed in speeds:
                at_speed = category_of(part.reports.get(speed), one.category)
                row.append(cell(at_speed, Signals.VECTORS))
                for name in ("ndcg_at_5", "hit_at_1", "hit_at_5"):
                    row.append(cell(at_speed, Signals.HYBRID, name))
            rows.append(row)
            label = ""
    heads = [
        f"{what}, {speed}"
        for speed in speeds
        for what in ("vectors", "**hybrid**", "its Hit@1", "its Hit@5")
    ]
    return table(["golden set", "category (nDCG@5)", "words", *heads], rows)


def category_of(report: Report | None, name: str) -> Evaluated | None:
    """The numbers of one category, or of all questions."""
    if report is None:
        return None
    found = (one for one in (report.overall, *report.categories) if one.category == name)
    return next(found, None)


def cell(one: Evaluated | None, way: Signals, name: str = "ndcg_at_5") -> str:
    measures = one and one.by_signals.get(way)
    return number(asdict(measures)[name] if measures else None)


def weak_flags(parts: Sequence[Part]) -> str:
    rows = []
    for part in parts:
        for speed, report in part.reports.items():
            weak = report.weakness
            rows.append(
                [
                    part.label,
                    speed,
                    share(weak.unanswerable_weak, weak.unanswerable),
                    share(weak.answerable_weak, weak.answerable),
                    f"{weak.threshold:.3f}",
                    f"{weak.would_be_caught:.0%}" if weak.unanswerable else "–",
                ]
            )
    heads = ["unanswerable called weak", "answerable called weak"]
    best = ["confidence that flags ≤ 5 % of the answerable here", "and would catch"]
    return table(["set", "speed", *heads, *best], rows)


def ablation_table(ablated: Mapping[str, Mapping[str, float]]) -> str:
    rows = [["all signals", *(number(row[""]) for row in ablated.values())]]
    rows += [
        [f"without {signal}", *(f"{row[signal] - row['']:+.3f}" for row in ablated.values())]
        for signal in PARTS
    ]
    return table(["hybrid nDCG@5", *ablated], rows)


def verdict(found: Sequence[Measured]) -> list[str]:
    """Where hybrid is behind one of its own parts, and what could not be measured."""
    said = [
        f"{one.whole.label}, {evaluated.category}, {speed}: hybrid is {loss:.3f} behind {better}"
        " (nDCG@5)."
        for one in found
        for speed, report in one.whole.reports.items()
        for evaluated in (report.overall, *report.categories)
        for loss, better in [behind(one.whole, evaluated)]
        if loss > (ROUNDING if evaluated is report.overall else MOST_LOST)
        and (evaluated is report.overall or evaluated.questions >= CATEGORY)
    ]
    if not said:
        said.append(
            "Hybrid is behind the better of words and vectors on no set, and in no category of"
            f" {CATEGORY} questions or more by more than {MOST_LOST} (nDCG@5)."
        )
    return [*said, *(remark for one in found for remark in one.remarks)]


def behind(whole: Part, one: Evaluated) -> tuple[float, str]:
    """How far hybrid is behind the better of words and vectors, and which that is."""
    static = category_of(whole.reports[STATIC], one.category)
    measures = {
        "vectors": one.by_signals.get(Signals.VECTORS),
        "words": static.by_signals.get(Signals.WORDS) if static else None,
    }
    scores = {name: m.ndcg_at_5 for name, m in measures.items() if m is not None}
    better = max(scores, key=lambda name: scores[name])
    return scores[better] - one.by_signals[Signals.HYBRID].ndcg_at_5, better


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def share(some: int, whole: int) -> str:
    return f"{some} of {whole} = {some / whole:.0%}" if whole else "–"


if __name__ == "__main__":
    main()
