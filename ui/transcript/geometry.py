"""Heights of a long list: most of them guessed, some exact, sums and searches in logarithmic time."""

from dataclasses import dataclass


class Heights:
    """A Fenwick tree (P. Fenwick, 1994) over what each height differs from a default, in whole pixels.

    Because only differences are kept, a list of a hundred thousand rows that nobody has seen costs nothing to open.
    """

    __slots__ = ("_default", "_extra", "_sum", "_tree")

    def __init__(self, count: int = 0, default: int = 0) -> None:
        self._default = default
        self._extra = [0] * count
        self._tree = [0] * (count + 1)
        self._sum = 0

    def __len__(self) -> int:
        return len(self._extra)

    def __getitem__(self, index: int) -> int:
        return self._default + self._extra[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._default - self._extra[index]
        if not change:
            return
        self._extra[index] += change
        self._sum += change
        node, tree = index + 1, self._tree
        while node < len(tree):
            tree[node] += change
            node += node & -node

    @property
    def total(self) -> int:
        """The sum of all."""
        return len(self._extra) * self._default + self._sum

    def top(self, index: int) -> int:
        """The sum of the first `index` heights."""
        return index * self._default + self._prefix(index)

    def find(self, y: int) -> int:
        """The index whose span holds `y`; the nearest one when `y` lies outside. An empty list gives 0."""
        count, position, rest = len(self._extra), 0, y
        step = 1 << count.bit_length()
        while step:
            after = position + step
            if after <= count:
                span = step * self._default + self._tree[after]
                if span <= rest:
                    position, rest = after, rest - span
            step >>= 1
        return min(position, max(count - 1, 0))

    def append(self, height: int | None = None) -> None:
        """Add one at the end; without a height, of the default one."""
        self._extra.append(0)
        node = len(self._extra)
        self._tree.append(self._prefix(node - 1) - self._prefix(node - (node & -node)))
        if height is not None:
            self[node - 1] = height

    def insert(self, index: int) -> None:
        """Make room for one of the default height; linear unless it is at the end."""
        if index == len(self._extra):
            self.append()
        else:
            self._rebuild([*self._extra[:index], 0, *self._extra[index:]])

    def remove(self, first: int, count: int) -> None:
        """Take `count` away; linear unless they are the last ones."""
        if first + count == len(self._extra):
            self._sum -= sum(self._extra[first:])
            del self._extra[first:]
            del self._tree[first + 1 :]
        else:
            self._rebuild(self._extra[:first] + self._extra[first + count :])

    def _prefix(self, index: int) -> int:
        total, tree = 0, self._tree
        while index:
            total += tree[index]
            index &= index - 1
        return total

    def _rebuild(self, extra: list[int]) -> None:
        tree = [0, *extra]
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]
        self._extra, self._tree, self._sum = extra, tree, sum(extra)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that stays where it is on the screen: `offset` pixels below the top of a block of a row."""

    row: int
    block: int
    offset: int
