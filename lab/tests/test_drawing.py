"""The style of pictures, and figures as SVG."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

from maskmatch_lab.drawing import COLOURS, as_svg, embedded, name_rows, new_figure, style, styles_of


def _picture(label: str = "a & b") -> str:
    with style():
        figure = new_figure(4, 2)
        axes = figure.add_subplot()
        axes.plot([1, 2], [0, 1], "o", color=COLOURS[0])
        name_rows(axes, [label, "$x_1$"])
        return as_svg(figure, f"shows <{label}>")


def test_the_same_data_give_the_same_bytes() -> None:
    assert _picture() == _picture()
    assert not re.search(r"<metadata|<!DOCTYPE|20\d\d-", _picture())


def test_labels_stay_text() -> None:
    root = ElementTree.fromstring(_picture("a\x07 & b"))
    assert root.get("aria-label") == "shows <a  & b>"
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a  & b", "$x_1$"} <= set(texts), "formulas are not typeset"


def test_a_page_embeds_a_picture_with_its_description() -> None:
    image = embedded(_picture())
    assert 'alt="shows &lt;a &amp; b&gt;"' in image
    data = re.search(r"base64,([^\"]*)", image)
    assert data is not None
    assert base64.b64decode(data[1]).decode() == _picture()


def test_many_names_differ_by_colour_or_marker() -> None:
    styles = styles_of(str(number) for number in range(40))
    assert len({tuple(style.values()) for style in styles.values()}) == 40
