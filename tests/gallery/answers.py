"""What the scripted model says in the pictures."""

PLAN = """\
The job reads each row twice, once to count and once to import. I would do it in **one pass** and keep the count \
as it goes:

1. Stream the file instead of loading it.
2. Commit every thousand rows.
3. Report progress from the loop that imports.

```python
def import_rows(source: Iterable[Row], store: Store) -> int:
    \"\"\"Import in batches; returns how many rows were new.\"\"\"
    imported = 0
    for batch in batched(source, 1_000):
        with store.transaction():
            imported += store.add(batch)  # idempotent: the key is the row's digest
    return imported
```

Shall I change `jobs/import.py` that way?
"""

RICH = """\
# A week in Lisbon

Spring is the *best* time: warm days, cool evenings, and the jacarandas in bloom. Three things I would **not** miss, \
and one I would.

## Days

- **Alfama** early in the morning, before the trams
  - the market at Santa Clara, Tuesdays and Saturdays
  - lunch at a counter, standing
- A train to [Sintra](https://www.cp.pt), with good shoes
- [x] Book the tower of Belém
- [ ] Skip the lift; walk up instead

## What it costs

| What | Per day | For the week | Remark |
| :--- | ---: | ---: | :--- |
| Room near Graça | €84 | €588 | breakfast included |
| Food and coffee | €38 | €266 | cheaper at the market |
| Trains and trams | €7 | €49 | 24-hour ticket |
| **Together** | **€129** | **€903** | |

> Lisbon is built on seven hills, and you will count eight.

```python
def total(days: int, per_day: float = 129.0) -> float:
    # rounded, because nobody pays half a cent
    return round(days * per_day, 2)
```

A longer line of code scrolls inside its own block and never widens the page:

```sh
curl --silent --fail --location "https://example.org/api/v2/timetable?from=LIS&to=SIN&date=2026-04-12" | jq '.trains'
```
"""

HALF = """\
## Why the sky is blue

Sunlight is a mix of all colours. In the air it meets molecules much smaller than its wavelength, and these scatter \
**short wavelengths far more** than long ones, by the fourth power:

| Colour | Wavelength | Scattered |
| --- | ---: | ---: |
| Red | 700 nm | 1.0× |
| Blue | 450 nm | 5.9× |

So blue light reaches us from every direction, and red mostly straight from the sun.

```python
def scattering(wavelength: float) -> float:
    return (700 / wavelength) **"""

THOUGHT = (
    "The person asks about the import job. I should look for the slow part before I propose anything: it reads the "
    "file twice.\n\nA single pass with batches is simplest. A transaction for each batch keeps it safe when it is "
    "interrupted, and the digest as key makes a second run harmless."
)

MANY_SCRIPTS = """\
### مرحبا بالعالم

هذه فقرة بالعربية مع كلمة English في وسطها، وقائمة قصيرة:

- البند الأول: ١٢٣
- البند الثاني مع `code` في السطر

### 你好世界

中文段落不用空格分词、长行也必须在窗口边缘正确换行。标点符号不能出现在行首。日本語の文章も同じです。\
한국어도 마찬가지입니다.

### עברית and emoji

שלום עולם — family 👩‍👩‍👧‍👦, flag 🇵🇹, skin tone 👍🏽, and a long run 🎉🎊🥳✨🌈🦊🐙

| Language | Greeting |
| --- | --- |
| العربية | مرحبا 👋 |
| 日本語 | こんにちは |
| עברית | שלום |
"""

OLD_FILE = """\
\"\"\"Imports rows from a file.\"\"\"

from jobs.rows import Row, read_rows
from jobs.store import Store


def import_file(path: str, store: Store) -> int:
    rows = list(read_rows(path))
    total = len(rows)
    done = 0
    for row in rows:
        store.add(row)
        done += 1
        print(f"{done} of {total}")
    return done


def check(path: str) -> bool:
    return all(row.is_valid for row in read_rows(path))
"""

NEW_FILE = """\
\"\"\"Imports rows from a file.\"\"\"

from itertools import batched

from jobs.rows import Row, read_rows
from jobs.store import Store

BATCH = 1_000


def import_file(path: str, store: Store) -> int:
    \"\"\"In one pass; returns how many rows were new.\"\"\"
    imported = 0
    for batch in batched(read_rows(path), BATCH):
        with store.transaction():
            imported += store.add(batch)
    return imported


def check(path: str) -> bool:
    return all(row.is_valid for row in read_rows(path))
"""
