"""Tells a chat room how much a session has used."""

import json
import urllib.request


def on_session_end(payload: dict) -> dict:
    url = payload.get("webhook_url")
    if not url:
        return {"notified": False}
    tokens = payload.get("summary", {}).get("total_tokens", 0)
    body = json.dumps({"text": f"session ended: {tokens} tokens"}).encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=5).close()
    return {"notified": True}


if __name__ == "__main__":
    print(json.dumps(on_session_end(json.loads(input()))))
