"""An HTTP/1.1 server on a loopback port of its own, and the record of the requests it got."""

import json
import sys
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Record:
    """Requests by the model they name, in order of arrival."""

    def __init__(self):
        self._lock = threading.Lock()
        self._requests = defaultdict(list)

    def add(self, handler, body):
        try:
            body = json.loads(body)
        except ValueError:
            body = None
        # By the name that routes give it, or that the native contract of hooks does.
        model = body.get("model", body.get("model_id")) if isinstance(body, dict) else None
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self._requests[model].append({"path": handler.path, "headers": headers, "body": body})

    def of(self, model):
        with self._lock:
            return list(self._requests[model])


class Handler(BaseHTTPRequestHandler):
    """Reads the body and answers with one call; keeps connections open and quiet."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def answer(self, status, body, content_type="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_stream(self, status, content_type, chunks):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # A client may leave when it likes.
            super().handle_error(request, client_address)


def start(handler):
    """Serves with `handler` on a thread; the address as a URL."""
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
