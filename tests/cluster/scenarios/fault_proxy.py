"""FaultProxy: an HTTP proxy on loopback between an operator and the API server that answers chosen calls with a fault.

A fault belongs to one Study: it hits calls of one verb and resource whose path or body names the
Study or one of its trials, from a phase of the Study on, for FAULT_SECONDS after the first hit.
"""
import http.client
import http.server
import json
import socket
import struct
import threading
import time
import urllib.parse

import cluster

FAULT_SECONDS = 8
SILENCE_SECONDS = 30
PHASES = ("before the first trial", "in the middle", "while it ends")
KINDS = ("400", "403 by RBAC", "403 by quota", "403 by policy", "404", "409", "422", "429", "429 with Retry-After",
         "500", "503", "502 with HTML", "200 with HTML", "reset before sending", "reset after the server acted",
         "30 s of silence")  # fmt: skip
MESSAGES = {
    "400": ("BadRequest", 'admission webhook "guard.example.com" denied the request: not now'),
    "403 by RBAC": ("Forbidden", 'is forbidden: User "operator" cannot create resource'),
    "403 by quota": ("Forbidden", "is forbidden: exceeded quota: few, requested: count=1, used: count=9, limited: count=9"),
    "403 by policy": ("Forbidden", "is forbidden: ValidatingAdmissionPolicy 'guard' with binding 'guard' denied request"),
    "404": ("NotFound", "not found"),
    "409": ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    "422": ("Invalid", "is invalid: ValidatingAdmissionPolicy 'guard' with binding 'guard' denied request"),
    "429": ("TooManyRequests", "the server has received too many requests"),
    "429 with Retry-After": ("TooManyRequests", "the server has received too many requests"),
    "500": ("InternalError", "Internal error occurred: failed calling webhook"),
    "503": ("ServiceUnavailable", "the server is currently unable to handle the request"),
}


class Fault:
    """One row of the sample. Thread-safe by the lock of its proxy."""

    def __init__(self, study, verb, resource, kind, phase, dry_run=False):
        self.study = study
        self.verb = verb
        self.resource = resource
        self.kind = kind
        self.phase = phase
        self.dry_run = dry_run
        self.first_hit = None
        self.hits = 0

    def __str__(self):
        return f"{self.verb} {self.resource}, {self.kind}, {PHASES[self.phase]}"

    def is_active(self):
        limited = self.kind == "30 s of silence" and self.hits >= 1
        return not limited and (self.first_hit is None or time.monotonic() < self.first_hit + FAULT_SECONDS)


class Call:
    """A request in the words of kube/client/calls.h."""

    def __init__(self, method, target, content_type, body):
        url = urllib.parse.urlparse(target)
        query = urllib.parse.parse_qs(url.query)
        parts = [part for part in url.path.split("/") if part]
        rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            rest = rest[2:]
        name = rest[1] if len(rest) > 1 else ""
        self.resource = "/".join([*rest[:1], *rest[2:]])
        self.dry_run = "dryRun" in query
        self.text = url.path + "?" + urllib.parse.unquote(url.query) + (body or b"").decode(errors="replace")
        if method == "GET":
            self.verb = "watch" if "watch" in query else "log" if self.resource == "pods/log" else "get" if name else "list"
        else:
            self.verb = {"POST": "create", "PUT": "update", "DELETE": "delete"}.get(method, "patch")
            if content_type == "application/apply-patch+yaml":
                self.verb = "apply"

    def is_about(self, study):
        return any(f"{before}{study}{after}" in self.text for before in '/"' for after in '-/"?')


class FaultProxy:
    def __init__(self):
        self.lock = threading.Lock()
        self.faults = []
        self.created = {}  # trials by Study
        self.trials = {}  # how many each Study will have
        config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        self.upstream = urllib.parse.urlparse(config["clusters"][0]["cluster"]["server"])
        proxy = self

        class Handler(_Handler):
            pass

        Handler.proxy = proxy
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def add(self, fault, trials):
        with self.lock:
            self.faults.append(fault)
            self.trials[fault.study] = trials
            self.created[fault.study] = 0

    def phase_of(self, study):
        if self.created[study] >= self.trials[study]:
            return 2
        return 1 if self.created[study] > 1 else 0

    def meet(self, call):
        """The fault that this call meets, or None."""
        with self.lock:
            for fault in self.faults:
                fits = fault.verb == call.verb and fault.resource == call.resource and fault.dry_run == call.dry_run
                if not fits or not call.is_about(fault.study) or self.phase_of(fault.study) < fault.phase:
                    continue
                if not fault.is_active():
                    continue
                fault.first_hit = fault.first_hit or time.monotonic()
                fault.hits += 1
                return fault
        return None

    def note_created(self, call):
        if call.verb != "create" or call.resource != "trials":
            return
        with self.lock:
            for study in self.created:
                if call.is_about(study):
                    self.created[study] += 1


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy = None

    def log_message(self, *_):
        pass

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call(self.command, self.path, self.headers.get("Content-Type"), body)
        fault = self.proxy.meet(call)
        if fault is None:
            return self.forward(call, body)
        if fault.kind == "30 s of silence":
            time.sleep(SILENCE_SECONDS)
            return self.reset()
        if fault.kind == "reset before sending":
            return self.reset()
        if fault.kind == "reset after the server acted":
            self.forward(call, body, silently=True)
            return self.reset()
        return self.answer(fault.kind)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

    def answer(self, kind):
        code = int(kind[:3])
        if kind.endswith("HTML"):
            payload, content_type = b"<html><body>Please log in</body></html>", "text/html"
        else:
            reason, message = MESSAGES[kind]
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                      "message": message}  # fmt: skip
            payload, content_type = json.dumps(status).encode(), "application/json"
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(payload)))
        if kind == "429 with Retry-After":
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(payload)

    def reset(self):
        """Closes the connection with RST."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def forward(self, call, body, silently=False):
        upstream, _ = cluster.connection()
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "accept-encoding", "content-length")}  # fmt: skip
        upstream.request(self.command, self.path, body=body or None, headers=headers)
        answer = upstream.getresponse()
        if answer.status == 201 and not call.dry_run:
            self.proxy.note_created(call)
        if silently:
            answer.read()
            upstream.close()
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date"):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            upstream.close()
