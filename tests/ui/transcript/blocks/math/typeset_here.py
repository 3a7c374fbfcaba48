"""Formulas typeset here and not in the worker; what goes there and back is JSON all the same."""

import json

from desktop_agent.markdown import typesetting
from ui.transcript.blocks.math import formulas


class Here:
    """A stand-in for the worker."""

    def ask(self, latex, display, letters):
        return typesetting.typeset(latex, display, json.loads(json.dumps(letters, default=vars_of)))


def vars_of(outline):
    return {name: getattr(outline, name) for name in outline.__slots__}


def typeset(latex, *, display):
    return formulas.typeset(Here(), latex, display=display)
