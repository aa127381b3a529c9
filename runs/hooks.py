"""Signals for apps above `runs` and `metrics` that observe or refuse changes.

Each hook is a signal of Django. It is sent in the transaction of the change, so that an exception
of a receiver refuses it: a receiver of a `before_...` raises Conflict or NotAllowed. An app
connects its receivers when it is ready; `evalhub.campaigns.receivers` is an example.
"""

from __future__ import annotations

from django.dispatch import Signal

before_submission = Signal()
"""`run`: it is about to be stored, and was not sent through a phase of a campaign."""

before_withdrawal = Signal()
"""`run`: its team is about to withdraw it."""

before_joining = Signal()
"""`run`: its team is about to make it a replicate of another run."""

before_removal = Signal()
"""`run`: the organisers of its collection are about to remove it."""

before_download = Signal()
"""`run`, `user`: the user is about to read the file of the run."""

before_deletion = Signal()
"""`collection`: it is empty and about to be deleted. Its row is locked."""

before_measure_deletion = Signal()
"""`measure`, `user`: the user, None on the server itself, is about to delete the external measure
with its values. Its row and that of its collection are locked."""

before_disclosure = Signal()
"""`collection`: results on it are about to be shown to more people. Its row is locked."""

hidden_names = Signal()
"""`collection`: it is shown to participants.

A receiver returns the time until which names of teams are hidden there, or None.
"""

values_read = Signal()
"""`collection`, `origin`: values that only organisers see are about to be read."""

judgements_replaced = Signal()
"""`qrels`: the version of judgements that is active now, in place of another one."""

before_invitation = Signal()
"""`participation`, `user`: the user, None for a link, is about to be invited to take part."""

invited = Signal()
"""`invitation`: a user was invited to a team."""

joined = Signal()
"""`participation`, `user`, `origin`: a user accepted an invitation to take part with a team."""

before_ownership = Signal()
"""`team`, `user`: the user is about to become an owner of the team."""

evaluations_ended = Signal()
"""`evaluations`: the keys of evaluations of runs that ended."""

due_work = Signal()
"""A receiver returns rows (name, seconds, function): the dispatcher calls each function that often."""

pooled_runs = Signal()
"""`phase`: its results are shown.

A receiver returns the keys of the runs that pools have, or None where readers see no pool.
"""

stored_files = Signal()
"""`sha256`: a stored file, or empty for all.

A receiver returns rows (SHA-256, bytes, description) of the stored files that its tables need.
"""

integrity_checks = Signal()
"""`fast`: whether files are not read.

A receiver returns a function that yields the findings of `fsck`.
"""
