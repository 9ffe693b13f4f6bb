"""Planted problems: good names of seven domains, and bad names, or names that collide with good ones."""

from __future__ import annotations

from dataclasses import dataclass

GOOD = {
    "bank": (
        "card stolen",
        "exchange rate",
        "mortgage advice",
        "open a savings account",
        "refund",
        "cash withdrawal limit",
        "direct debit",
        "forgotten PIN",
        "loan repayment",
        "identity check",
    ),
    "shop": (
        "late delivery",
        "damaged item",
        "size and fit",
        "gift voucher",
        "cancel an order",
        "warranty claim",
        "product availability",
        "payment methods",
        "newsletter",
        "store opening hours",
    ),
    "news": (
        "football",
        "elections",
        "climate change",
        "stock market",
        "space exploration",
        "crime",
        "film",
        "education",
        "health care",
        "fashion",
        "agriculture",
    ),
    "health": (
        "broken bone",
        "skin rash",
        "pregnancy",
        "vaccination",
        "sleep problems",
        "hearing loss",
        "prescription renewal",
        "toothache",
        "blood test results",
        "physiotherapy",
    ),
    "travel": (
        "lost luggage",
        "seat reservation",
        "visa requirements",
        "hotel complaint",
        "airport transfer",
        "travel insurance",
        "flight cancelled",
        "car hire",
        "pets on board",
        "loyalty points",
    ),
    "office": (
        "payroll",
        "holiday request",
        "printer broken",
        "meeting room booking",
        "parking permit",
        "training course",
        "password reset",
        "expense report",
        "job application",
        "office plants",
    ),
    "feelings": ("joy", "anger", "fear", "surprise", "disgust", "pride", "boredom", "gratitude", "loneliness"),
}


@dataclass(frozen=True)
class Planted:
    """A problem: the name that is added to the good names of a domain, and the good one that it collides with."""

    domain: str
    name: str
    collides: str | None = None


SYNONYMS = [
    Planted("bank", "money back", "refund"),
    Planted("shop", "shipment delayed", "late delivery"),
    Planted("news", "movies", "film"),
    Planted("news", "soccer", "football"),
    Planted("health", "immunisation", "vaccination"),
    Planted("travel", "suitcase missing", "lost luggage"),
    Planted("travel", "rental car", "car hire"),
    Planted("office", "salary payments", "payroll"),
    Planted("office", "vacation request", "holiday request"),
    Planted("feelings", "happiness", "joy"),
    Planted("feelings", "rage", "anger"),
]
NEAR_DUPLICATES = [
    Planted("bank", "stolen card", "card stolen"),
    Planted("bank", "rate of exchange", "exchange rate"),
    Planted("shop", "order cancellation", "cancel an order"),
    Planted("shop", "item damaged", "damaged item"),
    Planted("news", "climate changes", "climate change"),
    Planted("health", "results of a blood test", "blood test results"),
    Planted("travel", "reserve a seat", "seat reservation"),
    Planted("office", "booking a meeting room", "meeting room booking"),
    Planted("office", "resetting a password", "password reset"),
]
PLURALS = [
    Planted("bank", "refunds", "refund"),
    Planted("bank", "loan repayments", "loan repayment"),
    Planted("shop", "gift vouchers", "gift voucher"),
    Planted("shop", "warranty claims", "warranty claim"),
    Planted("news", "crimes", "crime"),
    Planted("health", "pregnancies", "pregnancy"),
    Planted("travel", "hotel complaints", "hotel complaint"),
    Planted("office", "parking permits", "parking permit"),
    Planted("feelings", "joys", "joy"),
]
GENERIC = [
    Planted("bank", "other"),
    Planted("bank", "general"),
    Planted("shop", "misc"),
    Planted("shop", "category"),
    Planted("news", "various topics"),
    Planted("health", "unknown"),
    Planted("travel", "stuff"),
    Planted("office", "everything else"),
    Planted("feelings", "label 3"),
]
ABBREVIATIONS = [
    Planted("bank", "acct mgmt"),
    Planted("bank", "txn dispute"),
    Planted("shop", "dlvry addr"),
    Planted("shop", "qty"),
    Planted("health", "appt sched"),
    Planted("travel", "pax info"),
    Planted("office", "HR dept"),
    Planted("office", "req form"),
]
CONTAINED = [
    Planted("bank", "refund rejected", "refund"),
    Planted("bank", "direct debit failed", "direct debit"),
    Planted("shop", "late delivery compensation", "late delivery"),
    Planted("news", "film festivals", "film"),
    Planted("news", "higher education", "education"),
    Planted("travel", "car hire extension", "car hire"),
    Planted("office", "payroll error", "payroll"),
]
LANGUAGES = [
    Planted("bank", "Überweisung fehlgeschlagen"),
    Planted("shop", "retour de la commande"),
    Planted("news", "noticias del deporte"),
    Planted("health", "Untersuchung beim Arzt"),
    Planted("travel", "gimme an upgrade pls"),
    Planted("office", "my laptop sucks!"),
    Planted("travel", "richiesta di informazioni sul volo"),
]
KINDS = {
    "synonyms": SYNONYMS,
    "near duplicates": NEAR_DUPLICATES,
    "plurals": PLURALS,
    "generic": GENERIC,
    "abbreviations": ABBREVIATIONS,
    "contained": CONTAINED,
    "languages": LANGUAGES,
}
