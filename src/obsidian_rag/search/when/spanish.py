"""Spanish."""

from obsidian_rag.notes import MONTH_NAMES
from obsidian_rag.search.when.language import Tables, language

SPANISH = language(
    Tables(
        months=MONTH_NAMES["spanish"],
        weekdays=("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
        seasons=(
            "primavera|primaveras", "verano|veranos", "otono|otonos", "invierno|inviernos",
        ),
        units=(
            "dia|dias", "semana|semanas", "fin de semana|fines de semana", "mes|meses",
            "trimestre|trimestres", "ano|anos",
        ),
        numbers={
            1: "un|una|uno", 2: "dos|un par de", 3: "tres|unos pocos|unas pocas|unos|unas",
            4: "cuatro", 5: "cinco", 6: "seis", 7: "siete", 8: "ocho", 9: "nueve", 10: "diez",
            11: "once", 12: "doce", 13: "trece", 14: "catorce", 15: "quince", 16: "dieciseis",
            17: "diecisiete", 18: "dieciocho", 19: "diecinueve", 20: "veinte", 30: "treinta",
        },
        ordinals=("primer|primera|primero", "segundo|segunda", "tercer|tercera|tercero",
                  "cuarto|cuarta"),
        feasts=(
            "navidad|navidades", "nochebuena", "ano nuevo", "nochevieja|noche vieja|fin de ano",
            "pascua|semana santa", "halloween", "",
        ),
        days_back={
            2: "anteayer|antes de ayer|antier|antes ayer", 1: "ayer|anoche",
            0: "hoy|esta manana|esta tarde|esta noche", -1: "", -2: "pasado manana",
        },
        which_before={0: "este|esta|estos|estas"},
        which_after={2: "antepasado|antepasada"},
        which_beside={
            2: "penultimo|penultima",
            1: "pasado|pasada|pasados|pasadas|ultimo|ultima|ultimos|ultimas|anterior",
            -1: "proximo|proxima|proximos|proximas|que viene",
        },
        parts=(
            "principios de|a principios de|inicios de|a inicios de|comienzos de|a comienzos de",
            "mediados de|a mediados de",
            "finales de|a finales de|fines de|a fines de|fin de|final de",
        ),
        half="medio|mitad|semestre",
        letters={"quarter": "q|t"},
        words={
            "g": "hace",
            "i": "en|durante|para",
            "j": "el|al",
            "f": "de|del|de el",
            "t": "la|los|las",
            "r": "desde|a partir de",
            "<": "antes de|antes del",
            ">": "despues de|despues del|tras",
            "e": "hasta",
            "B": "entre",
            "&": "y|e",
            "T": "a|al|hasta",
        },
        common=(
            "el la los las un una de del y o es son era fue he ha mi mis yo tu su que quien cual "
            "cuales cuando como donde por para con en no se lo le hice hay"
        ),
    )
)  # fmt: skip
