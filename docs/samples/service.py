# A service's side of Tenant Ledger: verifies keys and reports facts. docs/services.md says why.

import json, os, re, time, urllib.error, urllib.request, uuid, zlib

BASE, SERVICE_KEY = os.environ["URL"], os.environ["SERVICE_KEY"]
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_key(text):
    if not re.fullmatch(r"key_[0-9A-Za-z]{55}", text):
        return False
    checksum = 0
    for character in text[-6:]:
        checksum = checksum * 62 + DIGITS.index(character)
    return checksum == zlib.crc32(text[:-6].encode())


def post(path, content_type, body, attempts=8):
    headers = {"SVC-API-KEY": SERVICE_KEY, "Content-Type": content_type}
    for attempt in range(1, attempts + 1):
        try:
            request = urllib.request.Request(BASE + path, body.encode(), headers)
            with urllib.request.urlopen(request, timeout=5) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            wait = error.headers.get("Retry-After")
            if wait is None or attempt == attempts:
                raise
            time.sleep(int(wait))
        except OSError:
            if attempt == attempts:
                raise
            time.sleep(0.2 * attempt)


known = {}


def verify_key(key, permission):
    if not is_key(key):
        return {"valid": False, "reason": "malformed"}
    until, answer = known.get((key, permission), (0, None))
    if until > time.monotonic():
        return answer
    asked = time.monotonic()
    question = json.dumps({"key": key, "permission": permission})
    answer = post("/keys/verify", "application/json", question)
    if answer["valid"] and "expires_at" not in answer:
        known[key, permission] = (asked + 0.5, answer)
    return answer


def new_fact(tenant_id, fact_type, data, **more):
    return {"id": str(uuid.uuid4()), "tenant_id": tenant_id, "type": fact_type, "data": data, **more}


def report(facts):
    refused = []
    while facts:
        batch, facts = facts[:500], facts[500:]
        lines = "".join(json.dumps(fact) + "\n" for fact in batch)
        answer = post("/facts", "application/x-ndjson", lines)
        refused += [one for one in answer["refused"] if not one["retry"]]
        again = [batch[one["line"] - 1] for one in answer["refused"] if one["retry"]]
        if again:
            time.sleep(1)
        facts = again + facts
    return refused
