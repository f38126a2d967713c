"""German."""

from obsidian_rag.notes import MONTH_NAMES
from obsidian_rag.search.when.language import Tables, language

GERMAN = language(
    Tables(
        months=MONTH_NAMES["german"],
        weekdays=(
            "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend",
            "sonntag",
        ),
        seasons=(
            "fruhling|fruehling|fruhjahr|fruehjahr|fruhlings|fruhjahrs|fruhlingen|fruhjahren",
            "sommer|sommers|sommern", "herbst|herbstes|herbsts|herbsten",
            "winter|winters|wintern",
        ),
        units=(
            "tag|tage|tagen|tages", "woche|wochen", "wochenende|wochenenden|wochenendes",
            "monat|monate|monaten|monats", "quartal|quartale|quartalen|quartals",
            "jahr|jahre|jahren|jahres|jahrs",
        ),
        numbers={
            1: "ein|eine|einem|einer|einen|eines", 2: "zwei", 3: "drei|ein paar|einigen|einige",
            4: "vier", 5: "funf|fuenf", 6: "sechs", 7: "sieben", 8: "acht", 9: "neun", 10: "zehn",
            11: "elf", 12: "zwolf|zwoelf", 13: "dreizehn", 14: "vierzehn", 15: "funfzehn",
            16: "sechzehn", 17: "siebzehn", 18: "achtzehn", 19: "neunzehn", 20: "zwanzig",
            30: "dreissig",
        },
        ordinals=(
            "erste|ersten|erstes|erster", "zweite|zweiten|zweites|zweiter",
            "dritte|dritten|drittes|dritter", "vierte|vierten|viertes|vierter",
        ),
        feasts=(
            "weihnachten|weihnacht", "heiligabend|heilig abend", "neujahr", "silvester|sylvester",
            "ostern", "halloween", "",
        ),
        days_back={
            2: "vorgestern", 1: "gestern|gestern abend|letzte nacht",
            0: "heute|heute abend|heute morgen|heute fruh", -1: "", -2: "ubermorgen|uebermorgen",
        },
        which_before={
            2: "vorletzte|vorletzten|vorletztes|vorletzter|vorletztem",
            1: "letzte|letzten|letztes|letzter|letztem|vergangene|vergangenen|vergangenes|"
            "vergangener|vergangenem|vorige|vorigen|voriges|voriger|vorigem",
            0: "diese|diesen|dieses|dieser|diesem",
            -1: "nachste|nachsten|nachstes|nachster|nachstem|naechste|naechsten|naechstes|"
            "naechster|naechstem|kommende|kommenden|kommendes",
        },
        which_after={},
        which_beside={},
        parts=("anfang|beginn|zu beginn", "mitte", "ende"),
        half="halben|halbes|halfte|haelfte|halbjahr|halbjahres|halbjahrs",
        letters={"quarter": "q", "half": "h"},
        words={
            "v": "vor",
            "i": "im|in|wahrend|waehrend|fur|fuer",
            "j": "am|an",
            "O": "uber|ueber",
            "f": "von|vom|des|in den|in der",
            "t": "der|die|das|den|dem",
            "r": "seit|ab",
            "<": "",
            ">": "nach",
            "e": "bis|bis zum",
            "B": "zwischen",
            "F": "von|vom",
            "&": "und",
            "T": "bis|bis zum|bis ende",
            "K": "kw|kalenderwoche|kalenderwochen",
        },
        common=(
            "der die das den dem des ein eine und oder ist sind war waren hat habe haben ich du er "
            "sie es wir ihr mein meine was wer wie wo wann warum welche welcher welches mit von zu "
            "im am auf fur nicht gibt kann man jemand"
        ),
    )
)  # fmt: skip
