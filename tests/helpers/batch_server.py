"""A small server with the batch API as OpenAI describes it; for tests, and not OpenAI's."""

from __future__ import annotations

import email
import itertools
import json
import re
from dataclasses import KW_ONLY, dataclass
from typing import Any

from tests.helpers.chat_server import FakeServer, LocalServer, _Handler


@dataclass(eq=False)
class FakeBatchServer(LocalServer):
    """Files and batches.

    Attributes:
        model: the name it serves.
        looks: how often a batch is looked at before it is over.
        fail: prompts of which an error is reported.
        lose: replies to the first so many submissions are lost on the way, though the batch is taken.
        short: requests of each batch that are left without a result.
        invalid: what is wrong with every batch as a whole, if anything.
        nameless: replies to submissions lack the id.
        lines: of every batch that was submitted.
    """

    model: str
    _: KW_ONLY
    looks: int = 2
    fail: str = "(?!)"
    lose: int = 0
    short: int = 0
    invalid: str = ""
    nameless: bool = False

    def __post_init__(self) -> None:
        self.chat = FakeServer(self.model, dialect="openai")
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.lines: list[dict[str, Any]] = []
        self._names = itertools.count()
        outer = self

        class Handler(_Handler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/v1/models":
                    return self.reply(*outer.chat.describe(path))
                if path == "/v1/batches":
                    return self.reply(200, {"data": list(outer.batches.values())[::-1], "has_more": False})
                name = (path + "/").split("/")[3]
                if path == f"/v1/batches/{name}" and name in outer.batches:
                    return self.reply(200, outer.look(name))
                if path == f"/v1/files/{name}/content" and name in outer.files:
                    return self.reply(200, outer.files[name])
                self.reply(404, {"error": {"message": "nothing there"}})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/files":
                    name = f"file{next(outer._names)}"
                    head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                    purpose, file = email.message_from_bytes(head + body).get_payload()
                    assert purpose.get_payload(decode=True) == b"batch"
                    outer.files[name] = file.get_payload(decode=True)
                    return self.reply(200, {"id": name, "object": "file"})
                batch = outer.submit(json.loads(body))
                if outer.lose > 0:
                    outer.lose -= 1
                    self.close_connection = True
                    return None
                self.reply(200, {key: value for key, value in batch.items() if key != "id" or not outer.nameless})

        self.listen(Handler)

    def submit(self, order: dict[str, Any]) -> dict[str, Any]:
        name = f"batch{next(self._names)}"
        assert (order["endpoint"], order["completion_window"]) == ("/v1/chat/completions", "24h")
        self.lines += [json.loads(line) for line in self.files[order["input_file_id"]].splitlines()]
        self.batches[name] = {"id": name, "status": "in_progress", "looks": 0, **order}
        return self.batches[name]

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        batch["looks"] += 1
        if self.invalid:
            error = {"code": "invalid", "message": self.invalid, "param": None, "line": 1}
            batch |= {"status": "failed", "errors": {"object": "list", "data": [error]}}
        if batch["looks"] >= self.looks and batch["status"] == "in_progress":
            good, bad = [], []
            lines = self.files[batch["input_file_id"]].splitlines()
            for line in lines[: len(lines) - self.short]:
                request = json.loads(line)
                if re.search(self.fail, request["body"]["messages"][0]["content"]):
                    bad.append({"custom_id": request["custom_id"], "response": None, "error": {"message": "no way"}})
                    continue
                status, value = self.chat.complete(request["body"])
                good.append({"custom_id": request["custom_id"], "response": {"status_code": status, "body": value}})
            # In another order than they were sent in, as the description warns.
            for field, results in (("output_file_id", good[::-1]), ("error_file_id", bad)):
                file = f"file{next(self._names)}"
                self.files[file] = b"".join(json.dumps(line).encode() + b"\n" for line in results)
                batch[field] = file
            batch["status"] = "expired" if self.short else "completed"
        return batch
