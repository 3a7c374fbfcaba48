"""The fields of forms that servers send, and what may be written into them."""

import pytest

from ui.approval.server_requests.form_fields import (
    MAX_CHECKBOXES,
    MAX_CHOICES,
    MAX_FIELDS,
    FieldChoice,
    FormField,
    parse_fields,
    parse_value,
    validate_value,
)

SEVERAL = {"type": "array", "items": {"type": "string", "enum": [str(number) for number in range(MAX_CHOICES)]}}


def field(**schema):
    (parsed,) = parse_fields({"type": "object", "properties": {"it": schema}, "required": ["it"]})
    return parsed


def test_every_kind_that_a_form_may_have():
    kinds = {
        "text": {"type": "string", "minLength": 2, "maxLength": 5},
        "number": {"type": "number", "minimum": 0.5, "maximum": 2},
        "integer": {"type": "integer"},
        "yes_no": {"type": "boolean", "default": True},
        "one": {"type": "string", "enum": ["a", "b"]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
        "unknown": {"type": "object", "properties": {}},
    }
    fields = parse_fields({"properties": kinds, "required": ["text", 7]})
    assert [parsed_field.kind for parsed_field in fields] == list(kinds)
    assert [parsed_field.required for parsed_field in fields] == [True] + [False] * 6
    assert (fields[0].minimum, fields[0].maximum) == (2, 5)
    assert (fields[1].minimum, fields[1].maximum) == (0.5, 2)
    assert (fields[5].minimum, fields[5].maximum) == (1, 2)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}},
    ],
)
def test_choices_with_titles_in_all_their_spellings(schema):
    assert field(**schema).choices == (FieldChoice("r", "Red"), FieldChoice("g", "Green"))


def test_names_that_do_not_fit_their_choices_are_left_aside():
    assert field(type="string", enum=["r", "g"], enumNames=["Red"]).choices == (
        FieldChoice("r", "r"),
        FieldChoice("g", "g"),
    )


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"properties": []},
        {"properties": {str(number): {} for number in range(MAX_FIELDS + 1)}},
        {"properties": {str(number): SEVERAL for number in range(MAX_CHECKBOXES // MAX_CHOICES + 1)}},
    ],
)
def test_what_is_no_form_or_too_long(form):
    assert parse_fields(form) is None


def test_a_broken_field_is_unknown_and_not_left_out():
    (parsed,) = parse_fields({"properties": {"it": "string"}})
    assert parsed == FormField("it", "it", "unknown")


@pytest.mark.parametrize(
    ("name", "title", "description"),
    [
        ("password", "", ""),
        ("userPassword", "", ""),
        ("x", "API key", ""),
        ("github_token", "", ""),
        ("x", "Value", "Paste the client secret here"),
        ("pin", "", ""),
        ("x", "Passwort", ""),
        ("x", "密码", ""),
        ("creditCard", "", ""),
    ],
)
def test_what_looks_secret(name, title, description):
    assert FormField(name, title or name, "text", description).looks_secret


@pytest.mark.parametrize(
    ("name", "title", "kind"),
    [("tokenizer", "Tokenizer", "text"), ("secretary", "", "text"), ("keyboard", "Keys per minute", "integer")],
)
def test_what_does_not_look_secret(name, title, kind):
    assert not FormField(name, title, kind, "spinning, opinions").looks_secret


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "äöü"], ["", "a", "abcd"]),
        ({"type": "string", "format": "email"}, ["a@b", "ada@example.org"], ["a", "a@", "a b@c", "a@b..c"]),
        ({"type": "string", "format": "uri"}, ["https://a.b/c", "mailto:a@b"], ["a.b", "https://", "https://a b"]),
        ({"type": "string", "format": "date"}, ["2026-02-28"], ["2026-02-30", "20260228", "28.2.2026"]),
        (
            {"type": "string", "format": "date-time"},
            ["2026-02-28T10:00:00Z", "2026-02-28T10:00:00+02:00"],
            ["2026-02-28", "2026-02-28T10:00:00", "2026-02-28T25:00:00Z"],
        ),
        ({"type": "integer", "minimum": 1, "maximum": 9}, ["1", " 9 ", "+5"], ["", "0", "10", "1.5", "x", "٣x"]),
        ({"type": "number", "minimum": 0}, ["0", "1.5", "1,5", "1e3"], ["-1", "nan", "inf", "1e999", "1.5.5"]),
        ({"type": "string", "enum": ["a"]}, ["a"], [""]),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2}, [["a"], ["a", "b"]], [[], ["a"] * 3]),
    ],
)
def test_good_answers_pass_and_bad_ones_get_a_sentence(schema, good, bad):
    parsed = field(**schema)
    assert [validate_value(parsed, value) for value in good] == [""] * len(good)
    for value in bad:
        assert validate_value(parsed, value).endswith((".", "}."))


def test_values_are_sent_in_their_own_type_and_nothing_of_what_is_empty():
    assert parse_value(field(type="integer"), " 12 ") == 12
    assert isinstance(parse_value(field(type="integer"), "12"), int)
    assert parse_value(field(type="number"), "1,5") == 1.5
    assert parse_value(field(type="boolean"), False) is False
    assert parse_value(field(type="string"), " as it is ") == " as it is "
    optional = FormField("it", "it", "text")
    assert parse_value(optional, "") is None
    assert validate_value(optional, "") == ""
    assert parse_value(FormField("it", "it", "several"), []) is None


@pytest.mark.parametrize("bound", [10**400, -(10**16), float("inf"), float("nan")])
def test_a_bound_that_nobody_could_write_is_none(bound):
    parsed = field(type="integer", minimum=bound, maximum=bound)
    assert (parsed.minimum, parsed.maximum) == (None, None)
    assert validate_value(parsed, "5") == ""


@pytest.mark.parametrize(
    "title", ["P\u0430ssword", "\uff30\uff41\uff53\uff53\uff57\uff4f\uff52\uff44", "Pass\u200bword"]
)
def test_letters_that_look_like_others_do_not_hide_a_secret(title):
    assert FormField("x", title, "text").looks_secret


def test_a_field_for_a_password_looks_secret_whatever_it_is_called():
    assert FormField("x", "Mot de passe", "text", format="password").looks_secret


@pytest.mark.parametrize("default", ["ada@example.org\u200b\u202egro.live", "a\nb", "a\u2028b", "a\x00"])
def test_a_default_that_cannot_be_seen_whole_is_not_filled_in(default):
    assert FormField("x", "Address", "text", default=default).usable_default is None
    assert FormField("x", "Address", "text", default="ada@example.org").usable_default == "ada@example.org"
