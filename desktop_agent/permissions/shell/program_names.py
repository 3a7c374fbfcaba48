"""Programs of which the name does not say what they do: their words do, and may name another program."""

from desktop_agent.permissions.shell.nodes import word_set
from desktop_agent.permissions.shell.wrappers import OPAQUE

# Allowed by their first words they would do anything.
DO_ANYTHING = OPAQUE | word_set(
    "awk gawk mawk sed perl ruby node deno bun php lua make ssh scp rsync docker podman kubectl rm dd mv cp tee curl "
    "wget vim vi tar npx uvx ln install chmod chown chgrp truncate shred unlink patch kill killall pkill sqlite3 psql "
    "mysql ed ex emacs nano tmux screen ftp sftp nc ncat socat telnet m4 gnuplot tclsh julia Rscript java osascript "
    "pypy tsx ts-node cmake ninja rake just ant bazel tox nox pipx pipenv hatch pdm conda coverage valgrind hyperfine "
    "watchexec nodemon ansible vagrant wine ldd nawk original-awk ack pcre2grep pcregrep csplit rename prename view "
    "vimdiff nvim rvim emacsclient info pandoc latexmk pdflatex xelatex lualatex ipython jupyter gpg gpg2 ssh-keygen "
    "ssh-add openssl tcpdump nmap history gh glab hub aws gcloud az http https xh aria2c httpie lftp rclone ip "
    "sudoedit elixir erl iex groovy scala ghci swift dart zig rustc javac ld flatpak snap distrobox git-shell bundle "
    "pyenv rbenv nodenv asdf mise direnv"
)
# Words behind a program's name after which stands what it starts.
START_WHAT_FOLLOWS = word_set("run exec x dlx")
# These start what they are given first.
START_AT_ONCE = word_set("npx uvx bunx pnpx")
# They start nothing, whatever their words are, unless one of these reaches further.
START_NOTHING = word_set(
    "echo printf cat tac nl ls grep egrep fgrep zgrep rg ag wc head tail cd pwd mkdir touch which whereis type man "
    "whatis apropos test [ true false sort uniq cut tr diff cmp comm stat file du df date basename dirname realpath "
    "readlink sleep seq tree jq less more sha256sum md5sum id whoami uname hostname ps"
)
# What looks like a path is none to them, or nothing that they read.
READ_NO_FILES = word_set("echo printf test [ basename dirname expr which whereis type man true false sleep seq")
# Whatever stands behind their names, they do what their names say, with what is in the folder, or are asked about.
SAY_ALL = START_NOTHING | word_set(
    "pytest jest vitest mocha ctest phpunit rspec tsc mypy pylint flake8 black isort pyright basedpyright pyflakes "
    "pycodestyle pydocstyle bandit vulture eslint prettier shellcheck hadolint yamllint codespell clang-format gofmt "
    "rustfmt find fd fdfind ag bat batcat xxd shuf iconv yq split zip zipinfo gcc g++ cc c++ clang clang++ cpio "
    "sdiff diff3 strings md5 md5sum sha1sum sha512sum cksum b2sum cal expr column fold fmt join paste rev tsort "
    "unexpand expand od hexdump free uptime lscpu lsblk lsof nproc printenv locale tty groups who w pgrep pstree "
    "tokei scc"
)
