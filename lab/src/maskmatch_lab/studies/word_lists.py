"""Common words for names without meaning: random names, generic names and distractors."""

from __future__ import annotations

_THINGS = """
acorn alley almond anchor anvil apple apron arch armour arrow attic autumn axle badge bagpipe balcony balloon
bamboo banana banner barley barn barrel basin basket beach beacon beak bean bear beetle bell bench berry bicycle
birch bird biscuit blanket blossom boat bonnet boot border bottle boulder bowl bracelet branch brass bread
breeze brick bridge broom brush bucket buckle buffalo bulb bullet butter button cabbage cabin cable cactus
candle cannon canoe canvas canyon carpet carrot castle cattle cave cedar cellar chain chair chalk cheese cherry
chestnut chimney cider cinnamon circus cliff cloak clock cloud clover coal coat cobble coconut coffee collar
comb compass copper coral cork corner cotton cousin cradle crane crate cricket crown crystal cucumber cup
curtain cushion daisy dancer dawn deer desert desk diamond donkey door dragon drawer dress drum duck dust eagle
easel echo elbow elephant elm ember engine envelope fabric falcon farm feather fence fern ferry fiddle field fig
finger fireplace flag flame flute foam fog forest fork fossil fountain fox frame frost furnace galaxy garden
garlic gate giraffe glacier glove goat goose granite grape grass gravel guitar hammer hammock harbour harp
harvest hat hawk hazel hedge helmet herb heron hill honey hoof horizon horn horse ice ink iron island ivory ivy
jacket jar jewel juniper kettle kite kitten knot ladder lagoon lamb lantern lark lava lawn leaf leather lemon
lentil lighthouse lily linen lion lizard loaf lobster lock lotus magnet maple marble marsh mast meadow melon
mill mint mirror mist moon mosaic moss moth mountain muffin mushroom mustard napkin needle nest nutmeg oak oar
oasis ocean olive onion opal orange orchard orchid organ otter oven owl oyster paddle palace palm pancake
panther paper parrot pasture path peach peacock pear pearl pebble pelican pencil pepper perfume petal piano
pickle pigeon pillow pine pipe planet plough plum pocket pond pony poppy porch potato prairie puddle pumpkin
puppet quartz quilt rabbit raft rain raven reef ribbon rice river robin rocket roof rope rose rubber ruby saddle
sail salmon salt sand sapphire scarf seal seed shadow shed sheep shell ship shoe shovel silk silver sky sledge
snail snow soap sparrow spider spoon spruce squirrel stable star statue stone stool storm straw stream sugar
summit sunrise swan sword table tapestry tent thistle thorn thread thunder tiger timber tomato torch tower
trumpet tulip tunnel turnip turtle umbrella valley vase velvet vine violin volcano waffle wagon walnut waterfall
wave wheat wheel whistle willow window winter wolf wool yarn zebra
"""
THINGS = tuple(_THINGS.split())
"""Things of everyday life, which have little to do with usual labels."""

GENERIC_NOUNS = ("category", "class", "group", "kind", "type", "item", "option", "entry", "case", "sort")
GENERIC_ADJECTIVES = (
    "other",
    "general",
    "common",
    "certain",
    "further",
    "another",
    "main",
    "usual",
    "particular",
    "different",
    "similar",
    "possible",
    "given",
    "single",
    "whole",
    "present",
)
