"""Options that are known to be safe behind the words that a rule names, and those of git. All others are asked
about.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from desktop_agent.permissions.shell.syntax import word_set

_FOLDER = re.compile(r"\w[\w-]*")
_FILE_STEM = re.compile(r"[a-z_][a-z0-9_-]*")
_BUILD_SUFFIXES = word_set("o obj a so dylib dll exe out elf bin wasm d gch pch test")
_BUILD_FOLDERS = word_set("build _build out output bin target dist obj")
# Scripts that are written by hand have no ending either.
_SCRIPTS = re.compile(
    r"\w*file|sconstruct|sconscript|wscript|waf|configure|bootstrap|autogen|gradlew|mvnw|artisan|manage|test"
    r"|(?:build|check|ci|clean|console|deploy|dev|format|install|lint|publish|release|run|setup|start|stop|update)"
    r"(?:[-_]\w+)*"
)


@dataclass(frozen=True, slots=True)
class SafeOptions:
    """`flags` are short options, also joined; behind one that is `valued` the rest of its word is a value.

    `long` are those with two dashes, with a value or without, never shortened: what they are short for changes from
    version to version. `words` are other words that begin with a dash. No word may hold `never`, and no operand begin
    with one of `signs`. There are as many `operands` as are wanted, unless it says otherwise; where they are `named`, a
    rule is about those that stand in it, and about no others. It `stays_in_workspace` if a path that leads out of the
    folder
    lets it do what it does not do otherwise. `passes_on`: behind `--` stand options of another program. Behind options
    that match `writes` stands a file that it writes: no more than what compilers make.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    never: re.Pattern[str] | None = None
    unsafe_prefixes: tuple[str, ...] = ()
    operands: int | None = None
    named: bool = False
    stays_inside: bool = False
    passes_on: bool = False
    writes: re.Pattern[str] | None = None

    def is_safe(self, word: str) -> bool:
        """Whether this word, as the program gets it, is harmless here."""
        if self.never is not None and self.never.search(word):
            return False
        if not word.startswith("-") or word == "-":
            return not (self.unsafe_prefixes and word.startswith(self.unsafe_prefixes))
        if self.words is not None and self.words.fullmatch(word):
            return True
        if word.startswith("--"):
            return word[2:].partition("=")[0] in self.long
        return self._has_letters(word[1:])

    def overwrites(self, word: str, value: str | None) -> bool:
        """Whether this option writes to a file that may be more than something built; `value` is the next word."""
        option, glued, behind = word.partition("=")
        if self.writes is None or not self.writes.fullmatch(option):
            return False
        path = (behind if glued else value) or ""
        # A list of what a file depends on is text, of which options say a part.
        return not _is_build_output(path) or (option == "-MF" and not path.endswith(".d"))

    def _has_letters(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


def _is_build_output(path: str) -> bool:
    """Whether it is by its name nothing that a person writes: no source, no capital, no dot first, and no script."""
    *folders, name = path.removeprefix("./").split("/")
    if not all(_FOLDER.fullmatch(each) for each in folders):
        return False
    stem, dot, ending = name.partition(".")
    is_for_builds = not _BUILD_FOLDERS.isdisjoint(folders)
    if not name:
        return is_for_builds
    if not _FILE_STEM.fullmatch(stem):
        return False
    return ending in _BUILD_SUFFIXES if dot else (is_for_builds or not folders) and not _SCRIPTS.fullmatch(name)


def safe_options(flags: str = "", valued: str = "", long: str = "") -> SafeOptions:
    """Options of which nothing more has to be said."""
    return SafeOptions(flags, valued, word_set(long))


def safe_named_options(flags: str = "", valued: str = "", long: str = "") -> SafeOptions:
    """Options of which nothing more has to be said, where the operands are what a rule is about."""
    return SafeOptions(flags, valued, word_set(long), named=True)


NO_WORDS = SafeOptions(unsafe_prefixes=("",))
NO_OPTIONS = SafeOptions()
NO_OPERANDS = SafeOptions(operands=0)


_NUMBERS = "0123456789"
# git-log(1): to show who signed, git starts the program for it. A sign may stand behind the per cent.
_SIGNED = re.compile(r"%[-+ ]*G")
# git-for-each-ref(1): the same, also as what is sorted by.
_SIGNED_REFS = re.compile(r"%[-+ ]*G|signature")
# gitremote-helpers(7): what stands before two colons is a program.
_HELPER = re.compile(r"^\w+::")

# From the page of git-diff.
_DIFF = (
    "patch no-patch raw patch-with-raw patch-with-stat indent-heuristic no-indent-heuristic minimal patience histogram "
    "anchored diff-algorithm stat stat-width stat-name-width stat-count stat-graph-width compact-summary numstat "
    "shortstat dirstat cumulative summary name-only name-status color no-color color-moved no-color-moved "
    "color-moved-ws word-diff word-diff-regex color-words no-renames rename-empty no-rename-empty check "
    "ws-error-highlight full-index binary abbrev no-abbrev break-rewrites find-renames find-copies find-copies-harder "
    "irreversible-delete diff-filter no-prefix src-prefix dst-prefix line-prefix ita-invisible-in-index text "
    "ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines "
    "ignore-matching-lines inter-hunk-context function-context exit-code quiet no-ext-diff no-textconv "
    "ignore-submodules pickaxe-all pickaxe-regex find-object relative no-relative unified output-indicator-new "
    "output-indicator-old output-indicator-context"
)
_DIFF_FLAGS, _DIFF_VALUED = f"pusabwWRDrztv{_NUMBERS}", "USGMCBlI"
# From those of git-log and git-rev-list.
_WALK = (
    "max-count skip since after until before author committer grep all-match invert-grep regexp-ignore-case "
    "extended-regexp fixed-strings perl-regexp merges no-merges min-parents max-parents first-parent not all branches "
    "tags remotes glob exclude ancestry-path simplify-merges simplify-by-decoration full-history dense sparse "
    "show-pulls boundary left-right cherry cherry-mark cherry-pick left-only right-only no-walk date date-order "
    "author-date-order topo-order reverse format pretty oneline abbrev-commit no-abbrev-commit encoding graph parents "
    "children walk-reflogs relative-date"
)
_LOG = (
    f"{_DIFF} {_WALK} decorate no-decorate decorate-refs decorate-refs-exclude clear-decorations source notes no-notes "
    "follow full-diff log-size cc combined-all-paths expand-tabs no-expand-tabs mailmap no-mailmap use-mailmap"
)
_SHOWS = SafeOptions(f"{_DIFF_FLAGS}ncmgiEFPq", f"{_DIFF_VALUED}L", word_set(_LOG), never=_SIGNED)
_COMPARES = SafeOptions(
    f"{_DIFF_FLAGS}cmq", _DIFF_VALUED, word_set(f"{_DIFF} cached root cc stdin no-commit-id always")
)
_BLAMES = safe_options(
    f"lbtfnscwep{_NUMBERS}",
    "LMC",
    "porcelain line-porcelain incremental root show-stats show-name show-number show-email reverse first-parent date "
    "encoding abbrev since until minimal progress no-progress score-debug ignore-rev color-lines color-by-age",
)
_UNSTAGES = safe_options("q", "", "index quiet")
_FETCH = "quiet verbose all tags no-tags depth deepen unshallow shallow-since dry-run progress no-progress ipv4 ipv6"

GIT_OPTIONS: Mapping[str, SafeOptions | None] = {
    # what only reads
    **dict.fromkeys(("log", "show", "whatchanged", "reflog show", "stash list"), _SHOWS),
    "reflog": replace(_SHOWS, operands=0),
    "rev-list": SafeOptions(
        f"ncgiEFPv{_NUMBERS}", "", word_set(f"{_WALK} count objects header timestamp"), never=_SIGNED
    ),
    "shortlog": SafeOptions(
        "nsec",
        "w",
        word_set(
            "numbered summary email committer group format since after until before author grep merges no-merges all "
            "branches tags remotes first-parent date"
        ),
        never=_SIGNED,
    ),
    "range-diff": SafeOptions(
        _DIFF_FLAGS, _DIFF_VALUED, word_set(f"{_DIFF} creation-factor no-dual-color notes no-notes"), never=_SIGNED
    ),
    # Of two paths of which one leads out it compares any two files, like `diff`.
    "diff": SafeOptions(
        f"{_DIFF_FLAGS}cq",
        _DIFF_VALUED,
        word_set(f"{_DIFF} cached staged merge-base base ours theirs cc"),
        stays_inside=True,
    ),
    "stash show": safe_options(_DIFF_FLAGS, _DIFF_VALUED, f"{_DIFF} include-untracked only-untracked"),
    **dict.fromkeys(("diff-tree", "diff-files", "diff-index"), replace(_COMPARES, never=_SIGNED)),
    **dict.fromkeys(("blame", "annotate"), _BLAMES),
    "status": safe_options(
        "sbvz",
        "uM",
        "short branch show-stash porcelain long verbose null untracked-files ignore-submodules ignored column "
        "no-column ahead-behind no-ahead-behind renames no-renames find-renames",
    ),
    "ls-files": safe_options(
        "cdmoiszuktv",
        "x",
        "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol exclude "
        "exclude-standard error-unmatch full-name abbrev debug deduplicate format sparse with-tree",
    ),
    "ls-tree": safe_options("drtlz", "", "long name-only name-status object-only full-name full-tree abbrev format"),
    "grep": safe_options(
        f"avIihHEGFPnlLzocpWqwr{_NUMBERS}",
        "ABCem",
        "cached untracked exclude-standard text invert-match ignore-case word-regexp max-depth extended-regexp "
        "basic-regexp fixed-strings perl-regexp line-number column full-name files-with-matches name-only "
        "files-without-match null only-matching count color no-color break heading show-function function-context "
        "context after-context before-context threads max-count and or not all-match quiet",
    ),
    "describe": safe_options(
        long="all tags long always abbrev match exclude candidates exact-match first-parent contains debug dirty broken"
    ),
    "rev-parse": safe_options(
        "q",
        "",
        "quiet verify short abbrev-ref symbolic-full-name symbolic all branches tags remotes git-dir absolute-git-dir "
        "git-common-dir git-path show-toplevel show-prefix show-cdup show-superproject-working-tree show-object-format "
        "is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository path-format revs-only "
        "no-revs flags no-flags since until default",
    ),
    "cat-file": safe_options("etsp", "", "batch batch-check batch-all-objects buffer unordered use-mailmap"),
    "merge-base": safe_options("a", "", "all octopus independent is-ancestor fork-point"),
    "name-rev": safe_options(long="tags refs exclude all name-only always undefined"),
    "show-ref": safe_options("dqs", "", "head heads branches tags dereference hash verify abbrev quiet exists"),
    "for-each-ref": SafeOptions(
        long=word_set(
            "count sort format points-at merged no-merged contains no-contains ignore-case exclude omit-empty"
        ),
        never=_SIGNED_REFS,
    ),
    "cherry": safe_options("v", "", "abbrev"),
    "count-objects": safe_options("vH", "", "verbose human-readable"),
    "check-ignore": safe_options("qvzn", "", "quiet verbose non-matching no-index stdin"),
    "check-attr": safe_options("az", "", "all cached stdin"),
    "notes list": NO_OPTIONS,
    "notes show": NO_OPTIONS,
    "remote": SafeOptions("v", "", word_set("verbose"), operands=0),
    "remote get-url": safe_options(long="all push"),
    "remote show": safe_named_options("n"),
    "ls-remote": SafeOptions(
        "htq",
        "",
        word_set("heads branches tags refs quiet exit-code get-url symref"),
        never=re.compile("signature|::"),
        named=True,
    ),
    "submodule status": safe_options(long="cached"),
    "worktree list": safe_options("v", "", "porcelain verbose"),
    # what lists, and makes what takes nothing away
    "branch": SafeOptions(
        "avrlqi",
        "",
        word_set(
            "all remotes list verbose quiet abbrev no-abbrev sort merged no-merged contains no-contains points-at "
            "format show-current column no-column color no-color ignore-case no-track omit-empty"
        ),
        never=_SIGNED_REFS,
    ),
    # An annotated one without -m starts an editor.
    "tag": SafeOptions(
        f"lni{_NUMBERS}",
        "m",
        word_set(
            "list message sort format contains no-contains merged no-merged points-at column no-column color no-color "
            "ignore-case omit-empty"
        ),
        never=_SIGNED_REFS,
    ),
    # what changes, as its words say
    "add": safe_options(
        "AunvN", "", "all no-all update dry-run verbose intent-to-add refresh ignore-errors ignore-removal chmod"
    ),
    "commit": safe_options(
        "aqvsz",
        "mu",
        "all message quiet verbose signoff no-signoff no-edit allow-empty status no-status dry-run short branch "
        "porcelain long null only include untracked-files cleanup verify",
    ),
    "mv": safe_options("nvk", "", "dry-run verbose"),
    "rm": safe_named_options("rnq", "", "cached dry-run quiet ignore-unmatch"),
    # Of a file, or of everything, these throw work away: only what makes a branch, or leaves the files, is here.
    "checkout -b": SafeOptions("q", "", word_set("quiet no-track progress no-progress"), operands=2),
    **dict.fromkeys(("restore --staged", "restore -S"), safe_options("q", "", "quiet")),
    "switch": safe_options("cdq", "", "create detach quiet no-track guess no-guess progress no-progress"),
    **dict.fromkeys(("reset HEAD", "reset --"), safe_options("q", "", "quiet")),
    "reset": SafeOptions("q", "", word_set("quiet mixed"), operands=0),
    "stash": SafeOptions("ukq", "", word_set("include-untracked keep-index quiet"), operands=0),
    "stash push": safe_options("ukqS", "m", "include-untracked keep-index no-keep-index quiet staged message"),
    **dict.fromkeys(("stash apply", "stash pop"), _UNSTAGES),
    "apply": safe_named_options(
        "v3Rqz",
        "pC",
        "check stat numstat summary index cached 3way reverse recount verbose quiet whitespace ignore-whitespace "
        "ignore-space-change unidiff-zero",
    ),
    "merge": safe_named_options(
        "nqv", "m", "ff no-ff ff-only commit no-commit no-edit squash stat no-stat quiet verbose message progress"
    ),
    "cherry-pick": safe_named_options("nx", "m", "no-commit ff allow-empty mainline"),
    "revert": safe_options("n", "m", "no-commit no-edit"),
    "format-patch": safe_options(
        f"nNks{_NUMBERS}", "", "stdout numbered no-numbered signoff cover-letter no-signature"
    ),
    "archive": safe_options(f"lv{_NUMBERS}", "", "list verbose prefix"),
    "init": SafeOptions("qb", "", word_set("quiet initial-branch bare object-format"), stays_inside=True),
    # what talks with others
    "clone": SafeOptions(
        "qvnl46",
        "bj",
        word_set("quiet verbose progress no-checkout bare depth branch single-branch no-single-branch no-tags filter"),
        never=_HELPER,
        named=True,
    ),
    "fetch": SafeOptions(
        "qvatnk46", "j", word_set(f"{_FETCH} multiple jobs atomic"), unsafe_prefixes=("+",), never=_HELPER, named=True
    ),
    "pull": SafeOptions(
        "qvat46",
        "",
        word_set(f"{_FETCH} rebase no-rebase ff no-ff ff-only commit no-commit no-edit stat no-stat squash autostash"),
        # --rebase=interactive starts an editor.
        never=re.compile(rf"^--rebase=(?!(?:true|false|merges)$)|{_HELPER.pattern}"),
        unsafe_prefixes=("+",),
        named=True,
    ),
    "push": SafeOptions(
        "qvnu46",
        "",
        word_set("set-upstream quiet verbose dry-run atomic progress no-progress porcelain"),
        unsafe_prefixes=("+", ":"),
        never=_HELPER,
        named=True,
    ),
}
