"""The base of models that never change, and what a form has to know about their fields beyond type and title."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")
EMPTY: Any = ()
"""The default of the fields below, whatever their type."""

if TYPE_CHECKING:
    # Type checkers take the type of an argument from `__set__` of its field, and that of an attribute from `__get__`.

    class TupleOf(Generic[T]):
        """A tuple, made of any sequence."""

        def __get__(self, model: object, kind: type) -> tuple[T, ...]: ...

        def __set__(self, model: object, value: Sequence[T]) -> None: ...

    class ListOrTuple(Generic[T]):
        """A tuple, made of a list or a tuple: of texts, as one text is a sequence of them too."""

        def __get__(self, model: object, kind: type) -> tuple[T, ...]: ...

        def __set__(self, model: object, value: list[T] | tuple[T, ...]) -> None: ...

else:
    TupleOf = ListOrTuple = tuple[T, ...]


class FrozenModel(BaseModel):
    """A model that cannot be changed, and that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How a form shows a number: its unit, and a text in place of 0."""

    unit: str = ""
    zero_text: str = ""


class OneLine:
    """Marks a text that has no lines: a name, a path."""


class FolderField:
    """Marks a text as the path of a folder, which can be chosen in a dialog too."""


class FontFamilyField:
    """Marks a text as the name of a font family; empty is the system's."""


class LanguagesField:
    """Marks names of languages, which are chosen from those that have a dictionary."""


class KeysField:
    """Marks a text as keys of the keyboard, which are pressed to choose them; empty is none."""


@dataclass(frozen=True, slots=True)
class ChoiceNames:
    """Names of choices that are the same in every language; other choices are named by their own words."""

    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OptionalNumber:
    """How a form shows a number that may be missing: an example for one that is wrong, and what stands for none."""

    example: str
    empty_text: str = "The server's default"
