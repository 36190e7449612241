"""A provider of OpenID Connect for one user, who has signed on already."""
import base64
import hashlib
import hmac
import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

ISSUER = "http://127.0.0.1:8085"
nonces = {}

def part(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=")

def token(nonce):
    now = int(time.time())
    claims = dict(iss=ISSUER, sub="1", aud="front", iat=now, exp=now + 300, nonce=nonce,
                  preferred_username="ann", email="ann@example.org")
    signed = part(b'{"alg":"HS256"}') + b"." + part(json.dumps(claims).encode())
    digest = hmac.new(b"client secret, 32 bytes or longer", signed, hashlib.sha256).digest()
    return (signed + b"." + part(digest)).decode()

class Provider(BaseHTTPRequestHandler):
    def tell(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/authorize":
            nonces["code"] = asked["nonce"]
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?code=code&state={asked['state']}")
            self.end_headers()
        elif url.path == "/jwks":
            self.tell({"keys": []})
        else:
            self.tell(dict(issuer=ISSUER, authorization_endpoint=ISSUER + "/authorize",
                           token_endpoint=ISSUER + "/token", jwks_uri=ISSUER + "/jwks",
                           response_types_supported=["code"],
                           id_token_signing_alg_values_supported=["HS256"],
                           token_endpoint_auth_methods_supported=["client_secret_basic"]))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.tell(dict(access_token="a", token_type="Bearer", expires_in=300, id_token=token(nonces.pop("code"))))

HTTPServer(("127.0.0.1", 8085), Provider).serve_forever()
