"""Safe options of programs that can be made to start others, to write files, or to destroy.

A program that is not listed does as its name says, whatever its options are, or is held by the sandbox alone: one that
tests, or builds, runs what is in the folder in any case. Where operands are `named`, they say what happens: which
package is installed, which branch is sent where.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from desktop_agent.permissions.shell.safe_options import (
    GIT_OPTIONS,
    NO_OPERANDS,
    NO_OPTIONS,
    SafeOptions,
    safe_named_options,
    safe_options,
)
from desktop_agent.permissions.shell.syntax import word_set

_FIND_EXPRESSIONS = re.compile(
    r"-(?:[HLP]+|O\d|a|and|o|or|not|daystart|d|depth|follow|maxdepth|mindepth|mount|noleaf|nowarn|warn|xdev|regextype"
    r"|[acm]min|[acm]newer|newer(?:[aBcm][aBcmt])?|[acm]time|empty|executable|readable|writable|false|true|fstype|gid"
    r"|uid|group|user|nogroup|nouser|i?lname|i?name|i?path|i?regex|i?wholename|inum|links|perm|samefile|size|type"
    r"|xtype|used|print0?|printf|ls|prune|quit"
    # Values: less than so many, and bits of which all are set.
    r"|\d+[cwbkMGT]?|[ugoa]*[-+=][rwxst]+)"
)
# Not `-E`, `-S`, `-M` and `-x`, with which it writes what text it is given.
_COMPILER_OPTIONS = re.compile(
    r"-(?:[cvws]|M(?:M?D|[PGTFQ])|O\w*|g(?:\d|gdb\d?|dwarf(?:-\d)?)?|std=[\w+:]+|W(?:no-)?[a-z][\w=+-]*|[IDUlL].*|o|shared|static|pthread"
    r"|pedantic(?:-errors)?|pipe|f(?:PIC|PIE|pic|pie)|fno-[a-z-]+|fsanitize=[\w,-]+|fsyntax-only|f(?:diagnostics-)?color"
    r"[\w=-]*|m(?:arch|tune)=[\w.-]+|m32|m64|ansi|include|isystem)"
)
# Behind @ arguments are read from a file; plugins, wrappers and other places of its own parts are not here.
_COMPILER = SafeOptions(
    words=_COMPILER_OPTIONS, unsafe_prefixes=("@",), stays_inside=True, writes=re.compile("-(?:o|MF)")
)
_GO = SafeOptions(
    words=re.compile(
        r"--?(?:v|n|x|a|race|msan|short|cover|benchmem|json|failfast|trimpath|m|u"
        r"|(?:run|skip|bench|count|timeout|parallel|cpu|benchtime|shuffle|p|tags|mod|covermode|o|f)(?:=.*)?)"
    ),
    stays_inside=True,
    writes=re.compile("--?o"),
)
_CARGO = safe_options(
    "vqrp",
    "jF",
    "release workspace all all-targets all-features no-default-features features package exclude lib bins bin tests "
    "test examples example benches bench locked offline frozen verbose quiet jobs message-format keep-going no-run "
    "no-fail-fast profile color no-deps format-version",
)
# Behind the dashes stand options of the tests: of these some write files.
_CARGO_TESTS = replace(
    _CARGO,
    passes_on=True,
    words=re.compile(
        "--|--(?:nocapture|no-capture|show-output|ignored|include-ignored|exact|skip|test-threads)(?:=.*)?"
    ),
)
_NPM = safe_options("swDE", "", "silent if-present ignore-scripts save save-dev save-exact")
_NPM_INSTALL = safe_named_options("swDE", "", "silent if-present ignore-scripts save save-dev save-exact")
_PIP_LIST = safe_options(
    "qvuoel", "", "quiet verbose outdated uptodate editable local user format not-required files all"
)
_RUFF_WALKS = (
    "diff preview no-preview target-version exclude extend-exclude respect-gitignore no-respect-gitignore "
    "force-exclude no-force-exclude no-cache isolated verbose quiet silent color output-format"
)
_UV = safe_options("qv", "", "quiet verbose frozen locked dev no-dev all-extras extra group all-groups offline upgrade")
_NAMES_PACKAGES = safe_named_options("qv", "", "quiet verbose frozen locked dev group offline")
_NPM_LIKE: Mapping[str, SafeOptions | None] = {
    **dict.fromkeys(word_set("list outdated"), NO_OPTIONS),
    "test": SafeOptions(stays_inside=True, passes_on=True),
    "start": NO_OPERANDS,
    "install": safe_named_options(),
    "run": None,
}
_APT: Mapping[str, SafeOptions | None] = {
    **dict.fromkeys(word_set("list search show update"), safe_options("qy", "", "quiet yes installed upgradable")),
    "install": safe_named_options("qy", "", "quiet yes"),
}
# What begins with a slash is an option as well, and sets properties: with them a build runs anything.
_DOTNET = SafeOptions(
    words=re.compile(r"-[cf]|-v(?::\w+)?"),
    long=word_set("configuration framework verbosity filter no-build no-restore nologo list-tests verify-no-changes"),
    unsafe_prefixes=("/", "@"),
    stays_inside=True,
    passes_on=True,
)
# With these a program of theirs reads files of any name, which it may put together.
_READS_MORE = re.compile(r"(?<![.\w\"])(?:import|include|eval|(?:(?:str|xml|props|base64)_?)?load)")
_QUIET = safe_options("qv", "", "quiet verbose")
_GOALS = SafeOptions("q", long=word_set("quiet"), operands=0)


def _safe_inside_folder(flags: str = "", valued: str = "", long: str = "") -> SafeOptions:
    """Options of a program that does to a folder what it is asked to do in this one."""
    return replace(safe_options(flags, valued, long), stays_inside=True)


PROGRAM_OPTIONS: Mapping[str, SafeOptions] = {
    "sort": safe_options(
        "bdfghiMnRrVcCmsuz",
        "kSt",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
        "human-numeric-sort numeric-sort random-sort reverse sort version-sort batch-size check debug key merge stable "
        "buffer-size field-separator parallel unique zero-terminated",
    ),
    "touch": _safe_inside_folder("acm", "", "no-create"),
    "mkdir": _safe_inside_folder("pv", "m", "parents verbose mode"),
    # With a word of its own it gives the machine another name; with figures alone `date` sets the clock.
    "hostname": SafeOptions("fisdIA", operands=0),
    "date": SafeOptions(
        "uR", "dIr", word_set("utc date iso-8601 rfc-3339 rfc-email reference"), never=re.compile(r"^\d[\d.]*$")
    ),
    "find": SafeOptions(words=_FIND_EXPRESSIONS),
    "rg": safe_options(
        "abcFHhiIlLnNopPqsSuUvVwx0.",
        "ABCegmtTjrMEd",
        "after-context before-context context regexp glob iglob max-count type type-not type-list threads replace "
        "max-columns encoding max-depth text byte-offset count count-matches fixed-strings with-filename no-filename "
        "ignore-case no-ignore no-ignore-vcs no-ignore-parent files files-with-matches files-without-match follow "
        "line-number no-line-number only-matching passthru pcre2 pretty quiet case-sensitive smart-case unrestricted "
        "multiline multiline-dotall invert-match version word-regexp line-regexp null hidden color colors column json "
        "heading no-heading no-config no-messages sort sortr stats trim vimgrep max-filesize one-file-system debug "
        "crlf auto-hybrid-regex engine context-separator max-columns-preview block-buffered line-buffered",
    ),
    "ag": safe_options(
        "aciLlnQsSuvwzgG0", "ABCm", "after before context count ignore-case literal hidden nocolor color"
    ),
    # Its letters never have the rest of their word for a value.
    "tree": safe_options(
        "adflxqNQpugshDFvtcUrnCASJXiLPI0123456789",
        long="dirsfirst filesfirst noreport gitignore prune charset filelimit si du inodes device sort ignore-case "
        "matchdirs metafirst",
    ),
    "man": safe_options("afkwWiIu", "sS", "all whatis apropos where path location regex wildcard names-only sections"),
    "less": SafeOptions(
        "aeEFfgGiIJmMnNqQrRsSuUVwWX",
        long=word_set(
            "chop-long-lines LINE-NUMBERS RAW-CONTROL-CHARS quit-if-one-screen no-init ignore-case use-color"
        ),
        # Behind a plus stands a command of its own.
        unsafe_prefixes=("+",),
    ),
    **dict.fromkeys(
        ("bat", "batcat"), safe_options("npAud", "lrHm", "plain number language line-range highlight-line style color")
    ),
    # What they are given second they write to.
    "uniq": SafeOptions(
        "cdDiuz0123456789", "fsw", word_set("count repeated all-repeated group ignore-case unique"), operands=1
    ),
    "xxd": SafeOptions("abeiupE", "cgls", operands=1),
    "shuf": safe_options("erz", "in", "echo input-range head-count repeat zero-terminated"),
    "iconv": safe_options("lcs", "ft", "from-code to-code list"),
    "yq": replace(
        safe_options("rjcPeNn", "op", "raw-output prettyPrint no-colors output-format input-format"), never=_READS_MORE
    ),
    "jq": replace(
        safe_options(
            "nrcjaSsCMeR",
            "",
            "null-input raw-output compact-output join-output ascii-output sort-keys slurp color-output "
            "monochrome-output exit-status raw-input raw-output0 arg argjson args jsonargs slurpfile rawfile tab "
            "indent stream stream-errors seq unbuffered version",
        ),
        never=_READS_MORE,
    ),
    # The second is how the files that it writes begin.
    "split": SafeOptions(
        "dex", "abClnt", word_set("bytes lines number suffix-length numeric-suffixes verbose"), operands=1
    ),
    "zip": safe_named_options("rqjuvxi0123456789", "", "recurse-paths quiet junk-paths update exclude include"),
    # Plugins, settings and folders from elsewhere are not here, nor what writes a report or empties a folder.
    **dict.fromkeys(
        ("pytest", "py.test"),
        SafeOptions(
            "qvxslhV",
            "krmn",
            word_set(
                "quiet verbose exitfirst maxfail last-failed lf failed-first ff new-first nf stepwise sw stepwise-skip "
                "cache-show collect-only co tb capture showlocals no-showlocals show-capture color code-highlight "
                "durations durations-min disable-warnings disable-pytest-warnings no-header no-summary strict "
                "strict-markers strict-config runxfail ignore ignore-glob deselect keep-duplicates markers fixtures "
                "fixtures-per-test setup-show setup-only setup-plan doctest-modules doctest-continue-on-failure "
                "numprocesses dist maxprocesses timeout reruns count cov cov-branch cov-fail-under no-cov "
                "no-cov-on-fail version help verbosity"
            ),
            words=re.compile(r"--cov-report=term[\w:-]*"),
            # Behind @ it reads arguments from a file.
            unsafe_prefixes=("@",),
            stays_inside=True,
        ),
    ),
    **dict.fromkeys(("cpio", "sdiff", "diff3"), NO_OPTIONS),
    "pylint": safe_options("Evjde", "", "disable enable output-format reports score jobs errors-only recursive ignore"),
    "mypy": SafeOptions(
        "v",
        "mp",
        word_set("strict ignore-missing-imports show-error-codes pretty no-error-summary no-incremental"),
        unsafe_prefixes=("@",),
    ),
    "unittest": _safe_inside_folder(
        "vfbqc", "kspt", "verbose quiet failfast catch buffer locals start-directory pattern top-level-directory"
    ),
    # Left out: settings and words from elsewhere, what writes a report, and what is made anew all over the folder.
    "bandit": _safe_inside_folder(
        "rqvli", "fxst", "recursive quiet verbose severity-level confidence-level exclude skip tests format"
    ),
    "clang-format": SafeOptions("ni", long=word_set("dry-run Werror verbose"), words=re.compile(r"--?style=\w+")),
    "codespell": _safe_inside_folder(
        "qd", "LS", "quiet-level ignore-words-list skip count check-filenames check-hidden"
    ),
    "file": _safe_inside_folder(
        "biLkNnprsz0", "eF", "brief mime mime-type mime-encoding dereference keep-going no-buffer"
    ),
    **dict.fromkeys(
        ("fd", "fdfind"),
        _safe_inside_folder("HIgsiaLp0", "tedE", "hidden no-ignore glob type extension exclude max-depth"),
    ),
    "gofmt": _safe_inside_folder("lwsde"),
    "hadolint": _safe_inside_folder(valued="f", long="format failure-threshold ignore no-color no-fail"),
    "pycodestyle": _safe_inside_folder(
        "vqr", "", "first statistics count max-line-length select ignore exclude show-source"
    ),
    "pydocstyle": _safe_inside_folder(
        "vesd", "", "explain source convention select ignore add-ignore add-select match count"
    ),
    **dict.fromkeys(("pyflakes", "zipinfo"), _safe_inside_folder()),
    "rustfmt": _safe_inside_folder("vq", "", "check edition color verbose quiet"),
    "scc": _safe_inside_folder("wz", "fse", "by-file wide no-cocomo no-complexity format sort exclude-dir"),
    "shellcheck": _safe_inside_folder(
        "xaC", "sfeioSW", "severity format shell exclude include enable color external-sources"
    ),
    "tokei": _safe_inside_folder("Cf", "st", "files compact sort type exclude hidden no-ignore"),
    "vulture": _safe_inside_folder("v", "", "min-confidence exclude ignore-names sort-by-size verbose"),
    "yamllint": _safe_inside_folder("s", "f", "strict format no-warnings"),
    "flake8": safe_options(
        "qv", "j", "select ignore extend-ignore extend-select max-line-length statistics count exclude"
    ),
    "black": _safe_inside_folder(
        "qvlt", "", "check diff color quiet verbose line-length target-version fast safe exclude include"
    ),
    "isort": _safe_inside_folder("cqv", "", "check check-only diff quiet verbose profile line-length"),
    **dict.fromkeys(("pyright", "basedpyright"), safe_options(long="outputjson stats warnings level verbose")),
    "eslint": _safe_inside_folder(
        long="fix fix-dry-run quiet max-warnings ext no-error-on-unmatched-pattern color no-color "
        "report-unused-disable-directives"
    ),
    "prettier": _safe_inside_folder(
        "clwu", "", "check write list-different ignore-unknown log-level loglevel color no-color"
    ),
    # Settings, plugins and reporters from elsewhere are programs.
    "jest": _safe_inside_folder(
        "io",
        "tw",
        "verbose silent coverage no-coverage ci bail runInBand testNamePattern testPathPattern maxWorkers "
        "passWithNoTests updateSnapshot onlyChanged detectOpenHandles forceExit colors listTests json",
    ),
    "vitest": _safe_inside_folder(
        "u", "t", "run silent bail passWithNoTests update testNamePattern coverage no-coverage"
    ),
    "mocha": _safe_inside_folder(
        "b", "g", "grep bail recursive timeout parallel forbid-only exit color no-color retries invert"
    ),
    "rspec": _safe_inside_folder(
        "cb", "fet", "format color no-color fail-fast only-failures next-failure tag example profile seed order dry-run"
    ),
    "phpunit": _safe_inside_folder(
        long="filter testsuite group exclude-group colors verbose stop-on-failure stop-on-error testdox list-tests "
        "no-coverage order-by debug"
    ),
    "ctest": _safe_inside_folder(
        "VQN",
        "RELj",
        "output-on-failure verbose rerun-failed test-dir parallel progress stop-on-failure timeout show-only",
    ),
    "tsc": SafeOptions(
        "bp",
        long=word_set("noEmit build project incremental pretty skipLibCheck strict listFiles version"),
        unsafe_prefixes=("@",),
        stays_inside=True,
    ),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
}

# Of these programs the first word says little. None: whatever stands behind the words is a command of its own.
SUBCOMMAND_OPTIONS: Mapping[str, Mapping[str, SafeOptions | None]] = {
    "git": GIT_OPTIONS,
    "ruff": {
        "check": SafeOptions(
            "ensvq",
            "",
            word_set(
                f"{_RUFF_WALKS} fix no-fix unsafe-fixes no-unsafe-fixes show-fixes fix-only ignore-noqa statistics "
                "show-files show-settings select ignore extend-select extend-ignore per-file-ignores "
                "extend-per-file-ignores fixable unfixable extend-fixable exit-zero exit-non-zero-on-fix"
            ),
            # Behind @ it reads arguments from a file.
            unsafe_prefixes=("@",),
            stays_inside=True,
        ),
        "format": SafeOptions(
            "nsvq",
            "",
            word_set(f"{_RUFF_WALKS} check line-length range exit-non-zero-on-format"),
            unsafe_prefixes=("@",),
            stays_inside=True,
        ),
    },
    "npm": {
        **dict.fromkeys(word_set("ls list outdated view"), _NPM),
        "test": replace(_NPM, stays_inside=True, passes_on=True),
        "start": replace(_NPM, operands=0, passes_on=True),
        # The script, and nothing for it.
        "run": replace(_NPM, operands=1, passes_on=True),
        # `audit fix` changes what is installed.
        **dict.fromkeys(word_set("ci audit"), replace(_NPM, operands=0)),
        "install": _NPM_INSTALL,
    },
    "pnpm": _NPM_LIKE,
    "yarn": _NPM_LIKE,
    "cargo": {
        **dict.fromkeys(word_set("build check doc tree metadata update"), _CARGO),
        **dict.fromkeys(word_set("test bench"), _CARGO_TESTS),
        "clippy": replace(_CARGO, passes_on=True),
        "fmt": SafeOptions("qv", long=word_set("all check quiet verbose package"), passes_on=True),
        "run": None,
    },
    "go": {
        **dict.fromkeys(word_set("build test vet fmt list version doc"), _GO),
        "run": None,
    },
    "pip": {
        # Files and folders stand in words of their own: a rule is about these alone.
        "install": SafeOptions(
            "Uqv",
            long=word_set("upgrade quiet verbose no-deps pre dry-run no-input no-cache-dir"),
            words=re.compile("-[re]|--(?:requirement|constraint|editable)"),
            named=True,
        ),
        **dict.fromkeys(word_set("list show freeze check"), _PIP_LIST),
    },
    "uv": {
        **dict.fromkeys(word_set("sync lock tree"), _UV),
        **dict.fromkeys(word_set("add remove"), _NAMES_PACKAGES),
        "run": None,
    },
    "poetry": {
        **dict.fromkeys(word_set("install lock show check"), _QUIET),
        "add": _NAMES_PACKAGES,
        "run": None,
    },
    "dotnet": {**dict.fromkeys(word_set("build test restore format"), _DOTNET), "run": None},
    # What stands behind one goal is another.
    "mvn": dict.fromkeys(word_set("test compile package verify"), _GOALS),
    "gradle": dict.fromkeys(word_set("build test check assemble"), _GOALS),
    "rustup": {"show": NO_OPTIONS},
    "helm": dict.fromkeys(word_set("list status lint"), NO_OPTIONS),
    "terraform": dict.fromkeys(word_set("validate fmt"), NO_OPTIONS),
    "systemctl": dict.fromkeys(word_set("status list-units is-active is-enabled"), NO_OPTIONS),
    "brew": {
        **dict.fromkeys(word_set("list info search"), NO_OPTIONS),
        **dict.fromkeys(word_set("install upgrade"), safe_named_options()),
        "update": NO_OPERANDS,
    },
    "apt": _APT,
    "apt-get": _APT,
}
