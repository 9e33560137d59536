"""A real OpenID provider, and a person with a browser who logs in there."""

import html.parser
import http.cookiejar
import json
import pathlib
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request

SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "support" / "oidc"
INSTALL_TIMEOUT_S = 300
ANSWER_TIMEOUT_S = 60


def certify(directory):
    """A CA and a certificate for 127.0.0.1. Returns the paths of the CA, the certificate and its key."""
    paths = [directory / name for name in ("ca.pem", "ca-key.pem", "server.pem", "server-key.pem")]
    authority, authority_key, server, key = paths

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=ANSWER_TIMEOUT_S)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *curve, "-subj", "/CN=CA of a test", "-keyout", authority_key, "-out", authority)
    openssl("req", "-x509", *curve, "-subj", "/CN=provider", "-addext", "subjectAltName=IP:127.0.0.1",
            "-CA", authority, "-CAkey", authority_key, "-keyout", key, "-out", server)
    return authority, server, key


class Provider:
    """The process of tests/support/oidc/provider.mjs."""

    def __init__(self, directory):
        directory.mkdir()
        self.ca_file, certificate, key = certify(directory)
        ready = subprocess.run([SUPPORT / "ready"], check=True, stdout=subprocess.PIPE, text=True,
                               timeout=INSTALL_TIMEOUT_S).stdout.strip()
        self._errors = (directory / "errors").open("w")
        self._process = subprocess.Popen([shutil.which("node"), f"{ready}/provider.mjs", certificate, key],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self.issuer = self.tell("start")["issuer"]

    def tell(self, command, **words):
        self._process.stdin.write(json.dumps({"do": command, **words}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def sign(self, key="rs", header=None, **claims):
        """A token with these claims, signed by one of the provider's keys, or by "stranger"."""
        return self.tell("sign", key=key, header=header or {}, claims=claims)["token"]

    def browser(self):
        return Browser(self.ca_file)

    def close(self):
        self._process.stdin.close()
        self._process.wait(ANSWER_TIMEOUT_S)
        self._process.stdout.close()
        self._errors.close()


class _Forms(html.parser.HTMLParser):
    """The first form of a page: where it goes, and its fields."""

    def __init__(self):
        super().__init__()
        self.action = None
        self.fields = {}

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "form" and self.action is None:
            self.action = attributes["action"]
        if tag == "input" and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value") or ""


class Browser:
    """The parts of one that a person needs: pages, forms, cookies."""

    def __init__(self, ca_file):
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar, tls)

    def _open(self, url, fields=None):
        data = None if fields is None else urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(url, data, headers={"Accept": "text/html"})
        with self._opener.open(request, timeout=ANSWER_TIMEOUT_S) as page:
            return page.url, page.read().decode()

    def _submit(self, page, **fields):
        url, text = page
        form = _Forms()
        form.feed(text)
        return self._open(urllib.parse.urljoin(url, form.action), {**form.fields, **fields})

    def approve(self, url, code, person):
        """Enters the code, confirms it, logs in and consents."""
        page = self._submit(self._open(url), user_code=code)
        page = self._submit(page)
        page = self._submit(page, login=person, password="any")
        page = self._submit(page)
        assert "Sign-in Success" in page[1], page[1]

    def deny(self, url, code):
        """Enters the code and aborts."""
        page = self._submit(self._open(url), user_code=code)
        self._submit(page, abort="yes")
