"""Rights that were just given: the API acts on them a moment later, and whoever asks before that is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from eventually import PATIENCE
from falsework.kube.client import Client, Object

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def until_in_force(client: Client, bindings: list[Object]) -> None:
    """Until everybody in these bindings may do all that their roles allow."""
    deadline = time.monotonic() + PATIENCE
    for binding in bindings:
        for question in _questions(client, binding):
            while not _is_allowed(client, question):
                assert time.monotonic() < deadline, f"{binding['metadata']['name']}: {question}"
                time.sleep(0.02)


def _questions(client: Client, binding: Object) -> Iterator[Object]:
    """One for each rule of the role and everybody it is given to."""
    reference, namespace = binding["roleRef"], binding["metadata"].get("namespace", "")
    kind = client.resource_of({"apiVersion": binding["apiVersion"], "kind": reference["kind"]})
    role = client.get(kind, reference["name"], namespace if kind.namespaced else "")
    for subject in binding["subjects"]:
        for rule in role["rules"]:
            yield {**_who(subject), **_what(rule, namespace)}


def _who(subject: Object) -> Object:
    match subject["kind"]:
        case "ServiceAccount":
            return {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}"}
        case "Group":
            return {"groups": [subject["name"]]}
        case _:
            return {"user": subject["name"]}


def _what(rule: Object, namespace: str) -> Object:
    verb = rule["verbs"][0]
    if paths := rule.get("nonResourceURLs"):
        return {"nonResourceAttributes": {"path": paths[0], "verb": verb}}
    resource, _, subresource = rule["resources"][0].partition("/")
    name = (rule.get("resourceNames") or [""])[0]
    asked = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource, "verb": verb}
    return {"resourceAttributes": {**asked, "name": name, "namespace": namespace}}


def _is_allowed(client: Client, question: Object) -> bool:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": question}
    status, answer = client.raw("POST", _REVIEWS, review)
    assert status == 201, answer
    return bool(json.loads(answer)["status"]["allowed"])
