"""What a confined command may touch: the workspace, a folder of its own, and most of the system for reading."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Where the workspace is a home folder, commands write neither, and tools that touch files ask first.
# Below the home folder: keys, passwords, tokens, what was typed in shells, sessions of browsers, mail, sockets that act
# for the person, this program's own data.
PRIVATE = """
    .ssh .gnupg .aws .azure .kube .docker .netrc .git-credentials .npmrc .yarnrc.yml .pypirc .password-store .pki
    .pgpass .my.cnf .mylogin.cnf .vault-token .terraform.d .terraformrc .cargo/credentials .cargo/credentials.toml
    .gem/credentials .bundle/config .Xauthority .ICEauthority .s3cfg .boto .oci .bluemix .fly .kaggle .databrickscfg
    .snowflake .snowsql .dbt/profiles.yml .pulumi .vercel .netlify .wakatime.cfg .m2/settings.xml
    .m2/settings-security.xml .gradle/gradle.properties .composer/auth.json .nuget/NuGet/NuGet.Config .pip/pip.conf
    .age .claude.json .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .gemini/google_accounts.json
    .config/gh .config/glab-cli .config/git/credentials .config/gcloud .config/doctl .config/hub .config/op
    .config/rclone .config/sops .config/age .config/containers/auth.json .config/composer/auth.json .config/pip/pip.conf
    .config/NuGet/NuGet.Config .config/github-copilot .config/pulumi .config/fly .config/netlify .config/vercel
    .config/com.vercel.cli .config/stripe .config/heroku .config/helm .config/hcloud .config/configstore
    .config/desktop-agent .local/share/desktop-agent .local/state/desktop-agent .local/share/com.vercel.cli
    .local/share/keyrings .local/share/gnome-keyring .local/share/kwalletd .local/share/python_keyring
    .cache/huggingface/token .cache/huggingface/stored_tokens .huggingface/token
    .bash_history .zsh_history .zhistory .zsh_sessions .python_history .node_repl_history .irb_history .psql_history
    .mysql_history .mariadb_history .sqlite_history .rediscli_history .dbshell .mongodb .lesshst .viminfo
    .local/share/fish .config/fish/fish_variables .local/share/atuin .local/share/nvim/shada .local/state/nvim/shada
    .local/share/powershell .ipython/profile_default/history.sqlite .local/state/bash .local/state/zsh
    .local/state/python_history .local/state/psql_history .local/state/sqlite_history
    .config/Code/User/globalStorage .config/Code/User/History .config/VSCodium/User/globalStorage
    .config/VSCodium/User/History .config/Cursor .local/share/Cursor .config/Windsurf/User/globalStorage
    .config/Code/Cookies .config/Code/Network
    .mozilla .thunderbird .config/google-chrome .config/google-chrome-beta .config/chromium
    .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera .config/librewolf .librewolf .zen
    .waterfox .cache/mozilla .cache/google-chrome .cache/chromium .config/evolution .local/share/evolution
    .cache/evolution .config/Signal .config/Slack .config/discord .config/Element .config/1Password .1password
    .config/Bitwarden .bitwarden-ssh-agent.sock .config/KeePassXC .cache/keepassxc .local/share/TelegramDesktop
    .colima .orbstack .lima .rd .var/app snap
"""
# Below the home folder as well: what says which programs the person's own programs start.
STEERING = """
    .gitconfig .config/git .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv
    .zprofile .zlogin .zlogout .zsh .kshrc .mkshrc .cshrc .tcshrc .login .config/fish .config/zsh .config/powershell
    .inputrc .xprofile .xinitrc .xsession .xsessionrc .pam_environment .config/environment.d .config/autostart
    .config/autostart-scripts .config/plasma-workspace .config/systemd .local/share/systemd .local/share/applications
    .local/share/dbus-1 .local/share/kservices5 .local/bin bin Library/LaunchAgents Library/LaunchDaemons
    .vimrc .vim .config/nvim .emacs .emacs.d .config/emacs .tmux.conf .config/tmux .screenrc .gdbinit .lldbinit
    .config/direnv .direnvrc .mailcap .condarc .cargo/config .cargo/config.toml .cargo/env .cargo/bin .config/pip
    .npm-global .nvm .pyenv .rbenv .config/Code/User/settings.json .config/Code/User/tasks.json .vscode/extensions
"""
# XDG Base Directory Specification.
_MOVED = {
    ".config/": "XDG_CONFIG_HOME",
    ".local/share/": "XDG_DATA_HOME",
    ".local/state/": "XDG_STATE_HOME",
    ".cache/": "XDG_CACHE_HOME",
}
# What other programs leave for each other, and the sockets of services.
_SHARED = ("/tmp", "/var/tmp", "/run/user", "/dev/shm", "/var/snap/lxd", "/var/lib/lxd", "/var/lib/mysql")  # noqa: S108 - closed, not used


@dataclass(frozen=True, slots=True)
class Bounds:
    """Absolute paths without links. `hidden` is neither read nor written, but for what is writable in there.

    `read_only` is not to be written though it lies in what is writable, nor are the folders moved aside that are
    `pinned`, each of which comes before those in it. Not every confinement can hold these two. `closed` are places,
    there or not, that nobody writes: nothing is made, replaced or removed in a folder on the way to one.
    Where it `only_reads`, of the writable folders only the last, the command's own, may be written.
    """

    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    network: bool = False
    read_only: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()
    only_reads: bool = False

    def open_in(self, folder: Path) -> tuple[Path, ...]:
        """What of a writable folder may be written: itself, or what is in it now but for what is closed."""
        if self.only_reads and folder != self.writable[-1]:
            return ()
        below = tuple(each for each in self.closed if folder in each.parents)
        return tuple(around(folder, (*below, *self.hidden_below(folder)))) if below else (folder,)

    def hidden_below(self, folder: Path) -> tuple[Path, ...]:
        """What of a folder stays closed."""
        return tuple(each for each in self.hidden if folder in each.parents)


def bounds_for(workspace: Path, temporary: Path, own_folders: tuple[Path, ...], *, network: bool) -> Bounds:
    """The bounds of one command. `own_folders`: where this program keeps its data."""
    names = [place for each in PRIVATE.split() for place in places_of(each)]
    places = [*names, *own_folders, *map(Path, _SHARED)]
    hidden = dict.fromkeys(each.resolve() for each in places if os.path.lexists(each))
    writable = (workspace.resolve(), temporary.resolve())
    kept_away = tuple(each for each in hidden if each not in writable)
    return Bounds(writable, kept_away, network, closed=tuple(_closed_below(writable[0])))


def _closed_below(workspace: Path) -> Iterator[Path]:
    """Of a workspace that is a home folder, or has one in it: what is the person's own affair, there or not."""
    for name in (*PRIVATE.split(), *STEERING.split()):
        for place in places_of(name):
            found = {place.parent.resolve() / place.name, place.resolve()}
            yield from (each for each in found if workspace in each.parents)


def places_of(name: str) -> Iterator[Path]:
    """Where such a thing lies: below each home folder, and where the person moved such things to."""
    for home in _homes():
        yield home / name
    for usual, variable in _MOVED.items():
        moved = os.environ.get(variable)
        if moved and name.startswith(usual):
            yield Path(moved) / name.removeprefix(usual)


def _homes() -> tuple[Path, ...]:
    """As the environment says, and as the system knows it."""
    if sys.platform == "win32":
        return (Path.home(),)
    import pwd

    try:
        known = (Path(pwd.getpwuid(os.getuid()).pw_dir),)
    except KeyError:
        known = ()
    return tuple(dict.fromkeys((Path.home(), *known)))


def around(folder: Path, closed: tuple[Path, ...]) -> Iterator[Path]:
    """The fewest files and folders that together are everything below a folder, but for what is closed."""
    below = tuple(each for each in closed if folder in each.parents)
    if folder in closed:
        return
    if not below:
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            inside = [Path(entry.path) for entry in entries if not entry.is_symlink()]
    except OSError:
        return  # not ours to read
    for each in inside:
        yield from around(each, below)
