"""An HTTP target that fails a chosen number of attempts, then succeeds."""

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


class FlakyTarget:
    """Serves ``/fail/<n>``: attempts 1 to n get 503, later ones 200.

    Attributes:
        calls: requests by (idempotency key, attempt).
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self._lock = Lock()
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                attempt = int(self.headers["X-Attempt"])
                target.count(self.headers["Idempotency-Key"], attempt)
                failures = int(self.path.rpartition("/")[2])
                self.send_response(200 if attempt > failures else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Stay silent: the run command and its history say it all."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, name="flaky-target", daemon=True)
        self._thread.start()

    def url(self, failures: int) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/fail/{failures}"

    def count(self, key: str, attempt: int) -> None:
        with self._lock:
            self.calls[key, attempt] += 1

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
