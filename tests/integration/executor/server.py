"""A local HTTP target that answers as told and remembers what it was asked."""

import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class TargetServer:
    """Answers the given codes one after another, then the last one for ever (200 at first).

    Attributes:
        requests: the headers of each request, lower case, in order of arrival.
        gate: answers wait until it is set.
    """

    def __init__(self) -> None:
        self.codes: deque[int] = deque([200])
        self.requests: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.gate = threading.Event()
        self.gate.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append({k.lower(): v for k, v in self.headers.items()})
                outer.gate.wait(60)
                codes = outer.codes
                self.send_response(codes.popleft() if len(codes) > 1 else codes[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/run"

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
