"""Accounts that an operator creates from a file: all of them, or none."""

from __future__ import annotations

import csv
import os
import stat
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs.models import ApiToken, AuditEvent, Membership, Team, User

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
PASSWORD = "a long pass phrase 7"
FILE = f"""name,email,team,password
ann,ann@example.org,apples,
abe,,apples,{PASSWORD}
ben,ben@example.org,,
"""


def create(path: Path, content: str, *options: str) -> None:
    path.write_text(content, encoding="utf-8")
    call_command("create_user", "--from", str(path), *options)


def test_a_file_creates_accounts_with_teams_and_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = tmp_path / "secrets.csv"
    create(tmp_path / "people.csv", FILE, "--dry-run", "--to", str(secrets))
    assert "3 accounts would be created" in capsys.readouterr().out
    assert not User.objects.exists()
    assert not secrets.exists()

    create(tmp_path / "people.csv", FILE, "--to", str(secrets))
    printed = capsys.readouterr().out
    assert printed.splitlines()[:3] == [
        "line 2: ann created, owner of team apples",
        "line 3: abe created, member of team apples",
        "line 4: ben created",
    ]
    assert stat.S_IMODE(os.stat(secrets).st_mode) == 0o600
    rows = list(csv.DictReader(secrets.read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == ["ann", "abe", "ben"]
    for row in rows:
        user = User.objects.get(username=row["name"])
        assert user.check_password(row["password"] or PASSWORD)
        assert ApiToken.objects.find(row["token"]).user == user
        assert row["token"] not in printed
        assert not row["password"] or row["password"] not in printed
    # A password that the operator chose is written nowhere.
    assert rows[1]["password"] == ""
    assert PASSWORD not in printed + secrets.read_text()
    assert User.objects.get(username="ann").email == "ann@example.org"
    roles = Membership.objects.filter(team__slug="apples").values_list("user__username", "role")
    assert dict(roles) == {"ann": "owner", "abe": "member"}
    assert AuditEvent.objects.filter(action="user.created").count() == 3

    more = "name,team\ncem,apples\n"
    with pytest.raises(CommandError, match="exists already"):
        create(tmp_path / "more.csv", more, "--to", str(secrets))
    assert not User.objects.filter(username="cem").exists()


def test_a_name_that_a_spreadsheet_would_run_is_text(tmp_path: Path) -> None:
    create(tmp_path / "people.csv", "name\n-ann\n", "--to", str(tmp_path / "secrets.csv"))
    (row,) = csv.DictReader((tmp_path / "secrets.csv").read_text().splitlines())
    assert row["name"] == "'-ann"
    assert User.objects.get(username="-ann").check_password(row["password"])


def test_every_wrong_line_is_reported_and_nothing_is_created(tmp_path: Path) -> None:
    User.objects.create_user("taken")
    lines = [
        "name,email,team,password",
        "taken,,,",
        "two words,,,",
        "dan,not an address,,",
        "dan,,bad team,",
        "eva,,taken,",
        "fay,,,123",
    ]
    secrets = tmp_path / "secrets.csv"
    with pytest.raises(CommandError) as refused:
        create(tmp_path / "people.csv", "\n".join(lines), "--to", str(secrets))
    problems = str(refused.value).splitlines()
    assert [problem.partition(":")[0] for problem in problems[:-1]] == [
        "line 2", "line 3", "line 4", "line 5", "line 5", "line 6", "line 7",
    ]  # fmt: skip
    assert "'dan' is in line 4, too" in problems[3]
    assert "123" not in problems[6]
    assert problems[-1] == "No account was created."
    assert User.objects.count() == 1
    assert not secrets.exists()


def test_a_file_that_is_none_of_accounts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    for content, why in (
        ("user,email\nann,\n", "line 1 names the columns"),
        ("name,name\nann,ann\n", "line 1 names the columns"),
        ("name,email\nann\n", "not as many values"),
        ("name\n", "has 0 accounts"),
    ):
        with pytest.raises(CommandError, match=why):
            create(path, content)
    path.write_bytes(b"name\n\xff\n")
    with pytest.raises(CommandError, match="not CSV in UTF-8"):
        call_command("create_user", "--from", str(path))
    with pytest.raises(CommandError, match="No such file"):
        call_command("create_user", "--from", str(tmp_path / "none"))
    for options in ([], ["ann", "--from", str(path)]):
        with pytest.raises(CommandError, match="a name, or a file with --from"):
            call_command("create_user", *options)
    assert not Team.objects.exists()
