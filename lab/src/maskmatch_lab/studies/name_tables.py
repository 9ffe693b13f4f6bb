"""Synonyms and glosses for the labels of trec50, written by hand from the names alone, and a few words for other sets.

They were written without looking at texts or predictions: they are what a person would write who knows the names and
English.
"""

from __future__ import annotations

_TREC50 = """
definition | meaning | what a word or thing is
count | how many | the number of things
equivalent term | synonym | another word for the same thing
other entity | some other thing | a thing that fits no other kind
group or organization | company or team | a company, party, club or institution
description | account of something | what something is like
other location | some other place | a place that is no city, state, country or mountain
individual person | name of somebody | who somebody is
disease and medicine | illness and drug | an illness, its symptoms or what cures it
country | nation | a land with its own government
reason | cause | why something is so
order or rank | position in a series | which place something has in a list
creative work | book, film or song | the title of a book, film, song or painting
city | town | a large town or a capital
food | something to eat or drink | a dish, a drink or an ingredient
technique and method | way of doing something | a procedure or skill
date | day or year | when something happened
animal | creature | a beast, bird, fish or insect
duration | length of time | how long something lasts
distance | how far | how far away or how long something is
musical instrument | what music is played on | a piano, violin, drum or the like
manner of an action | how something is done | how to do something
state | province | a state of the United States
substance | material | what something is made of
vehicle | means of transport | a car, ship, plane or train
description of a person | who somebody was | what somebody is known for
sport | game | a game that athletes play
event | happening | a war, a holiday or something else that happened
word | expression | a word with some special property
expansion of an abbreviation | what letters stand for | the full form of an acronym
title of a person | form of address | a rank, an office or how somebody is called
plant | flower or tree | a flower, a tree or a crop
mountain | peak | a high hill or a range
organ of body | part of the body | the heart, the skin, a bone or the like
price | cost | how much money something costs
currency | kind of money | the money of a country
percent | share | a part of a hundred
code | number that identifies | a telephone, postal or secret number
speed | how fast | how quickly something moves
color | hue | red, blue, green or the like
other number | some other figure | a number that fits no other kind
weight | how heavy | how many pounds something has
size, area and volume | how large | how big, wide or roomy something is
symbol | sign | a sign that stands for something
letter | character of the alphabet | a, b, c and so on
abbreviation | short form | the initials of a longer name
language | tongue | what people speak somewhere
product | article for sale | something that is made and sold
religion | faith | what people believe in and worship
temperature | how hot or cold | how many degrees something has
"""

_ROWS = [[part.strip() for part in line.split("|")] for line in _TREC50.strip().splitlines()]
SYNONYMS = {name: synonym for name, synonym, _ in _ROWS}
GLOSSES = {name: (gloss,) for name, _, gloss in _ROWS}

WORD_SYNONYMS = {
    "activate": "switch on",
    "against": "opposed",
    "anger": "rage",
    "arrival": "coming",
    "baseball": "bat and ball",
    "business": "commerce",
    "cancel": "call off",
    "cars": "automobiles",
    "change": "alter",
    "charge": "cost",
    "charged": "billed",
    "declined": "refused",
    "delivery": "shipment",
    "entity": "thing",
    "estimate": "guess",
    "exchange": "conversion",
    "failed": "went wrong",
    "favor": "support",
    "fear": "fright",
    "fee": "cost",
    "get": "obtain",
    "getting": "obtaining",
    "human": "person",
    "identity": "who one is",
    "joy": "happiness",
    "limit": "maximum",
    "limits": "maximums",
    "location": "place",
    "lost": "missing",
    "love": "affection",
    "medicine": "health care",
    "money": "funds",
    "movie": "film",
    "negative": "bad",
    "neutral": "balanced",
    "number": "figure",
    "order": "request",
    "payment": "purchase",
    "pending": "not finished",
    "personal": "private",
    "phone": "telephone",
    "politics": "government affairs",
    "positive": "good",
    "religion": "faith",
    "restaurant": "place to eat",
    "sadness": "sorrow",
    "science": "research",
    "sports": "athletics",
    "stolen": "taken by thieves",
    "support": "help",
    "surprise": "astonishment",
    "technology": "engineering",
    "timing": "duration",
    "transfer": "remittance",
    "verify": "confirm",
    "weather": "forecast",
    "withdrawal": "taking out",
    "world": "international",
    "wrong": "incorrect",
}
"""Synonyms of single words, for label sets without a table of their own; far from complete."""
