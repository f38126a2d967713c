"""Words that tell nothing about what is looked for: function words, question words, small talk.

Written folded, as `notes.words.folded` leaves them. Only for questions, never for notes: the lists
are safe rather than complete.
"""

import re
from collections.abc import Collection
from functools import cache

# Function words and question words, then what people say around a question.
_ENGLISH = """
a about after all also am an and any are as at be been before being but by can could d did do
does doing don during each ever few for from had has have having he her here hers him his how i
if in into is it its just ll m me more most my no nor not now of off on once only or other our
ours out over own re s same she should so some such t than that the their theirs them then there
these they this those through to too under until up us ve very was we were what when where which
while who whom whose why will with would you your yours anyone anything cannot cant couldnt
didnt doesnt dont gonna gotta hadnt hasnt havent hes hey hello hi howd hows id ill im isnt ive
kinda lets lot lots maybe might must myself ok okay please pls shall shes somebody someone
something somewhere sometime stuff thats theres theyre thing things thingy um uh wanna want
wanted wasnt werent whatever whatevers whats whatsit whens wheres whichever whos wont wouldnt
yeah yes youre guy guys dude actually again basically even really like still got get vs versus
"""
_GERMAN = """
aber alle allem allen aller alles als also am an ans auch auf aus bei beim bin bis bist da dabei
dafur damit dann das dass dein deine dem den denn der deren des dessen dich die dies diese
diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas
euch euer fur gab gibt habe haben habt hat hatte hatten hier ich ihm ihn ihnen ihr ihre ihrem
ihren ihrer im ins ist ja jede jedem jeden jeder jedes kann kannst kein keine keinem keinen
keiner konnen konnte machen mal man mehr mein meine meinem meinen meiner mich mir mit muss nach
nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie
sind so soll sollte sollten uber um und uns unser unsere vom von vor wann war waren warum weil
welche welchem welchen welcher welches wem wen wenn wer werden weshalb wessen wie wieder wieso
wieviel wird wir wo wofur woher wohin womit worden wurde wurden zu zum zur zwischen bitte
eigentlich halt irgendwas irgendwie irgendwo nochmal sag
"""
_FRENCH = """
ai as au aux avec avait avez avons c ce cela celle celui ces cet cette ceux chez comment d dans
de depuis des dont donc du elle elles en entre es est et etait etaient ete etes etre eu fait
faut il ils j je l la laquelle le lequel les lesquelles lesquels leur leurs lui m ma mais me
meme mes moi mon n ne ni nos notre nous on ont ou par pas pendant peut peux pour pourquoi qu
quand que quel quelle quelles quels qui quoi s sa sans se ses si soi son sont suis sur t ta te
tes toi ton tous tout toute toutes tu un une vos votre vous y combien plait quelque quelquechose
"""
_SPANISH = """
a al algo algun alguna algunas algunos ante aquel aquella asi aun cada como con cual cuales
cuando cuanta cuantas cuanto cuantos de del desde donde dos el ella ellas ellos en entre era
eran es esa esas ese eso esos esta estaba estan estas este esto estos estoy fue fueron ha habia
han hasta hay la las le les lo los mas me mi mis muy nada ni no nos nosotros o os otra otro para
pero por porque pues que quien quienes se sea segun ser si sido sin sobre son soy su sus tambien
te tengo tiene tienen todo todos tu tus un una unas uno unos usted y ya yo favor dime
"""
_ITALIAN = """
a agli ai al alla alle allo anche avere aveva c che chi ci cio col come con cosa cui da dagli
dai dal dalla dalle dallo degli dei del della delle dello di dove e ed era erano essere fa gia
gli ha hai hanno ho i il in io la le lei li lo loro lui ma mi mia mie miei mio ne negli nei nel
nella nelle nello noi non nostra nostro o per perche piu poi qual quale quali quando quanta
quante quanti quanto quella quelle quelli quello questa queste questi questo qui sara se sei
senza si sia siamo sono sta stata stato sua sue sugli sui sul sulla sulle suo suoi te ti tra tu
tua tuo tutti tutto un una uno vi voi
"""
_PORTUGUESE = """
a ao aos aquela aquele aquilo as ate com como da das de dela dele depois do dos e ela elas ele
eles em entre era eram essa esse esta estao estava este eu foi foram ha isso isto ja lhe mais
mas me mesmo meu meus minha minhas muito na nao nas nem no nos nossa nosso num numa o onde os ou
para pela pelas pelo pelos por porque qual quais quando quanta quantas quanto quantos que quem
se sem ser seu seus so sua suas tambem te tem tinha tu um uma umas voce
"""
_DUTCH = """
aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een
eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hoeveel hun iemand
iets ik in is ja je jij kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog
nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw van veel voor waar
waarom wanneer want was wat we welk welke werd wie wij wil worden wordt zal ze zelf zich zij
zijn zo zonder zou
"""
_TURKISH = """
acaba ama ancak bana bazi beni benim bir biri bu bunu bunun cok da daha de degil diye en gibi
hakkinda hangi hangisi hani hem hep her hic icin ile ise kac kadar ki kim kimdir kimin kime mi
mu nasil ne neden nedir neler nerede nereden nereye neyi nicin niye o olan olarak oldu oldugu
olduk olmak olup onu onun sana sen seni senin siz su sunu tarafindan ve veya ya yani yer zaman
"""
_RUSSIAN = """
а без бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его
ее ей если есть еще же за зачем здесь и из или им их к как какая какие каким каких какого какое
какой какой какую когда ко которая которого которое которой котором которую которые который
которых кто кого кому куда ли либо мне может мой моя мы на над надо наш не него нее нет ни них
но ну о об он она они оно от откуда очень по под после потому почему при про с сам свой своего
своей своих себя сколько со так также такой там те тем то тогда того тоже только том тот ту ты у
уже хотя чего чей чем чему что чтобы чье чья эта эти этим этих это этого этой этом этот эту я
"""
_ARABIC = """
اذا اكثر الا التي الذي الذين الى ام ان انا انت او اي اين ايها ايه بعد بعض به بها بين بينما تحت
تلك ثم حتي حتى حول حيث خلال ذلك سوف عبر على علي عليه عليها عن عند عندما غير فوق في فيه فيها قال
قبل قد كان كانت كل كما كم كيف لا لان لدى لدي لقد لكن لم لماذا لمن له لها ليس ما ماذا ماهو ماهي
متى متي مثل مع من منذ منه منها هذا هذه هل هم هما هنا هناك هو هي و وقد ولا وما وهو وهي يا يكون
"""
_HINDI = """
अपना अपनी अपने अब आप इन इस इसका इसकी इसके इसे उन उनका उनकी उनके उस उसका उसकी उसके उसे एक एवं ऐसे
और कब कर करता करते करना करने कहाँ कहां का कि कितना कितनी कितने किन किया किस किसका किसकी किसके
किसने किसी किसे की कुछ के को कोई कौन कौनसा कौनसी क्या क्यों गई गए गया जब जहाँ जहां जा जाता जाती
जाते जिन जिस जिसका जिसकी जिसके जो तक तथा तब तो था थी थीं थे द्वारा दिया ने नहीं पर फिर बहुत बारे
भी मुझे में मेरा मेरी मेरे मैं यदि यह यहाँ यहां या ये रहा रही रहे लिए ले वह वहाँ वहां वाला वाली
वाले वे सब सा साथ से हम हमारा हमारी हमारे ही हुआ हुई हुए है हैं हो होता होती होते होना कैसे कैसा
कैसी
"""
_KOREAN = """
무엇 무엇인가 누구 누가 언제 어디 어디서 왜 어떻게 얼마나 얼마 몇 어떤 어느
그 이 저 및 또는 있는 하는 한 것
"""
FILLER = frozenset(
    " ".join(
        (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _TURKISH, _RUSSIAN)
        + (_ARABIC, _HINDI, _KOREAN)
    ).split()
)
# What surrounds a question as a whole, though its words may tell something elsewhere.
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
# The same in scripts without spaces, as pieces of a sentence.
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
# Korean endings and particles, the longest first; they follow the word without a space.
KOREAN_ENDING = re.compile(
    "(?:에서는|에서의|으로는|으로의|이라는|입니까|습니까|입니다|습니다|에게서|에게|에서|으로|이라|까지|부터|처럼|보다|한테"
    "|께서|하고|이나|은|는|이|가|을|를|에|의|로|와|과|도|만|나)$"
)


@cache
def talk() -> re.Pattern[str]:
    """What surrounds a question as a whole; compiled when the first question comes."""
    return re.compile(_TALK, re.VERBOSE)


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """Those of English alone, and those of its Latin neighbours alone."""
    english = frozenset(_ENGLISH.split())
    others = frozenset(f"{_GERMAN} {_FRENCH} {_SPANISH} {_ITALIAN} {_PORTUGUESE} {_DUTCH}".split())
    return english - others, others - english


def is_english(words: Collection[str]) -> bool:
    """Whether the folded words of a question may be English: not if other languages' prevail."""
    english, others = _function_words()
    return sum(word in others for word in words) <= sum(word in english for word in words)
