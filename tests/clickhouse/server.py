#!/usr/bin/env python3
"""A ClickHouse server for tests: the engine of PyPI's `chdb-core` behind ClickHouse's HTTP interface, with faults.

    pip install --no-deps -r requirements.txt
    python3 server.py            # first line: "listening on http://127.0.0.1:PORT"; it ends with its standard input

The engine parses, checks and answers; this file moves bytes. Each request is a chdb connection and so a session of its
own. A SELECT streams through a pipe, because chdb hands out results whole.

Users: `default` without a password, `reader` (password `s3cret`, readonly=1), `writer` (password `pa'ss wörd`).
`POST /faults?database=D&name=value`: faults of the requests that name the database D; without names, none any more:
    fail=N         answer the next N requests with ...
    status=S       ... this status (503) ...
    text=T         ... and this body
    skip=N         let N requests pass first
    delay_ms=N     wait before each answer
    cut=N          cut the next N answers that get so far ...
    cut_after=B    ... after B bytes of their body (0: at the first block's boundary, as a clean end of the chunk)
    cut_clean=1    ... and end them as if they were complete
    sql_at=N       let N requests pass and then run ...
    sql=S          ... this statement before the next one
    spare=N        leave the next N answers alone, ...
    damage=N       ... damage N after them, ...
    seed=S         ... as this number has it, ...
    wire=1         ... as they are sent and not before they are packed
    profile=S      settings S of every SELECT's session, as the profile of its user has them: "limit = 1, offset = 1"
`GET /log?database=D`: the statements of the requests that named D, one JSON object a line.
`GET /sent?database=D`: how many bytes their answers had, as sent.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import ssl
import struct
import sys
import threading
import time
import uuid
from collections import defaultdict
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator
from urllib.parse import parse_qsl, urlsplit

import chdb
import lz4.block
import lz4.frame

USERS = {"default": ("", 0), "reader": ("s3cret", 1), "writer": ("pa'ss wörd", 0)}
ENGINE = f":memory:?config-file={os.path.dirname(os.path.abspath(__file__))}/cluster.xml"
# URL parameters that are no settings.
PLAIN = {"query", "database", "default_format", "query_id", "user", "password", "decompress", "wait_end_of_query"}
HTTP_STATUS = {516: 403, 164: 403, 497: 403, 60: 404, 81: 404, 47: 404, 62: 400, 202: 503, 209: 503, 159: 408}
# A server's http_max_field_value_size.
FIELD_LIMIT = 1 << 17
# What is held back before the status line, so that an early error still has a status of its own.
HELD = 1 << 20


class Refused(Exception):
    """An error of the engine, or one made in its words."""

    def __init__(self, text: str) -> None:
        found = re.search(r"Code: (\d+)\. ", text)
        self.code = int(found[1]) if found else 1002
        text = text[found.start() if found else 0 :].split(" (version ")[0].strip()
        super().__init__(f"{text} (version {chdb.engine_version} (official build))\n")


class Cut(Exception):
    """The fault `cut` struck."""


def quote(text: str, mark: str) -> str:
    return mark + text.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


def unpack(data: bytes) -> bytes:
    """Native compression of inserts: 16 bytes of checksum, method, packed size with this header, size, content."""
    out, at = [], 0
    while at < len(data):
        method, packed, size = struct.unpack_from("<BII", data, at + 16)
        content = data[at + 25 : at + 16 + packed]
        out.append(lz4.block.decompress(content, size) if method == 0x82 else content)
        at += 16 + packed
    return b"".join(out)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Flips bits, puts odd numbers in, takes bytes away or adds some."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        if not out:
            break
        # The head of an answer names its columns and types.
        at = draw.randrange(min(len(out), draw.choice([64, 400, len(out)])))
        match draw.randrange(6):
            case 0 | 1:
                out[at] ^= 1 << draw.randrange(8)
            case 2:
                out[at : at + 8] = draw.choice([b"\xff" * 8, b"\x7f" * 8, b"\x00" * 8, b"\x80" * 4])
            case 3:
                del out[at : at + draw.randint(1, 9)]
            case 4:
                out[at:at] = out[at : at + draw.randint(1, 9)]
            case _:
                del out[at + 1 :]
    return bytes(out)


def form(body: bytes, boundary: bytes) -> dict[str, str]:
    fields = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        if name := re.search(rb'name="([^"]*)"', head):
            if len(value) > FIELD_LIMIT:
                raise Refused("Code: 1000. DB::Exception: Poco::Exception. Code: 1000, e.code() = 0, HTML Form Exception: "
                              "Field value too long. (POCO_EXCEPTION)")
            fields[name[1].decode()] = value.decode()
    return fields


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, tls: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.faults: dict[str, dict[str, str]] = defaultdict(dict)
        self.log: dict[str, list[str]] = defaultdict(list)
        self.sent: dict[str, int] = defaultdict(int)
        self.running: dict[str, str] = {}
        # The engine lives as long as its last connection.
        self.engine = chdb.connect(ENGINE)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate or goes away is no news."""

    def take(self, database: str, fault: str) -> bool:
        """Whether a counted fault strikes now."""
        with self.lock:
            faults = self.faults[database]
            left = int(faults.get(fault, 0))
            if left <= 0:
                return False
            faults[fault] = str(left - 1)
            return True

    def stop(self, marks: list[str]) -> None:
        for mark in marks:
            self.engine.query(f"KILL QUERY WHERE position(query, {quote(mark, chr(39))}) > 0 AND query NOT LIKE 'KILL%'")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def reply(self, status: int, text: str, code: int | None = None) -> None:
        data = text.encode()
        self.send_response(status)
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        params = dict(parse_qsl(url.query, keep_blank_values=True))
        body = self.body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        database = params.get("database", "")
        if url.path == "/ping":
            return self.reply(200, "Ok.\n")
        if url.path == "/faults":
            del params["database"]
            self.server.faults[database] = params
            return self.reply(200, "Ok.\n")
        if url.path == "/sent":
            return self.reply(200, f"{self.server.sent[database]}\n")
        if url.path == "/log":
            return self.reply(200, "\n".join(self.server.log[database]))
        faults = self.server.faults[database]
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/form-data"):
            try:
                params |= form(body, kind.split("boundary=")[1].strip('"').encode())
            except Refused as error:
                return self.reply(500, str(error), error.code)
            body = b""
        elif params.get("decompress") == "1":
            body = unpack(body)
        self.server.log[database].append(json.dumps({"query": params.get("query") or body[:2000].decode(), "params": params}))
        if not self.server.take(database, "skip") and self.server.take(database, "fail"):
            return self.reply(int(faults.get("status", 503)), faults.get("text", "upstream is away\n"))
        time.sleep(int(faults.get("delay_ms", 0)) / 1000)
        if "sql" in faults and not self.server.take(database, "sql_at"):
            with closing(chdb.connect(ENGINE)) as session:
                session.query(faults.pop("sql"))
        try:
            self.answer(params, body)
        except (ConnectionError, Cut):
            self.close_connection = True

    do_GET = do_POST

    def user(self) -> int:
        """Checks the user and gives its readonly mode."""
        name = self.headers.get("X-ClickHouse-User") or "default"
        key = self.headers.get("X-ClickHouse-Key", "").encode("latin-1").decode("utf-8", "replace")
        password, readonly = USERS.get(name, (None, 0))
        if key != password:
            raise Refused(
                f"Code: 516. DB::Exception: {name}: Authentication failed: password is incorrect, or there is no user "
                "with such name. (AUTHENTICATION_FAILED)"
            )
        return readonly

    def answer(self, params: dict[str, str], body: bytes) -> None:
        packer = lz4.frame.LZ4FrameCompressor(auto_flush=True) if "lz4" in self.headers.get("Accept-Encoding", "") else None
        database, begun, held, size = params.get("database", ""), False, [], 0
        self.sent, self.database = 0, database
        faults = self.server.faults[database]
        struck = not self.server.take(database, "spare") and self.server.take(database, "damage")
        draw = random.Random(int(faults.get("seed", 0)))
        wire = "wire" in faults

        def begin() -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            if packer:
                self.send_header("Content-Encoding", "lz4")
            self.end_headers()
            self.chunk(packer.begin() if packer else b"")

        def pack(data: bytes) -> bytes:
            if struck and not wire:
                data = damaged(data, draw)
            packed = packer.compress(data) if packer else data
            return damaged(packed, draw) if struck and wire else packed

        try:
            with closing(chdb.connect(ENGINE)) as session:
                for piece in self.run(session, params, body, self.user()):
                    if begun:
                        self.chunk(pack(piece))
                        continue
                    held.append(piece)
                    size += len(piece)
                    if size >= HELD:
                        begin()
                        begun = True
                        self.chunk(pack(b"".join(held)))
            if not begun:
                begin()
                begun = True
                self.chunk(pack(b"".join(held)))
            self.chunk(packer.flush() if packer else b"")
            self.wfile.write(b"0\r\n\r\n")
        except Refused as error:
            if not begun:
                return self.reply(HTTP_STATUS.get(error.code, 500), str(error), error.code)
            tag = uuid.uuid4().hex[:16]
            mark, text = b"\r\n__exception__\r\n", str(error).encode()
            self.chunk(pack(mark + tag.encode() + b"\r\n" + text + b"%d %s" % (len(text), tag.encode()) + mark))
            # Without the last, empty chunk: broken, as a server leaves it.
            raise Cut from error

    def chunk(self, data: bytes) -> None:
        if not data:
            return
        faults = self.server.faults[self.database]
        after, clean = int(faults.get("cut_after", 0)), faults.get("cut_clean")
        reached = self.sent >= after if clean else self.sent + len(data) > after
        if self.sent and reached and self.server.take(self.database, "cut"):
            if clean:
                self.wfile.write(b"0\r\n\r\n")
            elif after > 0:
                self.wfile.write(b"%x\r\n%b" % (len(data), data[: max(0, after - self.sent)]))
            raise Cut
        self.sent += len(data)
        self.server.sent[self.database] += len(data)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def run(self, session: Any, params: dict[str, str], body: bytes, readonly: int) -> Iterator[bytes]:
        """Runs the request's one statement."""
        text = params.get("query", "")
        try:
            session.query("SET implicit_select = 0")
            if database := params.get("database"):
                session.query(f"USE {quote(database, '`')}")
            profile = self.server.faults[params.get("database", "")].get("profile")
            if profile and re.match(r"\(*\s*(SELECT|WITH)\b", text or body.decode(errors="replace").strip(), re.I):
                session.query(f"SET {profile}")
            if readonly:
                session.query(f"SET readonly = {readonly}")
            for name, value in params.items():
                if name not in PLAIN and not name.startswith("param_"):
                    session.query(f"SET {quote(name, '`')} = {quote(value, chr(39))}")
            if text and (insert := re.fullmatch(r"(INSERT\s.*)\sFORMAT\s+(\w+)\s*", text, re.I | re.S)):
                into = session.send_insert(insert[1], insert[2])
                into.append(body)
                into.finish()
                return
            sql = (text + "\n" + body.decode() if text else body.decode()).strip().rstrip(";")
            form_name = params.get("default_format", "TabSeparated")
            if found := re.fullmatch(r"(.*)\sFORMAT\s+(\w+)", sql, re.I | re.S):
                sql, form_name = found[1], found[2]
            values = {name[6:]: value for name, value in params.items() if name.startswith("param_")}
            if re.match(r"KILL\s+QUERY", sql, re.I):
                # Statements run under ids of the engine's own; ours are found by their pipes.
                begins = tuple(re.findall(r"'([^']+)'", sql))
                self.server.stop([mark for name, mark in list(self.server.running.items()) if name.startswith(begins)])
            elif re.match(r"\(*\s*(SELECT|WITH)\b", sql, re.I):
                yield from self.select(session, params.get("query_id", ""), sql, form_name, values)
            else:
                yield session.query(sql, form_name, values).bytes()
        except (RuntimeError, chdb.ChdbError) as error:
            raise Refused(str(error)) from error

    def select(self, session: Any, name: str, sql: str, form_name: str, values: dict[str, str]) -> Iterator[bytes]:
        reader, writer = os.pipe()
        mark = f"INTO OUTFILE '/proc/self/fd/{writer}' TRUNCATE"
        failure: list[BaseException] = []

        def work() -> None:
            try:
                session.query(f"{sql}\n{mark} COMPRESSION 'none' FORMAT {form_name}", "Null", values)
            except BaseException as error:
                failure.append(error)
            finally:
                os.close(writer)  # the reader's end of file

        worker = threading.Thread(target=work)
        self.server.running[name] = mark
        worker.start()
        whole = False
        try:
            while piece := os.read(reader, 1 << 18):
                yield piece
            whole = True
        finally:
            if not whole:  # the client went away
                self.server.stop([mark])
            os.close(reader)
            worker.join()
            self.server.running.pop(name, None)
        if failure:
            raise failure[0]

    def log_message(self, format: str, *args: Any) -> None:
        """Standard error stays quiet; /log has the statements."""


def main() -> None:
    tls = sys.argv[1:]
    with Server(tls) as server, closing(server.engine):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
        print(f"listening on http{'s' if tls else ''}://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
