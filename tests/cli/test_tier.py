"""Claims about the shared cache over HTTP: against nginx with WebDAV, and against servers that misbehave."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from support import Case, HEDDLE, knows_compilers

NGINX = shutil.which('nginx') or '/usr/sbin/nginx'

CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/t1; fastcgi_temp_path {folder}/t2;
  uwsgi_temp_path {folder}/t3; scgi_temp_path {folder}/t4;
  map $http_authorization $known {{ default 0; "Bearer of good news" 1; }}
  server {{
    listen 127.0.0.1:{secure_port} ssl;
    ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;
    location / {{ root {folder}/data/cache; }}
  }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 300m;
    location /cache/ {{ root {folder}/data; dav_methods PUT; create_full_put_path on; }}
    location /closed/ {{ if ($known = 0) {{ return 401; }} root {folder}/data; dav_methods PUT; create_full_put_path on; }}
    location /broken/ {{ return 500; }}
    location /moved/ {{ return 302 http://127.0.0.1:{port}/cache$request_uri; }}
    location /readonly/ {{ alias {folder}/data/cache/; }}
  }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Tier(Case):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory()
        cls.server = pathlib.Path(cls.room.name)
        cls.server.chmod(0o755)
        cls.port, cls.secure_port = free_port(), free_port()
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
                        '/CN=127.0.0.1', '-keyout', 'key.pem', '-out', 'certificate.pem'], cwd=cls.server, check=True, capture_output=True)
        (cls.server / 'data').mkdir()
        (cls.server / 'nginx.conf').write_text(CONFIGURATION.format(folder=cls.server, port=cls.port, secure_port=cls.secure_port))
        # Missing is a failure, not a skip: tools/setup.sh installs nginx-light.
        cls.nginx = subprocess.Popen([NGINX, '-p', str(cls.server), '-e', str(cls.server / 'error.log'), '-c', str(cls.server / 'nginx.conf')])
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(('127.0.0.1', cls.port)) == 0:
                    break
            if cls.nginx.poll() is not None:
                raise AssertionError('nginx ended: ' + (cls.server / 'error.log').read_text())
            time.sleep(0.05)

    @classmethod
    def tearDownClass(cls):
        cls.nginx.send_signal(signal.SIGTERM)
        cls.nginx.wait(20)
        cls.room.cleanup()

    def setUp(self):
        super().setUp()
        self.spec = self.small()
        shutil.rmtree(self.server / 'data')
        (self.server / 'data').mkdir(mode=0o777)
        (self.server / 'data').chmod(0o777)  # nginx may serve as another user
        (self.server / 'access.log').write_text('')

    def url(self, path='cache'):
        return 'http://127.0.0.1:%d/%s/' % (self.port, path)

    def build(self, url, targets=('gfx950',), **environment):
        """A node with an empty cache builds a kernel for each target; returns hits, and the lines about the shared cache."""
        shutil.rmtree(self.folder / 'cache' / 'objects', ignore_errors=True)
        arguments = [word for target in targets for word in ('--target', target)]
        out, errors = self.heddle('build', self.spec, '--kernel', 'write', *arguments, HEDDLE_CACHE_URL=url, **environment)
        hits = [line for line in out.splitlines() if ' hit ' in line]
        self.assertIn('0 not built', out)
        return len(hits), [line for line in errors.splitlines() if 'shared cache' in line]

    def entry(self):
        """The entry that nginx keeps."""
        (path,) = (self.server / 'data').rglob('?' * 64)
        return path

    def requests(self):
        time.sleep(0.05)  # nginx logs after it has answered
        return [line.split('"')[1].split()[0] for line in (self.server / 'access.log').read_text().splitlines()]

    # ---- nginx ----

    def test_what_one_node_compiles_the_next_one_finds(self):
        self.assertEqual((0, []), self.build(self.url(), ['gfx950', 'gfx942']))
        self.assertEqual(['GET', 'GET', 'PUT', 'PUT'], sorted(self.requests()))
        self.assertEqual((2, []), self.build(self.url(), ['gfx950', 'gfx942']))
        self.assertEqual(4, self.requests().count('GET'))
        here = {path.name: path.read_bytes() for path in (self.folder / 'cache' / 'objects').glob('*/*')}
        there = {path.name: path.read_bytes() for path in (self.server / 'data').rglob('?' * 64)}
        self.assertEqual(there, here, 'read through: the entry is in the folder now')
        self.heddle('build', self.spec, '--kernel', 'write', '--target', 'gfx950', '--target', 'gfx942', HEDDLE_CACHE_URL=self.url())
        self.assertEqual(6, len(self.requests()), 'and is not asked for again')

    def test_header_from_a_file(self):
        header = self.file('header', 'Authorization: Bearer of good news\n')
        self.assertEqual((0, []), self.build(self.url('closed'), HEDDLE_CACHE_HEADER=str(header)))
        self.assertEqual((1, []), self.build(self.url('closed'), HEDDLE_CACHE_HEADER=str(header)))
        hits, lines = self.build(self.url('closed'))
        self.assertEqual((0, 1), (hits, len(lines)))
        self.assertIn('code 401', lines[0])
        for contents in ['no header', 'A: b\nC: d\n', 'A: \x01\n']:
            hits, lines = self.build(self.url('closed'), HEDDLE_CACHE_HEADER=str(self.file('header', contents)))
            self.assertEqual(0, hits)
            self.assertIn('is not used: the header file', lines[0])
        hits, lines = self.build(self.url('closed'), HEDDLE_CACHE_HEADER='/nowhere')
        self.assertIn("can't be read", lines[0])

    def test_a_server_that_is_only_read_is_offered_nothing_more_and_still_asked(self):
        self.build(self.url())
        (self.server / 'access.log').write_text('')
        self.assertEqual((1, []), self.build(self.url('readonly')))
        hits, lines = self.build(self.url('readonly'), ['gfx942', 'gfx1201'])
        self.assertEqual((0, 1), (hits, len(lines)), lines)
        self.assertIn('offered nothing more: it answers with code 405', lines[0])
        self.assertEqual(['GET', 'GET', 'GET', 'PUT'], sorted(self.requests()))

    def test_a_certificate_that_nobody_trusts(self):
        self.build(self.url())
        hits, lines = self.build('https://127.0.0.1:%d' % self.secure_port)
        self.assertEqual((0, 1), (hits, len(lines)), lines)
        self.assertIn('certificate', lines[0])

    def test_errors_and_redirects_are_one_line_and_then_it_is_left_alone(self):
        for path, word in [('broken', 'code 500'), ('moved', 'redirect (302), which is not followed')]:
            (self.server / 'access.log').write_text('')
            hits, lines = self.build(self.url(path), ['gfx950', 'gfx942'])
            self.assertEqual((0, 1), (hits, len(lines)), lines)
            self.assertIn(word, lines[0])
            self.assertIn('left alone for 30 s', lines[0])
            self.assertEqual(['GET'], self.requests(), 'the second kernel does not ask, and nothing is offered')

    def test_a_damaged_entry_is_not_used_and_mended(self):
        self.build(self.url())
        good = self.entry().read_bytes()
        flipped = bytearray(good)
        flipped[-40] ^= 1
        version = bytearray(good)
        version[8] += 1
        for what, data in [('flipped', bytes(flipped)), ('cut', good[:1000]), ('empty', b''), ('longer', good + b'x'),
                           ('no entry', b'<html>welcome</html>'), ('of another format', bytes(version))]:
            with self.subTest(what):
                os.chmod(self.entry(), 0o666)
                self.entry().write_bytes(data)
                hits, lines = self.build(self.url())
                self.assertEqual((0, 1), (hits, len(lines)), lines)
                self.assertIn('is not used', lines[0])
                self.assertEqual(good, self.entry().read_bytes(), 'what was compiled in its place is there')

    def test_an_entry_of_another_kernel_or_target_under_the_key_is_not_used(self):
        self.build(self.url())
        mine, good = self.entry(), self.entry().read_bytes()
        for arguments in [['--kernel', 'decode', '--target', 'gfx950'], ['--kernel', 'write', '--target', 'gfx942']]:
            other = str(self.folder / 'other')
            knows_compilers(other)
            self.heddle('build', self.spec, *arguments, HEDDLE_CACHE_DIR=other)
            (theirs,) = pathlib.Path(other).glob('objects/*/*')
            os.chmod(mine, 0o666)
            mine.write_bytes(theirs.read_bytes())
            hits, lines = self.build(self.url())
            self.assertEqual((0, 1), (hits, len(lines)), lines)
            self.assertIn('another key', lines[0])
            self.assertEqual(good, mine.read_bytes())
            shutil.rmtree(other)

    # ---- Others ----

    def serve(self, answer):
        """A server whose every connection is given to `answer`; returns its address and the list of first lines."""
        listener = socket.socket()
        listener.bind(('127.0.0.1', 0))
        listener.listen(8)
        asked = []

        def run():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    try:
                        asked.append(connection.recv(65536).split(b'\r\n')[0].decode())
                        answer(connection)
                    except OSError:
                        pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return 'http://127.0.0.1:%d' % listener.getsockname()[1], asked

    def refuses(self, url, word, **environment):
        """Two kernels are built all the same, with one line, which has the word."""
        hits, lines = self.build(url, ['gfx950', 'gfx942'], **environment)
        self.assertEqual((0, 1), (hits, len(lines)), lines)
        self.assertIn(word, lines[0])

    def test_a_server_that_is_down(self):
        self.refuses('http://127.0.0.1:%d' % free_port(), 'left alone')

    def test_a_server_that_says_nothing_costs_the_time_out_once(self):
        over = threading.Event()
        self.addCleanup(over.set)
        url, asked = self.serve(lambda connection: over.wait(20))
        self.refuses(url, 'left alone', HEDDLE_CACHE_TIMEOUT='0.4')
        over.set()
        self.assertEqual(1, len(asked))

    def test_a_server_that_drips_is_cut_off(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def drip(connection):
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
            while not over.wait(0.05):
                connection.sendall(b'x')

        url, asked = self.serve(drip)
        self.refuses(url, 'left alone', HEDDLE_CACHE_TIMEOUT='0.4')
        over.set()
        self.assertEqual(1, len(asked))

    def test_a_body_that_ends_early(self):
        url, asked = self.serve(lambda c: c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nshort'))
        self.refuses(url, 'left alone')
        self.assertEqual(1, len(asked))

    def test_a_server_that_speaks_something_else(self):
        url, _ = self.serve(lambda c: c.sendall(b'220 mail.example ESMTP\r\n'))
        self.refuses(url, 'left alone')

    def test_a_redirect_to_another_host_is_not_followed(self):
        other, asked = self.serve(lambda c: c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
        url, _ = self.serve(lambda c: c.sendall(b'HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s/\r\n\r\n' % other.encode()))
        self.refuses(url, 'redirect')
        self.assertEqual([], asked)

    def test_addresses_that_are_none(self):
        for url, word in [('ftp://host/', 'neither http'), ('http://', 'no host'), ('http://a b/', 'blank'),
                          ('http://user:word@host/', 'HEDDLE_CACHE_HEADER'), ('http://host/?x', 'query'), ('file:///tmp', 'neither')]:
            self.refuses(url, word)
        self.refuses('http://host/', 'HEDDLE_CACHE_TIMEOUT', HEDDLE_CACHE_TIMEOUT='soon')

    def test_without_libcurl(self):
        self.refuses(self.url(), 'libcurl is not there', HEDDLE_CURL_LIBRARY='/nonexistent/libcurl.so')
        # Its exit code is about compilers and devices.
        findings = subprocess.run([HEDDLE, 'doctor'], env=dict(self.environment, HEDDLE_CURL_LIBRARY='/nonexistent/libcurl.so'),
                                  capture_output=True, text=True, timeout=120).stdout
        self.assertRegex(findings, r'http .*missing')


if __name__ == '__main__':
    unittest.main()
