"""Stop words of questions: function words, question words, small talk.

They are written folded, as by `notes.words.folded`. Used for questions only, never for notes. The
lists are safe rather than complete.
"""

import re
import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path

# Function words and question words, then what people say around a question.
_WORDS: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("filler.toml").read_text(encoding="utf-8")
)
_LATIN_NEIGHBOURS = ("german", "french", "spanish", "italian", "portuguese", "dutch")
FILLER = frozenset(" ".join(_WORDS.values()).split())
# Phrases around a question, made of words that may be keywords elsewhere.
_TALK = r"""\b(?:
      (?:can|could|would|will)\ (?:you|u)(?:\ please)?\ (?:tell|show|give|find|remind|get|look\ up)
        (?:\ me|\ us)?(?:\ again)?
    | (?:please\ )?(?:tell|show|give|remind|find)\ (?:me|us)(?:\ again)?(?:\ (?:of|about))?
    | (?:do|did)\ (?:you|i|we)\ (?:know|remember|recall|think|say|write|note|mention|have)
        (?:\ down)?
    | (?:i|we)\ (?:think|guess|believe|suppose|know|remember|recall|forgot|need\ to\ know)
    | (?:i|we)(?:\ m|m|\ am|\ are)?\ (?:looking|searching|trying\ to\ (?:find|remember)|wondering)
        (?:\ for)?
    | (?:i|we)(?:\ d|d|\ would)?\ (?:want|like|love|need)\ to\ (?:know|find|see|remember)
    | where(?:\ did|\ do|\ have|\ ve)?\ (?:i|we)\ (?:write|wrote|written|note|noted|put|keep|save)
        (?:\ down)?
    | what(?:\ did|\ do|\ have|\ ve)?\ (?:i|we)\ (?:write|wrote|written|note|noted|say|said)
        (?:\ down)?
    | (?:(?:my|the|a|some|any|which|that|those|all)\ )?notes?\ (?:about|on|of|where|with|that|from)
    | what\ (?:is|was|are|were)\ the\ (?:name|word)\ (?:of|for)
    | (?:the\ )?(?:one|person|man|woman|people|place)\ (?:who|that|which|where)
    | how\ (?:many|much|often|long|far|old|big)
    | (?:kannst|konntest)\ du(?:\ mir)?(?:\ bitte)?(?:\ (?:sagen|zeigen|suchen|finden))?
    | (?:sag|zeig|such|finde?)\ mir
    | wo\ (?:habe|hab)\ ich(?:\ (?:aufgeschrieben|geschrieben|notiert))?
    | (?:notiz(?:en)?)\ (?:uber|zu|zum|zur|von)
    | (?:peux|pourrais)\ tu(?:\ me)?(?:\ (?:dire|montrer|rappeler|trouver))?
    | s\ il\ (?:te|vous)\ plait | est\ ce\ qu[e]?
    | (?:puedes|podrias)(?:\ (?:decirme|mostrarme|recordarme|buscar))?
    | (?:puoi|potresti)(?:\ (?:dirmi|mostrarmi|ricordarmi|trovare))?
    | (?:voce\ )?(?:pode|podes)\ me(?:\ (?:dizer|mostrar|lembrar))?
    | kun\ je(?:\ me)?(?:\ (?:vertellen|laten\ zien|zeggen))?
    )\b"""
# The same for scripts without spaces, as parts of a sentence.
UNSPACED_TALK = re.compile(
    "什么时候|为什么|怎么样|什麼時候|為什麼|什么|什麼|怎么|怎麼|怎样|多少|几个|哪里|哪裡|哪个|哪個|哪些|哪一|哪"
    "|谁的|谁|誰|何时|如何|是否|请问|告诉我|我的笔记|关于|吗|嗎|呢|的"
    "|ですか|でしたか|ますか|ましたか|について|どこ|だれ|いつ|なに|なぜ|どうして|どの|どれ|いくら|いくつ"
    "|何時|何人|何年|教えて|ください|です|ます|でした|ました"
    "|เมื่อไหร่|เมื่อไร|เมื่อใด|อย่างไร|ยังไง|เท่าไหร่|เท่าไร|เท่าใด|ที่ไหน|ที่ใด|ทำไม|เพราะอะไร|อะไร|คืออะไร"
    "|ใครคือ|ใคร|กี่|ไหม|หรือไม่|ไหน|ช่วยบอก|บอกฉัน|เกี่ยวกับ"
    "|ຫຍັງ|ໃຜ|ຢູ່ໃສ|ເມື່ອໃດ|ເທົ່າໃດ|ແນວໃດ|ເປັນຫຍັງ"
    "|អ្វី|អ្នកណា|នៅឯណា|ឯណា|ពេលណា|ប៉ុន្មាន|ហេតុអ្វី|យ៉ាងម៉េច|តើ"
    "|ဘာလဲ|ဘယ်သူ|ဘယ်မှာ|ဘယ်တော့|ဘယ်လောက်|ဘာကြောင့်|ဘယ်လို"
)
# Korean endings and particles, longest first; they are attached to the word.
KOREAN_ENDING = re.compile(
    "(?:에서는|에서의|으로는|으로의|이라는|입니까|습니까|입니다|습니다|에게서|에게|에서|으로|이라|까지|부터|처럼|보다|한테"
    "|께서|하고|이나|은|는|이|가|을|를|에|의|로|와|과|도|만|나)$"
)


@cache
def talk() -> re.Pattern[str]:
    """Matches phrases around a question; compiled on first use."""
    return re.compile(_TALK, re.VERBOSE)


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """Words that only English has, and words that only its Latin neighbours have."""
    english = frozenset(_WORDS["english"].split())
    others = frozenset(word for name in _LATIN_NEIGHBOURS for word in _WORDS[name].split())
    return english - others, others - english


def is_english(words: Collection[str]) -> bool:
    """Whether a question may be English: not if it has more function words of other languages."""
    english, others = _function_words()
    return sum(word in others for word in words) <= sum(word in english for word in words)
