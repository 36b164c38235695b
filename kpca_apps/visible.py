"""Text from outside, with what no one would see of it written out."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["visible"]

# Characters that would break a one-line message, reorder it or hide in it: controls, bidirectional
# and zero-width marks, line and paragraph separators, lone surrogates, private use and unassigned
# code points; and letters and marks that have no width.
_UNSHOWABLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Languages put up to three marks on a letter; more pile up over the lines around.
_MOST_MARKS = 3
_PLAIN = re.compile(r"[ -~]*")


def visible(text: str) -> str:
    r"""Write out each character that could not be seen, or would change how others are.

    >>> print(visible("a\u200bb\u202ec"))
    a\u200bb\u202ec
    """
    if _PLAIN.fullmatch(text):
        return text
    shown, n_marks = [], 0
    for char in text:
        category = unicodedata.category(char)
        n_marks = n_marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in _UNSHOWABLE or char in _BLANK or n_marks > _MOST_MARKS
        shown.append(ascii(char)[1:-1] if hidden else char)
    return "".join(shown)
