"""`make translations`: brings the .ts files in resources/translations up to date with the sources.

A new string is added as unfinished, with the translation of the same words elsewhere if there is one; a string that
the sources have no more is removed. `--check` writes nothing: it prints what has no translation in each language, and
ends with 1 if there is any.
"""

import argparse
import sys

from compile_translations import compile_stale
from source_strings import SourceString, source_strings
from ts_file import LANGUAGES, Catalog, Translation, problems, read_ts, ts_path, write_ts


def merge(strings: list[SourceString], old: Catalog, language: str) -> Catalog:
    """Return the translations of these strings, as far as the old ones go."""
    by_text = {(string.text, string.numerus): translation for string, translation in old.items()}
    merged: Catalog = {}
    for string in strings:
        known = old.get(string)
        if known is None:
            guess = by_text.get((string.text, string.numerus))
            count = LANGUAGES[language] if string.numerus else 1
            known = Translation(guess.forms if guess else ("",) * count, finished=False)
        merged[string] = known
    return merged


def check(strings: list[SourceString]) -> int:
    """Print what each language lacks; return how many strings."""
    lacking = 0
    for language in LANGUAGES:
        catalog = read_ts(ts_path(language))
        missing = [string for string in strings if string not in catalog or not catalog[string].is_complete]
        wrong = {
            string: faults
            for string, translation in catalog.items()
            if translation.finished and (faults := problems(string, translation, language))
        }
        gone = len(catalog.keys() - set(strings))
        sys.stdout.write(f"{language}: {len(strings)} strings, {len(missing)} without translation, {gone} gone\n")
        for string in missing:
            sys.stdout.write(f"    {string.context}: {string.text}\n")
        for string, faults in wrong.items():
            sys.stdout.write(f"    {string.context}: {string.text}: {'; '.join(faults)}\n")
        lacking += len(missing) + len(wrong)
    return lacking


def main() -> int:
    """Write or check. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Translations of the window, and what they lack.")
    parser.add_argument("--check", action="store_true", help="only print what has no translation; 1 if there is any")
    only_check: bool = parser.parse_args().check
    strings = source_strings()
    if only_check:
        return 1 if check(strings) else 0
    for language in LANGUAGES:
        write_ts(ts_path(language), language, merge(strings, read_ts(ts_path(language)), language))
    compile_stale()
    check(strings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
