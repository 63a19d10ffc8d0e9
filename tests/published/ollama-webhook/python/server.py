"""A webhook before inference: allows, denies, asks, or takes a password out. Its port is its first line."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def judge(event: dict) -> dict:
    messages = event["messages"]
    text = messages[-1]["content"]
    if "launch codes" in text:
        return {"permission": "deny", "user_message": "that is secret", "agent_message": "policy 7"}
    if "transfer" in text:
        return {"permission": "ask", "user_message": "a person has to agree"}
    if "hunter2" in text:
        messages[-1]["content"] = text.replace("hunter2", "***")
        return {"permission": "modify", "messages": messages}
    return {"permission": "allow"}


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert event["event"] == self.headers["X-Ollama-Hook-Event"]
        assert self.headers["Authorization"] == "Bearer t0ken"
        reply = json.dumps(judge(event)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
print(server.server_port, flush=True)
server.serve_forever()
