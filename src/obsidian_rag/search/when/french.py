"""French."""

from obsidian_rag.notes import MONTH_NAMES
from obsidian_rag.search.when.language import Tables, language

FRENCH = language(
    Tables(
        months=MONTH_NAMES["french"],
        weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        seasons=("printemps", "ete|etes", "automne|automnes", "hiver|hivers"),
        units=(
            "jour|jours", "semaine|semaines", "week end|weekend|week ends|weekends|fin de semaine",
            "mois", "trimestre|trimestres", "an|ans|annee|annees",
        ),
        numbers={
            1: "un|une", 2: "deux", 3: "trois|quelques", 4: "quatre", 5: "cinq", 6: "six",
            7: "sept", 8: "huit", 9: "neuf", 10: "dix", 11: "onze", 12: "douze", 13: "treize",
            14: "quatorze", 15: "quinze", 16: "seize", 17: "dix sept", 18: "dix huit",
            19: "dix neuf", 20: "vingt", 30: "trente",
        },
        ordinals=(
            "premier|premiere", "deuxieme|second|seconde", "troisieme", "quatrieme",
        ),
        feasts=(
            "noel", "veille de noel|reveillon de noel", "nouvel an|jour de l an",
            "saint sylvestre|reveillon du nouvel an", "paques", "halloween", "",
        ),
        days_back={
            2: "avant hier", 1: "hier|hier soir|la nuit derniere",
            0: "aujourd hui|ce matin|ce soir", -1: "demain", -2: "apres demain",
        },
        which_before={0: "ce|cet|cette|ces"},
        which_after={},
        which_beside={
            2: "avant dernier|avant derniere|avant derniers|avant dernieres",
            1: "dernier|derniere|derniers|dernieres|passe|passee|passes|passees|precedent|"
            "precedente",
            -1: "prochain|prochaine|prochains|prochaines",
        },
        parts=(
            "debut|debut de|au debut de|au debut du", "mi|milieu de|milieu du|au milieu de",
            "fin|fin de|a la fin de|a la fin du|la fin du",
        ),
        half="moitie|semestre",
        letters={"quarter": "q|t"},
        words={
            "g": "il y a",
            "i": "en|pendant|durant|dans|pour|au|lors de",
            "f": "de|du|d|des|au cours de",
            "t": "le|la|l|les",
            "r": "depuis|a partir de",
            "<": "avant",
            ">": "apres",
            "e": "jusqu en|jusqu a|jusqu au",
            "B": "entre",
            "&": "et",
            "T": "a|au|jusqu a|jusqu en|jusqu au",
        },
        common=(
            "le la les l un une des du de et ou est sont etait j ai je tu il elle nous vous ils "
            "mon ma mes ce cette que qu qui quoi quel quelle quels quelles quand comment pourquoi "
            "avec dans sur pour pas c s a en fait mi fin debut depuis"
        ),
        shared="hier|mars|demain",
    )
)  # fmt: skip
