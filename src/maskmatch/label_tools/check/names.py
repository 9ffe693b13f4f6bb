"""Checks of a name by its words alone: generic, abbreviated, in another language, written like a chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _words(
    "a all also am an and any are as at be been but by can could did do does for from had has have how i if in into "
    "is it its just me my not of on or our so some than that the their them then there these they this to too us "
    "was we were what when where which who why will with would you your"
)
"""Words that do not tell two names apart."""

GENERIC = _words(
    "a all and another any anything assorted b basic c categories category class classes content custom d data "
    "default detail details different diverse e element else entry etc everything example extra f field further g "
    "general generic group h info information issue issues item items j k kind l label labels m main matter misc "
    "miscellaneous mixed more n na name new no none normal not number o object of oddments of option or other "
    "others p part q r random regular remaining rest s same sample section set several some something sort standard "
    "stuff t tbd temp test text thing things to todo topic topics type types u undefined uncategorised "
    "uncategorized unclassified unknown unspecified unsorted v value variable various w whatever x y z"
)
"""Words that name no content. A name of nothing but these is generic."""

ABBREVIATIONS = _words(
    "acc acct addl adj admin amt anon appt approx apr assoc asst attn auth avail avg bal bldg chg cncl cntr comm "
    "conf config corp cust ctrl dept desc dest diff dir disc dist div dlv dlvry doc docs dob eng equip est exec exp "
    "ext fwd gov govt grp hosp hq hrs ins intl inv inst lang lic ltd maint max med mfg mgmt mgr min mkt mktg mo msg "
    "mtg mvmt nat nbr ops ord org orig pax pkg plc pmt pmts pos pref prev proc prod prof prog pwd pymt qty recv ref "
    "rel req reqs resp ret rev rfnd sched sec sep serv sess sig spec srv stmt subj svc svcs sys tech tel temp tix "
    "trans transf trns trx txn txns univ upd usr util veh vol whse wk wrhs xfer yr yrs"
)
"""Abbreviations that encoders seldom know in this sense."""

FOREIGN = _words(
    "aber alle auf aus bei beim das dem den der des die ein eine einer eines fuer für im ist kein keine mit nach "
    "nicht oder über und vom von vor wegen zum zur au aux avec ce cette dans de du elle en est et la le les leur ma "
    "mes mon ne nous ou par pas pour que qui sa sans ses son sur une vos votre al con del el ella ellos es esta "
    "este la las lo los mi mis muy no para pero por porque que se sin sobre su sus una uno y da do dos não o os um "
    "uma com e della dei di gli il lei lui nel nella non per una het een van voor niet"
) - _words("no de per e o do en la son es es me a se on ma pas el van is die dos")
"""Frequent function words of other languages that are no English words."""

FOREIGN_ENDINGS = (
    *("ung", "ungen", "keit", "heit", "schaft", "bestellung", "ción", "ciones", "sión", "miento", "dad", "ção", "ções"),
    *("aggio", "zione", "zioni", "eur", "euse", "tés", "ité", "ieren"),
)
FOREIGN_EXCEPTIONS = _words(
    "young lung sung hung rung stung swung strung flung clung wrung unsung dung grandeur entrepreneur connoisseur "
    "amateur chauffeur saboteur granddad dad"
)

CASUAL = _words(
    "ain't bro buck bucks cuz dude dunno freakin fucked gimme gonna gotta guys hella idk kinda lemme lol nope omg "
    "outta pissed pls plz shit sucks super thingy thx u ur wanna whatevs wtf yall yeah yep yikes yo"
)
"""Words of chats."""

IRREGULAR = {
    "children": "child",
    "people": "person",
    "men": "man",
    "women": "woman",
    "feet": "foot",
    "mice": "mouse",
}

VOWELS = set("aeiouyäöüáéíóúàèìòùâêîôûøåæœ")


MEANINGFUL = _words("no not without to from in into on out off before after against with")
"""Stop words that make two names differ: a negation, a direction."""

NAME_WORD = re.compile(r"\d+|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


def content_words(name: str) -> list[str]:
    """The words and numbers of a name that are no stop words; all words if there are no others.

    >>> content_words("What is the fee for card 2?"), content_words("not spam")
    (['fee', 'card', '2'], ['not', 'spam'])
    """
    words = [word.casefold() for word in NAME_WORD.findall(name)]
    return [word for word in words if word not in STOP_WORDS or word in MEANINGFUL] or words


def stem(word: str) -> str:
    """A word without its ending of plural or tense, roughly.

    >>> [stem(word) for word in ("refunds", "cities", "booking", "boxes", "class", "delayed")]
    ['refund', 'city', 'book', 'box', 'class', 'delay']
    """
    word = IRREGULAR.get(word, word)
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("uses", "us")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + instead
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            short = word[: -len(ending)]
            return short[:-1] if short[-1] == short[-2] and short[-1] not in "sl" else short.removesuffix("e")
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


def stems(name: str) -> frozenset[str]:
    """The stems of the content words of a name."""
    return frozenset(stem(word) for word in content_words(name))


def is_generic(name: str) -> bool:
    """Whether a name has nothing but words that name no content.

    >>> is_generic("other"), is_generic("general category"), is_generic("general practitioner")
    (True, True, False)
    """
    words = [word.casefold() for word in WORD.findall(name)]
    return all(word in GENERIC for word in words)


def abbreviations(name: str, token_counts: Sequence[int]) -> list[str]:
    """The words of a name that look like abbreviations.

    Args:
        name: The name.
        token_counts: Into how many tokens the encoder splits each word of the name, as ``WORD`` finds them.
    """
    found = []
    for word, tokens in zip(WORD.findall(name), token_counts, strict=True):
        low = word.casefold()
        no_vowels = len(word) > 1 and low.isascii() and not VOWELS & set(low)
        capitals = word.isupper() and 2 <= len(word) <= 5 and tokens > 1
        if low in ABBREVIATIONS or (no_vowels and tokens > 1) or capitals:
            found.append(word)
    return found


def is_foreign(name: str) -> bool:
    """Whether a name is probably not English: foreign function words, endings or letters.

    >>> is_foreign("Rückgabe der Ware"), is_foreign("tarjeta perdida del cliente"), is_foreign("café visit")
    (True, True, False)
    """
    words = [word.casefold() for word in WORD.findall(name)]
    if any(word in FOREIGN for word in words):
        return True
    if any(word.endswith(FOREIGN_ENDINGS) and word not in FOREIGN_EXCEPTIONS and len(word) > 6 for word in words):
        return True
    accented = [word for word in words if any(char > "\u007f" and char.isalpha() and char != "é" for char in word)]
    return bool(accented)


def is_casual(name: str) -> bool:
    """Whether a name is written like a chat: slang, or an exclamation mark.

    >>> is_casual("gimme my cash"), is_casual("refund request")
    (True, False)
    """
    return name.rstrip().endswith("!") or any(word.casefold() in CASUAL for word in WORD.findall(name))
