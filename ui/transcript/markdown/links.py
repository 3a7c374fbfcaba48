"""Where links lead: safe targets, hosts as they may be shown, and notes on links whose words claim another host."""

# ruff: noqa: RUF001 - signs that pass for others are what this is about.
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS
from desktop_agent.types.lookalikes import ascii_lookalike_in_host
from ui.style.text import show_hidden

_HIDDEN = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
_MAX_LABEL_LENGTH = 63
"""Of a label (RFC 1035); longer ones lead nowhere."""

# UAX 31, table 5, "Recommended Scripts", as the first words of the names of their letters.
_SCRIPTS = (
    "ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI HANGUL HEBREW"
    " HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU THAANA THAI"
    " TIBETAN"
)
_RECOMMENDED = frozenset(_SCRIPTS.split())
_SCRIPTS_USED_TOGETHER = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
# Whose mark is seen at a glance, also above the line under a link.
_LATIN = frozenset("ßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœāăćĉčďēĕěĝğĥĩīĭĵĺľńňōŏőŕřśŝšťũūŭůűŵŷźž")
_VIETNAMESE = "đơư" + "".join(map(chr, range(0x1EA1, 0x1EFA)))
# Others are seen where people write them.
_LATIN_OF = {
    "az": "əışç",
    "ba": "đ",
    "fo": "ð",
    "hr": "đ",
    "is": "ðþ",
    "lt": "ąęėįų",
    "lv": "ģķļņ",
    "md": "șțşţ",
    "me": "đ",
    "mt": "ċġħż",
    "pl": "ąęłż",
    "ro": "șțşţ",
    "rs": "đ",
    "tr": "ış",
    "vn": _VIETNAMESE,
}
# Signs of Chinese and Japanese that pass for marks where no other sign stands beside them.
_AMBIGUOUS_LETTERS = "ノンソゾーヽヾ一丨丶丿亅〇"
_EAST_ASIAN = "\u3041-\u30ff\u3400-\u9fff"
_AMBIGUOUS_ALONE = re.compile(f"(?<![{_EAST_ASIAN}])[{_AMBIGUOUS_LETTERS}]|[{_AMBIGUOUS_LETTERS}](?![{_EAST_ASIAN}])")
_ASCII_LETTER = re.compile(r"[a-z0-9]")


def skeleton(text: str) -> str:
    """With the ASCII letters that its letters pass for (UTS 39)."""
    if text.isascii():
        return text
    plain = ((char, ascii_lookalike_in_host(char)) for char in text)
    return "".join(like if like.isalpha() else char for char, like in plain)


def ascii_host(host: str) -> str:
    """As it is looked up (UTS 46): in small letters and punycode."""
    host = host.rstrip(".")
    return host.lower() if host.isascii() else ".".join(map(_label_in_ascii, host.split(".")))


def unicode_host(host: str) -> str:
    """In its own letters, which may deceive."""
    return ".".join(map(_label_in_unicode, host.lower().split("."))) if "xn--" in host.lower() else host.lower()


@lru_cache(maxsize=1024)
def display_host(host: str) -> str:
    """A host as it may be shown: in its own letters where they cannot pass for others, otherwise as punycode."""
    own = unicode_host(ascii_host(host))
    ending = ascii_host(own.rpartition(".")[2])
    return own if all(_is_plain(label, ending) for label in own.split(".")) else ascii_host(host)


def _label_in_ascii(label: str) -> str:
    # UTS 46 keeps these two, which other folding replaces.
    folded = "".join(each if each in "ßς" else each.casefold() for each in unicodedata.normalize("NFKC", label))
    folded = _HIDDEN.sub("", unicodedata.normalize("NFKC", folded))
    if folded.isascii() or len(folded) > _MAX_LABEL_LENGTH:
        return folded
    return f"xn--{folded.encode('punycode').decode('ascii')}"


def _label_in_unicode(label: str) -> str:
    if not label.startswith("xn--") or not label.isascii() or len(label) > _MAX_LABEL_LENGTH:
        return label
    try:
        own = label[4:].encode("ascii").decode("punycode")
    except ValueError:
        return label
    return own if _label_in_ascii(own) == label else label


def _is_plain(label: str, ending: str) -> bool:
    """Letters of one script, or of scripts that are written together; not a word of nothing but lookalikes."""
    if label.isascii():
        return not label.startswith("xn--")
    foreign = [char for char in label if not char.isascii()]
    if any(unicodedata.category(char)[0] not in "LM" for char in foreign):
        return False
    scripts = {_script(char) for char in label if not char.isascii() or char.isalpha()}
    together = len(scripts) == 1 or any(scripts <= allowed for allowed in _SCRIPTS_USED_TOGETHER)
    if not together or not scripts <= _RECOMMENDED:
        return False
    if any(_script(char) == "LATIN" and not _is_latin_of(char, ending) for char in foreign):
        return False
    if _ASCII_LETTER.search(label) and _AMBIGUOUS_ALONE.search(label):
        return False
    return not all(map(ascii_lookalike_in_host, foreign)) or "LATIN" in scripts


def _is_latin_of(char: str, ending: str) -> bool:
    return char in _LATIN or char in _LATIN_OF.get(ending, "")


def _script(char: str) -> str:
    """The first word of a letter's Unicode name, which is its script for all that matters here."""
    name = unicodedata.name(char, "?").split(" ")[0].split("-")[0]
    return "CJK" if name == "IDEOGRAPHIC" else name


_IN_LATIN = """
    aaa aarp abb abbott abbvie abc able abogado abudhabi ac academy accenture accountant accountants aco actor ad
    ads adult ae aeg aero aetna af afl africa ag agakhan agency ai aig airbus airforce airtel akdn al alibaba alipay
    allfinanz allstate ally alsace alstom am amazon americanexpress americanfamily amex amfam amica amsterdam
    analytics android anquan anz ao aol apartments app apple aq aquarelle ar arab aramco archi army arpa art arte as
    asda asia associates at athleta attorney au auction audi audible audio auspost author auto autos aw aws ax axa
    az azure ba baby baidu banamex band bank bar barcelona barclaycard barclays barefoot bargains baseball
    basketball bauhaus bayern bb bbc bbt bbva bcg bcn bd be beats beauty beer berlin best bestbuy bet bf bg bh
    bharti bi bible bid bike bing bingo bio biz bj black blackfriday blockbuster blog bloomberg blue bm bms bmw bn
    bnpparibas bo boats boehringer bofa bom bond boo book booking bosch bostik boston bot boutique box br bradesco
    bridgestone broadway broker brother brussels bs bt build builders business buy buzz bv bw by bz bzh ca cab cafe
    cal call calvinklein cam camera camp canon capetown capital capitalone car caravan cards care career careers
    cars casa case cash casino cat catering catholic cba cbn cbre cc cd center ceo cern cf cfa cfd cg ch chanel
    channel charity chase chat cheap chintai christmas chrome church ci cipriani circle cisco citadel citi citic
    city ck cl claims cleaning click clinic clinique clothing cloud club clubmed cm cn co coach codes coffee college
    cologne com commbank community company compare computer comsec condos construction consulting contact
    contractors cooking cool coop corsica country coupon coupons courses cpa cr credit creditcard creditunion
    cricket crown crs cruise cruises cu cuisinella cv cw cx cy cymru cyou cz dad dance data date dating datsun day
    dclk dds de deal dealer deals degree delivery dell deloitte delta democrat dental dentist desi design dev dhl
    diamonds diet digital direct directory discount discover dish diy dj dk dm dnp do docs doctor dog domains dot
    download drive dtv dubai dupont durban dvag dvr dz earth eat ec eco edeka edu education ee eg email emerck
    energy engineer engineering enterprises epson equipment er ericsson erni es esq estate et eu eurovision eus
    events exchange expert exposed express extraspace fage fail fairwinds faith family fan fans farm farmers fashion
    fast fedex feedback ferrari ferrero fi fidelity fido film final finance financial fire firestone firmdale fish
    fishing fit fitness fj fk flickr flights flir florist flowers fly fm fo foo food football ford forex forsale
    forum foundation fox fr free fresenius frl frogans frontier ftr fujitsu fun fund furniture futbol fyi ga gal
    gallery gallo gallup game games gap garden gay gb gbiz gd gdn ge gea gent genting george gf gg ggee gh gi gift
    gifts gives giving gl glass gle global globo gm gmail gmbh gmo gmx gn godaddy gold goldpoint golf goodyear goog
    google gop got gov gp gq gr grainger graphics gratis green gripe grocery group gs gt gu gucci guge guide guitars
    guru gw gy hair hamburg hangout haus hbo hdfc hdfcbank health healthcare help helsinki here hermes hiphop
    hisamitsu hitachi hiv hk hkt hm hn hockey holdings holiday homedepot homegoods homes homesense honda horse
    hospital host hosting hot hotels hotmail house how hr hsbc ht hu hughes hyatt hyundai ibm icbc ice icu id ie
    ieee ifm ikano il im imamat imdb immo immobilien in inc industries infiniti info ing ink institute insurance
    insure int international intuit investments io ipiranga iq ir irish is ismaili ist istanbul it itau itv jaguar
    java jcb je jeep jetzt jewelry jio jll jm jmp jnj jo jobs joburg jot joy jp jpmorgan jprs juegos kaufen kddi ke
    kerryhotels kerryproperties kfh kg kh ki kia kids kim kindle kitchen kiwi km kn koeln komatsu kosher kp kpmg kpn
    kr krd kred kuokgroup kw ky kyoto kz la lacaixa lamborghini lamer land landrover lanxess lasalle lat latino
    latrobe law lawyer lb lc lds lease leclerc lefrak legal lego lexus lgbt li lidl life lifeinsurance lifestyle
    lighting like lilly limited limo lincoln link live living lk llc llp loan loans locker locus lol london lotte
    lotto love lpl lplfinancial lr ls lt ltd ltda lu lundbeck luxe luxury lv ly ma madrid maif maison makeup man
    management mango map market marketing markets marriott marshalls mattel mba mc mckinsey md me med media meet
    melbourne meme memorial men menu merck merckmsd mg mh miami microsoft mil mini mint mit mitsubishi mk ml mlb mls
    mm mma mn mo mobi mobile moda moe moi mom monash money monster mormon mortgage moscow moto motorcycles mov movie
    mp mq mr ms msd mt mtn mtr mu museum music mv mw mx my mz na nab nagoya name navy nba nc ne nec net netbank
    netflix network neustar new news next nextdirect nexus nf nfl ng ngo nhk ni nico nike nikon ninja nissan nissay
    nl no nokia norton now nowruz nowtv np nr nra nrw ntt nu nyc nz obi observer office okinawa olayan olayangroup
    ollo om omega one ong onl online ooo open oracle orange org organic origins osaka otsuka ott ovh pa page
    panasonic paris pars partners parts party pay pccw pe pet pf pfizer pg ph pharmacy phd philips phone photo
    photography photos physio pics pictet pictures pid pin ping pink pioneer pizza pk pl place play playstation
    plumbing plus pm pn pnc pohl poker politie porn post pr praxi press prime pro prod productions prof progressive
    promo properties property protection pru prudential ps pt pub pw pwc py qa qpon quebec quest racing radio re
    read realestate realtor realty recipes red redumbrella rehab reise reisen reit reliance ren rent rentals repair
    report republican rest restaurant review reviews rexroth rich richardli ricoh ril rio rip ro rocks rodeo rogers
    room rs rsvp ru rugby ruhr run rw rwe ryukyu sa saarland safe safety sakura sale salon samsclub samsung sandvik
    sandvikcoromant sanofi sap sarl sas save saxo sb sbi sbs sc scb schaeffler schmidt scholarships school schule
    schwarz science scot sd se search seat secure security seek select sener services seven sew sex sexy sfr sg sh
    shangrila sharp shell shia shiksha shoes shop shopping shouji show si silk sina singles site sj sk ski skin sky
    skype sl sling sm smart smile sn sncf so soccer social softbank software sohu solar solutions song sony soy spa
    space sport spot sr srl ss st stada staples star statebank statefarm stc stcgroup stockholm storage store stream
    studio study style su sucks supplies supply support surf surgery suzuki sv swatch swiss sx sy sydney systems sz
    tab taipei talk taobao target tatamotors tatar tattoo tax taxi tc tci td tdk team tech technology tel temasek
    tennis teva tf tg th thd theater theatre tiaa tickets tienda tips tires tirol tj tjmaxx tjx tk tkmaxx tl tm
    tmall tn to today tokyo tools top toray toshiba total tours town toyota toys tr trade trading training travel
    travelers travelersinsurance trust trv tt tube tui tunes tushu tv tvs tw tz ua ubank ubs ug uk unicom university
    uno uol ups us uy uz va vacations vana vanguard vc ve vegas ventures verisign versicherung vet vg vi viajes
    video vig viking villas vin vip virgin visa vision viva vivo vlaanderen vn vodka volvo vote voting voto voyage
    vu wales walmart walter wang wanggou watch watches weather weatherchannel web webcam weber website wed wedding
    weibo weir wf whoswho wien wiki williamhill win windows wine winners wme woodside work works world wow ws wtc
    wtf xbox xerox xihuan xin xxx xyz yachts yahoo yamaxun yandex ye yodobashi yoga yokohama you youtube yt yun za
    zappos zara zero zip zm zone zuerich zw
"""

_IN_PUNYCODE = """
    11b4c3d 1ck2e1b 1qqw23a 2scrj9c 30rr7y 3bst00m 3ds443g 3e0b707e 3hcrj9c 3pxu8k 42c2d9a 45br5cyl 45brj9c 45q11c
    4dbrk0ce 4gbrim 54b7fta0cc 55qw42g 55qx5d 5su34j936bgsg 5tzm5g 6frz82g 6qq986b3xl 80adxhks 80ao21a 80aqecdr1a
    80asehdb 80aswg 8y0a063a 90a3ac 90ae 90ais 9dbq2a 9et52u 9krt00a b4w605ferd bck1b9a5dre4c c1avg c2br7g cck2b3b
    cckwcxetd cg4bki clchc0ea0b2g2a9gcd czr694b czrs0t czru2d d1acj3b d1alf e1a4c eckvdtc9d efvy88h fct429k fhbei
    fiq228c5hs fiq64b fiqs8s fiqz9s fjq720a flw351e fpcrj9c3d fzc2c9e2c fzys8d69uvgm g2xx48c gckr3f0f gecrj9c
    gk3at1e h2breg3eve h2brj9c h2brj9c8c hxt814e i1b6b1a6a2e imr513n io0a7i j1aef j1amh j6w193g jlq480n2rg jvr189m
    kcrx77d1x4a kprw13d kpry57d kput3i l1acc lgbbat1ad8j mgb9awbf mgba3a3ejt mgba3a4f16a mgba7c0bbn0a mgbaam7a8h
    mgbab2bd mgbah1a3hjkrd mgbai9azgqp6j mgbayh7gpa mgbbh1a mgbbh1a71e mgbc0a9azcg mgbca7dzdo mgbcpq6gpa1a
    mgberp4a5d4ar mgbgu82a mgbi4ecexp mgbpl2fh mgbt3dhd mgbtx2b mgbx4cd0ab mix891f mk1bu44c mxtq1m ngbc5azd ngbe9e0a
    ngbrx node nqv7f nqv7fs00ema nyqy26a o3cw4h ogbpf8fl otu796d p1acf p1ai pgbs0dh pssy2u q7ce6a q9jyb4c qcka1pmc
    qxa6a qxam rhqv96g rovu88b rvc1e0am3e s9brj9c ses554g t60b56a tckwe tiq49xqyj unup4y vermgensberater-ctb
    vermgensberatung-pwb vhquv vuq861b w4r85el8fhu5dnra w4rs40l wgbh1c wgbl6a xhq521b xkc2al3hye2a xkc2dl3a5ee0h
    y9a3aq yfro4i67o ygbi2ammx zfr164b
"""

TOP_LEVEL_DOMAINS = frozenset([*_IN_LATIN.split(), *(f"xn--{each}" for each in _IN_PUNYCODE.split())])
"""In small letters, and as punycode."""


# confusables.txt: what passes for the signs of an address, where NFKC leaves it as it is.
_PLAIN_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‧∙•⋅·ꞏ᛫۔܁܂ꓸ٠۰", "."),
        **dict.fromkeys("\u2044\u2215⧸\u2571⟋〳\u2cc6𝈺", "/"),
        **dict.fromkeys("\u2236\u02d0\ua789\u05c3\u0589᛬", ":"),
    }
)
_STROKE = re.compile("(?<![\u3041-\u30ff\u3400-\u9fff])[ノ丿丶](?![\u3041-\u30ff\u3400-\u9fff])")
_FULL_STOP = re.compile("(?<=[^\\W_])。(?=[a-z0-9])", re.IGNORECASE)
_OPENING = "\"'“„«\u2018\u2019([{<→*_~"
_CLOSING = "\"'”“»\u2019)]}>.,:;!?*_~…"

_WITH_SCHEME = re.compile(
    r"(?:https?:[/\\]*|[/\\]{2})(?:[^\s/\\?#@]{0,256}@)?(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[\w.-]*\w))", re.IGNORECASE
)
_BRACKETED = re.compile(r"\[([0-9a-f.]*:[0-9a-f:.]+)\]", re.IGNORECASE)
_RUN = re.compile(r"[\w.-]+")
_FOUR_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_AT = re.compile(r"@([\w-]+(?:\.[\w-]+)*)")
_BEFORE_AT = re.compile(r"[^\s@<>\"'(),;:/]{1,64}\Z")
_LETTERS = re.compile(r"[^\W_]+")
_WHOLE_ADDRESS = re.compile(r"(?:https?:[/\\]*|//)?(?P<host>[\w.-]*\w)(?P<rest>[/?#:].*)?\Z", re.IGNORECASE)
# After these, what follows a point is seldom more of a host.
_WELL_KNOWN = ("com", "org", "net")


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """Of one word. `hosts` are all that it could name, `addressed` those with a sign of an address before them."""

    word: str
    hosts: tuple[str, ...]
    addressed: tuple[str, ...]
    mailboxes: tuple[str, ...]


def find_claims(words: str) -> Iterator[LinkClaims]:
    """Of each word that names something."""
    if not any(sign in words for sign in "./:") and words.isascii():
        return
    for word in normalize_lookalikes(words).split():
        addressed = tuple(found["host"] or found["six"] for found in _WITH_SCHEME.finditer(word))
        runs = [host for run in _RUN.findall(word) for host in _hosts_in(run)]
        hosts = (*addressed, *runs, *_BRACKETED.findall(word))
        if hosts:
            yield LinkClaims(word, hosts, addressed, tuple(_mailboxes(word)))


def normalize_lookalikes(words: str) -> str:
    """As a reader takes it: without what nobody sees, and with plain signs for those that pass for them."""
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", words)).translate(_PLAIN_SIGNS)
    return _FULL_STOP.sub(".", _STROKE.sub("/", plain)).replace("。", " ")


def split_address(word: str) -> tuple[str, str]:
    """The host that a word begins with, and the rest of it, when it is nothing but an address."""
    found = _WHOLE_ADDRESS.match(word.lstrip(_OPENING).rstrip(_CLOSING))
    return (found["host"], found["rest"] or "") if found else ("", "")


def _hosts_in(run: str) -> Iterator[str]:
    """In letters, digits, points and hyphens."""
    for name in run.split(".."):
        labels = name.strip("._-").split(".")
        if len(labels) < 2 or not all(labels):
            continue
        if not labels[-1].lower().startswith("xn--") and (last := _LETTERS.match(labels[-1])):
            labels[-1] = last[0]
        whole = ".".join(labels)
        if labels[0].lower() == "www" or is_top_level_domain(labels[-1]) or _FOUR_NUMBERS.fullmatch(whole):
            yield whole
            continue
        known = [at for at, label in enumerate(labels) if at and skeleton(label.lower()) in _WELL_KNOWN]
        if known:
            yield ".".join(labels[: known[-1] + 1])


def is_top_level_domain(label: str) -> bool:
    """Whether hosts end so, or seem to."""
    small = label.lower()
    return (
        small in TOP_LEVEL_DOMAINS
        or skeleton(small) in TOP_LEVEL_DOMAINS
        or (not small.isascii() and ascii_host(small) in TOP_LEVEL_DOMAINS)
    )


def _mailboxes(word: str) -> Iterator[str]:
    for found in _AT.finditer(word):
        before = _BEFORE_AT.search(word[max(0, found.start() - 64) : found.start()])
        if before:
            yield f"{before[0]}@{found[1]}".lower()


_URL = re.compile(rf"https?://[^\s<>\"`\u2028{DECEPTIVE_CHARACTERS}]+", re.IGNORECASE)
_HOST = re.compile(r"[^\W_](?:[^\W_]|[._-])*|[0-9a-f:]+", re.IGNORECASE)
# What is taken apart without a question: a plain host, perhaps with a port.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9][a-z0-9._-]*)(?::[0-9]+)?(?=[/?#]|\Z)", re.IGNORECASE | re.ASCII)
_TRAILING = ".,:;!?'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

_WEB = ("http", "https")
_MAIL = re.compile(r"mailto:[^\s]", re.IGNORECASE)
_MAIL_FIELDS = {"subject", "body", "cc", "bcc"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_BODY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Files that are named as hosts of some countries are.
_AMBIGUOUS_EXTENSIONS = (".md", ".py", ".rs", ".sh")


def find_urls(text: str) -> Iterator[tuple[int, str]]:
    """Bare addresses of the web in a text, with their places. Punctuation after one does not belong to it."""
    for found in _URL.finditer(text):
        address = found[0]
        while address and (address[-1] in _TRAILING or _is_unpaired(address)):
            address = address[:-1]
        if _host(address):
            yield found.start(), address


def _is_unpaired(address: str) -> bool:
    opening = _PAIRS.get(address[-1])
    return opening is not None and address.count(address[-1]) > address.count(opening)


def safe_target(target: str) -> str:
    """The target, if it may be opened: a web address with a host, or mail with its harmless fields. Or nothing."""
    if _MAIL.match(target):
        return _safe_mail(target)
    return target if _host(target) else ""


def _safe_mail(target: str) -> str:
    """With the usual fields only (RFC 6068): some programs attach the files that a field names."""
    mailbox, _, rest = target.partition("?")
    fields = [each for each in rest.split("&") if _mail_field(each) in _MAIL_FIELDS]
    # An address may hold "&" only encoded; a program that is not strict would find fields there.
    if "&" in mailbox or _CONTROL.search(target) or any(map(_has_encoded_controls, [mailbox, *fields])):
        return ""
    safe = f"{mailbox}?{'&'.join(fields)}" if fields else mailbox
    return safe if _MAIL.match(safe) else ""


def _mail_field(field: str) -> str:
    return unquote(field.partition("=")[0]).lower()


def _has_encoded_controls(part: str) -> bool:
    """Whether control characters are encoded in it. Lines end in a body; elsewhere they would begin another field."""
    control = _CONTROL_IN_BODY if _mail_field(part) == "body" else _CONTROL
    return control.search(unquote(part)) is not None


@lru_cache(maxsize=1024)
def misleading_link_note(words: str, target: str) -> str:
    """The host or mailbox a link really leads to, when its words could name another one. Otherwise nothing."""
    if _MAIL.match(target):
        return _misleading_mail_note(words, target)
    host = _host(target)
    if not host:
        return ""
    shown = display_host(host)
    disguised = shown != unicode_host(host) and shown not in words.lower()
    return shown if disguised or _names_another_host(words, target, host) else ""


def _names_another_host(words: str, target: str, host: str) -> bool:
    found = [each for each in find_claims(words) if not _is_part_of(each, target, host)]
    if found and "@" in urlsplit(target).netloc:
        return True
    named = [name for each in found for name in each.hosts]
    return any(not _is_host_or_below(host, name) and not _is_file(name, target) for name in named)


def _is_part_of(claim: LinkClaims, target: str, host: str) -> bool:
    """Whether a word is the target's own address: what its path names is no claim."""
    named, rest = split_address(claim.word)
    return (
        bool(rest)
        and _is_host_or_below(host, named)
        and (rest in target or rest in normalize_lookalikes(unquote(target)))
    )


def _is_file(name: str, target: str) -> bool:
    """Whether the target is a file of that name."""
    return name.lower().endswith(_AMBIGUOUS_EXTENSIONS) and unquote(urlsplit(target).path).endswith(f"/{name}")


def _misleading_mail_note(words: str, target: str) -> str:
    mailboxes = unquote(target[7:].partition("?")[0]).lower().split(",")
    shown = [f"{name}{at}{display_host(host)}" for name, at, host in (each.rpartition("@") for each in mailboxes)]
    note = show_hidden(",".join(shown))
    if shown != mailboxes and note not in words.lower():
        return note
    found = list(find_claims(words))
    named = {mailbox for each in found for mailbox in each.mailboxes}
    hosts = [ascii_host(each.rpartition("@")[2]) for each in mailboxes]
    strangers = (
        name for each in found for name in each.hosts if not any(_is_host_or_below(host, name) for host in hosts)
    )
    differs = (named and named != set(mailboxes)) or any(each.addressed for each in found) or any(strangers)
    return note if differs else ""


def link_tooltip(target: str) -> str:
    """The whole target, so that nothing in it is hidden; the host as punycode where its letters could deceive."""
    shown = show_hidden(target)
    host = _host(target)
    if host and display_host(host) != unicode_host(host):
        return f"{shown} ({ascii_host(host)})"
    return shown


def _is_host_or_below(host: str, claimed: str) -> bool:
    """Whether a host is the one that was named, or one below it."""
    own = ascii_host(claimed).removeprefix("www.")
    return host.removeprefix("www.") == own or ("." in own and host.endswith(f".{own}"))


def _host(target: str) -> str:
    """In ASCII; empty when this is no address of the web."""
    plain = _PLAIN_HOST.match(target)
    return ascii_host(plain[1]) if plain else _unusual_host(target)


@lru_cache(maxsize=1024)
def _unusual_host(target: str) -> str:
    try:
        parts = urlsplit(target)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme.lower() not in _WEB or not _HOST.fullmatch(host):
        return ""
    return ascii_host(host)
