"""Where the address and the token come from, and where a token is never sent."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalhub.client import BadConfig, config
from evalhub.client.config import config_file, read_config, write_profile

TOKEN = "evh_01234567_secret"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"EVH_CONFIG": str(tmp_path / "evh" / "config.ini")}


def read(environment: dict[str, str], tmp_path: Path, **arguments: Any) -> Any:
    folder = tmp_path / "work" / "inner"
    folder.mkdir(parents=True, exist_ok=True)
    return read_config(environment=environment, folder=folder, **arguments)


def keep(environment: dict[str, str], profile: str = "default", **values: str) -> Path:
    return write_profile(profile, values, Path(environment["EVH_CONFIG"]))


def test_arguments_come_before_the_environment_and_that_before_the_file(
    environment: dict[str, str], tmp_path: Path
) -> None:
    keep(
        environment,
        url="https://file",
        token=TOKEN,
        team="lab",
        collection="robust04",
        format="csv",
    )
    config = read(environment, tmp_path)
    assert (config.url, config.token, config.team, config.collection, config.format) == (
        "https://file", TOKEN, "lab", "robust04", "csv",
    )  # fmt: skip
    environment |= {"EVH_URL": "https://environment/", "EVH_TOKEN": "evh_2_y", "EVH_TEAM": "guests"}
    config = read(environment, tmp_path)
    assert (config.url, config.token, config.team) == ("https://environment", "evh_2_y", "guests")
    config = read(environment, tmp_path, url="https://argument/api/v1/", token="evh_3_z")
    assert (config.url, config.token) == ("https://argument", "evh_3_z")


def test_a_token_of_a_profile_goes_to_its_host_only(
    environment: dict[str, str], tmp_path: Path
) -> None:
    keep(environment, url="https://file", token=TOKEN)
    assert read(environment, tmp_path, url="https://file/api/v1").token == TOKEN
    for other in ("https://other", "http://localhost", "https://file:8443"):
        assert read(environment, tmp_path, url=other).token == ""


def test_the_token_of_another_product_is_not_sent(
    environment: dict[str, str], tmp_path: Path, caplog: Any
) -> None:
    environment |= {"EVH_URL": "https://a", "EVALHUB_TOKEN": "sha256~other"}
    with caplog.at_level("INFO", "evalhub_client"):
        assert read(environment, tmp_path).token == ""
    assert "EVALHUB_TOKEN is not used" in caplog.text
    environment["EVALHUB_TOKEN"] = TOKEN
    assert read(environment, tmp_path).token == TOKEN


@pytest.mark.parametrize("url", ["http://evalhub.example", "ftp://x", "localhost:8000", "https://"])
def test_addresses_that_no_token_is_sent_to(
    environment: dict[str, str], tmp_path: Path, url: str
) -> None:
    with pytest.raises(BadConfig):
        read(environment, tmp_path, url=url)
    assert read(environment, tmp_path, url="http://127.0.0.1:8000").url == "http://127.0.0.1:8000"


def test_plain_http_to_another_machine_has_to_be_allowed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    keep(environment, url="http://lab.example", insecure="true", token=TOKEN)
    assert read(environment, tmp_path).token == TOKEN


def test_a_folder_sets_what_is_shared_and_no_token(
    environment: dict[str, str], tmp_path: Path
) -> None:
    keep(environment, url="https://file", token=TOKEN, team="lab")
    near = tmp_path / "work" / ".evh.ini"
    near.parent.mkdir()
    near.write_text("[default]\nurl = https://file\ncollection = robust04\n")
    config = read(environment, tmp_path)
    assert (config.collection, config.team, config.token) == ("robust04", "lab", TOKEN)
    near.write_text("[default]\ntoken = x\n")
    with pytest.raises(BadConfig, match="not token"):
        read(environment, tmp_path)
    near.write_text("[default]\nurl = https://thief.example\n")
    assert read(environment, tmp_path).token == ""
    with pytest.raises(BadConfig, match="set EVH_URL"):
        read({**environment, "EVH_TOKEN": TOKEN}, tmp_path)


def test_the_file_is_its_owners_alone(
    environment: dict[str, str], tmp_path: Path, capsys: Any
) -> None:
    path = keep(environment, "lab", url="https://file", token=TOKEN)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["config.ini"]
    assert read(environment, tmp_path, profile="lab").token == TOKEN
    assert capsys.readouterr().err == ""
    path.chmod(0o644)
    read(environment, tmp_path, profile="lab")
    assert "others can read" in capsys.readouterr().err
    keep(environment, "lab", token="")
    assert read(environment, tmp_path, profile="lab").token == ""
    with pytest.raises(
        BadConfig, match=r"no profile 'nobody'.*evh login --profile nobody makes it"
    ):
        read(environment, tmp_path, profile="nobody")
    with pytest.raises(BadConfig, match=r"no profile 'lap'.*did you mean 'lab'"):
        read({**environment, "EVH_PROFILE": "lap"}, tmp_path)


def test_a_command_gives_the_token(environment: dict[str, str], tmp_path: Path) -> None:
    keep(environment, url="https://file", token_command=f"{sys.executable} -c 'print(\"evh_4_c\")'")
    assert read(environment, tmp_path).token == "evh_4_c"
    keep(environment, token_command="/nowhere/pass")
    with pytest.raises(BadConfig, match="token_command"):
        read(environment, tmp_path)


def test_without_an_address_it_says_what_to_do(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="evh login"):
        read(environment, tmp_path)


def test_the_file_is_where_each_system_keeps_such_files() -> None:
    assert config_file({"XDG_CONFIG_HOME": "/x"}, "linux") == Path("/x/evh/config.ini")
    assert config_file({}, "darwin") == Path.home() / ".config/evh/config.ini"
    roaming = "C:\\Users\\alice\\AppData\\Roaming"
    assert (
        config_file({"APPDATA": roaming, "XDG_CONFIG_HOME": "/x"}, "win32")
        == Path(roaming) / "evh" / "config.ini"
    )
    assert config_file({}, "win32") == Path.home() / "AppData/Roaming/evh/config.ini"
    assert config_file({"EVH_CONFIG": "D:\\evh.ini"}, "win32") == Path("D:\\evh.ini")


def test_a_command_of_windows_keeps_its_backslashes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(
        config.subprocess,
        "run",
        lambda words, **how: seen.append(words) or SimpleNamespace(stdout="x"),
    )
    for platform in ("win32", "linux"):
        config._run_token_command("C:\\tools\\pass.exe show evh", platform)
    assert seen == [["C:\\tools\\pass.exe", "show", "evh"], ["C:toolspass.exe", "show", "evh"]]
