"""etcd, asked through one of its members: who votes, who leads, whether all agree."""

from __future__ import annotations

import json
from collections.abc import Iterator

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed
from falsework.checks.verify.own import own
from falsework.checks.verify.said import Said, fine, short

_STATUS = "crictl exec $(crictl ps -q --name etcd) etcdctl endpoint status --cluster -w json"


def checks(facts: Facts) -> Iterator[Check]:
    masters = len(facts.site.masters)
    yield own(
        "etcd/voters",
        _STATUS,
        f"{masters} voters, one leader they agree on; a majority survives the loss of {(masters - 1) // 2}",
        lambda: fine(lambda said: voters(said, masters))(facts.commands.on(facts.master, _STATUS)),
        Place.MASTER,
        facts.master.name,
    )


def voters(said: Said, wanted: int) -> Verdict:
    try:
        members = [entry["Status"] for entry in json.loads(said.output)]
        leaders = {member["leader"] for member in members}
        learners = [member for member in members if member.get("isLearner")]
        errors = [error for member in members for error in member.get("errors") or ()]
    except (ValueError, KeyError, TypeError):
        return failed(f"not the status of etcd: {said.last_word}")
    count = len(members) - len(learners)
    found = f"{count} voters, {len(learners)} learners, {len(leaders)} leader"
    if count != wanted or learners or len(leaders) != 1 or errors:
        return failed(short("; ".join([found, *map(str, errors)])))
    return passed(f"{found}, raft term {members[0].get('raftTerm')}")
