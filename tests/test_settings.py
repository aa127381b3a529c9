"""Reading the settings writes nothing; where data lies, and which key signs, whether EvalHub is installed or not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalhub import settings as module
from evalhub.operating.checks import check_names
from evalhub.serving.secret_key import keep_key, read_key
from tests.reliability.servers import ROOT, SECRET_KEY, run_commands

READ = "import evalhub.settings as s; print(s.EVALHUB_DATA); print(s.SECRET_KEY)"


def read_settings(**environment: str) -> tuple[str, str]:
    """The data folder and the key, as another process has them that reads the settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVALHUB_")}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={**clean, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder, key = done.stdout.splitlines()
    return folder, key


@pytest.mark.slow
def test_reading_the_settings_writes_nothing(tmp_path: Path) -> None:
    tmp_path = tmp_path / "here"
    tmp_path.mkdir()
    absent, read_only, file = tmp_path / "a" / "b", tmp_path / "read-only", tmp_path / "file"
    read_only.mkdir(mode=0o555)
    file.write_text("")
    for folder in (absent, read_only, file / "data"):
        first, second = (read_settings(EVALHUB_DATA=str(folder)) for _ in range(2))
        assert first[0] == second[0] == str(folder)
        assert first[1] != second[1]
        assert min(len(first[1]), len(second[1])) >= 50
    assert sorted(tmp_path.rglob("*")) == [file, read_only]


@pytest.mark.slow
def test_commands_that_ask_nothing_of_the_data_leave_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    environment = {**os.environ, "EVALHUB_DATA": str(folder), "EVALHUB_SECRET_KEY": ""}
    for done in run_commands(environment, ["check"], ["document_measures"], ["--version"]):
        assert done.returncode == 0, done
    assert not folder.exists()


def test_the_key_that_a_web_server_keeps_is_that_of_every_later_process(
    settings: Any, tmp_path: Path
) -> None:
    settings.EVALHUB_SECRET_KEY, settings.EVALHUB_DATA = "", tmp_path / "own"
    first = settings.SECRET_KEY
    keep_key()
    key_file = tmp_path / "own" / "secret.key"
    assert (key_file.read_text(), settings.SECRET_KEY, key_file.stat().st_mode & 0o777) == (
        first,
        first,
        0o600,
    )
    settings.SECRET_KEY = "made-by-another-process-at-the-same-time"
    keep_key()
    assert first == settings.SECRET_KEY
    assert read_settings(EVALHUB_DATA=str(tmp_path / "own"))[1] == first
    assert list(key_file.parent.iterdir()) == [key_file]


def test_a_key_of_the_environment_is_not_written_down(settings: Any, tmp_path: Path) -> None:
    settings.EVALHUB_SECRET_KEY, settings.EVALHUB_DATA = SECRET_KEY, tmp_path / "own"
    keep_key()
    assert (read_key(settings.EVALHUB_DATA), settings.EVALHUB_DATA.exists()) == ("", False)


def test_data_lies_in_the_checkout_or_else_in_the_users_own_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EVALHUB_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert module._data_folder() == ROOT / ".evalhub" / "data"
    monkeypatch.setattr(module, "BASE_DIR", tmp_path / "site-packages")
    if sys.platform == "linux":
        assert module._data_folder() == tmp_path / "home" / "evalhub"
    assert "site-packages" not in str(module._data_folder())
    monkeypatch.setenv("EVALHUB_DATA", str(tmp_path / "given"))
    assert module._data_folder() == tmp_path / "given"


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe" * 40])
def test_a_damaged_key_is_refused_with_what_to_do(settings: Any, content: bytes) -> None:
    settings.EVALHUB_SECRET_KEY = ""
    (settings.EVALHUB_DATA / "secret.key").write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=r"secret.key is damaged.*delete the file"):
        keep_key()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("EVALHUB_HTTPS", "maybe", "EVALHUB_HTTPS=maybe is neither true nor false"),
        (
            "EVALHUB_MAX_UPLOAD_MB",
            "-5",
            "EVALHUB_MAX_UPLOAD_MB=-5 is not a whole number of at least 1",
        ),
        (
            "EVALHUB_WORKER_PROCESSES",
            "0",
            "EVALHUB_WORKER_PROCESSES=0 is not a whole number of at least 1",
        ),
        ("EVALHUB_WEB_PROCESSES", "two", "EVALHUB_WEB_PROCESSES=two is not a whole number"),
        ("EVALHUB_BOARD_SECONDS", "nan", "EVALHUB_BOARD_SECONDS=nan is not a number of at least 0"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    environment = {**os.environ, "EVALHUB_DATA": str(tmp_path), name: value}
    done = subprocess.run([sys.executable, "-m", "evalhub", "fsck"], env=environment, cwd=ROOT, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr.startswith(f"evalhub: {says}")) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def test_networks_and_ports_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    name, read = "EVALHUB_WEBHOOK_ALLOW", module.env
    assert (read.networks(name), read.ports(name, default=(443,))) == ((), (443,))
    monkeypatch.setenv(name, " 10.0.0.0/8, fd00::/8,127.0.0.1 ")
    assert [str(network) for network in read.networks(name)] == [
        "10.0.0.0/8",
        "fd00::/8",
        "127.0.0.1/32",
    ]
    monkeypatch.setenv(name, "443, 8443")
    assert read.ports(name) == (443, 8443)
    for value, says in (("10.0.0.1/8", "has host bits set"), ("lab", "write networks such as")):
        monkeypatch.setenv(name, value)
        with pytest.raises(ImproperlyConfigured, match=f"{name}.*{says}"):
            read.networks(name)
    for value in ("0", "65536", "https", "-1", "443;8443", "9" * 5000, "²"):
        monkeypatch.setenv(name, value)
        with pytest.raises(ImproperlyConfigured, match="ports from 1 to 65535"):
            read.ports(name)


def test_a_misspelt_variable_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "EVALHUB_ALOWED_HOSTS",
        "EVALHUB_COFFEE",
        "EVALHUB_TEST_ANYTHING",
        "EVALHUB_HTTPS",
        "EVALHUB_KERNELS",
    ):
        monkeypatch.setenv(name, "1")
    assert dict(module.env.misspelt()) == {
        "EVALHUB_ALOWED_HOSTS": "EVALHUB_ALLOWED_HOSTS",
        "EVALHUB_COFFEE": "",
    }
    assert [message.id for message in check_names()] == ["evalhub.W009"] * 2


def test_every_documented_variable_is_known() -> None:
    documented = re.findall(
        r"^\| `(EVALHUB_\w+)` \|", (ROOT / "docs/settings.md").read_text(), re.MULTILINE
    )
    assert set(documented) <= module.env.known
