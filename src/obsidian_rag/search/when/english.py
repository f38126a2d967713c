"""English."""

from obsidian_rag.notes import MONTH_NAMES
from obsidian_rag.search.when.language import Tables, language

ENGLISH = language(
    Tables(
        months=MONTH_NAMES["english"],
        weekdays=(
            "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
        ),
        seasons=("spring|springs", "summer|summers", "autumn|autumns|fall|falls", "winter|winters"),
        units=(
            "day|days", "week|weeks", "weekend|weekends", "month|months", "quarter|quarters",
            "year|years",
        ),
        numbers={
            1: "one|a|an", 2: "two|couple of|a couple of", 3: "three|few|a few", 4: "four",
            5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven",
            12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen",
            17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty",
        },
        ordinals=("first", "second", "third", "fourth"),
        feasts=(
            "christmas|xmas", "christmas eve|xmas eve",
            "new year|new years|new year s day|new years day",
            "new year s eve|new years eve|new year eve", "easter", "halloween", "thanksgiving",
        ),
        days_back={
            2: "day before yesterday|the day before yesterday", 1: "yesterday|last night",
            0: "today|tonight|this morning|this afternoon|this evening", -1: "tomorrow",
            -2: "day after tomorrow|the day after tomorrow",
        },
        which_before={1: "last|past|previous", 0: "this|current", -1: "next"},
        which_after={2: "before last"},
        which_beside={},
        parts=(
            "early|beginning of|start of|early in", "mid|middle of",
            "late|end of|late in|the end of",
        ),
        half="half",
        letters={"quarter": "q", "half": "h"},
        words={
            "a": "ago|back",
            "i": "in|during|throughout|within|for",
            "j": "on",
            "O": "over",
            "f": "of|in the|s",
            "t": "the",
            "r": "since|ever since|starting in",
            "<": "before|prior to",
            ">": "after",
            "e": "until|till|up to",
            "B": "between",
            "F": "from",
            "&": "and",
            "T": "to|until|till|through|thru",
            "K": "calendar week|cw",
            "x": "the last march|march madness",
        },
        common=(
            "the a an and or of to in on for is are was were do did does have has had i my me we "
            "our you it this that what which who when where why how with about from there not"
        ),
        verbs="may|march",
    )
)  # fmt: skip
