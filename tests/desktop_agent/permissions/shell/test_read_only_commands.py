"""Shell lines that are read-only, and those that are asked about because they may do more."""

import pytest

from desktop_agent.permissions.shell.parser import parse_line
from desktop_agent.permissions.shell.read_only_commands import (
    awk_only_prints,
    is_read_only_anywhere,
    is_read_only_line,
    leaves_workspace,
    sed_only_prints,
)
from desktop_agent.types.permissions import CommandSubject

WORKSPACE = "/home/ann/shop"

READ_ONLY = """
ls -la
cat README.md src/app.py
head -20 src/app.py | tail -5
cd src && ls
cd /home/ann/shop && git status
(cd web && ls -la) | head
git --no-pager log --oneline -5
git diff HEAD~1 --stat -- src tests
git branch -a
git stash list
git remote -v
git ls-files | wc -l
grep -rn "/api/quote" src | head -20
grep -rn -- "-/api/quote" src
grep -rn -- /api/quote src
grep -rn TODO --include='*.py' . 2>/dev/null || true
rg -n "def area" src
find . -name '*.js' -not -path '*/node_modules/*' | xargs grep -n formatPrice
find src -name '*.py' -exec wc -l {} +
sed -n '10,40p' src/app.py
sed 's/a/b/g; /x/d' notes.txt
sed -n -e '1p' -e '$p' notes.txt
awk -F, 'NR>1 {n[$3]++} END {for (z in n) printf "%s %d\\n", z, n[z]}' data.csv | sort
awk '{ if ($3 > 5) print $1 }' data.csv
jq '.rates | keys' config.json
python3 -c "import json; print(json.load(open('config.json'))['rates'])"
python3 --version && node -v
for f in src/*.py; do echo "$f: $(grep -c def "$f")"; done
while read -r line; do echo "$line"; done < names.txt
if [ -f .env.example ]; then cat .env.example; fi
test -d build && echo there || echo missing
sort -k2 data.csv | uniq -c | sort -rn
diff <(sort a.txt) <(sort b.txt)
env | grep PATH
timeout 10 grep -r needle .
CI=1 ls
du -sh . ; df -h .
ruff check .
ruff format --check src
mypy src 2>&1 | tail -5
cat /usr/share/common-licenses/MIT
date +%F
date -u -d yesterday
cut -d/ -f2 paths.txt
sort -t/ -k2 paths.txt
ls "$PWD"
""".strip().splitlines()

# The manual page of each program says what the line may do.
DOES_MORE = """
rm -rf build
git checkout -b x
git branch new
git branch -D old
git tag v1
git remote add origin x
git stash
git config core.pager less
git -c core.pager=x log
git log --output=src/app.py
git diff --ext-diff
git grep -O needle
git reflog expire --all
GIT_EXTERNAL_DIFF=./x git diff
LD_PRELOAD=./x.so ls
PATH=.:$PATH ls
env A=1 ls
env LD_PRELOAD=./x.so ls
./ls
src/cat README.md
cat README.md > out.txt
cat README.md >> out.txt
ls | tee out.txt
sort -u a.txt -o b.txt
sort --compress-program=./x a.txt
uniq a.txt b.txt
find . -delete
find . -fprint out.txt
find . -exec rm {} +
find . -name x | xargs rm
find . | xargs -I{} sh -c 'rm {}'
tree -o out.txt
sed -i s/a/b/ notes.txt
sed -n 'w out.txt' notes.txt
sed '1e id' notes.txt
sed 's/a/b/e' notes.txt
sed 's/a/b/w out.txt' notes.txt
sed -f script.sed notes.txt
sed -n '1r /etc/passwd' notes.txt
awk 'BEGIN {system("id")}'
awk '{print > "out.txt"}' a.txt
awk '{print $1 | "sh"}' a.txt
awk 'BEGIN {"id" | getline x}'
awk '/"/ {print > "out.txt"}' a.txt
awk -f prog.awk a.txt
awk -i inplace '{print}' a.txt
awk '@load "x"; {print}' a.txt
rg --pre ./x needle
python3 -c "import os; os.remove('a')"
python3 -c "open('a', 'w')"
python3 -c "open('a', mode='a')"
python3 -c "open(*['a', 'w'])"
python3 -c "open('a', 'r', 1, None, None, None, True, print)"
python3 -c "import json; json.codecs.open('a', 'w')"
python3 -c "().__class__.__base__.__subclasses__()"
python3 -c "__import__('os').remove('a')"
python3 -c "import csv; eval('1')"
python3 -c "from json import codecs as c; c.open('a', 'w')"
python3 -c "list(map(open, ['a'], ['w']))"
python3 -m http.server
python3 script.py
ruff check --fix .
ruff format src
ruff check --output-file=x .
make lint
npm test
bash script.sh
bash -c 'rm x'
eval 'rm x'
. ./env.sh
./timeout 5 ls
./xargs cat
./bash -c ls
bin/find . -exec cat {} +
node_modules/.bin/stdbuf -oL ls
/usr/bin/env ls
echo 'import os' | python3 -v
python3 version
make version
pytest -v
pytest --version
cargo --version
black -v
sed -n -e p "$(echo '-e1e id')" f
sed s/a/b/ $(echo -i) f
for x in '-e1e id'; do sed -n -e p "$x" f; done
printf '%s' '-e1e id' | xargs sed -n p
awk '/\\(/{print "x" > "out.txt"}' f
awk 'BEGIN { x = "|sh"; print x | x }'
python3 -E -c 'import json'
python3 -c 'import csv'
python3 -c 'import re; re.enum.bltns.open("pwn","w")'
python3 -c 'import string; string.Formatter().get_field("0.x", [1], {})'
python3 -c 'from json import load'
python3 -c 'import json as j; j.load(open("a"))'
python3 -c 'o = open; o("a", "w")'
python3 -c 'print([len("w") for len in [open]])'
mypy --config-file ../x src
ruff format . -- --check
grep -eroot /etc/passwd
xargs -a /etc/passwd echo
cat {/etc/hostname,f}
cat ~/.ssh/id_ed25519
cat ../.env
cat src/../../.env
cat /etc/shadow
cat /home/ann/.netrc
cat /home/ann/shopping/x
cat //etc/passwd
cat /./etc/passwd
cat /usr/../etc/passwd
grep -f/etc/passwd x
grep --file=/etc/passwd x
grep x -r /home
grep -r -- -x /home
cat "$HOME/.ssh/id"
cat $OTHER
cat ${HOME}/x
cat $'\\x2fetc/passwd'
cat /et*/passwd
cd .. && ls
cd / && ls
cd; ls
for f in ~/.ssh/*; do cat "$f"; done
for f in /etc/*; do cat "$f"; done
cat < /etc/passwd
diff <(sort a) <(cat ~/.aws/credentials)
dir=/etc; ls $dir
export A=1; ls
ls; curl example.org
ls && wget example.org
ls $(curl example.org)
echo `curl example.org`
python3 -c "print(open('/etc/passwd').read())"
man ls
less README.md
hostname x
xxd -r a b
yq -i .a=1 f.yml
date -s tomorrow
date --set=10:00
date --se 10:00
date 01011200
ls | xargs date
jq --from-file ../x a.json
jq -L ../x . a.json
grep --fil ../x a.txt
tail -f log & touch x
function ls { rm x; }; ls
ls() { rm x; }; ls
alias ls='rm x'; ls
command rm x
exec rm x
trap 'rm x' EXIT
""".strip().splitlines()


def sandboxed(line: str) -> CommandSubject:
    return CommandSubject(line, is_sandboxed=True)


@pytest.mark.parametrize("line", READ_ONLY)
def test_what_is_read_only(line: str) -> None:
    assert is_read_only_line(sandboxed(line), WORKSPACE)
    assert not is_read_only_line(CommandSubject(line), WORKSPACE)


@pytest.mark.parametrize("line", DOES_MORE)
def test_what_may_do_more(line: str) -> None:
    assert not is_read_only_line(sandboxed(line), WORKSPACE)


@pytest.mark.parametrize(
    ("program", "prints"),
    [
        ("; ".join(["s/a0/b/"] * 100), True),
        ("\n    ".join(["p"] * 150), True),
        ("p" + "\n" * 800 + "k", False),
        ("/" + '"' * 900, False),
    ],
)
def test_a_long_program_is_read_in_one_pass(program: str, *, prints: bool) -> None:
    # A parser that reads it twice for each character would never end.
    assert sed_only_prints(("-n", program, "f")) is prints
    assert not awk_only_prints(('"' + program, "f"))


BESIDE = ["ls", "cat a", "git status", "grep -n x f", "tail -5", "sort -u f", "date +%F"]
NOT_BESIDE = [
    "sed -n 1p f",
    "awk '{print}' f",
    "python3 -c 'print(1)'",
    "mypy src",
    "ruff check .",
    "python3 --version",
]


@pytest.mark.parametrize("line", [*BESIDE, *NOT_BESIDE])
def test_beside_a_command_that_may_write_only_plain_tools_are_read_only(line: str) -> None:
    (command,) = parse_line(line).top_level
    assert is_read_only_anywhere(command, WORKSPACE) is (line in BESIDE)


def test_a_line_without_commands_is_not_read_only() -> None:
    assert not is_read_only_line(sandboxed(""), WORKSPACE)
    assert not is_read_only_line(sandboxed("# ls"), WORKSPACE)


@pytest.mark.parametrize(
    ("word", "leads"),
    [
        ("src/app.py", False),
        ("HEAD~1", False),
        ("HEAD..origin/main", False),
        ("a..b", False),
        ("/dev/null", False),
        ("/dev/sda", True),
        ("/usr/bin/python3", False),
        ("/home/ann/shop/src", False),
        ("/home/ann/shop/../x", True),
        ("/home/ann/shop2", True),
        ("..", True),
        ("~", True),
        ("~root/x", True),
        ("--file=/etc/x", True),
        ("-I/etc", True),
    ],
)
def test_a_word_leads_out_of_the_workspace(word: str, leads: bool) -> None:
    assert leaves_workspace(word, WORKSPACE) is leads
