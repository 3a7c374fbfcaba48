"""Markdown for the pictures, block by block."""

LISTS = """\
Before we leave, three things **in this order**, and what belongs to them:

1. Papers
   - passports, and a copy of each
     - one in the bag, one at home
   - insurance
2. The flat
   1. water off
   2. heating to 15 °C
3. A word to the neighbours, who water the plants; they like to be told a few days before, so that they can say \
when they are away themselves

A list with room between its items:

- The first has two paragraphs.

  This is the second of them.

- The next one is shorter.

What is done and what is not:

- [x] Trains booked
- [x] Rooms booked
- [ ] Somebody for the cat
  - [ ] ask Ines
  - [x] ~~ask Jorge~~ (allergic)

قائمة من اليمين إلى اليسار:

1. البند الأول مع كلمة English
2. البند الثاني
   - [x] تم
   - [ ] لم يتم بعد
"""

HEADINGS = """\
# Heading one: what it is about

A paragraph below it, with *emphasis*, **strength**, ***both***, ~~what is gone~~, `code`, and a \
[link](https://example.org/a/page). An address by itself is a link too: https://example.org.

## Heading two with `code` in it

### Heading three

Text below heading three.

#### Heading four

##### Heading five

###### Heading six

---

> A quote of one paragraph, long enough that it goes on to a second line of the column, as quotes of some length do \
in an ordinary answer.
>
> > A quote inside the quote.
>
> - with a list
> - of two
>
> ```sh
> echo "and code"
> ```

> شعر مقتبس من اليمين إلى اليسار.

A [link that says https://bank.example](https://elsewhere.example/login) leads somewhere else.
"""

CODE = """\
Read the file in one pass:

```python
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    \"\"\"One line of the file.\"\"\"

    number: int
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        # 1-based, as people count
        return f"{self.number + 1}: {', '.join(self.cells)!r}"
```

A longer line moves inside its block:

```sh
curl --silent --fail --location "https://example.org/api/v2/timetable?from=LIS&to=SIN&date=2026-04-12" | jq '.trains[]'
```

One that wants to be wrapped:

```bash
rsync --archive --delete --exclude='.git' --exclude='node_modules' ./site/ \
"deploy@web-1.example.org:/srv/www/site/" \
&& ssh deploy@web-1.example.org 'systemctl reload nginx'
```

```json
{"name": "import", "batch": 1000, "safe": true, "after": null}
```

```
no language, and nothing coloured
```
"""

TABLES = """\
| Colour | Wavelength | Scattered |
| :--- | ---: | :---: |
| Red | 700 nm | 1.0× |
| **Blue** | 450 nm | `5.9×` |

A table that is wider than the column:

| Station | Platform | Departure | Arrival | Operator | Train | Seats | Bicycles | Restaurant \
| Remarks about the journey |
| --- | ---: | ---: | ---: | --- | --- | ---: | --- | --- | --- |
| Lisboa Santa Apolónia | 3 | 08:09 | 11:02 | Comboios de Portugal | Alfa Pendular 123 | 299 | no | yes \
| Reservation needed |
| Porto Campanhã | 11 | 12:41 | 13:58 | Comboios de Portugal | Inter-regional 851 | 410 | yes | no \
| Change at Nine for Viana |

And one with long cells:

| Step | What happens | Why |
| --- | --- | --- |
| Read | The file is read line by line, never as a whole, so that its size does not matter | memory |
| Check | A row that lacks a cell is left out and counted; the count is told at the end, \
with the numbers of the first ten | \
nobody looks at ten thousand warnings |
| Write | A transaction for every thousand rows | an interruption loses little |
"""

FORMULAS = r"""
The energy of a photon is $E = h\nu = \frac{hc}{\lambda}$, and so the scattered power grows as $\lambda^{-4}$:

$$
I = I_0 \frac{8\pi^4 N\alpha^2}{\lambda^4 R^2}\left(1 + \cos^2\theta\right)
$$

For a matrix $A \in \mathbb{R}^{n\times n}$ with $\det A \neq 0$ we have

\[
A^{-1} = \frac{1}{\det A}\operatorname{adj}(A), \qquad
\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1} = \frac{1}{ad-bc}\begin{pmatrix} d & -b \\ -c & a \end{pmatrix}
\]

\begin{align}
\int_{-\infty}^{\infty} e^{-x^2}\,dx &= \sqrt{\pi} \\
\sum_{k=1}^{n} k^3 &= \left(\frac{n(n+1)}{2}\right)^2
\end{align}

- in a list: $\sqrt[3]{x^2 + y^2}$
- with words: $x = \begin{cases} 1 & \text{if } n = 0 \\ n\,f(n-1) & \text{otherwise} \end{cases}$

| Name | Formula |
| --- | --- |
| Euler | $e^{i\pi} + 1 = 0$ |
| Not one | $\undefinedthing{x}$ |

It costs $5 and not $6.
"""

DIAGRAM = """\
How the import goes:

```mermaid
flowchart LR
    A[Read rows] --> B{Valid?}
    B -- yes --> C[Batch of 1,000]
    B -- no --> D[Count and skip]
    C --> E[(Store)]
```

The check comes first.
"""

FOOTNOTES = """\
The bridge is the longest of its kind[^kind], and tolls are taken northbound only[^2]. Nobody has defined[^this] one.

[^kind]: Cable-stayed, with the spans over land counted.
[^2]: Since 2011. Before that both ways were charged.

    A second paragraph of the same note.
"""

REMOTE = """\
Here is the view from the tower:

![The river at noon](https://pictures.example/lisbon/river-at-noon.jpg)

The same in the evening is still on its way:

![The river in the evening](https://pictures.example/lisbon/evening.jpg)

This one could not be had:

![An old map of the town](https://archive.example/maps/1755.png)

And this one is there:

![Hills behind the town](https://pictures.example/lisbon/hills.png)
"""

COLOURED = (
    "\x1b[1mcollected 48 items\x1b[0m\r\n\r\n"
    "tests/test_rows.py \x1b[32m.....................\x1b[0m\x1b[36m [ 43%]\x1b[0m\r\n"
    "tests/test_store.py \x1b[32m..........\x1b[31mF\x1b[32m....\x1b[0m\x1b[36m [ 75%]\x1b[0m\r\n"
    "\x1b[33mwarning\x1b[0m: \x1b[2mthe old format is read for the last time\x1b[0m\r\n"
    "importing 10 %\rimporting 55 %\rimporting \x1b[1;34m80 %\x1b[0m"
)
