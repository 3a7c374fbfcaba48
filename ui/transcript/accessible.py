"""The transcript for assistive technology: its rows near the screen are children with names, texts and buttons.

Each row and each button is a small QObject whose interface Qt asks us for and keeps itself; deleting the object takes
it out of Qt's cache. Nothing of this exists before somebody asks.
"""

from collections.abc import Sequence
from typing import Any, cast

import shiboken6
from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleObject,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from ui.transcript.blocks.block import Control
from ui.transcript.jump_button import JumpButton
from ui.transcript.rows.row import Row
from ui.transcript.screen import Screen
