"""The names of the months in the languages that dates are read in, without accents.

The names of one month are separated by `|`, the full one first.
"""

_ROWS = {
    "english": """
        january|jan february|feb march|mar april|apr may june|jun july|jul august|aug
        september|sept|sep october|oct november|nov december|dec
    """,
    "german": """
        januar|janner|jaenner|jan februar|feb marz|maerz|mrz april|apr mai juni|jun juli|jul
        august|aug september|sept|sep oktober|okt november|nov dezember|dez
    """,
    "french": """
        janvier|janv fevrier|fevr|fev mars avril|avr mai juin juillet|juil aout
        septembre|sept octobre|oct novembre|nov decembre|dec
    """,
    "spanish": """
        enero|ene febrero|feb marzo|mar abril|abr mayo|may junio|jun julio|jul agosto|ago
        septiembre|setiembre|sept|sep octubre|oct noviembre|nov diciembre|dic
    """,
}
MONTH_NAMES = {language: tuple(rows.split()) for language, rows in _ROWS.items()}
