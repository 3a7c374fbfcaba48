"""Which dictionaries are found, and which one is for the system."""

from tests.fakes.dictionaries import ENGLISH, GERMAN, write_dictionary
from ui.bridge.spelling.dictionaries import dictionary_folders, find_dictionaries, system_dictionary


def test_the_first_folder_with_both_files_counts(tmp_path):
    own_folder, shared_folder = tmp_path / "own", tmp_path / "shared"
    write_dictionary(own_folder, "de_DE", GERMAN)
    (own_folder / "en_GB.aff").touch()
    write_dictionary(shared_folder, "de_DE", GERMAN)
    write_dictionary(shared_folder, "en_GB", ENGLISH)
    dictionaries = find_dictionaries([tmp_path / "missing", own_folder, shared_folder])
    assert [(entry.language, entry.path) for entry in dictionaries] == [
        ("de_DE", str(own_folder / "de_DE")),
        ("en_GB", str(shared_folder / "en_GB")),
    ]


def test_the_folders_are_those_of_the_system_and_of_the_person(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_DIRS", raising=False)
    folders = [str(folder) for folder in dictionary_folders(tmp_path / "data")]
    assert folders[:2] == [str(tmp_path / "data" / "hunspell"), str(tmp_path / "home" / "hunspell")]
    assert {"/usr/share/hunspell", "/usr/share/myspell/dicts"} <= set(folders)


def test_the_library_brings_english(tmp_path):
    dictionaries = find_dictionaries(dictionary_folders(tmp_path)[-1:])
    assert [dictionary.language for dictionary in dictionaries] == ["en_US"]


def test_the_language_of_the_system(tmp_path):
    for language in ("de_AT", "de_DE", "en_GB", "en_US", "fr"):
        write_dictionary(tmp_path, language, GERMAN)
    dictionaries = find_dictionaries([tmp_path])

    def chosen(*languages):
        dictionary = system_dictionary(languages, dictionaries)
        return dictionary and dictionary.language

    assert chosen("de-AT", "en") == "de_AT"
    assert chosen("de-CH") == "de_DE"
    assert chosen("en") == "en_US"
    assert chosen("C") == "en_US"
    assert chosen("fr-CA") == "fr"
    # Not the next one that the person wants: another language has other words.
    assert chosen("zh-Hans-CN", "en") is None
